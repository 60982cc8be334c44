"""Who may import whom, and what a start may cost: claims about the code as a whole."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import gpuwatch
from tests.conftest import Cli

ROOT = Path(gpuwatch.__file__).parent
ENGINE = {"core", "gpuwatch", "own_command"}
STANDARD = set(sys.stdlib_module_names)

# For each room: the rooms of gpuwatch and the packages from elsewhere that it may import.
MAY: dict[str, tuple[set[str], set[str]]] = {
    "core": ({"gpuwatch", "own_command"}, set()),
    "workloads": (set(), {"torch", "torchvision"}),
    "hook": ({"workloads.archive"}, {"torch", "gpuwatch_hook", "imp"}),
    "runners": (ENGINE, {"docker", "spython"}),
    "telemetry": (ENGINE, {"pynvml", "psutil"}),
    "session": (ENGINE | {"telemetry.base"}, set()),
    "recorder": (
        ENGINE
        | {"telemetry", "runners", "session", "hook.archive"}
        | {"workloads.archive", "workloads.architectures"}
        | {"workloads.nvidia", "workloads.options", "workloads.names"},
        set(),
    ),
    "places": (ENGINE | {"session", "workloads.archive"}, set()),
    "profiles": (ENGINE | {"session", "telemetry.base"}, set()),
    "studies": (ENGINE | {"workloads.names", "workloads.options"}, {"tomli", "tomllib"}),
    "analysis": (ENGINE | {"session"}, {"numpy", "scipy"}),
    "report": (ENGINE | {"analysis", "session"}, {"pyarrow"}),
    "notebook": (ENGINE | {"analysis", "report", "session"}, {"numpy", "pandas"}),
    "tui": (
        ENGINE
        | {"session", "analysis", "report.document", "report.text"}
        | {"workloads.names", "workloads.options"},
        {"textual", "rich"},
    ),
    "web": (ENGINE, {"aiohttp", "textual_serve"}),
    "cli": (
        ENGINE
        | {"session", "analysis", "report", "runners", "recorder", "telemetry", "tui", "workloads"}
        | {"hook", "places", "profiles", "studies", "web"},
        {"argcomplete"},
    ),
}


@cache
def import_statements(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """All of a file, wherever in it, each with whether it is for type checkers alone."""
    found: list[tuple[ast.Import | ast.ImportFrom, bool]] = []

    def look(node: ast.AST, for_types: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, for_types))
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name):
            checking = node.test.id == "TYPE_CHECKING"
            for each in node.body:
                look(each, for_types or checking)
            for each in node.orelse:
                look(each, for_types)
        elif not isinstance(node, ast.expr):
            for each in ast.iter_child_nodes(node):
                look(each, for_types)

    look(ast.parse(path.read_text()), False)
    return found


def imports(path: Path, package: str, *, types: bool = True) -> set[str]:
    """Absolute names of all modules that a file imports, wherever in it; without ``types`` not
    those that are imported for type checkers alone."""
    found = set()
    for node, for_types in import_statements(path):
        if for_types and not types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*base, *([node.module] if node.module else [])])
            else:
                module = node.module or ""
            for alias in node.names:
                # ``from gpuwatch.session import study`` imports a module, not a name of a package.
                submodule = ROOT.parent / Path(*module.split("."), f"{alias.name}.py")
                found.add(f"{module}.{alias.name}" if submodule.exists() else module)
    return found


def files(room: str) -> list[tuple[Path, str]]:
    return [
        (path, ".".join(["gpuwatch", *path.relative_to(ROOT).parent.parts]))
        for path in sorted((ROOT / room).rglob("*.py"))
    ]


@pytest.mark.parametrize("room", MAY)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    inside, outside = MAY[room]
    wrong = []
    assert files(room)
    for path, package in files(room):
        for name in imports(path, package):
            top, _, rest = name.partition(".")
            if top != "gpuwatch":
                good = top in STANDARD or top in outside
            else:
                allowed = inside | {room}
                good = (
                    not rest
                    or rest == "__version__"
                    or any(rest == each or rest.startswith(f"{each}.") for each in allowed)
                )
            if not good:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


SCREENS = {"home", "live", "compare", "log", "new_run"}
"""Screens open each other by the app; what they share stands in the other folders of tui/."""


def parts_of(room: str) -> dict[str, set[str]]:
    """Each sub-folder of a room, or module that is in none, and those that it imports."""
    found: dict[str, set[str]] = {}

    for path, package in files(room):
        inside = path.relative_to(ROOT / room).with_suffix("").parts
        if inside == ("__init__",):
            continue
        prefix = f"gpuwatch.{room}."
        others = {
            name.removeprefix(prefix).split(".")[0]
            for name in imports(path, package, types=False)
            if name.startswith(prefix)
        }
        own = inside[0]
        found.setdefault(own, set()).update(others - {own})
    return found


@pytest.mark.parametrize("room", MAY)
def test_the_parts_of_a_room_import_each_other_in_one_direction(room: str) -> None:
    parts = parts_of(room)
    assert list(TopologicalSorter(parts).static_order()), "raises CycleError"


def test_no_screen_is_imported_but_by_the_app() -> None:
    for part, imported in parts_of("tui").items():
        assert part == "app" or not imported & SCREENS, part


def test_every_room_is_known_to_this_test() -> None:
    rooms = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(MAY)


def test_no_room_is_imported_by_its_bare_name() -> None:
    for path in [*ROOT.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]:
        bare = imports(path, "x") & {"tui", "runners", "workloads"}
        assert not bare, f"{path} imports {bare}: a second copy of the module"


def loaded(*arguments: str, home: Path | None = None) -> set[str]:
    """The modules that a command of gpuwatch loads."""
    program = (
        "import sys, json, contextlib, io\n"
        "from gpuwatch.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({list(arguments)!r})\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ if home is None else Cli(home).env,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


HEAVY = {"docker", "spython", "pynvml", "psutil", "torch", "textual", "numpy", "scipy", "rich"}
HEAVY |= {"pyarrow", "pandas"}


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_load_nothing_heavy(argument: str) -> None:
    assert loaded(argument) & HEAVY == set()


def test_a_recorder_loads_neither_screen_nor_statistics(tmp_path: Path) -> None:
    words = ("--record", "--duration", "50ms", "--quiet", "--out", str(tmp_path / "out"))
    modules = loaded(*words, home=tmp_path)
    assert modules & (HEAVY - {"pynvml", "psutil"}) == set()


def test_a_list_loads_no_screen(tmp_path: Path) -> None:
    modules = loaded(
        "sessions", "--find", "env:h200", str(ROOT.parents[1] / "tests" / "data"), home=tmp_path
    )
    assert "gpuwatch.analysis.summary.finding" in modules
    assert not modules & {"gpuwatch.tui.home", "textual", "rich"}


def test_a_run_looks_into_no_other_package_for_its_runner(tmp_path: Path) -> None:
    words = ("--record", "--quiet", "--out", str(tmp_path / "out"), "--", "true")
    modules = loaded(*words, home=tmp_path)
    assert "gpuwatch.runners.bare" in modules
    assert modules & {"importlib.metadata", "email", "urllib.request"} == set()


def test_data_classes_are_made_when_they_are_needed() -> None:
    rooms = [
        path for room in MAY if room not in ("workloads", "runners") for path, _ in files(room)
    ]
    modules = {*rooms, *ROOT.glob("*.py")} - {ROOT / "core" / "lazy_dataclass.py"}
    at_once = re.compile(r"^(from dataclasses import .*\bdataclass\b|import dataclasses)", re.M)
    assert not [path for path in modules if at_once.search(path.read_text())]


def test_the_version_is_the_same_everywhere() -> None:
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'\nversion = "{gpuwatch.__version__}"\n' in text


def test_sql_stands_in_the_session_room_alone() -> None:
    statement = re.compile(
        r"\"(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|PRAGMA|ATTACH) |\bSELECT\s.+\sFROM\b"
        r"|\b(INSERT|REPLACE) INTO\b|\bDELETE FROM\b|\bCREATE (TABLE|INDEX)\b|\bPRAGMA \w"
    )
    elsewhere = [
        str(path.relative_to(ROOT))
        for room in MAY
        if room != "session"
        for path, _ in files(room)
        if statement.search(path.read_text())
    ]
    assert elsewhere == []
