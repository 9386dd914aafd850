#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints which share of what the processor reaches each program reaches, with one thread.

`pte profile` measures, in one run, the layers of a program and two peaks of one worker: operations
a second, for each kind of numbers, and bytes a second that are read. A layer takes at least the
time of its operations or of its bytes, whichever is longer. The share is the sum of these least
times over the time of the call. A layer whose bytes come from a cache is faster than the memory is;
its least time is then the time that it took.

usage: peaks.py [--repeat N] [--worst N] FILE.pte...; top_builddir says where `pte` is (.)
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

PTE = Path(os.environ.get("top_builddir", ".")).resolve() / "pte"
PEAKS = {"float32": "float32_flops", "bfloat16": "bfloat16_flops", "int8": "integer_ops"}


def profile(path, repeat):
    done = subprocess.run([PTE, "profile", "--json", "--workers", "1", "--repeat", str(repeat),
                           path], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"peaks: {path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def least_us(layer, peaks):
    """The time that the layer takes at least: of its operations, of its bytes."""
    operations = layer["flops"] / peaks[PEAKS[layer["numbers"]]] * 1e6 if layer["flops"] else 0
    return operations, layer["bytes"] / peaks["read_bytes"] * 1e6


def shares(found):
    """(lost us, layer, share of its operations' peak, of the bytes') of each, and of the call."""
    layers = []
    for layer in found["layers"]:
        busy, bounds = layer["busy_us"], least_us(layer, found["peak"])
        layers.append((max(0, busy - max(bounds)), layer, *(one / busy for one in bounds)))
    whole = found["call_us"]["median"]
    lost = sum(layer[0] for layer in layers)
    busy = sum(layer["busy_us"] for layer in found["layers"])
    return sorted(layers, key=lambda row: -row[0]), (busy - lost) / max(busy, whole)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("programs", nargs="+", metavar="FILE.pte")
    parser.add_argument("--repeat", type=int, default=20, help="calls of each program (20)")
    parser.add_argument("--worst", type=int, default=3, help="layers to print of each (3)")
    args = parser.parse_args()
    for program in args.programs:
        found = profile(program, args.repeat)
        layers, share = shares(found)
        whole = found["call_us"]["median"]
        print(f"{Path(program).stem:<18}{whole / 1e3:>9.2f} ms{share:>8.2f}", flush=True)
        for lost, layer, operations, read in layers[:args.worst]:
            print(f"{'':<18}{100 * lost / whole:>8.1f} % lost  {layer['operator']:<16}"
                  f"{operations:>6.2f} of operations {read:>6.2f} of reads  {layer['source']}")


if __name__ == "__main__":
    main()
