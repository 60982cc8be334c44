"""Output of NVIDIA's ``dcgmi``: the GPUs that it knows and their profiling fields.

Fields are identified by number, because their names changed between versions. The formats are
those of ``dcgmi`` 2 to 4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

DRAM_ACTIVE = 1005

FIELDS: dict[int, str] = {
    1002: "hw.gpu.sm.activity",
    1003: "hw.gpu.sm.occupancy",
    1004: "hw.gpu.tensor.activity",
    DRAM_ACTIVE: "hw.gpu.dram.activity",
    1006: "hw.gpu.fp64.activity",
    1007: "hw.gpu.fp32.activity",
    1008: "hw.gpu.fp16.activity",
    1009: "hw.gpu.pcie.transmit",
    1010: "hw.gpu.pcie.receive",
    1011: "hw.gpu.nvlink.transmit",
    1012: "hw.gpu.nvlink.receive",
}
"""DCGM's profiling fields (``DCGM_FI_PROF_*`` in dcgm_fields.h): shares of time from 0 to 1, and
bytes per second including protocol headers. Each value is a mean over the time between two lines.
"""

BASIC = (1002, 1003, 1004, DRAM_ACTIVE)
"""The fields of every GPU that has profiling fields."""

_START = "start the host engine as root: nv-hostengine, or systemctl start nvidia-dcgm"
_ROW = re.compile(r"^\s*GPU\s+(\d+)\s+(\S.*)$")
_GPU_ID = re.compile(r"^\|\s*(\d*)\s*\|\s*(.*?)\s*\|\s*$")
_UUID = re.compile(r"\bUUID:\s*(GPU-[0-9A-Fa-f-]+)")


def gpu_ids(text: str) -> dict[str, int]:
    """DCGM's number of each GPU by UUID, from the output of ``dcgmi discovery -l``."""
    ids: dict[str, int] = {}
    number: int | None = None
    for line in text.splitlines():
        cells = _GPU_ID.match(line)
        if cells is None:
            continue
        if cells[1]:
            number = int(cells[1])
        uuid = _UUID.search(cells[2])
        if uuid and number is not None:
            ids[uuid[1]] = number
    return ids


def row(line: str, fields: Sequence[int]) -> tuple[int, dict[int, float | None]] | None:
    """DCGM's number of the GPU and the value of each field; ``None`` if the line is not a row.

    ``fields`` are the requested fields, in order. A value is ``None`` if DCGM has none (``N/A``) or
    if it does not fit its column; others may be impossible.
    """
    cells = _ROW.match(line)
    if cells is None:
        return None
    texts = cells[2].split()
    if len(texts) != len(fields):
        return None
    return int(cells[1]), {field: _number(text) for field, text in zip(fields, texts, strict=True)}


def trouble(lines: Iterable[str]) -> str | None:
    """The errors in the output of ``dcgmi``, on one line; ``None`` if it reports none."""
    errors = [
        line.strip().removeprefix("Error: ").rstrip(".")
        for line in lines
        if re.match(r"\s*(Error|Unable|No data)", line, re.IGNORECASE)
    ]
    return "; ".join(dict.fromkeys(errors)) or None


def hint(error: str) -> str:
    """How to fix an error of ``dcgmi``, found by words that all its versions share."""
    hints: Mapping[str, str] = {
        "root": "start nv-hostengine as root",
        "Profiling module": (
            "stop whatever else holds the GPU's counters (ncu, nsys, another host engine such as "
            "dcgm-exporter's), then start again"
        ),
        "not supported": (
            "profiling fields need a data-centre or professional GPU from Volta on; leave out "
            "--dcgm"
        ),
        "not currently loaded": (
            "install DCGM's profiling module, and see: dcgmi modules --list; GeForce before "
            "Blackwell has none"
        ),
        "host engine": _START,
        "establish a connection": _START,
    }
    for words, advice in hints.items():
        if words.lower() in error.lower():
            return advice
    return "see what this says: dcgmi dmon -e 1005 -c 2"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
