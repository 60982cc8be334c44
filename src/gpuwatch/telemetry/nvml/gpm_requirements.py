"""GPM requirements of one GPU, and hints for failures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gpuwatch.telemetry.base import Event
from gpuwatch.telemetry.nvml.errors import NO_PERMISSION, describe


class Owner(Protocol):
    """The GPU that owns the GPM."""

    id: str
    handle: Any

    def lose(self, code: int) -> None:
        """Handle a call that reported the GPU as gone."""

    def set_gpm_reasons(self, epoch: int, reasons: Mapping[str, str | None]) -> None:
        """Why GPM has no values for these metrics from now on, ``None`` for those that it has."""

    def announce(self, event: Event) -> None:
        """Record an event in the session."""


def hint_of(code: int) -> str:
    """How to fix GPM when it fails during a run with this ``nvmlReturn_t``."""
    hint = (
        "record from outside containers, where it may be taken back, or ask the administrator"
        if code == NO_PERMISSION
        else describe(code).hint
    )
    return f"{hint} (it is tried again by itself)"
