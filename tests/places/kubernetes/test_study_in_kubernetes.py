"""A study in a pod of a real Kubernetes of one node (``.ci/kubernetes``)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from gpuwatch.core.models import mapping
from gpuwatch.session.placement import PLACEMENT
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.plan import read as read_plan
from tests.conftest import Cli
from tests.places.kubernetes.cluster import (
    IMAGE,
    OTHER,
    TORCH,
    cluster,
    facts_of,
    in_pod,
    kubectl,
    names,
    objects,
    on,
    output,
    sessions,
    the_pod,
    the_study,
    wait_until_empty,
)
from tests.session.samples import times_of
from tests.terminal import Pty

# A test may wait for those of other workers to leave the node.
pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

SAVES = "trap 'echo saved; exit 0' TERM; echo begun; sleep 600 & wait"
"""A workload that saves when it is told to end."""
GOES_ON = "echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo done"
"""A workload that ends when the test has made a file in its pod."""
PATIENCE = 180.0


@pytest.fixture(params=["of the cluster", "new"])
def with_any_client(here: Cli, request: pytest.FixtureRequest) -> None:
    """``here``'s kubectl: the cluster's own, of 1.20, and a new one (``.ci/kubectl``)."""
    if request.param == "new":
        program = os.environ.get("GPUWATCH_KUBECTL", "")
        if not Path(program).is_file():
            if os.environ.get("GPUWATCH_REQUIRE_KUBECTL"):
                pytest.fail(f"GPUWATCH_KUBECTL names no program: {program!r}")
            pytest.skip("no new kubectl; export GPUWATCH_KUBECTL=$(.ci/kubectl)")
        client = here.home / "client"
        client.mkdir()
        (client / "kubectl").symlink_to(program)
        here.variables["PATH"] = os.pathsep.join([str(client), os.environ["PATH"]])


def send(here: Cli, place: str, *words: str) -> Path:
    """Submit a study in the background; returns its folder."""
    return Path(here("--record", "--detach", "--on", place, *words).stdout.strip())


def placement(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / PLACEMENT).read_text())
    return found


def wait_for(folder: Path, *states: str, seconds: float = PATIENCE) -> dict[str, object]:
    """Wait for one of these states, and if it is over until all is here."""
    until = time.monotonic() + seconds
    while (known := placement(folder))["state"] not in states or not (
        known["fetched"] or known["state"] in ("queued", "starting", "running", "unknown")
    ):
        assert time.monotonic() < until, known
        time.sleep(0.1)
    return known


def wait_for_reason(folder: Path, word: str, seconds: float = PATIENCE) -> dict[str, object]:
    until = time.monotonic() + seconds
    while word not in str((known := placement(folder))["reason"]):
        assert time.monotonic() < until, known
        time.sleep(0.1)
    return known


def wait_for_output(here: Cli, folder: Path, word: str) -> None:
    """Wait until the run's output is here with this word."""
    until = time.monotonic() + PATIENCE
    while word not in output(folder):
        assert time.monotonic() < until, placement(folder)
        time.sleep(0.2)


def status(here: Cli) -> list[str]:
    listed = json.loads(here("sessions", "--format", "json").stdout)
    return [row["status"] for row in listed["sessions"]]


def followers(here: Cli) -> list[int]:
    leases = (here.home / ".local/state/gpuwatch/placements").glob("*/lease.json")
    return [json.loads(lease.read_text())["holder"]["pid"] for lease in leases]


@pytest.mark.usefixtures("with_any_client")
def test_two_blocks_run_in_one_pod_of_least_privilege(here: Cli, namespace: str) -> None:
    words = ("--command", "a=sh -c 'grep -E ^Cap\\|^NoNew\\|^Seccomp /proc/self/status'")
    words += ("--command", "b=sh -c 'touch /etc/x; ls /var/run/secrets; touch /tmp/x'")
    here(
        *("--record", "--on", on("gpu=nvidia.com/gpu:1"), "--blocks", "2"),
        *("--cool-down", "0", *words),
    )
    folder = the_study(here)
    known = placement(folder)
    assert (known["state"], known["where"], known["fetched"]) == ("ended", "node1", True), known
    assert f"context=lab,namespace={namespace}" in str(known["place"])
    assert len(sessions(folder)) == 6 and (folder / "summary.md").exists()
    told = output(folder)
    assert "CapBnd:\t0000000000000000" in told and "NoNewPrivs:\t1" in told
    assert "Seccomp:\t2" in told
    assert "/etc/x': Read-only file system" in told
    assert "/var/run/secrets': No such file" in told
    facts = []
    for session in sessions(folder):
        with SessionReader(session) as reader:
            facts.append({k: v for f in reader.facts().values() for k, v in f.items()})
    assert {each["job.scheduler"] for each in facts} == {"kubernetes"}
    assert {each["job.image"] for each in facts} == {IMAGE}
    assert len({(each["job.id"], each["job.node"]) for each in facts}) == 1


def test_a_command_runs_in_its_own_files(here: Cli) -> None:
    work = here.home / "work"
    (work / "say.py").write_text("print('in', __file__)")
    here("--record", "--on", on(), "python3", "say.py", folder=work)
    assert "in " in output(the_study(here))


def test_what_waits_says_why_and_is_cancelled(here: Cli, namespace: str) -> None:
    folder = send(here, on("gpu=nvidia.com/gpu:9"), "--", "true")
    known = wait_for_reason(folder, "Unschedulable")
    assert known["state"] == "queued" and "Insufficient nvidia.com/gpu" in str(known["reason"])
    assert "gpuwatch doctor" in str(known["hint"])
    assert "not over" in here("delete", "--yes", folder, code=2).stderr
    here("stop", folder)
    known = wait_for(folder, "cancelled")
    assert known["fetched"] is True
    assert str(known["reason"]).startswith("was queued: Unschedulable")
    wait_until_empty(namespace)
    here("delete", "--yes", folder.name)
    folder = send(here, on("node=colour:red"), "--", "true")
    assert "affinity" in str(wait_for_reason(folder, "Unschedulable")["reason"])
    here("stop", folder)


