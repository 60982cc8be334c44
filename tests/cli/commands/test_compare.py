"""compare and report: from files to a verdict, in every format, and what goes wrong by name."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.cli import main
from gpuwatch.session import schema
from tests.analysis import recorded_studies as studies
from tests.analysis import sessions
from tests.analysis.recorded_studies import APPTAINER, BARE, DOCKER, blocks_of

EFFECTS = {"bare": 1.0, "docker=image": 1.0003, "apptainer=image": 1.031}
FILES = ("summary.json", "summary.md", "summary.csv", "summary.html", "roofline.svg")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bare, Docker and Apptainer in seven blocks."""
    folder = tmp_path_factory.mktemp("studies") / "a-study"
    studies.recorded(folder, [blocks_of(7, BARE, DOCKER, APPTAINER)], EFFECTS)
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """Two runs of one workload, the second half as fast."""
    first = studies.run(tmp_path / "a.gpuwatch", 0.5)
    second = studies.run(tmp_path / "b.gpuwatch", 1.0, label="docker", start=studies.START + 1000)
    return [str(first), str(second)]


def said(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    """Standard output of the command; of a command that fails its one line of error."""
    assert main([str(each) for each in arguments]) == code
    out, err = capsys.readouterr()
    if code:
        assert out == "" and err.startswith("gpuwatch: error: ") and err.count("\n") == 1
        return err
    return out


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    return json.loads(said(capsys, "compare", *arguments, "--format", "json"))


def kinds(found: Any) -> list[str]:
    return [
        contrast["verdict"]["kind"]
        for question in found["questions"]
        for contrast in question["contrasts"]
    ]


def test_a_study_alone_is_compared_in_its_own_blocks(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(capsys, study)
    assert kinds(found) == ["same", "slower"]
    verdicts = [each["verdict"] for each in found["questions"][0]["contrasts"]]
    assert all(each["paired"] and each["pairs"] == 7 for each in verdicts)
    assert found["plan"]["seed"] == 7 and len(found["sessions"]) == 24


def test_last_alone_is_the_study_of_the_last_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "gpuwatch" / "studies" / "a-study"
    folder.parent.mkdir(parents=True)
    studies.recorded(folder, [blocks_of(2, BARE, DOCKER)], EFFECTS)
    assert len(compared(capsys, "last")["sessions"]) == len(compared(capsys, "a-study")["sessions"])
    shown = said(capsys, "show")
    assert shown.endswith("\nall figures: gpuwatch show --all 06-docke\n"), "not another last one"


def test_the_answer_comes_first_and_fits(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "compare", study).split("\n")
    assert any(line.startswith("SAME ") for line in lines[:14])
    assert any(line.startswith("SLOWER ") for line in lines[:14])
    assert max(map(len, lines)) <= 80 and lines[-2] == "all figures: add --all"


def test_a_wider_margin_changes_the_verdict_and_not_the_numbers(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow, wide = compared(capsys, study), compared(capsys, study, "--margin", "5%")
    assert kinds(wide)[1] in ("same", "small") and kinds(narrow)[1] == "slower"
    changes = [
        found["questions"][0]["contrasts"][1]["verdict"]["estimate"] for found in (narrow, wide)
    ]
    assert changes[0] == changes[1]


def test_two_studies_are_groups_that_nothing_pairs(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "b-study"
    later = {at: {"start": studies.START + 1e5 + 1000 * at} for at in range(1, 9)}
    studies.recorded(other, [blocks_of(7, BARE)], {"bare": 1.1}, options=later)
    found = compared(capsys, study, other)
    verdicts = [
        each["verdict"]
        for question in found["questions"]
        for each in question["contrasts"]
        if question["cells"][each["other"]]["label"].startswith("bare")
    ]
    assert [each["kind"] for each in verdicts] == ["slower"]
    assert all(not each["paired"] for each in verdicts)


def test_one_run_each_has_no_verdict(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert kinds(compared(capsys, *pair)) == ["described"]
    text = said(capsys, "compare", *pair)
    assert "NO VERDICT" in text.split("\n")[0] and "+100.0 %" in text


@pytest.mark.parametrize("order", [1, -1])
def test_swapping_the_baseline_inverts_the_ratio(
    pair: list[str], capsys: pytest.CaptureFixture[str], order: int
) -> None:
    found = compared(capsys, *pair[::order])
    (row,) = [row for row in found["rows"] if row["name"] == "step time, median"]
    assert row["ratios"] == [1.0, 2.0**order]


def test_another_gpu_is_no_comparison_unless_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = studies.run(tmp_path / "a.gpuwatch", 0.5)
    second = studies.run(
        tmp_path / "b.gpuwatch",
        1.0,
        start=studies.START + 1000,
        devices=(sessions.OTHER_GPU, sessions.CPU),
    )
    found = compared(capsys, first, second)
    assert kinds(found) == ["invalid"]
    reasons = " ".join(found["questions"][0]["contrasts"][0]["verdict"]["reasons"])
    assert "GPU-1" in reasons and "GPU-2" in reasons
    text = said(capsys, "compare", first, second)
    assert "+100.0 %" in text and "worse" not in text, "described, and not judged"
    assert kinds(compared(capsys, first, second, "--across-devices")) == ["described"]


@pytest.mark.parametrize("form", ["json", "md", "csv", "html", "table"])
def test_every_format_says_the_same_runs(
    study: Path, pair: list[str], capsys: pytest.CaptureFixture[str], form: str
) -> None:
    of_study = said(capsys, "compare", study, "--format", form)
    assert "docker=image" in of_study.replace("\\", "")
    of_pair = said(capsys, "compare", *pair, "--format", form)
    assert "docker" in of_pair and "step time" in of_pair
    every = said(capsys, "compare", "--all", study, "--format", form)
    assert said(capsys, "report", study, "--format", form) == every
    assert (every == of_study) is (form != "table"), "the table is of what differs"


def test_report_writes_every_file_and_leaves_nothing_else(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(study)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{study / 'summary.html'}\n"
    assert all(each in printed.err for each in set(FILES) - {"summary.html"})
    names = {path.name for path in study.iterdir() if path.suffix != ".gpuwatch"}
    assert names == {"plan.json", *FILES}
    found = json.loads((study / "summary.json").read_text())
    assert found["study"] == "a-study" and kinds(found) == ["same", "slower"]
    assert "roofline.svg, beside this file" in (study / "summary.md").read_text()
    assert (study / "summary.csv").read_text().startswith("study,part,workload,")
    assert (study / "summary.html").read_text().startswith("<!")


def test_a_named_session_of_several_or_of_no_study_has_a_page_of_its_own(
    study: Path, pair: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    session = min(study.glob("*.gpuwatch"))
    page = session.with_suffix(".html")
    assert said(capsys, "report", session) == f"{page}\n"
    of_session = page.read_text()
    page.unlink()  # the study is that of other tests, too
    assert "SLOWER" not in of_session and "step time, median" in of_session
    error = said(capsys, "report", *pair, code=2)
    assert f"gpuwatch compare {' '.join(pair)} --format html" in error
    Path(pair[1]).unlink()
    assert said(capsys, "report", pair[0]).endswith("/a.html\n")


def test_of_a_folder_of_studies_the_only_one_is_reported_and_of_several_what_to_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    studies.recorded(tmp_path / "one", [blocks_of(3, BARE)], {"bare": 1.0})
    assert said(capsys, "report", tmp_path) == f"{tmp_path / 'one' / 'summary.html'}\n"
    studies.recorded(tmp_path / "two", [blocks_of(3, BARE)], {"bare": 1.0})
    error = said(capsys, "report", tmp_path, code=2)
    assert f"holds 2 studies; name one: gpuwatch report {tmp_path / 'two'}" in error
    assert f"gpuwatch compare {tmp_path}" in error


def test_a_file_of_the_summary_that_cannot_be_written_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    studies.recorded(tmp_path / "s", [blocks_of(3, BARE)], {"bare": 1.0})
    (tmp_path / "s" / "summary.json").mkdir()
    error = said(capsys, "report", tmp_path / "s", code=2)
    assert "cannot write the summary" in error and "gpuwatch report" in error
    assert not list((tmp_path / "s").glob(".summary*"))


def test_a_damaged_run_of_a_study_is_named_and_the_others_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "s"
    studies.recorded(folder, [blocks_of(7, BARE, DOCKER)], {"bare": 1.0, "docker=image": 1.0})
    (folder / "05-bare.gpuwatch").write_bytes(b"no session")
    found = compared(capsys, folder)
    assert len(found["sessions"]) == 15
    assert any("05-bare.gpuwatch" in note for note in found["notes"])


def newer(path: Path) -> Path:
    studies.run(path)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    return path


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "a.gpuwatch"], "gpuwatch show a.gpuwatch"),
        (["compare", "a.gpuwatch", "missing.gpuwatch"], "no such file: missing.gpuwatch"),
        (["compare", "a.gpuwatch", "./a.gpuwatch"], "a.gpuwatch is one session"),
        (["compare", "b.gpuwatch", "a.gpuwatch", "again"], "again/a.gpuwatch is a copy of a.gpuw"),
        (["compare", "a.gpuwatch", "empty"], "no session in empty"),
        (["compare", "a.gpuwatch", "text.gpuwatch"], "text.gpuwatch"),
        (["compare", "a.gpuwatch", "newer.gpuwatch"], "newer"),
        (["compare", "a.gpuwatch", "b.gpuwatch", "--margin", "0"], "such as 1%"),
        (["report", "empty"], "no session in empty"),
        (["report", "missing"], "no session 'missing'"),
    ],
)
def test_what_cannot_be_compared_is_named_with_what_helps(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    studies.run(tmp_path / "a.gpuwatch")
    studies.run(tmp_path / "b.gpuwatch")
    newer(tmp_path / "newer.gpuwatch")
    (tmp_path / "text.gpuwatch").write_text("no session")
    (tmp_path / "empty").mkdir()
    (tmp_path / "again").mkdir()
    shutil.copy(tmp_path / "a.gpuwatch", tmp_path / "again")
    assert says in said(capsys, *arguments, code=2)


def test_out_makes_a_new_file_and_leaves_one_that_is_there_alone(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "new" / "page.html"
    assert said(capsys, "compare", *pair, "--format", "html", "--out", page) == ""
    text = page.read_text()
    assert "<html" in text
    told = said(capsys, "compare", *pair, "--format", "md", "--out", page, code=2)
    assert f"{page} already exists; choose another name, or remove it" in told
    assert page.read_text() == text


def test_out_takes_a_format_and_a_place_for_the_file(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, "compare", *pair, "--out", tmp_path / "x", code=2)
    assert "add --format html" in told
    inside = Path(pair[0]) / "x.html"
    told = said(capsys, "compare", *pair, "--format", "html", "--out", inside, code=2)
    assert f"cannot write {inside}: " in told


def test_one_file_that_is_no_session_is_told_as_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("no session")
    assert "notes.txt is not a gpuwatch session" in said(capsys, "compare", notes, code=2)
