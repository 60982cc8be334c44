"""The origin of a study: when, where, on which device, and by which command it was made."""

from __future__ import annotations

from collections.abc import Iterable

from gpuwatch.analysis.comparison.wording import per_cent
from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.not_run import blocks_done
from gpuwatch.analysis.summary.identity import device_names, unknown_gpus
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.models import mapping, sequence
from gpuwatch.core.text import clean, cut, shell
from gpuwatch.session.study.plan import Part

_MOST = 4
"""Most names of one kind, and parts of the plan, that are listed."""
_LONGEST_COMMAND = 120


def lines(result: StudyResult) -> tuple[str, ...]:
    """At most two lines: date, host, device and version; then command, blocks and margin. Empty if
    there is no session."""
    started = min((each.started for each in result.sessions if each.started), default="")
    date = f"{started[:16].replace('T', ' ')} UTC" if started else ""
    made = f"gpuwatch {versions(result)}" if versions(result) else ""
    lines_ = (
        ", ".join(filter(None, (date, hosts(result), devices(result), made))),
        "; ".join(filter(None, (commands(result), blocks(result)))),
    )
    return tuple(filter(None, lines_)) if result.sessions else ()


def hosts(result: StudyResult) -> str:
    """Names of the machines; empty if not known."""
    return _named(map(host, result.sessions))


def devices(result: StudyResult) -> str:
    """The GPUs that the runs used, as far as that is known, or the machine's CPU."""
    known = [each for each in result.sessions if not unknown_gpus(each)]
    return _named(map(device, known or result.sessions))


def versions(result: StudyResult) -> str:
    """The gpuwatch versions that recorded the runs."""
    return _named(
        str(mapping(each.facts.get("host")).get("gpuwatch.version") or "")
        for each in result.sessions
    )


def commands(result: StudyResult) -> str:
    """The command of each case, or the workload with its arguments."""
    return _named((_command(each) for each in result.sessions), "; ")


def host(session: Summary) -> str:
    """Name of the machine; empty if not known."""
    return str(mapping(session.facts.get("host")).get("host.name") or "")


def started(session: Summary) -> str:
    """``2026-11-26 19:21:34 UTC``; empty if not known."""
    return session.started.replace("T", " ").replace("+00:00", " UTC")


def device(session: Summary) -> str:
    """The GPUs that a run used, else the machine's CPU."""
    return ", ".join(device_names(session))


def blocks(result: StudyResult) -> str:
    """``4 of 5 blocks done, margin 1 %``, or ``each once``, for each part of the plan."""
    plan = result.plan
    if plan is None:
        return ""
    parts = []
    for place, part in enumerate(plan.parts):
        name = f"{part.name}: " if len(plan.parts) > 1 and part.name else ""
        if part.blocks is None:
            parts.append(f"{name}each once")
        else:
            done = f"{blocks_done(result, place)} of {units.counted(part.blocks, 'block')} done"
            parts.append(f"{name}{done}, margin {per_cent(part.margin)}")
    return _named(parts, "; ")


def _command(session: Summary) -> str:
    workload = session.workload
    given = [str(each) for each in sequence(workload.get("arguments"))]
    words = given if workload.get("kind") == "command" else [str(workload.get("name")), *given]
    text = clean(" ".join(map(shell, words)))
    return cut(text, _LONGEST_COMMAND)


def _named(names: Iterable[str], between: str = ", ") -> str:
    known = list(dict.fromkeys(name for name in names if name))
    rest = f"{between}{len(known) - _MOST} more" if len(known) > _MOST else ""
    return between.join(known[:_MOST]) + rest


def facts(result: StudyResult) -> tuple[tuple[str, str], ...]:
    """Name and value of what is known of how the study was made."""
    sessions = result.sessions
    moments = sorted(each.started for each in sessions if each.started)
    ends = dict.fromkeys(each[:16].replace("T", " ") for each in (moments[:1] + moments[-1:]))
    when = " to ".join(ends)
    plan = result.plan
    several = len(sessions) > 1 or (plan is not None and len(plan.runs) > 1)
    design = "sessions put together by hand" if len(sessions) > 1 else ""
    if plan is not None and several:
        parts = (_design(result, at, part) for at, part in enumerate(plan.parts))
        design = _named(parts, "; ")
    known = (
        ("Study", result.title if several else ""),
        ("When", f"{when} UTC" if when else ""),
        ("Host", hosts(result)),
        ("Device", devices(result)),
        ("Command", commands(result)),
        ("gpuwatch", versions(result)),
        ("Runs", str(len(sessions)) if several else ""),
        ("Ended", sessions[0].end if len(sessions) == 1 else ""),
        ("Design", design),
        ("Seed of the order", "" if plan is None or plan.seed is None else str(plan.seed)),
        ("Preset", (plan.preset or "") if plan else ""),
    )
    return tuple((name, value) for name, value in known if value)


def _design(result: StudyResult, at: int, part: Part) -> str:
    if part.blocks is None:
        blocks = "each once, no verdict"
    else:
        blocks = f"{blocks_done(result, at)} of {units.counted(part.blocks, 'judged block')} done"
        blocks += ", a warm-up block" if part.warmup_blocks else ""
    rest = f", {units.digits(part.cool_down)} s of rest between runs" if part.cool_down else ""
    name = f"{part.name}: " if part.name else ""
    return f"{name}{blocks}, margin {per_cent(part.margin)}{rest}"
