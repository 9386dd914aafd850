#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the operators' golden tests: FAMILY.pte, FAMILY.cases and FAMILY.bin of tests/ops.

A program holds a method for each case, so that a failure names what is wrong. What is expected is
eager PyTorch's. FAMILY.cases is text, a line each:

    case METHOD RTOL ATOL    a call; what follows are its inputs and outputs in order
    in DTYPE DIMS            a tensor, "2,3" or "-" for a scalar; its bytes come next in FAMILY.bin
    out DTYPE DIMS           likewise; a float passes if |got - want| <= ATOL + RTOL * |want|
    out int N                a result that is a number
"""

import argparse
import contextlib
import logging
import sys
import warnings
import zlib
from pathlib import Path

import torch
from torch.export import export
from torch.utils import _pytree as pytree

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower  # noqa: E402

import ops_beyond  # noqa: E402, F401
import ops_case  # noqa: E402
import ops_differences  # noqa: E402, F401
import ops_llm  # noqa: E402, F401
import ops_moe  # noqa: E402, F401
import ops_numbers  # noqa: E402, F401: families register themselves
import ops_quant  # noqa: E402, F401
import ops_order  # noqa: E402, F401
import ops_tensors  # noqa: E402, F401
import ops_complex  # noqa: E402, F401
import ops_convert  # noqa: E402, F401
import ops_extent  # noqa: E402, F401
import ops_vision  # noqa: E402, F401

DEFAULT_OUT = Path(__file__).resolve().parents[2] / "tests" / "ops"
DTYPES = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
}


def little_endian(tensor):
    """Raw bytes, row-major; bool is one byte, an empty tensor is no bytes."""
    flat = tensor.detach().clone(memory_format=torch.contiguous_format).reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def describe(word, value, blob):
    """The line for one input or output; a tensor's bytes go to the blob."""
    if not isinstance(value, torch.Tensor):
        return f"{word} int {value}\n"
    blob += little_endian(value)
    return f"{word} {DTYPES[value.dtype]} {','.join(map(str, value.shape)) or '-'}\n"


def describe_call(family, case, args, blob):
    oracle = ops_case.ORACLES.get(family, contextlib.nullcontext)
    with torch.no_grad(), oracle():
        outputs = pytree.tree_leaves(case.module(*args))
    text = f"case {case.name} {case.rtol:g} {case.atol:g}\n"
    text += "".join(describe("in", value, blob) for value in args)
    return text + "".join(describe("out", value, blob) for value in outputs)


def write_family(name, out):
    torch.manual_seed(zlib.crc32(name.encode()))
    cases = ops_case.FAMILIES[name]()
    graphs = {
        case.name: export(case.module, case.calls[0], dynamic_shapes=case.dynamic)
        for case in cases
    }
    edge = to_edge_transform_and_lower(graphs,
                                       compile_config=EdgeCompileConfig(
                                           _check_ir_validity=False,
                                           preserve_ops=ops_case.PRESERVED,
                                           _skip_dim_order=name in ops_case.OLD_FORMAT,
                                       ),
                                       )
    program = edge.to_executorch()
    blob = bytearray()
    text = "".join(
        describe_call(name, case, args, blob) for case in cases if not case.is_random
        for args in case.calls)
    (out / f"{name}.pte").write_bytes(bytes(program.buffer))
    (out / f"{name}.bin").write_bytes(blob)
    (out / f"{name}.cases").write_text(text)
    found = {
        f"{op.name}.{op.overload}" if op.overload else op.name
        for plan in program.executorch_program.execution_plan
        for op in plan.operators
    }
    print(f"{name:10} {len(program.buffer):7} + {len(blob):6} bytes, {len(cases):3} methods")
    print("   ", " ".join(sorted(found)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="default: %(default)s")
    parser.add_argument("names", nargs="*", metavar="FAMILY", help="default: all of them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or ops_case.FAMILIES:
        write_family(name, options.out)


if __name__ == "__main__":
    sys.exit(main())
