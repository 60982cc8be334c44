"""A loop of accelerate: accumulation, clipping, a scheduler, and an evaluation each epoch."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)


def batches(samples, shuffle):
    inputs, labels = torch.randn(samples, 64), torch.randint(10, (samples,))
    return DataLoader(TensorDataset(inputs, labels), 8, shuffle=shuffle)


model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
model, optimizer, train, test, scheduler = accelerator.prepare(
    model, optimizer, batches(68, True), batches(24, False), scheduler
)
for _ in range(2):
    model.train()
    for inputs, labels in train:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        print("loss", loss.item().hex())
    model.eval()
    with torch.no_grad():
        for inputs, labels in test:
            right = accelerator.gather_for_metrics(model(inputs).argmax(1) == labels)
            print("right", right.sum().item())
