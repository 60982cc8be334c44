"""LBFGS, which evaluates the model in a closure several times a step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(128, 64), torch.randn(128, 1)), 16)
model = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
for inputs, targets in train:

    def closure(inputs=inputs, targets=targets):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        return loss

    print("loss", optimizer.step(closure).item().hex())
