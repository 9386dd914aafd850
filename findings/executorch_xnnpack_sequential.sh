#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: a Sequential of a convolution and a batch normalization cannot be lowered to XNNPACK.
#
# The weights of torch.nn.Sequential have names that begin with a digit ("0.weight"). The pass that
# folds the normalization makes "0_weight_fused_bn" of it, but the node that it adds cannot have
# such a name, so it does not find its own node again: ValueError: '0_weight_fused_bn' is not in
# list. The same layers with names of letters, or as attributes of a module, are lowered, and so is
# the Sequential without the delegate or without the normalization.
#
# Seen: executorch 1.4.1 with torch 2.13.0.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import sys
from collections import OrderedDict

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower


def outcome(module, partitioners):
    exported = torch.export.export(module.eval(), (torch.randn(1, 3, 7, 7),), strict=True)
    try:
        to_edge_transform_and_lower(exported, partitioner=partitioners).to_executorch()
    except Exception as error:
        return str(error.__cause__)
    return "well"


def layers():
    return torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)


MISSING = "'0_weight_fused_bn' is not in list"
Sequential, XNNPACK = torch.nn.Sequential, [XnnpackPartitioner()]
CASES = (("numbers", Sequential(*layers()), XNNPACK, MISSING),
         ("portable", Sequential(*layers()), [], "well"),
         ("letters", Sequential(OrderedDict(zip("ab", layers()))), XNNPACK, "well"),
         ("no normalization", Sequential(layers()[0], torch.nn.ReLU()), XNNPACK, "well"))
differs = False
for name, module, partitioners, wanted in CASES:
    got = outcome(module, partitioners)
    print(f"{name}: {got}", flush=True)
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
