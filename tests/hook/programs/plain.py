"""A classifier: two epochs, each followed by an evaluation; the last batch is smaller."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(72, 64), torch.randint(10, (72,))), 16, shuffle=True)
valid = DataLoader(TensorDataset(torch.randn(64, 64), torch.randint(10, (64,))), 32)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for _ in range(2):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", loss.item().hex())
    model.eval()
    with torch.no_grad():
        total = sum(criterion(model(inputs), labels).item() for inputs, labels in valid)
    print("validation", total.hex())
