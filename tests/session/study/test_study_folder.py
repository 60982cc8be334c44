"""A study's folder: its plan as it grows, and why some of its runs did not take place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.models import Environment, Problem, Workload
from gpuwatch.core.processes import identify
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import LARGEST, PLAN, Part, Plan, read
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore

ENVIRONMENTS = (Environment("bare", "bare"), Environment("docker", "docker=a/b:c", "a/b:c"))
ONE = (Workload("mnist-cnn", "workload"),)
TWO = (*ONE, Workload("gcn", "workload"))
MISSING = Problem("image-missing", "there is no image x", "docker pull x")


def made(tmp_path: Path, workloads: tuple[Workload, ...] = ONE, blocks: int | None = None) -> Path:
    parts = (Part("all", workloads, ENVIRONMENTS, blocks=blocks),)
    return study_folder.create(tmp_path, Plan("", parts, plan_runs(parts, 1)))


def test_a_study_is_named_by_its_workloads_and_knows_its_name(tmp_path: Path) -> None:
    folder = made(tmp_path, TWO)
    assert folder.name.startswith("mnist-cnn+gcn-")
    plan = read(folder)
    assert plan is not None and plan.study == folder.name
    again = made(tmp_path, TWO)
    assert again != folder


def test_a_study_of_a_preset_is_named_by_it(tmp_path: Path) -> None:
    parts = (Part("all", TWO, ENVIRONMENTS),)
    plan = Plan("", parts, plan_runs(parts, 1), preset="multi-environment")
    assert study_folder.create(tmp_path, plan).name.startswith("multi-environment-")


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write to"):
        made(tmp_path / "file")


def test_a_plan_that_could_not_be_read_again_is_refused_before_there_is_a_folder(
    tmp_path: Path,
) -> None:
    long = Workload("long", "command", ("sh", "-c", "x" * LARGEST))
    with pytest.raises(UsageError, match=r"plan of 2 runs takes 4\.\d MiB; the limit is 4 MiB"):
        made(tmp_path / "out", (long,))
    assert not (tmp_path / "out").exists()


def test_notes_for_which_the_plan_has_no_room_leave_it_as_it_is(tmp_path: Path) -> None:
    folder = made(tmp_path)
    before = (folder / PLAN).read_text()
    study_folder.note(folder, {1: [Problem("c", "x" * LARGEST)]})
    assert (folder / PLAN).read_text() == before
    assert [path.name for path in folder.iterdir()] == [PLAN]


def test_a_plan_is_on_the_disk_before_it_has_its_name_and_its_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []
    fsync = os.fsync

    def seen(fd: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))
        names = sorted(each.name for each in path.iterdir()) if path.is_dir() else []
        flushed.append(f"{path.name}: {names}" if path.is_dir() else path.name)
        fsync(fd)

    monkeypatch.setattr(os, "fsync", seen)
    folder = made(tmp_path)
    assert re.fullmatch(rf"\.{PLAN}\.\d+", flushed.pop(0))
    assert flushed == [f"{folder.name}: {[PLAN]}", f"{tmp_path.name}: {[folder.name]}"]


def test_a_problem_is_told_with_the_run_that_it_is_of(tmp_path: Path) -> None:
    folder = made(tmp_path, TWO)
    study_folder.note(folder, {1: [Problem("c", "no python")]})
    study_folder.note(folder, {4: [MISSING]})
    first, second = study_folder.not_run(folder)
    assert first.text == "mnist-cnn in bare did not run: no python"
    assert second == study_folder.NotRun("gcn in docker=a/b:c", (MISSING,), 4)
    assert second.text == "gcn in docker=a/b:c did not run: there is no image x; docker pull x"


def test_a_problem_noted_twice_is_the_last_one_and_none_takes_it_back(tmp_path: Path) -> None:
    folder = made(tmp_path)
    study_folder.note(folder, {1: [Problem("a", "first")]})
    study_folder.note(folder, {1: [MISSING]})
    assert study_folder.not_run(folder) == [study_folder.NotRun("bare", (MISSING,), 1)]
    study_folder.note(folder, {1: []})
    assert study_folder.not_run(folder) == []


def test_noting_changes_nothing_else_of_the_plan_and_leaves_no_other_file(tmp_path: Path) -> None:
    folder = made(tmp_path, blocks=3)
    before = read(folder)
    study_folder.note(folder, {2: [MISSING]})
    assert before is not None
    assert read(folder) == replace(before, problems={2: (MISSING,)})
    assert [path.name for path in folder.iterdir()] == [PLAN]


def test_what_never_had_its_turn_is_noted_apart_from_what_ran_and_what_could_not(
    tmp_path: Path,
) -> None:
    folder = made(tmp_path, TWO)
    plan = read(folder)
    assert plan is not None
    (folder / plan.runs[0].file).write_text("a session")
    study_folder.note(folder, {2: [MISSING]})
    ended = Problem(study_folder.STUDY_ENDED, "the study was ended before its turn")
    study_folder.note_rest(folder, ended)
    assert [(each.index, each.problems[0]) for each in study_folder.not_run(folder)] == [
        (2, MISSING),
        (3, ended),
        (4, ended),
    ]


def test_a_plan_that_is_damaged_or_gone_is_left_as_it_is(tmp_path: Path) -> None:
    folder = made(tmp_path)
    for text in ("no json", "[]", "{}", '{"problems": 1}'):
        (folder / PLAN).write_text(text)
        study_folder.note(folder, {1: [MISSING]})
        study_folder.note_rest(folder, MISSING)
        assert (folder / PLAN).read_text() == text
        assert study_folder.not_run(folder) == []
    (folder / PLAN).unlink()
    study_folder.note(folder, {1: [MISSING]})
    assert study_folder.not_run(folder) == [] and not (folder / PLAN).exists()


def test_only_one_recorder_goes_through_a_study(tmp_path: Path) -> None:
    with (
        study_folder.held(tmp_path),
        pytest.raises(UsageError, match="another recorder"),
        study_folder.held(tmp_path),
    ):
        raise AssertionError("two recorders")
    with study_folder.held(tmp_path):
        pass


_HOLDS = """
import os, sys, threading
from pathlib import Path
from gpuwatch.session.study import study_folder
others = [os.open(os.devnull, os.O_RDONLY) for _ in range(64)]
def churn():
    while True:
        for fd in others:
            os.close(fd)
        others[:] = [os.open(os.devnull, os.O_RDONLY) for _ in others]
