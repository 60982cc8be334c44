"""An optimizer for each parameter, which steps as soon as its gradient is there."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(128, 64), torch.randint(0, 10, (128,)))
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizers = {each: torch.optim.AdamW([each]) for each in model.parameters()}


def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for inputs, labels in DataLoader(data, batch_size=16):
    loss = F.cross_entropy(model(inputs), labels)
    loss.backward()
    print("loss", loss.item().hex())