def test_an_image_that_will_not_do_says_so(here: Cli) -> None:
    cases = (
        ("nowhere/none:1", "ImagePull", "starting"),
        ("nowhere/NONE:1", "InvalidImageName", "starting"),
        ("busybox:lab", "StartError", "failed"),  # it has no Python
    )
    sent = [send(here, f"kubernetes,image={image}", "--", "true") for image, _, _ in cases]
    for folder, (_, reason, state) in zip(sent, cases, strict=True):
        known = wait_for_reason(folder, reason)
        assert known["state"] == state and known["hint"]
        if state == "starting":
            here("stop", folder)


def test_the_screen_shows_what_waits_and_then_the_run(here: Cli) -> None:
    words = ("run", "--on", on("gpu=nvidia.com/gpu:3"), "--", "sh", "-c", SAVES)
    screen = Pty(here.argv(*words), environment=here.env, folder=here.home)
    try:
        screen.wait("Unschedulable", PATIENCE)
        cluster("gpus", "3")
        screen.wait("begun", PATIENCE)
        screen.type("q")
        assert screen.end() == 0
    finally:
        screen.close()
        cluster("gpus", "2")
    here("stop", the_study(here))


@pytest.mark.usefixtures("with_any_client")
def test_a_run_that_is_stopped_saves_and_is_resumed(here: Cli, namespace: str) -> None:
    folder = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    assert "not over" in here("resume", folder, code=2).stderr
    here("stop", folder)
    wait_for(folder, "cancelled")
    assert "saved" in output(folder) and status(here) == ["stopped"]
    wait_until_empty(namespace)
    here("resume", "--detach", folder)
    wait_for(folder, "running")
    wait_for_output(here, folder, "begun")
    assert len(objects(namespace, "jobs")) == 1
    here("stop", folder)
    wait_for(folder, "cancelled")


def test_ctrl_c_ends_it_there(here: Cli) -> None:
    waiting = here.start("--record", "--on", on(), "--", "sh", "-c", SAVES)
    until = time.monotonic() + PATIENCE
    while not list(here.home.rglob("plan.json")):
        assert time.monotonic() < until
        time.sleep(0.1)
    wait_for_output(here, the_study(here), "begun")
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 130
    assert "saved" in output(the_study(here))


def test_it_goes_on_without_its_follower(here: Cli, namespace: str) -> None:
    folder = send(here, on(), "--", "sh", "-c", GOES_ON)
    wait_for_output(here, folder, "begun")
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)
    in_pod(namespace, "touch", "/tmp/go")
    here("attach", "--plain", folder.name)
    assert wait_for(folder, "ended")["fetched"] is True
    assert output(folder).count("done") == 1
    wait_until_empty(namespace)
    (sent,) = (here.home / ".local/state/gpuwatch/placements").iterdir()
    here("follow", sent.name)
    assert placement(folder)["state"] == "ended"


STEPS = """
for number in range(1, 41):
    line = '{"event": "step", "step": %d, "seconds": [0.25], "samples": 8}' % number
    print(":::GPUWATCH", line, flush=True)
"""


@contextmanager
def no_pod_begins() -> Iterator[None]:
    """Meanwhile the only node takes no new pod."""
    kubectl("cordon", "node1")
    try:
        yield
    finally:
        kubectl("uncordon", "node1")


def left_alone(here: Cli, namespace: str) -> None:
    """Kill who follows the only study, as soon as its pod is known."""
    until = time.monotonic() + PATIENCE
    while not (objects(namespace, "pods") and followers(here)):
        assert time.monotonic() < until
        time.sleep(0.1)
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)


def wait_for_end(namespace: str) -> None:
    """Wait until the only pod has ended by itself."""
    until = time.monotonic() + PATIENCE
    while [each["status"]["phase"] for each in objects(namespace, "pods")] != ["Succeeded"]:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_what_nobody_fetched_in_time_is_fetched_in_part(here: Cli, namespace: str) -> None:
    with no_pod_begins():
        folder = send(here, on("linger=30s"), "--", "python3", "-c", STEPS)
        left_alone(here, namespace)
    assert not sessions(folder)
    wait_for_end(namespace)
    here("attach", "--plain", folder.name, code=None)
    known = wait_for(folder, "fetched in part")
    assert "linger=" in str(known["reason"]) and "gpuwatch resume" in str(known["hint"])
    wait_until_empty(namespace)
    told = "finished after 0:00, 40 steps, median 250 ms, 32.0 samples/s"
    (line,) = [line for line in here("sessions").stdout.splitlines() if folder.name in line]
    assert "fetched in part" in line and told in line
    (study,) = json.loads(here("sessions", "--format", "json").stdout)["studies"]
    (run,) = study["placement"]["in_part"]
    assert (run["steps"], run["step_median_seconds"]) == (40, 0.25)
    assert f"run 1 (bare): {told}" in here("show", folder.name).stdout
    shown = json.loads(here("show", folder, "--format", "json").stdout)
    assert shown["state"] == "fetched in part" and shown["in_part"] == [run]
    refused = here("compare", folder.name, code=2).stderr
    assert "fetched in part" in refused and "no verdict" in refused
    here("resume", folder)
    assert [each["status"] for each in json.loads(
        here("sessions", "--format", "json").stdout)["sessions"]] == ["finished"]  # fmt: skip
    shown = " ".join(here("show", folder).stdout.split())
    assert "throughput, samples/s 32.0 counted" in shown


def test_a_run_of_which_the_begin_was_fetched_is_fetched_in_part(here: Cli, namespace: str) -> None:
    folder = send(here, on("linger=30s"), "--", "sh", "-c", GOES_ON)
    wait_for_output(here, folder, "begun")
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)
    in_pod(namespace, "touch", "/tmp/go")
    wait_for_end(namespace)
    here("attach", "--plain", folder.name, code=None)
    wait_for(folder, "fetched in part")
    assert status(here) == ["fetched in part"] and "done" not in output(folder)
    shown = here("show", folder).stdout
    assert "fetched in part; what was left of it says: finished after 0:0" in shown
    wait_until_empty(namespace)


