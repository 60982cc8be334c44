"""Sequences of three lengths, padded to the longest of their batch by the collate function."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)
texts = [torch.randint(1, 100, (16 * (1 + i // 4 % 3),)) for i in range(48)]


def collate(batch):
    input_ids = pad_sequence(batch, batch_first=True)
    return {"input_ids": input_ids, "labels": input_ids.clone()}


embedding = nn.Embedding(100, 32)
encoder = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
head = nn.Linear(32, 100)
model = nn.Sequential(embedding, encoder, head)
optimizer = torch.optim.Adam(model.parameters())
for batch in DataLoader(texts, batch_size=4, collate_fn=collate):
    scores = model(batch["input_ids"])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("loss", loss.item().hex())
