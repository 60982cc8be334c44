"""What GPM wants of the GPU whose it is, and what a person can do where it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gpuwatch.telemetry.base import Event
from gpuwatch.telemetry.nvml.errors import NO_PERMISSION, describe


class Owner(Protocol):
    """The GPU whose GPM this is."""

    id: str
    handle: Any

    def lose(self, code: int) -> None:
        """A call answered that the GPU is gone."""

    def tell_gpm(self, epoch: int, reasons: Mapping[str, str | None]) -> None:
        """Why GPM does not give these metrics, ``None`` for those that it gives; from then on."""

    def announce(self, event: Event) -> None:
        """Something happened that the session shall say."""


def hint_of(code: int) -> str:
    """How to fix a GPM that failed during a run with this ``nvmlReturn_t``."""
    hint = (
        "record from outside containers, where it may be taken back, or ask the administrator"
        if code == NO_PERMISSION
        else describe(code).hint
    )
    return f"{hint} (it is tried again by itself)"
