"""A compiled model with dropout; says what dynamo did."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(128, 64), torch.randint(10, (128,))), 16)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model)
for inputs, labels in train:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(inputs), labels)
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
counters = torch._dynamo.utils.counters
print("dynamo", {name: dict(counters[name]) for name in ("stats", "frames", "graph_break")})
print("stance", torch._dynamo.eval_frame._stance.stance)
