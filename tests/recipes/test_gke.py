"""Claims about ``recipes/gke.sh``, with a stand-in cloud that refuses what gcloud does not know."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.places.kubernetes import options
from gpuwatch.places.spec import parse
from gpuwatch.runners.image_records import recipes
from tests.terminal import Pty

from . import cloud

SCRIPT = recipes() / "gke.sh"
REQUIRED = "GPUWATCH_REQUIRE_SHELLCHECK"


@dataclass
class Cloud:
    """A cloud that is a file, and the machine from which it is asked."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "cloud.json").read_text())
        return found

    def set(self, **values: object) -> None:
        (self.folder / "cloud.json").write_text(json.dumps({**self.state(), **values}))

    def calls(self) -> list[list[str]]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def changes(self) -> list[str]:
        """The calls that make or delete something."""
        return [" ".join(call) for call in self.calls() if {"create", "delete"} & set(call)]

    def __call__(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [SCRIPT, *words],
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done


@pytest.fixture
def there(tmp_path: Path) -> Cloud:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("gcloud", "kubectl"):
        (programs / name).write_text(f"#!{sys.executable}\n{Path(cloud.__file__).read_text()}")
    (programs / "gke-gcloud-auth-plugin").write_text("#!/bin/sh\n")
    (programs / "sleep").write_text("#!/bin/sh\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    (tmp_path / "cloud.json").write_text(json.dumps(cloud.EMPTY))
    (tmp_path / "calls").touch()
    variables = {"PATH": f"{programs}:{os.environ['PATH']}", "STAND_IN": str(tmp_path)}
    return Cloud(tmp_path, variables)


def test_up_makes_a_cluster_where_all_are_offered_and_quota_is_left(there: Cloud) -> None:
    done = there("up", "lab", "nvidia-tesla-t4", "nvidia-l4:2", "--yes")
    (made,) = there.state()["clusters"].values()
    assert made["zone"] == "us-central1-a"
    assert made["pools"] == ["default-pool", "nvidia-tesla-t4", "nvidia-l4"]
    first, t4, l4 = there.changes()
    assert "clusters create lab" in first and "--num-nodes=1" in first
    assert "--machine-type=n1-standard-4" in t4
    assert "--accelerator=type=nvidia-tesla-t4,count=1,gpu-driver-version=default" in t4
    assert "--machine-type=g2-standard-24" in l4 and "--min-nodes=0" in l4
    assert "nvidia-tesla-t4 1 free in us-central1, nvidia-l4 8 free" in done.stderr
    assert "https://cloud.google.com/compute/gpus-pricing" in done.stderr


def test_its_last_lines_are_commands_of_gpuwatch(there: Cloud) -> None:
    (line,) = there("up", "lab", "nvidia-tesla-t4", "--yes").stdout.splitlines()
    place = line.removeprefix("gpuwatch run mnist-cnn --on ")
    asked = options.parse(parse(place))
    assert asked.context == "gke_lab-1_europe-west4-b_lab"
    assert asked.gpu == ("nvidia.com/gpu", 1)
    assert asked.nodes == {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}


def test_the_current_context_of_kubectl_stays(there: Cloud) -> None:
    there("up", "lab", "nvidia-l4", "--yes")
    assert there.state()["context"] == "mine"
    assert "gke_lab-1_us-central1-a_lab" in there.state()["contexts"]


def test_it_asks_first_and_makes_nothing_without_an_answer(there: Cloud) -> None:
    done = there("up", "lab", "nvidia-l4", code=1)
    assert "cluster        lab in us-central1-a, one node e2-standard-2" in done.stderr
    assert "gcloud container node-pools create nvidia-l4 --project=lab-1" in done.stderr
    assert "nobody is here to be asked; add --yes" in done.stderr
    assert there.changes() == []


@pytest.mark.parametrize(("answer", "made"), [("n\r", False), ("\r", False), ("y\r", True)])
def test_the_answer_decides(there: Cloud, answer: str, made: bool) -> None:
    screen = Pty([str(SCRIPT), "up", "lab", "nvidia-l4"], (200, 40), there.variables)
    screen.wait("Make it? [y/N]")
    screen.type(answer)
    screen.end()
    assert bool(there.state()["clusters"]) is made


@pytest.mark.parametrize(
    ("words", "state", "told"),
    [
        (("nvidia-tpu",), {}, "no zone offers nvidia-tpu; list what there is"),
        (("nvidia-l4", "--zone=us-west1-b"), {}, "offers nvidia-l4 at once"),
        (("nvidia-l4", "--region=us-west1"), {}, "no zone of us-west1 offers nvidia-l4 at once"),
        (("nvidia-tesla-t4:8",), {}, "quota left; raise NVIDIA_T4_GPUS: https://"),
        (("nvidia-tesla-t4:2", "--spot"), {}, "quota left; raise PREEMPTIBLE_NVIDIA_T4_GPUS"),
        (("nvidia-l4",), {"all_regions": [0.0, 0.0]}, "may use 0 more GPUs in all regions"),
        (("nvidia-l4:3",), {}, "no machine type in us-central1-a has 3 of nvidia-l4"),
        (("nvidia-l4",), {"account": ""}, "log in: gcloud auth login"),
        (("nvidia-l4",), {"project": ""}, "name one: --project=ID"),
        (("Nvidia;l4",), {}, "'Nvidia;l4' is no accelerator"),
        (("nvidia-l4", "--zone=a$"), {}, "--zone cannot be 'a$'"),
        ((), {}, "no accelerator is named"),
    ],
)
def test_what_cannot_be_made_is_told_before_anything_is(
    there: Cloud, words: tuple[str, ...], state: dict[str, object], told: str
) -> None:
    there.set(**state)
    done = there("up", "lab", *words, "--yes", code=1)
    assert told in done.stderr
    assert there.changes() == []


def test_a_quota_that_is_not_told_is_said(there: Cloud) -> None:
    there.set(machines=[["a3-highgpu-1g", 26, "nvidia-h100-80gb", 1]])
    done = there("up", "lab", "nvidia-h100-80gb", "--yes")
    assert "nvidia-h100-80gb not told, see https://" in done.stderr


@pytest.mark.parametrize(
    "state",
    [{"stockout": True}, {"driver": False}, {"fails": "get-credentials"}],
    ids=["no machine is free", "the driver does not come", "no credentials"],
)
def test_what_fails_half_way_leaves_nothing(there: Cloud, state: dict[str, object]) -> None:
    there.set(**state)
    there("up", "lab", "nvidia-l4", "--yes", code=1)
    left = there.state()
    assert left["clusters"] == {}
    assert (left["context"], left["contexts"]) == ("mine", ["mine"])


def test_ctrl_c_half_way_leaves_nothing(there: Cloud) -> None:
    there.set(hangs=True)
    screen = Pty([str(SCRIPT), "up", "lab", "nvidia-l4", "--yes"], (200, 40), there.variables)
    screen.wait("it takes minutes")
    assert there.state()["clusters"]
    screen.type("\x03")
    assert screen.end() == 130
    assert there.state()["clusters"] == {}


def test_a_cluster_that_cannot_be_made_deletes_none(there: Cloud) -> None:
    there.set(fails="clusters create")
    there("up", "lab", "nvidia-l4", "--yes", code=1)
    assert [change for change in there.changes() if "delete" in change] == []


def test_what_cannot_be_ended_is_told(there: Cloud) -> None:
    there.set(fails="node-pools create|clusters delete")
    done = there("up", "lab", "nvidia-l4", "--yes", code=1)
    assert "cluster lab may still be there, and costs money" in done.stderr
    assert "gke.sh down lab --project=lab-1" in done.stderr


def test_a_later_up_adds_a_pool_and_takes_back_only_that(there: Cloud) -> None:
    there("up", "lab", "nvidia-l4", "--yes")
    there.set(stockout=True)
    there("up", "lab", "nvidia-tesla-t4", "--yes", code=1)
    assert there.state()["clusters"]["lab"]["pools"] == ["default-pool", "nvidia-l4"]
    assert "gke_lab-1_us-central1-a_lab" in there.state()["contexts"]
    there.set(stockout=False)
    there("up", "lab", "nvidia-tesla-t4", "--yes")
    pools = ["default-pool", "nvidia-l4", "nvidia-tesla-t4"]
    assert there.state()["clusters"]["lab"]["pools"] == pools
    done = there("up", "lab", "nvidia-l4", "--yes", code=1)
    assert "has a node pool nvidia-l4 already; leave it out" in done.stderr
    assert there.state()["clusters"]["lab"]["pools"] == pools


def test_down_ends_the_cluster_and_forgets_its_context(there: Cloud) -> None:
    there("up", "lab", "nvidia-l4", "--yes")
    assert "nobody is here to be asked" in there("down", "lab", code=1).stderr
    assert "lab is gone" in there("down", "lab", "--yes").stderr
    assert there.state()["clusters"] == {}
    assert there.state()["contexts"] == ["mine"]
    assert "there is no cluster lab" in there("down", "lab", "--yes", code=1).stderr


def test_a_cluster_of_somebody_else_is_neither_changed_nor_deleted(there: Cloud) -> None:
    theirs = {"name": "lab", "zone": "us-central1-a", "labels": {}, "pools": ["default-pool"]}
    there.set(clusters={"lab": theirs})
    for words in (("up", "lab", "nvidia-l4"), ("down", "lab")):
        done = there(*words, "--yes", code=1)
        assert "was not made by gke.sh; choose another name" in done.stderr
    assert there.changes() == [] and there.state()["clusters"] == {"lab": theirs}


def test_shellcheck_finds_nothing() -> None:
    if shutil.which("shellcheck") is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, but shellcheck is not on the PATH")
        pytest.skip("shellcheck is not on the PATH")
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not on the PATH")
def test_the_real_gcloud_knows_every_command_and_flag(there: Cloud, tmp_path: Path) -> None:
    there("up", "lab", "nvidia-tesla-t4", "--zone=us-central1-a", "--yes")
    there.set(stockout=True)
    there("up", "lab", "nvidia-l4", "--yes", code=1)
    there("down", "lab", "--yes")
    variables = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "CLOUDSDK_CONFIG": str(tmp_path / "config"),  # without an account
        "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
    }
    asked = {" ".join(call[1:4]): call for call in there.calls() if call[0] == "gcloud"}
    assert len(asked) > 8
    for call in asked.values():
        done = subprocess.run(call, env=variables, capture_output=True, text=True, check=False)
        understood = (
            done.returncode == 0 or "do not currently have an active account" in done.stderr
        )
        assert understood, done.stderr
