#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the bundled test models: NAME.pte, NAME.json and the tensors of NAME.cases/.

The expected outputs are eager PyTorch's. Every case is then replayed in ExecuTorch's own runtime,
so that a file whose program does not compute what its module computes is never written. A model's
seed comes from its name: exporting one model alone gives the same bytes as exporting all of them.
The layout of the description is in README.md.
"""
import argparse
import copy
import hashlib
import json
import logging
import math
import re
import shutil
import sys
import warnings
import zlib
from collections import Counter
from pathlib import Path

import torch
from torch.export import export
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import bound_sympy

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from executorch.exir import (EdgeCompileConfig, ExecutorchBackendConfig,  # noqa: E402
                             to_edge_transform_and_lower)
from executorch.exir._serialize._program import (PTEFile,  # noqa: E402
                                                 serialize_pte_binary)
from executorch.runtime import Runtime  # noqa: E402
from executorch.version import __version__ as executorch_version  # noqa: E402

import digits  # noqa: E402
import forms_xnnpack  # noqa: E402
import models  # noqa: E402
import models_vulkan  # noqa: E402
import models_xnnpack  # noqa: E402

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "models"
PARTITIONERS = {"portable": lambda _: None, "vulkan": lambda _: models_vulkan.partitioners(),
                "vulkan_aliases":
                    lambda _: models_vulkan.partitioners(alias_buffer_mutations=True),
                "xnnpack": lambda _: models_xnnpack.partitioners(),
                "forms": forms_xnnpack.partitioners}
KINDS = {type(None): "none", bool: "bool", int: "int", float: "float", str: "string"}


def leaves(tree):
    """The leaves in flattening order; None is a leaf, because it holds an index in the file."""
    return pytree.tree_leaves(tree, is_leaf=lambda leaf: leaf is None)


def export_method(method):
    return export(method.module, method.args, method.kwargs, dynamic_shapes=method.dynamic)


def prepare(model):
    """Makes the modules what is exported and what the expected outputs come from."""
    for method in model.methods.values():
        method.module.eval().requires_grad_(False)
        if method.quantize:
            graph = export_method(method)
            method.module = method.quantize(graph.module())


def lower(model):
    """Exports every method into one program; returns it with the exported graphs."""
    graphs = {name: export_method(method) for name, method in model.methods.items()}
    edge = to_edge_transform_and_lower(graphs, partitioner=PARTITIONERS[model.backend](model),
                                       constant_methods=model.constants or None,
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    return edge.to_executorch(ExecutorchBackendConfig(**model.config)), graphs


# ---- the description --------------------------------------------------------------------------

def dtype_name(dtype):
    return str(dtype).removeprefix("torch.")


def describe_leaf(name, value, ranges):
    """One input or output: a (fake) tensor with bounds of its dimensions, or a fixed scalar."""
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return {"name": name, "kind": "int" if isinstance(value, torch.SymInt) else "float"}
    if not isinstance(value, torch.Tensor):
        leaf = {"name": name, "kind": KINDS[type(value)]}
        return leaf if value is None else {**leaf, "fixed": value}
    shape, dynamic = [], []
    for index, size in enumerate(value.shape):
        if isinstance(size, int):
            shape.append(size)
            continue
        bounds = bound_sympy(size.node.expr, ranges)
        shape.append(int(bounds.upper))
        dynamic.append({"dim": index, "symbol": str(size.node.expr),
                        "min": int(bounds.lower), "max": int(bounds.upper)})
    leaf = {"name": name, "kind": "tensor", "dtype": dtype_name(value.dtype), "shape": shape}
    return {**leaf, "dynamic": dynamic} if dynamic else leaf


def describe_method(graph, method):
    values = {node.name: node.meta.get("val") for node in graph.graph.nodes}

    def describe(specs):
        args = [spec.arg for spec in specs if spec.kind.name in ("USER_INPUT", "USER_OUTPUT")]
        return [describe_leaf(arg.name or "constant",
                              arg.value if hasattr(arg, "value") else values[arg.name],
                              graph.range_constraints) for arg in args]
    return {"inputs": describe(graph.graph_signature.input_specs),
            "outputs": describe(graph.graph_signature.output_specs),
            "inputs_tree": call_tree(method.args, method.kwargs)}


def describe_constant(value):
    return {"constant": True, "inputs": [], "outputs": [
        describe_leaf(f"value{i}", leaf, {}) for i, leaf in enumerate(leaves(value))]}


def tree(value, counter):
    """JSON form of a pytree whose leaves take their numbers from the counter."""
    if isinstance(value, (tuple, list)):
        return {"type": type(value).__name__, "items": [tree(item, counter) for item in value]}
    if isinstance(value, dict):
        return {"type": "dict", "items": {k: tree(item, counter) for k, item in value.items()}}
    counter[0] += 1
    return {"type": "leaf", "index": counter[0] - 1}


def call_tree(args, kwargs):
    counter = [0]
    return {"args": tree(list(args), counter), "kwargs": tree(kwargs, counter)}


def operators(program):
    """Operators of each method that run as kernel calls, with their counts."""
    found = {}
    for plan in program.execution_plan:
        names = [f"{op.name}.{op.overload}" if op.overload else op.name for op in plan.operators]
        calls = Counter(names[step.instr_args.op_index] for chain in plan.chains
                        for step in chain.instructions if hasattr(step.instr_args, "op_index"))
        found[plan.name] = {"operators": dict(sorted(calls.items()))}
    return found


# ---- cases ------------------------------------------------------------------------------------

def little_endian(tensor):
    """Raw bytes, row-major; bool is one byte, an empty tensor is no bytes."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def write_leaf(value, folder, stem):
    if isinstance(value, torch.Tensor):
        (folder / f"{stem}.bin").write_bytes(little_endian(value))
        return {"kind": "tensor", "file": f"{folder.name}/{stem}.bin",
                "dtype": dtype_name(value.dtype), "shape": list(value.shape)}
    if value is None:
        return {"kind": "none"}
    return {"kind": KINDS[type(value)], "value": value}


