"""Makes the rows of ``gpu_process``: which process holds how much of which GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.writing.statements import Row, gpu_process
from gpuwatch.telemetry.nvml.fields import GpuProcess
from gpuwatch.telemetry.nvml.processes import ProcessShares, TimeShare

Key = tuple[str, int]
"""Device and PID."""

_SHARE = 0.02
"""Smallest change of one of a process's shares of GPU time that is worth a row."""
_NO_BYTES = "NVML does not say how much memory it holds"
_NO_SHARE = "GPU time: NVML gives no valid sample"
_NO_MEMORY_SHARE = "time that it used device memory: NVML gives no valid sample"
_IDLE = TimeShare(0.0, 0.0)


@dataclass(frozen=True)
class GpuUsage:
    """What a process uses of one GPU."""

    bytes: int | None
    kind: str
    share: float | None = None
    memory_share: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GpuHolder:
    """Identity of a process in the rows of ``gpu_process``."""

    name: str | None
    owned: bool | None
    reason: str | None = None


def held(listed: Mapping[str, Sequence[GpuProcess] | None]) -> dict[Key, GpuUsage]:
    """Usage by device and PID; merges the compute and graphics entries of a process."""
    usage: dict[Key, GpuUsage] = {}
    for device, processes in listed.items():
        for pid, entries in grouped((each.pid, each) for each in processes or ()).items():
            sizes = [each.used for each in entries if each.used is not None]
            kinds = dict.fromkeys(each.kind for each in entries)
            usage[device, pid] = GpuUsage(max(sizes, default=None), ", ".join(kinds))
    return usage


class GpuHolders:
    """Remembers the written rows and decides which changes are worth a new one."""

    def __init__(self) -> None:
        self._written: dict[Key, tuple[GpuHolder, GpuUsage]] = {}

    def same(self, now: Mapping[Key, GpuUsage]) -> bool:
        """Whether no process appeared, left or changed its memory."""
        return now.keys() == self._written.keys() and all(
            self._written[key][1].bytes == each.bytes for key, each in now.items()
        )

    def rows(
        self,
        t: int,
        now: Mapping[Key, GpuUsage],
        holders: Mapping[int, GpuHolder],
        shares: Mapping[str, ProcessShares],
        *,
        restate: bool,
    ) -> list[Row]:
        """Rows for processes that appeared, changed or left; with ``restate`` for all of them.

        ``holders``: by PID.
        """
        gone = [key for key in self._written if key not in now]
        rows = [_row(t, key, *self._written.pop(key), running=False) for key in gone]
        for key, listed in now.items():
            holder, usage = holders[key[1]], _with_shares(listed, shares.get(key[0]), key[1])
            previous = self._written.get(key)
            if restate or previous is None or previous[0] != holder or _differs(previous[1], usage):
                self._written[key] = holder, usage
                rows.append(_row(t, key, holder, usage, running=True))
        return rows


def _with_shares(usage: GpuUsage, shares: ProcessShares | None, pid: int) -> GpuUsage:
    """Add the shares of GPU time; a process without a sample in NVML was idle."""
    missing = [_NO_BYTES] if usage.bytes is None else []
    if shares is not None and shares.reason is None:
        share = shares.by_pid.get(pid, _IDLE)
        usage = replace(usage, share=share.kernels, memory_share=share.memory)
        if share.kernels is None:
            missing.append(_NO_SHARE)
        if share.memory is None:
            missing.append(_NO_MEMORY_SHARE)
    elif shares is not None:
        missing.append(f"GPU time: {shares.reason}")
    return replace(usage, reason="; ".join(missing) or None)


def _differs(one: GpuUsage, other: GpuUsage) -> bool:
    if (one.bytes, one.kind, one.reason) != (other.bytes, other.kind, other.reason):
        return True
    return _moved(one.share, other.share) or _moved(one.memory_share, other.memory_share)


def _moved(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) >= _SHARE


def _row(t: int, key: Key, holder: GpuHolder, usage: GpuUsage, *, running: bool) -> Row:
    return gpu_process(
        t,
        *key,
        holder.name,
        holder.owned,
        usage.bytes,
        running,
        usage.kind,
        usage.share,
        usage.memory_share,
        "; ".join(text for text in (holder.reason, usage.reason) if text) or None,
    )
