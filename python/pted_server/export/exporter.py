# SPDX-License-Identifier: MIT
"""Models of PyTorch as programs with their cards, and what PyTorch computes of them."""
from __future__ import annotations

import inspect
import json
import re
import zipfile
from contextlib import contextmanager
from pathlib import Path

from .card import ALIAS, card_of, check_packages, is_name

check_packages("torch", "executorch")  # before an import fails in another way

# ruff: noqa: E402
import torch
from executorch.exir import (EdgeCompileConfig, ExecutorchBackendConfig,
                             to_edge_transform_and_lower)
from torch.utils import _pytree as pytree

from . import chat as chats
from .speech import SpeechDecoder, SpeechEncoder


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


def check_mode(module):
    """A network in training has operators that the exporter refuses, after minutes."""
    for name, part in module.named_modules():
        if part.training and isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
            raise ValueError(f"module: {name or 'it'} is in training: call eval() first")


def export(module, args, path, kwargs=None, *, dynamic_shapes=None, backend="xnnpack",
           compile_config=None, program_config=None, **card):
    """Writes the program at |path|, which ends in .pte, and its card beside it.

    |args|, |kwargs|: an example of a call. |dynamic_shapes|: as torch.export.export() has it.
    |backend|: "xnnpack", or "portable" without a delegate. |compile_config|, |program_config|: an
    EdgeCompileConfig and an ExecutorchBackendConfig. Returns the path of the card.

    |card| says more about the model:

    inputs, outputs  a list in the order of the program, or a dict by the names that it has. An
                     entry is a name, None to keep the one that there is, or a dict of what a card
                     can say: name, description; of an input image, sound or text; of an output
                     labels, steps and answer. Positional arguments have their names in forward().
    labels           names of classes: a list, the path of a file, or these by the names of outputs
    description      a text for people
    shapes           for each call that pted makes before it is ready, shapes by the names of inputs
    weights          of a classifier of torchvision, such as MobileNet_V3_Small_Weights.DEFAULT:
                     then clients may send pictures, and these weights say how they become the first
                     input, and the labels. Without outputs, the answer is then the best classes as
                     probabilities.
    others           members of the card, such as max_batch=8

    What a card cannot say is refused, before anything is exported.
    """
    path = Path(path)
    if path.suffix != ".pte":
        raise ValueError(f"path: expected NAME.pte, got {path.name!r}")
    check_mode(module)
    count = len(pytree.tree_leaves((tuple(args), kwargs or {})))
    text = json.dumps(card_of(name_inputs(module.forward, args), count, **card), indent=2,
                      ensure_ascii=False)
    lowered = partitioners(backend)
    with torch.no_grad():  # state that weights are written into would want gradients
        exported = torch.export.export(module, tuple(args), kwargs, dynamic_shapes=dynamic_shapes)
        program = to_edge_transform_and_lower(exported, partitioner=lowered,
                                              compile_config=compile_config or EdgeCompileConfig())
        program = program.to_executorch(program_config)
    beside = path.with_suffix(".card.json")
    beside.write_text(text + "\n", encoding="utf-8")
    program.save(str(path))
    return beside


# ---------------------------------------------------------------- what PyTorch computes

EDGES = "@edges"


