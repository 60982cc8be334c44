"""Choosing the Python that runs a workload of ours on the bare machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from gpuwatch.core.errors import REFUSED

_PROBE = (
    "import importlib.util as u, json, sys; "
    "print(json.dumps([sys.version_info[:2] >= (3, 10), "
    "[n for n in ('torch', 'torchvision') if u.find_spec(n) is None]]))"
)


@dataclass(frozen=True)
class Interpreter:
    path: str
    origin: str
    """How it was found: ``--python``, ``$VIRTUAL_ENV``, ..."""
    missing: tuple[str, ...]
    """Packages the workloads need and it lacks; ``("python",)`` when it cannot run them at all."""
    passed_over: str | None = None
    """The interpreter that came first and lacks something."""


def candidates(asked: str | None, variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """``(path, origin)`` in order of preference; only the first where ``--python`` asks for it."""
    if asked is not None:
        if Path(asked, "bin", "python").exists():  # the folder of an environment
            asked = str(Path(asked, "bin", "python").absolute())
        return [(shutil.which(asked) or asked, "--python")]
    found = []
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = variables.get(variable)
        if prefix and (Path(prefix) / "bin" / "python").exists():
            found.append((str(Path(prefix) / "bin" / "python"), f"${variable}"))
    on_path = shutil.which("python3", path=variables.get("PATH"))
    if on_path:
        found.append((on_path, "PATH"))
    found.append((sys.executable, "gpuwatch's own"))
    return found


def choose(asked: str | None, variables: Mapping[str, str]) -> Interpreter:
    """The interpreter to use: the first candidate; a later one only if the first lacks torch."""
    first: Interpreter | None = None
    for path, origin in candidates(asked, variables):
        interpreter = Interpreter(path, origin, probe(path))
        if not interpreter.missing:
            return replace(interpreter, passed_over=first.path if first else None)
        first = first or interpreter
    assert first is not None
    return first


def activation(path: str, variables: Mapping[str, str]) -> dict[str, str]:
    """What activating the environment of the interpreter ``path`` would set; empty outside of one.

    Programs that a package calls (compilers, ``ninja``) are on the ``PATH`` only then, and conda's
    packages look for their data below ``$CONDA_PREFIX``. Scripts of ``activate.d`` are not run.
    """
    # Not resolved: a venv's interpreter is a link to the one it was made with.
    prefix = Path(path).absolute().parent.parent
    if (prefix / "pyvenv.cfg").is_file():
        found = {"VIRTUAL_ENV": str(prefix)}
    elif (prefix / "conda-meta").is_dir():
        found = {"CONDA_PREFIX": str(prefix)}
    else:
        return {}
    old = variables.get("PATH", os.defpath)
    own = str(prefix / "bin")
    if own not in old.split(os.pathsep)[:1]:
        found["PATH"] = f"{own}{os.pathsep}{old}"
    return found


def probe(path: str) -> tuple[str, ...]:
    """What ``path`` lacks to run the workloads; nothing of torch is imported to find out."""
    try:
        # Not from the working directory: a torch.py there is not torch.
        answer = subprocess.run(
            [path, "-c", _PROBE], capture_output=True, text=True, timeout=30, cwd=os.sep, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, OSError) and error.errno in REFUSED:
            raise  # this says nothing of the interpreter
        return ("python",)
    recent, missing = json.loads(answer)
    return tuple(missing) if recent else ("python",)
