#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the language models of the tests whose steps are two methods: tests/models/prefill/.

The decoder of chat.py, very small and with random weights, reads and writes bytes. `prefill` takes
many tokens and gives the logits of the last one, `decode` takes one token. shared.pte has their
caches in one place (share_mutable_buffers), apart.pte has caches of each method. answers.json has
what eager PyTorch answers, greedily.

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


def make_net():
    chat.VOCAB, chat.DIM, chat.LAYERS, chat.HEADS, chat.KV_HEADS = 256, 16, 1, 2, 1
    chat.HIDDEN, chat.CONTEXT = 24, 96
    torch.manual_seed(4)
    return Last(chat.Decoder().eval())


def answer(net, ids):
    with torch.no_grad():
        for layer in net.net.layers:
            layer.k_cache.zero_()
            layer.v_cache.zero_()
        out, chunk, position = [], ids, 0
        while len(out) < ANSWER_TOKENS:
            logits = net(torch.tensor([chunk]), torch.tensor([position]))
            position += len(chunk)
            chunk = [int(logits[0].argmax())]
            out += chunk
    return out


def export_program(net, is_shared):
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import (EdgeCompileConfig, ExecutorchBackendConfig,
                                 to_edge_transform_and_lower)
    from executorch.exir.passes import MemoryPlanningPass
    count = torch.export.Dim("count", min=2, max=PREFILL_MAX)
    programs = {
        "prefill": torch.export.export(
            net, (torch.tensor([[1, 2, 3]]), torch.tensor([0])),
            dynamic_shapes={"tokens": {1: count}, "input_pos": {}}),
        "decode": torch.export.export(net, (torch.tensor([[1]]), torch.tensor([0])))}
    constants = {"get_vocab_size": chat.VOCAB, "get_max_seq_len": chat.CONTEXT,
                 "get_max_prefill_chunk": PREFILL_MAX, "get_min_prefill_chunk": 2,
                 "use_kv_cache": True}
    return to_edge_transform_and_lower(
        programs, partitioner=[XnnpackPartitioner()], constant_methods=constants,
        compile_config=EdgeCompileConfig(_check_ir_validity=False)).to_executorch(
            ExecutorchBackendConfig(
                memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=is_shared),
                emit_mutable_buffer_names=is_shared)).buffer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    options = parser.parse_args()
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers llama::
    torch.set_num_threads(1)
    net = make_net()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [{"prompt": prompt, "answer": bytes(answer(net, list(prompt.encode()))).decode()}
            for prompt in PROMPTS]
    (options.out / "answers.json").write_text(json.dumps(rows) + "\n")
    for name, is_shared in (("shared", True), ("apart", False)):
        (options.out / f"{name}.pte").write_bytes(export_program(make_net(), is_shared))


if __name__ == "__main__":
    main()
