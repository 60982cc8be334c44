"""Hints name commands that work for this very copy of gpuwatch."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from gpuwatch import places, runners
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.installation import (
    DISTRIBUTION,
    broken_package_hint,
    install_command,
    update_command,
)
from gpuwatch.core.text import shell
from gpuwatch.places.base import PlaceSpec

ROOT = Path(__file__).parents[2]
PIP = f"{sys.executable} -m pip install"


def _installed_from(monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None) -> None:
    class Stored:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if origin is None else json.dumps(origin)

    monkeypatch.setattr(metadata, "distribution", lambda name: Stored())


def test_the_distribution_has_the_name_of_the_project() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'\nname = "{DISTRIBUTION}"\n' in text


def test_a_package_is_installed_for_the_interpreter_that_asks_for_it() -> None:
    command = install_command("pyarrow>=14")
    assert command == f"{PIP} 'pyarrow>=14'"
    shown = subprocess.run(["sh", "-c", f"{command} --help"], capture_output=True, check=False)
    assert shown.returncode == 0


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, f"{PIP} --upgrade {DISTRIBUTION}"),
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, "git -C '/a b' pull"),
        ({"url": "file:///src", "dir_info": {}}, f"git -C /src pull && {PIP} /src"),
        (
            {"url": "file:///tmp/g.whl", "archive_info": {}},
            f"{PIP} --force-reinstall file:///tmp/g.whl",
        ),
        (
            {"url": "https://example.org/g.git", "vcs_info": {"vcs": "git", "commit_id": "1"}},
            f"{PIP} --force-reinstall '{DISTRIBUTION} @ git+https://example.org/g.git'",
        ),
    ],
)
def test_an_update_comes_from_where_the_copy_came_from(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, command: str
) -> None:
    _installed_from(monkeypatch, origin)
    assert update_command() == command


def test_this_copy_is_updated_where_it_stands() -> None:
    assert f"git -C {shell(str(ROOT))} pull" in update_command()


def test_another_package_that_is_broken_is_updated_or_removed_for_the_same_interpreter() -> None:
    hint = broken_package_hint("gw-other")
    assert f"{PIP} --upgrade gw-other" in hint
    assert f"{sys.executable} -m pip uninstall gw-other" in hint


def test_a_broken_part_of_gpuwatch_is_updated_and_never_taken_from_another_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("gpuwatch.runners.charliecloud", "gpuwatch.places.ssh.place"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(NotAvailable) as runner:
        runners.load("charliecloud")
    with pytest.raises(NotAvailable) as place:
        places.load(PlaceSpec("ssh", "host"), Path("capsule"))
    for refused in (runner.value, place.value):
        assert f"of the package {DISTRIBUTION}" in refused.message
        assert refused.hint == f"update gpuwatch: {update_command()}"
