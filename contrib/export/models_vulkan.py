# SPDX-License-Identifier: MIT
"""Bundled test models for the Vulkan delegate. ExecuTorch's wheel cannot run them, so that their
expected outputs are eager PyTorch's alone."""
from importlib.metadata import version

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from models import Case, Function, Method, Model, forward, model


def partitioners(**options):
    from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
    return [VulkanPartitioner({"require_dynamic_shapes": True, **options})]


def vulkan(description, module, calls, dynamic=None, **options):
    return forward("Vulkan: " + description, module, calls, dynamic, backend="vulkan",
                   is_replayed=False, **options)


@model
def vk_numbers():
    def numbers(a, b):
        return (torch.minimum(a, b) / (b.abs() + 1), a.clamp(-1, 1), F.leaky_relu(a, 0.2),
                F.hardswish(a) + F.hardsigmoid(b), F.hardshrink(a, 0.3), torch.rsqrt(a.abs() + 1),
                torch.sin(a) + torch.cos(b) + torch.tan(a * 0.3), torch.round(a * 3),
                F.gelu(a) - F.gelu(b, approximate="tanh"), torch.pow(a.abs() + 0.1, b), a**2,
                torch.where((a > 0) & (b <= 0.5), a, -b), a.eq(b), a.argmax(-1), a.amax(1),
                a.sum((1, 2), keepdim=True), a.var(1), F.softmax(a, -1), F.log_softmax(b, -1))
    return vulkan("pointwise operators, comparisons, reductions", Function(numbers),
                  [(torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5))], rtol=1e-3)


@model
def vk_images():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU6(), nn.Conv2d(8, 8, 3, 1, 1, groups=8),
                        nn.Hardtanh(-0.5, 0.5), nn.ConvTranspose2d(8, 4, 2, 2),
                        nn.Upsample(scale_factor=2, mode="bilinear"), nn.AvgPool2d(2),
                        nn.MaxPool2d(3, 2, 1), nn.PixelShuffle(2))
    return vulkan("convolutions with clamps, pools, resampling", net,
                  [(torch.randn(1, 3, 16, 16),)], rtol=1e-3)


class Tokens(nn.Module):
    """What a text model does with shapes, over any number of rows."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 16)
        self.norm = nn.LayerNorm(16)
        self.mix = nn.Linear(16, 48)

    def forward(self, tokens):
        x = self.norm(self.table(tokens))
        q, k, v = torch.split(self.mix(x), 16, -1)
        scores = torch.softmax(torch.bmm(q, k.transpose(1, 2)) / 4, -1)
        y = torch.cat([torch.bmm(scores, v), x], -1)
        return y.reshape(tokens.shape[0] * 6, -1), y[:, 1:4:2].unsqueeze(1), y.permute(1, 0, 2)


@model
def vk_tokens():
    rows = Dim("rows", min=1, max=8)
    calls = [(torch.randint(0, 11, (n, 6)),) for n in (2, 1, 8)]
    return vulkan("embedding, attention, views; any number of rows", Tokens(), calls,
                  ({0: rows},), rtol=1e-3)


@model
def vk_int4():
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization import IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerGroup
    group = PerGroup(32)
    net = nn.Module()    # the exporter wants names that begin with a letter
    net.plain, net.rounded = nn.Linear(64, 36), nn.Linear(64, 12)
    net.forward = lambda x: (torch.relu(net.plain(x)), net.rounded(x))
    quantize_(net.plain, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=group))
    quantize_(net.rounded, Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=group))
    return vulkan("4-bit weights, activations as they are and rounded row by row", net,
                  [(torch.randn(3, 64),)], rtol=1e-2, atol=2e-2)


class Rotations(nn.Module):
    """What language models turn; where rows begin is in a tensor."""

    def __init__(self):
        super().__init__()
        angles = torch.randn(16, 4)
        self.register_buffer("cosines", torch.cos(angles))
        self.register_buffer("sines", torch.sin(angles))
        self.register_buffer("both", torch.stack([self.cosines[:3], self.sines[:3]], -1))

    def forward(self, q, k, place):
        start = place[0].item()
        torch._check(start >= 0)
        torch._check(start + q.shape[1] <= 16)
        ops = torch.ops.et_vk
        halves = [torch.cat([table, table], -1) for table in (self.cosines, self.sines)]
        return (ops.apply_rotary_emb(q, k, self.cosines[:3], self.sines[:3]),
                ops.apply_rotary_emb_hf(q, k, *halves, start),
                ops.apply_rotary_emb_interleaved(q[:, :, 0], self.both))


@model
def vk_rotations():
    import executorch.backends.vulkan.custom_ops_lib  # noqa: F401 (defines torch.ops.et_vk)
    calls = [(torch.randn(1, 3, 4, 8), torch.randn(1, 3, 2, 8), torch.tensor([start]))
             for start in (0, 13)]
    return vulkan("rotations of queries and keys, an int that is read",
                  Rotations(), calls, rtol=1e-3)


class Caches(nn.Module):
    """Attention over caches that the delegate keeps to itself: nobody else has a use for them."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(12, 32)
        for name in ("keys", "values", "seen"):
            self.register_buffer(name, torch.zeros(1, 16, 2, 4))

    def forward(self, x, place):
        start = place[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[1] <= 16)
        q, k, v = torch.split(self.mix(x), [16, 8, 8], -1)
        q, k, v = (t.reshape(1, x.shape[1], -1, 4) for t in (q, k, v))
        llama = torch.ops.llama
        for rows, cache in ((k, self.keys), (v, self.values), (v * 2, self.seen)):
            llama.update_cache(rows, cache, start)
        return (llama.custom_sdpa(q, self.keys, self.values, start, None, 0.0, True),
                self.seen.sum(-1, keepdim=True))


@model
def vk_caches():
    import executorch.backends.vulkan.custom_ops_lib  # noqa: F401
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401 (torch.ops.llama)
    steps = [(rows, start, start == 0) for rows, start in
             ((3, 0), (1, 3), (2, 4), (1, 0), (4, 1))]
    cases = [Case((torch.randn(1, rows, 12), torch.tensor([start])), fresh=fresh)
             for rows, start, fresh in steps]
    rows = ({1: Dim("rows", min=1, max=10)}, None)
    return Model("Vulkan: attention over caches of the delegate's own, any number of rows",
                 {"forward": Method(Caches(), cases[0].args, rows)}, cases, backend="vulkan",
                 is_replayed=False, rtol=1e-3)


def vk_ranges():
    def ranges(x):
        return torch.arange(0.25, x.shape[0], 0.75) * 2
    return vulkan("a range with fractions, as long as an input's size says", Function(ranges),
                  [(torch.randn(n),) for n in (5, 3, 4, 16)], ({0: Dim("n", min=3, max=16)},))


class Buffers(nn.Module):
    """Buffers that change; one has a first content that is not 0."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(2, 4))
        self.register_buffer("mean", torch.tensor([1.0, -2.0, 0.5, 3.0]))

    def forward(self, x):
        self.count.add_(x)
        self.mean.mul_(0.5).add_(x[0])
        return self.count * 2, x + self.mean


def vk_buffers():
    cases = [Case((torch.randn(2, 4),), fresh=i == 0) for i in range(4)]
    return Model("Vulkan: buffers whose changes are written in place",
                 {"forward": Method(Buffers(), cases[0].args)}, cases,
                 backend="vulkan_aliases", is_replayed=False, rtol=1e-3)


# The pinned exporter cannot write these; the stored files are of 1.5.1.
if version("executorch") >= "1.5":
    model(vk_ranges)
    model(vk_buffers)
