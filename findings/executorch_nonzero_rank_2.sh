#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: the result of nonzero() for a matrix has its numbers in the wrong places.
#
# PyTorch's nonzero() gives a result whose columns are contiguous: its strides are (1, n). The
# exporter takes an order of dims from that and stores (1, 0). The portable kernel ignores the order
# and writes row after row, so whoever reads the result by its strides gets other pairs. Nothing
# fails. For one dim both orders are the same, and the result is right.
#
# Expected: [[0, 0], [0, 2], [1, 1], [1, 2]], as eager PyTorch says.
# Seen: [[0, 1], [0, 1], [0, 1], [2, 2]], executorch 1.5.1 with torch 2.13.0, portable kernels.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import sys

import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


class Places(torch.nn.Module):

    def forward(self, x):
        return torch.nonzero(x)


def outcome(x):
    program = to_edge_transform_and_lower(torch.export.export(Places(), (x,))).to_executorch()
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return torch.nonzero(x).tolist(), method.execute([x])[0].tolist()


wanted, got = outcome(torch.tensor([[1, 0, 2], [0, 3, 4]]))
print(f"a matrix: PyTorch {wanted}, ExecuTorch {got}")
differs = got != [[0, 1], [0, 1], [0, 1], [2, 2]]
wanted, got = outcome(torch.tensor([1, 0, 2]))
print(f"a row: PyTorch {wanted}, ExecuTorch {got}")
sys.exit(differs or got != wanted)
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 executorch==1.5.1 \
    torchao==0.18.0 numpy==2.4.6
"$folder/venv/bin/python" "$folder/run.py" 2>"$folder/log" || {
    tail -20 "$folder/log"
    exit 1
}
