"""A layer with a backward pass of its own, and an operator of its own library."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


class MatMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad


@torch.library.custom_op("mylib::gate", mutates_args=())
def gate(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(x.detach().numpy().clip(0, 6).copy())


@gate.register_fake
def _(x):
    return torch.empty_like(x)


def gate_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * ((x > 0) & (x < 6))


gate.register_autograd(
    gate_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0])
)
train = DataLoader(TensorDataset(torch.randn(128, 64), torch.randint(10, (128,))), 16)
weight = nn.Parameter(torch.randn(64, 32) / 8)
head = nn.Linear(32, 10)
optimizer = torch.optim.SGD([weight, *head.parameters()], lr=0.1)
for inputs, labels in train:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(gate(MatMul.apply(inputs, weight))), labels)
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
