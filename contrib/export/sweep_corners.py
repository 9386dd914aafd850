# SPDX-License-Identifier: MIT
"""Calls that PyTorch's samples do not have: sweep.py --corners.

Every pair of types, numbers beside every type, every kind of value; rank 0 and dims of 0. A packet
stands for its default overload; what is no call in PyTorch is left out by sweep_kernels.py.
"""

import itertools

import torch

from ops_case import FLOATS, INTS, edges, numbers

aten = torch.ops.aten
TYPES = (*FLOATS, *INTS, torch.bool)
BINARY = [aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.floor_divide,
          aten.remainder.Tensor, aten.fmod.Tensor, aten.pow.Tensor_Tensor, aten.atan2,
          aten.maximum, aten.minimum, aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor,
          aten.le.Tensor, aten.gt.Tensor, aten.ge.Tensor, aten.logical_and, aten.logical_or,
          aten.logical_xor, aten.bitwise_and.Tensor, aten.bitwise_or.Tensor,
          aten.bitwise_xor.Tensor, aten.bitwise_left_shift.Tensor,
          aten.bitwise_right_shift.Tensor, aten.copy, aten.clamp.Tensor]
SCALAR = [aten.add.Scalar, aten.sub.Scalar, aten.rsub.Scalar, aten.mul.Scalar, aten.div.Scalar,
          aten.remainder.Scalar, aten.fmod.Scalar, aten.pow.Tensor_Scalar, aten.eq.Scalar,
          aten.ne.Scalar, aten.lt.Scalar, aten.le.Scalar, aten.gt.Scalar, aten.ge.Scalar,
          aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar,
          aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor_Scalar,
          aten.clamp, aten.fill.Scalar, aten.full_like, aten.leaky_relu, aten.elu]
SCALARS = (0, 1, 2, 3, -1, -3, 63, 300, 0.5, 0.1, -2.5, 1e6, True, float("inf"), float("nan"))
UNARY = [aten.abs, aten.neg, aten.sign, aten.relu, aten.sigmoid, aten.tanh, aten.gelu, aten.exp,
         aten.expm1, aten.log, aten.log1p, aten.log2, aten.log10, aten.logit, aten.sqrt, aten.rsqrt,
         aten.reciprocal, aten.erf, aten.sin, aten.cos, aten.tan, aten.asin, aten.acos, aten.atan,
         aten.sinh, aten.cosh, aten.asinh, aten.acosh, aten.atanh, aten.floor, aten.ceil,
         aten.trunc, aten.round, aten.isnan, aten.isinf, aten.logical_not, aten.bitwise_not,
         aten.elu, aten.leaky_relu, aten.hardtanh, aten.alias_copy, aten.detach_copy, aten.clone]
SHAPES = ((), (0,), (1,), (2, 0, 3), (3, 1), (2, 3, 4))


def values(dtype):
    """Edges, but none that only some processors convert to an integer alike."""
    if dtype is torch.bool:
        return torch.rand(37) > 0.5
    return edges(dtype)[:37]


def second(dtype):
    """As many, in another order."""
    x = values(dtype)
    x = torch.cat([x, x])[:37] if len(x) < 37 else x
    return x.roll(5)


def first(dtype):
    x = values(dtype)
    return torch.cat([x, x, x])[:37]


def conversions():
    for a, b in itertools.product(TYPES, TYPES):
        x = first(a)
        if a.is_floating_point and not b.is_floating_point:
            x = x[x.isfinite()]
            x = x.abs() if b is torch.uint8 else x
        yield aten._to_copy.default, (x,), {"dtype": b}
        yield aten.copy.default, (torch.zeros(x.shape, dtype=b), x), {}


def pairs():
    for func, (a, b) in itertools.product(BINARY, itertools.product(TYPES, TYPES)):
        y = second(b)
        nonzero = func in (aten.floor_divide, aten.remainder.Tensor, aten.fmod.Tensor)
        if nonzero and not (a.is_floating_point or b.is_floating_point):
            y = torch.where(y == 0, torch.ones_like(y), y)
        yield func, (first(a), y), {}
        yield func, (numbers(a, 3, 1), numbers(b) + 1), {}
    for mode, a, b in itertools.product(("trunc", "floor", None), TYPES, TYPES):
        y = second(b)
        if not (a.is_floating_point or b.is_floating_point):
            y = torch.where(y == 0, torch.ones_like(y), y)
        yield aten.div.Tensor_mode, (first(a), y), {"rounding_mode": mode}
    mask = torch.rand(37) > 0.5
    for a, b in itertools.product(TYPES, TYPES):
        yield aten.where.self, (mask, first(a), second(b)), {}
        yield aten.cat, ([first(a), second(b)],), {}
        yield aten.clamp.Tensor, (first(a), None, second(b)), {}
        yield aten.index_put, (first(a), [torch.tensor([3, 1])], second(a)[:2]), {}


