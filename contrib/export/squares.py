#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/squares.pte: a detector and a segmentation of red, green and blue squares.

A picture of 48 x 64 has 6 x 8 cells. The score of a class is the mean of its colour in the cell, so
that tests know what is found without training.

usage: squares.py; needs requirements.txt
"""
from pathlib import Path

import torch
from executorch.exir import to_edge
from torch import nn
from torch.export import Dim, export

MODEL = Path(__file__).resolve().parents[2] / "tests" / "models" / "squares.pte"
HEIGHT, WIDTH, CELL = 48, 64, 8


class Boxes(nn.Module):
    """Centre, size and three scores of each cell: [n, 7, 48]."""

    def __init__(self):
        super().__init__()
        y, x = torch.meshgrid(torch.arange(0, HEIGHT, CELL), torch.arange(0, WIDTH, CELL),
                              indexing="ij")
        sides = torch.full_like(x, CELL)
        cells = torch.stack([x + CELL / 2, y + CELL / 2, sides, sides]).flatten(1)
        self.register_buffer("cells", cells.float()[None])

    def forward(self, picture):
        scores = nn.functional.avg_pool2d(picture, CELL).flatten(2)
        return torch.cat([self.cells.expand(scores.shape[0], -1, -1), scores], 1)


class Map(nn.Module):
    """Scores of the ground and of three classes for each pixel: [n, 4, 48, 64]."""

    def forward(self, picture):
        return torch.cat([picture[:, :1] * 0 + 0.5, picture], 1)


def main():
    rows = {0: Dim("rows", max=4)}
    picture = torch.rand(2, 3, HEIGHT, WIDTH)
    methods = {name: export(module, (picture,), dynamic_shapes=(rows,))
               for name, module in (("boxes", Boxes()), ("map", Map()))}
    MODEL.write_bytes(to_edge(methods).to_executorch().buffer)


if __name__ == "__main__":
    main()
