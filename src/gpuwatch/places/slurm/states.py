"""Slurm's words for the state of a job, and what they mean here."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.places.base import RESUME, JobState, JobStatus
from gpuwatch.places.slurm import options

FORMAT = "%A|%T|%S|%B|%r"
"""The format in which squeue is asked; the reason may hold any text."""
FORMAT_WITH_USER = f"%U|{FORMAT}"
"""The same, with the number of the job's user."""
STEP_FORMAT = "%i|%j"
"""The format in which squeue is asked about steps."""
_STATES = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED"), JobState.QUEUED),
    **dict.fromkeys(("REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"), JobState.QUEUED),
    # Its processes may still be closing their files.
    **dict.fromkeys(
        ("RUNNING", "COMPLETING", "RESIZING", "SIGNALING", "STAGE_OUT"), JobState.RUNNING
    ),
    **dict.fromkeys(("SUSPENDED", "STOPPED"), JobState.PAUSED),
    "COMPLETED": JobState.ENDED,
    "FAILED": JobState.FAILED,
    **dict.fromkeys(("TIMEOUT", "DEADLINE"), JobState.TIMED_OUT),
    "CANCELLED": JobState.ENDED_BY_OTHERS,
    "PREEMPTED": JobState.PREEMPTED,
    "OUT_OF_MEMORY": JobState.OUT_OF_MEMORY,
    **dict.fromkeys(("NODE_FAIL", "BOOT_FAIL", "REVOKED"), JobState.LOST),
}
_OTHER = "leave it out or ask for another: "
_HINTS: tuple[tuple[str, str], ...] = (
    (r"Partition(Down|Inactive)", "the partition starts no jobs; sinfo lists the others"),
    (
        r"Partition(Node|Time)Limit|(QOS|Assoc)Max\w*PerJob\w*|QOSMaxWallDuration\w*",
        "it asks for more than is allowed, and will never start; ask for less",
    ),
    (
        r"QOSJobLimit|(QOS|Assoc)Max\w*|(QOS|Assoc)Grp\w*|Assoc\w*Limit|QOSUsage\w*",
        "a limit of your account: it waits for your other jobs, or for ever; sacctmgr show qos",
    ),
    (
        r"ReqNodeNotAvail.*|NodeDown|Reserved.*",
        "the nodes that it asks for are down or reserved; sinfo -R tells why",
    ),
    (r"BadConstraints", "no node has what it asks for, and it will never start; sinfo -Nl"),
    (
        r"InvalidAccount|AccountNotAllowed|InvalidQOS|QOSNotAllowed",
        f"it will never start; {_OTHER}--on slurm,account=NAME,qos=NAME",
    ),
    (r"DependencyNeverSatisfied", "it will never start; cancel it: gpuwatch stop"),
    (r"JobHeldUser", "it is held; let it go: scontrol release {id}"),
    (r"JobHeldAdmin|JobHoldMaxRequeue|.*requeued held", "it is held; ask an administrator"),
)
"""Reasons for which a queued job waits long or for ever, with what helps."""


@dataclass(frozen=True)
class Seen:
    """A job as squeue shows it."""

    id: str
    state: str
    """Slurm's word, without what may stand behind it."""
    starts: float | None = None
    """When it starts or started, in Unix seconds."""
    node: str | None = None
    """The node of its batch script."""
    reason: str | None = None


@dataclass(frozen=True)
class Ended:
    """What scontrol tells of a job that is over."""

    signal: int
    """The signal that killed the batch script, or 0."""
    ran: int
    """Seconds."""
    limit: int | None
    """Its time limit in seconds; ``None``: it has none."""


def parse_queue(text: str) -> list[Seen]:
    """The jobs in squeue's output in :data:`FORMAT`; lines of another form are left out."""
    jobs = []
    for line in text.splitlines():
        fields = line.strip().split("|", 4)
        if len(fields) == 5 and fields[0].isdecimal():
            id_, state, starts, node, reason = fields
            jobs.append(
                Seen(id_, _word(state), _seconds(starts), _told(node, "n/a"), _told(reason, "None"))
            )
    return jobs


