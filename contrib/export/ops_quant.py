# SPDX-License-Identifier: MIT
"""Cases of quantisation. What is expected is what ExecuTorch's own kernels give: PyTorch's forms of
these operators round in another order."""
import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401: defines operators
import executorch.kernels.quantized  # noqa: F401: and the kernels that the runtime has
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401
from torch.export import Dim
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ops_case import ORACLES, case, family, ints, real, short

quant = torch.ops.quantized_decomposed
OURS = ("quantized_decomposed", "llama", "preprocess")  # namespaces
KINDS = ((torch.int8, -128, 127), (torch.uint8, 0, 255), (torch.int16, -32768, 32767),
         (torch.uint16, 0, 65535), (torch.int32, -2**31, 2**31 - 1))


# These have no form in PyTorch: what they give is as large as this.
library = torch.library.Library("quantized_decomposed", "IMPL")
for name, of in (("mixed_mm", lambda x, w, *_: x.new_zeros(x.shape[0], w.shape[1])),
                 ("mixed_linear", lambda x, w, *_: x.new_zeros(x.shape[0], w.shape[0])),
                 ("add", lambda a, *_: torch.zeros_like(a))):
    library.impl(name, of, "CompositeExplicitAutograd")


def has_kernel(op):
    return any(
        torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), key)
        for key in ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd"))


class ByExecuTorch(TorchDispatchMode):
    """Functional forms are run by the kernels that a program would call, where there are any."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        overload = {"default": "out", "tensor": "Tensor_out"}.get(func._overloadname, "dtype_out")
        kernel = getattr(func._overloadpacket, overload, None)
        if func.namespace not in OURS or kernel is None or not has_kernel(kernel):
            return result
        # custom_sdpa's form in PyTorch forgets that halves give halves.
        dtype = args[0].dtype if func.name() == "llama::custom_sdpa" else None
        outs = [torch.zeros_like(leaf, dtype=dtype) for leaf in pytree.tree_leaves(result)]
        names = [a.name for a in kernel._schema.arguments if a.is_out]
        return kernel(*args, **(kwargs or {}), **dict(zip(names, outs)))


ORACLES["quantized"] = ORACLES["quant_layers"] = ORACLES["products"] = ByExecuTorch


def each_type(x):
    return tuple(
        quant.quantize_per_tensor(x, 0.13, zero, low, high, dtype)
        for (dtype, low, high), zero in zip(KINDS, (3, 128, -300, 40000, 77)))


def narrowed(x):
    """A range that is a part of the type's, and zero points far from it."""
    return (quant.quantize_per_tensor(x, 0.25, -5, -127, 127, torch.int8),
            quant.quantize_per_tensor(x, 0.25, 7, -8, 7, torch.int8),
            quant.quantize_per_tensor(x, 1e-3, 1000, 10, 20, torch.uint8),
            quant.quantize_per_tensor(x, 1e-6, -5000000, -32768, 32767, torch.int16))


def back(*tensors):
    return tuple(
        quant.dequantize_per_tensor(x, 0.13, zero, low, high, x.dtype)
        for x, (_, low, high), zero in zip(tensors, KINDS, (3, 128, -300, 40000, 77)))


def channels(x, scales, zeros):
    """Along every dim of a 3-d tensor with equal sides."""
    return tuple(
        quant.quantize_per_channel(x, scales, zeros, axis, low, high, dtype)
        for axis in (0, 1, -1) for dtype, low, high in KINDS[:3])


def channels_back(x, scales, zeros):
    return tuple(
        quant.dequantize_per_channel(x, scales, z, axis, -128, 127, torch.int8)
        for axis in (0, 1, 2, -3) for z in (zeros, None))


def tokens(x, scales, zeros):
    q = quant.quantize_per_token(x, scales, zeros, -128, 127, torch.int8)
    return q, quant.dequantize_per_token(q, scales, zeros, -128, 127, torch.int8, torch.float32)


