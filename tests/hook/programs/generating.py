"""transformers' ``generate``: prompts of one length, some ended early or all long; or growing."""

import sys

import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    n_layer=2, n_embd=64, n_head=4, vocab_size=100, bos_token_id=7, eos_token_id=7, pad_token_id=8
)
model = GPT2LMHeadModel(config).eval()
most, least = {"alike": (20, 0), "long": (40, 40), "growing": (4, 4)}[sys.argv[1]]
for step in range(24 if sys.argv[1] == "growing" else 8):
    prompts = torch.randint(10, 100, (4, 10 + 2 * step if sys.argv[1] == "growing" else 12))
    of_all = model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        generation_config=GenerationConfig(
            max_new_tokens=most, min_new_tokens=least, do_sample=True
        ),
    )
    rows = [row[prompts.shape[1] :] for row in of_all.tolist()]
    print("tokens", sum(row.index(7) + 1 if 7 in row else len(row) for row in rows))
