"""The studies that are remembered outside the default folder, and how files are replaced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.core import paths

pytestmark = pytest.mark.usefixtures("programs")

_REMEMBER = """
import os, resource, sys
from pathlib import Path
from gpuwatch.core import paths
if sys.argv[1] == "no room":
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
sys.stdin.read()
for name in sys.argv[2:]:
    paths.remember_study(Path(name))
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path / "XDG_STATE_HOME" / "gpuwatch"


def studies(folder: Path, count: int) -> list[Path]:
    found = [folder / f"study-{n}" for n in range(count)]
    for each in found:
        each.mkdir(parents=True)
    return found


def remembering(*words: object) -> subprocess.Popen[bytes]:
    """A process that remembers studies once its standard input ends."""
    command = [sys.executable, "-c", _REMEMBER, *map(str, words)]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def test_what_has_no_room_leaves_what_is_remembered_as_it_was(state: Path, tmp_path: Path) -> None:
    *before, another = studies(tmp_path, 5)
    for each in before:
        paths.remember_study(each)
    process = remembering("no room", another)
    process.communicate()
    assert process.returncode == 0 and paths.studies_elsewhere() == before
    assert [each.name for each in state.iterdir()] == ["studies"]


def test_several_recorders_at_once_forget_none_of_their_studies(
    state: Path, tmp_path: Path
) -> None:
    all_of_them = [studies(tmp_path / str(n), 20) for n in range(4)]
    started = [remembering("", *each) for each in all_of_them]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
    assert [process.wait() for process in started] == [0] * 4
    assert set(paths.studies_elsewhere()) == {path for each in all_of_them for path in each}


def test_a_study_whose_name_is_no_text_is_remembered(state: Path, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe2\x80\xa8\x0b"))
    folder.mkdir()
    paths.remember_study(folder)
    assert paths.studies_elsewhere() == [folder]
