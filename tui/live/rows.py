"""Parts of the live screen as rows of text: the workload, its phases, the log, the last event, the
runs of the study and the comparison so far."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import TypeGuard

from rich.cells import cell_len

from gpuwatch.analysis.samples.step_lines import GIVE_STEPS, far_mean
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import (
    NS,
    UNKNOWN,
    clock_time,
    counted,
    loss,
    milliseconds,
    percent,
    quantity,
    samples_rate,
    significant,
)
from gpuwatch.session.rows import EventRow
from gpuwatch.session.study.summary import Contrast
from gpuwatch.tui.feed.parts import Part
from gpuwatch.tui.feed.samples import Window
from gpuwatch.tui.feed.snapshot import TIMED, Snapshot, StepShares, StudyRun, StudyStrip, Work
from gpuwatch.tui.feed.study import DID_NOT_RUN, TO_COME, UNREADABLE
from gpuwatch.tui.widgets.device_rows import Fields
from gpuwatch.tui.widgets.gauge_rows import EVENT, GHOST, longest_fitting
from gpuwatch.tui.widgets.head_rows import MARKS, event_text
from gpuwatch.tui.widgets.line import Line, filled, fit, marked_rows, rule, stream_mark, wrap
from gpuwatch.tui.widgets.palette import VERDICTS

ZOOMS = {10: "10 s", 60: "1 min", 300: "5 min", TIMED: "timed steps", None: "all"}
"""Lengths of a history in seconds, and their names."""
_BEFORE_STEPS = ("import", "set-up", "first step")


def zoom_text(snapshot: Snapshot, width: int) -> str:
    """The length of the history in words, and what the readings are means of, in ``width``
    columns with two blanks before it."""
    history = ZOOMS[snapshot.view.seconds if snapshot.window.start > 0 else None]
    texts = [f"history: {history} ", f"{history} "]
    if snapshot.means:
        before = "and" if snapshot.means == history else f"of the {snapshot.means},"
        texts = [f"means {before} {texts[0]}", f"means: {snapshot.means} ", "means "]
    return longest_fitting(texts, width - 2)


@dataclass(frozen=True)
class Options:
    """Settings of the live screen."""

    paused: bool = False
    message: str = ""
    """The answer to the last action."""


def workload_rows(snapshot: Snapshot, width: int, phases: int) -> list[Line]:
    """Progress of the workload; ``phases``: most rows for the phases of a step."""
    work = snapshot.work
    if work is None:
        return []
    parts = [f"batch {work.batch_size}" if work.batch_size else None, work.dtype, work.model]
    other = snapshot.means not in ("", "timed steps") and work.step is not None
    what = "workload, timed steps" if other else "workload"
    title = "  ".join([what, *(clean(part) for part in parts if part)])
    rows = [rule(title, width)]
    if work.reports or snapshot.phase or snapshot.printed:
        rows.append(progress_row(snapshot, work, width))
    if not work.reports:
        if snapshot.imported:
            row = Line(width).add(" an imported profile: ", "muted").add("K", "key")
            return [*rows, row.add(" shows its kernels", "muted")]
        if snapshot.phase or (snapshot.status.live and snapshot.printed):
            return rows
        if snapshot.status.live:
            return rows + marked_rows(GIVE_STEPS, " → ", "key", width, 2, "muted")
        why = f"no throughput, step times or loss: {work.no_steps.partition(': ')[0]}"
        return rows + [
            Line(width).add(f" {text}", "muted") for text in wrap(clean(why), width - 2, 3)
        ]
    fields = Fields(width, 6 if width >= 120 else 3)
    if work.throughput.method is not Method.UNAVAILABLE:
        name = "samples/s now" if snapshot.status.live else "samples/s"
        fields.add(name, samples_rate(work.throughput.value))
    step = milliseconds(work.step_seconds)
    if (mean := far_mean(work.step_seconds, work.mean_seconds)) is not None:
        step += f", mean {milliseconds(mean)}"
    if (arrival := work.arrival_seconds) is None:
        fields.add("median step", step)
    else:
        fields.add("mean step", f"{milliseconds(arrival)}, by the arrival of lines")
        fields.add("steps/s", significant(1 / arrival))
    if width >= 120 and work.step_count:
        fields.add("over", work.newest + counted(work.step_count, "step"))
    if work.loss is not None:
        fields.add("loss", loss(work.loss))
    rows += fields.rows()
    if not snapshot.status.live and (
        took := parts_text(snapshot.parts, snapshot.t, rows[-1].left - 3)
    ):
        rows[-1].end(f"{took} ", "muted")
    if snapshot.earlier:
        found = isinstance(snapshot.earlier, str)
        told = clean(snapshot.earlier) if found else "looking for an earlier run …"
        texts = told, told.rpartition(";")[0], told.partition(";")[0]
        text = longest_fitting(texts, width - 4) or fit(told, width - 4)
        rows.append(Line(width).add(f" {GHOST} ", "strong").add(text))
    if snapshot.ranks is not None and phases > 0:
        role = "warn" if snapshot.ranks.straggler else "text"
        line = Line(width).add(" ").add(snapshot.ranks.line, role)
        rows.append(line.add("  r", "key", press="r").add(" shows each", "muted"))
    if snapshot.shares is not None and phases > 0:
        rows += phase_rows(snapshot.shares, width, phases)
    return rows + bound_rows(snapshot.bound, width, phases // 2 if snapshot.status.live else phases)


def parts_text(parts: Sequence[Part], t: int, most: int) -> str:
    """How long each part of a run that ended at ``t`` (ns) took: the steps, and the longest that
    fit beside them into ``most`` columns: ``start-up 21.2 s  steps 6.8 s  end 2.5 s``."""
    took: dict[str, float] = {}
    last = max((end for _, _, end in parts), default=t)
    for name, start, end in (*parts, ("end", last, t)):
        name = "start-up" if name in _BEFORE_STEPS else name
        took[name] = took.get(name, 0.0) + (end - start) / NS
    if "steps" in took:
        took["steps"] -= took.get("evaluation", 0.0)
    least = {"steps": 0.0}  # of any other part a hundredth of the run
    kept = [name for name in took if took[name] > least.get(name, t / NS / 100)]
    while kept:
        told = "  ".join(f"{name} {quantity(took[name], 's')}" for name in kept)
        if len(told) <= most:
            return told
        kept.remove(min(kept, key=lambda name: (name == "steps", took[name])))
    return ""


def bound_rows(text: str, width: int, most: int) -> list[Line]:
    """What bounds a run that is over; of a sentence that does not fit the clauses that do."""
    if not text or not most:
        return []
    most = 1 if text.startswith("cannot tell") else most
    texts = [text, *(text[: at.start()] for at in reversed([*re.finditer("[:;] ", text)]))]
    told = longest_fitting(texts, (width - 4) * most - 10 * (most - 1)) or text
    if told == "cannot tell":  # the row is for the reason
        return []
    rows = marked_rows(told, " = ", "key", width, most)
    if told != text and rows[-1].left >= len("  o shows why"):
        rows[-1].add("  o", "key", press="o").add(" shows why", "muted")
    return rows


_LEAST_BAR = 5
"""Columns."""


def progress_row(snapshot: Snapshot, work: Work, width: int) -> Line:
    """Step, total, bar, share and time left; without a total those of the count in its output."""
    row = Line(width).add(" ")
    done, total, left, printed = work.step, work.total, work.eta_seconds, snapshot.printed
    if done is not None:
        row.add("warm-up step " if work.warmup else "step ", "muted").add(f"{done:,}", "strong")
    elif work.reports or snapshot.phase:
        row.add(f"step {UNKNOWN}  {snapshot.phase or 'of several processes'}", "muted")
        total = None
    if total is None and printed is not None:
        left = printed.seconds_left(snapshot.t) if snapshot.status.live else None
        done, total = printed.done, printed.total
        named = f"{printed.epoch}  " if printed.epoch else "printed "
        row.add("  " * (row.used > 1) + named, "muted").add(f"{done:,}", "strong")
    if total is None or done is None:
        return row
    row.add(f"/{total:,}  ", "text")
    share = min(1.0, done / total)
    tail = Line(width).add(f" {percent(share):>6}", "strong")
    if work.step is not None and snapshot.phase:
        tail.add(f"  {snapshot.phase}", "muted")
    elif work.silence is not None and [each.kind for each in snapshot.alerts[:1]] != ["stalled"]:
        tail.add(f"  {work.silence}", "warn")
    elif left is not None and snapshot.goes_on:
        part = printed.epoch.partition(" ")[0] if printed is not None else ""
        eta, of, whole = clock_time(left), "", ""
        if printed is not None and printed.to_come:
            whole = clock_time(left + printed.to_come * printed.epoch_seconds)
            of = f", of all {'~' * (printed.took is None)}"  # none was whole yet
        room = row.left - tail.used - 1 - _LEAST_BAR - len(f"{eta}{of}{whole}")
        words = longest_fitting([f"  ETA of the {part} "] * bool(part), room) or "  ETA "
        tail.add(words, "muted").add(eta, "strong")
        if len(words) <= room:
            tail.add(of, "muted").add(whole, "strong")
    elif printed is not None and snapshot.status.live and printed.is_old(snapshot.t):
        tail.add(f"  {clock_time((snapshot.t - printed.t) / NS)} ago", "muted")
    tail.add(" ")
    return row.bar(share, max(_LEAST_BAR, row.left - tail.used), "progress").join(tail)


def log_rows(snapshot: Snapshot, options: Options, width: int, height: int) -> list[Line]:
    """The last log lines and the last event, in ``height`` rows."""
    printed = bool(snapshot.log)
    max_rows = 2 if height > 4 or not printed else 1
    if options.message:
        max_rows = max(1, height - printed)
    footer = event_rows(snapshot, options, width, max_rows)[:height]
    space = height - len(footer)
    if space < 1 or not snapshot.log:
        return filled([], width, space) + footer
    # In three rows a second log line is worth more than a heading, except in the past.
    least = min(4 - (snapshot.replay is not None), len(snapshot.log) + 1 + len(footer))
    rows = [rule("log", width)] if height >= least and space > 1 else []
    for entry in snapshot.log[len(rows) - space :]:
        row = Line(width)
        if width >= 100:
            row.add(f" {clock_time(entry.t / NS):>8}", "muted")
        text = clean(entry.text)
        row.add(*stream_mark(entry.stream, text)).add(fit(text, row.left), "text")
        rows.append(row)
    return filled(rows, width, space) + footer


def event_rows(snapshot: Snapshot, options: Options, width: int, max_rows: int) -> list[Line]:
    """The message, else the last event and its GPU, in at most ``max_rows`` rows."""
    row = Line(width).add(" ")
    if options.message:
        first, *rest = wrap(clean(options.message), width - 4, max_rows)
        rows = [row.add("» ", "key").add(first, "strong")]
        return [*rows, *(Line(width).to(3).add(line, "strong") for line in rest)]
    event = snapshot.event
    if event is None:
        return []
    row.add(f"{EVENT} ", "warn").add(f"at {clock_time(event.t / NS)}: ", "muted")
    device = snapshot.device(event.device)
    if device is not None and device.row.kind == "gpu":
        row.add(f"GPU {device.number}: ", "strong")
    text, indent = event_text(event), row.used
    if cell_len(text) > row.left and max_rows > 1:
        first, *rest = wrap(text, width - indent - 1, max_rows)
        return [row.add(first), *(Line(width).to(indent).add(line) for line in rest)]
    return [row.add(text)]


def event_columns(events: Sequence[EventRow], t: int, shown: Window) -> frozenset[int]:
    """The columns of the window with an event up to session time ``t``."""
    columns = set()
    for event in reversed(events):
        if event.t < shown.start:
            break
        column = int((event.t - shown.start) / shown.column_ns)
        if event.t <= t and column < shown.columns:
            columns.add(column)
    return frozenset(columns)


_PART, _MIXED = 6, "steps and evaluations"
"""Least columns of a part on average; below it steps and evaluations are one."""


def parts_row(parts: Sequence[Part], shown: Window, width: int) -> list[Line]:
    """A row below the time axis with the names of the run's parts; none, if there is but one, or
    only steps are shown, or there is room for no name."""
    names = [""] * shown.columns
    for name, start, end in parts:
        first, last = (
            int(max(0, min(shown.columns, (t - shown.start) / shown.column_ns + 0.5)))
            for t in (start, end)
        )
        names[first:last] = [name] * (last - first)
    if len(list(groupby(names))) * _PART > shown.columns:
        names = [_MIXED if name in ("steps", "evaluation") else name for name in names]
    row, drawn, named = Line(width).to(width - shown.columns), 0, False
    for name, columns in groupby(names):
        length = len(list(columns))
        drawn += bool(name)
        word = name.partition(" ")[0]
        short = "1st" if word == "first" else ""
        texts = [f"{name} ", name, f"{word} ", word, short] if name else []
        text = longest_fitting(texts, length - 1)
        named |= bool(text)
        line = "─" * (length - len(text) - 1) + "│" if name else " " * length
        row.add(text, "muted").add(line, "faint")
    return [row] if named and (drawn > 1 or (len(parts) > 1 and "steps" not in names)) else []


# The phases of a step: a stacked bar with names and shares.


_KNOWN = {
    "data": ("░", "warn"),
    "copy": ("╱", "progress"),
    "forward": ("█", "flops"),
    "backward": ("▓", "bandwidth"),
    "optimizer": ("▒", "utilization"),
}
"""Pattern and colour role of the common phases."""
_MORE_PATTERNS = (("╲", "good"), ("═", "key"), ("◇", "text"), ("•", "muted"))
"""The same for other phases, in turn."""
_OTHER = ("·", "faint")
_LONGEST = 29
"""Most columns of a phase's name."""

