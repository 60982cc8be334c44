"""What the caller was given is what every environment gets: processors, GPUs, time and memory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid
from tests.reading import facts, log, meta, sessions
from tests.waiting import until

from ..test_four_environments import KINDS, environments

ONE_CORE = ("taskset", "-c", "0")
STARTED = ":::GPUWATCH " + json.dumps({"event": "started"})
"""After which a recorder looks a last time at what a process is limited to."""
CORES = (
    "import os, time\n"
    "before = os.listdir('.')\n"
    f"print({STARTED!r})\n"
    "print(sorted(os.sched_getaffinity(0)), flush=True)\n"
    "while os.listdir('.') == before: time.sleep(0.1)"
)
WAIT = 'while [ "$(ls)" = "$before" ]; do sleep 0.1; done'
SHELL = f"before=\"$(ls)\"; echo '{STARTED}'; echo begun; {WAIT}"
"""These run until a file is made in their folder after they said something."""


@pytest.fixture
def project(cli: Cli, small_root: Path) -> Path:
    """A folder of the user's, which Charliecloud's image has too: it mounts only onto such."""
    folder = cli.home / "project"
    folder.mkdir()
    (small_root / folder.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return folder


def record_each(
    cli: Cli, out: Path, folder: Path, limited: dict[str, Any], *words: object, **more: Any
) -> list[Path]:
    """Record a study, each run of which goes on until it is known to be limited like this."""
    recorder = cli.start("--record", "--out", out, *words, folder=folder, **more)
    for number in range(words.count("--env")):
        until(
            lambda at=number: (
                len(sessions(out)) > at
                and facts(sessions(out)[at]).items() >= limited.items()
                and log(sessions(out)[at])
            )
        )
        (folder / str(number)).touch()
    _, told = recorder.communicate()
    assert recorder.returncode == 0, told
    return sessions(out)


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.charliecloud
def test_all_environments_have_the_cores_that_their_caller_has(
    cli: Cli, tmp_path: Path, project: Path, small_root: Path, small_image: str
) -> None:
    words = (*environments(small_image, small_root), "--", "python3", "-c", CORES)
    known = {"process.cpu.affinity": "0"}
    paths = record_each(cli, tmp_path / "out", project, known, *words, through=ONE_CORE)
    assert [log(path) for path in paths] == [["[0]"]] * len(KINDS)


@pytest.mark.charliecloud
def test_a_container_has_the_gpu_that_its_caller_has(
    cli: Cli, driver: FakeDriver, tmp_path: Path, project: Path, small_root: Path
) -> None:
    driver.resize(4)
    library = small_root / "usr/lib/libcuda.so.1"
    library.touch()
    cli.variables |= {"CUDA_VISIBLE_DEVICES": "2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    out = tmp_path / "out"
    try:
        cli(
            "--record", "--out", out, "--env", "bare", "--env", f"charliecloud={small_root}",
            "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES", folder=project,
        )  # fmt: skip
    finally:
        library.unlink()  # other tests have the same image, which is to be without a driver
    assert [log(path) for path in sessions(out)] == [[uuid(2)]] * 2
    for path in sessions(out):
        assert meta(path)["environment"]["gpus"] == [uuid(2)]


@pytest.mark.parametrize("hidden", ["", "-1", "GPU-gone"])
def test_a_caller_without_gpus_gives_none(
    cli: Cli, driver: FakeDriver, tmp_path: Path, hidden: str
) -> None:
    cli.variables["CUDA_VISIBLE_DEVICES"] = hidden
    assert visible_to_bare(cli, tmp_path) == "-1"


def test_gpus_that_are_typed_are_those_of_the_caller_or_refused(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.resize(4)
    driver.set(gpu=3, mig="MIG-aaaa")
    cli.variables["CUDA_VISIBLE_DEVICES"] = f"GPU-00000002,{uuid(3)}"
    assert visible_to_bare(cli, tmp_path) == f"{uuid(2)},{uuid(3)}"
    assert visible_to_bare(cli, tmp_path, "--gpus", "2") == uuid(2)
    assert visible_to_bare(cli, tmp_path, "--gpus", "MIG-aaaa") == "MIG-aaaa"
    assert visible_to_bare(cli, tmp_path, "--gpus", "none") == "-1"
    told = cli("--record", "--gpus", "1,2", "--", "true", code=3).stderr
    assert f"--gpus asks for {uuid(1)}, and CUDA_VISIBLE_DEVICES=GPU-00000002" in told
    assert "unset CUDA_VISIBLE_DEVICES" in told and "Traceback" not in told
    cli("--record", "--gpus", "1", "--duration", "1s", "--out", tmp_path / "machine")


def test_a_run_on_a_part_of_a_gpu_has_the_numbers_of_that_part(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.resize(2)
    driver.set(gpu=1, mig="MIG-aaaa,MIG-bbbb")
    cli.variables["CUDA_VISIBLE_DEVICES"] = "MIG-bbbb"
    cli("--record", "--quiet", "--out", tmp_path / "out", "--", "true")
    (path,) = (tmp_path / "out").rglob("*.gpuwatch")
    with SessionReader(path) as reader:
        gpus = [each for each in reader.devices() if each.kind == "gpu"]
        assert [each.id for each in gpus] == ["gpu1.mig1"]
        assert "power.limit" not in gpus[0].attributes or gpus[0].attributes["power.limit"] is None


def test_a_number_that_is_no_gpu_is_told(cli: Cli, driver: FakeDriver, tmp_path: Path) -> None:
    driver.resize(2)
    cli.variables["CUDA_VISIBLE_DEVICES"] = "7"
    told = cli("--record", "--out", tmp_path / "out", "--", "true").stderr
    assert "CUDA_VISIBLE_DEVICES=7 names 7, which is no GPU of this machine" in told


def test_numbers_in_an_unknown_order_are_refused_with_the_uuids(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.resize(2)
    driver.set(gpu=0, name="Tesla T4")
    driver.cuda(1, 0)
    cli.variables |= {**driver.variables, "CUDA_VISIBLE_DEVICES": "0"}
    told = cli("--record", "--", "true", code=3).stderr
    assert "different cards (Tesla T4, NVIDIA H100 80GB HBM3)" in told
    assert f"CUDA_VISIBLE_DEVICES={uuid(1)} gpuwatch" in told
    cli.variables["CUDA_VISIBLE_DEVICES"] = uuid(1)
    assert visible_to_bare(cli, tmp_path) == uuid(1)


def test_the_doctor_asks_for_the_callers_gpus(cli: Cli, driver: FakeDriver) -> None:
    driver.resize(2)
    driver.cuda(1, 0)
    cli.variables |= driver.variables

    def unavailable(chosen: str) -> dict[str, Any] | None:
        cli.variables["CUDA_VISIBLE_DEVICES"] = chosen
        done = cli("doctor", "--env", "bare", "--format", "json", "--", "true")
        found: dict[str, Any] | None = json.loads(done.stdout)["gpu_unavailable"]
        return found

    assert unavailable(uuid(1)) is None
    hidden, unclear = unavailable("-1"), unavailable("0")
    assert hidden is not None and unclear is not None
    assert (hidden["code"], hidden["hint"]) == ("gpus-hidden", "unset CUDA_VISIBLE_DEVICES")
    assert unclear["code"] == "gpus-unclear" and uuid(1) in unclear["hint"]


def visible_to_bare(cli: Cli, tmp_path: Path, *arguments: str) -> str:
    """What a bare run with these arguments finds in ``CUDA_VISIBLE_DEVICES``."""
    out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
    script = 'echo "$CUDA_VISIBLE_DEVICES"'
    cli("--record", "--out", out, *arguments, "--", "sh", "-c", script)
    (line,) = log(sessions(out)[0])
    return line


class Group:
    """A control group with half a core and 512 MiB, for programs of the test."""

    CPU, MEMORY = 0.5, 512 << 20

    def __init__(self, name: str) -> None:
        root = Path("/sys/fs/cgroup")
        old = (root / "cpu").exists()
        self.folders = [root / each / name for each in (("cpu", "memory") if old else ("",))]
        limits = {"cpu.max": "50000 100000", "memory.max": str(self.MEMORY)}
        if old:
            limits = {"cpu.cfs_quota_us": "50000", "memory.limit_in_bytes": str(self.MEMORY)}
        try:
            for folder in self.folders:
                folder.mkdir()
                for file, text in limits.items():
                    if (folder / file).exists():
                        (folder / file).write_text(text)
        except OSError as error:
            pytest.skip(f"no control group can be made here: {error}")

    @property
    def through(self) -> tuple[str, ...]:
        """A command that runs the one behind it in the group."""
        enter = "".join(f"echo $$ > {folder}/cgroup.procs && " for folder in self.folders)
        return ("sh", "-c", f'{enter} exec "$@"', "sh")


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    group = Group(f"gpuwatch-test-{os.getpid()}")
    yield group
    for folder in group.folders:
        folder.rmdir()


@pytest.mark.docker
def test_a_container_has_the_processor_time_and_memory_that_its_caller_has(
    cli: Cli, tmp_path: Path, project: Path, small_image: str, group: Group
) -> None:
    environments = ("--env", "bare", "--env", f"docker={small_image}")
    command = ("--", "sh", "-c", SHELL)
    known = {"process.cgroup.cpu.limit": group.CPU, "process.cgroup.memory.limit": group.MEMORY}
    words = (*environments, *command)
    record_each(cli, tmp_path / "out", project, known, *words, through=group.through)
    asked = ("--env", f"docker={small_image},memory=1g")
    told = cli("--record", *asked, *command, folder=project, through=group.through, code=3).stderr
    assert "may itself use 512 MiB" in told and f"memory={group.MEMORY}" in told


@pytest.mark.apptainer
def test_a_container_of_apptainers_with_a_limit_of_its_own_keeps_the_callers(
    cli: Cli, tmp_path: Path, project: Path, small_root: Path, group: Group
) -> None:
    """For ``memory=`` the engine makes a control group, which is not below the caller's."""
    through = (*group.through, *ONE_CORE)
    environment = ("--env", f"apptainer={small_root},memory=256m")
    command = ("--", "sh", "-c", SHELL)
    known = {
        "process.cpu.affinity": "0",
        "process.cgroup.cpu.limit": group.CPU,
        "process.cgroup.memory.limit": 256 << 20,
    }
    words = (*environment, *command)
    record_each(cli, tmp_path / "out", project, known, *words, through=through)
    environment = ("--env", f"apptainer={small_root},memory=1g")
    told = cli("--record", *environment, *command, folder=project, through=through, code=3).stderr
    assert "may itself use 512 MiB" in told
