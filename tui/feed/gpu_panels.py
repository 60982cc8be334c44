"""The panels of the grid of all GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuwatch.tui.feed.gauges import Sources, bandwidth_of, history_of
from gpuwatch.tui.feed.hardware.device_facts import number_of
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Panel
from gpuwatch.tui.feed.warnings.alerts import gpu_text
from gpuwatch.tui.widgets.graph import Window


def panels_of(
    sources: Sources,
    devices: Sequence[DeviceNow],
    peak_bandwidth: Callable[[str], float | None],
    window: Window,
    alerts: Sequence[Alert],
) -> tuple[Panel, ...]:
    """A panel for each GPU: its utilization over ``window``, bandwidth and most serious warning.

    ``peak_bandwidth``: by GPU id, in By/s.
    """
    panels = []
    for device in devices:
        if device.row.kind == "gpu":
            own_sources = replace(
                sources, device=device, peak_bandwidth=peak_bandwidth(device.row.id)
            )
            history = history_of(own_sources, "hw.gpu.utilization", window)
            panels.append(
                Panel(device, history, bandwidth_of(own_sources), _problem(device, alerts))
            )
    return tuple(panels)


def _problem(device: DeviceNow, alerts: Sequence[Alert]) -> str:
    """The first warning of the GPU, without its name."""
    texts = (gpu_text(alert.text, number_of(device)) for alert in alerts)
    return next((text for text in texts if text), "")
