"""Prepares a base image for gpuwatch's workloads; runs in the image while it is built.

Checks that Python, torch and torchvision are there and work, adds a torchvision that fits if only
that is missing, and compiles every module to bytecode: a container that is read-only, or belongs to
another user, cannot keep what it compiles, and would do it anew at every start.
"""

from __future__ import annotations

import compileall
import importlib
import os
import platform
import site
import subprocess
import sys
import sysconfig
import time
from typing import NoReturn


def main() -> None:
    if sys.version_info < (3, 10):  # noqa: UP036 (the base's Python, not gpuwatch's)
        fail(f"the base's {sys.executable} is Python {platform.python_version()}, older than 3.10")
    torch = version("torch")
    try:
        torchvision = version("torchvision")
    except ModuleNotFoundError:
        install_torchvision(torch)
        torchvision = version("torchvision")
    seconds = compile_all()
    print(
        f"Python {platform.python_version()} ({sys.executable}), torch {torch}, "
        f"torchvision {torchvision}; byte-compiled in {seconds:.1f} s"
    )


def version(name: str) -> str:
    """Import a package and return its version; a missing torchvision is not a failure yet.

    Raises:
        ModuleNotFoundError: there is no torchvision.
    """
    try:
        return str(importlib.import_module(name).__version__)
    except ModuleNotFoundError as error:
        if error.name == name == "torchvision":
            raise
        if error.name == name:
            fail(f"the base's {sys.executable} has no {name}; choose a base with it")
        fail(f"the base's {name} cannot be imported: {error}")
    except Exception as error:
        fail(f"the base's {name} cannot be imported: {error}")


def install_torchvision(torch: str) -> None:
    """Add the torchvision that fits the base's torch, which stays as it is."""
    print("the base has no torchvision; installing one", flush=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-cache-dir",
        "--root-user-action=ignore",
    ]
    done = subprocess.run(
        [*command, "torchvision", f"torch=={torch}"],
        env={**os.environ, "PIP_BREAK_SYSTEM_PACKAGES": "1"},  # the image is this one purpose's
        check=False,
    )
    if done.returncode:
        fail(f"no torchvision for torch {torch} could be installed; choose a base with one")
    importlib.invalidate_caches()


def compile_all() -> float:
    """Compile the modules that are not compiled yet; returns the seconds it took.

    Files that are not valid in this version of Python (templates, tests) are skipped.
    """
    started = time.monotonic()
    for folder in {sysconfig.get_path("stdlib"), *site.getsitepackages()}:
        if os.path.isdir(folder):
            compileall.compile_dir(folder, quiet=2, workers=0)
    return time.monotonic() - started


def fail(text: str) -> NoReturn:
    sys.exit(f"error: {text}")


if __name__ == "__main__":
    main()
