"""Bars, histories and windows: fixed scales, and unknown differs from zero."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.samples import axis, column_means, window
from gpuwatch.tui.feed.snapshot import Gauge, Reading, View
from gpuwatch.tui.widgets.gauge_rows import LABEL, gauge_rows, scale_end, value_parts, value_width
from gpuwatch.tui.widgets.line import area, bar, fit, pad, wrap
from tests.session.samples import fill

from ..sessions import START_UNIX_NS, Script, write
from ..snapshots_of import texts


def test_a_constant_half_draws_half_full() -> None:
    assert area([0.5, 0.5], 1.0, 2) == ["  ", "██"]
    assert area([0.5], 1.0, 1) == ["▄"]


def test_zero_is_a_line_and_unknown_is_blank() -> None:
    assert area([0.0, None, 1.0], 1.0, 1) == ["▁ █"]


def test_a_graph_may_be_as_tall_as_a_screen() -> None:
    drawn = area([0.0, None, 0.5, 1.0], 1.0, 60)
    assert len(drawn) == 60 and drawn[0] == "   █" and drawn[-1] == "▁ ██"


@pytest.mark.parametrize("value", [None, 5e11])
def test_a_gauge_has_as_many_rows_as_it_is_given(value: float | None) -> None:
    name = "peak at maximum clock, sum over 8 GPUs of a long name"
    ceiling = Ceiling("bandwidth", 1e12, "By/s", "peak", name, "test")
    reading = Reading(value, Method.MEASURED, "no counter", "test")
    gauge = Gauge("bandwidth", "Memory bandwidth", "By/s", reading, 1e12, (value,) * 9, 1e12, False)
    for named in (None, ceiling):
        for width in (60, 80, 120):
            for height in range(1, 70):
                assert len(gauge_rows(replace(gauge, named_ceiling=named), height, width)) == height


@pytest.mark.parametrize(
    ("value", "unit", "large"),
    [(0.5, "", True), (81.2, "W", True), (0.007576, "", False), (123.4e12, "FLOP/s", True)],
)
def test_a_number_is_large_only_where_all_of_it_fits(value: float, unit: str, large: bool) -> None:
    reading = Reading(value, Method.MEASURED, None, "test")
    gauge = Gauge("picked", "Loss", unit, reading, None, (value,) * 9, 1.0, False)
    rows = [row[: value_width(80)] for row in texts(gauge_rows(gauge, 7, 80))]
    number, prefixed = value_parts(gauge)
    assert any("━" in row or "┃" in row for row in rows) == large
    assert any(f"{number} {prefixed}".strip() in row for row in rows) != large
    assert "…" not in "".join(rows)


@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.33, 0.5, 1.0, 9.0, None])
def test_a_bar_has_its_width(fraction: float | None) -> None:
    filled, empty = bar(fraction, 11)
    assert len(filled + empty) == 11
    if fraction is None:
        assert set(empty) == {"┄"}, "unknown differs from nothing"


def test_a_running_window_moves_in_jumps() -> None:
    views = {window(int(t * NS), 60, 50) for t in (102.1, 104.0, 107.9)}
    assert len(views) == 1
    view = views.pop()
    assert (view.start, view.end) == (48 * NS, 108 * NS)


def test_the_end_of_a_scale_keeps_its_unit() -> None:
    ends = [scale_end(gib * 2**30, "By", LABEL) for gib in (79.6, 80, 139.8)]
    assert ends == ["80Gi", "80Gi", "140Gi"]
    assert [scale_end(2.0, "s", LABEL), scale_end(700.0, "W", LABEL)] == ["2s", "700W"]


def test_the_axis_labels_time_since_the_start() -> None:
    line, labels = axis(window(50 * NS, 60, 60))
    assert len(line) == len(labels) == 60
    assert labels.split() == ["0s", "20s", "40s"] and line[20] == "┬"
    young = window(7 * NS, 60, 60)
    assert (young.start, young.end) == (0, 10 * NS), "as long as it is, up to the length asked for"


def test_a_tick_covers_its_interval_but_a_gap_stays_a_gap() -> None:
    times = [n * NS for n in (*range(5), *range(15, 20))]
    columns = column_means(times, [1.0] * 5 + [2.0] * 5, window(20 * NS, 20, 40, ended=True), 1.0)
    assert columns[:8] == [1.0] * 8 and columns[32:38] == [2.0] * 6
    assert columns[9:27] == [None] * 18


def test_one_missing_reading_is_drawn_as_the_next_and_two_are_a_gap() -> None:
    times = [n * NS for n in range(8)]
    values = [1.0, None, 3.0, None, None, 6.0, 7.0, None]
    columns = column_means(times, values, window(8 * NS, 8, 16, ended=True), 1.0)
    assert columns == [3.0] * 4 + [None] * 4 + [6.0] * 2 + [7.0] * 2 + [None] * 4


def test_of_a_long_session_few_samples_are_kept_one_by_one(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gpuwatch", Script(seconds=100, steps=False, kind="machine"))
    with SessionReader(path) as reader:
        values = [0.5] * len(reader.channels())
    fill(path, ((n * NS // 2, values) for n in range(50_000)))
    with SessionReader(path) as reader:
        collector = Collector(reader, lambda: START_UNIX_NS)
        collector.update()
        read = len(collector._ticks.times)
        snapshot = collector.snapshot(View(None, None, 120))
    assert read < 2000
    assert sum(value is not None for value in snapshot.gauges[0].history) > 40


# Text.


def test_fit_and_pad_count_cells_not_characters() -> None:
    assert fit("日本語", 5) == "日本…"
    assert pad("日本", 6) == "日本  " and pad("1", 3, ">") == "  1"
    assert fit("abc", 0) == ""


def test_wrap_breaks_long_words_and_says_that_something_is_missing() -> None:
    assert wrap("one two three", 7, 3) == ["one two", "three"]
    assert wrap("x" * 10, 4, 2) == ["xxxx", "xxx…"]
    assert wrap("", 4, 2) == []
    assert wrap("bound (1.6 %) now", 11, 3) == ["bound", "(1.6 %) now"]


def test_clean_removes_what_a_terminal_would_obey() -> None:
    assert clean("a\x1b[31mb\x1b]8;;http://x\x07c\x1b]8;;\x07\x00d") == "abcd"
    assert clean("50%\r100%\n") == "100%"
    assert clean("x\u202ey\u2066z\ufeff") == "xyz"
    assert clean("tab\there") == "tab here"
    assert clean("e\u0301 日本") == "e 日本"
