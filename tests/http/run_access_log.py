#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The access log, traces, request ids, and SIGUSR1, against a real daemon.

usage: run_access_log.py, with top_srcdir and top_builddir in the environment.
"""
import json
import re
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

from run_daemon import ADD, DIGITS, add_body, digits_body, expect_exit, infer
from run_http import TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect
from run_metrics import pick, read, scrape

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Served:
    """A daemon whose access log is a file. Entering it returns the object; .lines() waits."""

    def __init__(self, *arguments, which="all"):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "access"
        self.daemon = Daemon([ADD, "--access-log", which, "--access-log-file", str(self.path),
                              *arguments])

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *why):
        try:
            self.daemon.__exit__(*why)
        finally:
            self.folder.cleanup()

    def lines(self, count, path=None):
        """The first |count| lines, each of which is an object."""
        deadline = time.monotonic() + TIMEOUT_S
        text = b""
        while text.count(b"\n") < count and time.monotonic() < deadline:
            text = (path or self.path).read_bytes()
            time.sleep(0.005)
        rows = [json.loads(line) for line in text.decode().splitlines()]
        expect("lines", len(rows), count)
        return rows


def one_line_a_request():
    """Each request has its line: who, what, the answer, bytes and phases."""
    with Served(DIGITS, "--inline-bytes-max=1K") as served:
        client = Client(served.daemon.port)
        address = "127.0.0.1:%d" % client.socket.getsockname()[1]
        body = add_body("the id")
        client.send(build_request("POST", "/v2/models/add/infer", body, ["User-Agent: test/1"]))
        expect("infer", client.answer(), 200)
        answer = len(client.body)
        expect("a thread's", infer(client, "digits", digits_body(40)), 200)
        expect("a wrong one", infer(client, "add", b"{}"), 400)
        client.send(build_request("GET", "/v2/health/live"))
        expect("live", client.answer(), 200)
        first, second, third, fourth = served.lines(4)
        expect("members", {key: first[key] for key in
                           ("remote", "method", "path", "status", "id", "model", "user_agent",
                            "batch")},
               {"remote": address, "method": "POST", "path": "/v2/models/add/infer",
                "status": 200, "id": "the id", "model": "add", "user_agent": "test/1",
                "batch": 1})
        if not re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first["time"]):
            raise Failure(f"time {first['time']!r}")
        expect("bytes", first["bytes_in"] > len(body) and first["bytes_out"] > answer, True)
        for row in (first, second):
            phases = sum(row[f"{name}_us"] for name in ("prepare", "queue", "compute", "encode"))
            expect("phases", phases <= row["total_us"], True)
        expect("a wrong one", (third["status"], third["error"]),
               (400, 'member "inputs" is missing'))
        expect("no phases", [key for key in third if key.startswith("compute")], [])
        expect("no model", (fourth["status"], "model" in fourth, "error" in fourth),
               (200, False, False))
        series = read(scrape(client))
        expect("counted", pick(series, "pted_access_log_lines_total"), 4)
        expect("lost", pick(series, "pted_access_log_lost_lines_total"), 0)


def clients_that_leave():
    """A client that leaves has a line with status 499."""
    with Served() as served:
        gone = Client(served.daemon.port)
        gone.send(build_request("POST", "/v2/models/add/infer", add_body())[:-5])
        gone.reset()
        row, = served.lines(1)
        expect("line", (row["status"], row["bytes_out"], row["model"]), (499, 0, "add"))


def which_requests():
    """errors: those alone. sampled: errors and one of N others. off: no file."""
    for which, count in (("errors", 10), ("sampled", 10 + 4)):
        with Served("--access-log-sample=10", which=which) as served:
            client = Client(served.daemon.port)
            for i in range(50):
                if i < 40:
                    expect("infer", infer(client), 200)
                else:
                    expect("a wrong one", infer(client, "nope"), 404)
            rows = served.lines(count)
            expect("errors", sum(row["status"] == 404 for row in rows), 10)
    with Served(which="off") as served:
        expect("infer", infer(Client(served.daemon.port)), 200)
        expect("file", served.path.exists(), False)
    expect_exit(64, "--access-log: expected off, errors, sampled or all, got 'some'",
                "--access-log", "some")
    expect_exit(66, "none/log", ADD, "--access-log=all", "--access-log-file=/none/log")


def to_stderr():
    """Without a file the lines go to stderr, between those of the log."""
    with Daemon([ADD, "--access-log=all"]) as daemon:
        expect("infer", infer(Client(daemon.port)), 200)
        line = daemon.wait_for(r'\n(\{"time":.*\})\n')[1]
        expect("status", json.loads(line)["status"], 200)


def hostile_clients():
    """Nothing that a client sends forges a line or a member, or breaks the JSON."""
    values = [b'","status":200,"x":"', b"\\", b'\\"', b"\xff\xfe", b"\xe2\x80\xae\xc2\x85",
              b"\t\x7f" + b'"' * 500, "größe".encode(), b'{"a":' * 50, b"x" * 4000]
    with Served() as served:
        client = Client(served.daemon.port)
        for value in values:
            client.send(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\nUser-Agent: " + value +
                        b"\r\nX-Request-Id: " + value + b"\r\ntraceparent: " + value + b"\r\n\r\n")
            status = client.answer()
            if status == 400:  # the byte is not allowed in a field
                client = Client(served.daemon.port)
            else:
                expect("status", status, 200)
        client.send(build_request("POST", '/v2/models/%22%5c%e2%80%ae/infer?"\\', b"{}"))
        expect("a query", client.answer(), 404)
        body = json.dumps({"id": 'a"\n\u202e\\', "inputs": json.loads(add_body())["inputs"]})
        expect("an id", infer(client, "add", body.encode()), 200)
        rows = served.lines(len(values) + 2)
        for row, value in zip(rows, values):
            if row["status"] == 200:
                text = value.decode(errors="replace")
                expect("agent", text.startswith(row["user_agent"]) or "\ufffd" in text, True)
                expect("a new trace", ("parent_id" in row, len(row["trace_id"])), (False, 32))
        expect("model", rows[-2]["model"], '"\\\u202e')
        expect("id", rows[-1]["id"], 'a"\n\u202e\\')
        text = served.path.read_bytes()
        expect("raw controls", re.findall(rb"[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80\xae", text), [])
        long = "x" * 4000
        client.send(build_request("GET", f"/{long}"))
        expect("long", client.answer(), 404)
        expect("cut", len(served.lines(len(values) + 3)[-1]["path"]), 400)


def secrets():
    """What clients put into a query or before a host is in no log."""
    secret = "tell-nobody"
    targets = [f"{before}/v2/{path}?access_token={secret}&api_key={secret}"
               for before in ("", f"http://me:{secret}@host")
               for path in ("models/add", "nope", "models/nope/infer", "models/add/infer")]
    targets.append(f"https://me:{secret}@host/v2?{secret}")
    for options in ((), ("--log-requests=all", "--log-level=debug")):
        with Served(*options) as served:
            client = Client(served.daemon.port)
            for target in targets:
                for method, body in (("GET", b""), ("POST", add_body()), ("POST", b"{")):
                    client.send(build_request(method, target, body))
                    client.answer()
            slow = Client(served.daemon.port)
            slow.send(build_request("POST", targets[3], add_body())[:-5])
            expect("infer", infer(client), 200)
            served.daemon.process.send_signal(signal.SIGUSR1)
            served.daemon.wait_for("path=/v2/models/add/infer\n")
            slow.reset()
            rows = served.lines(3 * len(targets) + 2)
            expect("a path", {row["path"] for row in rows if row["status"] == 200},
                   {"/v2/models/add", "/v2/models/add/infer"})
            expect("in the access log", secret in served.path.read_text(), False)
            expect("in the log", secret in served.daemon.read_log(), False)


def rotation():
    """After a rename, SIGHUP makes lines go to a new file; none is lost."""
    with Served() as served:
        client = Client(served.daemon.port)
        old = served.path.with_name("old")
        expect("infer", infer(client), 200)
        served.lines(1)
        served.path.rename(old)
        expect("infer", infer(client), 200)
        served.lines(2, old)
        served.daemon.process.send_signal(signal.SIGHUP)
        served.daemon.wait_for(rf"SIGHUP: access log {served.path} is open again")
        for _ in range(3):
            expect("infer", infer(client), 200)
        served.lines(3)
        expect("the old one", old.read_bytes().count(b"\n"), 2)


def all_lines_at_the_end():
    """The last lines before a stop are written."""
    with Served() as served:
        client = Client(served.daemon.port)
        for _ in range(500):
            expect("infer", infer(client), 200)
        served.daemon.stop()
        served.lines(500)


def lose_lines(daemon, count):
    """Sends requests until |count| of their lines are lost, and one more: its line says so."""
    client = Client(daemon.port)
    deadline = time.monotonic() + TIMEOUT_S
    while pick(read(scrape(client)), "pted_access_log_lost_lines_total") < count:
        expect("infer", infer(client), 200)
        expect("time is left", time.monotonic() < deadline, True)
    expect("infer", infer(client), 200)
    daemon.wait_for(r"warning: access log: \d+ lines were lost so far")


def full_disk():
    """A log that cannot be written costs lines and no answers; the log says so."""
    with Daemon([ADD, "--access-log=all", "--access-log-file=/dev/full"]) as daemon:
        lose_lines(daemon, 5)


def limited_file():
    """A log that reaches the limit for files (ulimit -f) does the same, and nothing is killed."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

    with tempfile.TemporaryDirectory() as folder:
        log = f"--access-log-file={folder}/access"
        with Daemon([ADD, "--access-log=all", log], preexec_fn=limit) as daemon:
            lose_lines(daemon, 5)


