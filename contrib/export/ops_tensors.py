# SPDX-License-Identifier: MIT
"""Cases of the operators that move elements, and of those that nets are made of."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from ops_case import (FLOATS, INTS, Unpacked, aten, case, family, floats, ints, numbers, real,
                      short, tolerance)

# ---- views ------------------------------------------------------------------------------------


def views(x):
    return (x.permute(2, 0, 1) + 0, x.transpose(0, -1) + 0, x.reshape(5, -1), x.unsqueeze(1) + 0,
            x[:, :1].squeeze(1) + 0, x[:, :1].squeeze(
                (0, 1)) + 0, x[..., None].expand(-1, -1, -1, 3) + 0)


def slices(x):
    return (x[1:], x[:, ::2], x[:, :, -3:-1], x[:, 1:100:3], x[1], x[:, -1], x[:, 3:3],
            aten.narrow_copy(x, 2, 1, 3), x.flip(0, 2), x.flip(
                ()), x.roll(2, 1), x.roll((1, -1), (0, 2)), x.roll(3), x.tril(), x.tril(1))


def joins(x):
    return (torch.cat([x, x[:, :1], x[:, 1:3]], 1), torch.stack([x, x], -1), x.repeat(2, 1, 2),
            x.repeat(2, 1, 1, 3), *x.split(2, 1), *x.split_with_sizes([1, 0, 4], 1), *x.unbind(0))


def pads(x):
    return (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0),
                                    value=3), F.pad(x,
                                                    (-1, 2, -2, 0)), F.pad(x, (0, 0, 1, 1, 0, 2)))


def strided(x):
    return (aten.as_strided_copy(x, (2, 3), (1, 4), 2), aten.diagonal_copy(x, 0, 1, 2),
            aten.diagonal_copy(x, 1, 0, 2), aten.unfold_copy(x, 1, 3, 2), aten.unbind_copy(x, 1)[2],
            aten.squeeze_copy(x[:, :1], 1), aten.squeeze_copy(x, 1), aten.transpose_copy(x, 0, 1),
            aten.t_copy(x[0]), *aten.split_copy(x, 3, 1))


@family
def view():
    cases = []
    for dtype in (torch.float32, torch.float16, torch.int64, torch.bool):
        name, x = short(dtype), numbers(dtype, 3, 5, 6)
        cases += [
            case(f"views_{name}", lambda a: tuple(v.clone() for v in views_of(a)), x),
            case(f"slices_{name}", slices, x),
            case(f"joins_{name}", joins, x)
        ]
    x, image = real(3, 5, 6), real(2, 4, 6, 8)
    n = Dim("n", min=3, max=12)
    cases += [
        case("pads", pads, x),
        case("pads_i64", pads, ints(torch.int64, 3, 5, 6)),
        case("strided", strided, x),
        case("shuffle", lambda a: (F.pixel_shuffle(a, 2), F.pixel_unshuffle(a, 2)), image),
        case("reflect", lambda a:
             (F.pad(a, (2, 1), mode="reflect"), F.pad(a, (2, 1), mode="replicate")), x),
        case(
            "reflect_2d", lambda a:
            (F.pad(a, (2, 1, 0, 3), mode="reflect"), F.pad(a,
                                                           (2, 1, 0, 3), mode="replicate")), image),
        case(
            "reflect_3d", lambda a: (F.pad(a, (2, 1, 0, 3, 1, 1), mode="reflect"),
                                     F.pad(a, (2, 1, 0, 3, 1, 1), mode="replicate")),
            real(1, 2, 3, 4, 5)),
        case("scatters", lambda a, b:
             (a.slice_scatter(b, 1, 1, 5, 2), a.select_scatter(b[:, 0], 1, -1)), x, real(3, 2, 6)),
        case(
            "empty", lambda a:
            (a.permute(1, 0).clone(), a.reshape(0), torch.cat([a, a], 1), a[:, 1:].clone(),
             a.expand(2, 0, 4).clone()), real(0, 4)),
        case("empty_elided", lambda a:
             (a.reshape(0, 2).permute(1, 0).reshape(0, 2), (a + 1).reshape(2, 0).t().reshape(0)),
             real(0, 4)),
        case("cat_promotes", lambda a, b: torch.cat([a, b]), real(3), floats(torch.float64, 2)),
        case("rank_0", lambda a: (a.reshape(1, 1), a.expand(3).clone(), a.unsqueeze(0).clone()),
             real()),
        case("transpose_large", lambda a:
             (a.t().clone(), a.reshape(5, 7, 4, 9).permute(0, 2, 3, 1).clone()), real(35, 36)),
        case("dynamic",
             lambda a: (a[1:].clone(), a.reshape(-1), a.transpose(0, 1).clone(), a[-1].clone(),
                        torch.cat([a, a]), a.unsqueeze(0).expand(3, -1, -1).clone()),
             real(4, 3),
             dynamic=({
                 0: n
             },),
             more=[(real(k, 3),) for k in (3, 12)])
    ]
    return cases


def views_of(x):
    return (x.permute(2, 0, 1), x.transpose(0, -1), x.reshape(5, -1), x.unsqueeze(1),
            x[:, :1].squeeze(1), x[:, :1].squeeze((0, 1)), x[..., None].expand(-1, -1, -1, 3))


# ---- indexing ---------------------------------------------------------------------------------


def reductions(table, i, values):
    names = ("sum", "prod", "amax", "amin", *(["mean"] if table.dtype is not torch.bool else []))
    return tuple(
        table.scatter_reduce(dim, i, values, name, include_self=own)
        for name in names for own in (True, False) for dim in (0, -1))


def scattered(dtype):
    """What is reduced to, places of which some are named twice and some never, and what comes."""
    return (numbers(dtype, 5, 6), torch.randint(0, 5, (4, 5)), numbers(dtype, 4, 6))


@family
def index():
    cases = []
    for dtype in (torch.float32, torch.float16, torch.int64, torch.int8, torch.bool):
        name, table = short(dtype), numbers(dtype, 7, 5)
        rows = torch.tensor([[0, 6, 3], [1, 1, 5]])
        cases += [
            case(
                f"gathers_{name}", lambda t, i: (F.embedding(i, t), t.index_select(0, i[
                    0]), t.gather(0, i), t[i], t[i[0], i[1, :1]], t[:, i[0] - 5]), table,
                torch.where(rows > 4, rows - 3, rows)),
            case(
                f"scatters_{name}", lambda t, i, v:
                (t.scatter(1, i, v), t.scatter(1, i, 1), t.index_put((i[0],), v[0, 0])), table,
                torch.tensor([[0, 4, 3], [1, 0, 2]]), numbers(dtype, 2, 3))
        ]
    table = real(7, 5)
    cases += [
        case("embedding_i32", lambda t, i: F.embedding(i, t), table,
             torch.tensor([0, 6], dtype=torch.int32)),
        case("negative", lambda t, i: (t[i], t[:, i]), table, torch.tensor([-1, 0, -5])),
        case("apart", lambda t, i: t[i, :, i], real(4, 3, 5), torch.tensor([[0, 3], [1, 1]])),
        *(case(f"scatter_reduce_{short(dtype)}", reductions, *scattered(dtype), **tolerance(dtype))
          for dtype in (*FLOATS, *INTS, torch.bool)),
        case("scatter_reduce_nan", reductions, torch.tensor([1.0, float("nan"), 3.0]),
             torch.tensor([0, 0, 2, 2]), torch.tensor([float("nan"), 2.0, -float("inf"), -0.0])),
        case("scatter_reduce_rank_0", lambda t, i, v: t.scatter_reduce(0, i, v, "mean"), real(),
             torch.tensor(0), real()),
        case("scatter_reduce_nothing", lambda t, i, v: t.scatter_reduce(0, i, v, "amax"),
             real(3, 2), torch.zeros(0, 2, dtype=torch.int64), real(3, 2)),
        case("scatter_add", lambda t, i, v: t.scatter_add(0, i, v), table,
             torch.tensor([[0, 0, 3], [0, 1, 2]]), real(2, 3)),
        case("accumulate", lambda t, i, v: (t.index_put((i,), v, accumulate=True),), table,
             torch.tensor([0, 0, 6]), real(3, 5)),
        case("empty", lambda t, i: (F.embedding(i, t), t.index_select(1, i)), table,
             torch.zeros(0, dtype=torch.int64)),
        case("gather_1", lambda t, i: t.gather(1, i), table, torch.tensor([[0, 4, 3], [1, 0, 2]])),
        case("i32", lambda t, i, v:
             (t.index_select(1, i[0]), t[i[0]], t.index_put((i[0] - 5,), v)), table,
             torch.tensor([[0, 4, 3], [1, 0, 2]], dtype=torch.int32), real(5)),
        case("rank_0", lambda t, s, i, j:
             (t.gather(0, i), s.gather(0, j), s.gather(0, i), s.index_select(0, j), s.index_select(
                 0, i), t.index_select(0, i), s.scatter(0, j, t), s.scatter_add(0, i, s)), real(1),
             real(), torch.tensor(0), torch.tensor([0])),
        case("empty_index", lambda t, i: (t[0].gather(0, i), t.scatter(0, i, 1.5)), table,
             torch.zeros(2, 0, dtype=torch.uint8))
    ]
    return cases + masks() + [
        case("interleave", lambda x, r: (x.repeat_interleave(r, 1, output_size=9),
                                         torch.repeat_interleave(r, output_size=9)), real(2, 4),
             torch.tensor([3, 0, 5, 1])),
        case("interleave_i32", lambda r: torch.repeat_interleave(r, output_size=4),
             torch.tensor([0, 1, 3], dtype=torch.int32)),
        case("interleave_none", lambda r: torch.repeat_interleave(r, output_size=0),
             torch.zeros(0, dtype=torch.int64)),
        case("interleave_many", lambda r: torch.repeat_interleave(r, output_size=300),
             torch.arange(200) % 4),
        case("masked_scatter_many", lambda x, m, v: x.masked_scatter(m, v), real(40, 50),
             torch.rand(40, 50) > 0.3, real(2000)),
        case("scatter_reduce_many", lambda t, i, v: tuple(
            t.scatter_reduce(0, i, v, name, include_self=own)
            for name in ("sum", "mean", "amax") for own in (True, False)), real(9, 70),
             torch.randint(0, 7, (40, 67)), real(40, 68), rtol=1e-4, atol=1e-5),
        case("scatter_reduce_lines", lambda t, i, v: tuple(
            t.scatter_reduce(1, i, v, name, include_self=False)
            for name in ("sum", "prod", "amin")), real(3, 9), torch.randint(0, 8, (2, 150)),
             real(3, 150), rtol=1e-4, atol=1e-5)
    ]


def masks():
    """index_put with a mask, at each place of a tensor, and masked_scatter."""
    cases = []
    for dtype in (torch.float32, torch.bfloat16, torch.int32, torch.int8, torch.bool):
        name, x = short(dtype), numbers(dtype, 3, 4, 5)
        rows, planes = torch.rand(3, 4) > 0.5, torch.rand(4, 5) > 0.4
        cases.append(
            case(
                f"masks_{name}", lambda x, r, p, v, few, many:
                (x.index_put((r,), v[0, 0, 0]), x.index_put((r,), v[0, 0]),
                 aten.index_put(x, [None, p], v[0, 0, 0]), aten.index_put(x, [None, p], few),
                 aten.index_put(x, [None, p], many), aten.index_put(x, [None, p], few, True),
                 x.masked_scatter(p, v), x.masked_scatter(r[..., None], v)), x, rows, planes,
                numbers(dtype, 3, 4, 5), numbers(dtype, int(planes.sum())),
                numbers(dtype, 3, int(planes.sum()))))
    x = real(2, 3)
    return cases + [
        case("mask_all", lambda x, m, v: x.index_put((m,), v), x, x > 0, real(int((x > 0).sum()))),
        case("mask_none", lambda x, m, v: (x.index_put((m,), v), x.masked_scatter(m, v)), x, x > 99,
             real(0)),
        case("mask_u8", lambda x, m, v: x.index_put((m,), v), x, (x < 9).to(torch.uint8), real(6)),
        case("masked_scatter_broadcast", lambda x, m, v:
             (x.masked_scatter(m, v), x[0].masked_scatter(m, v)), x, torch.rand(4, 2, 3) > 0.5,
             real(30))
    ]


# ---- pooling and resampling -------------------------------------------------------------------


def volume_maxima(x):
    return (F.max_pool3d(x, 2), F.max_pool3d(x, 3, 2, 1), F.max_pool3d(x, (1, 2, 3), (2, 1, 2)),
            F.max_pool3d(x, 2, 1, 1, 2), *F.max_pool3d(x, 2, ceil_mode=True, return_indices=True),
            *F.max_pool3d(x, (3, 2, 2), 2, (1, 0, 1), return_indices=True))


def volume_averages(x):
    return (F.avg_pool3d(x, 2), F.avg_pool3d(x, 3, 2, 1), F.avg_pool3d(x, (1, 2, 3), (2, 1, 2)),
            F.avg_pool3d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool3d(x, 2, ceil_mode=True), F.avg_pool3d(x, 2, divisor_override=3))


def volume_sizes(x):
    return F.adaptive_avg_pool3d(x, 1), F.adaptive_avg_pool3d(x, (2, 3, 4))


@family
def pool():
    image, odd = real(2, 5, 9, 11), real(1, 3, 7, 6)
    with_nan = image.clone()
    with_nan[0, 1, 2, 3] = float("nan")
    return [
        case(
            "max", lambda x:
            (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, (2, 3), (1, 2)),
             F.max_pool2d(x, 2, 2, 0, 2), F.max_pool2d(x, 2, ceil_mode=True), *F.max_pool2d(
                 x, 3, 2, 1, return_indices=True)), image),
        case("max_nan", lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True), with_nan),
        case(
            "avg", lambda x:
            (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, (2, 3), (1, 2)),
             F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 2, ceil_mode=True),
             F.avg_pool2d(x, 2, divisor_override=3)), image),
        case("adaptive", lambda x: (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (3, 4))),
             odd),
        case("unbatched", lambda x: (F.max_pool2d(x, 2), F.avg_pool2d(x, 2)), image[0]),
        *(case(f"volumes_{short(dtype)}", volume_maxima, floats(dtype, 2, 3, 5, 6, 7),
               **tolerance(dtype)) for dtype in FLOATS),
        *(case(f"volume_averages_{short(dtype)}",
               lambda x: (*volume_averages(x), *volume_sizes(x)), floats(dtype, 2, 3, 5, 6, 7),
               **tolerance(dtype)) for dtype in FLOATS[:2]),
        case("volumes_i64", lambda x: (*volume_maxima(x), F.avg_pool3d(x, 2)),
             ints(torch.int64, 2, 3, 5, 6, 7)),
        case("volumes_nan", volume_maxima, with_nan),
        case("volumes_unbatched",
             lambda x: (F.max_pool3d(x, 2), F.avg_pool3d(x, 2), *volume_sizes(x)), image),
        case("volumes_dynamic", lambda x: (F.max_pool3d(x, 2), F.avg_pool3d(x, 3, 2, 1)),
             real(2, 3, 5, 6, 7), dynamic=({0: Dim("b", max=4), 3: Dim("h", min=4, max=9)},),
             more=[(real(4, 3, 5, 9, 7),), (real(1, 3, 5, 5, 7),)]),
        case("bilinear",
             lambda x: (F.interpolate(x, scale_factor=2, mode="bilinear"),
                        F.interpolate(x, size=(5, 9), mode="bilinear"),
                        F.interpolate(x, size=(13, 12), mode="bilinear", align_corners=True),
                        F.interpolate(x, scale_factor=1.7, mode="bilinear")),
             odd,
             atol=1e-5),
        case(
            "nearest", lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(5, 9)),
                                  F.interpolate(x, scale_factor=1.7)), odd)
    ]


# ---- products and convolutions ----------------------------------------------------------------


@family
def matmul():

    def products(a, b, c):
        return (a @ b, torch.addmm(c, a, b), torch.addmm(c, a, b, beta=0.5, alpha=2),
                F.linear(a, b.t()), F.linear(a, b.t(), c))

    cases = []
    for m, k, n in ((1, 1, 1), (1, 7, 5), (3, 5, 17), (16, 16, 16), (33, 65, 31), (0, 3, 4), (4, 0,
                                                                                              3)):
        cases.append(
            case(f"products_{m}_{k}_{n}",
                 products,
                 real(m, k),
                 real(k, n),
                 real(n),
                 rtol=1e-4,
                 atol=1e-4))
    for dtype in (torch.float64, torch.float16, torch.bfloat16, *INTS):
        name = short(dtype)
        # PyTorch rounds the two summands of a half.
        fine = tolerance(dtype)
        fine["atol"] = 8 * fine["rtol"]
        a, b, c = numbers(dtype, 9, 131), numbers(dtype, 131, 5), numbers(dtype, 5)
        if not dtype.is_floating_point:
            c = ints(dtype, 9, 5)
        cases += [
            case(f"products_{name}", lambda a, b, c:
                 (a @ b, torch.addmm(c, a, b), torch.addmm(c, a, b, beta=2, alpha=3),
                  torch.addmm(c, a, b, beta=0)), a / 4 if dtype.is_floating_point else a, b, c,
                 **fine),
            case(f"batched_{name}", torch.bmm, numbers(dtype, 2, 5, 3), numbers(dtype, 2, 3, 131),
                 **fine)
        ]
        if dtype.is_floating_point:
            cases.append(
                case(f"linear_{name}", lambda x, w, b: (F.linear(x, w, b), F.linear(x, w)),
                     floats(dtype, 2, 3, 37), floats(dtype, 19, 37), floats(dtype, 19), **fine))
    n = Dim("n", min=0, max=20)
    # Rows that are a page apart: workers copy them.
    cases.append(
        case("paged",
             lambda a, b, c: a @ (b * c),
             real(9, 1024),
             real(1024, 1),
             real(1, 139),
             rtol=1e-4,
             atol=1e-3))
    return cases + [
        case("batched", torch.bmm, real(3, 5, 9), real(3, 9, 4), atol=1e-5),
        case("batched_1", torch.bmm, real(1, 1, 9), real(1, 9, 1), atol=1e-5),
        case("large", torch.mm, real(70, 19), real(19, 150), atol=1e-5),
        case("linear", torch.nn.Linear(37, 19), real(2, 3, 37), atol=1e-5),
        case("linear_relu",
             torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)),
             real(5, 8),
             atol=1e-5),
        case("linear_dynamic",
             Unpacked(torch.nn.Linear(6, 9)),
             real(4, 6),
             dynamic=({
                 0: n
             },),
             more=[(real(k, 6),) for k in (0, 1, 20)],
             atol=1e-5)
    ]


class Added(torch.nn.Module):
    """A convolution on top of its input."""

    def __init__(self, channels, groups):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1, groups=groups)

    def forward(self, x):
        return torch.relu(self.conv(x) + x)


@family
def conv():
    cases = []
    for name, x, args, options in (("plain", (1, 3, 8, 9), (3, 5, 3),
                                    {}), ("padded", (2, 4, 7, 7), (4, 8, 3), {
                                        "padding": 1
                                    }), ("strided", (1, 3, 11, 10), (3, 6, 3), {
                                        "stride": 2,
                                        "padding": 1
                                    }), ("dilated", (1, 2, 9, 9), (2, 3, 3), {
                                        "dilation": 2
                                    }), ("pointwise", (2, 7, 5, 5), (7, 9, 1), {}),
                                   ("pointwise_strided", (1, 8, 6, 6), (8, 4, 1), {
                                       "stride": 2
                                   }), ("depthwise", (1, 6, 8, 8), (6, 6, 3), {
                                       "groups": 6,
                                       "padding": 1
                                   }), ("depthwise_multiplied", (1, 4, 6, 6), (4, 8, 3), {
                                       "groups": 4
                                   }), ("depthwise_strided", (1, 5, 9, 9), (5, 5, 5), {
                                       "groups": 5,
                                       "padding": 2,
                                       "stride": 2
                                   }), ("grouped", (1, 6, 6, 6), (6, 4, 3), {
                                       "groups": 2,
                                       "padding": 1
                                   }), ("oblong", (1, 3, 9, 8), (3, 4, (1, 5)), {
                                       "padding": (0, 2)
                                   }), ("no_bias", (1, 3, 5, 5), (3, 4, 3), {
                                       "bias": False
                                   })):
        cases.append(case(name, torch.nn.Conv2d(*args, **options), real(*x), rtol=1e-4, atol=1e-5))
    for name, x, args, options in (("plain", (2, 3, 5, 6), (3, 4, 3), {}),
                                   ("strided", (1, 4, 5, 5), (4, 3, 2), {
                                       "stride": 2
                                   }), ("padded", (1, 4, 5, 5), (4, 3, 3), {
                                       "stride": 2,
                                       "padding": 1,
                                       "output_padding": 1
                                   }), ("grouped", (1, 4, 4, 4), (4, 6, 3), {
                                       "groups": 2
                                   })):
        cases.append(
            case(f"transposed_{name}",
                 torch.nn.ConvTranspose2d(*args, **options),
                 real(*x),
                 rtol=1e-4,
                 atol=1e-5))
    cases += [
        case("line", torch.nn.Conv1d(3, 5, 3, padding=1), real(2, 3, 11), atol=1e-5),
        case("line_depthwise",
             torch.nn.Conv1d(4, 4, 3, groups=4, stride=2),
             real(1, 4, 12),
             atol=1e-5),
        case("line_transposed",
             torch.nn.ConvTranspose1d(3, 4, 4, stride=2),
             real(1, 3, 6),
             atol=1e-5),
        case("weights_given",
             lambda x, w, b: (F.conv2d(x, w, b, padding=1),),
             real(1, 3, 6, 6),
             real(4, 3, 3, 3),
             real(4),
             rtol=1e-4,
             atol=1e-5),
        case("activated",
             torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.BatchNorm2d(6),
                                 torch.nn.ReLU6(), torch.nn.Conv2d(6, 6, 3, groups=6),
                                 torch.nn.ReLU(), torch.nn.Conv2d(6, 4, 1)),
             real(1, 3, 8, 8),
             rtol=1e-4,
             atol=1e-5),
        case("large", torch.nn.Conv2d(2, 131, 3, padding=1), real(1, 2, 9, 9), atol=1e-5),
        case("small_images", Added(6, 1), real(37, 6, 4, 3), rtol=1e-4, atol=1e-5),
        case("small_images_grouped", Added(6, 3), real(19, 6, 1, 4), rtol=1e-4, atol=1e-5)
    ]
    return cases
