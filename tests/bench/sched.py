#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the scheduler under load, as ratios within one run. Prints lines "name: value".

closed_M_cN    N clients, each with one request in flight: requests a second, divided by those of
               the same server with --max-batch 1 (the two take turns), and divided by its own rate
               with one client
open_M         arrivals at 70 % of the highest rate of M: percentiles of the total time, divided by
               the computing time of a single request (from the statistics), and divided by the
               total time of a single request
beside_slow    a model beside one that is 100 times slower, both saturated: the share of its own
               throughput alone, and its 99th percentile
steps_M        16 clients that call a pipeline of two steps, each of them M: the rate, divided by
               that with --max-batch 1, where no step joins others
saturated_M_cN with --workers W above 1: the rate of N clients, divided by the calls a second of W
               programs that have one thread and compute M alone, each on its own processor; and
               divided by their calls while a server that does nothing is sent as many bodies. All
               take turns, medians count
pipeline       three steps as one call, divided by the sum of the three, and the copies between them

The models are some of tests/models, or with --collection those of a folder in the form of
contrib/export. If Python has ExecuTorch, layers of 1024 are made here and measured as well.
Everything runs with --workers 1 if no other number is given, so that the load generator on the
same machine leaves a core to pted. The best of some rounds counts. --quick takes a minute and only
shows that everything works.

usage: sched.py [--quick] [--workers N] [--collection DIR] [MODEL.pte...]; needs wrk; top_srcdir and
top_builddir as in make check.
"""
import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from daemon import Daemon

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
MODELS = SOURCE / "tests" / "models"
BUNDLED = ("add", "digits", "unet", "mobile")
COLLECTED = ("add", "digits_cnn", "mobilenet_v2_xnn")
CHAIN = ("pipe_preprocess", "pipe_backbone", "pipe_topk")
CHAIN_SHAPE = "1x120x90x3"
SATURATION = 0.7
SLOWER = 100
DATATYPES = {"float32": "FP32", "float64": "FP64", "float16": "FP16", "bfloat16": "BF16",
             "int64": "INT64", "int32": "INT32", "int16": "INT16", "int8": "INT8",
             "uint8": "UINT8", "bool": "BOOL"}
SECONDS_MAX = 8  # of one measurement in closed loop
OPEN_REQUESTS = 500  # in open loop there are to be so many, or as many as there are in
OPEN_SECONDS_MAX = 12
# A waiting request already holds memory: 64 requests of a large model exceed the default.
ROOM = ("--ring-bytes", "2G", "--queue-bytes-max", "1G")


class Options:
    """The size of a run. A quick run shows that everything works and measures little."""

    def __init__(self, args):
        self.workers = args.workers
        self.clients = (1, 16) if args.quick else (1, 4, 16, 64)
        self.rounds = 1 if args.quick else 2
        self.seconds = 1  # wrk counts whole ones
        self.open_seconds = 1 if args.quick else 6


# The statistics of a model whose batches pted has not tried yet.
UNTRIED = "it has not been tried yet"


class Server(Daemon):
    """A pted on its own port that has tried the batches of all its models."""

    def __init__(self, options, *arguments):
        super().__init__("--workers", options.workers, *ROOM, *arguments)
        self.address = f"127.0.0.1:{self.port}"
        while any(row.get("batch_refusal") == UNTRIED
                  for row in self.get("stats")["model_stats"]):
            time.sleep(0.01)

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}/v2/models/{path}") as answer:
            return json.load(answer)

    def computed(self, model):
        """Returns the number of requests, of executions, and the ns of the executions."""
        row, = self.get(f"{model}/stats")["model_stats"]
        phase = row["inference_stats"]["compute_infer"]
        return phase["count"], row["execution_count"], phase["ns"]


# ---- requests ----

class Request:
    """A request in binary: the smallest stored case that is not empty, or zeros of the largest
    shapes."""

    def __init__(self, path, folder, shapes=None):
        self.model = path.stem
        description = path.with_suffix(".json")
        leaves = self.case(json.loads(description.read_text())) if description.exists() else []
        tensors = [(f"input_{i}", DATATYPES[leaf["dtype"]], leaf["shape"],
                    (path.parent / leaf["file"]).read_bytes())
                   for i, leaf in enumerate(leaves) if leaf["kind"] == "tensor"]
        if shapes:
            tensors = [(f"input_{i}", "FP32", shape, bytes(4 * product(shape)))
                       for i, shape in enumerate(shapes)]
        self.shapes = [f"--shape={name}={'x'.join(map(str, shape))}"
                       for name, _, shape, _ in tensors]
        self.description = json.dumps({"name": self.model, "outputs": [], "inputs": [
            {"name": name, "datatype": datatype, "shape": shape}
            for name, datatype, shape, _ in tensors]})
        self.head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
            {"name": name, "datatype": datatype, "shape": shape,
             "parameters": {"binary_data_size": len(data)}}
            for name, datatype, shape, data in tensors]}).encode()
        self.body = Path(folder) / f"{self.model}.body"
        self.body.write_bytes(self.head + b"".join(tensor[3] for tensor in tensors))
        self.script = Path(folder) / f"{self.model}.lua"
        self.script.write_text(
            f'wrk.method = "POST"\nlocal f = io.open("{self.body}", "rb")\n'
            f'wrk.body = f:read("*a")\n'
            f'wrk.headers["Inference-Header-Content-Length"] = "{len(self.head)}"\n')

    @staticmethod
    def case(description):
        def size(case):
            return sum(product(leaf["shape"]) for leaf in case["inputs"]
                       if leaf["kind"] == "tensor")
        cases = [case for case in description["cases"]
                 if case["method"] == "forward" and size(case) > 0]
        return min(cases, key=size)["inputs"]


def product(shape):
    count = 1
    for dim in shape:
        count *= dim
    return count


# ---- load ----

UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6}


def closed(server, request, clients, seconds):
    """Requests a second, and percentiles of their time in us, by wrk's names."""
    out = subprocess.run(
        ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30s", "--latency", "-s",
         request.script, f"http://{server.address}/v2/models/{request.model}/infer"],
        capture_output=True, text=True, check=True).stdout
    if re.search(r"Socket errors|Non-2xx", out) or not re.search("^ *99%", out, re.MULTILINE):
        sys.exit(f"sched: {request.model}: {out}")
    times = {share: float(number) * UNITS[unit] for share, number, unit in
             re.findall(r"^ *(\d+)% +([0-9.]+)(us|ms|s|m) *$", out, re.MULTILINE)}
    return float(re.search(r"Requests/sec: +([0-9.]+)", out)[1]), times


