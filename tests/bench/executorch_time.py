#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time of a model on one thread, over that of ExecuTorch's own runtime on the same file.

Both take turns, ROUNDS times; a round's ratio is of the two medians next to each other in time, and
the median of these ratios is printed. ExecuTorch is asked through its Python bindings; without
them, or without torch, the program says so and prints pted's times alone. Their way through Python
is a few microseconds of each call, which only a tiny model shows.

usage: executorch_time.py FILE.pte...; top_builddir as in make check. All inputs are float tensors.
"""
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
ROUNDS = 5
OURS_S = 0.3  # about what each side of a round takes
THEIRS_S = 0.6

try:
    import torch
    from executorch.extension.pybindings import _portable_lib as executorch
except ImportError as missing:
    print(f"executorch_time: only pted is measured: {missing}", file=sys.stderr)
    executorch = None


def time_ours(path, repeat):
    """Median of |repeat| calls, in microseconds."""
    out = subprocess.run([BUILD / "pte", "run", path, "--workers", "1", "--repeat", str(repeat)],
                         capture_output=True, text=True, check=True).stdout
    return float(re.search(r"median_us: ([0-9.]+)", out).group(1))


class Theirs:
    """Method forward of a file in ExecuTorch, with float inputs of its largest shapes."""

    def __init__(self, path):
        self.module = executorch._load_for_executorch(str(path))
        meta = self.module.method_meta("forward")
        sizes = [meta.input_tensor_meta(i).sizes() for i in range(meta.num_inputs())]
        self.inputs = [torch.rand(list(shape)) for shape in sizes]

    def time(self, seconds):
        """Median microseconds of the calls that fit into |seconds|, three at least."""
        times = []
        end = time.perf_counter() + seconds
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            self.module.run_method("forward", self.inputs)
            times.append((time.perf_counter() - begin) * 1e6)
        return statistics.median(times)


def measure(path):
    name = Path(path).stem
    first = time_ours(path, 3)
    repeat = max(3, min(100000, int(OURS_S * 1e6 / max(first, 1))))
    theirs = Theirs(path) if executorch else None
    pairs = [(time_ours(path, repeat), theirs.time(THEIRS_S) if theirs else 0)
             for _ in range(ROUNDS)]
    ours = statistics.median(pair[0] for pair in pairs)
    if not theirs:
        print(f"{name}_us: {ours:.1f}", flush=True)
        return
    ratio = statistics.median(b / a for a, b in pairs)
    other = statistics.median(pair[1] for pair in pairs)
    print(f"{name}_us: {ours:.1f} executorch {other:.1f} ratio {ratio:.1f}", flush=True)


def main():
    if executorch:
        executorch._unsafe_reset_threadpool(1)
        torch.set_num_threads(1)
    for path in sys.argv[1:]:
        measure(path)


main()
