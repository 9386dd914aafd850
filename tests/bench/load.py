#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares how long well-known networks take to load in pted and in ONNX Runtime.

The networks and their exports are those of peers.py, in its folder of --cache; --more adds program
files that have no peer. An engine loads each network in a new process, and the engines take turns,
ROUNDS times. All files are in the page cache.

pted's numbers are those of the whole process, from its start to the line "listening" in its log:
"first" without packed weights, "kept" with the packed weights of a start before it. Those of ONNX
Runtime are of InferenceSession() alone, without the start of the interpreter and the import.

"cpu" is the processor time of all threads, "wall" the time that passed, both in ms, the least of
all rounds. Faults are pages that the kernel had to find or clear, the least of all rounds: they do
not depend on how busy the machine is. "resident" is the most memory that pted's process has had.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
MODELS = ["mobilenet_v2", "resnet18", "resnet50", "vit_tiny", "minilm", "bert_base",
          "mobilenet_v2_int8", "resnet18_int8", "resnet50_int8"]
SESSION = """
import resource, sys, time
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = int(sys.argv[2]), 1
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, time.perf_counter(), usage.ru_minflt
before = used()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(*(after - first for after, first in zip(used(), before)))
"""


class Cost:
    """The least of what starts took."""

    def __init__(self):
        self.cpu = self.wall = float("inf")
        self.faults = self.resident_kb = 0

    def add(self, cpu, wall, faults, resident_kb=0):
        self.faults = min(self.faults or faults, faults)
        self.cpu, self.wall = min(self.cpu, cpu), min(self.wall, wall)
        self.resident_kb = min(self.resident_kb or resident_kb, resident_kb)


def processor_clock(pid):
    """The clock of Linux that counts the processor time of process |pid|."""
    return (~pid << 3) | 2


def minor_faults(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def resident_kb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def start_pted(path, args, packed):
    """The cost of one start; |packed| is a folder for packed weights, or None."""
    options = ["--listen", "127.0.0.1:0", "--workers", str(args.threads), "--max-batch", "1",
               "--precision", args.precision]
    options += ["--packed-dir", packed] if packed else []
    begin = time.perf_counter()
    with subprocess.Popen([BUILD / "pted", *options, path], stderr=subprocess.PIPE,
                          text=True) as pted:
        lines = []
        while not lines or "listening on" not in lines[-1]:
            lines.append(pted.stderr.readline())
            if not lines[-1]:
                sys.exit("load: " + "".join(lines))
        wall = time.perf_counter() - begin
        cost = (time.clock_gettime(processor_clock(pted.pid)), wall, minor_faults(pted.pid),
                resident_kb(pted.pid))
        pted.terminate()
        pted.communicate()
    return cost


def start_onnxruntime(path, args):
    done = subprocess.run([sys.executable, "-c", SESSION, path, str(args.threads)],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"load: {done.stderr}")
    cpu, wall, faults = map(float, done.stdout.split())
    return cpu, wall, int(faults)


def measure(program, peer, args):
    """{"first", "kept", "onnxruntime"}: what starts with |program| cost; |peer| may be None."""
    costs = {"first": Cost(), "kept": Cost(), "onnxruntime": Cost()}
    with tempfile.TemporaryDirectory() as packed:
        os.chmod(packed, 0o700)
        for path in filter(None, (program, peer)):
            path.read_bytes()
        start_pted(program, args, packed)
        for _ in range(args.rounds):
            costs["first"].add(*start_pted(program, args, None))
            costs["kept"].add(*start_pted(program, args, packed))
            if peer:
                costs["onnxruntime"].add(*start_onnxruntime(peer, args))
    return costs


def print_row(name, costs):
    first, peer = costs["first"], costs["onnxruntime"]
    has_peer = peer.faults > 0
    cells = [f"{cost.cpu * 1e3:>7.1f}{cost.wall * 1e3:>7.1f}{cost.faults:>8}" if cost.faults
             else f"{'-':>22}" for cost in costs.values()]
    ratio = (f"{first.cpu / peer.cpu:>7.2f}{first.wall / peer.wall:>7.2f}" if has_peer
             else f"{'-':>14}")
    print(f"{name:<18}" + "".join(cells) + ratio +
          f"{first.resident_kb // 1024:>8}{costs['kept'].resident_kb // 1024:>6}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, help="the folder of exports")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="files without a peer")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="fast")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    print(f"{'':<18}{'first cpu':>9}{'wall':>5}{'faults':>8}{'kept cpu':>9}{'wall':>5}"
          f"{'faults':>8}{'ORT cpu':>9}{'wall':>5}{'faults':>8}{'ratio':>7}{'wall':>7}"
          f"{'MB':>8}{'kept':>6}")
    for name in filter(None, args.models.split(",")):
        program, peer = args.cache / f"{name}.pte", args.cache / f"{name}.onnx"
        if not program.exists():
            print(f"load: {program} is not there; peers.py makes it", file=sys.stderr)
            continue
        print_row(name, measure(program, peer if peer.exists() else None, args))
    for path in args.more:
        print_row(path.stem, measure(path, None, args))


main()
