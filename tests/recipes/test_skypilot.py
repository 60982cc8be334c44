"""Claims about ``recipes/skypilot.yaml``: real SkyPilot reads it, and its scripts do what they say.

SkyPilot has many dependencies, so it is in a virtual environment of its own (``.ci/skypilot``).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.runners.image_records import recipes
from tests.conftest import Cli
from tests.waiting import until

YAML = recipes() / "skypilot.yaml"
REQUIRED = "GPUWATCH_REQUIRE_SKYPILOT"
_READ = """
import json, sys
from sky import task

found = task.Task.from_yaml(sys.argv[1])
(resources,) = found.resources
stop = resources.autostop_config
print(json.dumps({
    "accelerators": resources.accelerators,
    "autostop": [stop.enabled, stop.down, stop.idle_minutes, stop.wait_for.value],
    "envs": found.envs,
    "setup": found.setup,
    "run": found.run,
}))
"""


@dataclass(frozen=True)
class SkyPilot:
    """SkyPilot in its virtual environment."""

    python: str
    home: Path

    def read(self, yaml: Path) -> subprocess.CompletedProcess[str]:
        """Read a task with the real schema, and print its parts as JSON."""
        return subprocess.run(
            [self.python, "-c", _READ, yaml],
            env={**os.environ, "HOME": str(self.home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def skypilot(tmp_path_factory: pytest.TempPathFactory) -> SkyPilot:
    python = os.environ.get("GPUWATCH_SKYPILOT", "")
    if not Path(python).is_file():
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, but GPUWATCH_SKYPILOT names no Python: {python!r}")
        pytest.skip("no SkyPilot; export GPUWATCH_SKYPILOT=$(.ci/skypilot)")
    return SkyPilot(python, tmp_path_factory.mktemp("skypilot"))


@pytest.fixture(scope="module")
def task(skypilot: SkyPilot) -> dict[str, Any]:
    """The parts of the task, as SkyPilot reads them."""
    done = skypilot.read(YAML)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_skypilot_takes_it(task: dict[str, Any]) -> None:
    assert task["accelerators"] == {"T4": 1}
    assert task["autostop"] == [True, True, 1, "jobs"]
    assert task["envs"] == {"IDLE_MINUTES": "30", "TORCH": "yes"}


def test_its_schema_refuses_what_it_does_not_know(skypilot: SkyPilot, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(YAML.read_text().replace("disk_size:", "disc_size:"))
    done = skypilot.read(wrong)
    assert done.returncode != 0 and "disc_size" in done.stderr


@pytest.mark.parametrize("part", ["setup", "run"])
def test_shellcheck_finds_nothing(task: dict[str, Any], part: str) -> None:
    if shutil.which("shellcheck") is None:
        if os.environ.get("GPUWATCH_REQUIRE_SHELLCHECK"):
            pytest.fail("GPUWATCH_REQUIRE_SHELLCHECK is set, but shellcheck is not on the PATH")
        pytest.skip("shellcheck is not on the PATH")
    words = ["shellcheck", "--shell=bash", "-"]
    done = subprocess.run(words, input=task[part], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@dataclass(frozen=True)
class Machine:
    """A machine on which the task's setup runs, where every program is a stand-in that notes how it
    was called."""

    folder: Path

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"{self.folder}/calls"\n{text}\n')
        path.chmod(0o755)

    def calls(self) -> str:
        return (self.folder / "calls").read_text()

    def setup(self, text: str, torch: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", "-c", text],
            env={"PATH": f"{self.folder}/bin", "TORCH": torch},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    found = Machine(tmp_path)
    for name in ("apt-get", "ubuntu-drivers", "modprobe", "add-apt-repository"):
        found.program(name, "")
    # What sudo runs is on the stand-ins' path, too.
    found.program("sudo", 'while case $1 in *=*) ;; *) false ;; esac; do shift; done; "$@"')
    return found


WORKS = "echo 'Tesla T4, 550.54'"
FAILS = "echo 'NVIDIA-SMI has failed'; exit 9"


def test_setup_installs_what_is_missing(task: dict[str, Any], machine: Machine) -> None:
    machine.program("nvidia-smi", f'[ -e "{machine.folder}/driver" ] || exit 9; {WORKS}')
    machine.program("modprobe", f': >"{machine.folder}/driver"')
    target = machine.folder / "bin/apptainer"
    made = (
        f'printf "#!/bin/sh\\necho apptainer version 1.4\\n" >"{target}"; /bin/chmod +x "{target}"'
    )
    machine.program("apt-get", f'case "$*" in *apptainer) {made} ;; esac')
    done = machine.setup(task["setup"], "no")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["Tesla T4, 550.54", "apptainer version 1.4"]
    calls = machine.calls()
    assert "ubuntu-drivers install" in calls and "modprobe nvidia" in calls
    assert "add-apt-repository -y ppa:apptainer/ppa" in calls


def test_setup_does_nothing_where_all_is_there(task: dict[str, Any], machine: Machine) -> None:
    machine.program("nvidia-smi", WORKS)
    machine.program("apptainer", "echo apptainer version 1.4")
    assert machine.setup(task["setup"], "no").returncode == 0
    assert "sudo" not in machine.calls() and "apt-get" not in machine.calls()


def test_a_machine_whose_driver_does_not_work_is_told(
    task: dict[str, Any], machine: Machine
) -> None:
    machine.program("nvidia-smi", FAILS)
    done = machine.setup(task["setup"], "no")
    assert done.returncode == 1
    assert "error: no NVIDIA driver works; end the machine (sky down)" in done.stderr


@dataclass(frozen=True)
class Guard:
    """The task's guard beside gpuwatch; its minutes pass when the test says so."""

    process: subprocess.Popen[bytes]
    minutes: Path
    """A folder with a file for each minute that passes."""

    def pass_minutes(self, count: int) -> None:
        """Let minutes pass; returns when they have."""
        for number in range(count):
            (self.minutes / str(number)).touch()
        until(lambda: not list(self.minutes.iterdir()))


@pytest.fixture
def guard(task: dict[str, Any], cli: Cli, tmp_path: Path) -> Iterator[Guard]:
    minutes, programs = tmp_path / "minutes", tmp_path / "programs"
    minutes.mkdir()
    programs.mkdir()
    one = f'for minute in "{minutes}"/*; do rm "$minute" 2>/dev/null && exit; done'
    (programs / "sleep").write_text(f"#!/bin/sh\nwhile :; do {one}; /bin/sleep 0.05; done\n")
    (programs / "sleep").chmod(0o755)
    env = {"HOME": str(cli.home), "PATH": f"{programs}:{os.environ['PATH']}", "IDLE_MINUTES": "5"}
    started = subprocess.Popen(["/bin/bash", "-c", task["run"]], env=env, start_new_session=True)
    yield Guard(started, minutes)
    with suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def test_the_machine_stays_while_a_study_is_recorded_and_ends_after_it(
    cli: Cli, guard: Guard
) -> None:
    guard.pass_minutes(3)
    begun, over = cli.home / "begun", cli.home / "over"
    script = 'touch "$0"; until [ -e "$1" ]; do sleep 0.1; done'
    recorder = cli.start("--record", "--", "sh", "-c", script, begun, over)
    until(begun.exists)
    guard.pass_minutes(20)
    assert guard.process.poll() is None, "it ended beside a study"
    over.touch()
    assert recorder.wait(60) == 0
    guard.pass_minutes(5)
    assert guard.process.poll() is None, "it ended too early"
    guard.pass_minutes(1)
    assert guard.process.wait(60) == 0
