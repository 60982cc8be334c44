"""A program that counts its own FLOP, and looks at shapes without data, in some of its steps."""

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(128, 64), torch.randint(10, (128,))), 16)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (inputs, labels) in enumerate(train, 1):
    optimizer.zero_grad()
    with FakeTensorMode():
        shape = nn.Linear(64, 1000)(torch.randn(16, 64)).shape
    own = FlopCounterMode(display=False)
    with own:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        if i == 2:
            optimizer.step()
    if i != 2:
        optimizer.step()
    print("loss", loss.item().hex(), own.get_total_flops(), shape)