@pytest.fixture
def volume_folder(tmp_path: Path) -> Path:
    return tmp_path / "volume"


@pytest.fixture
def claim(namespace: str, volume_folder: Path) -> Iterator[str]:
    """A claim of a folder of the node, which is the only one that there is."""
    volume_folder.mkdir()
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": namespace,
            "hostPath": {"path": str(volume_folder), "type": "Directory"},
        },
    }
    asked = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "results", "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": namespace,
        },
    }
    for each in (volume, asked):
        kubectl("apply", "-f", "-", data=json.dumps(each))
    yield "results"
    kubectl("delete", "pv", namespace, "--wait=false")


def phases(namespace: str) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["status"]["phase"] for each in objects(namespace, "pods")
    }


def test_a_pod_with_a_claim_ends_at_once_and_its_sessions_are_fetched_later(
    here: Cli, namespace: str, claim: str, volume_folder: Path
) -> None:
    place = on(f"pvc={claim}", "gpu=nvidia.com/gpu:1")
    folder = send(here, place, "--", "sh", "-c", GOES_ON)
    wait_for_output(here, folder, "begun")
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)
    in_pod(namespace, "touch", "/tmp/go")
    wait_for_end(namespace)
    assert "nvidia.com/gpu: 2 of 2 free" in here("doctor", "--on", "kubernetes").stdout
    (ended,) = objects(namespace, "pods")
    (container,) = ended["status"]["containerStatuses"]
    told = container["state"]["terminated"]
    assert told["exitCode"] == 0 and "message" not in told
    here("attach", "--plain", folder.name, code=None)
    assert wait_for(folder, "ended")["fetched"] is True
    assert output(folder).split() == ["begun", "done"] and status(here) == ["finished"]
    wait_until_empty(namespace)
    assert kubectl("get", "pvc", claim, "-n", namespace, "-o", "jsonpath={..phase}") == "Bound"
    (kept,) = volume_folder.glob("gpuwatch/*/*/*/*.gpuwatch")
    assert kept.parent.name.startswith(folder.name)
    assert kept.parent.parent.name == placement(folder)["attempt"]


def fetching(namespace: str, phase: str) -> bool:
    """Whether the pod that fetches from a claim is in this phase."""
    return any("-fetch-" in name and at == phase for name, at in phases(namespace).items())


def test_a_fetching_pod_that_nobody_used_is_made_again(
    here: Cli, namespace: str, claim: str
) -> None:
    with no_pod_begins():
        folder = send(here, on(f"pvc={claim}", "linger=30s"), "--", "echo", "done")
        left_alone(here, namespace)
    wait_for_end(namespace)
    with no_pod_begins():
        attached = here.start("attach", "--plain", folder.name)
        until = time.monotonic() + PATIENCE
        while not any("-fetch-" in name for name in phases(namespace)):
            assert time.monotonic() < until
            time.sleep(0.1)
        attached.kill()
        for follower in followers(here):
            os.kill(follower, signal.SIGKILL)
        attached.communicate()
    assert not sessions(folder)
    while not fetching(namespace, "Succeeded"):
        assert time.monotonic() < until + PATIENCE
        time.sleep(0.5)
    here("attach", "--plain", folder.name, code=None)
    assert wait_for(folder, "ended")["fetched"] is True and output(folder) == "done\n"
    wait_until_empty(namespace)


def test_a_study_with_a_claim_is_fetched_while_it_is_followed(
    here: Cli, namespace: str, claim: str
) -> None:
    commands = ("--command", "a=echo one", "--command", "b=sh -c 'echo two; exit 3'")
    here(*("--record", "--on", on(f"pvc={claim}"), "--blocks", "1", "--cool-down", "0"),
         *commands, code=None)  # fmt: skip
    folder = the_study(here)
    known = placement(folder)
    assert (known["state"], known["fetched"]) == ("ended", True), known
    assert sorted(status(here)) == ["failed", "failed", "finished", "finished"]
    wait_until_empty(namespace)


