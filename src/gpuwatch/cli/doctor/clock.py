"""How the clock of another host differs, from the time that ``doctor`` prints there first."""

from __future__ import annotations

import time

_WORD = "gpuwatch-clock"


def tell() -> None:
    """Print the time here."""
    print(f"{_WORD} {time.time()!r}", flush=True)


def compared(line: str, asked: float) -> str:
    """How the clock there differs, as a sentence. ``line`` is what :func:`tell` printed there,
    between ``asked``, in Unix seconds here, and now."""
    word, _, told = line.partition(" ")
    now = time.time()
    try:
        there = float(told)
    except ValueError:
        word = ""
    if word != _WORD:
        return "its clock is unknown"
    least, most = there - now, there - asked
    if least <= 0 <= most:
        return "its clock agrees with the one here"
    by = least if least > 0 else most
    return (
        f"its clock is at least {abs(by):.1f} s {'ahead of' if by > 0 else 'behind'} the one here"
    )
