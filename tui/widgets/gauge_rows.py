"""The large gauges as rows of text: values at the left, histories at the right."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log

from rich.cells import cell_len

from gpuwatch.analysis.hardware.ceilings import MEASURED
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, binary_parts, percent, quantity, scale_label, si, si_parts
from gpuwatch.tui.feed.samples import Window, axis
from gpuwatch.tui.feed.snapshot import Gauge
from gpuwatch.tui.feed.steps import FIGURES_SOON
from gpuwatch.tui.widgets.line import Line, area, wrap


def value_parts(gauge: Gauge) -> tuple[str, str]:
    """The gauge's number and unit, as shown."""
    number, _, unit = quantity(gauge.reading.value, gauge.unit).partition(" ")
    at_most = gauge.reading.method is Method.BOUND and gauge.reading.value is not None
    return (f"≤{number}" if at_most else number), unit


def scale_end(value: float, unit: str, columns: int) -> str:
    """The end of a scale or a ceiling, in fewer than ``columns`` columns."""
    if unit == "By":
        number, prefixed = binary_parts(value)
        size, name = float(number.replace(",", "")), prefixed.removesuffix("B")
    elif unit == "s" and 0 < value < 1:
        size, name = (value * 1e3, "ms") if value >= 1e-3 else (value * 1e6, "µs")
    elif unit in ("s", "W"):
        size, name = value, unit
    else:
        label = scale_label(value, unit)
        return label if len(label) < columns else "".join(si_parts(value, "")).replace(" ", "")
    exact = f"{size:g}{name}"
    return exact if len(exact) < columns else f"{size:.0f}{name}"[: columns - 1]


_CACHE_REUSE = 1.05
"""Share of the bandwidth above which counted bytes were partly read from caches: 1, and 5 % for
the error of a measured ceiling."""
_BENCHMARKS = {True: "copy", False: "product"}
"""What a measured ceiling timed: for the bandwidth a copy, else a matrix product."""
_PLURAL = {"copy": "copies", "product": "products", "peak": "peaks"}


def share_texts(gauge: Gauge) -> tuple[str, ...]:
    """Texts for the gauge's share, the longest first; empty: no ceiling or no value is known."""
    ceiling = gauge.named_ceiling
    if ceiling is None or gauge.share is None:
        return ()
    share = percent(gauge.share)
    size = si(ceiling.value, ceiling.unit.replace("By/s", "B/s"))
    full, _, extent = ceiling.text.partition(", ")
    all_of = f", {extent}" if extent else ""
    sum_of = "sum of " if extent else ""
    word = _BENCHMARKS[gauge.key == "bandwidth"] if ceiling.kind == MEASURED else "peak"
    count = extent.removeprefix("sum over ").removesuffix(" GPUs")
    short_of = f"{count} {_PLURAL.get(word, word)}" if extent else word
    short = full.removesuffix(" at maximum clock")
    return (
        f"{share} of {full} {size}{all_of}",
        f"{share} of {sum_of}{short} {size}",
        f"{share} of {sum_of}{short}",
        f"{share} of {short_of}",
    )


def is_cache_reuse(gauge: Gauge) -> bool:
    """Whether algorithmic bytes are above the bandwidth: some were read from caches."""
    counted = gauge.key == "bandwidth" and gauge.reading.method is Method.COUNTED
    return counted and gauge.share is not None and gauge.share > _CACHE_REUSE


def longest_fitting(texts: Sequence[str], width: int) -> str:
    """The first of ``texts`` that fits in ``width`` cells; empty: none does."""
    return next((text for text in texts if cell_len(text) <= width), "")


LABEL = 6
"""Columns of the scale's labels and its line."""

DIGITS = {
    "0": ("┏━┓", "┃ ┃", "┗━┛"),
    "1": (" ┓ ", " ┃ ", " ╹ "),
    "2": ("╺━┓", "┏━┛", "┗━╸"),
    "3": ("╺━┓", " ━┫", "╺━┛"),
    "4": ("╻ ╻", "┗━┫", "  ╹"),
    "5": ("┏━╸", "┗━┓", "╺━┛"),
    "6": ("┏━╸", "┣━┓", "┗━┛"),
    "7": ("╺━┓", "  ┃", "  ╹"),
    "8": ("┏━┓", "┣━┫", "┗━┛"),
    "9": ("┏━┓", "┗━┫", "╺━┛"),
    ".": (" ", " ", "▖"),
    ",": (" ", " ", ","),
    "-": ("  ", "╺╸", "  "),
    UNKNOWN: ("   ", "╺━╸", "   "),
}
"""Three rows of each character of a large number."""

GHOST = "•"
"""An earlier run in a history."""
_GHOSTS = 4
"""On bars it has one in so many columns, so that they stay visible."""
EVENT = "◆"
"""Mark of an event on the time axis and in its row."""


