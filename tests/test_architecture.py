"""Who may import whom, and what a start may cost: claims about the code as a whole."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
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
    "runners": (ENGINE, {"docker", "spython"}),
    "telemetry": (ENGINE, {"pynvml", "psutil"}),
    "session": (ENGINE | {"telemetry.base"}, set()),
    "recorder": (ENGINE | {"telemetry", "runners", "session"}, set()),
    "profiles": (ENGINE | {"session", "telemetry.base"}, set()),
    "studies": (ENGINE | {"workloads.names", "workloads.options"}, {"tomli", "tomllib"}),
    "analysis": (ENGINE | {"session"}, {"numpy", "scipy"}),
    "report": (ENGINE | {"analysis", "session"}, {"pyarrow"}),
    "notebook": (ENGINE | {"analysis", "report", "session"}, {"numpy", "pandas"}),
    "tui": (
        ENGINE | {"session", "analysis", "workloads.names", "workloads.options"},
        {"textual", "rich"},
    ),
    "web": (ENGINE, {"aiohttp", "textual_serve"}),
    "cli": (
        ENGINE
        | {"session", "analysis", "report", "runners", "recorder", "telemetry", "tui", "workloads"}
        | {"profiles", "studies", "web"},
        set(),
    ),
}


def imports(path: Path, package: str) -> set[str]:
    """Absolute names of all modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
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


def test_a_run_looks_into_no_other_package_for_its_runner(tmp_path: Path) -> None:
    words = ("--record", "--quiet", "--out", str(tmp_path / "out"), "--", "true")
    modules = loaded(*words, home=tmp_path)
    assert "gpuwatch.runners.bare" in modules
    assert modules & {"importlib.metadata", "email", "zipfile", "urllib.request"} == set()


def test_data_classes_are_made_when_they_are_needed() -> None:
    rooms = [
        path for room in MAY if room not in ("workloads", "runners") for path, _ in files(room)
    ]
    modules = {*rooms, *ROOT.glob("*.py")} - {ROOT / "core" / "deferred.py"}
    at_once = re.compile(r"^(from dataclasses import .*\bdataclass\b|import dataclasses)", re.M)
    assert not [path for path in modules if at_once.search(path.read_text())]


def test_the_version_is_the_same_everywhere() -> None:
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'\nversion = "{gpuwatch.__version__}"\n' in text
