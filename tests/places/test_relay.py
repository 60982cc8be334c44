"""A session that is relayed arrives whole, whatever happens to the connection."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.core.models import Problem
from gpuwatch.places.frames import BatchFrame, EndFrame, StudyFrame
from gpuwatch.session.study import study_folder
from tests.conftest import Cli
from tests.places.conftest import Study, steps_of
from tests.places.relaying import Link, assert_same, files_of, prepare
from tests.waiting import until

Record = Callable[..., Study]
CUTS = 50
KILLS = 12
JOURNAL = bytes.fromhex("d9d505f920a163d7")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


def test_fifty_cuts_of_the_connection_lose_nothing(record: Record, here: Path) -> None:
    study, chance = record(), random.Random(23)
    there = study.folder
    prepare(there, here)
    rows = cuts = 0
    while cuts < CUTS or rows <= CUTS:
        cuts += 1
        with Link(there, here) as link:
            left = chance.randrange(4)
            for frame in link.frames():
                rows += isinstance(frame, BatchFrame)
                left -= 1
                if left < 0:
                    break
    study.stop()
    with Link(there, here) as link:
        end = link.finish()
    assert set(end.digests) == files_of(there)
    assert_same(there, here)
    for file in files_of(there):
        with sqlite3.connect(here / file) as db:
            steps = [step for (step,) in db.execute("SELECT step FROM step ORDER BY n")]
            lines = [text for (text,) in db.execute("SELECT text FROM log ORDER BY n")]
        assert steps == list(range(1, len(steps) + 1))
        assert lines == [f"line {step} \u00e9\u4e16" for step in steps]


def test_a_mirror_that_is_killed_goes_on_from_what_it_committed_and_leaves_no_relay(
    record: Record, here: Path
) -> None:
    study, chance = record(1), random.Random(5)
    there = study.folder
    prepare(there, here)
    command = [sys.executable, "-m", "tests.places.relaying", there, here]
    (file,), known = files_of(there), 0
    for _ in range(KILLS):
        mirror = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert mirror.stdout is not None
        relay = int(mirror.stdout.readline())
        known += 1 + chance.randrange(50)
        until(lambda known=known: (here / file).exists() and steps_of(here / file) > known)
        mirror.kill()
        mirror.communicate()
        until(lambda relay=relay: not _is_running(relay), "the relay outlives its connection")
        known = steps_of(here / file)
    study.stop()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert_same(there, here)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_the_mirror_gives_the_figures_of_the_original(record: Record, here: Path) -> None:
    study = record(1)
    there = study.folder
    prepare(there, here)
    study.wait_for_steps(100)
    study.stop()
    with Link(there, here) as link:
        link.finish()
    (file,) = files_of(there)
    shown = [
        json.loads(study.cli.read("show", folder / file, "--format", "json").stdout)
        for folder in (there, here)
    ]
    for each in shown:
        each["session"].pop("path", None)
        each.pop("path", None)
    assert shown[0] == shown[1]
    assert shown[0]["step"]["count"] >= 100
    assert study.cli.read("log", here / file).stdout == study.cli.read("log", there / file).stdout
    assert sorted(os.listdir(here)) == sorted([file, "plan.json"])
    with sqlite3.connect(here / file) as db:
        keys = {key for (key,) in db.execute("SELECT key FROM meta")}
    assert not keys & {"handle", "recorder"} and {"result", "closed", "session"} <= keys
    raw = (here / file).read_bytes()
    assert b'"holder"' in (there / file).read_bytes() and b'"holder"' not in raw
    assert b'"start_time"' not in raw


def test_a_result_arrives_after_all_rows(record: Record, here: Path) -> None:
    study = record(1)
    there = study.folder
    prepare(there, here)
    study.stop()
    with Link(there, here) as link:
        batches = [frame.batch for frame in link.frames() if isinstance(frame, BatchFrame)]
    assert ["result" in batch.meta for batch in batches] == [False] * (len(batches) - 1) + [True]


def test_a_live_mirror_has_a_journal_and_a_closed_one_none(record: Record, here: Path) -> None:
    study = record(1)
    there = study.folder
    prepare(there, here)
    (file,) = files_of(there)
    with Link(there, here) as link:
        frames = link.frames()
        next(frame for frame in frames if isinstance(frame, BatchFrame))
        assert (here / f"{file}-journal").exists()
        shown = study.cli.read("show", here / file, "--format", "json").stdout
        assert json.loads(shown)["session"]["status"] == "lost"  # there is no placement
        study.stop()
        for _ in frames:
            pass
    assert not (here / f"{file}-journal").exists()


def test_a_study_that_is_resumed_there_sets_its_session_aside_here_too(
    record: Record, here: Path
) -> None:
    study = record(2)
    there = study.folder
    prepare(there, here)
    (first, second) = sorted(files_of(there))
    with Link(there, here) as link:
        frames = link.frames()
        next(frame for frame in frames if isinstance(frame, BatchFrame))
        study.cli("stop", there / first)
        study.recorder.communicate()
        held = [frame.held for frame in frames if isinstance(frame, StudyFrame)]
    assert held[-1:] == [False]
    (study.out.parent / "stop").touch()
    study.cli("resume", there)
    assert (there / f"{first}.lost-1").exists()
    with Link(there, here) as link:
        end = link.finish()
    assert set(end.digests) == {first, second}
    assert (here / f"{first}.lost-1").exists()
    assert_same(there, here)


CUT_OFF = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=TRUNCATE")
db.execute("PRAGMA cache_size=2")
db.execute("BEGIN")
for n in range(2000):
    db.execute("INSERT INTO event (t, kind, text) VALUES (1, 'xid', ?)", ("x" * 500,))
os._exit(0)
"""
"""Leaves a file in the middle of a transaction, as a recorder does that dies in one."""


