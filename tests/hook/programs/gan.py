"""Two networks against each other, with an optimizer each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(128, 64)), 16)
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64))
discriminator = nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(16, 1), torch.zeros(16, 1)
for (real,) in train:
    optimizer_d.zero_grad()
    error_real = criterion(discriminator(real), real_label)
    error_real.backward()
    fake = generator(torch.randn(16, 8))
    error_fake = criterion(discriminator(fake.detach()), fake_label)
    error_fake.backward()
    optimizer_d.step()
    optimizer_g.zero_grad()
    error = criterion(discriminator(fake), real_label)
    error.backward()
    optimizer_g.step()
    print("loss", (error_real + error_fake).item().hex(), error.item().hex())
