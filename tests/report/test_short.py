"""What a command says when a run is over: a few lines, and where the rest is."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.analysis.read import read_study
from gpuwatch.report import study_text

from ..tui.sessions import Script, finished, write


def test_a_single_run_is_said_in_a_dozen_lines(tmp_path: Path) -> None:
    write(tmp_path / "01-bare.gpuwatch", Script(meta=finished(), alive=False))
    lines = study_text.terminal(read_study(tmp_path), short=True).splitlines()
    assert lines[0] == "01-bare: finished" and len(lines) <= 10
    assert any(line.startswith("step time, median") for line in lines)


def test_two_single_runs_stand_beside_each_other_under_the_answer(tmp_path: Path) -> None:
    for at, name in enumerate(("bare", "docker"), 1):
        script = Script(environment=name, meta=finished(), alive=False)
        write(tmp_path / f"0{at}-{name}.gpuwatch", script)
    lines = study_text.terminal(read_study(tmp_path), short=True).splitlines()
    assert lines[0].startswith("DESCRIBED") and len(lines) <= 14
    assert any("x1.000" in line for line in lines)


def test_a_failed_run_without_figures_says_how_it_ended(tmp_path: Path) -> None:
    script = Script(meta=finished(1), alive=False, steps=False, gpus=0)
    write(tmp_path / "01-bare.gpuwatch", script)
    assert "exit code 1" in study_text.terminal(read_study(tmp_path), short=True)
