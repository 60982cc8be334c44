"""FLOP of operators, by formula.

A multiplication with its addition is two FLOP, as everywhere in the field, and eight where the
numbers are complex. The formulas here come before those of ``torch.utils.flop_counter``, for what
that counts wrongly or not at all in some of its versions: recurrent layers, fused transformer
layers, grouped and packed products (not at all), the weight's gradient of grouped convolutions
(over-counted by the number of groups), sparse matrices (counted as dense), and attention's
backward, which it counts with the recomputation of the scores, while model FLOP are those of the
mathematics.
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
"""Formulas by operator (``"aten.mm"``), called with the operator's own arguments and ``out=``, what
it returned. None means that this call cannot be counted."""


def formula_of(name: str) -> Formula | None:
    """The formula of an operator here, ``addmm_`` having that of ``addmm``."""
    return FORMULAS.get(name) or FORMULAS.get(name.rstrip("_"))


def flop_of(
    name: str, packet: Any, args: Sequence[Any], kwargs: dict[str, Any], out: Any
) -> int | None:
    """FLOP of one call of the operator ``name``; None where no formula is known.

    ``packet`` is torch's object for it, by which its own and users' formulas are registered.
    """
    named = {key: value for key, value in kwargs.items() if key != "out"}
    own = formula_of(name)
    if own is not None:
        return own(*args, out=out, **named)
    registered = flop_registry.get(packet)
    if registered is not None:
        return int(registered(*args, **named, out_val=out))
    return None