def test_a_recorder_that_dies_in_a_transaction_leaves_a_session_that_is_relayed_whole(
    record: Record, here: Path
) -> None:
    study = record(1)
    there = study.folder
    prepare(there, here)
    (file,) = files_of(there)
    study.wait_for_steps(50)
    with Link(there, here, every=2.0) as link:
        frames = link.frames()
        next(frame for frame in frames if isinstance(frame, BatchFrame))
        study.recorder.kill()
        study.recorder.communicate()
        subprocess.run([sys.executable, "-c", CUT_OFF, there / file], check=True)
        assert (there / f"{file}-journal").read_bytes()[:8] == JOURNAL
        *_, end = frames
        assert isinstance(end, EndFrame) and link.mirror.differing(end) == []
    assert_same(there, here)


def test_problems_and_attempts_are_told(record: Record, here: Path) -> None:
    study = record(1)
    there = study.folder
    prepare(there, here)
    problem = Problem("no-gpu", "there is none", "find one")
    with Link(there, here) as link:
        frames = (frame for frame in link.frames() if isinstance(frame, StudyFrame))
        first = next(frames)
        assert first.held and not first.attempts and not first.problems
        (there / "attempts").write_text("0123456789abcdef\nnot one\n")
        assert next(frames).attempts == ("0123456789abcdef",)
        study_folder.note(there, {1: [problem]})
        assert next(frames).problems == {1: (problem,)}


def test_the_relay_ends_with_its_standard_input(record: Record, here: Path) -> None:
    study = record(1)
    prepare(study.folder, here)
    with Link(study.folder, here) as link:
        next(link.frames())
        assert link.process.stdin is not None
        link.process.stdin.close()
        link.process.stdin = None
        assert link.process.wait(60) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{folder}", "--marker", "x; rm"], "--marker takes hexadecimal digits"),
        (["{folder}", "--marker", "ab", "--every", "99"], "--every 99 is out of range"),
        (["{folder}", "--marker", "ab"], "is not a study"),
    ],
)
def test_what_a_relay_cannot_do_is_one_error(
    cli: Cli, tmp_path: Path, words: list[str], message: str
) -> None:
    done = cli("relay", *[word.format(folder=tmp_path) for word in words], code=2)
    assert message in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_relay_is_not_in_the_help(cli: Cli) -> None:
    assert "relay" not in cli("--help").stdout
    assert "--marker" in cli("relay", "--help").stdout
