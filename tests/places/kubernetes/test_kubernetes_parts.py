"""The options of ``--on kubernetes``, what kubectl prints, and the objects that are made."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.models import JSON
from gpuwatch.places.base import Refused
from gpuwatch.places.kubernetes import in_pod, manifest, nodes, options
from gpuwatch.places.kubernetes.kubectl import Denied, Kubectl
from gpuwatch.places.kubernetes.manifest import Sent, Turn
from gpuwatch.places.kubernetes.pod_plan import node_of_block
from gpuwatch.places.spec import parse
from tests.analysis.recorded_studies import APPTAINER, BARE, DOCKER, blocks_of, recorded

SENT = Sent("a" * 16, "b" * 16, "study", (Turn("my/image:1"),), "{}", b"capsule", work=False)


def container_of(job: dict[str, JSON]) -> dict[str, Any]:
    (found,) = json.loads(json.dumps(job))["spec"]["template"]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("kubernetes=x", "takes options"),
        ("kubernetes,colour=red", "unknown option 'colour'"),
        ("kubernetes,image=--x", "image='--x'"),
        ("kubernetes,context=--kubeconfig", "context="),
        ("kubernetes,namespace=../x", "namespace="),
        ("kubernetes,gpu=nvidia.com/gpu", "gpu='nvidia.com/gpu'"),
        ("kubernetes,gpu=nvidia.com/gpu:0", "asks for 0 GPUs"),
        ("kubernetes,node=a", "node='a'"),
        ("kubernetes,linger=1s", "linger=1s"),
        ("kubernetes,jobs=many", "jobs=study"),
        ("kubernetes,memory=lots", "memory='lots'"),
        ("kubernetes,python=-c", "python='-c'"),
        ("kubernetes,pvc=../other", "pvc='../other'"),
    ],
)
def test_what_is_misspelt_says_what_to_write(place: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        options.parse(parse(place))
    assert words in str(error.value) and error.value.hint


def test_the_job_asks_for_what_was_asked_for() -> None:
    text = "kubernetes,gpu=nvidia.com/gpu:2,node=a.b/c:T4,cpu=4,memory=8Gi,queue=q,root=writable"
    asked = options.parse(parse(text))
    job: dict[str, Any] = json.loads(json.dumps(manifest.job(SENT, asked)))
    container = container_of(job)
    limits = {"nvidia.com/gpu": "2", "cpu": "4", "memory": "8Gi"}
    assert container["resources"] == {"limits": limits, "requests": limits}
    assert container["securityContext"]["readOnlyRootFilesystem"] is False
    assert job["spec"]["template"]["spec"]["nodeSelector"] == {"a.b/c": "T4"}
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "q"


NODE = {
    "metadata": {"name": "n1", "labels": {"zone": "a"}},
    "status": {"allocatable": {"nvidia.com/gpu": "2", "cpu": "1930m", "memory": "24632900Ki"}},
}


@pytest.mark.parametrize(
    ("asked", "lack"),
    [
        ("gpu=amd.com/gpu:1", "no amd.com/gpu"),
        ("gpu=nvidia.com/gpu:5,cpu=64", "2 nvidia.com/gpu, not 5"),
        ("cpu=2", "1930m cpu, not 2"),
        ("memory=24Gi", "24632900Ki memory, not 24Gi"),
        ("node=zone:b", "no label zone:b"),
        ("gpu=nvidia.com/gpu:2,cpu=1.5,memory=25G,node=zone:a", ""),
        ("image=x", ""),
    ],
)
def test_doctor_tells_what_all_nodes_lack_by_what_they_say(asked: str, lack: str) -> None:
    found = nodes.too_small([NODE], options.parse(parse(f"kubernetes,{asked}")))
    assert [each.text for each in found] == ([f"no node takes it: n1 has {lack}"] if lack else [])


def test_nothing_is_said_where_a_node_might_take_it() -> None:
    large = options.parse(parse("kubernetes,cpu=64"))
    other = {"metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": "1e3"}}}
    assert nodes.too_small([], large) == nodes.too_small([NODE, other], large) == []
    (told,) = nodes.too_small([NODE] * 5, large)
    assert told.text.count("n1 has 1930m cpu") == 3 and told.text.endswith(", and 2 others")


def test_the_pod_has_the_least_privilege() -> None:
    job: dict[str, Any] = json.loads(json.dumps(manifest.job(SENT, options.Options())))
    pod, container = job["spec"]["template"]["spec"], container_of(job)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod["restartPolicy"] == "Never" and job["spec"]["backoffLimit"] == 0


def test_images_take_turns_on_the_gpus_of_one_pod() -> None:
    turns = tuple(map(Turn, ("a", "b", "a")))
    asked = options.parse(parse("kubernetes,gpu=nvidia.com/gpu:1"))
    made = manifest.job(replace(SENT, turns=turns), asked)
    pod: dict[str, Any] = json.loads(json.dumps(made))["spec"]["template"]["spec"]
    (last,) = pod["containers"]
    each = [*pod["initContainers"], last]  # init containers run one after the other, before it
    assert [(found["name"], found["image"]) for found in each] == [
        ("gpuwatch-1", "a"),
        ("gpuwatch-2", "b"),
        ("gpuwatch", "a"),
    ]
    assert all(found["resources"] == last["resources"] for found in each)
    assert all(found["securityContext"] == last["securityContext"] for found in each)
    told = [json.loads(found["command"][-1]) for found in each]
    assert [one["last"] for one in told] == [False, False, True]
    folders = [{use["mountPath"]: use["name"] for use in found["volumeMounts"]} for found in each]
    assert folders[0] == folders[2] and folders[0]["/tmp"] != folders[1]["/tmp"]
    assert {volume["name"] for volume in pod["volumes"]} >= {*folders[0].values()}
    assert manifest.image_of(made) == "a"


def test_a_pod_that_follows_another_is_scheduled_on_its_node_alone() -> None:
    asked = options.parse(parse("kubernetes,jobs=image,node=a.b/c:T4"))
    template: dict[str, Any] = json.loads(
        json.dumps(manifest.job(replace(SENT, node="node-7.internal"), asked))
    )["spec"]["template"]
    pod = template["spec"]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    field = {"key": "metadata.name", "operator": "In", "values": ["node-7.internal"]}
    assert pod["affinity"] == {
        "nodeAffinity": {required: {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    }
    assert pod["nodeSelector"] == {"a.b/c": "T4"} and "nodeName" not in pod
    assert manifest.node_of(template) == "node-7.internal"
    free: dict[str, Any] = json.loads(json.dumps(manifest.job(SENT, asked)))["spec"]["template"]
    assert "affinity" not in free["spec"] and manifest.node_of(free) is None


def test_the_node_of_a_block_is_that_of_its_first_run_that_is_done(tmp_path: Path) -> None:
    on_node = {index: {"host": {"job.node": name}} for index, name in ((3, "n1"), (5, "--all"))}
    stopped: Any = {"host": {"job.node": "n0"}, "result": {"stopped": "by hand"}}
    part = blocks_of(3, BARE, DOCKER, APPTAINER, warmup_blocks=0)
    plan = recorded(
        tmp_path,
        [part],
        {"bare": 1.0, "docker=image": 1.0, "apptainer=image": 1.0},
        options={2: stopped, **on_node},
        left_out=(1, 4, 6, 7, 8, 9),
    )
    found = [node_of_block(tmp_path, plan, plan.runs[at]) for at in (0, 5, 8)]
    assert found == ["n1", None, None]


def test_what_the_job_reads_is_its_own_and_cannot_change() -> None:
    for each in manifest.config_maps(SENT, "uid-1"):
        found: dict[str, Any] = json.loads(json.dumps(each))
        assert found["immutable"] is True
        (owner,) = found["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", SENT.name, "uid-1")


@pytest.mark.usefixtures("programs")
def test_a_pod_runs_nothing_but_what_was_sent(tmp_path: Path) -> None:
    """Another user of the namespace may have made a ConfigMap of the same name."""
    program, call = tmp_path / "pod.py", container_of(manifest.job(SENT, options.Options()))
    python, isolated, flag, start, _, digest, *_ = call["command"]
    command = [python, isolated, flag, start, str(program), digest, "log"]
    program.write_bytes(manifest.program())
    assert subprocess.run(command, check=False).returncode == 0
    program.write_bytes(manifest.program() + b"print('mine')\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{program} is not what was sent\n"


@pytest.mark.parametrize("name", [in_pod.CAPSULE, in_pod.PLAN])
def test_a_capsule_or_plan_that_was_exchanged_is_not_used(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = tmp_path / "sent"
    sent.mkdir()
    monkeypatch.setattr(in_pod, "SENT", str(sent))
    monkeypatch.setattr(in_pod, "STUDIES", str(tmp_path / "studies"))
    monkeypatch.setenv("GPUWATCH_POD_NODE", "n1")
    told = json.loads(container_of(manifest.job(SENT, options.Options()))["command"][-1])
    (sent / in_pod.CAPSULE).write_bytes(SENT.capsule)
    (sent / in_pod.PLAN).write_text(SENT.plan)
    in_pod.Pod({**told, "study": str(tmp_path / "one")}).prepare()
    (sent / name).write_bytes(b"another")
    with pytest.raises(SystemExit, match=f"^{name} is not what was sent$"):
        in_pod.Pod({**told, "study": str(tmp_path / "two")}).prepare()
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("pod", ["--kubeconfig=/tmp/x", "", "a b", "../x"])
def test_a_server_cannot_make_an_option_of_a_pods_name(pod: str) -> None:
    with pytest.raises(NotAvailable):
        Kubectl().start(pod, "gpuwatch", ["true"], subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ('Error from server (AlreadyExists): jobs.batch "x" already exists', "AlreadyExists"),
        ("Error from server (Forbidden): jobs is forbidden", "Forbidden"),
        ('The Job "x" is invalid: spec: Required value', "Invalid"),
    ],
)
def test_a_refusal_is_told_by_its_reason(printed: str, reason: str) -> None:
    error = Kubectl("lab").problem(printed)
    assert isinstance(error, Denied) and error.reason == reason


SECRET = """Token: ReadString: found 0, error found in #10 byte of ...|{"token":12345}|..."""


