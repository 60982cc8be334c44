"""Of a comparison only what differs: the largest first, and nothing that its runs do not show."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.comparison.cells import STEP_TIME, WHOLE_RUN
from gpuwatch.analysis.comparison.comparison_row import STEADY
from gpuwatch.analysis.comparison.effect import effect
from gpuwatch.analysis.comparison.side_by_side import Comparison
from gpuwatch.analysis.results import ComparisonRow, Kind, StudyResult, Verdict
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.analysis.study.read import read_sessions, read_study
from gpuwatch.core.metrics import Method
from gpuwatch.report.document.blocks import CHANGED, Item, Section, Sentence, Table
from gpuwatch.report.document.differing import of_question, of_sessions
from gpuwatch.report.document.quantities import quantity_table
from gpuwatch.report.document.study import document, verdict_first
from gpuwatch.report.html.page import page
from gpuwatch.report.markdown import as_markdown
from gpuwatch.report.text import as_text
from gpuwatch.session.study.plan import Part
from gpuwatch.session.study.study_folder import sessions_in
from tests.analysis.recorded_studies import BARE, DOCKER, FAILED, RESNET, blocks_of, recorded

from . import results

MEASURED = (Method.MEASURED, Method.MEASURED)


def row(name: str, first: float | None, other: float | None, unit: str = "s") -> ComparisonRow:
    ratio = other / first if first and other is not None else None
    return ComparisonRow("mean", name, unit, (first, other), MEASURED, (None, ratio))


def of_cells(
    group: str,
    name: str,
    unit: str,
    values: tuple[float, float],
    ratios: tuple[float | None, ...],
    changes: tuple[Interval | None, ...] = (),
) -> ComparisonRow:
    return ComparisonRow(
        *(group, name, unit, values, MEASURED, ratios), lows=values, highs=values, changes=changes
    )


def names(section: Section) -> list[str]:
    return [each[0] for item in section.items if isinstance(item, Table) for each in item.rows]


def of_rows(*rows: ComparisonRow) -> list[str]:
    return names(of_sessions(Comparison((), 0, rows, (), ()), ["a", "b"]))


def test_single_runs_show_all_that_is_a_hundredth_apart_the_largest_factor_first() -> None:
    shown = of_rows(
        row("near", 1.0, 1.009),
        row("tenth", 1.0, 0.9),
        row("twice", 1.0, 2.0),
        row("half a point", 0.200, 0.205, "1"),
        row("share", 0.5, 0.2, "1"),
        replace(row("of unlike windows", 1.0, 2.2), ratios=(None, None)),
        replace(row("counter", 1.0, 9.0), ratios=(None, None), group="over the window"),
        row("unknown", 1.0, None),
        row("from nothing", 0.0, 5.0, "By"),
        row("share from nothing", 0.0, 0.9, "1"),
        row("small share", 0.0, 0.015, "1"),
        row("steps", 10.0, 90.0, "{step}"),
        replace(row("maximum too", 1.0, 3.0), group="maximum", name="twice"),
        replace(row("peak", 1.0, 3.0), group="maximum"),
    )
    assert shown == [
        *("share from nothing", "maximum peak", "share", "of unlike windows", "twice"),
        *("small share", "tenth", "from nothing"),
    ]


def test_of_many_the_number_of_those_that_differ_less_is_told() -> None:
    rows = [row(f"r{n}", 1.0, 2.0 + n) for n in range(25)]
    section = of_sessions(Comparison((), 0, tuple(rows), (), ()), ["a", "b"])
    assert names(section)[0] == "r24" and len(names(section)) == 12
    assert "13 smaller differences left out" in str(section.items[-1])


@pytest.mark.parametrize(
    ("change", "apart", "shown"),
    [
        (Interval(0.10, 0.05, 0.15, 0.95), False, True),
        (Interval(0.10, -0.01, 0.21, 0.95), True, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_of_repeated_runs_pairs_or_runs_that_do_not_overlap_decide(
    tmp_path: Path, change: Interval | None, apart: bool, shown: bool
) -> None:
    question = results.study_result(tmp_path).questions[0]
    of = question.baseline
    other = (of + 1) % 3
    values, lows, highs = [1.0] * 3, [0.9] * 3, [1.05] * 3
    values[other], lows[other], highs[other] = 1.1, 1.06 if apart else 1.04, 1.2
    changes = [None, None, None]
    found = ComparisonRow(
        "mean",
        "made",
        "s",
        tuple(values),
        (Method.MEASURED,) * 3,
        tuple(None if at == of else value for at, value in enumerate(values)),
        lows=tuple(lows),
        highs=tuple(highs),
        changes=tuple(change if at == other else None for at, _ in enumerate(changes)),
    )
    assert names(of_question(replace(question, table=(found,)))) == (["made"] if shown else [])


def test_that_nothing_differs_is_said_by_the_rule_and_only_where_something_was_compared(
    tmp_path: Path,
) -> None:
    wide, without = Interval(0.1, -0.01, 0.21, 0.95), (None, None)
    question, of = results.study_result(tmp_path).questions[0], (1.0, 1.1)
    question = replace(question, cells=question.cells[:2])
    row = of_cells("mean", "made", "s", of, (1.0, 1.1), (None, wide))

    def told(row: ComparisonRow) -> tuple[Item, ...]:
        return tuple(of_question(replace(question, table=(row,))).items)

    (said,) = told(row)
    assert isinstance(said, Sentence) and said.text == (
        "nothing else that can be compared differs by more than 1 % (shares 1 pp) "
        "with an interval that excludes zero"
    )
    assert not told(replace(row, ratios=without, changes=without, highs=(2.0, 2.0)))
    judged, *_ = told(replace(row, name=STEADY))
    assert isinstance(judged, Table) and len(judged.rows) == 1, "what is judged stands in any case"


TIMED = ("phases, mean", "data", "s")
DECIDED = Verdict(Kind.SLOWER, None, None, 0.01, 5, True, None)
DESCRIBED = replace(DECIDED, kind=Kind.DESCRIBED)


def test_an_invalid_pair_is_described_without_better_or_worse() -> None:
    of, invalid = (1.0, 2.0), replace(DECIDED, kind=Kind.INVALID)
    row = of_cells(*TIMED, of, (None, 2.0))
    assert [effect(row, 1, 0, each) for each in (DECIDED, DESCRIBED, invalid)] == ["worse", "", ""]


def test_an_outlier_is_told_before_the_result_is_believed(result: StudyResult) -> None:
    (question,) = result.questions
    first, *others = question.cells
    (warm_up, run, *runs) = first.runs
    marked = replace(first, runs=(warm_up, replace(run, outlier=True), *runs))
    doubted = replace(
        result,
        questions=(replace(question, cells=(marked, *others)),),
        notes=tuple(f"odd {at}" for at in range(9)),
    )
    told = f"in block {run.block} is an outlier, and kept"
    for of, there in ((result, False), (doubted, True)):
        text = " ".join(as_text(verdict_first(of, ""), 100).split())
        assert (told in text.partition("before you believe it")[2]) == there
    assert told in text.partition("more notes")[0], "that there are more of them is said last"


@pytest.mark.parametrize(
    ("metric", "its"), [(STEP_TIME, "the step time of its runs is"), (WHOLE_RUN, "its runs take")]
)
def test_runs_of_which_none_stands_out_but_that_lie_far_apart_are_told(
    result: StudyResult, metric: str, its: str
) -> None:
    (question,) = result.questions
    first, *others = question.cells
    runs = [replace(run, value=0.1 * 4 ** (at % 3)) for at, run in enumerate(first.runs)]
    cells = (replace(first, runs=tuple(runs)), *others)
    apart = replace(result, questions=(replace(question, cells=cells, metric=metric),))
    told = f"bare: {its} 100 ms to 1.60 s"
    for of, there in ((result, False), (apart, True)):
        text = " ".join(as_text(verdict_first(of, ""), 100).split())
        assert (told in text) == there


@pytest.mark.parametrize("lost", [(5,), (5, 7)])
def test_why_runs_have_no_value_is_said_once(tmp_path: Path, lost: tuple[int, ...]) -> None:
    """In a note on their cell, or by the verdict where they are too many."""
    stopped = {"code": None, "signal": 15, "stopped": "SIGTERM", "real_seconds": 0.5}
    options: dict[int, dict[str, object]] = {at: {"result": stopped} for at in lost}
    effects = {BARE.label: 1.0, DOCKER.label: 1.1}
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], effects, options=options)
    assert as_text(verdict_first(read_study(tmp_path), ""), 200).count("SIGTERM") == 1


@pytest.mark.parametrize(("failed", "there"), [((4, 6, 8, 10), True), ((4, 6, 8, 10, 12), False)])
def test_a_side_that_always_failed_has_no_changes(
    tmp_path: Path, failed: tuple[int, ...], there: bool
) -> None:
    options: dict[int, dict[str, object]] = {
        at: {"result": {**FAILED, "real_seconds": 0.5}} for at in failed
    }
    effects = {BARE.label: 1.0, DOCKER.label: 1.5}
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], effects, options=options)
    text = as_text(verdict_first(read_study(tmp_path), ""), 100)
    assert ("what differs" in text) is there


def test_what_is_judged_is_not_called_worse_where_the_verdict_cannot_tell() -> None:
    of, change = (1.0, 2.0), Interval(1.0, 0.5, 1.5, 0.95)
    row = of_cells("steps", STEADY, "s", of, (None, 2.0), (None, change))
    unsure = replace(DECIDED, kind=Kind.CANT_TELL)
    assert (effect(row, 1, 0, unsure), effect(replace(row, name="x"), 1, 0, unsure)) == (
        "",
        "worse",
    )
    for group, name, unit in (  # the step time's by another name
        ("mean", "gpuwatch.model.flop_rate", "FLOP/s"),
        ("efficiency", "MFU", "1"),
        ("steps", "step time, mean", "s"),
    ):
        named = replace(row, group=group, name=name, unit=unit)
        assert effect(named, 1, 0, DECIDED) and not effect(named, 1, 0, unsure)
    whole = replace(row, group="start-up and time", name="elapsed")
    judged, doubted = (replace(each, change=change) for each in (DECIDED, unsure))
    assert [effect(whole, 1, 0, each) for each in (DECIDED, judged, doubted)] == ["", "worse", ""]


@pytest.mark.parametrize(
    ("quantity", "ratio", "ends", "said"),
    [
        (TIMED, 1.02, None, "worse"),
        (TIMED, 0.98, None, "better"),
        (TIMED, 1.009, None, ""),
        (TIMED, 0.991, None, ""),
        (("steps", "throughput", "{sample}/s"), 1.02, None, "better"),
        (("efficiency", "energy per step", "J"), 1.02, None, "worse"),
        (("efficiency", "MFU", "1"), 0.5, None, "worse"),
        (("efficiency", "memory bandwidth, % of peak", "1"), 0.5, None, ""),
        (("mean", "hw.gpu.power", "W"), 2.0, None, ""),
        (("start-up and time", "elapsed", "s"), 2.0, None, ""),
        (("steps", "timed steps", "{step}"), 2.0, None, ""),
        (TIMED, None, None, ""),
        (TIMED, 1.05, (0.02, 0.08), "worse"),
        (TIMED, 1.05, (0.005, 0.08), ""),
        (TIMED, 0.95, (-0.08, -0.02), "better"),
    ],
)
def test_better_and_worse_are_said_beyond_the_margin_of_what_has_a_better(
    quantity: tuple[str, str, str], ratio: float | None, ends: tuple[float, float] | None, said: str
) -> None:
    values, ratios = (1.0, ratio), (None, ratio)
    changes = () if ends is None else (None, Interval(0.0, *ends, 0.95))
    row = of_cells(*quantity, values, ratios, changes)
    assert (effect(row, 0, 0, DECIDED), effect(row, 1, 0, DECIDED)) == ("", said)


def test_which_figures_are_of_the_steady_part_and_which_are_maxima_is_told(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], {BARE.label: 1.0, DOCKER.label: 1.1})
    result = read_study(tmp_path)
    whole = as_text(document(result), 100)
    for text in (whole, as_text(verdict_first(result, ""), 100)):
        assert "model FLOP/s and MFU of all its timed steps" in " ".join(text.split())
    rows = [line.strip() for line in whole.splitlines() if "model FLOP/s (c)" in line]
    assert [each.partition(" (c)")[0] for each in rows] == ["model FLOP/s", "maximum model FLOP/s"]


def test_what_is_judged_stands_in_the_order_of_its_sentence(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], {BARE.label: 1.0, DOCKER.label: 1.1})
    (question,) = read_study(tmp_path).questions
    for far in ("step time, steady mean", "throughput, steady mean"):
        rows = (replace(e, ratios=(1.0, 9.0)) if e.name == far else e for e in question.table)
        table, *_ = of_question(replace(question, table=tuple(rows))).items
        assert isinstance(table, Table)
        assert [name.partition(" (")[0] for name, *_ in table.rows[:3]] == [
            "step time, typical",
            "step time, steady mean",
            "throughput, steady mean, samples/s",
        ]


def test_every_format_says_better_and_worse_in_words_and_colours_them(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], {BARE.label: 1.0, DOCKER.label: 1.1})
    result = read_study(tmp_path)
    table, *_ = of_question(result.questions[0]).items
    assert isinstance(table, Table)
    marks = {table.rows[at][0]: mark for (at, _), mark in table.marks.items()}
    assert marks["step time, typical"] == marks["throughput, steady mean, samples/s (c)"] == "worse"
    assert marks["algorithmic bytes/s (c)"] == CHANGED
    plain = as_text(verdict_first(result, ""), 80)
    assert plain.count("worse") == 6 and "\x1b" not in plain
    coloured = as_text(verdict_first(result, ""), 80, colours=True)
    assert [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", coloured).splitlines()] == (
        plain.splitlines()
    )
    assert re.search(r"\x1b\[1;31mSLOWER +\x1b\[m", coloured)
    assert re.search(r"\x1b\[1;31m +[\d.]+ ms \+10\.0 % worse\x1b\[m", coloured)
    made = page(result, [])
    assert re.search(r'<strong class="worse">[^<]* \+10\.0&nbsp;% worse', made)
    assert "+10.0 % worse<br>" in as_markdown(result)
    assert re.search(r"tests \(Holm\) +2\n", as_text(document(result), 80))


def test_the_verdict_is_followed_by_what_differs_and_where_the_rest_is(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], {BARE.label: 1.0, DOCKER.label: 1.1})
    text = as_text(verdict_first(read_study(tmp_path), "all figures: there"), 100)
    order = ("SLOWER", "what differs", "step time, typical", "all figures: there")
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert "\n  timed steps" not in text and "what was measured" not in text


def test_a_run_that_was_killed_has_its_median_beside_one_that_was_not(tmp_path: Path) -> None:
    killed = {"code": None, "signal": 9}
    effects = {BARE.label: 1.0, DOCKER.label: 1.1}
    recorded(
        tmp_path, [Part("", (RESNET,), (BARE, DOCKER))], effects, options={2: {"result": killed}}
    )
    text = as_text(verdict_first(read_sessions(sessions_in(tmp_path)), ""), 80)
    assert "step time, typical" not in text, "what only one of them has"
    assert re.search(r"\nstep time, median +\S+ ms +\S+ ms", text), text


def test_what_reads_as_a_row_above_it_is_left_out() -> None:
    above = replace(row("peak", 2.0**30, 2.0**31, "By"), group="memory")
    rows = (row("of the process", 2.0**30, 2.0**31, "By"), row("other", 2.0**30, 2.0**32, "By"))
    compared = Comparison((), 0, rows, (), ())
    assert names(of_sessions(compared, ["a", "b"], [above])) == ["other"]
    assert of_rows(above, *rows) == ["other", "peak"]


def test_changes_are_per_cent_factors_and_of_shares_points() -> None:
    rows = (row("slower", 1.0, 1.031), row("long", 1.0, 25.0), row("use", 0.5, 0.562, "1"))
    table, *_ = of_sessions(Comparison((), 0, rows, (), ()), ["a", "b"]).items
    assert isinstance(table, Table)
    told = {line[0]: line[2].split("\t")[1] for line in table.rows}
    assert told == {"slower": "+3.1 %", "long": "×25", "use": "+6.2 pp"}


def test_the_paired_change_of_a_share_is_a_factor() -> None:
    # As points of the median 1.5 would be 120: no share rises so far.
    of = (0.8, 0.97)
    changes = (None, Interval(1.5, 0.05, 5.8, 0.95))
    share = of_cells("mean", "use", "1", of, (None, 0.97 / 0.8), changes)
    table = quantity_table([share], ["a", "b"], 0, brief=True)
    assert table.rows[0][2] == "97 %\t×2.500\n(1.050 to 6.800)"