def as_array(tensor):
    """As NumPy has it: row-major; of bfloat16, which it lacks, two raw bytes for each element."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view("V2")
    return tensor.numpy()


def leaf_array(leaf):
    """A tensor or a number of a call; None for other leaves."""
    if isinstance(leaf, (bool, int, float)):
        dtype = torch.float64 if isinstance(leaf, float) else None
        return as_array(torch.tensor(leaf, dtype=dtype))
    return as_array(leaf) if isinstance(leaf, torch.Tensor) else None


def module_paths(node):
    """The modules around |node|, outermost first: "", "stem", "stem.0"."""
    return [entry[0] for entry in (node.meta.get("nn_module_stack") or {}).values()]


def name_nodes(graph):
    """For each call in |graph|: the module of which it is the last one, else MODULE/OPERATOR."""
    calls = [node for node in graph.nodes if node.op == "call_function"]
    last = {path: node for node in calls for path in module_paths(node) if path}
    names = {}
    for node in calls:
        path = (module_paths(node) or [""])[-1]
        name = path if last.get(path) is node else "/".join(filter(None, (path, node.name)))
        name = re.sub("[^!-~]", "_", name)
        while name in names.values() or ALIAS.fullmatch(name):
            name += "'"
        names[node] = name
    return names


class Recorder(torch.fx.Interpreter):
    """Runs an exported graph and keeps a copy of what each of its calls computes."""

    def __init__(self, module):
        super().__init__(module)
        self.names = name_nodes(module.graph)
        self.values, self.numbers, self.edges = {}, {}, []

    def run_node(self, n):
        result = super().run_node(n)
        sources = {number for arg in n.all_input_nodes for number in self.numbers.get(arg, ())}
        if n in self.names and isinstance(result, torch.Tensor) and not result.is_complex():
            number = len(self.values)
            self.values[self.names[n]] = as_array(result.clone())
            self.edges += [(source, number) for source in sources]
            self.numbers[n] = {number}
        else:
            self.numbers[n] = sources  # of a list of tensors: what its items are made from
        return result

    def add_results(self, leaves):
        """The results of the module, which follow from the last values of the graph."""
        output = next(node for node in self.module.graph.nodes if node.op == "output")
        for i, (leaf, node) in enumerate(zip(leaves, pytree.tree_leaves(output.args))):
            value = leaf_array(leaf)
            if value is not None:
                sources = self.numbers.get(node, ())
                self.edges += [(source, len(self.values)) for source in sources]
                self.values[f"output_{i}"] = value


@contextmanager
def unchanged(module):
    """What is called within does not change the state of |module|."""
    kept = {name: buffer.clone() for name, buffer in module.named_buffers()}
    try:
        yield
    finally:
        for name, buffer in module.named_buffers():
            buffer.copy_(kept[name])


def save(path, arrays):
    """An archive of arrays. numpy.savez() has parameters called file and allow_pickle, so that it
    cannot write values of modules that are called so."""
    import numpy
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, array, allow_pickle=False)


def record(module, args, path, kwargs=None):
    """Writes what PyTorch computes for a call at |path|, which ends in .npz, for `pte compare`.

    It has the inputs of the call, input_0 and so on; the value of each operator in the order of
    the program, with the name of the module that it is the result of, "stem.0", or of the module
    and the operator within it, "block/add"; the results, which are those of the module itself and
    not of its export; and "@edges", rows of two numbers: the first value is an argument of the
    second one. Returns the names of the values.

    The module is exported as torch.export does it, with the sizes of |args|, and run operator by
    operator. So a value is what PyTorch's kernels compute, before any lowering, quantization or
    partitioning. Use the module and the arguments that export() got: of a quantized program, the
    module before convert_pt2e() shows what quantizing costs, and the one behind it what is wrong.
    """
    import numpy
    if Path(path).suffix != ".npz":
        raise ValueError(f"path: expected NAME.npz, got {Path(path).name!r}")
    args, kwargs = tuple(args), dict(kwargs or {})
    leaves = pytree.tree_leaves((args, kwargs))
    inputs = {f"input_{i}": leaf_array(leaf) for i, leaf in enumerate(leaves)}
    inputs = {name: value.copy() for name, value in inputs.items() if value is not None}
    with torch.no_grad():
        with unchanged(module):
            recorder = Recorder(torch.export.export(module, args, kwargs).module())
            copies = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            recorder.run(*copies, enable_io_processing=False)
        with unchanged(module):
            recorder.add_results(pytree.tree_leaves(module(*args, **kwargs)))
    edges = numpy.array(recorder.edges, dtype=numpy.int64).reshape(-1, 2)
    save(path, {**inputs, **recorder.values, EDGES: edges})
    return list(recorder.values)


# ---------------------------------------------------------------- models of transformers

def cache_for(owner, name, config, heads, dim, length):
    """A cache of keys and values, whose tensors are buffers of |owner|: the state of a program."""
    from transformers import StaticCache
    cache = StaticCache(config=config, max_cache_len=length)
    cache.early_initialization(1, heads, dim, torch.float32, "cpu")
    for i, layer in enumerate(cache.layers):
        for part in ("keys", "values", "cumulative_length"):
            owner.register_buffer(f"{name}_{part}_{i}", getattr(layer, part), persistent=False)
    return cache


def begin_at(cache, position):
    """The next tokens of |cache| are written from |position| on."""
    for layer in cache.layers:
        layer.cumulative_length.copy_(position.reshape(layer.cumulative_length.shape))


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Encoder(torch.nn.Module):
    """An encoder of texts as pted calls it: with names of arguments."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *, input_ids, attention_mask):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return {"last_hidden_state": out.last_hidden_state}


