# SPDX-License-Identifier: MIT
"""The bundled test models: each covers one family of operators or one corner of the format.

A function decorated with @model returns a Model; its name is the file's name. All use portable
operators only (no delegate). Weights are random but for the trained `digits`.
"""
import inspect
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from executorch.exir import schema

import digits as digits_data

MODELS = {}


def model(function):
    MODELS[function.__name__] = function
    return function


@dataclass
class Method:
    module: nn.Module
    args: tuple                      # example inputs
    dynamic: tuple | dict | None = None     # dynamic_shapes of torch.export
    quantize: object = None          # a function from the exported module to a quantized one
    kwargs: dict = field(default_factory=dict)    # more example inputs


@dataclass
class Case:
    args: tuple = ()
    method: str = "forward"
    fresh: bool = True               # a new instance; otherwise state carries on
    extra: dict = field(default_factory=dict)
    kwargs: dict = field(default_factory=dict)


@dataclass
class Model:
    description: str
    methods: dict[str, Method]
    cases: list[Case]
    constants: dict = field(default_factory=dict)    # methods that only return a stored value
    rtol: float = 1e-4
    atol: float = 1e-5
    weights: str = "random, seeded by the name"
    licence: str = ""
    facts: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)       # arguments of ExecutorchBackendConfig
    backend: str = "portable"        # or the delegate: xnnpack, vulkan
    is_replayed: bool = True         # ExecuTorch's runtime can run it as PyTorch does
    edit: object = None              # changes the program's plans before they are written
    folder: str = "."                # beside the bundled models
    name: str = ""


class Function(nn.Module):
    """A module without parameters around a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def forward(description, module, calls, dynamic=None, **options):
    """A model of one method; the first call is also its example input."""
    if dynamic and isinstance(module, Function):
        dynamic = (dynamic,)         # torch.export sees *args as one tuple
    return Model(description, {"forward": Method(module, calls[0], dynamic)},
                 [Case(call) for call in calls], **options)


def randomize_norms(net):
    """Batch norms as after training: otherwise they are the identity and prove nothing."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.3)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
    return net


# ---- small programs -----------------------------------------------------------------------------

@model
def add():
    infinity, nan = torch.full((2, 3), float("inf")), torch.full((2, 3), float("nan"))
    return forward("a + b, static shapes; also infinities and NaN", Function(lambda a, b: a + b),
                   [(torch.randn(2, 3), torch.randn(2, 3)), (infinity, -infinity),
                    (torch.randn(2, 3), nan)])


@model
def mlp():
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 24), nn.Tanh(),
                        nn.Linear(24, 5), nn.Softmax(-1))
    return forward("three linear layers and a softmax, dynamic batch 1 to 32", net,
                   [(torch.randn(n, 12),) for n in (4, 1, 3, 32)],
                   ({0: Dim("batch", min=1, max=32)},))


@model
def linear():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = nn.Linear(70, 33), nn.Linear(33, 1, bias=False)

        def forward(self, x, y):
            hidden = self.wide(x * 0.5)
            return self.narrow(hidden) * 2, hidden @ y, F.softmax(hidden, 0)
    return forward("matrix products with odd sizes and a scalar multiply, dynamic batch 1 to 16",
                   Net(), [(torch.randn(n, 70), torch.randn(33, 17)) for n in (4, 1, 7, 16)],
                   ({0: Dim("rows", min=1, max=16)}, None))


