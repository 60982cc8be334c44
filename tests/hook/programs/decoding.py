"""A decoder with a growing cache, generated from as transformers does it."""

import sys
from types import SimpleNamespace

import torch
from torch import nn
from torch.utils import _python_dispatch
from transformers.generation.utils import GenerationMixin

how = sys.argv[1]


class Decoder(nn.Module, GenerationMixin):
    config = SimpleNamespace(is_encoder_decoder=False)
    generation_config = SimpleNamespace(eos_token_id=None)

    def __init__(self):
        super().__init__()
        self.words, self.mixes = nn.Embedding(100, 64), nn.Linear(64, 64)
        self.scores = nn.Linear(64, 100)

    def forward(self, ids, cache, number, fails=False):
        if fails and number == 20:
            raise ValueError("no more words")
        hidden = self.mixes(self.words(ids))
        cache.append(hidden)
        known = torch.cat(cache, 1)
        hidden = torch.softmax(hidden @ known.mT, -1) @ known
        if how == "beside another":
            other.generate(ids[:, -1:], calls=1)
        if how == "unevenly" and number % 3:
            hidden = torch.matrix_exp(torch.zeros(8, 8))[0, 0] * hidden + self.mixes(hidden)
        return self.scores(hidden[:, -1])


class Other(Decoder):
    def forward(self, ids, cache, number):
        return self.scores(self.words(ids)[:, -1])


torch.manual_seed(0)
model, other = Decoder().eval(), Other().eval()
for step in range(8):
    prompts = torch.randint(10, 100, (4, 12))
    if how == "failing" and step == 2:
        try:
            model.generate(prompts, fails=True)
        except ValueError as error:
            print(error, _python_dispatch._get_current_dispatch_mode_stack())
    print(model.generate(prompts).sum().item(), torch.rand(1).item().hex())
