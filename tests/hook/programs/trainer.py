"""transformers' Trainer on a small Llama, with accumulation and an evaluation each epoch."""

import sys

import torch
from torch.utils.data import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments


class Texts(Dataset):
    def __init__(self, texts):
        self.ids = torch.randint(0, 100, (texts, 32))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i]}


class Printing(Trainer):
    def training_step(self, *arguments, **named):
        loss = super().training_step(*arguments, **named)
        print("loss", loss.item().hex())
        return loss


torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=100,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
)
arguments = TrainingArguments(
    sys.argv[1],
    per_device_train_batch_size=4,
    gradient_accumulation_steps=2,
    num_train_epochs=2,
    eval_strategy="epoch",
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
model = LlamaForCausalLM(config)
Printing(model=model, args=arguments, train_dataset=Texts(34), eval_dataset=Texts(8)).train()
