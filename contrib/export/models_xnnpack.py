# SPDX-License-Identifier: MIT
"""Bundled test models for the XNNPACK delegate: every type of node that its exporter writes."""
import executorch.kernels.quantized  # noqa: F401: kernels of quantized_decomposed nodes
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from models import Case, Function, Method, Model, forward, model, randomize_norms


def partitioners():
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    return [XnnpackPartitioner()]


def int8(samples, dynamic=False):
    """Quantization after training: per channel, static or of each row when it runs."""
    def quantize(module):
        from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
            XNNPACKQuantizer, get_symmetric_quantization_config)
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
        config = get_symmetric_quantization_config(is_per_channel=True, is_dynamic=dynamic)
        prepared = prepare_pt2e(module, XNNPACKQuantizer().set_global(config))
        with torch.no_grad():
            for sample in samples:
                prepared(*sample)
        return convert_pt2e(prepared)
    return quantize


class Images(nn.Module):
    """Convolutions of every form, pools, resampling, and what moves pixels."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8),
                                   nn.ReLU6())
        self.depthwise = nn.Conv2d(8, 16, (3, 5), padding=(1, 2), groups=8)
        self.grouped = nn.Conv2d(16, 8, 3, dilation=2, padding=2, groups=4)
        self.prelu = nn.PReLU(8, 0.3)
        self.up = nn.ConvTranspose2d(8, 6, 3, 2, 1, output_padding=1)
        self.line = nn.Conv1d(6, 4, 3, padding=1)

    def forward(self, x):
        x = self.first(x)
        y = F.hardswish(self.grouped(F.leaky_relu(self.depthwise(x), 0.1))) + x
        y = self.prelu(y)
        pooled = (F.max_pool2d(y, 3, 2, 1), F.avg_pool2d(y, 2, 2),
                  F.max_pool2d(y, 2, 2, ceil_mode=True))
        up = F.hardtanh(self.up(F.pad(y, (1, 2, 0, 1), value=0.5)), -1, 2)
        wide = F.interpolate(up, size=(20, 31), mode="bilinear", align_corners=True)
        half = F.interpolate(up, scale_factor=0.5, mode="bilinear")
        line = self.line(up[:, :, 3])
        return (*pooled, wide, half[:, 1:4, :, 2:], line, y.mean((2, 3)), y.mean((-1, -2), True))


@model
def xnn_images():
    return forward("XNNPACK: convolutions of every form, pools, resampling",
                   randomize_norms(Images()), [(torch.randn(2, 3, 13, 18),)],
                   backend="xnnpack")


@model
def xnn_one_channel():
    """Images with channels last whose order is ambiguous: exporters declare one for the program and
    mean another one in the payload. ExecuTorch's runtime fails on most of them."""
    last = torch.channels_last
    height, width = Dim("height", min=4, max=16), Dim("width", min=4, max=16)
    sizes = ({2: height, 3: width},)
    pooled = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(1, 5, 1))
    nets = {"point": (nn.Conv2d(1, 5, 1), (1, 7, 5), None),
            "window": (nn.Conv2d(1, 4, 3, padding=1), (1, 7, 5), sizes),
            "up": (nn.ConvTranspose2d(3, 1, 2, 2), (3, 7, 5), sizes),
            "up_one": (nn.ConvTranspose2d(1, 1, 3, 2), (1, 7, 5), None),
            "pixel": (nn.Conv2d(6, 4, 1), (6, 1, 1), None),
            "pooled": (pooled, (1, 8, 6), None),
            "int8": (nn.Conv2d(1, 4, 3, padding=1), (1, 7, 5), None)}
    methods, cases = {}, []
    for name, (net, shape, dynamic) in nets.items():
        image = torch.randn(1, *shape).to(memory_format=last)
        methods[name] = Method(net.to(memory_format=last), (image,), dynamic)
        cases.append(Case((image,), name))
        if dynamic:
            cases.append(Case((torch.randn(1, shape[0], 9, 11).to(memory_format=last),), name))
    methods["int8"].quantize = int8([cases[-1].args])
    return Model("XNNPACK: channels last where several orders are the same bytes", methods, cases,
                 backend="xnnpack", is_replayed=False, atol=0.05)


class Numbers(nn.Module):
    """Element-wise nodes, products, and what moves rows; a dynamic number of them."""

    def __init__(self):
        super().__init__()
        self.wide, self.table = nn.Linear(12, 20), nn.Parameter(torch.randn(12, 7))
        self.row = nn.Parameter(torch.randn(12))

    def forward(self, x, y):
        bounded = x.clamp(0.1, 3)
        unary = torch.cat([x.abs(), -x, x.ceil(), x.floor(), x.exp()], -1)
        roots = torch.cat([bounded.log(), bounded.sqrt(), bounded.rsqrt(), x.sigmoid()], -1)
        waves = torch.cat([x.sin(), x.cos(), x.tanh()], 0)
        binary = torch.cat([x * self.row - y, torch.maximum(x, y) / bounded], 1)
        scores = torch.bmm(x.unsqueeze(1), y.unsqueeze(2)).squeeze(2)
        linear = F.relu(self.wide(x)), F.gelu(x @ self.table), F.elu(torch.minimum(x, y)) ** 2
        best, place = y.max(1)
        return (unary, roots, waves, binary, scores, *linear, F.softmax(x, -1), best, place,
                x.permute(1, 0).reshape(3, 4, -1), y[:, 2:9])


