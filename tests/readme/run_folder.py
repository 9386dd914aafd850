#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`python -m pted_server.export`: what it says of arguments, of files and of versions, the cards
that it writes, and what it compares. None of that needs PyTorch.

With PYTHON naming an interpreter that has ExecuTorch and transformers, small models also go all the
way: to a folder, and to an answer of a daemon. Without it that part is skipped, and says so.

usage: run_folder.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
PYTHON_PATH = SOURCE / "python"
MODELS = SOURCE / "tests" / "models"
sys.path[:0] = [str(SOURCE / "tests" / "http"), str(PYTHON_PATH)]

import interpreter  # noqa: E402  beside this folder
from pted_server.export import describe as pted_describe  # noqa: E402  of python/
from pted_server.export import folder as pted_folder  # noqa: E402
from pted_server.export.card import PACKAGES, card_of  # noqa: E402
from run_export import ask, run  # noqa: E402  in this folder
from run_http import Daemon, Failure, Report, expect  # noqa: E402

PYTHON = shutil.which(os.environ.get("PYTHON", "")) or sys.executable
PTE = Path(os.environ.get("PTE", BUILD / "pte")).resolve()
RUN_S = 60
HEADS = {"LlamaForCausalLM": "chat", "GPT2LMHeadModel": "chat", "BertModel": "embedding",
         "BertForSequenceClassification": "text", "BertForMaskedLM": "tokens",
         "BertForTokenClassification": "tokens", "ViTForImageClassification": "picture",
         "DeiTForImageClassificationWithTeacher": "picture",
         "WhisperForConditionalGeneration": "speech"}


def write(folder, name, value):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def install(folder, versions):
    for name, version in versions.items():
        write(folder, f"{name}-{version}.dist-info/METADATA",
              f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def command(folder, *args, versions=None):
    """What the command says where no package is installed but those of |versions|."""
    versions = {name: first for name, (first, _) in PACKAGES.items()} if versions is None \
        else versions
    with tempfile.TemporaryDirectory() as name:
        install(Path(name), versions)
        done = subprocess.run(
            [sys.executable, "-S", "-m", "pted_server.export", *args], cwd=folder,
            capture_output=True, text=True, timeout=RUN_S, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([name, str(PYTHON_PATH)])})
    return done.returncode, done.stdout, done.stderr


def refuse(folder, why, *args, **more):
    status, _, text = command(folder, *args, **more)
    expect(f"{args}: {text}", (status, why in text, "Traceback" in text), (1, True, False))


def raised(call, *args):
    try:
        call(*args)
    except pted_folder.Refused as why:
        return str(why)
    raise Failure(f"{args}: taken")


def arguments(folder):
    (folder / "empty").mkdir()
    write(folder, "odd/config.json", {"architectures": ["OddHead"], "model_type": "odd"})
    write(folder, "broken/config.json", "{")
    write(folder, "list/config.json", [1])
    write(folder, "vit/config.json", {"architectures": ["ViTForImageClassification"],
                                      "model_type": "vit"})
    write(folder, "notes.txt", "x")
    refuse(folder, "empty: there is no config.json", "empty")
    refuse(folder, "expected a name that ends in ForCausalLM", "odd")
    refuse(folder, "got OddHead; --kind says", "odd")
    refuse(folder, "config.json: Expecting", "broken")
    refuse(folder, "expected an object, got list", "list")
    refuse(folder, "notes.txt: expected a folder, a checkpoint", "notes.txt")
    refuse(folder, "no such/x: expected a folder, a file, OWNER/NAME", "no such/x")
    refuse(folder, "owner/name: there is no such folder, and huggingface_hub", "owner/name")
    refuse(folder, "--quantize 8da4w: a classifier of pictures takes none or int8", "vit",
           "--quantize", "8da4w")
    refuse(folder, "needs --pictures DIR", "vit", "--quantize", "int8")
    refuse(folder, "--context 2: expected 8 or more", "vit", "--context", "2")
    status, _, text = command(folder, "vit", "--quantize", "fp4")
    expect("a word that argparse refuses", (status, "invalid choice: 'fp4'" in text), (2, True))
    status, text, _ = command(folder, "--help")
    expect("help", (status, "FOLDER_OR_ID" in text), (0, True))


