"""pytorch/examples' ImageNet script, and the many that were made from it.

``Epoch: [0][ 11/5005]  Time  0.123 ( 0.140)  Data  0.010 ( 0.020)  Loss 6.9e+00 (7.0e+00) ...``,
with tabs. Before the parentheses is the last step's own figure, in them the epoch's mean. The
script reads the clock after it has fetched the loss, so the time includes the GPU's work. Older
versions count the steps of an epoch from 0 and print ``Prec@1``.
"""

from __future__ import annotations

import re

from gpuwatch.recorder.progress.base import Progress, ProgressLines

_STEP = re.compile(r"Epoch: \[(\d{1,9})\]\[ *(\d{1,9})/(\d{1,9})\]\s")
_METER = re.compile(r"\s(Time|Data|Loss|(?:Acc|Prec)@[15])\s+(\S{1,40}) *\( *\S{1,40}\)")


def read(line: str) -> Progress | None:
    """The last step's own figures; `None` unless time and loss are among them."""
    start = line.find("Epoch: [")
    place = _STEP.match(line, start) if start >= 0 else None
    if place is None:
        return None
    epoch, number, steps = map(int, place.groups())
    try:
        told = {name: float(text) for name, text in _METER.findall(line, place.end() - 1)}
    except ValueError:
        return None
    if "Time" not in told or "Loss" not in told:
        return None
    seconds, data = told["Time"], told.get("Data")
    parts = {} if data is None or data > seconds else {"data": data, "other": seconds - data}
    return Progress(
        step=epoch * steps + number,
        seconds=seconds or None,  # 0.000 is less than half a millisecond
        loss=told["Loss"],
        acc1=_fraction(told.get("Acc@1", told.get("Prec@1"))),
        acc5=_fraction(told.get("Acc@5", told.get("Prec@5"))),
        phases=parts,
    )


def _fraction(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


FORMAT = ProgressLines(
    program="pytorch/examples' ImageNet script",
    figures="each tells the time (in whole milliseconds), loss and accuracy of one step, and "
    "nothing of the steps between",
    read=read,
)
