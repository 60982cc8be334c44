"""Batches drawn by hand, as small language models do it; losses are estimated now and then."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
text = torch.randint(50, (4096,))
model = nn.Sequential(nn.Embedding(50, 32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 50))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def get_batch():
    at = torch.randint(len(text) - 17, (8,))
    return torch.stack([text[i : i + 16] for i in at]), torch.stack(
        [text[i + 1 : i + 17] for i in at]
    )


def loss_of(x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def estimate_loss():
    return torch.stack([loss_of(*get_batch()) for _ in range(5)]).mean()


for step in range(8):
    if step % 2 == 0:
        print("estimate", estimate_loss().item().hex())
    loss = loss_of(*get_batch())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("loss", loss.item().hex())
