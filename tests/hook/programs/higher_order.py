"""torch.cond in training, and flex_attention in a frozen part, both without torch.compile."""

import warnings

import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(64, 16, 32)), 8)
project = nn.Linear(32, 96).requires_grad_(False)
left, right = nn.Linear(32, 32), nn.Linear(32, 32)
optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.1)
for (x,) in train:
    q, k, v = project(x).view(8, 16, 3, 2, 16).permute(2, 0, 3, 1, 4)
    y = flex_attention(q, k, v).transpose(1, 2).flatten(2)
    y = torch.cond(y.sum() > 0, lambda y: left(y), lambda y: right(y), (y,))
    loss = nn.functional.mse_loss(y, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
