#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints which share of what the processor reaches each program reaches, with one thread.

`pte profile` measures, in one run, the layers of a program and two peaks of one worker: operations
a second, for each kind of numbers, and bytes a second that are read. A layer takes at least the
time of its operations or of its bytes, whichever is longer. The share is the sum of these least
times over the time of the call. A layer whose bytes come from a cache is faster than the memory is;
its least time is then the time that it took. Of some rounds the one with the greatest share counts.
A round takes less than half a second, because Linux stops a process with real-time priority for
50 ms of each second, and the layer of that moment would seem slow.

usage: peaks.py [--rounds N] [--worst N] FILE.pte...; top_builddir says where `pte` is (.)
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

PTE = Path(os.environ.get("top_builddir", ".")).resolve() / "pte"
ROUND_US = 450e3
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


def best_round(path, rounds):
    """What shares() says of the round with the greatest share, and the time of its calls."""
    once = profile(path, 3)["call_us"]["median"]
    best = None
    for _ in range(rounds):
        found = profile(path, max(3, int(ROUND_US / once)))
        layers, share = shares(found)
        if best is None or share > best[1]:
            best = layers, share, found["call_us"]["median"]
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("programs", nargs="+", metavar="FILE.pte")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of calls (3)")
    parser.add_argument("--worst", type=int, default=3, help="layers to print of each (3)")
    args = parser.parse_args()
    for program in args.programs:
        layers, share, whole = best_round(program, args.rounds)
        print(f"{Path(program).stem:<18}{whole / 1e3:>9.2f} ms{share:>8.2f}", flush=True)
        for lost, layer, operations, read in layers[:args.worst]:
            print(f"{'':<18}{100 * lost / whole:>8.1f} % lost  {layer['operator']:<16}"
                  f"{operations:>6.2f} of operations {read:>6.2f} of reads  {layer['source']}")


if __name__ == "__main__":
    main()
