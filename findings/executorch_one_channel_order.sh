#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: a convolution with one input channel, exported in channels_last, cannot be run.
#
# A weight [n, 1, h, w] has the same bytes in both orders, and its strides fit several orders of
# dims. The exporter takes one from the strides and stores (0, 2, 1, 3): neither the usual order nor
# channels_last. Export gives no warning. The portable kernels then refuse the weight (error 0x12),
# and XNNPACK's delegate gets a result whose dims are swapped and cannot resize it (error 0x10). The
# same module in the usual order runs. Transposed convolutions with one output channel fail, too.
#
# Seen: executorch 1.4.1 with torch 2.13.0, portable kernels and XNNPACK.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import copy
import sys

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime


def outcome(module, x, order, partitioners):
    module, x = module.eval().to(memory_format=order), x.to(memory_format=order)
    with torch.no_grad():
        wanted = module(x)
        exported = torch.export.export(module, (x,), strict=True)
    program = to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch()
    try:
        got = Runtime.get().load_program(program.buffer).load_method("forward").execute([x])[0]
    except RuntimeError as error:
        return str(error).split()[-1]
    return "well" if torch.allclose(got, wanted, atol=1e-5) else "other numbers"


torch.manual_seed(0)
ONE, TWO = torch.nn.Conv2d(1, 3, 3), torch.nn.Conv2d(2, 3, 3)
BACK = torch.nn.ConvTranspose2d(3, 1, 3)
USUAL, LAST, XNNPACK = torch.contiguous_format, torch.channels_last, [XnnpackPartitioner()]
CASES = ((ONE, 1, USUAL, [], "well"), (ONE, 1, USUAL, XNNPACK, "well"),
         (ONE, 1, LAST, [], "0x12"), (ONE, 1, LAST, XNNPACK, "0x10"),
         (BACK, 3, USUAL, [], "well"), (BACK, 3, USUAL, XNNPACK, "well"),
         (BACK, 3, LAST, [], "0x12"), (BACK, 3, LAST, XNNPACK, "0x10"),
         (TWO, 2, LAST, [], "well"))
differs = False
for module, channels, order, partitioners, wanted in CASES:
    got = outcome(copy.deepcopy(module), torch.randn(1, channels, 7, 5), order, partitioners)
    print(f"{module}, {order}, {'XNNPACK' if partitioners else 'portable'}: {got}", flush=True)
    differs |= got != wanted
sys.exit(differs)
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 executorch==1.4.1 \
    torchao==0.18.0 numpy==2.4.6
"$folder/venv/bin/python" "$folder/run.py" 2>"$folder/log" || {
    tail -20 "$folder/log"
    exit 1
}
