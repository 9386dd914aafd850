#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports the programs of one part of `contrib/check.sh newest`, in the part's environment.

Each program is made by a process of its own, so that one that crashes or never ends costs only
itself. A line of JSON says how it went: {"part", "program", "state", "why"}. States: "exported" (to
be run by newest.py), "passed" and "failed" (compared with PyTorch here), "not exported".

usage: newest_worker.py PART OUT [NAME...]; PATH has pte
"""
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
MODELS = SOURCE / "tests" / "models"
RECIPES = SOURCE / "tests" / "recipes"
LIMIT_S = 1200
PASSED, FAILED, EXPORTED, NOT_EXPORTED = "passed", "failed", "exported", "not exported"


def collection():
    """contrib/export/export.py, one model at a time."""
    import export

    def one(name):
        def make(out):
            out.mkdir(parents=True, exist_ok=True)
            export.write_model(name, out, ".")
            return EXPORTED
        return make
    return {name: one(name) for name in export.models.MODELS}


def shared():
    """The larger collection beside the source, without those that need older packages."""
    folder = next(parent for parent in (SOURCE, SOURCE.parent)
                  if (parent / "shared/models/export").is_dir()) / "shared/models/export"
    sys.path.insert(0, str(folder))
    build, corpus = importlib.import_module("build"), importlib.import_module("corpus")

    def one(name, function, script):
        def make(out):
            corpus.seed(name)
            corpus.build(function(name), out, "newest", script)
            return EXPORTED
        return make
    found = build.collect([module for module in build.MODULES if module != "old"])
    return {name: one(name, *entry) for name, entry in found.items()}


# ---------------------------------------------------------------- whole models

def tiny():
    """Models with random weights, as folders of transformers: name: (class, configuration, ...)."""
    import transformers as t
    words = len(json.loads((MODELS / "encoder/tokenizer.json").read_text())["model"]["vocab"])
    decoder = dict(vocab_size=448, hidden_size=64, intermediate_size=96, num_hidden_layers=2,
                   num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
                   initializer_range=0.2, bos_token_id=None, eos_token_id=1, pad_token_id=None)
    encoder = dict(vocab_size=words, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                   intermediate_size=64, max_position_embeddings=64, initializer_range=0.3)
    image = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                 image_size=32, patch_size=8, num_labels=3)
    whisper = dict(vocab_size=300, num_mel_bins=80, d_model=32, encoder_layers=1, decoder_layers=1,
                   encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=64,
                   decoder_ffn_dim=64, max_source_positions=100, max_target_positions=32,
                   bos_token_id=299, eos_token_id=299, pad_token_id=299, init_std=0.3,
                   decoder_start_token_id=298, suppress_tokens=None, begin_suppress_tokens=None)
    chat, texts = MODELS / "chat", MODELS / "encoder"
    size = {"height": 32, "width": 32}
    return {
        "llama": (t.LlamaForCausalLM, t.LlamaConfig(**decoder), chat, None),
        "qwen3": (t.Qwen3ForCausalLM, t.Qwen3Config(**decoder, head_dim=16), chat, None),
        "gemma3": (t.Gemma3ForCausalLM, t.Gemma3TextConfig(
            **decoder, head_dim=16, sliding_window=32,
            layer_types=["sliding_attention", "full_attention"]), chat, None),
        "bert": (t.BertModel, t.BertConfig(**encoder), texts, None),
        "labels": (t.BertForSequenceClassification, t.BertConfig(**encoder, num_labels=3), texts,
                   None),
        "masked": (t.BertForMaskedLM, t.BertConfig(**encoder), texts, None),
        "vit": (t.ViTForImageClassification, t.ViTConfig(**image), None,
                lambda: t.ViTImageProcessor(size=size)),
        "whisper": (t.WhisperForConditionalGeneration, t.WhisperConfig(**whisper),
                    RECIPES / "whisper", None),
    }


def write_tiny(name, folder):
    import torch
    torch.manual_seed(1)
    model, config, files, processor = tiny()[name]
    model(config).save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        if files and (files / file).exists():
            shutil.copy(files / file, folder)
    if processor:
        processor().save_pretrained(folder)


def command(args, out):
    from pted_server.export import folder
    status = folder.main([*map(str, args), "--out", str(out)])
    if status == 0:
        return PASSED
    return FAILED if (out / "model.pte").exists() else NOT_EXPORTED


def compare(program, inputs, want):
    """A program of another exporter: a result of the shape of |want| has to be like it."""
    import numpy
    from pted_server.export import check
    given = []
    for name, tensor in inputs.items():
        numpy.save(program.parent / f"{name}.npy", tensor.numpy())
        given.append(f"{name}={program.parent / f'{name}.npy'}")
    results = program.parent / "results"
    check.ask_pte(["pte", "run", "--output", results, program, *given])
    arrays = [numpy.load(path) for path in results.glob("*.npy")]
    away = [check.distance(array, want.numpy()) for array in arrays
            if array.shape == tuple(want.shape)]
    if not away or min(away) > 1e-3:
        raise check.Differs(f"differs from PyTorch by {min(away, default='another shape')}")
    return PASSED


def own_exporter(name):
    """transformers' own exporter, for one call."""
    def make(out):
        import torch
        from transformers.exporters.exporter_executorch import ExecutorchConfig, ExecutorchExporter
        torch.manual_seed(1)
        model, config, _, _ = tiny()[name]
        net = model(config).eval()
        given = {"input_ids": torch.randint(5, 60, (1, 8))}
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        with torch.no_grad():
            want = net(**given)[0]
        ExecutorchExporter().export(net, given, config=ExecutorchConfig()).save_pretrained(out)
        return compare(next(out.rglob("*.pte")), given, want)
    return make