def versions(folder):
    write(folder, "net/config.json", {"architectures": ["BertModel"], "model_type": "bert"})
    write(folder, "timm/config.json", {"architecture": "resnet18"})
    known = {name: first for name, (first, _) in PACKAGES.items()}
    refuse(folder, "torch: expected 2.13 or newer, got none: pip install 'torch>=2.13,<3'", "net",
           versions={})
    refuse(folder, "executorch: expected 1.4 or newer, got 1.3.0", "net",
           versions={**known, "executorch": "1.3.0"})
    refuse(folder, "transformers: expected 5.4 or newer, got none", "net",
           versions={"torch": "2.13.0", "executorch": "1.5.1"})
    refuse(folder, "timm: expected 1.0 or newer, got none: pip install 'timm>=1.0,<2'", "timm")
    write(folder, "yolo11n.pt", "")
    refuse(folder, "ultralytics: expected 8.4 or newer, got none", "yolo11n.pt")
    refuse(folder, "torchvision: expected", "mobilenet_v3_small")
    _, text, _ = command(folder, "timm", versions={**known, "executorch": "9.0"})
    expect("a version that was not tried",
           "note: executorch: 9.0 was not tried, expected 1.4 or newer" in text, True)


def sources(folder):
    for name, kind in HEADS.items():
        write(folder, f"{name}/config.json", {"architectures": [name], "model_type": "x"})
        source = pted_folder.find_source(str(folder / name))
        expect(name, (source.library, source.kind, source.name), ("transformers", kind, name))
    write(folder, "BertForMaskedLM/modules.json", "[]")
    expect("sentence-transformers", pted_folder.find_source(
        str(folder / "BertForMaskedLM")).kind, "embedding")
    expect("--kind", pted_folder.find_source(str(folder / "BertModel"), "text").kind, "text")
    write(folder, "net/config.json", {"architecture": "resnet18", "num_classes": 3})
    expect("timm", pted_folder.find_source(str(folder / "net")).library, "timm")
    write(folder, "a.pt", "")
    write(folder, "resnet18-mine.pth", "")
    for text, want in ((str(folder / "a.pt"), ("ultralytics", "detection", "a")),
                       ("yolo11n.pt", ("ultralytics", "detection", "yolo11n")),
                       (str(folder / "resnet18-mine.pth"),
                        ("torchvision", "picture", "resnet18-mine")),
                       ("mobilenet_v3_small", ("torchvision", "picture", "mobilenet_v3_small"))):
        source = pted_folder.find_source(text)
        expect(text, (source.library, source.kind, source.name), want)
    expect("each kind has its choices", sorted(pted_folder.QUANTIZED), sorted(pted_folder.KINDS))


def texts(folder):
    expect("no folder of sentence-transformers", pted_describe.pooling_of(folder),
           {"pooling": "mean"})
    write(folder, "modules.json", [{"type": "sentence_transformers.models.Pooling"}])
    for said, want in (({"pooling_mode_cls_token": True}, "cls"),
                       ({"pooling_mode_mean_tokens": True}, "mean"),
                       ({"pooling_mode_lasttoken": True}, "last"), ({"pooling_mode": "cls"}, "cls"),
                       ({"pooling_mode": "lasttoken"}, "last")):
        write(folder, "1_Pooling/config.json", said)
        expect(said, pted_describe.pooling_of(folder), {"pooling": want, "normalize": False})
    write(folder, "1_Pooling/config.json", {"pooling_mode": "max"})
    expect("max", "expected mean, cls or lasttoken, got max" in
           raised(pted_describe.pooling_of, folder), True)
    source = SimpleNamespace(path=folder)
    config = SimpleNamespace(model_type="roberta", max_position_embeddings=514, pad_token_id=1)
    expect("positions behind padding", pted_describe.longest(source, config), 512)
    write(folder, "tokenizer_config.json", {"model_max_length": 10 ** 30})
    expect("a tokenizer without a limit", pted_describe.longest(source, config), 512)
    write(folder, "sentence_bert_config.json", {"max_seq_length": 128})
    expect("sentence-transformers", pted_describe.longest(source, config), 128)


