# SPDX-License-Identifier: MIT
"""Cases of the operators that compute elements: pointwise, created, reduced, normalised."""
import math

import torch
import torch.nn.functional as F
from torch.export import Dim

from ops_case import (FLOATS, INTS, aten, case, edges, family, floats, ints, numbers, real, short,
                      tolerance)

# ---- pointwise --------------------------------------------------------------------------------

UNARY = [
    torch.abs, torch.neg, torch.sign, torch.relu, torch.floor, torch.ceil, torch.trunc, torch.round
]
FUNCTIONS = [
    torch.exp, torch.expm1, torch.log, torch.log1p, torch.log2, torch.log10, torch.sqrt,
    torch.rsqrt, torch.reciprocal, torch.erf, torch.sin, torch.cos, torch.tan, torch.asin,
    torch.acos, torch.atan, torch.sinh, torch.cosh, torch.tanh, torch.asinh, torch.acosh,
    torch.atanh, torch.sigmoid
]
COMPARE = [torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge]
LOGIC = [torch.logical_and, torch.logical_or, torch.logical_xor]
BITS = [torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor]


def each(functions, *more):
    return lambda *args: tuple(f(*args, *more) for f in functions)


def activations(x):
    return (F.leaky_relu(x, 0.1), F.elu(x, 1.5), F.gelu(x), F.gelu(x, approximate="tanh"),
            F.hardtanh(x, -1.5, 2), F.relu6(x), torch.clamp(x, -1, 2), torch.clamp(x, min=0.5),
            torch.clamp(x, max=0.5), torch.logit(x, 0.1), torch.logit(x))


def arithmetic(a, b):
    return (a + b, torch.add(a, b, alpha=3), a - b, torch.sub(a, b, alpha=2), a * b,
            torch.maximum(a, b), torch.minimum(a, b))


def division(a, b):
    return (a / b, torch.div(a, b, rounding_mode="trunc"), torch.div(a, b, rounding_mode="floor"),
            torch.floor_divide(a, b), torch.fmod(a, b), torch.remainder(a, b))


def with_scalar(x):
    return (aten.add.Scalar(x, 3), aten.add.Scalar(x, 2, 3), aten.sub.Scalar(x, 5),
            aten.rsub.Scalar(x, 7, 2), aten.mul.Scalar(x, 3), aten.div.Scalar(x, 4),
            aten.div.Scalar_mode(x, 3, rounding_mode="floor"),
            aten.div.Scalar_mode(x, 3, rounding_mode="trunc"), aten.fmod.Scalar(x, 3),
            aten.remainder.Scalar(x, 3), aten.pow.Tensor_Scalar(x, 2), aten.pow.Tensor_Scalar(x, 3))


def with_float(x):
    return (aten.add.Scalar(x, 0.25), aten.mul.Scalar(x, 1.5), aten.div.Scalar(x, 0.3),
            aten.pow.Tensor_Scalar(x, 0.5), aten.pow.Tensor_Scalar(x, -0.5),
            aten.pow.Tensor_Scalar(x, -1.0), aten.pow.Tensor_Scalar(x,
                                                                    1.7), aten.pow.Scalar(2.5, x),
            aten.le.Scalar(x, 0.5), aten.eq.Scalar(x, 0.5))


def conversions(x):
    return tuple(x.to(dtype) for dtype in (*FLOATS, *INTS, torch.bool) if dtype != x.dtype)


def copies(x):
    return (x.clone(), aten.alias_copy(x), aten.detach_copy(x), aten.lift_fresh_copy(x))


def choices(mask, a, b):
    return (torch.where(mask, a, b), aten.masked_fill.Scalar(a, mask, 2),
            aten.clamp.Tensor(a, torch.minimum(a, b), b), aten.clamp.Tensor(a, None, b))


