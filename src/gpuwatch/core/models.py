"""Data that the command line, the recorder, the runners and the readers exchange."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any

from gpuwatch.core.lazy_dataclass import dataclass

JSON = Any
"""A value that ``json`` can write; checked if it comes from outside."""
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.01, 60.0
"""Seconds between two samples."""
LABEL = re.compile(r"[a-z][a-z0-9._-]*")
"""A label that a person gives to a command or an environment."""


def mapping(value: JSON) -> Mapping[str, JSON]:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: JSON) -> Sequence[JSON]:
    """``value`` if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else ()


def number(value: JSON) -> float | None:
    """``value`` if it is a finite number, else ``None``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # A JSON integer may exceed every float: it can be compared, but not converted.
    return value if -sys.float_info.max <= value <= sys.float_info.max else None


def those(of: object, *names: str) -> dict[str, JSON]:
    """These attributes of ``of`` by their names, as in a document."""
    return {name: getattr(of, name) for name in names}


@dataclass(frozen=True)
class Workload:
    """What to run: a built-in workload, a user's command, or nothing (the machine alone)."""

    name: str
    """``mnist-cnn``, the name of the command's script or program, or ``machine``."""
    kind: str
    """``workload``, ``command`` or ``machine``."""
    arguments: tuple[str, ...] = ()
    """Built-in workload: the flags after its name. Command: the full command."""
    parameters: Mapping[str, JSON] = field(default_factory=dict)
    """The given flags by name, as far as they are known before the start."""
    label: str | None = None
    """Name of a command that is compared with others: ``--command LABEL=COMMAND``."""
    program: str | None = None
    """A workload that is not built in: its file and the name in it, ``/home/me/mine.py:Task``."""

    @property
    def word(self) -> str:
        """The name of a workload in a command line."""
        return self.program or self.name


@dataclass(frozen=True)
class Mount:
    """A file or folder of this machine mounted into a container, by default read-only."""

    source: str
    """Absolute path."""
    target: str
    """Absolute path in the container."""
    writable: bool = False

    def __str__(self) -> str:
        return f"{self.source}:{self.target}" + (":rw" if self.writable else "")


@dataclass(frozen=True)
class Environment:
    """Where to run it: ``--env KIND[=IMAGE][,option...]``."""

    kind: str
    label: str
    """``label=``, else kind and image with the options in which it differs from others of the same
    kind and image; then ``#1``, ``#2`` if the same environment was given more than once."""
    image: str | None = None
    python: str | None = None
    """The interpreter, of this machine (bare) or of the image: for a built-in workload, and for a
    command that begins with ``python``."""
    mounts: tuple[Mount, ...] = ()
    shm_bytes: int | None = None
    memory_bytes: int | None = None
    """Memory limit of the container."""
    network: str | None = None
    """``host``, ``bridge`` or ``none``; ``None``: the default of the kind."""
    pull: bool = False
    """Whether a missing image may be pulled."""
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Environment variables that ``set=`` gives to the workload, whatever the caller's are."""


@dataclass(frozen=True)
class Limits:
    """The caller's limits on this machine; ``None``: no limit."""

    cpus: str | None = None
    """CPU numbers in the kernel's list format: ``0-3,8``."""
    memory_nodes: str | None = None
    """In the same format."""
    cpu_time: float | None = None
    """CPU seconds per second: 1.5 is one and a half cores."""
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Allocation:
    """The resources that the caller has on this machine, passed on to every environment."""

    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs for the runs; empty: none."""
    gpus_chosen: bool = False
    """Whether ``--gpus`` or the caller's ``CUDA_VISIBLE_DEVICES`` named them: they may be fewer
    than the machine has."""
    limits: Limits = Limits()
    notice: str | None = None
    """What the caller named in vain, if anything."""


@dataclass(frozen=True)
class Hook:
    """How a run's Python programs report their steps: paths of this machine."""

    channel: str
    """The folder that they write into."""
    archive: str | None
    """``hook.pyz``, which goes first on their ``PYTHONPATH``; ``None``: they report by
    themselves."""
    options: tuple[str, ...] = ()
    """Of :data:`HOOK_OPTIONS`."""


