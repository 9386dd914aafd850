#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what orders of memory spare, beside another build of pted: ResNet-18 and MobileNetV2
from a JPEG and from tensors, and pipelines of two models that read and write channels-last.

Each build has a daemon of its own. A pipeline is one of these networks, cut in two where its tensor
is large. Tensors come as bytes behind the JSON: `rows` are row-major, `pixels` are channels-last,
which their strides say, so that builds without "order" take them as well. Before anything is timed,
all forms and both builds must give the same bytes.

In each of ROUNDS rounds the daemons take turns, SLICES times for each case. A round gives the ratio
of two medians: of the time of a request, and of the daemon's processor time for it. The table has
the median of these ratios, this build's time over the other's, with their quartiles: below 1, this
build is faster. The least processor time of a request, of all slices, is what other programs have
disturbed least. With the same build on both sides the table says how much chance there is in it.

The networks have random weights, are exported once with torchvision and ExecuTorch, and stay in the
folder of --cache.

usage: orders.py --beside PTED --picture FILE.jpg --cache FOLDER [--rounds N] [--workers N]
                 [--cases NAME,...]
"""
import argparse
import json
import statistics
import sys
import time
from collections import OrderedDict
from pathlib import Path

import daemon
import peers
from media import SIDE, Server, connect, message

CUTS = {"mobilenet_v2": 4, "resnet18": 5}  # children in the first half
NETWORKS = tuple(CUTS)
SLICES = 6
REQUESTS = 2  # of a slice
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


# ---- models --------------------------------------------------------------------------------------

def layers_of(name, network):
    import torch
    if name == "resnet18":
        children = list(network.children())
        return [*children[:-1], torch.nn.Flatten(1), children[-1]]
    pool = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(1))
    return [*network.features, pool, network.classifier]


def join(layers):
    """One network of |layers|, whose weights have names that begin with a letter: one whose names
    are "0.0.weight" is not exported."""
    import torch
    return torch.nn.Sequential(OrderedDict((f"layer{i}", layer) for i, layer in enumerate(layers)))


def export_one(name, cut, paths):
    import torch
    peers.say(f"{name}: exporting")
    network, value = peers.make(name)
    layers = layers_of(name, network)
    first, second = join(layers[:cut]), join(layers[cut:])
    with torch.no_grad():
        between = first(value)
    for model, given, path in zip((network, first, second), (value, value, between), paths):
        peers.export_pte(model, given, path)


def export(cache):
    """Writes NAME.pte, NAME_first.pte and NAME_second.pte of each network, a card and pipelines."""
    for name, cut in CUTS.items():
        paths = [cache / f"{name}{part}.pte" for part in ("", "_first", "_second")]
        if not all(path.exists() for path in paths):
            export_one(name, cut, paths)
    card = {"inputs": [{"name": "image", "image": {"resize": 256, "crop": [SIDE, SIDE],
                                                   "mean": MEAN, "std": STD}}]}
    (cache / "card.json").write_text(json.dumps(card))
    (cache / "pipelines.json").write_text(json.dumps({
        f"{name}_two": {"inputs": ["x"], "steps": [
            {"model": f"{name}_first", "inputs": [{"input": 0}]},
            {"model": f"{name}_second", "inputs": [{"from": 0, "output": 0}]}],
            "outputs": [{"name": "y", "from": 1, "output": 0}]} for name in NETWORKS}))


class Build(Server):
    """A daemon of one build, with all models, the networks also with a card."""

    def __init__(self, program, cache, workers):
        daemon.PTED = Path(program).resolve()
        models = [f"--model={name}{part}={cache / f'{name}{part}.pte'}"
                  for name in NETWORKS for part in ("", "_first", "_second")]
        photos = [option for name in NETWORKS for option in (
            f"--model={name}_photo={cache / f'{name}.pte'}",
            f"--card={name}_photo={cache / 'card.json'}")]
        daemon.Daemon.__init__(self, f"--workers={workers}", *models, *photos,
                               f"--pipeline={cache / 'pipelines.json'}")
        self.connection = connect(self.port)


# ---- requests ------------------------------------------------------------------------------------

def tensor(model, values, strides):
    """A request with |values|, a numpy array, as `infer` takes it."""
    data = values.tobytes()
    parameters = {"binary_data_size": len(data), **({"strides": strides} if strides else {})}
    text = json.dumps({"inputs": [{"name": "input_0", "datatype": "FP32",
                                   "shape": [1, 3, SIDE, SIDE], "parameters": parameters}],
                       "parameters": {"binary_data_output": True}}).encode()
    return message("application/octet-stream", f"/v2/models/{model}/infer", text + data,
                   f"Inference-Header-Content-Length: {len(text)}")


def cases_of(picture):
    """(name, request) by case; the cases of one model have the same answer."""
    import numpy
    pixels = numpy.random.default_rng(0).normal(size=(SIDE, SIDE, 3)).astype("<f4")
    rows = numpy.ascontiguousarray(pixels.transpose(2, 0, 1))
    strides = [SIDE * SIDE * 12, 4, SIDE * 12, 12]
    cases = {}
    for name in NETWORKS:
        cases[f"{name} JPEG"] = message("image/jpeg",
                                        f"/v2/models/{name}_photo/infer?binary=1", picture)
        for model in (name, f"{name}_two"):
            cases[f"{model} rows"] = tensor(model, rows, None)
            cases[f"{model} pixels"] = tensor(model, pixels, strides)
    return cases


def answer(connection, request):
    """The bytes behind the head of the answer."""
    connection.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(1 << 16) or sys.exit("orders: pted closed the connection")
    head, body = got.split(b"\r\n\r\n", 1)
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields[b"content-length"]):
        body += connection.recv(1 << 16) or sys.exit("orders: pted closed the connection")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        sys.exit(f"orders: {head[:60]!r} {body[:300]!r}")
    return body[int(fields.get(b"inference-header-content-length", 0)):]


def check(builds, cases):
    """Equal bytes of a case in both builds, and of the forms of one model."""
    seen = {}
    for name, request in cases.items():
        for build in builds:
            key = name if name.endswith("JPEG") else name.split()[0]
            got = answer(build.connection, request)
            if seen.setdefault(key, got) != got or not got:
                sys.exit(f"orders: {name}: the answers differ")


def measure(build, request):
    """Milliseconds of each request of a slice, and of the processor for one."""
    times, used = [], build.seconds()
    for _ in range(REQUESTS):
        begin = time.perf_counter()
        answer(build.connection, request)
        times.append((time.perf_counter() - begin) * 1e3)
    return times, (build.seconds() - used) * 1e3 / REQUESTS


def run_round(builds, request):
    """(wall ms, processor ms, least processor ms) of each build, whose slices take turns."""
    times, used = ([], []), ([], [])
    for k in range(SLICES):
        for side in (0, 1) if k % 2 else (1, 0):
            some, processor = measure(builds[side], request)
            times[side].extend(some)
            used[side].append(processor)
    return [(statistics.median(times[side]), statistics.median(used[side]), min(used[side]))
            for side in (0, 1)]


def ratios(rounds, what):
    """The median of a round's ratio, and its quartiles, as text."""
    found = [ours[what] / theirs[what] for ours, theirs in rounds]
    low, middle, high = statistics.quantiles(found, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


def main():
    parser = argparse.ArgumentParser(description="Orders of memory beside another build.")
    parser.add_argument("--beside", required=True, help="pted of the other build")
    parser.add_argument("--picture", required=True, type=Path)
    parser.add_argument("--cache", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--cases", help="those whose names begin so, with commas")
    args = parser.parse_args()
    if args.rounds < 2:
        parser.error("--rounds: expected 2 or more")
    args.cache.mkdir(exist_ok=True)
    export(args.cache)
    cases = cases_of(args.picture.read_bytes())
    if args.cases:
        wanted = tuple(args.cases.split(","))
        cases = {name: request for name, request in cases.items() if name.startswith(wanted)}
    rounds = {name: [] for name in cases}
    ours = daemon.PTED
    with Build(ours, args.cache, args.workers) as here, \
            Build(args.beside, args.cache, args.workers) as beside:
        check((here, beside), cases)
        for _ in range(args.rounds):
            for name, request in cases.items():
                rounds[name].append(run_round((here, beside), request))
    print("| case | time | processor time | least processor ms | beside | over it |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, found in rounds.items():
        here, beside = (min(row[side][2] for row in found) for side in (0, 1))
        print(f"| {name} | {ratios(found, 0)} | {ratios(found, 1)} | {here:.2f} | {beside:.2f} | "
              f"{here / beside:.3f} |")


if __name__ == "__main__":
    main()
