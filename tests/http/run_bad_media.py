#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures and sounds from clients that mean no good, against a real daemon: damaged files of each
format in each form of a request, files whose heads lie, files that inflate, uploads that never end,
and many large pictures at once. Each is answered with what is wrong, memory stays within what is
declared, and other clients get their answers.

usage: run_bad_media.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import json
import random
import re
import struct
import sys
import threading
import time
import zlib
from pathlib import Path

import tones
from load import in_threads, wait_until
from run_http import MODELS, SOURCE, TIMEOUT_S, Client, Failure, Report, build_request, expect
from run_media import Media, b64, call, form, infer, png, post, refuse
from run_memory import is_sanitized, memory_of

CORPUS = SOURCE / "tests" / "fuzz" / "corpus" / "image"
PICTURES = ["base.jpg", "progressive.jpg", "lossy.webp", "lossless.webp", "rgb.png",
            "interlaced.png"]
KIND = "Content-Type: multipart/form-data; boundary=xx"
COPIES = 12  # damaged ones of each file in each form of a request
MIB = 1 << 20
LARGE = 3000
CLIENTS = 12
POOL_THREADS = 4


def sounds():
    folder = MODELS / "whisper"
    return {"a.wav": tones.wav(tones.tone("en", 1)), "a.flac": (folder / "sound.flac").read_bytes(),
            "a.ogg": (folder / "sound.ogg").read_bytes()}


