"""The last loss and accuracies that the workload printed, and their step or epoch.

The values are as printed, without sums or averages. Step lines refer to the training batches. Only
the program knows what an epoch line refers to: gpuwatch's own workloads print the mean over the
epoch's batches. The two are never mixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.analysis.samples.step_lines import no_figure
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.reading.reader import CHUNK, SessionReader
from gpuwatch.session.rows import StepPlace, step_words
from gpuwatch.session.study.summary import NO_LOSS

LOST = f"{NO_LOSS} any more"
NAMES = {"loss": "loss", "acc1": "acc@1", "acc5": "acc@5"}
"""Display name of each key of a line."""


@dataclass(frozen=True)
class LastFigure:
    """The last printed value of a figure."""

    figure: MeasuredValue
    at: int | None
    """Number of the step or epoch; ``None``: never printed, or in the warm-up, whose steps have
    their own count."""


@dataclass(frozen=True)
class Reported:
    """The last figures of one kind of line."""

    loss: LastFigure
    acc1: LastFigure
    acc5: LastFigure

    @property
    def known(self) -> Mapping[str, LastFigure]:
        """The figures that have a value, by key."""
        return {key: last for key, last in self.all.items() if last.figure.value is not None}

    @property
    def all(self) -> Mapping[str, LastFigure]:
        """All figures, by key."""
        return {key: getattr(self, key) for key in NAMES}

    @property
    def at(self) -> int | None:
        """Step or epoch of the newest figure."""
        return max((last.at for last in self.known.values() if last.at is not None), default=None)


@dataclass(frozen=True)
class Training:
    """The last figures of a session's training."""

    step: Reported
    """From the step lines, warm-up included."""
    epoch: Reported
    """From the epoch lines."""
    lost_at: StepPlace | None = None
    """The step since which no loss is a finite number; ``None``: the newest is one, or none was
    told."""


def training_of(reader: SessionReader, reason: str | None, writers: str | None = None) -> Training:
    """The last figures in a session's lines; ``reason``: why there is no step, if so.

    ``writers``: why the lines are not those of one process, and no figure is known. For a long
    session only the last lines are searched.
    """
    if writers:
        nothing = {key: LastFigure(unknown(unit_of(key), writers), None) for key in NAMES}
        return Training(Reported(**nothing), Reported(**nothing))
    reported = reader.last_reported(tuple(NAMES))
    cut = reader.last_step() >= CHUNK
    meta = reader.meta()
    of = f"none of the last {CHUNK:,} step lines" if cut else "no step line"
    lacks = {key: no_figure(meta, key, of) for key in NAMES}
    epoch = mapping(meta.get("epoch"))
    ended = number(epoch.get("epoch"))
    return Training(
        Reported(**{key: _of_step(key, reported.get(key), reason or lacks[key]) for key in NAMES}),
        Reported(**{key: _of_epoch(key, epoch, ended) for key in NAMES}),
        reader.loss_lost_at(),
    )


def notes(training: Training) -> Sequence[str]:
    """Notes where the loss is no number, and where the last figures are not all of one step."""
    last, known = training.step.at, training.step.known
    return [each for each in [lost(training)] if each] + [
        f"{NAMES[key]} was last read {f'at step {at}' if at else 'in the warm-up'}, "
        f"the others at step {last}"
        for key, at in ((key, figure.at) for key, figure in known.items())
        if at != last
    ]


def lost(*trainings: Training) -> str:
    """That the newest loss of these was no finite number; empty: it was one, or none was told."""
    steps = sorted({each.lost_at for each in trainings if each.lost_at is not None})
    since = " to ".join(dict.fromkeys(map(step_words, (*steps[:1], *steps[-1:]))))
    return since and f"{LOST} (since {since})"


def _of_step(key: str, printed: tuple[StepPlace, float] | None, reason: str) -> LastFigure:
    if printed is None:
        return LastFigure(unknown(unit_of(key), reason), None)
    place, value = printed
    where = step_words(place)
    return _last(key, value, place[1] if place[0] else None, f"step line of {where}", where)


def _of_epoch(key: str, epoch: Mapping[str, JSON], ended: float | None) -> LastFigure:
    if ended is None or key not in epoch:
        return LastFigure(unknown(unit_of(key), "no epoch line has it"), None)
    where = f"epoch {ended:.0f}"
    return _last(key, epoch.get(key), int(ended), f"line of {where}", where)


def _last(key: str, value: JSON, at: int | None, source: str, where: str) -> LastFigure:
    known, unit = number(value), unit_of(key)
    figure = MeasuredValue(known, unit, Method.MEASURED, source)
    if known is None:
        figure = unknown(unit, f"at {where} it was not a finite number", source)
    return LastFigure(figure, at)


def unit_of(key: str) -> str:
    """Unit of a figure; an accuracy is a share, 0 to 1."""
    return "" if key == "loss" else "{accuracy}"
