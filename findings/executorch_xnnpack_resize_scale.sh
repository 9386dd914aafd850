#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: XNNPACK resizes by another factor than interpolate(scale_factor=...) asks for.
#
# With scale_factor 1.7, seven columns become floor(11.9) = 11, and PyTorch reads column x of the
# result at (x + 0.5) / 1.7 - 0.5 of the input. The exporter hands the resize to XNNPACK with the
# size alone, whose factor is then 11 / 7. The results differ by as much as neighbouring pixels do,
# without a warning. Where the size comes out whole (factor 2), or with align_corners, a size or
# recompute_scale_factor=True, nothing differs; the portable kernels get the factor and agree.
#
# Seen: executorch 1.4.1 with torch 2.13.0, XNNPACK; 1.5.1 with torch 2.14.1 does the same.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


class Resize(torch.nn.Module):
    def __init__(self, options):
        super().__init__()
        self.options = options

    def forward(self, x):
        return torch.nn.functional.interpolate(x, mode="bilinear", **self.options)


X = torch.rand(1, 2, 6, 7, generator=torch.Generator().manual_seed(0))
CASES = (({"scale_factor": 1.7}, [], False), ({"scale_factor": 1.7}, [XnnpackPartitioner()], True),
         ({"scale_factor": 2.5}, [XnnpackPartitioner()], True),
         ({"scale_factor": 2.0}, [XnnpackPartitioner()], False),
         ({"scale_factor": 1.7, "recompute_scale_factor": True}, [XnnpackPartitioner()], False),
         ({"scale_factor": 1.7, "align_corners": True}, [XnnpackPartitioner()], False),
         ({"size": (10, 11)}, [XnnpackPartitioner()], False))
changed = False
for options, partitioners, expected in CASES:
    net = Resize(options).eval()
    exported = torch.export.export(net, (X,))
    program = to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch()
    got = Runtime.get().load_program(program.buffer).load_method("forward").execute([X])[0]
    away = (got - net(X)).abs().max().item()
    print(f"{options}, {'XNNPACK' if partitioners else 'portable'}: {away:.1e} away", flush=True)
    changed |= (away > 0.01) != expected
sys.exit(changed)
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 executorch==1.4.1 \
    torchao==0.18.0 numpy==2.4.6
"$folder/venv/bin/python" "$folder/run.py" 2>"$folder/log" || {
    tail -20 "$folder/log"
    exit 1
}
