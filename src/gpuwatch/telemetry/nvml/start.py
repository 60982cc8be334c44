"""Starting NVML: the GPUs present, or why it cannot be used.

The CUDA toolkit has a library of NVML's name to link against, in folders named ``stubs``. It
answers nothing, and prints a warning to standard output. The loader finds it before the driver's if
such a folder stands on ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from gpuwatch.telemetry.nvml.errors import (
    FUNCTION_NOT_FOUND,
    NO_BINDING,
    UNREADABLE,
    Unavailable,
    describe,
)
from gpuwatch.telemetry.nvml.fields import Fact, facts
from gpuwatch.telemetry.nvml.selection import NvmlDevice, present, select

NAME = "libnvidia-ml.so.1"
_FOLDER = "stubs"
_LDCONFIG = "/sbin/ldconfig"


def pass_over_stub(variables: Mapping[str, str] = os.environ) -> str | Unavailable | None:
    """Load the driver's library if CUDA's stub would be found first.

    A library that is loaded already is what the binding gets by its name. Returns what to tell of
    it; ``Unavailable`` if there is only the stub; ``None`` if no stub is in the way.
    """
    folders = filter(None, variables.get("LD_LIBRARY_PATH", "").split(":"))
    found = [path for folder in folders if (path := Path(folder, NAME)).exists()]
    if not found or not _is_stub(found[0]):
        return None
    for path in (*found[1:], *_known_to_the_system()):
        if not _is_stub(path):
            with suppress(OSError):  # of another architecture
                ctypes.CDLL(str(path))
                return f"{found[0]} on LD_LIBRARY_PATH is CUDA's stub; {path} is used instead"
    return Unavailable(
        f"{found[0]}, which is found first, is CUDA's stub and not the driver's library, and no "
        f"other {NAME} was found",
        f"take {found[0].parent} out of LD_LIBRARY_PATH, and install the NVIDIA driver",
    )


def _is_stub(path: Path) -> bool:
    return _FOLDER in path.parent.parts or _FOLDER in path.resolve().parent.parts


def _known_to_the_system() -> list[Path]:
    """The places at which the loader's cache has the library."""
    try:
        listed = subprocess.run([_LDCONFIG, "-p"], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return [Path(place) for place in re.findall(rf"{re.escape(NAME)} .*=> (\S+)", listed.stdout)]


class Binding:
    """``pynvml``, whose functions raise ``NVMLError`` and nothing else.

    One that the installed binding lacks fails like one missing in the driver. An answer that the
    binding cannot turn into Python's types (a name that is no text, a list of billions) is
    ``UNREADABLE``.
    """

    def __init__(self, module: Any, notice: str | None = None) -> None:
        self.notice = notice
        """What to tell of the library that is loaded, if anything."""
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if not name.startswith("nvml") or not (found is None or callable(found)):
            return getattr(self._module, name)
        guarded = self._guarded(found)
        setattr(self, name, guarded)
        return guarded

    def _guarded(self, function: Callable[..., Any] | None) -> Callable[..., Any]:
        error_type = self._module.NVMLError

        def guarded(*arguments: Any) -> Any:
            if function is None:
                raise error_type(FUNCTION_NOT_FOUND)
            try:
                return function(*arguments)
            except error_type:
                raise
            except Exception as error:
                raise error_type(UNREADABLE) from error

        return guarded


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


def asked(
    gpus: Sequence[str | int] | None,
    patience_s: float,
    ask: Callable[[Any, list[NvmlDevice]], _Result],
) -> _Result | Unavailable:
    """What ``ask`` finds with the binding and the GPUs of :func:`begin`; all of it, the start
    included, within ``patience_s`` seconds."""
    late = time.monotonic() + patience_s
    begun = begin(gpus, patience_s)
    if isinstance(begun, Unavailable):
        return begun
    nvml, chosen = begun

    def ask_and_end() -> _Result:
        try:
            return ask(nvml, chosen)
        finally:
            with suppress(nvml.NVMLError):
                nvml.nvmlShutdown()

    try:
        return within(late - time.monotonic(), ask_and_end)
    except TimeoutError:
        return silent(patience_s)
    except nvml.NVMLError as error:
        return describe(error.value)


def gpu_facts(gpus: Sequence[str], patience_s: float) -> tuple[dict[str, Fact], ...]:
    """The facts of these GPUs; empty where NVML cannot be used or takes over ``patience_s`` s."""
    found = asked(gpus, patience_s, lambda nvml, of: tuple(facts(nvml, e.handle) for e in of))
    return () if isinstance(found, Unavailable) else found


def gpu_uuids(
    gpus: Sequence[str | int] | None = None, patience_s: float = ANSWER_S
) -> tuple[str, ...] | Unavailable:
    """UUIDs of the GPUs that :func:`begin` would choose; nothing else is read."""
    return asked(gpus, patience_s, lambda _, of: tuple(e.uuid for e in of if e.uuid is not None))


def within(seconds: float, function: Callable[[], _Result]) -> _Result:
    """Call on another thread. Raises ``TimeoutError`` after ``seconds``, or the call's error."""
    try:
        return on_thread("gpuwatch-nvml-call", function).result(seconds)
    except futures.TimeoutError:  # before Python 3.11 one of its own
        raise TimeoutError from None


def on_thread(name: str, function: Callable[[], _Result]) -> futures.Future[_Result]:
    """Call on a thread of its own, which no end of the process waits for: a driver may hang."""
    called: futures.Future[_Result] = futures.Future()

    def run() -> None:
        try:
            called.set_result(function())
        except BaseException as error:
            called.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return called
