"""A compiled model and a compiled optimizer step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(160, 64), torch.randint(10, (160,))), 16)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.01))
compiled = torch.compile(model)


@torch.compile(fullgraph=False)
def update():
    optimizer.step()


for inputs, labels in train:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(inputs), labels)
    loss.backward()
    update()
    print("loss", loss.item().hex())
counters = torch._dynamo.utils.counters
print("dynamo", {name: dict(counters[name]) for name in ("stats", "frames", "graph_break")})
