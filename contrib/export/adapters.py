#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/adapters: a very small Llama and adapters (LoRA) of it, as ExecuTorch's own
export_llm writes them, and in answers.json what PyTorch answers with each.

base.pte, red.pte and blue.pte are programs over foundation.ptd. The weights are random. A token is
a byte.

usage: adapters.py [--out DIR] [--dim N] [--layers N] [--rank N] [--adapters N] [--quantize]; needs
executorch 1.5.1, hydra-core, torchao, safetensors and some minutes
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models" / "adapters"
NAMES = ("red", "blue", "green", "white", "grey", "black", "pink", "brown")
VOCAB, CONTEXT, END = 256, 64, 1
# Names of a projection in an adapter's file, in its configuration and in the model.
PROJECTIONS = {"self_attn.q_proj": "attention.wq", "self_attn.v_proj": "attention.wv",
               "mlp.down_proj": "feed_forward.w2"}
TARGETS = [name.rsplit(".", 1)[1] for name in PROJECTIONS]
PROMPTS = ("The red fox", "1, 2, 3,", "Once")
ANSWER = 12


def params_of(args):
    return {"dim": args.dim, "n_layers": args.layers, "n_heads": args.heads,
            "n_kv_heads": max(1, args.heads // 2), "hidden_dim": args.dim * 3,
            "vocab_size": VOCAB, "multiple_of": 16, "norm_eps": 1e-5, "rope_theta": 10000.0,
            "use_scaled_rope": False}


def transformer(params, rank=None):
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs
    lora = {"r": rank, "lora_alpha": 2 * rank, "target_modules": TARGETS} if rank else {}
    return construct_transformer(ModelArgs(**params, max_seq_len=CONTEXT, max_context_len=CONTEXT,
                                           **lora)).eval()


def random_weights(model, of_adapter):
    """Random weights of the base, or of the adapter beside it; adapters differ in all of theirs."""
    def fill(tensor):
        if tensor.dim() == 1:
            return torch.ones(tensor.shape)
        return torch.randn(tensor.shape) * 1.4 / tensor.shape[1] ** 0.5
    return {name: fill(tensor) for name, tensor in model.state_dict().items()
            if ("lora_" in name) == of_adapter and
            not any(word in name for word in ("freqs", "mask", "cache"))}


def adapter_file(path, weights):
    """An adapter as training writes it."""
    from safetensors.torch import save_file
    tensors = {}
    for name, tensor in weights.items():
        name = name.replace("lora_a", "lora_A").replace("lora_b", "lora_B")
        for file_name, model_name in PROJECTIONS.items():
            name = name.replace(model_name, file_name)
        tensors[f"base_model.model.model.{name}"] = tensor.contiguous()
    save_file(tensors, path)


def export(folder, name, args, adapter):
    """Runs export_llm; returns the program's bytes."""
    base = {"model_class": "llama3_2", "params": str(folder / "params.json"),
            "checkpoint": str(folder / "base.pth"), "metadata": json.dumps({"get_eos_ids": [END]})}
    if adapter:
        base["lora_config"] = {"adapter_checkpoint": str(adapter),
                               "adapter_config": str(folder / "adapter_config.json")}
    config = {
        "base": base,
        "model": {"use_kv_cache": True, "use_sdpa_with_kv_cache": True,
                  "enable_dynamic_shape": True},
        "backend": {"xnnpack": {"enabled": True, "extended_ops": True}},
        "export": {"max_seq_length": CONTEXT, "max_context_length": CONTEXT,
                   "foundation_weights_file": "foundation", "output_name": f"{name}.pte"},
    }
    if args.quantize:
        config["quantization"] = {"qmode": "8da4w", "group_size": 32}
    (folder / f"{name}.yaml").write_text(json.dumps(config))
    subprocess.run([sys.executable, "-m", "executorch.extension.llm.export.export_llm",
                    "--config", str(folder / f"{name}.yaml")], cwd=folder, check=True)
    return (folder / f"{name}.pte").read_bytes()


def answers_of(model):
    """The likeliest tokens behind each prompt."""
    rows = []
    for prompt in PROMPTS:
        ids = list(prompt.encode())
        with torch.no_grad():
            for _ in range(ANSWER):
                ids.append(int(model(torch.tensor([ids])).reshape(-1, VOCAB)[-1].argmax()))
        rows.append({"prompt": prompt, "answer": ids[len(prompt):]})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--adapters", type=int, default=2)
    parser.add_argument("--quantize", action="store_true", help="linear layers in 4 bits")
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(5)
    params = params_of(args)
    weights = {"base": random_weights(transformer(params), False)}
    for name in NAMES[:args.adapters]:
        weights[name] = random_weights(transformer(params, args.rank), True)
    answers = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "params.json").write_text(json.dumps(params))
        (folder / "adapter_config.json").write_text(json.dumps(
            {"r": args.rank, "lora_alpha": 2 * args.rank, "target_modules": TARGETS}))
        torch.save(weights["base"], folder / "base.pth")
        for name, tensors in weights.items():
            model = transformer(params, args.rank if name != "base" else None)
            model.load_state_dict({**weights["base"], **tensors}, strict=False)
            adapter = folder / f"{name}.safetensors" if name != "base" else None
            if adapter:
                adapter_file(adapter, tensors)
            (out / f"{name}.pte").write_bytes(export(folder, name, args, adapter))
            answers[name] = answers_of(model)
        (out / "foundation.ptd").write_bytes((folder / "foundation.ptd").read_bytes())
    if not args.quantize:
        (out / "answers.json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
