#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/static_cache/model.pte: a very small Llama with transformers' static cache.

Its weights are random, so answers mean nothing; tokens are those of tests/models/chat. The tests
want the form of the program: caches that are written by index and read through a mask.

usage: static_cache.py [--out DIR]; needs requirements.txt and transformers
"""
import argparse
from pathlib import Path

import torch
from pted_export import begin_at, cache_for, export_methods
from transformers import LlamaConfig, LlamaForCausalLM

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "static_cache"
CONTEXT, END = 128, 1
CONFIG = LlamaConfig(vocab_size=448, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                     num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2,
                     max_position_embeddings=CONTEXT, eos_token_id=END, bos_token_id=0,
                     pad_token_id=0)


class Chat(torch.nn.Module):
    """Some tokens, and the position of the first one."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        config = model.config
        self.cache = cache_for(self, "cache", config, config.num_key_value_heads,
                               config.hidden_size // config.num_attention_heads, CONTEXT)

    def forward(self, tokens, input_pos):
        begin_at(self.cache, input_pos)
        places = input_pos + torch.arange(tokens.shape[1])
        out = self.model(input_ids=tokens, position_ids=places.unsqueeze(0), use_cache=True,
                         past_key_values=self.cache, logits_to_keep=1)
        return out.logits[:, -1]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    model = LlamaForCausalLM(CONFIG).eval().requires_grad_(False)
    count = torch.export.Dim("count", min=1, max=CONTEXT - 1)
    with torch.no_grad():
        program = torch.export.export(
            Chat(model), (torch.tensor([[1, 2, 3]]), torch.tensor([0])),
            dynamic_shapes={"tokens": {1: count}, "input_pos": None}, strict=True)
    export_methods({"forward": program},
                   {"get_vocab_size": CONFIG.vocab_size, "get_max_seq_len": CONTEXT,
                    "get_max_context_len": CONTEXT, "get_eos_ids": [END], "use_kv_cache": True},
                   out / "model.pte", "xnnpack")


if __name__ == "__main__":
    main()
