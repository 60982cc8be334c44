"""The real limits of a device: bandwidth of a large copy, rate of matrix products by data type.

Bytes of a copy are those read plus those written, as in STREAM; a CPU cache's reads before it
overwrites a line (write-allocate) are not counted. A product of n x n matrices is 2 n^3 FLOP.
Operands are normally distributed: zeros would draw less power and allow clocks that no training
reaches. Each figure is the best median of several sets of samples, because disturbances only slow
things down.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

import torch

from .device import choose, describe
from .failures import translate
from .lines import emit
from .processor import arithmetic, free_memory, largest_cache, threads
from .system_load import BUSY, OtherLoad
from .versions import versions


@dataclass(frozen=True)
class Pace:
    """Duration of a benchmark."""

    seconds: float
    """Approximate limit for each copy or matrix size."""
    sets: int
    """Minimum number of sets; also the number of sets without a better median that ends it."""
    samples: int
    """Samples per set."""
    sample_seconds: float
    """Approximate duration of a sample, which repeats the operation."""
    product_seconds: float
    """Longest duration of one matrix product; decides the size of the matrices."""


@dataclass(frozen=True)
class Measured:
    """Seconds of one operation."""

    seconds: float
    """The best median of a set, in seconds."""
    spread: float
    """Distance of the slowest set's median from it, relative to it."""
    sets: int


@dataclass(frozen=True)
class Bench:
    """A device with a suitable stopwatch."""

    device: torch.device
    pace: Pace

    def time(self, operation: Callable[[], object], repeats: int) -> float:
        """Seconds per operation, mean over ``repeats`` of them without a pause."""
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
        """Measure sets of samples until none improves, or time is up."""
        pace = self.pace
        self.time(operation, 2)  # lets the library choose its kernel and the clock rise
        repeats = max(1, round(pace.sample_seconds / max(1e-9, self.time(operation, 1))))
        deadline = time.perf_counter() + pace.seconds
        medians: list[float] = []
        since_best = 0
        while len(medians) < pace.sets or since_best < pace.sets:
            median = statistics.median(self.time(operation, repeats) for _ in range(pace.samples))
            better = not medians or median < min(medians) * 0.995
            since_best = 0 if better else since_best + 1
            medians.append(median)
            if time.perf_counter() > deadline:
                break
        best = min(medians)
        return Measured(best, max(medians) / best - 1, len(medians))


COPY_BYTES = 1 << 30
"""Bytes of each of the two arrays: many times a GPU's largest cache."""
CPU_COPY_BYTES = 1 << 28
CACHES = 8
"""Minimum size of a CPU's array in multiples of its largest cache."""
APART = 512
"""Bytes between the two arrays, STREAM's OFFSET: where both begin at the same place of a page, a
CPU takes loads for stores that came before, and the copy is up to a third slower."""
PRODUCTS = (1024, 2048, 4096, 8192, 16384)