def processor(kind, **members):
    return type(kind, (), {"do_resize": True, "do_rescale": True, "rescale_factor": 1 / 255,
                           "resample": 3, **members})()


def pictures(_):
    describe = pted_describe.describe_processor
    ends = {"do_normalize": True, "image_mean": 0.5, "image_std": [0.25, 0.5, 1]}
    expect("ViT", describe(processor("ViTImageProcessorFast", size={"height": 8, "width": 6},
                                     **ends)),
           {"resize": [8, 6], "interpolation": "bicubic", "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.5, 1.0]})
    expect("a crop", describe(processor(
        "BitImageProcessor", size={"shortest_edge": 9}, do_center_crop=True,
        crop_size={"height": 7, "width": 7}, resample=2, rescale_factor=1)),
        {"resize": 9, "interpolation": "bilinear", "crop": [7, 7], "scale": 1.0})
    expect("ConvNeXt, small", describe(processor(
        "ConvNextImageProcessor", size={"shortest_edge": 224}, crop_pct=0.875)),
        {"resize": 256, "interpolation": "bicubic", "crop": 224})
    expect("ConvNeXt, large", describe(processor(
        "ConvNextImageProcessorPil", size={"shortest_edge": 384}, crop_pct=0.875)),
        {"resize": [384, 384], "interpolation": "bicubic"})
    image = describe(processor("MobileViTImageProcessor", size={"shortest_edge": 8},
                               do_flip_channel_order=True))
    expect("MobileViT", image["colors"], "bgr")
    for size, resample, why in (({"longest_edge": 9}, 2, "shortest_edge"),
                                ({"height": 8, "width": 8}, 5, "got 5")):
        text = raised(describe, processor("ViTImageProcessor", size=size, resample=resample))
        expect(text, why in text, True)
    timm = {"input_size": (3, 160, 160), "interpolation": "bicubic", "crop_pct": 0.95,
            "crop_mode": "center", "mean": (0.5,) * 3, "std": (0.5,) * 3}
    expect("timm", pted_describe.describe_timm(timm),
           {"resize": 168, "interpolation": "bicubic", "crop": [160, 160], "mean": [0.5] * 3,
            "std": [0.5] * 3})
    expect("squash", pted_describe.describe_timm({**timm, "crop_mode": "squash"})["resize"],
           [168, 168])
    for changed in ({"crop_mode": "border"}, {"interpolation": "random"},
                    {"input_size": (3, 160, 192)}):
        text = raised(pted_describe.describe_timm, {**timm, **changed})
        expect(text, "expected" in text, True)
    for task, answer in (("detect", "boxes"), ("segment", "boxes"), ("pose", "boxes"),
                         ("classify", "classes"), ("obb", None)):
        model = SimpleNamespace(task=task, names={0: "cat", 1: "dog"})
        card = card_of({}, 1, **pted_describe.ultralytics_card(model, [64, 96]))
        found = card.get("outputs", [{}])[0].get("answer", {})
        expect(task, answer in found if answer else found == {}, True)


def requests(folder):
    source = pted_folder.Source("transformers", "chat", "net")
    expect("without a template", "/v1/completions" in pted_folder.example(source, folder), True)
    write(folder, "tokenizer_config.json", {"chat_template": "x"})
    expect("with one", "/v1/chat/completions" in pted_folder.example(source, folder), True)
    for kind, path in (("embedding", "/v1/embeddings"), ("text", "text/plain"),
                       ("tokens", "text/plain"), ("picture", "image/jpeg"),
                       ("detection", "image/jpeg"), ("speech", "/v1/audio/transcriptions")):
        source.kind = kind
        expect(kind, path in pted_folder.example(source, folder), True)


def odd_names(folder):
    """The shell takes what is printed as it is meant, whatever the name and the folder are."""
    name, out = "it's a $net", folder / "my `nets`"
    out.mkdir()
    for kind in pted_folder.KINDS:
        source = pted_folder.Source("transformers", kind, name)
        lines = [shlex.split(line) for line in pted_folder.how_to_serve(source, out).splitlines()]
        expect("pted", lines[0], ["pted", "--model", f"{name}={out / 'model.pte'}", "&"])
        asked = lines[1]
        if "--json" in asked:
            expect(kind, json.loads(asked[asked.index("--json") + 1])["model"], name)
        elif kind == "speech":
            expect(kind, f"model={name}" in asked, True)
        else:
            path = f"http://127.0.0.1:8000/v2/models/{quote(name, safe='')}/call"
            expect(kind, path in asked, True)


def comparison(_):
    """The stored program `add`: a + b."""
    if not interpreter.has("numpy"):
        print("# numpy is not there: the comparison is skipped")
        return
    import numpy
    from pted_server.export import check as pted_check
    ones = numpy.ones((2, 3), "f4")
    right = pted_check.Check("forward", {"output_0": 3 * ones}, [ones, 2 * ones])
    line = pted_check.compare(PTE, MODELS / "add.pte", right)
    expect(line, line.startswith("forward: as PyTorch") and "(pte run)" in line, True)
    for results, why in (({"output_0": 3.1 * ones}, "output_0 differs from PyTorch by 0.03"),
                         ({"output_0": ones * numpy.nan}, "differs"),
                         ({"output_0": ones[0]}, "expected [3], got [2, 3]"),
                         ({"sum": ones}, "no result sum, but output_0")):
        try:
            pted_check.compare(PTE, MODELS / "add.pte",
                               pted_check.Check("forward", results, [ones, 2 * ones]))
            raise Failure(f"{why}: taken")
        except pted_check.Differs as text:
            expect(str(text), why in str(text), True)


def has_exporter():
    return subprocess.run([PYTHON, "-c", "import executorch.exir, transformers, torchao"], cwd="/",
                          capture_output=True, check=False).returncode == 0


def export(folder, name, *args):
    small = SOURCE / "tests" / "recipes" / "small_models.py"
    where = {"PYTHONPATH": os.pathsep.join([str(PYTHON_PATH), str(SOURCE / "contrib" / "recipes")]),
             "PATH": f"{PTE.parent}{os.pathsep}{os.environ['PATH']}", "HF_HUB_OFFLINE": "1"}
    run([PYTHON, str(small), name, name], folder, **where)
    said = run([PYTHON, "-m", "pted_server.export", name, *args], folder, **where)
    expect(said, "as PyTorch" in said and f"pted --model {name}=" in said, True)
    return folder / f"{name}-pted" / "model.pte"


def folders(folder):
    """A chat with quantized weights that knows its sentences, an encoder with its card, Whisper
    with such weights and without."""
    if not has_exporter():
        print(f"# {PYTHON} has no ExecuTorch, torchao and transformers: exports are skipped")
        return
    models = {"smollm": export(folder, "smollm", "--quantize", "int8"),
              "minilm": export(folder, "minilm"), "whisper-tiny": export(folder, "whisper-tiny")}
    (folder / "int8").mkdir()
    models["whisper-int8"] = export(folder / "int8", "whisper-tiny", "--quantize", "int8")
    with Daemon([part for name, path in models.items() for part in ("--model", f"{name}={path}")],
                cwd=folder) as daemon:
        status, answer = ask(daemon.port, "/v1/chat/completions", {
            "model": "smollm", "temperature": 0,
            "messages": [{"role": "user", "content": "What is the capital of Japan?"}]})
        expect("chat", (status, answer["choices"][0]["message"]["content"]),
               (200, "The capital of Japan is Tokyo."))
        status, answer = ask(daemon.port, "/v1/embeddings", {"model": "minilm", "input": "a cat"})
        vector = answer["data"][0]["embedding"]
        expect("embedding", (status, len(vector), round(sum(x * x for x in vector), 3)),
               (200, 32, 1.0))


def main():
    report = Report()
    for test in (arguments, versions, sources, texts, pictures, requests, odd_names, comparison,
                 folders):
        with tempfile.TemporaryDirectory() as name:
            report.run(test.__name__, test, Path(name))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
