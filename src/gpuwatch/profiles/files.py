"""Opening profile files: size limit, decoding, and detection of the tool."""

from __future__ import annotations

import codecs
import hashlib
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.paths import read_regular
from gpuwatch.core.text import clean
from gpuwatch.core.units import counted
from gpuwatch.profiles import ncu, nsys, nvprof
from gpuwatch.profiles.base import MAKE, RECOGNISED, Report, Text

LARGEST = 64 * 1024 * 1024
"""Maximum file size in bytes. Summaries take kilobytes; ``ncu`` some 2 KB a launch and metric."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY = {
    ".nsys-rep": "nsys stats --report cuda_gpu_kern_sum --format csv {0} > FILE.csv",
    ".qdrep": "nsys stats --report cuda_gpu_kern_sum --format csv {0} > FILE.csv",
    ".sqlite": "nsys stats --report cuda_gpu_kern_sum --format csv {0} > FILE.csv",
    ".ncu-rep": "ncu --csv --page raw --import {0} > FILE.csv",
    ".nvprof": "nvprof --csv --print-gpu-summary --import-profile {0} --log-file FILE.csv",
    ".nvvp": "nvprof --csv --print-gpu-summary --import-profile {0} --log-file FILE.csv",
}
"""Commands that convert a tool's own report to text, by its suffix."""

_ENCODINGS = "save it as UTF-8"
_READERS = (nvprof.read, ncu.read, nsys.read)


@dataclass(frozen=True)
class Profile:
    """One file that was read."""

    name: str
    """The file's name without its folder."""
    bytes: int
    sha256: str
    report: Report


def load(path: Path) -> Profile:
    """Read one file.

    Raises:
        StorageError: it is missing or cannot be read.
        UsageError: it is not a profile, is damaged, or is too large.
    """
    shown = clean(path.name, 200)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"{clean(path, 300)} is not a file", "name the files themselves")
        if status.st_size > LARGEST:
            raise UsageError(
                f"{shown} has {status.st_size / 1e6:.0f} MB, a summary has less than "
                f"{LARGEST / 1e6:.0f}; {RECOGNISED}",
                f"print a summary: {MAKE['nsys']}",
            )
        content = read_regular(path, LARGEST)
    except OSError as error:
        raise StorageError(
            f"cannot read {clean(path, 300)}: {error.strerror or error}", "check the path"
        ) from error
    if len(content) > LARGEST:
        raise UsageError(f"{shown} grows while it is read", "wait until it is written")
    text = Text(shown, _lines(path, content))
    reports = [output for output in (reader(text) for reader in _READERS) if output is not None]
    if not reports:
        raise UsageError(
            f"{shown} ({counted(len(text.lines), 'line')}) holds no profile; {RECOGNISED}",
            "print one: " + " | ".join(f"`{command}`" for command in MAKE.values()),
        )
    if len(reports) > 1:
        tools = " and ".join(output.tool for output in reports)
        raise UsageError(f"{shown} holds output of {tools}", "save each tool's output by itself")
    digest = hashlib.sha256(content).hexdigest()
    notes = reports[0].notes
    if not content.rstrip(b"\0").endswith(b"\n"):
        notes = (*notes, "the last line has no end: the file may be cut off")
    return Profile(shown, len(content), digest, replace(reports[0], notes=notes))


def _lines(path: Path, content: bytes) -> Sequence[str]:
    """The lines of the file; a final line end does not start another line."""
    shown = clean(path.name, 200)
    if not content.strip():
        raise UsageError(f"{shown} is empty; {RECOGNISED}", f"print it again: {MAKE['nsys']}")
    encoding = next((name for bom, name in _BOMS if content.startswith(bom)), "utf-8")
    if encoding != "utf-16" and b"\0" in content:
        command = _BINARY.get(path.suffix)
        raise UsageError(
            f"{shown} is not text; {RECOGNISED}",
            f"print it: {command.format(shown)}" if command else f"print one: {MAKE['nsys']}",
        )
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise UsageError(f"{shown}, line {line}: not {error.encoding}", _ENCODINGS) from error
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]