GPUS_OFF = ("off",)
"""Value of ``--gpus`` with which NVML is not used at all."""
JOINED_JOB = "slurm_job"
"""Parameter of a recording of the machine: the Slurm job whose processes and GPUs it shows."""

HOOK_OPTIONS = ("loss",)
"""What the hook does only if it is asked to: read the loss. ``--profile`` gives it another one."""
HOOK_OPTION = re.compile(r"loss|profile=[1-9]\d{0,5}")


@dataclass(frozen=True)
class LaunchSpec:
    """Everything a runner needs to start one run."""

    workload: Workload
    environment: Environment
    archive: str | None
    """Path of ``workloads.pyz`` for a built-in workload."""
    working_directory: str
    variables: Mapping[str, str]
    """The environment variables of the caller."""
    gpus: tuple[str, ...] = ()
    """UUIDs of the GPUs for the run; empty: none."""
    gpus_chosen: bool = False
    """As in :class:`Allocation`."""
    limits: Limits = Limits()
    """The caller's limits: a local process inherits them, anything else needs them set."""
    hook: Hook | None = None
    """``None``: the run reports on its standard output alone."""
    keeps_children: bool = False
    """Whether what the workload leaves running goes on, outside containers."""
    takes_input: bool = False
    """Whether it reads the recorder's standard input, where the engine can pass that on."""


class RunState(str, Enum):
    """The state of a run, as its runner sees it."""

    QUEUED = "queued"
    """Its scheduler has not started it yet."""
    STARTING = "starting"
    """Launched, but without a first process yet."""
    RUNNING = "running"
    PAUSED = "paused"
    """Stopped by somebody else, as by ``docker pause``."""
    EXITED = "exited"
    LOST = "lost"
    """Out of contact, its end not seen. It may come back."""


@dataclass(frozen=True)
class Problem:
    """Why an environment cannot run, and how to fix it."""

    code: str
    text: str
    hint: str | None = None


@dataclass(frozen=True)
class Prepared:
    """The exact command of a run, ready to start."""

    command: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables to set beyond the caller's."""
    facts: Mapping[str, JSON] = field(default_factory=dict)
    """Facts about the environment, by the names in ``docs/session-format.md``."""
    settings: Mapping[str, JSON] = field(default_factory=dict)
    """Further settings of the engine, in its API's terms."""


@dataclass(frozen=True)
class Output:
    """Bytes of a run's output, in arbitrary pieces, not lines."""

    t: int
    """``CLOCK_MONOTONIC`` in nanoseconds at the read from the pipe."""
    stream: str
    """``stdout`` or ``stderr``."""
    data: bytes
    lost: int = 0
    """Bytes dropped before these because nobody read them in time."""


@dataclass(frozen=True)
class Result:
    """How a run ended."""

    code: int | None
    """Exit code; ``None`` if a signal ended it."""
    signal: int | None
    t: int
    """``CLOCK_MONOTONIC`` in nanoseconds at the end."""
    user_seconds: float | None = None
    sys_seconds: float | None = None
    out_of_memory: bool | None = None
    cpu_is_bound: bool = False
    """The CPU seconds are a lower bound, read shortly before the end."""
    launcher_failed: bool = False
    """The environment could not start the workload."""
    lost: bool = False
    """The end was missed for good: code and signal are unknown."""
    text: str | None = None
    """The launcher's message, or another remark."""
    output_until: int | None = None
    """``CLOCK_MONOTONIC`` in nanoseconds of the last output kept, if later output is missing;
    ``text`` says why. ``None``: none is missing, or ``Output.lost`` counts it."""
    left_behind: int = 0
    """Processes that the workload left running."""
    kept: bool = False
    """They go on; otherwise they were ended."""
