# SPDX-License-Identifier: MIT
"""What the files and the settings of a model say, in the words of a card: all of `python -m
pted_server.export` that needs no PyTorch."""
from __future__ import annotations

import math

from .card import FILTERS
from .folder import Refused, read_json

CONTEXT = 2048
# Tables of positions of these begin behind the id of padding.
SHIFTED = ("roberta", "xlm-roberta", "camembert", "mpnet", "data2vec-text", "xlm-roberta-xl")


# ---------------------------------------------------------------- texts

def places(config):
    """How many tokens the model has positions for."""
    count = getattr(config, "max_position_embeddings", None) or CONTEXT
    if config.model_type in SHIFTED:
        count -= (config.pad_token_id or 0) + 1
    return count


def longest(source, config):
    """Tokens of a text: of the model, its tokenizer, and the folder of sentence-transformers."""
    counts = [places(config)]
    counts.append(read_json(source.path / "tokenizer_config.json").get("model_max_length"))
    counts.append(read_json(source.path / "sentence_bert_config.json").get("max_seq_length"))
    return min(int(count) for count in counts if count and count >= 8)


def pooling_of(folder):
    """How sentence-transformers makes one vector of states, as "embedding" of a card."""
    said = read_json(folder / "1_Pooling" / "config.json")
    word = said.get("pooling_mode")
    for member, pooling in (("pooling_mode_cls_token", "cls"), ("pooling_mode_lasttoken", "last"),
                            ("pooling_mode_mean_tokens", "mean")):
        if said.get(member):
            word = word or pooling
    pooling = {None: "mean", "lasttoken": "last"}.get(word, word)
    if pooling not in ("mean", "cls", "last"):
        raise Refused(f"{folder / '1_Pooling'}: expected mean, cls or lasttoken, got {word}")
    modules = folder / "modules.json"
    is_unit = not modules.exists() or "Normalize" in modules.read_text(encoding="utf-8")
    return {"pooling": pooling, **({} if is_unit else {"normalize": False})}


# ---------------------------------------------------------------- pictures

def sides(size):
    """A size as image processors of transformers have it, as "resize" or "crop" of a card."""
    if isinstance(size, int):
        return size
    size = {name: value for name, value in dict(size).items() if value is not None}
    if "height" in size:
        return [size["height"], size["width"]]
    if "shortest_edge" in size and "longest_edge" not in size:
        return size["shortest_edge"]
    raise Refused(f"preprocessor_config.json: size: expected height and width, or shortest_edge, "
                  f"got {size}")


def describe_processor(processor):
    """The card's "image": what an image processor of transformers does to a picture."""
    kind = type(processor).__name__.removesuffix("Fast").removesuffix("Pil")
    image = {}
    if getattr(processor, "do_resize", False):
        image = describe_resize(kind, processor)
    if getattr(processor, "do_center_crop", False):
        image["crop"] = sides(processor.crop_size)
    scale = float(processor.rescale_factor) if getattr(processor, "do_rescale", False) else 1.0
    if not math.isclose(scale, 1 / 255):
        image["scale"] = scale
    if getattr(processor, "do_normalize", False):
        image["mean"] = [float(x) for x in as_three(processor.image_mean)]
        image["std"] = [float(x) for x in as_three(processor.image_std)]
    if getattr(processor, "do_flip_channel_order", False):
        image["colors"] = "bgr"
    return image


def as_three(values):
    return values if isinstance(values, (list, tuple)) else [values] * 3


def describe_resize(kind, processor):
    size = sides(processor.size)
    names = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box"}
    number = int(getattr(processor, "resample", 2))
    if number not in names:
        raise Refused(f"preprocessor_config.json: resample: expected one of "
                      f"{', '.join(map(str, names))}, got {number}")
    image = {"resize": size, "interpolation": names[number]}
    if kind == "ConvNextImageProcessor" and isinstance(size, int):
        if size >= 384:
            image["resize"] = [size, size]
        else:
            image.update(resize=int(size / processor.crop_pct), crop=size)
    if kind == "LevitImageProcessor" and isinstance(size, int):
        image["resize"] = int(256 / 224 * size)
    return image


def describe_timm(config):
    """The card's "image" of what timm does to a picture before it is classified."""
    height, width = config["input_size"][1:]
    mode, part = config.get("crop_mode") or "center", config.get("crop_pct") or 0.875
    if config["interpolation"] not in FILTERS or mode not in ("center", "squash"):
        raise Refused(f"timm: expected crop_mode center or squash and an interpolation of "
                      f"{', '.join(FILTERS)}, got {mode} and {config['interpolation']}")
    larger = [math.floor(height / part), math.floor(width / part)]
    if mode == "center" and height != width:
        raise Refused(f"timm: expected a square input, got {height}x{width}")
    return {"resize": larger if mode == "squash" else larger[0],
            "interpolation": config["interpolation"], "crop": [height, width],
            "mean": [float(x) for x in config["mean"]], "std": [float(x) for x in config["std"]]}


BOXES = {"form": "cxcywh", "order": "candidates_last"}


def ultralytics_card(model, side):
    """Arguments of card_of() for the tasks whose answers a card can say."""
    names = [str(model.names[i]) for i in range(len(model.names))]
    image = {"resize": side, "fit": "letterbox", "fill": 114}
    if model.task == "classify":
        resize = min(side)
        return {"inputs": [{"name": "image", "image": {"resize": resize, "crop": resize}}],
                "outputs": [{"name": "scores", "labels": names, "answer": {"classes": 5}}]}
    found = {"labels": names, "answer": {"boxes": {**BOXES, "class_count": len(names)}}}
    if model.task in ("detect", "segment", "pose"):
        return {"inputs": [{"name": "image", "image": image}],
                "outputs": [{"name": "found", **found}]}
    return {"inputs": [{"name": "image", "image": image}]}