def parse_queue_with_user(text: str) -> list[tuple[int, Seen]]:
    """The jobs in squeue's output in :data:`FORMAT_WITH_USER`, each with its user's number."""
    jobs = []
    for line in text.splitlines():
        user, _, rest = line.strip().partition("|")
        if user.isdecimal():
            jobs += [(int(user), seen) for seen in parse_queue(rest)]
    return jobs


def parse_steps(text: str) -> dict[str, str]:
    """The ids of steps by their names, in squeue's output in :data:`STEP_FORMAT`."""
    found = (line.strip().partition("|") for line in text.splitlines())
    return {name: id_ for id_, _, name in found if re.fullmatch(r"\d+(_\d+)?\.\d+", id_)}


def parse_ended(text: str) -> Ended | None:
    """What ``scontrol show job --oneliner`` prints of a job."""
    found = [re.search(rf"\b{name}=(\S+)", text) for name in ("ExitCode", "RunTime", "TimeLimit")]
    code, ran, limit = (match.group(1) if match is not None else "" for match in found)
    if not (match := re.fullmatch(r"\d+:(\d+)", code)) or (used := options.seconds(ran)) is None:
        return None
    return Ended(int(match[1]), used, options.seconds(limit))


def parse_start(text: str) -> float | None:
    """When ``sbatch --test-only`` expects the job to start, in Unix seconds; ``None``: not told."""
    match = re.search(r"\bto start at (\S+)", text)
    return _seconds(match[1]) if match is not None else None


def parse_nodes(text: str) -> str | None:
    """The nodes that ``sbatch --test-only`` expects, if they are several: ``n[1-2]``."""
    match = re.search(r"\bto start at .* on (?:nodes )?(\S*[\[,]\S*)", text)
    return clean(match[1], 200) if match is not None else None


def parse_accounting(text: str) -> str | None:
    """Slurm's final word on a job in ``sacct --noheader --parsable2 --format=State``; ``None``: it
    has none, or not yet."""
    words = [_word(line) for line in text.splitlines() if line.strip()]
    final = [word for word in words if word in _STATES and _STATES[word].over]
    return final[-1] if final else None


def status(seen: Seen, *, begun: bool) -> JobStatus:
    """The state of a job; ``begun``: its recorder began."""
    state = _STATES.get(seen.state, JobState.UNKNOWN)
    if state is JobState.RUNNING and not begun:
        state = JobState.STARTING
    if state is JobState.FAILED and begun:
        state = JobState.ENDED
    reason, hint = seen.reason, None
    if state is JobState.QUEUED:
        hint = _hint(seen)
        if reason is None and seen.state != "PENDING":
            reason = seen.state
    elif state is JobState.UNKNOWN:
        reason = f"Slurm calls it {clean(seen.state, 40)}"
    elif state in (JobState.LOST, JobState.PREEMPTED, JobState.TIMED_OUT):
        reason, hint = seen.state, RESUME
    elif seen.state == "COMPLETING":
        reason = seen.state
    elif reason == "NonZeroExitCode" or state in (JobState.ENDED_BY_OTHERS, JobState.RUNNING):
        reason = None  # what it printed says more; or it is why the job once waited
        hint = RESUME if begun and state is JobState.ENDED_BY_OTHERS else None
    starts = seen.starts if state is JobState.QUEUED else None
    return JobStatus(state, reason, starts, hint, seen.node)


def at_its_limit(ended: Ended, notice: int) -> bool:
    """Whether a job ended after it was told of its time limit, ``notice`` seconds before it. Slurm
    may tell it a minute earlier."""
    if ended.limit is None:
        return False
    return ended.ran >= max(ended.limit - notice - 60, ended.limit / 4)


def _hint(seen: Seen) -> str | None:
    reason = seen.reason or ""
    hints: Iterable[str] = (hint for pattern, hint in _HINTS if re.fullmatch(pattern, reason))
    return next((hint.format(id=seen.id) for hint in hints), None)


def _word(text: str) -> str:
    """``CANCELLED`` of ``CANCELLED by 1000``."""
    return (text.split() or [""])[0]


def _told(text: str, nothing: str) -> str | None:
    text = clean(text.strip(), 200)
    return text if text and text != nothing else None


def _seconds(text: str) -> float | None:
    """Unix seconds of a local time as Slurm writes it; ``None`` of ``N/A``."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None
