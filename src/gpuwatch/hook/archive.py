"""The hook as one file, ``hook.pyz``; the same source and the same adapters give the same bytes."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

from gpuwatch.workloads import archive

GROUP = "gpuwatch.hook_adapters"

OWN = {
    "transformers.trainer_callback": "transformers",
    "transformers.generation.utils": "generation",
    "lightning.pytorch.loops.fit_loop": "lightning",
    "pytorch_lightning.loops.fit_loop": "lightning",
}
"""Built-in adapters by the module that they wait for. Other packages cannot replace them."""

_FOLDER = "gpuwatch_hook/adapters"


def _adapters() -> dict[str, bytes]:
    """The adapters, by their names in the archive.

    A package whose adapter is not found is left out.
    """
    found: dict[str, bytes] = {}
    waiting = dict(OWN)
    for awaited, module in _others():
        source = _source(module)
        if awaited not in OWN and source is not None:
            waiting[awaited] = name = f"other_{len(found)}"
            found[f"{_FOLDER}/{name}.py"] = source
    found["gpuwatch_hook/waiting.py"] = f"ADAPTERS = {waiting!r}\n".encode()
    return found


def _others() -> list[tuple[str, str]]:
    """Awaited module and adapter of each entry point."""
    files = (file for folder in sys.path for file in Path(folder).glob("*-info/entry_points.txt"))
    if not any(map(_has_group, files)):
        return []  # loading importlib.metadata takes 60 ms, which every run would pay
    from importlib.metadata import entry_points

    return [(entry.name, entry.module) for entry in entry_points(group=GROUP)]


def _has_group(file: Path) -> bool:
    with suppress(OSError):
        return GROUP.encode() in file.read_bytes()
    return False


def _source(module: str) -> bytes | None:
    """The source of a module, which is not imported here: it is for the program's Python."""
    spec, path = None, None
    for name in module.split("."):
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    with suppress(OSError):
        return Path(spec.origin).read_bytes() if spec and spec.origin else None
    return None


_HERE = Path(__file__).resolve().parent
_WORKLOADS = Path(archive.__file__).resolve().parent
_PROFILER = ("__init__.py", "torch_profiler.py", "traces.py")


def build(target: Path) -> str:
    """Write the archive to ``target``, read-only (0444), and return its SHA-256 in hex.

    Raises:
        OSError: the source cannot be read or the target cannot be written.
    """
    files = {"sitecustomize.py": (_HERE / "sitecustomize.py").read_bytes()}
    files |= archive.modules(_HERE / "gpuwatch_hook", "gpuwatch_hook")
    files |= archive.modules(_WORKLOADS / "flop", "gpuwatch_hook/counter")
    profiler = _WORKLOADS / "profiling"
    files |= {
        f"gpuwatch_hook/profiler/{name}": (profiler / name).read_bytes() for name in _PROFILER
    }
    files |= _adapters()
    return archive.write(target, files)
