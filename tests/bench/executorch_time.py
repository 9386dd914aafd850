#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Time of models, and what ExecuTorch's own runtime takes on the same files over it.

On one thread, or with --threads 1,2 on one and then on two: workers of pted, and of the thread pool
that ExecuTorch's XNNPACK and optimized kernels share.

Both take turns, ROUNDS times; a round's ratio is of the two medians next to each other in time, and
the median of these ratios is printed: above 1 pted is faster. ExecuTorch is asked through its
Python bindings; without them, or without torch, the program says so and prints pted's times alone.
Their way through Python is a few microseconds of each call, which only a tiny model shows. At the
end come the geometric mean and the models that fare worst.

The inputs are those of the largest stored case where NAME.json lies beside NAME.pte (the form of
contrib/export), otherwise any floats of the largest shapes.

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
OURS_S = 0.15  # about what each side of a round takes
THEIRS_S = 0.3

try:
    import torch
    from executorch.extension.pybindings import portable_lib as executorch
except ImportError as missing:
    print(f"executorch_time: only pted is measured: {missing}", file=sys.stderr)
    executorch = None


def load_more_kernels():
    """Those that ExecuTorch has in libraries of their own, where they are installed."""
    for library in ("executorch.kernels.quantized",
                    "executorch.extension.llm.custom_ops.custom_ops"):
        try:
            importlib.import_module(library)
        except (ImportError, OSError, RuntimeError) as missing:
            print(f"executorch_time: without {library}: {missing}", file=sys.stderr)


class Case:
    """A method and its inputs: what pte is given for them, and leaves (a case's, or shapes)."""

    def __init__(self, path):
        self.path, self.method, self.leaves, self.data = path, "forward", None, None
        description = path.with_suffix(".json")
        if description.exists():
            self.choose(json.loads(description.read_text()))

    def choose(self, description):
        """The fresh case with the most bytes, and the file of external weights."""
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
        """Median microseconds of the calls that fit into |seconds|, one at least."""
        times = []
        end = time.perf_counter() + seconds
        while not times or time.perf_counter() < end:
            begin = time.perf_counter()
            self.module.run_method(self.method, self.inputs)
            times.append((time.perf_counter() - begin) * 1e6)
        return statistics.median(times)


def open_theirs(case):
    """None where there is no ExecuTorch, or where it does not run the program."""
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
    """A line for each, then how they fare together."""
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