def scalars():
    for func, dtype, number in itertools.product(SCALAR, TYPES, SCALARS):
        x = first(dtype)
        yield func, (x, number), {}
    for dtype, number in itertools.product(TYPES, SCALARS):
        x = first(dtype)
        yield aten.pow.Scalar, (number, x), {}
        yield aten.masked_fill.Scalar, (x, torch.rand(37) > 0.5, number), {}
        yield aten.clamp, (x, None, number), {}
        yield aten.clamp, (x, -2, number), {}
        yield aten.hardtanh, (x, -1, number), {}
        yield aten.full, ([2, 3], number), {"dtype": dtype}
        yield aten.scalar_tensor, (number,), {"dtype": dtype}
        yield aten.add.Tensor, (x, second(dtype)), {"alpha": number}
        yield aten.sub.Tensor, (x, second(dtype)), {"alpha": number}
        yield aten.scatter.value, (x, 0, torch.tensor([1, 4]), number), {}
        yield aten.constant_pad_nd, (x, [1, 2], number), {}
        for mode in ("trunc", "floor", None):
            yield aten.div.Scalar_mode, (x, number), {"rounding_mode": mode}
        yield aten.arange.start_step, (number, 9), {"dtype": dtype}
        yield aten.arange.start_step, (0, 9, number), {"dtype": dtype}
        yield aten.arange, (number,), {"dtype": dtype}
    for bits in INTS:
        for by in (-1, 0, 7, 8, 15, 16, 31, 32, 63, 64, 100):
            for func in (aten.bitwise_left_shift, aten.bitwise_right_shift):
                yield func.Tensor_Scalar, (first(bits), by), {}
                yield func.Tensor, (first(bits), torch.tensor([by]).to(bits)), {}


def unary():
    for func, dtype in itertools.product(UNARY, TYPES):
        yield func, (first(dtype),), {}
        for shape in SHAPES:
            yield func, (numbers(dtype, *shape),), {}
    for dtype in FLOATS:
        yield aten.gelu, (first(dtype),), {"approximate": "tanh"}
        for eps in (0.0, 0.1, 0.6):
            yield aten.logit, (first(dtype), eps), {}


def reductions():
    for dtype, shape in itertools.product(TYPES, (*SHAPES, (5, 300), (300, 5), (4, 33, 17))):
        x = numbers(dtype, *shape)
        rank = len(shape)
        dims = [None, [], [0], [-1], *([[0, 1], [0, -1]] if rank > 1 else [])]
        for dim, keep in itertools.product(dims, (False, True)):
            for func in (aten.sum.dim_IntList, aten.mean.dim, aten.any.dims):
                yield func, (x, dim, keep), {}
            yield aten.var.correction, (x, dim), {"correction": 2, "keepdim": keep}
            yield aten.var_mean.correction, (x, dim), {"keepdim": keep}
            yield aten.var.dim, (x, dim), {"unbiased": keep}
            if dim is not None:
                for func in (aten.amax, aten.amin):
                    yield func, (x, dim, keep), {}
                yield aten.sum.dim_IntList, (x, dim, keep), {"dtype": torch.float64}
                yield aten.sum.dim_IntList, (x, dim, keep), {"dtype": torch.int64}
                yield aten.mean.dim, (x, dim, keep), {"dtype": torch.float32}
        for dim, keep in itertools.product((0, -1), (False, True)):
            for func in (aten.max.dim, aten.min.dim, aten.argmax, aten.argmin, aten.any.dim,
                         aten.prod.dim_int):
                yield func, (x, dim, keep), {}
            yield aten.prod.dim_int, (x, dim, keep), {"dtype": torch.float32}
            yield aten.cumsum, (x, dim), {}
            yield aten.cumsum, (x, dim), {"dtype": torch.float32}
            yield aten.cumsum, (x, dim), {"dtype": torch.int32}
            yield aten._softmax, (x, dim, False), {}
            yield aten._log_softmax, (x, dim, False), {}
        for func in (aten.max, aten.min, aten.any, aten.prod, aten.argmax, aten.argmin):
            yield func.default, (x,), {}
        yield aten.prod.default, (x,), {"dtype": torch.float64}
        yield aten.mean.default, (x,), {"dtype": torch.float64}


