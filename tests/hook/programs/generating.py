"""transformers' ``generate``: greedy, of prompts of one length, some ended early."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    n_layer=2, n_embd=64, n_head=4, vocab_size=100, bos_token_id=7, eos_token_id=7, pad_token_id=8
)
model = GPT2LMHeadModel(config).eval()
for _ in range(8):
    prompts = torch.randint(10, 100, (4, 12))
    of_all = model.generate(
        prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=20, do_sample=True
    )
    rows = [row[12:] for row in of_all.tolist()]
    print("tokens", sum(row.index(7) + 1 if 7 in row else len(row) for row in rows))
