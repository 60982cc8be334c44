"""What the grid of all GPUs shows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.tui.alerts import told_of
from gpuwatch.tui.device_rows import number_of
from gpuwatch.tui.graph import Window
from gpuwatch.tui.series import Series
from gpuwatch.tui.snapshot import DeviceNow, Panel


def panels_of(
    devices: Sequence[DeviceNow],
    series: Mapping[tuple[str, str], Series],
    shown: Window,
    interval: float,
    warnings: Sequence[str],
) -> tuple[Panel, ...]:
    """Of every GPU its utilization over ``shown``, and its gravest warning."""
    found = []
    for device in devices:
        if device.row.kind == "gpu":
            known = series.get((device.row.id, "hw.gpu.utilization"))
            history = [None] * shown.columns if known is None else known.columns(shown, interval)
            found.append(Panel(device, tuple(history), _wrong(device, warnings)))
    return tuple(found)


def _wrong(device: DeviceNow, warnings: Sequence[str]) -> str:
    """The first warning of the GPU, without its name."""
    found = (told_of(text, number_of(device)) for text in warnings)
    return next((text for text in found if text), "")
