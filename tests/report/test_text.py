"""The report for a terminal: the answer on the first screen, everything that it rests on below."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.results import Cell, Difference, Kind, StudyResult, Verdict
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.analysis.study.read import read_sessions
from gpuwatch.analysis.study.table import table_of
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import Problem
from gpuwatch.report.document.blocks import Change, Document, Intervals
from gpuwatch.report.document.study import verdict_first
from gpuwatch.report.markdown import as_markdown
from gpuwatch.report.text import as_text, terminal
from gpuwatch.session.study.study_folder import NotRun

from . import results


def with_cell(result: StudyResult, at: int, cell: Cell) -> StudyResult:
    """``result`` with another cell in its first question."""
    question = result.questions[0]
    cells = (*question.cells[:at], cell, *question.cells[at + 1 :])
    return replace(result, questions=(replace(question, cells=cells), *result.questions[1:]))


def section(text: str, title: str) -> str:
    """What stands below ``title``."""
    lines = text.split("\n")
    at = lines.index(title) + 1
    end = next(
        (n for n in range(at, len(lines)) if lines[n] and not lines[n].startswith(" ")), len(lines)
    )
    return "\n".join(lines[at:end])


def test_the_first_screen_answers_the_question(result: StudyResult) -> None:
    screen = terminal(result).split("\n")[:24]
    told = " ".join(" ".join(screen).split())
    for contrast in result.questions[0].contrasts:
        assert contrast.sentence in told
    assert "What do containers cost?" in told
    assert any(line.startswith("SAME ") for line in screen)
    assert any(line.startswith("SLOWER ") for line in screen)
    (plot,) = [line for line in screen if line.startswith("apptainer") and "*" in line]
    assert "|" in plot and ":" in plot and plot.endswith("+3.1 % (+2.5 to +3.7)")


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_no_line_is_wider_than_the_terminal(two_cases: StudyResult, columns: int) -> None:
    assert max(map(len, terminal(two_cases, columns=columns).split("\n"))) <= columns


def test_it_reads_without_colour_and_hostile_names_stay_harmless(hostile: StudyResult) -> None:
    text = terminal(hostile)
    assert "\x1b" not in text and "\u202e" not in text
    lines = [line for line in text.split("\n") if "Fix:" not in line]
    assert max(map(len, lines)) <= 80


def test_means_have_their_range_below_them_and_their_change_beside(result: StudyResult) -> None:
    lines = section(terminal(result), "what was measured").split("\n")
    at = next(n for n, line in enumerate(lines) if "step time, typical" in line)
    assert lines[at].split("typical")[1].split() == [
        "502", "ms", "503", "ms", "+0.2", "%", "518", "ms", "+3.1", "%",
    ]  # fmt: skip
    assert lines[at + 1].split() == ["499", "to", "506", "501", "to", "506", "515", "to", "521"]
    assert "throughput, steady mean, samples/s (c)  " in terminal(result, columns=132)


def test_every_run_is_told_with_its_block_its_place_and_its_change(result: StudyResult) -> None:
    lines = section(terminal(result, columns=132), "every run").split("\n")
    warm_up = [line for line in lines if "  warm-up  " in line]
    assert len(warm_up) == 3 and not any(" +" in line for line in warm_up)
    third = [line.split("steps")[0].split() for line in lines if line.split()[1:2] == ["3"]]
    assert third == [
        ["11", "3", "500", "ms"],
        ["10", "3", "501", "ms", "+0.3", "%"],
        ["12", "3", "518", "ms", "+3.6", "%"],
    ]


def test_a_run_without_a_value_says_why_and_an_outlier_is_marked(result: StudyResult) -> None:
    cell = result.questions[0].cells[1]
    first, second, third, *rest = cell.runs
    lost = replace(second, value=None, reason="the recorder died")
    far = replace(third, outlier=True)
    changed = with_cell(result, 1, replace(cell, runs=(first, lost, far, *rest)))
    lines = section(terminal(changed, columns=132), "every run").split("\n")
    by_number = {line.split()[0]: line for line in lines if line.strip()}
    assert "no value: the recorder died" in by_number["5"]
    assert by_number["9"].count(", outlier") == 1


def test_an_invalid_contrast_has_no_change_anywhere(result: StudyResult) -> None:
    question = result.questions[0]
    contrast = question.contrasts[0]
    verdict = replace(
        contrast.verdict,
        kind=Kind.INVALID,
        change=None,
        equivalence=None,
        reasons=("not the same",),
    )
    invalid = replace(contrast, verdict=verdict, sentence="not comparable: V100 against A100")
    contrasts = (invalid, *question.contrasts[1:])
    table, _ = table_of(question.cells, contrasts, question.metric, paired=True)
    changed = replace(result, questions=(replace(question, contrasts=contrasts, table=table),))
    text = terminal(changed)
    assert "INVALID  not comparable: V100 against A100" in text
    table = section(text, "what was measured")
    median = next(line for line in table.split("\n") if "step time, typical" in line)
    assert "503 ms    " in median
    assert median.split()[3:] == ["502", "ms", "503", "ms", "518", "ms", "+3.1", "%"]


def test_values_that_give_another_change_than_the_verdict_say_theirs(result: StudyResult) -> None:
    question = result.questions[0]
    first, *others = question.contrasts
    assert first.verdict.change and question.metric == "step time"
    told = first.verdict.change.estimate
    for estimate, there in ((told, False), (told + 0.005, True), (0.5, True)):
        moved = replace(first.verdict.change, estimate=estimate, low=0.4, high=0.6)
        verdict = replace(first.verdict, change=moved, estimate=estimate)
        contrasts = (replace(first, verdict=verdict), *others)
        table, _ = table_of(question.cells, contrasts, question.metric, paired=True)
        text = terminal(replace(result, questions=(replace(question, table=table),)))
        legend = " ".join(text.split())
        assert "leaves out the effect of the order in a block; values " in legend
        assert ("values and what is as measured keep it" in legend) is there
        assert ("as measured +" in text) is there


def test_a_study_with_two_cases_says_which_is_meant(two_cases: StudyResult) -> None:
    text = terminal(two_cases)
    assert text.startswith("resnet50:\n") and "\nmnist-cnn:\n" in text
    assert "overall " in text and text.count("\nevery run\n") == 2
    assert "\nmnist-cnn\n---------\n" in text


def test_cases_of_one_workload_are_told_by_what_differs(two_cases: StudyResult) -> None:
    questions = tuple(
        replace(question, label=f"resnet50, batch size {size}", contrasts=question.contrasts[1:])
        for question, size in zip(two_cases.questions, (32, 64), strict=True)
    )
    text = terminal(replace(two_cases, questions=questions))
    assert "SLOWER   batch size 32: apptainer is slower" in text
    assert any(line.startswith("batch size 64  ") and "*" in line for line in text.split("\n"))


def test_each_of_several_sweeps_names_its_environment(result: StudyResult) -> None:
    (sweep,) = result.sweeps
    other = replace(sweep, label="resnet50 in docker: batch size", environment="docker")
    text = " ".join(terminal(replace(result, sweeps=(sweep, other))).split())
    assert "resnet50 in bare: batch size 64 is best" in text
    assert "resnet50 in docker: batch size 64 is best" in text


def test_what_did_not_run_has_its_mend_on_a_line_of_its_own_and_what_comes_is_counted(
    result: StudyResult,
) -> None:
    command = "gpuwatch build apptainer --base docker://" + "x" * 90
    missing = NotRun("apptainer", (Problem("image-missing", "there is no image", command),))
    text = terminal(replace(result, not_run=(missing,), to_come=3))
    assert "\napptainer did not run: there is no image\n    Fix: " + command + "\n" in text
    assert "3 runs are still to come" in text.split("\n\n")[2]


def test_versions_kernels_and_sources_are_named(result: StudyResult) -> None:
    text = terminal(result)
    differs = section(text, "what differs around the runs")
    assert differs.split("\n")[0].split("  ")[-1] == "bare: 2.6.0; docker, apptainer: 2.7.1"
    wide = terminal(result, columns=160).split("\n")
    (kernel,) = [line for line in wide if "· winograd_nonfused" in line]
    assert re.split(" {2,}", kernel)[-3:] == ["1 launch, 60 %", "-", "-"]
    changes = section(text, "associated changes")
    assert "host wait (step time minus kernels) 252 ms a step in bare" in changes
    assert "GPU power" in section(text, "how each number was obtained")


def with_facts(cell: Cell, **facts: object) -> Cell:
    """``cell`` with facts of its runs' processes, for ``_`` a full stop in their names."""
    told = {f"process.{name.replace('_', '.')}": value for name, value in facts.items()}
    runs = tuple(
        replace(run, session=replace(run.session, facts={**run.session.facts, "process": told}))
        for run in cell.runs
    )
    return replace(cell, runs=runs)


