"""What a batch is made of: samples, tokens, and the sizes that make two steps alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

_MOST_TENSORS = 8
_DEEPEST = 4
_MOST_WAITING = 256


class Batch(NamedTuple):
    """``samples``: the first dimension of the first tensor, or as many as were drawn. ``tokens``:
    the size of ``input_ids``. ``sizes``: those of the tensors, without the number of samples."""

    samples: int | None
    tokens: int | None
    sizes: tuple[tuple[int, ...], ...]


class _Waiting:
    """Batches that an iterator gave and that no backward pass has used yet, oldest first."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.ahead: int | None = None
        """How many of them belong to later steps, since the program fetches ahead."""


class Batches:
    """Which of the batches that loaders give each step is trained on.

    A backward pass uses the oldest batch of the iterator that was asked last: programs that copy to
    a GPU fetch the next batch before they use this one. What is left over at the end of a step
    beyond what was left before (a batch that the program skipped) is used by no one.
    """

    def __init__(self, tensor: type[Any]) -> None:
        """``tensor``: torch's class."""
        self._tensor = tensor
        self._iterators: WeakKeyDictionary[Any, _Waiting] = WeakKeyDictionary()
        self._last = _Waiting()
        self._unused = 0
        self._least_unused: int | None = None

    def fetched(self, iterator: Any, batch: Any) -> tuple[tuple[int, ...], ...]:
        """An iterator gave a batch, or ``None``: it is at its end. Returns the batch's sizes."""
        self._last = self._iterators.setdefault(iterator, _Waiting())
        if batch is None:
            return ()
        self._unused += 1
        described = _as_drawn(describe(batch, self._tensor), iterator)
        self._last.batches.append(described)
        del self._last.batches[:-_MOST_WAITING]
        return described.sizes

    def use(self) -> Batch | None:
        """The batch that is trained on now; ``None``: the same as before, or no loader's."""
        if not self._last.batches:
            return None
        self._unused -= 1
        return self._last.batches.pop(0)

    def end_step(self) -> bool:
        """Whether the step fetched more than it used, compared with the steps before."""
        last, unused, least = self._last, self._unused, self._least_unused
        waiting = len(last.batches)
        last.ahead = waiting if last.ahead is None else min(waiting, last.ahead)
        del last.batches[: waiting - last.ahead]
        self._unused = 0
        self._least_unused = unused if least is None else min(unused, least)
        return unused > self._least_unused


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
    return Batch(samples, tokens, tuple([each.shape[1:] for each in found]))


def _as_drawn(batch: Batch, iterator: Any) -> Batch:
    """``batch`` with the samples that torch's own sampler drew for it, if its tensors begin with
    something else: with time, or with the channels of the first of many images.

    One that drew a single item may have drawn a batch that was made before.
    """
    sampler = iterator._index_sampler
    size = getattr(sampler, "batch_size", None)
    if batch.samples in (None, size) or size == 1 or type(sampler).__name__ != "BatchSampler":
        return batch
    if iterator._dataset_kind != 0:  # an iterable data set does not tell where it ends
        return batch
    try:
        drawn = min(size, len(sampler.sampler) - (iterator._num_yielded - 1) * size)
    except (TypeError, NotImplementedError):  # a sampler without a length
        return batch
    if drawn <= 0 or drawn == batch.samples:
        return batch
    first, *rest = batch.sizes
    return batch._replace(samples=drawn, sizes=((batch.samples or 0, *first), *rest))


def _tensors(value: Any, tensor: type[Any], found: list[Any], depth: int) -> None:
    if isinstance(value, tensor):
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
