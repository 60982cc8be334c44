"""Two recorders at once: on one folder, on one run, on one study. Nothing is recorded twice."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.waiting import until

from .aftermath import PATIENCE, complete, kept, nothing_left, running, sessions, stepping, workload
from .environments import python, words
from .table import Row
from .test_taken_up import until_told

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]


def ended(*processes: subprocess.Popen[str]) -> list[tuple[int, str]]:
    """Exit code and standard error of each, once all have ended."""
    found = []
    for process in processes:
        _, said = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in said, said
        found.append((process.returncode, said.strip()))
    return found


def test_recorders_that_begin_at_once_in_one_folder_have_a_study_each(
    cli: Cli, tmp_path: Path, note_fault: NoteFault, times: Times
) -> None:
    out, count = tmp_path / "out", times(3, 20)
    begun = [
        cli.start("--record", "--quiet", "--out", out, *workload(20, 0.01)) for _ in range(count)
    ]
    assert [code for code, _ in ended(*begun)] == [0] * count
    assert len(sessions(out)) == count
    assert len({path.parent for path in sessions(out)}) == count
    for path in sessions(out):
        complete(kept(path), 20)
        assert (path.parent / "summary.json").exists()
    left = nothing_left(cli, out)
    note_fault(Row("folder", "recorders begin at once in one folder", count, "nothing", left, "-"))


@pytest.fixture
def lost(cli: Cli, tmp_path: Path, mark: str) -> Callable[[str, int], Path]:
    """Make a session whose recorder was killed before its workload's end, which it did not see."""

    def make(name: str, steps: int) -> Path:
        # Not before the recorder is dead does the workload go beyond its first step.
        killed = tmp_path / f"{name}-killed"
        body = (
            f"step(1)\nwhile not os.path.exists({str(killed)!r}): time.sleep(0.01)\n"
            f"for number in range(2, {steps} + 1): time.sleep(0.01); step(number)\nsys.exit(7)"
        )
        recorder = cli.start(
            "--record", "--quiet", "--interval", "0.1", "--out", tmp_path / name,
            "--", *python(mark, body),
        )  # fmt: skip
        path = stepping(tmp_path / name)
        recorder.kill()
        recorder.communicate()
        killed.touch()
        return path

    return make


def test_of_recorders_that_take_up_one_run_at_once_one_records(
    cli: Cli, tmp_path: Path, note_fault: NoteFault, times: Times, lost: Callable[[str, int], Path]
) -> None:
    tried, refusals = times(2, 20), []
    for number in range(tried):
        # In every other try the run is over, or nearly so, when they come.
        steps = 300 if number % 2 == 0 else 30
        path = lost(f"out{number}", steps)
        codes = ended(*(cli.start("attach", "--record", path) for _ in range(3)))
        took = [said for code, said in codes if code == 1 and "took over" in said]
        assert len(took) == 1, codes
        refused = [said for _, said in codes if said not in took]
        assert len(refused) == 2 and all(said.startswith("gpuwatch: error: ") for said in refused)
        refusals += refused
        found = kept(path)
        complete(found, steps)
        assert (found.status.state, found.status.exit_code) == (State.FAILED, 7)
        assert found.kinds.count("resumed") == 1
        assert nothing_left(cli, tmp_path / f"out{number}") == "nothing"
    said = sorted({words(text) for text in refusals})
    note_fault(
        Row("folder", "three take up one run", tried, "nothing", "nothing", " / ".join(said))
    )


def test_a_run_that_has_its_recorder_gets_no_second_one(
    cli: Cli, tmp_path: Path, note_fault: NoteFault
) -> None:
    program = until_told("has its recorder", tmp_path, 100)
    recorder = cli.start("--record", "--quiet", "--out", tmp_path / "out", "--", *program)
    path = stepping(tmp_path / "out")
    said = cli("attach", "--record", path, code=2).stderr.strip()
    assert "needs no recorder" in said
    said += " / " + cli("resume", path.parent, code=None).stderr.strip()
    (tmp_path / "go").touch()
    assert ended(recorder)[0][0] == 0
    complete(kept(path), 100)
    assert "resumed" not in kept(path).kinds
    left = nothing_left(cli, tmp_path / "out")
    note_fault(
        Row("folder", "a second recorder for a run that has one", 2, "nothing", left, words(said))
    )


def test_a_study_that_is_resumed_twice_at_once_is_done_once(
    cli: Cli, tmp_path: Path, note_fault: NoteFault
) -> None:
    out = tmp_path / "out"
    recorder = cli.start(
        "--record", "--quiet", "--out", out, "--env", "bare", "--env", "bare", "--env", "bare",
        "--", *until_told("resumed", tmp_path, 30),
    )  # fmt: skip
    first = stepping(out)
    recorder.kill()
    recorder.communicate()
    (tmp_path / "go").touch()
    until(lambda: not running(cli))  # while the workload goes on, all three would be refused
    codes = ended(*(cli.start("resume", "--quiet", first.parent) for _ in range(3)))
    refused = [said for code, said in codes if code]
    assert len(refused) == 2 and [code for code, _ in codes].count(0) == 1
    assert len(sessions(out)) == 3
    for path in sessions(out):
        complete(kept(path), 30)
    left = nothing_left(cli, out)
    text = " / ".join(sorted({words(said) for said in refused}))
    note_fault(Row("folder", "three resume one study", 1, "nothing", left, text))
