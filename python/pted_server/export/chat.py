# SPDX-License-Identifier: MIT
"""Language models of transformers in the form that pted runs fastest, for the exporter.

The caches are buffers [1, context, heads, head size], which llama::update_cache writes from the
position of the first token on. llama::custom_sdpa reads the rows up to each token and nothing
behind them, and needs no mask. quantize() makes the weights of linear layers and of tables smaller.
"""
from __future__ import annotations

import inspect
import math

import torch

IMPLEMENTATION = "pted"
GROUP = 32  # weights with one scale, in 8da4w


class NoSuchForm(Exception):
    """The model has something for which there is no form here."""


def cache_shapes(model):
    """(heads, head size) of the keys of each layer, which a call with one token shows."""
    with torch.no_grad():
        out = model(input_ids=torch.tensor([[0]]), use_cache=True)
    cache = getattr(out, "past_key_values", None) or getattr(out, "cache", None)
    shapes = []
    for layer in getattr(cache, "layers", None) or ():
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if keys is None or values is None or keys.shape != values.shape or keys.dim() != 4:
            raise NoSuchForm(f"layers with a cache of another kind, {type(layer).__name__}")
        shapes.append((keys.shape[1], keys.shape[3]))
    if not shapes:
        raise NoSuchForm("no cache of keys and values")
    return shapes


def window_of(config, layer):
    """How many tokens |layer| looks back, its own among them; None: all."""
    types = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None)
    if types is None:
        is_used = getattr(config, "use_sliding_window", True)
        return window if window and is_used else None
    return window if types[layer] == "sliding_attention" else None


def check_layers(config):
    for layer_type in getattr(config, "layer_types", None) or ():
        if layer_type not in ("full_attention", "sliding_attention"):
            raise NoSuchForm(f"layers of type {layer_type}")


class Step:
    """What is the same in all layers of a call: the position of its first token."""

    def __init__(self):
        self.start = None


def layer_class():
    """The cache of one layer, for a Cache of transformers."""
    from transformers.cache_utils import CacheLayerMixin

    class RowsLayer(CacheLayerMixin):
        is_compileable = True
        is_sliding = False

        def __init__(self, owner, index, shape, step):
            super().__init__()
            self.owner, self.step, self.length = owner, step, shape[1]
            self.names = [f"cache_{part}_{index}" for part in ("keys", "values")]
            for name in self.names:
                owner.register_buffer(name, torch.zeros(shape), persistent=False)
            self.is_initialized = True

        def lazy_initialization(self, key_states, value_states):
            """Nothing: the buffers are there."""

        def update(self, key_states, value_states, *args, **kwargs):
            rows = [getattr(self.owner, name) for name in self.names]
            for row, states in zip(rows, (key_states, value_states)):
                torch.ops.llama.update_cache(states.transpose(1, 2), row, self.step.start)
            return tuple(row.transpose(1, 2) for row in rows)

        def get_mask_sizes(self, query_length):
            return self.length, 0

        def get_seq_length(self):
            return 0

        def get_max_length(self):
            return self.length

        get_max_cache_shape = get_max_length  # the name before transformers 5.10

    return RowsLayer


def window_mask(start, count, length, window):
    """0 for the |window| rows up to each of |count| tokens, -inf elsewhere."""
    at = start + torch.arange(count).reshape(-1, 1)
    rows = torch.arange(length).reshape(1, -1)
    is_seen = (rows <= at) & (rows > at - window)
    return torch.where(is_seen, 0.0, -math.inf)


def attend(module, query, key, value, attention_mask, scaling=None, **more):
    """The attention of transformers' AttentionInterface, by llama::custom_sdpa."""
    for member in ("softcap", "s_aux", "position_bias"):
        if more.get(member) is not None:
            raise NoSuchForm(f"attention with {member}")
    chat = module.pted_chat[0]
    length, window = key.shape[2], chat.windows[module.layer_idx]
    parts = [part.transpose(1, 2) for part in (query, key, value)]
    if window is None or window >= length:
        mask, is_causal = None, True
    else:
        mask, is_causal = window_mask(chat.step.start, query.shape[2], length, window), False
    return torch.ops.llama.custom_sdpa(*parts, chat.step.start, mask, 0.0, is_causal, scaling), None


class Chat(torch.nn.Module):
    """A decoder as pted calls it: some tokens, and the position of the first one. The attention of
    |model| has to be the one above."""

    def __init__(self, model, context):
        super().__init__()
        import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers llama::
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.cache_utils import Cache
        AttentionInterface.register(IMPLEMENTATION, attend)
        AttentionMaskInterface.register(IMPLEMENTATION, lambda *args, **more: None)
        config = model.config.get_text_config(decoder=True)
        check_layers(config)
        shapes = cache_shapes(model)
        self.model, self.context, self.step = model, context, Step()
        layer = layer_class()
        self.cache = Cache(layers=[layer(self, i, (1, context, *shape), self.step)
                                   for i, shape in enumerate(shapes)])
        self.windows = [window_of(config, i) for i in range(len(shapes))]
        # What needs the position comes behind its one read, so that rows of tokens, of caches and
        # of positions are one size for pted: only then beginnings are shared and guesses checked.
        self.register_buffer("places", torch.arange(context), persistent=False)
        parameters = inspect.signature(model.forward).parameters
        self.cache_name = "cache" if "cache" in parameters else "past_key_values"
        for module in model.modules():
            if hasattr(module, "layer_idx"):
                module.pted_chat = [self]  # a list, so that it is no part of |module|

    def forward(self, tokens, input_pos):
        start, count = input_pos[0].item(), tokens.shape[1]
        torch._check(start >= 0)
        torch._check(start + count <= self.context)
        self.step.start = start
        places = self.places.narrow(0, start, count)
        out = self.model(input_ids=tokens, position_ids=places.unsqueeze(0), use_cache=True,
                         logits_to_keep=1, **{self.cache_name: self.cache})
        return out.logits[:, -1]

    def reset(self):
        for name, buffer in self.named_buffers():
            if name.startswith("cache_"):
                buffer.zero_()


def chat_of(model, context):
    """|model| in this form. Raises NoSuchForm, and leaves the model as it was, if there is none."""
    before = model.config._attn_implementation
    try:
        chat = Chat(model, context)
        model.set_attn_implementation(IMPLEMENTATION)
        with torch.no_grad():
            chat(torch.tensor([[0, 0]]), torch.tensor([0]))
        chat.reset()
        return chat
    except (NoSuchForm, ValueError) as why:
        model.set_attn_implementation(before)
        raise NoSuchForm(str(why)) from why


def quantize(model, mode):
    """Changes the linear layers of |model|: weights of 4 bits in groups (8da4w) or of 8 bits in
    rows (int8), beside activations of 8 bits whose scale is found in each call. Tables of
    embeddings get 8 bits in rows. Returns the names of linear layers that stay as they are, because
    their rows do not divide into groups."""
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_api import (Int8DynamicActivationIntxWeightConfig,
                                                IntxWeightOnlyConfig, quantize_)
    is_small = mode == "8da4w"
    kept = [name for name, module in model.named_modules()
            if is_small and isinstance(module, torch.nn.Linear) and module.in_features % GROUP]
    quantize_(model, IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0)),
              lambda module, name: isinstance(module, torch.nn.Embedding))
    quantize_(model, Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4 if is_small else torch.int8,
        weight_granularity=PerGroup(GROUP) if is_small else PerAxis(0)),
        lambda module, name: isinstance(module, torch.nn.Linear) and name not in kept)
    return kept
