"""The runs of a study side by side, and the comparison so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN
from gpuwatch.session.study.summary import Contrast
from gpuwatch.tui.feed.snapshot import StudyRun, StudyStrip
from gpuwatch.tui.feed.study import DID_NOT_RUN, TO_COME, UNREADABLE
from gpuwatch.tui.live.head_rows import MARKS
from gpuwatch.tui.widgets.cells import fit
from gpuwatch.tui.widgets.line import Line

_MARKS = {
    **{state.value: mark for state, mark in MARKS.items()},
    TO_COME: ("·", "faint"),
    DID_NOT_RUN: ("–", "bad"),
    UNREADABLE: ("?", "bad"),
}
VERDICTS = {
    "same": ("=", "good"),
    "slower": ("▲", "bad"),
    "faster": ("▼", "good"),
    "small": ("≈", "text"),
    "can't tell": ("?", "warn"),
    "invalid": ("✗", "bad"),
    "described": ("·", "text"),
}
"""A mark and a colour for each verdict, the same as on the compare screen."""
_OPEN = frozenset({TO_COME, "queued", "starting", "running"})
"""States of runs without which a verdict is one so far."""
_LABEL = 24
"""Columns of an environment's name."""
_BLOCKS = 12
"""Columns of what the comparison rests on, in part of a row."""
_FARTHEST = 1e4
"""A relative change beyond which only a broken file goes."""


def strip_rows(strip: StudyStrip, width: int, most: int) -> list[Line]:
    """The order of the plan, a mark for each run, block by block; below it the comparison so far.

    At most ``most`` rows; in a single one both stand beside each other.
    """
    counts = _counts(strip.runs)
    if most < 2 or not strip.found:
        told = _short(strip, width) if strip.found else counts
        row = Line(width).add(" study ", "muted")
        row.join(_runs(strip, max(width // 2 - 7, width - told.used - 11)))
        room = row.left - 3
        told = _short(strip, room) if strip.found else counts
        return [row.to(width - told.used - 1).join(told) if told.used <= room else row]
    row = Line(width).add(" study ", "muted").join(_runs(strip, width - counts.used - 10))
    rows = [row.to(width - counts.used - 1).join(counts)]
    shown = strip.found[: most - 1 if len(strip.found) < most else max(1, most - 2)]
    rows += [_contrast(each, strip, width) for each in shown]
    if len(shown) < len(strip.found) and len(rows) < most:
        more = len(strip.found) - len(shown)
        rows.append(Line(width).add(f"       and {more} more so far: ", "muted").add("c", "key"))
    return rows


def _runs(strip: StudyStrip, width: int) -> Line:
    """The longest way of naming the runs that fits; where none does, those around the own one."""
    for named, numbered in ((True, True), (False, True), (False, False)):
        row = _row(strip, range(len(strip.runs)), named, numbered)
        if row.used <= width:
            return row
    half = max(1, (width - 8) // 4)
    first = max(0, min(strip.at - half, len(strip.runs) - 2 * half))
    shown = range(first, min(len(strip.runs), first + 2 * half))
    row = Line(10_000).add("… " if first else "", "muted")
    row.join(_row(strip, shown, named=False, numbered=False))
    return row.add(" …" if shown.stop < len(strip.runs) else "", "muted")


def _row(strip: StudyStrip, shown: Sequence[int], named: bool, numbered: bool) -> Line:
    row = Line(10_000)
    for block, places in groupby(shown, key=lambda at: strip.runs[at].block):
        row.add(" " * bool(row.used) * (1 + named))
        if numbered and block is not None:
            row.add("warm-up " if block == 0 else f"{block} ", "muted")
        for at in places:
            run = strip.runs[at]
            if named:
                row.add(f"{fit(clean(run.label), _LABEL)} ", "muted")
            mark, role = _MARKS.get(run.state, ("?", "warn"))
            row.add(f"[{mark}]" if at == strip.at else mark, role)
            row.add(" " * named)
    return row


def _counts(runs: Sequence[StudyRun]) -> Line:
    """``3 finished, 1 failed, 1 running, 7 to come``."""
    counts = Counter(run.state for run in runs)
    order = [state for state in _MARKS if counts[state]]
    row = Line(10_000)
    for state in order:
        row.add(", " if row.used else "", "muted")
        role = _MARKS[state][1] if _MARKS[state][1] in ("bad", "warn") else "muted"
        row.add(f"{counts[state]} {state}", role)
    return row


def _contrast(found: Contrast, strip: StudyStrip, width: int) -> Line:
    """One environment against its baseline: verdict, estimate, interval, what it rests on."""
    mark, role = VERDICTS[found.kind]
    row = Line(width).add("       ").add(f"{mark} ", role)
    several = len({each.case for each in strip.found}) > 1
    row.add(f"{fit(clean(found.case), _LABEL)}: " if several else "", "muted")
    row.add(fit(clean(found.other), _LABEL), "strong").add(" against ", "muted")
    row.add(fit(clean(found.baseline), _LABEL), "text").add(": ", "muted")
    if strip.blocks is not None and found.pairs == 0 and found.estimate is None:
        return row.add("no block of both is complete so far", "muted")
    row.add(_verdict(found, strip), role)
    row.add(f"  {_signed(found.estimate)} %" if _known(found.estimate) else "", "strong")
    if _known(found.low) and _known(found.high):
        row.add(f" ({_signed(found.low)} to {_signed(found.high)})", "text")
    return row.add(f"  {_rests(found, strip)}", "muted")


def _verdict(found: Contrast, strip: StudyStrip) -> str:
    if found.kind == "described":
        return "no verdict"
    return f"{found.kind} so far" if any(run.state in _OPEN for run in strip.runs) else found.kind


def _rests(found: Contrast, strip: StudyStrip) -> str:
    """How much of the study that is: ``4 of 7 blocks``."""
    if strip.blocks is None:
        return "one run each"
    return f"{found.pairs} of {strip.blocks} blocks"


def _short(strip: StudyStrip, width: int) -> Line:
    """The comparison so far in part of a row, as many of the environments as fit."""
    row = Line(width)
    for found in strip.found:
        mark, role = VERDICTS[found.kind]
        change = f" {_signed(found.estimate)} %" if _known(found.estimate) else ""
        word = f" {found.kind}" if found.kind != "described" else ""
        gap = "  " if row.used else ""
        room = row.left - len(gap + word + change) - 2 - _BLOCKS
        if room < 6 and row.used:
            break
        row.add(gap).add(f"{mark} ", role)
        row.add(fit(clean(found.other), max(4, min(room, _LABEL))), "strong")
        row.add(word, role).add(change, "text")
    pairs = max(found.pairs for found in strip.found)
    blocks = "" if strip.blocks is None else f", {pairs}/{strip.blocks} blocks"
    return row.add(blocks if len(blocks) <= row.left else "", "muted")


def _known(value: float | None) -> bool:
    return value is not None and abs(value) <= _FARTHEST


def _signed(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    text = f"{100 * value:+.{1 if abs(value) < 1 else 0}f}"
    return text if float(text) else text[1:]