@model
def deep():
    """Little to send and much to compute: what tests of queues and deadlines wait for."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.again = nn.Linear(4, 96), nn.Linear(96, 96)
            self.narrow = nn.Linear(96, 4)

        def forward(self, x):
            hidden = self.wide(x)
            for _ in range(48):
                hidden = torch.tanh(self.again(hidden))
            return self.narrow(hidden)
    return forward("fifty products, the same weights again and again, dynamic batch 1 to 16384",
                   Net(), [(torch.randn(n, 4),) for n in (2, 1, 7, 64)],
                   ({0: Dim("rows", min=1, max=16384)},))


@model
def wide():
    """Much to send and little to compute: what tests of memory and slow clients wait for."""
    return forward("a sum of a tensor and a number, dynamic rows 1 to 65536",
                   Function(lambda x: x + 1), [(torch.randn(n, 64),) for n in (3, 1)],
                   ({0: Dim("rows", min=1, max=65536)},))


@model
def methods():
    class Encode(nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.linear = linear

        def forward(self, x):
            return torch.tanh(self.linear(x))

    class Decode(nn.Module):
        def __init__(self, linear):
            super().__init__()
            self.linear = linear

        def forward(self, code, scale):
            return (code @ self.linear.weight) * scale
    shared, batch = nn.Linear(10, 4), Dim("batch", min=1, max=8)
    constants = {"get_name": "autoencoder \u00e9", "get_width": 10, "get_scale": 0.1,
                 "is_trained": False, "get_shape": [10, 4], "get_table": torch.arange(5) * 3}
    return Model(
        "two methods that share a weight; constant methods: string, int, float, bool, list, tensor",
        {"encode": Method(Encode(shared), (torch.randn(3, 10),), ({0: batch},)),
         "decode": Method(Decode(shared), (torch.randn(3, 4), torch.randn(1)), ({0: batch}, None))},
        [Case((torch.randn(n, 10),), "encode") for n in (1, 8)]
        + [Case((torch.randn(n, 4), torch.randn(1)), "decode") for n in (2, 5)]
        + [Case(method=name) for name in constants], constants)


@model
def scalars():
    class Net(nn.Module):
        def forward(self, x, count: int, scale: float, flag: bool, absent, offset):
            y = x[:count] * scale
            if flag:
                y = y + offset
            return y, count, None, scale, flag, x.sum(), x.new_tensor(3.0)
    return forward("int, float and bool inputs whose values the export fixed, a None input, None "
                   "and scalar outputs, tensors of rank 0", Net(),
                   [(torch.randn(6), 4, 0.5, True, None, torch.tensor(value))
                    for value in (0.25, -7.0)])


@model
def zero_size():
    def function(x, empty):
        return (torch.cat([empty, x]), empty.sum(), empty * 2, x[:, :0], torch.softmax(empty, -1))
    return forward("a dimension of zero in inputs, outputs and between", Function(function),
                   [(torch.randn(3, 4), torch.empty(0, 4)) for _ in range(2)])


@model
def zero_batch():
    net = nn.Sequential(nn.Linear(6, 3), nn.ReLU())
    return forward("a dynamic batch of 0 to 4 rows", net,
                   [(torch.randn(n, 6),) for n in (3, 0, 1, 4)],
                   ({0: Dim("batch", min=0, max=4)},))


@model
def keywords():
    """What a structure names: two tensors of one type that only names tell apart."""
    class Net(nn.Module):
        def forward(self, x, batch, *, mask, features):
            low, high = features["scales"]
            hidden = (x + batch["ids"].unsqueeze(1) * 2 - batch["positions"].unsqueeze(1)) * low
            kept = torch.where(mask.unsqueeze(1), hidden, high)
            image = features["image"] * 0.5
            return {"logits": kept, "boxes": [image.sum(1), image.flatten(1) - x],
                    "kept": mask.to(torch.int64)}

    def inputs(n):
        integers = torch.randint(0, 9, (2, n))
        return ((torch.randn(n, 4), {"ids": integers[0], "positions": integers[1]}),
                {"mask": torch.rand(n) > 0.5,
                 "features": {"image": torch.randn(n, 2, 2),
                              "scales": (torch.randn(4), torch.randn(4))}})
    rows = {0: Dim("rows", min=1, max=8)}
    dynamic = {"x": rows, "batch": {"ids": rows, "positions": rows}, "mask": rows,
               "features": {"image": rows, "scales": (None, None)}}
    args, kwargs = inputs(3)
    return Model("keyword arguments, dicts among the arguments, a dict of results, dynamic rows",
                 {"forward": Method(Net(), args, dynamic, kwargs=kwargs)},
                 [Case(args, kwargs=kwargs)] + [Case(a, kwargs=k) for a, k in map(inputs, (1, 8))])


ODD_KEYS = ("plain", "", "a.b", "two words", "gr\u00f6\u00dfe", "input_3", "output_2", "input_6",
            "../up", "x/y", "name=1", "-first", ".hidden", "end.", "\u001b[2J", "\u202eback",
            'quo"te', "k" * 128, "l" * 129, 7, "07")


@model
def odd_keys():
    """Keys that are no names, and names that several would like to have."""
    class Odd(nn.Module):
        def forward(self, data, *, a):
            results = {key: value + 1 for key, value in data.items()}
            return {**results, "a": {"b": a["b"] * 2}}

    class Pairs(nn.Module):
        def forward(self, left, right, *, image):
            return [{"boxes": left["image"] + 1, "only": right["image"] * image},
                    {"boxes": right["image"] - 1, "1.boxes": image}]
    odd, b = {key: torch.randn(2) for key in ODD_KEYS}, {"b": torch.randn(2)}
    images = [torch.randn(3) for _ in range(3)]
    pair, last = ({"image": images[0]}, {"image": images[1]}), {"image": images[2]}
    return Model("keys that no name can be made of, and keys that several values have",
                 {"forward": Method(Odd(), (odd,), kwargs={"a": b}),
                  "pairs": Method(Pairs(), pair, kwargs=last)},
                 [Case((odd,), kwargs={"a": b}), Case(pair, "pairs", kwargs=last)])


# ---- operator families --------------------------------------------------------------------------

ELEMENT_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
                 torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool)


def example(dtype, *shape):
    """Values that every type holds; exact in half precision, a sum of two fits 8 bits."""
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    low = 0 if dtype == torch.uint8 else -40
    return torch.randint(low, 41, shape).to(dtype)


@model
def pointwise():
    def function(x, row, column, rank0):
        # Broadcasting in every direction, Scalar and Tensor arguments, alpha, chains.
        y = torch.add(x, row, alpha=2.5)
        z = torch.sub(column, row, alpha=0.5)
        return (y, z, x * rank0, -x, x.abs().clamp(0.25, 1.5), F.relu(x) - 1, F.relu6(x * 4),
                torch.tanh(x), torch.fmod(x, 0.75), torch.where(x <= 0.5, y, z), x.clamp(min=-1),
                F.hardtanh(x, -0.5, 0.75), (x + row) * column - rank0)

    def call(batch):
        return (torch.randn(batch, 3, 5), torch.randn(5), torch.randn(3, 1), torch.randn(()))
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-38]).repeat(2, 3, 1)
    return forward("elementwise operators with broadcasting, alpha and special values, dynamic "
                   "batch 1 to 8", Function(function),
                   [call(2), call(1), call(8), (special, *call(1)[1:])],
                   ({0: Dim("batch", min=1, max=8)}, None, None, None))


@model
def pointwise_types():
    def function(*tensors):
        out = []
        for x, y in zip(tensors[::2], tensors[1::2]):
            if x.dtype == torch.bool:
                out += [torch.where(x, y, x)]
                continue
            out += [x + y, x * 3, x - y, x.clamp(1, 20), torch.where(x <= 5, x, y)]
            if x.dtype.is_signed:
                out += [-x, x.abs()]
        return tuple(out)
    return forward("elementwise operators on every element type", Function(function),
                   [tuple(example(dtype, 3, size) for dtype in ELEMENT_TYPES for size in (7, 1))
                    for _ in range(2)])


@model
def promotion():
    def function(i32, i64, f16, f32, flag):
        return (i32 + f32, i64 * 2.5, f16 + f32, i32 - i64, f32.to(torch.int32),
                i64.to(torch.float16), flag.to(torch.float32), f32.to(torch.bool), i32 + flag,
                i64.to(torch.float32) / 4)
    types = (torch.int32, torch.int64, torch.float16, torch.float32, torch.bool)
    return forward("operands of different element types, and conversions", Function(function),
                   [tuple(example(dtype, 2, 3) for dtype in types) for _ in range(2)])


@model
def int64_exact():
    def function(x, y):
        return x + y, x - y, x * 3, torch.where(x <= y, x, y), torch.cat([x, y]), x.flip(0)
    big = torch.tensor([2**53 + 1, -(2**53) - 1, 2**62, -(2**63), 2**63 - 1, 0])
    small = torch.tensor([1, -1, 3, 1, -1, 2**53 + 1])
    return forward("int64 values beyond what a double holds", Function(function),
                   [(big, small), (small, big)])


@model
def view_ops():
    def function(x):
        b, t, d = x.shape
        y = x.view(b, t, 2, d // 2).transpose(1, 2)
        left, right = x.split([2, d - 2], dim=-1)
        parts = x.unbind(-1)
        return (y.reshape(b * 2, t, d // 2), y.permute(3, 0, 2, 1), left, right,
                parts[0] + parts[3], x.unsqueeze(1).expand(-1, 3, -1, -1),
                torch.stack([x, -x], 1).flatten(1, 2), x.repeat(1, 1, 2), x.flip(1), x.flip(0, 2),
                x.roll(1, 2), x.roll(-2, 2), torch.cat([x, left], 2), x.select(1, 0),
                x[:, -1:].squeeze(1), x[:, ::2, 1:5:3], x.tril(), x.tril(1), x.unfold(2, 3, 1),
                x.unfold(2, 2, 2), x.diagonal(0, 1, 2), torch.slice_scatter(x, left * 0, 2, 1, 3),
                torch.arange(t), torch.full((b, 2), 7.0), x.chunk(3, -1)[2])
    return forward("views, permutes, slices, splits, repeats with two dynamic dimensions",
                   Function(function),
                   [(torch.randn(b, t, 6),) for b, t in ((2, 4), (1, 3), (4, 7))],
                   ({0: Dim("b", min=1, max=4), 1: Dim("t", min=3, max=7)},))


@model
def view_types():
    def function(*tensors):
        out = []
        for x in tensors:
            out += [x.permute(2, 0, 1), torch.cat([x, x[:, :1]], 1), x[:, ::2].flip(2),
                    x.unsqueeze(0).expand(2, -1, -1, -1), x.repeat(1, 2, 1)]
        return tuple(out)
    return forward("data movement on every element type", Function(function),
                   [tuple(example(dtype, 2, 3, 4) for dtype in ELEMENT_TYPES)])


@model
def select_ops():
    def function(x, places, mask):
        return (x.index_select(0, places), x.index_select(2, places), x[places],
                x[:, :, places.flip(0)], torch.where(mask, x, -x), x.masked_fill(mask, 9.0),
                torch.full((2, 3), 4), torch.arange(2, 9, 3), torch.arange(0.5, 3, 0.75),
                x.diagonal(1, 0, 2), x.transpose(0, 2).contiguous())

    def call():
        return torch.randn(4, 3, 5), torch.tensor([2, 0, 3, 2]), torch.rand(3, 5) > 0.5
    return forward("index_select, index, where, masks, arange, full, diagonal", Function(function),
                   [call(), call()])


@model
def faults():
    def lookup(table, rows, places):
        return F.embedding(rows, table), table.gather(0, places), table[rows]

    def divide(a, b):
        return a // b, torch.remainder(a, b)
    numbers = torch.tensor([7, 8, 9, 1 << 40])
    table, rows, places = torch.randn(5, 3), torch.tensor([4, 0, 3]), torch.tensor([[0, 4, 2]])
    return Model("what data can be wrong about: indices and integer divisors",
                 {"forward": Method(Function(lookup), (table, rows, places)),
                  "divide": Method(Function(divide), (numbers, numbers.flip(0)))},
                 [Case((table, rows, places)),
                  Case((numbers, torch.tensor([2, 3, 4, 5])), "divide")])


@model
def reduce_ops():
    def function(x):
        return (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.mean(-1), x.mean((1, 2)),
                F.softmax(x, 0), F.softmax(x, 1), F.softmax(x * 100, -1))
    return forward("sums, means and softmax over different dimensions, dynamic batch 2 to 6",
                   Function(function), [(torch.randn(b, 7, 9),) for b in (3, 2, 6)],
                   ({0: Dim("batch", min=2, max=6)},))


@model
def conv_ops():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.line = nn.Conv1d(4, 6, 3, padding=1, groups=2)
            self.strided = nn.Conv2d(4, 8, 3, stride=2, padding=1, bias=False)
            self.dilated = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=8)
            self.grouped = nn.Conv2d(4, 6, (3, 5), stride=(1, 2), padding=(0, 2), groups=2)
            self.pointwise = nn.Conv2d(4, 17, 1)
            self.up = nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)
            self.up_grouped = nn.ConvTranspose2d(8, 6, 2, stride=2, groups=2, bias=False)
            self.group, self.batch = nn.GroupNorm(2, 8), nn.BatchNorm2d(8)
            self.layer = nn.LayerNorm(8)

        def forward(self, line, image):
            a = self.line(F.pad(line, (2, 1), mode="reflect"))
            b = self.batch(self.dilated(self.group(self.strided(image))))
            c = self.up(F.max_pool2d(F.relu(b), 2))
            return (a, c, self.up_grouped(b), self.grouped(image), self.pointwise(image),
                    F.interpolate(c, scale_factor=2.0, mode="bilinear", align_corners=False),
                    F.interpolate(c, size=(7, 5), mode="bilinear", align_corners=True),
                    F.interpolate(c, size=(12, 16), mode="nearest"),
                    F.avg_pool2d(F.pad(image, (1, 2, 1, 0), mode="replicate"), 3, stride=2,
                                 count_include_pad=False),
                    F.avg_pool2d(image, 3, stride=2, padding=1, ceil_mode=True),
                    F.max_pool2d(image, 3, stride=2, padding=1, ceil_mode=True),
                    self.layer(F.adaptive_avg_pool2d(b, 1).flatten(1)), F.pixel_shuffle(b, 2),
                    F.pad(image, (0, 1, 2, 3), value=-1.0))
    net = randomize_norms(Net())
    return forward("1-d, 2-d, transposed, grouped and dilated convolution, pools, norms, pads, "
                   "resizes", net,
                   [(torch.randn(2, 4, 9), torch.randn(2, 4, 12, 12)) for _ in range(2)], atol=1e-4)


# ---- networks -----------------------------------------------------------------------------------

def conv_norm(inputs, outputs, kernel=3, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


class Residual(nn.Module):
    """x + body(x), through a projection where the shape changes."""

    def __init__(self, body, project=None, act=None):
        super().__init__()
        self.body, self.project, self.act = body, project or nn.Identity(), act or nn.Identity()

    def forward(self, x):
        return self.act(self.project(x) + self.body(x))


@model
def digits():
    images, labels, test_images, test_labels = digits_data.split()
    net = digits_data.train(digits_data.network(), images, labels)
    accuracy = digits_data.accuracy(net, test_images, test_labels)
    cases, first = [], 0
    for count in (1, 8, digits_data.TEST_IMAGES):
        rows = slice(first, first + count) if count < digits_data.TEST_IMAGES else slice(None)
        cases.append(Case((test_images[rows].float() / 16,),
                          extra={"labels": test_labels[rows].tolist()}))
        first += count
    batch = Dim("batch", min=1, max=digits_data.TEST_IMAGES)
    return Model("trained classifier of handwritten digits, batch norm kept, dynamic batch",
                 {"forward": Method(net, cases[1].args, ({0: batch},))}, cases,
                 rtol=1e-3, atol=1e-3, weights="trained on the scikit-learn digits by digits.py",
                 licence="data: UCI handwritten digits, CC BY 4.0", facts={
                     "float_test_accuracy": round(accuracy, 4),
                     "test_images": digits_data.TEST_IMAGES})


@model
def mobile():
    def inverted(inputs, outputs, expand, stride=1):
        hidden = inputs * expand
        body = nn.Sequential(conv_norm(inputs, hidden, 1, act=nn.ReLU6),
                             conv_norm(hidden, hidden, 3, stride, hidden, act=nn.ReLU6),
                             conv_norm(hidden, outputs, 1, act=None))
        return Residual(body) if stride == 1 and inputs == outputs else body
    net = nn.Sequential(conv_norm(3, 8, 3, 2, act=nn.ReLU6), inverted(8, 12, 2, 2),
                        inverted(12, 12, 4), inverted(12, 20, 3, 2), inverted(20, 20, 3),
                        conv_norm(20, 40, 1, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(40, 10))
    return forward("inverted residuals: depthwise and pointwise convolution, relu6",
                   randomize_norms(net), [(torch.randn(1, 3, 32, 32),) for _ in range(2)],
                   rtol=1e-3, atol=1e-3)


@model
def residual():
    def block(inputs, outputs, stride):
        body = nn.Sequential(conv_norm(inputs, outputs, 3, stride),
                             conv_norm(outputs, outputs, act=None))
        change = stride > 1 or inputs != outputs
        return Residual(body, conv_norm(inputs, outputs, 1, stride, act=None) if change else None,
                        nn.ReLU())
    net = nn.Sequential(conv_norm(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1), block(8, 8, 1),
                        block(8, 16, 2), block(16, 24, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                        nn.Linear(24, 10))
    return forward("residual blocks with strides and projections, dynamic batch 1 to 4",
                   randomize_norms(net), [(torch.randn(n, 3, 33, 33),) for n in (2, 1, 4)],
                   ({0: Dim("batch", min=1, max=4)},), rtol=1e-3, atol=1e-3)


@model
def queries():
    """What batches have to repeat for each row: a class token, learned queries and positions. The
    second attention has the batch as dim 1 inside, as that of nn.MultiheadAttention."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, 16, 4, 4)
            self.token = nn.Parameter(torch.randn(1, 1, 16))
            self.positions = nn.Parameter(torch.randn(1, 17, 16))
            self.qkv = nn.Linear(16, 48)
            self.norm = nn.LayerNorm(16)
            self.queries = nn.Parameter(torch.randn(5, 1, 16))
            self.cross = nn.MultiheadAttention(16, 2)
            self.head = nn.Linear(16, 7)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
            qkv = self.qkv(self.norm(x)).reshape(1, 17, 3, 2, 8)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            x = x + nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
            keys = x.transpose(0, 1)
            found = self.cross(self.queries, keys, keys, need_weights=False)[0] + self.queries
            return self.head(x[:, 0]), self.head(found).transpose(0, 1)
    return forward("class token, queries and positions, which are the same for all rows; one row",
                   Net(), [(torch.randn(1, 3, 16, 16),) for _ in range(2)], rtol=1e-3, atol=1e-3)