with study_folder.held(Path(sys.argv[1])):
    threading.Thread(target=churn, daemon=True).start()
    print("held", flush=True)
    sys.stdin.read()
"""


_OTHERS = """
import fcntl, tempfile
while True:
    files = [tempfile.TemporaryFile() for _ in range(150)]
    for file in files:
        fcntl.flock(file, fcntl.LOCK_SH)
    for file in files:
        file.close()
"""


def test_a_recorder_is_found_by_its_lock_while_files_and_locks_come_and_go(tmp_path: Path) -> None:
    folder = made(tmp_path)
    with (
        subprocess.Popen(
            [sys.executable, "-c", _HOLDS, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
        subprocess.Popen([sys.executable, "-c", _OTHERS]) as others,
    ):
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"held\n"
        recorder = identify(process.pid)
        study_folder.note(folder, {1: [MISSING]})  # the plan is another file from here on
        assert recorder is not None
        try:
            assert [study_folder.holder(folder) for _ in range(200)] == [recorder] * 200
        finally:
            others.kill()
            process.stdin.close()
    assert study_folder.holder(folder) is None


def test_a_session_that_broke_off_in_a_transaction_is_whole_before_it_gets_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "01-bare.gpuwatch"
    SessionStore.create(path, [], [meta("session", {"id": "before"})]).close()
    # A writer that dies in a transaction that is partly in the file.
    script = (
        "import os, sqlite3, sys\n"
        "it = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "it.execute('PRAGMA journal_mode=TRUNCATE')\n"
        "it.execute('PRAGMA cache_size=1')\n"
        "it.execute('BEGIN')\n"
        "it.execute(\"UPDATE meta SET value = '{}'\")\n"
        "for key in range(500):\n"
        "    it.execute('INSERT INTO meta VALUES (?, ?)', (str(key), '1' * 900))\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    journal = Path(f"{path}-journal")
    assert journal.stat().st_size > 0, "there is something to roll back"

    def crash(old: Path, new: Path) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "rename", crash)
        study_folder.set_aside(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == [path.name]
    kept = study_folder.set_aside(path)
    with SessionReader(kept) as reader:
        assert reader.meta() == {"session": {"id": "before"}}
    assert sorted(each.name for each in tmp_path.iterdir()) == [kept.name]


def test_a_session_set_aside_is_kept_and_is_none_of_the_study_any_more(tmp_path: Path) -> None:
    kept = []
    for text in ("first", "second"):
        path = tmp_path / "01-bare.gpuwatch"
        path.write_text(text)
        path.with_name(f"{path.name}-journal").write_text(f"journal of {text}")
        kept.append(study_folder.set_aside(path))
    assert study_folder.sessions_in(tmp_path) == []
    assert [each.read_text() for each in kept] == ["first", "second"]
    assert [Path(f"{each}-journal").read_text() for each in kept] == [
        "journal of first",
        "journal of second",
    ]
    assert len(list(tmp_path.iterdir())) == 4


def test_a_plan_that_a_killed_recorder_had_half_written_goes_with_the_next_one(
    tmp_path: Path,
) -> None:
    (tmp_path / ".plan.json.4711").write_text("{")
    with study_folder.held(tmp_path):
        assert list(tmp_path.iterdir()) == []
