"""Counting a step while it runs changes nothing of what it computes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from gpuwatch.workloads.flop.step_counter import BACKWARD, StepCounter

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
