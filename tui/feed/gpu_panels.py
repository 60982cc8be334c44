"""What the grid of all GPUs shows of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuwatch.tui.feed.gauges import Sources, bandwidth_of, history_of
from gpuwatch.tui.feed.hardware.device_facts import number_of
from gpuwatch.tui.feed.snapshot import Alert, DeviceNow, Panel
from gpuwatch.tui.feed.warnings.alerts import told_of
from gpuwatch.tui.widgets.graph import Window


def panels_of(
    sources: Sources,
    devices: Sequence[DeviceNow],
    peak_bandwidth: Callable[[str], float | None],
    shown: Window,
    alerts: Sequence[Alert],
) -> tuple[Panel, ...]:
    """Of every GPU its utilization over ``shown``, its bandwidth, and its gravest warning.

    ``peak_bandwidth``: by GPU what its memory cannot exceed in By/s.
    """
    found = []
    for device in devices:
        if device.row.kind == "gpu":
            of_it = replace(sources, device=device, peak_bandwidth=peak_bandwidth(device.row.id))
            history = history_of(of_it, "hw.gpu.utilization", shown)
            found.append(Panel(device, history, bandwidth_of(of_it), _wrong(device, alerts)))
    return tuple(found)


def _wrong(device: DeviceNow, alerts: Sequence[Alert]) -> str:
    """The first warning of the GPU, without its name."""
    found = (told_of(alert.text, number_of(device)) for alert in alerts)
    return next((text for text in found if text), "")
