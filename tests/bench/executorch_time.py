#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the times of models in pted with those of ExecuTorch's own runtime on the same files.

Both run on one thread, or with --threads 1,2 on one thread and then on two. Threads are workers of
pted, and those of the pool that ExecuTorch's XNNPACK and optimized kernels share.

Both take turns, ROUNDS times. Each round gives the ratio of two medians measured one after the
other, and the median of these ratios is printed. Above 1, pted is faster. ExecuTorch runs through
its Python bindings; without them, or without torch, the program says so and prints only pted's
times. The bindings add a few microseconds to each call, which matters only for tiny models. The
last lines are the geometric mean and the models with the worst ratios.

If NAME.json is beside NAME.pte (the form of contrib/export), the inputs are those of the largest
stored case. Otherwise they are random floats of the largest shapes.

usage: executorch_time.py [--threads N,N...] FILE.pte...; top_builddir as in make check; ROUNDS in
the environment.
"""
import argparse
import importlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
ROUNDS = int(os.environ.get("ROUNDS", "5"))
WORST = 5
OURS_S = 0.15  # roughly the time of each side of a round
THEIRS_S = 0.3

try:
    import torch
    from executorch.extension.pybindings import portable_lib as executorch
except ImportError as missing:
    print(f"executorch_time: only pted is measured: {missing}", file=sys.stderr)
    executorch = None


def load_more_kernels():
    """Loads kernels from separate libraries of ExecuTorch, if they are installed."""
    for library in ("executorch.kernels.quantized",
                    "executorch.extension.llm.custom_ops.custom_ops"):
        try:
            importlib.import_module(library)
        except (ImportError, OSError, RuntimeError) as missing:
            print(f"executorch_time: without {library}: {missing}", file=sys.stderr)


class Case:
    """A method and its inputs: the options for pte, and the leaves (of a case, or shapes)."""

    def __init__(self, path):
        self.path, self.method, self.leaves, self.data = path, "forward", None, None
        description = path.with_suffix(".json")
        if description.exists():
            self.choose(json.loads(description.read_text()))

    def choose(self, description):
        """Chooses the fresh case with the most bytes, and the file of external weights."""
        for item in description["data_files"]:
            self.data = str(self.path.parent / item["file"])
        cases = [case for case in description["cases"] if case["state"] == "fresh"]
        if cases:
            case = max(cases, key=lambda case: sum(map(self.size, case["inputs"])))
            self.method, self.leaves = case["method"], case["inputs"]

    def file(self, leaf):
        return self.path.parent / leaf["file"]

    def size(self, leaf):
        return self.file(leaf).stat().st_size if leaf["kind"] == "tensor" else 0

    def pte_options(self):
        options = ["--method", self.method]
        for index, leaf in enumerate(self.leaves or []):
            if leaf["kind"] == "tensor" and leaf["shape"]:
                text = f"{self.file(leaf)}:{'x'.join(map(str, leaf['shape']))}"
            elif leaf["kind"] == "tensor":
                text = json.dumps(self.tensor(leaf).item())
            else:
                text = json.dumps(leaf.get("value"))
            if leaf["kind"] != "none":
                options += ["--input", f"input_{index}={text}"]
        return options

    def tensor(self, leaf):
        raw = bytearray(self.file(leaf).read_bytes())
        dtype = getattr(torch, leaf["dtype"])
        return (torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
                ).reshape(leaf["shape"])

    def values(self, module):
        """The inputs as ExecuTorch's bindings take them."""
        if self.leaves is None:
            meta = module.method_meta(self.method)
            sizes = [meta.input_tensor_meta(i).sizes() for i in range(meta.num_inputs())]
            return [torch.rand(list(shape)) for shape in sizes]
        return [self.tensor(leaf) if leaf["kind"] == "tensor" else leaf.get("value")
                for leaf in self.leaves]


def time_ours(case, threads, repeat):
    """Median of |repeat| calls, in microseconds."""
    out = subprocess.run([BUILD / "pte", "run", case.path, "--workers", str(threads), "--repeat",
                          str(repeat), *case.pte_options()],
                         capture_output=True, text=True, check=True).stdout
    return float(re.search(r"median_us: ([0-9.]+)", out).group(1))


class Theirs:
    """The case in ExecuTorch."""

    def __init__(self, case):
        self.module = executorch._load_for_executorch(str(case.path), case.data)
        self.method, self.inputs = case.method, case.values(self.module)

    def time(self, seconds):
        """Median microseconds of the calls made in |seconds|, at least one."""
        times = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            self.module.run_method(self.method, self.inputs)
            times.append((time.perf_counter() - begin) * 1e6)
        return statistics.median(times)


def open_theirs(case):
    """None if ExecuTorch is not installed or cannot run the program."""
    try:
        theirs = Theirs(case) if executorch else None
        if theirs:
            theirs.time(0)
        return theirs
    except (RuntimeError, ValueError, TypeError, AttributeError) as failure:
        print(f"executorch_time: {case.path.stem}: {failure}", file=sys.stderr)
        return None


def measure(path, threads):
    """Prints a line; returns the ratio, or None."""
    case = Case(path)
    name = f"{path.stem}_us" if threads == 1 else f"{path.stem}_{threads}_threads_us"
    try:
        first = time_ours(case, threads, 3)
    except subprocess.CalledProcessError as failure:
        print(f"executorch_time: {path.stem}: {failure.stderr.strip()}", file=sys.stderr)
        return None
    repeat = max(3, min(100000, int(OURS_S * 1e6 / max(first, 1))))
    theirs = open_theirs(case)
    pairs = [(time_ours(case, threads, repeat), theirs.time(THEIRS_S) if theirs else 0)
             for _ in range(ROUNDS)]
    ours = statistics.median(pair[0] for pair in pairs)
    if not theirs:
        print(f"{name}: {ours:.1f}", flush=True)
        return None
    ratio = statistics.median(b / a for a, b in pairs)
    other = statistics.median(pair[1] for pair in pairs)
    print(f"{name}: {ours:.1f} executorch {other:.1f} ratio {ratio:.2f}", flush=True)
    return ratio


def measure_all(paths, threads):
    """Prints a line for each program, then the summary."""
    if executorch:
        executorch._unsafe_reset_threadpool(threads)
        torch.set_num_threads(threads)
    measured = [(measure(path, threads), path.stem) for path in paths]
    ratios = sorted(pair for pair in measured if pair[0])
    if ratios:
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio, _ in ratios))
        on = "" if threads == 1 else f" on {threads} threads"
        print(f"geometric_mean: {mean:.2f} of {len(ratios)} models{on}")
        print("worst:", ", ".join(f"{name} {ratio:.2f}" for ratio, name in ratios[:WORST]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", default="1", help="numbers with commas between them")
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    if executorch:
        load_more_kernels()
    for threads in args.threads.split(","):
        measure_all(args.files, int(threads))


main()