def test_every_environment_has_its_own_value_where_two_of_them_differ(result: StudyResult) -> None:
    question = result.questions[0]
    seccomp = Difference("process", "process.seccomp", ("off", "filter"))
    namespace = Difference("process", "process.namespace.net", ("shared", "own"))
    first, second = question.contrasts
    explained = replace(first.explanation, differences=(seccomp, namespace))
    bare, docker, apptainer = question.cells
    cells = (
        with_facts(bare, seccomp="off", namespace_net="shared"),
        with_facts(docker, seccomp="filter", namespace_net="own"),
        with_facts(apptainer, seccomp="off", namespace_net="shared"),
    )
    contrasts = (replace(first, explanation=explained), second)
    changed = replace(result, questions=(replace(question, cells=cells, contrasts=contrasts),))
    differs = section(terminal(changed), "what differs around the runs")
    assert "seccomp          bare, apptainer: off; docker: filter\n" in differs
    assert "- **namespace.net** bare, apptainer: shared; docker: own\n" in as_markdown(changed)


def test_a_long_value_that_differs_stands_whole_behind_whose_it_is(result: StudyResult) -> None:
    (question,) = result.questions
    path = "/usr/local/nvidia/lib:" * 6
    bare, docker, apptainer = question.cells
    told = {"env.PATH": path}
    cells = (bare, with_facts(docker, **told), with_facts(apptainer, **told))
    why = replace(
        question.contrasts[0].explanation,
        differences=(Difference("process", "process.env.PATH", (None, path)),),
    )
    contrasts = (replace(question.contrasts[0], explanation=why), *question.contrasts[1:])
    changed = replace(result, questions=(replace(question, cells=cells, contrasts=contrasts),))
    differs = section(terminal(changed), "what differs around the runs")
    assert "PATH bare: —; docker, apptainer: /usr" in " ".join(differs.split())
    assert "".join(differs.split()).count("/usr/local/nvidia/lib:") == 6


