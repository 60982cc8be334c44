"""Notes on the reliability of a study's figures, for every report and screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gpuwatch.analysis.comparison.notes import session_notes
from gpuwatch.analysis.explain.explain import THROTTLING
from gpuwatch.analysis.hardware.crosscheck import CLOCKS
from gpuwatch.analysis.results import Contrast, Evidence, Question, StudyResult
from gpuwatch.analysis.study.grouping import LONGEST, SET
from gpuwatch.analysis.summary.identity import sound
from gpuwatch.analysis.summary.load import load_notes
from gpuwatch.analysis.summary.missing import with_counts
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import lost
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.text import clean
from gpuwatch.session.study.plan import WARM_UP, Plan

ONE_RUN_EACH = "one run each: this describes the runs; it does not say which is faster"
UNPAIRED = (
    "of several studies no runs are paired, not even those of one block: what drifts within a "
    "study makes its intervals wider; `{}` pairs them"
)

_WHOLE_RUN = (
    "no steps, so utilization, bandwidth, power and clocks are of the whole run, start-up "
    "included, and not to be compared with those of timed steps"
)


def design(plan: Plan) -> str:
    """The order of the runs in words."""
    seed = "" if plan.seed is None else f" (order seed {plan.seed})"
    warm = any(run.block == WARM_UP for run in plan.runs)
    return f"runs in randomised blocks{seed}" + (
        "; block 0 is a warm-up, shown and not judged" if warm else ""
    )


def one_by_one(result: StudyResult) -> bool:
    """Whether sessions stand side by side: every cell has at most one run, outside blocks."""
    cells = [cell for question in result.questions for cell in question.cells]
    return all(
        len(cell.runs) <= 1 and all(run.block is None for run in cell.runs) for cell in cells
    )


def notes(result: StudyResult) -> list[str]:
    """Notes on the study, its questions and its runs, without repetitions."""
    texts = [*result.notes]
    for question in result.questions:
        named = f"{question.label}: " if len(result.questions) > 1 else ""
        texts += [f"{named}{note}" for note in question.notes]
    return list(dict.fromkeys([*texts, *run_notes(result)]))


def every_note(result: StudyResult) -> list[str]:
    """Notes, warnings and repairs of files: all that must be known to believe the figures."""
    return list(dict.fromkeys([*notes(result), *warnings(result), *notices(result)]))


def run_names(result: StudyResult) -> dict[str, str]:
    """By path, what a run is called in notes: its label, with variables as its cell has them, or
    that of its cell, a letter perhaps, where runs stand side by side or others have the same."""
    named = {each.path: each.label for each in result.sessions}
    cells = [cell for question in result.questions for cell in question.cells]
    alone = Counter(cell.label for cell in cells for _ in cell.runs)
    of = {
        run.session.path: cell.label
        for cell in cells
        for run in cell.runs
        if alone[cell.label] == 1
    }
    for session, label in ((run.session, cell.label) for cell in cells for run in cell.runs):
        environment = clean(session.environment.get("label"))
        if clean(environment.partition(SET)[2], LONGEST) == label:
            named[session.path] = session.label.replace(environment, label)
    labels = Counter(named.values())
    beside = one_by_one(result)
    return {
        path: of.get(path, label) if beside or labels[label] > 1 else label
        for path, label in named.items()
    }


def notices(result: StudyResult) -> list[str]:
    """Repairs that were needed to open files."""
    names = run_names(result)
    return [f"{clean(names[of.path])}: {of.notice}" for of in result.sessions if of.notice]


def run_notes(result: StudyResult) -> list[str]:
    """Notes on recordings, each with the runs that it applies to; not on one that goes on beside
    others, of which nothing is compared yet."""
    names = run_names(result)
    alone = len(result.sessions) == 1
    told = [each for each in result.sessions if alone or not each.status.live]
    of_all = lost(*(each.training for each in told))
    seen = grouped(
        (of_all if note == lost(session.training) else note, names[session.path])
        for session in told
        for note in session_notes(session)
    )
    whole = [names[each.path] for each in told if sound(each) and not each.steps.count]
    if whole and any(each.window.kind == "timed steps" for each in told):
        seen[_WHOLE_RUN] = whole
    runs = Counter(names.values())
    return [
        note
        if alone or len(of) == len(result.sessions)
        else f"{with_counts(Counter(of), runs)}: {note}"
        for note, of in seen.items()
    ]


def warnings(result: StudyResult, *, held: bool = True) -> list[str]:
    """Warnings on clocks, shared GPUs and contradictory figures: the first of each kind, with the
    number of runs. ``held``: also that clocks were held down."""
    first: dict[str, str] = {}
    runs: dict[str, list[str]] = {}
    names = run_names(result)
    for session in result.sessions:
        texts: dict[str, str] = {}
        for each in session.efficiency.findings:
            if each.warning and (held or each.kind != CLOCKS):
                texts.setdefault(each.kind, each.text)
        named = {kind: f"{names[session.path]}: {text}" for kind, text in texts.items()}
        first = {**named, **first}
        for kind in texts:
            runs.setdefault(kind, []).append(names[session.path])
    total = len(result.sessions)
    if total == 1:
        return [text.partition(": ")[2] for text in first.values()]
    return [
        text
        if len(runs[kind]) == 1
        else f"{text}; also {runs[kind][1]}"
        if len(runs[kind]) == 2
        else f"{len(runs[kind])} of {total} runs, the first {text}"
        for kind, text in first.items()
    ]


def doubts(result: StudyResult) -> list[str]:
    """Everything that casts doubt on the figures: what else differs, disturbances, losses,
    contradictions; without notes on the study's design, on how steps were timed, and on
    losses of hooked programs."""
    of_design = {ONE_RUN_EACH} if result.plan is None else {ONE_RUN_EACH, design(result.plan)}
    of_method = tuple(text for session in result.sessions for text in session.how_timed)
    # Of clocks that were held down on one side for more of the time, a remark tells.
    throttling = any(each.rung == THROTTLING for _, each in every_evidence(result.questions))
    found = [
        *conditions(result.questions),
        *warnings(result, held=not throttling),
        *(each for each in notes(result) if each not in of_design and not each.endswith(of_method)),
        *notices(result),
    ]
    return list(dict.fromkeys(found))


def every_evidence(questions: Sequence[Question]) -> Iterator[tuple[Contrast, Evidence]]:
    """All evidence, each with what it is on."""
    for question in questions:
        for contrast in question.contrasts:
            yield from ((contrast, each) for each in contrast.explanation.evidence)


def judged(questions: Sequence[Question]) -> list[Summary]:
    """The sessions of all judged runs."""
    cells = [cell for question in questions for cell in question.cells]
    return [run.session for cell in cells for run in cell.judged]


def conditions(questions: Sequence[Question]) -> list[str]:
    """Differences between environments of settings and versions that are not by design, of clocks,
    power and load; load only if not noted, clocks that were held down as the remark on them says
    it."""
    rungs = {"clocks"} if load_notes(judged(questions)) else {"clocks", "load"}
    return [
        each.text
        for contrast, each in every_evidence(questions)
        if each.rung in (rungs if contrast.design else rungs | {"settings", "versions"})
    ]
