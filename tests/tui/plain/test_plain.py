"""``--plain``: one line of text per interval, for screen readers and pipes."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.summary.listing import listing
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.cli import main
from gpuwatch.core.errors import NotASession
from gpuwatch.core.units import quantity
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.snapshot import Alert
from gpuwatch.tui.plain import plain
from gpuwatch.tui.plain.plain import warning_lines
from tests.conftest import Cli
from tests.terminal import Pty, surroundings

from ..conftest import ROOT
from ..hostile import EVERYTHING, fields, not_shown, poison
from ..live.test_ranks import options
from ..sessions import finished
from ..snapshots_of import snapshot_of
from ..test_imports import loaded_by

pytestmark = pytest.mark.usefixtures("programs")

Make = Callable[..., Path]
STEPS = [sys.executable, str(ROOT / "tests" / "cli" / "steps.py")]
GPUWATCH = [sys.executable, "-m", "gpuwatch"]
MARKS = frozenset("▶✓✗■…»→↑↓━─╸█▁—≤●◆")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Environment variables with a temporary home folder."""
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    kept = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
    return {**kept, "HOME": str(tmp_path), "PYTHONPATH": paths}


@pytest.fixture
def started(home: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts gpuwatch with a pipe for its output, and ends it and its runs."""
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*GPUWATCH, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=home,
            cwd=tmp_path,
        )
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()
    subprocess.run([*GPUWATCH, "stop", "--all"], env=home, capture_output=True, check=False)


def lines_until(process: subprocess.Popen[str], text: str) -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if text in line:
            return lines
    raise AssertionError(f"no {text!r} in {lines}")


def replayed(path: Path, interval: float | None = None) -> list[str]:
    lines: list[str] = []
    assert plain.replay(path, interval, say=lines.append) == 0
    return lines


def test_a_replay_tells_each_interval_of_the_session_and_how_it_ended(session: Make) -> None:
    path = session(meta=finished(), alive=False, bandwidth_measured=True)
    lines = replayed(path, 30)
    assert lines[0] == "mnist-cnn in bare"
    assert [line.split()[0] for line in lines[1:4]] == ["0:30", "1:00", "1:30"]
    assert "running" in lines[1] and "finished" in lines[3]
    for words in ("of 40,000", "samples per second", "median step", "TB/s (measured)"):
        assert words in lines[1]
    assert "TFLOP/s (counted)" in lines[1]
    assert "GPU 0 71 %, memory 36.3 GiB of 80.0 GiB, 478 of 700 W, 57 °C" in lines[1]
    assert "; means of the timed steps: " in lines[3]
    assert not any("means" in line for line in lines[1:3])
    with SessionReader(path) as reader:
        rate = summarise(reader).metrics["gpuwatch.flop.rate"].mean
    assert f"model {quantity(rate, 'FLOP/s')} (counted); GPU 0 " in lines[3], "as in show"
    assert "the run is over after 1:30: finished" in lines


def test_the_end_of_a_run_that_failed_has_its_cause(session: Make) -> None:
    error = {"message": "shape mismatch: 3 vs 4", "hint": "look at the model"}
    lines = replayed(session(meta={**finished(1), "error": error}, alive=False))
    at = lines.index("the run is over after 1:30: shape mismatch: 3 vs 4")
    assert lines[at + 1] == "Fix: look at the model"


def test_a_run_of_several_processes_tells_how_many_and_who_is_slow(session: Make) -> None:
    assert (
        " finished, 4 ranks (slowest 2, +12 %, SM clock), step"
        in replayed(session(**options(), meta=finished(), alive=False))[-2]
    )


def test_a_run_without_steps_tells_its_own_use_first(session: Make) -> None:
    options = {"steps": False, "alive": False}
    line = replayed(session(meta=finished(), **options), 30)[-2]
    assert "; over the whole run: program 1.70 cores, peak memory 2.40 GiB; GPU 0 " in line
    assert "; host CPU 34 %, peak memory 41.5 GiB of 128 GiB" in line


def test_of_a_run_too_short_for_a_mean_the_peaks_are_told(session: Make) -> None:
    short = session(meta=finished(seconds=0.1), gpus=0, steps=False, alive=False, seconds=0.1)
    line = replayed(short, 30)[-2]
    assert "; host peak memory 41.5 GiB of 128 GiB" in line and "CPU" not in line


def test_an_interval_that_nobody_named_makes_a_page_of_lines(session: Make) -> None:
    assert 5 <= len(replayed(session(meta=finished(), alive=False))) <= 40


def test_of_several_gpus_it_says_whose_a_figure_is_and_of_unused_ones_how_many(
    session: Make,
) -> None:
    given = {"meta": finished(), "alive": False, "bandwidth_measured": True, "gpus": 3}
    path = session("all", **given)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE device SET used = 1 WHERE kind = 'gpu'")
    *_, line = [each for each in replayed(path, 30) if "running" in each]
    assert "GPU 0 memory bandwidth " in line and "GPU 0 model" not in line
    assert "GPU 2 " in line and "not of the run" not in line
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE device SET used = id = 'gpu1' WHERE kind = 'gpu'")
    *_, line = [each for each in replayed(path, 30) if "running" in each]
    assert "; memory bandwidth " in line and "; GPU 1 " in line and "GPU 0" not in line
    assert line.endswith("; 2 GPUs not of the run")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE device SET used = 0 WHERE kind = 'gpu'")
    *_, line = [each for each in replayed(path, 30) if "running" in each]
    assert line.endswith("; 3 GPUs not of the run") and "GPU 0" not in line


def test_at_the_end_no_figure_is_of_gpus_that_are_not_known_to_be_the_runs(session: Make) -> None:
    path = session(meta=finished(), alive=False, bandwidth_measured=True, gpus_unknown=True)
    *_, before, line, _ = replayed(path, 30)
    assert "; GPU 0 " in before and "memory bandwidth" in before, "it may be the run's"
    assert line.endswith("; 1 GPU not known to be the run's")
    assert "GPU 0" not in line and "bandwidth" not in line and "FLOP/s (counted)" in line


def test_on_a_terminal_lines_are_broken_at_spaces(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    told = [" ".join(line.split()) for line in replayed(path, 30)]
    command = [*GPUWATCH, "replay", "--plain", "--interval", "30", str(path)]
    with closing(Pty(command, (60, 24))) as terminal:
        assert terminal.end() == 0
        lines = terminal.text().splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(" ".join(lines).split()) == " ".join(told)


def test_the_last_lines_of_a_program_that_failed_are_told(cli: Cli) -> None:
    program = "import sys; [print(n, file=sys.stderr) for n in range(30)]; sys.exit(3)"
    done = cli("run", "--plain", "--hook", "off", sys.executable, "-c", program, code=1)
    told = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ")]
    assert told == [str(n) for n in range(20, 30)]


def test_no_mark_stands_for_a_word_and_no_unknown_number_is_told(session: Make) -> None:
    nothing = {"count": False, "power_unavailable": True, "throttled": True}
    lines = replayed(session(meta=finished(1), alive=False, **nothing), 30)
    text = "\n".join(lines)
    assert not MARKS & set(text) and "None" not in text
    assert "0 W" not in text and "FLOP" not in text and "unavailable" not in text


def test_hostile_text_is_told_as_text(session: Make) -> None:
    lines = replayed(poison(session(**fields(EVERYTHING)), EVERYTHING), 30)
    assert not not_shown("".join(lines))
    assert all("\n" not in line for line in lines)


def test_where_nothing_can_be_recorded_a_warning_says_why_and_lines_are_few(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session()
    os.utime(path, (0, 0))
    disk = os.statvfs_result((4096, 4096, 9000, 4, 4, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _folder: disk)
    found = snapshot_of(path)
    text = f"nothing can be recorded: the disk of {path.parent} is full; free some space"
    assert warning_lines(found.alerts, ())[0] == f"warning: {text}"
    assert plain.pause(found, 1.0) == plain.INTERVAL_SECONDS and plain.pause(found, 60.0) == 60.0
    assert plain.pause(replace(found, silent_seconds=None), 1.0) == 1.0
    with SessionReader(path) as reader:
        assert listing(reader).failure == text


@pytest.mark.parametrize(("meta", "code"), [(finished(), 0), (finished(3), 1), ({}, 1)])
def test_who_watches_a_run_to_its_end_has_its_exit_code(
    session: Make, meta: dict[str, Any], code: int
) -> None:
    path = session(meta=meta, alive=False)
    (path.parent / "other.gpuwatch").write_text("garbage")
    assert main(["attach", "--plain", str(path)]) == code


def test_what_is_no_session_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.gpuwatch"
    path.write_text("nothing")
    for tell in (plain.replay, plain.watch):
        with pytest.raises(NotASession):
            tell(path)


def test_it_loads_no_screen() -> None:
    assert not [
        name for name in loaded_by("gpuwatch.tui.plain.plain") if name.startswith("textual")
    ]


def test_a_run_is_told_to_its_end_through_a_pipe(
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    process = started("run", "--plain", "--", *STEPS, "20", "0.05")
    out, _ = process.communicate(timeout=60)
    lines = out.splitlines()
    assert process.returncode == 0 and "\x1b" not in out
    assert lines[0] == "steps.py in bare"
    assert any("finished, step 20 of 20" in line for line in lines)
    assert any(line.startswith("the run is over after") for line in lines)
    summary = next(line for line in lines if line.startswith("summary: "))
    assert Path(summary.removeprefix("summary: ")).exists()


def test_the_interval_of_a_run_is_also_that_of_its_lines(
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    process = started("run", "--plain", "--interval", "1", "--", *STEPS, "100", "0.05")
    out, _ = process.communicate(timeout=60)
    assert sum(" running" in line for line in out.splitlines()) > 2, "it takes five seconds"


def test_all_runs_of_a_study_are_told_one_after_the_other(
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    study = ("--env", "bare", "--env", "bare", "--blocks", "1", "--cool-down", "0")
    process = started("run", "--plain", *study, "--", *STEPS, "40", "0.05")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    first, *_, last = re.findall(r"^steps.py in bare#[12], (run .*)", out, re.MULTILINE)
    assert first == "run 1 of 4 (warm-up block)"
    assert last == "run 4 of 4 (block 1 of 1); under 10 s left"
    assert out.count(", run ") == 4 and "4 runs: 4 finished" in out


def test_ctrl_c_leaves_the_run_going_and_says_how_to_come_back(
    started: Callable[..., subprocess.Popen[str]], home: dict[str, str]
) -> None:
    process = started("run", "--plain", "--", *STEPS, "100000", "0.05")
    lines_until(process, "running")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the run goes on" in out and "come back: gpuwatch attach" in out
    again = started("attach", "--plain", "--interval", "0.2")
    assert lines_until(again, "step ")[0] == "steps.py in bare"


def test_a_reader_that_has_seen_enough_ends_it_without_a_word(
    home: dict[str, str], session: Make
) -> None:
    path = session(meta=finished(), alive=False)
    both = f"{' '.join(GPUWATCH)} replay --plain --interval 1 '{path}' | head -1"
    done = subprocess.run(["sh", "-c", both], env=home, capture_output=True, text=True, check=False)
    assert done.stdout == "mnist-cnn in bare\n" and done.stderr == ""


def test_the_devices_are_told_until_ctrl_c(started: Callable[..., subprocess.Popen[str]]) -> None:
    process = started("--plain", "--interval", "0.2")
    lines = lines_until(process, "CPU ")
    assert lines[0].startswith(("cpu: ", "gpu0: "))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.mark.parametrize("arguments", [["--plain"], ["sessions"], ["run", "--plain", "--", "true"]])
def test_where_standard_output_is_closed_nothing_is_begun(
    home: dict[str, str], tmp_path: Path, arguments: list[str]
) -> None:
    command = ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *GPUWATCH, *arguments]
    done = subprocess.run(command, env=home, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("gpuwatch: error: standard output is closed; send it to")
    assert not list(tmp_path.rglob("*.gpuwatch"))


def test_a_terminal_that_cannot_place_text_is_offered_lines_of_words(session: Make) -> None:
    path = session(meta=finished(), alive=False)
    for option, code, text in (([], 2, "gpuwatch replay --plain"), (["--plain"], 0, "over after")):
        command = [*GPUWATCH, "replay", *option, str(path)]
        with closing(Pty(command, environment=surroundings(TERM="dumb"))) as terminal:
            terminal.wait(text)
            assert terminal.end() == code and "\x1b" not in terminal.text()


def test_a_comparison_is_its_report_on_a_terminal_too(session: Make) -> None:
    paths = [str(session(f"0{n}", meta=finished(), alive=False, start=100 * n)) for n in (1, 2)]
    with closing(Pty([*GPUWATCH, "compare", "--plain", *paths])) as terminal:
        terminal.wait("step time, typical")
        assert terminal.end() == 0 and "\x1b" not in terminal.text()


def test_a_warning_is_told_once_while_its_numbers_move_and_again_after_it_went_away() -> None:
    first = Alert("memory", "gpu0", "GPU 0: 1.20 GiB of 80.0 GiB memory is free")
    later = Alert("memory", "gpu0", "GPU 0: 1.10 GiB of 80.0 GiB memory is free")
    other = Alert("memory", "gpu1", "GPU 1: 1.10 GiB of 80.0 GiB memory is free")
    assert warning_lines([first], []) == [f"warning: {first.text}"]
    assert warning_lines([later, other], [first]) == [f"warning: {other.text}"]
    assert warning_lines([later], [other]) == [f"warning: {later.text}"]
