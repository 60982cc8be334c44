"""What the API says of a Job and its pod, and what that means here. Reasons are matched, messages
only shown."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.places.base import RESUME, JobState, JobStatus
from gpuwatch.session import in_part as figures

_LONGEST = 250
_DELETED = "its pod was deleted, and what was not fetched with it"
_MADE = "SuccessfulCreate"
"""The event of a Job that made a pod."""
_MORE_MEMORY = "ask for more: --on kubernetes,memory=AMOUNT"
_SEE_NODES = "gpuwatch doctor --on kubernetes shows what each node has, and what is free"
_SEE_CLAIM = "kubectl describe pvc"
_REPEAT_BLOCK = (
    "it waits for that node; to repeat the block on another one: gpuwatch stop, gpuwatch delete "
    "with the block's sessions, gpuwatch resume"
)
_IMAGE_HINTS = {
    **dict.fromkeys(
        ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"),
        "see that the image's name is right, and that the cluster may pull it; then stop it",
    ),
    "ErrImageNeverPull": "the node does not have the image, and may not pull it",
    "InvalidImageName": "the image's name is invalid, so the pod will never start: stop it",
}
"""Reasons why an image is not there, with what helps."""
_CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
_CREATED = frozenset({"ContainerCreating", "PodInitializing"})
_NOT_MOUNTED = frozenset({"FailedMount", "FailedAttachVolume"})
_NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
_PREEMPTED = frozenset({"Preempting", "Evicted", "NodeShutdown", "Terminated", "Shutdown"})
"""Reasons of a pod that was ended by its node or scheduler."""
_TAKEN = frozenset({"TaintManagerEviction", "Preempted"})
"""Events of a pod that the cluster takes away; servers before 1.26 tell it by these alone."""
_SCALING = {
    "NotTriggerScaleUp": "no node that could be added would do",
    "FailedScaleUp": "no node could be added",
}
"""Events of a pod for which the cluster does not grow, with what they mean."""


def job_status(
    job: Mapping[str, JSON] | None,
    pods: Sequence[Mapping[str, JSON]],
    events: Sequence[Mapping[str, JSON]] = (),
    *,
    cancelled: bool = False,
    noted: str | None = None,
) -> JobStatus:
    """The state of a Job. That of a running pod's recorder is known in the pod alone.

    ``pods``: the Job's. ``events``: of the Job and its pods, oldest first. ``cancelled``: this user
    asked for its end. ``noted``: the id of the pod that records.
    """
    pod = the_pod(pods, noted)
    if job is None and (pod is None or not is_running(pod)):
        if cancelled:
            return JobStatus(JobState.CANCELLED)
        return _lost("its Job is gone: somebody deleted it, or its namespace")
    if pod is None and noted is None:
        return _without_pod(job or {}, events, cancelled=cancelled)
    if pod is None:
        gone = taken_away(job or {}, {}, events) or _lost(_DELETED)
        return JobStatus(JobState.CANCELLED) if cancelled else gone
    where = _text(mapping(pod.get("spec")).get("nodeName"))
    if noted is None and _is_another(pods, events):
        return _lost(_DELETED, where)
    status = _of_pod(job or {}, pod, events, cancelled=cancelled)
    waits = status.state is JobState.STARTING and status.hint is None and not is_running(pod)
    if waits and noted is not None:
        status = JobStatus(JobState.RUNNING)  # its next container starts
    return replace(status, starts=None, where=where)


def the_pod(pods: Sequence[Mapping[str, JSON]], noted: str | None) -> Mapping[str, JSON] | None:
    """The pod of a Job: that with the id ``noted``, or the first. Later ones are of no use: a run
    is not repeated unasked."""
    if noted is not None:
        return next((pod for pod in pods if uid_of(pod) == noted), None)
    return min(pods, key=lambda pod: str(_meta(pod).get("creationTimestamp")), default=None)


def uid_of(value: Mapping[str, JSON]) -> str:
    """The id of an object, which no other ever has."""
    return str(_meta(value).get("uid"))


def name_of(value: Mapping[str, JSON]) -> str:
    """The name of an object."""
    return str(_meta(value).get("name"))


def is_running(pod: Mapping[str, JSON]) -> bool:
    """Whether commands can be run in the pod. It is pending while others than its last container
    run."""
    phase = mapping(pod.get("status")).get("phase")
    running = mapping(_container(pod).get("state")).get("running")
    return phase in ("Pending", "Running") and isinstance(running, dict)


def is_over(pod: Mapping[str, JSON]) -> bool:
    """Whether the pod has ended."""
    return mapping(pod.get("status")).get("phase") in ("Failed", "Succeeded")


def ended_well(pod: Mapping[str, JSON]) -> bool:
    """Whether the pod ended by itself: its recorder's end is another matter."""
    return mapping(pod.get("status")).get("phase") == "Succeeded"