@family
def pointwise():
    cases = []
    for dtype in FLOATS:
        name, fine = short(dtype), tolerance(dtype)
        loose = dict(fine, rtol=max(fine["rtol"], 2e-5))
        x = edges(dtype)
        cases += [
            case(f"unary_{name}", each(UNARY), x, **fine),
            case(f"functions_{name}", each(FUNCTIONS), x, **loose),
            # PyTorch's vectorised gelu(inf) is NaN for some types.
            case(f"activations_{name}", activations, torch.where(x.isinf(), 30, x), **loose),
            # PyTorch rounds the product of a half to a half before it adds.
            case(f"arithmetic_{name}",
                 arithmetic,
                 floats(dtype, 3, 1, 5),
                 floats(dtype, 4, 1),
                 rtol=fine["rtol"],
                 atol=2 * fine["rtol"]),
            case(f"division_{name}", division,
                 torch.tensor([7, -7, 6.5, 0, 1, 1]).to(dtype),
                 torch.tensor([2, 2, -1.5, 3, 0, float("inf")]).to(dtype), **fine),
            case(f"scalar_{name}", with_scalar, floats(dtype, 2, 9), **fine),
            case(f"float_{name}", with_float,
                 floats(dtype, 7).abs() + 0.1, **loose),
            case(f"power_{name}", lambda a, b: (torch.pow(a, b), torch.atan2(a, b)),
                 floats(dtype, 3, 5).abs(), floats(dtype, 5), **loose),
            case(f"compare_{name}", each(COMPARE), x,
                 x.flip(0).contiguous()),
            case(f"tests_{name}", each([torch.isnan, torch.isinf, torch.logical_not]), x),
            case(f"choices_{name}", choices, ints(torch.bool, 3, 1, 1), floats(dtype, 2, 5),
                 floats(dtype, 5)),
            case(f"convert_{name}", conversions,
                 torch.tensor([0.0, 1.9, -1.9, 100.5, 0.25]).to(dtype))
        ]
    for dtype in (*INTS, torch.bool):
        name = short(dtype)
        x, y = ints(dtype, 2, 1, 5), ints(dtype, 3, 1)
        nonzero = torch.where(y == 0, torch.ones_like(y), y)
        if dtype != torch.bool:
            cases.append(case(f"arithmetic_{name}", arithmetic, x, y))
        cases.append(case(f"convert_{name}", conversions, edges(dtype)))
        if dtype in (torch.int8, torch.int16):
            continue  # what only the conversion in and out tells from int32
        if dtype != torch.bool:
            cases += [
                case(f"unary_{name}", each([f for f in UNARY if f != torch.neg]), edges(dtype)),
                case(f"division_{name}", division, x, nonzero),
                case(f"scalar_{name}", with_scalar, ints(dtype, 2, 9)),
                case(f"hardtanh_{name}", lambda a:
                     (F.hardtanh(a, 1, 6), F.hardtanh(a, 1.5, 6.7), torch.clamp(a, 2, 9)), x)
            ]
        else:
            cases.append(
                case("bounds_bool", lambda a, b:
                     (aten.clamp.Tensor(a, b, None), aten.clamp.Tensor(a, None, b), a.pow(2)),
                     x, y))
        cases += [
            case(f"compare_{name}", each(COMPARE), x, y),
            case(f"compare_scalar_{name}", each(COMPARE, 1), x),
            case(f"logic_{name}", each(LOGIC + BITS), x, y),
            case(f"not_{name}", each([torch.logical_not, torch.bitwise_not]), x)
        ]
    for dtype in (torch.int64, torch.bool):
        name, x = short(dtype), ints(dtype, 3, 1, 5)
        cases += [
            case(f"functions_{name}", each(FUNCTIONS[:4] + FUNCTIONS[6:11]), x, rtol=2e-5),
            case(f"choices_{name}", lambda m, a, b: (torch.where(m, a, b),), ints(torch.bool, 5),
                 x, ints(dtype, 4, 1)),
            case(f"copies_{name}", copies, x)
        ]
    half, single = floats(torch.float16, 4), real(3, 4)
    cases += [
        case("neg_i32", torch.neg, edges(torch.int32)),
        case(
            "bits_scalar",
            each([
                aten.bitwise_and.Scalar, aten.bitwise_or.Scalar, aten.bitwise_xor.Scalar,
                aten.bitwise_left_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor_Scalar
            ], 3), ints(torch.int32, 9)),
        case("shift", each([torch.bitwise_left_shift, torch.bitwise_right_shift]),
             ints(torch.int32, 9), ints(torch.int32, 9, low=0, high=30)),
        case("promote_int", lambda a, b, c: (a + b, a * c, b - c, torch.maximum(a, c)),
             ints(torch.uint8, 4), ints(torch.int8, 3, 4), ints(torch.int32, 1)),
        case("promote_float",
             lambda a, b, c: (a + b, b * c, a * c, a < c),
             ints(torch.int64, 4),
             single,
             half,
             rtol=2e-3),
        case("promote_double", lambda a, b: (a + b, a / b, a > b), floats(torch.float64, 4),
             single),
        case("int_times_float", lambda a: (a * 0.5, a + 2.5, a / 3, torch.true_divide(a, 2)),
             ints(torch.int64, 5)),
        case("sum_of_bools", lambda a, b: (a + b, a * b, torch.maximum(a, b)), ints(torch.bool, 9),
             ints(torch.bool, 9)),
        case("rank_0", lambda a, b: (a + b, a * b, torch.exp(a), a > b), real(), real()),
        case("rank_0_and_3", lambda a, b: (a + b, b - a), real(), real(2, 1, 3)),
        case("empty", lambda a, b: (a + b, torch.exp(a), a > b, torch.where(a > b, a, b)),
             real(0, 3), real(1)),
        case("large", lambda a, b: (a + b, torch.sigmoid(a), torch.where(a > b, a, b)),
             real(5, 1031), real(5, 1)),
        case("copy", lambda a, b:
             (aten.copy(a, b), aten.fill.Scalar(a, 1.5), aten.fill.Tensor(a, b[0])), real(2, 3),
             floats(torch.float64, 3)),
        case("add_dynamic",
             lambda a, b: (a + b, a * 2),
             real(3, 4),
             real(4),
             dynamic=({
                 0: Dim("n", min=0, max=9)
             }, None),
             more=[(real(n, 4), real(4)) for n in (0, 1, 9)])
    ]
    return cases


