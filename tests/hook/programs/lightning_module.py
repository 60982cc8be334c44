"""A LightningModule with a validation each epoch."""

import lightning as L
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def training_step(self, batch, _):
        inputs, labels = batch
        loss = F.cross_entropy(self.model(inputs), labels)
        print(loss.item().hex())
        return loss

    def validation_step(self, batch, _):
        inputs, labels = batch
        print("validation", F.cross_entropy(self.model(inputs), labels).item().hex())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


L.seed_everything(0)
data = TensorDataset(torch.randn(100, 64), torch.randint(0, 10, (100,)))
trainer = L.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Classifier(), DataLoader(data, 16), DataLoader(data, 50))