@model
def unet():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([conv_norm(3, 8), conv_norm(8, 12)])
            self.bottom = conv_norm(12, 16)
            self.grow = nn.ModuleList([nn.ConvTranspose2d(16, 12, 2, 2),
                                       nn.ConvTranspose2d(12, 8, 2, 2)])
            self.up = nn.ModuleList([conv_norm(24, 12), conv_norm(16, 8)])
            self.head = nn.Conv2d(8, 2, 1)

        def forward(self, x):
            skips = []
            for layer in self.down:
                x = layer(x)
                skips.append(x)
                x = F.max_pool2d(x, 2)
            x = self.bottom(x)
            for grow, layer in zip(self.grow, self.up):
                x = layer(torch.cat([grow(x), skips.pop()], 1))
            return self.head(x)
    return forward("contracting and expanding path: max pool, transposed convolution, cat",
                   randomize_norms(Net()), [(torch.randn(1, 3, 24, 20),) for _ in range(2)],
                   rtol=1e-3, atol=1e-3)


# ---- state and control flow -------------------------------------------------------------------

class Rows(nn.Module):
    """A buffer that the modules of several methods share."""

    def __init__(self, *shape):
        super().__init__()
        self.register_buffer("rows", torch.zeros(shape))


@model
def running():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(1, dtype=torch.int64))
            self.register_buffer("mean", torch.tensor([4.0, -2.0, 1.0]))

        def forward(self, x):
            self.count.add_(1)
            self.mean.mul_(0.75).add_(x * 0.25)
            return self.mean.clone(), self.count.clone()
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
    xs = [torch.randn(3) for _ in range(5)]
    return Model("mutable buffers with initial values; state carries between calls",
                 {"forward": Method(Running(), (xs[0],))},
                 [Case((x,), fresh=i in (0, 3)) for i, x in enumerate(xs)],
                 config={"passes": [InitializedMutableBufferPass(["count", "mean"])]})


