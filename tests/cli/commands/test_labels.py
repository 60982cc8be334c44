"""rename, tag and note; finding by what they wrote; deleting; and the list with its cache."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.summary.listing import ListedSession, values_of
from gpuwatch.cli import main
from gpuwatch.cli.commands.report import FILES
from gpuwatch.cli.dispatch import COMMANDS, SESSION, parser_of
from gpuwatch.report.json import dumps
from gpuwatch.session import placement
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import Label
from gpuwatch.session.study.progress import recorder_alive
from gpuwatch.session.study.removal import OF_A_STUDY
from gpuwatch.session.study.study_folder import RECORDER_LOG as LOG
from gpuwatch.session.study.study_folder import held
from gpuwatch.tui.home.watch import fresh
from tests.conftest import Cli
from tests.terminal import Pty
from tests.tui.sessions import Script, finished, plan, write
from tests.waiting import until


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default folder of studies: one of two runs, and one of a single run."""
    for name in ("data", "state", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / name))
    home = tmp_path / "data" / "gpuwatch" / "studies"
    plan(home / "pair", "01-bare", "02-docker")
    plan(home / "alone", "01-bare")
    files = ("pair/01-bare", "pair/02-docker", "alone/01-bare")
    for at, name in enumerate(files):
        meta = {"session": {"id": f"id{at}0", "label": name}, **finished(seconds=8)}
        write(
            home / f"{name}.gpuwatch", Script(seconds=8, start=100.0 * at, alive=False, meta=meta)
        )
    return home


