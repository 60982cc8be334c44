"""What a place says of a study before anything is sent there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.cli.place.sending import check, connected, warnings
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.text import clean
from gpuwatch.places import capsule
from gpuwatch.session.study.plan import Part


def outlook(on: str, parts: Sequence[Part], *, whole: bool = False) -> list[str]:
    """What is in the way at the place ``on``, or when a job would start; then what to expect of
    these parts of a study there, with ``whole`` also what would be submitted.

    Raises:
        UsageError: the place is misspelt.
    """
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as temporary:
        archive = Path(temporary) / "gpuwatch.pyz"
        try:
            place = connected(on, archive)
            capsule.build(archive)
            check(place)
            starts = place.expected_start()
            shown = place.preview(parts)
        except NotAvailable as error:
            return [clean(f"{on}: {error}", 1000)]
    lines = [_start(on, starts), *(f"{on}: {each}" for each in warnings(place, parts, shown))]
    return lines + (shown.objects or "").splitlines() if whole else lines


def _start(on: str, starts: float | None) -> str:
    if starts is None:
        return f"{on} is reached"
    wait = max(0.0, starts - time.time())
    at = time.strftime("%H:%M" if wait < 86400 else "%Y-%m-%d %H:%M", time.localtime(starts))
    return f"{on} would start it at {at}, by what runs there now"
