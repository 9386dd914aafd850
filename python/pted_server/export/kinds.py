# SPDX-License-Identifier: MIT
"""How each kind of model is exported: EXPORT by the words of folder.KINDS.

Each function writes model.pte, and a card where the program does not say enough, into a folder. It
returns what PyTorch computes for one call, for check.py.
"""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy
import torch
from .card import CLASSES, card_of, describe_pictures
from .chat import quantize as shrink
from .check import Check
from .describe import (CONTEXT, describe_processor, describe_timm, longest, pooling_of,
                           ultralytics_card)
from .exporter import export, export_chat, export_encoder, export_speech
from .folder import MODEL, Refused, first_line
from .speech import SpeechDecoder, SpeechEncoder

BATCH = 16  # pictures of a call, if the model lets their number vary
EXACT, ROUNDED = 1e-3, 0.05
PICTURE_LIMIT = 0.02  # libraries resize pictures in ways of their own


def load(name, source):
    """A model of transformers, by the name of its Auto class."""
    import transformers
    try:
        model = getattr(transformers, name).from_pretrained(source.path, dtype=torch.float32)
    except (OSError, ValueError) as why:
        raise Refused(f"{source.path}: {first_line(why)}") from None
    return model.eval().requires_grad_(False)


def reduce(model, quantize):
    """Quantizes the layers, and says which ones stay as they are."""
    if quantize != "none":
        kept = shrink(model, quantize)
        if kept:
            print(f"not quantized, as their rows are no multiples of 32: {', '.join(kept[:4])}"
                  + (f" and {len(kept) - 4} others" if len(kept) > 4 else ""))


def limit_of(quantize):
    return EXACT if quantize == "none" else ROUNDED


def draw_ids(config, count):
    """Some tokens, the same ones each time."""
    highest = config.vocab_size - 1
    return torch.randint(min(5, highest), highest, (1, count),
                         generator=torch.Generator().manual_seed(1))


def as_arrays(*tensors):
    return [tensor.detach().numpy() for tensor in tensors]


# ---------------------------------------------------------------- texts

def add_tokenizer(source, out):
    """tokenizer.json, which transformers makes of other forms of a tokenizer."""
    if (out / "tokenizer.json").exists() or (out / "tokenizer.model").exists():
        return
    from transformers import AutoTokenizer
    with tempfile.TemporaryDirectory() as name:
        try:
            AutoTokenizer.from_pretrained(source.path).save_pretrained(name)
        except Exception as why:  # of whatever tokenizer it is
            print(f"note: no tokenizer: {first_line(why)}")
            return
        made = Path(name) / "tokenizer.json"
        if made.exists():
            (out / "tokenizer.json").write_bytes(made.read_bytes())


def make_chat(source, out, quantize, options):
    model = load("AutoModelForCausalLM", source)
    add_tokenizer(source, out)
    config = model.config.get_text_config(decoder=True)
    most = getattr(config, "max_position_embeddings", None) or CONTEXT
    context = options.context or min(most, CONTEXT)
    if context > most:
        raise Refused(f"--context {context}: the model has {most} positions")
    reduce(model, quantize)
    ids = draw_ids(config, 8)
    with torch.no_grad():
        want = model(input_ids=ids).logits[:, -1]
    export_chat(model, out / MODEL, context)
    return [Check("forward", {"output_0": want.numpy()}, as_arrays(ids, torch.tensor([0])),
                  limit=limit_of(quantize))]


def make_embedding(source, out, quantize, options):
    model = load("AutoModel", source)
    add_tokenizer(source, out)
    reduce(model, quantize)
    ids = draw_ids(model.config, 8)
    with torch.no_grad():
        want = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    export_encoder(model, out / MODEL, options.context or longest(source, model.config),
                   **pooling_of(source.path))
    return [Check("forward", {"last_hidden_state": want.numpy()},
                  as_arrays(ids, torch.ones_like(ids)), limit=limit_of(quantize))]


