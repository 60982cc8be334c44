"""Counts one step of a program that knows nothing of it, while it runs: nothing is run twice."""

from __future__ import annotations

import os
from functools import partial
from itertools import pairwise
from math import isclose
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _python_dispatch

from .operators import Cost, OperatorCounter, Work, together

FORWARD, BACKWARD, OPTIMIZER = range(3)
_Call = tuple[int, Work]
"""The number of a call within ``generate``, and what it did."""
_BEND = 0.01
"""How far from the line of its neighbours what a counted call did may be."""


def data_type(operator: str, dtype: torch.dtype, device: torch.device) -> str:
    """The data type in which a device multiplies for ``operator``: ``tf32`` for what is float32
    where torch lets cuBLAS and cuDNN round (Ampere and later)."""
    given = str(dtype).replace("torch.", "")
    if given != "float32" or device.type != "cuda" or torch.version.hip is not None:
        return given
    override = os.environ.get("NVIDIA_TF32_OVERRIDE")
    if torch.cuda.get_device_capability(device)[0] < 8 or override == "0":
        return given
    cudnn = any(each in operator for each in ("conv", "cudnn", "rnn", "lstm", "gru"))
    asked: Any = torch.backends.cudnn if cudnn else torch.backends.cuda.matmul
    try:
        allowed = asked.allow_tf32
    except RuntimeError:  # the program uses torch's newer names
        allowed = (asked.conv if cudnn else asked).fp32_precision == "tf32"
    return "tf32" if allowed or override == "1" else given