@model
def ledger():
    from executorch.exir.passes import MemoryPlanningPass

    class Enter(nn.Module):
        def __init__(self, store):
            super().__init__()
            self.store = store

        def forward(self, at, x):
            self.store.rows.index_put_((at,), x)
            return x.sum()

    class Total(nn.Module):
        def __init__(self, store):
            super().__init__()
            self.store = store

        def forward(self, scale):
            return (self.store.rows * scale).sum(0)
    store, scale = Rows(4, 3), torch.tensor(0.5)

    def entry(*rows):
        return torch.tensor(rows), torch.randn(len(rows), 3)
    return Model("two methods that share a mutable buffer in an arena of its own",
                 {"enter": Method(Enter(store), entry(1, 2)),
                  "total": Method(Total(store), (scale,))},
                 [Case(entry(1, 2), "enter"), Case((scale,), "total", False),
                  Case(entry(2, 0), "enter", False), Case((scale,), "total", False)],
                 config={"memory_planning_pass": MemoryPlanningPass(share_mutable_buffers=True)},
                 is_replayed=False)


@model
def scroll():
    class Scroll(nn.Module):
        """Two caches of 8 rows, written at a position that only a call knows."""
        def __init__(self):
            super().__init__()
            self.register_buffer("rows", torch.zeros(2, 8, 3))
            self.register_buffer("marks", torch.zeros(8, 2))
            self.register_buffer("table", torch.arange(24.0).reshape(8, 3))
            self.register_buffer("scale", torch.tensor([1.0, 2.0]).reshape(2, 1, 1))

        def forward(self, x, at):
            first, n = at[0].item(), x.shape[0]
            torch._check(first >= 0)
            torch._check(first + n <= 8)
            turned = x.reshape(1, n, 1) * self.scale + self.table.narrow(0, first, n)
            self.rows[:, first:first + n] = turned
            self.marks[at] = turned[0, :1, :2]
            return self.rows.sum(1), self.marks * 2, self.table[first]

    def args(first, n):
        return torch.randn(n), torch.tensor([first])
    calls = [args(0, 4), args(4, 1), args(5, 1), args(6, 2), args(1, 3)]
    return Model("a cache whose rows are written where the call says, and a table read there",
                 {"forward": Method(Scroll(), calls[0], ({0: Dim("n", min=1, max=4)}, None))},
                 [Case(call, fresh=i == 0) for i, call in enumerate(calls)])


