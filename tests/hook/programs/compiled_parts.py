"""Compiled blocks between layers that are not, in batches of two sizes; by argument with
checkpointing around or inside of them, or such that their work is not known."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
torch.set_num_threads(1)
HOW = sys.argv[1]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x):
        if HOW == "cond":
            with torch.autocast("cpu", enabled=False):
                x = torch.cond(x.sum() > 0, torch.cos, torch.sin, (x.float(),))
        if HOW == "map":
            return torch._higher_order_ops.map(lambda x: x @ x.new_ones(32, 32), x)
        if HOW == "inside":
            return checkpoint(self.layer, x, use_reentrant=False).relu()
        return self.layer(x).relu_()


def custom(graph, inputs):
    return lambda *args: graph(*args)


stem, first, second, head = nn.Linear(64, 32), Block(), Block(), nn.Linear(32, 10)
layers = nn.ModuleList([stem, first, second, head])
optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
torch._dynamo.config.compiled_autograd = HOW == "autograd"
compiling = torch._dynamo.optimize if HOW == "optimize" else torch.compile
backend = custom if HOW == "custom" else "aot_eager"
one, two = (compiling(backend=backend)(each) for each in (first, second))


def forward(x):
    x = one(stem(x).sin())
    if HOW == "around":
        x = checkpoint(lambda x: two(stem(x.repeat(1, 2))), x, use_reentrant=False)
    else:
        x = two(x)
    return head(x)


for step in range(14):
    optimizer.zero_grad()
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            loss = forward(torch.randn(16 + step % 2, 64)).square().mean()
        loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
counters = torch._dynamo.utils.counters
print("dynamo", {name: dict(counters[name]) for name in ("stats", "frames", "aot_autograd")})
print(torch.rand(1), torch.is_autocast_enabled("cpu"), torch.is_grad_enabled())