def layers():
    for dtype in FLOATS:
        for shape in ((2, 6, 5, 7), (1, 6, 1, 1), (0, 6, 4, 4), (3, 6, 16, 16)):
            x, n = numbers(dtype, *shape), shape[1]
            w, b = numbers(dtype, n), numbers(dtype, n)
            for weight, bias in ((w, b), (None, None), (w, None)):
                yield aten.native_group_norm, (x, weight, bias, shape[0], n, shape[2] * shape[3],
                                               3, 1e-5), {}
                yield aten._native_batch_norm_legit_no_training, (x, weight, bias, w, w.abs(), 0.1,
                                                                  1e-5), {}
                yield aten._native_batch_norm_legit.no_stats, (x, weight, bias, True, 0.1, 1e-5), {}
            for size in (shape[-2:], shape[-1:]):
                lw, lb = numbers(dtype, *size), numbers(dtype, *size)
                yield aten.native_layer_norm, (x, size, lw, lb, 1e-5), {}
                yield aten.native_layer_norm, (x, size, None, None, 1e-5), {}
            for func in (aten.upsample_nearest2d.vec, ):
                yield func, (x, [9, 3], None), {}
                yield func, (x, None, [1.7, 2.0]), {}
            for corners in (False, True):
                yield aten.upsample_bilinear2d.vec, (x, [9, 3], corners, None), {}
                yield aten.upsample_bilinear2d.vec, (x, None, corners, [2.0, 1.3]), {}
            yield aten._adaptive_avg_pool2d, (x, [3, 2]), {}
            yield aten.avg_pool2d, (x, [2, 2], [], [1, 1], True, False), {}
            yield aten.avg_pool2d, (x, [3, 2], [2, 1], [1, 0], False, True, 5), {}
            yield aten.max_pool2d_with_indices, (x, [2, 2], [1, 2], [1, 1], [1, 1], True), {}
            yield aten.pixel_shuffle, (numbers(dtype, 2, 12, 3, 2), 2), {}
    for dtype in TYPES:
        for shape in ((2, 4, 5, 6), (4, 5, 6), (0, 4, 5, 6)):
            x = numbers(dtype, *shape)
            for pad in ([1, 2], [-1, 2, 1, -1], [0, 0, 0, 0, 1, 0]):
                yield aten.constant_pad_nd, (x, pad, 2), {}
            for func in (aten.reflection_pad2d, aten.replication_pad2d):
                yield func, (x, [1, 2, 3, 0]), {}
                yield func, (x, [-1, 2, 3, -2]), {}
            yield aten.reflection_pad3d, (x, [1, 2, 3, 0, 1, 1]), {}
            yield aten.replication_pad3d, (x, [1, 2, 3, 0, 1, 1]), {}
            yield aten.replication_pad1d, (x[0] if x.numel() else x, [3, 1]), {}
            yield aten.upsample_nearest2d.vec, (x, [9, 3], None), {}
            yield aten.upsample_bilinear2d.vec, (x, [9, 3], False, None), {}
            yield aten._adaptive_avg_pool2d, (x, [2, 3]), {}
            yield aten.avg_pool2d, (x, [2, 2]), {}
            yield aten.max_pool2d_with_indices, (x, [2, 2]), {}


