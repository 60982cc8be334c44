"""Lines of a log as a terminal would keep them: of a progress bar the newest one alone; and the
counts up to a total that a program prints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.units import NS
from gpuwatch.session.reading.log_lines import LogLine
from gpuwatch.session.rows import LogRow

_PROGRESS_BAR = re.compile(r"\d{1,3}%\|[^|]*\| |[━╸█]{3}")
"""Bars of tqdm, and those of lines or blocks."""

Line = TypeVar("Line", LogRow, LogLine)


def bar_of(stream: str, text: str) -> str | None:
    """What stands before a progress bar, which goes to stderr; ``None``: the line is none."""
    found = _PROGRESS_BAR.search(text) if stream == "stderr" else None
    return None if found is None else text[: found.start()].strip()


def fold(lines: dict[int | str, Line], new: Iterable[Line]) -> None:
    """Add ``new`` lines at the end; one of a progress bar replaces the one before it."""
    for line in new:
        bar = bar_of(line.stream, line.text)
        key: int | str = line.n if bar is None else bar
        lines.pop(key, None)
        lines[key] = line


_COUNT = re.compile(
    r"(?:\bepoch \d{1,6}(?:/\d{1,6})?: {1,4}(?!\d+/ *\d+:\d)"  # no time of day
    r"|\b(?:step|iter|iteration|it|batch|epoch)s?\W{1,9}|\[ *)"
    r"(\d{1,9})/ *(\d{2,9})(?![\w./-])",
    re.IGNORECASE,
)
_BAR_COUNT = re.compile(r"\| *(\d{1,9})/(\d{2,9}) \[")
_EPOCH = re.compile(
    r"\bepochs?\W{0,4}(\d{1,6})(?![\d.])(?: *(?:/|of) *(\d{1,6}))?"
    r"|\[(\d{1,6})/(\d{1,6})\]\W{0,3}$",
    re.IGNORECASE,
)
_FARTHEST = 200
"""Most characters of an epoch and what stands between it and a count: a line may hold many."""
_LEAST_TOTAL = 20
"""Below it, it matters whether the one that is counted is over or begins."""
_MOST_COUNTS = 20


@dataclass(frozen=True)
class Count:
    """A count up to ``total`` that a program prints, ``step 380/900``; times are of the session."""

    total: int
    began: int
    first: int
    """Where it began, and when."""
    t: int
    done: int
    """The newest."""
    rises: int = 0
    of_steps: bool = False
    """Whether the text says so."""
    epoch: str = ""
    """``epoch 3/4``, or ``round 3`` of one that began anew; empty: it is of the whole run."""
    to_come: int | None = None
    """Epochs after this one."""
    from_zero: bool = False
    """Whether there was an epoch 0, so that the last one is one less than they are."""
    rounds: int = 1
    took: int | None = None
    """From the beginning of the epoch before to that of this one."""
    before: Count | None = None
    """That of the epoch before."""

    def seconds_left(self, t: int) -> float | None:
        """Until the total, at the mean rate so far, else that of the epoch before; ``None``:
        unknown, given up, or reached by no epoch."""
        reached = self.done >= self.total and not self.epoch
        if self.rated.rises < 2 or reached or self.is_old(t):
            return None
        return max(0.0, (self.total - self.done) * self._pace - (t - self.t)) / NS

    @property
    def epoch_seconds(self) -> float:
        """Of the epoch before, else of this one at the mean rate so far."""
        return (self.total * self._pace if self.took is None else self.took) / NS

    @property
    def rated(self) -> Count:
        """Whose rate counts: its own, or while that is unknown that of the epoch before."""
        return self.before if self.rises < 2 and self.before else self

    @property
    def _pace(self) -> float:
        """Nanoseconds of one, once it has risen."""
        return (self.rated.t - self.rated.began) / (self.rated.done - self.rated.first)

    def is_old(self, t: int) -> bool:
        """Whether a further one would have come by now."""
        of = self.rated
        return t - self.t > max(5 * NS, 3 * (of.t - of.began) / max(1, of.rises))

    @property
    def between(self) -> float:
        """Mean distance of two."""
        return (self.done - self.first) / max(1, self.rises)

    @property
    def nearly_done(self) -> bool:
        """Whether none, or few, were to come."""
        return self.total - self.done <= max(self.total / 10, self.between)

    def counts(self, step: int) -> bool:
        """Whether it is that of the run's steps, of which ``step`` is the newest."""
        most = min(self.done / 3, 5 + self.total / 50 + 2 * self.between)
        return self.of_steps and not self.epoch and abs(step - self.done) <= most


def count_up(counts: dict[int, Count], line: LogRow) -> None:
    """Take the counts of a line into those by total. One that falls by half begins again, as a
    round of its own where it was nearly done; by less the line is of another process."""
    for found in (*_BAR_COUNT.finditer(line.text), *_COUNT.finditer(line.text)):
        done, total = int(found[1]), int(found[2])
        known = counts.get(total)
        if not _LEAST_TOTAL <= total >= done:
            continue
        named = found[0][:4].lower()
        epoch, to_come = _epoch(line.text, found.start(named == "epoc"))
        fell = known is not None and 2 * done < known.done
        if known is None or (epoch and epoch != known.epoch) or (fell and known.nearly_done):
            rounds, took, from_zero = 1, None, epoch.startswith("epoch 0/")
            if known is not None:
                rounds, from_zero = known.rounds + 1, from_zero or known.from_zero
                epoch = epoch or f"round {rounds}"
                whole = epoch != known.epoch and 2 * known.first < total
                took = line.t - known.began if whole else known.took
            counts[total] = Count(
                total,
                line.t,
                done,
                line.t,
                done,
                of_steps=named in ("step", "iter"),
                epoch=epoch,
                to_come=to_come and to_come - from_zero,
                from_zero=from_zero,
                rounds=rounds,
                took=took,
                before=known and replace(known.rated, before=None),
            )
            if len(counts) > _MOST_COUNTS:
                del counts[next(iter(counts))]
        elif fell:
            counts[total] = replace(known, began=line.t, first=done, t=line.t, done=done, rises=0)
        elif known.done < done:
            counts[total] = replace(known, t=line.t, done=done, rises=known.rises + 1)


def _epoch(text: str, end: int) -> tuple[str, int | None]:
    """The epoch that a text names before ``end``, and how many follow."""
    found = [*_EPOCH.finditer(text, max(0, end - _FARTHEST), end)]
    if not found:
        return "", None
    number, of = (found[-1][at] or found[-1][at + 2] for at in (1, 2))
    if of is None or int(of) < int(number):
        return f"epoch {number}", None
    return f"epoch {number}/{of}", int(of) - int(number)
