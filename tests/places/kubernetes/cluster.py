"""The tests' Kubernetes (``.ci/kubernetes``), and what is left in it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli

SCRIPT = Path(__file__).parents[3] / ".ci/kubernetes"
IMAGE = "gpuwatch-test/small:1"
"""An image of the tests' small root."""
OTHER = "gpuwatch-test/other:1"
"""The same with a file ``/other``."""
TORCH = "gpuwatch-test/torch:1"
"""The same with torch and torchvision."""
USERS = "gpuwatch-test/users:1"
"""As :data:`IMAGE`, whose user is not root."""


def kubectl(*words: str, data: str | None = None, check: bool = True) -> str:
    """What kubectl prints."""
    done = subprocess.run(
        ["kubectl", *words], input=data, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def cluster(*words: str, user: str = "") -> None:
    """Run ``.ci/kubernetes``; ``user``: of an image that it makes."""
    variables = {**os.environ, "IMAGE_USER": user}
    subprocess.run([SCRIPT, *words], env=variables, check=True, capture_output=True)


def objects(namespace: str, kinds: str = "jobs,pods,configmaps") -> list[dict[str, Any]]:
    """What gpuwatch has in a namespace."""
    selector = "app.kubernetes.io/managed-by=gpuwatch"
    found = kubectl("get", kinds, "-n", namespace, "-l", selector, "-o", "json")
    items: list[dict[str, Any]] = json.loads(found)["items"]
    return items


def names(found: Sequence[dict[str, Any]]) -> list[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in found]


def wait_until_empty(namespace: str, seconds: float = 120.0) -> None:
    """Wait until nothing of gpuwatch's is left but pods that the cluster is deleting."""
    until = time.monotonic() + seconds
    while found := [
        each
        for each in objects(namespace)
        if each["kind"] != "Pod" or "deletionTimestamp" not in each["metadata"]
    ]:
        assert time.monotonic() < until, names(found)
        time.sleep(0.3)


def the_pod(namespace: str) -> str:
    """The name of gpuwatch's only pod that runs."""
    found = [each for each in objects(namespace, "pods") if each["status"]["phase"] == "Running"]
    (pod,) = [each["metadata"]["name"] for each in found]
    return str(pod)


def in_pod(namespace: str, *command: str) -> str:
    """What a command prints in gpuwatch's pod."""
    return kubectl("exec", "-n", namespace, the_pod(namespace), "--", *command)


def on(*options: str) -> str:
    return ",".join(("kubernetes", f"image={IMAGE}", *options))


def output(folder: Path) -> str:
    text = ""
    for session in sessions(folder):
        with SessionReader(session) as reader:
            text += "".join(f"{line.text}\n" for line in reader.log())
    return text


def sessions(folder: Path) -> list[Path]:
    return sorted(folder.glob("0*.gpuwatch"))


def the_study(here: Cli) -> Path:
    (folder,) = (path.parent for path in here.home.rglob("plan.json"))
    return folder


def facts_of(session: Path) -> dict[str, object]:
    with SessionReader(session) as reader:
        return {key: value for facts in reader.facts().values() for key, value in facts.items()}
