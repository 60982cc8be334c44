"""What a device really reaches: bandwidth of a large copy, rate of matrix products by data type.

Bytes of a copy are those read plus those written, as STREAM counts them; what a CPU's cache reads
before it overwrites a line (write-allocate) is not counted. A product of n x n matrices is 2 n^3
FLOP. Operands are normally distributed: zeros draw less power and give clocks that no training
gets. Each figure is the best median of several sets of samples: disturbances only ever slow down.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from .device import choose, describe
from .errors import translate
from .lines import emit
from .versions import versions

COPY_BYTES = 1 << 30
"""Bytes of each of the two arrays: many times the largest cache of a GPU."""
CPU_COPY_BYTES = 1 << 28
CACHES = 8
"""A CPU's array is at least so many times its largest cache."""
PRODUCTS = (1024, 2048, 4096, 8192, 16384)

_DATA_TYPES = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
_ON_CPU = ("float32", "float64", "bfloat16")
_FLAGS = ("amx_bf16", "avx512_bf16", "bf16")
"""What the kernel calls bfloat16 arithmetic of a processor (x86 and ARM)."""


@dataclass(frozen=True)
class Pace:
    """How long to look."""

    seconds: float
    """For each copy or size of matrix, about at most."""
    sets: int
    """At least so many; as soon as so many in a row gave no better median, no more."""
    samples: int
    """In a set."""
    sample_seconds: float
    """A sample repeats the operation for about so long."""
    product_seconds: float
    """The largest matrices whose product takes no longer than this are multiplied."""


GPU = Pace(3.0, 4, 5, 0.02, 0.06)
CPU = Pace(5.0, 4, 5, 0.02, 0.4)
QUICK = Pace(0.6, 2, 3, 0.01, 0.02)
"""For a look at the machinery, not for a ceiling to rely on."""


@dataclass(frozen=True)
class Measured:
    """Seconds of one operation."""

    seconds: float
    """The best median of a set."""
    spread: float
    """How far the slowest set's median lies above it, as a share of it."""
    sets: int


@dataclass(frozen=True)
class Bench:
    """A device, and the stopwatch that is right for it."""

    device: torch.device
    pace: Pace

    def time(self, operation: Callable[[], object], repeats: int) -> float:
        """Seconds of one operation, mean over ``repeats`` of them without a pause."""
        if self.device.type == "cuda":
            start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            start.record()
            for _ in range(repeats):
                operation()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) / 1e3 / repeats
        begin = time.perf_counter()
        for _ in range(repeats):
            operation()
        return (time.perf_counter() - begin) / repeats

    def best(self, operation: Callable[[], object]) -> Measured:
        """Sets of samples until none gets better, or time is up."""
        pace = self.pace
        self.time(operation, 2)  # the library chooses its kernel, the clock rises
        repeats = max(1, round(pace.sample_seconds / max(1e-9, self.time(operation, 1))))
        deadline = time.perf_counter() + pace.seconds
        medians: list[float] = []
        since_best = 0
        while len(medians) < pace.sets or since_best < pace.sets:
            found = statistics.median(self.time(operation, repeats) for _ in range(pace.samples))
            better = not medians or found < min(medians) * 0.995
            since_best = 0 if better else since_best + 1
            medians.append(found)
            if time.perf_counter() > deadline:
                break
        best = min(medians)
        return Measured(best, max(medians) / best - 1, len(medians))


def calibrate(asked: str, *, quick: bool = False) -> int:
    """Measure the device that ``asked`` names, and tell each ceiling as soon as it is known.

    Events: ``calibration`` with the device, then ``ceiling`` for each, with ``value`` in By/s or
    FLOP/s, or ``None`` and a reason; ``calibrated`` at the end. A ceiling that cannot be measured
    does not keep the others from it.

    Raises:
        Failure: the device cannot be used.
    """
    begin = time.perf_counter()
    device = choose(asked, "float32")
    bench = Bench(device, QUICK if quick else GPU if device.type == "cuda" else CPU)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    emit("calibration", **describe(device), versions=versions(), threads=torch.get_num_threads())
    torch.manual_seed(0)
    for name in ("bandwidth", *(_DATA_TYPES if device.type == "cuda" else _ON_CPU)):
        unit = "By/s" if name == "bandwidth" else "FLOP/s"
        value = spread = how = None
        reason = None if name == "bandwidth" else _missing(device, name)
        if reason is None:
            try:
                value, spread, how = _copy(bench) if name == "bandwidth" else _product(bench, name)
            except Exception as error:
                reason = translate(error, None).message
        if device.type == "cuda":
            torch.cuda.empty_cache()
        emit("ceiling", name=name, value=value, unit=unit, how=how, spread=spread, reason=reason)
    emit("calibrated", seconds=time.perf_counter() - begin)
    return 0


