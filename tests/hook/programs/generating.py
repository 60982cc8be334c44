"""transformers' ``generate``: of prompts of one length, some ended early, or of growing length."""

import sys

import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(
    n_layer=2, n_embd=64, n_head=4, vocab_size=100, bos_token_id=7, eos_token_id=7, pad_token_id=8
)
model = GPT2LMHeadModel(config).eval()
for step in range(8 if sys.argv[1] == "alike" else 24):
    prompts = torch.randint(10, 100, (4, 12 if sys.argv[1] == "alike" else 10 + 2 * step))
    of_all = model.generate(
        prompts,
        attention_mask=torch.ones_like(prompts),
        generation_config=GenerationConfig(
            max_new_tokens=20 if sys.argv[1] == "alike" else 4,
            min_new_tokens=0 if sys.argv[1] == "alike" else 4,
            do_sample=True,
        ),
    )
    rows = [row[prompts.shape[1] :] for row in of_all.tolist()]
    print("tokens", sum(row.index(7) + 1 if 7 in row else len(row) for row in rows))
