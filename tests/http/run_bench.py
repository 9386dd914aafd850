#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`pte bench` against a real daemon, whose own statistics have to agree, and against a server of
this file, whose delays, stalls and errors are known.

usage: run_bench.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import csv
import io
import json
import os
import re
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from run_access import INFER, line
from run_http import BUILD, MODELS, TIMEOUT_S, Daemon, Failure, Report, expect
from run_pte import npy

PTE = os.environ.get("PTE", str(BUILD / "pte"))
ADD = str(MODELS / "add.pte")
DIGITS = str(MODELS / "digits.pte")
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.lower().endswith("_proxy") and name != "PTED_TOKEN"}
SKIPPED = 77
METADATA = json.dumps({"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [4]}],
                       "outputs": []})


def command(*arguments):
    return [PTE, "bench", "--no-plot", "--warm-up=0s", *arguments]


def bench(*arguments, status=0):
    """Runs it; the process."""
    done = subprocess.run(command(*arguments), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=False, env=ENVIRONMENT)
    if done.returncode != status:
        raise Failure(f"{arguments}: status {done.returncode}, expected {status}: {done.stdout} "
                      f"{done.stderr}")
    return done


def steps(*arguments, status=0):
    """The steps of the results in JSON."""
    found = json.loads(bench(*arguments, "--json=-", status=status).stdout)["steps"]
    for step in found:
        expect("a share of the time", 0 <= step["bench_starved"] <= 1, True)
    return found


def step(*arguments, status=0):
    found = steps(*arguments, status=status)
    expect("steps", len(found), 1)
    return found[0]


def url(daemon, model="add"):
    return f"http://127.0.0.1:{daemon.port}/{model}"


def add_up(found):
    """Each request that began has one outcome."""
    outcomes = sum(found["statuses"].values()) + sum(found["failures"].values())
    expect("requests", found["requests"], outcomes + found["abandoned"])
    expect("ok", found["ok"], found["statuses"].get("200", 0))
    expect("failed", found["failed"], outcomes - found["ok"] + found.get("unsent", 0))
    if found["ok"]:
        order = ["min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p99_9_ms", "p99_99_ms",
                 "max_ms"]
        values = [found[name] for name in order]
        expect("order", values, sorted(values))
        expect("mean", values[0] <= found["mean_ms"] <= values[-1], True)


# ---- a server whose behaviour is known ----

class Fake(socketserver.ThreadingTCPServer):
    """Serves the model m. |answer(number)| says what request |number| gets: bytes that end the
    connection, or a status, after which it stays open. With |is_serial| one runs at a time."""
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, answer, metadata=METADATA, is_serial=False):
        super().__init__(("127.0.0.1", 0), FakeHandler)
        self.answer = answer
        self.metadata = metadata
        self.lock = threading.Lock()
        self.serial = threading.Lock() if is_serial else None
        self.requests = 0
        self.bodies = []
        self.begun = threading.Condition(self.lock)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *why):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # the bench has closed the connection

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/m"

    def take(self, body):
        with self.lock:
            self.requests += 1
            self.bodies.append(body)
            self.begun.notify_all()
            return self.requests

    def wait_for(self, count):
        with self.lock:
            if not self.begun.wait_for(lambda: self.requests >= count, TIMEOUT_S):
                raise Failure(f"{self.requests} requests, expected {count}")