Told = Callable[..., str]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command; what it said on both streams."""

    def run(*arguments: object, code: int = 0) -> str:
        assert main(list(map(str, arguments))) == code
        captured = capsys.readouterr()
        return captured.out + captured.err

    return run


def listed(told: Told) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(told("sessions", "--format", "json"))
    return found


def test_a_name_finds_the_session_and_the_study(studies: Path, told: Told) -> None:
    assert (
        told("rename", "id1", "in", "docker")
        == "gpuwatch: 02-docker.gpuwatch is called in docker\n"
    )
    assert told("rename", studies / "pair", "both") == "gpuwatch: pair is called both\n"
    assert "pair/02-docker.gpuwatch" in told("show", "in docker").replace("\n  ", "")
    assert "2 sessions" in told("show", "both", code=2)
    found = listed(told)
    assert [row["name"] for row in found["sessions"]] == ["", "in docker", ""]
    assert [(row["name"], row["runs"]) for row in found["studies"]] == [("both", 2)]
    assert "in docker  " in told("sessions", "--runs")
    told("rename", "in docker", "")
    told("rename", "id0", "id")
    assert "'id10' is the id of a session or its folder: " in told("rename", "id0", "id10", code=2)
    assert "no session 'in docker'" in told("show", "in docker", code=2)


def test_a_comparison_of_a_study_that_has_one_of_its_runs_names_the_cause_and_the_cure(
    studies: Path, told: Told
) -> None:
    (studies / "pair" / "02-docker.gpuwatch").unlink()
    says = told("compare", "pair", code=2)
    assert "pair has one session so far, of 2 planned" in says and "gpuwatch resume pair" in says
    assert "is one session" in told("compare", studies / "pair" / "01-bare.gpuwatch", code=2)


def test_a_name_of_a_file_that_no_list_has_says_that_only_its_path_finds_it(
    studies: Path, told: Told, tmp_path: Path
) -> None:
    copy = shutil.copy(studies / "alone" / "01-bare.gpuwatch", tmp_path)
    says = told("rename", copy, "mine")
    assert f"{copy} (in no list: only its path finds it) is called mine\n" in says
    assert "no session 'mine'" in told("show", "mine", code=2)


def test_a_name_that_several_have_is_refused_with_what_tells_them_apart(
    studies: Path, told: Told
) -> None:
    labels.change(studies / "alone", "01-bare.gpuwatch", lambda _: Label("fast"))
    labels.change(studies / "pair", "", lambda _: Label("fast"))
    which = f"fast may be any of 2; name one: id20 (START), {studies / 'pair'} (START)"
    for command in ("show", "compare", "export", "report", "delete"):
        error = re.sub(r" \(\d[^)]*\)", " (START)", told(command, "fast", code=2))
        assert which in error
    for each in ("id2", "pair"):
        told("tag", each, "quick")
    told("compare", "tag:quick", "--format", "json")


def test_each_that_an_ambiguous_start_of_an_id_fits_is_listed_by_what_names_it_alone(
    studies: Path, told: Told
) -> None:
    shutil.copytree(studies / "alone", studies / "copy")
    error = told("show", "id", code=2)
    assert "id may be any of 4; name one: " in error and "id00 (" in error and "id10 (" in error
    for folder in ("alone", "copy"):
        assert f"{studies / folder / '01-bare.gpuwatch'} (" in error


def test_a_name_that_another_has_is_refused_with_how_to_free_it(studies: Path, told: Told) -> None:
    told("rename", "id1", "base")
    told("rename", "id1", "base")
    holder = studies / "pair" / "02-docker.gpuwatch"
    for other in ("id0", "id2", studies / "pair"):
        error = told("rename", other, "base", code=2)
        assert f"'base' is the name of {holder}" in error and f"tag {other} +TAG" in error
        assert f"gpuwatch rename {holder} ''" in error
    assert "choose another" in told("rename", "id0", "alone", code=2)
    told("rename", "pair", "both")
    assert f"the name of {studies / 'pair'}, " in told("rename", "id0", "both", code=2)
    told("rename", holder, "")
    told("rename", "id2", "base")
    assert "alone" in told("show", "base")


def test_show_and_compare_say_what_was_written(studies: Path, told: Told) -> None:
    told("rename", "id0", "base")
    told("tag", "id0", "fast", "good")
    told("note", "id0", "two\x1b[31m fans\nwarm room")
    text = told("show", "id0")
    assert "\n\nbase (pair/01-bare): " in text
    assert "\ntags: fast, good\nnote: two fans\nnote: warm room\n" in text
    session = json.loads(told("show", "id0", "--format", "json"))["session"]
    assert (session["name"], session["tags"]) == ("base", ["fast", "good"])
    assert session["note"] == "two fans\nwarm room"
    beside = told("compare", "id0", "id2", "--all", "--format", "table")
    assert "base (pair/01-bare); " in " ".join(beside.split())
    assert "note: warm room" not in beside
    assert any(line.split() == ["base", "(bare)", "bare", "method"] for line in beside.splitlines())
    assert "base (pair/01-bare)" in told("compare", "id0", "id2", "--format", "html")


def test_of_a_study_of_one_run_the_label_is_the_runs(studies: Path, told: Told) -> None:
    told("rename", studies / "alone", "single")
    assert set(labels.read(studies / "alone")) == {"01-bare.gpuwatch"}
    told("note", "alone", "by the folder's name")
    assert told("note", "single") == "by the folder's name\n"


@pytest.mark.parametrize("way", ["--record", "run"])
def test_a_run_is_started_with_its_name_tags_and_note(
    studies: Path, cli: Cli, told: Told, way: str
) -> None:
    label = ("--name", "low lr", "--tag", "a", "--tag", "b", "--note", "why")
    cli(way, *label, "--out", studies / "new", "--", "true")
    (session,) = (studies / "new").rglob("*.gpuwatch")
    assert labels.read(session.parent) == {session.name: Label("low lr", ("a", "b"), "why")}


def test_a_study_of_several_runs_is_started_with_a_label_of_its_own(
    cli: Cli, tmp_path: Path
) -> None:
    several = ("--command", "a=true", "--command", "b=true")
    cli("--record", "--detach", "--name", "both", "--out", tmp_path / "new", *several)
    (folder,) = until(lambda: [each.parent for each in tmp_path.rglob(labels.LABELS)])
    assert labels.read(folder) == {"": Label("both")}
    until(lambda: len(list(folder.glob("*.gpuwatch"))) == 2 and not recorder_alive(folder))


def test_a_single_run_that_waits_at_a_place_has_its_label(studies: Path, told: Told) -> None:
    folder = studies / "waits"
    plan(folder, "01-bare")
    placement.write(folder, Placement("slurm=gpu", "x", JobState.QUEUED))
    labels.change(folder, "01-bare.gpuwatch", lambda _: Label("queued", ("fast",)))
    (row,) = (each for each in listed(told)["studies"] if each["study"] == "waits")
    assert (row["name"], row["tags"]) == ("queued", ["fast"])
    assert "is the name of" in told("run", "--name", "queued", "--", "true", code=2)


@pytest.mark.parametrize(
    "wrong",
    [
        ("--name", "both"),
        ("--name", "last"),
        ("--name", "new", "--on", "ssh=a", "--on", "ssh=b"),
        ("--tag", "a b"),
        sum((("--tag", str(each)) for each in range(17)), ()),
        ("--note", "x" * 2001),
        ("--name", "one", "--name", "two"),
    ],
)
def test_a_label_that_cannot_be_is_refused_before_anything_starts(
    studies: Path, told: Told, wrong: tuple[str, ...]
) -> None:
    told("rename", studies / "pair", "both")
    before = sorted(studies.parent.rglob("*"))
    for way in ("--record", "run"):
        assert "gpuwatch: error: " in told(way, *wrong, "--", "true", code=2)
    assert sorted(studies.parent.rglob("*")) == before


def test_tags_are_added_removed_printed_and_found(studies: Path, told: Told) -> None:
    assert told("tag", "id0", "+fast", "hot", "-old") == "gpuwatch: 01-bare.gpuwatch: fast hot\n"
    told("tag", "id0", "-hot")
    told("tag", "pair", "both")
    assert told("tag", "id0") == "fast\n"
    assert "tag:fast holds" not in told("show", "tag:fast")
    assert "2 sessions" in told("show", "tag:both", code=2)
    assert "is not a tag" in told("tag", "id0", "a:b", code=2)
    assert "both added and removed" in told("tag", "id0", "+x", "-x", code=2)


def test_a_tag_that_is_taken_for_a_name_is_told(studies: Path, told: Told) -> None:
    told("tag", "id2", "+h100")
    assert "no session 'h100'; did you mean tag:h100?" in told("show", "h100", code=2)
    assert "did you mean" not in told("show", "h10", code=2)


def test_every_command_that_takes_a_session_says_what_names_one() -> None:
    taking = [
        name
        for name in COMMANDS
        if any("SESSION" in str(action.metavar) for action in parser_of(name).arguments)
    ]
    assert {"show", "log", "compare", "export", "stop", "delete", "serve", "attach"} <= {*taking}
    for name in taking:
        assert SESSION in parser_of(name).format_help(), name
    assert "tag:TAG" in SESSION


def test_a_note_is_read_from_standard_input_too(
    studies: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    told("note", "id2", "--", "-", "a", "dash")
    assert told("note", "id2") == "- a dash\n"
    with (studies / "text").open("w+") as text:
        text.write("two\nlines\n")
        text.seek(0)
        monkeypatch.setattr(sys, "stdin", text)
        told("note", "id2", "-")
    assert told("note", "id2") == "two\nlines\n"
    told("note", "id2", "")
    assert told("note", "id2") == ""


def test_a_folder_that_is_no_study_and_one_that_cannot_be_written_are_told(
    studies: Path, told: Told
) -> None:
    assert "is not a study" in told("rename", studies, "x", code=2)
    (studies / "pair" / labels.LABELS).mkdir()
    assert "cannot be written" in told("rename", studies / "pair", "x", code=2)


def test_a_folder_or_file_here_does_not_hide_a_session_of_its_name(
    studies: Path, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told("rename", "id2", "runs")
    (tmp_path / "here" / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    told("tag", "runs", "kept")
    assert "kept" in told("show", "runs", "--json")
    (tmp_path / "here" / "runs").rmdir()
    (tmp_path / "here" / "runs").write_text("no session")
    assert "kept" in told("show", "runs", "--json")
    assert "not a gpuwatch session" in told("show", "./runs", code=2)
    told("rename", "id2", "other")
    assert "not a gpuwatch session" in told("show", "runs", code=2)


def test_of_a_lone_session_the_study_is_named(studies: Path, told: Told) -> None:
    assert told("rename", "id2", "second") == "gpuwatch: alone is called second\n"
    assert told("tag", "second", "+x") == "gpuwatch: alone: x\n"
    assert told("note", "second", "y") == "gpuwatch: alone: noted\n"
    assert told("delete", "--dry-run", "second").startswith('study "second" (alone): 1 session, ')
    assert told("delete", "--yes", "second").startswith('gpuwatch: deleted study "second" (alone)')


def test_labels_that_cannot_be_read_are_told_once_and_in_json(studies: Path, told: Told) -> None:
    (studies / "pair" / labels.LABELS).write_text("garbage")
    said = told("sessions")
    assert said.count("names, tags and notes are missing") == 1
    assert "pair/labels.json is not gpuwatch's" in said
    found = listed(told)
    problems = {row["study"]: row["labels_problem"] for row in found["sessions"]}
    assert problems["alone"] is None and problems["pair"].endswith("move it elsewhere")
    assert found["studies"][0]["labels_problem"] == problems["pair"]


# Deleting.


def test_a_study_goes_with_its_folder_and_says_what_went(studies: Path, told: Told) -> None:
    told("rename", "pair", "both")
    for name in (*FILES, LOG):
        (studies / "pair" / name).write_text("x")
    assert told("delete", "--dry-run", "both").startswith('study "both" (pair): 2 sessions, ')
    assert told("delete", "--yes", "both").startswith('gpuwatch: deleted study "both" (pair): 2 ')
    assert sorted(os.listdir(studies)) == ["alone"]


def test_all_that_a_recorder_and_a_report_write_is_known_to_it() -> None:
    assert {*FILES, LOG} <= OF_A_STUDY


def test_files_of_others_and_links_stay_and_are_named(studies: Path, told: Told) -> None:
    pair = studies / "pair"
    (pair / "mine.txt").write_text("x")
    (studies / "kept").write_text("x")
    (pair / "03.gpuwatch").symlink_to(studies / "kept")
    text = told("delete", "--yes", pair)
    assert "kept, not gpuwatch's: 03.gpuwatch, mine.txt" in text
    assert sorted(os.listdir(pair)) == ["03.gpuwatch", "mine.txt"]
    assert (studies / "kept").read_text() == "x"


def test_a_folder_with_sessions_that_gpuwatch_did_not_plan_keeps_the_rest(
    studies: Path, told: Told
) -> None:
    pair = studies / "pair"
    (pair / "plan.json").write_text('{"what": "somebody else\'s"}')
    (pair / "summary.md").write_text("x")
    told("delete", "--yes", pair)
    assert sorted(os.listdir(pair)) == ["plan.json", "summary.md"]


def test_one_session_goes_alone_with_its_label(studies: Path, told: Told) -> None:
    told("rename", "id0", "first")
    text = told("delete", "--yes", "first")
    assert 'deleted "first" (01-bare.gpuwatch) of pair' in text and "gpuwatch report" in text
    assert sorted(os.listdir(studies / "pair")) == ["02-docker.gpuwatch", "plan.json"]


def test_without_a_terminal_it_is_not_asked_but_refused(studies: Path) -> None:
    command = [sys.executable, "-m", "gpuwatch", "delete", str(studies / "pair")]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 2 and "add --yes" in done.stderr and "study pair" in done.stderr
    assert len(os.listdir(studies / "pair")) == 3


@pytest.mark.parametrize(("answer", "stays"), [("y\n", False), ("\n", True)])
def test_on_a_terminal_it_asks(studies: Path, answer: str, stays: bool) -> None:
    command = [sys.executable, "-m", "gpuwatch", "delete", str(studies / "pair")]
    terminal = Pty(command)
    terminal.wait("Delete? [y/N]")
    terminal.type(answer)
    assert terminal.end() == 0
    assert (studies / "pair").exists() is stays


def test_what_goes_on_is_never_deleted(studies: Path, told: Told) -> None:
    write(studies / "live" / "01-bare.gpuwatch", Script(seconds=8))
    told_so = told("delete", "--yes", studies / "live", code=2)
    assert "says that it is still running; if it is not: rm" in told_so
    with held(studies / "pair"):
        assert "is still running; stop it first" in told("delete", "--yes", "id0", code=2)
    assert (studies / "pair" / "01-bare.gpuwatch").exists()


def test_a_link_and_a_folder_of_studies_are_refused(studies: Path, told: Told) -> None:
    (studies / "link").symlink_to(studies / "pair")
    assert "is a link" in told("delete", "--yes", studies / "link", code=2)
    assert "is not a study; name a study in it" in told("delete", "--yes", studies, code=2)
    assert "no session in" in told("delete", "--yes", studies.parent.parent, code=2)
    told("delete", "--yes", "alone")
    assert f"the one in it: gpuwatch delete {studies / 'pair'}" in told("delete", studies, code=2)


# The list.


def test_the_list_tells_places_and_what_the_summary_says(studies: Path, told: Told) -> None:
    said = {
        "title": "docker against bare " * 20,
        "questions": [
            {
                "contrasts": [
                    {"sentence": "docker costs nothing\x1b[2J", "verdict": {"kind": "same"}}
                ]
            },
            {"contrasts": 7},
            7,
        ],
        "noise": [{"sentence": "noise 0.3 %"}],
    }
    (studies / "pair" / "summary.json").write_text(dumps(said))
    found = listed(told)
    assert [(row["study"], row["run"], row["block"]) for row in found["sessions"]] == [
        ("alone", None, None),
        ("pair", 2, None),
        ("pair", 1, None),
    ]
    (study,) = found["studies"]
    assert study["says"] == [
        {"kind": "same", "text": "docker costs nothing", "short": "docker costs nothing"},
        {"kind": "noise", "text": "noise 0.3 %", "short": "noise 0.3 %"},
    ]
    assert study["environments"] == ["bare", "docker"] and not study["going_on"]


def test_a_session_that_is_over_is_read_once(
    studies: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = listed(told)

    def never(*_: object) -> None:
        raise AssertionError("it was read again")

    with monkeypatch.context() as patched:
        patched.setattr("gpuwatch.session.reading.reader.SessionReader.__init__", never)
        assert listed(told) == first
    (studies / "alone" / "01-bare.gpuwatch").unlink()
    write(studies / "alone" / "01-bare.gpuwatch", Script(seconds=8, name="other", meta=finished()))
    assert "other" in [row["workload"] for row in listed(told)["sessions"]]


def test_what_goes_on_is_never_taken_from_the_cache(studies: Path, told: Told) -> None:
    live = write(studies / "live" / "01-bare.gpuwatch", Script(seconds=8, start=900))
    listed(told)
    kept = json.loads(cache(studies).read_text())["files"]
    assert str(live) not in kept and str(studies / "alone" / "01-bare.gpuwatch") in kept


def cache(studies: Path) -> Path:
    return studies.parents[2] / "cache" / "gpuwatch" / "sessions.json"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"version": 7}'])
def test_a_damaged_cache_is_none(studies: Path, told: Told, damage: str) -> None:
    first = listed(told)
    cache(studies).write_text(damage)
    assert listed(told) == first


def test_what_is_gone_leaves_the_cache(studies: Path, told: Told) -> None:
    listed(told)
    told("delete", "--yes", "alone")
    write(studies / "new" / "01-bare.gpuwatch", Script(seconds=8, meta=finished(), alive=False))
    listed(told)
    assert not [path for path in json.loads(cache(studies).read_text())["files"] if "alone" in path]


def test_a_list_from_the_cache_loads_nothing_heavy(studies: Path, told: Told) -> None:
    listed(told)
    program = (
        "import sys; from gpuwatch.cli import main; main(['sessions']); "
        "assert not {'numpy', 'textual'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("wrong", ["UPDATE step SET t='abc'", "UPDATE step SET step=NULL"])
def test_a_session_with_values_of_a_wrong_type_is_a_row_and_hides_no_other(
    studies: Path, told: Told, wrong: str
) -> None:
    path = studies / "alone" / "01-bare.gpuwatch"
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA ignore_check_constraints=1")
        file.execute("PRAGMA writable_schema=1")
        file.execute("UPDATE sqlite_master SET sql=replace(sql, 'NOT NULL', '') WHERE name='step'")
        file.commit()
    with contextlib.closing(sqlite3.connect(path)) as file:
        file.execute(wrong)
        file.commit()
    rows = listed(told)["sessions"]
    assert sorted(row["status"] for row in rows) == ["finished", "finished", "unreadable"]
    assert "unreadable" in told("sessions", "--runs")
    going_on = [ListedSession(**values_of({**row, "status": "running"})) for row in rows]
    assert fresh(going_on).keys() == {
        studies / "pair" / "01-bare.gpuwatch",
        studies / "pair" / "02-docker.gpuwatch",
    }
