#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the language models of the tests whose steps are several methods: tests/models/prefill/.

The decoder of chat.py, very small and with random weights, reads and writes bytes. `prefill` takes
many tokens and gives the logits of the last one, `decode` takes one token. shared.pte has their
caches in one place (share_mutable_buffers), apart.pte has caches of each method. answers.json has
what eager PyTorch answers, greedily. parts.pte has its embedding and the rest of it as methods of
their own, token_embedding and text_decoder, as ExecuTorch's runner of multimodal models wants them.
mixed.pte has a cache that another method has in other dims.

usage: prefill.py [--out DIR]; needs requirements.txt
"""
import argparse
import json
from pathlib import Path

import torch

import chat

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "prefill"
PROMPTS = ["a", "Hello!", "The quick brown fox jumps over the lazy dog."]
ANSWER_TOKENS = 24
PREFILL_MAX = 32


class Last(torch.nn.Module):
    """The logits of the last token alone; those of printable characters are the greatest."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        ids = torch.arange(chat.VOCAB)
        self.register_buffer("bias", torch.where((ids < 32) | (ids > 126), -100.0, 0.0))

    def forward(self, tokens, input_pos):
        return self.net(tokens, input_pos)[:, -1] + self.bias


class Embedding(torch.nn.Module):
    def __init__(self, net):
        super().__init__()
        self.embed = net.net.embed

    def forward(self, tokens):
        return self.embed(tokens)


class Text(torch.nn.Module):
    """Everything behind the embedding."""

    def __init__(self, net):
        super().__init__()
        self.last = net  # alone: torch 2.13 cannot export parameters that have two names

    def forward(self, embeddings, input_pos):
        return self.last.net.step(embeddings, input_pos)[:, -1] + self.last.bias


def make_net():
    chat.VOCAB, chat.DIM, chat.LAYERS, chat.HEADS, chat.KV_HEADS = 256, 16, 1, 2, 1
    chat.HIDDEN, chat.CONTEXT = 24, 96
    torch.manual_seed(4)
    return Last(chat.Decoder().eval())


def lower(programs, is_shared, has_names, **constants):
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass
    constants = {"get_vocab_size": chat.VOCAB, "get_max_seq_len": chat.CONTEXT, **constants,
                 "use_kv_cache": True}
    return chat.lower(programs, constants, ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=is_shared),
        emit_mutable_buffer_names=has_names))


def export_steps(net, is_shared):
    count = torch.export.Dim("count", min=2, max=PREFILL_MAX)
    programs = {
        "prefill": torch.export.export(
            net, (torch.tensor([[1, 2, 3]]), torch.tensor([0])),
            dynamic_shapes={"tokens": {1: count}, "input_pos": {}}),
        "decode": torch.export.export(net, (torch.tensor([[1]]), torch.tensor([0])))}
    return lower(programs, is_shared, is_shared, get_max_prefill_chunk=PREFILL_MAX,
                 get_min_prefill_chunk=2)


def export_parts(net):
    count = torch.export.Dim("count", min=1, max=chat.CONTEXT - 1)
    more = torch.export.Dim("more", min=1, max=2 * chat.CONTEXT)
    return lower({
        "token_embedding": torch.export.export(
            Embedding(net), (torch.tensor([[1, 2, 3]]),), dynamic_shapes={"tokens": {1: more}}),
        "text_decoder": torch.export.export(
            Text(net), (torch.zeros(1, 3, chat.DIM), torch.tensor([0])),
            dynamic_shapes={"embeddings": {1: count}, "input_pos": {}})}, False, False)


class Flat(torch.nn.Module):
    """A cache of the decoder, under its name, as one row."""

    def __init__(self, net):
        super().__init__()
        self.net = torch.nn.Module()
        self.net.layers = torch.nn.ModuleList([torch.nn.Module()])
        cache = net.net.layers[0].k_cache
        self.net.layers[0].register_buffer("k_cache", cache.reshape(-1).clone())

    def forward(self, x):
        cache = self.net.layers[0].k_cache
        cache.add_(x)
        return cache.sum()


def export_mixed(net):
    return lower({
        "decode": torch.export.export(net, (torch.tensor([[1]]), torch.tensor([0]))),
        "flat": torch.export.export(Flat(net), (torch.tensor([1.0]),))}, False, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    options = parser.parse_args()
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers llama::
    torch.set_num_threads(1)
    net = make_net()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for prompt in PROMPTS:
        said, _ = chat.answer(net, list(prompt.encode()), None, ANSWER_TOKENS)
        rows.append({"prompt": prompt, "answer": bytes(said).decode()})
    (options.out / "answers.json").write_text(json.dumps(rows) + "\n")
    for name, is_shared in (("shared", True), ("apart", False)):
        (options.out / f"{name}.pte").write_bytes(export_steps(make_net(), is_shared))
    (options.out / "parts.pte").write_bytes(export_parts(make_net()))
    (options.out / "mixed.pte").write_bytes(export_mixed(make_net()))


if __name__ == "__main__":
    main()
