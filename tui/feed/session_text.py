"""Texts of a session file, which is not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuwatch.analysis.summary.failure import in_few_words, reason_of
from gpuwatch.core.models import mapping, number, with_hint
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import Status
from gpuwatch.tui.feed.snapshot import Trouble

_LONGEST_START_NS = 60 * NS
"""After this a program that has not imported torch is not expected to."""


def startup_phase(
    meta: Mapping[str, Any], state: Status, t: int, *, stepped: bool, cuda: bool
) -> str:
    """What a live run does at session time ``t`` (ns) before its first step, else empty;
    ``stepped``: it has a step; ``cuda``: there is a GPU, of which it is not known to use any."""
    kind = text(meta, "workload", "kind")
    if not state.live or kind == "machine" or stepped or "startup" in meta:
        return ""
    if "launch" in meta and kind == "command":
        return _of_command(meta, t, cuda=cuda)
    if "run" in meta:
        return "preparing the first step"
    return "starting" if "launch" in meta else "preparing the environment"


def _of_command(meta: Mapping[str, Any], t: int, *, cuda: bool) -> str:
    """What the hook tells, if anything; for a program that imports no torch nobody waits long."""
    waiting = mapping(meta.get("waiting"))
    since = number(waiting.get("t"))
    if since is None:
        launched, hook = number(mapping(meta.get("launch")).get("t")), mapping(meta.get("hook"))
        hooked = hook.get("given") is True and launched is not None
        early = hooked and t - (launched or 0) < _LONGEST_START_NS
        return f"starting, {_seconds(t, launched or 0)}" if early else ""
    if waiting.get("for") == "import":
        return f"importing torch, {_seconds(t, since)}"
    if waiting.get("for") == "own lines":
        return "first steps are there, shown in 5 s"
    if waiting.get("for") == "evaluation":
        return "models are called, shown in 15 s"
    before = "CUDA or the first step" if cuda else "the first step"
    return f"waiting for {before}, {_seconds(t, since)}"


def _seconds(t: int, since: float) -> str:
    return f"{max(0.0, t - since) / NS:.0f} s"


def no_gpu(reader: SessionReader) -> str | None:
    """Why the machine has no GPU; ``None``: it has one."""
    reason = reader.facts().get("host", {}).get("gpu.unavailable")
    return None if reason is None else str(reason)


def trouble(reader: SessionReader, meta: Mapping[str, Any], state: Status) -> Trouble | None:
    """Why the run failed: the workload's error, else the reason as lists have it, else the status;
    ``None``: it did not fail."""
    error = with_hint(meta.get("error"))
    if error.get("message"):
        hint = error.get("hint")
        return Trouble(str(error["message"]), str(hint) if hint else None)
    if state.state.value in ("failed", "killed", "lost", "fetched in part"):
        killed_for_memory = mapping(meta.get("result")).get("out_of_memory") is True
        reason = reason_of(reader, meta, state)
        return Trouble(in_few_words(state, reason, out_of_memory=killed_for_memory) or state.text)
    return None


def text(meta: Mapping[str, Any], *keys: str) -> str:
    """The value at the nested ``keys`` as text; empty: there is none."""
    value: Any = meta
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value is None else str(value)
