"""The rows of ``gpu_process``: which process holds how much of which GPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.writing.statements import Row, gpu_process
from gpuwatch.telemetry.nvml.fields import GpuProcess
from gpuwatch.telemetry.nvml.process_utilization import ProcessShares

Key = tuple[str, int]
"""Device and PID."""

_SHARE = 0.02
"""A change of the share of a GPU's time that is worth a row."""
_NO_BYTES = "NVML does not say how much memory it holds"


@dataclass(frozen=True)
class GpuUsage:
    """What a process has of one GPU."""

    bytes: int | None
    kind: str
    share: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class GpuHolder:
    """Who it is: as far as the rows of ``gpu_process`` say."""

    name: str | None
    owned: bool | None
    reason: str | None = None


def held(listed: Mapping[str, Sequence[GpuProcess] | None]) -> dict[Key, GpuUsage]:
    """By device and PID; one that is listed for compute and for graphics is one process."""
    found: dict[Key, GpuUsage] = {}
    for device, processes in listed.items():
        for process in processes or ():
            before = found.get((device, process.pid))
            if before is None:
                found[device, process.pid] = GpuUsage(process.used, process.kind)
                continue
            sizes = [size for size in (before.bytes, process.used) if size is not None]
            kinds = ", ".join(dict.fromkeys((before.kind, process.kind)))
            found[device, process.pid] = GpuUsage(max(sizes) if sizes else None, kinds)
    return found


class GpuHolders:
    """Remembers what was written, and says what is worth a row."""

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
        who: Mapping[int, GpuHolder],
        shares: Mapping[str, ProcessShares],
        *,
        restate: bool,
    ) -> list[Row]:
        """What appeared, changed or left; ``restate``: everything. ``who``: by PID."""
        gone = [key for key in self._written if key not in now]
        rows = [_row(t, key, *self._written.pop(key), running=False) for key in gone]
        for key, each in now.items():
            holder, told = who[key[1]], _with_share(each, shares.get(key[0]), key[1])
            before = self._written.get(key)
            if restate or before is None or before[0] != holder or _differs(before[1], told):
                self._written[key] = holder, told
                rows.append(_row(t, key, holder, told, running=True))
        return rows


def _with_share(each: GpuUsage, shares: ProcessShares | None, pid: int) -> GpuUsage:
    """With its share of the GPU's time: a process that NVML has no sample of was idle."""
    missing = [_NO_BYTES] if each.bytes is None else []
    share = None
    if shares is not None and shares.reason is None:
        share = min(1.0, shares.by_pid.get(pid, 0.0))
    elif shares is not None:
        missing.append(f"GPU time: {shares.reason}")
    return replace(each, share=share, reason="; ".join(missing) or None)


def _differs(one: GpuUsage, other: GpuUsage) -> bool:
    if replace(one, share=None) != replace(other, share=None):
        return True
    if one.share is None or other.share is None:
        return one.share is not other.share
    return abs(one.share - other.share) >= _SHARE


def _row(t: int, key: Key, holder: GpuHolder, each: GpuUsage, *, running: bool) -> Row:
    return gpu_process(
        t,
        *key,
        holder.name,
        holder.owned,
        each.bytes,
        running,
        each.kind,
        each.share,
        "; ".join(text for text in (holder.reason, each.reason) if text) or None,
    )