def moves():
    for dtype, shape in itertools.product(TYPES, ((), (0,), (3,), (2, 0, 3), (4, 5), (3, 4, 5))):
        x, rank = numbers(dtype, *shape), len(shape)
        yield aten.view_copy, (x, [-1] if x.numel() else [0, 2]), {}
        yield aten.permute_copy, (x, list(range(rank))[::-1]), {}
        yield aten.t_copy, (x,), {}
        yield aten.expand_copy, (x, [2, *shape]), {}
        yield aten.repeat, (x, [2, *[3] * rank]), {}
        yield aten.repeat, (x, [0, *[1] * rank]), {}
        yield aten.flip, (x, list(range(rank))), {}
        yield aten.roll, (x, [2]), {}
        yield aten.roll, (x, [-7, 3][:rank], [0, 1][:rank]), {}
        yield aten.unsqueeze_copy, (x, -1), {}
        yield aten.squeeze_copy.dim, (x, 0), {}
        yield aten.stack, ([x, x], -1), {}
        yield aten.tril, (x, -1), {}
        yield aten.tril, (x, 2), {}
        yield aten.nonzero, (x,), {}
        yield aten.as_strided_copy, (x, [2, 2], [1, 1], 0), {}
        yield aten.topk, (x, min(2, shape[-1]) if rank else 1), {}
        yield aten.index.Tensor, (x, [torch.tensor([0, -1])]), {}
        yield aten.index.Tensor, (x, [None, torch.tensor([[0, 1]]), None][:rank]), {}
        yield aten.index.Tensor, (x, [torch.tensor([[0], [1]]), None, torch.tensor([0, 1])]), {}
        if rank == 0:
            continue
        i = torch.zeros(shape, dtype=torch.int64)
        for index in (i, i[:1]):
            yield aten.gather, (x, -1, index), {}
            yield aten.scatter.src, (x, 0, index, x), {}
            yield aten.scatter_add, (x, 0, index, x), {}
        yield aten.index_select, (x, -1, torch.tensor([0, 1, 0])), {}
        yield aten.index_put, (x, [torch.tensor([0, -1, 0])], x[:1], True), {}
        yield aten.slice_copy.Tensor, (x, 0, 1, 9223372036854775807, 2), {}
        yield aten.slice_copy.Tensor, (x, -1, -2, None, 1), {}
        yield aten.slice_copy.Tensor, (x, 0, 5, 2, 1), {}
        yield aten.select_copy.int, (x, 0, -1), {}
        yield aten.narrow_copy, (x, 0, 0, 1), {}
        yield aten.split_copy.Tensor, (x, 2, 0), {}
        yield aten.unfold_copy, (x, -1, 2, 1), {}
        yield aten.slice_scatter, (x, x[:1], 0, 0, 1), {}
        if shape[0]:
            yield aten.select_scatter, (x, x[0], 0, -1), {}
        yield aten.diagonal_copy, (x, 1), {}
        yield aten.masked_scatter, (x, x > 0 if dtype is not torch.bool else x, x), {}
        yield aten.masked_select, (x, x > 0 if dtype is not torch.bool else x), {}
        yield aten.embedding, (x, torch.tensor([[0, 1], [1, 0]])), {}
        yield aten.embedding, (x, torch.tensor([[0, 1]], dtype=torch.int32)), {}


def transforms():
    for shape, real in itertools.product(((8,), (3, 7), (2, 4, 6), (1,)),
                                         (torch.float32, torch.float64)):
        x = numbers(real, *shape)
        for norm, onesided in itertools.product((0, 1, 2), (True, False)):
            for dims in ([-1], [0], list(range(len(shape)))):
                yield aten._fft_r2c, (x, dims, norm, onesided), {}
    for mode, pad, corners, dtype in itertools.product((0, 1, 2), (0, 1, 2), (False, True), FLOATS):
        x, grid = numbers(dtype, 2, 3, 5, 6), (torch.rand(2, 4, 3, 2) * 2.4 - 1.2).to(dtype)
        yield aten.grid_sampler_2d, (x, grid, mode, pad, corners), {}


def bytes_of(*shape):
    return (torch.arange(torch.Size(shape).numel()) * 89 % 256).to(torch.uint8).reshape(shape)


def resampling():
    """Factors that change nothing, or double; images of bytes, whose weights are integers."""
    for factors in ([1.4, 2.3], [1.3, 0.9], [1.6, 1.5]):
        yield aten.upsample_nearest2d.vec, (numbers(torch.float32, 1, 2, 2, 3), None, factors), {}
        yield aten.upsample_bilinear2d.vec, (numbers(torch.float32, 1, 2, 2, 3), None, False,
                                             factors), {}
    for shape, size in (((1, 3, 7, 9), [4, 13]), ((2, 1, 8, 8), [17, 8]), ((1, 5, 9, 4), [3, 2]),
                        ((1, 4, 1, 6), [2, 12])):
        for corners in (False, True):
            yield aten.upsample_bilinear2d.vec, (bytes_of(*shape), size, corners, None), {}
            yield aten._upsample_bilinear2d_aa, (bytes_of(*shape), size, corners), {}
    yield aten.upsample_bilinear2d.vec, (bytes_of(1, 2, 5, 4), None, False, [1.7, 2.0]), {}
    yield aten._upsample_bilinear2d_aa, (bytes_of(1, 2, 5, 40), [3, 4], False, 0.6, 0.11), {}


def sampled_halves():
    """Every operation on a place is rounded."""
    places = torch.linspace(-1.3, 1.3, 24).roll(7).reshape(1, 3, 4, 2)
    for mode, padding, dtype in itertools.product((0, 1, 2), (0, 1, 2), FLOATS[2:]):
        x = numbers(dtype, 1, 2, 5, 6)
        yield aten.grid_sampler_2d, (x, places.to(dtype), mode, padding, padding == 1), {}


