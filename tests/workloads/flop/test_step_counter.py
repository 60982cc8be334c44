"""Counting a step while it runs changes nothing of what it computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from gpuwatch.workloads.flop.step_counter import BACKWARD, StepCounter, data_type

COMPOUND = {
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "mish": torch.nn.functional.mish,
    "softplus": torch.nn.functional.softplus,
    "log_sigmoid": torch.nn.functional.logsigmoid,
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, (257,)),
    "softmax": lambda x: torch.softmax(x, -1),
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(
        *(x.view(1, 1, -1, 257),) * 3
    ),
    "linear without gradients": lambda x: torch.nn.functional.linear(x, x.detach()[:9]),
    "group_norm": lambda x: torch.nn.functional.group_norm(x.view(1, 64, -1), 8),
}


@pytest.mark.parametrize("name", COMPOUND)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_operator_gives_the_same_bits_while_it_is_counted(name: str, dtype: torch.dtype) -> None:
    def gradients() -> list[torch.Tensor]:
        torch.manual_seed(0)
        x = (3 * torch.randn(64, 257, dtype=dtype)).requires_grad_()
        result = COMPOUND[name](x)
        (gradient,) = torch.autograd.grad(result, x, torch.ones_like(result) * 0.7)
        with torch.no_grad():
            return [result.detach(), gradient, COMPOUND[name](x)]

    plain = gradients()
    counter = StepCounter()
    counter.part = BACKWARD
    with counter:
        counted = gradients()
    assert all(torch.equal(one, other) for one, other in zip(plain, counted, strict=True))
    assert counter.broken is None


def decode(counter: StepCounter, calls: int, work: Callable[[int], int], *, few: bool) -> int:
    """Calls that multiply by so many rows each; returns how many of them were counted."""
    counted = 0
    for number in range(calls):
        if few:
            counter.begin_call(number)
        counted += counter.active
        torch.ones(work(number), 8) @ torch.ones(8, 8)
        torch.ones(4).cumsum(0)
    if few:
        counter.end_calls(calls)
    return counted


@pytest.mark.parametrize(
    ("work", "exact", "bent"),
    [
        (lambda number: 50 + number if number else 700, True, False),  # with a growing cache
        (lambda number: 900 + min(number, 77), False, False),  # with a window
        (lambda number: 50 if number % 3 else 55, False, True),
    ],
)
def test_calls_that_are_not_counted_are_interpolated(
    work: Callable[[int], int], exact: bool, bent: bool
) -> None:
    whole, few = StepCounter(), StepCounter()
    for counter in (whole, few):
        counter.enter()
        torch.ones(3, 8) @ torch.ones(8, 8)  # before, and beside
        counted = [decode(counter, calls, work, few=counter is few) for calls in (200, 3, 1, 0)]
        torch.ones(3, 8) @ torch.ones(8, 8)
        assert counter.leave()
    assert counted == [14, 3, 1, 0]
    assert ("of generate's 204 calls 18 were counted" in few.note) and not whole.note
    assert few.bent == bent == ("estimate" in few.note)
    totals = [(each.step.flop, each.step.bytes) for each in (few, whole)]
    assert totals[0] == (
        totals[1] if exact else pytest.approx(totals[1], rel=0.1 if bent else 1e-3)
    )
    tables = [{row["name"]: row["calls"] for row in each.step.table()} for each in (few, whole)]
    assert tables[0] == tables[1]
    assert few.step.uncounted_operators() == whole.step.uncounted_operators()


def test_a_mode_of_the_program_stays_where_it_is_among_counted_calls() -> None:
    for first in (2, 8):  # a call that is counted, and one that is not
        counter = StepCounter()
        counter.enter()
        modes = []
        for number in range(12):
            counter.begin_call(number)
            if number == first:
                mode = StepCounter()
                mode.__enter__()
            elif number == 10:
                modes = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
                mode.__exit__(None, None, None)
        counter.end_calls(12)
        assert modes[-1] is mode and counter.leave()
        assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        assert (counter.broken is None) == (first == 2)


@pytest.mark.parametrize(
    ("operator", "capability", "matmul", "cudnn", "override", "told"),
    [
        ("aten::mm", 9, True, False, None, "tf32"),
        ("aten::mm", 9, False, True, None, "float32"),
        ("aten::convolution_backward", 8, False, True, None, "tf32"),
        ("aten::_cudnn_rnn", 8, True, False, None, "float32"),
        ("aten::addmm", 7, True, True, None, "float32"),
        ("aten::addmm", 9, True, True, "0", "float32"),
        ("aten::addmm", 9, False, False, "1", "tf32"),
    ],
)
def test_float32_is_told_as_tf32_where_torch_lets_the_gpu_round(
    monkeypatch: pytest.MonkeyPatch,
    operator: str,
    capability: int,
    matmul: bool,
    cudnn: bool,
    override: str | None,
    told: str,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (capability, 0))
    monkeypatch.delenv("NVIDIA_TF32_OVERRIDE", raising=False)
    if override is not None:
        monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", override)
    gpu, backends = torch.device("cuda", 0), torch.backends
    before = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
    try:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = matmul, cudnn
        assert data_type(operator, torch.float32, gpu) == told
        assert data_type(operator, torch.bfloat16, gpu) == "bfloat16"
        assert data_type(operator, torch.float32, torch.device("cpu")) == "float32"
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before
