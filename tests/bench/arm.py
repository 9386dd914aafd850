#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions of a call on aarch64, by instruction level, in QEMU's emulator.

The figures are numbers of executed instructions, not times: no processor is measured. Each program
runs with one worker, once with few calls and once with more; the difference is that of the calls
alone, without loading. Beside the counts are those of the level generic, plain C, over them.

It takes qemu-aarch64 with plugins (Debian: qemu-user), a compiler for this machine, and a build of
pte for aarch64: contrib/cross.sh. With --loops it prints, for the innermost loops of the kernels,
how many of their instructions are multiply-adds, dot products or products of matrices; that takes
the objdump of aarch64.

usage: arm.py [--build DIR] [--root DIR] [--cpu LEVEL]... [--loops] FILE.pte...
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
LEVELS = ("generic", "neon", "dotprod", "i8mm", "bf16")
CALLS = (1, 3)  # the first call makes plans, which the second run has, too
PRODUCT = re.compile(r"fmla|fmul\b|bfmmla|bfdot|[su]?dot|usdot|u?s?mmla|smlal2?|umlal2?")
LOOPS = {  # archive, function: the widest tile of all rows
    "neon": (("gemm_f32", r"tile_6_4"), ("gemm_u8", r"run_tile_6_4_8")),
    "dotprod": (("gemm_u8", r"run_tile_6_4_8"), ("gemm_u8", r"run_grouped_3_4_4")),
    "i8mm": (("gemm_u8", r"run_tile_6_4_8"), ("gemm_u8", r"run_grouped_4_4_4")),
    "bf16": (("gemm_bf16", r"tile_6_4"),),
}


def make_plugin(folder):
    plugin = Path(folder) / "libcount.so"
    source = TOP / "tests" / "bench" / "count_plugin.c"
    include = f"-I{folder}"  # config.h is the other machine's
    (Path(folder) / "config.h").touch()
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", include, "-o", plugin, source], check=True)
    return plugin


class Emulator:
    def __init__(self, plugin, root, build):
        self.command = ["qemu-aarch64", "-cpu", "max", "-plugin", str(plugin), "-L", str(root)]
        self.pte = str(build / "pte")

    def count(self, args):
        done = subprocess.run([*self.command, self.pte, *args], capture_output=True, text=True,
                              check=False)
        found = re.search(r"^instructions: (\d+)$", done.stderr, re.M)
        if done.returncode or not found:
            sys.exit(f"arm: {' '.join(args)}: {(done.stderr or done.stdout).strip()}")
        return int(found.group(1))

    def count_call(self, file, level):
        few, more = (self.count(["run", str(file), "--workers", "1", "--cpu", level, "--precision",
                                 "bf16" if level == "bf16" else "exact", "--repeat", str(calls)])
                     for calls in CALLS)
        return (more - few) / (CALLS[1] - CALLS[0])


def print_counts(emulator, files, levels):
    print("instructions of a call, in thousands; in brackets: those of generic over them")
    print("\t".join(("network", *levels)))
    for file in files:
        row, generic = [], None
        for level in levels:
            count = emulator.count_call(file, level)
            generic = count if level == "generic" else generic
            over = f" ({generic / count:.2f})" if generic and level != "generic" else ""
            row.append(f"{count / 1000:.0f}{over}")
        print("\t".join((file.stem, *row)), flush=True)


# ---- loops ---------------------------------------------------------------------------------------

def instructions_of(archive, function):
    """The address, name and operands of each instruction of a function."""
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", archive],
                          capture_output=True, text=True, check=True).stdout
    body = re.search(rf"^[0-9a-f]+ <{function}>:\n((?:.+\n)+)", text, re.M)
    lines = re.findall(r"^ *([0-9a-f]+):\t(\S+)[ \t]*(.*)$", body.group(1), re.M) if body else []
    return [(int(at, 16), name, operands) for at, name, operands in lines]


def innermost_loops(code):
    index = {at: i for i, (at, _, _) in enumerate(code)}
    loops = []
    for i, (_, name, operands) in enumerate(code):
        target = re.search(r"\b([0-9a-f]+) <", operands)
        begin = index.get(int(target.group(1), 16)) if target else None
        if begin is not None and begin < i and re.match(r"b(\.|$)|t?cbn?z|tbn?z", name):
            loops.append((begin, i + 1))
    return [code[a:b] for a, b in loops
            if not any(a <= c and d <= b and (a, b) != (c, d) for c, d in loops)]


def print_loops(build):
    print("of a loop's instructions, those that multiply")
    for level, kernels in LOOPS.items():
        for source, function in kernels:
            archive = build / "hal" / "cpu" / "uk" / f"libuk_{level}_a-{source}.o"
            loops = innermost_loops(instructions_of(archive, function))
            counts = [(sum(bool(PRODUCT.fullmatch(name)) for _, name, _ in loop), len(loop))
                      for loop in loops]
            products, length = max(counts, key=lambda count: (count[0], -count[1]))
            print(f"{level}\t{source} {function}\t{products} of {length}\t"
                  f"{products / length:.2f}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--build", type=Path, default=Path("build/arm64"))
    parser.add_argument("--root", type=Path, default=Path("build/cross/arm64"))
    parser.add_argument("--cpu", action="append", choices=LEVELS)
    parser.add_argument("--loops", action="store_true")
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    if args.loops:
        print_loops(args.build)
    with tempfile.TemporaryDirectory() as folder:
        if args.files:
            emulator = Emulator(make_plugin(folder), args.root, args.build)
            print_counts(emulator, args.files, args.cpu or LEVELS)


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    main()