@pytest.mark.parametrize(
    ("printed", "there", "words", "hint"),
    [
        ('error: context "lab" does not exist', False, "FILE is not there", "put it there"),
        ("error: cannot locate context lab", False, "FILE is not there", "put it there"),
        ('error: context "lab" does not exist', True, "no context lab in FILE", "get-contexts"),
        (
            "Error in configuration: context was not found for specified context: lab",
            True,
            "no context lab in FILE",
            "get-contexts",
        ),
        (f'error: error loading config file "FILE": {SECRET}', True, "cannot read", "correct FILE"),
        (
            "error: You must be logged in to the server (Unauthorized)",
            True,
            "does not accept your credentials of the context lab",
            "log in to it again, as you do for kubectl; they are in FILE",
        ),
        (
            'Error from server (Forbidden): jobs.batch is forbidden: User "system:anonymous" '
            "cannot list resource",
            True,
            "does not accept your credentials of the context lab",
            "FILE",
        ),
    ],
)
def test_a_lost_configuration_is_told_with_its_file_and_passes(
    printed: str,
    there: bool,
    words: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(file))
    if there:
        file.touch()
    error = Kubectl("lab").problem(printed.replace("FILE", str(file)))
    assert not isinstance(error, Refused)
    assert words.replace("FILE", str(file)) in error.message
    assert hint.replace("FILE", str(file)) in str(error.hint)
    assert "12345" not in f"{error.message} {error.hint}"


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("The connection to the server 127.0.0.1:1 was refused", "was refused"),
        ("Error from server (ServiceUnavailable): away", "away"),
        ("no such file\ncommand terminated with exit code 1", "no such file"),
        ("", "no reason"),
    ],
)
def test_what_may_pass_is_no_refusal(printed: str, words: str) -> None:
    error = Kubectl("lab").problem(printed)
    assert not isinstance(error, Denied) and words in error.message