def same(got, want, model):
    """|got - want| <= atol + rtol * |want|; integers and everything without a norm are equal."""
    if not isinstance(want, torch.Tensor) or not want.dtype.is_floating_point:
        return torch.equal(got, want) if isinstance(want, torch.Tensor) else got == want
    return got.shape == want.shape and torch.allclose(got, want, model.rtol, model.atol, True)


def replay(loaded, model, case, want):
    """Runs a case in ExecuTorch's runtime; raises when it disagrees with eager PyTorch."""
    got = leaves(loaded[case.method].execute(leaves((case.args, case.kwargs))))
    for index, (ours, theirs) in enumerate(zip(got, want, strict=True)):
        if not same(ours, theirs, model):
            raise ValueError(f"{model.name}, {case.method}, output {index}: the program gives "
                             f"{ours}, PyTorch gives {theirs}")


def write_cases(model, untouched, blob, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    records = []
    for number, case in enumerate(model.cases):
        if case.fresh:
            methods = copy.deepcopy(untouched)
        if case.fresh and model.is_replayed:
            program = Runtime.get().load_program(blob)
            loaded = {name: program.load_method(name) for name in program.method_names}
        if case.method in model.constants:
            result = model.constants[case.method]
        else:
            with torch.no_grad():
                result = methods[case.method].module(*case.args, **case.kwargs)
        if model.is_replayed:
            replay(loaded, model, case, leaves(result))
        records.append({
            "method": case.method, "state": "fresh" if case.fresh else "continue",
            "inputs": [write_leaf(leaf, folder, f"{number:02d}.in{i}")
                       for i, leaf in enumerate(leaves((case.args, case.kwargs)))],
            "outputs": [write_leaf(leaf, folder, f"{number:02d}.out{i}")
                        for i, leaf in enumerate(leaves(result))],
            "outputs_tree": tree(result, [0]), "inputs_tree": call_tree(case.args, case.kwargs),
            **case.extra})
    return records


# ---- one model --------------------------------------------------------------------------------

def write_json(path, description):
    """Indented JSON in which lists and objects of one line stay on one line."""
    text = json.dumps(description, indent=1, allow_nan=False)

    def join(match):
        line = re.sub(r"\s*\n\s*", " ", match.group())
        return line if len(line) <= 100 else match.group()
    for _ in range(2):
        text = re.sub(r"[\[{]\n[^\[\]{}]*[\]}]", join, text)
    path.write_text(text + "\n")


def write_model(name, out, folder=None):
    """Writes to |folder| of |out|, or to the model's own."""
    torch.manual_seed(zlib.crc32(name.encode()))
    model = models.MODELS[name]()
    model.name = name
    out /= folder or model.folder
    prepare(model)
    untouched = copy.deepcopy(model.methods)    # exporting must not change the buffers
    program, graphs = lower(model)
    blob = bytes(program.buffer)
    if model.edit:
        model.edit(program.executorch_program)
        blob = bytes(serialize_pte_binary(PTEFile(program=program.executorch_program)))
    methods = {m: describe_method(graphs[m], method) for m, method in model.methods.items()}
    methods.update({m: describe_constant(value) for m, value in model.constants.items()})
    cases = write_cases(model, untouched, blob, out / f"{name}.cases")
    (out / f"{name}.pte").write_bytes(blob)
    write_json(out / f"{name}.json", {
        "name": name, "set": "bundled", "description": model.description, "backend": model.backend,
        "source": {"script": "contrib/export/export.py", "weights": model.weights,
                   "licence": model.licence, "torch": torch.__version__,
                   "executorch": executorch_version},
        "file": f"{name}.pte", "size": len(blob), "sha256": hashlib.sha256(blob).hexdigest(),
        "data_files": [], "methods": methods,
        "tolerance": {"rtol": model.rtol, "atol": model.atol}, "facts": model.facts,
        "cases": cases, "program": {"methods": operators(program.executorch_program)}})
    print(f"{name:12} {len(blob):8} bytes, {len(cases)} cases", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="default: %(default)s")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    options = parser.parse_args()
    unknown = set(options.names) - set(models.MODELS)
    if unknown:
        parser.error(f"no model is called {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or models.MODELS:
        write_model(name, options.out)
    if not options.names:
        digits.write_images(options.out / "digits")


if __name__ == "__main__":
    sys.exit(main())
