#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the programs of the tests of shared weights: tests/models/weights/, with what PyTorch
computes in answers.json.

one.pte has one method, two.pte two methods over the same weights. base.pte and adapter.pte are two
programs over foundation.ptd, as ExecuTorch writes adapters: the base's weights are in a data file,
the adapter's own are in its program. copy.pte is the base with its weights inside.

usage: weights.py [--out DIR] [--size N] [--layers N]; needs ExecuTorch 1.4 or newer
"""
import argparse
import json
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.passes.external_constants_pass import (
    delegate_external_constants_pass_unlifted)
from torch import nn

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "weights"
RANK = 4


class Base(nn.Module):
    def __init__(self, size, layers):
        super().__init__()
        self.base = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))

    def forward(self, x):
        for layer in self.base:
            x = torch.relu(layer(x)) + x
        return x


class Adapter(nn.Module):
    """The same layers, each with a product of low rank beside it."""

    def __init__(self, base, size):
        super().__init__()
        self.base = base.base
        self.down = nn.ModuleList(nn.Linear(size, RANK, bias=False) for _ in self.base)
        self.up = nn.ModuleList(nn.Linear(RANK, size, bias=False) for _ in self.base)

    def forward(self, x):
        for layer, down, up in zip(self.base, self.down, self.up):
            x = torch.relu(layer(x) + up(down(x))) + x
        return x


def lower(methods, is_external=False):
    """A program of |methods|: names with modules and inputs."""
    programs = {}
    for name, (module, x) in methods.items():
        program = torch.export.export(module.eval(), (x,))
        if is_external:
            unlifted = program.module()
            delegate_external_constants_pass_unlifted(
                unlifted, gen_tag_fn=lambda node: (
                    "foundation" if str(node.target).startswith("base.") else None))
            program = torch.export.export(unlifted, (x,))
        programs[name] = program
    partitioners = {name: [XnnpackPartitioner()] for name in programs}
    return to_edge_transform_and_lower(programs, partitioner=partitioners).to_executorch()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    args.out.mkdir(parents=True, exist_ok=True)
    base = Base(args.size, args.layers)
    adapter = Adapter(base, args.size)
    one, four = torch.ones(1, args.size), torch.ones(4, args.size)
    programs = {
        "one": lower({"decode": (base, one)}),
        "two": lower({"prefill": (base, four), "decode": (base, one)}),
        "copy": lower({"forward": (base, one)}),
        "base": lower({"forward": (base, one)}, is_external=True),
        "adapter": lower({"forward": (adapter, one)}, is_external=True),
    }
    for name, program in programs.items():
        (args.out / f"{name}.pte").write_bytes(program.buffer)
    programs["adapter"].write_tensor_data_to_file(str(args.out))
    with torch.no_grad():
        answers = {"base": base(one)[0].tolist(), "adapter": adapter(one)[0].tolist()}
    (args.out / "answers.json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