class FakeHandler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def respond(self, status, body):
        self.wfile.write(f"HTTP/1.1 {status} Text\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                         + body)

    def infer(self, body):
        number = self.server.take(body)
        if self.server.serial:
            with self.server.serial:
                answer = self.server.answer(number)
        else:
            answer = self.server.answer(number)
        if isinstance(answer, bytes):
            self.wfile.write(answer)
            return False
        self.respond(answer, b'{"error":"no"}' if answer != 200 else b"{}")
        return True

    def handle(self):
        while True:
            first = self.rfile.readline()
            length = 0
            for field in iter(self.rfile.readline, b"\r\n"):
                if not field:
                    return
                name, _, value = field.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not first:
                return
            body = self.rfile.read(length)
            if first.startswith(b"POST"):
                if not self.infer(body):
                    return
            elif first.split()[1] == b"/v2/models/m":
                self.respond(200, self.server.metadata.encode())
            else:
                self.respond(404, b"{}")


# ---- a daemon ----

def counts_agree():
    """Requests, rows and executions are those that the daemon has counted."""
    with Daemon([ADD, DIGITS]) as daemon:
        found = step(url(daemon), "--clients=4", "--requests=300")
        add_up(found)
        expect("ok", (found["ok"], found["failed"]), (300, 0))
        expect("server", (found["server_requests"], found["server_failed"]), (300, 0))
        expect("no rows", found["server_rows"], 300)
        found = step(url(daemon, "digits"), "--clients=3", "--requests=100", "--form=json",
                     "--shape=input_0=5x1x8x8")
        expect("server", (found["server_requests"], found["server_rows"]), (100, 500))
        expect("rows", round(found["rows_per_s"] / found["requests_per_s"], 3), 5)
        expect("batch", found["server_executions"] <= 100, True)
        found = step(url(daemon), "--rate=200", "--arrivals=fixed", "--duration=400ms")
        add_up(found)
        expect("fixed arrivals", (found["requests"], found["server_requests"]), (80, 80))
        first, second = steps(url(daemon), "--rate=100,300", "--requests=30")
        for found in (first, second):
            add_up(found)
            expect("each step", (found["requests"], found["server_requests"]), (30, 30))
        expect("rates", (first["rate"], second["rate"]), (100, 300))
        with_warm_up = json.loads(subprocess.run(
            [PTE, "bench", url(daemon), "--warm-up=100ms", "--requests=20", "--json=-"],
            capture_output=True, timeout=TIMEOUT_S, check=True, env=ENVIRONMENT).stdout)
        expect("without the warm-up", with_warm_up["steps"][0]["server_requests"], 20)
        expect("server's name", with_warm_up["server"].startswith("pted "), True)


def text_and_files():
    """The table, the plots, CSV and JSON files have the same figures."""
    with Daemon([ADD]) as daemon, tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("a.csv", "a.json")]
        done = subprocess.run(
            [PTE, "bench", url(daemon), "--warm-up=0s", "--clients=1..3x3", "--requests=50",
             f"--csv={paths[0]}", f"--json={paths[1]}"], capture_output=True, text=True,
            timeout=TIMEOUT_S, check=True, env=ENVIRONMENT)
        rows = list(csv.DictReader(io.StringIO(paths[0].read_text())))
        document = json.loads(paths[1].read_text())
        expect("steps", (len(rows), len(document["steps"])), (3, 3))
        for row, found in zip(rows, document["steps"]):
            for name, value in row.items():
                if name not in ("loop", "failures") and value:
                    expect(name, float(value), float(found[name]))
            absent = {name for name, value in row.items() if not value} - {"failures"}
            expect("absent", absent & set(found), set())
        expect("inputs", document["inputs"],
               [{"name": f"input_{i}", "datatype": "FP32", "shape": [2, 3]} for i in (0, 1)])
        for pattern in (r"^model +add at http://127", r"^ clients +req/s +failed +p50 ",
                        r"^ +1 +[\d,.]+ +0 ", r"latency +ms: o p50, \+ p99, \* p99\.9",
                        r"^ +1 +2 +3$"):
            if not re.search(pattern, done.stdout, re.MULTILINE):
                raise Failure(f"no {pattern!r} in {done.stdout}")
        done = subprocess.run([PTE, "bench", url(daemon), "--warm-up=0s", "--requests=9"],
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
                              env=ENVIRONMENT)
        for pattern in (r"^requests  9 answered in ", r"^server    9 rows in 9 executions",
                        r"^latency +min +mean +p50 +p90 +p95 +p99 +p99\.9 +p99\.99 +max$",
                        r" ms +\d+\.\d\d % #"):
            if not re.search(pattern, done.stdout, re.MULTILINE):
                raise Failure(f"no {pattern!r} in {done.stdout}")
        bench(url(daemon), "--requests=3", f"--csv={folder}/no/a.csv", status=74)


