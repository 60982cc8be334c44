"""A study of the user's own command, recorded for real; an SSH server."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.places import capsule
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.engines import available
from tests.fake_nvml import FakeDriver
from tests.places.kubernetes.cluster import IMAGE, OTHER, USERS, cluster, kubectl, wait_until_empty
from tests.places.sshd import Sshd
from tests.session.samples import step_numbers
from tests.waiting import until

PROGRAM = """
import json, pathlib, sys, time
stop, step = pathlib.Path(sys.argv[1]), 0
while not stop.exists():
    step += 1
    line = {"event": "step", "step": step, "seconds": 0.01, "loss": 1 / step}
    print(":::GPUWATCH", json.dumps(line), flush=True)
    print("line", step, "\\u00e9\\u4e16", flush=True)
    time.sleep(0.01)
"""


def steps_of(session: Path) -> int:
    """How many steps it has."""
    with SessionReader(session) as reader:
        return len(step_numbers(reader))


@dataclass
class Study:
    """A study that is recorded until :meth:`stop`."""

    cli: Cli
    out: Path
    recorder: subprocess.Popen[str]

    @property
    def folder(self) -> Path:
        """Its folder, once it is there."""
        return until(lambda: list(self.out.glob("*/01-*.gpuwatch")))[0].parent

    def wait_for_steps(self, steps: int) -> None:
        """Wait until its first session has so many steps."""
        (session,) = self.folder.glob("01-*.gpuwatch")
        until(lambda: steps_of(session) >= steps, f"{steps} steps")

    def stop(self) -> None:
        """Let its programs end; returns when its recorder has ended."""
        (self.out.parent / "stop").touch()
        self.recorder.communicate()


@pytest.fixture(scope="session")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the cache keeps of the last capsule, which takes seconds to pack."""
    folder = tmp_path_factory.mktemp("packed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        capsule.build(folder / "capsule")
        return paths.cache_home() / "capsule.xz"


@pytest.fixture
def cli(cli: Cli, packed: Path) -> Cli:
    """The command line of somebody who has sent a capsule before."""
    cache = cli.home / ".cache/gpuwatch"
    cache.mkdir(parents=True, mode=0o700)
    shutil.copy(packed, cache)
    return cli


@pytest.fixture
def record(cli: Cli, driver: FakeDriver, tmp_path: Path) -> Iterator[Callable[..., Study]]:
    """Start a recording with a GPU."""
    started = []

    def start(environments: int = 2, interval: float = 0.05) -> Study:
        out, program = tmp_path / "there", tmp_path / "program.py"
        program.write_text(PROGRAM)
        words = ["--record", "--quiet", "--interval", interval, "--out", out]
        words += ["--env", "bare"] * environments
        command = ["--", sys.executable, program, tmp_path / "stop"]
        started.append(Study(cli, out, cli.start(*words, *command)))
        return started[-1]

    yield start
    for study in started:
        study.recorder.kill()
        study.recorder.communicate()


@pytest.fixture(scope="module")
def ssh_server() -> Iterator[Sshd]:
    """One server for the tests of a module."""
    if reason := available.why_not("ssh"):
        pytest.skip(reason)
    server = Sshd()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def sshd(ssh_server: Sshd, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """The server, reached by the ``ssh`` that this process and what it starts find; no connection
    is left from the test before."""
    for name, value in ssh_server.variables.items():
        monkeypatch.setenv(name, value)
    yield ssh_server
    ssh_server.hang_up()


@pytest.fixture(scope="session")
def image(small_root: Path) -> str:
    """The image of the tests' small root, on the node."""
    cluster("image", IMAGE, str(small_root))
    return IMAGE


@pytest.fixture(scope="session")
def other_image(image: str, small_root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Another image on the node, which has a file ``/other``."""
    root = tmp_path_factory.mktemp("other") / "root"
    shutil.copytree(small_root, root, symlinks=True, copy_function=os.link)
    (root / "other").touch()
    cluster("image", OTHER, str(root))
    return OTHER


@pytest.fixture(scope="session")
def users_image(image: str, small_root: Path) -> str:
    """Another image on the node, of a user without a name."""
    cluster("image", USERS, str(small_root), user="1234:1234")
    return USERS


@pytest.fixture
def namespace() -> Iterator[str]:
    """A namespace of the test's own, in which nothing of gpuwatch's is left at its end."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    try:
        yield name
        if kubectl("get", "namespace", name, "-o", "name", "--ignore-not-found"):
            wait_until_empty(name)
    finally:
        kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def here(cli: Cli, namespace: str, image: str) -> Cli:
    """The command line; its kubectl's namespace is the test's own."""
    config = cli.home / "kubeconfig"
    shutil.copy(os.environ["KUBECONFIG"], config)
    set_namespace = ("config", "set-context", "--current", f"--namespace={namespace}")
    subprocess.run(["kubectl", f"--kubeconfig={config}", *set_namespace], check=True)
    cli.variables["KUBECONFIG"] = str(config)
    (cli.home / "work").mkdir()
    return cli


@pytest.fixture(autouse=True)
def _one_at_a_time(request: pytest.FixtureRequest) -> Iterator[None]:
    """The nodes of the tests' clusters have few cores: jobs of two tests would wait for each other,
    and some tests stop a daemon."""
    marked = [name for name in ("slurm", "kubernetes") if request.node.get_closest_marker(name)]
    if not marked or available.why_not(marked[0]):
        yield
        return
    with (Path(tempfile.gettempdir()) / f"gpuwatch-{marked[0]}-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