# ---- creation ---------------------------------------------------------------------------------


@family
def create():

    def filled(x):
        return tuple(
            torch.full((2, 3), value, dtype=dtype)
            for dtype, value in [(torch.float32,
                                  1.5), (torch.float64,
                                         1e300), (torch.float16,
                                                  0.1), (torch.bfloat16,
                                                         0.1), (torch.int64,
                                                                2**53 + 1), (torch.uint8,
                                                                             255), (torch.bool,
                                                                                    True), ])

    def made(x):
        return (torch.zeros(2, 3) + x, torch.ones(3, dtype=torch.int32) + 0 * x.int(),
                torch.full_like(x, 2.5), torch.full_like(x, 7, dtype=torch.int64),
                torch.scalar_tensor(2.5) + x, torch.full((0, 4), 1.0), torch.full((), 3.0))

    def ranges(x):
        return (torch.arange(7), torch.arange(2, 9, 2), torch.arange(9, 2, -3), torch.arange(0),
                torch.arange(0, 1, 0.1), torch.arange(1.5, 4), torch.arange(5, dtype=torch.float16),
                torch.arange(3, dtype=torch.int32), aten.arange.default(4))

    def by_size(x):
        n = x.shape[0]
        return (torch.arange(n), torch.arange(1, n + 1), torch.arange(0, 2 * n, 3),
                torch.full((n, 2), 0.5), torch.zeros(n), torch.ones(n))

    def by_number(x, at):
        p = at.item()
        return (torch.arange(p, p + 4), torch.arange(p, p - 5, -2, dtype=torch.int32),
                torch.arange(p, p + 3, dtype=torch.float16), torch.full((2, 3), p),
                torch.full((3,), p, dtype=torch.bool), torch.full_like(x, p),
                torch.scalar_tensor(p, dtype=torch.float64))

    def fractions(x):
        n = x.shape[0]
        return (torch.arange(0.5, n), torch.arange(0, n, 0.5), torch.arange(0.25, n, 0.75),
                torch.arange(n, -2.5, -0.5), torch.arange(n * 0.5), torch.arange(0, n * 0.1, 0.1),
                torch.arange(0.0, 1.0, 1 / n), torch.arange(-n * 0.5, 20.5, dtype=torch.float64),
                torch.arange(n / 3, 2 * n, 1.5, dtype=torch.int64),
                torch.arange(0.5, n, dtype=torch.int32), torch.arange(0, 32, n),
                torch.arange(40, 0, -n, dtype=torch.float16))

    def triangles(x):
        sizes = (3, 3, 1), (2, 5, -1), (5, 2, 0), (4, 3, -9), (3, 4, 9), (0, 3, 0)
        return (*(torch.tril_indices(*size) for size in sizes),
                *(torch.triu_indices(*size) for size in sizes),
                torch.triu_indices(3, 3, dtype=torch.int32))

    n = Dim("n", min=0, max=40)
    return [
        case("by_number", by_number, real(3), torch.tensor(5),
             more=[(real(3), torch.tensor(p)) for p in (0, -3, 2**33 + 1)]),
        case("empty", lambda x: torch.where(x == x, x, torch.empty(2, 3)), real(2, 3)),
        case("full", filled, real(1)),
        case("made", made, real(3)),
        case("ranges", ranges, real(1)),
        case("triangles", triangles, real(1)),
        case("by_size",
             by_size,
             real(5),
             dynamic=({
                 0: n
             },),
             more=[(real(k),) for k in (0, 1, 40)]),
        case("fractions",
             fractions,
             real(5),
             dynamic=({
                 0: Dim("m", min=3, max=14)
             },),
             more=[(real(k),) for k in (3, 4, 7, 13, 14)]),
    ]