def test_what_did_not_run_for_one_reason_is_one_line_with_its_share_and_blocks(
    result: StudyResult,
) -> None:
    assert result.plan is not None
    ended = (Problem("study-ended", "the study was ended", "gpuwatch resume S"),)
    last = [run for run in result.plan.runs if run.block in (6, 7)]
    gone = tuple(NotRun(run.environment.label, ended, run.index) for run in last)
    told = terminal(replace(result, not_run=gone))
    line = "\n6 of 21 runs did not run (blocks 6 to 7): the study was ended\n    Fix: "
    assert told.count("did not run") == 1 and f"{line}gpuwatch resume S\n" in told
    docker = tuple(each for each in gone if each.label == "docker")
    assert "\ndocker: 2 of 7 runs did not run (blocks 6 to 7)" in terminal(
        replace(result, not_run=docker)
    )


def test_the_word_of_a_verdict_is_not_said_twice(result: StudyResult) -> None:
    question = result.questions[0]
    first, second = question.contrasts
    verdict = replace(first.verdict, kind=Kind.CANT_TELL)
    told = "docker: can't tell: +1.0 % (-1.0 to +3.0) against bare."
    unsure = replace(first, verdict=verdict, sentence=told)
    contrasts = (unsure, second)
    text = terminal(replace(result, questions=(replace(question, contrasts=contrasts),)))
    assert "CAN'T TELL  docker: +1.0 % (-1.0 to +3.0) against bare." in text


