"""A disk that takes no more for a while, or to the end: what was recorded stays, and is whole."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from gpuwatch.session.study.plan import read
from gpuwatch.session.writing.write_hints import write_hint
from tests.conftest import Cli
from tests.disks import mounted
from tests.session.samples import step_numbers
from tests.waiting import until

from .aftermath import complete, kept, left_behind, nothing_left, sessions, stepping, workload
from .environments import goes_on, whole
from .preload import Preload
from .table import Row
from .test_taken_up import until_told


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "size=600k") as folder:
        yield folder


def fill(disk: Path) -> Path:
    """Take all the room there is; the file that does."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * size)
    return filler


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


def steps(path: Path) -> list[int]:
    with SessionReader(path) as reader:
        return step_numbers(reader)


def test_a_study_whose_disk_is_full_ends_and_is_completed_once_there_is_room(
    cli: Cli, disk: Path, tmp_path: Path
) -> None:
    work = ("--", *until_told("disk", tmp_path, 60))
    study = cli.start("--record", "--env", "bare", "--env", "bare", "--out", disk, *work)
    until(lambda: sessions(disk) and steps(sessions(disk)[0]))
    filler = fill(disk)
    (tmp_path / "go").touch()
    _, output = study.communicate(timeout=60)
    (path,) = sessions(disk)
    folder = path.parent
    resume = f"gpuwatch resume {folder.name}"
    assert study.returncode == 1, output
    assert f"the study ends here; free some space, then {resume}" in output

    again = cli("resume", folder, code=2).stderr
    assert f"{path.name} is over but still not saved; free some space, then {resume}" in again
    remount(disk, "ro")
    again = cli("resume", folder, code=2).stderr
    assert f"make {path} writable, then {resume}" in again and "free some" not in again
    assert sessions(disk) == [path], "it is neither set aside nor run again"

    remount(disk, "rw")
    filler.unlink()
    assert f"took over {path}" in cli("resume", "--quiet", folder).stderr
    assert [steps(each) for each in sessions(disk)] == [list(range(1, 61))] * 2
    plan = read(folder)
    assert plan is not None and plan.problems == {}
    assert not list(folder.glob("*.lost-*"))


def test_a_study_that_cannot_begin_a_session_notes_the_rest_as_not_run(
    cli: Cli, disk: Path, tmp_path: Path
) -> None:
    cli.variables["XDG_STATE_HOME"] = str(disk)
    fill(disk)
    out = tmp_path / "out"
    cli("--record", "--env", "bare", "--env", "bare", "--out", out, "--", "true", code=1)
    (folder,) = out.iterdir()
    plan = read(folder)
    assert plan is not None and sorted(plan.problems) == [1, 2]
    for (problem,) in plan.problems.values():
        assert "No space left on device" in problem.text
        assert problem.hint is not None and problem.hint.endswith(f"gpuwatch resume {folder.name}")
    assert "No space left on device" in (folder / "summary.md").read_text()


def test_a_folder_that_is_read_only_is_not_told_to_have_no_space(cli: Cli, disk: Path) -> None:
    assert write_hint(disk / "a" / "b") == "free some space"
    remount(disk, "ro")
    assert write_hint(disk / "a" / "b") == f"make {disk} writable"
    output = cli("--record", "--out", disk / "out", "--", "true", code=2).stderr
    assert f"Read-only file system; choose another folder with --out, or make {disk}" in output


FAULTS = {
    "quota reached (EDQUOT, by the C library)": errno.EDQUOT,
    "disk full": None,
    "disk read-only after an error (EROFS, by the C library)": errno.EROFS,
    "disk that fails (EIO, by the C library)": errno.EIO,
}
"""With what the C library gives a recorder for each write, where the file system cannot: many
kernels have no quotas, and none makes a file system read-only that is open for writing."""


def test_what_could_not_be_written_for_a_while_is_written_then(
    cli: Cli,
    disk: Path,
    tmp_path: Path,
    times: Callable[[int, int], int],
    note_fault: Callable[[Row], None],
) -> None:
    tried, go = times(1, 5), tmp_path / "go"
    for fault, number in list(FAULTS.items())[: times(2, 4)]:
        preload = Preload(cli, tmp_path)
        for time_ in range(tried):
            out = (disk if number is None else tmp_path) / f"out-{number}-{time_}"
            recorder = cli.start(
                *("--record", "--interval", "0.1", "--out", out),
                *("--", *goes_on("disk", tmp_path, 100)),
            )
            path = stepping(out)
            assert recorder.stderr is not None
            with _fault(disk, preload, number):
                said = next(line for line in recorder.stderr if "cannot write" in line).strip()
                assert str(path) in said
            go.touch()
            _, rest = recorder.communicate(timeout=120)
            assert recorder.returncode == 0, rest
            nothing_left(cli, out)
            go.unlink()
            found = kept(path)
            whole(found, 100)
            (text,) = [text for kind, text in found.events if kind == "storage"]
            assert "could not be written for" in text
            assert (path.parent / "summary.md").exists()
            shutil.rmtree(out)
        said = said.replace(str(path), "SESSION").removeprefix("gpuwatch: ")
        row = f"{fault} while recording, then fixed"
        note_fault(
            Row("disk", row, tried, "nothing", "nothing", f"{said}; the event: {_without(text)}")
        )


@contextlib.contextmanager
def _fault(disk: Path, preload: Preload, number: int | None) -> Iterator[None]:
    if number is not None:
        preload.fail(number)
        yield
        preload.fail()
    else:
        filler = fill(disk)
        yield
        filler.unlink()


