"""Sessions, comparisons and studies as JSON; ``docs/json.md`` documents it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from pathlib import Path

from gpuwatch.analysis.comparison import side_by_side as comparing
from gpuwatch.analysis.hardware.efficiency import Efficiency
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.hardware.mfu import EXECUTED_TWICE, MODEL_FLOP, MfuPeak
from gpuwatch.analysis.hardware.profile import Counters, Profile
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.analysis.ranks.ranks import Ranks
from gpuwatch.analysis.ranks.stragglers import Excess
from gpuwatch.analysis.ranks.wording import sentences
from gpuwatch.analysis.results import AT_MOST, Cell, ComparisonRow, StudyResult
from gpuwatch.analysis.study.notes import notices
from gpuwatch.analysis.summary.generation import Generation
from gpuwatch.analysis.summary.identity import settings
from gpuwatch.analysis.summary.load import disturbances
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import Reported
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON, those
from gpuwatch.core.text import document
from gpuwatch.report.document.study import compared as side_by_side

_LINE = 240
"""Most characters of a list or object on one line; lists of short items have no limit."""
_SHORT = 24
_FLOP = (
    "forward_per_sample",
    *("per_step", "forward_per_step", "backward_per_step", "recomputed_per_step"),
)
"""Keys of ``flop``, without the prefix that they have in a session."""


def dumps(value: JSON) -> str:
    """Indented JSON with short values on one line; numbers that are not finite become null."""
    return document(_written(_plain(value), 0)) + "\n"


def _written(value: JSON, indent: int) -> str:
    """``value`` on one line if it fits, else with each of its parts on separate lines."""
    if not value or not isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + 2
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {_written(each, inner)}"
            for key, each in value.items()
        ]
    else:
        parts = [_written(each, inner) for each in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    short = indent + sum(len(part) + 2 for part in parts) <= _LINE
    flat = isinstance(value, list) and all(len(part) <= _SHORT for part in parts)
    if (short or flat) and not any("\n" in part for part in parts):
        return f"{begin}{', '.join(parts)}{end}"
    lines = f",\n{' ' * inner}".join(parts)
    return f"{begin}\n{' ' * inner}{lines}\n{' ' * indent}{end}"


def summary(session: Summary) -> JSON:
    """One session: the output of ``gpuwatch show --format json``."""
    steps = _plain(session.steps)
    throughput, overall = (
        steps.pop(key) for key in ("samples_per_second", "samples_per_second_overall")
    )
    told = {
        "schema": JSON_SCHEMA,
        "session": {
            **those(session, "id", "path", "label", "place"),
            **those(session.given, "name", "tags", "note"),
            "status": session.status.state.value,
            "status_text": session.status.text,
            "exit_code": session.status.exit_code,
            **those(session, "started", "seconds", "interval_seconds", "notice"),
            "notes": [*session.notes, *disturbances([session])],
            "left_out": session.left_out,
        },
        "workload": {
            **_some(session.workload, "name", "kind", "arguments"),
            "parameters": settings(session),
            **_some(session.run, "model", "dtype", "device", "data"),
        },
        "environment": session.environment,
        "timing": session.timing,
        "step": steps,
        "training": {
            "step": _reported(session.training.step),
            "epoch": _reported(session.training.epoch),
        },
        "generation": _generation(session.generation),
        "throughput": {
            "samples_per_second": throughput,
            "samples_per_second_overall": overall,
            "tokens_per_second": session.tokens_per_second,
        },
        "ranks": None if session.ranks is None else _ranks(session.ranks),
        "flop": {
            **{key: session.count.get(f"flop_{key}") for key in _FLOP},
            **_some(session.count, "operators", "uncounted_operators", "method"),
        },
        "bytes": {"per_step": session.count.get("bytes_per_step")},
        "efficiency": efficiency(session.efficiency),
        "roofline": roofline(session.efficiency.roofline),
        "profile": _profile(session.profile),
        "counters": counters(session.counters),
        "window": {
            "kind": session.window.kind,
            "start_seconds": session.window.start / 1e9,
            "end_seconds": session.window.end / 1e9,
        },
        "metrics": session.metrics,
        "devices": [
            those(device, "id", "kind", "name", "uuid", "used", "metrics")
            for device in session.devices
        ],
        "fingerprint": session.facts,
        "error": session.error or None,
    }
    return _plain(told)


def _generation(of: Generation | None) -> dict[str, JSON] | None:
    if of is None:
        return None
    return {
        "time_to_first_token": of.time_to_first_token,
        "prompt_tokens_per_second": of.prompt_rate,
        "generated_tokens_per_second": of.token_rate,
        "kv_cache_bytes": of.kv_cache,
        "running_requests": of.requests,
        "rooflines": [roofline(each) for each in of.rooflines],
    }


def _reported(of: Reported) -> dict[str, JSON]:
    return {key: {**_plain(last.figure), "at": last.at} for key, last in of.all.items()}


def comparison(compared: comparing.Comparison) -> dict[str, JSON]:
    """Sessions side by side: the output of ``gpuwatch compare --format json``."""
    told = {
        "schema": JSON_SCHEMA,
        "baseline": None if compared.baseline is None else compared.sessions[compared.baseline].id,
        "notes": compared.notes,
        "rows": [
            those(row, "group", "name", "unit", "values", "methods", "ratios")
            for row in compared.rows
        ],
        **those(compared, "differences", "kernels", "families"),
    }
    return {**_plain(told), "sessions": [summary(session) for session in compared.sessions]}


def _ranks(of: Ranks) -> dict[str, JSON]:
    """``ranks`` of ``gpuwatch show --format json``."""
    return {
        **those(of, "world_size", "step_seconds", "slowest", "imbalance"),
        "text": sentences(of),
        "reason": of.reason,
        "stragglers": [
            {**_excess(each.excess), "goes_with": each.goes_with} for each in of.stragglers
        ],
        "excesses": [_excess(each) for each in of.excesses],
        "figures": of.figures,
        "over_time": None
        if of.heat is None
        else {
            "start_seconds": [t / 1e9 for t in of.heat.starts],
            "end_seconds": [t / 1e9 for t in of.heat.ends],
            "own_time": [
                {"rank": rank, "relative": values}
                for rank, values in zip(of.heat.ranks, of.heat.values, strict=True)
            ],
        },
    }


def _excess(of: Excess) -> dict[str, JSON]:
    return {
        **those(of, "rank", "seconds"),
        "low_seconds": of.low,
        "high_seconds": of.high,
        **those(of, "level", "relative"),
        "since_seconds": None if of.since is None else of.since / 1e9,
        "before_seconds": of.before,
    }


def efficiency(of: Efficiency) -> dict[str, JSON]:
    """The key ``efficiency`` of a session."""
    sheet, at_maximum = of.mfu_peaks
    return {
        "devices": of.covers,
        "data_type": of.data_type,
        "flop_rate": {**_plain(of.flop_rate), "shares": of.flop_shares},
        "most_executed_flop_rate": {**_plain(of.most_executed), "shares": of.most_executed_shares},
        "mfu": {**_plain(of.mfu), "convention": _convention(of, MODEL_FLOP, sheet)},
        "mfu_at_maximum_clock": {
            **_plain(of.mfu_at_maximum_clock),
            "convention": _convention(of, MODEL_FLOP, at_maximum),
        },
        "hfu": {**_plain(of.hfu), "convention": _convention(of, EXECUTED_TWICE, sheet)},
        "bandwidth": {**_plain(of.bandwidth), "shares": of.bandwidth_shares},
        "bytes_rate": {**_plain(of.bytes_rate), "shares": of.bytes_shares},
        "intensity": of.intensity,
        "energy": of.energy,
        "traffic": {
            "bytes": of.traffic.total,
            **those(of.traffic, "sectors", "per_step", "coverage"),
        },
        "findings": of.findings,
    }


def roofline(of: Roofline) -> dict[str, JSON]:
    """Points, ceilings and the bound of a session."""
    return {
        **those(of, "label", "data_type"),
        "points": [
            {
                "flop_per_byte": point.intensity,
                "flop_per_second": point.rate,
                "bytes_per_second": point.bytes_rate,
                "bytes": point.bytes_kind,
                **those(point, "method", "text"),
            }
            for point in of.points
        ],
        "ceilings": of.ceilings,
        **those(of.verdict, "bound", "text", "hint"),
        "reason": of.reason,
    }


def _profile(of: Profile | None) -> dict[str, JSON] | None:
    """Source of a profile and its times per step; for its tables see `gpuwatch kernels`."""
    if of is None:
        return None
    times = times_of(of)
    return {
        **source(of),
        "tables": list(of.tables),
        "kernel_seconds_per_step": times.kernels,
        "copy_to_device_seconds_per_step": times.copies_to_device,
        "memset_seconds_per_step": times.memset,
    }


def source(of: Profile) -> dict[str, JSON]:
    """What a profile is of."""
    told = ("tool", "version", "device", "steps", "step_seconds")
    return those(of, *told, "reason", "notes", "time_method", "time_source")


def counters(of: Counters | None) -> dict[str, JSON] | None:
    """Executed FLOP and DRAM bytes, without the single kernels."""
    if of is None:
        return None
    return {name: value for name, value in vars(of).items() if name != "kernels"}


def _convention(of: Efficiency, flop: str, peak: MfuPeak) -> dict[str, JSON]:
    return {"flop": flop, "data_type": of.data_type, "peak": peak.ceiling}


def study(result: StudyResult) -> dict[str, JSON]:
    """The comparison of all sessions and the study's results; sessions are given by id."""
    told = {
        "study": None if result.plan is None else result.plan.study,
        **those(result, "title", "questions", "overall"),
        "sweeps": [
            {**_plain(sweep), "points": [_with_sessions(each) for each in sweep.points]}
            for sweep in result.sweeps
        ],
        "noise": result.noise,
        "plan": _plan(result),
        **those(result, "not_run", "to_come"),
        "notices": notices(result),
    }
    return {**comparison(side_by_side(result)), **_plain(told)}