def value_width(width: int) -> int:
    """Columns of the value block."""
    return 34 if width >= 120 else 28


def graph_columns(width: int) -> int:
    """Columns of the history for a screen of that width."""
    return max(10, width - value_width(width) - LABEL)


@lru_cache(maxsize=16)
def gauge_rows(gauge: Gauge, height: int, width: int) -> tuple[Line, ...]:
    """One gauge in ``height`` rows; cached for an unchanged gauge."""
    left = value_width(width)
    # The last row of a high gauge stays empty, so that two histories never touch.
    drawn = height - 1 if height >= 7 else height
    block = _block(gauge, drawn, left - 2)
    graph = _graph(gauge, drawn, width - left)
    rows = [Line(width).add(" ").join(block[row]).to(left).join(graph[row]) for row in range(drawn)]
    return (*rows, *(Line(width) for _ in range(height - drawn)))


def is_empty(gauge: Gauge) -> bool:
    """Whether there is neither a value nor a history, but a reason."""
    reading = gauge.reading
    return reading.value is None and bool(reading.reason) and not _has_history(gauge)


def empty_rows(gauges: Sequence[Gauge], width: int) -> list[Line]:
    """What is unavailable and why, in one row if that fits, else each on its own."""
    told = [(each.title, clean(each.reading.reason or "")) for each in gauges]
    if len(told) == 2 and told[1][1] and told[0][1].endswith(told[1][1]):  # the same, and more
        told = [(f"{told[0][0]}, {told[1][0]}", told[0][1])]
    texts = [f"{title}{' unavailable' * (why != FIGURES_SOON)}: {why}" for title, why in told]
    whole = "; ".join(texts)
    rows = [whole] if cell_len(whole) <= width - 2 else texts
    lines = [line for text in rows for line in wrap(text, width - 2, 2)]
    return [Line(width).add(f" {line}", "muted") for line in lines]


@lru_cache(maxsize=16)
def axis_row(view: Window, width: int, marks: frozenset[int] = frozenset()) -> Line:
    """The :func:`time_row` below the histories of one GPU."""
    return time_row(view, value_width(width) + LABEL - 1, width, marks)


def time_row(view: Window, at: int, width: int, marks: frozenset[int] = frozenset()) -> Line:
    """A time axis from column ``at`` on, labelled with session time.

    ``marks``: columns with an event; beside a label, which none covers, it is in the next free one.
    """
    line, labels = axis(view)
    drawn, free = list(line.replace("┬", "┴")), set(range(len(line)))
    for label in re.finditer(r"[^ ]+", labels):
        if label.end() < len(drawn):
            drawn[label.start() + 1 : label.end() + 1] = label.group()
            free -= {*range(label.start(), label.end() + 2)}
    for mark in marks:
        drawn[min(free, key=lambda column: abs(column - mark), default=mark)] = EVENT
    row = Line(width).to(at).add("└", "faint")
    for character in drawn:
        role = "faint" if character in "─┴" else "warn" if character == EVENT else "muted"
        row.add(character, role)
    return row


def badge(gauge: Gauge, width: int) -> str:
    """Method of the value, and the period of its mean, in ``width`` cells if possible; or that it
    is above its ceiling."""
    mean = mean_text(gauge)
    period = gauge.period or mean
    texts = [_parts(gauge, each) for each in (mean, period, period.removesuffix(" of steps"))]
    return longest_fitting(texts, width) or texts[-1]


def mean_text(gauge: Gauge) -> str:
    """``timed steps, mean``, ``peak of the last 10 s``; empty: the value is of now."""
    if not gauge.mean:
        return ""
    word = "peak" if gauge.reading.peak else "mean"
    if gauge.period.startswith("last"):
        return f"{word} of the {gauge.period}"
    return f"{gauge.period}, {word}" if gauge.period else word


def _parts(gauge: Gauge, mean: str) -> str:
    method, reason = gauge.reading.method, gauge.reading.reason
    if gauge.reading.value is None and not reason and not _has_history(gauge):
        return "no value yet"
    if gauge.covered is not None:
        return f"{method.value}, {percent(gauge.covered)} of the time"
    if is_cache_reuse(gauge):
        return f"{method.value}, over: cache reuse"
    parts = [method.value]
    if method is not Method.UNAVAILABLE:
        parts += [gauge.note, mean]
    if reason and method is not Method.BOUND and _has_history(gauge):
        parts.append(clean(reason))
    return ", ".join(filter(None, parts))


def _has_history(gauge: Gauge) -> bool:
    """Whether the history has a value; otherwise the reason is shown in its place."""
    return any(value is not None for value in gauge.history)