def test_what_is_stopped_or_deleted_is_fetched_from_its_claim(
    here: Cli, namespace: str, claim: str
) -> None:
    folder = send(here, on(f"pvc={claim}"), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    here("stop", folder)
    assert wait_for(folder, "cancelled")["fetched"] is True
    assert "saved" in output(folder) and status(here) == ["stopped"]
    wait_until_empty(namespace)
    here("resume", "--detach", folder)
    wait_for(folder, "running")
    wait_for_output(here, folder, "begun")
    kubectl("delete", "pod", "-n", namespace, the_pod(namespace), "--grace-period=0", "--force")
    known = wait_for(folder, "lost")
    assert "deleted" in str(known["reason"])
    assert output(folder).count("begun") == 1


def test_a_claim_that_will_not_do_says_so(here: Cli, namespace: str, tmp_path: Path) -> None:
    place = on("pvc=results")
    refused = here("--record", "--on", place, "--", "true", code=3).stderr
    assert f"there is no PersistentVolumeClaim results in the namespace {namespace}" in refused
    assert "kubectl get pvc" in refused
    told = json.loads(here("doctor", "--on", place, "--format", "json", code=3).stdout)
    assert [each["code"] for each in told["problems"]] == ["kubernetes-claim"]
    assert names(objects(namespace)) == []


def test_a_claim_that_cannot_be_mounted_says_so(
    here: Cli, namespace: str, claim: str, volume_folder: Path
) -> None:
    volume_folder.rmdir()
    folder = send(here, on(f"pvc={claim}"), "--", "true")
    known = wait_for_reason(folder, "FailedMount")
    assert known["state"] == "starting" and "hostPath type check failed" in str(known["reason"])
    assert known["hint"] == "kubectl describe pvc; gpuwatch stop ends it"
    here("stop", folder)
    assert wait_for(folder, "cancelled")["fetched"] is True


def test_a_run_beyond_its_memory_says_so(here: Cli) -> None:
    grow = "x = []\nwhile True: x.append(bytearray(b'x') * 10_000_000)"
    here("--record", "--on", on("memory=200Mi"), "--", "python3", "-c", grow, code=None)
    known = wait_for(the_study(here), "out of memory")
    assert "memory limit" in str(known["reason"]) and "memory=" in str(known["hint"])
    assert status(here)[0] in ("killed", "lost")  # the kernel chooses among the processes


def test_a_recorder_that_is_killed_is_told(here: Cli, namespace: str) -> None:
    folder = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    recorder = (
        "import os, pathlib, signal\n"
        "for path in pathlib.Path('/proc').glob('[1-9]*/cmdline'):\n"
        "    words = path.read_bytes().split(b'\\0')\n"
        "    if b'start-plan' in words: os.kill(int(path.parent.name), signal.SIGKILL)\n"
    )
    in_pod(namespace, "python3", "-c", recorder)
    known = wait_for(folder, "lost")
    assert known["reason"] == "its recorder was killed by signal 9"
    assert f"gpuwatch resume {folder.name}" in str(known["hint"])


def test_a_pod_that_is_deleted_is_told_and_not_repeated(here: Cli, namespace: str) -> None:
    folder = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    kubectl("delete", "pod", "-n", namespace, the_pod(namespace), "--grace-period=0", "--force")
    known = wait_for(folder, "lost")
    assert "deleted" in str(known["reason"])
    assert len(sessions(folder)) == 1


TAINT = "gpuwatch-test=away:NoExecute"


@contextmanager
def evicted(namespace: str) -> Iterator[None]:
    """The node takes nobody's pods any more."""
    kubectl("taint", "node", "node1", TAINT)
    try:
        yield
    finally:
        kubectl("taint", "node", "node1", f"{TAINT}-")


@contextmanager
def preempted(namespace: str) -> Iterator[None]:
    """A pod that matters more takes all GPUs."""
    more = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    gpus = {"limits": {"nvidia.com/gpu": "2"}}
    container = {"name": "it", "image": "busybox:lab", "command": ["sleep", "9"]}
    other = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "more", "namespace": namespace},
        "spec": {"priorityClassName": namespace, "containers": [{**container, "resources": gpus}]},
    }
    try:
        for each in ({**more, "metadata": {"name": namespace}}, other):
            kubectl("apply", "-f", "-", data=json.dumps(each))
        yield
    finally:
        kubectl("delete", "pod", "more", "-n", namespace, "--grace-period=0", "--force")
        kubectl("delete", "priorityclass", namespace)


@contextmanager
def late(namespace: str) -> Iterator[None]:
    """Somebody gives the Job a second."""
    (job,) = objects(namespace, "jobs")
    second = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
    kubectl("patch", "job", "-n", namespace, job["metadata"]["name"], "-p", second)
    yield


