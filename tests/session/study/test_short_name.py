"""What is told of a session or a study finds it again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.cli.selection.session_lookup import sessions
from gpuwatch.core import paths
from gpuwatch.session.study import labels
from gpuwatch.session.study.short_name import short_name
from tests.tui.sessions import Script, finished, write


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = paths.data_home() / "a-study" / "01-bare.gpuwatch"
    path.parent.mkdir(parents=True)
    write(path, Script(meta=finished(), alive=False))
    return path


def test_a_session_is_called_by_its_id_and_by_its_name_once_it_has_one(session: Path) -> None:
    assert short_name(session) == "01-bare" and sessions("01-bare") == [session]
    labels.change(session.parent, session.name, lambda label: replace(label, name="best"))
    assert short_name(session) == "best" and sessions("best") == [session]


def test_a_study_is_called_by_its_folders_name(session: Path) -> None:
    assert short_name(session.parent) == "a-study" and sessions("a-study") == [session]


def test_what_is_not_known_keeps_its_path(session: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gpuwatch"
    copy.write_bytes(session.read_bytes())
    assert short_name(copy) == str(copy)
    assert short_name(tmp_path / "gone") == str(tmp_path / "gone")


def test_a_copy_among_the_known_studies_is_found_by_its_path_alone(session: Path) -> None:
    labels.change(session.parent, "", lambda label: replace(label, name="first"))
    assert short_name(session.parent) == "first"
    shutil.copytree(session.parent, session.parent.with_name("copy"))
    assert short_name(session) == str(session) and sessions(str(session)) == [session]
    assert short_name(session.parent) == "a-study" and sessions("a-study") == [session]


@pytest.mark.parametrize("name", ["best", "01-bare"])
def test_a_file_or_folder_here_keeps_its_name(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    labels.change(session.parent, session.name, lambda label: replace(label, name="best"))
    labels.change(session.parent, "", lambda label: replace(label, name="01-bare"))
    monkeypatch.chdir(tmp_path)
    named = {"best": session, "01-bare": session.parent}[name]
    assert short_name(named) == name
    (tmp_path / name).mkdir()
    assert short_name(named) == str(named)
