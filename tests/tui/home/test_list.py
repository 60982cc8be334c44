"""The list of the home screen: grouped, found, sorted, and drawn in the width there is."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import Listed, ListedSession, ListedStudy, what_ran
from gpuwatch.tui.home.list import ListOptions, arranged
from gpuwatch.tui.home.rows import details
from gpuwatch.tui.home.table import ORDERS, cells, columns, verdict

STUDY = Path("/s/pair")


def entry(file: str, **more: object) -> ListedSession:
    known = ListedSession(
        path=Path("/s") / file,
        status="finished",
        workload="mnist-cnn",
        environment="bare",
        started="2026-01-02T03:04:05+00:00",
        elapsed_seconds=90.0,
        step_median_seconds=0.005,
        samples_per_second=1000.0,
        study=file.partition("/")[0],
    )
    return replace(known, **more)  # type: ignore[arg-type]


PAIR = (
    entry("pair/02", environment="docker", run=2, block=1, started="2026-01-02T03:10:00+00:00"),
    entry("pair/01", run=1, block=0),
)
SAYS = ({"kind": "same", "text": "docker costs less than 1 % here", "short": "SAME +0.0 % docker"},)
LISTED = Listed(
    (
        entry(
            "new/01", started="2026-01-03T00:00:00+00:00", workload="gcn", step_median_seconds=None
        ),
        *PAIR,
        entry(
            "old/01",
            started="2026-01-01T00:00:00+00:00",
            name="first",
            tags=("fast",),
            failure="CUDA out of memory (tried 20.00 GiB)",
            status_text="killed (SIGKILL)",
        ),
        entry(
            "live/01",
            started="2025-01-01T00:00:00+00:00",
            status="running",
            step_median_seconds=0.1,
        ),
    ),
    (ListedStudy(path=STUDY, study="pair", environments=("bare", "docker"), runs=2, says=SAYS),),
)


def rows(how: ListOptions, listed: Listed = LISTED) -> list[str]:
    return [str(item.path.relative_to("/s")) for item in arranged(listed, how)]


def test_what_goes_on_is_first_then_the_newest_and_a_study_is_one_row() -> None:
    assert rows(ListOptions()) == ["live/01", "new/01", "pair", "old/01"]


def test_the_runs_of_an_open_study_stand_below_it_in_the_plans_order() -> None:
    opened = ListOptions(opened=frozenset({STUDY}))
    assert rows(opened)[2:5] == ["pair", "pair/01", "pair/02"]
    assert rows(replace(opened, reverse=True))[1:] == [
        "old/01",
        "pair",
        "pair/01",
        "pair/02",
        "new/01",
    ]
    folder = replace(LISTED, studies=(replace(LISTED.studies[0], runs=None),))
    assert rows(opened, folder)[2:5] == ["pair", "pair/02", "pair/01"], "no plan: the newest first"


def test_unknown_values_come_last_both_ways() -> None:
    by_step = ListOptions(order=[order.name for order in ORDERS].index("step time"))
    assert rows(by_step) == ["live/01", "old/01", "new/01", "pair"]
    assert rows(replace(by_step, reverse=True)) == ["live/01", "old/01", "new/01", "pair"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("gcn", ["new/01"]),
        ("status:running", ["live/01"]),
        ("tag:fast", ["old/01"]),
        ("name:FIRST", ["old/01"]),
        ("env:docker", ["pair", "pair/02"]),
        ("study:pair env:bare", ["pair", "pair/01"]),
        ("gcn tag:fast", []),
        ("what:ever", []),
        ("same docker", ["pair"]),
        ("memory result:20.00", ["old/01"]),
        ("sigkill", ["old/01"]),
    ],
)
def test_words_and_fields_find_sessions(query: str, found: list[str]) -> None:
    assert rows(ListOptions(query=query)) == found


def test_a_study_that_waits_at_a_place_is_a_row_of_its_own() -> None:
    waiting = ListedStudy(
        path=STUDY,
        study="pair",
        commands=("train.py",),
        environments=("bare",),
        runs=1,
        going_on=True,
        placement={"state": "queued", "text": "queued on slurm: Resources", "in_part": None},
    )
    (row,) = arranged(Listed((), (waiting,)), ListOptions(opened=frozenset({STUDY})))
    assert row.goes_on and row.state == ("queued", "queued") and row.ran == "train.py"
    shown = columns([row], 120)
    line = "".join(text for text, _ in cells(row, shown, ()))
    assert "… queued" in line and "queued on slurm: Resources" in line
    for query, found in (("train", 1), ("status:queued env:bare", 1), ("status:running", 0)):
        assert len(arranged(Listed((), (waiting,)), ListOptions(query=query))) == found


def test_a_study_that_could_not_start_says_why() -> None:
    placement = {"state": "failed", "text": "failed on gpu1: no such command", "in_part": None}
    study = ListedStudy(path=STUDY, study="pair", runs=1, placement=placement)
    _, line = text(Listed((), (study,)), 120)
    assert "failed on gpu1: no such command" in line


def study(*states: str, going_on: bool = False, runs: int | None = None) -> Item:
    every = tuple(entry(f"pair/{n}", status=state) for n, state in enumerate(states))
    listed = ListedStudy(path=STUDY, study="pair", runs=runs or len(states), going_on=going_on)
    return Item(study=listed, runs=every, every=every)


@pytest.mark.parametrize(
    ("item", "told"),
    [
        (study("finished", "finished"), ("finished", "2 runs")),
        (study("finished", "running", runs=5), ("running", "run 2/5")),
        (study("finished", going_on=True, runs=5), ("running", "run 1/5")),
        (study("finished", "killed"), ("failed", "1 killed")),
        (study("failed", "killed"), ("failed", "2 failed")),
        (study("finished", "timed out"), ("failed", "1 timed out")),
        (study("finished", "stopped"), ("stopped", "1/2 runs")),
        (study("finished", runs=5), ("stopped", "1/5 runs")),
    ],
)
def test_a_study_says_what_became_of_its_runs(item: Item, told: tuple[str, str]) -> None:
    assert item.state == told


def text(listed: Listed, width: int, how: ListOptions = ListOptions()) -> list[str]:  # noqa: B008
    items = arranged(listed, how)
    shown = columns(items, width)
    head = "".join(column.cell(column.title or column.name) for column in shown)
    return [head, *("".join(part for part, _ in cells(item, shown, ())) for item in items)]


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_rows_fill_no_more_than_the_width(width: int) -> None:
    for how in (ListOptions(), ListOptions(opened=frozenset({STUDY}))):
        drawn = text(LISTED, width, how)
        assert all(len(row) <= width for row in drawn)
        assert any("+ mnist-cnn" in row or "- mnist-cnn" in row for row in drawn)


def test_a_studys_row_ends_with_its_verdict() -> None:
    row = next(row for row in text(LISTED, 120) if "+ mnist-cnn" in row)
    assert "bare +1" in row and "SAME +0.0 % docker" in row
    several = replace(
        LISTED.studies[0],
        says=(*SAYS, *({"kind": "slower", "text": text, "short": text} for text in "ab")),
    )
    assert verdict(several) == "1 same, 2 slower"


def test_where_a_run_was_stands_before_its_environment() -> None:
    away = [entry(f"{name}/01", place="slurm n1", environment=name) for name in ("bare", "docker")]
    items = arranged(Listed(tuple(away)), ListOptions(query="env:slurm"))
    shown = [each for each in columns(items, 160) if each.name == "environment"]
    assert [each.text(item) for item in items for each in shown] == ["slurm n1", "slurm n1 docker"]
    (named,) = arranged(Listed((replace(away[0], name="mine"),)), ListOptions())
    (row,) = details(named, 80, 1)
    assert "mnist-cnn in slurm n1" in "".join(text for text, _ in row.spans())


def test_a_name_takes_the_workloads_place_where_there_is_little_room() -> None:
    drawn = text(LISTED, 80)
    assert re.search("command / name +env ", drawn[0])
    assert any("first  " in row and "mnist-cnn" not in row for row in drawn)
    assert "name    command " in text(LISTED, 160)[0]
    unnamed = replace(LISTED, sessions=LISTED.sessions[:3])
    assert " command " in text(unnamed, 80)[0] and "name" not in text(unnamed, 80)[0]
    assert any(
        "first  " in row and "mnist-cnn" in row and "fast" in row for row in text(LISTED, 160)
    )


def test_places_stand_in_the_place_of_what_their_study_ran() -> None:
    how = ListOptions(opened=frozenset({STUDY}))
    drawn = [" ".join(row.split()) for row in text(LISTED, 80, how)]
    assert any("│ w r1 bare 5.00 ms 1,000" in row for row in drawn)
    assert any("╰ b1 r2 docker 5.00 ms" in row for row in drawn)
    several = replace(
        LISTED, sessions=(*LISTED.sessions[:2], replace(PAIR[1], workload="resnet50"))
    )
    drawn = text(several, 80, how)
    assert any("│ w r1 resnet50" in row and "1,000" in row for row in drawn)
    named = replace(LISTED, sessions=(*LISTED.sessions[:2], replace(PAIR[1], name="best")))
    assert any("│ w r1 best" in row for row in text(named, 80, how))


GIB = 1024**3
OUT = entry(
    "out/01",
    status="failed",
    workload="train.py",
    command="train.py --bs 64",
    status_text="exit code 1",
    reason="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has",
    failure="CUDA out of memory (tried 20.00 GiB)",
)
FAST = entry(
    "fast/01",
    workload="train.py",
    command="train.py --bs 8",
    mfu=0.17,
    peak_gpu_memory_bytes=20.0 * GIB,
)
RUNS = Listed((OUT, FAST, entry("slow/01", workload="train.py", command="train.py --bs 16")))


def test_runs_of_one_program_are_told_apart_by_their_arguments() -> None:
    for width in (80, 120, 200):
        drawn = text(RUNS, width)
        for size in (8, 16, 64):
            assert any(f" train.py --bs {size} " in row for row in drawn)
    long = replace(OUT, command=f"train.py {'--flag 1 ' * 40}")
    assert all(len(row) <= 120 for row in text(Listed((long,)), 120))
    assert "train.py --flag 1 --flag 1" in text(Listed((long,)), 120)[1]


def test_commands_of_a_study_stand_in_the_order_of_its_plan() -> None:
    runs = [entry(f"s/{at}", command_label=name, command=name) for at, name in enumerate("cab")]
    assert (what_ran(runs), what_ran(runs, ("b", "a", "c"))) == ("c, a, b", "b, a, c")


def test_figures_stand_in_their_columns_and_what_no_row_has_takes_none() -> None:
    head, *rows = text(RUNS, 120)
    places = [head.index(title) for title in ("med. step", "samples/s", "MFU", "peak mem")]
    assert places == sorted(places)
    row = next(row for row in rows if "--bs 8" in row)
    assert "5.00 ms     1,000   17 %   20.0 GiB" in row
    unknown = next(row for row in rows if "--bs 16" in row)
    assert "1,000      —          —" in unknown
    head, *_ = text(Listed(RUNS.sessions[::2]), 120)
    assert "MFU" not in head and "peak mem" not in head
    bound = replace(FAST, peak_gpu_memory_method="bound")
    assert any("≤20.0 GiB" in row for row in text(Listed((bound,)), 120))


@pytest.mark.parametrize("width", [100, 120, 160, 200])
def test_why_a_run_failed_stands_in_place_of_its_figures(width: int) -> None:
    row = next(row for row in text(RUNS, width) if "✗ failed" in row)
    folder = f"{OUT.path.parent.name} +" if width == 200 else ""
    assert re.search(rf"bare +{folder}CUDA out of memory \(tried 20.00 GiB\) ", row)
    assert "5.00 ms" not in row
    assert "1:30" in row
    told = ["".join(part for part, _ in row.spans()) for row in details(Item(entry=OUT), 120, 3)]
    assert told == [f" ✗ exit code 1: {OUT.reason}"]


def test_a_run_that_ended_well_with_a_loss_that_is_no_number_says_so() -> None:
    row = text(Listed((replace(FAST, failure="the loss is no finite number"),)), 120)[-1]
    assert "finished" in row and "the loss is no finite number" in row


def test_no_heading_stands_behind_the_start_of_why_a_run_failed() -> None:
    why = f"exit code 1: RuntimeError: {'boom ' * 12}"
    of = Listed((replace(OUT, failure=why), FAST)), Listed((replace(OUT, failure=why),))
    (head, *_), (alone, *_) = (text(listed, 200) for listed in of)
    assert "step" in head and "result" not in head and "result" not in alone
    unknown = replace(OUT, failure=why, step_median_seconds=None, samples_per_second=None)
    head, row = text(Listed((unknown,)), 200)
    assert head.index("result") == row.index("exit code 1")


def test_the_foot_has_a_long_command_whole() -> None:
    long = replace(FAST, command="train.py --model resnet50 --bs 64")
    told = ["".join(part for part, _ in row.spans()) for row in details(Item(entry=long), 80, 3)]
    assert told == [" train.py --model resnet50 --bs 64 in bare"]


def test_what_was_started_today_shows_the_time_alone() -> None:
    now = datetime.now().astimezone()
    drawn = text(Listed((replace(FAST, started=now.isoformat()),)), 120)
    assert drawn[1].endswith(f"   {now:%H:%M}")


def test_of_a_study_with_several_commands_the_runs_say_theirs() -> None:
    swept = tuple(
        replace(run, command=f"mnist-cnn --batch-size {size}")
        for run, size in zip(PAIR, (64, 32), strict=True)
    )
    how = ListOptions(opened=frozenset({STUDY}))
    drawn = text(Listed(swept, LISTED.studies), 120, how)
    assert any("- mnist-cnn  " in row for row in drawn)
    assert any("│ w r1 mnist-cnn --batch-size 32" in row for row in drawn)
    same = tuple(replace(run, command="mnist-cnn --steps 9") for run in PAIR)
    drawn = text(Listed(same, LISTED.studies), 120, how)
    assert any("- mnist-cnn --steps 9 " in row for row in drawn)
    assert any("│ w r1   " in row for row in drawn)


def test_the_foot_tells_note_tags_and_sentences_in_the_lines_there_are() -> None:
    noted = replace(LISTED.studies[0], note="n" * 100, tags=("a", "b"), question="Why?")
    told = details(Item(study=noted), 60, 4)
    lines = ["".join(part for part, _ in row.spans()) for row in told]
    assert lines[0].startswith(" note nnn") and len(lines) == 4
    assert lines[2] == " tags a b" and lines[3].startswith(" docker costs less")
    assert details(Item(study=noted), 60, 0) == []


def test_a_study_started_with_its_first_run_and_took_until_the_last_one_ended() -> None:
    (item,) = (item for item in arranged(LISTED, ListOptions()) if item.entry is None)
    assert item.first_start == "2026-01-02T03:04:05+00:00"
    # The second run starts 5:55 after the first and takes 1:30.
    assert item.elapsed == 5 * 60 + 55 + 90
    unread = replace(PAIR[1], started="", elapsed_seconds=None)
    broken = Item(study=item.study, runs=(PAIR[0], unread), every=(PAIR[0], unread))
    assert broken.first_start == PAIR[0].started and broken.elapsed == 90
    assert replace(broken, every=(unread,)).elapsed is None


@pytest.mark.parametrize("state", ["failed", "killed", "timed out", "lost", "unreadable"])
def test_why_a_run_did_not_end_well_stands_in_the_foot(state: str) -> None:
    ended = entry("a/01", status=state, status_text="exit code 1", reason="No module named 'x'")
    told = ["".join(part for part, _ in row.spans()) for row in details(Item(entry=ended), 80, 3)]
    assert told == [" ✗ exit code 1: No module named 'x'"]
    by_signal = {"status_text": "ended by SIGKILL", "failure": "killed (SIGKILL)", "reason": ""}
    (row,) = details(Item(entry=replace(ended, **by_signal)), 80, 3)
    assert "".join(part for part, _ in row.spans()) == " ✗ killed (SIGKILL)", "as in the list"
    good = replace(ended, status="finished")
    assert details(Item(entry=good), 80, 3) == []
    of_study = Item(study=LISTED.studies[0], runs=(good, ended), every=(good, ended))
    told = ["".join(part for part, _ in row.spans()) for row in details(of_study, 80, 3)]
    assert "exit code 1: No module named 'x'" in told[0]
