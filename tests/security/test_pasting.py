"""Commands that are printed to be pasted into a shell do what they say, whatever they name."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Set
from pathlib import Path

import pytest

from gpuwatch.core.text import shell, to_paste
from gpuwatch.session.reading.status import State, status
from tests.conftest import Cli
from tests.terminal import Pty

from .test_shells import ROOT, files

HOSTILE = (
    "x; touch PWN #",
    "$(touch PWN)",
    "`touch PWN`",
    "it's \\' touch PWN",
    "a\nb\ttouch PWN",
    "\x1b]0;touch PWN\x07",
    os.fsdecode(b"\xff\xfe/\xe2\x80\xae touch PWN"),
    "~root *",
    "",
)
SHELLS = [each for each in ("bash", "zsh", "ksh") if shutil.which(each)]


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("program", SHELLS)
def test_a_shell_takes_a_quoted_word_for_that_one_word(
    program: str, word: str, tmp_path: Path
) -> None:
    line = f"printf '%s' {shell(word)}"
    done = subprocess.run([program, "-c", line], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == os.fsencode(word) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("word", HOSTILE)
def test_a_quoted_word_can_be_seen_and_copied_from_a_terminal(word: str) -> None:
    assert shell(word).isprintable()


def test_what_needs_no_quotes_has_none_and_nothing_named_is_taken_for_a_flag() -> None:
    assert to_paste("show", Path("/a/b-1.gpuwatch")) == "gpuwatch show /a/b-1.gpuwatch"
    assert to_paste("stop", "--all") == "gpuwatch stop ./--all"
    assert to_paste("attach --record", "a b") == "gpuwatch attach --record 'a b'"
    assert shell("\ud800") == "$'?'"


@pytest.mark.parametrize("session", ["x; touch PWN #", "--all", "\x1b[2Jx"])
def test_what_a_lost_session_calls_itself_runs_nothing(session: str, tmp_path: Path) -> None:
    gone = {"pid": 1, "start_time": 1, "boot_id": "none"}
    meta = {"session": {"id": session}, "recorder": gone, "handle": {"kind": "bare"}}
    found = status(meta, tmp_path / "01.gpuwatch")
    assert found.state is State.LOST
    (line,) = re.findall("`(gpuwatch attach [^`]*)`", found.text)
    words = subprocess.run(
        ["bash", "-c", f"gpuwatch() {{ printf '%s\\0' \"$@\"; }}; {line}"],
        cwd=tmp_path, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    assert words[:-1] == ["attach", "--record", f"./{session}" if session[0] == "-" else session]
    assert not (tmp_path / "PWN").exists()


@pytest.fixture
def nameless(tmp_path: Path) -> Path:
    """A folder whose name is no text."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/no text \xff; touch PWN"))
    folder.mkdir()
    return folder


def _pasted(line: str, cli: Cli) -> subprocess.CompletedProcess[bytes]:
    """What a printed command does in a shell."""
    own = " ".join(map(shell, cli.argv()))
    return subprocess.run(
        ["bash", "-c", f"gpuwatch() {{ {own} \"$@\"; }}; {line}"],
        env=cli.env, cwd=cli.home, capture_output=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_commands_after_a_run_in_a_folder_whose_name_is_no_text_can_be_pasted(
    cli: Cli, nameless: Path
) -> None:
    done = cli("--record", "--out", nameless, "--", "true")
    (command,) = re.findall("all figures: (gpuwatch show .*)", done.stderr)
    assert b"finished" in _pasted(command, cli).stdout
    cli("stop", "--all")
    failed = cli("--record", "--out", nameless, "--", "sh", "-c", "echo oh >&2; exit 3", code=1)
    (command,) = re.findall("full output: (gpuwatch log .*)", failed.stderr)
    assert b"oh" in _pasted(command, cli).stdout
    table = cli("sessions", "--paths", nameless).stdout
    (file,) = re.findall(r"^ *(?:.*  )?(\$'.*true.*')$", table, re.M)[:1]
    assert b"finished" in _pasted(f"gpuwatch show {file}", cli).stdout
    assert not list(cli.home.rglob("PWN"))


def test_a_path_is_its_bytes_for_a_script_and_quoted_on_a_terminal(
    cli: Cli, nameless: Path
) -> None:
    words = cli.argv("--record", "--detach", "--out", nameless, "--", "true")
    done = subprocess.run(words, env=cli.env, cwd=cli.home, capture_output=True, check=True)
    path = Path(os.fsdecode(done.stdout.rstrip(b"\n")))
    assert path.parent.parent == nameless and path.exists()
    screen = Pty(words, (200, 30), cli.env, folder=cli.home)
    screen.wait("-bare.gpuwatch'")
    screen.end()
    assert shell(nameless)[:-1] in screen.text()


@pytest.mark.parametrize(
    ("below", "why"),
    [
        (("d" * 300,), "File name too long"),
        (("d" * 250, "d" * 250), "unable to open database file"),
        (("d" * 250,) * 20, "File name too long"),
    ],
)
def test_a_path_that_is_too_long_is_to_be_shortened(
    cli: Cli, tmp_path: Path, below: tuple[str, ...], why: str
) -> None:
    done = cli("--record", "--out", tmp_path.joinpath(*below), "--", "true", code=2)
    assert "shorten the path" in done.stderr and "free some space" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_in_the_place_of_a_folder_is_no_lack_of_space(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "deeper"):
        done = cli("--record", "--out", out, "--", "true", code=2)
        assert "not a folder" in done.stderr and "free some space" not in done.stderr


_COMMAND = re.compile(r"(gpuwatch ([a-z]+ )?(--[a-z]+ )?|docker pull |chmod |rm -|mkdir |scp )")
"""How something begins that people paste."""
FIXED = {
    "runners/apptainer/preflight.py": {"FUSE"},
    "runners/apptainer/images.py": {"pull"},
    "src/gpuwatch/cli/__init__.py": {"__version__"},
    "src/gpuwatch/cli/dispatch.py": {"name"},
    "src/gpuwatch/core/peaks.py": {"name or 'a GPU without a name'"},
    "src/gpuwatch/report/doctor.py": {
        "chosen",
        "options",
        "report.gpuwatch",
        "clean(report.system, 60)",
    },
    "src/gpuwatch/report/document/origin.py": {"versions(result)"},
    "src/gpuwatch/core/text.py": {"what"},
    "tui/commands.py": {"platform.node() or 'HOST'"},
}
"""What stands there as it is: names of gpuwatch's own, what is quoted already, and sentences."""


def unquoted(source: str, fixed: Set[str] = frozenset()) -> list[str]:
    """Commands in texts with something put in that is not quoted for a shell."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        before = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                before += str(part.value)
            elif isinstance(part, ast.FormattedValue):
                said = ast.unparse(part.value)
                command = re.split(r"[;:,`]\s|`", before)[-1]
                safe = said.startswith("shell(") or said in fixed
                if _COMMAND.match(command) and not safe:
                    found.append(f"{node.lineno}: {command}{{{said}}}")
                before += "X"
    return found


def test_no_command_names_something_that_is_not_quoted() -> None:
    named = {path.relative_to(ROOT).as_posix(): path.read_text() for path in files()}
    told = {path: unquoted(source, FIXED.get(path, set())) for path, source in named.items()}
    assert {path: lines for path, lines in told.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    ["f'see it: gpuwatch show {path}'", "f'`gpuwatch attach --record {name}`'", "f'chmod +x {a}'"],
)
def test_a_command_that_is_not_quoted_is_found(source: str) -> None:
    assert unquoted(source)
