#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what it takes to answer a picture with labels, beside the model and beside Pillow.

The model takes pictures of 224 x 224, as its card says; tests/bench/peers.py exports mobilenet_v2.
One daemon gets the same picture in two forms: as a JPEG file, and as the pixels that the model
takes, which need no decoding. Both take turns, ROUNDS times, with one client and with CLIENTS.

The table has, of the best round, the median latency, requests a second, the daemon's processor time
of a request, and the part of all processors that the daemon used. "others" is the part that other
processes used meanwhile, the clients included: latencies and rates say little where it is large.

The lines behind it are about one client: the mean time of the phase "decode", which is decoding and
resizing alone, beside Pillow's with torchvision and with numpy, where they are installed (decoding,
resizing to 256, cropping to 224, normalising); how much of the model's time that is; and the median
latency of a JPEG over the sum of decoding and the median latency of pixels.

usage: media.py --model FILE.pte --picture FILE.jpg [--clients N] [--seconds S] [--rounds N]
"""
import argparse
import io
import json
import os
import re
import socket
import statistics
import sys
import threading
import time
import urllib.request
from pathlib import Path

from daemon import Daemon

SIDE = 224
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Server(Daemon):
    """A pted with the one model."""

    def __init__(self, model):
        super().__init__(f"--model=m={model}")

    def seconds(self):
        """Processor time of all threads."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def decoding(self):
        """Requests whose files have been decoded, and the ns that this took."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/models/m/stats") as answer:
            phase = json.load(answer)["model_stats"][0]["inference_stats"]["decode"]
        return phase["count"], phase["ns"]


def machine_seconds():
    """Processor time of all processes."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    busy = sum(map(int, fields[:3])) + sum(map(int, fields[5:8]))
    return busy / os.sysconf("SC_CLK_TCK")


def message(kind, path, body, *fields):
    head = [f"POST {path} HTTP/1.1", "Host: pted", f"Content-Type: {kind}",
            f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def messages(picture):
    """The picture as a file, and as pixels; those may be any, as no time depends on them."""
    pixels = bytes(i % 251 for i in range(SIDE * SIDE * 3))
    tensor = (b'{"inputs":[{"name":"picture","datatype":"UINT8","shape":[1,%d,%d,3],'
              b'"parameters":{"binary_data_size":%d}}]}' % (SIDE, SIDE, len(pixels)))
    return {"JPEG": message("image/jpeg", "/v2/models/m/call", picture),
            "pixels": message("application/octet-stream", "/v2/models/m/infer", tensor + pixels,
                              f"Inference-Header-Content-Length: {len(tensor)}")}


def ask(connection, request):
    connection.sendall(request)
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(1 << 16) or sys.exit("media: pted closed the connection")
    head, body = got.split(b"\r\n\r\n", 1)
    left = int(re.search(rb"content-length: (\d+)", head.lower())[1]) - len(body)
    while left > 0:
        more = connection.recv(1 << 16)
        body, left = body + more, left - len(more)
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise RuntimeError(f"{head[:60]!r} {body[:300]!r}")


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port), timeout=600)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def client(port, request, end, latencies):
    with connect(port) as connection:
        while time.monotonic() < end:
            begin = time.perf_counter()
            ask(connection, request)
            latencies.append((time.perf_counter() - begin) * 1e3)


def load(daemon, request, clients, seconds):
    """(median ms, requests a second, processor ms of a request, daemon's part, others' part)"""
    latencies, begin = [], time.monotonic()
    before, all_before = daemon.seconds(), machine_seconds()
    threads = [threading.Thread(target=client,
                                args=(daemon.port, request, begin + seconds, latencies))
               for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.monotonic() - begin
    used, used_by_all = daemon.seconds() - before, machine_seconds() - all_before
    room = wall * os.cpu_count()
    return (statistics.median(latencies), len(latencies) / wall, used * 1e3 / len(latencies),
            used / room, max(0, used_by_all - used) / room)


def torchvision_ms(picture):
    """Milliseconds of Pillow with torchvision's transforms, one thread; None without them."""
    try:
        import torch
        from PIL import Image
        from torchvision import transforms
    except ImportError as why:
        print(f"media: torchvision is left out: {why}", file=sys.stderr)
        return None
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.Resize(256), transforms.CenterCrop(SIDE),
                                transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    times = []
    for _ in range(50):
        begin = time.thread_time()
        steps(Image.open(io.BytesIO(picture)).convert("RGB"))
        times.append((time.thread_time() - begin) * 1e3)
    return min(times)


def pillow_ms(picture):
    """The same with Pillow and numpy, as users write it; None if a library is missing."""
    try:
        import numpy
        from PIL import Image
    except ImportError as why:
        print(f"media: Pillow is left out: {why}", file=sys.stderr)
        return None
    mean, std = numpy.float32(MEAN), numpy.float32(STD)
    times = []
    for _ in range(50):
        begin = time.thread_time()
        image = Image.open(io.BytesIO(picture)).convert("RGB")
        width, height = image.size
        short = min(width, height)
        width, height = 256 * width // short, 256 * height // short
        image = image.resize((width, height), Image.BILINEAR)
        left, top = round((width - SIDE) / 2), round((height - SIDE) / 2)
        image = image.crop((left, top, left + SIDE, top + SIDE))
        array = (numpy.asarray(image).astype(numpy.float32) / 255 - mean) / std
        numpy.ascontiguousarray(array.transpose(2, 0, 1))
        times.append((time.thread_time() - begin) * 1e3)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description="Pictures to labels over HTTP.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--picture", required=True)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    picture = Path(args.picture).read_bytes()
    requests = messages(picture)
    kinds = [(clients, form) for clients in (1, args.clients) for form in requests]
    runs = {kind: [] for kind in kinds}
    with Server(args.model) as daemon:
        for request in requests.values():
            with connect(daemon.port) as connection:
                ask(connection, request)
        readings = []
        for _ in range(args.rounds):
            for clients, form in kinds:
                before = daemon.decoding()
                runs[clients, form].append(load(daemon, requests[form], clients, args.seconds))
                if (clients, form) == (1, "JPEG"):
                    count, ns = (b - a for a, b in zip(before, daemon.decoding()))
                    readings.append(ns / 1e6 / count)
        reading = min(readings)
    print("| clients | as | p50 ms | requests/s | processor ms | daemon | others |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for clients, form in kinds:
        p50, rate, used, part, others = min(runs[clients, form])
        print(f"| {clients} | {form} | {p50:.2f} | {rate:.1f} | {used:.2f} | {part:.0%} | "
              f"{others:.0%} |")
    model = min(run[0] for run in runs[1, "pixels"])
    whole = min(run[0] for run in runs[1, "JPEG"])
    print(f"\ndecoding: {reading:.2f} ms, {reading / model:.0%} of a request with pixels; "
          f"a request with a JPEG takes {whole / (reading + model):.2f} of their sum")
    for name, took in (("Pillow and torchvision", torchvision_ms(picture)),
                       ("Pillow and numpy", pillow_ms(picture))):
        if took:
            print(f"{name}: {took:.2f} ms; pted takes {reading / took:.0%} of it")


if __name__ == "__main__":
    main()
