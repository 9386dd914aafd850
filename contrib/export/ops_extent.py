# SPDX-License-Identifier: MIT
"""Cases of the operators whose first size depends on data, and of tensors changed in place."""
import torch
from torch.export import Dim

from ops_case import FLOATS, INTS, case, family, ints, numbers, real, short


def sparse(dtype, *shape, share=0.5):
    """Most elements are zero; of floats the second is -0, which is, and the third a NaN."""
    x = torch.where(torch.rand(shape) < share, numbers(dtype, *shape), torch.zeros((), dtype=dtype))
    if dtype.is_floating_point:
        x.view(-1)[1], x.view(-1)[2] = -0.0, float("nan")
    return x


def chosen(*shape, share=0.5):
    return torch.rand(shape) < share


def at_most(x, count):
    """The exporter wants a bound for what depends on data alone."""
    torch._check(x.size(0) <= count)
    return x


def exactly(x, count):
    """... or its only size."""
    torch._check(x.size(0) == count)
    return x


class Held(torch.nn.Module):
    """A buffer that each call overwrites."""

    def __init__(self):
        super().__init__()
        self.register_buffer("held", torch.zeros(3, 4))

    def forward(self, x):
        self.held.copy_(x)
        return self.held * 2


def halves(x, m):
    """What is found ends a block; only the next one wants an even number of elements."""
    return (x + torch.masked_select(m, m).sum()).reshape(2, -1) * 2


@family
def extent():
    n = Dim("n", min=2, max=50)
    cases = []
    for dtype in (*FLOATS, *INTS, torch.bool):
        cases.append(case(f"nonzero_{short(dtype)}", torch.nonzero, sparse(dtype, 3, 4, 5)))
        cases.append(case(f"masked_select_{short(dtype)}", torch.masked_select,
                          numbers(dtype, 3, 7), chosen(3, 7)))
    return cases + [
        case("nonzero_rank_0", torch.nonzero, torch.tensor(2.0), more=[(torch.tensor(0.0),)]),
        case("nothing_chosen", lambda x, m: torch.nonzero(torch.masked_select(x, m)), real(2, 3),
             chosen(2, 3, share=0), more=[(real(2, 3), chosen(2, 3, share=2))]),
        case("nonzero_tiles", torch.nonzero, chosen(3, 15000, share=0.01)),
        case("nonzero_dynamic", torch.nonzero, sparse(torch.int64, 5, 3), dynamic=({0: n},),
             more=[(sparse(torch.int64, k, 3),) for k in (2, 50)]),
        case("masked_select_row", torch.masked_select, real(3, 7), chosen(7)),
        case("masked_select_column", torch.masked_select, real(3, 7), chosen(3, 1)),
        case("masked_select_stretched", torch.masked_select, real(7), chosen(3, 7)),
        case("masked_select_both", torch.masked_select, real(2, 1, 3), chosen(4, 1)),
        case("masked_select_scalar", torch.masked_select, real(2, 3), torch.tensor(True),
             more=[(real(2, 3), torch.tensor(False))]),
        case("masked_select_tiles", torch.masked_select, ints(torch.int8, 200, 250),
             chosen(200, 1, share=0.03)),
        case("mask", lambda x, m: x[m], real(3, 4, 2), chosen(3, 4),
             more=[(real(3, 4, 2), chosen(3, 4, share=0)), (real(3, 4, 2), chosen(3, 4, share=2))]),
        case("mask_all", lambda x, m: x[m], ints(torch.int16, 3, 4), chosen(3, 4)),
        case("mask_rows", lambda x, m: x[m], real(9, 3), chosen(9)),
        case("mask_and_index", lambda x, m, i: x[m, i], real(3, 4), chosen(3),
             torch.tensor([2])),
        case("mask_put", lambda x, m: torch.index_put(x, (m,), torch.tensor(5.0)), real(3, 4),
             chosen(3, 4)),
        case("interleave_found", lambda x, r: at_most(x.repeat_interleave(r, 0), 12), real(3, 4),
             torch.tensor([2, 0, 3]), more=[(real(3, 4), torch.tensor([0, 0, 0])),
                                            (real(3, 4), torch.tensor([4, 4, 4]))]),
        case("interleave_found_i32", lambda r: at_most(torch.repeat_interleave(r), 9),
             torch.tensor([1, 0, 2], dtype=torch.int32)),
        case("nonzero_counted", lambda x: exactly(torch.nonzero(x), 3) * 2,
             torch.tensor([1.0, 0.0, 2.0, 3.0]), more=[(torch.tensor([4.0, 5.0, 0.0, 6.0]),)]),
        case("masked_select_counted",
             lambda x, m: torch.arange(3) + exactly(torch.masked_select(x, m), 3).sum(),
             torch.arange(6).reshape(3, 2), torch.tensor([True, False])),
        case("halves", halves, real(4), chosen(3), dynamic=({0: 2 * Dim("half", max=5)}, {}),
             more=[(real(k), chosen(3)) for k in (2, 10)]),
        case("copy_in_place", Held(), real(3, 4), more=[(real(3, 4),)]),
    ]
