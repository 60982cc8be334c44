"""A recording of the machine alone on another host, over a real SSH server, and in a real Slurm."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.places.slurm import script
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.placement import PLACEMENT
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.places.sshd import Sshd, User
from tests.session.samples import times_of
from tests.waiting import until

PATIENCE = 180.0


@pytest.fixture(scope="module")
def gpu1(ssh_server: Sshd) -> User:
    return ssh_server.add_user("gpu1")


@pytest.fixture
def here(cli: Cli, sshd: Sshd) -> Cli:
    """The command line here, which reaches the host."""
    cli.variables |= sshd.variables
    return cli


@pytest.fixture
def with_slurm(cli: Cli) -> Iterator[Cli]:
    """The command line, in whose home all jobs end with the test."""
    yield cli
    for record in (cli.home / ".local/state/gpuwatch/placements").glob("*/record.json"):
        told = json.loads(record.read_text())
        name = script.name(Path(told["study"]), told["attempt"])
        subprocess.run(["scancel", f"--name={name}"], check=False)


def study_of(cli: Cli) -> Path:
    """The study, once there is one."""
    studies = cli.home / ".local/share/gpuwatch"
    return until(lambda: list(studies.rglob(PLACEMENT)), "a study", PATIENCE)[0].parent


def state(folder: Path) -> object:
    return json.loads((folder / PLACEMENT).read_text())["state"]


def wait_for_ticks(folder: Path, count: int) -> Path:
    """The session, once it has so many samples."""

    def long_enough() -> list[Path]:
        return [each for each in folder.glob("01-*.gpuwatch") if ticks(each) >= count]

    return until(long_enough, f"{count} samples", PATIENCE)[0]


def ticks(session: Path) -> int:
    with SessionReader(session) as reader:
        return len(times_of(reader))


@pytest.mark.ssh
@pytest.mark.usefixtures("sshd")
class TestOverSsh:
    def test_it_is_recorded_there_and_mirrored_here(self, here: Cli, gpu1: User) -> None:
        before = set((gpu1.home / ".local/share/gpuwatch/studies").glob("*"))
        here("--record", "--on", "ssh=gpu1", "--duration", "3s")
        folder = study_of(here)
        (session,) = folder.glob("01-*.gpuwatch")
        (there,) = set((gpu1.home / ".local/share/gpuwatch/studies").glob("*")) - before
        assert digest_of(session) == digest_of(there / session.name)
        assert ticks(session) >= 1
        assert state(folder) == "ended"
        listed = json.loads(here.read("sessions", "--format", "json").stdout)["sessions"]
        assert [row["status"] for row in listed] == ["finished"]
        assert not list(folder.glob("summary*"))

    def test_it_is_watched_stopped_and_deleted_but_not_resumed(self, here: Cli, gpu1: User) -> None:
        words = ("--record", "--detach", "--on", "ssh=gpu1", "--duration", "5m")
        folder = Path(here(*words).stdout.strip())
        session = wait_for_ticks(folder, 4)
        watching = here.start("attach", "--plain", folder.name)
        assert "not over" in here("delete", "--yes", folder, code=2).stderr
        here("stop", folder)
        watching.communicate(timeout=PATIENCE)
        assert watching.returncode == 0
        assert state(folder) in ("ended", "cancelled")
        with SessionReader(session) as reader:
            assert "closed" in reader.meta()
        assert "not a study of a workload" in here("resume", folder, code=2).stderr
        here("delete", "--yes", folder)
        assert not folder.exists()

    def test_ctrl_c_ends_it_there(self, here: Cli, gpu1: User) -> None:
        recorder = here.start("--record", "--on", "ssh=gpu1")
        folder = study_of(here)
        session = wait_for_ticks(folder, 2)
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=PATIENCE)
        assert recorder.returncode == 130
        with SessionReader(session) as reader:
            assert "closed" in reader.meta()
        assert state(folder) in ("ended", "cancelled")

    def test_one_in_the_background_needs_an_end(self, here: Cli, gpu1: User) -> None:
        done = here("--record", "--detach", "--on", "ssh=gpu1", code=2)
        assert "--duration" in done.stderr
        assert not list(here.home.rglob("plan.json"))


@pytest.mark.slurm
class TestInSlurm:
    def test_a_job_records_its_node(self, with_slurm: Cli) -> None:
        with_slurm("--record", "--on", "slurm,cpus-per-task=1", "--duration", "2s")
        folder = study_of(with_slurm)
        (session,) = folder.glob("01-*.gpuwatch")
        with SessionReader(session) as reader:
            host = reader.facts()["host"]
        assert str(host["job.node"]).startswith("n")
        assert ticks(session) >= 1
        assert state(folder) == "ended"
        assert "not a study of a workload" in with_slurm("resume", folder, code=2).stderr
        assert not list(folder.glob("summary*"))

    def test_it_is_stopped(self, with_slurm: Cli) -> None:
        words = ("--record", "--detach", "--on", "slurm", "--duration", "5m")
        folder = Path(with_slurm(*words).stdout.strip())
        session = wait_for_ticks(folder, 2)
        with_slurm("stop", folder)
        assert state(folder) == "cancelled"
        with SessionReader(session) as reader:
            assert "closed" in reader.meta()