@model
def notebook():
    class Write(nn.Module):
        """Writes rows of a buffer of many pages."""
        def __init__(self, pages):
            super().__init__()
            self.pages = pages

        def forward(self, x, at):
            first, n = at[0].item(), x.shape[0]
            torch._check(first >= 0)
            torch._check(first + n <= 2048)
            self.pages.rows[:, first:first + n] = torch.stack([x, x * 2])
            return self.pages.rows.sum((1, 2))

    class Put(Write):
        def forward(self, x, at):
            self.pages.rows[:, at] = torch.stack([x, x * 2])
            return self.pages.rows.sum((1, 2))

    pages = Rows(2, 2048, 32)
    n = Dim("n", min=1, max=512)
    calls = [("forward", 4, torch.tensor([0])), ("forward", 1, torch.tensor([4])),
             ("put", 2, torch.tensor([5, 6])), ("put", 2, torch.tensor([1, 2000]))]
    calls = [(name, (torch.randint(-4, 4, (rows, 32)).float(), at)) for name, rows, at in calls]
    return Model("a buffer of many pages, whose rows two methods write",
                 {"forward": Method(Write(pages), calls[0][1], ({0: n}, None)),
                  "put": Method(Put(pages), calls[2][1], ({0: n}, {0: n}))},
                 [Case(args, method=name, fresh=i == 0) for i, (name, args) in enumerate(calls)],
                 config={"emit_mutable_buffer_names": True})


