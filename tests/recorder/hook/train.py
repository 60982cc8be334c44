"""A training program as users write them: it knows nothing of gpuwatch."""

from __future__ import annotations

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 40
torch.manual_seed(0)
torch.set_num_threads(1)
ranks = int(os.environ.get("WORLD_SIZE", "1"))
model: nn.Module = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
if ranks > 1:
    torch.distributed.init_process_group("gloo")
    model = nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.randn(STEPS * 32, 64), torch.randint(10, (STEPS * 32,)))
for inputs, labels in DataLoader(data, batch_size=32):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
print("loss", loss.item().hex())
if ranks > 1:
    torch.distributed.destroy_process_group()