def stored():
    """What was wrong once: tests/ops/corners, written by sweep.py --stored."""
    u8, i8 = torch.arange(250, 256, dtype=torch.uint8), torch.arange(-4, 4, dtype=torch.int8)
    bools = torch.tensor([True, False, True])
    half = torch.tensor([0.1, 3.0, float("inf"), -float("inf"), -0.0, 2.5], dtype=torch.float16)
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([0.0, -1.5, 2.5, nan, inf, -inf])
    for func in (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge):
        yield func.Scalar, (u8, -3), {}
        yield func.Scalar, (i8, 300), {}
        yield func.Scalar, (half, 1e6), {}
        yield func.Scalar, (half, 0.1), {}
    for func in (aten.remainder, aten.fmod):
        yield func.Scalar, (u8, -3), {}
        yield func.Scalar, (i8, 300), {}
    for mode in ("trunc", "floor"):
        yield aten.div.Scalar_mode, (u8, -3), {"rounding_mode": mode}
        for dtype in (torch.float16, torch.bfloat16):
            yield aten.div.Tensor_mode, (torch.linspace(-900, 900, 101).to(dtype),
                                         torch.tensor([6.47], dtype=dtype)
                                         ), {"rounding_mode": mode}
    yield aten.add.Scalar, (half, 1e6), {}
    yield aten.add.Tensor, (bools, ~bools), {"alpha": 0.5}
    yield aten.masked_fill.Scalar, (~bools, bools, 0.5), {}
    yield aten.pow.Tensor_Scalar, (half, 0.5), {}
    for low, high in ((nan, None), (None, nan), (-1, nan)):
        yield aten.clamp, (x, low, high), {}
        yield aten.clamp, (x.double(), low, high), {}
        yield aten.clamp, (i8, low, high), {}
    yield aten.hardtanh, (x, -1, nan), {}
    yield aten.elu, (x, inf), {}
    yield aten.elu, (x.double(), inf), {}
    for dtype in (torch.int32, torch.int16, torch.uint8):
        yield aten.copy, (torch.zeros(6, dtype=dtype), x), {}
    yield aten.copy, (torch.zeros(2, dtype=torch.int32), torch.tensor([3e9, -3e9])), {}
    for dtype in (torch.int64, torch.int32, torch.float64):
        yield aten.sum.dim_IntList, (torch.full((2, 3), 1.7), [1]), {"dtype": dtype}
        yield aten.sum.dim_IntList, (torch.full((2, 3), 1.7), [0]), {"dtype": dtype}
        yield aten.prod.dim_int, (torch.full((2, 3), 2.7), 0), {"dtype": dtype}
        yield aten.cumsum, (torch.full((2, 3), 1.7), 1), {"dtype": dtype}
        yield aten.cumsum, (i8, 0), {"dtype": dtype}
    for func in (aten.bitwise_left_shift, aten.bitwise_right_shift):
        yield func.Tensor, (bools, torch.tensor([1, 0, 3])), {}
        yield func.Tensor, (i8, bools[:1]), {}
    yield aten.clamp, (u8, -2, None), {}
    yield aten.clamp, (u8, -2, 63), {}
    yield aten.arange, (0.5,), {"dtype": torch.int64}
    yield aten.arange.start_step, (-2.5, 9), {"dtype": torch.int64}
    yield aten.index.Tensor, (x, [None]), {}
    yield aten.arange.start_step, (False, 5, True), {}
    wide, bytes_ = numbers(torch.float64, 1, 2, 5, 7), torch.arange(24, dtype=torch.uint8) * 8
    yield aten.upsample_bilinear2d.vec, (wide, [9, 4], False, None), {}
    yield aten.upsample_bilinear2d.vec, (wide, None, True, [1.3, 2]), {}
    yield aten.upsample_bilinear2d.vec, (bytes_.reshape(1, 4, 2, 3), [4, 6], False, None), {}
    for dtype in (torch.float16, torch.bfloat16):
        yield aten._log_softmax, (numbers(dtype, 3, 50), 1, False), {}
        yield aten._log_softmax, (numbers(dtype, 50, 3), 0, False), {}
    yield from resampling()
    yield from sampled_halves()


def corners():
    makers = (conversions, pairs, scalars, unary, reductions, layers, moves, transforms,
              resampling, sampled_halves)
    return itertools.chain.from_iterable(make() for make in makers)
