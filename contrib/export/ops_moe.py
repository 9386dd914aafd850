# SPDX-License-Identifier: MIT
"""Cases of mixtures of experts: llama::quantized_moe_ffn, with weights that this file packs itself.

torchao packs such weights only on Arm. A packed matrix is [header][blocks of 8 rows]. The header
has 16 words: magic, kind (1: universal), bits, has zero points, has a bias, 8, 16, 2, zeros. A
block has for each group of columns: its numbers, 8 scales (f32), 8 sums (i32). Numbers come by 16
columns: columns 0 to 7 of all 8 rows, then 8 to 15. Of 4 bits, numbers i and i + 16 of 32 share a
byte.

ExecuTorch's kernel for x86 multiplies floats, its kernel for Arm rounds activations to 8 bits, row
by row, as pted does. So what is expected is computed here, and the kernel for x86 confirms the
rest.
"""
import contextlib

import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401: defines operators
import torch
from torch.export import Dim
from torch.utils._python_dispatch import TorchDispatchMode

from ops_case import ORACLES, case, family, real

MAGIC, UNIVERSAL, ROWS, COLUMNS = 6712, 1, 8, 16
DENSE = {}  # by the address of packed weights: [experts, rows, columns] as floats


def pack(numbers, scales, bits):
    """numbers [rows, columns] of i8, scales [rows, groups]"""
    rows, columns = numbers.shape
    groups = scales.shape[1]
    header = [MAGIC, UNIVERSAL, bits, 0, 0, ROWS, COLUMNS, 2] + [0] * 8
    parts = [torch.tensor(header, dtype=torch.int32).view(torch.uint8)]
    # block, row, group, step, half, 8
    cut = numbers.reshape(rows // ROWS, ROWS, groups, -1, 2, 8).permute(0, 2, 3, 4, 1, 5)
    for b, block in enumerate(cut):
        for g, group in enumerate(block):
            values = group.reshape(-1).view(torch.uint8)
            if bits == 4:
                pairs = (values + 8).reshape(-1, 2, 16)
                values = (pairs[:, 0] | pairs[:, 1] << 4).reshape(-1)
            own = slice(b * ROWS, (b + 1) * ROWS)
            sums = numbers[own].reshape(ROWS, groups, -1)[:, g].sum(1, dtype=torch.int32)
            parts += [values, scales[own, g].contiguous().view(torch.uint8), sums.view(torch.uint8)]
    return torch.cat(parts)


def pack_experts(weights, group, bits, spare=0):
    """weights [experts, rows, columns]; |spare| bytes behind each expert's"""
    most = 2**(bits - 1)
    cut = weights.reshape(*weights.shape[:2], -1, group)
    scales = cut.abs().amax(-1) / (most - 0.5)
    numbers = (cut / scales[..., None]).round().clamp(-most, most - 1)
    dense = (numbers * scales[..., None]).reshape(weights.shape)
    numbers = numbers.to(torch.int8).reshape(weights.shape)
    packed = torch.stack([pack(n, s, bits) for n, s in zip(numbers, scales)])
    return torch.nn.functional.pad(packed, (0, spare)), dense


@contextlib.contextmanager
def packing():
    """torchao has the operator that packs, as far as ExecuTorch's transformation calls it."""
    library = torch.library.Library("torchao", "FRAGMENT")
    library.define("_pack_8bit_act_4bit_weight(Tensor numbers, Tensor scales, Tensor? zeros, "
                   "int group, Tensor? bias, str? target) -> Tensor")
    library.impl("_pack_8bit_act_4bit_weight",
                 lambda numbers, scales, zeros, group, bias, target: pack(
                     numbers, scales.reshape(len(numbers), -1), 4), "CPU")
    try:
        yield
    finally:
        library._destroy()


class Experts(torch.nn.Module):

    def __init__(self, experts, chosen, dim, hidden, group, bits=4, score="sigmoid", bias=False,
                 scale=1.0, spare=0):
        super().__init__()
        up, dense_up = pack_experts(real(experts, 2 * hidden, dim) / dim**0.5, group, bits, spare)
        down = real(experts, dim, hidden) / hidden**0.5
        down, dense_down = pack_experts(down, group, bits, spare)
        self.register_buffer("gate", real(experts, dim) / dim**0.5)
        self.register_buffer("bias", real(experts) if bias else torch.empty(0))
        self.register_buffer("up", up)
        self.register_buffer("down", down)
        self.rest = (chosen, experts, hidden, dim, group, bits, score, scale)
        DENSE[up.data_ptr()], DENSE[down.data_ptr()] = dense_up, dense_down

    def forward(self, *x):
        return torch.ops.llama.quantized_moe_ffn(*x, self.gate, self.bias, self.up, self.down,
                                                 *self.rest)


def rounded(x):
    """Rows as they are after a trip through 8 bits, whose range includes 0."""
    low, high = x.amin(-1, True).clamp(max=0), x.amax(-1, True).clamp(min=0)
    steps = torch.where(low == high, 1, 255 / (high - low))
    low, high = low * steps, high * steps
    zero = torch.where(-128 + low + (127 + high) > 0, -128 - low, 127 - high)
    zero = zero.clamp(-128, 127).round()
    return (((x * steps).round() + zero).clamp(-128, 127) - zero) / steps


def feed_forward(stored, x, gate, bias, up, down, chosen, experts, hidden, dim, group, bits, score,
                 scale):
    """|stored|: what activations are after they have been stored for a product."""
    scores = x @ gate.T
    if score == "sigmoid":
        scores = scores.sigmoid()
        places = (scores + bias if bias.numel() else scores).topk(chosen).indices
        factors = scores.gather(-1, places)
        factors = factors * scale / factors.sum(-1, True)
    else:
        factors, places = scores.topk(chosen)
        factors = factors.softmax(-1)
    a, b = torch.einsum("td,tkfd->tkf", stored(x), DENSE[up.data_ptr()][places]).chunk(2, -1)
    inner = torch.nn.functional.silu(a) * b
    outer = torch.einsum("tkf,tkdf->tkd", stored(inner), DENSE[down.data_ptr()][places])
    return (outer * factors[..., None]).sum(1)


class ByFormula(TorchDispatchMode):

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.namespace != "llama":
            return result
        torch.testing.assert_close(feed_forward(lambda x: x, *args), result, rtol=1e-4, atol=1e-5)
        return feed_forward(rounded, *args)


ORACLES["moe"] = ByFormula


@family
def moe():
    # A sum in another order can round one activation to the neighbouring number of 8 bits.
    fine = {"rtol": 1e-3, "atol": 2e-3}
    return [
        case("sigmoid", Experts(5, 2, 32, 48, 16, bias=True, scale=2.5), real(7, 32), **fine),
        case("softmax", Experts(6, 3, 64, 32, 32, score="softmax"), real(1, 64), **fine),
        case("of_8_bits", Experts(4, 2, 32, 64, 16, bits=8), real(9, 32), **fine),
        # one scale for a row of weights, for all rows or not
        case("one_group", Experts(3, 2, 32, 32, 32), real(5, 32), **fine),
        case("one_group_inside", Experts(3, 2, 64, 32, 32), real(5, 64), **fine),
        case("one_expert", Experts(1, 1, 32, 32, 16, scale=0.5), real(3, 32), **fine),
        case("all_experts", Experts(4, 4, 32, 16, 16, score="softmax"), real(6, 32), **fine),
        case("spare_bytes", Experts(2, 1, 32, 32, 32, spare=24), real(4, 32), **fine),
        case("dynamic", Experts(3, 1, 32, 32, 16), real(4, 32),
             dynamic=({0: Dim("tokens", min=1, max=300)},),
             more=[(real(n, 32),) for n in (1, 2, 300)], **fine),
    ]
