"""Workloads that are not built in: a name of a Python file, ``/PATH/mine.py:NAME``.

The name is a `Definition`, or a function without arguments that returns one. The file may belong to
a package, whose other modules it may import; it imports ours as ``workloads.task`` and so on.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from ..failures import Failure, UsageFailure
from ..task import Definition


def definition(name: str) -> Definition:
    """The workload ``/PATH/mine.py:NAME``.

    Raises:
        UsageFailure: the file cannot be imported, or has no workload of that name.
    """
    path, _, attribute = name.rpartition(":")
    try:
        value = getattr(_module(Path(path)), attribute, None)
        found = value() if callable(value) else value
    except Failure:
        raise
    except Exception as error:
        raise UsageFailure(
            f"{path} cannot be imported: {type(error).__name__}: {error}",
            "GPUWATCH_WORKLOAD_TRACEBACK=1 shows where",
        ) from error
    if not isinstance(found, Definition):
        raise UsageFailure(
            f"{path} has no workload {attribute!r}",
            f"write {attribute} = Definition(...) there, of workloads.task",
        )
    return found


def _module(path: Path) -> ModuleType:
    """The module in a file; of a package, as a part of it."""
    names, folder = [] if path.stem == "__init__" else [path.stem], path.parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    top = folder / names[0]
    if (top / "__init__.py").is_file():
        _load(names[0], top / "__init__.py", [str(top)])
        return importlib.import_module(".".join(names))
    return _load(f"workload_{names[0]}", path, None)  # it hides no other module


def _load(name: str, path: Path, locations: list[str] | None) -> ModuleType:
    spec = spec_from_file_location(name, path, submodule_search_locations=locations)
    if spec is None or spec.loader is None:
        raise ImportError(f"no module in {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
