#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the programs of the tests of `pte compare`: tests/models/layers/, with what PyTorch
computes in net.npz.

xnnpack.pte and portable.pte are the same network, with and without a delegate; int8.pte is it
quantized. Of the others one layer is different: head.pte has another bias, middle.pte another
weight of a norm, and the first convolution of stem.pte has the opposite sign.

usage: layers.py [--out DIR]; needs requirements.txt
"""
import argparse
import copy
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

from models_xnnpack import int8

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from pted_server.export import export, record  # noqa: E402  beside contrib

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "layers"


class Net(nn.Module):
    """A batch norm that is folded, a picture whose channels move, an operator that XNNPACK lacks,
    a branch, and results that are not the last layer's."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(512, 4)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.block(x)
        x = self.norm(torch.cumsum(x, 1))
        return {"scores": self.head(x.flatten(1)).softmax(-1), "best": x.amax()}


def make_net():
    torch.manual_seed(23)
    net = Net().eval()
    with torch.no_grad():
        net.stem[1].running_mean.normal_()
        net.stem[1].running_var.uniform_(0.5, 2)
    return net


def changed(net, change):
    other = copy.deepcopy(net)
    with torch.no_grad():
        change(other)
    return other


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    net, args = make_net(), (torch.randn(1, 3, 8, 8),)
    record(net, args, out / "net.npz")
    programs = {
        "xnnpack": net,
        "head": changed(net, lambda other: other.head.bias[2].add_(0.5)),
        "middle": changed(net, lambda other: other.norm.weight.mul_(1.1)),
        "stem": changed(net, lambda other: other.stem[0].weight.neg_()),
        "int8": int8([args])(torch.export.export(net, args).module()),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, module in programs.items():
            export_alone(module, args, Path(folder), out / f"{name}.pte", "xnnpack")
        export_alone(net, args, Path(folder), out / "portable.pte", "portable")


def export_alone(module, args, folder, path, backend):
    """Without a card, which the tests do not need."""
    export(module, args, folder / path.name, backend=backend)
    path.write_bytes((folder / path.name).read_bytes())


if __name__ == "__main__":
    main()
