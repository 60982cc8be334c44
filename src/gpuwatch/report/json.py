"""Sessions, comparisons and studies as JSON; ``docs/json.md`` documents it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from enum import Enum
from pathlib import Path

from gpuwatch.analysis.comparison import side_by_side as comparing
from gpuwatch.analysis.hardware.efficiency import Efficiency, Share
from gpuwatch.analysis.hardware.kernels import times_of
from gpuwatch.analysis.hardware.mfu import EXECUTED_TWICE, MODEL_FLOP, MfuPeak
from gpuwatch.analysis.hardware.profile import Counters, Profile
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.ranks.ranks import Ranks
from gpuwatch.analysis.ranks.stragglers import Excess
from gpuwatch.analysis.ranks.wording import sentences
from gpuwatch.analysis.results import Cell, StudyResult
from gpuwatch.analysis.statistics.description import Statistic
from gpuwatch.analysis.summary.generation import Generation
from gpuwatch.analysis.summary.load import disturbances
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import Reported
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import document
from gpuwatch.report.document.study import compared as side_by_side

_LINE = 240
"""Most characters of a list or object on one line; lists of short items have no limit."""
_SHORT = 24


def dumps(value: JSON) -> str:
    """Indented JSON with short values on one line; numbers that are not finite become null."""
    return document(_written(_finite(value), 0)) + "\n"


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


def summary(session: Summary) -> dict[str, JSON]:
    """One session: the output of ``gpuwatch show --format json``."""
    steps = asdict(session.steps)
    throughput, overall = (
        steps.pop(key) for key in ("samples_per_second", "samples_per_second_overall")
    )
    return {
        "schema": JSON_SCHEMA,
        "session": {
            "id": session.id,
            "path": session.path,
            "label": session.label,
            "name": session.given.name,
            "tags": list(session.given.tags),
            "note": session.given.note,
            "status": session.status.state.value,
            "status_text": session.status.text,
            "exit_code": session.status.exit_code,
            "started": session.started,
            "seconds": session.seconds,
            "interval_seconds": session.interval_seconds,
            "notice": session.notice,
            "notes": [*session.notes, *disturbances([session])],
            "left_out": list(session.left_out),
        },
        "workload": {
            "name": session.workload.get("name"),
            "kind": session.workload.get("kind"),
            "arguments": session.workload.get("arguments"),
            "parameters": {
                **mapping(session.workload.get("parameters")),
                **mapping(session.run.get("parameters")),
            },
            "model": session.run.get("model"),
            "dtype": session.run.get("dtype"),
            "device": session.run.get("device"),
            "data": session.run.get("data"),
        },
        "environment": dict(session.environment),
        "timing": asdict(session.timing),
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
            "forward_per_sample": session.count.get("flop_forward_per_sample"),
            "per_step": session.count.get("flop_per_step"),
            "forward_per_step": session.count.get("flop_forward_per_step"),
            "backward_per_step": session.count.get("flop_backward_per_step"),
            "recomputed_per_step": session.count.get("flop_recomputed_per_step"),
            "operators": session.count.get("operators"),
            "uncounted_operators": session.count.get("uncounted_operators"),
            "method": session.count.get("method"),
        },
        "bytes": {"per_step": session.count.get("bytes_per_step")},
        "efficiency": efficiency(session.efficiency),
        "roofline": roofline(session.efficiency.roofline),
        "profile": _profile(session.profile),
        "counters": _counters(session.counters),
        "window": {
            "kind": session.window.kind,
            "start_seconds": session.window.start / 1e9,
            "end_seconds": session.window.end / 1e9,
        },
        "metrics": _statistics(session.metrics),
        "devices": [
            {
                "id": device.id,
                "kind": device.kind,
                "name": device.name,
                "uuid": device.uuid,
                "used": device.used,
                "metrics": _statistics(device.metrics),
            }
            for device in session.devices
        ],
        "fingerprint": {scope: dict(facts) for scope, facts in session.facts.items()},
        "error": dict(session.error) or None,
    }


def _generation(of: Generation | None) -> dict[str, JSON] | None:
    if of is None:
        return None
    return {
        "time_to_first_token": _figure(of.time_to_first_token),
        "prompt_tokens_per_second": _figure(of.prompt_rate),
        "generated_tokens_per_second": _figure(of.token_rate),
        "kv_cache_bytes": _figure(of.kv_cache),
        "running_requests": None if of.requests is None else _figure(of.requests),
        "rooflines": [roofline(each) for each in of.rooflines],
    }


def _reported(of: Reported) -> dict[str, JSON]:
    return {key: {**_figure(last.figure), "at": last.at} for key, last in of.all.items()}


def comparison(compared: comparing.Comparison) -> dict[str, JSON]:
    """Sessions side by side: the output of ``gpuwatch compare --format json``."""
    return {
        "schema": JSON_SCHEMA,
        "baseline": None if compared.baseline is None else compared.sessions[compared.baseline].id,
        "notes": list(compared.notes),
        "rows": [
            {
                "group": row.group,
                "name": row.name,
                "unit": row.unit,
                "values": list(row.values),
                "methods": [method.value for method in row.methods],
                "ratios": list(row.ratios),
            }
            for row in compared.rows
        ],
        "differences": [
            {"scope": each.scope, "key": each.key, "values": list(each.values)}
            for each in compared.differences
        ],
        "kernels": [asdict(each) for each in compared.kernels],
        "families": [asdict(each) for each in compared.families],
        "sessions": [summary(session) for session in compared.sessions],
    }


def _statistics(metrics: Mapping[str, Statistic]) -> dict[str, JSON]:
    return {
        name: {**asdict(statistic), "method": statistic.method.value}
        for name, statistic in metrics.items()
    }


def _finite(value: JSON) -> JSON:
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value


def _ranks(of: Ranks) -> dict[str, JSON]:
    """``ranks`` of ``gpuwatch show --format json``."""
    return {
        "world_size": of.world_size,
        "step_seconds": of.step_seconds,
        "slowest": of.slowest,
        "imbalance": of.imbalance,
        "text": sentences(of),
        "reason": of.reason,
        "stragglers": [
            {**_excess(each.excess), "goes_with": [asdict(reason) for reason in each.goes_with]}
            for each in of.stragglers
        ],
        "excesses": [_excess(each) for each in of.excesses],
        "figures": [asdict(each) for each in of.figures],
        "over_time": None
        if of.heat is None
        else {
            "start_seconds": [t / 1e9 for t in of.heat.starts],
            "end_seconds": [t / 1e9 for t in of.heat.ends],
            "own_time": [
                {"rank": rank, "relative": list(values)}
                for rank, values in zip(of.heat.ranks, of.heat.values, strict=True)
            ],
        },
    }


def _excess(of: Excess) -> dict[str, JSON]:
    return {
        "rank": of.rank,
        "seconds": of.seconds,
        "low_seconds": of.low,
        "high_seconds": of.high,
        "level": of.level,
        "relative": of.relative,
        "since_seconds": None if of.since is None else of.since / 1e9,
        "before_seconds": of.before,
    }


def efficiency(of: Efficiency) -> dict[str, JSON]:
    """The key ``efficiency`` of a session."""
    energy, traffic = of.energy, of.traffic
    sheet, at_maximum = of.mfu_peaks
    return {
        "devices": list(of.covers),
        "data_type": of.data_type,
        "flop_rate": {**_figure(of.flop_rate), "shares": _shares(of.flop_shares)},
        "most_executed_flop_rate": {
            **_figure(of.most_executed),
            "shares": _shares(of.most_executed_shares),
        },
        "mfu": {**_figure(of.mfu), "convention": _convention(of, MODEL_FLOP, sheet)},
        "mfu_at_maximum_clock": {
            **_figure(of.mfu_at_maximum_clock),
            "convention": _convention(of, MODEL_FLOP, at_maximum),
        },
        "hfu": {**_figure(of.hfu), "convention": _convention(of, EXECUTED_TWICE, sheet)},
        "bandwidth": {**_figure(of.bandwidth), "shares": _shares(of.bandwidth_shares)},
        "bytes_rate": {**_figure(of.bytes_rate), "shares": _shares(of.bytes_shares)},
        "intensity": _figure(of.intensity),
        "energy": {
            "gpu": _figure(energy.gpu),
            "gpu_per_step": _figure(energy.gpu_per_step),
            "gpu_per_sample": _figure(energy.gpu_per_sample),
            "cpu": _figure(energy.cpu),
            "cpu_per_step": _figure(energy.cpu_per_step),
            "cpu_per_sample": _figure(energy.cpu_per_sample),
        },
        "traffic": {
            "bytes": _figure(traffic.total),
            "sectors": _figure(traffic.sectors),
            "per_step": _figure(traffic.per_step),
            "coverage": traffic.coverage,
        },
        "findings": [asdict(each) for each in of.findings],
    }


def roofline(of: Roofline) -> dict[str, JSON]:
    """Points, ceilings and the bound of a session."""
    return {
        "label": of.label,
        "data_type": of.data_type,
        "points": [
            {
                "flop_per_byte": point.intensity,
                "flop_per_second": point.rate,
                "bytes_per_second": point.bytes_rate,
                "bytes": point.bytes_kind,
                "method": point.method.value,
                "text": point.text,
            }
            for point in of.points
        ],
        "ceilings": {name: asdict(each) for name, each in of.ceilings.items()},
        "bound": of.verdict.bound,
        "text": of.verdict.text,
        "hint": of.verdict.hint,
        "reason": of.reason,
    }


def _profile(of: Profile | None) -> dict[str, JSON] | None:
    """Source of a profile and its times per step; for its tables see `gpuwatch kernels`."""
    if of is None:
        return None
    times = times_of(of)
    steps = of.steps or None
    return {
        "tool": of.tool,
        "version": of.version,
        "device": of.device,
        "steps": of.steps,
        "step_seconds": of.step_seconds,
        "reason": of.reason,
        "notes": list(of.notes),
        "time_method": of.time_method.value,
        "time_source": of.time_source,
        "tables": list(of.tables),
        "kernel_seconds_per_step": _each(times.kernels, steps),
        "copy_to_device_seconds_per_step": _each(times.copies_to_device, steps),
        "memset_seconds_per_step": _each(times.memset, steps),
    }


def _counters(of: Counters | None) -> dict[str, JSON] | None:
    """Executed FLOP and DRAM bytes, without the single kernels."""
    if of is None:
        return None
    totals = asdict(of)
    totals.pop("kernels")
    return totals


def _figure(of: MeasuredValue) -> dict[str, JSON]:
    return {**asdict(of), "method": of.method.value}


def _each(total: float | None, steps: int | None) -> float | None:
    return total / steps if total is not None and steps else None


def _convention(of: Efficiency, flop: str, peak: MfuPeak) -> dict[str, JSON]:
    known = peak.ceiling
    return {"flop": flop, "data_type": of.data_type, "peak": known and asdict(known)}


def _shares(shares: Sequence[Share]) -> list[JSON]:
    return [{"value": share.value, "ceiling": asdict(share.ceiling)} for share in shares]


def study(result: StudyResult) -> dict[str, JSON]:
    """The comparison of all sessions and the study's results; sessions are given by id."""
    return {
        **comparison(side_by_side(result)),
        "study": None if result.plan is None else result.plan.study,
        "title": result.title,
        "questions": _plain(result.questions),
        "overall": _plain(result.overall),
        "sweeps": [
            {**_plain(sweep), "points": [_with_sessions(each) for each in sweep.points]}
            for sweep in result.sweeps
        ],
        "noise": _plain(result.noise),
        "plan": _plan(result),
        "not_run": _plain(result.not_run),
        "to_come": result.to_come,
        "notices": list(result.notices),
    }


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
        "seed": plan.seed,
        "title": plan.title,
        "question": plan.question,
        "preset": plan.preset,
        "settings": _plain(plan.settings),
        "parts": _plain(plan.parts),
        "order": [
            {
                "index": run.index,
                "file": run.file,
                "session": ids.get(run.file),
                "part": run.part,
                "block": run.block,
                "workload": run.workload.name,
                "parameters": _plain(run.workload.parameters),
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
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