class Recent(nn.Module):
    """A decoder of bytes that remembers the last 8 tokens. Its weights are random, so that an
    answer soon repeats itself. The rows of its caches are no positions."""
    ROWS, WIDTH, VOCAB = 8, 16, 256

    def __init__(self):
        super().__init__()
        self.embed = nn.Parameter(torch.randn(self.VOCAB, self.WIDTH))
        self.key, self.value, self.query = (nn.Parameter(torch.randn(self.WIDTH, self.WIDTH) / 4)
                                            for _ in range(3))
        self.out = nn.Parameter(torch.randn(self.WIDTH, self.VOCAB))
        self.register_buffer("keys", torch.zeros(1, self.ROWS, self.WIDTH))
        self.register_buffer("values", torch.zeros(1, self.ROWS, self.WIDTH))

    def attend(self, x, keys, values, is_used):
        scores = torch.where(is_used, (x @ self.query * keys).sum(-1), -1e9)
        mixed = (torch.softmax(scores, -1).unsqueeze(-1) * values).sum(1, keepdim=True)
        return (x + mixed) @ self.out


class Ring(Recent):
    def forward(self, tokens, input_pos):
        x, at = self.embed[tokens], input_pos % self.ROWS
        self.keys[:, at] = x @ self.key
        self.values[:, at] = x @ self.value
        return self.attend(x, self.keys, self.values, torch.arange(self.ROWS) <= input_pos)


class Window(Recent):
    def forward(self, tokens, input_pos):
        x = self.embed[tokens]
        self.keys.copy_(torch.cat((self.keys[:, 1:], x @ self.key), 1))
        self.values.copy_(torch.cat((self.values[:, 1:], x @ self.value), 1))
        return self.attend(x, self.keys, self.values,
                           torch.arange(self.ROWS) >= self.ROWS - 1 - input_pos)


def recent(description, net):
    steps = [(torch.tensor([[3 * i + 1]]), torch.tensor([i])) for i in range(12)]
    return Model(description, {"forward": Method(net, steps[0])},
                 [Case(step, fresh=i == 0) for i, step in enumerate(steps)],
                 constants={"get_vocab_size": Recent.VOCAB, "get_max_seq_len": 1,
                            "get_max_context_len": 512, "get_eos_ids": [0],
                            "use_kv_cache": True})


@model
def ring():
    return recent("a decoder of bytes whose caches are a ring of 8 rows", Ring())


@model
def window():
    return recent("a decoder of bytes whose caches are a window of 8 rows that moves", Window())


@model
def moe():
    """ExecuTorch's transformation of a mixture of experts, with weights that ops_moe.py packs."""
    from executorch.examples.models.llama.llama_transformer import MOEFeedForward
    from executorch.examples.models.llama.model_args import ModelArgs
    from executorch.examples.models.llama.source_transformation.moe import (
        replace_moe_with_quantized_op)
    from executorch.extension.llm.custom_ops import custom_ops    # noqa: F401
    import ops_moe

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.RMSNorm(32)
            self.experts = MOEFeedForward(ModelArgs(
                dim=32, n_layers=1, n_heads=1, vocab_size=8, hidden_dim=32, moe=True, num_experts=4,
                num_activated_experts=2))
            for name, value in (("num_activated_experts", 2), ("score_func", "sigmoid"),
                                ("route_scale", 2.5), ("expert_bias", torch.randn(4))):
                setattr(self.experts, name, value)
            for weights in self.experts.cond_ffn.parameters():
                nn.init.normal_(weights, std=32**-0.5)
            self.head = nn.Linear(32, 5)

        def forward(self, x):
            return self.head(x + self.experts(self.norm(x)))

    with ops_moe.packing():
        net = replace_moe_with_quantized_op(Block(), group_size=16)
    return forward("a block with 4 experts, of which 2 compute a row; PyTorch's kernel does not "
                   "round activations to 8 bits", net, [(torch.randn(1, 3, 32),) for _ in range(4)],
                   rtol=1e-2, atol=3e-2)


@model
def edits():
    from executorch.extension.llm.custom_ops import custom_ops    # noqa: F401

    class Put(nn.Module):
        def __init__(self, store):
            super().__init__()
            self.store = store

        def forward(self, x, at):
            self.store.rows.index_put_((at,), x)
            return self.store.rows * 2

    class Edits(nn.Module):
        """Writes a row of a cache before a condition, and another one behind it."""
        def __init__(self, store):
            super().__init__()
            self.store = store
            self.table = nn.Parameter(torch.randn(8, 3))

        def forward(self, x, at, next_at, is_sum):
            self.store.rows.index_put_((at,), x)
            y = torch.cond(is_sum, lambda v: v * 2, lambda v: v + 1, (x,))
            old = self.store.rows * y.sum() + self.table    # the write need not wait for it
            self.store.rows.index_put_((next_at,), y)
            total = torch.cond(is_sum, lambda v: v.sum(0), lambda v: v.amax(0), (old,))
            return total, self.store.rows * 2

    class Begin(nn.Module):
        def __init__(self, pages):
            super().__init__()
            self.pages = pages

        def place(self, x, at):
            torch._check(at >= 0)
            torch._check(at < 1024)
            torch.ops.llama.update_cache(x, self.pages.rows, at)

        def forward(self, x, at):
            self.place(x, at[0].item())
            return self.pages.rows.sum(1)

    class Fill(Begin):
        """Writes rows of a buffer of many pages, one in each of its blocks."""
        def forward(self, x, at, is_sum):
            first = at[0].item()
            for i in range(20):
                self.place(x, first + i)
                x = torch.cond(is_sum, lambda v: v * 2, lambda v: v + 1, (x,))
            return self.pages.rows.sum(1)

    def put(at):
        return torch.randn(1, 3), torch.tensor([at])

    def fill(at):
        return torch.ones(1, 1, 1, 32), torch.tensor([at]), torch.tensor(False)

    def edit(at, next_at, is_sum):
        return *put(at), torch.tensor([next_at]), torch.tensor(is_sum)
    store, pages = Rows(8, 3), Rows(1, 1024, 1, 32)
    calls = [("put", put(0)), ("forward", edit(5, 1, True)), ("forward", edit(2, 3, False)),
             ("put", put(7)), ("forward", edit(4, 4, False)), ("begin", fill(9)[:2]),
             ("fill", fill(0)), ("fill", fill(40))]
    return Model("rows that several blocks of a call write",
                 {"put": Method(Put(store), calls[0][1]),
                  "forward": Method(Edits(store), calls[1][1]),
                  "begin": Method(Begin(pages), fill(0)[:2]),
                  "fill": Method(Fill(pages), fill(0))},
                 [Case(args, method=name, fresh=i == 0) for i, (name, args) in enumerate(calls)],
                 is_replayed=False,
                 config={"run_reinplace_pass": True, "emit_mutable_buffer_names": True})


