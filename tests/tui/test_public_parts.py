"""Screens use only the public parts of Textual and textual-serve."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import gpuwatch
import gpuwatch.cli
import gpuwatch.tui
import gpuwatch.web

PACKAGES = (gpuwatch.tui, gpuwatch.web, gpuwatch.cli)
LIBRARIES = ("textual", "textual_serve")
ROOT = Path(gpuwatch.__file__).parent
FILES = sorted(
    file
    for package in PACKAGES
    for folder in package.__path__
    for file in Path(folder).rglob("*.py")
)
ALLOWED = {"_exit": "of os", "_replace": "of named tuples"}
"""Private attributes that are read on another object than ``self``, and why."""


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def foreign(path: str) -> bool:
    """Whether a module of the libraries is private."""
    first, *parts = path.split(".")
    return first in LIBRARIES and any(map(private, parts))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own(tree: ast.AST) -> set[str]:
    """Private attributes that a file defines itself and may read."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            found.add(node.attr)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_reads_nothing_private_of_others(file: Path) -> None:
    tree = ast.parse(file.read_text())
    assert not [path for path in imported(tree) if foreign(path)]
    known = own(tree) | ALLOWED.keys()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and private(node.attr):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            assert of_itself or node.attr in known, f"line {node.lineno}: {ast.unparse(node)}"


def modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


@cache
def of_itself(kind: type) -> frozenset[str]:
    """Attributes that a class defines, or uses on ``self``."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    return frozenset(
        node.name if isinstance(node, FUNCTIONS) else node.attr
        for node in ast.walk(body)
        if isinstance(node, FUNCTIONS)
        or (isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self")
    )


def test_no_class_uses_or_overrides_a_private_part_of_the_library_that_it_is_made_from() -> None:
    for module in modules():
        for _, kind in inspect.getmembers(module, inspect.isclass):
            bases = [base for base in kind.__mro__ if base.__module__.split(".")[0] in LIBRARIES]
            if kind.__module__ != module.__name__ or not bases:
                continue
            theirs = {name for base in bases for name in (*vars(base), *of_itself(base))}
            assert not {name for name in theirs if private(name)} & of_itself(kind), kind