def test_a_bound_says_its_direction_and_a_part_of_the_runs_how_many(result: StudyResult) -> None:
    question = result.questions[0]
    row = next(row for row in question.table if row.name == "step time, 95th percentile")
    bounded = replace(
        row,
        methods=(Method.BOUND, Method.MEASURED, Method.MEASURED),
        known=(7, 7, 2),
        runs=(7, 7, 7),
        lows=(None, None, None),
        ratios=(None, None, None),
        changes=(None, None, None),
    )
    for at_most, sign in ((False, "≥"), (True, "≤")):
        table = (replace(bounded, at_most=at_most),)
        text = terminal(replace(result, questions=(replace(question, table=table),)))
        lines = section(text, "what was measured").split("\n")
        at = next(n for n, line in enumerate(lines) if "step time" in line)
        assert f"{sign}502 ms" in lines[at] and "≥503" not in lines[at]
        assert lines[at + 1].split() == ["2", "of", "7", "runs"]


def test_the_changes_of_the_table_say_what_they_are(result: StudyResult) -> None:
    (question,) = result.questions
    unpaired = replace(question, table=tuple(replace(row, changes=()) for row in question.table))
    for of, right, wrong in (
        (question, "means within blocks", "of the means;"),
        (unpaired, "of the means", "within blocks"),
    ):
        text = terminal(replace(result, questions=(of,)))
        told = " ".join(section(text, "what was measured").split())
        assert f"changes are {right}" in told and f"changes are {wrong}" not in told


def test_one_run_each_is_told_side_by_side_behind_the_verdict(pair: StudyResult) -> None:
    text = terminal(pair)
    assert text.split("\n")[0].startswith("NO VERDICT (1 run of each, needs 5): docker")
    head = next(line for line in text.split("\n") if line.endswith("method"))
    assert head.split() == ["bare", "docker", "method"]
    median = next(line for line in text.split("\n") if "step time, median" in line)
    assert "ms +0.7 %  measured" in median


def test_single_runs_of_different_cases_are_described_and_not_judged(pair: StudyResult) -> None:
    question = pair.questions[0]
    apart = tuple(
        replace(question, label=cell.label, cells=(cell,), contrasts=()) for cell in question.cells
    )
    said = replace(pair, questions=apart, notes=("nothing to compare",))
    text = as_text(verdict_first(said, ""), 80)
    assert text.startswith("nothing to compare\n") and "503 ms  measured" in text
    assert "better" not in text and "worse" not in text


def test_many_single_runs_stay_within_the_terminal(tmp_path: Path) -> None:
    for at, name in enumerate(results.ENVIRONMENTS * 2, 1):
        results.summary(tmp_path, at, name, results.step_seconds(name, at), label=f"{name}{at}")
    many = read_sessions(sorted(tmp_path.glob("*.gpuwatch")))
    text = terminal(many)
    paths = [session.path for session in many.sessions]
    lines = [line for line in text.split("\n") if not any(path in line for path in paths)]
    assert max(map(len, lines)) <= 80 and text.count("step time, median") > 1


def test_nothing_but_what_did_not_run_is_still_a_report(result: StudyResult) -> None:
    empty = replace(result, questions=(), sweeps=(), noise=(), sessions=(), notes=())
    assert "charliecloud did not run" in terminal(empty)


@pytest.mark.parametrize(("name", "title"), [("two, steady mean", "faster < > slower"), ("b", "<")])
def test_both_sides_of_an_axis_are_named_where_little_lies_left_of_zero(
    name: str, title: str
) -> None:
    change = Interval(0.83, -0.2, 4.5, 0.95)
    verdict = Verdict(Kind.CANT_TELL, change, None, 0.01, 5, True, 0.5)
    first, row, *_ = as_text(
        Document("", chart=Intervals((Change(name, "a", verdict),))), 80
    ).splitlines()
    assert first.strip().startswith(title) and "> slower" in first
    assert first.index("> slower") == row.index("|") + 1