def _copy(bench: Bench) -> tuple[float, float, str]:
    """Bytes per second of a copy, its spread, and how it was measured."""
    size = _copy_bytes(bench.device)
    source = torch.ones(size // 4, dtype=torch.float32, device=bench.device)
    target = torch.zeros_like(source)
    measured = bench.best(lambda: target.copy_(source))
    how = f"copy of {size >> 20} MiB, bytes read plus written, {_sets(bench, measured)}"
    if bench.device.type == "cpu":
        how += f", {torch.get_num_threads()} threads"
    return 2 * size / measured.seconds, measured.spread, how


def _copy_bytes(device: torch.device) -> int:
    """Bytes of one array: far beyond the caches, and an eighth of what is free at most."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return min(COPY_BYTES, free // 8 // 4096 * 4096)
    wanted = max(CPU_COPY_BYTES, CACHES * _largest_cache())
    return min(wanted, _free_memory() // 8) // 4096 * 4096


def _product(bench: Bench, name: str) -> tuple[float, float, str]:
    """FLOP per second of square products, their spread, and how they were measured.

    Of the largest matrices that are quick enough and of those half as large the better rate:
    large ones fill a GPU, smaller ones a CPU's caches.
    """
    with _precision(name):
        largest = _product_size(bench, name)
        found = {
            size: _measured_product(bench, size, name)
            for size in PRODUCTS
            if largest // 2 <= size <= largest
        }
    size = max(found, key=lambda each: each**3 / found[each].seconds)
    how = f"{size} x {size} x {size} product, {_sets(bench, found[size])}"
    if bench.device.type == "cpu":
        how += f", {torch.get_num_threads()} threads, {_arithmetic(name)}"
    return 2 * size**3 / found[size].seconds, found[size].spread, how


def _measured_product(bench: Bench, size: int, name: str) -> Measured:
    a, b = (_normal(size, bench.device, name) for _ in range(2))
    out = torch.empty_like(a)
    return bench.best(lambda: torch.mm(a, b, out=out))


def _product_size(bench: Bench, name: str) -> int:
    """The largest size whose product is quick enough and fits; a larger one reaches more."""
    chosen = PRODUCTS[0]
    free = torch.cuda.mem_get_info(bench.device)[0] if bench.device.type == "cuda" else None
    itemsize = torch.empty((), dtype=_DATA_TYPES[name]).element_size()
    for size in PRODUCTS:
        if free is not None and 3 * size * size * itemsize > free // 4:
            break
        chosen = size
        # Eight times the work next: go on only if that is quick enough, too.
        if _seconds_of_a_product(bench, size, name) * 8 > bench.pace.product_seconds:
            break
    return chosen


def _seconds_of_a_product(bench: Bench, size: int, name: str) -> float:
    a, b = (_normal(size, bench.device, name) for _ in range(2))
    return min(bench.time(lambda: torch.mm(a, b), 1) for _ in range(3))


def _normal(size: int, device: torch.device, name: str) -> torch.Tensor:
    return torch.randn(size, size, device=device, dtype=torch.float32).to(_DATA_TYPES[name])


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
    """Products of float32 in TF32 for ``tf32``, and never otherwise."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _missing(device: torch.device, name: str) -> str | None:
    """Why a GPU has no such arithmetic: what torch would emulate there is no ceiling of it."""
    if device.type != "cuda" or name not in ("tf32", "bfloat16"):
        return None
    major, minor = torch.cuda.get_device_capability(device)
    if major >= 8:
        return None
    return f"compute capability {major}.{minor} has no {name} arithmetic"


def _arithmetic(name: str) -> str:
    """What a CPU computes such products with, as torch and the kernel tell."""
    capability = torch.backends.cpu.get_cpu_capability()
    if name != "bfloat16":
        return capability
    flags = _cpu_flags()
    if flags is None:
        return f"{capability}; whether the processor has bfloat16 arithmetic is not known"
    own = [flag for flag in _FLAGS if flag in flags]
    if own:
        return f"{capability}, {' '.join(own)}"
    return f"{capability}; the processor has no bfloat16 arithmetic: in float32 underneath"


def _cpu_flags() -> frozenset[str] | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                return frozenset(value.split())
    except OSError:
        return None
    return None


def _largest_cache() -> int:
    """Bytes of the CPU's last cache; 0 where the system does not tell."""
    with contextlib.suppress(OSError, ValueError):
        return max(0, os.sysconf("SC_LEVEL3_CACHE_SIZE"))
    return 0


def _free_memory() -> int:
    """Bytes that are free without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def _sets(bench: Bench, measured: Measured) -> str:
    return f"best median of {measured.sets} x {bench.pace.samples} samples"
