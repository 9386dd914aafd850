# SPDX-License-Identifier: MIT
"""Makes a folder that pted serves from a model of transformers, timm, torchvision or Ultralytics.

    python -m pted_server.export SmolLM2-135M-Instruct/ --out smollm
    python -m pted_server.export sentence-transformers/all-MiniLM-L6-v2
    python -m pted_server.export timm/mobilenetv3_small_100.lamb_in1k
    python -m pted_server.export mobilenet_v3_small
    python -m pted_server.export yolo11n.pt

The folder gets model.pte, its card model.card.json, and the tokenizer. One answer is compared with
PyTorch's, by `pte run` if there is one, and the last lines say how to serve the folder. The exit
status is 1 if the model cannot be exported, or if its answer differs.
"""
from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from .card import check_packages
from .check import Differs, compare_all

MODEL = "model.pte"
KINDS = {"chat": "a language model", "embedding": "an encoder of texts",
         "text": "a classifier of texts", "tokens": "classes or words for each token",
         "picture": "a classifier of pictures", "detection": "a model of Ultralytics",
         "speech": "Whisper"}
# What the name of a class of transformers ends with. A model without a head ends with "Model".
HEADS = (("ForCausalLM", "chat"), ("LMHeadModel", "chat"),
         ("ForSequenceClassification", "text"), ("ForMaskedLM", "tokens"),
         ("ForTokenClassification", "tokens"), ("ForImageClassification", "picture"),
         ("ForImageClassificationWithTeacher", "picture"),
         ("WhisperForConditionalGeneration", "speech"), ("Model", "embedding"))
QUANTIZE = ("8da4w", "int8", "none")
# What each kind may ask for; the first one is taken if nobody asks.
QUANTIZED = {"chat": ("8da4w", "int8", "none"), "embedding": ("none", "int8", "8da4w"),
             "text": ("none", "int8", "8da4w"), "tokens": ("none", "int8", "8da4w"),
             "picture": ("none", "int8"), "detection": ("none",),
             "speech": ("none", "int8", "8da4w")}
BESIDE = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "chat_template.jinja",
          "generation_config.json")
HUB_FILES = ("*.json", "*.safetensors", "*.model", "*.jinja", "*.txt", "1_Pooling/*")
ULTRALYTICS = re.compile(r"(yolo|rtdetr)[\w-]*\.(pt|yaml)")
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")


class Refused(Exception):
    """The command cannot do this; the text is for people."""


def first_line(why):
    """Of an exception's text; its name if there is no text."""
    return (str(why).strip().splitlines() or [type(why).__name__])[0]


@dataclass
class Source:
    """A model: |path| is its folder or file, None if the library has it by its |name|."""

    library: str
    kind: str
    name: str
    path: Path | None = None
    config: dict = field(default_factory=dict)


# ---------------------------------------------------------------- where a model is

def read_json(path):
    """A document of the model's folder; {} if there is none."""
    if not path.exists():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as why:
        raise Refused(f"{path}: {why}") from None
    if not isinstance(value, dict):
        raise Refused(f"{path}: expected an object, got {type(value).__name__}")
    return value


def kind_of(folder, config):
    """The kind of a model of transformers."""
    if (folder / "modules.json").exists():
        return "embedding"  # sentence-transformers take states, whatever head there is
    named = config.get("architectures") or []
    for name in named:
        for ending, kind in HEADS:
            if name.endswith(ending):
                return kind
    raise Refused(f"{folder / 'config.json'}: architectures: expected a name that ends in "
                  f"{', '.join(ending for ending, _ in HEADS)}, got "
                  f"{', '.join(named) or 'none'}; --kind says what the model is")


def source_of_folder(folder, name, kind):
    config = read_json(folder / "config.json")
    if not config:
        raise Refused(f"{folder}: there is no config.json, which models of transformers and timm "
                      "have")
    if "architecture" in config and "model_type" not in config:
        return Source("timm", kind or "picture", name, folder, config)
    return Source("transformers", kind or kind_of(folder, config), name, folder, config)


def source_of_file(path, kind):
    if path.suffix in (".pt", ".yaml"):
        return Source("ultralytics", kind or "detection", path.stem, path)
    if path.suffix == ".pth":
        return Source("torchvision", kind or "picture", path.stem, path)
    raise Refused(f"{path}: expected a folder, a checkpoint of Ultralytics (.pt) or one of "
                  "torchvision (.pth)")


