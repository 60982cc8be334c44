"""Starting NVML: the GPUs present, or why it cannot be used."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gpuwatch.telemetry.nvml.binding import Binding
from gpuwatch.telemetry.nvml.errors import NO_BINDING, Unavailable, describe
from gpuwatch.telemetry.nvml.fields import Fact, facts
from gpuwatch.telemetry.nvml.library import pass_over_stub
from gpuwatch.telemetry.nvml.selection import NvmlDevice, present, select

ANSWER_S = 30.0
"""How long to wait for the driver's first answer, in seconds."""
_Result = TypeVar("_Result")


def begin(
    gpus: Sequence[str | int] | None, patience_s: float = ANSWER_S
) -> tuple[Any, list[NvmlDevice]] | Unavailable:
    """Start NVML: the binding and the chosen GPUs, at least one; ``None`` chooses all.

    ``gpus`` are indexes, UUIDs, unique UUID prefixes, or full MIG UUIDs. Returns ``Unavailable`` if
    NVML cannot be used or does not answer within ``patience_s`` seconds. Raises ``ValueError``,
    listing what exists, for a selection that matches no GPU.
    """
    try:
        import pynvml
    except ImportError:
        return NO_BINDING
    passed_over = pass_over_stub()
    if isinstance(passed_over, Unavailable):
        return passed_over
    nvml = Binding(pynvml, passed_over)

    def start() -> list[NvmlDevice]:
        nvml.nvmlInit()
        try:
            return select(nvml, present(nvml), gpus)
        except (ValueError, nvml.NVMLError):
            nvml.nvmlShutdown()
            raise

    try:
        chosen = within(patience_s, start)
    except TimeoutError:
        return silent(patience_s)
    except nvml.NVMLError as error:
        return describe(error.value)
    if not chosen:
        return Unavailable("NVML sees no GPU", "run nvidia-smi -L to see which GPUs exist")
    return nvml, chosen


def silent(patience_s: float) -> Unavailable:
    """NVML's failure to answer within ``patience_s`` seconds."""
    return Unavailable(
        f"NVML did not answer within {patience_s:g} s",
        "see whether nvidia-smi answers, and look for Xid errors in the kernel log",
    )


def gpu_facts(gpus: Sequence[str], patience_s: float) -> tuple[dict[str, Fact], ...]:
    """The facts of these GPUs; empty where NVML cannot be used or takes over ``patience_s`` s."""
    late = time.monotonic() + patience_s
    begun = begin(gpus, patience_s)
    if isinstance(begun, Unavailable):
        return ()
    nvml, chosen = begun

    def ask() -> tuple[dict[str, Fact], ...]:
        try:
            return tuple(facts(nvml, one.handle) for one in chosen)
        finally:
            nvml.nvmlShutdown()

    try:
        return within(late - time.monotonic(), ask)
    except (TimeoutError, nvml.NVMLError):
        return ()


def gpu_uuids(
    gpus: Sequence[str | int] | None = None, patience_s: float = ANSWER_S
) -> tuple[str, ...] | Unavailable:
    """UUIDs of the GPUs that :func:`begin` would choose; nothing else is read."""
    begun = begin(gpus, patience_s)
    if isinstance(begun, Unavailable):
        return begun
    nvml, chosen = begun
    with suppress(TimeoutError, nvml.NVMLError):
        within(1.0, nvml.nvmlShutdown)
    return tuple(one.uuid for one in chosen if one.uuid is not None)


def within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Call on another thread. Raises ``TimeoutError`` after ``seconds``, or the call's error."""
    results: list[_Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="gpuwatch-nvml-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError
    return results[0]
