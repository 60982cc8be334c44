"""What the workload printed of its training: the last loss and accuracies, and where they stand.

They are read from the lines themselves, as it printed them: nothing is added up or averaged here.
Step lines tell of the batches trained on. What an epoch line is of, only the program knows:
gpuwatch's own workloads print the mean over the epoch's batches. The two are never mixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.reading.reader import CHUNK, SessionReader

NAMES = {"loss": "loss", "acc1": "acc@1", "acc5": "acc@5"}
"""What people call each key of a line."""


@dataclass(frozen=True)
class LastFigure:
    """A figure as it was printed last."""

    figure: MeasuredValue
    at: int | None
    """The number of the step or the epoch; ``None``: it never was."""


@dataclass(frozen=True)
class Reported:
    """Of one kind of line."""

    loss: LastFigure
    acc1: LastFigure
    acc5: LastFigure

    @property
    def known(self) -> Mapping[str, LastFigure]:
        """By its key each that has a value."""
        return {key: last for key, last in self.all.items() if last.figure.value is not None}

    @property
    def all(self) -> Mapping[str, LastFigure]:
        return {key: getattr(self, key) for key in NAMES}

    @property
    def at(self) -> int | None:
        """Where the newest of them stands."""
        return max((last.at for last in self.known.values() if last.at is not None), default=None)


@dataclass(frozen=True)
class Training:
    step: Reported
    """By the timed steps."""
    epoch: Reported


def training_of(reader: SessionReader, reason: str | None) -> Training:
    """What a session's lines tell; ``reason``: why there is no timed step, if there is none.

    Of a long session the last lines are looked at alone.
    """
    said = reader.last_reported(tuple(NAMES))
    cut = reader.last_step() >= CHUNK
    never = f"none of the last {CHUNK:,} step lines tells it" if cut else "no step line tells it"
    epoch = mapping(reader.meta().get("epoch"))
    ended = number(epoch.get("epoch"))
    return Training(
        Reported(**{key: _of_step(key, said.get(key), reason or never) for key in NAMES}),
        Reported(**{key: _of_epoch(key, epoch, ended) for key in NAMES}),
    )


def notes(training: Training) -> Sequence[str]:
    """That not all that the steps tell is of one step."""
    last, known = training.step.at, training.step.known
    return [
        f"{NAMES[key]} was last told at step {each.at}, the others at step {last}"
        for key, each in known.items()
        if each.at != last
    ]


def _of_step(key: str, said: tuple[int, float] | None, reason: str) -> LastFigure:
    if said is None:
        return LastFigure(unknown(unit_of(key), reason), None)
    step, value = said
    return LastFigure(_figure(key, value, f"step line of step {step}", f"at step {step}"), step)


def _of_epoch(key: str, epoch: Mapping[str, JSON], ended: float | None) -> LastFigure:
    if ended is None or key not in epoch:
        return LastFigure(unknown(unit_of(key), "no epoch line tells it"), None)
    value = number(epoch.get(key))
    where = f"epoch {ended:.0f}"
    figure = _figure(key, math.nan if value is None else value, f"line of {where}", f"at {where}")
    return LastFigure(figure, int(ended))


def _figure(key: str, value: float, source: str, where: str) -> MeasuredValue:
    if not math.isfinite(value):
        return unknown(unit_of(key), f"{where} it was no finite number", source)
    return MeasuredValue(value, unit_of(key), Method.MEASURED, source)


def unit_of(key: str) -> str:
    """The unit of a key of a line; an accuracy is a share, 0 to 1."""
    return "" if key == "loss" else "{accuracy}"
