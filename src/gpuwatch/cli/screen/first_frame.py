"""The first frame: real data, drawn before Textual is loaded.

Loading Textual takes most of the time to the first full screen. Until then this frame shows what
the kernel and the folders tell at once. It imports next to nothing, and is ASCII without colours.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from gpuwatch.cli.options.global_options import command_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SCREENS = ("attach", "replay")
_ELSEWHERE = {"-h", "--help", "--version", "--record", "--plain", "--"}
"""Arguments with which no screen is shown."""
_GPUS = "/proc/driver/nvidia/gpus"
_GIB = 2**20
"""1 GiB in KiB, the unit of /proc/meminfo."""

_up = False


def fits(arguments: Sequence[str]) -> bool:
    """Whether these arguments ask for a screen, and the terminal can show one."""
    named = arguments[command_at(arguments) :]
    if named and named[0] not in _SCREENS:
        return False
    if _ELSEWHERE.intersection(arguments) or os.environ.get("TEXTUAL_DRIVER"):
        return False
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return False
    return os.isatty(0) and os.isatty(1)


def show() -> None:
    """Draw the frame on the terminal's alternate screen."""
    global _up
    try:
        width, height = os.get_terminal_size(1)
        rows = list(_rows())[:height]
        text = "\r\n".join(row[: max(0, width - 1)] for row in rows)
        brand = text.replace("gpuwatch", "\x1b[1mgpuwatch\x1b[22m", 1)
        _up = True
        os.write(1, f"\x1b[?1049h\x1b[?25l\x1b[2J\x1b[H{brand}".encode("ascii", "replace"))
        _restore_on_signal()
    except OSError:
        _up = False


def is_up() -> bool:
    """Whether the frame is on the terminal and the app has not taken it over yet."""
    return _up


def withdraw() -> None:
    """Restore the terminal if the frame is still up."""
    global _up
    if _up:
        _up = False
        try:
            os.write(1, b"\x1b[?25h\x1b[?1049l")
        except OSError:
            return


@contextmanager
def handed_over() -> Iterator[None]:
    """Context in which the app owns the frame's screen and restores the terminal itself.

    A ``GpuwatchError``, or a signal that the app would have handled, means that the app never
    started: the frame then stays up, for :func:`withdraw`.
    """
    global _up
    from gpuwatch.core.errors import GpuwatchError

    try:
        yield
    except (GpuwatchError, SystemExit, KeyboardInterrupt):
        raise
    except BaseException:
        _up = False
        raise
    _up = False


def _restore_on_signal() -> None:
    """Turn SIGHUP and SIGTERM into ``SystemExit`` until the app has its own handlers.

    The exit passes through :func:`withdraw`.
    """
    import signal

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)


def _rows() -> Iterator[str]:
    uname = os.uname()
    yield f" gpuwatch  {uname.nodename}  {time.strftime('%H:%M:%S')}"
    yield ""
    yield f" {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}{_memory()}"
    gpus = _gpus()
    if gpus:
        yield f" {gpus}"
    yield f" {_studies()}"
    yield ""
    yield " loading the screen ..."


def _memory() -> str:
    known = {}
    try:
        with open("/proc/meminfo", "rb") as file:
            for _ in range(3):
                name, number, *_ = file.readline().split()
                known[name] = int(number)
        total, free = known[b"MemTotal:"], known[b"MemAvailable:"]
    except (OSError, LookupError, ValueError):
        return ""
    return f", memory {(total - free) / _GIB:.1f} of {total / _GIB:.1f} GiB in use"


def _gpus() -> str:
    """Number and models of the GPUs, from the NVIDIA kernel module; empty if it is not there."""
    models: dict[str, int] = {}
    try:
        for name in os.listdir(_GPUS):
            with open(f"{_GPUS}/{name}/information", errors="replace") as file:
                for line in file:
                    if line.startswith("Model:"):
                        model = line.partition(":")[2].strip()
                        models[model] = models.get(model, 0) + 1
    except OSError:
        return ""
    shown = ", ".join(f"{count} x {model}" for model, count in models.items())
    return "".join(each if " " <= each <= "~" else "?" for each in shown)


def _studies() -> str:
    home = os.environ.get("XDG_DATA_HOME", "")
    if not home.startswith("/"):
        home = os.path.join(os.environ.get("HOME", ""), ".local/share")
    try:
        count = len(os.listdir(os.path.join(home, "gpuwatch", "studies")))
    except OSError:
        count = 0
    return f"{count} saved stud{'y' if count == 1 else 'ies'}" if count else "nothing saved so far"