Phase = tuple[str, float, str, str]
"""Name, share, pattern, role."""


def phase_rows(shares: StepShares, width: int, max_rows: int) -> list[Line]:
    """The bar and the names below it; if ``max_rows`` is 1, the names alone.

    Each phase keeps its pattern; ``other`` is the time outside all phases.
    """
    more = iter(_MORE_PATTERNS)
    parts = [
        (fit(clean(name), _LONGEST), share, *(_KNOWN.get(name) or next(more, _MORE_PATTERNS[-1])))
        for name, share in shares.parts
    ]
    if shares.other >= 0.005:
        parts.append(("other", shares.other, *_OTHER))
    names = Line(width).add(" ").join(_legend(parts, width - 1))
    if max_rows > 1:
        bar = Line(width).add(" ")
        start = total = 0.0
        for _, share, pattern, role in parts:  # rounded at the borders: the parts add up
            total += share
            end = round(total * (width - 2))
            bar.add(pattern * (end - round(start)), role)
            start = end
        hook = "" if shares.hook is None else f", hook {100 * shares.hook:.1f} % of the time"
        mean = f"of {milliseconds(shares.seconds)}, the mean step"
        notes = (f"{mean}; timed in {shares.newest}{shares.steps:,} steps{hook} ", f"{mean}{hook} ")
        return [bar, names.end(longest_fitting(notes, names.left - 3), "muted")]
    return [names]


