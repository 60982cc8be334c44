"""Every run of the study, what did not run, and how each number was obtained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from gpuwatch import units
from gpuwatch.analysis.compare import used_gpus
from gpuwatch.analysis.results import Run, StudyResult
from gpuwatch.analysis.summary import Summary
from gpuwatch.report.html.markup import Row, bullets, table, text
from gpuwatch.session.study import NotRun

_FEW = 3
"""Notes of more runs stand below the table, once."""


def device(session: Summary) -> str:
    """The GPUs that a run used, else the machine's CPU; unescaped."""
    gpus = [gpu.name for gpu in used_gpus(session)]
    return ", ".join(gpus) or next((d.name for d in session.devices if d.kind == "cpu"), "")


def host(session: Summary) -> str:
    """Name of the machine; empty where it is not known."""
    return str(session.facts.get("host", {}).get("host.name") or "")


def runs(result: StudyResult) -> str:
    """A row for each session, in the plan's order."""
    of = {
        run.session.path: run
        for question in result.questions
        for cell in question.cells
        for run in cell.runs
    }
    noted = Counter(note for each in result.sessions for note in _notes(each))
    common = [note for note, count in noted.items() if count > _FEW]
    head = ["file", "run", "block", "status", "started", "length", "device", "host", "notes"]
    rows = [_line(each, of.get(each.path), common) for each in result.sessions]
    told = [f"{_share(noted[note], len(result.sessions))}: {text(note)}" for note in common]
    below = bullets(told, "notes") if told else ""
    return table("All runs", head, [("", rows)]) + below


def _notes(session: Summary) -> list[str]:
    return [*session.notes, *([session.notice] if session.notice else [])]


def _share(count: int, total: int) -> str:
    return "every run" if count == total else f"{count} of {total} runs"


def _line(session: Summary, run: Run | None, common: Sequence[str]) -> Row:
    block = None if run is None else run.block
    told = [note for note in _notes(session) if note not in common]
    if run is not None and run.reason:
        told.insert(0, run.reason)
    return [
        text(PurePath(session.path).name, 120),
        text(session.label, 120),
        units.UNKNOWN if block is None else str(block or "warm-up"),
        text(session.status.text, 200),
        text(session.started.replace("T", " ").replace("+00:00", " UTC")),
        units.UNKNOWN if session.seconds is None else text(units.clock_time(session.seconds)),
        text(device(session), 80),
        text(host(session), 80),
        text("; ".join(told)),
    ]


def not_run(missing: Sequence[NotRun]) -> str:
    """What did not take place, why, and what mends it; the same reason once."""
    labels: dict[tuple[str, str | None], list[str]] = {}
    for each in missing:
        labels.setdefault((each.problems[0].text, each.fix), []).append(each.label)
    return bullets(
        [
            f"{text(_counted(of))} did not run: {text(why)}"
            + (f"<br>mend: <code>{text(fix)}</code>" if fix else "")
            for (why, fix), of in labels.items()
        ]
    )


def _counted(labels: Sequence[str]) -> str:
    """``bare (3 runs), docker``."""
    return ", ".join(
        f"{label} ({count} runs)" if count > 1 else label
        for label, count in Counter(labels).items()
    )


def methods(sessions: Sequence[Summary]) -> str:
    """Each metric with its method and source, or why it is not known, and in which runs."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for session in sessions:
        for name, each in session.metrics.items():
            source = each.source if each.reason is None else (each.reason or "not known")
            key = (name, each.method.value, source)
            found.setdefault(key, []).append(PurePath(session.path).stem)
    order = {name: at for at, name in enumerate(dict.fromkeys(name for name, _, _ in found))}
    rows = [
        [text(name), method, text(source, 300), text(_which(of, len(sessions)))]
        for (name, method, source), of in sorted(found.items(), key=lambda e: order[e[0][0]])
    ]
    return table("Where the figures of metrics come from", _METHODS, [("", rows)])


_METHODS = ("metric", "method", "source, or why there is none", "runs")


def _which(of: Sequence[str], total: int) -> str:
    if len(of) == total:
        return "all"
    return ", ".join(of) if len(of) <= _FEW else f"{len(of)} of {total}"
