"""Sequences that are padded as recurrent layers take them: time comes before the batch."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)
sequences = [torch.randn(20, 8) for _ in range(32)]
model = nn.Linear(8, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs in DataLoader(sequences, 4, collate_fn=pad_sequence):
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
