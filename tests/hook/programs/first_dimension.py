"""Images of a batch in a list, as detection has them: the first tensor begins with its colours."""

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
torch.set_num_threads(1)
images = [(torch.randn(3, 8, 8), {"boxes": torch.rand(1 + i % 3, 4)}) for i in range(32)]
model = nn.Conv2d(3, 4, 3, padding=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(images, 4, collate_fn=list):
    optimizer.zero_grad()
    loss = sum(model(image[None]).mean() * of["boxes"].sum() for image, of in batch)
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