@family
def sizes():
    """Arithmetic on sizes, in results and in the shapes of tensors."""

    def shapes(x):
        n = x.shape[0]
        return (x[:n - 1] + 1, x.reshape(n // 2, -1) + 0, torch.arange(-n, n),
                torch.full((n % 4,),
                           1.0), torch.zeros(torch.sym_max(n, 5)), torch.ones(torch.sym_min(n, 5)),
                x.unsqueeze(0).reshape(2, -1) + 0, torch.arange(x.numel()))

    def numbers_of(x):
        n = x.shape[0]
        return (x + 1, n + 2, n - 2, 3 * n, n // 3, n % 3, -n, torch.sym_max(n, 5),
                torch.sym_min(n, 5))

    def chosen(x):
        n = x.shape[0]
        pairs = n < 4, n <= 4, n >= 4, n == 4, n > 4, torch.sym_not(n <= 6)
        return (x + 1, *(torch.sym_ite(pair, n, n * 2) for pair in pairs), math.trunc(n / 3),
                math.ceil(n / 3), round(n / 2), torch.sym_int(torch.sym_float(n) * 1.5),
                (x * 7).sum().to(torch.int64).item())

    n = Dim("n", min=2, max=20)
    calls = [(real(2 * k, 6),) for k in (1, 3, 10)]
    return [
        case("shapes",
             shapes,
             real(8, 6),
             dynamic=({
                 0: 2 * Dim("half", min=1, max=10)
             },),
             more=calls),
        case("numbers",
             numbers_of,
             real(7, 2),
             dynamic=({
                 0: n
             },),
             more=[(real(k, 2),) for k in (2, 20)]),
        case("chosen",
             chosen,
             real(5, 2),
             dynamic=({
                 0: n
             },),
             more=[(real(k, 2),) for k in (3, 4, 9, 20)])
    ]


@family
def formats():
    """Exported without dim orders, as programs were before there were any."""
    return [
        case(
            "copies", lambda x: (x.clone(), x.to(torch.int32), x.to(torch.float64),
                                 torch.where(x == x, x, torch.empty(2, 3))), real(2, 3)),
        case("full_like", lambda x: (torch.full_like(x, 3), torch.zeros_like(x)), real(2, 3))
    ]


# ---- reductions -------------------------------------------------------------------------------


def sums(x):
    return (x.sum(), x.sum(1), x.sum((0, 2), keepdim=True), x.sum(-1), x.sum(0))


def means(x):
    return (x.mean(), x.mean(1), x.mean((1, 2), keepdim=True), x.mean((0, -1)))


def extremes(x):
    return (x.amax(1), x.amin((0, 2), keepdim=True), x.amax(
        ()), x.max(), x.min(), *x.max(1), *x.min(-1, keepdim=True), x.argmax(), x.argmin(),
            x.argmax(1), x.argmin(0, keepdim=True))


def variances(x):
    return (x.var(1), x.var(
        (0, 2), unbiased=False,
        keepdim=True), *torch.var_mean(x, 1, correction=0), torch.var(x, 2, correction=2))


def softmaxes(x):
    return (x.softmax(-1), x.softmax(0), x.softmax(1), x.log_softmax(-1), x.log_softmax(1))


@family
def reduce():
    cases = []
    for dtype in FLOATS:
        name, fine = short(dtype), tolerance(dtype)
        x = floats(dtype, 3, 4, 5)
        with_nan = x.clone()
        with_nan[1, 2, 3] = float("nan")
        cases += [
            case(f"sum_{name}", sums, x, **dict(fine, atol=fine["rtol"])),
            case(f"mean_{name}", means, x, **dict(fine, atol=fine["rtol"])),
            case(f"extremes_{name}", extremes, x, more=[(with_nan,)]),
            case(f"var_{name}", variances, x, **fine),
            case(f"prod_{name}", lambda a: (a.prod(), a.prod(1)), x, **fine),
            case(f"softmax_{name}", softmaxes, x, **dict(fine, atol=fine["rtol"])),
            case(f"cumsum_{name}", lambda a: (a.cumsum(1), a.cumsum(-1)), x,
                 **dict(fine, atol=fine["rtol"])),
            case(f"cumprod_{name}", lambda a: (a.cumprod(1), a.cumprod(-1)), x,
                 **dict(fine, atol=fine["rtol"]))
        ]
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool):
        name = short(dtype)
        x = ints(dtype, 3, 4, 5, low=-3, high=4)
        cases += [
            case(f"sum_{name}", sums, x),
            case(f"prod_{name}", lambda a: (a[:, :2].prod(1), a[0, 0].prod()), x),
            case(f"any_{name}", lambda a:
                 (a.any(), a.any(1), a.any(-1, keepdim=True), torch.any(a, (0, 2))),
                 x * (ints(torch.bool, 3, 4, 5))),
            case(f"cumsum_{name}", lambda a: (a.cumsum(1),), x),
            case(f"cumprod_{name}", lambda a: (a.cumprod(1), a.cumprod(-1)), x)
        ]
        if dtype != torch.bool:
            cases.append(case(f"extremes_{name}", extremes, x))
    x = real(2, 3)
    infinite = torch.full((2, 3), -float("inf"))
    infinite[1, 1] = 0
    image = real(1, 19, 5, 7)
    cases += [
        case(
            "sum_as", lambda a:
            (torch.sum(a, 1, dtype=torch.float64), torch.mean(a, 0, dtype=torch.float32)),
            ints(torch.int32, 3, 4)),
        case("pooled",
             lambda a: (a.mean((2, 3)), a.sum((2, 3), keepdim=True), a.amax(
                 (2, 3)), a.mean(1), a.argmax(1), a.softmax(1)),
             image,
             atol=1e-5),
        case("empty",
             lambda a: (a.sum(0), a.mean(0), a.prod(0), a.any(0), a.sum(), a.var(0), a.cumsum(0)),
             real(0, 3)),
        case("empty_rows", lambda a: (a.sum(0), a.amax(0), a.argmax(0), a.softmax(0), a.softmax(1)),
             real(3, 0)),
        case("rank_0", lambda a:
             (a.sum(), a.amax(0), a.mean(-1), a.softmax(0), a.cumsum(0), a.argmax(0)), real()),
        case("softmax_infinite", softmaxes_2d, infinite),
        case("softmax_long",
             lambda a: (a.softmax(-1), a.log_softmax(-1)),
             real(1, 2051) * 4,
             atol=1e-5),
        case("long",
             lambda a: (a.sum(), a.mean(), a.var(), a.amax(), a.argmax(), a.cumsum(0)),
             real(2501),
             rtol=1e-4,
             atol=1e-3),
        case("any_none", lambda a:
             (aten.any.dims(a, []), aten.any.dims(a, [0]), aten.any.dims(a, None)),
             ints(torch.bool, 2, 3)),
        case("sum_dynamic",
             lambda a: (a.sum(1), a.mean(0), a.softmax(1)),
             real(3, 4),
             dynamic=({
                 0: Dim("n", min=1, max=9)
             },),
             more=[(real(n, 4),) for n in (1, 9)]),
        case("var_small", lambda a: (a.var(1), a.var(0), torch.var(a, 0, correction=5)), x)
    ]
    # rows for one lane of a shader, for a subgroup and for a workgroup
    cases += [
        case(f"rows_of_{n}", rows_alone, remarkable_rows(n), rtol=1e-4, atol=1e-4)
        for n in (5, 21, 300, 1700)
    ]
    hidden = real(5, 70)
    hidden[0, 0] = hidden[:, 3] = hidden[2] = hidden[4] = -float("inf")
    hidden[4, 1] = float("nan")
    cases.append(case("softmax_masked", softmaxes_masked, hidden, atol=1e-6))
    return cases


