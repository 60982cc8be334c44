"""torchtitan: ``step: 10  loss:  8.1234  grad_norm:  1.2345  memory: 12.34GiB(15.00%)  tps: ...``.

A logging prefix stands before it, torchrun's before that, and colours between the figures. ``tps``,
``tflops`` and ``mfu`` are means since the line before that leave out what is done between two
lines, and `tps` is per device: none is a step's time.
"""

from __future__ import annotations

import re

from gpuwatch.recorder.progress.base import Progress, ProgressLines

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_LINE = re.compile(
    r"(?<!validate )\bstep: {1,12}(\d{1,12}) +loss: +(\S{1,40}) .{0,200}\bmemory: .{0,200}\btps: "
)


def read(line: str) -> Progress | None:
    """The step's number and its loss, the mean over all ranks."""
    if "step: " not in line:
        return None
    match = _LINE.search(_COLOUR.sub("", line))
    if match is None:
        return None
    try:
        return Progress(step=int(match[1]), loss=float(match[2]))
    except ValueError:
        return None


FORMAT = ProgressLines(
    program="torchtitan",
    figures="each tells the loss of its last step, and no step's time",
    read=read,
)