def limits_of_a_token():
    """429 is counted and said; a wrong token is no load at all."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        tokens.write_text(line("slow", "infer,read", INFER, "rate=1", "burst=20") + "\n")
        with Daemon([ADD, "--token-file", str(tokens)]) as daemon:
            done = bench(url(daemon), "--token", INFER, "--clients=2", "--requests=200",
                         "--json=-", status=1)
            found = json.loads(done.stdout)["steps"][0]
            add_up(found)
            expect("refused", found["statuses"]["429"] == found["failed"] >= 100, True)
            for pattern in (r"pte: \d+ of 200 requests failed: HTTP 429 \(\d+\)\n",
                            r"the first one: .*HTTP 429: token slow: "):
                if not re.search(pattern, done.stderr):
                    raise Failure(f"no {pattern!r} in {done.stderr}")
            done = bench(url(daemon), "--requests=5", status=77)
            expect("no token", "HTTP 401" in done.stderr, True)


def unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        with Daemon([ADD, "--listen", f"unix:{folder}/s"]) as daemon:
            expect("requests", daemon.process.poll(), None)
            expect("ok", step(f"unix:{folder}/s:/add", "--requests=7")["server_requests"], 7)


def wrong_calls():
    """A model or a shape that is not there is refused before any load."""
    with Daemon([ADD]) as daemon, tempfile.NamedTemporaryFile(suffix=".npy") as file:
        file.write(npy("<f4", "(3,)", struct.pack("<3f", 1, 2, 3)))
        file.flush()
        for status, text, arguments in (
                (66, "no model 'nope'", [url(daemon, "nope")]),
                (64, "NAME is one of input_0, input_1", [url(daemon), "--shape=x=1"]),
                (65, "HTTP 400", [url(daemon), "--shape=input_0=3x3"]),
                (64, "no request was due: expected a longer --duration for 0.01 requests/s",
                 [url(daemon), "--rate=0.01", "--duration=10ms"]),
                (64, "the model takes [2,3], the file has [3]",
                 [url(daemon), f"--data=input_0={file.name}"])):
            done = bench(*arguments, status=status)
            if text not in done.stderr or done.stdout:
                raise Failure(f"{text!r}: {done.stderr!r}, {done.stdout!r}")
        port = daemon.port
    done = bench(f"http://127.0.0.1:{port}/add", status=77)
    expect("nobody there", "cannot connect: Connection refused" in done.stderr, True)


def a_daemon_stops():
    """Its requests fail from then on, and the load goes on trying until it is told to stop."""
    with Daemon([ADD]) as daemon:
        address = ("127.0.0.1", daemon.port)
        process = subprocess.Popen(command(url(daemon), "--clients=2", "--requests=1000000000",
                                           "--json=-"), env=ENVIRONMENT, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            wait_for_calls(daemon, 20)
            daemon.stop()
            with socket.create_server(address) as server:
                server.settimeout(TIMEOUT_S)
                for _ in range(3):  # two clients: one of them has tried, failed and come again
                    server.accept()[0].close()
            process.send_signal(signal.SIGINT)
            out, said = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
        expect("status", process.returncode, 1)
        found = json.loads(out)["steps"][0]
        add_up(found)
        expect("is interrupted", found["is_interrupted"], True)
        expect("ok", found["ok"] >= 20, True)
        expect("failures", 1 <= sum(found["failures"].values()) <= 1000, True)
        expect("no statistics", "server_requests" in found, False)
        expect("said", "requests failed: " in said, True)


def wait_for_calls(daemon, count):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", daemon.port), TIMEOUT_S) as client:
            client.sendall(b"GET /v2/models/add/stats HTTP/1.1\r\nHost: x\r\n"
                           b"Connection: close\r\n\r\n")
            text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
        if int(re.search(r'"success":{"count":(\d+)', text)[1]) >= count:
            return
        time.sleep(0.02)
    raise Failure(f"fewer than {count} calls")


# ---- the other server ----

def known_delays():
    """No percentile is below the delay of so many requests."""
    def answer(number):
        time.sleep(0.1 if number % 5 == 0 else 0.01)
        return 200
    with Fake(answer) as fake:
        found = step(fake.url, "--clients=4", "--requests=100")
        add_up(found)
        expect("requests", (found["ok"], fake.requests), (100, 101))  # one is sent before all
        expect("least", 10 <= found["min_ms"] and 10 <= found["p50_ms"], True)
        expect("a fifth", 100 <= found["p90_ms"] <= found["max_ms"], True)
        expect("mean", found["mean_ms"] >= 28, True)
        expect("unknown", "server_requests" in found, False)


def a_stall_is_seen():
    """The server stalls once, for half a second, in one of its requests. The 50 that are due
    meanwhile have to wait for it, and an open loop sees them all; a closed loop sees one."""
    def answer(number):
        time.sleep(0.5 if number == 51 else 0)
        return 200
    with Fake(answer, is_serial=True) as fake:
        found = step(fake.url, "--rate=100", "--arrivals=fixed", "--connections=1",
                     "--duration=2s")
        add_up(found)
        expect("requests", (found["ok"], fake.requests), (200, 201))  # one is sent before all
        expect("waited", found["late_waited"] >= 48, True)
        expect("latest", found["late_max_ms"] >= 450, True)
        # Due in the first 0.4 s of the stall: 40 of 200 took 0.1 s or longer.
        expect("p90", found["p90_ms"] >= 95, True)
        expect("max", found["max_ms"] >= 495, True)
    with Fake(answer, is_serial=True) as fake:
        found = step(fake.url, "--clients=1", "--requests=200")
        expect("closed", (found["ok"], "late_waited" in found), (200, False))
        expect("max", found["max_ms"] >= 495, True)


def errors_are_counted():
    """By status and by kind, exactly as the server has sent them."""
    broken = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"

    def answer(number):
        return {3: 429, 4: 503, 5: broken, 6: b"garbage\r\n\r\n"}.get(number % 7, 200)
    with Fake(answer) as fake:
        done = bench(fake.url, "--clients=3", "--requests=70", "--json=-", status=1)
        found = json.loads(done.stdout)["steps"][0]
        add_up(found)
        # The first request is not counted: numbers 2 to 71 are.
        expect("statuses", found["statuses"], {"200": 30, "429": 10, "503": 10})
        expect("failures", found["failures"], {"connection lost": 10, "bad answer": 10})
        expect("said", "40 of 70 requests failed: HTTP 429 (10), HTTP 503 (10), connection lost "
               "(10), bad answer (10)\n" in done.stderr, True)


def timeouts():
    """A request that gets no answer ends by --timeout."""
    release = threading.Event()

    def answer(number):
        if number > 1:
            release.wait(TIMEOUT_S)
        return 200
    with Fake(answer) as fake:
        found = step(fake.url, "--clients=2", "--requests=4", "--timeout=1s", status=1)
        release.set()
        expect("timeouts", (found["failures"], found["ok"]), ({"timeout": 4}, 0))
        expect("no latency", "p50_ms" in found, False)


def interrupts():
    """Ctrl-C prints what was measured, with status 0; before that there is nothing to print."""
    hold = threading.Event()

    def answer(number):
        if number > 60:
            hold.wait(TIMEOUT_S)
        return 200
    for loop in ("--clients=2", "--rate=1000"):
        hold.clear()
        with Fake(answer) as fake:
            process = subprocess.Popen(command(fake.url, loop, "--duration=600s", "--json=-"),
                                       env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
            fake.wait_for(61)
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out = process.communicate(timeout=TIMEOUT_S)[0]
            hold.set()
            expect("status", process.returncode, 0)
            found = json.loads(out)["steps"][0]
            add_up(found)
            expect("interrupted", (found["is_interrupted"], found["abandoned"] >= 1), (True, True))
            expect("answers", 1 <= found["ok"] <= 60, True)
    hold.clear()
    with Fake(lambda number: 200 if hold.wait(TIMEOUT_S) else 200) as fake:
        process = subprocess.Popen(command(fake.url), env=ENVIRONMENT, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        fake.wait_for(1)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=TIMEOUT_S)
        hold.set()
        expect("status", (process.returncode, out), (1, ""))
        expect("said", said, "pte: interrupted before anything was measured\n")


def requests_of_files():
    """Files of a folder are sent in turn, and nothing else."""
    with tempfile.TemporaryDirectory() as folder, Fake(lambda number: 200) as fake:
        for i in range(3):
            (Path(folder) / f"{i}.npy").write_bytes(npy("<f4", "(4,)",
                                                        struct.pack("<4f", i, i, i, i)))
        step(fake.url, f"--data=x={folder}", "--requests=9")
        values = [struct.unpack("<4f", body[-16:])[0] for body in fake.bodies]
        expect("values", values, [float(i % 3) for i in range(10)])
        fake.bodies.clear()
        step(fake.url, "--form=json", f"--data=x={folder}/1.npy", "--requests=1")
        for body in fake.bodies:
            expect("data", json.loads(body)["inputs"], [{
                "name": "x", "datatype": "FP32", "shape": [4], "data": [1, 1, 1, 1]}])
        fake.bodies.clear()
        for seed in (1, 1, 2):
            step(fake.url, f"--seed={seed}", "--requests=1")
        expect("seeds", (fake.bodies[0] == fake.bodies[2], fake.bodies[0] == fake.bodies[4]),
               (True, False))


def hostile_servers():
    """What a server says of its model may be anything."""
    for metadata in ("", "[]", "{", '{"inputs":[{"name":"\\u001b[2J","datatype":"FP32",'
                     '"shape":[1]}],"outputs":[]}', "[" * 100000,
                     '{"inputs":[{"name":"x","datatype":"FP32","shape":[99999999999]}],'
                     '"outputs":[]}',
                     '{"inputs":[{"name":"x","datatype":"BYTES","shape":[99999999999]}],'
                     '"outputs":[]}'):
        with Fake(lambda number: 200, metadata) as fake:
            done = bench(fake.url, "--requests=1", status=65)
            expect("nothing", (done.stdout, "\x1b" in done.stderr, fake.requests), ("", False, 0))


def read_terminal(terminal):
    """All that was written; one read() may return a part of it. EIO is the end."""
    shown = b""
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 65536):
            shown += part
    return shown.decode()


def progress():
    """On a terminal a line shows how far it is, and is gone at the end."""
    with Daemon([ADD]) as daemon:
        terminal, side = os.openpty()
        done = subprocess.run(command(url(daemon), "--rate=50", "--duration=1s"), stderr=side,
                              stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False,
                              env=ENVIRONMENT)
        os.close(side)
        shown = read_terminal(terminal)
        os.close(terminal)
        expect("status", done.returncode, 0)
        if not re.search(r"\r\x1b\[K0\.\d s of 1\.0 s: [\d,]+ requests/s, p99 ", shown):
            raise Failure(f"no progress in {shown!r}")
        expect("end", shown.endswith("\r\x1b[K"), True)


CHECKS = (counts_agree, text_and_files, limits_of_a_token, unix_socket, wrong_calls,
          a_daemon_stops, known_delays, a_stall_is_seen, errors_are_counted, timeouts, interrupts,
          requests_of_files, hostile_servers, progress)


def main():
    probe = subprocess.run(command("http://127.0.0.1:1/m"), capture_output=True, text=True,
                           timeout=TIMEOUT_S, check=False, env=ENVIRONMENT)
    if "libcurl" in probe.stderr:
        print(f"skipped: {probe.stderr.strip()}")
        return SKIPPED
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