def test_a_folder_that_may_not_be_entered_any_more_costs_the_summary_alone(
    cli: Cli, tmp_path: Path, note_fault: Callable[[Row], None]
) -> None:
    out, work = tmp_path / "out", goes_on("disk", tmp_path, 100)
    recorder = _without_overriding(cli, "--record", "--out", out, "--", *work)
    path = stepping(out)
    path.parent.chmod(0)
    (tmp_path / "go").touch()
    _, said = recorder.communicate(timeout=120)
    path.parent.chmod(0o700)
    assert recorder.returncode == 0 and "Traceback" not in said
    why = f"cannot read {path.parent}: Permission denied; chmod u+rwx {path.parent}"
    later = f"gpuwatch report {path.parent}"
    assert f"gpuwatch: the summary was not written: {why}; later: {later}\n" in said
    found = kept(path)
    whole(found, 100)
    assert (found.status.state, found.status.exit_code) == (State.FINISHED, 0)
    assert left_behind(cli, out) == [f"file {path.name}-journal"]
    cli("report", path.parent)
    assert (path.parent / "summary.md").exists()
    text = why.replace(str(path.parent), "STUDY")
    left = "an empty journal; the summary is missing until `gpuwatch report STUDY`"
    note_fault(Row("disk", "folder closed (mode 000) while recording", 1, "nothing", left, text))


def _without_overriding(cli: Cli, *arguments: object) -> subprocess.Popen[str]:
    """Root may enter every folder: a recorder that may not, as those of others."""
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    return subprocess.Popen(
        [*(prefix if os.geteuid() == 0 else []), *cli.argv(*arguments)],
        env=cli.env,
        cwd=cli.home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _without(text: str) -> str:
    """An event's text without the path and the time of this machine."""
    return text.partition(" for ")[0] + " for ... s: ..."


def test_output_that_a_full_disk_could_not_take_is_told(
    cli: Cli, disk: Path, tmp_path: Path, note_fault: Callable[[Row], None]
) -> None:
    out, state = tmp_path / "out", disk
    cli.variables["XDG_STATE_HOME"] = str(state)
    recorder = cli.start("--record", "--quiet", "--out", out, *workload(10**6, 0.01))
    path = stepping(out)
    filler = fill(disk)
    reached = kept(path).steps[-1]
    # The spool is drained and cannot grow: from some step on nothing comes any more.
    until(lambda: kept(path).steps[-1] > reached)
    standing = _stands(path)
    filler.unlink()
    until(lambda: kept(path).steps[-1] > standing)
    cli("stop", path)
    _, said = recorder.communicate(timeout=120)
    assert recorder.returncode == 0, said
    found = kept(path)
    assert found.steps == sorted(set(found.steps))
    lost = found.steps[-1] - len(found.steps)
    events = [text for kind, text in found.events if kind == "output-lost"]
    assert lost == 0 or events
    assert found.status.state is State.STOPPED
    text = events[-1] if events else "nothing"
    kept_ = f"{lost} of {found.steps[-1]} steps, while the disk was full" if lost else "nothing"
    note_fault(
        Row(
            "disk",
            "disk of the runs' folders full while a workload prints",
            1,
            kept_,
            "nothing",
            text,
        )
    )


def _stands(path: Path) -> int:
    """Wait until no step comes in the time of many; the last one."""
    last = -1
    while (now := kept(path).steps[-1]) != last:
        last = now
        time.sleep(0.7)  # nothing tells that nothing comes
    return last


def test_a_run_whose_session_has_no_room_leaves_no_folder(cli: Cli, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=24k") as disk:
        said = cli("--record", "--out", disk, "--", "true", code=2).stderr
        assert "is full; free some space" in said and said.count("\n") == 1
        assert list(disk.iterdir()) == []


def test_a_disk_that_is_full_at_the_start_or_for_the_summary_is_one_line(
    cli: Cli, disk: Path, note_fault: Callable[[Row], None]
) -> None:
    cli("--record", "--quiet", "--out", disk / "out", *workload(20, 0.01))
    (path,) = sessions(disk / "out")
    summary = (path.parent / "summary.md").read_bytes()
    filler = fill(disk)
    report = cli("report", path.parent, code=2).stderr
    assert "cannot write the summary" in report and "No space left on device" in report
    assert f"free some space, then: gpuwatch report {path.parent}" in report
    start = cli("--record", "--out", disk / "out2", "--", "true", code=2).stderr
    assert "No space left on device" in start and "free some space" in start
    assert (path.parent / "summary.md").read_bytes() == summary, "the old one is whole"
    remount(disk, "ro")
    only = cli("report", path.parent, code=2).stderr
    assert f"make {path.parent} writable, then: gpuwatch report" in only
    remount(disk, "rw")
    filler.unlink()
    nothing_left(cli, disk / "out")
    complete(kept(path), 20)
    for fault, said in (("at the start", start), ("while the summary is written", report)):
        text = said.replace(str(path.parent), "STUDY").replace(str(disk / "out2"), "FOLDER")
        text = text.strip().removeprefix("gpuwatch: error: ")
        note_fault(Row("disk", f"disk full {fault}", 1, "nothing", "nothing", text))
    text = only.replace(str(path.parent), "STUDY").strip().removeprefix("gpuwatch: error: ")
    note_fault(
        Row("disk", "disk read-only, while the summary is written", 1, "nothing", "nothing", text)
    )