@pytest.mark.parametrize(
    ("happens", "state", "reason"),
    [
        (evicted, "preempted", "TaintManagerEviction"),
        (preempted, "preempted", "Preempted"),
        (late, "timed out", "DeadlineExceeded"),
    ],
)
def test_what_the_cluster_takes_away_says_why_and_saves(
    here: Cli,
    namespace: str,
    happens: Callable[[str], AbstractContextManager[None]],
    state: str,
    reason: str,
) -> None:
    folder = send(here, on("gpu=nvidia.com/gpu:1"), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    with happens(namespace):
        known = wait_for(folder, state, "ended by others", "lost")
    assert (known["state"], known["fetched"]) == (state, True), known
    assert str(known["reason"]).startswith(reason)
    assert f"gpuwatch resume {folder.name}" in str(known["hint"])
    ended = "timed out" if state == "timed out" else "killed"
    assert "saved" in output(folder) and status(here) == [ended]
    wait_until_empty(namespace)


def test_a_quota_that_is_in_the_way_is_told(here: Cli, namespace: str) -> None:
    kubectl("create", "quota", "none", "-n", namespace, "--hard=pods=0")
    folder = send(here, on(), "--", "true")
    known = wait_for_reason(folder, "FailedCreate")
    assert known["state"] == "queued" and "exceeded quota: none" in str(known["reason"])
    assert "quota" in str(known["hint"])
    here("stop", folder)
    assert wait_for(folder, "cancelled")["fetched"] is True


def test_the_api_server_and_the_node_may_be_away(here: Cli) -> None:
    folder = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    for daemon in ("apiserver", "kubelet"):
        wait_for(folder, "running")
        cluster("stop", daemon)
        try:
            wait_for(folder, "unknown")
            if daemon == "apiserver":
                assert "not stopped" in here("stop", folder, code=3).stderr
        finally:
            cluster("start", daemon)
    wait_for(folder, "running")
    here("stop", folder)
    assert wait_for(folder, "cancelled")["fetched"] is True
    assert output(folder).split().count("begun") == 1 and "saved" in output(folder)


def test_while_the_api_server_is_away_for_a_minute_nothing_is_lost(here: Cli) -> None:
    counts = "i=0; while [ $i -lt 160 ]; do i=$((i+1)); echo $i; sleep 0.5; done"
    folder = send(here, on(), "--", "sh", "-c", counts)
    wait_for_output(here, folder, "5")
    cluster("stop", "apiserver")
    try:
        began = time.monotonic()
        wait_for(folder, "unknown")
        known = output(folder)
        time.sleep(max(0.0, began + 60 - time.monotonic()))
        assert output(folder) == known
    finally:
        cluster("start", "apiserver")
    known_states = wait_for(folder, "ended", seconds=2 * PATIENCE)
    assert known_states["fetched"] is True
    assert output(folder).split() == [str(number) for number in range(1, 161)]
    (session,) = sessions(folder)
    with SessionReader(session) as reader:
        times = [t / 1e9 for t in times_of(reader)]
        assert "result" in reader.meta()
    assert times[-1] > 75
    assert max(after - before for before, after in pairwise(times)) < 10


def test_a_lost_kubeconfig_is_told_and_nothing_is_lost(here: Cli, namespace: str) -> None:
    counts = "trap 'echo saved; exit 0' TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.5; done"
    folder = send(here, on(), "--", "sh", "-c", counts)
    wait_for_output(here, folder, "5")
    config = Path(here.variables["KUBECONFIG"])
    kept = config.read_text()
    for lost, words in (
        (None, f"{config} is not there"),
        (re.sub("token: [0-9a-f]+", "token: no-such", kept), "does not accept your credentials"),
        (re.sub("(?m): lab$", ": other", kept), f"no context lab in {config}"),  # no certificate
    ):
        wait_for(folder, "running")
        if lost is None:
            config.unlink()
        else:
            config.write_text(lost)
        known = wait_for_reason(folder, words)
        assert known["state"] == "unknown"
        assert "put it " in str(known["hint"]) or f"they are in {config}" in str(known["hint"])
        told = here("stop", folder, code=3).stderr
        assert f"{folder.name} was not stopped and goes on" in told and words in told
        assert f"; then: gpuwatch stop {folder.name}" in told
        told = here("stop", "--all", code=1).stderr
        assert f"{folder.name} was not ended" in told and words in told
        assert "; then: gpuwatch stop --all" in told
        config.write_text(kept)
    wait_for(folder, "running")
    here("stop", folder)
    assert wait_for(folder, "cancelled")["fetched"] is True
    told = output(folder).split()
    numbers = [int(word) for word in told if word.isdecimal()]
    assert "saved" in told and numbers == list(range(1, len(numbers) + 1))


def test_a_namespace_that_is_deleted_is_told(here: Cli, namespace: str) -> None:
    folder = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    kubectl("delete", "namespace", namespace, "--wait=false")
    known = wait_for(folder, "ended by others")
    assert "deleted" in str(known["reason"]) and known["fetched"] is True
    assert "saved" in output(folder) and status(here) == ["killed"]


def test_a_kill_between_submission_and_its_note_leaves_one_job(here: Cli, namespace: str) -> None:
    """A wrapper kills whoever submits, before or after."""
    folder = here.home / "bin"
    folder.mkdir()
    real, path = shutil.which("kubectl"), os.environ["PATH"]
    for before in (False, True, False):
        first, then = f'{real} "$@"', "kill -9 $PPID"
        if before:
            first, then = then, "exit 1"
        (folder / "kubectl").write_text(
            "#!/bin/sh\n"
            f'case "$*" in *--raw=*/jobs\\ *) {first}; {then} ;; esac\nexec {real} "$@"\n'
        )
        (folder / "kubectl").chmod(0o755)
        here.variables["PATH"] = f"{folder}:{path}"
        here("--record", "--detach", "--on", on(), "--", "echo", "once", code=-9)
    here.variables["PATH"] = path
    studies = sorted(path.parent for path in here.home.rglob("plan.json"))
    assert len(studies) == 3
    for each in [here.start("attach", "--plain", study.name) for study in studies for _ in (1, 2)]:
        each.communicate(timeout=PATIENCE)
    for study in studies:
        wait_for(study, "ended")
        assert output(study).count("once") == 1


def test_each_right_that_is_missing_is_named(here: Cli, namespace: str) -> None:
    config = Path(os.environ["KUBECONFIG"]).with_name("kubeconfig-other")
    shutil.copy(config, here.home / "other")
    kubectl("config", "set-context", "--current", f"--namespace={namespace}",
            f"--kubeconfig={here.home / 'other'}")  # fmt: skip
    here.variables["KUBECONFIG"] = str(here.home / "other")
    needed = {
        "create jobs": ("batch", "jobs", "create"),
        "list jobs": ("batch", "jobs", "list"),
        "delete jobs": ("batch", "jobs", "delete"),
        "create configmaps": ("", "configmaps", "create"),
        "list pods": ("", "pods", "list"),
        "get pods": ("", "pods", "get"),
        "create pods/exec": ("", "pods/exec", "create"),
    }
    for name in needed:
        rules = [
            {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
            for other, (group, resource, verb) in needed.items()
            if other != name
        ]
        give(namespace, rules)
        done = here("--record", "--on", on(), "--", "true", code=3)
        assert f"you may not {name} in the namespace {namespace}" in done.stderr
    lacks = json.loads(here("doctor", "--on", "kubernetes", "--format", "json", code=3).stdout)
    assert lacks["ready"] is False and lacks["problems"][0]["code"] == "kubernetes-rights"
    assert lacks["nodes"] is None and "forbidden" in lacks["nodes_unavailable"]
    told = here("doctor", "--on", "kubernetes", code=3).stdout
    assert "you may not create pods/exec (needed)" in told and "nodes       unknown" in told
    give(namespace, [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for group, resource, verb in needed.values()
    ])  # fmt: skip
    here("--record", "--on", on(), "--", "true")


def give(namespace: str, rules: list[dict[str, list[str]]]) -> None:
    """Give the user ``other`` these rights, and no others."""
    api = "rbac.authorization.k8s.io"
    role = {"name": "some", "namespace": namespace}
    objects = [
        {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": role, "rules": rules},
        {
            "apiVersion": f"{api}/v1",
            "kind": "RoleBinding",
            "metadata": role,
            "subjects": [{"kind": "User", "name": "other", "apiGroup": api}],
            "roleRef": {"kind": "Role", "name": "some", "apiGroup": api},
        },
    ]
    for each in objects:
        kubectl("apply", "-f", "-", data=json.dumps(each))


def test_what_is_refused_leaves_nothing(here: Cli, namespace: str) -> None:
    for place, words, code in (
        ("kubernetes,colour=red", "unknown option 'colour'", 2),
        ("kubernetes", "a pod needs an image", 3),
        ("kubernetes,image=x,context=nope", "nope", 3),
        ("kubernetes,image=x,namespace=nope", "there is no namespace nope", 3),
        ("kubernetes,image=x,gpu=a_b:1", "gpu='a_b:1'", 2),
        ("kubernetes,image=x,gpu=gpus:1", "the cluster refuses such a Job", 3),
    ):
        assert words in here("--record", "--on", place, "--", "true", code=code).stderr
    assert not list(here.home.rglob("plan.json"))
    assert not list((here.home / ".local/state/gpuwatch/placements").glob("*"))
    assert names(objects(namespace)) == []


def test_the_image_of_an_environment_is_the_pods(here: Cli) -> None:
    here("--record", "--on", "kubernetes", "--env", f"docker={IMAGE}", "--", "true")
    (session,) = sessions(the_study(here))
    with SessionReader(session) as reader:
        assert mapping(reader.meta()["environment"])["kind"] == "bare"
    done = here("--record", "--on", on(), "--env", "apptainer=x.sif", "--", "true", code=3)
    assert "does not run in a pod" in done.stderr


WHICH = ("--", "sh", "-c", "ls /other || echo the first; touch /tmp/x; ls /tmp; sleep 1")
TWO = ("--env", "bare", "--env", f"docker={OTHER},label=other", "--cool-down", "0.5")


def test_images_take_turns_in_the_pod_of_a_block(
    here: Cli, namespace: str, other_image: str
) -> None:
    place = on("gpu=nvidia.com/gpu:1")
    done = here("--record", "--on", place, "--blocks", "2", *TWO, *WHICH)
    folder = the_study(here)
    known = placement(folder)
    assert (known["state"], known["fetched"]) == ("ended", True), known
    plan = read_plan(folder)
    assert plan is not None and len(plan.runs) == 6
    facts = [facts_of(folder / run.file) for run in plan.runs]
    images = {"bare": IMAGE, "docker": other_image}
    assert [each["job.image"] for each in facts] == [
        images[run.environment.kind] for run in plan.runs
    ]
    # A pod for each block, in which all of it ran.
    pods = [each["job.id"] for each in facts]
    assert len(set(pods)) == 3
    assert all(pods[at] == pods[at + 1] for at in (0, 2, 4))
    for run in plan.runs:
        with SessionReader(folder / run.file) as reader:
            said = "".join(f"{line.text}\n" for line in reader.log())
            assert ("/other\n" in said) is (run.environment.kind == "docker")
            assert said.count("x\n") == 1
            assert "result" in reader.meta()
    summary = (folder / "summary.md").read_text()
    assert "other" in summary and "INVALID" not in summary, summary
    assert "did not run" not in done.stdout


def test_images_that_take_turns_write_into_one_claim(
    here: Cli, namespace: str, other_image: str, claim: str
) -> None:
    here("--record", "--on", on(f"pvc={claim}"), "--blocks", "1", *TWO, *WHICH)
    known = placement(the_study(here))
    assert (known["state"], known["fetched"]) == ("ended", True), known
    assert status(here) == ["finished"] * 4
    wait_until_empty(namespace)


def test_a_stop_in_the_first_image_is_a_stop_of_all(
    here: Cli, namespace: str, other_image: str
) -> None:
    folder = send(here, on(), *TWO, "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    here("stop", folder)
    assert wait_for(folder, "cancelled")["fetched"] is True
    assert len(sessions(folder)) == 1 and "saved" in output(folder)
    wait_until_empty(namespace)
    here("resume", "--detach", folder)
    wait_for_output(here, folder, "begun")
    here("stop", folder)
    wait_for(folder, "cancelled")


def test_an_image_of_the_pod_that_will_not_do_says_so(here: Cli, namespace: str) -> None:
    recording = here.start("--record", "--on", on(), "--env", "bare",
                           "--env", "docker=busybox:lab", "--", "sh", "-c", GOES_ON)  # fmt: skip
    until = time.monotonic() + PATIENCE
    while not list(here.home.rglob("plan.json")):
        assert time.monotonic() < until
        time.sleep(0.1)
    wait_for_output(here, the_study(here), "begun")
    in_first_container(namespace, "touch", "/tmp/go")
    _, errors = recording.communicate(timeout=PATIENCE)
    known = wait_for(the_study(here), "failed")
    assert "busybox:lab needs Python 3.10" in str(known["reason"]), (known, errors)
    assert output(the_study(here)).count("begun") == 1


def test_a_follower_that_is_killed_between_two_images(
    here: Cli, namespace: str, other_image: str
) -> None:
    folder = send(here, on(), *TWO, "--", "sh", "-c", GOES_ON)
    wait_for_output(here, folder, "begun")
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)
    in_first_container(namespace, "touch", "/tmp/go")
    until = time.monotonic() + PATIENCE
    while not in_the_last(namespace):
        assert time.monotonic() < until
        time.sleep(0.3)
    in_pod(namespace, "touch", "/tmp/go")
    here("attach", "--plain", folder.name)
    assert wait_for(folder, "ended")["fetched"] is True
    assert output(folder).count("begun") == 2


def in_first_container(namespace: str, *command: str) -> None:
    """Run a command in the first of the containers of the only pod, which takes its turn."""
    (pod,) = (each["metadata"]["name"] for each in objects(namespace, "pods"))
    kubectl("exec", "-n", namespace, pod, "--container=gpuwatch-1", "--", *command)


def in_the_last(namespace: str) -> bool:
    """Whether the last container of the only pod has begun."""
    (pod,) = objects(namespace, "pods")
    return bool(pod["status"]["phase"] == "Running")


def test_each_image_of_a_block_may_have_a_pod_of_its_own_on_the_node_of_the_first(
    here: Cli, namespace: str, other_image: str
) -> None:
    place = on("gpu=nvidia.com/gpu:1", "jobs=image")
    told = here("--record", "--dry-run", "--on", place, *TWO, *WHICH).stdout
    assert told.count('"kind": "Job"') == 2 and told.count('"key": "metadata.name"') == 1
    # Long enough for the node to lose its GPUs before the second pod.
    folder = send(here, place, "--blocks", "1", *TWO, "--", "sh", "-c", "sleep 15")
    plan = read_plan(folder)
    assert plan is not None
    first, *others = (folder / run.file for run in plan.runs)
    try:
        wait_for(folder, "running")
        cluster("gpus", "0")
        node = "the node of this block's first image (node1)"
        known = wait_for_reason(folder, f"{node} has no free GPU; Unschedulable")
        assert known["state"] == "queued"
        (pod,) = [each for each in objects(namespace, "pods") if "nodeName" not in each["spec"]]
        assert '"values": ["node1"]' in json.dumps(pod["spec"]["affinity"])
        here("stop", folder)
        wait_for(folder, "cancelled")
        wait_until_empty(namespace)
    finally:
        cluster("gpus", "2")
    set_node(first, "node9")
    here("resume", "--detach", folder)
    known = wait_for_reason(folder, "(node9) is gone; Unschedulable")
    assert known["state"] == "queued" and "gpuwatch delete" in str(known["hint"])
    here("stop", folder)
    wait_for(folder, "cancelled")
    wait_until_empty(namespace)
    assert not any(path.exists() for path in others)
    set_node(first, "node1")
    here("resume", folder)
    facts = [facts_of(path) for path in (first, *others)]
    images = {"bare": IMAGE, "docker": other_image}
    assert [each["job.image"] for each in facts] == [
        images[run.environment.kind] for run in plan.runs
    ]
    assert len({each["job.id"] for each in facts}) == len(facts) == 4
    assert status(here) == ["finished"] * 4
    summary = (folder / "summary.md").read_text()
    assert "other" in summary and "INVALID" not in summary, summary


def test_images_of_different_users_need_a_pod_each(
    here: Cli, namespace: str, users_image: str
) -> None:
    two = ("--env", "bare", "--env", f"docker={users_image},label=users", "--cool-down", "0")
    who = ("--", "python3", "-c", "import os; print('user', os.getuid())")
    folder = send(here, on(), *two, *who)
    known = wait_for(folder, "failed")
    assert str(known["reason"]).startswith("the images run as different users")
    assert str(known["reason"]).endswith("--on kubernetes,jobs=image")
    wait_until_empty(namespace)
    folder = send(here, on("jobs=image"), *two, *who)
    assert wait_for(folder, "ended")["fetched"] is True
    assert output(folder).splitlines() == ["user 0", "user 1234"]
    wait_until_empty(namespace)


def set_node(session: Path, node: str) -> None:
    """Have a session say that it was recorded on another node."""
    with contextlib.closing(sqlite3.connect(session, isolation_level=None)) as database:
        database.execute("UPDATE fact SET value = ? WHERE key = 'job.node'", [json.dumps(node)])


def test_a_dry_run_prints_the_manifest(here: Cli, namespace: str) -> None:
    told = here("--record", "--dry-run", "--on", on("gpu=nvidia.com/gpu:1"), "--", "true").stdout
    begin = told.index("\n{") + 1
    job = json.JSONDecoder().raw_decode(told[begin:])[0]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert job["kind"] == "Job" and container["image"] == IMAGE
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert "keeps its GPU until all is fetched, 15 min at most" in told
    assert names(objects(namespace)) == []


def test_an_image_that_is_only_here_is_told_before_it_is_sent(
    here: Cli, namespace: str, small_image: str
) -> None:
    words = ("--record", "--plan", "--on", "kubernetes", "--env", f"docker={small_image}")
    told = " ".join(here(*words, "--", "true").stdout.split())
    assert f"Docker has the image {small_image} here, and no registry that it knows of" in told
    assert f"gpuwatch build docker --base {small_image} --push REGISTRY/NAME" in told
    assert "the pod stays until all is fetched, 15 min at most" in told and '"kind"' not in told
    assert (
        "Docker has the image" not in here("--record", "--plan", "--on", on(), "--", "true").stdout
    )


def test_doctor_tells_of_an_image_that_is_only_here(here: Cli, small_image: str) -> None:
    place = f"kubernetes,image={small_image}"
    told = here("doctor", "--on", place).stdout
    assert f"image       Docker has the image {small_image} here, and no registry" in told
    assert f"gpuwatch build docker --base {small_image} --push REGISTRY/NAME" in told
    assert f"image       {small_image}, not checked: known when the pod starts" in told
    found = json.loads(here("doctor", "--on", place, "--format", "json").stdout)
    assert found["ready"] is True
    assert [warning["code"] for warning in found["warnings"]] == ["image-only-here"]
    other = json.loads(here("doctor", "--on", on(), "--format", "json").stdout)
    assert other["warnings"] == []


def test_a_pod_that_no_node_takes_is_told_by_doctor(here: Cli) -> None:
    refused = here("doctor", "--on", "kubernetes,gpu=amd.com/gpu:1", code=3).stderr
    assert "no node takes it: " in refused and " has no amd.com/gpu" in refused


def test_what_an_image_lacks_is_told_once(here: Cli, namespace: str) -> None:
    done = here("--record", "--on", on(), "mnist-cnn", code=3)
    text = f"the image {IMAGE} has no torch torchvision; name another: --on kubernetes,image="
    assert done.stderr.count(text) == 1 and text not in done.stdout
    assert "did not run" not in done.stdout + done.stderr


@pytest.mark.usefixtures("with_any_client")
def test_doctor_tells_rights_and_free_gpus(here: Cli, namespace: str) -> None:
    told = here("doctor", "--on", "kubernetes").stdout
    assert "Kubernetes v1.20.2, context lab" in told and "all 8 that gpuwatch uses" in told
    assert "nvidia.com/gpu: 2 of 2 free, node=nvidia.com/gpu.product:Tesla-T4" in told
    found = json.loads(here("doctor", "--on", "kubernetes", "--format", "json").stdout)
    assert found["ready"] and (found["context"], found["namespace"]) == ("lab", namespace)
    words = ("kubectl", "version", "--client", "--output=json")
    client = subprocess.run(words, env=here.env, capture_output=True, check=True).stdout
    assert found["client"] == json.loads(client)["clientVersion"]["gitVersion"]
    assert f"kubectl     {found['client']}" in told
    assert {"right": "create pods/exec", "given": True, "needed": True} in found["rights"]
    (gpus,) = found["nodes"][0]["gpus"]
    assert (gpus["resource"], gpus["count"], gpus["free"]) == ("nvidia.com/gpu", 2, 2)
    folder = send(here, on("gpu=nvidia.com/gpu:1"), "--", "sh", "-c", SAVES)
    wait_for(folder, "running")
    assert "nvidia.com/gpu: 1 of 2 free" in here("doctor", "--on", "kubernetes").stdout
    here("stop", folder)


def test_each_block_may_be_a_job_of_its_own(here: Cli) -> None:
    commands = ("--command", "a=sleep 0.2", "--command", "b=sleep 0.2")
    here("--record", "--on", on("jobs=block"), "--blocks", "1", "--cool-down", "0", *commands)
    folder = the_study(here)
    pods = []
    for session in sessions(folder):
        with SessionReader(session) as reader:
            pods.append(reader.facts()["host"]["job.id"])
    assert len(pods) == 4 and pods[0] == pods[1] != pods[2] == pods[3]
    assert placement(folder)["state"] == "ended"


@pytest.mark.timeout(1800)
def test_the_preset_runs_at_each_of_two_node_pools(here: Cli, torch_root: Path) -> None:
    """The only node is first in the one pool, then in the other."""
    cluster("image", TORCH, str(torch_root))
    pools = [f"kubernetes,image={TORCH},gpu=nvidia.com/gpu:1,node=pool:{name}" for name in "ab"]
    words = ["study", "accelerators", *(word for pool in pools for word in ("--on", pool))]
    words += ["--device", "cpu", "--steps", "2", "--warmup", "0", "--profile", "0"]
    words += ["--blocks", "2", "--cool-down", "0"]
    told = here(*words, "--dry-run").stdout
    assert [f'"pool": "{name}"' in told for name in "ab"] == [True, True]
    kubectl("label", "node", "node1", "pool=a")
    running = here.start(*words)
    try:
        until = time.monotonic() + PATIENCE
        while len(studies := list(here.home.rglob(PLACEMENT))) < 2:
            assert time.monotonic() < until
            time.sleep(0.2)
        first, second = (
            next(path.parent for path in studies if f":{name}," in str(place_of(path.parent)))
            for name in "ab"
        )
        assert "affinity" in str(wait_for_reason(second, "Unschedulable")["reason"])
        wait_for(first, "ended", seconds=4 * PATIENCE)
        assert not sessions(second)
        kubectl("label", "node", "node1", "pool=b", "--overwrite")
        errors = running.communicate(timeout=4 * PATIENCE)[1]
    finally:
        kubectl("label", "node", "node1", "pool-")
        running.kill()
        running.communicate()
    assert running.returncode == 0, errors
    assert len(sessions(first)) == len(sessions(second)) == 9
    found = re.search(r"gpuwatch (compare --across-devices .*)", errors)
    assert found is not None and first.name in found[1] and second.name in found[1]
    compared = json.loads(here(*found[1].split(), "--format", "json").stdout)
    assert [len(each["cells"]) for each in compared["questions"]] == [2, 2, 2]


def place_of(folder: Path) -> object:
    return placement(folder)["place"]


def test_two_users_in_one_namespace_do_not_end_each_others(
    here: Cli, namespace: str, tmp_path: Path
) -> None:
    folder = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, folder, "begun")
    other = Cli(tmp_path / "other", dict(here.variables))
    copy = other.home / ".local/share/gpuwatch/studies" / folder.name
    shutil.copytree(folder, copy)
    assert "you did not send it there" in other("stop", copy, code=2).stderr
    (other.home / "work").mkdir()
    others = send(other, on(), "--", "sh", "-c", SAVES)
    wait_for(others, "running")
    forgotten(other, others)
    unread = other.home / ".local/state/gpuwatch/placements/0123456789abcdef"
    unread.mkdir(parents=True)
    assert f"{unread} cannot be read" in other("stop", "--all", code=None).stderr
    assert len(objects(namespace, "jobs")) == 2
    unread.rmdir()
    told = other("stop", "--all").stderr
    attempt = placement(others)["attempt"]
    assert f"deleted gpuwatch-{attempt} in the namespace {namespace} (context lab)" in told
    assert wait_for(folder, "running")["reason"] is None
    left = [each["metadata"]["name"] for each in objects(namespace, "jobs")]
    assert left == [f"gpuwatch-{placement(folder)['attempt']}"]
    here("stop", folder)


def forgotten(here: Cli, folder: Path) -> None:
    """As after a crash that took what was noted of a study along."""
    for follower in followers(here):
        os.kill(follower, signal.SIGKILL)
    shutil.rmtree(here.home / ".local/state/gpuwatch/placements")


def test_all_that_nobody_follows_is_ended_and_the_rest_named(here: Cli, namespace: str) -> None:
    alone = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, alone, "begun")
    for follower in followers(here):
        os.kill(follower, signal.SIGKILL)
    followed = send(here, on(), "--", "sh", "-c", SAVES)
    wait_for_output(here, followed, "begun")
    told = here("stop", "--all").stderr
    assert f"stopped {alone} on kubernetes" in told
    assert f"{followed.name} goes on as gpuwatch-{placement(followed)['attempt']}" in told
    assert placement(followed)["state"] == "running"
    assert wait_for(alone, "cancelled")["fetched"] is True and "saved" in output(alone)
    here("stop", followed)
    wait_until_empty(namespace)
    assert "nothing was running" in here("stop", "--all").stderr
