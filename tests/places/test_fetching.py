"""Fetching what a recorder writes elsewhere, through a place whose relay is a process of this
machine."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import Problem
from gpuwatch.places.base import STUDY, Job, JobState, JobStatus
from gpuwatch.places.fetching import Fetching
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import read
from gpuwatch.session.writing.statements import event
from gpuwatch.session.writing.store import SessionStore
from tests.places.conftest import Study
from tests.places.relaying import assert_same, files_of, prepare
from tests.waiting import until

Record = Callable[..., Study]


class Nearby:
    """The folder of a study, as a place."""

    shares_files = takes_folder = False
    kinds_outside = frozenset[str]()
    names_machine = False

    def __init__(self, there: Path, program: Sequence[str] = ()) -> None:
        """``program``: what runs in place of gpuwatch."""
        self._there = there
        self._program = program or (sys.executable, "-m", "gpuwatch")
        self.opened: list[subprocess.Popen[bytes]] = []

    def open(self, job: Job, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        words = [str(self._there) if word == STUDY else word for word in arguments]
        self.opened.append(
            subprocess.Popen(
                [*self._program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
        return self.opened[-1]

    def connect(self, *, person: bool) -> None: ...

    def preflight(self) -> list[Problem]:
        return []

    def send_folder(self, job: Job, archive: Path) -> None: ...

    def submit(self, job: Job) -> str:
        return job.study

    def state(self, job: Job, native: str) -> JobStatus:
        return JobStatus(JobState.RUNNING)

    def cancel(self, job: Job, native: str) -> None: ...

    def log(self, job: Job, native: str) -> str:
        return ""

    def close(self) -> None: ...


def job(here: Path) -> Job:
    return Job("0123456789abcdef", here.name, here)


def take_until(fetching: Fetching, done: Callable[[], bool]) -> None:
    def taken() -> bool:
        fetching.take(0.2)
        return done()

    until(taken)


def test_a_study_is_fetched_whole_and_its_problems_are_noted(
    record: Record, tmp_path: Path
) -> None:
    study, here = record(2), tmp_path / "here"
    there = study.folder
    prepare(there, here)
    place = Nearby(there)
    with Fetching(place, job(here)) as fetching:
        take_until(fetching, lambda: any(here.glob("*.gpuwatch")))
        assert not fetching.whole and not fetching.asks
        hostile = Problem("no\x1b[2J-gpu", "there is\nnone" + "x" * 5000, "find\x07 one")
        study_folder.note(there, {2: [hostile]})
        take_until(fetching, lambda: bool(read(here).problems))  # type: ignore[union-attr]
        study.stop()
        take_until(fetching, lambda: fetching.whole)
        assert fetching.asks
    plan = read(here)
    assert plan is not None
    (noted,) = plan.problems[2]
    assert noted.code == "no-gpu" and len(noted.text) <= 1000 and noted.text.isprintable()
    assert_same(there, here)
    assert place.opened[-1].poll() is not None


def test_a_session_that_arrived_otherwise_is_fetched_again_once(
    record: Record, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    study, here = record(1), tmp_path / "here"
    there = study.folder
    prepare(there, here)
    study.stop()
    with Fetching(Nearby(there), job(here)) as fetching:
        take_until(fetching, lambda: fetching.whole)
    (file,) = files_of(there)
    store = SessionStore.reopen(here / file)
    store.write([event(1, "xid", "not there")])
    store.close()
    assert digest_of(here / file) != digest_of(there / file)
    capfd.readouterr()
    with Fetching(Nearby(there), job(here)) as fetching:
        take_until(fetching, lambda: fetching.whole)
    assert capfd.readouterr().err == (
        f"gpuwatch: error: {file} did not arrive as it is there; it is fetched again\n"
    )
    assert_same(there, here)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; print('Welcome!')", "the connection was lost"),
        ("m(); print('{}')", "what arrived cannot be read"),
        ('m(); print(\'{"n":2,"beat":true}\')', "frame 2 in the place of 1"),
        ("m(); print('x' * (17 << 20))", "too long, or cut off"),
        ("while True: print('noise' * 1000)", "the connection was lost"),
    ],
)
def test_what_is_no_relay_is_one_error(
    record: Record, tmp_path: Path, program: str, message: str
) -> None:
    study, here = record(1), tmp_path / "here"
    prepare(study.folder, here)
    greeting = "import sys\nm = lambda: print('gpuwatch-relay', sys.argv[4], flush=True)\n"
    place = Nearby(study.folder, (sys.executable, "-c", greeting + program))
    with pytest.raises(NotAvailable, match=message), Fetching(place, job(here)) as fetching:
        take_until(fetching, lambda: False)
    assert place.opened[-1].poll() is not None
    assert [path.name for path in here.iterdir()] == ["plan.json"]
