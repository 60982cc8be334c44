"""Progress lines of programs that print no step lines.

Other packages add theirs by an entry point of the group ``gpuwatch.progress_lines`` that names a
:class:`ProgressLines`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace

from gpuwatch.core.lazy_dataclass import dataclass

GROUP = "gpuwatch.progress_lines"


@dataclass(frozen=True)
class Progress:
    """The figures of one line; ``None`` is not told."""

    step: int | None = None
    """Number of the step that the line is about; it rises over the epochs. Without it, the line's
    figures count only where the hook tells the steps."""
    seconds: float | None = None
    """Duration of this one step, iteration to iteration. Never a mean of several."""
    loss: float | None = None
    """Training loss of this one step, or what ``figures`` says."""
    acc1: float | None = None
    """Fraction of correct top-1 predictions of this one step, 0 to 1."""
    acc5: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds of this one step by phase; they add up to ``seconds``."""
    before: int = 0
    """Steps of ``step`` that are of earlier epochs. Those of the first line are left out, and of a
    line with fewer: a program counts epochs from 0 or 1, or goes on with a later one."""


@dataclass(frozen=True)
class ProgressLines:
    """A program's progress lines."""

    program: str
    """The program, as a reader knows it; empty: any."""
    figures: str
    """What a line tells, and how exactly: ``the time (in whole ms) and the loss of one step``."""
    read: Callable[[str], Progress | None]
    """The figures of a line; ``None`` for any other text. It is called for each line of a log."""
    untimed: str = ""
    """Why no line tells a step's time; empty: they do."""


_STEP = re.compile(r"Epoch: \[(\d{1,9})\]\[ *(\d{1,9})/(\d{1,9})\]\s")
_METER = re.compile(r"\s(Time|Data|Loss|(?:Acc|Prec)@[15])\s+(\S{1,40}) *\( *\S{1,40}\)")


def imagenet(line: str) -> Progress | None:
    """pytorch/examples' ImageNet script, and the many that were made from it.

    ``Epoch: [0][ 11/5005]  Time  0.123 ( 0.140)  Data  0.010 ( 0.020)  Loss 6.9e+00 (7.0e+00)``
    ..., with tabs. Before the parentheses is the last step's own figure, in them the epoch's mean.
    The script reads the clock after it has fetched the loss, so the time includes the GPU's work.
    Older versions count the steps of an epoch from 0 and print ``Prec@1``. ``None`` unless time and
    loss are told.
    """
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
    correct = {f"acc{name[-1]}": value / 100 for name, value in told.items() if "@" in name}
    return Progress(
        step=epoch * steps + number,
        seconds=seconds or None,  # 0.000 is less than half a millisecond
        loss=told["Loss"],
        phases=parts,
        before=epoch * steps,
        **correct,
    )


_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_TITAN = re.compile(
    r"(?<!validate )\bstep: {1,12}(\d{1,12}) +loss: +(\S{1,40}) .{0,200}\bmemory: .{0,200}\btps: "
)


def torchtitan(line: str) -> Progress | None:
    """``step: 10  loss:  8.1234  grad_norm:  1.2345  memory: 12.34GiB(15.00%)  tps: ...``.

    A logging prefix stands before it, torchrun's before that, and colours between the figures; the
    loss is the mean over all ranks. ``tps``, ``tflops`` and ``mfu`` are means since the line before
    that leave out what is done between two lines, and ``tps`` is per device: none is a step's time.
    """
    return _told(_TITAN.search(_COLOUR.sub("", line))) if "step: " in line else None


_NANOGPT = re.compile(r"\biter (\d{1,12}): loss ([^\s,]{1,40}), time \S{1,40}ms")


def nanogpt(line: str) -> Progress | None:
    """``iter 10: loss 3.2154, time 128.45ms, mfu 12.34%``; steps are counted from 0.

    The script reads the clock before it waits for the loss, so on a GPU the time is that of queuing
    work, and the line of an evaluation has its time in it: it is no step's time.
    """
    return _told(_NANOGPT.search(line)) if "iter " in line else None


_TRAINER = re.compile(r"\{'loss': ()'?([^\s',]{1,40})'?, .{0,2000}'epoch': '?[^\s',]{1,40}'?\}")


def transformers(line: str) -> Progress | None:
    """``{'loss': 2.31, 'learning_rate': 5e-05, 'epoch': 1.0}``, of transformers' Trainer.

    Newer versions print the numbers as text, ``{'loss': '2.31', ...}``. A line has no step's
    number.
    Lines of an evaluation have ``eval_loss``, the last one of a training ``train_loss``.
    """
    return _told(_TRAINER.search(line)) if "{'loss': " in line else None


