#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""HTTP/2 against a real daemon: with prior knowledge on the address of HTTP/1, and by ALPN.

usage: run_http2.py, with top_srcdir and top_builddir in the environment.
"""
import json
import shutil
import socket
import struct
import subprocess
import sys
import time

from http2_client import (CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM,
                          ENHANCE_YOUR_CALM, FLOW_CONTROL_ERROR, HEADERS, INITIAL_WINDOW_SIZE,
                          NO_ERROR, PING, PREFACE, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
                          Answer, Http2Client, block_of, frame, literal, request_fields, setting)
from load import wait_until
from run_daemon import ADD, add_body, infer
from run_generate import CHAT, HELLO, LONG, metric
from run_http import MODELS, Client, Daemon, Failure, Report, expect

WIDE = str(MODELS / "wide.pte")
INFER = "/v2/models/add/infer"
SUM = [1.0] * 6
JSON = (("content-type", "application/json"),)


def result(answer):
    """The numbers of an answer of the model add."""
    expect("status", answer.status, 200)
    return json.loads(answer.body)["outputs"][0]["data"]


def both_on_one_address():
    """The first bytes tell, however they are cut."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        expect("a call", result(client.ask("POST", INFER, JSON, add_body())), SUM)
        expect("HTTP/1 beside it", infer(Client(daemon.port)), 200)
        slow = Client(daemon.port)
        for at in range(len(PREFACE)):
            slow.send(PREFACE[at:at + 1])
            time.sleep(0.002)
        cut = Http2Client(daemon.port, client=slow, preface=b"")
        expect("byte by byte", cut.ask().status, 200)
        for text in (b"P", b"PRI * HTTP/2.0\r\n\r\n", PREFACE[:-1] + b"\r"):
            near = Client(daemon.port)
            near.send(text)
            time.sleep(0.02)
            near.send(b"OST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            expect(f"after {text}", near.answer(), 405 if text == b"P" else 505)


def heads():
    """Methods, fields and errors are those of HTTP/1."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        head = client.ask("HEAD", "/v2")
        expect("HEAD", (head.status, head.body), (200, b""))
        expect("its length", int(head.field("content-length")) > 100, True)
        named = client.ask("GET", "/v2", [("x-request-id", "seven")])
        expect("X-Request-Id", named.field("x-request-id"), "seven")
        expect("no such path", client.ask("GET", "/nothing").status, 404)
        wrong = client.ask("DELETE", "/v2")
        expect("a method", (wrong.status, wrong.field("allow") is not None), (405, True))
        expect("no method", client.ask("FETCH", "/v2").status, 400)
        expect("two hosts", client.ask("GET", "/v2", [("host", "other")]).status, 400)
        expect("the same host", client.ask("GET", "/v2", [("host", "test")]).status, 200)
        expect("a long target", client.ask("GET", "/" + "a" * 9000).status, 414)
        many = [(f"x-{i}", "1") for i in range(200)]
        expect("many fields", client.ask("GET", "/v2", many).status, 431)
        expect("nothing connection-wide", client.goaway, None)


def targets_that_come_again():
    """What a target leads to is remembered, for that target and that method alone."""
    others = [("GET", INFER, None, 405), ("POST", INFER + "?binary=x", add_body(), 400),
              ("POST", INFER + "x", add_body(), 404), ("POST", INFER[:-1], add_body(), 404),
              ("POST", "/v2/models/none/infer", add_body(), 404), ("OPTIONS", INFER, None, 405),
              ("POST", INFER + "?binary=1", add_body(), 200), ("POST", "/" + "a" * 300, b"", 404)]
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        for method, path, body, status in others:
            for _ in range(2):
                expect("a call", result(client.ask("POST", INFER, JSON, add_body())), SUM)
            for _ in range(2):
                expect(f"{method} {path}", client.ask(method, path, JSON, body).status, status)
        expect("a call", result(client.ask("POST", INFER, JSON, add_body())), SUM)


def upload(client, stream, body):
    """Sends a body as the windows allow it."""
    def window():
        return 65535 + min(client.windows.get(stream, 0), client.windows.get(0, 0))
    sent = 0
    while sent < len(body):
        client.until(lambda: window() > sent)
        piece = body[sent:min(window(), sent + 16384)]
        client.send(frame(DATA, 0, stream, piece))
        sent += len(piece)
    client.send(frame(DATA, END_STREAM, stream))
    client.windows[0] = client.windows.get(0, 0) - sent


def bodies():
    """Bodies of many windows, with a length and without, and answers of many windows."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        body = add_body().replace(b"{", b"{" + b" " * 300_000, 1)
        for fields in (JSON, (*JSON, ("content-length", str(len(body))))):
            stream = client.begin("POST", INFER, fields, ends=False)
            upload(client, stream, body)
            expect("a large body", result(client.answer(stream)), SUM)
        narrow = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 10))
        expect("a small window", narrow.ask("GET", "/metrics").status, 200)
        expect("all of it", narrow.answers[1].body.endswith(b"\n"), True)


def refused_bodies():
    """The answer comes before the body has, and the connection goes on."""
    with Daemon([ADD, "--body-bytes-max=1M", "--linger-timeout=200ms"]) as daemon:
        client = Http2Client(daemon.port)
        stream = client.begin("POST", INFER, [("content-length", "9000000")], ends=False)
        client.send(frame(DATA, 0, stream, bytes(1000)))
        expect("too large", client.answer(stream).status, 413)
        client.until(lambda: client.answers[stream].reset is not None)
        expect("the rest is not wanted", client.answers[stream].reset, NO_ERROR)
        expect("another request", client.ask().status, 200)
        stream = client.begin("POST", INFER, [("content-length", "5")], ends=False)
        client.send(frame(DATA, END_STREAM, stream, b"123456"))
        client.until(lambda: client.answers[stream].is_over)
        expect("a wrong length", client.answers[stream].reset, 1)
        expect("a third request", client.ask().status, 200)


def many_at_a_time():
    """Requests of one connection, and answers in any order."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        block = block_of(request_fields("POST", INFER, JSON))
        text = add_body()
        streams = range(1, 401, 2)
        client.send(*(frame(HEADERS, END_HEADERS, stream, block) +
                      frame(DATA, END_STREAM, stream, text) for stream in streams))
        for stream in streams:
            client.until(lambda s=stream: s in client.answers and client.answers[s].is_over)
            expect("each one", result(client.answers[stream]), SUM)


def streams_of_events():
    """A generation comes event by event; a reset ends it, and others go on."""
    body = {"model": "chat", "messages": HELLO, **LONG, "stream": True}
    with Daemon(CHAT) as daemon:
        client = Http2Client(daemon.port)
        begin = lambda **more: client.begin("POST", "/v1/chat/completions", JSON,
                                            json.dumps({**body, **more}).encode())
        whole = client.answer(begin(max_tokens=5))
        expect("type", whole.field("content-type"), "text/event-stream; charset=utf-8")
        expect("events", whole.body.strip().endswith(b"data: [DONE]"), True)
        expect("no length", whole.field("content-length"), None)
        cut = begin(n=8)
        client.until(lambda: len(client.answers[cut].body) > 200)
        other = begin(max_tokens=5)
        client.send(frame(RST_STREAM, 0, cut, struct.pack(">I", CANCEL)))
        expect("another one", client.answer(other).body.strip().endswith(b"[DONE]"), True)
        wait_until("the end of the call",
                   lambda: metric(Client(daemon.port), "pted_model_generations") == 0)


def by_alpn():
    """curl takes h2 where TLS offers it; without TLS it knows that it may."""
    if not shutil.which("curl"):
        return
    with Daemon([ADD]) as daemon:
        for path, data in (("/v2", None), (INFER, add_body().decode())):
            done = subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-w", "%{http_version}",
                                   f"http://127.0.0.1:{daemon.port}{path}",
                                   *(["-d", data] if data else [])],
                                  capture_output=True, text=True, check=True)
            expect(path, done.stdout[-1], "2")
            expect("its text", json.loads(done.stdout[:-1]) is not None, True)


def ended_for(daemon, client, kind):
    """The connection has ended for a flood of that kind; others are well."""
    expect("the error", client.error(), ENHANCE_YOUR_CALM)
    floods = metric(Client(daemon.port), "pted_http2_floods_total", f'kind="{kind}"')
    expect("the metric", floods, 1)
    expect("another client", Http2Client(daemon.port).ask().status, 200)


def cheap_frames():
    """Each kind, more often than it may come; as often as it may, it hurts nobody."""
    ping = frame(PING, 0, 0, bytes(8))
    floods = (("pings", ping, 1000), ("settings", frame(SETTINGS), 99),
              ("priorities", frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 7)), 1000),
              ("priorities", frame(16, 0, 0, struct.pack(">I", 1) + b"u=0"), 1000),
              ("windows", frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)), 1000),
              ("others", frame(99, 0, 0, b"any"), 100))
    for kind, piece, most in floods:
        with Daemon([ADD]) as daemon:
            calm = Http2Client(daemon.port)
            calm.send(piece * (most // 2))
            expect(f"some {kind}", calm.ask().status, 200)
            wild = Http2Client(daemon.port)
            wild.send(piece * (most + 200))
            ended_for(daemon, wild, kind)
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        stream = client.begin("POST", INFER, JSON, ends=False)
        client.send(frame(DATA, 0, stream) * 120)
        ended_for(daemon, client, "empty")


def rapid_resets():
    """Requests that are cancelled at once, and requests that make the daemon reset them."""
    block = block_of(request_fields("POST", INFER, [("content-length", "1")]))
    cancel = struct.pack(">I", CANCEL)
    for error in (lambda stream: frame(RST_STREAM, 0, stream, cancel),
                  lambda stream: frame(DATA, 0, stream, b"12")):
        with Daemon([ADD]) as daemon:
            client = Http2Client(daemon.port)
            try:
                for begin in range(1, 2001, 20):
                    client.send(*(frame(HEADERS, END_HEADERS, stream, block) + error(stream)
                                  for stream in range(begin, begin + 20, 2)))
            except ConnectionError:
                pass  # it has ended
            expect("ended", is_ended(client), True)
            expect("the metric", sum(metric(Client(daemon.port), "pted_http2_floods_total",
                                            f'kind="{kind}"')
                                     for kind in ("resets", "invalid")), 1)
            expect("nothing is left",
                   metric(Client(daemon.port), "pted_requests_in_flight"), 1)


def many_answers():
    """Requests that are answered are no resets, however many and of what method."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        for at in range(2000):
            expect(f"request {at}", client.ask("HEAD" if at % 2 else "GET", "/v2").status, 200)
        expect("nothing connection-wide", client.goaway, None)
        expect("the metric", metric(Client(daemon.port), "pted_http2_floods_total",
                                    'kind="resets"'), 0)


def late_resets():
    """Resets of what is over count, too. tests/unit/test_http2.c has those within the limit."""
    cancel = struct.pack(">I", CANCEL)
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        client.answer(client.begin())
        client.send(frame(RST_STREAM, 0, 1, cancel) * 700)
        ended_for(daemon, client, "resets")


def is_ended(client):
    """Reads until the connection ends."""
    try:
        while True:
            client.read()
    except (Failure, ConnectionError):
        return True


def continuations():
    """A head that never ends, of empty frames and of full ones."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        client.send(frame(HEADERS, 0, 1, block_of(request_fields("GET", "/v2"))),
                    frame(CONTINUATION, 0, 1) * 150)
        ended_for(daemon, client, "continuations")
        client = Http2Client(daemon.port)
        client.send(frame(HEADERS, 0, 1, block_of(request_fields("GET", "/v2"))),
                    *(frame(CONTINUATION, 0, 1, literal(f"x-{i}", "v" * 16000))
                      for i in range(8)))
        ended_for(daemon, client, "heads")
        whole = Http2Client(daemon.port)
        block = block_of(request_fields("GET", "/v2"))
        whole.send(frame(HEADERS, END_STREAM, 1, block[:5]),
                   *(frame(CONTINUATION, 0, 1, block[at:at + 1]) for at in range(5, 12)),
                   frame(CONTINUATION, END_HEADERS, 1, block[12:]))
        whole.answers[1] = Answer()
        expect("cut in pieces", whole.answer(1).status, 200)


def header_bombs():
    """A short block that is a long list: one large field of the table, again and again."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        large = b"\x40" + literal("x-large", "v" * 3900)[1:]
        fields = block_of(request_fields("GET", "/v2"))
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, fields + large + b"\xbe" * 20))
        client.answers[1] = Answer()
        expect("too large", client.answer(1).status, 431)
        client.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, fields + b"\xbe" * 8000))
        ended_for(daemon, client, "heads")