def opened(server, request, rate, seconds):
    """Returns the times that `pte bench` prints: p50 to p99.9, in us. Returns nothing if the bench
    or the server did not keep up: the machine has become slower since the saturated run.
    """
    with open_load(f"http://{server.address}/{request.model}", rate, seconds,
                   *request.shapes) as load:
        out, said = load.communicate()
    if load.returncode:
        print(f"sched: {request.model}: {said.strip()}", file=sys.stderr)
        return {}
    step, = json.loads(out)["steps"]
    return {name: 1e3 * step[f"{name.replace('.', '_')}_ms"]
            for name in ("p50", "p90", "p99", "p99.9")}


def open_load(url, rate, seconds, *arguments):
    """Starts `pte bench` in open loop; its results in JSON are its output."""
    return subprocess.Popen(
        [BUILD / "pte", "bench", url, "--json=-", "--no-plot", "--rate", f"{rate:.3f}",
         "--duration", f"{1e3 * seconds:.0f}ms", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def show(name, text):
    print(f"{name}: {text}", flush=True)


# ---- figures ----

WIDE = "mlp_1024"  # made by make_wide()
WIDE_SHAPES = [[1, 1024]]


def measure_model(options, path, folder):
    """Closed loop with batches and without, then open loop."""
    request = Request(path, folder, WIDE_SHAPES if path.stem == WIDE else None)
    name = request.model
    with Server(options, path) as batched, Server(options, "--max-batch", "1", path) as single:
        one = saturated = alone_us = 0
        compute_us = float("inf")
        for clients in options.clients:
            pairs = []
            seconds = options.seconds  # or longer: each client is to have some answers
            if one:
                seconds = max(seconds, min(SECONDS_MAX, math.ceil(4 * clients / one)))
            for _ in range(options.rounds):
                before = batched.computed(name)
                pairs.append((closed(batched, request, clients, seconds),
                              closed(single, request, clients, seconds)))
                after = batched.computed(name)
                if clients == 1:
                    us = (after[2] - before[2]) / (after[0] - before[0]) / 1e3
                    compute_us = min(compute_us, us)
            together, apart = (max(pair[i][0] for pair in pairs) for i in (0, 1))
            tails = [min(pair[i][1]["99"] for pair in pairs) for i in (0, 1)]
            rows = (after[0] - before[0]) / max(1, after[1] - before[1])
            if clients == 1:
                one = together
                alone_us = min(pair[0][1]["50"] for pair in pairs)
            saturated = max(saturated, together)
            show(f"closed_{name}_c{clients}",
                 f"{together:.0f}/s, without batches {apart:.0f}/s, ratio "
                 f"{together / apart:.2f}, over one client {together / one:.2f}, p99 ratio "
                 f"{tails[0] / tails[1]:.2f}, {rows:.1f} in a batch")
        rate = SATURATION * saturated
        seconds = max(options.open_seconds, min(OPEN_SECONDS_MAX, OPEN_REQUESTS / rate))
        times = opened(batched, request, rate, seconds)
    shares = "".join(f", {share} {us:.0f} us = {us / compute_us:.1f} of compute"
                     for share, us in times.items()) or ", overloaded"
    tail = f", p99 over alone {times['p99'] / alone_us:.1f}" if times else ""
    show(f"open_{name}", f"{rate:.0f}/s, compute {compute_us:.1f} us, alone in all {alone_us:.0f} "
         f"us{shares}{tail}")


def measure_beside_slow(options, path, folder):
    fast = Request(path, folder)
    deep = MODELS / "deep.pte"
    with Server(options, path, deep) as server:
        def compute_us(request):
            best = float("inf")
            for _ in range(3):
                before = server.computed(request.model)
                closed(server, request, 1, options.seconds)
                after = server.computed(request.model)
                best = min(best, (after[2] - before[2]) / max(1, after[0] - before[0]) / 1e3)
            return best
        fast_us = compute_us(fast)
        rows = 256
        slow_us = compute_us(Request(deep, folder, [[rows, 4]]))
        rows = max(1, min(8192, int(rows * SLOWER * fast_us / slow_us)))
        slow = Request(deep, folder, [[rows, 4]])
        slow_us = compute_us(slow)
        solo, solo_times = closed(server, fast, 8, options.seconds)
        load = subprocess.Popen(
            ["wrk", "-t1", "-c4", f"-d{options.seconds * 2 + 2}s", "-s", slow.script,
             f"http://{server.address}/v2/models/deep/infer"], stdout=subprocess.DEVNULL)
        time.sleep(0.5)
        beside, beside_times = closed(server, fast, 8, options.seconds * 2)
        load.wait()
    show("beside_slow", f"{path.stem} {solo:.0f}/s alone, {beside:.0f}/s beside one that computes "
         f"{slow_us / fast_us:.0f} times as long ({slow_us:.0f} us), ratio {beside / solo:.2f}, "
         f"p99 {solo_times['99']:.0f} us alone, {beside_times['99']:.0f} us beside")


STEPS_CLIENTS = 16
STEPS = ({"model": WIDE, "inputs": [{"input": 0}]},
         {"model": WIDE, "inputs": [{"from": 0, "output": 0}]})


def measure_steps(options, path, folder):
    """A pipeline of the wide model and itself, whose steps join those of other clients."""
    document = Path(folder) / "pipelines.json"
    document.write_text(json.dumps({"twice": {"steps": STEPS}}))
    request = Request(path, folder, WIDE_SHAPES)
    request.model = "twice"
    arguments = ("--pipeline", document, path)
    with Server(options, *arguments) as batched, \
            Server(options, "--max-batch", "1", *arguments) as single:
        pairs = [tuple(closed(server, request, STEPS_CLIENTS, options.seconds)
                       for server in (batched, single)) for _ in range(3 * options.rounds)]
        rows = batched.get("twice/stats")["model_stats"][0]["steps"]
    together, apart = (max(pair[i][0] for pair in pairs) for i in (0, 1))
    tails = [min(pair[i][1]["99"] for pair in pairs) for i in (0, 1)]
    joined = sum(row["joined"] for row in rows) / sum(row["success"]["count"] for row in rows)
    show(f"steps_{path.stem}", f"{together:.0f}/s, without batches {apart:.0f}/s, ratio "
         f"{together / apart:.2f}, p99 ratio {tails[0] / tails[1]:.2f}, {joined:.0%} of the steps "
         "joined others")


def measure_pipeline(options, collection):
    files = [collection / f"{name}.pte" for name in CHAIN] if collection else []
    chain = ["--shape", CHAIN_SHAPE, *files] if files and all(f.exists() for f in files) else \
        [MODELS / "add.pte"] * 3
    subprocess.run([BUILD / "tests/bench/bench_pipeline", "--workers", str(options.workers),
                    *chain], check=True)


# ---- beside programs of one thread ----

SATURATED_CLIENTS = (2, 8, 16)
PROGRAM_SECONDS = 3


def programs(options, path, calls):
    """Calls a second of programs of one thread together, each on its own processor."""
    processors = sorted(os.sched_getaffinity(0))[:options.workers]
    running = [subprocess.Popen(
        ["taskset", "-c", str(processor), BUILD / "pte", "run", path, "--workers", "1",
         "--repeat", str(calls)], stdout=subprocess.PIPE, text=True) for processor in processors]
    means = [re.search(r"^mean_us: ([0-9.]+)", process.communicate()[0], re.MULTILINE)
             for process in running]
    if not all(means):
        sys.exit(f"sched: pte run {path} failed")
    return sum(1e6 / float(mean[1]) for mean in means)


def programs_beside_bodies(options, path, calls, request, rate):
    """The same while the bodies of that many requests a second go to a server that does nothing.
    Its only answer is the description of the model, which the load generator asks for."""
    with subprocess.Popen([BUILD / "tests/bench/bare_server", request.description],
                          stderr=subprocess.PIPE, text=True) as bare:
        url = re.search(r"http://\S+", bare.stderr.readline())[0]
        with open_load(f"{url}/{request.model}", rate, 10 * PROGRAM_SECONDS) as load:
            time.sleep(0.5)
            calls_a_second = programs(options, path, calls)
            load.terminate()
        bare.terminate()
    return calls_a_second


def measure_saturated(options, path, folder):
    request = Request(path, folder, WIDE_SHAPES if path.stem == WIDE else None)
    alone, beside, rates, tails = [], [], {}, {}
    with Server(options, path) as server:
        closed(server, request, SATURATED_CLIENTS[-1], options.seconds)
        calls = max(5, int(PROGRAM_SECONDS * programs(options, path, 5) / options.workers))
        for _ in range(3 * options.rounds):
            alone.append(programs(options, path, calls))
            for clients in SATURATED_CLIENTS:
                rate, times = closed(server, request, clients, PROGRAM_SECONDS)
                rates.setdefault(clients, []).append(rate)
                tails.setdefault(clients, []).append(times["99"] / times["50"])
            beside.append(programs_beside_bodies(options, path, calls, request, rate))
    alone, beside = statistics.median(alone), statistics.median(beside)
    for clients in SATURATED_CLIENTS:
        rate = statistics.median(rates[clients])
        show(f"saturated_{request.model}_c{clients}",
             f"{rate:.0f}/s, programs of one thread {alone:.0f}/s, ratio {rate / alone:.2f}, "
             f"beside bodies {beside:.0f}/s, ratio {rate / beside:.2f}, p99 over p50 "
             f"{statistics.median(tails[clients]):.1f}")


# ---- a model that is too large to be stored ----

def make_wide(folder):
    """Makes three layers of 1024 for one row; returns None if Python has no ExecuTorch."""
    try:
        import torch
        from executorch.exir import to_edge
    except ImportError as missing:
        print(f"sched: without layers of 1024: {missing}", file=sys.stderr)
        return []
    torch.manual_seed(1)
    layer, act = torch.nn.Linear, torch.nn.ReLU
    net = torch.nn.Sequential(layer(1024, 1024), act(), layer(1024, 1024), act(),
                              layer(1024, 1024)).eval()
    program = to_edge(torch.export.export(net, (torch.zeros(1, 1024),))).to_executorch()
    path = Path(folder) / f"{WIDE}.pte"
    path.write_bytes(program.buffer)
    return [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--collection", type=Path)
    parser.add_argument("models", nargs="*", type=Path)
    args = parser.parse_args()
    options = Options(args)
    if not shutil.which("wrk"):
        sys.exit("sched: no wrk")
    names = [args.collection / f"{name}.pte" for name in COLLECTED] if args.collection else \
        [MODELS / f"{name}.pte" for name in BUNDLED]
    with tempfile.TemporaryDirectory() as folder:
        wide = [] if args.models else make_wide(folder)
        paths = args.models or names + wide
        for path in paths:
            if options.workers > 1:
                measure_saturated(options, path, folder)
            measure_model(options, path, folder)
        for path in wide:
            measure_steps(options, path, folder)
        measure_beside_slow(options, paths[min(1, len(paths) - 1)], folder)
    measure_pipeline(options, args.collection)


main()