class Logits(torch.nn.Module):
    """A model with a head, as pted calls it: with names of arguments."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *, input_ids, attention_mask, **types):
        return {"logits": self.model(input_ids=input_ids, attention_mask=attention_mask,
                                     **types).logits}


class TypedLogits(Logits):
    def forward(self, *, input_ids, attention_mask, token_type_ids):
        return super().forward(input_ids=input_ids, attention_mask=attention_mask,
                               token_type_ids=token_type_ids)


class PlainLogits(Logits):
    def forward(self, *, input_ids, attention_mask):
        return super().forward(input_ids=input_ids, attention_mask=attention_mask)


def labels_of(config):
    return [str(config.id2label[i]) for i in range(config.num_labels)]


def export_texts(model, path, most, quantize, outputs):
    """A model that reads texts and has a head; returns the checks."""
    has_types = getattr(model.config, "type_vocab_size", 0) > 1
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * has_types
    ids = draw_ids(model.config, 8)
    given = [ids, torch.ones_like(ids), torch.zeros_like(ids)][:len(names)]
    module = (TypedLogits if has_types else PlainLogits)(model)
    length = {1: torch.export.Dim("tokens", min=2, max=most)}
    with torch.no_grad():
        want = module(**dict(zip(names, given)))["logits"]
    text = {"mask": "attention_mask", **({"types": "token_type_ids"} if has_types else {})}
    has_words = any((path.parent / name).exists() for name in ("tokenizer.json", "tokenizer.model"))
    export(module, (), path, dict(zip(names, given)),
           dynamic_shapes={name: length for name in names},
           inputs={"input_ids": {"text": text}} if has_words else None, outputs=outputs)
    return [Check("forward", {"logits": want.numpy()}, as_arrays(*given), limit=limit_of(quantize))]


def make_text(source, out, quantize, options):
    model = load("AutoModelForSequenceClassification", source)
    add_tokenizer(source, out)
    reduce(model, quantize)
    config = model.config
    is_several = config.problem_type == "multi_label_classification"
    outputs = {"logits": {**CLASSES, "labels": labels_of(config),
                          "steps": ["sigmoid" if is_several else "softmax"]}}
    if config.num_labels == 1:
        outputs = None  # a score of a pair of texts, for /rerank
    return export_texts(model, out / MODEL, options.context or longest(source, config), quantize,
                        outputs)


def make_tokens(source, out, quantize, options):
    is_masked = any(name.endswith("ForMaskedLM") for name in
                    source.config.get("architectures") or ["ForMaskedLM"])
    model = load("AutoModelForMaskedLM" if is_masked else "AutoModelForTokenClassification", source)
    add_tokenizer(source, out)
    reduce(model, quantize)
    outputs = None if is_masked else {"logits": {"labels": labels_of(model.config)}}
    return export_texts(model, out / MODEL, options.context or longest(source, model.config),
                        quantize, outputs)


# ---------------------------------------------------------------- pictures

def draw_picture(path):
    """A picture without edges, so that every way to resize it gives nearly the same."""
    from PIL import Image
    y, x = numpy.mgrid[0:300, 0:400]
    waves = [127.5 + 120 * numpy.sin(x / 90 + y / 70 + shift) for shift in (0, 1.5, 3.5)]
    picture = Image.fromarray(numpy.stack(waves, -1).astype("u1"))
    picture.save(path)
    return picture


def read_pictures(folder, prepare):
    from PIL import Image, UnidentifiedImageError
    found = []
    for path in sorted(folder.iterdir())[:100] if folder.is_dir() else ():
        try:
            found.append(prepare(Image.open(path).convert("RGB")))
        except (UnidentifiedImageError, IsADirectoryError):
            continue
    if not found:
        raise Refused(f"--pictures {folder}: there is no picture")
    return found


def quantize_pictures(net, pixels, shapes, samples):
    """Static int8, weights by channels, with the ranges that |samples| show."""
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer, get_symmetric_quantization_config)
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    config = get_symmetric_quantization_config(is_per_channel=True)
    exported = torch.export.export(net, (pixels,), dynamic_shapes=shapes).module()
    prepared = prepare_pt2e(exported, XNNPACKQuantizer().set_global(config))
    with torch.no_grad():
        for sample in samples:
            prepared(sample)
    return convert_pt2e(prepared)


class Scores(torch.nn.Module):
    """A classifier of transformers, as one of torchvision is called."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image):
        return self.model(image).logits


