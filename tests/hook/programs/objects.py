"""What programs do with a model that has been trained: nothing of the hook is in it."""

import copy
import hashlib
import io

import torch
import torch._dynamo.utils
from torch import fx, nn
from torch.func import functional_call

torch.manual_seed(0)
torch.set_num_threads(1)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, inputs):
        return self.layers(inputs)


model = nn.Sequential(Block(), nn.Sequential(nn.Linear(4, 4)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(called):
    optimizer.zero_grad()
    loss = called(torch.ones(6, 8)).square().mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())


for _ in range(6):
    step(model)
saved = io.BytesIO()
torch.save(model, saved)
print("saved", hashlib.sha256(saved.getvalue()).hexdigest(), sorted(model.__dict__))
step(copy.deepcopy(model))
print("scripted", torch.jit.script(model).code)
print("traced", fx.symbolic_trace(model).code)
print("recorded", torch.jit.trace(model, torch.ones(6, 8)).code)
print("exported", torch.export.export(model, (torch.ones(6, 8),)).graph)
step(lambda inputs: functional_call(model, dict(model.named_parameters()), (inputs,)))
lengths = torch.nested.nested_tensor([torch.ones(2, 8), torch.ones(4, 8)])
weight = model[0].layers[0].weight
step(lambda _: torch.nested.to_padded_tensor(nn.functional.linear(lengths, weight), 0.0))
compiled = torch.compile(model, backend="eager", fullgraph=True)
for _ in range(3):
    step(compiled)
print("compiled", dict(torch._dynamo.utils.counters["stats"]))
