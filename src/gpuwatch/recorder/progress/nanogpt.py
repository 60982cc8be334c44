"""nanoGPT: ``iter 10: loss 3.2154, time 128.45ms, mfu 12.34%``; steps are counted from 0.

The script reads the clock before it waits for the loss, so on a GPU the time is that of queuing
work, and the line of an evaluation has its time in it: it is no step's time.
"""

from __future__ import annotations

import re

from gpuwatch.recorder.progress.base import Progress, ProgressLines

_LINE = re.compile(r"\biter (\d{1,12}): loss ([^\s,]{1,40}), time \S{1,40}ms")


def read(line: str) -> Progress | None:
    """The step's number and its loss."""
    match = _LINE.search(line) if "iter " in line else None
    if match is None:
        return None
    try:
        return Progress(step=int(match[1]), loss=float(match[2]))
    except ValueError:
        return None


FORMAT = ProgressLines(
    program="nanoGPT",
    figures="each tells the loss of its last step (of its last batch where gradients are "
    "accumulated), and no step's time",
    read=read,
)