_PLACE = re.compile(
    r"\b(?:(?:global_)?step|iter|iteration|it|batch|epoch)\W{0,3} {0,8}\d|\b\d{1,9}/\d{1,9}\b"
    r"|\[(?:\d{1,9},)? {0,9}\d{1,9}\] loss",
    re.IGNORECASE,
)
_LOSS = re.compile(
    r"(?<![\w-])(?:(?:train(?:ing)?|total)[ _/]|([a-z]\w*) )?loss['\"]?\s{0,3}[:=]?\s{0,3}"
    r"(?:tensor\()?([-+]?(?:\d{1,30}(?:\.\d{0,30})?(?:e[-+]?\d{1,4})?|nan|inf))(?!\w|\.\d)",
    re.IGNORECASE,
)
_OTHER_STEP = re.compile(r"\b(?:best|lowest|load|resum|restor|checkpoint|accum)", re.IGNORECASE)
_OTHER_DATA = re.compile(r"(?<![a-z])(?:valid|eval|test|(?:val|dev)(?![a-z]))", re.IGNORECASE)


def plain(line: str) -> Progress | None:
    """``step 10/500 loss 0.37``, ``Epoch 1 | loss: 0.5``, ``12/100 [..., loss=0.53]``: the loss of
    a line that has a place, too, and no word of validation or test; of an epoch's the training loss
    that is named before such a word, or before ``val_loss``. Of no line that speaks of another step
    before: the best one, or that of a checkpoint. Of ``D loss 0.25 G loss 3.1`` neither: a word
    before ``loss`` is its name, and the one without counts, or the only name.

    No step's number: which of the numbers it is, and whether it rises over epochs, is not known.
    """
    if "oss" not in line or not _PLACE.search(line):
        return None
    named = {each[1]: each for each in reversed([*_LOSS.finditer(line)])}
    loss = named.get(None) or (named.popitem()[1] if len(named) == 1 else None)
    if loss is None or _OTHER_STEP.search(line, 0, loss.start(2)):
        return None
    start, lower = loss.start(), line.lower()
    trained = "val_loss" in lower or ("epoch" in lower and lower.startswith("train", start))
    other = _OTHER_DATA.search(line, 0, start if trained else len(line))
    return None if other else Progress(loss=float(loss[2]))


_NUMBER = re.compile(
    r"(?<!per )(?<![\w/])(?:global[_ ])?(?:step|iter(?:ation)?)['\"]?\s{0,8}[:=#]?\s{0,3}"
    r"(\d{1,3}(?:[,_]\d{3}){1,3}|\d{1,12})(?![.,_]?\d|[a-z]|\s?[mnµu]?s(?:ec)?\b)",
    re.IGNORECASE,
)


def numbered(line: str) -> Progress | None:
    """Of the lines of :func:`plain` those with ``step 10`` or ``iter 10`` and no word of an epoch,
    after which a program may count anew."""
    told = plain(line)
    number = _NUMBER.search(line) if told and "epoch" not in line.lower() else None
    return replace(told, step=int(number[1].replace(",", ""))) if told and number else None


def _told(match: re.Match[str] | None) -> Progress | None:
    """The step, if there is one, and the loss, the two groups of ``match``."""
    if match is None:
        return None
    try:
        return Progress(step=int(match[1]) if match[1] else None, loss=float(match[2]))
    except ValueError:
        return None


OWN = {
    "pytorch-imagenet": ProgressLines(
        program="pytorch/examples' ImageNet script",
        figures="each tells the time (in whole milliseconds), loss and accuracy of one step, and "
        "nothing of the steps between",
        read=imagenet,
    ),
    "torchtitan": ProgressLines(
        program="torchtitan",
        figures="each tells the loss of its last step, and no step's time",
        read=torchtitan,
        untimed="the lines tell no step's time: torchtitan's rates are means of several, without "
        "what is between two lines",
    ),
    "nanogpt": ProgressLines(
        program="nanoGPT",
        figures="each tells the loss of its last step (of its last batch where gradients are "
        "accumulated), and no step's time",
        read=nanogpt,
        untimed="the lines' own time is not trusted: nanoGPT's is taken before the GPU is done",
    ),
    "transformers": ProgressLines(
        program="transformers' Trainer",
        figures="each tells the mean loss of the steps since the line before, and no step",
        read=transformers,
    ),
    "plain": ProgressLines(
        program="", figures="with `loss` and a number, of a step or a mean", read=plain
    ),
    "numbered": ProgressLines(  # behind "plain", which reads all that it reads
        program="",
        figures="with a step's number and `loss`, of that step or a mean",
        read=numbered,
        untimed="the lines tell no step's time",
    ),
}
"""Built-in formats by name. Other packages cannot replace them."""


def formats() -> Iterator[tuple[str, ProgressLines]]:
    """Every format by name, those of any program last. A package that cannot be loaded is left out.

    It reads the metadata of all packages: some tens of milliseconds.
    """
    from importlib.metadata import entry_points

    yield from ((name, each) for name, each in OWN.items() if each.program)
    for entry in entry_points(group=GROUP):
        if entry.name not in OWN:
            with suppress(Exception, SystemExit):
                yield entry.name, entry.load()
    yield from ((name, each) for name, each in OWN.items() if not each.program)
