"""The soak itself: acts in turn beside programs that stay, and looks at what is left behind."""

from __future__ import annotations

import contextlib
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from tests.soak.churn import Churn
from tests.soak.ground import Ground
from tests.soak.growth import MIB, Growth, growth
from tests.soak.staying import Staying
from tests.soak.traces import Traces

_PATIENCE_SECONDS = 60.0
"""Time that what is on its way out gets at a checkpoint."""
_CHECKPOINTS = 6


@dataclass(frozen=True)
class Outcome:
    """What a soak did and saw; ``left`` by kind of trace, at each checkpoint and at the end."""

    minutes: float
    done: dict[str, int]
    wrong: tuple[str, ...]
    left: dict[str, tuple[int, ...]]
    grown: dict[str, Growth]
    details: tuple[str, ...]

    def faults(self) -> list[str]:
        """Everything that should not be."""
        leaks = [f"{name}: {each}" for name, one in self.grown.items() for each in one.leaks()]
        return [*self.wrong, *self.details, *leaks]


def soak(
    folder: Path,
    environments: dict[str, str],
    minutes: float,
    seed: int,
    say: Callable[[str], None],
    fewest: int = 0,
) -> Outcome:
    """Churn for so many minutes in ``folder``, which is empty and stays so in what counts; for
    longer where a slow machine has not done ``fewest`` acts by then."""
    ground = Ground(folder, environments)
    staying = Staying(ground)
    done: Counter[str] = Counter()
    wrong: list[str] = []
    left: list[Traces] = []
    started = time.monotonic()
    codes: dict[str, int] = {}
    try:
        dice = random.Random(seed)
        churn = Churn(ground, staying, dice)
        known = ground.left("churn")
        waiting: list[str] = []
        while (passed := time.monotonic() - started) < minutes * 60 or done.total() < fewest:
            due = (len(left) + 1) * minutes * 60 / (_CHECKPOINTS + 1)
            if len(left) < _CHECKPOINTS and passed > due:
                left.append(_left(lambda: ground.left("churn", known)))
                resident = [round(each.samples[-1].rss / MIB, 1) for each in staying.watched]
                acts = sum(done.values())
                say(f"{passed / 60:.1f} min: {acts} acts, left {left[-1].all()}, MiB {resident}")
            if not waiting:  # each once in every round, in an order that changes
                waiting = dice.sample(list(churn.acts), len(churn.acts))
            name = waiting.pop()
            done[name] += 1
            try:
                churn.acts[name]()
            except Exception as error:
                wrong.append(f"{name}: {error!r:.600}")
                say("".join(traceback.format_exception(error)))
                with contextlib.suppress(Exception):
                    _clear(ground, staying)
        wrong += [f"{name} ended by itself" for name in staying.gone()]
        left.append(_left(lambda: ground.left("churn", known)))
    finally:
        codes = staying.close()
    wrong += [f"{name} ended with {code}" for name, code in codes.items() if code]
    left.append(_left(lambda: _everything(ground)))
    names = [each.name for each in fields(Traces)]
    seen = sorted({one for each in left for one in each.all()})
    return Outcome(
        (time.monotonic() - started) / 60,
        dict(done),
        tuple(wrong),
        {name: tuple(len(getattr(each, name)) for each in left) for name in names},
        {each.name: growth(each.samples) for each in staying.watched},
        tuple(f"left behind: {each}" for each in seen),
    )


def _everything(ground: Ground) -> Traces:
    """After all has ended: of either part."""
    churn, stays = ground.left("churn"), ground.left("stays")
    return Traces(
        *(tuple(dict.fromkeys(pair[0] + pair[1])) for pair in zip(
            vars(churn).values(), vars(stays).values(), strict=True
        ))
    )  # fmt: skip


def _left(look: Callable[[], Traces]) -> Traces:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (found := look()).all() and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def _clear(ground: Ground, staying: Staying) -> None:
    """After an act that went wrong: its run is not the next one's."""
    for path in ground.sessions() - {staying.session}:
        ground.churn("stop", path, code=None)