def export_pictures(net, prepare, out, quantize, options, image, labels):
    """A classifier of pictures; |prepare| makes of a picture what |net| takes."""
    with tempfile.TemporaryDirectory() as name:
        pixels = prepare(draw_picture(Path(name) / "picture.png"))
    shapes = ({0: torch.export.Dim("batch", max=BATCH)},)
    samples = read_pictures(options.pictures, prepare) if quantize == "int8" else []

    def write(shapes):
        given = pixels if shapes is None else torch.cat([pixels, pixels])
        module = net if not samples else quantize_pictures(net, given, shapes, samples)
        export(module, (given,), out / MODEL, dynamic_shapes=shapes,
               inputs={"input_0": {"name": "image", "image": image}},
               outputs=[{**CLASSES, **({"labels": labels} if labels else {})}])
        return module
    try:
        module = write(shapes)
    except Exception:  # of whatever in torch.export needs a number here
        print("a call takes one picture: the model does not let the number vary")
        module = write(None)
    with torch.no_grad():
        want = module(pixels)
    limit, scores = limit_of(quantize), torch.softmax(want, -1)
    return [Check("forward", {"output_0": want.numpy()}, as_arrays(pixels), limit=limit),
            Check("forward", {"scores": scores.numpy()}, draw=draw_picture,
                  limit=max(limit, PICTURE_LIMIT))]


def make_transformers_picture(source, out, quantize, options):
    from transformers import AutoImageProcessor
    model = load("AutoModelForImageClassification", source)
    try:
        processor = AutoImageProcessor.from_pretrained(source.path)
    except (OSError, ValueError, ImportError) as why:
        raise Refused(f"{source.path}: {first_line(why)}") from None
    return export_pictures(
        Scores(model), lambda picture: processor(picture, return_tensors="pt")["pixel_values"],
        out, quantize, options, describe_processor(processor), labels_of(model.config))


def timm_labels(model, classes):
    own = model.pretrained_cfg.get("label_names")
    if own:
        return [str(name) for name in own]
    from timm.data import ImageNetInfo, infer_imagenet_subset
    subset = infer_imagenet_subset(model)
    if not subset:
        return None
    info = ImageNetInfo(subset)
    labels = [info.index_to_description(i) for i in range(info.num_classes())]
    return labels if len(labels) == classes else None


def make_timm_picture(source, out, quantize, options):
    import timm
    where = f"local-dir:{source.path}" if source.path else source.name
    try:
        model = timm.create_model(where, pretrained=True, exportable=True)
    except Exception as why:  # of timm, of the hub and of checkpoints
        raise Refused(f"timm: {where}: {first_line(why)}") from None
    model = model.eval().requires_grad_(False)
    config = timm.data.resolve_model_data_config(model)
    prepare = timm.data.create_transform(**config, is_training=False)
    return export_pictures(model, lambda picture: prepare(picture).unsqueeze(0), out, quantize,
                           options, describe_timm(config), timm_labels(model, model.num_classes))


def torchvision_weights(source):
    """(name of the network, its weights): by its name, or by the file that torchvision offers."""
    from torchvision import models
    known = models.list_models(module=models)
    name = source.name if source.path is None else source.name.rsplit("-", 1)[0]
    if name not in known:
        return name, None
    offered = models.get_model_weights(name)
    by_file = [one for one in offered
               if source.path and one.url.rsplit("/", 1)[1] == source.path.name]
    return name, (by_file or [offered.DEFAULT])[0]


def make_torchvision_picture(source, out, quantize, options):
    from torchvision import models
    name, weights = torchvision_weights(source)
    if weights is None:
        if source.path is None:
            return make_timm_by_name(source, out, quantize, options)
        raise Refused(f"{source.path}: torchvision has no network {name}; a file is called "
                      "NETWORK.pth or NETWORK-ANYTHING.pth")
    labels = weights.meta["categories"]
    try:
        if source.path is None:
            net = models.get_model(name, weights=weights)
        else:
            state = torch.load(source.path, weights_only=True, map_location="cpu")
            count = list(state.values())[-1].shape[0]
            net = models.get_model(name, weights=None, num_classes=count)
            net.load_state_dict(state)
            labels = labels if count == len(labels) else None
    except (OSError, RuntimeError, AttributeError) as why:
        raise Refused(f"torchvision: {name}: {first_line(why)}") from None
    prepare = weights.transforms()
    return export_pictures(net.eval().requires_grad_(False),
                           lambda picture: prepare(picture).unsqueeze(0), out, quantize, options,
                           describe_pictures(weights), labels)


