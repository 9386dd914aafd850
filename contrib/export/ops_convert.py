# SPDX-License-Identifier: MIT
"""Cases of conversions between each two element types, and of complex numbers beside others."""
import torch

from ops_case import FLOATS, INTS, aten, case, family

WHOLE = (*INTS, torch.uint16, torch.uint32)  # the exporter has no uint64
REAL = (*FLOATS, *WHOLE, torch.bool)
COMPLEX = (torch.complex64, torch.complex128)
# Exact in every type, and with a fraction in those that have one.
NUMBERS = [0, 1, 2, 3, 5.5, 100.25, 120.75, 0.5, 0, 7]
LOOSE = {"rtol": 1e-2, "atol": 1e-3}  # a bfloat16 on the way


def pairs(value):
    return aten.view_as_real_copy(value) if value.is_complex() else value


def factor(number, dtype=torch.complex64):
    """A tensor: an exporter knows no complex scalars."""
    return torch.tensor([number], dtype=dtype)


def shown(*values):
    return tuple(map(pairs, values))


def to_all(x):
    return shown(*(x.to(dtype) for dtype in (*REAL, *COMPLEX) if dtype != x.dtype))


def copied_to(dtypes):
    return lambda x: shown(*(aten.copy(torch.zeros(x.shape, dtype=dtype), x) for dtype in dtypes))


def from_complex(dtype, number):
    """The imaginary part goes; of a bool it counts."""
    by = factor(number, dtype)

    def run(x):
        numbers = x.to(dtype) * by
        return tuple(numbers.to(to) for to in REAL)

    return run


def spectrum(x):
    spectrum = torch.fft.fft(x)
    return (spectrum.to(torch.float32), spectrum.to(torch.float64), spectrum.to(torch.float16),
            spectrum.to(torch.int32))


def turned(dtype):
    """Copies into each type, and conversions to the complex ones."""
    by = factor(1 - 2j, dtype)

    def run(x):
        numbers = x.to(dtype) * by
        return (*copied_to((*REAL, *COMPLEX))(numbers), *shown(*map(numbers.to, COMPLEX)))

    return run


ONE_BY_TWO, THREE = factor(1 - 2j), factor(1 + 3j)
TURNED = factor(1j, torch.complex128)


def mixed(x, y, chosen):
    a, b = x.to(torch.complex64) * ONE_BY_TWO, y.to(torch.complex128) * TURNED
    return shown(a + y, x * b, a + b, torch.where(chosen, a, y), torch.where(chosen, x, b),
                 torch.where(chosen, a, b), aten.masked_fill.Scalar(a, chosen, 3), a == b, a != x,
                 torch.cat([a, y]), torch.cat([x, b]), torch.cat([a, b]), torch.stack([a, a * 2]))


def moved(x):
    a = x.to(torch.complex64) * THREE
    return shown(*torch.split(a, 2, 1), *torch.unbind(a, 0), *torch.split(a, [1, 4], 1),
                 torch.narrow_copy(a, 1, 1, 3), torch.slice_scatter(a, a[:, :2] * 2, 1, 1, 3),
                 torch.select_scatter(a, a[0] + 1, 0, 1), a.repeat(2, 2), a.flip(0), -a,
                 a.transpose(0, 1) * 2, a.reshape(-1), a.mean(1), a.sum())


def back(x):
    """Complex numbers as real ones in what only takes those."""
    a = x.to(torch.complex64) * ONE_BY_TWO
    return (a.to(torch.float32).relu(), a.to(torch.float32).sum(0), torch.abs(a).to(torch.float16),
            a.to(torch.int64) + 1)


def numbers(dtype):
    return torch.tensor(NUMBERS, dtype=torch.float64).to(dtype)


@family
def conversions():
    cases = []
    for dtype in REAL:
        name = str(dtype).removeprefix("torch.")
        cases += [
            case(f"from_{name}", to_all, numbers(dtype), **LOOSE),
            case(f"copied_{name}", copied_to((*REAL, *COMPLEX)), numbers(dtype), **LOOSE)
        ]
    for dtype in COMPLEX:
        name = str(dtype).removeprefix("torch.")
        cases += [
            case(f"from_{name}", from_complex(dtype, 1 - 2j), numbers(torch.float32), **LOOSE),
            case(f"imaginary_{name}", from_complex(dtype, 2j), numbers(torch.float32), **LOOSE),
            case(f"turned_{name}", turned(dtype), numbers(torch.float32), **LOOSE)
        ]
    chosen = torch.tensor([True, False] * 5)
    return cases + [
        case("spectrum", spectrum, torch.randint(-9, 9, (3, 8)).float(), rtol=1e-3, atol=1e-2),
        case("mixed", mixed, torch.randn(10), torch.randn(10, dtype=torch.float64), chosen),
        case("moved", moved, torch.randn(3, 5)),
        case("back", back, torch.randint(-9, 9, (4, 6)).float(), rtol=1e-3)
    ]