@model
def tally():
    from torch._higher_order_ops.map import map as torch_map

    class Tally(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))
            self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

        def forward(self, rows, is_sum, at):
            scaled = torch_map(lambda row, scale: row * scale, rows, self.total + 1)
            row = torch.cond(is_sum, lambda v: v.sum(0), lambda v: v.amax(0), (scaled,))
            self.calls.add_(1)
            self.total.add_(row)
            return self.total.index_select(0, at), self.calls.clone()

    def args(is_sum, at):
        return torch.randn(3, 4), torch.tensor(is_sum), torch.tensor([at])
    calls = [args(True, 1), args(False, 3), args(True, 0)]
    return Model("state that loops read and conditions change, and an index that may be wrong",
                 {"forward": Method(Tally(), calls[0])},
                 [Case(call, fresh=i == 0) for i, call in enumerate(calls)], is_replayed=False)


def group(plan, indices, kinds):
    """As no exporter writes it: values next to each other as one, of the type that |kinds| says.

    None leaves a value alone; a number after a type is how many values the list has.
    """
    values, out = plan.values, []
    for kind, count in kinds:
        items, indices = indices[:count], indices[count:]
        if kind is None:
            out += items
            continue
        if kind is schema.OptionalTensorList:
            items = [-1 if isinstance(values[i].val, schema.Null) else i for i in items]
        values.append(schema.EValue(kind(items)))
        out.append(len(values) - 1)
    return out


@model
def lists():
    def run(xs, maybe, factors):
        y = xs[0] * factors[0] + xs[1] * factors[1]
        if maybe[1] is not None:
            y = y + maybe[1]
        return [y, y.sum(0)], (xs[1] + maybe[0], None), [7, 9], y.shape[0]

    def edit(program):
        plan = program.execution_plan[0]
        tensors, optional, ints = schema.TensorList, schema.OptionalTensorList, schema.IntList
        plan.inputs = group(plan, plan.inputs, [(tensors, 2), (optional, 2), (ints, 2)])
        plan.outputs = group(plan, plan.outputs,
                             [(tensors, 2), (optional, 2), (ints, 2), (None, 1)])

    def args(n):
        return [torch.randn(n, 3), torch.randn(n, 3)], [torch.randn(3), None], [2, 3]
    n = Dim("n", min=2, max=7)
    return Model("lists of tensors, of tensors or nones, and of ints as inputs and outputs",
                 {"forward": Method(Function(run), args(4),
                                    (([{0: n}, {0: n}], [None, None], [None, None]),))},
                 [Case(args(size)) for size in (4, 7, 2)], edit=edit, is_replayed=False)


@model
def branches():
    def inner(y):
        return torch.cond(y.mean() > 1, lambda v: (v * 3, v.sum(0)),
                          lambda v: (v - 5, v.amax(0)), (y,))

    def outer(x, flag):
        a, b = torch.cond(flag, inner, lambda v: (v.abs(), v.amin(0)), (x,))
        c = torch.cond(a.sum() > 0, lambda v: v * 2, lambda v: v.flip(0), (a,))
        return a + 1, b, c
    x, yes, no = torch.randn(3, 4), torch.tensor(True), torch.tensor(False)
    return Model("nested conditionals and one that follows them",
                 {"forward": Method(Function(outer), (x, yes))},
                 [Case(args) for args in ((x, no), (x - 3, yes), (x + 3, yes), (x + 3, no))],
                 is_replayed=False)


@model
def by_size():
    def run(x, limit):
        x = x + torch.arange(3)
        longer = torch.cond(x.shape[0] > 4, lambda v: v * 2, lambda v: v - 1, (x,))
        return torch.cond((longer.sum() > limit) & (x[0, 0] < 3), lambda v: v.amax(0),
                          lambda v: v.amin(0), (longer,))

    def args(n, limit):
        return torch.randn(n, 3), torch.tensor(limit)
    return forward("conditions that are sizes: a bool where the file says int", Function(run),
                   [args(6, 0.0), args(3, 0.0), args(5, -99.0), args(4, 99.0)],
                   ({0: Dim("n", min=2, max=9)}, None))


@model
def joined():
    def run(x, flag):
        twice, rows = torch.cond(flag, lambda v: (torch.cat([v, v], 0) * 2, v.sum(1)),
                                 lambda v: (torch.cat([v, v], 0) - 1, v.amax(1)), (x,))
        return twice + 1, rows, torch.nonzero(x > 0), x * 2

    def args(n, flag):
        return torch.randn(n, 4), torch.tensor(flag)
    return forward("branches that give tensors of the same sizes, which follow from an input's",
                   Function(run), [args(5, True), args(3, False), args(12, True)],
                   ({0: Dim("n", max=12)}, None), is_replayed=False)


