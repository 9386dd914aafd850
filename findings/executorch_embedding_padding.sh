#!/bin/sh
# SPDX-License-Identifier: MIT
#
# ExecuTorch: a quantized table of embeddings with a padding_idx cannot be exported.
#
# Weights of 8 bits from torchao's IntxWeightOnlyConfig become a look-up of dequantized rows, which
# to_executorch() fuses to quantized_decomposed::embedding_byte when it is asked to. The patterns
# have look-ups without a padding_idx alone, though that only matters for gradients. With one,
# torchao::dequantize_affine stays in the graph, and no kernel exists for it. Tables of tokens of
# Whisper and BERT have one.
#
# Expected: both tables are exported, as each look-up has the same result.
# Seen: "Missing out variants: {'torchao::dequantize_affine'}" for the table with padding_idx;
#   executorch 1.5.1, torch 2.13.0, torchao 0.18.0.
# Needs: python3.11 with venv, pip with PyPI, 3 GB. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/run.py" <<'END'
import sys

import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
from torchao.quantization.granularity import PerAxis
from torchao.quantization.quant_api import IntxWeightOnlyConfig, quantize_


def outcome(**options):
    table = torch.nn.Sequential(torch.nn.Embedding(10, 32, **options)).eval()
    quantize_(table, IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0)),
              lambda module, name: isinstance(module, torch.nn.Embedding))
    program = to_edge_transform_and_lower(
        torch.export.export(table, (torch.tensor([[1, 2]]),)),
        compile_config=EdgeCompileConfig(_check_ir_validity=False))
    try:
        program.to_executorch(ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True))
    except RuntimeError as error:
        return str(error)
    return "exported"


plain, padded = outcome(), outcome(padding_idx=0)
print(f"without padding_idx: {plain}\nwith padding_idx=0: {padded}")
sys.exit(plain != "exported" or padded != "Missing out variants: {'torchao::dequantize_affine'}")
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 executorch==1.5.1 \
    torchao==0.18.0 numpy==2.4.6
"$folder/venv/bin/python" "$folder/run.py" 2>"$folder/log" || {
    tail -20 "$folder/log"
    exit 1
}
