"""What passes between the command line, the recorder, the runners and the readers."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass

JSON = Any
"""A value that ``json`` can write: checked where it comes from outside."""
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.01, 60.0
"""Seconds between two samples."""


def mapping(value: JSON) -> Mapping[str, JSON]:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def with_hint(value: JSON) -> dict[str, JSON]:
    """``value`` if it is a JSON object, else an empty one; what fixes the problem that it is of
    stands under ``hint``, which was ``mend`` or ``fix`` up to version 0.1.0."""
    found = dict(mapping(value))
    for old in ("mend", "fix"):
        if old in found:
            found.setdefault("hint", found.pop(old))
    return found


def number(value: JSON) -> float | None:
    """``value`` if it is a finite number, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # A whole number of JSON may be larger than any float: it can be compared, but not converted.
    return value if -sys.float_info.max <= value <= sys.float_info.max else None


@dataclass(frozen=True)
class Workload:
    """What to run: one of ours, a command of the user's, or nothing but the machine."""

    name: str
    """``mnist-cnn``, the name of the command's script or program, or ``machine``."""
    kind: str
    """``workload``, ``command`` or ``machine``."""
    arguments: tuple[str, ...] = ()
    """For ours: the flags behind the name. For a command: the whole command."""
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    """The flags that were given, by name, as far as they are known before the start."""


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine that a container sees; read-only unless asked otherwise."""

    source: str
    """Absolute."""
    target: str
    """Absolute, in the container."""
    writable: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.target}" + (":rw" if self.writable else "")


@dataclass(frozen=True)
class Environment:
    """Where to run it: ``KIND[=IMAGE][,option...]`` of ``--env``."""

    kind: str
    label: str
    """The kind and image, the options in which it differs from others of the same, and ``#1``,
    ``#2`` where the same environment was given more than once."""
    image: str | None = None
    python: str | None = None
    """The interpreter for a workload of ours: of this machine (bare) or of the image."""
    mounts: tuple[Mount, ...] = ()
    shm_bytes: int | None = None
    memory_bytes: int | None = None
    """Limit of the container's memory."""
    network: str | None = None
    """``host``, ``bridge`` or ``none``; ``None``: what the kind does by itself."""
    pull: bool = False
    """An image that is not here may be fetched."""


@dataclass(frozen=True)
class Limits:
    """What the caller may use of this machine, where that is less than all; ``None``: no limit."""

    cpus: str | None = None
    """By number, in the kernel's list format: ``0-3,8``."""
    memory_nodes: str | None = None
    """Likewise."""
    cpu_time: float | None = None
    """CPU time per time: 1.5 is one and a half cores."""
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Allocation:
    """What the caller was given of this machine, and every environment gets."""

    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs that runs are to use; empty: none."""
    gpus_chosen: bool = False
    """Whether ``--gpus`` or the caller's ``CUDA_VISIBLE_DEVICES`` named them: they may be fewer
    than the machine has."""
    limits: Limits = Limits()


@dataclass(frozen=True)
class LaunchSpec:
    """Everything a runner needs to know to start one run."""

    workload: Workload
    environment: Environment
    archive: str | None
    """Path of ``workloads.pyz`` for a workload of ours."""
    working_directory: str
    variables: Mapping[str, str]
    """The environment variables of the caller."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs the run is to use; empty: none."""
    gpus_chosen: bool = False
    """As of :class:`Allocation`."""
    limits: Limits = Limits()
    """What the caller may use: a process of this machine has them from its caller, anything else
    must be given them."""


class RunState(str, Enum):
    """Where a run stands, as its runner sees it."""

    QUEUED = "queued"
    """A scheduler has it and has not started it."""
    STARTING = "starting"
    """It was launched; its first process is not there yet."""
    RUNNING = "running"
    PAUSED = "paused"
    """Somebody else holds all of it still, as ``docker pause`` does."""
    EXITED = "exited"
    LOST = "lost"
    """It cannot be followed just now, and its end was not seen. It may come back."""


@dataclass(frozen=True)
class Problem:
    """Why an environment cannot run, and how to fix it."""

    code: str
    text: str
    hint: str | None = None


@dataclass(frozen=True)
class Prepared:
    """The exact command of a run, ready to be started."""

    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set beyond the caller's."""
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """What is known of the environment, by the names in ``docs/session-format.md``."""


@dataclass(frozen=True)
class Output:
    """Bytes a run wrote: arbitrary pieces, not lines."""

    t: int
    """``CLOCK_MONOTONIC`` in nanoseconds when they were read from the pipe."""
    stream: str
    """``stdout`` or ``stderr``."""
    data: bytes
    lost: int = 0
    """Bytes that were dropped before these because nobody read them in time."""


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    code: int | None
    """Exit code; ``None`` when a signal ended it."""
    signal: int | None
    t: int
    """``CLOCK_MONOTONIC`` in nanoseconds of the end."""
    user_seconds: float | None = None
    sys_seconds: float | None = None
    out_of_memory: bool | None = None
    cpu_is_bound: bool = False
    """The CPU seconds were read shortly before the end: at least these."""
    launcher_failed: bool = False
    """The environment could not start the workload at all."""
    lost: bool = False
    """The end was not seen and will not be: code and signal are unknown."""
    text: str | None = None
    """What the launcher said, or what else should be known."""
    output_until: int | None = None
    """``CLOCK_MONOTONIC`` in nanoseconds of the last output that was kept, where later output is
    missing; ``text`` says why. ``None``: none is missing, or that was told by ``Output.lost``."""
    left_behind: int = 0
    """Processes the workload left running, ended with it."""
