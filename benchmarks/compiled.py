"""gpuwatch as pip installs it: with the byte code of its modules beside them."""

from __future__ import annotations

import compileall
import os
from importlib.util import find_spec

_PACKAGES = ("gpuwatch", "gpuwatch.tui", "gpuwatch.runners", "gpuwatch.workloads")


def compile_gpuwatch() -> None:
    """Compile a checkout's modules, and let the programs started from here keep byte code.

    Without it, where ``PYTHONDONTWRITEBYTECODE`` is set, each start of gpuwatch compiles its
    modules anew, which takes longer than all else, and is held against programs that pip compiled.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for package in _PACKAGES:
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            compileall.compile_dir(folder, quiet=1)
