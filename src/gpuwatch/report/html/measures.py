"""The metrics of a chart: which are known, their units and axis ranges."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.samples.gauges import SHOWN, RunSeries
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import label
from gpuwatch.core.models import number
from gpuwatch.report.html.axis import Axis, from_zero


@dataclass(frozen=True)
class Measure:
    name: str
    title: str
    divisor: float
    """A value in the metric's own unit divided by this is in ``unit``."""
    unit: str
    axis: Axis
    how: str
    """Method and source, for every way in which the runs obtained it."""

    def of(self, series: RunSeries) -> tuple[float | None, ...] | None:
        """A run's values in ``unit``, to four digits; ``None`` if it has no such metric, and for
        each value that is not finite in that unit."""
        if self.name not in series.metrics:
            return None
        values = series.metrics[self.name].values
        return tuple(None if v is None else number(short(v / self.divisor)) for v in values)


def measures(series: Sequence[RunSeries]) -> list[Measure]:
    """The metrics that at least one run has, most important first."""
    measures_ = []
    for name in SHOWN:
        gauges = [each.metrics[name] for each in series if name in each.metrics]
        if not gauges:
            continue
        unit = gauges[0].unit
        largest = max((abs(v) for each in gauges for v in each.values if v is not None), default=0)
        divisor, shown = _display(unit, largest)
        hows = dict.fromkeys(
            f"{each.method.value}, {each.source}"
            + (f", mean of {each.devices} devices" if each.devices > 1 else "")
            for each in gauges
        )
        axis = Axis(0.0, 100.0) if unit == "1" else from_zero(largest / divisor)
        measures_.append(Measure(name, label(name), divisor, shown, axis, "; ".join(hows)))
    return measures_


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


def _display(unit: str, largest: float) -> tuple[float, str]:
    """Divisor and display unit for values up to ``largest``: ``(1e12, "TFLOP/s")``."""
    if unit == "1":
        return 0.01, "%"
    if unit == "Cel":
        return 1.0, "°C"
    if unit == "By":
        for power, prefix in ((40, "T"), (30, "G"), (20, "M"), (10, "K")):
            if largest >= 2**power:
                return 2.0**power, f"{prefix}iB"
        return 1.0, "B"
    plain = {"{sample}/s": "samples/s"}.get(unit, units.plain_unit(unit))
    for power, prefix in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
        if largest >= 10**power:
            return 10.0**power, prefix + plain
    return 1.0, plain
