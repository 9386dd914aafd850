#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions of a call on aarch64, by instruction level, in QEMU's emulator.

The figures are numbers of executed instructions, not times: no processor is measured. Each program
runs with one worker, once with few calls and once with more; the difference is that of the calls
alone, without loading. Beside the counts are those of the level generic, plain C, over them.

It takes qemu-aarch64 with plugins (Debian: qemu-user), a compiler for this machine, and a build of
pte for aarch64: contrib/cross.sh. With --peer, the shared library of ONNX Runtime's package for
aarch64, each network is counted there, too: NAME.onnx beside NAME.pte, on the same input,
NAME.in.npy, with one thread. tests/bench/arm_networks.py exports them. The ratio is that of pted's
count to ONNX Runtime's, on a processor that has this level and not the next one. With --loops it
prints, for the innermost loops of the kernels, how many of their instructions are multiply-adds,
dot products or products of matrices; that takes the objdump of aarch64. With --functions, those of
pted that execute most instructions stand before each network.

usage: arm.py [--build DIR] [--root DIR] [--cpu LEVEL]... [--peer LIBRARY] [--loops]
              [--functions COUNT] FILE.pte...
"""
import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# SVE of the emulated processor has vectors of 64 bytes, which no server has.
PROCESSORS = {"neon": "neoverse-n1", "dotprod": "neoverse-n1", "i8mm": "max,sve=off,sme=off",
              "bf16": "max,sve=off,sme=off"}
LEVELS = ("generic", "neon", "dotprod", "i8mm", "bf16")
CALLS = (1, 3)  # the first call makes plans, which the second run has, too
PRODUCT = re.compile(r"fmla|fmul\b|bfmmla|bfdot|[su]?dot|usdot|u?s?mmla|smlal2?|umlal2?")
LOOPS = {  # archive, function: the widest tile of all rows
    "neon": (("gemm_f32", r"tile_6_4"), ("gemm_u8", r"run_tile_6_4_8")),
    "dotprod": (("gemm_u8", r"run_tile_6_4_8"), ("gemm_u8", r"run_grouped_3_4_4")),
    "i8mm": (("gemm_u8", r"run_tile_6_4_8"), ("gemm_u8", r"run_grouped_4_4_4")),
    "bf16": (("gemm_bf16", r"tile_6_4(?:\.part\.0)?"),),
}
NOT_FULL = (("neon", "gemm_u8"), ("bf16", "gemm_bf16"))  # in an archive without flags of its own


def make_plugin(folder):
    plugin = Path(folder) / "libcount.so"
    source = TOP / "tests" / "bench" / "count_plugin.c"
    include = f"-I{folder}"  # config.h is the other machine's
    (Path(folder) / "config.h").touch()
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", include, "-o", plugin, source], check=True)
    return plugin


def make_view(folder, root):
    """The root of aarch64, and a description of processors: that of this machine is no such one,
    and ONNX Runtime believes it."""
    view = Path(folder) / "view"
    (view / "proc").mkdir(parents=True)
    (view / "proc" / "cpuinfo").write_text("".join(
        f"processor\t: {i}\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
        f"CPU part\t: 0xd0c\nCPU revision\t: 1\n\n" for i in range(os.cpu_count())))
    for name in ("bin", "etc", "lib", "usr"):
        (view / name).symlink_to(root.resolve() / name)
    return view


class Emulator:
    def __init__(self, folder, root, build):
        self.folder, self.root = Path(folder), root.resolve()
        self.plugin, self.view = make_plugin(folder), make_view(folder, root)
        self.pte = str(build / "pte")

    def count(self, args, processor="max"):
        done = subprocess.run(["qemu-aarch64", "-cpu", processor, "-plugin", str(self.plugin), "-L",
                               str(self.view), *args], capture_output=True, text=True, check=False)
        found = re.search(r"^instructions: (\d+)$", done.stderr, re.M)
        if done.returncode or not found:
            sys.exit(f"arm: {' '.join(args)}: {(done.stderr or done.stdout).strip()}")
        self.functions = collections.Counter()
        for name, count in re.findall(r"^function: (\S+) (\d+)$", done.stderr, re.M):
            self.functions[name] += int(count)
        return int(found.group(1))

    def count_call(self, args_of, processor="max"):
        """|args_of| makes a command of a number of calls."""
        few = self.count(args_of(CALLS[0]), processor)
        of_few = self.functions
        more = self.count(args_of(CALLS[1]), processor)
        self.functions = self.functions - of_few
        return (more - few) / (CALLS[1] - CALLS[0])

    def count_pted(self, file, level):
        value = file.with_suffix(".in.npy")
        inputs = ("--input", f"input_0={value}") if value.exists() else ()
        precision = "bf16" if level == "bf16" else "exact"
        return self.count_call(lambda calls: [
            self.pte, "run", str(file), *inputs, "--workers", "1", "--cpu", level, "--precision",
            precision, "--repeat", str(calls)])


class Peer:
    """ONNX Runtime, by a small program: onnx_calls.c."""

    def __init__(self, emulator, library):
        self.emulator, self.library = emulator, str(library)
        self.program = str(emulator.folder / "onnx_calls")
        self.counts = {}
        subprocess.run(["aarch64-linux-gnu-gcc", f"--sysroot={emulator.root}", "-std=c11", "-O1",
                        f"-I{emulator.folder}", "-o", self.program,
                        TOP / "tests" / "bench" / "onnx_calls.c"], check=True)

    def count(self, file, level):
        import numpy
        processor = PROCESSORS[level]
        if (file, processor) not in self.counts:
            value = numpy.load(file.with_suffix(".in.npy"))
            raw, result = (str(self.emulator.folder / name) for name in ("input", "output"))
            value.tofile(raw)
            kind = {"float32": "f32", "int64": "i64"}[str(value.dtype)]
            self.counts[file, processor] = self.emulator.count_call(lambda calls: [
                self.program, self.library, str(file.with_suffix(".onnx")), str(calls), kind, raw,
                result, *map(str, value.shape)], processor)
            expected = numpy.load(file.with_suffix(".out.npy"))
            error = abs(numpy.fromfile(result, "f4") - expected.ravel()).max()
            if not error <= abs(expected).max() / 2:  # 8-bit numbers of a deep network
                sys.exit(f"arm: {file.stem}: ONNX Runtime's result is off by {error}")
        return self.counts[file, processor]


def print_functions(emulator, count, level):
    for name, instructions in emulator.functions.most_common(count):
        thousands = instructions / (CALLS[1] - CALLS[0]) / 1000
        print(f"\t{level}\t{thousands:.0f}\t{name}", flush=True)


def print_counts(emulator, peer, files, levels, functions):
    print("instructions of a call, in thousands; in brackets: those of generic over them"
          + ("; behind it: their ratio to those of ONNX Runtime" if peer else ""))
    print("\t".join(("network", *levels)))
    for file in files:
        row, generic = [], None
        for level in levels:
            count = emulator.count_pted(file, level)
            print_functions(emulator, functions, level)
            generic = count if level == "generic" else generic
            over = f" ({generic / count:.2f})" if generic and level != "generic" else ""
            ratio = f" {count / peer.count(file, level):.2f}" if peer and level != "generic" else ""
            row.append(f"{count / 1000:.0f}{over}{ratio}")
        if peer:
            row += [f"{processor}: {count / 1000:.0f}"
                    for (of, processor), count in peer.counts.items() if of == file]
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
            full = "" if (level, source) in NOT_FULL else "_full"
            archive = build / "hal" / "cpu" / "uk" / f"libuk_{level}{full}_a-{source}.o"
            loops = innermost_loops(instructions_of(archive, function))
            counts = [(sum(bool(PRODUCT.fullmatch(name)) for _, name, _ in loop), len(loop))
                      for loop in loops]
            products, length = max(counts, key=lambda count: (count[0], -count[1]))
            print(f"{level}\t{source} {function.split('(')[0]}\t{products} of {length}\t"
                  f"{products / length:.2f}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--build", type=Path, default=Path("build/arm64"))
    parser.add_argument("--root", type=Path, default=Path("build/cross/arm64"))
    parser.add_argument("--cpu", action="append", choices=LEVELS)
    parser.add_argument("--peer", type=Path, metavar="LIBRARY")
    parser.add_argument("--loops", action="store_true")
    parser.add_argument("--functions", type=int, default=0, metavar="COUNT")
    parser.add_argument("files", nargs="*", type=Path)
    args = parser.parse_args()
    if args.loops:
        print_loops(args.build)
    with tempfile.TemporaryDirectory() as folder:
        if args.files:
            emulator = Emulator(folder, args.root, args.build)
            peer = Peer(emulator, args.peer) if args.peer else None
            print_counts(emulator, peer, args.files, args.cpu or LEVELS, args.functions)


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C"
    main()
