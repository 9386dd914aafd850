#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: an int argument with a dynamic value becomes an input that takes nothing.
#
# torch.export takes an int whose value may vary (Dim.DYNAMIC, or Dim.AUTO), and the exported
# program computes with each value. Expected: an input of type int, or an error of the exporter.
# Instead to_executorch() writes None for the input and for all that is computed from it, without a
# warning; the runtime then refuses an int for it, and computes nothing with None. The way out is to
# pass the number as a tensor, and to read it with item().
#
# Seen: executorch 1.4.1 with torch 2.13.0: set_inputs() fails with error 0x12.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import sys

import torch
from executorch.exir import to_edge
from executorch.runtime import Runtime


class Double(torch.nn.Module):
    def forward(self, x, k):
        return x + k * 2


class DoubleItem(torch.nn.Module):
    def forward(self, x, k):
        return x + k.item() * 2


def outcome(net, args, others, shapes=None):
    """What the exported program and ExecuTorch's runtime make of other arguments."""
    exported = torch.export.export(net, args, dynamic_shapes=shapes)
    want = exported.module()(*others)
    program = to_edge(exported).to_executorch()
    first = [value.val for value in program.executorch_program.execution_plan[0].values]
    nothing = sum(type(value).__name__ == "Null" for value in first)
    try:
        method = Runtime.get().load_program(program.buffer).load_method("forward")
        got = method.execute(list(others))[0]
        return f"{'right' if torch.equal(got, want) else 'wrong'}, {nothing and 'nothing'}"
    except RuntimeError as error:
        return f"{str(error)[:20]}, {nothing and 'nothing'}"


x = torch.ones(3)
CASES = (("an int", (Double(), (x, 3), (x, 5), (None, torch.export.Dim.DYNAMIC))),
         ("a tensor", (DoubleItem(), (x, torch.tensor(3)), (x, torch.tensor(5)))))
found = {name: outcome(*args) for name, args in CASES}
for name, text in found.items():
    print(f"{name}: {text}", flush=True)
sys.exit(found["an int"] != "method->set_inputs(), nothing" or
         not found["a tensor"].startswith("right"))
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 executorch==1.4.1 \
    torchao==0.18.0 numpy==2.4.6
"$folder/venv/bin/python" "$folder/run.py" 2>"$folder/log" || {
    tail -20 "$folder/log"
    exit 1
}