def make_timm_by_name(source, out, quantize, options):
    """A name without an owner that torchvision does not have."""
    try:
        import timm
    except ImportError:
        timm = None
    if timm is None or not timm.is_model(source.name.split(".")[0]):
        raise Refused(f"{source.name}: there is no such folder, and no network of this name in "
                      f"torchvision{' or timm' if timm else '; timm is not installed'}")
    return make_timm_picture(source, out, quantize, options)


def make_picture(source, out, quantize, options):
    return {"transformers": make_transformers_picture, "timm": make_timm_picture,
            "torchvision": make_torchvision_picture}[source.library](source, out, quantize, options)


# ---------------------------------------------------------------- Ultralytics

def export_ultralytics(path, folder):
    """By Ultralytics' own exporter; returns its model, and the call that it was given."""
    os.environ["YOLO_AUTOINSTALL"] = "false"  # pip is for the user to call
    from ultralytics import YOLO
    from ultralytics.utils.export import executorch as exporter
    seen, write = {}, exporter.torch2executorch

    def spy(model, im, *args, **more):
        pixels = torch.rand(im.shape, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            seen["call"] = (pixels, model(pixels))
        return write(model, im, *args, **more)

    before = Path.cwd()
    exporter.torch2executorch = spy
    try:
        os.chdir(folder)  # it writes beside the checkpoint
        model = YOLO(path)
        made = Path(model.export(format="executorch", verbose=False)).resolve()
    except (FileNotFoundError, ConnectionError) as why:
        raise Refused(f"{path}: {first_line(why)}") from None
    finally:
        exporter.torch2executorch = write
        os.chdir(before)
    return model, made, seen["call"]


def make_detection(source, out, quantize, options):
    with tempfile.TemporaryDirectory() as name:
        path = f"{source.name}.pt"
        if source.path is not None:
            path = shutil.copy(source.path, name)
        model, made, (pixels, results) = export_ultralytics(path, Path(name))
        for file in made.iterdir():
            shutil.copyfile(file, out / file.name)
    text = json.dumps(card_of({}, 1, **ultralytics_card(model, list(pixels.shape[2:]))), indent=2,
                      ensure_ascii=False)
    (out / "model.card.json").write_text(text + "\n", encoding="utf-8")
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(results)
              if isinstance(leaf, torch.Tensor)]
    return [Check("forward", {f"output_{i}": leaf.numpy() for i, leaf in enumerate(leaves)},
                  as_arrays(pixels), limit=EXACT)]


# ---------------------------------------------------------------- speech

def make_speech(source, out, quantize, options):
    model = load("WhisperForConditionalGeneration", source)
    add_tokenizer(source, out)
    reduce(model, quantize)
    config = model.config
    features = torch.rand(1, config.num_mel_bins, 2 * config.max_source_positions,
                          generator=torch.Generator().manual_seed(1))
    start = torch.tensor([[config.decoder_start_token_id]])
    with torch.no_grad():
        hidden = SpeechEncoder(model)(features)
        logits = SpeechDecoder(model)(start, hidden, torch.tensor([0]))
    export_speech(model, out / MODEL)
    limit = limit_of(quantize)
    return [Check("encoder", {"output_0": hidden.numpy()}, as_arrays(features), limit=limit),
            Check("text_decoder", {"output_0": logits.numpy()},
                  as_arrays(start, hidden, torch.tensor([0])), limit=limit)]


EXPORT = {"chat": make_chat, "embedding": make_embedding, "text": make_text, "tokens": make_tokens,
          "picture": make_picture, "detection": make_detection, "speech": make_speech}
