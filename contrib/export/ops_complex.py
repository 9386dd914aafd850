# SPDX-License-Identifier: MIT
"""Cases of complex numbers, which only occur inside of programs, and of Fourier transforms."""
import torch

from ops_case import aten, case, family, floats, ints, real, short

TOLERANCES = {
    torch.float32: {"rtol": 1e-4, "atol": 2e-5},
    torch.float64: {"rtol": 1e-9, "atol": 1e-10},
}


def pairs(value):
    return aten.view_as_real_copy(value)


def spectra(*lengths):
    """Of a vector's beginnings, and back."""

    def run(x):
        parts = [torch.fft.rfft(x[..., :n]) for n in lengths]
        return (*map(pairs, parts), *(torch.fft.irfft(p, n) for p, n in zip(parts, lengths)))

    return run


def of_dims(x):
    whole = torch.fft.rfftn(x, dim=(0, 2, 1))
    return (pairs(whole), torch.fft.irfftn(whole, s=(x.shape[0], x.shape[2], x.shape[1]),
                                           dim=(0, 2, 1)), pairs(torch.fft.rfft(x, dim=1)),
            pairs(torch.fft.rfft2(x, norm="ortho")), pairs(torch.fft.rfft(x, norm="forward")),
            torch.fft.irfft(torch.fft.rfft(x, dim=0), x.shape[0], dim=0, norm="ortho"),
            torch.fft.irfft(torch.fft.rfft(x), norm="forward"),
            pairs(torch.fft.fft(x)), pairs(torch.fft.fft(x, dim=1, norm="forward")))


def of_complex(x):
    """Both ways, of complex numbers: FNet mixes tokens so."""
    a = torch.fft.rfft(x)
    results = (torch.fft.fft(a), torch.fft.ifft(a), torch.fft.fft(a, dim=1, norm="ortho"),
               torch.fft.ifftn(a, dim=(2, 0, -2)), torch.fft.fft2(x),
               torch.fft.ifft2(a, norm="forward"), torch.fft.ifft(torch.fft.fft(x)))
    return tuple(map(pairs, results))


def arithmetic(x, y):
    a, b = torch.fft.rfft(x), torch.fft.rfft(y)
    results = (a + b, torch.add(a, b, alpha=2), a * b, a / (b + 3), a * x[..., :1], a + 2.5, a * 3,
               aten._conj_physical(a), a * torch.conj(b))
    return tuple(map(pairs, results)) + (torch.abs(a), torch.abs(a * b))


def shapes(x):
    a = torch.fft.rfft(x)
    return tuple(map(pairs, (a.permute(2, 0, 1) + 0, a.reshape(-1), a.unsqueeze(1) + 0,
                             a[:, 1:, ::2], a[1], torch.cat([a, a[:, :1]], 1),
                             torch.cat([a, a * 2], 2), a.sum(), a.sum(1),
                             a.sum((0, 2), keepdim=True), a.expand(2, -1, -1, -1).clone())))


def rotations(x, y):
    """As of Llama's first embeddings of positions: pairs of numbers are turned."""
    a, b = aten.view_as_complex_copy(x), aten.view_as_complex_copy(y)
    return pairs(a * b[:, None]), torch.abs(b), pairs(aten.view_as_complex_copy(x[1:, :, 2]))


def parts(x, y):
    """Numbers of their parts, and of their sizes and angles, as rotary embeddings make them."""
    column = y[:, :1]
    results = (torch.complex(x, y), torch.complex(x, column), torch.complex(y[0], x),
               torch.polar(x, y), torch.polar(torch.ones_like(x), column),
               aten.view_as_complex_copy(x.reshape(3, 4, 2)) * torch.polar(y, y)[:, :4],
               torch.complex(x[0, 0], y[0, 0]))
    return tuple(map(pairs, results)) + (torch.angle(results[0]), torch.angle(results[-1]))


def products(x, y):
    a, b = torch.fft.rfft(x), torch.fft.rfft(y)
    return (pairs(torch.bmm(a, b.transpose(1, 2))), pairs(torch.bmm(a.transpose(1, 2), b)))


@family
def complex():
    cases = []
    for dtype, fine in TOLERANCES.items():
        name = short(dtype)
        cases += [
            case(f"small_{name}", spectra(1, 2, 3, 4, 5, 6, 7, 8, 9, 10), floats(dtype, 3, 10),
                 **fine),
            case(f"mixed_{name}", spectra(30, 64, 77, 135), floats(dtype, 2, 135), **fine),
            case(f"prime_{name}", spectra(31, 37, 101), floats(dtype, 5, 101), **fine),
            case(f"dims_{name}", of_dims, floats(dtype, 3, 6, 10), **fine),
            case(f"complex_{name}", of_complex, floats(dtype, 3, 5, 10), **fine),
            case(f"arithmetic_{name}", arithmetic, floats(dtype, 2, 5, 8), floats(dtype, 2, 5, 8),
                 **fine),
            case(f"rotations_{name}", rotations, floats(dtype, 3, 4, 5, 2), floats(dtype, 3, 5, 2),
                 **fine),
            case(f"parts_{name}", parts, floats(dtype, 3, 8), floats(dtype, 3, 8), **fine),
            case(f"shapes_{name}", shapes, floats(dtype, 2, 3, 8), **fine),
            case(f"products_{name}", products, floats(dtype, 2, 3, 8), floats(dtype, 2, 3, 8),
                 **fine)
        ]
    wave = torch.randn(7) + 1j * torch.randn(7)
    cases += [
        case("long", lambda x: (torch.abs(torch.fft.rfft(x)), torch.fft.irfft(torch.fft.rfft(x))),
             real(1024), rtol=1e-4, atol=1e-3),
        case("constant", lambda x: (torch.abs(wave * x), pairs(wave + x)), real(7)),
        case("converted", lambda x: (pairs(x.to(torch.complex64)), pairs(
            x.to(torch.complex128) * 0.5)), ints(torch.int32, 5)),
        case("conj_real", lambda x: aten._conj_physical(x), real(5))
    ]
    return cases