def fetch(name):
    """The folder of a model of Hugging Face's hub, in the cache of its library."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise Refused(f"{name}: there is no such folder, and huggingface_hub, which asks the hub, "
                      "is not installed: pip install huggingface_hub") from None
    try:
        return Path(snapshot_download(name, allow_patterns=list(HUB_FILES)))
    except Exception as why:  # of several libraries below it
        raise Refused(f"{name}: there is no such folder, and the hub says: "
                      f"{first_line(why)}") from None


def find_source(text, kind=None):
    path = Path(text)
    if path.is_dir():
        return source_of_folder(path, path.resolve().name, kind)
    if path.is_file():
        return source_of_file(path, kind)
    if ULTRALYTICS.fullmatch(text):
        return Source("ultralytics", kind or "detection", Path(text).stem)
    if re.fullmatch(r"\w+", text):
        return Source("torchvision", kind or "picture", text)
    if HUB_ID.fullmatch(text):
        return source_of_folder(fetch(text), text.split("/")[1], kind)
    raise Refused(f"{text}: expected a folder, a file, OWNER/NAME of Hugging Face, a name of "
                  "torchvision, or one of Ultralytics such as yolo11n.pt")


# ---------------------------------------------------------------- the command

def parse(args):
    parser = argparse.ArgumentParser(
        prog="python -m pted_server.export", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FOLDER_OR_ID")
    parser.add_argument("--quantize", choices=QUANTIZE,
                        help="8da4w: weights of 4 bits, which language models get unless this says "
                             "something else; int8: of 8 bits; none")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder; ./NAME-pted")
    parser.add_argument("--kind", choices=KINDS, help="what the model is, if its files do not say")
    parser.add_argument("--context", type=int, metavar="N",
                        help="tokens of a prompt and its answer; 2048, or fewer if the model has "
                             "fewer")
    parser.add_argument("--pictures", type=Path, metavar="DIR",
                        help="pictures that show the range of numbers, for int8 of a classifier of "
                             "pictures")
    return parser.parse_args(args)


def choose_quantize(source, options):
    """What is asked for, or what pted runs fastest."""
    allowed = QUANTIZED[source.kind]
    asked = options.quantize or allowed[0]
    if asked not in allowed:
        raise Refused(f"--quantize {asked}: {KINDS[source.kind]} takes {' or '.join(allowed)}")
    if source.kind == "picture" and asked == "int8" and not options.pictures:
        raise Refused("--quantize int8: a classifier of pictures needs --pictures DIR, some "
                      "pictures of the kind that it will see")
    return asked


def check_versions(*packages):
    """Plain words on one line, for what is missing, too old or not tried."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            check_packages(*packages)
        except ImportError as why:
            raise Refused(str(why)) from None
    for one in found:
        print(f"note: {one.message}")


def copy_beside(source, out):
    """The files that pted reads beside a program."""
    folder = source.path if source.path and source.path.is_dir() else None
    for name in BESIDE if folder else ():
        if (folder / name).exists() and folder.resolve() != out.resolve():
            shutil.copyfile(folder / name, out / name)


def example(source, out):
    """A request, as a line of the shell."""
    name, where = source.name, "http://127.0.0.1:8000"
    if source.kind == "chat":
        has_template = ((out / "chat_template.jinja").exists()
                        or read_json(out / "tokenizer_config.json").get("chat_template"))
        if has_template:
            return example_json(f"{where}/v1/chat/completions", name,
                                messages=[{"role": "user", "content": "Who are you?"}])
        return example_json(f"{where}/v1/completions", name, prompt="Once upon a time")
    if source.kind == "embedding":
        return example_json(f"{where}/v1/embeddings", name, input="a cat")
    if source.kind == "speech":
        return (f"curl -s --form-string {shlex.quote(f'model={name}')} -F file=@speech.wav "
                f"{where}/v1/audio/transcriptions")
    call = f"{where}/v2/models/{quote(name, safe='')}/call"
    if source.kind in ("text", "tokens"):
        return f"curl -s {call} -H 'Content-Type: text/plain' --data 'a cat'"
    return f"curl -s {call} -H 'Content-Type: image/jpeg' --data-binary @photo.jpg"


def example_json(url, model, **members):
    return f"curl -s {url} --json {shlex.quote(json.dumps({'model': model, **members}))}"


def how_to_serve(source, out):
    """Lines of the shell."""
    model = shlex.quote(f"{source.name}={out / MODEL}")
    return f"    pted --model {model} &\n    {example(source, out)}"


def make(options):
    check_versions("torch", "executorch")
    source = find_source(options.model, options.kind)
    check_versions(source.library)
    quantize = choose_quantize(source, options)
    if options.context is not None and options.context < 8:
        raise Refused(f"--context {options.context}: expected 8 or more")
    out = options.out or Path(f"{source.name}-pted")
    print(f"{source.name}: {KINDS[source.kind]}, from {source.library}"
          + (f", quantized as {quantize}" if quantize != "none" else ""), flush=True)
    from . import kinds  # PyTorch comes with it, which takes a while
    out.mkdir(parents=True, exist_ok=True)
    copy_beside(source, out)
    checks = kinds.EXPORT[source.kind](source, out, quantize, options)
    print(f"{out / MODEL}: {(out / MODEL).stat().st_size:,} bytes", flush=True)
    compare_all(out / MODEL, checks, out / "model.card.json")
    print(f"\n{how_to_serve(source, out)}")


def main(args=None):
    options = parse(args)
    warnings.simplefilter("ignore")  # the exporters warn of their own code
    try:
        make(options)
    except (Refused, Differs) as why:
        print(f"pted_server.export: {why}", file=sys.stderr)
        return 1
    return 0
