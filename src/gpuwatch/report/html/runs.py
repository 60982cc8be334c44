"""Every run of the study, what did not run, and how each number was obtained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from gpuwatch.analysis.results import Run, StudyResult
from gpuwatch.analysis.study.not_run import not_run as runs_not_run
from gpuwatch.analysis.summary.missing import missing
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import Method, label
from gpuwatch.report.html.markup import Row, bullets, table, text
from gpuwatch.report.study.origin import device, host

_FEW = 3
"""Notes common to more runs than this are shown once, below the table."""


def runs(result: StudyResult) -> str:
    """A row for each session, in the plan's order."""
    run_of = {
        run.session.path: run
        for question in result.questions
        for cell in question.cells
        for run in cell.runs
    }
    noted = Counter(note for each in result.sessions for note in _notes(each))
    common = [note for note, count in noted.items() if count > _FEW]
    head = ["file", "run", "block", "status", "started", "length", "device", "host", "notes"]
    rows = [_line(each, run_of.get(each.path), common) for each in result.sessions]
    shared = [f"{_share(noted[note], len(result.sessions))}: {text(note)}" for note in common]
    below = bullets(shared, "notes") if shared else ""
    return table("All runs", head, [("", rows)]) + below


def _notes(session: Summary) -> list[str]:
    return [*session.notes, *([session.notice] if session.notice else [])]


def _share(count: int, total: int) -> str:
    return "every run" if count == total else f"{count} of {total} runs"


def _line(session: Summary, run: Run | None, common: Sequence[str]) -> Row:
    block = None if run is None else run.block
    notes = [note for note in _notes(session) if note not in common]
    if run is not None and run.reason:
        notes.insert(0, run.reason)
    return [
        text(PurePath(session.path).name, 120),
        text(session.given.heading(session.label), 120),
        units.UNKNOWN if block is None else str(block or "warm-up"),
        text(session.status.text, 200),
        text(session.started.replace("T", " ").replace("+00:00", " UTC")),
        units.UNKNOWN if session.seconds is None else text(units.clock_time(session.seconds)),
        text(device(session), 80),
        text(host(session), 80),
        text("; ".join(notes)),
    ]


def not_run(result: StudyResult) -> str:
    """The runs that did not take place, why, and how to fix it; each reason once."""
    return bullets(
        [
            text(reason, 1000) + (f"<br>Fix: <code>{text(hint)}</code>" if hint else "")
            for reason, hint in runs_not_run(result)
        ]
    )


def methods(sessions: Sequence[Summary]) -> str:
    """Each metric's method and source, or why it is unknown, and in which runs."""
    runs: dict[tuple[str, str, str], list[str]] = {}
    for session in sessions:
        for name, each in session.metrics.items():
            if each.method is not Method.UNAVAILABLE:
                key = (name, each.method.value, each.source)
                runs.setdefault(key, []).append(PurePath(session.path).stem)
    names: dict[tuple[str, str, str], list[str]] = {}
    for (name, method, source), files in runs.items():
        key = (method, source, _which(files, len(sessions)))
        names.setdefault(key, []).append(label(name))
    rows = [
        [text(", ".join(named)), method, text(source, 300), text(which)]
        for (method, source, which), named in names.items()
    ]
    rows += [
        [text(", ".join(named)), Method.UNAVAILABLE.value, text(reason, 300), ""]
        for reason, named in missing(sessions).items()
    ]
    return table("Where the figures of metrics come from", _METHODS, [("", rows)])


_METHODS = ("metric", "method", "source, or why there is none", "runs")


def _which(files: Sequence[str], total: int) -> str:
    if len(files) == total:
        return "all"
    return ", ".join(files) if len(files) <= _FEW else f"{len(files)} of {total}"
