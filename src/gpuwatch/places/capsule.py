"""The capsule: gpuwatch's recorder as one file for places where it is not installed.

``python3 CAPSULE ARGUMENTS`` runs gpuwatch there with any Python from 3.10 on. It holds what is
installed here: gpuwatch without screens and reports, and the pure-Python packages that recorders
use. The same sources give the same bytes.
"""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

import gpuwatch
from gpuwatch.core import output, paths
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.installation import DISTRIBUTION, install_command
from gpuwatch.places import capsule_main
from gpuwatch.workloads import archive

_PACKAGES = {
    "nvidia-ml-py": "pynvml",
    "docker": "docker",
    "requests": "requests",
    "urllib3": "urllib3",
    "idna": "idna",
    "certifi": "certifi",
    "charset-normalizer": "charset_normalizer",
    "spython": "spython",
}
"""Packages that recorders use, and the module of each."""

_UNUSED = frozenset({"test", "tests", "emscripten"})
"""Folders of packages: their tests, and what is for Python in a browser."""

_DATA = frozenset({"cacert.pem"})
"""Files that packages read beside their modules."""

_COMMANDS = frozenset(
    {
        "__init__",
        "attach",
        "doctor",
        "in_part",
        "log",
        "record",
        "relay",
        "signal",
        "start_plan",
        "stop",
        "watch_machine",
    }
)
"""Commands that run at a place, by their module in ``cli/commands/``."""

_LEFT_OUT = (
    "analysis",
    "cli/completion.py",
    "cli/place",
    "cli/shell",
    "notebook",
    "places/ssh",
    "profiles",
    "recipes",
    "report",
    "studies",
    "tui",
    "web",
)
"""What no recorder needs of gpuwatch."""

_KEPT = (
    "analysis/hardware/ceilings.py",
    "analysis/hardware/mfu.py",
    "analysis/measured_value.py",
    "analysis/samples/rates.py",
    "analysis/samples/step_lines.py",
    "analysis/samples/window.py",
    "analysis/summary/failure.py",
    "analysis/summary/listing.py",
    "cli/place/lookup.py",
    "report/doctor.py",
    "report/tables.py",
    "tui/display_options.py",
    "tui/feed/machine_recorder.py",
)
"""What the commands import of that when they are loaded, with the packages it is in."""


def build(target: Path) -> str:
    """Write the capsule to ``target``, read-only (0444), and return its SHA-256 in hex.

    Raises:
        NotAvailable: a package of gpuwatch's is not installed here.
        OSError: a source cannot be read or the target cannot be written.
    """
    files = _own_files()
    for name, module in _PACKAGES.items():
        files |= _package_files(name, module)
    files |= _metadata(distribution(DISTRIBUTION))
    listed = sorted(files.items())
    manifest = "".join(
        f"{sha256(content).hexdigest()} {len(content)} {path}\n" for path, content in listed
    )
    return archive.write(
        target,
        {
            "__main__.py": Path(capsule_main.__file__).read_bytes(),
            capsule_main.MANIFEST: zlib.compress(manifest.encode(), 9),
            capsule_main.PAYLOAD: _compressed(b"".join(dict(listed).values())),
        },
    )


def _compressed(data: bytes) -> bytes:
    """``data`` as xz. It takes seconds, so that the last one is kept in the cache."""
    kept = paths.cache_home() / "capsule.xz"
    with suppress(OSError, EOFError, lzma.LZMAError):
        compressed = kept.read_bytes()
        if lzma.decompress(compressed) == data:
            return compressed
    compressed = lzma.compress(data, preset=6)
    with suppress(OSError):
        paths.make_private(kept.parent)
        output.write_bytes(kept, compressed)
    return compressed


def _own_files() -> dict[str, bytes]:
    """gpuwatch's modules, by their path in the capsule."""
    (root,) = gpuwatch.__path__
    return {
        f"gpuwatch/{path}": content for path, content in _modules(Path(root)) if _is_needed(path)
    }


def _is_needed(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    if folder == "cli/commands":
        return name.removesuffix(".py") in _COMMANDS
    if any(each.startswith(path.removesuffix("__init__.py")) for each in _KEPT):
        return True
    return not any(f"{path}/".startswith(f"{each}/") for each in _LEFT_OUT)


def _package_files(name: str, module: str) -> dict[str, bytes]:
    """The modules of an installed package that are used, and what describes it."""
    try:
        about = _metadata(distribution(name))
    except PackageNotFoundError:
        raise _missing(name) from None
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise _missing(name)
    if spec.submodule_search_locations is None:
        return {f"{module}.py": Path(spec.origin).read_bytes(), **about}
    return {
        **{
            f"{module}/{path}": content
            for path, content in _modules(Path(spec.origin).parent)
            if not _UNUSED.intersection(path.split("/"))
        },
        **about,
    }


def _missing(name: str) -> NotAvailable:
    return NotAvailable(
        f"the package {name}, which gpuwatch sends along, is not installed here",
        install_command(name),
    )


def _modules(root: Path) -> Iterator[tuple[str, bytes]]:
    """Python files and data below ``root``: path from there, and content. Links are followed, for
    rooms of gpuwatch's are links in a checkout."""
    for folder, _, names in os.walk(root, followlinks=True):
        for name in names:
            if name.endswith(".py") or name in _DATA:
                path = Path(folder, name)
                yield path.relative_to(root).as_posix(), path.read_bytes()


def _metadata(package: Distribution) -> dict[str, bytes]:
    """The ``.dist-info`` of a package: name, version, entry points and licences. Nothing in it
    tells how or where the package is installed here."""
    name = package.metadata["Name"]
    folder = f"{name.replace('-', '_')}-{package.version}.dist-info"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {package.version}\n"
    files = {f"{folder}/METADATA": about.encode()}
    if entry_points := package.read_text("entry_points.txt"):
        files[f"{folder}/entry_points.txt"] = entry_points.encode()
    for file in package.files or ():
        if ".dist-info" in file.parts[0] and file.name.upper().startswith(("LICENSE", "NOTICE")):
            files[f"{folder}/{file.name}"] = file.read_binary()
    return files
