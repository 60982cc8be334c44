"""What a batch is made of: samples, tokens, and the sizes that make two steps alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

_MOST_TENSORS = 8
_DEEPEST = 4
_MOST_WAITING = 256


Sizes = tuple[tuple[int, ...], ...]
"""Of tensors, without the number of samples."""


class Kind(NamedTuple):
    """What tells two steps apart, while the same parameters are trained."""

    sizes: Sizes
    """Of all batches."""
    calls: int
    """Of models, of which gradients were taken."""
    passes: int
    """Backward passes; of a call of ``generate`` the length of its prompts."""


class Batch(NamedTuple):
    """``samples``: the first dimension of the first tensor, or as many as were drawn. ``tokens``:
    the size of ``input_ids``. ``sizes``: those of the tensors, without the number of samples."""

    samples: int | None
    tokens: int | None
    sizes: Sizes
    alike: bool = True
    """Whether all tensors have the same first dimension."""


class Described:
    """What a batch is made of, of which most are like the one before: lists of tensors of the same
    shapes."""

    def __init__(self) -> None:
        self._shapes: list[Any] | None = None
        self._found = Batch(None, None, ())

    def __call__(self, batch: Any, tensor: type[Any]) -> Batch:
        """As :func:`describe`."""
        shapes = []
        members: Iterable[Any] = batch if type(batch) in (list, tuple) else (None,)
        for each in members:
            if type(each) is not tensor or each.is_nested:
                self._shapes = None
                return describe(batch, tensor)
            shapes.append(each.shape)
        if shapes != self._shapes:
            self._shapes, self._found = shapes, describe(batch, tensor)
        return self._found


class _Waiting:
    """Batches that an iterator gave and that no backward pass has used yet, oldest first."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.asked = 0
        """How often the iterator was asked since the last backward pass, or before it."""
        self.ended = False
        self.ahead: int | None = None
        """How many of them belong to later steps, since the program fetches ahead."""
        self.described = Described()


class Batches:
    """Which of the batches that loaders give each step is trained on.

    A backward pass uses the oldest batch of the iterator that was asked last: programs that copy to
    a GPU fetch the next batch before they use this one. Some train on the batches of two loaders at
    once: those that were asked as often since the pass before, and have not ended. What is left
    over at the end of a step beyond what was left before (a batch that the program skipped) is used
    by no one.
    """

    def __init__(self, tensor: type[Any]) -> None:
        """``tensor``: torch's class."""
        self._tensor = tensor
        self._iterators: WeakKeyDictionary[Any, _Waiting] = WeakKeyDictionary()
        self._asked: list[_Waiting] = []
        """Of the iterators that were asked since then, the last one at the end."""
        self._used = False
        self._together: list[_Waiting] = []
        """The iterators that were used at once, the one that is used still at the end."""
        self.samples_told = False
        """Whether the newest batch tells its samples."""
        self.lacking = 0
        """Samples that batches of this step have less than others, each at the end of an epoch."""
        self._unused = 0
        self._least_unused: int | None = None

    def fetched(self, iterator: Any, batch: Any) -> Sizes:
        """An iterator gave a batch, or ``None``: it is at its end. Returns the batch's sizes."""
        waiting = self._iterators.get(iterator)
        if waiting is None:
            waiting = self._iterators[iterator] = _Waiting()
        if self._used:
            for each in self._asked:
                each.asked = 0
            self._asked, self._used = [], False
        if waiting in self._asked:
            self._asked.remove(waiting)
        self._asked.append(waiting)
        waiting.asked += 1
        waiting.ended = batch is None
        if batch is None:
            return ()
        self._unused += 1
        described = _as_drawn(waiting.described(batch, self._tensor), iterator)
        self.samples_told = described.samples is not None
        if described.samples is not None:
            last = lacking(iterator, ended=False)
            self.lacking += last if described.samples + last == _batch_size(iterator) else 0
        waiting.batches.append(described)
        del waiting.batches[:-_MOST_WAITING]
        return described.sizes

    def use(self) -> list[Batch]:
        """The batches that are trained on now; empty: the same as before, or no loader's."""
        last = self._asked[-1] if self._asked else None
        at_once = [
            each
            for each in self._asked
            if each is last or (last is not None and each.asked == last.asked and not each.ended)
        ]
        used = [waiting.batches.pop(0) for waiting in at_once if waiting.batches]
        self._unused -= len(used)
        self._used = True
        if not self._together or self._together[-1] is not last or len(at_once) > 1:
            self._together = at_once
        if len(at_once) < len(self._together) and any(each.ended for each in self._together):
            used = [each._replace(samples=None) for each in used]  # its batches may come again
        return used

    def end_step(self) -> bool:
        """Whether the step fetched more than it used, compared with the steps before."""
        for each in self._asked:
            waiting = len(each.batches)
            each.ahead = waiting if each.ahead is None else min(waiting, each.ahead)
            del each.batches[: waiting - each.ahead]
        self.lacking = 0
        unused, least = self._unused, self._least_unused
        self._unused = 0
        self._least_unused = unused if least is None else min(unused, least)
        return unused > self._least_unused


