"""Choosing the Python for gpuwatch's own workloads on the bare machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gpuwatch.core.errors import REFUSED

_PROBE = (
    "import importlib.util as u, json, sys; "
    "print(json.dumps([sys.version_info[:2] >= (3, 10), "
    "[n for n in ('torch', 'torchvision') if u.find_spec(n) is None]]))"
)


REQUESTED = "--python"
"""Origin of an interpreter that was asked for."""


@dataclass(frozen=True)
class Interpreter:
    path: str
    origin: str
    """How it was found: ``--python``, ``$VIRTUAL_ENV``, ..."""
    missing: tuple[str, ...]
    """Missing packages that the workloads need; ``("python",)`` if it cannot run them at all."""
    passed_over: str | None = None
    """The preferred interpreter, if it was skipped because it lacks something."""


def candidates(requested: str | None, variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """``(path, origin)`` in order of preference; only the first if ``--python`` sets it."""
    if requested is not None:
        if os.path.exists(within := os.path.join(requested, "bin", "python")):
            requested = os.path.abspath(within)  # the folder of a virtual environment
        return [(shutil.which(requested) or requested, REQUESTED)]
    pythons = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = variables.get(variable)
        if prefix and os.path.exists(path := os.path.join(prefix, "bin", "python")):
            pythons.append((path, f"${variable}"))
    on_path = shutil.which("python3", path=variables.get("PATH"))
    if on_path:
        pythons.append((on_path, "PATH"))
    pythons.append((sys.executable, "gpuwatch's own"))
    return pythons


def choose(requested: str | None, variables: Mapping[str, str]) -> Interpreter:
    """The interpreter to use: the first candidate, or a later one if the first lacks torch."""
    first: Interpreter | None = None
    for path, origin in candidates(requested, variables):
        interpreter = Interpreter(path, origin, probe(path))
        if not interpreter.missing:
            return replace(interpreter, passed_over=first.path if first else None)
        first = first or interpreter
    assert first is not None
    return first


def activation(path: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Variables that activating the environment of the interpreter ``path`` would set, if any.

    They put the programs that packages call (compilers, ``ninja``) on the ``PATH``, and conda's
    packages look for their data below ``$CONDA_PREFIX``. Scripts in ``activate.d`` are not run.
    """
    # Not resolved: a venv's interpreter is a link to the one that created it.
    prefix = Path(path).absolute().parent.parent
    if os.path.isfile(prefix / "pyvenv.cfg"):
        variables_set = {"VIRTUAL_ENV": str(prefix)}
    elif os.path.isdir(prefix / "conda-meta"):
        variables_set = {"CONDA_PREFIX": str(prefix)}
    else:
        return {}
    old = variables.get("PATH", os.defpath)
    own = str(prefix / "bin")
    if own not in old.split(os.pathsep)[:1]:
        variables_set["PATH"] = f"{own}{os.pathsep}{old}"
    return variables_set


@cache
def probe(path: str) -> tuple[str, ...]:
    """What ``path`` lacks to run the workloads; checked without importing torch, and once only."""
    try:
        # Not from the working directory, where a torch.py would be mistaken for torch.
        answer = subprocess.run(
            [path, "-c", _PROBE], capture_output=True, text=True, timeout=30, cwd=os.sep, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, OSError) and error.errno in REFUSED:
            raise  # says nothing about the interpreter
        return ("python",)
    recent, missing = json.loads(answer)
    return tuple(missing) if recent else ("python",)