def traces():
    """A trace goes on under an id of its own; a malformed one is replaced; none begins here."""
    with Served() as served:
        client = Client(served.daemon.port)

        def ask(*fields):
            client.send(build_request("POST", "/v2/models/add/infer", add_body(), fields))
            expect("infer", client.answer(), 200)
            return client.field("traceparent")

        good = ask(f"traceparent: 00-{TRACE}-{PARENT}-01")
        span = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", good)[1]
        expect("a span of its own", span != PARENT, True)
        bad = ask(f"traceparent: 00-{TRACE.upper()}-{PARENT}-01")
        fresh = re.fullmatch(r"00-([0-9a-f]{32})-[0-9a-f]{16}-00", bad)[1]
        expect("a trace of its own", fresh != TRACE, True)
        twice = ask(*[f"traceparent: 00-{TRACE}-{PARENT}-01"] * 2)
        expect("two fields", TRACE in twice, False)
        expect("none", ask(), None)
        rows = served.lines(4)
        expect("its line", (rows[0]["trace_id"], rows[0]["span_id"], rows[0]["parent_id"]),
               (TRACE, span, PARENT))
        expect("the new one", (rows[1]["trace_id"], "parent_id" in rows[1]), (fresh, False))
        expect("no trace", "trace_id" in rows[3], False)
        client.send(build_request("GET", "/nope", fields=[f"traceparent: 00-{TRACE}-{PARENT}-00"]))
        expect("an error", client.answer(), 404)
        expect("its trace", TRACE in client.field("traceparent"), True)


