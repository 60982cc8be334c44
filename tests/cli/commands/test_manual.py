"""``gpuwatch manual``: one page with every command, that man takes without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from gpuwatch.cli.commands.manual import page
from gpuwatch.cli.dispatch import COMMANDS, EXAMPLES, EXIT_CODES
from gpuwatch.cli.shell.completion_table import rows
from gpuwatch.core.errors import ExitCode
from tests.conftest import Cli
from tests.test_architecture import loaded


@pytest.fixture(scope="module")
def shown() -> str:
    """The page as man shows it, on one line."""
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man is not installed: apt install man-db groff")
    done = subprocess.run(
        ["man", "--warnings", "-l", "-"],
        input=page(),
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "78", "LC_ALL": "C", "MAN_KEEP_FORMATTING": ""},
        timeout=60,
    )
    assert done.stderr == ""
    return " ".join(re.sub(r".\x08", "", done.stdout).split())


def test_man_takes_it_without_a_warning_and_shows_all_parts(shown: str) -> None:
    parts = ("NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES")
    places = [shown.index(f" {part} ") for part in parts]
    assert places == sorted(places)
    assert "NO_COLOR" in shown and "STUDY/plan.json" in shown
    for line, what in EXAMPLES:
        assert line in shown and what in shown


def test_every_command_and_every_flag_is_in_it(shown: str) -> None:
    for row in rows():
        if row.flag.startswith("--") and row.flag != "--help":
            start = shown.index(f"gpuwatch {row.command} gpuwatch") if row.command else 0
            assert row.flag in shown[start:], row
    for name, (_, what) in COMMANDS.items():
        assert f"{name} {what}" in shown


def test_dashes_and_quotes_can_be_copied(shown: str) -> None:
    assert "gpuwatch --record resnet18 --steps 100" in shown
    assert not {"\u2010", "\u2212", "\u2019"} & {*shown}


def test_no_line_of_text_is_a_request() -> None:
    known = {"TH", "SH", "TP", "PP", "nf", "fi", "B", "ad", "nh"}
    for line in page().splitlines():
        if line.startswith((".", "'")):
            assert line[1:].split()[0] in known, line


def test_every_exit_code_is_told() -> None:
    assert {code for code, _ in EXIT_CODES} == {*map(int, ExitCode)}


def test_nothing_heavy_is_loaded_and_the_command_prints_the_page(cli: Cli) -> None:
    assert cli("manual").stdout == page()
    assert not loaded("manual") & {"torch", "textual", "numpy", "scipy", "docker", "pynvml"}