def chosen_tokens(x):
    scales, zeros = quant.choose_qparams_per_token_asymmetric(x, torch.int8)
    return (scales, zeros, *tokens(x, scales, zeros))


def chosen(x):
    scale, zero = quant.choose_qparams(x, -128, 127, 1e-5, torch.int8)
    q = quant.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
    return scale, zero, q, quant.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)


def rounding():
    """Halves between integers, what saturates, and a tail."""
    return torch.cat([
        torch.arange(-20, 20) / 8,
        torch.tensor([1e9, -1e9, float("inf"), -float("inf"), 0.0, -0.0]),
        torch.randn(101) * 20
    ])


@family
def quantized():
    x, scales = real(5, 5, 5), torch.rand(5) + 0.05
    zeros = torch.tensor([0, 3, -7, 100, -128])
    rows = real(3, 2, 37) * torch.tensor([1e-7, 1, 30.0]).reshape(3, 1, 1)
    q8 = ints(torch.int8, 5, 5, 5, low=-128, high=128)
    finite = torch.where(rounding().abs() > 1e6, 0, rounding())
    cases = [
        # ExecuTorch casts what is beyond int64 before it saturates.
        case("quantize", each_type, torch.where(rounding().isinf(), 1e9, rounding())),
        case("quantize_narrow", narrowed, finite),
        case("dequantize", back,
             *(torch.arange(low, high, max((high - low) // 97, 1)).to(dtype)
               for dtype, low, high in KINDS[:4]),
             torch.tensor([-2**24, -5, 0, 1, 77, 10**6, 2**24], dtype=torch.int32)),
        case("quantize_channels", channels, x, scales.double(), zeros),
        case("dequantize_channels", channels_back, q8, scales, zeros),
        case("tokens", tokens, rows,
             torch.rand(3, 2, 1).double() + 0.01, ints(torch.int64, 3, 2, 1)),
        case("choose_tokens", chosen_tokens, rows, rtol=1e-6),
        case("choose", chosen, real(3, 7), rtol=1e-6, more=[(real(3, 7) * k + b,) for k, b in
                                                  ((1e-6, 0), (0, 0), (1e-4, 1e-3), (3, 100),
                                                   (3, -100), (1e3, 0))]),
        case("scalar", lambda a: (quant.quantize_per_tensor(a, 0.5, 1, -128, 127, torch.int8),),
             torch.tensor(2.25)),
        case("nothing", lambda a: (quant.quantize_per_tensor(a, 0.5, 1, -128, 127, torch.int8),),
             real(0, 3)),
        case("quantize_dynamic_dims", lambda a:
             (quant.quantize_per_tensor(a, 0.5, 1, -128, 127, torch.int8), *chosen_tokens(a)),
             real(4, 6),
             dynamic=({0: Dim("rows", min=1, max=9)},),
             more=[(real(n, 6),) for n in (1, 9)], rtol=1e-6),
    ]
    for dtype in (torch.float16, torch.float64):
        cases.append(
            case(f"dequantize_{short(dtype)}",
                 lambda a, dtype=dtype:
                 (quant.dequantize_per_tensor(a, 0.02, 3, -128, 127, torch.int8, out_dtype=dtype),),
                 q8,
                 rtol=1e-6))
    return cases


# ---- layers -----------------------------------------------------------------------------------


def embeddings(op, low, high, *dtypes):
    """With and without zero points and a type."""

    def run(weights, scales, zeros, groups, places):
        results = [
            op(weights, scales, None, low, high, places),
            op(weights, scales, zeros, low, high, places),
            op(weights, groups, None, low, high, places)
        ]
        return tuple(results + [
            op.dtype(weights, groups, None, low, high, places, dtype=dtype) for dtype in dtypes
        ])

    return run


def embedding_cases(name, op, weights, width, low, high):
    rows = weights.shape[0]
    scales, places = torch.rand(rows) + 0.01, ints(torch.int64, 2, 2, low=0, high=rows)
    args = (weights, scales, torch.randn(rows) * 3, torch.rand(rows, width // 12) + 0.01, places)
    halves = tuple(a.half() if a.is_floating_point() else a for a in args)
    cases = [case(name, embeddings(op, low, high, torch.float16), *args)]
    if width == 600:  # what is said of the others' types before a run is wrong
        cases.append(
            case(f"{name}_f16", embeddings(op, low, high, torch.float32), *halves, rtol=1e-3))
    return cases + [
        case(f"{name}_none", lambda w, s, p: op(w, s, None, low, high, p), weights, scales,
             ints(torch.int64, 0, low=0, high=1)),
    ]


def sums(a, b):
    return (quant.add(a, 0.25, 100, 0, 255, b, 0.1, 3, 0, 255, 0.3, 120, 0, 255),
            quant.add(a, 0.25, 100, 0, 255, b, 0.1, 3, 0, 255, 0.05, 7, 10, 200))


@family
def quant_layers():
    packed = ints(torch.uint8, 3, 306, low=0, high=256)
    x, w = real(3, 24), ints(torch.int8, 24, 17, low=-128, high=128)
    fine = {"rtol": 1e-5, "atol": 1e-3}
    cases = [
        case("mixed_mm", lambda a, b, s: quant.mixed_mm(a, b, s, None), x, w, torch.rand(24),
             **fine),
        case("mixed_mm_f16", lambda a, b, s: quant.mixed_mm(a, b, s, None), x.half(), w,
             torch.rand(24).half(), rtol=2e-3, atol=0.5),
        case("mixed_linear", lambda a, b, s, g:
             (quant.mixed_linear(a, b, s, None), quant.mixed_linear(a, b, g, None)), x,
             w.t().contiguous(), torch.rand(17), torch.rand(17, 3), **fine),
        case("mixed_linear_f16", lambda a, b, s: quant.mixed_linear(a, b, s, None), x.half(),
             w.t().contiguous(), torch.rand(17).half(), rtol=2e-3, atol=0.5),
        case("add", sums, ints(torch.uint8, 5, 7, low=0, high=256),
             ints(torch.uint8, 5, 7, low=0, high=256)),
    ]
    cases += embedding_cases("byte", quant.embedding_byte, ints(torch.int8, 3, 600), 600, -128, 127)
    cases += embedding_cases("ubyte", quant.embedding_byte, ints(torch.uint8, 9, 24), 24, 0, 255)
    cases += embedding_cases("nibbles", quant.embedding_4bit, packed, 612, -8, 7)
    cases += embedding_cases("crumbs", quant.embedding_2bit, packed[:, :9].contiguous(), 36, -2, 1)
    return cases


# ---- integers between quantize and dequantize --------------------------------------------------


def there_and_back(x, scale=0.05, zero=3):
    return quant.dequantize_per_tensor(
        quant.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8), scale, zero, -128, 127,
        torch.int8)


class Layer(torch.nn.Module):
    """A layer between numbers of 8 bits, with weights of 8 bits that have a scale a channel."""

    def __init__(self, layer, *weights):
        super().__init__()
        self.layer = layer
        channels = weights[0]
        self.register_buffer("weights", ints(torch.int8, *weights, low=-127, high=128))
        self.register_buffer("scales", torch.rand(channels) * 0.003 + 1e-4)
        self.register_buffer("zeros", torch.zeros(channels, dtype=torch.int64))
        self.register_buffer("bias", torch.randn(channels))

    def forward(self, x):
        weights = quant.dequantize_per_channel(self.weights, self.scales, self.zeros, 0, -127, 127,
                                               torch.int8)
        return there_and_back(self.layer(there_and_back(x), weights, self.bias))


@family
def integers():
    """What a step of the last scale more or less may change."""
    step = {"rtol": 0, "atol": 0.0501}
    f = torch.nn.functional
    x, y = real(2, 8, 9, 7) * 2, real(2, 8, 9, 7)

    def between(function):
        return lambda *args: there_and_back(function(*map(there_and_back, args)))

    return [
        case("conv", Layer(lambda a, w, b: f.relu(f.conv2d(a, w, b, padding=1)), 12, 8, 3, 3), x,
             **step),
        case("conv_dw", Layer(lambda a, w, b: f.conv2d(a, w, b, stride=2, groups=8), 8, 1, 3, 3),
             x, **step),
        case("linear", Layer(f.linear, 19, 24), real(5, 24), **step),
        case("add", between(torch.add), x, y, **step),
        case("mul", between(torch.mul), x, y, **step),
        case("lookup", between(torch.sigmoid), x, **step),
        case("mean", between(lambda a: a.mean((2, 3), keepdim=True)), x + 1, **step),
    ]


# ---- products of integers, bit for bit ---------------------------------------------------------


def extremes(dtype, low, high, *dims):
    """The two ends, and nothing between."""
    return torch.where(torch.rand(*dims) > 0.5, high, low).to(dtype)


def balanced(n, k, low, high):
    """Weights whose second half takes back what the first gives, but for some."""
    half = extremes(torch.int8, low, high, n, k // 2)
    weights = torch.cat([half, torch.zeros(n, k % 2, dtype=torch.int8), -1 - half], 1)
    weights[:, ::k // 7] = low
    return weights


class Product(torch.nn.Module):
    """Scales are 1, so that results are integers, too small for a float to round them."""

    def __init__(self, layer, weights, zero=0):
        super().__init__()
        self.layer, self.zero = layer, zero
        self.register_buffer("weights", weights)
        self.register_buffer("scales", torch.ones(weights.shape[0]))
        self.register_buffer("zeros", torch.zeros(weights.shape[0], dtype=torch.int64))

    def forward(self, x):
        weights = quant.dequantize_per_channel(self.weights, self.scales, self.zeros, 0, -128, 127,
                                               torch.int8)
        return self.layer(quant.dequantize_per_tensor(x, 1.0, self.zero, 0, 255, torch.uint8),
                          weights)


@family
def products():
    """Of sizes that are no multiples of what is multiplied at once, and of the ends of ranges."""
    f = torch.nn.functional
    exact = {"rtol": 1e-6, "atol": 1e-3}
    row = extremes(torch.uint8, 0, 255, 1501)
    deep = torch.cat([row, row, row[:1]]).expand(3, -1).contiguous()
    ends = {"zero_0": 0, "zero_255": 255}
    cases = [
        case(f"deep_{name}", Product(f.linear, balanced(9, 3003, -128, 127), zero), deep, **exact)
        for name, zero in ends.items()
    ]
    cases += [
        case(f"linear_{m}_{k}_{n}",
             Product(f.linear, ints(torch.int8, n, k, low=-128, high=128), 7),
             ints(torch.uint8, m, k, low=0, high=256), **exact)
        for m, k, n in ((1, 37, 70), (70, 24, 150), (33, 1, 3), (2, 130, 65))
    ]
    cases += [
        case(f"nibbles_{k}", Product(f.linear, ints(torch.int8, 19, k, low=-8, high=8), 130),
             ints(torch.uint8, 6, k, low=0, high=256), **exact) for k in (36, 301)
    ]
    shapes = {
        "conv": ((3, 7, 3, 3), {"padding": 1}),
        "conv_groups": ((10, 5, 3, 2), {"padding": 1, "groups": 2, "stride": 2}),
        "conv_apart": ((6, 9, 3, 3), {"padding": 2, "dilation": 2}),
        "conv_pixels": ((70, 33, 1, 1), {}),
        "conv_dw": ((12, 1, 3, 3), {"padding": 1, "groups": 12}),
    }
    for name, (dims, how) in shapes.items():
        channels = dims[1] * how.get("groups", 1)
        cases.append(
            case(name, Product(lambda a, w, how=how: f.conv2d(a, w, **how),
                               ints(torch.int8, *dims, low=-128, high=128), 200),
                 extremes(torch.uint8, 0, 255, 2, channels, 9, 8), **exact))
    return cases
