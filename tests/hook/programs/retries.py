"""Catches what goes wrong in its third step, and tries it again with half the batch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(128, 64), torch.randint(10, (128,))), 16)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(inputs, labels, fails):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    if fails:
        loss = loss + torch.empty(1 << 60).sum()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())


for i, (inputs, labels) in enumerate(train, 1):
    try:
        step(inputs, labels, i == 3)
    except RuntimeError as error:
        print(type(error).__name__)
        step(inputs[:8], labels[:8], False)
