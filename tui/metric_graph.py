"""The graph whose metric can be picked: what there is to pick, and the one that was."""

from __future__ import annotations

from gpuwatch.tui.gauges import Scales, Sources
from gpuwatch.tui.graph import Window
from gpuwatch.tui.snapshot import Gauge


def metrics_of(sources: Sources) -> tuple[str, ...]:
    """Keys of every metric that the session has for the selected device, the host and the steps."""
    raise NotImplementedError


def picked_of(key: str, sources: Sources, shown: Window, scales: Scales) -> Gauge:
    """The metric ``key`` over the stretch ``shown``, or the reason why there is none."""
    raise NotImplementedError
