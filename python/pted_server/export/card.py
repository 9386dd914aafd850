# SPDX-License-Identifier: MIT
"""What export() says in cards, and which packages it needs: all of it that needs no PyTorch.

card_of() makes a card from what export() is told, and refuses what a card cannot say (cards.md
of pted's docs/, conf/pted-card.schema.json). check_packages() comes before any long work.
"""
from __future__ import annotations

import difflib
import importlib.metadata
import re
import warnings

NAME = re.compile(r"(?!-)[A-Za-z0-9_:-]+([.][A-Za-z0-9_:-]+)*")
ALIAS = re.compile(r"(input|output)_[0-9]+")
NAME_MAX = 128
FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos", "linear")

# From which release on a package has what the exporter calls, and the first one that was not tried:
# pip's extra "export" asks for the same. StaticCache of transformers counts its tokens in a tensor,
# which a program can set, since 5.4.
PACKAGES = {"torch": ("2.13", "3"), "executorch": ("1.4", "1.6"), "transformers": ("5.4", "6")}
# Libraries whose models `python -m pted_server.export` takes, where they are needed.
LIBRARIES = {"timm": ("1.0", "2"), "torchvision": ("0.28", "1"), "ultralytics": ("8.4", "9")}

# The members of objects in a card, by what they are. A value that is not here is free.
MEMBERS = {
    "card": ("$schema", "description", "inputs", "outputs", "embedding", "generation", "warm_up",
             "methods", "cache", "labels", "request_timeout", "queue_count_max", "queue_bytes_max",
             "running_count_max", "generation_count_max", "generation_timeout",
             "prefill_tokens_max", "prefill_tokens_shared", "draft_tokens_max", "max_batch",
             "max_delay_us", "precision", "idle_unload", "keep_alive_max", "weight"),
    "input": ("name", "description", "image", "sound", "text"),
    "output": ("name", "description", "labels", "steps", "answer"),
    "image": ("resize", "fit", "interpolation", "crop", "crop_rounding", "fill", "colors", "scale",
              "mean", "std", "layout", "draft"),
    "sound": ("rate", "features", "seconds"),
    "text": ("tokenizer", "max_tokens", "pad", "mask", "types"),
    "step": ("softmax", "sigmoid", "normalize", "arg_max", "pool", "threshold"),
    "answer": ("classes", "boxes", "map", "text"),
    "boxes": ("form", "order", "relative", "objectness", "picture", "normalized", "scores",
              "classes", "points", "angle", "masks", "class_count", "background",
              "score", "iou", "count", "across_classes"),
    "embedding": ("pooling", "normalize", "max_tokens", "prefix"),
    "generation": ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens",
                   "stop_token_ids", "infill", "thinking", "tools"),
}
# What a classifier gives, for people: the best of its classes, as probabilities.
CLASSES = {"name": "scores", "steps": ["softmax"], "answer": {"classes": 5}}


# ---------------------------------------------------------------- packages

def release(version):
    """"5.23.0rc1" as (5, 23, 0)."""
    return tuple(int(part) for part in re.match(r"[0-9]+(\.[0-9]+)*", version)[0].split("."))


def installed(package):
    """The version of |package|; None: there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_packages(*packages):
    """Refuses a package that is missing or too old; warns of one that is newer than those tried."""
    for package in packages:
        first, untried = {**PACKAGES, **LIBRARIES}[package]
        got = installed(package)
        if got is None or release(got) < release(first):
            raise ImportError(f"{package}: expected {first} or newer, got {got or 'none'}: "
                              f"pip install '{package}>={first},<{untried}'")
        if release(got) >= release(untried):
            warnings.warn(f"{package}: {got} was not tried, expected {first} or newer, and older "
                          f"than {untried}", stacklevel=3)


# ---------------------------------------------------------------- words

def refuse(place, word, words):
    near = difflib.get_close_matches(str(word), words, 1)
    raise ValueError(f"{place}: expected one of {', '.join(words)}, got {word!r}"
                     + (f"; did you mean {near[0]!r}?" if near else ""))


def check_members(place, value, kind):
    """|value|, as an object of a card."""
    if not isinstance(value, dict):
        raise ValueError(f"{place}: expected a dict, got {value!r}")
    for member in value:
        if member not in MEMBERS[kind]:
            refuse(place, member, MEMBERS[kind])
    return value


def check_word(place, value, kind):
    """|value|, as a word or as an object with one member whose name is the word."""
    if isinstance(value, str):
        if value not in MEMBERS[kind]:
            refuse(place, value, MEMBERS[kind])
    elif len(check_members(place, value, kind)) != 1:
        raise ValueError(f"{place}: expected one member, got {len(value)}")
    return value


def is_name(text):
    """Is it a name for pted?"""
    return len(text) <= NAME_MAX and NAME.fullmatch(text) is not None and not ALIAS.fullmatch(text)


def check_name(place, name):
    if not isinstance(name, str) or not is_name(name):
        raise ValueError(f"{place}: expected a name of 1 to {NAME_MAX} of A-Z a-z 0-9 _ - . :, "
                         f"got {name!r}")
    return name


# ---------------------------------------------------------------- inputs and outputs

def describe_labels(labels):
    """A list of texts; the path of a file stays one."""
    return labels if isinstance(labels, str) else [str(text) for text in labels]


def describe_answer(place, answer):
    check_word(place, answer, "answer")
    if isinstance(answer, dict) and "boxes" in answer:
        check_members(f"{place}['boxes']", answer["boxes"], "boxes")
    return answer


def describe_steps(place, steps):
    if isinstance(steps, (str, dict)):
        raise ValueError(f"{place}: expected a list of steps, got {steps!r}")
    return [check_word(f"{place}[{i}]", step, "step") for i, step in enumerate(steps)]


def describe_entry(place, entry, kind):
    """An entry of "inputs" or "outputs": a name, None or an object."""
    if entry is None:
        return None
    if not isinstance(entry, dict):
        return check_name(place, entry)
    entry = dict(check_members(place, entry, kind))
    for member in ("image", "sound", "text"):
        if member in entry:
            check_members(f"{place}[{member!r}]", entry[member], member)
    if entry.get("name") is not None:
        check_name(f"{place}['name']", entry["name"])
    if "labels" in entry:
        entry["labels"] = describe_labels(entry["labels"])
    if "steps" in entry:
        entry["steps"] = describe_steps(f"{place}['steps']", entry["steps"])
    if "answer" in entry:
        describe_answer(f"{place}['answer']", entry["answer"])
    return entry


def describe_entries(what, entries, kind):
    """A list in the order of the program, or a dict by the names that the program has."""
    if isinstance(entries, dict):
        return {name: describe_entry(f"{what}[{name!r}]", entry, kind)
                for name, entry in entries.items()}
    if isinstance(entries, str):
        raise ValueError(f"{what}: expected a list or a dict, got {entries!r}")
    return [describe_entry(f"{what}[{i}]", entry, kind) for i, entry in enumerate(entries)]


def name_of(entry):
    return entry.get("name") if isinstance(entry, dict) else entry


def add_labels(entry, labels, name):
    """|entry| of "outputs", with |labels|."""
    if isinstance(entry, dict) and "labels" in entry:
        raise ValueError(f"labels[{name!r}]: the output has labels of its own")
    entry = {"name": entry} if isinstance(entry, str) else entry or {}
    return {**entry, "labels": describe_labels(labels)}


def describe_outputs(outputs, labels):
    """The card's "outputs"; |labels|: by the names of outputs, present or new ones."""
    if outputs is None:
        return {name: {"labels": describe_labels(texts)} for name, texts in labels.items()} or None
    outputs = describe_entries("outputs", outputs, "output")
    places = list(outputs) if isinstance(outputs, dict) else range(len(outputs))
    for name, texts in labels.items():
        found = [at for at in places if name in (at, name_of(outputs[at]))]
        if not found:
            names = [str(name_of(outputs[at]) or at) for at in places]
            refuse("labels", name, names)
        outputs[found[0]] = add_labels(outputs[found[0]], texts, name)
    return outputs


