"""What objects of the API mean. Those of Kueue, DisruptionTarget and a growing cluster are of the
published API: the tests' cluster has none of them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwatch.core.models import JSON
from gpuwatch.places.base import JobState
from gpuwatch.places.kubernetes.nodes import in_the_way, of_nodes
from gpuwatch.places.kubernetes.sharing import NOT_SHARED, is_part, shared
from gpuwatch.places.kubernetes.states import (
    container_of,
    has_next,
    in_pod,
    is_running,
    job_status,
    of_node,
    taken_away,
)

JOB: dict[str, Any] = {"metadata": {"uid": "1"}, "spec": {}, "status": {}}


def pod(phase: str, *, container: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    containers = [] if container is None else [{"state": container}]
    return {
        "metadata": {"name": "p", "uid": "2", "creationTimestamp": "2026-11-25T10:00:00Z"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": phase, "containerStatuses": containers, **status},
    }


def condition(kind: str, status: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, **more}


def waiting(reason: str) -> dict[str, Any]:
    return pod("Pending", container={"waiting": {"reason": reason, "message": "why"}})


def ended(reason: str, code: int, message: str = "") -> dict[str, Any]:
    state = {"terminated": {"reason": reason, "exitCode": code, "message": message}}
    return pod("Succeeded" if code == 0 else "Failed", container=state)


UNSCHEDULABLE = pod(
    "Pending",
    conditions=[condition("PodScheduled", "False", reason="Unschedulable", message="0/1 nodes")],
)


@pytest.mark.parametrize(
    ("found", "state", "reason"),
    [
        (UNSCHEDULABLE, JobState.QUEUED, "Unschedulable: 0/1 nodes"),
        (waiting("ContainerCreating"), JobState.STARTING, "ContainerCreating"),
        (waiting("ErrImagePull"), JobState.STARTING, "ErrImagePull: why"),
        (waiting("ErrImageNeverPull"), JobState.STARTING, "ErrImageNeverPull: why"),
        (waiting("CreateContainerConfigError"), JobState.STARTING, "CreateContainerConfigError"),
        (pod("Running", container={"running": {}}), JobState.STARTING, None),
        (ended("StartError", 128, "no python3"), JobState.FAILED, "3.10: StartError: no python3"),
        (ended("Error", 1, "a\nthe end\n"), JobState.FAILED, "the end"),
        (ended("OOMKilled", 137), JobState.OUT_OF_MEMORY, "OOMKilled"),
        (ended("Error", 137), JobState.LOST, "exit code 137"),
        (ended("Completed", 0), JobState.LOST, "linger="),
        (pod("Failed", reason="Evicted", message="disk"), JobState.PREEMPTED, "Evicted: disk"),
        (pod("Failed", reason="DeadlineExceeded"), JobState.TIMED_OUT, "DeadlineExceeded"),
        (
            pod(
                "Failed",
                conditions=[condition("DisruptionTarget", "True", reason="PreemptionByScheduler")],
            ),
            JobState.PREEMPTED,
            "PreemptionByScheduler",
        ),
        (pod("Unknown"), JobState.UNKNOWN, "node does not answer"),
        (
            pod("Running", container={"running": {}}, conditions=[condition("Ready", "False")]),
            JobState.UNKNOWN,
            "node does not answer",
        ),
    ],
)
def test_a_pod(found: dict[str, Any], state: JobState, reason: str | None) -> None:
    job = JOB
    if found["status"]["phase"] == "Failed":
        job = {**JOB, "status": {"failed": 1}}
    status = job_status(job, [found])
    assert status.state is state
    assert status.hint or (reason, state) in (
        (None, JobState.STARTING),
        ("ContainerCreating", JobState.STARTING),
    )
    assert reason is None or reason in str(status.reason)


FIGURES = '{"gpuwatch":1,"more":0,"runs":[[1,"finished",12.5,100,0.01,640.0,null]]}'


def test_the_figures_that_a_pod_left_behind() -> None:
    status = job_status(JOB, [ended("Completed", 0, FIGURES)], noted="2")
    assert status.state is JobState.IN_PART and "linger=" in str(status.reason)
    assert status.in_part is not None and status.in_part.runs[0].steps == 100
    assert status.where == "n1"
    stopped = job_status(JOB, [ended("Completed", 0, FIGURES)], cancelled=True)
    assert stopped.state is JobState.CANCELLED and stopped.in_part == status.in_part
    hostile = job_status(JOB, [ended("Completed", 0, FIGURES.replace("12.5", '"rm"'))])
    assert hostile.state is JobState.LOST and hostile.in_part is None
    assert str(hostile.reason).endswith(
        "the figures that it left cannot be read: a figure is not a number"
    )
    none = job_status(JOB, [ended("Completed", 0, FIGURES[: FIGURES.index("[[")] + "[]}")])
    assert none.state is JobState.LOST and none.in_part is None
    # The message of a container that failed is the end of its log, which a workload writes.
    log = job_status(JOB, [ended("Error", 1, FIGURES)])
    assert log.state is JobState.FAILED and log.in_part is None


def turn(**state: dict[str, Any]) -> dict[str, Any]:
    return {"name": "-".join(state), "state": state, "image": "my/image:1"}


def test_the_container_whose_turn_it_is_speaks_for_the_pod() -> None:
    over = turn(terminated={"reason": "Completed", "exitCode": 0})
    runs, waits = turn(running={}), turn(waiting={"reason": "PodInitializing"})
    failed = turn(terminated={"reason": "StartError", "exitCode": 128})
    first = pod("Pending", initContainerStatuses=[runs])
    first["status"]["containerStatuses"] = [waits]
    assert is_running(first) and has_next(first) and container_of(first) == "running"
    assert job_status(JOB, [first], noted="2").state is JobState.STARTING  # it is asked itself
    between = pod("Pending", initContainerStatuses=[over])
    between["status"]["containerStatuses"] = [waits]
    assert not is_running(between) and not has_next(between)
    assert job_status(JOB, [between], noted="2").state is JobState.RUNNING
    assert job_status(JOB, [between]).state is JobState.STARTING
    last = pod("Running", initContainerStatuses=[over])
    last["status"]["containerStatuses"] = [runs]
    assert is_running(last) and not has_next(last)
    wrong = pod("Failed", initContainerStatuses=[over, failed])
    wrong["status"]["containerStatuses"] = [waits]
    status = job_status({**JOB, "status": {"failed": 1}}, [wrong], noted="2")
    assert status.state is JobState.FAILED and "my/image:1 needs Python" in str(status.reason)


def test_a_cluster_that_grows_is_told_from_one_that_cannot() -> None:
    grows, cannot = ([{"reason": word}] for word in ("TriggeredScaleUp", "NotTriggerScaleUp"))
    assert "is being added" in str(job_status(JOB, [UNSCHEDULABLE], grows).reason)
    assert "NotTriggerScaleUp" in str(job_status(JOB, [UNSCHEDULABLE], cannot).reason)


def test_a_cluster_that_could_not_grow_says_why_until_it_tries_again() -> None:
    def event(reason: str, minute: int, message: str = "") -> dict[str, JSON]:
        when = f"2026-11-25T10:{minute:02}:00Z"
        return {"reason": reason, "message": message, "lastTimestamp": when}

    failed = event("FailedScaleUp", 2, "GCE out of resources")
    tried = [failed, event("TriggeredScaleUp", 1)]  # the API does not order them by time
    assert str(job_status(JOB, [UNSCHEDULABLE], tried).reason).endswith(
        "; FailedScaleUp: no node could be added: GCE out of resources"
    )
    again = [*tried, event("TriggeredScaleUp", 3)]
    assert "is being added" in str(job_status(JOB, [UNSCHEDULABLE], again).reason)


DEADLINE = {"conditions": [condition("Failed", "True", reason="DeadlineExceeded")]}
POLICY = {"conditions": [condition("Failed", "True", reason="PodFailurePolicy", message="why")]}
CALLED_OFF = "Cancelling deletion of Pod a/p"


@pytest.mark.parametrize(
    ("job", "reason", "message", "state"),
    [
        ({}, "TaintManagerEviction", "Marking for deletion Pod a/p", JobState.PREEMPTED),
        ({}, "Preempted", "Preempted by a/q on node n1", JobState.PREEMPTED),
        ({"spec": {"suspend": True}}, "Suspended", "", JobState.PREEMPTED),
        ({"status": DEADLINE}, "Killing", "", JobState.TIMED_OUT),
        ({"status": POLICY}, "PodFailurePolicy", "why", JobState.PREEMPTED),
        ({}, "TaintManagerEviction", CALLED_OFF, None),
        ({}, "Killing", "Stopping container", None),
    ],
)
def test_a_pod_that_the_cluster_takes_away_says_why(
    job: dict[str, Any], reason: str, message: str, state: JobState | None
) -> None:
    found, events = {**JOB, **job}, [{"reason": reason, "message": message}]
    gone = job_status(found, [], events, noted="2")
    assert gone.state is (state or JobState.LOST)
    told: dict[str, JSON] = {"phase": "ended", "told_to_go": True}
    running = pod("Running", container={"running": {}})
    taken = taken_away(found, running, events)
    leaves = in_pod(told, running, cancelled=False, taken=taken)
    assert leaves.state is (state or JobState.ENDED_BY_OTHERS) and leaves.where == "n1"
    killed = job_status(found, [ended("Error", 137)], events, noted="2")
    assert killed.state is (state or JobState.LOST)
    if state is JobState.PREEMPTED:
        assert str(leaves.reason).startswith(reason)
        assert leaves.hint and gone.reason == leaves.reason == killed.reason
    assert job_status(found, [], events, noted="2", cancelled=True).state is JobState.CANCELLED


def test_a_pod_that_waits_for_one_node_says_what_is_with_that() -> None:
    found = of_node(job_status(JOB, [UNSCHEDULABLE]), "n7", "is gone")
    said = "the node of this block's first image (n7) is gone; Unschedulable: 0/1 nodes"
    assert (found.state, found.reason) == (JobState.QUEUED, said)
    assert "gpuwatch delete" in str(found.hint)


def test_a_job_without_a_pod() -> None:
    suspended = job_status({**JOB, "spec": {"suspend": True}}, [])
    assert (suspended.state, suspended.reason) == (JobState.QUEUED, "Suspended")
    quota = [{"reason": "FailedCreate", "message": "exceeded quota"}]
    assert job_status(JOB, [], quota).reason == "FailedCreate: exceeded quota"
    assert job_status(JOB, []).state is JobState.STARTING
    assert job_status(None, []).state is JobState.LOST
    assert job_status(None, [], cancelled=True).state is JobState.CANCELLED
    assert job_status({**JOB, "status": DEADLINE}, []).state is JobState.TIMED_OUT
    assert job_status({**JOB, "status": {"failed": 1}}, []).state is JobState.LOST


def test_a_pod_in_the_place_of_another_is_not_taken_for_it() -> None:
    second = pod("Running", container={"running": {}})
    status = job_status(JOB, [second], noted="another")
    assert status.state is JobState.LOST and "deleted" in str(status.reason)
    assert job_status(JOB, [second], noted="2").state is JobState.STARTING
    assert job_status(JOB, [], noted="another", cancelled=True).state is JobState.CANCELLED
    made = [{"reason": "SuccessfulCreate", "message": f"Created pod: {name}"} for name in "ab"]
    assert job_status(JOB, [second], made[:1]).state is JobState.STARTING
    assert job_status(JOB, [second], made).state is JobState.LOST
    assert job_status(JOB, [second, pod("Pending")]).state is JobState.LOST


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({}, JobState.STARTING),
        ({"phase": "waiting"}, JobState.STARTING),
        ({"phase": "running"}, JobState.RUNNING),
        ({"phase": "ended", "code": 5}, JobState.ENDED),
        ({"phase": "ended", "code": -9}, JobState.LOST),
        ({"phase": "ended", "code": 4, "out_of_memory": True}, JobState.OUT_OF_MEMORY),
        ({"phase": "ended", "code": 1, "told_to_go": True}, JobState.ENDED_BY_OTHERS),
        ({"phase": ["odd"]}, JobState.STARTING),
    ],
)
def test_what_the_pod_says(told: dict[str, Any], state: JobState) -> None:
    assert in_pod(told, pod("Running"), cancelled=False).state is state
    if told.get("told_to_go"):
        found = pod("Running", conditions=[condition("DisruptionTarget", "True")])
        taken = taken_away(JOB, found, [])
        assert in_pod(told, found, cancelled=False, taken=taken).state is JobState.PREEMPTED


def test_free_gpus_are_those_that_no_pod_holds() -> None:
    node = {
        "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "A100"}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "nvidia.com/mig-1g.5gb": "2", "cpu": "4"},
            "conditions": [condition("Ready", "True")],
        },
    }
    asked, whole = (
        {"containers": [{"resources": {"requests": {"nvidia.com/gpu": count}}}]} for count in "38"
    )
    pods = [
        {"spec": {**asked, "nodeName": "n1"}, "status": {"phase": "Running"}},
        {"spec": {**asked, "nodeName": "n1"}, "status": {"phase": "Succeeded"}},
        {"spec": {**asked, "nodeName": "n2"}, "status": {"phase": "Running"}},
    ]
    (found,) = of_nodes([node], pods)
    assert "nvidia.com/gpu: 5 of 8 free" in found.line
    gpu = "nvidia.com/gpu"
    assert in_the_way(found, (gpu, 5)) == in_the_way(found, None) == "has no room for it"
    assert in_the_way(found, (gpu, 6)) == "has 5 free GPU, not 6"
    assert "mig-1g.5gb: 2 of 2 free, each a MIG device, a part of a GPU" in found.line
    assert found.line.endswith("node=nvidia.com/gpu.product:A100")
    assert found.document == {
        "name": "n1",
        "ready": True,
        "takes_pods": True,
        "gpus": [
            {"resource": "nvidia.com/gpu", "count": 8, "free": 5, "shared": None, "mig": False},
            {
                "resource": "nvidia.com/mig-1g.5gb",
                "count": 2,
                "free": 2,
                "shared": None,
                "mig": True,
            },
        ],
        "labels": {"nvidia.com/gpu.product": "A100"},
    }
    (found,) = of_nodes([node], [{**pods[0], "spec": {**whole, "nodeName": "n1"}}])
    assert in_the_way(found, (gpu, 1)) == "has no free GPU"
    before = {"initContainers": whole["containers"] * 2, **asked, "nodeName": "n1"}
    (found,) = of_nodes([node], [{**pods[0], "spec": before}])
    assert in_the_way(found, (gpu, 1)) == "has no free GPU"
    sidecar = [{**each, "restartPolicy": "Always"} for each in asked["containers"]]
    (found,) = of_nodes([node], [{**pods[0], "spec": {**before, "initContainers": sidecar}}])
    assert found.gpus[gpu].free == 2
    (found,) = of_nodes([node], None)
    assert in_the_way(found, (gpu, 1)) == "has no room for it"
    assert "nvidia.com/gpu: 8, how many are free is unknown" in found.line
    (found,) = of_nodes([{**node, "spec": {"unschedulable": True}}], None)
    assert "n1, takes no pods" in found.line and in_the_way(found, None) == "takes no pods"
    (found,) = of_nodes([{"metadata": {"name": "n2"}}], [])
    assert found.line == "node        n2, not ready, no GPU"
    assert in_the_way(found, None) == "is not ready"


STRATEGY, REPLICAS = "nvidia.com/gpu.sharing-strategy", "nvidia.com/gpu.replicas"
GKE = {
    "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
    "cloud.google.com/gke-max-shared-clients-per-gpu": "8",
}


@pytest.mark.parametrize(
    ("resource", "labels", "told"),
    [
        ("nvidia.com/gpu", {}, None),
        ("nvidia.com/gpu", {STRATEGY: "none", REPLICAS: "1"}, NOT_SHARED),
        ("nvidia.com/gpu", {REPLICAS: "1"}, NOT_SHARED),
        (
            "nvidia.com/gpu",
            {STRATEGY: "time-slicing", REPLICAS: "4"},
            "time-slicing, up to 4 pods on a GPU",
        ),
        ("nvidia.com/gpu", {STRATEGY: "mps", REPLICAS: "2"}, "mps, up to 2 pods on a GPU"),
        ("nvidia.com/gpu", {REPLICAS: "4"}, "shared, up to 4 pods on a GPU"),
        (
            "nvidia.com/gpu.shared",
            {STRATEGY: "time-slicing", REPLICAS: "4"},
            "time-slicing, up to 4 pods on a GPU",
        ),
        ("nvidia.com/gpu.shared", {}, "yes, how is unknown"),
        ("nvidia.com/gpu", GKE, "time-sharing, up to 8 pods on a GPU"),
        ("nvidia.com/mig-1g.5gb", {STRATEGY: "time-slicing", REPLICAS: "4"}, None),
        (
            "nvidia.com/mig-1g.5gb",
            {
                "nvidia.com/mig-1g.5gb.sharing-strategy": "time-slicing",
                "nvidia.com/mig-1g.5gb.replicas": "2",
            },
            "time-slicing, up to 2 pods on a GPU",
        ),
    ],
)
def test_labels_say_whether_pods_share_a_gpu(
    resource: str, labels: dict[str, JSON], told: str | None
) -> None:
    assert shared(resource, labels) == told


@pytest.mark.parametrize(
    ("resource", "labels", "part"),
    [
        ("nvidia.com/gpu", {"nvidia.com/gpu.product": "A100-SXM4-40GB"}, False),
        ("nvidia.com/mig-3g.20gb", {}, True),
        ("nvidia.com/mig-3g.20gb.shared", {}, True),
        (
            "nvidia.com/gpu",
            {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "A100-MIG-1g.5gb"},
            True,
        ),
        (
            "nvidia.com/gpu",
            {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "A100"},
            False,
        ),
        ("nvidia.com/gpu", {"cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, True),
    ],
)
def test_labels_say_whether_a_gpu_is_a_part(
    resource: str, labels: dict[str, JSON], part: bool
) -> None:
    assert is_part(resource, labels) is part
