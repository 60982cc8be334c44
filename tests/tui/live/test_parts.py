"""What stands below the gauges: the parts of the run, the loss, and nothing that is empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.tui.feed.samples import Window
from gpuwatch.tui.feed.snapshot import View
from gpuwatch.tui.live.rows import parts_row, parts_text
from gpuwatch.tui.widgets.line import stream_mark

from ..sessions import NS, finished, put
from ..snapshots_of import page_text, snapshot_of, texts

Make = Callable[..., Path]
REPORTS = {
    "started": {"monotonic_ns": NS, "t": 6 * NS},
    "startup": {"import_seconds": 2.0, "t": 5 * NS},
    "profile": {"t": 90 * NS, "real_seconds": 10.0},
    "counters": {"t": 88 * NS, "real_seconds": None},
}


def test_the_known_parts_of_a_run_stand_below_the_time_axis(session: Make) -> None:
    path = session(seconds=70.0, meta={**finished(), **REPORTS}, alive=False)
    line = (80 * NS, 20_000, 1, 0, json.dumps({"evaluation": 8.0, "other": 2.0}))
    put(path, ("INSERT INTO step (t, step, count, warmup, phases) VALUES (?, ?, ?, ?, ?)", line))
    parts = snapshot_of(path, View(seconds=None)).parts
    assert [(name, round(start / NS), round(end / NS)) for name, start, end in parts] == [
        ("import", 1, 3),
        ("set-up", 3, 5),
        ("first step", 5, 5),
        ("steps", 5, 80),
        ("evaluation", 70, 78),
        ("profile", 80, 90),
    ]
    (row,) = texts(parts_row(parts, Window(0, 90 * NS, 900), 920))
    assert [name.strip(" ─") for name in row.split("│")] == [
        *("import", "set-up", "steps", "evaluation", "steps", "profile", "")
    ]


def test_a_part_is_named_where_its_name_fits_and_one_alone_is_not() -> None:
    parts = [("start-up", 0.0, 20.0), ("first step", 20.0, 27.0), ("steps", 27.0, 60.0)]
    shown = Window(0, 60, 60)
    (row,) = texts(parts_row(parts, shown, 94))
    assert row.strip() == "start-up ──────────│first │steps ──────────────────────────│"
    assert parts_row(parts[2:], shown, 94) == []


def test_the_time_of_the_steps_is_told_before_longer_parts() -> None:
    parts = [
        ("import", 0.0, 6.0 * NS),
        ("first step", 6.0 * NS, 8.0 * NS),
        ("steps", 8.0 * NS, 12.0 * NS),
        ("ncu", 12.0 * NS, 80.0 * NS),
    ]
    whole = "start-up 8.00 s  steps 4.00 s  ncu 68.0 s  end 3.00 s"
    assert parts_text(parts, 83 * NS, 60) == whole
    assert parts_text(parts, 80 * NS, 60) == whole.removesuffix("  end 3.00 s")
    assert parts_text(parts, 83 * NS, 30) == "steps 4.00 s  ncu 68.0 s"
    assert parts_text(parts, 83 * NS, 20) == "steps 4.00 s"
    assert parts_text(parts, 83 * NS, 10) == ""


def test_many_evaluations_are_told_as_one_part_with_the_steps_between() -> None:
    parts = [("start-up", 0.0, 20.0), ("steps", 20.0, 60.0)]
    parts += [("evaluation", float(at), at + 1.0) for at in range(22, 60, 2)]
    (row,) = texts(parts_row(parts, Window(0, 60, 60), 94))
    assert row.strip() == "start-up ──────────│steps and evaluations ─────────────────│"


def test_the_loss_is_drawn_unasked_where_the_gauges_keep_their_digits(session: Make) -> None:
    path = session()
    assert "\n Loss " in page_text(path, (200, 60))
    assert "\n Loss " not in page_text(path, (80, 24))


def test_what_has_nothing_to_show_takes_no_row(session: Make) -> None:
    text = page_text(session(), (120, 40))
    assert "── log" not in text and "event" not in text and "printed" not in text
    assert text.splitlines()[-1].strip(), "its rows are the gauges'"
    assert "── log" in page_text(session("02", log=[("stdout", "a")]), (120, 40))


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        (" 90%|█████████ | 54/60 [00:09<00:00,  8.37it/s]", " bar "),
        ("  0%|          | 0/60 [00:00<?, ?it/s]", " bar "),
        ("Downloading ━━━━━━━━━━━╸      12/30 MB", " bar "),
        ("Traceback (most recent call last):", " err "),
        ("warning: 99% of memory used", " err "),
    ],
)
def test_a_progress_bar_is_no_error(line: str, mark: str) -> None:
    assert stream_mark("stderr", line)[0] == mark
    assert stream_mark("stdout", line)[0] == " out "
