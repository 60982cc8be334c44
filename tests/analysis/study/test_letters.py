"""Letters in place of long labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.letters import LegendEntry, in_letters, letters, with_letters
from gpuwatch.analysis.study.notes import notices, run_notes
from gpuwatch.session.study.label import Label
from tests.report import results

LONG = "docker=our-image:3"


def renamed(result: StudyResult, label: str) -> StudyResult:
    """``result`` with ``label`` in place of ``docker``."""
    questions = tuple(
        replace(
            question,
            cells=tuple(
                replace(cell, label=label) if cell.label == "docker" else cell
                for cell in question.cells
            ),
        )
        for question in result.questions
    )
    return replace(result, questions=questions)


def test_short_labels_stay_as_they_are(tmp_path: Path) -> None:
    result = results.study_result(tmp_path)
    assert with_letters(result) == (result, ())


def test_a_long_label_gives_every_cell_a_letter_and_a_legend(tmp_path: Path) -> None:
    result = renamed(results.study_result(tmp_path, workloads=("resnet50", "vit")), LONG)
    lettered, legend = with_letters(result)
    assert [(each.letter, each.text) for each in legend] == [
        ("A", "bare (baseline)"),
        ("B", LONG),
        ("C", "apptainer"),
    ]
    for question in lettered.questions:
        assert [cell.label for cell in question.cells] == ["A", "B", "C"]
        assert [cell.environment for cell in question.cells] == list(results.ENVIRONMENTS)


def test_a_cell_that_is_compared_with_nothing_keeps_its_label(tmp_path: Path) -> None:
    result = renamed(results.study_result(tmp_path), LONG)
    (question,) = result.questions
    alone = replace(question, cells=question.cells[1:2], contrasts=())
    assert with_letters(replace(result, questions=(alone,)))[1] == ()


def test_each_run_of_a_plan_has_a_letter_and_what_tells_it_from_the_others(tmp_path: Path) -> None:
    result = results.one_run_each(tmp_path, ("bare", "bare"))
    cells = [
        replace(cell, runs=(replace(run, session=replace(run.session, workload=workload)),))
        for cell, dtype in zip(result.questions[0].cells, ("float16", "bfloat16"), strict=True)
        for run in cell.runs
        for workload in ({**run.session.workload, "parameters": {"dtype": dtype}},)
    ]
    asked = tuple(replace(result.questions[0], cells=(cell,), contrasts=()) for cell in cells)
    (tmp_path / "s").mkdir()
    plan = results.study_result(tmp_path / "s").plan
    sessions = tuple(cell.runs[0].session for cell in cells)
    sweep = replace(result, questions=asked, sessions=sessions, plan=plan)
    lettered, legend = with_letters(sweep, each_run=True)
    assert [each.text for each in legend] == ["dtype float16", "dtype bfloat16"]
    assert [each.cells[0].label for each in lettered.questions] == ["A", "B"]


def test_a_legend_of_runs_put_together_has_names_and_commands_first_and_files_last(
    tmp_path: Path,
) -> None:
    pair = results.one_run_each(tmp_path, ("bare", "bare"))
    workload = {"kind": "command", "name": "a.py", "arguments": ["a.py", "7"], "label": "low"}
    (question,) = pair.questions
    (run,) = question.cells[0].runs
    session = replace(run.session, workload=workload, given=Label("a name of mine"))
    first = replace(question.cells[0], runs=(replace(run, session=session),))
    asked = replace(question, cells=(first, *question.cells[1:]))
    _, legend = with_letters(
        replace(pair, questions=(asked,), sessions=(session, *pair.sessions[1:])), each_run=True
    )
    file = Path(session.path).stem
    assert legend[0].label.startswith("a name of mine (low: a.py 7), ")
    assert legend[0].label.split(", ")[-2] == file


def test_only_a_name_of_one_run_alone_becomes_its_letter() -> None:
    legend = (
        LegendEntry("A", "", True, names=frozenset(("run.py 10", "bare"))),
        LegendEntry("B", "", False, names=frozenset(("run.py 100", "a", "bare"))),
    )
    notes = (
        "run.py 10: 9 s in run.py 100, a note",
        "of run.py 10.5 in bare",
        "a run of a, my run.py 10",
    )
    assert in_letters(notes, legend) == ["A: 9 s in B, a note", *notes[1:]]
    assert in_letters(notes, ()) == [*notes]


def test_a_question_and_its_run_of_one_letter_are_told_once() -> None:
    legend = (LegendEntry("A", "", True, names=frozenset(("run.py", "mine (bare)"))),)
    notes = ("run.py: the run of mine (bare): a note", "run.py: the run of bare failed")
    assert in_letters(notes, legend) == ["the run of A: a note", "A: the run of bare failed"]


def test_a_word_of_a_sentence_stays_though_a_run_is_called_so() -> None:
    legend = (
        LegendEntry("A", "", True, names=frozenset(("bare", "other"))),
        LegendEntry("B", "", False, names=frozenset(("time", "docker=x"))),
    )
    notes = (
        "a drop of time in bare and docker=x",
        "other processes were on the GPU: 3 of time",
        "the run of bare: a note",
        "docker=x: a note, time: 3 s",
    )
    assert in_letters(notes, legend) == [
        "a drop of time in A and B",
        notes[1],
        "the run of A: a note",
        "B: a note, time: 3 s",
    ]


def test_notes_on_runs_have_their_letters_though_they_are_called_as_a_word(tmp_path: Path) -> None:
    pair = results.one_run_each(tmp_path, ("bare", "bare"))
    runs = [replace(each, notes=("a note",), notice="mended") for each in pair.sessions]
    runs = [replace(runs[0], label="time"), replace(runs[1], notes=(), notice=None)]
    by_path = {each.path: each for each in runs}
    (question,) = pair.questions
    cells = tuple(
        replace(cell, label=label, runs=(replace(run, session=by_path[run.session.path]),))
        for cell, label in zip(question.cells, ("time", LONG), strict=True)
        for run in cell.runs
    )
    shown, _ = with_letters(
        replace(pair, questions=(replace(question, cells=cells),), sessions=tuple(runs))
    )
    assert run_notes(shown) == ["A: a note"]
    assert notices(shown) == ["A: mended"]


def test_letters_go_on_after_z() -> None:
    names = letters([f"an environment {at}" for at in range(28)])
    assert (names[0], names[25], names[26], names[27]) == ("A", "Z", "AA", "AB")