def softmaxes_masked(x):
    """As attention computes it: no NaN where all numbers of a row are -inf."""
    return aten._safe_softmax.default(x, -1), aten._safe_softmax.default(x, 0)


def rows_alone(x):
    return (x.sum(1), x.mean(1), (x * 0.01 + 1).prod(1), x.amax(1), x.amin(1), *x.max(1), *x.min(1),
            x.argmin(1), x.var(1), x.softmax(1), x.log_softmax(1))


def remarkable_rows(n):
    """Of n: plain, with a NaN, with extremes twice, infinite, of both zeros, plain."""
    x = real(6, n)
    x[1, n // 3] = float("nan")
    x[2, n // 4] = x[2, n - 1] = 9
    x[2, 0] = x[2, n // 2] = -9
    x[3] = -float("inf")
    x[4] = 0
    x[4, ::3] = -0.0
    return x


def softmaxes_2d(x):
    return (x.softmax(-1), x.softmax(0), x.log_softmax(-1))


# ---- normalisation ----------------------------------------------------------------------------


@family
def norm():
    cases = []
    for dtype in FLOATS:
        name, fine = short(dtype), tolerance(dtype)
        fine["atol"] = max(2 * fine["rtol"], 1e-11) if dtype != torch.float32 else 2e-5
        x, w, b = floats(dtype, 2, 6, 2, 3), floats(dtype, 6), floats(dtype, 6)
        mean, var = floats(dtype, 6), floats(dtype, 6).abs() + 0.3
        cases += [
            case(
                f"layer_norm_{name}",
                lambda a, u, v: (F.layer_norm(a, (3,), u, v), F.layer_norm(a, (2, 3)),
                                 F.layer_norm(a, (3,), u, None, 0.1)), x, floats(dtype, 3),
                floats(dtype, 3), **fine),
            case(
                f"group_norm_{name}", lambda a, u, v:
                (F.group_norm(a, 3, u, v), F.group_norm(a, 2), F.group_norm(a, 6, u)), x, w, b,
                **fine),
            case(
                f"batch_norm_{name}", lambda a, m, s, u, v:
                (F.batch_norm(a, m, s, u, v), F.batch_norm(a, m, s),
                 F.batch_norm(a, m, s, u, None, eps=0.1)), x, mean, var, w, b, **fine),
            case(f"instance_norm_{name}", lambda a, u, v: (F.instance_norm(a, None, None, u, v),),
                 x, w, b, **fine)
        ]
    layer = torch.nn.LayerNorm(1500)
    cases += [
        case("layer_norm_long", layer, real(3, 1500), atol=2e-5),
        case("layer_norm_rows", lambda a: F.layer_norm(a, (170,)), real(9, 170), atol=2e-5),
        case("layer_norm_empty", lambda a: F.layer_norm(a, (4,)), real(0, 4)),
        case("batch_norm_2d", lambda a, m, s: F.batch_norm(a, m, s), real(3, 4), real(4),
             real(4).abs() + 1),
        case("statistics", lambda a: aten.native_layer_norm(a, [5], None, None, 1e-5), real(2, 5)),
        case("group_statistics", lambda a: aten.native_group_norm(a, None, None, 2, 4, 3, 2, 1e-5),
             real(2, 4, 3))
    ]
    return cases