def describe_inputs(names, inputs, count):
    """The card's "inputs": |inputs| over |names|, which are by alias; the program has |count|."""
    entries = describe_entries("inputs", inputs or {}, "input")
    if not isinstance(entries, dict):
        if len(entries) > count:
            raise ValueError(f"inputs: expected at most {count}, got {len(entries)}")
        entries = {f"input_{i}": entry for i, entry in enumerate(entries)}
    aliases = {name: alias for alias, name in names.items()}
    merged = dict(names)
    for name, entry in entries.items():
        alias = aliases.get(name, name)
        if isinstance(entry, dict) and alias in names:
            entry = {"name": names[alias], **entry}
        if entry is not None:
            merged[alias] = entry
    return merged


# ---------------------------------------------------------------- pictures

def describe_pictures(weights):
    """The card's "image": what weights.transforms() of torchvision does to a picture."""
    preset = weights.transforms()
    kind = type(preset).__name__
    if kind != "ImageClassification":
        raise ValueError(f"weights: expected those of a classifier, got a preset {kind}; "
                         "inputs=[{'name': ..., 'image': {...}}] says the same")
    resize, crop = ([int(side) for side in one] for one in (preset.resize_size, preset.crop_size))
    interpolation = getattr(preset.interpolation, "value", str(preset.interpolation))
    if interpolation not in FILTERS:
        raise ValueError(f"weights: expected one of {', '.join(FILTERS)}, got {interpolation}")
    return {"resize": resize if len(resize) > 1 else resize[0],
            "interpolation": interpolation, "crop": crop if len(crop) > 1 else crop[0],
            "mean": [float(x) for x in preset.mean], "std": [float(x) for x in preset.std]}


def add_picture(inputs, weights):
    """The first input is a picture, as |weights| of torchvision take it, unless it says more."""
    entry = inputs.get("input_0")
    entry = {"name": entry} if isinstance(entry, str) else entry or {}
    image = entry.get("image") or describe_pictures(weights)
    return {**inputs, "input_0": {**entry, "image": image}}


# ---------------------------------------------------------------- the card

def card_of(names, count, *, inputs=None, outputs=None, labels=None, description=None, shapes=None,
            weights=None, **more):
    """The card as export() is told. |names|: of positional arguments, by alias; |count|: of the
    inputs. |more|: other members of the card."""
    check_members("export()", more, "card")
    inputs = describe_inputs(names, inputs, count)
    if weights is not None:
        inputs = add_picture(inputs, weights)
        labels = weights.meta["categories"] if labels is None else labels
        if outputs is None and not isinstance(labels, dict):
            outputs = [CLASSES]
    for kind in ("embedding", "generation"):
        if kind in more:
            check_members(kind, more[kind], kind)
    by_output = labels if isinstance(labels, dict) else {}
    card = {"description": description, "inputs": inputs,
            "outputs": describe_outputs(outputs, by_output),
            "labels": None if labels is None or by_output else describe_labels(labels),
            "warm_up": [{"shapes": {name: list(dims) for name, dims in one.items()}}
                        for one in shapes or ()], **more}
    return {name: value for name, value in card.items() if value not in (None, {}, [])}
