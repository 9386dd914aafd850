# SPDX-License-Identifier: MIT
"""Cases of operators that the exporter writes, and for which ExecuTorch has no kernel."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from ops_case import FLOATS, aten, case, family, floats, ints, real, short, tolerance


def shifts(x, by):
    """As Python writes them, by a tensor and by a number, and of a number."""
    return (x << by, x >> by, x << 3, x >> 1, 2 << by, 100 >> by, torch.bitwise_left_shift(-3, by),
            x.clone().__ilshift__(2), x << 40, x >> 40)


def adaptive_maxima(x):
    return (F.adaptive_max_pool2d(x, 1), *F.adaptive_max_pool2d(x, (4, 3), return_indices=True),
            F.adaptive_max_pool2d(x, (9, 11)), F.adaptive_max_pool2d(x, (10, 2)),
            F.adaptive_max_pool1d(x[:, :, 0], 4))


def bags():
    """embedding_bag, with what it says beside the rows where PyTorch says that of all."""
    places, offsets = torch.tensor([1, 6, 6, 2, 0, 3, 3]), torch.tensor([0, 3, 3, 5])
    ends, halves = torch.tensor([0, 3, 3, 5, 7]), (torch.float16, torch.bfloat16)

    def modes(t, i, o, **options):
        return tuple(F.embedding_bag(i, t, o, mode=mode, **options)
                     for mode in ("sum", "mean", "max"))

    def padded(t, i, o):
        return modes(t, i, o, padding_idx=3)

    def with_ends(t, i, o):
        return modes(t, i, o, include_last_offset=True)

    def numbers_of(t, i, o):
        mean = aten._embedding_bag(t, i, o, False, 1, padding_idx=6)
        largest = aten._embedding_bag_forward_only(t, i, o, False, 2, padding_idx=6)
        return *mean[:3], *largest

    return [
        *(case(f"bags_{short(dtype)}", modes, floats(dtype, 7, 300), places, offsets,
               **tolerance(dtype)) for dtype in FLOATS),
        *(case(f"bags_{name}", function, real(7, 5), places, indices, more=[(
            real(7, 5), torch.tensor([3, 3, 3, 3, 3, 3, 3]), indices)])
          for name, function, indices in (("padded", padded, offsets), ("ends", with_ends, ends),
                                          ("numbers", numbers_of, offsets))),
        case("bags_i32", modes, real(7, 5), places.int(), offsets.int()),
        *(case(f"bags_factors_{short(dtype)}", lambda t, i, o, w: (
            F.embedding_bag(i, t, o, mode="sum", per_sample_weights=w),
            F.embedding_bag(i, t, o, mode="sum", per_sample_weights=w, padding_idx=6)),
               floats(dtype, 7, 5), places, offsets, floats(dtype, 7), **tolerance(dtype))
          for dtype in (torch.float32, *halves)),
        case("bags_rows", lambda t, i: F.embedding_bag(i, t, mode="sum"), real(7, 5),
             torch.tensor([[1, 2, 3], [6, 6, 0]])),
        case("bags_dynamic", lambda t, i, o: F.embedding_bag(i, t, o), real(7, 5), places, offsets,
             dynamic=(None, {0: Dim("places", max=30)}, {0: Dim("bags", min=2, max=9)}),
             more=[(real(7, 5), torch.arange(12) % 7, torch.tensor([0, 12])),
                   (real(7, 5), torch.tensor([5]), torch.tensor([0, 0, 1]))]),
    ]


@family
def beyond():
    image = real(2, 5, 9, 11)
    with_nan = image.clone()
    with_nan[0, 1, 2, 3] = float("nan")
    return [
        *(case(f"shifts_{short(dtype)}", shifts, ints(dtype, 9), ints(dtype, 3, 9, low=0, high=6))
          for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)),
        *(case(f"maxima_{short(dtype)}", adaptive_maxima, floats(dtype, 2, 5, 9, 11))
          for dtype in FLOATS),
        case("maxima_nan", adaptive_maxima, with_nan),
        case("maxima_unbatched", lambda x: F.adaptive_max_pool2d(x, (4, 5)), image[0]),
        case("maxima_dynamic",
             lambda x: (F.adaptive_max_pool2d(x, 3), F.adaptive_max_pool2d(x, 2, True)),
             real(2, 3, 7, 6), dynamic=({0: Dim("b", max=4), 2: Dim("h", min=3, max=9)},),
             more=[(real(4, 3, 9, 6),), (real(1, 3, 5, 6),)]),
        *(case(f"maxima_3d_{short(dtype)}",
               lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), return_indices=True),
               floats(dtype, 2, 3, 5, 6, 7)) for dtype in FLOATS[:2]),
        *bags(),
    ]