def invalid_frames():
    """Errors of one stream, again and again."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        block = block_of([*request_fields("GET", "/v2"), ("connection", "close")])
        client.send(*(frame(HEADERS, END_HEADERS | END_STREAM, stream, block)
                      for stream in range(1, 401, 2)))
        ended_for(daemon, client, "invalid")


def slow_readers():
    """Clients that open no windows hold what was computed, not the daemon, and not for ever."""
    with Daemon([ADD, "--write-timeout=300ms", "--rate-min=0"]) as daemon:
        client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
        for _ in range(100):
            client.begin("GET", "/metrics")
        client.ping()
        expect("another client", infer(Client(daemon.port)), 200)
        client.until(lambda: all(client.answers[stream].reset == CANCEL
                                 for stream in range(1, 200, 2)))
        stream = client.begin("GET", "/metrics")
        client.send(*(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1)) for _ in range(50)))
        client.until(lambda: len(client.answers[stream].body) == 50)
        client.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 1 << 20)))
        expect("all of it", client.answer(stream).status, 200)
        client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 0x7fffffff)))
        expect("a window beyond 2^31", client.error(), FLOW_CONTROL_ERROR)


def large_answers(client, count):
    """Begins calls with answers of 4 MB; none of them has a window."""
    rows = 16384
    head = json.dumps({"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [rows, 64]}],
                       "parameters": {"binary_data_output": True}}).encode()
    body = head + bytes(rows * 64 * 4)
    streams = []
    for _ in range(count):
        streams.append(client.begin("POST", "/v2/models/wide/infer",
                                    [("inference-header-content-length", str(len(head))),
                                     ("content-length", str(len(body)))], ends=False))
        upload(client, streams[-1], body)
    client.until(lambda: all(client.answers[stream].status == 200 for stream in streams))
    return streams


def large_beside_others(daemon):
    """A client that takes little at a time, with windows for everything."""
    client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
    client.client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 65536)))
    return client


def side_by_side():
    """A small answer does not wait for a large one, unless the client says so."""
    with Daemon([WIDE]) as daemon:
        for fields, is_last in ((), False), ([("priority", "u=7")], True):
            client = large_beside_others(daemon)
            large, = large_answers(client, 1)
            small, client.answers[client.next] = client.next, Answer()
            # Both answers are there when their windows open: this one is made on the loop.
            client.send(frame(HEADERS, END_HEADERS | END_STREAM, small,
                              block_of(request_fields("GET", "/v2", fields))),
                        frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, (1 << 31) - 1)))
            expect("a small one", client.answer(small).status, 200)
            expect("the large one is complete", client.answers[large].is_over, is_last)
            expect("that one", client.answer(large).status, 200)


def slow_but_steady():
    """Large answers of one connection, which the client takes all the time."""
    with Daemon([WIDE, "--write-timeout=1s", "--rate-min=0"]) as daemon:
        client = large_beside_others(daemon)
        streams = large_answers(client, 2)
        client.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, (1 << 31) - 1)))
        began, taken = time.monotonic(), 0
        while not all(client.answers[stream].is_over for stream in streams):
            taken += len(client.read()[3])
            time.sleep(max(0, taken / (4 << 20) - (time.monotonic() - began)))
        for stream in streams:
            expect("all of it", (client.answers[stream].reset, len(client.answers[stream].body) >
                                 4 << 20), (None, True))


def narrow_connections():
    """A window of the connection that the client never opens holds answers for --write-timeout."""
    with Daemon([WIDE, "--write-timeout=300ms", "--rate-min=0"]) as daemon:
        client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 1 << 24), gives=False)
        stream, = large_answers(client, 1)
        client.until(lambda: client.answers[stream].is_over)
        expect("the answer", (client.answers[stream].reset, len(client.answers[stream].body)),
               (CANCEL, 65535))
        client.ping()


def reflection(daemon):
    """A call that has had an answer and may ask more."""
    client = Http2Client(daemon.port)
    stream = client.begin("POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                          [("content-type", "application/grpc"), ("te", "trailers")], ends=False)
    client.send(frame(DATA, 0, stream, b"\0\0\0\0\2\x3a\0"))
    client.until(lambda: len(client.answers[stream].body) > 50)
    return client, stream


def ends_with(client, stream, status):
    answer = client.answer(stream)
    expect("the status", dict(answer.heads[-1]).get("grpc-status"), str(status))


def idle_calls():
    """A call that answers as its request comes waits for --body-timeout, and holds up no end."""
    with Daemon([ADD, "--body-timeout=500ms", "--linger-timeout=100ms"]) as daemon:
        client, stream = reflection(daemon)
        ends_with(client, stream, 4)
        client.until(lambda: client.answers[stream].reset is not None)
        expect("the rest is not wanted", client.answers[stream].reset, NO_ERROR)
    with Daemon([ADD, "--drain-incomplete-timeout=500ms"]) as daemon:
        client, stream = reflection(daemon)
        daemon.process.terminate()
        ends_with(client, stream, 14)
        client.send(frame(DATA, END_STREAM, stream))
        expect("closed", is_ended(client), True)
        expect("the exit status", daemon.process.wait(60), 0)


def ages():
    """Old connections end, of both protocols, and answer until then; others come after them."""
    with Daemon([ADD, "--connection-age=1s", "--linger-timeout=300ms"]) as daemon:
        began = time.monotonic()
        old, client = Client(daemon.port), Http2Client(daemon.port)
        expect("at first", (infer(old), dict(old.fields).get("Connection")), (200, None))
        while not client.goaway:
            expect("a request before", client.ask().status, 200)
            time.sleep(0.02)
        expect("the warning", client.goaway[:2], (0x7fffffff, NO_ERROR))
        expect("a request after it", client.ask().status, 200)
        expect("not too soon", time.monotonic() - began > 0.85, True)
        client.until(lambda: client.goaway[0] == client.next - 2)
        expect("closed", client.client.is_closed(), True)
        wait_until("its age", lambda: time.monotonic() - began > 1.15)
        expect("the last answer", (infer(old), dict(old.fields).get("Connection")), (200, "close"))
        expect("closed", old.is_closed(), True)
        expect("another one", infer(Client(daemon.port)), 200)


def drain():
    """Clients are told twice; what has begun is answered."""
    with Daemon([ADD]) as daemon:
        client = Http2Client(daemon.port)
        expect("before", client.ask().status, 200)
        stream = client.begin("POST", INFER, JSON, ends=False)
        client.ping()
        daemon.process.terminate()
        client.until(lambda: client.goaway)
        expect("first", client.goaway[:2], (0x7fffffff, NO_ERROR))
        client.send(frame(DATA, END_STREAM, stream, add_body()))
        expect("the call", result(client.answer(stream)), SUM)
        client.until(lambda: client.goaway[0] == stream)
        expect("closed", client.client.is_closed(), True)


CHECKS = (both_on_one_address, heads, targets_that_come_again, bodies, refused_bodies,
          many_at_a_time, streams_of_events,
          by_alpn, cheap_frames, rapid_resets, many_answers, continuations, header_bombs,
          invalid_frames, late_resets, slow_readers, side_by_side, slow_but_steady,
          narrow_connections, idle_calls, ages, drain)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