def test_a_claim_holds_the_sessions_and_a_pod_without_a_gpu_fetches_them() -> None:
    text = "kubernetes,gpu=nvidia.com/gpu:2,node=a.b/c:T4,pvc=results,linger=2m,root=writable"
    asked = options.parse(parse(text))
    job: dict[str, Any] = json.loads(json.dumps(manifest.job(SENT, asked)))
    container, spec = container_of(job), job["spec"]["template"]["spec"]
    claim = {"name": "claim", "persistentVolumeClaim": {"claimName": "results"}}
    mount = {
        "name": "claim",
        "mountPath": "/gpuwatch/data/studies",
        "subPath": f"gpuwatch/study/{'a' * 16}",
    }
    assert claim in spec["volumes"] and mount in container["volumeMounts"]
    assert json.loads(container["command"][-1])["linger"] == 0
    assert "ttlSecondsAfterFinished" not in job["spec"]
    without = manifest.job(SENT, replace(asked, claim=None))
    assert "claim" not in json.dumps(without) and "ttlSecondsAfterFinished" in str(without)
    made: dict[str, Any] = json.loads(json.dumps(manifest.fetcher(SENT, "7", "results", asked)))
    fetcher, fetcher_spec = container_of(made), made["spec"]["template"]["spec"]
    assert "resources" not in fetcher and "nodeSelector" not in fetcher_spec
    assert claim in fetcher_spec["volumes"] and mount in fetcher["volumeMounts"]
    assert fetcher["command"][-2:] == ["wait", "120"]
    assert fetcher["securityContext"] == {
        **container["securityContext"],
        "readOnlyRootFilesystem": True,
    }
    assert fetcher_spec["automountServiceAccountToken"] is False
    (own,) = made["metadata"]["ownerReferences"]
    assert (own["kind"], own["uid"]) == ("Job", "7")
    assert made["metadata"]["name"] == f"gpuwatch-{'a' * 16}-fetch"
