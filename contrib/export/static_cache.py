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
from pted_export import StaticChat, write_chat
from transformers import LlamaConfig, LlamaForCausalLM

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "static_cache"
CONTEXT = 128
CONFIG = LlamaConfig(vocab_size=448, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
                     num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2,
                     max_position_embeddings=CONTEXT, eos_token_id=1, bos_token_id=0,
                     pad_token_id=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    model = LlamaForCausalLM(CONFIG).eval().requires_grad_(False)
    write_chat(StaticChat(model, CONTEXT), out / "model.pte", CONTEXT)


if __name__ == "__main__":
    main()
