#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes very small Llamas with transformers' static cache: tests/models/static_cache/model.pte, and
tests/models/long_cache/model.pte, whose caches have several pages for each head.

Their weights are random, so answers mean nothing; tokens are those of tests/models/chat. The tests
want the form of the program: caches that are written by index and read through a mask.

usage: static_cache.py [--out DIR]; needs requirements.txt and transformers
"""
import argparse
import sys
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from pted_server.export.exporter import StaticChat, write_chat  # noqa: E402  beside contrib

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models"


def config(context, layers, ties):
    return LlamaConfig(vocab_size=448, hidden_size=16, intermediate_size=32,
                       num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2,
                       initializer_range=0.2, max_position_embeddings=context, eos_token_id=1,
                       bos_token_id=0, pad_token_id=0, tie_word_embeddings=ties)


MODELS = {"static_cache": config(128, 2, False), "long_cache": config(2048, 1, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    out = parser.parse_args().out
    for name, of in MODELS.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        torch.manual_seed(5)
        model = LlamaForCausalLM(of).eval().requires_grad_(False)
        context = of.max_position_embeddings
        write_chat(StaticChat(model, context), out / name / "model.pte", context)


if __name__ == "__main__":
    main()
