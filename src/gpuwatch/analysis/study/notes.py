"""What to know of a study before believing a number of it, for every report and screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpuwatch.analysis.comparison.notes import session_notes
from gpuwatch.analysis.results import Question, StudyResult
from gpuwatch.analysis.summary.load import load_notes
from gpuwatch.session.study.plan import WARM_UP, Plan

ONE_RUN_EACH = "one run each: this describes the runs; it does not say which is faster"


def design(plan: Plan) -> str:
    """How the order of the runs came about."""
    seed = "" if plan.seed is None else f" (order seed {plan.seed})"
    warm = any(run.block == WARM_UP for run in plan.runs)
    return f"runs in randomised blocks{seed}" + (
        "; block 0 is a warm-up, shown and not judged" if warm else ""
    )


def notes(result: StudyResult) -> list[str]:
    """Of the study, its questions and its runs; each once."""
    told = [*result.notes]
    for question in result.questions:
        named = f"{question.label}: " if len(result.questions) > 1 else ""
        told += [f"{named}{note}" for note in question.notes]
    return list(dict.fromkeys([*told, *of_runs(result)]))


def of_runs(result: StudyResult) -> list[str]:
    """What happened to recordings, each with the runs that it is true of."""
    seen: dict[str, Counter[str]] = {}
    for session in result.sessions:
        for note in session_notes([session]):
            seen.setdefault(note, Counter())[session.label] += 1
    alone = len(result.sessions) == 1
    return [
        note
        if alone or labels.total() == len(result.sessions)
        else ", ".join(
            label if count == 1 else f"{label} ({count} runs)" for label, count in labels.items()
        )
        + f": {note}"
        for note, labels in seen.items()
    ]


def warnings(result: StudyResult) -> list[str]:
    """What held runs back, who shared their GPUs, and which figures contradict each other: of each
    kind the first, and how many runs have such."""
    first: dict[str, str] = {}
    runs: Counter[str] = Counter()
    for session in result.sessions:
        found = {each.kind: each.text for each in session.efficiency.findings if each.warning}
        first = {**{kind: f"{session.label}: {text}" for kind, text in found.items()}, **first}
        runs.update(found.keys())
    total = len(result.sessions)
    if total == 1:
        return [text.partition(": ")[2] for text in first.values()]
    return [
        text if runs[kind] == 1 else f"{runs[kind]} of {total} runs, the first {text}"
        for kind, text in first.items()
    ]


def doubts(result: StudyResult) -> list[str]:
    """What disturbed the runs, what was lost of them, what stands against their figures; without
    how the study was made."""
    how = {ONE_RUN_EACH} if result.plan is None else {ONE_RUN_EACH, design(result.plan)}
    return list(
        dict.fromkeys(
            [
                *(note for note in notes(result) if note not in how),
                *warnings(result),
                *conditions(result.questions),
                *result.notices,
            ]
        )
    )


def load_of(questions: Sequence[Question]) -> tuple[str, ...]:
    """What other programs used of the CPU while the judged runs ran."""
    cells = [cell for question in questions for cell in question.cells]
    return load_notes([run.session for cell in cells for run in cell.judged])


def conditions(questions: Sequence[Question]) -> list[str]:
    """Clocks, power and load that were not the same in two environments; of load what the notes
    do not tell."""
    rungs = {"clocks"} if load_of(questions) else {"clocks", "load"}
    return [
        each.text
        for question in questions
        for contrast in question.contrasts
        for each in contrast.explanation.evidence
        if each.rung in rungs
    ]