class StaticChat(torch.nn.Module):
    """A decoder as pted calls it: some tokens, and the position of the first one. Its caches are
    those of transformers, which take every kind of attention."""

    def __init__(self, model, context):
        super().__init__()
        config = model.config
        heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.model = model
        self.cache = cache_for(self, "cache", config, heads, dim, context)

    def forward(self, tokens, input_pos):
        begin_at(self.cache, input_pos)
        places = input_pos + torch.arange(tokens.shape[1])
        out = self.model(input_ids=tokens, position_ids=places.unsqueeze(0), use_cache=True,
                         past_key_values=self.cache, logits_to_keep=1)
        return out.logits[:, -1]


def chat_of(model, context, backend="xnnpack"):
    """The faster form of chat.py, if the model can have it. Without a delegate its operators
    are no gain."""
    try:
        if backend != "portable":
            return chats.chat_of(model, context)
    except chats.NoSuchForm as why:
        print(f"attention as transformers has it, because of {why}")
    return StaticChat(model, context)


def is_quantized(model):
    return any(type(part).__module__.startswith("torchao") for part in model.parameters())


def export_methods(methods, constants, path, backend, is_small=False):
    """|is_small|: the methods have tables of embeddings as quantize() makes them."""
    with torch.no_grad():
        program = to_edge_transform_and_lower(
            methods, partitioner=partitioners(backend), constant_methods=constants,
            compile_config=EdgeCompileConfig(_check_ir_validity=False))
    config = ExecutorchBackendConfig(do_quant_fusion_and_const_prop=is_small)
    program.to_executorch(config).save(str(path))


def export_encoder(model, path, max_tokens=512, pooling="mean", backend="xnnpack", **embedding):
    """Writes |model|, an AutoModel of transformers such as BERT, and its card; returns its path.

    |embedding|: further members of "embedding" in the card, such as prefix="passage: ".
    tokenizer.json belongs beside the program.
    """
    check_packages("transformers")
    tokens = torch.ones(1, min(64, max_tokens), dtype=torch.int64)
    length = {1: torch.export.Dim("tokens", min=2, max=max_tokens)}
    return export(Encoder(model.eval().float()), (), path,
                  {"input_ids": tokens, "attention_mask": tokens.clone()}, backend=backend,
                  dynamic_shapes={"input_ids": length, "attention_mask": length},
                  embedding={"pooling": pooling, **embedding})


def write_chat(chat, path, context, backend="xnnpack"):
    """|chat|: a language model in one of the forms that chat_of() gives."""
    model = chat.model
    count = torch.export.Dim("count", min=1, max=context - 1)
    with torch.no_grad():
        exported = torch.export.export(
            chat, (torch.tensor([[1, 2, 3]]), torch.tensor([0])),
            dynamic_shapes={"tokens": {1: count}, "input_pos": None},
            strict=isinstance(chat, StaticChat))
    ends = [i for i in as_list(model.generation_config.eos_token_id) if i is not None]
    export_methods({"forward": exported},
                   {"get_vocab_size": model.config.vocab_size, "get_max_seq_len": context,
                    "get_max_context_len": context, "get_eos_ids": ends, "use_kv_cache": True},
                   path, backend, is_quantized(model))


def export_chat(model, path, context=2048, backend="xnnpack"):
    """Writes the language model |model|, one of transformers' ...ForCausalLM, at |path|.

    |context|: tokens of a prompt and its answer. tokenizer.json and tokenizer_config.json, which
    has the template of chats, belong beside the program.
    """
    check_packages("transformers")
    model = model.eval().float().requires_grad_(False)
    write_chat(chat_of(model, context, backend), path, context, backend)


def export_speech(model, path, backend="xnnpack"):
    """Writes |model|, a WhisperForConditionalGeneration of transformers, at |path|.

    tokenizer.json and generation_config.json belong beside the program.
    """
    check_packages("transformers")
    model = model.eval().float().requires_grad_(False)
    config = model.config
    features = torch.zeros(1, config.num_mel_bins, 2 * config.max_source_positions)
    with torch.no_grad():
        encoder = torch.export.export(SpeechEncoder(model), (features,))
        hidden = SpeechEncoder(model)(features)
        decoder = torch.export.export(
            SpeechDecoder(model), (torch.tensor([[0]]), hidden, torch.tensor([0])), strict=True)
    export_methods({"encoder": encoder, "text_decoder": decoder},
                   {"get_max_seq_len": config.max_target_positions,
                    "get_vocab_size": config.vocab_size,
                    "get_eos_id": as_list(config.eos_token_id)[0], "use_kv_cache": True,
                    "decoder_start_token_id": config.decoder_start_token_id}, path, backend,
                   is_quantized(model))
