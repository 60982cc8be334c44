"""Activation checkpointing of both kinds: what the forward pass computed is computed again."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

REENTRANT = "reentrant" in sys.argv
torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(128, 64), torch.randint(10, (128,))), 16)
stem = nn.Linear(64, 128)
blocks = nn.ModuleList(
    nn.Sequential(nn.Linear(128, 128), nn.GELU(), nn.Dropout(0.1)) for _ in range(3)
)
head = nn.Linear(128, 10)
optimizer = torch.optim.AdamW([*stem.parameters(), *blocks.parameters(), *head.parameters()])
for inputs, labels in train:
    x = stem(inputs)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=REENTRANT)
    loss = nn.functional.cross_entropy(head(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
