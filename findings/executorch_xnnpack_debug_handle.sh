#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: the debug handle of a fused XNNPACK convolution names a value that the delegate does
# not have.
#
# In Conv2d, BatchNorm2d and relu the exporter gives three nodes the debug handles 1, 2 and 3. The
# XNNPACK delegate makes one node of them. Its handle is 1, that of the convolution, while its value
# is that of the relu: the norm is in its weights, the relu in the bounds of its output. Handles 2
# and 3 are in no node of the payload. A tool that compares values by their handles compares the
# value of the relu with that of the convolution and finds a difference in a program that is right.
#
# Seen: executorch 1.4.1 with torch 2.13.0.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import sys

import torch
from executorch.backends.xnnpack import xnnpack_preprocess
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.runtime import Runtime

serialize, payloads = xnnpack_preprocess.serialize_xnnpack_binary, []


def keep_and_serialize(graph, *arguments, **options):
    payloads.append(graph)
    return serialize(graph, *arguments, **options)


xnnpack_preprocess.serialize_xnnpack_binary = keep_and_serialize
torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


net, x = Net().eval(), torch.randn(1, 3, 8, 8)
with torch.no_grad():
    net.norm.running_mean.uniform_(-1, 1)
    net.norm.running_var.uniform_(0.5, 2)
edge = to_edge_transform_and_lower(torch.export.export(net, (x,), strict=True),
                                   partitioner=[XnnpackPartitioner()], generate_etrecord=True)
program = edge.to_executorch()
handles = {node.meta["debug_handle"]: node.name
           for node in program.get_etrecord().edge_dialect_program.graph.nodes
           if node.op == "call_function" and node.name != "getitem"}
(fused,) = [node for node in payloads[0].xnodes if type(node.xnode_union).__name__ == "XNNConv2d"]
others = [node.debug_handle for node in payloads[0].xnodes if node is not fused]
got = Runtime.get().load_program(program.buffer).load_method("forward").execute([x])[0]
with torch.no_grad():
    values = {"convolution": net.conv(x), "batch norm": net.norm(net.conv(x)), "relu": net(x)}
equal = [name for name, value in values.items() if torch.allclose(got, value, atol=1e-5)]
print(f"handles {handles}")
print(f"the payload's convolution has handle {fused.debug_handle} "
      f"({handles.get(fused.debug_handle)}), other nodes {others}; its value is that of {equal}")
sys.exit((handles.get(fused.debug_handle), equal) != ("aten_convolution_default", ["relu"]) or
         bool({2, 3} & set(others)))
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 executorch==1.4.1 \
    torchao==0.18.0 numpy==2.4.6
"$folder/venv/bin/python" "$folder/run.py" 2>"$folder/log" || {
    tail -20 "$folder/log"
    exit 1
}
