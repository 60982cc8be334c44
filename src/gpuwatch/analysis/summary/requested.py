"""What a run was given, by its job or control group, and what it used of that."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.units import binary, clock_time, digits
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.samples import LATEST

_MEMORY = ("container.memory.usage", "process.memory.usage")
"""Channels of the workload's memory, the first that is there."""
_LIMIT = re.compile(r"(?:(\d+)-)?(?:(?:(\d+):)?(\d+):)?(\d+)")
_MIB = 1024**2


@dataclass(frozen=True)
class Requested:
    name: str
    """``cores``, ``memory``, ``GPUs`` or ``time``."""
    given: float
    used: float
    unit: str
    """``""``, ``By`` or ``s``."""
    how: str
    """What ``used`` is, in words, where its name does not say it."""

    @property
    def text(self) -> str:
        """``8.99 GiB of 64.0 GiB host memory, highest sample``."""
        write = {"By": binary, "s": clock_time}.get(self.unit, digits)
        given = write(self.given) if self.unit else f"{self.given:g}"
        used = f"{self.used:g}" if self.name == "GPUs" else write(self.used)
        return ", ".join(filter(None, (f"{used} of {given} {self.name}", self.how)))


def requested(reader: SessionReader, cpu_seconds: float | None) -> tuple[Requested, ...]:
    """Of what the run was given, what it used; without what was not limited or is not known.

    ``cpu_seconds``: user and system time of the workload.
    """
    facts = reader.facts()
    host, process = mapping(facts.get("host")), mapping(facts.get("process"))
    result = mapping(reader.meta().get("result"))
    seconds = number(result.get("real_seconds"))
    found: list[Requested] = []
    cores = _least(host.get("job.cpus"), process.get("process.cgroup.cpu.limit"))
    if cores is not None and cpu_seconds is not None and seconds:
        found.append(Requested("cores", cores, cpu_seconds / seconds, "", "on average"))
    limit = _number(process.get("process.cgroup.memory.limit"))
    total = _number(host.get("memory.total"))
    whole = limit is not None and total is not None and limit >= total  # limits nothing
    memory = _least(_job_memory(host), None if whole else limit)
    sampled = (reader.highest(each, ["workload"], 0, LATEST).get("workload") for each in _MEMORY)
    most = next((each for each in sampled if each is not None), None)
    if memory is not None and most is not None:
        found.append(Requested("host memory", memory, most, "By", "highest sample"))
    gpus = _number(host.get("job.gpus.on.node"))
    known = [row.used for row in reader.devices() if row.kind == "gpu"]
    if gpus is not None and known and None not in known:
        found.append(Requested("GPUs", gpus, sum(map(bool, known)), "", ""))
    time = _seconds(host.get("job.time.limit"))
    if time is not None and seconds is not None:
        found.append(Requested("time", time, seconds, "s", ""))
    return tuple(found)


def _least(*values: JSON) -> float | None:
    known = [each for each in map(_number, values) if each is not None]
    return min(known, default=None)


def _number(value: JSON) -> float | None:
    """A number, also as text, which is what variables hold."""
    try:
        found = float(str(value))
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _job_memory(host: Mapping[str, JSON]) -> float | None:
    """In bytes; Slurm tells MiB, of the node or of each processor; 0: all of the node's."""
    node, each = _number(host.get("job.memory.per.node")), _number(host.get("job.memory.per.cpu"))
    cpus = _number(host.get("job.cpus"))
    mib = node if node is not None else each * cpus if each and cpus else None
    return mib * _MIB if mib else None


def _seconds(limit: JSON) -> float | None:
    """Slurm's ``days-hours:minutes:seconds``, of which the last two or three may stand alone;
    ``None``: there is none."""
    match = _LIMIT.fullmatch(str(limit))
    if match is None:
        return None
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
