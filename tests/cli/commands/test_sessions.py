"""``gpuwatch sessions``: a line for each study and each session of none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuwatch.cli import main

KEPT = Path(__file__).parents[2] / "data" / "kept-0.1.0"
ALONE = Path(__file__).parents[2] / "data" / "sessions"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The lines of ``gpuwatch sessions`` at so many columns."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def ask(*words: object, columns: int = 200) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["sessions", *map(str, words)]) == 0
        return capsys.readouterr().out.splitlines()

    return ask


def test_a_study_is_one_line_with_its_name_its_runs_and_what_it_says(said) -> None:
    head, killed, study = said(KEPT)
    assert head.split()[:2] == ["session", "status"]
    assert killed.startswith("killed") and "ended: 1 lost of 4" in killed
    assert study.startswith("kept study  4 finished") and "bare#1, bare#2" in study
    assert "bare#2: step time +0.0 % against bare#1" in study
    assert str(KEPT) not in "".join([head, killed, study])


def test_each_run_and_each_file_is_there_where_it_is_asked_for(said) -> None:
    _, *runs = said(KEPT, "--runs")
    assert len(runs) == 5 and all(" ms/step" in line for line in runs)
    _, *runs = said(KEPT, "--runs", "--paths", columns=80)
    files = {line.split()[-1] for line in runs}
    assert files == {str(path) for path in KEPT.glob("*/*.gpuwatch")}
    _, killed, study = said(KEPT, "--paths", columns=80)
    assert killed.endswith(str(KEPT / "killed")) and study.endswith(str(KEPT / "study"))


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_the_result_stays(said, columns: int) -> None:
    lines = said(KEPT, ALONE, "--runs", columns=columns)
    assert max(map(len, lines)) <= columns
    if columns >= 80:
        assert all("ms/step" in line for line in lines[1:])


def test_json_lists_sessions_and_studies_as_before(said) -> None:
    found = json.loads("\n".join(said(KEPT, "--format", "json")))
    assert len(found["sessions"]) == 5 and len(found["studies"]) == 2
