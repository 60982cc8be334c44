"""Loss and accuracies of several sessions side by side, and when they have a ratio."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gpuwatch.analysis.comparison.comparison_row import ComparisonRow, row_of
from gpuwatch.analysis.summary.identity import training as settings_of
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import NAMES, Reported, unit_of
from gpuwatch.core.metrics import Method

GROUP = "training"
STEP, EPOCH = "step", "epoch"


def name_of(key: str, kind: str) -> str:
    """Name of a row, such as ``loss, last step``."""
    return f"{NAMES[key]}, last {kind}"


_PLACES = {name_of(key, kind): (key, kind) for kind in (STEP, EPOCH) for key in NAMES}


def training_rows(sessions: Sequence[Summary]) -> list[ComparisonRow]:
    """The figures of the last step and the last epoch, and the numbers of these."""
    rows = []
    for kind in (STEP, EPOCH):
        for key in NAMES:
            value = partial(_value, key, kind)
            rows.append(row_of(GROUP, name_of(key, kind), unit_of(key), sessions, value))
        at = partial(_at, kind)
        rows.append(
            row_of(GROUP, f"reported at {kind}", f"{{{kind}}}", sessions, at, Method.COUNTED)
        )
    return rows


def trained_alike(row: ComparisonRow, one: Summary, other: Summary) -> bool:
    """Whether two values of a row have the same seed and number of steps or epochs: only then is a
    difference one of arithmetic."""
    if row.name not in _PLACES:
        return False
    key, kind = _PLACES[row.name]
    seeds = [settings_of(session).get("seed") for session in (one, other)]
    places = [reported(session, kind).all[key].at for session in (one, other)]
    return None not in seeds and seeds[0] == seeds[1] and places[0] == places[1]


def reported(session: Summary, kind: str) -> Reported:
    """The figures of the session's steps or epochs."""
    return session.training.step if kind == STEP else session.training.epoch


def _value(key: str, kind: str, session: Summary) -> float | None:
    return reported(session, kind).all[key].figure.value


def _at(kind: str, session: Summary) -> float | None:
    return reported(session, kind).at
