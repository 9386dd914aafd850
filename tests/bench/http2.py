#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HTTP/2 and gRPC: what they cost beside others, side by side in one run, as lines "name: value".

    calls     `add` by gRPC beside a server of libuv and nghttp2 alone that answers each request
              with the same message, beside the echo server of grpcio, and beside HTTP/1: requests a
              second by h2load, and microseconds of the server's processor time for each
    large     a tensor of 602 KB, by gRPC in frames of 1 MiB and of 16 KiB and in the binary form
              of HTTP/1: processor time of the loop. The answer is as long, unless --model names a
              program that takes 1x3x224x224 floats
    streams   memory of 1,000 open calls of gRPC
    beside    the time of a good client's calls beside slow readers, slow writers and floods: p50
              and p99, divided by those without them, and the floods that the daemon has ended

Processor time is that of the kernel's scheduler (/proc/PID/task/TID/schedstat), so other load on
the machine spoils it less than requests a second. Rounds take turns; medians are printed.

usage: http2.py [--rounds N] [--seconds S] [--model FILE] [--peer NAME=COMMAND]... [PART...]

PYTHON should have grpcio, for its echo server; top_srcdir and top_builddir are as in make check;
calls needs h2load and wrk.
"""
import argparse
import json
import multiprocessing
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
os.environ.setdefault("top_srcdir", str(TOP))
os.environ.setdefault("top_builddir", str(BUILD))
sys.path.insert(0, str(TOP / "tests" / "http"))

from http2_client import (CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS,  # noqa: E402
                          INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, PING, RST_STREAM, SETTINGS,
                          WINDOW_UPDATE, Answer, Http2Client, block_of, frame, request_fields,
                          setting)
from run_daemon import ADD  # noqa: E402
from run_generate import metric  # noqa: E402
from run_http import MODELS, Client, Daemon, Failure  # noqa: E402

INFER = "/inference.GRPCInferenceService/ModelInfer"
FIELDS = (("content-type", "application/grpc"), ("te", "trailers"))
ROWS = 2352  # of 64 floats: 602,112 bytes
STREAMS = 1000
ECHO = """
import sys, grpc
from concurrent import futures
class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers((Echo(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
print(f"listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
server.wait_for_termination()
"""


# ---------------------------------------------------------------- messages

def varint(value):
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def message_of(model, tensors):
    """A ModelInferRequest with raw_input_contents, and its prefix."""
    inputs = b"".join(field(5, field(1, name.encode()) + field(2, b"FP32") +
                            field(3, b"".join(map(varint, shape))))
                      for name, shape, _ in tensors)
    raw = b"".join(field(7, data) for _, _, data in tensors)
    text = field(1, model.encode()) + inputs + raw
    return b"\0" + struct.pack(">I", len(text)) + text


def add_message():
    ones = struct.pack("<6f", *[1] * 6)
    return message_of("add", [("input_0", (2, 3), ones), ("input_1", (2, 3), ones)])


def call(client, message):
    """Makes a call as soon as windows allow it; returns the message of the answer."""
    stream = client.next
    client.next += 2
    answer = client.answers[stream] = Answer()
    most = client.settings.get(MAX_FRAME_SIZE, 16384)
    head = frame(HEADERS, END_HEADERS, stream, block_of(request_fields("POST", INFER, FIELDS)))
    sent = 0
    while sent < len(message):
        room = 65535 + min(client.windows.get(stream, 0),
                           client.windows.get(0, 0) - client.used)
        piece = message[sent:sent + min(most, room - sent)] if room > sent else b""
        if piece:
            sent += len(piece)
            client.send(head, frame(DATA, END_STREAM if sent == len(message) else 0, stream, piece))
            head = b""
        else:
            client.read()
    client.used += sent
    client.until(lambda: answer.is_over)
    if dict(answer.heads[-1]).get("grpc-status") != "0":
        raise Failure(f"{answer.heads}")
    del client.answers[stream]
    return answer.body


def new_client(port):
    client = Http2Client(port, setting(INITIAL_WINDOW_SIZE, 1 << 24), gives=False)
    client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
    client.used = 0
    client.ping()
    return client


# ---------------------------------------------------------------- servers

def spent_us(process, which="all"):
    """Processor time of all threads of a server so far, or of its loop alone."""
    total = 0
    thread = "*" if which == "all" else process.pid
    for path in Path(f"/proc/{process.pid}/task").glob(f"{thread}/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except OSError:
            pass  # a thread has ended
    return total / 1000


def start(*command):
    """A server of another project, and its port."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
        if found:
            return process, int(found[1])
    process.wait()
    raise Failure(f"{command[0]} did not start")


def load(port, path, seconds):
    """Requests a second of h2load, and their number."""
    done = subprocess.run(["h2load", "-t1", "-c32", "-m1", f"-D{seconds}", "-d", path,
                           *(part for name, value in FIELDS for part in ("-H", f"{name}: {value}")),
                           f"http://127.0.0.1:{port}{INFER}"],
                          capture_output=True, text=True, check=True).stdout
    succeeded = int(re.search(r"(\d+) succeeded", done)[1])
    return float(re.search(r"([\d.]+) req/s", done)[1]), succeeded


def load_http1(port, script, seconds):
    done = subprocess.run(["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", script,
                           f"http://127.0.0.1:{port}/v2/models/add/infer"],
                          capture_output=True, text=True, check=True).stdout
    return (float(re.search(r"Requests/sec:\s*([\d.]+)", done)[1]),
            int(re.search(r"(\d+) requests in", done)[1]))


# ---------------------------------------------------------------- parts

def say(name, value, digits=2):
    print(f"{name}: {value:.{digits}f}", flush=True)


def wrk_script(folder):
    """The request of `add` with binary tensors."""
    inputs = [{"name": f"input_{at}", "shape": [2, 3], "datatype": "FP32",
               "parameters": {"binary_data_size": 24}} for at in range(2)]
    head = json.dumps({"parameters": {"binary_data_output": True}, "inputs": inputs})
    path = Path(folder) / "binary.lua"
    path.write_text(f"""wrk.method = "POST"
local head = '{head}'
wrk.headers["Inference-Header-Content-Length"] = #head
wrk.body = head .. string.rep("\\0\\0\\128\\63", 12)
""")
    return str(path)


def start_peers(servers, answer, peers):
    servers["bare"] = start(BUILD / "tests" / "bench" / "bare_grpc", answer)
    python = os.environ.get("PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import grpc"], check=False,
                      stderr=subprocess.DEVNULL).returncode == 0:
        servers["grpcio"] = start(python, "-c", ECHO)
    for peer in peers:
        name, _, command = peer.partition("=")
        servers[name] = start(*command.split())


def calls(options):
    if not shutil.which("h2load") or not shutil.which("wrk"):
        raise SystemExit("calls: h2load or wrk is missing")
    with tempfile.TemporaryDirectory() as folder, Daemon([ADD]) as daemon:
        request, answer = Path(folder) / "request", Path(folder) / "answer"
        request.write_bytes(add_message())
        answer.write_bytes(call(new_client(daemon.port), add_message()))
        servers = {"pted": (daemon.process, daemon.port)}
        script = wrk_script(folder)
        try:
            start_peers(servers, answer, options.peer)
            rounds = {name: [] for name in [*servers, "http1"]}
            for _ in range(options.rounds):
                for name in rounds:
                    process, port = servers["pted" if name == "http1" else name]
                    before = spent_us(process)
                    rate, count = (load_http1(port, script, options.seconds) if name == "http1" else
                                   load(port, str(request), options.seconds))
                    rounds[name].append((rate, (spent_us(process) - before) / count))
        finally:
            for name, (process, _) in servers.items():
                if name != "pted":
                    process.kill()
                    process.wait()
    ours = rounds["pted"]
    for name, found in rounds.items():
        say(f"{name}_requests_per_s", statistics.median(rate for rate, _ in found), 0)
        say(f"{name}_cpu_us", statistics.median(cost for _, cost in found), 1)
        if name != "pted":
            pairs = list(zip(ours, found))
            say(f"pted_over_{name}", statistics.median(a[0] / b[0] for a, b in pairs))
            say(f"pted_over_{name}_by_cpu", statistics.median(b[1] / a[1] for a, b in pairs))


def large(options):
    path = Path(options.model or MODELS / "wide.pte")
    shape = (1, 3, 224, 224) if options.model else (ROWS, 64)
    data = bytes(ROWS * 64 * 4)
    message = message_of(path.stem, [("input_0", shape, data)])
    head = json.dumps({"inputs": [{"name": "input_0", "datatype": "FP32", "shape": shape,
                                   "parameters": {"binary_data_size": len(data)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    body = head + data
    text = (f"POST /v2/models/{path.stem}/infer HTTP/1.1\r\nHost: a\r\n"
            f"Content-Length: {len(body)}\r\n"
            f"Inference-Header-Content-Length: {len(head)}\r\n\r\n").encode() + body
    with Daemon([str(path), "--workers=1"]) as daemon:
        grpc, narrow, http = new_client(daemon.port), new_client(daemon.port), Client(daemon.port)
        narrow.settings[MAX_FRAME_SIZE] = 16384

        def ask_http():
            http.send(text)
            if http.answer() != 200:
                raise Failure("HTTP/1")

        ways = {"http1": ask_http, "grpc": lambda: call(grpc, message),
                "grpc_small_frames": lambda: call(narrow, message)}
        found = {name: [] for name in ways}
        for at in range(40 * options.rounds):
            for name, ask in ways.items():
                before = spent_us(daemon.process, "loop")
                ask()
                if at >= options.rounds:
                    found[name].append(spent_us(daemon.process, "loop") - before)
    for name, costs in found.items():
        say(f"large_{name}_cpu_us", statistics.median(costs), 1)
    for name in ("grpc", "grpc_small_frames"):
        say(f"large_{name}_over_http1", statistics.median(
            a / b for a, b in zip(found[name], found["http1"])))


def resident_kib(process):
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(re.search(r"Pss_Anon:\s+(\d+)", text)[1])


def streams(_options):
    """Calls whose message has not come, on connections of 250 each."""
    with Daemon([ADD]) as daemon:
        clients = [new_client(daemon.port) for _ in range(STREAMS // 250)]
        for client in clients:
            call(client, add_message())
        before = resident_kib(daemon.process)
        for client in clients:
            for _ in range(250):
                stream = client.begin("POST", INFER, FIELDS, ends=False)
                client.send(frame(DATA, 0, stream, add_message()[:20]))
            client.ping()
        more = resident_kib(daemon.process) - before
        say("open_streams_kib_each", more / STREAMS)


# ---- beside others

def keep(port, begin, step, pause):
    """A crowd of one kind, in a process of its own: each client again when it has ended."""
    os.nice(10)
    clients = []
    while True:
        try:
            if len(clients) < 32:
                clients.append(begin(port))
            for client in clients:
                step(client)
        except (Failure, OSError):
            clients.clear()
        time.sleep(pause)


def slow_reader(port):
    client = Http2Client(port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
    for _ in range(50):
        client.begin("GET", "/metrics")
    return client


def slow_writer(port):
    client = Http2Client(port)
    client.slow = [client.begin("POST", INFER, FIELDS, ends=False) for _ in range(50)]
    return client


def give_little(client):
    client.send(*(frame(WINDOW_UPDATE, 0, 2 * at + 1, struct.pack(">I", 1)) for at in range(50)))


def write_little(client):
    client.send(*(frame(DATA, 0, stream, b"\0") for stream in client.slow))


def flood(piece):
    def step(client):
        client.send(piece)
        client.client.socket.settimeout(1)
        try:
            while client.client.socket.recv(1 << 16):
                pass
        finally:
            client.close()
        raise Failure("ended")
    return step


def resets():
    block = block_of(request_fields("GET", "/v2"))
    return b"".join(frame(HEADERS, END_HEADERS | END_STREAM, at, block) +
                    frame(RST_STREAM, 0, at, bytes(4)) for at in range(1, 2001, 2))


CROWDS = {"slow_readers": (slow_reader, give_little, 0.05),
          "slow_writers": (slow_writer, write_little, 0.05),
          "resets": (Http2Client, flood(resets()), 0.01),
          "pings": (Http2Client, flood(frame(PING, 0, 0, bytes(8)) * 1300), 0.01),
          "settings": (Http2Client, flood(frame(SETTINGS) * 200), 0.01),
          "continuations": (Http2Client, flood(frame(HEADERS, 0, 1, b"\x82") +
                                               frame(CONTINUATION, 0, 1) * 50), 0.01)}


def times_of(client, count):
    found = []
    for _ in range(count):
        began = time.perf_counter()
        call(client, add_message())
        found.append(time.perf_counter() - began)
        time.sleep(0.001)
    return sorted(found)


def beside(options):
    with Daemon([ADD]) as daemon:
        client = new_client(daemon.port)
        times_of(client, 200)
        for name, crowd in CROWDS.items():
            ratios, tails, worst = [], [], []
            for _ in range(options.rounds):
                alone = times_of(client, 400)
                other = multiprocessing.Process(target=keep, args=(daemon.port, *crowd))
                other.start()
                time.sleep(0.5)
                found = times_of(client, 400)
                other.terminate()
                other.join()
                ratios.append(found[200] / alone[200])
                tails.append(found[396] / alone[396])
                worst.append(found[396] * 1000)
            say(f"beside_{name}_p50_ratio", statistics.median(ratios))
            say(f"beside_{name}_p99_ratio", statistics.median(tails))
            say(f"beside_{name}_p99_ms", statistics.median(worst))
        for kind in ("resets", "pings", "settings", "continuations"):
            say(f"floods_ended_{kind}", metric(Client(daemon.port), "pted_http2_floods_total",
                                               f'kind="{kind}"'), 0)


PARTS = {"calls": calls, "large": large, "streams": streams, "beside": beside}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--model", metavar="FILE")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND",
                        help="another echo server of gRPC, which says where it listens on stderr")
    parser.add_argument("part", nargs="*", default=list(PARTS), choices=[*PARTS, []])
    options = parser.parse_args()
    for part in options.part:
        PARTS[part](options)


if __name__ == "__main__":
    main()
