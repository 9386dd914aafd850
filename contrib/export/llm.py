#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/llm/model.pte: a very small Llama, as ExecuTorch's own export_llm writes it.

Its weights are random, so answers mean nothing; tokens are those of tests/models/chat. The tests
want the form of the program: export_llm of 1.5.1 reads input_pos again for each cache and each
attention.

usage: llm.py [--out DIR]; needs executorch 1.5.1, hydra-core, torchao and some minutes
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "llm"
VOCAB, LENGTH, CONTEXT, END = 448, 128, 256, 1
PARAMS = {"dim": 32, "n_layers": 2, "n_heads": 2, "n_kv_heads": 1, "hidden_dim": 64,
          "vocab_size": VOCAB, "multiple_of": 32, "norm_eps": 1e-5, "rope_theta": 10000.0,
          "use_scaled_rope": False}


def weights():
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs
    torch.manual_seed(3)
    model = construct_transformer(ModelArgs(**PARAMS))
    return {name: torch.randn(tensor.shape) * 0.2 if tensor.dim() > 1 else torch.ones(tensor.shape)
            for name, tensor in model.state_dict().items()
            if not any(word in name for word in ("freqs", "mask", "cache"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    out = parser.parse_args().out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        params, checkpoint = Path(folder) / "params.json", Path(folder) / "weights.pth"
        params.write_text(json.dumps(PARAMS))
        torch.save(weights(), checkpoint)
        metadata = json.dumps({"get_eos_ids": [END]})
        subprocess.run(
            [sys.executable, "-m", "executorch.extension.llm.export.export_llm",
             "base.model_class=llama3_2", f"base.params={params}", f"base.checkpoint={checkpoint}",
             f"base.metadata='{metadata}'", "model.use_kv_cache=True",
             "model.use_sdpa_with_kv_cache=True", "model.enable_dynamic_shape=True",
             "backend.xnnpack.enabled=True", "backend.xnnpack.extended_ops=True",
             "quantization.qmode=8da4w", "quantization.group_size=32",
             "quantization.embedding_quantize='4,32'", f"export.max_seq_length={LENGTH}",
             f"export.max_context_length={CONTEXT}", "export.output_name=model.pte"],
            cwd=folder, check=True)
        (out / "model.pte").write_bytes((Path(folder) / "model.pte").read_bytes())


if __name__ == "__main__":
    main()
