"""FLOP formulas by operator.

A multiply-add is two FLOP, as usual in the field, and eight for complex numbers. These formulas
take precedence over ``torch.utils.flop_counter``, some versions of which get operators wrong:
recurrent layers, fused transformer layers, grouped and packed products (not counted), the weight
gradient of grouped convolutions (overcounted by the number of groups), sparse matrices (counted as
dense), and the backward pass of attention, which it counts with the recomputation of the scores,
although model FLOP are those of the mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.utils.flop_counter import flop_registry

from . import attention, convolutions, products, recurrent

Formula = Callable[..., "int | None"]

FORMULAS: dict[str, Formula] = {
    **products.FORMULAS,
    **convolutions.FORMULAS,
    **recurrent.FORMULAS,
    **attention.FORMULAS,
}
"""Formulas by operator (``"aten.mm"``), called with the operator's own arguments and ``out=``, its
result. They return None if this call cannot be counted."""


def formula_of(name: str) -> Formula | None:
    """This package's formula for an operator; ``addmm_`` has that of ``addmm``."""
    return FORMULAS.get(name) or FORMULAS.get(name.rstrip("_"))


def flop_of(
    name: str, packet: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any
) -> int | None:
    """FLOP of one call of the operator ``name``; None without a formula.

    ``packet`` is torch's object for it, under which torch's and users' formulas are registered.
    """
    named = {key: value for key, value in kwargs.items() if key != "out"}
    own = formula_of(name)
    if own is not None:
        return own(*args, out=out, **named)
    registered = flop_registry.get(packet)
    if registered is not None:
        return int(registered(*args, **named, out_val=out))
    return None
