"""transformers' Trainer: ``{'loss': 2.31, 'learning_rate': 5e-05, 'epoch': 1.0}``.

Newer versions print the numbers as text, ``{'loss': '2.31', ...}``. A line has no step's number.
Lines of an evaluation have ``eval_loss``, the last one of a training ``train_loss``.
"""

from __future__ import annotations

import re

from gpuwatch.recorder.progress.base import Progress, ProgressLines

_LINE = re.compile(r"\{'loss': '?([^\s',]{1,40})'?, .{0,2000}'epoch': '?[^\s',]{1,40}'?\}")


def read(line: str) -> Progress | None:
    """The loss."""
    match = _LINE.search(line) if "{'loss': " in line else None
    if match is None:
        return None
    try:
        return Progress(loss=float(match[1]))
    except ValueError:
        return None


FORMAT = ProgressLines(
    program="transformers' Trainer",
    figures="each tells the mean loss of the steps since the line before, and no step",
    read=read,
)
