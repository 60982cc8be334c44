"""Blocks that are compiled with ``fullgraph``, in a model that is not, as large models are."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(8, 16), nn.Sequential(nn.Linear(16, 16), nn.ReLU()))
model[1] = torch.compile(model[1], backend="eager", fullgraph=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    optimizer.zero_grad()
    loss = model(torch.ones(6, 8)).square().mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
print(dict(torch._dynamo.utils.counters["stats"]))