def lacking(iterator: Any, *, ended: bool = True) -> int:
    """How many samples the last batch of an epoch has less than the others; ``ended``: whether the
    epoch is over, else 0 unless the batch that was given last is the last one."""
    # Torch tells sampler, data set and count of an iterator only so; not all batches are seen.
    size, sampler = _batch_size(iterator), iterator._index_sampler
    if not size or iterator._dataset_kind != 0 or type(sampler).__name__ != "BatchSampler":
        return 0
    try:
        left = len(sampler.sampler) - (len(sampler) - 1) * size
        over = ended or iterator._num_yielded == len(sampler)
    except (TypeError, NotImplementedError):  # a sampler without a length
        return 0
    return size - left if over and 0 < left < size else 0


def _batch_size(iterator: Any) -> int | None:
    return getattr(iterator._index_sampler, "batch_size", None)


def describe(batch: Any, tensor: type[Any]) -> Batch:
    """The batch that a loader gave; nothing of it is kept. ``tensor``: torch's class."""
    found: list[Any] = []
    _tensors(batch, tensor, found, 0)
    first, tokens = found[0].shape if found else (), None
    if not isinstance(batch, (list, tuple, tensor)) and isinstance(batch, Mapping):
        ids = batch.get("input_ids")
        if isinstance(ids, tensor):
            first, tokens = ids.shape, ids.numel()
    samples = first[0] if first else None
    alike = all(each.shape[0] == samples for each in found if each.shape)
    return Batch(samples, tokens, tuple([each.shape[1:] for each in found]), alike)


def _as_drawn(batch: Batch, iterator: Any) -> Batch:
    """``batch`` with the samples that torch's own sampler drew for it, if its tensors begin with
    something else: with time, or with the channels of the first of many images. ``samples`` is
    ``None`` where nothing tells which of them it is.

    A sampler that drew a single item may have drawn a batch that was made before.
    """
    if not iterator._auto_collation:  # an item of the data set, or such a batch
        return batch._replace(samples=None)
    sampler = iterator._index_sampler
    size: Any = getattr(sampler, "batch_size", None)
    if batch.samples in (None, size) or size == 1:
        return batch
    if type(sampler).__name__ != "BatchSampler":
        return batch if batch.alike else batch._replace(samples=None)
    first, *rest = batch.sizes
    try:
        if iterator._dataset_kind != 0:  # an iterable data set does not tell where it ends
            raise TypeError
        drawn = min(size, len(sampler.sampler) - (iterator._num_yielded - 1) * size)
    except (TypeError, NotImplementedError):  # a sampler without a length
        second = all(each[:1] == (size,) for each in batch.sizes)
        drawn = size if second else (batch.samples or 0) if batch.alike else 0
        if not 0 < drawn <= size:
            return batch._replace(samples=None)
    if drawn <= 0 or drawn == batch.samples:
        return batch
    return batch._replace(samples=drawn, sizes=((batch.samples or 0, *first), *rest))


class Given:
    """What models are given in a step, for programs whose loaders do not tell.

    Batches of several passes add up, but not what an optimizer's closure is given again, nor what
    the models of several optimizers are given, each before its own step. A model that is called
    again in a pass is given one batch in parts, or another view of it: then nothing tells.
    """

    def __init__(self) -> None:
        self._before: list[Batch] = []
        self._closure: list[Batch] = []
        self._most: list[Batch] = []
        self._optimizers = 0
        """Those in this step before whose step a model was given something."""
        self._again = False
        """Whether before one of them it was more than one batch."""
        self.sizes: Sizes = ()
        self._called: set[int] = set()
        """``id`` of the models of this pass."""

    def add(self, model: int, batch: Batch, *, in_optimizer: bool) -> None:
        """A forward pass begins."""
        self._called = {model}
        self.sizes += batch.sizes
        if not in_optimizer:
            self._before.append(batch)
        elif not self._closure:
            self._closure.append(batch)

    def call(self, model: int) -> None:
        """A model is called within a forward pass."""
        if model in self._called:
            for given in (self._before, self._closure):
                given[-1:] = [each._replace(samples=None) for each in given[-1:]]
        self._called.add(model)

    def optimizer_ends(self) -> None:
        given = self._before + self._closure
        if not given:
            return
        self._optimizers += 1
        self._again = self._again or len(given) > 1
        if (_sum(given, "samples") or 0) > (_sum(self._most, "samples") or 0) or not self._most:
            self._most = given
        self._before, self._closure = [], []

    def end_step(self) -> Batch | None:
        """All that the step was given; ``None``: no model was called."""
        self.optimizer_ends()
        given, sizes = self._most, self.sizes
        views = self._optimizers > 1 and self._again
        self._most, self.sizes, self._optimizers, self._again = [], (), 0, False
        if not given:
            return None
        if views:  # accumulated batches, or the real ones and the made ones of a GAN
            return Batch(None, None, sizes)
        return Batch(_sum(given, "samples"), _sum(given, "tokens"), sizes)


def _sum(batches: list[Batch], of: str) -> int | None:
    values = [getattr(each, of) for each in batches]
    return None if None in values else sum(values)


def _tensors(value: Any, tensor: type[Any], found: list[Any], depth: int) -> None:
    if isinstance(value, tensor):
        if not value.is_nested:  # its sizes are not numbers
            found.append(value)
        return
    if isinstance(value, (str, bytes)) or depth > _DEEPEST:
        return
    if isinstance(value, (list, tuple, Sequence)):  # a list is told quickly, a Sequence is not
        inside: Iterable[Any] = value[:_MOST_TENSORS]
    elif isinstance(value, Mapping):
        inside = value.values()
    else:
        return
    for each in inside:
        if len(found) >= _MOST_TENSORS:
            return
        _tensors(each, tensor, found, depth + 1)
