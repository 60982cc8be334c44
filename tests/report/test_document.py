"""What reports say, in whichever format: the answer first, and nothing twice."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.results import Difference, Kind, StudyResult
from gpuwatch.analysis.study.read import read_sessions, read_study
from gpuwatch.report.document.answer import top
from gpuwatch.report.document.blocks import Bar, Bars, Heading, Intervals, Item, Sentence, Table
from gpuwatch.report.document.reasons import difference_items
from gpuwatch.report.document.study import document, verdict_first
from gpuwatch.report.html.page import page
from gpuwatch.report.markdown import as_markdown
from gpuwatch.report.text import as_text, bars, terminal
from gpuwatch.session.study.study_folder import sessions_in
from tests.analysis.recorded_studies import BARE, DOCKER, blocks_of, recorded
from tests.analysis.study.test_letters import LONG, renamed
from tests.tui.sessions import Script, finished, write

from . import results

EFFECTS = {BARE.label: 1.0, DOCKER.label: 1.1}


@pytest.mark.parametrize("answers", [True, False])
def test_the_sentence_of_a_verdict_stands_once_in_every_format(
    tmp_path: Path, answers: bool
) -> None:
    recorded(tmp_path, [blocks_of(6 if answers else 2, BARE, DOCKER)], EFFECTS)
    result = read_study(tmp_path)
    (contrast,) = result.questions[0].contrasts
    told = " ".join(contrast.sentence.split(" ")[:6]).removesuffix(".")
    for text in (
        terminal(result),
        terminal(result, short=True),
        as_text(verdict_first(result, ""), 80),
        as_markdown(result).replace("\\", ""),
        re.sub(r"<[^>]+>", "", html.unescape(page(result, []))),
    ):
        assert " ".join(text.split()).count(told) == 1


def test_where_one_row_of_the_chart_names_its_value_all_do(tmp_path: Path) -> None:
    result = results.study_result(tmp_path)
    (question,) = result.questions

    def names(kind: Kind) -> list[str]:
        first, *others = question.contrasts
        both = replace(first.verdict, typical=first.verdict.kind, kind=kind)
        total = replace(first.verdict, kind=kind, total=None)
        changed = replace(first, verdict=replace(both, total=total))
        same = [replace(e, verdict=replace(e.verdict, typical=e.verdict.kind)) for e in others]
        same = [replace(e, verdict=replace(e.verdict, total=e.verdict)) for e in same]
        found = replace(result, questions=(replace(question, contrasts=(changed, *same)),))
        chart = top(found).chart
        assert isinstance(chart, Intervals)
        return [change.name for change in chart.changes]

    (docker, apptainer) = names(question.contrasts[0].verdict.kind)
    both = [
        f"{name}, {of}" for name in (docker, apptainer) for of in ("typical step", "steady mean")
    ]
    assert names(Kind.CANT_TELL) == both


def test_long_labels_are_letters_in_the_chart_and_names_in_the_title(tmp_path: Path) -> None:
    result = renamed(results.study_result(tmp_path), LONG)
    for text in (as_markdown(result), page(result, [])):
        before = text.partition("SAME")[0]
        title = before.partition("against bare, resnet50")[0]
        assert "docker" in title and LONG in title and "B and C" not in before
        assert "bare (baseline)" in before


@pytest.mark.parametrize(
    ("names", "end"),
    [
        (("one.py", "one.py"), ", one.py"),
        (("one.py", "two.py"), ""),
        (("", None), ""),
        (("x" * 99, "x" * 99), f", {'x' * 59}…"),
    ],
)
def test_the_title_names_what_all_of_them_ran(
    tmp_path: Path, names: tuple[str | None, str | None], end: str
) -> None:
    result = results.one_run_each(tmp_path)
    (question,) = result.questions
    cells = []
    for cell, name in zip(question.cells, names, strict=True):
        (run,) = cell.runs
        session = replace(run.session, workload={**run.session.workload, "name": name})
        cells.append(replace(cell, runs=(replace(run, session=session),)))
    told = replace(result, questions=(replace(question, cells=tuple(cells)),))
    assert top(told).title == f"docker against bare{end}"


def test_two_single_runs_have_their_letters_above_the_verdict(tmp_path: Path) -> None:
    told = "resnet50 --batch-size 64, 01-bare, 2026-09-21 14:14 UTC (baseline)"
    text = as_markdown(renamed(results.one_run_each(tmp_path), LONG))
    title = f"# {LONG} against bare, resnet50"
    assert text.startswith(f"{title}\n\n- **A** {told}\n- **B** {LONG}, resnet50 ")
    assert text.index("- **B**") < text.index("- **NO V")


def test_notes_on_single_runs_use_their_letters(tmp_path: Path) -> None:
    result = renamed(results.one_run_each(tmp_path), LONG)
    told = (f"known of {LONG} alone, not of bare", f"11 ms in bare, 1 in {LONG}")
    (question,) = result.questions
    moved = f"bare gave no value: {LONG} is the baseline"
    noted = (*(f"odd {at}" for at in range(9)), *told, moved)
    result = replace(result, questions=(replace(question, notes=noted),))
    whole = " ".join(as_text(document(result), 100).split())
    brief = " ".join(as_text(verdict_first(result, ""), 100).split())
    for text in (whole, brief):
        assert "A gave no value: B is the baseline" in text and moved not in text
    assert "known of B alone, not of A" in whole and "11 ms in A, 1 in B" in whole


def test_two_single_runs_have_their_step_times_as_bars(tmp_path: Path) -> None:
    chart = top(results.one_run_each(tmp_path)).chart
    assert isinstance(chart, Bars)
    assert [(bar.name, bar.text) for bar in chart.bars] == [
        ("bare", "499 ms"),
        ("docker", "503 ms"),
    ]


def test_a_single_run_has_its_main_figures_and_phases(tmp_path: Path) -> None:
    result = results.one_run_each(tmp_path, ("bare",))
    head, sections = top(result), document(result).sections
    (folded,) = [at for at, each in enumerate(sections) if each.closed and not each.title]
    assert isinstance(sections[folded].items[0], Table)
    assert "gauges" in [each.title for each in sections[:folded]]
    assert [each.name for each in head.figures] == [
        *("step time, median", "throughput, mean", "MFU", "energy a sample", "peak GPU memory")
    ]
    assert [each.value for each in head.figures[:2]] == ["499 ms", "128 samples/s"]
    assert head.figures[0].note == "measured: 20 timed steps, mean 499 ms"
    assert isinstance(head.chart, Bars)
    assert [bar.name for bar in head.chart.bars] == ["data", "forward", "backward"]


def test_what_is_unknown_of_a_run_is_unavailable_with_its_reason(tmp_path: Path) -> None:
    script = Script(meta=finished(1), alive=False, steps=False, gpus=0, count=False)
    write(tmp_path / "01-bare.gpuwatch", script)
    result = read_study(tmp_path)
    head = top(result)
    assert "exit code 1" in dict(document(result).facts)["Ended"] and head.chart is None
    for each in head.figures:
        assert each.value == "unavailable" and each.note
    assert page(result, []).count("<dd>unavailable</dd>") == 5
    assert as_markdown(result).count("unavailable |") == 5


def test_bars_of_text_are_as_long_as_their_values() -> None:
    drawn = bars(Bars("step time", (Bar("A", 1.0, "1.00 s"), Bar("B", 2.0, "2.00 s"))), 31)
    assert drawn == ["A  ##########            1.00 s", "B  ####################  2.00 s"]


def test_how_a_study_was_made_and_how_far_it_has_come_is_known(result: StudyResult) -> None:
    sessions = tuple(
        replace(each, facts={**each.facts, "host": {"gpuwatch.version": "1.2.3"}})
        for each in result.sessions
    )
    facts = dict(document(replace(result, sessions=sessions[:-1])).facts)
    assert facts["Command"] == "resnet50 --batch-size 64" and facts["gpuwatch"] == "1.2.3"
    assert facts["Design"].endswith("6 of 7 judged blocks done, a warm-up block, margin 1 %")


def test_sessions_put_together_by_hand_say_so(pair: StudyResult) -> None:
    assert dict(document(pair).facts)["Design"] == "sessions put together by hand"


def section_of(result: StudyResult, title: str) -> list[Item]:
    """The items of all sections with this title."""
    return [item for e in document(result).sections if e.title == title for item in e.items]


def test_what_several_have_in_common_is_said_once(result: StudyResult) -> None:
    (bound, *_) = section_of(result, "what bounds a run in the middle of each cell")
    assert isinstance(bound, Sentence) and bound.word == "bare, docker, apptainer"
    told = section_of(result, "how each number was obtained")
    texts = [item.text for item in told if isinstance(item, Sentence)]
    reasons = [text.rpartition(": ")[2] for text in texts if text.startswith("unavailable: ")]
    assert reasons and len(reasons) == len(set(reasons))
    (one,) = result.not_run
    gone = replace(result, not_run=(one, one, replace(one, label="docker")))
    (missing,) = document(gone).missing
    assert missing.text == "charliecloud (2 runs), docker did not run: ch-run is not on the PATH"
    assert missing.hint == "install charliecloud"


def test_a_sweep_names_best_ties_and_out_of_memory(result: StudyResult) -> None:
    sweep = result.sweeps[0]
    tied = (replace(sweep.points[0], tied=True), *sweep.points[1:])
    items = section_of(replace(result, sweeps=(replace(sweep, points=tied),)), "sweeps")
    (points,) = [item for item in items if isinstance(item, Table)]
    assert points.rows[0][3] == "-11.0 % (-13.0 to -9.0), tied" and points.rows[1][3] == "best"
    assert Sentence("", "128: out of memory") in items


def test_a_few_runs_of_one_environment_are_compared_and_of_many_the_median_is_told(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / f"{at}-as-it-was-then.gpuwatch" for at in range(5)]
    for at, path in enumerate(paths):
        write(path, Script(meta=finished(), alive=False, start=100.0 * at, pace=1 + at / 10))
    for some in (paths[:2], paths):
        result, few = read_sessions(some), len(some) == 2
        shown = document(result)
        items = [item for each in shown.sections for item in each.items]
        rows = [row for item in items if isinstance(item, Table) for row in item.rows]
        row = next(row for row in rows if row[0].startswith("step time, typical"))
        assert len(row) == (4 if few else 2)
        assert any("+10.0 %" in cell for cell in row) is few
        (said,) = shown.answer
        assert isinstance(said, Sentence)
        assert said.word == ("NO VERDICT (1 run of each, needs 5)" if few else "")
        assert ("typical step +10.0 %" if few else "step time, typical 6.54 ms (") in said.text
        assert [each.letter for each in shown.legend] == (["A", "B"] if few else [])
        assert all(f"{at}-as-it-was-then, " in each.text for at, each in enumerate(shown.legend))


def test_a_run_with_its_warm_up_is_described(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(1, BARE)], EFFECTS)
    text = as_text(verdict_first(read_sessions(sessions_in(tmp_path)), ""), 80)
    assert text.startswith("bare: step time, typical 50") and ", 1 run\n" in text


def test_runs_of_several_programs_have_a_letter_each_in_every_section_and_note(
    tmp_path: Path,
) -> None:
    paths = [tmp_path / f"{at}-of-several-programs.gpuwatch" for at in range(3)]
    for path, name, code in zip(paths, ("vit-large", "bert", "gcn"), (0, 0, 1), strict=True):
        ended = finished(code)
        start = 100.0 * int(path.stem[0])
        write(path, Script(meta=ended, alive=False, name=name, kind="command", start=start))
    result = read_sessions(paths)
    text = page(result, [])
    legend = document(result).legend
    assert [(each.letter, each.is_baseline) for each in legend] == [
        *(("A", False), ("B", False), ("C", False))
    ], "nothing is compared"
    for at, name in enumerate(("vit-large", "bert", "gcn")):
        assert f"<dd>{name}, {at}-of-several-programs, bare, " in text
    assert "C: exit code 1" in " ".join(terminal(result).split())
    grid = next(item for item in section_of(result, "devices") if isinstance(item, Table))
    assert [row[0] for row in grid.rows] == ["vit-large in A", "bert in B"]


def test_a_chapter_of_the_page_has_its_own_letters_and_says_where_the_other_notes_are(
    tmp_path: Path,
) -> None:
    result = renamed(results.study_result(tmp_path, workloads=("resnet50", "vit")), LONG)
    first, second = result.questions
    asked = (first, replace(second, cells=second.cells[:1], contrasts=()))
    noted = replace(result, questions=asked, notes=tuple(f"odd {at}" for at in range(9)))
    text = page(noted, [])
    assert text.count('<dl class="letters">') == 2, "the top's, and of the first chapter"
    assert "more notes below" in text
    assert "more notes in the report" in as_text(verdict_first(noted, ""), 80)


def test_what_may_not_be_compared_has_no_chart(pair: StudyResult) -> None:
    (question,) = pair.questions
    (contrast,) = question.contrasts
    invalid = replace(contrast, verdict=replace(contrast.verdict, kind=Kind.INVALID))
    assert top(pair).chart is not None
    assert top(replace(pair, questions=(replace(question, contrasts=(invalid,)),))).chart is None


def test_of_two_a_fact_that_differs_is_one_line() -> None:
    torch = Difference("workload", "torch", ("2.6.0", "2.7.1"))
    told = [Heading("A → B"), Sentence("workload: torch", "2.6.0 → 2.7.1")]
    assert difference_items([torch], ["A", "B"]) == told


def test_what_is_known_of_one_side_alone_is_no_difference() -> None:
    torch = Difference("workload", "torch", ("2.6.0", None))
    python = Difference("workload", "python", (None, "3.12"))
    unset = Difference("process", "process.env.OMP_NUM_THREADS", (None, "1"))
    assert difference_items([torch, python, unset], ["A", "B"]) == [
        Heading("A → B"),
        Sentence("OMP_NUM_THREADS", "— → 1"),
        Sentence("of A alone", "workload: torch"),
        Sentence("of B alone", "workload: python"),
    ]
