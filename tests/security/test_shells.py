"""No shell, and no interpreter, is ever given a text that was put together from input."""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import gpuwatch
from gpuwatch.places.ssh import scripts

ROOT = Path(gpuwatch.__file__).parents[2]
ROOMS = ("src", "runners", "tui", "workloads", "recipes")
SHELLS = {"sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "cmd", "powershell", "env"}
CALLS = {
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell",
    "create_subprocess_shell",
    "subprocess_shell",
    "pty.spawn",
    "eval",
    "exec",
    "runpy.run_path",
}


def files() -> list[Path]:
    """Every Python file of the program; links are those to the rooms at the top."""
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def constants(tree: ast.Module) -> set[str]:
    """Names of the module that are given one text and never another."""
    given = [
        (target.id, node.value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    names = [name for name, _ in given]
    return {name for name, value in given if _is_text(value) and names.count(name) == 1}


def faults(source: str) -> Iterator[str]:
    """What the source does that no file may, with the line."""
    tree = ast.parse(source)
    fixed = constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in CALLS:
                yield f"{node.lineno}: {name}"
            for keyword in node.keywords:
                if keyword.arg == "shell" and ast.unparse(keyword.value) != "False":
                    yield f"{node.lineno}: shell="
            yield from _programs(node.args, fixed)
        elif isinstance(node, (ast.List, ast.Tuple)):
            yield from _programs(node.elts, fixed)


def _programs(words: Sequence[ast.expr], fixed: set[str]) -> Iterator[str]:
    """Texts handed to a program behind ``-c`` that are not constant; shells started bare."""
    for place, word in enumerate(words):
        if _text(word) in ("-c", "-lc", "-ic") and place:
            following = words[place + 1] if place + 1 < len(words) else None
            known = isinstance(following, ast.Name) and following.id in fixed
            if following is None or not (_is_text(following) or known):
                yield f"{word.lineno}: -c with what is no constant"
        first = os.path.basename(_text(word) or "")
        if place == 0 and first in SHELLS - {"env"} and len(words) > 1 and _is_argv(words):
            yield f"{word.lineno}: {first} without -c"


def _is_argv(words: Sequence[ast.expr]) -> bool:
    """Something in it may come from elsewhere, and it is not behind ``-c CONSTANT``."""
    return any(_text(word) is None for word in words) and all(_text(word) != "-c" for word in words)


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


WORDS = ("relay", "a b", "$HOME", "`id`", ";", "'", "--on=x&y", "")


OF_WHO_ASKS = {"src/gpuwatch/cli/commands/notify.py"}
"""Where a shell gets the command that its user wrote for it: that of ``--notify``."""


def test_no_shell_is_given_a_text_built_from_input() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): list(faults(path.read_text("utf-8"))) for path in files()
    }
    assert {path for path, told in found.items() if told} == OF_WHO_ASKS
    assert all(len(found[path]) == 1 for path in OF_WHO_ASKS)


def test_every_file_of_the_program_is_looked_at() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in files()}
    assert {"src/gpuwatch/web/screen_process.py", "runners/shim.py", "tui/commands.py"} <= found
    assert {"workloads/profiling/hardware_counters.py", "recipes/prepare.py"} <= found
    assert len(found) > 300


@pytest.mark.parametrize(
    "source",
    [
        "subprocess.run(line, shell=True)",
        "subprocess.run(line, shell=wanted)",
        "os.system('ls ' + name)",
        "os.popen(line)",
        "subprocess.getoutput(line)",
        "await asyncio.create_subprocess_shell(line)",
        "subprocess.run(['sh', '-c', f'ls {name}'])",
        "command = ('/bin/bash', '-lc', 'ls ' + name)",
        "TEXT = 'ls'\nTEXT = name\nrun(['sh', '-c', TEXT])",
        "os.execvp('sh', ['sh', '-c', text])",
        "subprocess.run([sys.executable, '-c', text])",
        "subprocess.Popen(['/bin/sh', script])",
        "run('sh', '-c', line)",
        "command = [*start, '-c']\ncommand.append(line)",
        "eval(text)",
    ],
)
def test_what_would_hand_input_to_a_shell_is_found(source: str) -> None:
    assert list(faults(f"async def f():\n    {source}" if "await" in source else source)) != []


@pytest.mark.parametrize(
    "source",
    [
        "subprocess.run(['ls', name], shell=False)",
        "TEXT = 'exec \"$@\"'\nrun(['/bin/sh', '-c', TEXT, 'name', name])",
        "SHELLS = ('bash', 'zsh', 'fish')",
        "flags = {'-c': 1}",
    ],
)
def test_an_argument_list_or_a_constant_is_no_fault(source: str) -> None:
    assert list(faults(source)) == []


@pytest.mark.parametrize(
    "script",
    [scripts.watch(None, "", WORDS), scripts.run(None, "", "study", WORDS)],
    ids=["watch", "run"],
)
def test_a_word_stays_one_word_in_the_shell_of_another_host(script: str) -> None:
    line = script.splitlines()[-1]
    done = subprocess.run(
        ["sh", "-c", f"py=printf capsule='%s\\n'; {line}"], capture_output=True, check=True
    )
    assert done.stdout.decode().splitlines() == [*WORDS]