def request_ids():
    """X-Request-Id comes back if it can; in the log it goes before the id of the body."""
    with Served() as served:
        client = Client(served.daemon.port)
        for value, back in (("abc-1", "abc-1"), ("a b", None), ("x" * 128, "x" * 128),
                            ("x" * 129, None)):
            client.send(build_request("POST", "/v2/models/add/infer", add_body("own"),
                                      [f"X-Request-Id: {value}"]))
            expect("infer", client.answer(), 200)
            expect("back", client.field("x-request-id"), back)
        expect("ids", [row["id"] for row in served.lines(4)],
               ["abc-1", "a b", "x" * 128, "x" * 128])


def in_flight():
    """SIGUSR1 logs what the daemon has to do, and the daemon goes on."""
    with Daemon([ADD]) as daemon:
        slow, idle = Client(daemon.port), Client(daemon.port)
        slow.send(build_request("POST", "/v2/models/add/infer?\x01", add_body())[:-5]
                  .replace(b"\x01", b"%01"))
        expect("infer", infer(idle), 200)
        daemon.process.send_signal(signal.SIGUSR1)
        daemon.wait_for(r"notice: SIGUSR1: 2 connections, 1 requests, [0-9.]+ \w+ of 256 MiB ")
        port = slow.socket.getsockname()[1]
        daemon.wait_for(rf"notice: SIGUSR1: request remote=127\.0\.0\.1:{port} method=POST "
                        r"step=body ms=\d+ in=\d+ out=0 path=/v2/models/add/infer\n")
        expect("infer", infer(idle), 200)
        for _ in range(120):
            one = Client(daemon.port)
            one.send(b"GET /v2")
            slow = [slow, one]  # keeps it open
        # The daemon has read all of them at some time, not with the next answer.
        deadline = time.monotonic() + TIMEOUT_S
        while "SIGUSR1: and 21 more requests" not in daemon.read_log():
            expect("time is left", time.monotonic() < deadline, True)
            expect("infer", infer(idle), 200)
            daemon.process.send_signal(signal.SIGUSR1)
            time.sleep(0.05)


CHECKS = (one_line_a_request, clients_that_leave, which_requests, to_stderr, hostile_clients,
          secrets, rotation, all_lines_at_the_end, full_disk, limited_file, traces,
          request_ids, in_flight)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