def _legend(parts: list[Phase], width: int) -> Line:
    """Pattern, name and share of each phase, or of the largest ones that fit."""
    keep, room = sorted(range(len(parts)), key=lambda at: -parts[at][1]), width + 2

    def columns(figures: Sequence[str]) -> int:
        return sum(5 + cell_len(parts[at][0] + figures[at]) for at in keep)

    shares = [share for _, share, _, _ in parts]
    figures, whole = list(map(percent, shares)), [percent(each, whole=True) for each in shares]
    figures = whole if columns(whole) <= room < columns(figures) else figures
    while keep and columns(figures) > room:
        keep.pop()
        room = width - 1
    row = Line(width)
    for at in sorted(keep):
        name, _, pattern, role = parts[at]
        row.add("  " if row.used else "").add(pattern, role)
        row.add(f" {name} ", "muted").add(figures[at], "strong")
    return row.add("  …" if len(keep) < len(parts) else "", "muted")


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
    row = Line(10_000)
    for state in filter(counts.__getitem__, _MARKS):
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
    so_far = " so far" * any(run.state in _UNFINISHED for run in strip.runs)
    verdict = "no verdict" if contrast.kind == "described" else contrast.kind + so_far
    row.add(verdict, role)
    row.add(
        f"  {_signed(contrast.estimate)} %" if _is_plausible(contrast.estimate) else "", "strong"
    )
    if _is_plausible(contrast.low) and _is_plausible(contrast.high):
        row.add(f" ({_signed(contrast.low)} to {_signed(contrast.high)})", "text")
    row.add(", steady mean" if contrast.by_total else "", "muted")
    blocks = f"{contrast.pairs} of {strip.blocks} blocks"
    return row.add(f"  {'one run each' if strip.blocks is None else blocks}", "muted")


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


def _is_plausible(value: float | None) -> TypeGuard[float]:
    return value is not None and abs(value) <= _MAX_CHANGE


def _signed(value: float) -> str:
    text = f"{100 * value:+.{1 if abs(value) < 1 else 0}f}"
    return text if float(text) else text[1:]