def container_of(pod: Mapping[str, JSON]) -> str:
    """The name of the container whose turn it is."""
    return str(_container(pod).get("name"))


def has_next(pod: Mapping[str, JSON]) -> bool:
    """Whether another container follows the one whose turn it is."""
    names = [each.get("name") for each in _containers(pod)]
    return container_of(pod) in names[:-1]


def of_node(status: JobStatus, node: str, why: str) -> JobStatus:
    """``status`` of a pod that waits for one node alone; ``why`` that does not take it."""
    said = f"the node of this block's first image ({clean(node, 80)}) {why}"
    reason = f"{said}; {status.reason}" if status.reason else said
    return replace(status, reason=reason, hint=_REPEAT_BLOCK)


def condition(status: Mapping[str, JSON], kind: str) -> Mapping[str, JSON]:
    """The condition of this type; empty: it is not told."""
    found = status.get("conditions")
    conditions = map(mapping, found) if isinstance(found, list) else ()
    return next((each for each in conditions if each.get("type") == kind), {})


def taken_away(
    job: Mapping[str, JSON], pod: Mapping[str, JSON], events: Sequence[Mapping[str, JSON]]
) -> JobStatus | None:
    """Why the cluster ended a pod that was not asked to end from here; ``None``: it does not tell.

    ``pod``: empty for one that is gone. ``events``: of the Job and its pods.
    """
    disrupted = _disruption(pod)
    if disrupted is not None:
        return JobStatus(JobState.PREEMPTED, disrupted, hint=RESUME)
    failed = condition(mapping(job.get("status")), "Failed")
    why = failed.get("reason") if failed.get("status") == "True" else None
    if why == "DeadlineExceeded":
        return JobStatus(JobState.TIMED_OUT, "DeadlineExceeded", hint=RESUME)
    if why == "PodFailurePolicy":  # the Job's only one is of a pod with DisruptionTarget
        reason = _words("PodFailurePolicy", failed.get("message"))
        return JobStatus(JobState.PREEMPTED, reason, hint=RESUME)
    if mapping(job.get("spec")).get("suspend") is True:
        return JobStatus(JobState.PREEMPTED, "Suspended: its queue took it back", hint=RESUME)
    event = _newest(events, _TAKEN)
    # An eviction that is called off has an event of the same reason.
    if not event or str(event.get("message")).startswith("Cancel"):
        return None
    reason = _words(str(event.get("reason")), event.get("message"))
    return JobStatus(JobState.PREEMPTED, reason, hint=RESUME)


def in_pod(
    told: Mapping[str, JSON],
    pod: Mapping[str, JSON],
    *,
    cancelled: bool,
    taken: JobStatus | None = None,
) -> JobStatus:
    """The state by what the program of the pod says; ``told`` is empty before it began.

    ``taken``: of :func:`taken_away`, once the program was told to go.
    """
    where = _text(mapping(pod.get("spec")).get("nodeName"))
    phase = told.get("phase")
    if phase == "running":
        return JobStatus(JobState.RUNNING, where=where)
    if phase != "ended":
        reason = "it waits for the working folder" if phase == "waiting" else None
        return JobStatus(JobState.STARTING, reason, where=where)
    if cancelled:
        return JobStatus(JobState.CANCELLED, where=where)
    if told.get("told_to_go") is True:
        if taken is not None:
            return replace(taken, where=where)
        reason = "its pod was told to end: somebody deleted it, or its namespace"
        return JobStatus(JobState.ENDED_BY_OTHERS, reason, hint=RESUME, where=where)
    code = told.get("code")
    if told.get("out_of_memory") is True:
        reason = "the kernel killed a process of the pod, at its memory limit"
        return JobStatus(JobState.OUT_OF_MEMORY, reason, hint=_MORE_MEMORY, where=where)
    if isinstance(code, int) and code < 0:
        why = f"its recorder was killed by signal {-code}"
        return JobStatus(JobState.LOST, why, hint=RESUME, where=where)
    return JobStatus(JobState.ENDED, where=where)