def models_of_transformers():
    def one(name, *args):
        def make(out):
            write_tiny(name, out / "source")
            return command([out / "source", *args], out)
        return make
    programs = {name: one(name) for name in tiny()}
    programs["llama-int8"] = one("llama", "--quantize", "int8")
    programs["llama-none"] = one("llama", "--quantize", "none")
    programs["bert-own-exporter"] = own_exporter("bert")
    programs["kvcache::update_and_attend"] = caches
    return programs


def caches(out):
    """Can a program whose runtime owns the caches be exported for the CPU yet?"""
    import torch
    from executorch.exir import to_edge_transform_and_lower
    from executorch.extension.llm.cache.update_and_attend import update_and_attend

    class Attend(torch.nn.Module):
        def forward(self, q, k, v, position):
            return update_and_attend(q, k, v, position, 0, 0.25, torch.float32)

    rows = [torch.randn(1, heads, 3, 8) for heads in (4, 2, 2)]
    exported = torch.export.export(Attend(), (*rows, torch.arange(3).unsqueeze(-1)))
    out.mkdir(parents=True, exist_ok=True)
    to_edge_transform_and_lower(exported).to_executorch().save(str(out / "model.pte"))
    return EXPORTED


def models_of_optimum():
    import torch
    ids = torch.randint(5, 60, (1, 8), generator=torch.Generator().manual_seed(1))
    calls = {"masked": ("fill-mask", {"input_ids": ids, "attention_mask": torch.ones_like(ids)}),
             "llama": ("text-generation", {"input_ids": ids, "cache_position": torch.arange(8)}),
             "vit": ("image-classification", {"pixel_values": torch.rand(1, 3, 32, 32)})}

    def one(name, task, given):
        def make(out):
            write_tiny(name, out / "source")
            done = subprocess.run(
                [Path(sys.executable).parent / "optimum-cli", "export", "executorch", "--model",
                 out / "source", "--task", task, "--recipe", "xnnpack", "--output_dir",
                 out / "made"], check=False)
            if done.returncode != 0:
                return NOT_EXPORTED
            net = tiny()[name][0].from_pretrained(out / "source").eval()
            with torch.no_grad():
                want = net(**{key: value for key, value in given.items()
                              if key != "cache_position"}).logits
            return compare(next((out / "made").glob("*.pte")),
                           {f"input_{i}": part for i, part in enumerate(given.values())}, want)
        return make
    return {name: one(name, *call) for name, call in calls.items()}


def models_of_ultralytics():
    def one(name):
        def make(out):
            import torch
            from ultralytics import YOLO
            torch.manual_seed(1)
            out.mkdir(parents=True, exist_ok=True)
            YOLO(f"{name}.yaml").save(str(out / f"{name}.pt"))
            return command([out / f"{name}.pt"], out)
        return make
    return {name: one(name) for name in ("yolo11n", "yolo26n", "yolo11n-seg", "yolo11n-cls",
                                         "yolo11n-pose", "yolo11n-obb")}


PARTS = {"executorch": collection, "shared": shared, "transformers": models_of_transformers,
         "optimum": models_of_optimum, "ultralytics": models_of_ultralytics}


# ---------------------------------------------------------------- one process each

def child(make, out, log):
    """Never returns."""
    os.setsid()
    file = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    state, why = NOT_EXPORTED, ""
    try:
        state = make(out)
    except BaseException as error:  # whatever the exporter does
        import traceback
        traceback.print_exc()
        state = FAILED if type(error).__name__ == "Differs" else NOT_EXPORTED
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
    sys.stdout.flush()
    log.with_suffix(".state").write_text(json.dumps({"state": state, "why": why[:300]}))
    os._exit(0)


def last_word(log):
    """What the exporter, or our command, said last."""
    lines = [line for line in log.read_text(errors="replace").splitlines()
             if re.match(r"pted_server\.export: |\w*(Error|Exception)\b", line)]
    return lines[-1].removeprefix("pted_server.export: ") if lines else ""


def attempt(make, out, log):
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child(make, out, log)
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() - began > LIMIT_S:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"state": NOT_EXPORTED, "why": f"no end after {LIMIT_S} s"}
        time.sleep(0.2)
    path = log.with_suffix(".state")
    if not path.exists():
        return {"state": NOT_EXPORTED, "why": "the process died"}
    state = json.loads(path.read_text())
    return state if state["why"] or state["state"] == PASSED else {**state, "why": last_word(log)}


def main(part, out, names):
    warnings.simplefilter("ignore")
    import torch
    torch.set_num_threads(1)
    sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["YOLO_AUTOINSTALL"] = "false"
    out.mkdir(parents=True, exist_ok=True)
    for name, make in PARTS[part]().items():
        if names and name not in names:
            continue
        word = "".join(c if c.isalnum() else "_" for c in name)
        folder = out if part in ("executorch", "shared") else out / word
        state = attempt(make, folder, out / f"{word}.log")
        print(json.dumps({"part": part, "program": name, **state}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3:])
