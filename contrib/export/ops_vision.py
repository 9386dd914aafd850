# SPDX-License-Identifier: MIT
"""Cases of sampling, antialiased resampling, distances, plain convolutions and gradients."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from ops_case import FLOATS, aten, case, family, floats, ints, numbers, real, short, tolerance


def samples(align):

    def run(x, grid):
        return tuple(
            F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=align)
            for mode in ("bilinear", "nearest", "bicubic")
            for padding in ("zeros", "border", "reflection"))

    return run


def grids(dtype, *shape):
    """Places in and around the picture, and some that are none."""
    grid = torch.rand(*shape, 2) * 3 - 1.5
    grid.view(-1)[:8] = torch.tensor([-1, 1, 1, -1, 7.25, -9.5, 0, 0])
    return grid.to(dtype)


def scaled(x):
    return (aten.upsample_nearest2d.vec(x, None, [1.5, 0.7]),
            aten.upsample_bilinear2d.vec(x, None, False, [1.3, 2.0]))


def smaller(x):
    return (aten._upsample_bilinear2d_aa(x, (3, 4), False, None, None),
            aten._upsample_bilinear2d_aa(x, (3, 4), True, None, None),
            aten._upsample_bilinear2d_aa(x, (13, 5), False, None, None),
            aten._upsample_bilinear2d_aa(x, (1, 1), True, None, None),
            aten._upsample_bilinear2d_aa(x, (4, 5), False, 0.45, 0.5))


def distances(a, b):
    return tuple(torch.cdist(a, b, p, "donot_use_mm_for_euclid_dist")
                 for p in (0.0, 1.0, 2.0, 3.5, float("inf")))


def pair_distances(x):
    return tuple(aten._pdist_forward(x, p) for p in (0.0, 1.0, 2.0, 3.5, float("inf")))


@family
def vision():
    cases = []
    for dtype in FLOATS:
        name, fine = short(dtype), tolerance(dtype)
        fine["atol"] = max(fine["atol"], 1e-6 if dtype is torch.float64 else 1e-5)
        if dtype in (torch.float32, torch.float64):
            x, grid = floats(dtype, 2, 3, 5, 7), grids(dtype, 2, 4, 6)
            cases += [
                case(f"sample_{name}", samples(False), x, grid, **fine),
                case(f"sample_aligned_{name}", samples(True), x, grid, **fine),
                case(f"smaller_{name}", smaller, floats(dtype, 2, 3, 9, 11), **fine),
                case(f"cdist_{name}", distances, floats(dtype, 2, 1, 5, 37), floats(dtype, 3, 4,
                                                                                   37), **fine),
                case(f"pdist_{name}", pair_distances, floats(dtype, 6, 19), **fine)
            ]
        else:
            loose = dict(fine, rtol=2 * fine["rtol"], atol=0.02)
            cases.append(
                case(f"sample_{name}", lambda a, g:
                     (F.grid_sample(a, g, align_corners=True, mode="nearest"),),
                     floats(dtype, 1, 2, 5, 5),
                     (torch.randint(-2, 3, (1, 3, 3, 2)) / 2).to(dtype), **loose))
    picture = real(1, 2, 4, 4)
    picture[0, 0, 1, 2] = float("nan")
    picture[0, 1, 3, 3] = float("inf")
    wild = grids(torch.float32, 1, 3, 3)
    wild.view(-1)[8:12] = torch.tensor([float("nan"), 0.1, 1e20, -0.4])
    cases += [
        case("sample_wild", lambda a, g: tuple(
            F.grid_sample(a, g, mode="nearest", padding_mode=p, align_corners=False)
            for p in ("border", "reflection")), picture, wild),
        case("sample_empty", lambda a, g: F.grid_sample(a, g, align_corners=False),
             real(0, 2, 3, 3), real(0, 4, 4, 2)),
        case("sample_channels", lambda a, g: F.grid_sample(a, g, align_corners=False),
             real(1, 70, 9, 9), grids(torch.float32, 1, 11, 13), atol=1e-5),
        case("smaller_u8", lambda a: aten._upsample_bilinear2d_aa(a, (4, 4), False, None, None),
             (torch.arange(64).reshape(1, 1, 8, 8) * 4).to(torch.uint8)),
        case("cdist_empty", lambda a, b:
             (torch.cdist(a, b), torch.cdist(a[:, :, :0], b[:, :, :0])), real(2, 0, 4),
             real(2, 3, 4)),
        case("cdist_long", lambda a, b: torch.cdist(a, b, 1.0), real(3, 1100), real(2, 1100),
             rtol=1e-4),
        case("pdist_one", lambda a: aten._pdist_forward(a, 2.0), real(1, 4)),
        case("scaled_dynamic", scaled, real(1, 2, 5, 8),
             dynamic=({2: Dim("h", min=2, max=9), 3: Dim("w", min=3, max=12)},),
             more=[(real(1, 2, h, w),) for h, w in ((2, 12), (9, 3), (6, 7))])
    ]
    return cases


# ---- convolutions of other types and ranks -----------------------------------------------------


def lines(x, w, b):
    return (F.conv1d(x, w, b, stride=2, padding=1),
            F.conv_transpose1d(x, w.transpose(0, 1), stride=2))


def pictures(x, w, v):
    return (F.conv2d(x, w, padding=1), F.conv2d(x, w, stride=(2, 1), dilation=2),
            F.conv2d(x, v, groups=2, padding=(0, 2)),
            F.conv_transpose2d(x, v, stride=2, padding=1, output_padding=1, groups=2),
            F.conv_transpose2d(x, w.transpose(0, 1), stride=(1, 3), dilation=(2, 1)))


def volumes(x, w, v):
    return (F.conv3d(x, w, padding=1), F.conv3d(x, w, stride=2), F.conv3d(x, v, groups=2),
            F.conv_transpose3d(x, v, stride=2, padding=1, output_padding=1, groups=2))


def gradients(transposed, *shape):
    axes = len(shape)

    def run(grad, x, w):
        return aten.convolution_backward(grad, x, w, [grad.shape[1]], [2] * axes, [1] * axes,
                                         [1] * axes, transposed, [0] * axes, 2, [True] * 3)

    return run


def backward(name, transposed, dtype, *shape, **options):
    channels = (4, 3) if transposed else (6, 2)
    x, w = floats(dtype, 2, 4, *shape), floats(dtype, *channels, *[3] * len(shape))
    make = getattr(F, f"conv{'_transpose' if transposed else ''}{len(shape)}d")
    grad = floats(dtype, *make(x, w, stride=2, padding=1, groups=2).shape)
    return case(name, gradients(transposed, *shape), grad, x, w, **options)


@family
def conv_types():
    cases = []
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int64):
        name, fine = short(dtype), tolerance(dtype)
        fine["atol"] = {torch.float16: 2e-2, torch.bfloat16: 0.15}.get(dtype, 1e-6)
        x, w, v = numbers(dtype, 2, 4, 6, 7), numbers(dtype, 3, 4, 3, 3), numbers(dtype, 4, 2, 3, 3)
        cases += [
            case(f"line_{name}", lines, numbers(dtype, 2, 3, 9), numbers(dtype, 4, 3, 3),
                 numbers(dtype, 4), **fine),
            case(f"picture_{name}", pictures, x, w, v, **fine)
        ]
    for dtype in (torch.float32, torch.float64, torch.int64):
        cases.append(
            case(f"volume_{short(dtype)}", volumes, numbers(dtype, 1, 4, 3, 4, 5),
                 numbers(dtype, 2, 4, 2, 3, 2), numbers(dtype, 4, 2, 1, 2, 3), rtol=1e-4,
                 atol=1e-4))
    cases += [
        case("empty", lambda x, w: F.conv2d(x, w), floats(torch.float64, 0, 2, 4, 4),
             floats(torch.float64, 3, 2, 3, 3)),
        backward("back_f32", False, torch.float32, 5, 6, rtol=1e-4, atol=1e-4),
        backward("back_transposed", True, torch.float32, 5, 6, rtol=1e-4, atol=1e-4),
        backward("back_f64", False, torch.float64, 7),
        backward("back_bf16", False, torch.bfloat16, 7, rtol=3e-2, atol=0.2)
    ]
    for dtype in FLOATS:
        x = floats(dtype, 2, 3, 7, 6)
        pooled, places = F.max_pool2d(x, 3, 2, 1, return_indices=True)
        cases.append(
            case(f"max_pool_back_{short(dtype)}", lambda g, a, i: aten.
                 max_pool2d_with_indices_backward(g, a, [3, 3], [2, 2], [1, 1], [1, 1], False, i),
                 floats(dtype, *pooled.shape), x, places, **dict(tolerance(dtype), atol=2e-2)))
    return cases
