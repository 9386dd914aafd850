# SPDX-License-Identifier: MIT
"""Cases of what exporters of language models call. What is expected, ExecuTorch's kernels say."""
import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401: defines operators
import torch
from torch.export import Dim

from ops_case import ORACLES, case, family, floats, ints, real, short
from ops_quant import ByExecuTorch

llama = torch.ops.llama
ORACLES["llm"] = ByExecuTorch

# This one has no form for the exporter.
library = torch.library.Library("preprocess", "IMPL")
library.impl("tile_crop", lambda x, t: x.new_empty(x[0].numel() // t**2, x.shape[0], t, t), "Meta")


class Cached(torch.nn.Module):
    """A cache that the call writes to: a buffer, as in a model. No file says what is in it."""

    def __init__(self, update, *shape, dtype=torch.float32):
        super().__init__()
        self.update = update
        self.register_buffer("keys", torch.zeros(shape, dtype=dtype))
        self.register_buffer("values", torch.zeros(shape, dtype=dtype))

    def forward(self, *args):
        return self.update(self.keys, self.values, *args)


def update(start):

    def run(keys, values, rows):
        llama.update_cache(rows, keys, 0)
        llama.update_cache(rows * 2, keys, start)
        return keys + 0

    return run


def update_at(keys, values, rows, places):
    llama.update_cache(rows, keys, 2)
    llama.update_cache_with_indices(rows * 2, keys, 0, places)
    return keys * 2


def cached(start, length):

    def run(keys, values, q, k, v):
        out = llama.sdpa_with_kv_cache(q, k, v, keys, values, start, length, None, 0.0, True)
        return out, keys + 0, values + 0

    return run


def attend(start, causal=True, scale=None, mask=False):

    def run(q, k, v, *masks):
        return llama.custom_sdpa(q, k, v, start, masks[0] if mask else None, 0.0, causal, scale)

    return run


def attend_quantized(heads_first):

    def run(q, k, v, *params):
        return llama.custom_quantized_sdpa(q, k, v, 3, None, 0.0, True, None, *params, heads_first)

    return run


def quantized_inputs(heads_first, *shapes):
    """Rows of 8 bits; of each a zero point and a scale."""
    shapes = [(b, h, s, d) if heads_first else (b, s, h, d) for b, s, h, d in shapes]
    rows = [ints(torch.int8, *shape, low=-128, high=128) for shape in shapes]
    params = []
    for shape in shapes:
        params += [ints(torch.int8, *shape[:-1], 1), torch.rand(*shape[:-1], 1) / 40]
    return (*rows, *params)


def heads(dtype, queries, rows, q_heads, kv_heads, depth, batch=1):
    return (floats(dtype, batch, queries, q_heads, depth), floats(dtype, batch, rows, kv_heads,
                                                                  depth),
            floats(dtype, batch, rows, kv_heads, depth))


def delta():
    """Queries, keys, values, decay, beta, state: 3 heads, 5 steps, depth 8, width 12."""
    return (real(2, 3, 5, 8), real(2, 3, 5, 8) / 3, real(2, 3, 5, 12), torch.rand(2, 3, 5, 8),
            torch.rand(2, 3, 5), real(2, 3, 8, 12))


@family
def llm():
    mask = torch.where(ints(torch.bool, 5, 11), 0.0, -float("inf"))
    mask[:, 3] = 0.5
    fine = {"rtol": 1e-4, "atol": 1e-5}
    cases = [
        # one query, some, more than a tile has; keys within a chunk and beyond
        case("decode", attend(9), *heads(torch.float32, 1, 16, 4, 2, 24), **fine),
        case("decode_long", attend(299), *heads(torch.float32, 1, 300, 8, 1, 12), **fine),
        case("prefill", attend(0), *heads(torch.float32, 7, 16, 3, 3, 5), **fine),
        case("chunk", attend(140), *heads(torch.float32, 33, 180, 4, 2, 9, batch=2), **fine),
        case("all_keys", attend(4, causal=False), *heads(torch.float32, 5, 11, 2, 1, 8), **fine),
        case("scaled", attend(2, scale=0.3), *heads(torch.float32, 5, 11, 2, 1, 8), **fine),
        case("masked", attend(0, causal=False, mask=True), *heads(torch.float32, 5, 11, 4, 2, 8),
             mask, **fine),
        case("dynamic", attend(3), *heads(torch.float32, 4, 40, 4, 2, 8), dynamic=({
            1: Dim("queries", min=1, max=30)
        }, None, None), more=[heads(torch.float32, n, 40, 4, 2, 8) for n in (1, 30)], **fine),
        case("quantized", attend_quantized(False),
             *quantized_inputs(False, (1, 4, 4, 16), (1, 20, 2, 16), (1, 20, 2, 16)),
             rtol=1e-3, atol=1e-3),
        case("quantized_heads", attend_quantized(True),
             *quantized_inputs(True, (1, 4, 4, 16), (1, 20, 2, 16), (1, 20, 2, 16)),
             rtol=1e-3, atol=1e-3),
        case("update", Cached(update(3), 2, 9, 3, 4), real(2, 5, 3, 4)),
        case("update_end", Cached(update(4), 1, 9, 3, 4), real(1, 5, 3, 4)),
        case("update_i8", Cached(update(1), 1, 9, 3, 4, dtype=torch.int8),
             ints(torch.int8, 1, 8, 3, 4)),
        case("update_at", Cached(update_at, 2, 9, 3, 4), real(2, 3, 3, 4),
             torch.tensor([[0, 8, 3], [5, 5, 1]])),
        case("cached", Cached(cached(6, 3), 1, 16, 2, 8), *heads(torch.float32, 3, 3, 4, 2, 8),
             **fine),
        case("hadamard", lambda a, b:
             (llama.fast_hadamard_transform(a), llama.fast_hadamard_transform(b)), real(3, 2, 64),
             real(5, 1), atol=1e-5),
        case("delta_rule", llama.channelwise_gated_delta_rule, *delta(), rtol=1e-4, atol=1e-4),
        case("tile_crop", lambda a: torch.ops.preprocess.tile_crop(a, 3), real(2, 6, 9)),
    ]
    for dtype in (torch.float16, torch.bfloat16):
        coarse = 2e-3 if dtype is torch.float16 else 2e-2
        cases.append(case(f"attend_{short(dtype)}", attend(130), *heads(dtype, 9, 150, 4, 2, 16),
                          rtol=coarse, atol=coarse))
    return cases