@model
def xnn_numbers():
    rows = Dim("rows", min=2, max=40)
    return forward("XNNPACK: element-wise nodes, products, dynamic rows", Numbers(),
                   [(torch.randn(n, 12) * 2, torch.randn(n, 12)) for n in (5, 2, 40)],
                   ({0: rows}, {0: rows}), backend="xnnpack", rtol=1e-3)


@model
def xnn_attention():
    def attend(q, k, v, mask):
        scores = torch.matmul(q, k.transpose(-1, -2)) / 3 + mask
        return torch.matmul(F.softmax(scores, -1), v).permute(0, 2, 1, 3)
    return forward("XNNPACK: products of four dims, a mask that is broadcast", Function(attend),
                   [tuple(torch.randn(2, 3, n, 8) for n in (5, 9, 9)) + (torch.randn(1, 1, 5, 9),)
                    for _ in range(2)], backend="xnnpack")


@model
def xnn_half():
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, 2, 1, 1, 8),
                        nn.Hardswish(), nn.AvgPool2d(2, 2), nn.Flatten(), nn.Linear(72, 6)).half()
    return forward("XNNPACK: half precision", net, [(torch.randn(1, 3, 12, 12).half(),)] * 2,
                   backend="xnnpack", rtol=1e-2, atol=1e-2)


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 1, 1, 1, 8)
        self.up, self.last = nn.ConvTranspose2d(8, 8, 2, 2), nn.Linear(16, 5)

    def forward(self, x):
        x = F.relu(self.first(x))
        y = F.hardtanh(self.second(x), -1, 1) + x
        y = torch.cat([F.max_pool2d(y, 2, 2), F.max_pool2d(x, 2, 2)], 1)
        return self.up(x), self.last(y.mean((2, 3)))


@model
def xnn_int8():
    samples = [(torch.randn(2, 3, 8, 10),) for _ in range(4)]
    built = forward("XNNPACK: static int8, per channel; tolerance is a step of the outputs",
                    Quantized(), samples[:2], backend="xnnpack", atol=0.06)
    built.methods["forward"].quantize = int8(samples)
    return built


@model
def pt2e():
    samples = [(torch.randn(2, 3, 8, 10),) for _ in range(4)]
    built = forward("static int8 without a delegate: quantized_decomposed nodes, per channel and "
                    "per tensor; tolerance is a step of the outputs", Quantized(), samples[:2],
                    atol=0.06)
    built.methods["forward"].quantize = int8(samples)
    return built


@model
def pt2e_rows():
    rows = Dim("rows", min=2, max=9)
    net = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 8, bias=False))
    samples = [(torch.randn(n, 32),) for n in (4, 2, 9)]
    built = forward("int8 chosen when it runs, without a delegate", net, samples, ({0: rows},),
                    rtol=1e-2, atol=3e-2)
    built.methods["forward"].quantize = int8(samples, dynamic=True)
    return built


@model
def xnn_rows():
    rows = Dim("rows", min=2, max=9)
    net = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 8, bias=False))
    samples = [(torch.randn(n, 32),) for n in (4, 2, 9)]
    built = forward("XNNPACK: int8 rows quantized when it runs, dynamic in number", net, samples,
                    ({0: rows},), backend="xnnpack", rtol=1e-2, atol=3e-2)
    built.methods["forward"].quantize = int8(samples, dynamic=True)
    return built


@model
def xnn_row_images():
    net = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, (2, 3), 2),
                        nn.Conv2d(4, 4, 3, padding=1, groups=4))
    samples = [(torch.randn(n, 3, 8, 9),) for n in (2, 1, 4)]
    built = forward("XNNPACK: int8 images quantized when it runs, dynamic in number", net, samples,
                    ({0: Dim("images", min=1, max=4)},), backend="xnnpack", rtol=1e-2, atol=3e-2)
    built.methods["forward"].quantize = int8(samples, dynamic=True)
    return built


@model
def xnn_int4():
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerGroup
    net = nn.Sequential(nn.Linear(64, 24), nn.SiLU(), nn.Linear(24, 64), nn.Linear(64, 6))
    quantize_(net, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4,
                                                         weight_granularity=PerGroup(32)),
              lambda module, _: isinstance(module, nn.Linear) and module.in_features % 32 == 0)
    return forward("XNNPACK: 4-bit weights in groups, int8 rows", net,
                   [(torch.randn(n, 64),) for n in (3, 3)], backend="xnnpack", rtol=1e-2,
                   atol=5e-3)
