# SPDX-License-Identifier: MIT
"""Cases of docs/explanation/differences.md: eager PyTorch and ExecuTorch's own runtime disagree."""
import torch
import torch.nn.functional as F

from ops_case import case, family, short

HALVES = (torch.float16, torch.bfloat16)


def numbers(dtype, *shape):
    """Positive, so that a sum that is rounded at each step stops growing."""
    return (torch.rand(shape) + 0.5).to(dtype)


def prod(x):
    """Eager PyTorch rounds each product, in an order that depends on the processor."""
    return x.prod(0) if torch.compiler.is_exporting() else x.double().prod(0).to(x.dtype)


def changed_in_place(x):
    """The program gives the new content of its input first."""
    if not torch.compiler.is_exporting():
        return x + 1, (x + 1) * 2
    x.add_(1)
    return x * 2


def sums(dtype):
    """About twice the last place of the type, for sums in another order."""
    name, options = short(dtype), {"rtol": 2e-3 if dtype is torch.float16 else 1.6e-2}
    return [
        case(f"addmm_{name}", torch.addmm, numbers(dtype, 2), numbers(dtype, 1, 2048),
             numbers(dtype, 2048, 2), **options),
        case(f"convolution_{name}", F.conv2d, numbers(dtype, 1, 64, 5, 6),
             numbers(dtype, 2, 64, 5, 5), **options),
        case(f"avg_pool2d_{name}", lambda x: F.avg_pool2d(x, 30), numbers(dtype, 1, 1, 30, 30),
             **options),
        case(f"cumsum_{name}", lambda x: torch.cumsum(x, 0), numbers(dtype, 1500), **options),
        case(f"var_{name}", lambda x: torch.var(x, 0), numbers(dtype, 2000), **options),
        case(f"layer_norm_{name}", lambda x: F.layer_norm(x, (1000,)), numbers(dtype, 1000) + 4,
             rtol=options["rtol"], atol=2 * options["rtol"]),
        case(f"prod_{name}", prod, (torch.rand(500) * 0.1 + 0.96).to(dtype), **options),
    ]


def quantized(low, high, dtype):
    op = torch.ops.quantized_decomposed.quantize_per_tensor
    return lambda x: op(x, 0.1, 3, low, high, dtype)


@family
def differences():
    nan, inf = float("nan"), float("inf")
    infinite = torch.tensor([inf, -inf, 1.0, -1e30])
    whole = torch.tensor([-7, 7, -7, 7, 0]), torch.tensor([3, -3, -3, 3, 5])
    zeros = torch.tensor([0.0, 1, -1, nan, -0.0]), torch.tensor([0.0, 0, 0, 1, 0])
    return [
        case("nonzero", lambda x: torch.nonzero(x), torch.tensor([[1, 0, 2], [0, 3, 4]])),
        case("remainder", torch.remainder, *whole),
        case("remainder_scalar", lambda x: (torch.remainder(x, 3), torch.remainder(x, -3)),
             whole[0]),
        case("floor_division", lambda x, y: (torch.div(x, y, rounding_mode="floor"),
                                             torch.floor_divide(x, y)), *zeros),
        case("sign", torch.sign, torch.tensor([nan, -1.0, 0.0, 2.0, -inf])),
        case("quantize_i8", quantized(-128, 127, torch.int8), infinite),
        case("quantize_u8", quantized(0, 255, torch.uint8), infinite),
        case("in_place", changed_in_place, torch.tensor([1.0, 2.0])),
        *(one for dtype in HALVES for one in sums(dtype)),
    ]
