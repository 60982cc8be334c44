"""Cost of operators as they run: a counter of FLOP and bytes, operator by operator.

Algorithmic bytes are the size of an operator's inputs and outputs, ignoring caches and fusion.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .formulas import flop_of, formula_of, stored

OVERWRITES = frozenset(
    {"copy_", "fill_", "zero_", "bernoulli_", "exponential_", "normal_", "random_", "uniform_"}
)
"""In-place operators that do not read what they overwrite."""

TAKES = frozenset({"embedding", "gather", "index", "index_select", "take"})
"""Operators that read only what they return from their first tensor."""


def bytes_of(operator: str, func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Bytes of an operator's inputs and outputs; a tensor changed in place counts as both.

    Data that is overwritten unread (``copy_``, ``fill_``, ``out=``) is not an input, and a look-up
    table counts only with the rows taken. ``operator`` is the name without its namespace.
    """
    schema = getattr(func, "_schema", None)  # torch tells what an operator writes nowhere else
    if schema is None:  # a higher-order operator
        return _bytes((args, kwargs)) + _bytes(out)
    results = (out,) if len(schema.returns) == 1 else out or ()
    total = sum(
        _bytes(value)
        for result, value in zip(schema.returns, results, strict=False)
        if result.alias_info is None
    )
    for position, (argument, value) in enumerate(_arguments(schema, args, kwargs)):
        size = _bytes(value)
        if argument.alias_info is not None and argument.alias_info.is_write:
            overwritten = argument.is_out or operator in OVERWRITES
            total += size if overwritten else 2 * size
        elif position == 0 and operator in TAKES:
            total += min(size, _bytes(out))
        else:
            total += size
    return total