def _of_pod(
    job: Mapping[str, JSON],
    pod: Mapping[str, JSON],
    events: Sequence[Mapping[str, JSON]],
    *,
    cancelled: bool,
) -> JobStatus:
    status = mapping(pod.get("status"))
    phase = status.get("phase")
    if is_over(pod):
        over = taken_away(job, pod, events) or _over(pod)
        return _with_figures(JobStatus(JobState.CANCELLED) if cancelled else over, pod)
    if phase == "Running":
        ready = condition(status, "Ready")
        leaves = bool(_meta(pod).get("deletionTimestamp"))
        if ready.get("status") == "False" and is_running(pod) and not leaves:
            return _silent()
        return JobStatus(JobState.STARTING)
    if phase == "Unknown":
        return _silent()
    scheduled = condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        unscheduled = _unscheduled(scheduled, events)
        hint = f"{unscheduled.hint}; its claim: {_SEE_CLAIM}" if unscheduled.hint else None
        return replace(unscheduled, hint=hint) if _claim(pod) else unscheduled
    reason, message = _waiting(pod)
    unmounted = _unmounted(pod, events)
    if unmounted is not None and reason in _CREATED:
        return JobStatus(JobState.STARTING, unmounted, hint=f"{_SEE_CLAIM}; gpuwatch stop ends it")
    if reason in _IMAGE_HINTS:
        return JobStatus(JobState.STARTING, _words(reason, message), hint=_IMAGE_HINTS[reason])
    if reason in _CONFIG:
        return JobStatus(JobState.STARTING, _words(reason, message), hint="gpuwatch stop ends it")
    return JobStatus(JobState.STARTING, _words(reason, "") or None)


def _silent() -> JobStatus:
    return JobStatus(
        JobState.UNKNOWN,
        "its node does not answer",
        hint="it goes on when the node is back: kubectl get nodes",
    )


def _claim(pod: Mapping[str, JSON]) -> bool:
    """Whether the pod has a claim of the user's."""
    volumes = mapping(pod.get("spec")).get("volumes")
    found = volumes if isinstance(volumes, list) else []
    return any("persistentVolumeClaim" in mapping(each) for each in found)


def _unmounted(pod: Mapping[str, JSON], events: Sequence[Mapping[str, JSON]]) -> str | None:
    """Why a claim cannot be mounted. What gpuwatch sends follows the Job, so its own volume always
    fails at first."""
    found = [
        _words(str(event.get("reason")), event.get("message"))
        for event in events
        if event.get("reason") in _NOT_MOUNTED and 'volume "sent"' not in str(event.get("message"))
    ]
    return found[-1] if found and _claim(pod) else None


def _unscheduled(condition: Mapping[str, JSON], events: Sequence[Mapping[str, JSON]]) -> JobStatus:
    """A pod that no node takes yet."""
    reason = _words(_text(condition.get("reason")) or "Unschedulable", condition.get("message"))
    event = _newest(events, ("TriggeredScaleUp", *_SCALING))
    scaling = str(event.get("reason"))
    if scaling == "TriggeredScaleUp":
        return JobStatus(JobState.QUEUED, "TriggeredScaleUp: a node is being added for it")
    if scaling in _SCALING:
        told = _words(f"{scaling}: {_SCALING[scaling]}", event.get("message"))
        reason += f"; {told}"
    return JobStatus(JobState.QUEUED, reason, hint=_SEE_NODES)


def _without_pod(
    job: Mapping[str, JSON], events: Sequence[Mapping[str, JSON]], *, cancelled: bool
) -> JobStatus:
    status = mapping(job.get("status"))
    if cancelled:
        return JobStatus(JobState.CANCELLED)
    ended = [condition(status, kind).get("status") == "True" for kind in ("Failed", "Complete")]
    if any(ended) or _number(status.get("failed")):
        return taken_away(job, {}, events) or _lost(_DELETED)
    if mapping(job.get("spec")).get("suspend") is True:
        return JobStatus(
            JobState.QUEUED,
            "Suspended",
            hint="its queue has not admitted it yet: kubectl get workloads",
        )
    refused = [event for event in events if event.get("reason") == "FailedCreate"]
    if refused:
        return JobStatus(
            JobState.QUEUED,
            _words("FailedCreate", refused[-1].get("message")),
            hint="a quota or policy of the namespace is in the way; gpuwatch stop ends it",
        )
    return JobStatus(JobState.STARTING)