class StepCounter(OperatorCounter):  # type: ignore[no-untyped-call]
    """Work of everything that runs while it counts, by the part of the step.

    ``part`` is set from outside. What runs in a backward pass with gradients enabled is computed
    again, by activation checkpointing, unless the pass itself is to be differentiated
    (``differentiable``). What compiled code runs is ``hidden``: its graph was counted, see
    :mod:`.graph`.
    """

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let torch.compile work while it counts; ``torch.cond`` compiles in every program."""
        return True

    @classmethod
    def is_infra_mode(cls) -> bool:
        """The same for old torch."""
        return True

    def __init__(self, shapes_alone: bool = False) -> None:
        """``shapes_alone``: count operators on tensors without data, which a step's are not."""
        super().__init__()
        self._shapes_alone = shapes_alone
        _know_higher_order_operators()
        self.part = FORWARD
        self.differentiable = False
        self.active = True
        self.hidden = False
        """Whether compiled code of a backward pass runs; what is computed again is not it."""
        self.recomputes_unseen = False
        """Whether compiled code chooses what it computes again."""
        self.broken: str | None = None
        """Why the count is not that of a step."""
        self.forward, self.backward, self.again, self.update = (Work() for _ in range(4))
        self.without_gradients = False
        """Whether a forward pass without gradients was seen, as an evaluation is."""
        self.flop_by_type: dict[str, int] = {}
        """FLOP by data type of the operator's first tensor."""
        self.calls = self.skipped = 0
        """Calls within ``generate``, and how many of them were not counted."""
        self.bent = False
        """Whether those that were counted did not grow evenly."""
        self._left = True
        """Whether it is off torch's stack of modes."""
        self._counted: list[_Call] = []
        """Counted calls of the ``generate`` that runs, by number; first what ran before it."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if not self.active or (self.hidden and not torch.is_grad_enabled()):
            return func(*args, **(kwargs or {}))
        if not self._shapes_alone and any(issubclass(kind, FakeTensor) for kind in types):
            return func(*args, **(kwargs or {}))  # the program looks at shapes, without data
        self.work = self._part()
        self.flop = self.work is not self.update
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        except Exception as error:
            self.broken = f"an operator ended with {type(error).__name__} in the counted step"
            raise

    def may_take_apart(self, func: Any, args: tuple[Any, ...]) -> bool:
        """Only where the program itself would run the parts: an operator that has a kernel for its
        device, such as ``silu_backward``, rounds otherwise than its parts."""
        keys = torch._C.DispatchKey  # what the methods below take has no public name
        devices = {each.device.type.upper() for each in args if isinstance(each, torch.Tensor)}
        return (
            super().may_take_apart(func, args)
            and keys.CompositeImplicitAutograd not in func.py_kernels
            and not any(
                func.has_kernel_for_dispatch_key(getattr(keys, device))
                for device in devices
                if hasattr(keys, device)
            )
        )

    def _part(self) -> Work:
        """Optimizers update without gradients, and evaluate their closure with them."""
        gradients = torch.is_grad_enabled()
        if self.part == OPTIMIZER and not gradients:
            return self.update
        if self.part != BACKWARD:
            return self.forward
        return self.again if gradients and not self.differentiable else self.backward

    def count(
        self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> None:
        """As in the base, but a formula that fails leaves its operator uncounted."""
        work = self.work
        before = work.flop_of(name)
        try:
            super().count(name, func, args, kwargs, out)
        except Exception:
            work.operators.setdefault(name, Cost()).add(Cost(1, 0, 0, 1))
            return
        added = work.flop_of(name) - before
        whole = func.namespace == "higher_order" and "triton" not in name
        if self._shapes_alone and whole and not added:
            self.broken = f"a compiled program with {name}: what runs inside of it cannot be seen"
        first = next((each for each in args if isinstance(each, torch.Tensor)), None)
        if added and work is self.forward and not torch.is_grad_enabled():
            self.without_gradients = True
        if added and first is not None:
            kind = data_type(name, first.dtype, first.device)
            self.flop_by_type[kind] = self.flop_by_type.get(kind, 0) + added

    def add(self, other: StepCounter) -> None:
        """Add what another one counted."""
        self.forward = together((self.forward, other.forward))
        self.backward = together((self.backward, other.backward))
        self.again = together((self.again, other.again))
        self.update = together((self.update, other.update))
        self.without_gradients |= other.without_gradients
        self.recomputes_unseen |= other.recomputes_unseen
        self.broken = self.broken or other.broken
        for kind, flop in other.flop_by_type.items():
            self.flop_by_type[kind] = self.flop_by_type.get(kind, 0) + flop

    @property
    def step(self) -> Work:
        """All of it but what was computed again."""
        return together((self.forward, self.backward, self.update))

    def enter(self) -> None:
        """Count from here on."""
        self.active = True
        if self._left and other_modes():
            self.broken = "another mode of torch's dispatcher was active in the counted step"
        elif self._left:
            self._left = False
            self.__enter__()  # type: ignore[no-untyped-call]

    def leave(self) -> bool:
        """Count no further; returns whether it is off torch's stack of modes."""
        self.active = False
        stack = _python_dispatch._get_current_dispatch_mode_stack()
        if stack and stack[-1] is self:
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._left = True
        return self._left

    @property
    def note(self) -> str:
        """What to tell of the calls that were not counted."""
        counted = f"{self.calls - self.skipped:,} were counted, the others interpolated"
        told = f"; of generate's {self.calls:,} calls {counted}"
        told += ", which is an estimate: they do not grow evenly" * self.bent
        return told if self.skipped else ""

    def begin_call(self, number: int) -> None:
        """A call within ``generate`` begins, the prefill is number 0. Few are counted, each with
        what runs up to the next one: to count takes long, and what they do grows evenly."""
        self._end_call(number - 1)
        last = self._counted[-1][0]
        if number >= last + max(1, last // 2):
            self.enter()
        else:
            self.leave()

    def end_calls(self, calls: int) -> None:
        """``generate`` is over, after so many: those that were not counted are on a line through
        the counted ones beside them, or through the last two."""
        self._end_call(calls - 1)
        decode = self._counted[2:]
        self.calls += calls
        self.skipped += calls + 1 - len(self._counted)
        works = [work for _, work in self._counted[:3]]
        ends = [*(number for number, _ in decode[1:-1]), calls - 1]
        for (one, other), end in zip(pairwise(decode), ends, strict=False):
            works.append(_on_line(one, other, one[0] + 1, end))
        for one, (at, work), other in zip(decode, decode[1:], decode[2:], strict=False):
            line = _on_line(one, other, at, at)
            pairs = (line.flop, work.flop), (line.bytes, work.bytes)
            self.bent |= not all(isclose(*pair, rel_tol=_BEND) for pair in pairs)
        self.forward, self._counted = together(works), []
        self.enter()

    def _end_call(self, number: int) -> None:
        if self.active:
            self._counted.append((number, self.forward))
        self.forward = Work()


def _on_line(one: _Call, other: _Call, first: int, last: int) -> Work:
    """Work of the calls from ``first`` to ``last`` on the line through two others."""
    (begin, before), (end, after) = one, other
    parts = before.times(2 * end - first - last, 1), after.times(first + last - 2 * begin, 1)
    work = together(parts).times(last - first + 1, 2 * (end - begin))
    for name, cost in work.operators.items():
        work.operators[name] = Cost(*(max(0, value) for value in vars(cost).values()))
    return work


_known: set[str] = set()
"""Higher-order operators that call the counter by a rule."""


def old_torch() -> bool:
    """Whether modes cannot say yet that they take all higher-order operators."""
    return not hasattr(_python_dispatch.TorchDispatchMode, "supports_higher_order_operators")


def _know_higher_order_operators() -> None:
    """Give each higher-order operator a rule to call the counter; in old torch it needs one."""
    if not old_torch():
        return
    for name, operator in torch._ops._higher_order_ops.items():  # torch.ops has no list of them
        if name not in _known:
            _known.add(name)
            operator.py_impl(StepCounter)(partial(_call, operator))


def _call(operator: Any, counter: StepCounter, *args: Any, **kwargs: Any) -> Any:
    return counter.__torch_dispatch__(operator, [], args, kwargs)


def other_modes() -> bool:
    """Whether some other mode of torch's dispatcher is active, which torch tells nowhere else."""
    return bool(_python_dispatch._get_current_dispatch_mode_stack())