def _block(gauge: Gauge, height: int, width: int) -> list[Line]:
    number, unit = value_parts(gauge)
    value = f"{number} {unit}".strip()
    method, reason = gauge.reading.method.value, gauge.reading.reason
    lost = gauge.reading.method is Method.UNAVAILABLE
    role = "warn" if lost else "muted"
    rows = [Line(width) for _ in range(height)]
    if height < 3:
        picked = gauge.key == "picked"
        title = gauge.title.removesuffix(" scale") if picked else gauge.title.split()[-1]
        rows[0].add(f"{title} ").add(value, "strong").add(" ")
        share = longest_fitting(share_texts(gauge), width - len(method) - 1) if height > 1 else ""
        known = method if len(method) <= rows[-1].left else ""  # of one row no part of a word
        rows[-1].add(known if share or height == 1 else badge(gauge, width), role).end(share)
        return rows
    rows[0].add(gauge.title)
    if lost and reason and _has_history(gauge):
        rows[0].end(UNKNOWN, "strong")
        for line, text in zip(rows[1:], wrap(badge(gauge, width), width, height - 1), strict=False):
            line.add(text, "warn")
        return rows
    bound = gauge.reading.method is Method.BOUND
    large = _large(number)
    fits = height >= 6 and cell_len(f"{large[-1]} {unit}".rstrip()) <= width
    at = 4 if fits and not bound else 1  # the digits of a reading are large
    if at == 1:
        rows[1].add(value, "strong")
    else:
        for row, drawn in zip(rows[1:], large, strict=False):
            row.add(drawn, gauge.key)
        rows[3].add(f" {unit}", "strong")
    shares, beside = share_texts(gauge), ""
    if gauge.named_ceiling is not None:
        share = longest_fitting(shares, rows[at].left - (at == 1))
        rows[at].end(share) if at == 1 else rows[at].add(share)
        if not share and height > at + 2:
            rows[at + 2].add(longest_fitting(shares, width))
        elif not share:
            beside = longest_fitting([f"{method}, {text}" for text in shares], width)
    elif gauge.ceiling is not None:
        rows[at].to(10 if at == 1 else 0)
        rows[at].bar(gauge.share, max(4, rows[at].left - 1), gauge.key)
    texts = wrap(beside or badge(gauge, width), width, len(rows) - at - 1 if bound else 1)
    for line, text in zip(rows[at + 1 :], texts, strict=False):
        line.add(text, role)
    return rows


def _large(number: str) -> list[str]:
    """A number in three rows of large characters."""
    rows = [""] * 3
    for before, character in zip(" " + number, number, strict=False):
        gap = " " if before.isdigit() and character.isdigit() else ""
        drawn = DIGITS.get(character, ("", "", character))
        rows = [row + gap + part for row, part in zip(rows, drawn, strict=True)]
    return rows


def _graph(gauge: Gauge, height: int, width: int) -> list[Line]:
    columns = width - LABEL
    rows = [Line(width) for _ in range(height)]
    if is_empty(gauge):
        reason = clean(gauge.reading.reason or "")
        lines = wrap(reason, columns - 2, height)
        above = (height - len(lines)) // 2
        for row in rows:
            row.to(LABEL - 1).add("│", "faint")
        for index, text in enumerate(lines):
            rows[above + index].add(f" {text}", "muted")
        return rows
    history: Sequence[float | None] = gauge.history
    ghosts: Sequence[float | None] = gauge.ghost
    top, bottom = gauge.scale or 1.0, "0" if gauge.scale or _has_history(gauge) else ""
    if gauge.floor:
        history, ghosts = (
            [None if each is None else log(max(1.0, each / gauge.floor)) for each in of]
            for of in (history, ghosts)
        )
        top, bottom = log(top / gauge.floor), scale_end(gauge.floor, gauge.unit, LABEL)
    drawn = area(history, top, height)
    top_label = scale_end(gauge.scale, gauge.unit, LABEL) if gauge.scale else ""
    mark, ceiling = -1, gauge.named_ceiling  # beyond the scale, or without room for it
    if ceiling is not None and height > 1 and ceiling.value <= gauge.scale:
        mark = min(height - 2, height - 1 - int(ceiling.value / gauge.scale * height * 0.999))
    for index, row in enumerate(rows):
        label = top_label if index == 0 else bottom if index == height - 1 else ""
        if index == mark:
            label = scale_end(gauge.ceiling or 0.0, gauge.unit, LABEL)
        tick = "╪" if index == mark else "┤" if label else "│"
        row.add(f"{label:>{LABEL - 1}}", "muted").add(tick, "key" if index == mark else "faint")
        ghost = frozenset(
            at
            for at, value in enumerate(ghosts)
            if value is not None
            and min(height - 1, int(value / top * height)) == height - 1 - index
            and (drawn[index][at] == " " or at % _GHOSTS == 0)
        )
        for at, character in enumerate(drawn[index]) if ghost else ():
            row.add(*((GHOST, "strong") if at in ghost else (character, gauge.key)))
        row.add("" if ghost else drawn[index], gauge.key)
    return rows
