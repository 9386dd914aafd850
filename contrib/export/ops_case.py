# SPDX-License-Identifier: MIT
"""What the operators' golden tests run: a function a family, which returns its cases.

A case is one method. Where operators share their inputs, one method returns all their results;
shapes have dims of 0 and 1, odd sizes, broadcasting and rank 0, floats NaN and both infinities.
"""

from dataclasses import dataclass

import torch

aten = torch.ops.aten
FAMILIES = {}
ORACLES = {}  # by family: what computes its results instead of PyTorch, a context manager
OLD_FORMAT = {"formats"}  # families that are exported without dim orders
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)

# Operators that the exporter would otherwise write as others.
PRESERVED = [
    aten.floor_divide.default, aten.fmod.Scalar, aten.remainder.Scalar, aten.rsub.Scalar,
    aten.div.Tensor_mode, aten.div.Scalar_mode, aten.add.Scalar, aten.sub.Scalar, aten.div.Scalar,
    aten.clamp.Tensor, aten.masked_fill.Scalar, aten.leaky_relu.default, aten.elu.default,
    aten.logit.default, aten.fill.Scalar, aten.fill.Tensor, aten.zeros.default, aten.ones.default,
    aten.arange.default, aten.any.default, aten.any.dims, aten.max.default, aten.min.default,
    aten.mean.default, aten.prod.default, aten.prod.dim_int, aten.var.dim, aten.var.correction,
    aten.var_mean.correction, aten.max.dim, aten.min.dim, aten.stack.default, aten.tril.default,
    aten.flip.default, aten.roll.default, aten.narrow_copy.default, aten.diagonal_copy.default,
    aten.unfold_copy.default, aten.pixel_unshuffle.default, aten.select_scatter.default,
    aten.linear.default, aten.upsample_bilinear2d.vec, aten.upsample_nearest2d.vec,
    aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar, aten.atan2.default,
    aten.logical_xor.default, aten.isnan.default, aten.isinf.default, aten.sign.default,
    aten.relu.default, aten.hardtanh.default, aten.unbind_copy.int, aten.transpose_copy.int,
    aten.t_copy.default, aten.split_copy.Tensor, aten.copy.default, aten.detach_copy.default,
    aten.reflection_pad1d.default, aten.reflection_pad2d.default, aten.reflection_pad3d.default,
    aten.replication_pad1d.default, aten.replication_pad2d.default, aten.replication_pad3d.default,
    aten.pixel_shuffle.default, aten.lift_fresh_copy.default, aten.squeeze_copy.dim,
    aten.index_put.default, aten.scatter.value, aten.scatter_add.default, aten.pow.Scalar,
    aten.grid_sampler_2d.default, aten._upsample_bilinear2d_aa.default, aten._cdist_forward.default,
    aten._pdist_forward.default, aten._adaptive_avg_pool2d.default, aten._conj_physical.default,
    aten.convolution_backward.default, aten.max_pool2d_with_indices_backward.default,
    aten.topk.default, aten.glu.default, aten.masked_scatter.default, aten.native_dropout.default,
    aten.rand.default, aten.randn.default, aten.rand_like.default, aten.randn_like.default
]


class Module(torch.nn.Module):

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


class Unpacked(torch.nn.Module):
    """A module of parameters called like the others, with its arguments as one tuple."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args):
        return self.inner(*args)


@dataclass
class Case:
    name: str
    module: torch.nn.Module
    calls: list  # tuples of arguments; the first is the exported example
    dynamic: tuple | None = None
    rtol: float = 1e-5
    atol: float = 1e-6
    is_random: bool = False  # exported, but what comes out is not stored


def family(function):
    FAMILIES[function.__name__] = function
    return function


def case(name, function, *args, more=(), dynamic=None, **options):
    module = function if isinstance(function, torch.nn.Module) else Module(function)
    if dynamic:
        dynamic = (dynamic,)  # torch.export sees *args as one tuple
    return Case(name, module.eval(), [args, *more], dynamic, **options)


def short(dtype):
    return str(dtype).removeprefix("torch.")


def tolerance(dtype):
    """What one rounding to the type, and one more in the arithmetic before it, may cost."""
    rtol = {torch.float64: 1e-11, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}.get(dtype, 1e-5)
    return {"rtol": rtol, "atol": min(rtol, 1e-6) if dtype is not torch.float16 else 1e-5}


def floats(dtype, *shape):
    return torch.randn(shape).to(dtype)


def real(*shape):
    return floats(torch.float32, *shape)


def ints(dtype, *shape, low=-20, high=20):
    if dtype is torch.bool:
        return torch.rand(shape) > 0.5
    return torch.randint(max(low, 0) if dtype is torch.uint8 else low, high, shape).to(dtype)


def numbers(dtype, *shape):
    return floats(dtype, *shape) if dtype.is_floating_point else ints(dtype, *shape)


def edges(dtype):
    """Every kind of number there is, and a tail that is no multiple of a vector."""
    if not dtype.is_floating_point:
        return torch.cat([
            ints(dtype, 10),
            torch.tensor([0, 1, 2, 3]).to(dtype),
            torch.full((3,), 127).to(dtype)
        ])
    special = [
        0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5,
        float("nan"),
        float("inf"), -float("inf"), 1e-3, -1e-3, 20.25, -20.25, 6, 0.999, 5
    ]
    return torch.cat([torch.tensor(special), torch.randn(17) * 3]).to(dtype)
