"""The content of a study file, checked as far as possible without running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Workload
from gpuwatch.core.text import to_paste
from gpuwatch.studies import parameters


@dataclass(frozen=True)
class StudyPart:
    """Cases and environments that are compared with each other."""

    name: str
    workloads: tuple[Workload, ...]
    """Cases of gpuwatch's own workloads, one per set of parameters."""
    command: tuple[str, ...]
    """The user's command, as a further case; empty without one."""
    commands: Mapping[str, tuple[str, ...]]
    """Commands to compare, by label, instead of other cases."""
    environments: tuple[str, ...]
    """Values for ``--env``."""
    blocks: int | None = None
    """``None`` means the study's own."""
    sweep: Mapping[str, tuple[JSON, ...]] = field(default_factory=dict)
    """Swept parameters, by the workload's flag."""

    @property
    def cases(self) -> int:
        return len(self.workloads) + bool(self.command) + len(self.commands)


@dataclass(frozen=True)
class Study:
    """A preset, or the study in a user's file."""

    name: str
    """The name used on the command line: the preset's or the file's."""
    parts: tuple[StudyPart, ...]
    preset: str | None = None
    """The name, of a preset."""
    title: str | None = None
    question: str | None = None
    afterwards: str | None = None
    """The next thing to do, printed after all runs."""
    blocks: int | None = None
    """``None``, without ``quick`` or ``rigorous``, means one run each."""
    quick: bool = False
    rigorous: bool = False
    margin: str | None = None
    """Value for ``--margin``."""
    cool_down: str | None = None
    """Value for ``--cool-down``."""
    order_seed: int | None = None
    on: tuple[str, ...] = ()
    """The places that record it, as ``--on`` takes them; empty: this machine."""


def with_parameters(study: Study, given: Mapping[str, JSON]) -> Study:
    """``study`` with the parameters ``given`` in every workload of gpuwatch's own.

    Raises:
        UsageError: a part sweeps one of them, they contradict a part's own, two cases become the
            same, or the study has no such workload.
    """
    if not given:
        return study
    if not any(part.workloads for part in study.parts):
        own = [name for name in given if name != "profile"]  # which the hook does in commands
        if not own:
            return study
        flag = parameters.flag(own[0])
        raise UsageError(
            f"{flag} is a flag of gpuwatch's own workloads, and {study.name} has none",
            f"leave {flag} out",
        )
    for part in study.parts:
        swept = [name for name in given if name in part.sweep]
        if swept:
            raise UsageError(
                f"{parameters.flag(swept[0])} is swept by part {part.name!r} of {study.name}",
                f"leave it out, or change a copy: {to_paste('study --show', study.name)}",
            )
    return replace(study, parts=tuple(_changed(part, given, study.name) for part in study.parts))


def _changed(part: StudyPart, given: Mapping[str, JSON], where: str) -> StudyPart:
    place = f"{where}, part {part.name!r}"
    points = [(workload.word, {**workload.parameters, **given}) for workload in part.workloads]
    workloads = parameters.workloads(points, place, swept=bool(part.sweep))
    parameters.refuse_twins(workloads, place)
    return replace(part, workloads=workloads)
