#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports the networks that tests/bench/arm.py counts: NAME.pte, NAME.onnx, and NumPy arrays of an
input and of PyTorch's result, NAME.in.npy and NAME.out.npy.

Those of tests/bench/peers.py are exported as there. Beside them are one layer of BERT, and a small
decoder in the form of Llama, once with one token behind 128 earlier ones, which are constants, and
once with a prompt of 128 tokens. The weights are random.

It takes the packages of tests/bench/peers.txt.

usage: arm_networks.py FOLDER [NAME]...
"""
import argparse
from pathlib import Path

import peers

FROM_PEERS = ("mobilenet_v2", "resnet18", "vit_tiny", "mobilenet_v2_int8", "resnet18_int8")
BERT_TOKENS = 128
PAST = 128
DECODERS = {"decoder_token": (1, PAST), "decoder_prompt": (128, 0)}  # new tokens, earlier ones
LAYERS, WIDTH, HEADS, KEY_HEADS, HIDDEN, VOCABULARY = 4, 512, 8, 4, 1408, 4096
HEAD = WIDTH // HEADS
NAMES = (*FROM_PEERS, "bert_layer", *DECODERS)


def make_bert_layer():
    import torch
    from transformers import BertConfig, BertModel
    torch.manual_seed(0)
    model = BertModel(BertConfig(num_hidden_layers=1, attn_implementation="eager"),
                      add_pooling_layer=False)
    return (peers.take_result(model, "last_hidden_state").eval(),
            torch.randint(model.config.vocab_size, (1, BERT_TOKENS)))


def make_decoder(new, past):
    import torch
    from torch import nn
    torch.manual_seed(0)

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(WIDTH))

        def forward(self, x):
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            narrow = KEY_HEADS * HEAD
            self.norm, self.norm_hidden = Norm(), Norm()
            self.query, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
            self.key, self.value = (nn.Linear(WIDTH, narrow, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
            self.down = nn.Linear(HIDDEN, WIDTH, bias=False)
            for name in ("keys", "values"):
                self.register_buffer(name, torch.randn(1, KEY_HEADS, past, HEAD))
            rates = 10000 ** -(torch.arange(0, HEAD, 2) / HEAD)
            at = torch.arange(past, past + new)[:, None] * rates
            self.register_buffer("cosine", at.cos().repeat(1, 2))
            self.register_buffer("sine", at.sin().repeat(1, 2))
            seen = torch.ones(new, past + new).tril(past)
            self.register_buffer("mask", torch.where(seen > 0, 0.0, -torch.inf))

        def turn(self, x):
            low, high = x.chunk(2, -1)
            return x * self.cosine + torch.cat((-high, low), -1) * self.sine

        def heads(self, x, count):
            return x.view(1, new, count, HEAD).transpose(1, 2)

        def attend(self, x):
            query = self.turn(self.heads(self.query(x), HEADS))
            key = self.turn(self.heads(self.key(x), KEY_HEADS))
            value = self.heads(self.value(x), KEY_HEADS)
            if past:
                key = torch.cat((self.keys, key), 2)
                value = torch.cat((self.values, value), 2)
            key, value = (one.repeat_interleave(HEADS // KEY_HEADS, 1) for one in (key, value))
            scores = query @ key.transpose(2, 3) / HEAD ** 0.5 + self.mask
            return (scores.softmax(-1) @ value).transpose(1, 2).reshape(1, new, WIDTH)

        def forward(self, x):
            x = x + self.out(self.attend(self.norm(x)))
            y = self.norm_hidden(x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, WIDTH)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.norm, self.head = Norm(), nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens):
            x = self.embed(tokens)
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x[:, -1:]))

    return Decoder().eval(), torch.randint(VOCABULARY, (1, new))


def export(name, folder):
    if name in FROM_PEERS:
        peers.import_torchvision()
        peers.export(name, folder)
        return
    import numpy
    import torch
    peers.import_torchvision()
    model, value = make_bert_layer() if name == "bert_layer" else make_decoder(*DECODERS[name])
    with torch.no_grad():
        numpy.save(folder / f"{name}.out.npy", model(value).numpy())
    numpy.save(folder / f"{name}.in.npy", value.numpy())
    peers.export_pte(model, value, folder / f"{name}.pte")
    peers.export_onnx(model, value, folder / f"{name}.onnx")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=(*NAMES, []))
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.names or NAMES:
        export(name, args.folder)


if __name__ == "__main__":
    main()
