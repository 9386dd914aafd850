#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/exported: folders as transformers' own exporter writes them.

A very small Llama with random weights and one token for each printable character. `static` has a
cache of a fixed size, `growing` the exporter's default, whose results have more rows than its
inputs. `window` and `wide` are Mistrals of one layer that grow, too, but whose tokens see the last
ones only: fewer and more than the caches hold. They are in the only file that they need. Tokenizer
and chat template are beside the programs. answers.json has what generate() of transformers answers,
greedily.

usage: exported.py [--out DIR]; needs torch 2.13, transformers 5.24 and executorch 1.5.1
"""
import argparse
import json
from pathlib import Path

import torch

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "exported"
SPECIAL = ["<pad>", "<s>", "</s>", "<user>", "<bot>"]
TEMPLATE = ("{% for m in messages %}<{% if m['role'] == 'user' %}user{% else %}bot{% endif %}>"
            "{{ m['content'] }}</s>{% endfor %}{% if add_generation_prompt %}<bot>{% endif %}")
ROWS, ANSWER_TOKENS = 96, 20
WINDOWS = {"window": 12, "wide": 128}
CHATS = [["Hi"], ["What is it?"], ["one", "two"]]


def make_tokenizer():
    from tokenizers import AddedToken, Tokenizer, decoders, models
    words = SPECIAL + [chr(c) for c in range(32, 127)]
    tokenizer = Tokenizer(models.BPE(vocab={word: i for i, word in enumerate(words)}, merges=[]))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in SPECIAL])
    return tokenizer


def make_model(vocab, window=None):
    from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
    torch.manual_seed(1)
    sizes = {"vocab_size": vocab, "hidden_size": 16, "intermediate_size": 24,
             "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
             "max_position_embeddings": 256, "initializer_range": 0.4, "pad_token_id": 0,
             "bos_token_id": 1, "eos_token_id": 2}
    if window:
        sizes["num_hidden_layers"] = 1
        return MistralForCausalLM(MistralConfig(**sizes, sliding_window=window)).eval()
    return LlamaForCausalLM(LlamaConfig(**sizes)).eval()


def answers(model, tokenizer):
    from jinja2 import Template
    rows = []
    for chat in CHATS:
        messages = []
        for asked in chat:
            messages.append({"role": "user", "content": asked})
            prompt = Template(TEMPLATE).render(messages=messages, add_generation_prompt=True)
            ids = tokenizer.encode(prompt).ids
            out = model.generate(torch.tensor([ids]), do_sample=False, eos_token_id=-1,
                                 max_new_tokens=ANSWER_TOKENS)[0, len(ids):].tolist()
            rows.append({"messages": list(messages), "ids": ids, "answer_ids": out,
                         "answer": tokenizer.decode(out)})
            messages.append({"role": "assistant", "content": rows[-1]["answer"]})
    return rows


def export(model, folder, is_static):
    from transformers import GenerationConfig
    from transformers.exporters.exporter_executorch import ExecutorchConfig, ExecutorchExporter
    ids = torch.randint(5, 100, (1, 7))
    config = GenerationConfig(cache_implementation="static", max_cache_len=ROWS, max_new_tokens=2)
    exported = ExecutorchExporter().export_for_generation(
        model, {"input_ids": ids, "attention_mask": torch.ones_like(ids)},
        ExecutorchConfig(dynamic=True), generation_config=config if is_static else None,
        multi_token_decode=True)
    exported.save_pretrained(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = make_tokenizer()
    vocab = tokenizer.get_vocab_size()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, file in (("growing", "answers.json"), ("window", "window_answers.json"),
                       ("wide", "wide_answers.json")):
        rows = answers(make_model(vocab, WINDOWS.get(name)), tokenizer)
        (options.out / file).write_text(json.dumps(rows, indent=1) + "\n")
    for name in ("static", "growing", *WINDOWS):
        folder = options.out / name
        export(make_model(vocab, WINDOWS.get(name)), folder, name == "static")
        if name in WINDOWS:
            for beside in ("prefill.pte", "config.json"):
                (folder / beside).unlink()
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        (folder / "tokenizer_config.json").write_text(
            json.dumps({"chat_template": TEMPLATE, "eos_token": "</s>"}) + "\n")


if __name__ == "__main__":
    main()