def _arguments(schema: Any, args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    yield from zip(schema.arguments, args, strict=False)
    named = {argument.name: argument for argument in schema.arguments}
    yield from ((named[name], value) for name, value in kwargs.items() if name in named)


def _bytes(tree: Any) -> int:
    return sum(tensor_bytes(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements: expanded dimensions count once, sparse ones as stored."""
    size = tensor.element_size()
    if tensor.layout == torch.sparse_coo:
        # The public indices() and values() refuse a tensor that is not coalesced.
        return stored(tensor) * size + tensor._indices().numel() * 8
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return _compressed(tensor, tensor.crow_indices(), tensor.col_indices())
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return _compressed(tensor, tensor.ccol_indices(), tensor.row_indices())
    if tensor.layout != torch.strided or tensor.is_nested:
        return tensor.numel() * size
    elements = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= min(length, 1) if stride == 0 else length
    return elements * size


def _compressed(tensor: torch.Tensor, *indices: torch.Tensor) -> int:
    return stored(tensor) * tensor.element_size() + sum(map(tensor_bytes, indices))


ROWS = 40
"""Number of operators listed in a table; the rest share one row."""

SILENT = frozenset({"prim", "profiler"})
"""Namespaces whose operators compute nothing."""

COLLECTIVES = frozenset({"c10d", "_c10d_functional", "fsdp"})
"""Namespaces whose operators move data between ranks; a reduction's sums are not counted."""

_VIEWS = """
    _unsafe_view _reshape_alias lift_fresh empty empty_like empty_strided new_empty
    new_empty_strided device _local_scalar_dense is_same_size _nnz as_strided_ detach_ squeeze_
    t_ transpose_ unsqueeze_ resize_ set_ unsafe_split unsafe_chunk
"""
VIEWS = frozenset(_VIEWS.split())
"""Operators that move no data although their schema does not mark them as views."""

_MOVERS = """
    _to_copy _pin_memory _foreach_copy_ _index_put_impl_
    _sparse_coo_tensor_with_dims_and_tensors arange bernoulli_ bernoulli cat clone
    constant_pad_nd copy_ embedding fill_ flip full full_like gather index index_put index_put_
    index_select lift masked_fill masked_fill_ masked_select new_full new_ones new_zeros normal_
    ones ones_like rand rand_like randn randn_like repeat roll scalar_tensor scatter scatter_
    select_backward slice_backward split_with_sizes_copy stack uniform_ where zero_ zeros
    zeros_like channel_shuffle native_channel_shuffle pixel_shuffle
"""
MOVERS = frozenset(_MOVERS.split())
"""Operators that move data without arithmetic; their FLOP are zero, not unknown."""

PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)
"""Tensor types that operators work on; other types are built from these."""


@dataclass
class Cost:
    """Cost of one operator's calls."""

    calls: int = 0
    flop: int = 0
    bytes: int = 0
    uncounted: int = 0
    """Arithmetic calls with unknown FLOP."""

    def add(self, other: Cost) -> None:
        """Add the calls of ``other``."""
        self.calls += other.calls
        self.flop += other.flop
        self.bytes += other.bytes
        self.uncounted += other.uncounted

    def row(self, name: str) -> dict[str, Any]:
        """The reported row; FLOP are None if arithmetic ran, but none of it was counted."""
        known = not self.uncounted or self.flop
        return {
            "name": name,
            "calls": self.calls,
            "flop": self.flop if known else None,
            "bytes": self.bytes,
        }


@dataclass
class Work:
    """Cost of the operators seen so far, by name (``"aten.mm"``)."""

    operators: dict[str, Cost] = field(default_factory=dict)

    @property
    def flop(self) -> int:
        """FLOP of all operators that have a formula."""
        return sum(cost.flop for cost in self.operators.values())

    def flop_of(self, name: str) -> int:
        """FLOP of one operator."""
        cost = self.operators.get(name)
        return 0 if cost is None else cost.flop

    @property
    def bytes(self) -> int:
        """Algorithmic bytes of all operators."""
        return sum(cost.bytes for cost in self.operators.values())

    def times(self, factor: int, divisor: int) -> Work:
        """``factor / divisor`` times this work, where that is whole."""
        return Work(
            {
                name: Cost(*(value * factor // divisor for value in vars(cost).values()))
                for name, cost in self.operators.items()
            }
        )

    def uncounted_operators(self) -> list[str]:
        """``"aten.native_batch_norm x20"``, by name."""
        return [
            f"{name} x{cost.uncounted}"
            for name, cost in sorted(self.operators.items())
            if cost.uncounted
        ]

    def table(self) -> list[dict[str, Any]]:
        """Rows of name, calls, FLOP and bytes, sorted by falling FLOP, then bytes.

        After ``ROWS`` of them, one row ``"(others)"`` sums up the rest, so that each column adds up
        to the total of all operators.
        """
        ranked = sorted(
            self.operators.items(), key=lambda item: (-item[1].flop, -item[1].bytes, item[0])
        )
        rows = [cost.row(name) for name, cost in ranked[:ROWS]]
        if len(ranked) > ROWS:
            others = Cost()
            for _, cost in ranked[ROWS:]:
                others.add(cost)
            rows.append(others.row("(others)"))
        return rows


def together(works: Iterable[Work]) -> Work:
    """The sum of all works."""
    total = Work()
    for work in works:
        for name, cost in work.operators.items():
            total.operators.setdefault(name, Cost()).add(cost)
    return total


class OperatorCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds the work of every operator that runs while it is active to ``work``.

    Without ``flop``, arithmetic is listed instead of counted.
    """

    supports_higher_order_operators = True

    def __init__(self, flop: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flop = flop
        self.work = Work()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace in SILENT:
            return func(*args, **kwargs)
        if any(kind not in PLAIN for kind in types):
            return NotImplemented  # the type decomposes the operator, and its parts arrive here
        packet = getattr(func, "overloadpacket", func)
        operator = getattr(packet, "__name__", str(packet))
        name = f"{func.namespace}.{operator}"
        if name == "higher_order.cond":
            taken, branch, other, operands = args
            with self:
                return branch(*operands) if taken else other(*operands)
        if formula_of(name) is None and packet is not func:
            if self.may_take_apart(func, args):
                with self:
                    parts = func.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            if is_view(func) or operator in VIEWS:
                return func(*args, **kwargs)
        out = func(*args, **kwargs)
        self.count(name, func, args, kwargs, out)
        return out

    def may_take_apart(self, func: Any, args: tuple[Any, ...]) -> bool:
        """Whether a compound operator, which without autograd arrives here whole, may be run as its
        parts. Nested tensors take it apart differently, which torch's objects do not know about."""
        return not any(isinstance(each, torch.Tensor) and each.is_nested for each in args)

    def count(
        self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> None:
        """Add one call of the operator ``name``, with its result."""
        packet = getattr(func, "overloadpacket", func)
        operator = name.partition(".")[2]
        flop = flop_of(name, packet, args, kwargs, out) if self.flop else None
        moves = operator in MOVERS or func.namespace in COLLECTIVES
        unknown = flop is None and not moves
        moved = bytes_of(operator, func, args, kwargs, out)
        cost = self.work.operators.setdefault(name, Cost())
        cost.add(Cost(1, flop or 0, moved, int(unknown)))


def is_view(func: Any) -> bool:
    """Whether an operator returns a view of its input, and so moves no data."""
    return any(
        result.alias_info is not None and not result.alias_info.is_write
        for result in func._schema.returns
    )
