"""Summaries and comparisons as JSON; see ``docs/json.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from gpuwatch.analysis.comparison import side_by_side as comparing
from gpuwatch.analysis.statistics.description import Statistic
from gpuwatch.analysis.summary.generation import Generation
from gpuwatch.analysis.summary.load import load_notes
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.analysis.summary.training import Reported
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import document
from gpuwatch.report.session import efficiency_json, ranks_json

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
            "notes": [*session.notes, *load_notes([session])],
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
        "ranks": None if session.ranks is None else ranks_json.ranks(session.ranks),
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
        "efficiency": efficiency_json.efficiency(session.efficiency),
        "roofline": efficiency_json.roofline(session.efficiency.roofline),
        "profile": efficiency_json.profile(session.profile),
        "counters": efficiency_json.counters(session.counters),
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
        "time_to_first_token": efficiency_json.figure(of.time_to_first_token),
        "prompt_tokens_per_second": efficiency_json.figure(of.prompt_rate),
        "generated_tokens_per_second": efficiency_json.figure(of.token_rate),
        "kv_cache_bytes": efficiency_json.figure(of.kv_cache),
        "running_requests": None if of.requests is None else efficiency_json.figure(of.requests),
        "rooflines": [efficiency_json.roofline(each) for each in of.rooflines],
    }


def _reported(of: Reported) -> dict[str, JSON]:
    return {
        key: {**efficiency_json.figure(last.figure), "at": last.at} for key, last in of.all.items()
    }


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
