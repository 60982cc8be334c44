"""The processes on the watched GPUs and those of the run, as a screen shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OnGpu:
    """What a process has of one GPU."""

    device: str
    """``gpu0``."""
    bytes: int | None
    """Device memory."""
    share: float | None
    """Share of the GPU's time, 0 to 1, over about the last second."""
    reason: str | None
    """Why one of the two is not known."""


@dataclass(frozen=True)
class ProcessNow:
    """One process at the moment of the snapshot. Texts are as the session holds them: not clean."""

    pid: int
    """The host's."""
    name: str | None
    """``python train.py``, or the kernel's name of the program."""
    user: str | None
    owned: bool | None
    """Whether it belongs to the run; ``None``: the machine was recorded, or it cannot be told."""
    place: str | None
    """The run's environment for its own, else ``docker 3f2a9c1b4d5e``, ``slurm job 4711`` ..."""
    gpus: tuple[OnGpu, ...]
    cores: float | None
    """CPU seconds per second of the process itself."""
    resident: int | None
    """Bytes of host memory; shared pages count in each process."""
    started: int | None
    """Session time in nanoseconds; below 0: before the session."""
    running: bool
    """Of a session that is over: until its end was near."""
    reason: str | None = None
    """Why something of it is not known."""

    @property
    def gpu_bytes(self) -> int | None:
        """Device memory on all GPUs; ``None`` where it holds none or it is not known."""
        known = [each.bytes for each in self.gpus]
        sizes = [size for size in known if size is not None]
        return sum(sizes) if sizes and len(sizes) == len(known) else None