def damage(rng, data):
    bad = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        bad[rng.randrange(4, len(bad))] = rng.randrange(256)
    return bytes(bad[:rng.randrange(len(bad) // 2, len(bad) + 1)])


def infer_json(field, data):
    return json.dumps({"inputs": [{"name": field, "datatype": "BYTES", "shape": [1],
                                   "data": [b64(data)]}]}).encode(), []


def infer_binary(field, data):
    head = json.dumps({"inputs": [{"name": field, "datatype": "BYTES", "shape": [1],
                                   "parameters": {"binary_data_size": len(data) + 4}}]}).encode()
    return (head + struct.pack("<I", len(data)) + data,
            [f"Inference-Header-Content-Length: {len(head)}"])


# Name: (path, (body, fields) for a file, what the message of an error begins with).
WAYS = {
    "body": (call, lambda field, data: (data, ["Content-Type: image/any"]), ""),
    "base64": (call, lambda field, data: (
        json.dumps({"kwargs": {field: [b64(data)]}}).encode(), []), 'kwargs["'),
    "form": (call, lambda field, data: (form((field, data, True)), [KIND]), "input '"),
    "infer": (infer, infer_json, "inputs[0] '"),
    "infer, binary": (infer, infer_binary, "inputs[0] '"),
}


def send_file(client, way, model, field, data):
    path, make, _ = WAYS[way]
    body, fields = make(field, data)
    return post(client, path(model), body, *fields)


def error_of(client):
    return json.loads(client.body)["error"]


def damaged():
    rng = random.Random(11)
    files = [("picture", "pixels", name, (CORPUS / name).read_bytes()) for name in PICTURES]
    files += [("sound", "second", name, data) for name, data in sounds().items()]
    with Media() as daemon:
        client = Client(daemon.port)
        for field, model, name, good in files:
            for way, (_, _, place) in WAYS.items():
                expect(f"{name}, {way}", send_file(client, way, model, field, good), 200)
                answer = client.body
                refused = 0
                for _ in range(COPIES):
                    status = send_file(client, way, model, field, damage(rng, good))
                    if status not in (200, 400, 413):
                        raise Failure(f"{name}, {way}: {status} {client.body[:300]!r}")
                    if status != 200:
                        refused += 1
                        expect(f"{name}, {way}: {error_of(client)!r} names the place",
                               place in error_of(client), True)
                # WAV has no checksums, so that most damage is noise; but its end is missed.
                expect(f"{name}, {way}: some are refused", refused > 0, True)
                expect(f"{name}, {way}: its end is cut off", send_file(
                    client, way, model, field, good[:len(good) * 2 // 3]), 400)
                expect(f"{name}, {way}: status after that",
                       send_file(client, way, model, field, good), 200)
                expect(f"{name}, {way}: after that", without_id(client.body), without_id(answer))
        wait_until("memory is free", lambda: memory_of(daemon)["used"] == 0)


def without_id(body):
    return re.sub(rb'"id":"[^"]*"', b"", body)


def wrong_kinds():
    """The type of a body says only that it is a file; what it is must be what the model takes."""
    sound, picture = tones.wav([0.1] * 100), (CORPUS / "base.jpg").read_bytes()
    with Media() as daemon:
        client = Client(daemon.port)
        for model, file, text in (("pixels", sound, "no sound"), ("second", picture, "no picture")):
            for kind in ("image/png", "audio/flac", "application/octet-stream"):
                refuse(client, 415, text, call(model), file, f"Content-Type: {kind}")
        for magic in (b"GIF89a", b"BM", b"II*\0", b"<svg", b"%PDF-", b"\0\0\0\x1cftypheic",
                      b"\xff\xf1"):
            for model, kind, wanted in (("pixels", "image/gif", "JPEG, PNG or WebP"),
                                        ("second", "audio/mpeg", "WAV, FLAC, MP3 or Ogg")):
                refuse(client, 400, f"expected {wanted}", call(model), magic + bytes(40),
                       f"Content-Type: {kind}")


# ---------------------------------------------------------------- files that lie or inflate

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(height, width, data, *more, depth=8, color=2, is_interlaced=False):
    """|data|: of the one IDAT, deflated."""
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, is_interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(more) + chunk(b"IDAT", data) +
            chunk(b"IEND", b""))


def deflated_zeros(count):
    """Many zeros, a thousand to a byte."""
    pack = zlib.compressobj(9)
    out = [pack.compress(bytes(min(MIB, count - at))) for at in range(0, count, MIB)]
    return b"".join(out) + pack.flush()


def jpeg_head(height, width, marker=0xc0):
    """With tables of an ordinary file, and no data of pixels."""
    file = bytearray((CORPUS / "base.jpg").read_bytes())
    at = file.index(b"\xff\xc0")
    file[at + 1] = marker
    file[at + 5:at + 9] = struct.pack(">HH", height, width)
    return bytes(file)


def webp_head(height, width):
    bits = (width - 1) | (height - 1) << 14
    data = b"\x2f" + struct.pack("<I", bits) + bytes(30)
    chunks = b"WEBPVP8L" + struct.pack("<I", len(data)) + data + b"\0" * (len(data) & 1)
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


def flac_head(rate, channels, frames):
    data = (struct.pack(">HH", 4096, 4096) + bytes(6) +
            (rate << 44 | (channels - 1) << 41 | 15 << 36 | frames).to_bytes(8, "big") + bytes(16))
    return b"fLaC\x80" + struct.pack(">I", len(data))[1:] + data + bytes(200)


def wav_head(rate, channels, size, data=b"\0" * 400):
    return (b"RIFF" + struct.pack("<I", 0x7fffffff) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * 2 * channels & 0xffffffff,
                        2 * channels, 16) + b"data" + struct.pack("<I", size) + data)


def heads():
    """Sizes that a head claims are compared with the limits before there is memory for them."""
    small = zlib.compress(b"")
    with Media() as daemon:
        client = Client(daemon.port)
        before = high_water_mib(daemon)
        for text, file in (
                ("65535 pixels a side", png_of(1 << 30, 1 << 30, small)),
                ("65535 pixels a side", png_of(0x7fffffff, 1, small, depth=1, color=0)),
                ("--image-pixels-max", jpeg_head(65500, 65500)),
                ("--image-pixels-max", webp_head(16384, 16384)),
                ("memory for requests", png_of(9990, 9990, small, depth=16, is_interlaced=True)),
                ("memory for requests", jpeg_head(9990, 9990, 0xc2)),
                ("memory for requests", webp_head(9990, 9990))):
            for way in WAYS:
                expect(f"{text}, {way}", send_file(client, way, "pixels", "picture", file), 413)
                expect(f"{text}, {way}: {error_of(client)!r}", text in error_of(client), True)
        for text, file in (
                ("--sound-seconds-max", flac_head(8000, 1, (1 << 36) - 1)),
                ("--sound-rate-max", flac_head(655350, 1, 100)),
                ("--sound-channels-max", wav_head(8000, 200, 400)),
                ("--sound-rate-max", wav_head(0x7fffffff, 1, 400))):
            for way in WAYS:
                expect(f"{text}, {way}: {client.body}",
                       send_file(client, way, "second", "sound", file), 413)
                expect(f"{text}, {way}: {error_of(client)!r}", text in error_of(client), True)
        for file in (wav_head(8000, 1, 0xfffffff0), wav_head(8000, 0, 400), wav_head(0, 1, 400)):
            status = send_file(client, "body", "second", "sound", file)
            expect(f"a wrong WAV: {status} {client.body}", status in (200, 400, 413), True)
        limit_memory(daemon, before, 16)


def high_water_mib(daemon):
    """The most memory that the process has had."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024


def limit_memory(daemon, before, mib):
    grown = high_water_mib(daemon) - before
    print(f"# memory grew by {grown:.1f} MiB at most")
    if not is_sanitized(daemon) and grown > mib:
        raise Failure(f"memory grew by {grown} MiB, expected at most {mib}")


def bombs():
    """Little data that becomes much: rows are read one by one, other chunks are not inflated."""
    bomb = deflated_zeros(64 * MIB)
    text = chunk(b"zTXt", b"a\0\0" + bomb) + chunk(b"iCCP", b"a\0\0" + bomb)
    pixels = zlib.compress(bytes(4 * 19))
    with Media("--ring-bytes", "32M") as daemon:
        client = Client(daemon.port)
        before = high_water_mib(daemon)
        for title, status, file in (
                ("rows", 200, png_of(4000, 4000, deflated_zeros(4000 * 12001))),
                ("too much", None, png_of(4, 6, bomb)),
                ("text and profile", 200, png_of(4, 6, pixels, text)),
                ("long row", 413, png_of(1, 90_000_000, bomb))):
            for way in ("body", "base64", "form"):
                got = send_file(client, way, "pixels", "picture", file)
                expect(f"{title}, {way}: {client.body[:200]!r}",
                       got in ((status,) if status else (200, 400)), True)
        limit_memory(daemon, before, 32 + 16)


def scans():
    """A progressive JPEG that repeats a scan: each costs its time, though it has few bytes."""
    file = (CORPUS / "progressive.jpg").read_bytes()
    first = file.index(b"\xff\xda")
    second = file.index(b"\xff\xc4", first)
    again = file[first:second]
    with Media() as daemon:
        client = Client(daemon.port)
        many = file[:second] + again * 2000 + file[second:]
        refuse(client, 400, "too many scans", call("pixels"), many, "Content-Type: image/jpeg")
        at = many.index(b"\xff\xc2")
        large = many[:at + 5] + struct.pack(">HH", 4000, 4000) + many[at + 9:]
        refuse(client, 400, "damaged", call("pixels"), large, "Content-Type: image/jpeg")


def nested():
    """Base64 in base64, many parts, many files, deep lists."""
    file = png([(1, 2, 3)] * 24)
    twice = b64(b64(file).encode())
    with Media() as daemon:
        client = Client(daemon.port)
        before = high_water_mib(daemon)
        refuse(client, 400, "unknown format", call("pixels"), {"args": [twice]})
        refuse(client, 400, "args[0]", call("pixels"),
               {"args": [{"base64": {"base64": b64(file)}}]})
        refuse(client, 400, "args[0]", call("pixels"),
               {"args": ["data:image/png;base64,data:image/png;base64," + b64(file)]})
        deep = b'{"args": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}"
        refuse(client, 413, "args[0]: more than 16 dims", call("pixels"), deep)
        refuse(client, 400, "expected at most 16 files", call("pixels"),
               {"args": [["iVBOR"] * 1000]})
        refuse(client, 413, "bytes of memory", call("pixels"), {"args": [["iVBOR"] * 1_000_000]})
        part = (b'--xx\r\nContent-Disposition: form-data; name="picture"; filename="f"\r\n\r\n'
                b"x\r\n")
        refuse(client, 400, "64 parts", call("pixels"), part * 100_000 + b"--xx--\r\n", KIND)
        refuse(client, 400, "", call("pixels"), b"--xx\r\n" + b"A: b\r\n" * 100_000, KIND)
        refuse(client, 400, "", call("pixels"), b"--xx" * 1_000_000, KIND)
        refuse(client, 400, "", call("pixels"), b"\r\n--x" * 1_000_000,
               "Content-Type: multipart/form-data; boundary=" + "x" * 200)
        limit_memory(daemon, before, 128)


# ---------------------------------------------------------------- time, and many at once

class Others:
    """A client that asks for small pictures all the time, while something goes on."""

    def __init__(self, daemon):
        self.port, self.is_over = daemon.port, threading.Event()
        self.problem, self.count = None, 0
        self.thread = threading.Thread(target=self.ask)

    def ask(self):
        try:
            client = Client(self.port)
            while not self.is_over.is_set():
                expect("another client", post(client, call("pixels"), png([(9, 9, 9)] * 24),
                                              "Content-Type: image/png"), 200)
                self.count += 1
        except (Failure, OSError) as problem:
            self.problem = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.is_over.set()
        self.thread.join(TIMEOUT_S)
        if kind is None and (self.problem or not self.count):
            raise Failure(f"others: {self.count} answers, {self.problem}")


def uploads():
    """An upload that stops or crawls is answered 408; an endless one 413. Others are served."""
    head = build_request("POST", call("pixels"), None, ["Content-Type: image/png"])[:-2]
    file = png([(1, 2, 3)] * 24)
    with Media("--body-timeout", "300ms", "--rate-window", "300ms", "--rate-min", "100000",
               "--body-bytes-max", "1M") as daemon:
        with Others(daemon):
            stopped = Client(daemon.port)
            stopped.send(head + b"Content-Length: 500000\r\n\r\n" + file)
            expect("stopped", stopped.answer(), 408)
            crawling = Client(daemon.port)
            crawling.send(head + b"Content-Length: 500000\r\n\r\n")
            expect("crawling", crawl(crawling, file), 408)
            endless = Client(daemon.port)
            endless.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(40):
                endless.send(b"10000\r\n" + bytes(65536) + b"\r\n")
            expect("endless", endless.answer(), 413)
            announced = Client(daemon.port)
            announced.send(head + b"Content-Length: 99999999999\r\n\r\n")
            expect("announced", announced.answer(), 413)
        wait_until("memory is free", lambda: memory_of(daemon)["used"] == 0)


def crawl(client, file):
    """A byte now and then, until the answer comes."""
    client.socket.settimeout(0.05)
    deadline = time.monotonic() + TIMEOUT_S
    at = 0
    while time.monotonic() < deadline:
        client.send(file[at % len(file):at % len(file) + 1])
        at += 1
        try:
            client.receive()
        except TimeoutError:
            continue
        client.socket.settimeout(TIMEOUT_S)
        return client.answer()
    raise Failure("no answer")


def large_at_once():
    """Each takes up to 27 of 64 MB while it is read. Small ones are served all the time."""
    file = png_of(LARGE, LARGE, deflated_zeros(LARGE * (3 * LARGE + 1)), is_interlaced=False)
    whole = png_of(LARGE, LARGE, deflated_zeros(adam7_bytes(LARGE)), is_interlaced=True)
    with Media("--ring-bytes", "64M") as daemon:
        before = high_water_mib(daemon)

        def run(number):
            client = Client(daemon.port)
            way = list(WAYS)[number % len(WAYS)]
            for body in (whole, file):
                status = send_file(client, way, "pixels", "picture", body)
                expect(f"{way}: {client.body[:200]!r}", status in (200, 429), True)
                statuses.append(status)

        statuses = []
        with Others(daemon):
            in_threads(CLIENTS, run)
        print(f"# {statuses.count(200)} of {len(statuses)} large pictures were read")
        expect("some are read", 200 in statuses, True)
        limit_memory(daemon, before, 64 + 16)
        wait_until("memory is free", lambda: memory_of(daemon)["used"] == 0)


class Blockers:
    """Large pictures of |count| clients inside of the block. An answered one is sent again."""

    def __init__(self, daemon, count, ways):
        self.daemon, self.ways, self.is_over = daemon, ways, threading.Event()
        self.statuses = []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(count)]

    def run(self, number):
        client = Client(self.daemon.port)
        way = self.ways[number % len(self.ways)]
        while not self.is_over.is_set():
            self.statuses.append(send_file(client, way, "pixels", "picture", BLOCKER))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join(TIMEOUT_S)


def heavy_tasks(daemon):
    client = Client(daemon.port)
    client.send(build_request("GET", "/metrics"))
    expect("metrics", client.answer(), 200)
    return int(re.search(rb'pted_pool_tasks\{kind="heavy"\} (\d+)', client.body)[1])


def large_wait_in_a_row():
    """Clients with large pictures hold all threads but two. A small picture is answered while more
    of them wait than there are threads, and each of them is answered in the end."""
    small = png([(9, 9, 9)] * 24)
    with Media() as daemon:
        client = Client(daemon.port)
        with Blockers(daemon, CLIENTS, list(WAYS)) as blockers:
            for _ in range(5):
                wait_until("many wait", lambda: heavy_tasks(daemon) > POOL_THREADS)
                before = len(blockers.statuses)
                expect("a small one", post(client, call("pixels"), small,
                                           "Content-Type: image/png"), 200)
                expect("large ones that were answered meanwhile, at most",
                       len(blockers.statuses) - before <= POOL_THREADS, True)
        expect("large ones", set(blockers.statuses), {200})
        wait_until("nothing waits", lambda: heavy_tasks(daemon) == 0)


def waiting_ends():
    """A large picture that waits for its turn ends at its deadline, or when its client goes."""
    with Media("--request-timeout", "400ms", "--light-bytes-max", "1") as daemon:
        with Blockers(daemon, CLIENTS, ["body", "base64"]) as blockers:
            wait_until("some are late", lambda: 504 in blockers.statuses)
        wait_until("nothing waits", lambda: heavy_tasks(daemon) == 0)
    file = b64(BLOCKER)
    body = json.dumps({"args": [[file] * 3]}).encode()
    with Media() as daemon:
        clients = [Client(daemon.port) for _ in range(CLIENTS)]
        for client in clients:
            client.send(build_request("POST", call("pixels"), body))
        wait_until("many wait", lambda: heavy_tasks(daemon) > POOL_THREADS)
        for client in clients:
            client.reset()
        wait_until("nothing waits", lambda: heavy_tasks(daemon) == 0)
        wait_until("memory is free", lambda: memory_of(daemon)["used"] == 0)
        client = Client(daemon.port)
        expect("status after that", post(client, call("pixels"), {"args": [[file, file]]}), 200)


def adam7_bytes(side):
    """Bytes of the rows of all seven passes of a square picture of RGB."""
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
              (0, 1, 1, 2)]
    return sum(len(range(y, side, dy)) * (1 + 3 * len(range(x, side, dx)))
               for x, y, dx, dy in passes)


# A picture of 16 M pixels in few bytes.
BLOCKER = png_of(4000, 4000, deflated_zeros(4000 * 12001))


def main():
    for name in ("jpeg", "png16", "webp", "sndfile", "soxr"):
        if not ctypes.util.find_library(name):
            print(f"SKIP: lib{name} is not installed")
            return 77
    report = Report()
    checks = (damaged, wrong_kinds, heads, bombs, scans, nested, uploads, large_at_once,
              large_wait_in_a_row, waiting_ends)
    report.run_all([check for check in checks if check.__name__ in sys.argv[1:]] or checks)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