@model
def loops():
    from torch._higher_order_ops.map import map as torch_map
    from torch._higher_order_ops.scan import scan

    def run(xs, y, start):
        mapped = torch_map(lambda x, z: x.sin() * z + 1, xs, y)
        last, history = scan(lambda carry, x: (carry * 0.5 + x, carry + x), start, xs)
        return mapped, last, history

    def args():
        return torch.randn(7, 3), torch.randn(3), torch.randn(3)
    return Model("map and scan: backward jumps, counters, copies by index",
                 {"forward": Method(Function(run), args())}, [Case(args()) for _ in range(2)])


@model
def hold():
    from torch._higher_order_ops.map import map as torch_map

    class Hold(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.eye(64).unsqueeze(0))

        def forward(self, x, goes_on):
            def body(weight, seed):
                product = weight * seed
                for _ in range(32):
                    product = product @ weight
                return product.sum()
            is_last = torch.logical_not(goes_on)
            passed = torch_map(body, self.weight, x.sum())
            return torch.where(is_last, x * 2, x) + passed.sum() * 0

    def edit(program):
        """As no exporter writes it: the loop ends when the caller says so, not by its counter."""
        plan = program.execution_plan[0]
        plan.values.append(schema.EValue(schema.Int(0)))
        instructions = plan.chains[0].instructions
        calls = [i.instr_args for i in instructions if isinstance(i.instr_args, schema.KernelCall)]

        def called(name):
            return [call for call in calls if plan.operators[call.op_index].name == name]
        for call in called("executorch_prim::add") + called("executorch_prim::sub"):
            call.args[1] = len(plan.values) - 1
        jump, = (i.instr_args for i in instructions
                 if isinstance(i.instr_args, schema.JumpFalseCall))
        jump.cond_value_index = called("aten::logical_not")[0].args[-1]

    def args(n):
        return torch.randn(n, 4), torch.tensor(False)
    return forward("a call that runs as long as its client wants: for ever if goes_on", Hold(),
                   [args(n) for n in (4, 1)], ({0: Dim("n", min=1, max=16384)}, None), edit=edit,
                   is_replayed=False, folder="../http")  # other tests call whatever is bundled


@model
def found():
    def run(x, y):
        places = torch.nonzero(x > 0.5)
        chosen = torch.masked_select(x, x > 0)
        return places, chosen * 2 + 1, chosen.shape[0], y.sum(1), x[x > 0].sum()

    def args(shift):
        return torch.randn(4, 5) + shift, torch.randn(2, 3)
    return Model("extents that depend on data: nonzero, masked_select, a mask as an index",
                 {"forward": Method(Function(run), args(0))},
                 [Case(args(shift)) for shift in (0, 9, -9)], is_replayed=False)


@model
def sizes():
    def run(x, y):
        n, m = x.shape[0], y.shape[0]
        return x[:n - 1], x * (n / m), (x.sum() + y.sum()) * (n - m), n * m - 7

    def args(n, m):
        return torch.randn(n), torch.randn(m)
    n, m = Dim("n", min=3, max=9), Dim("m", min=2, max=11)
    return Model("arithmetic on sizes, with floats and negative numbers",
                 {"forward": Method(Function(run), args(5, 3), (({0: n}, {0: m}),))},
                 [Case(args(*size)) for size in ((5, 3), (3, 11), (9, 2))])


@model
def shapes():
    class Step(nn.Module):
        """Tokens of one sequence after the other, whose sum it keeps."""
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 4)
            self.register_buffer("total", torch.zeros(4))

        def forward(self, tokens):
            rows = self.table(tokens)
            self.total.add_(rows.sum((0, 1)))
            return rows + self.total

    class Recall(nn.Module):
        """Its memory has the batch as dim 1, and a dim 0 of 2 that only looks as if it varied."""
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(6, 8)

        def forward(self, x, memory):
            first, second = memory.unbind(0)
            return torch.relu(self.fc(x)) + first.reshape(x.shape[0], 1, 8), second * 2

    batch, length = Dim("batch", min=1, max=6), Dim("length", min=1, max=5)

    def recall(n):
        return torch.randn(n, 5, 6), torch.randn(2, n, 8)
    tokens = [torch.randint(0, 7, (1, n)) for n in (5, 1, 3)]
    return Model("sizes that go together, and a call that takes one token",
                 {"step": Method(Step(), (tokens[0],), ({1: length},)),
                  "recall": Method(Recall(), recall(6), ({0: batch}, {1: batch}))},
                 [Case((t,), method="step", fresh=i == 0) for i, t in enumerate(tokens)] +
                 [Case(recall(n), method="recall") for n in (6, 1, 4)],
                 config={"emit_mutable_buffer_names": True})


@model
def traced():
    class Block(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.lin = nn.Linear(inputs, outputs)

        def forward(self, x):
            return torch.relu(self.lin(x))

    class Traced(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.head = Block(6, 8), nn.Linear(8, 3)

        def forward(self, x):
            x = self.stem(x)
            return torch.softmax(self.head(x), -1)

    def edit(program):
        """Paths and lines of nobody's machine."""
        first = inspect.getsourcelines(traced)[1]
        for stack in program.execution_plan[0].chains[0].stacktrace:
            for frame in stack.items:
                is_own = frame.filename == __file__
                frame.filename = "/src/net.py" if is_own else "/lib" + frame.filename[
                    frame.filename.index("/torch/"):]
                frame.lineno = frame.lineno - first if is_own else 1
    return forward("a program that knows the lines of its source", Traced(),
                   [(torch.randn(2, 6),)], config={"emit_stacktrace": True}, edit=edit)