_DATA_TYPES = {
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
_ON_CPU = ("float32", "float64", "bfloat16")
GPU = Pace(3.0, 4, 5, 0.02, 0.06)
CPU = Pace(5.0, 4, 5, 0.02, 0.4)
QUICK = Pace(0.6, 2, 3, 0.01, 0.02)
"""For checking the setup, not for reliable limits."""

LONGEST = 45.0
"""No repeats start after this many seconds; keeps the total under a minute with torch's import."""


@dataclass(frozen=True)
class Figure:
    """A measured limit, or why it is unknown."""

    value: float | None
    """By/s or FLOP/s."""
    spread: float | None
    how: str | None
    reason: str | None
    others: float | None
    """For a CPU: share of the processors' time that other programs took meanwhile."""
    took: float
    """Seconds."""


def calibrate(requested: str, *, quick: bool = False, patient: bool = False) -> int:
    """Measure the device that ``requested`` names, and report each limit as soon as it is known.

    Events: ``calibration`` with the device, then one ``ceiling`` each, with ``value`` in By/s or
    FLOP/s, or ``None`` and a reason, and ``others``, the share of the processors' time that other
    programs took meanwhile; ``calibrated`` at the end. A failed measurement does not stop the
    others. Disturbed measurements are repeated until ``LONGEST``, and reported again if they
    improve; ``patient`` repeats all of them.

    Raises:
        Failure: the device cannot be used.
    """
    begin = time.perf_counter()
    device = choose(requested, "float32")
    bench = Bench(device, QUICK if quick else GPU if device.type == "cuda" else CPU)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    emit("calibration", **describe(device), versions=versions(), threads=torch.get_num_threads())
    torch.manual_seed(0)
    figures: dict[str, Figure] = {}
    for name in ("bandwidth", *(_DATA_TYPES if device.type == "cuda" else _ON_CPU)):
        figures[name] = _figure(bench, name)
        _emit_figure(name, figures[name])
    if not quick:
        insist(bench, figures, begin + LONGEST, patient=patient)
    emit("calibrated", seconds=time.perf_counter() - begin)
    return 0


def insist(bench: Bench, figures: dict[str, Figure], until: float, *, patient: bool) -> None:
    """Repeat disturbed measurements in turn until they are undisturbed or time is up."""
    turns = [name for name, figure in figures.items() if figure.value is not None]
    while turns:
        name = turns.pop(0)
        figure = figures[name]
        late = time.perf_counter() + figure.took > until
        if late or not (patient or _disturbed(figure)):
            continue
        anew = _figure(bench, name)
        if anew.value is None:
            continue
        figures[name] = better(figure, anew)
        if (figures[name].value, figures[name].others) != (figure.value, figure.others):
            _emit_figure(name, figures[name])
        turns.append(name)


def better(one: Figure, other: Figure) -> Figure:
    """The higher of two measurements; undisturbed if either one was.

    A disturbed measurement's rate was really reached, and the other one shows that there is no
    more.
    """
    higher, lower = sorted((one, other), key=lambda figure: figure.value or 0.0, reverse=True)
    quiet = not _disturbed(lower) and _disturbed(higher)
    return replace(higher, others=lower.others if quiet else higher.others, took=other.took)


def _disturbed(figure: Figure) -> bool:
    return figure.others is not None and figure.others > BUSY


def _figure(bench: Bench, name: str) -> Figure:
    begin, load = time.perf_counter(), OtherLoad()
    value = spread = how = None
    reason = None if name == "bandwidth" else _missing(bench.device, name)
    if reason is None:
        try:
            value, spread, how = _copy(bench) if name == "bandwidth" else _product(bench, name)
        except Exception as error:
            reason = translate(error, None).message
    others = load.share() if bench.device.type == "cpu" else None
    if bench.device.type == "cuda":
        torch.cuda.empty_cache()
    return Figure(value, spread, how, reason, others, time.perf_counter() - begin)


def _emit_figure(name: str, figure: Figure) -> None:
    unit = "By/s" if name == "bandwidth" else "FLOP/s"
    fields = asdict(figure)
    del fields["took"]
    emit("ceiling", name=name, unit=unit, **fields)


def _copy(bench: Bench) -> tuple[float, float, str]:
    """Bytes per second of a copy, its spread, and the method."""
    size = _copy_bytes(bench.device)
    count = size // 4
    both = torch.ones(2 * count + APART // 4, dtype=torch.float32, device=bench.device)
    source, target = both[:count], both[-count:]
    measured = bench.best(lambda: target.copy_(source))
    how = f"copy of {size >> 20} MiB, bytes read plus written, {_sets(bench, measured)}"
    if bench.device.type == "cpu":
        how += f", {threads()}"
    return 2 * size / measured.seconds, measured.spread, how


def _copy_bytes(device: torch.device) -> int:
    """Bytes of one array: far beyond the caches, but at most an eighth of the free memory."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return min(COPY_BYTES, free // 8 // 4096 * 4096)
    size = max(CPU_COPY_BYTES, CACHES * largest_cache())
    return min(size, free_memory() // 8) // 4096 * 4096


def _product(bench: Bench, name: str) -> tuple[float, float, str]:
    """FLOP per second of square products, their spread, and the method.

    The better rate of two sizes, the largest one that is quick enough and half of it: large
    matrices fill a GPU, smaller ones fit a CPU's caches.
    """
    with _precision(name):
        largest = _product_size(bench, name)
        results = {
            size: bench.best(_multiplying(bench, size, name))
            for size in PRODUCTS
            if largest // 2 <= size <= largest
        }
    size = max(results, key=lambda side: side**3 / results[side].seconds)
    how = f"{size} x {size} x {size} product, {_sets(bench, results[size])}"
    if bench.device.type == "cpu":
        how += f", {threads()}, {arithmetic(name)}"
    return 2 * size**3 / results[size].seconds, results[size].spread, how


def _multiplying(bench: Bench, size: int, name: str) -> Callable[[], object]:
    """A product of two matrices of normally distributed numbers."""
    a, b = (torch.randn(size, size, device=bench.device).to(_DATA_TYPES[name]) for _ in range(2))
    out = torch.empty_like(a)
    return lambda: torch.mm(a, b, out=out)


def _product_size(bench: Bench, name: str) -> int:
    """The largest size whose product is quick enough and fits; larger sizes reach higher rates."""
    chosen = PRODUCTS[0]
    free = torch.cuda.mem_get_info(bench.device)[0] if bench.device.type == "cuda" else None
    itemsize = torch.empty((), dtype=_DATA_TYPES[name]).element_size()
    for size in PRODUCTS:
        if free is not None and 3 * size * size * itemsize > free // 4:
            break
        chosen = size
        # The next size is eight times the work: continue only if that is quick enough too.
        multiply = _multiplying(bench, size, name)
        if min(bench.time(multiply, 1) for _ in range(3)) * 8 > bench.pace.product_seconds:
            break
    return chosen


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
    """Compute float32 products in TF32 for ``tf32``, and never otherwise."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _missing(device: torch.device, name: str) -> str | None:
    """Why a GPU lacks this arithmetic: a rate emulated by torch would not be its limit."""
    if device.type != "cuda" or name not in ("tf32", "bfloat16"):
        return None
    major, minor = torch.cuda.get_device_capability(device)
    if major >= 8:
        return None
    return f"compute capability {major}.{minor} has no {name} arithmetic"


def _sets(bench: Bench, measured: Measured) -> str:
    return f"best median of {measured.sets} x {bench.pace.samples} samples"
