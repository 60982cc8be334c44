"""Fetches the next batch before the step on this one, as loaders that copy to a GPU do."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(72, 64), torch.randint(10, (72,))), 16)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    batches = iter(train)
    batch = next(batches, None)
    while batch is not None:
        inputs, labels = batch
        batch = next(batches, None)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", loss.item().hex())