def _over(pod: Mapping[str, JSON]) -> JobStatus:
    """A pod that ended before anybody let it go."""
    status = mapping(pod.get("status"))
    reason = _text(status.get("reason"))
    if reason == "DeadlineExceeded":
        return JobStatus(JobState.TIMED_OUT, reason, hint=RESUME)
    if reason in _PREEMPTED:
        return JobStatus(JobState.PREEMPTED, _words(reason, status.get("message")), hint=RESUME)
    ended = mapping(mapping(_container(pod).get("state")).get("terminated"))
    image = _text(_container(pod).get("image")) or "the image"
    reason, message = _text(ended.get("reason")), _last_line(ended.get("message"))
    code = _number(ended.get("exitCode"))
    if reason == "OOMKilled":
        return JobStatus(JobState.OUT_OF_MEMORY, reason, hint=_MORE_MEMORY)
    if reason in _NOT_STARTED:
        failed = f"{image} needs Python 3.10: {_words(reason, ended.get('message'))}"
        return JobStatus(JobState.FAILED, failed, hint="name where it is: python=PATH")
    if code == 0:
        return _lost("its pod waited for linger=, and ended before all was fetched")
    if code in (137, 143):
        return _lost(f"its pod was killed (exit code {code})")
    failed = message or _words(reason or "Error", f"exit code {code}")
    return JobStatus(JobState.FAILED, failed, hint=RESUME)


def _with_figures(status: JobStatus, pod: Mapping[str, JSON]) -> JobStatus:
    """``status`` of a pod that is over, with the figures of its runs that it left behind."""
    ended = mapping(mapping(_container(pod).get("state")).get("terminated"))
    message = ended.get("message")
    # Of one that failed it may be the end of its log.
    if not isinstance(message, str) or not message or _number(ended.get("exitCode")) != 0:
        return status
    try:
        part = figures.parse(message)
    except figures.Refused as error:
        reason = "the figures that it left cannot be read"
        if status.reason is not None:
            reason = f"{status.reason}; {reason}"
        return replace(status, reason=f"{reason}: {error}")
    if not part.runs:
        return status
    state = JobState.IN_PART if status.state is JobState.LOST else status.state
    return replace(status, state=state, in_part=part)


def _disruption(pod: Mapping[str, JSON]) -> str | None:
    """Why the cluster takes a pod away, where it tells that."""
    found = condition(mapping(pod.get("status")), "DisruptionTarget")
    if found.get("status") != "True":
        return None
    return _words(_text(found.get("reason")) or "DisruptionTarget", found.get("message"))


def _is_another(pods: Sequence[Mapping[str, JSON]], events: Sequence[Mapping[str, JSON]]) -> bool:
    """Whether the Job has made a pod in the place of one that was deleted."""
    made = {str(event.get("message")) for event in events if event.get("reason") == _MADE}
    return len(pods) > 1 or len(made) > 1


def _lost(reason: str, where: str | None = None) -> JobStatus:
    return JobStatus(JobState.LOST, reason, hint=RESUME, where=where)


def _waiting(pod: Mapping[str, JSON]) -> tuple[str, JSON]:
    waiting = mapping(mapping(_container(pod).get("state")).get("waiting"))
    return _text(waiting.get("reason")) or "", waiting.get("message")


def _container(pod: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """What the API says of the container whose turn it is: the first that has not ended well, or
    the last."""
    containers = _containers(pod)
    left = (each for each in containers if not _ended_well(each))
    return next(left, containers[-1] if containers else {})


def _containers(pod: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    """What the API says of the pod's containers, in the order of their turns."""
    status = mapping(pod.get("status"))
    both = (status.get("initContainerStatuses"), status.get("containerStatuses"))
    return [mapping(each) for found in both if isinstance(found, list) for each in found]


def _ended_well(container: Mapping[str, JSON]) -> bool:
    ended = mapping(container.get("state")).get("terminated")
    return isinstance(ended, dict) and _number(ended.get("exitCode")) == 0


def _newest(events: Sequence[Mapping[str, JSON]], reasons: Container[str]) -> Mapping[str, JSON]:
    """The newest event with one of these reasons; empty: there is none."""
    found = [event for event in events if str(event.get("reason")) in reasons]
    return max(reversed(found), key=_time, default={})


def _time(event: Mapping[str, JSON]) -> str:
    return _text(event.get("lastTimestamp")) or _text(event.get("eventTime")) or ""


def _meta(value: Mapping[str, JSON]) -> Mapping[str, JSON]:
    return mapping(value.get("metadata"))


def _words(reason: str, message: JSON) -> str:
    """The reason with its message."""
    text = clean(message, _LONGEST) if isinstance(message, str) and message else ""
    return f"{clean(reason, 60)}: {text}" if text and reason else clean(reason, 60) or text


def _last_line(text: JSON) -> str:
    lines = [line.strip() for line in text.splitlines()] if isinstance(text, str) else []
    return clean(next((line for line in reversed(lines) if line), ""), _LONGEST)


def _text(value: JSON) -> str | None:
    return clean(value, _LONGEST) if isinstance(value, str) and value else None


def _number(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
