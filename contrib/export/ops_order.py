# SPDX-License-Identifier: MIT
"""Cases of the operators that order elements, and of those that are random in training."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from ops_case import (FLOATS, INTS, aten, case, family, floats, ints, numbers, real, short,
                      tolerance)


def tops(x):
    return (*x.topk(3, 0), *x.topk(2, 1, largest=False), *x.topk(5, -1), *x.topk(1),
            *x.topk(0, 1), *x.topk(4, 0, sorted=False), *x.topk(3, 1, False, False))


def sorts(x, dim=-1):
    """Where equal elements go is only said of stable ones."""
    return (x.sort(dim)[0], x.sort(dim, descending=True)[0], *x.sort(dim=dim, stable=True),
            *x.sort(dim=dim, descending=True, stable=True))


def places(x, rows):
    """Of numbers in sorted rows."""
    row = rows[0]
    return (torch.bucketize(x, row), torch.bucketize(x, row, right=True, out_int32=True),
            torch.searchsorted(rows, x), torch.searchsorted(rows, x, side="right"),
            torch.searchsorted(row, x, out_int32=True, right=True), torch.bucketize(x[0, 0], row),
            torch.bucketize(x, row[:0]))


@family
def order():
    cases = []
    for dtype in (*FLOATS, *INTS):
        x = ints(dtype, 3, 20, low=-6, high=7)
        cases.append(case(f"places_{short(dtype)}", places, x,
                          ints(dtype, 3, 7, low=-5, high=6).sort(1)[0]))
    for dtype in (*FLOATS, *INTS, torch.bool):
        cases.append(case(f"sort_{short(dtype)}", lambda x: (*sorts(x), *sorts(x, 0), *sorts(x, 1)),
                          numbers(dtype, 6, 5, 7)))
    for dtype in (*FLOATS, *INTS):
        cases.append(case(f"topk_{short(dtype)}", tops, numbers(dtype, 6, 5, 7)))
    nan = real(3, 40)
    nan[0, ::3], nan[1, 5], nan[1, 6], nan[2, 7] = (float("nan"), float("inf"), -float("inf"), -0.0)
    n = Dim("n", min=4, max=100)
    return cases + [
        case("topk_nan", lambda x: (*x.topk(20), *x.topk(20, largest=False), *x.topk(40)), nan),
        case("topk_zeros", lambda x: (*x.topk(3), *x.topk(4, largest=False)),
             torch.tensor([0.0, -0.0, 0.0, -0.0, 1.0, -1.0])),
        case("topk_rank_0", lambda x: (*x.topk(1), *x.topk(0)), real()),
        case("topk_empty", lambda x: (*x.topk(2), *x.topk(0, 0)), real(0, 3)),
        case("topk_few", lambda x, y: (*x.topk(5), *y.topk(7), *y.topk(3, largest=False)),
             real(2, 3000), ints(torch.int64, 2000)),
        case("topk_many", lambda x, y: (*x.topk(1000), *y.topk(700), *y.topk(1500, largest=False)),
             real(2000), ints(torch.int32, 2000, low=0, high=50)),
        case("topk_sorted_input", lambda x: (*x.topk(999), *x.topk(999, largest=False)),
             torch.arange(1000)),
        case("topk_ties", lambda x, y: (*x.topk(300), *x.topk(500, largest=False),
                                        *x.topk(400, sorted=False), *y.topk(40)),
             ints(torch.int32, 2, 1000, low=0, high=50), ints(torch.int8, 3, 3000, low=0, high=9)),
        case("sort_nan", sorts, nan),
        case("places_nan", places, nan, real(3, 700).sort(1)[0]),
        case("places_large", lambda x: (torch.bucketize(x, x.sort()[0]),),
             2**60 + torch.arange(700).flip(0)),
        case("sort_ties", lambda x, y: (*sorts(x), *sorts(y)),
             ints(torch.int8, 3, 1000, low=0, high=9), torch.tensor([0.0, -0.0, 1.0, -0.0, 0.0])),
        case("sort_rank_0", sorts, real()),
        case("sort_empty", lambda x: (*sorts(x), *sorts(x, 0)), real(0, 3)),
        case("sort_dynamic", lambda x: tuple(x.sort()), real(5, 20), dynamic=({1: n},),
             more=[(real(5, k),) for k in (4, 100)]),
        case("topk_dynamic", lambda x: tuple(x.topk(3)), real(5, 20), dynamic=({1: n},),
             more=[(real(5, k),) for k in (4, 100)])
    ]


def gates(x):
    return F.glu(x), F.glu(x, 0), F.glu(x, 1)


@family
def gate():
    return [case(f"glu_{short(d)}", gates, floats(d, 2, 6, 34), **tolerance(d)) for d in FLOATS] + [
        case("glu_empty", F.glu, real(0, 4)),
        case("glu_inf", F.glu, torch.tensor([1.0, -2.0, float("inf"), 3.0, -float("inf"), 100.0]))
    ]


@family
def random():
    """Dropout as it is in inference; and what tests/ops/test_random.c looks at."""
    cases = []
    for dtype in FLOATS:
        name = short(dtype)
        cases += [
            case(f"dropout_{name}", lambda x: tuple(aten.native_dropout(x, 0.5, False)),
                 floats(dtype, 3, 5)),
            case(f"uniform_{name}", lambda dtype=dtype: torch.rand(250, 400, dtype=dtype),
                 is_random=True),
            case(f"normal_{name}", lambda dtype=dtype: torch.randn(250, 400, dtype=dtype),
                 is_random=True),
            case(f"uniform_like_{name}", lambda x: torch.rand_like(x),
                 torch.zeros(250, 400, dtype=dtype), is_random=True),
            case(f"normal_like_{name}", lambda x: torch.randn_like(x),
                 torch.zeros(250, 400, dtype=dtype), is_random=True),
            case(f"train_{name}", lambda x: aten.native_dropout(x, 0.25, True),
                 torch.ones(250, 400, dtype=dtype), is_random=True)
        ]
    return cases + [case("dropout_0", lambda x: aten.native_dropout(x, 0.0, True), real(3, 5))]
