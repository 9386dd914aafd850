#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/models/media: a program whose methods give back what they are given.

tests/http/run_media.py sends pictures and sounds, and sees in the results what the methods got.

usage: media.py FOLDER
"""
import sys
from pathlib import Path

import torch
from executorch.exir import to_edge
from torch import nn

ROWS = torch.export.Dim("n", min=1, max=16)
LENGTH = torch.export.Dim("length", min=2, max=16000)
HEIGHT, WIDTH = torch.export.Dim("h", min=1, max=30), torch.export.Dim("w", min=1, max=40)
FRAMES = torch.export.Dim("frames", min=2, max=100)


class Same(nn.Module):
    """Its input as floats."""

    def forward(self, x):
        return x.to(torch.float32) * 1.0


class Sums(nn.Module):
    """A number for each row, from two media and an ordinary tensor."""

    def forward(self, picture, sound, bias):
        return picture.to(torch.float32).sum(dim=(1, 2, 3)) + sound.sum(dim=1) + bias


class Brightest(nn.Module):
    """The channel with the largest number, of each pixel."""

    def forward(self, x):
        return x.argmax(1)


def export(module, tensors, dims):
    return torch.export.export(module, tensors, dynamic_shapes=dims, strict=True)


def main():
    methods = {
        "pixels": export(Same(), (torch.zeros(2, 4, 6, 3, dtype=torch.uint8),), ({0: ROWS},)),
        "picture": export(Same(), (torch.zeros(2, 3, 4, 6),), ({0: ROWS},)),
        "second": export(Same(), (torch.zeros(2, 1600),), ({0: ROWS},)),
        "sound": export(Same(), (torch.zeros(2, 400),), ({0: ROWS, 1: LENGTH},)),
        "mel": export(Same(), (torch.zeros(2, 8, 20),), ({0: ROWS, 2: FRAMES},)),
        "sums": export(Sums(), (torch.zeros(2, 2, 2, 3, dtype=torch.uint8), torch.zeros(2, 160),
                                torch.zeros(1)), ({0: ROWS}, {0: ROWS}, None)),
    }
    varying = {0: ROWS, 2: HEIGHT, 3: WIDTH}
    sizes = {"forward": export(Same(), (torch.zeros(2, 3, 4, 6),), (varying,)),
             "map": export(Brightest(), (torch.zeros(2, 3, 4, 6),), (varying,))}
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pte").write_bytes(to_edge(methods).to_executorch().buffer)
    (folder / "sizes.pte").write_bytes(to_edge(sizes).to_executorch().buffer)


if __name__ == "__main__":
    main()