def _with_sessions(point: JSON) -> dict[str, JSON]:
    """A point of a sweep, with label and session ids in place of its cell."""
    document: dict[str, JSON] = _plain(point)
    cell: Cell | None = point.cell
    document["cell"] = None if cell is None else cell.label
    document["sessions"] = [] if cell is None else [run.session.id for run in cell.runs]
    return document


def _plan(result: StudyResult) -> dict[str, JSON] | None:
    """The plan, each run with its session's id if there is one."""
    plan = result.plan
    if plan is None:
        return None
    ids = {Path(session.path).name: session.id for session in result.sessions}
    return {
        **those(plan, "seed", "title", "question", "preset", "settings", "parts"),
        "order": [
            {
                **those(run, "index", "file"),
                "session": ids.get(run.file),
                **those(run, "part", "block"),
                "workload": run.workload.name,
                "parameters": run.workload.parameters,
                "environment": run.environment.label,
            }
            for run in plan.runs
        ],
    }


def _plain(value: JSON) -> JSON:
    """Convert to JSON types: a dataclass to an object, a session to its id, an enum to its text."""
    if isinstance(value, Summary):
        return value.id
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, ComparisonRow):
        return _plain(_row(value))
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value


def _row(row: ComparisonRow) -> dict[str, JSON]:
    bounds = [row.bound(at) for at in range(len(row.values))]
    known = {b for b, value in zip(bounds, row.values, strict=True) if value is not None}
    return {
        **those(row, "group", "name", "unit", "values", "lows", "highs", "methods", "ratios"),
        **those(row, "is_traffic"),
        "at_most": known == {AT_MOST},
        "bounds": bounds,
        **those(row, "known", "runs", "changes", "measured"),
    }


def _some(of: Mapping[str, JSON], *keys: str) -> dict[str, JSON]:
    """These keys, null where there is none."""
    return {key: of.get(key) for key in keys}
