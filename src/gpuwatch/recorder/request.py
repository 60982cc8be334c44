"""The request to a recorder: what a command asks for."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import LaunchSpec, Problem
from gpuwatch.recorder.sources import Dcgm
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part, Plan


@dataclass(frozen=True)
class Request:
    """What to record: the options of ``gpuwatch --record``."""

    parts: tuple[Part, ...]
    out: Path
    interval: float = 0.5
    gpus: tuple[str, ...] | None = None
    """By index or UUID; ``()``: none; ``GPUS_OFF``; ``None``: all."""
    duration: float | None = None
    """Seconds after which each run is stopped."""
    while_pid: int | None = None
    build_archive: Callable[[Path], str] | None = None
    """Writes ``workloads.pyz`` and returns its SHA-256; needed for built-in workloads."""
    build_hook: Callable[[Path], str] | None = None
    """Writes ``hook.pyz`` and returns its SHA-256; ``None``: commands run without the hook."""
    obstacles: Callable[[LaunchSpec], Sequence[Problem]] | None = None
    """What beside its environment prevents a run on the GPUs that it would get; ``None``: that is
    not looked at."""
    hook: tuple[str, ...] | None = ()
    """Options of the hook in commands, of ``models.HOOK_OPTIONS``; ``None``: without the hook."""
    keeps_children: bool = False
    """What a workload leaves running goes on, outside containers."""
    takes_input: bool = False
    """The workload of the only run reads this process's standard input."""
    dcgm: Dcgm | None = None
    """Read GPUs through DCGM where GPM cannot; ``None``: without DCGM."""
    seed: int | None = None
    """Seed of the order within blocks; needed if a part has blocks."""
    title: str | None = None
    question: str | None = None
    preset: str | None = None
    afterwards: str | None = None
    """A message for the end of all runs."""
    on: str | None = None
    """The place that records it, as ``--on`` names it; ``None``: this machine."""
    resume: Path | None = None
    """Folder of a study to resume, whose plan is the rest of this request."""
    trusted: bool = False
    """Resume it even if somebody else started it."""
    only: frozenset[int] | None = None
    """The runs of the study that is resumed that are missing, by index; ``None``: as its folder
    says, which at a place may lack what was recorded before."""
    one_block: bool = False
    """Execute only the next block of the study that is resumed."""

    def plan(self) -> Plan:
        """The plan of the request; the study's folder gives it its name."""
        return Plan(
            study="" if self.resume is None else self.resume.name,
            parts=self.parts,
            runs=plan_runs(self.parts, self.seed or 0),
            seed=self.seed,
            title=self.title,
            question=self.question,
            preset=self.preset,
            settings={
                "interval_seconds": self.interval,
                "duration_seconds": self.duration,
                "gpus": None if self.gpus is None else list(self.gpus),
                "dcgm": None if self.dcgm is None else self.dcgm.host,
                "hook": None if self.hook is None else list(self.hook),
                **({"keep_children": True} if self.keeps_children else {}),
                "afterwards": self.afterwards,
                "working_directory": os.getcwd(),
                "host": socket.gethostname(),
            },
        )
