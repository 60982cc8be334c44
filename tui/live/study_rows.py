"""The runs of a study and the comparison so far, as rows of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN
from gpuwatch.session.study.summary import Contrast
from gpuwatch.tui.feed.snapshot import StudyRun, StudyStrip
from gpuwatch.tui.feed.study import DID_NOT_RUN, TO_COME, UNREADABLE
from gpuwatch.tui.widgets.head_rows import MARKS
from gpuwatch.tui.widgets.line import Line, fit
from gpuwatch.tui.widgets.palette import VERDICTS

_MARKS = {
    **{state.value: mark for state, mark in MARKS.items()},
    TO_COME: ("·", "faint"),
    DID_NOT_RUN: ("–", "bad"),
    UNREADABLE: ("?", "bad"),
}
_UNFINISHED = frozenset({TO_COME, "queued", "starting", "running"})
"""States of unfinished runs."""
_LABEL_WIDTH = 24
"""Most columns of an environment's name."""
_BLOCKS_WIDTH = 12
"""Columns of the number of blocks in a short comparison."""
_MAX_CHANGE = 1e4
"""Largest relative change that is shown: a larger one comes from a damaged file."""


def strip_rows(strip: StudyStrip, width: int, max_rows: int) -> list[Line]:
    """A mark for each run by block, and below it the comparison so far.

    At most ``max_rows`` rows; a single row has both.
    """
    counts = _counts(strip.runs)
    if max_rows < 2 or not strip.contrasts:
        comparison = _comparison_row(strip, width) if strip.contrasts else counts
        row = Line(width).add(" study ", "muted")
        row.join(_runs(strip, max(width // 2 - 7, width - comparison.used - 11)))
        room = row.left - 3
        comparison = _comparison_row(strip, room) if strip.contrasts else counts
        if comparison.used > room:
            return [row]
        return [row.to(width - comparison.used - 1).join(comparison)]
    row = Line(width).add(" study ", "muted").join(_runs(strip, width - counts.used - 10))
    rows = [row.to(width - counts.used - 1).join(counts)]
    all_fit = len(strip.contrasts) < max_rows
    shown = strip.contrasts[: max_rows - 1 if all_fit else max(1, max_rows - 2)]
    rows += [_contrast(contrast, strip, width) for contrast in shown]
    if len(shown) < len(strip.contrasts) and len(rows) < max_rows:
        more = len(strip.contrasts) - len(shown)
        rows.append(Line(width).add(f"       and {more} more so far: ", "muted").add("c", "key"))
    return rows


def _runs(strip: StudyStrip, width: int) -> Line:
    """The runs in the longest form that fits; if none does, those around the own run."""
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
                row.add(f"{fit(clean(run.label), _LABEL_WIDTH)} ", "muted")
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


def _contrast(contrast: Contrast, strip: StudyStrip, width: int) -> Line:
    """One environment against its baseline: verdict, estimate, interval, number of blocks."""
    mark, role = VERDICTS[contrast.kind]
    row = Line(width).add("       ").add(f"{mark} ", role)
    several = len({item.case for item in strip.contrasts}) > 1
    row.add(f"{fit(clean(contrast.case), _LABEL_WIDTH)}: " if several else "", "muted")
    row.add(fit(clean(contrast.other), _LABEL_WIDTH), "strong").add(" against ", "muted")
    row.add(fit(clean(contrast.baseline), _LABEL_WIDTH), "text").add(": ", "muted")
    if strip.blocks is not None and contrast.pairs == 0 and contrast.estimate is None:
        return row.add("no complete block yet", "muted")
    row.add(_verdict(contrast, strip), role)
    row.add(
        f"  {_signed(contrast.estimate)} %" if _is_plausible(contrast.estimate) else "", "strong"
    )
    if _is_plausible(contrast.low) and _is_plausible(contrast.high):
        row.add(f" ({_signed(contrast.low)} to {_signed(contrast.high)})", "text")
    row.add(", all steps" if contrast.by_total else "", "muted")
    blocks = f"{contrast.pairs} of {strip.blocks} blocks"
    return row.add(f"  {'one run each' if strip.blocks is None else blocks}", "muted")


def _verdict(contrast: Contrast, strip: StudyStrip) -> str:
    if contrast.kind == "described":
        return "no verdict"
    return (
        f"{contrast.kind} so far"
        if any(run.state in _UNFINISHED for run in strip.runs)
        else contrast.kind
    )


def _comparison_row(strip: StudyStrip, width: int) -> Line:
    """The comparison so far in ``width`` columns, with as many environments as fit."""
    row = Line(width)
    for contrast in strip.contrasts:
        mark, role = VERDICTS[contrast.kind]
        change = f" {_signed(contrast.estimate)} %" if _is_plausible(contrast.estimate) else ""
        word = f" {contrast.kind}" if contrast.kind != "described" else ""
        gap = "  " if row.used else ""
        room = row.left - len(gap + word + change) - 2 - _BLOCKS_WIDTH
        if room < 6 and row.used:
            break
        row.add(gap).add(f"{mark} ", role)
        row.add(fit(clean(contrast.other), max(4, min(room, _LABEL_WIDTH))), "strong")
        row.add(word, role).add(change, "text")
    pairs = max(contrast.pairs for contrast in strip.contrasts)
    blocks = "" if strip.blocks is None else f", {pairs}/{strip.blocks} blocks"
    return row.add(blocks if len(blocks) <= row.left else "", "muted")


def _is_plausible(value: float | None) -> bool:
    return value is not None and abs(value) <= _MAX_CHANGE


def _signed(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    text = f"{100 * value:+.{1 if abs(value) < 1 else 0}f}"
    return text if float(text) else text[1:]
