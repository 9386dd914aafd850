#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports a model of PyTorch for pted, together with its card: one call, one file to copy.

    from pted_export import export

    export(net, (torch.rand(1, 3, 224, 224),), "mobilenet.pte",
           dynamic_shapes=({0: torch.export.Dim("batch", max=16)},),
           outputs=["scores"], labels=open("labels.txt").read().splitlines(),
           description="1000 classes of ImageNet", shapes=[{"x": (8, 3, 224, 224)}])

writes mobilenet.pte and mobilenet.card.json. Positional arguments of forward() get their names in
the card; those of keyword arguments and of dictionaries are in the program already. Clients then
say "x" in place of "input_0", and get "tabby" in place of 281.

Works with ExecuTorch 1.4.1 as PyPI has it. `pte card --check CARD FILE` compares the two.
"""
import inspect
import json
import re
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from torch.utils import _pytree as pytree

NAME = re.compile(r"(?!-)[A-Za-z0-9_:-]+([.][A-Za-z0-9_:-]+)*")
ALIAS = re.compile(r"(input|output)_[0-9]+")
NAME_MAX = 128


def is_name(text):
    """Is it a name for pted? Others are left out of the card."""
    return len(text) <= NAME_MAX and NAME.fullmatch(text) is not None and not ALIAS.fullmatch(text)


def partitioners(backend):
    if backend == "portable":
        return []
    if backend == "xnnpack":
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        return [XnnpackPartitioner()]
    raise ValueError(f"backend: expected xnnpack or portable, got {backend!r}")


def argument_names(forward, count):
    """Names of the first |count| positional arguments; None where there is no good one."""
    names = []
    for parameter in inspect.signature(forward).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind == parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}.{i}" for i in range(count - len(names))]
    return names[:count] + [None] * (count - len(names))


def key_text(key):
    """A step into a tuple, a list or a dictionary."""
    return str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", key))))


def name_inputs(forward, args):
    """The card's "inputs": by alias, for values that the program itself has no names for."""
    inputs, index = {}, 0
    for name, arg in zip(argument_names(forward, len(args)), args):
        for path, _ in pytree.tree_flatten_with_path(arg)[0]:
            has_key = any(isinstance(key, pytree.MappingKey) for key in path)
            full = ".".join([name or "", *map(key_text, path)])
            if not has_key and name and is_name(full):
                inputs[f"input_{index}"] = full
            index += 1
    return inputs


def describe_outputs(outputs, labels):
    """The card's "outputs": a list of names, or an object by the names that the program has."""
    if isinstance(labels, dict):
        listed = {name: {"name": name, "labels": list(texts)} for name, texts in labels.items()}
        if outputs is None:
            return {name: {"labels": entry["labels"]} for name, entry in listed.items()}
        unknown = sorted(set(listed) - set(outputs))
        if unknown:
            raise ValueError(f"labels: expected names of outputs, got {unknown[0]!r}")
        return [listed.get(name, name) for name in outputs]
    return list(outputs) if outputs is not None else None


def make_card(forward, args, outputs, labels, description, shapes, more):
    card = {"description": description, "inputs": name_inputs(forward, args),
            "outputs": describe_outputs(outputs, labels),
            "labels": None if labels is None or isinstance(labels, dict) else list(labels),
            "warm_up": [{"shapes": {name: list(dims) for name, dims in one.items()}}
                        for one in shapes or ()], **more}
    return {name: value for name, value in card.items() if value not in (None, {}, [])}


def export(module, args, path, kwargs=None, *, dynamic_shapes=None, backend="xnnpack",
           outputs=None, labels=None, description=None, shapes=None, compile_config=None,
           program_config=None, **more):
    """Writes the program at |path|, which ends in .pte, and its card beside it.

    |args|, |kwargs|: an example of a call. |dynamic_shapes|: as torch.export.export() has it.
    |backend|: "xnnpack", or "portable" without a delegate. |outputs|: names of outputs in their
    order, None for one that keeps its own. |labels|: a list of names of classes, or such lists by
    the names of outputs. |shapes|: for each call that pted makes before it is ready, shapes by the
    names of inputs. |more|: further members of the card, such as max_batch=8. |compile_config|,
    |program_config|: an EdgeCompileConfig and an ExecutorchBackendConfig. Returns the path of the
    card.
    """
    path = Path(path)
    if path.suffix != ".pte":
        raise ValueError(f"path: expected NAME.pte, got {path.name!r}")
    card = make_card(module.forward, args, outputs, labels, description, shapes, more)
    exported = torch.export.export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
    program = to_edge_transform_and_lower(exported, partitioner=partitioners(backend),
                                          compile_config=compile_config or EdgeCompileConfig())
    beside = path.with_suffix(".card.json")
    beside.write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    program.to_executorch(program_config).save(str(path))
    return beside
