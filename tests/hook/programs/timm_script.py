"""A training as timm's script does it: its model, optimizer, scheduler, clipping and average."""

import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch
from torch.utils.data import TensorDataset

torch.set_num_threads(1)
timm.utils.random_seed(0)
model = timm.create_model("resnet18", num_classes=10)
ema = timm.utils.ModelEmaV3(model, decay=0.9)
optimizer = timm.optim.create_optimizer_v2(model, "adamw", lr=1e-3, weight_decay=0.05)
scheduler = timm.scheduler.CosineLRScheduler(optimizer, t_initial=2)
criterion = timm.loss.LabelSmoothingCrossEntropy()
data = TensorDataset(torch.randn(24, 3, 32, 32), torch.randint(10, (24,)))
loader = torch.utils.data.DataLoader(data, 4, shuffle=True, drop_last=True)
losses = timm.utils.AverageMeter()
for epoch in range(2):
    model.train()
    optimizer.zero_grad()
    for number, (images, labels) in enumerate(loader):
        updates = number % 2 == 1  # gradients of two batches
        loss = criterion(model(images), labels) / 2
        loss.backward()
        if updates:
            timm.utils.dispatch_clip_grad(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            ema.update(model)
        losses.update(loss.item(), images.size(0))
        print("loss", loss.item().hex())
    scheduler.step(epoch + 1)
    model.eval()
    with torch.no_grad():
        top1, top5 = timm.utils.accuracy(ema(images), labels, topk=(1, 5))
    print("validation", top1.item(), top5.item(), losses.avg)
