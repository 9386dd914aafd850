#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`pte bench` of language models: against a real daemon, whose counts have to agree, and against a
server of this file, whose times between tokens are known.

usage: run_bench_language.py, with top_srcdir and top_builddir in the environment.
"""
import json
import re
import socketserver
import sys
import tempfile
import threading
import time
from pathlib import Path

from run_bench import add_up, bench, step, url
from run_generate import CHAT, metric
from run_http import Client, Daemon, Failure, Report, expect

FIRST_S, GAP_S, TOKENS = 0.06, 0.03, 6


class Fake(socketserver.ThreadingTCPServer):
    """Answers each request with |parts|: bytes, and seconds to wait."""
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, parts):
        super().__init__(("127.0.0.1", 0), FakeHandler)
        self.parts = parts
        self.bodies = []

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


class FakeHandler(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self.read_head():
            length = int((re.search(r"content-length: (\d+)", head.lower()) or "0:0")[1])
            body = self.rfile.read(length)
            if "POST /v1/completions" not in head:
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                continue
            self.server.bodies.append(json.loads(body))
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                             b"Transfer-Encoding: chunked\r\n\r\n")
            for part in self.server.parts:
                if isinstance(part, bytes):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
                    self.wfile.flush()
                else:
                    time.sleep(part)
            self.wfile.write(b"0\r\n\r\n")

    def read_head(self):
        lines = []
        while (text := self.rfile.readline().decode()) not in ("\r\n", ""):
            lines.append(text)
        return "".join(lines)


def event(**members):
    return b"data: " + json.dumps(members).encode() + b"\n\n"


def token(text="x"):
    return event(choices=[{"index": 0, "text": text, "finish_reason": None}], usage=None)


USAGE = event(choices=[], usage={"prompt_tokens": 40, "completion_tokens": TOKENS,
                                 "total_tokens": 40 + TOKENS})
KNOWN = [event(choices=[{"index": 0, "text": ""}]), FIRST_S, token(),
         *([GAP_S, token()] * (TOKENS - 1)), USAGE, b"data: [DONE]\n\n"]


def known_times():
    """Each figure is that of a server that waits, and no less."""
    with Fake(KNOWN) as fake:
        found = step(fake.url, "--prompt-tokens=40", f"--answer-tokens={TOKENS}", "--requests=6",
                     "--clients=2")
        add_up(found)
        expect("tokens", (found["total_input_tokens"], found["total_output_tokens"]),
               (240, 6 * TOKENS))
        rest = GAP_S * (TOKENS - 1)
        for name, least in (("ttft", FIRST_S), ("itl", GAP_S), ("tpot", GAP_S),
                            ("e2el", FIRST_S + rest)):
            median = found[f"median_{name}_ms"]
            if not 990 * least <= median <= 1000 * least + 500:
                raise Failure(f"{name}: {median} ms, expected {least} s")
            expect("order", found[f"median_{name}_ms"] <= found[f"p99_{name}_ms"], True)
        expect("prompts", 0 < found["pp"] <= 40 / FIRST_S * 1.01, True)
        expect("answers", 0 < found["tg"] <= 1 / GAP_S * 1.01, True)
        expect("E2EL is the latency", found["median_e2el_ms"], found["p50_ms"])
        body = fake.bodies[0]
        expect("a request", (body["model"], body["max_tokens"], body["stream"], len(body["prompt"]),
                             body["ignore_eos"], body["cache_prompt"], body["stream_options"]),
               ("m", TOKENS, True, 40, True, False, {"include_usage": True}))
        late = step(fake.url, "--answer-tokens=6", "--requests=6", "--rate=200", "--connections=1")
        expect("a time begins when a request is due",
               late["p99_ttft_ms"] > 4 * 1000 * (FIRST_S + rest), True)


def counts_agree():
    """The daemon has counted the same tokens."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        before = {name: metric(client, f"pted_model_{name}_tokens_total") or 0
                  for name in ("prompt", "answer")}
        found = step(url(daemon, "chat"), "--prompt-tokens=20..60,100", "--answer-tokens=5,9..11",
                     "--requests=40", "--clients=4", "--seed=3")
        add_up(found)
        expect("ok", found["ok"], 40)
        # One request goes before the load.
        for name, counted in (("prompt", "total_input_tokens"), ("answer", "total_output_tokens")):
            more = metric(client, f"pted_model_{name}_tokens_total") - before[name]
            least, most = (20, 100) if name == "prompt" else (5, 11)
            expect(f"{name}: {more}, {found[counted]}",
                   least <= more - found[counted] <= most, True)
        expect("within the lengths", 40 * 20 <= found["total_input_tokens"] <= 40 * 100, True)
        expect("mixed", found["total_output_tokens"] % 40 != 0, True)
        same = step(url(daemon, "chat"), "--prompt-tokens=20..60,100", "--answer-tokens=5,9..11",
                    "--requests=40", "--clients=4", "--seed=3")
        expect("the seed repeats lengths", same["total_input_tokens"], found["total_input_tokens"])


def files():
    """Prompts of a file, in turn; two runs beside each other."""
    with Daemon(CHAT) as daemon, tempfile.TemporaryDirectory() as folder:
        path, earlier = Path(folder) / "prompts.jsonl", Path(folder) / "a.json"
        path.write_text('"Hello"\n\n{"prompt": [1, 2, 3], "output_tokens": 4}\n'
                        '{"prompt": "Count", "id": [7]}\r\n')
        found = step(url(daemon, "chat"), f"--prompts={path}", "--answer-tokens=7", "--requests=6")
        expect("tokens", found["total_output_tokens"], 2 * (7 + 4 + 7))
        for text, words in (("{}\n", "line 1: prompt is missing"), ('"a"\n[1,2\n', "line 2: "),
                            ("\n", "there is no prompt"), ("5\n", "expected a text"),
                            ('{"prompt": "a", "output_tokens": 0}', "from 1 to 131072"),
                            ('{"prompt": {"a": 1}}', "expected a text"), ("\xff\n", "line 1")):
            path.write_bytes(text.encode("latin-1"))
            done = bench(url(daemon, "chat"), f"--prompts={path}", status=64)
            expect(f"{text!r}: {done.stderr}", words in done.stderr, True)
        lengths = ("--prompt-tokens=20", "--answer-tokens=8", "--requests=10", "--clients=1,2")
        bench(url(daemon, "chat"), *lengths, f"--json={earlier}")
        shown = bench(url(daemon, "chat"), *lengths, f"--compare={earlier}").stdout
        for pattern in (r"^ clients figure +before +now +change$",
                        r"^ +1 output_throughput +[\d.]+ ",
                        r"^ +2 mean_ttft_ms +[\d.]+ +[\d.]+ +[+-][\d.]+ %$",
                        r"^ clients +req/s +failed +tok/s TTFT p50 TTFT p99 "):
            if not re.search(pattern, shown, re.MULTILINE):
                raise Failure(f"no {pattern!r} in {shown}")
        shown = bench(url(daemon, "chat"), "--prompt-tokens=20", "--requests=3", "--rate=50",
                      "--answer-tokens=4", f"--compare={earlier}").stdout
        expect("no such load", "no step of such a load" in shown, True)
        for name in ("prompts   20 tokens; answers 4 tokens", "TTFT", "TPOT", "ITL", "E2EL",
                     "request   pp ", " output tok/s"):
            expect(name, name in shown, True)
        earlier.write_text('{"steps": [{"clients": 1, "requests_per_s": 1e308, "tg": 1e-308, '
                           '"pp": -1e300, "mean_ms": 0}]}')
        shown = bench(url(daemon, "chat"), "--prompt-tokens=20", "--answer-tokens=8",
                      "--requests=3", f"--compare={earlier}").stdout
        rows = re.findall(r"^ +1 (?:requests_per_s|tg|pp|mean_ms) .*", shown, re.MULTILINE)
        expect(f"rows: {shown}", len(rows), 4)
        expect(f"narrow rows: {rows}", max(map(len, rows)) <= 66, True)
        expect("a change", "1e+308" in rows[0] and rows[0].endswith(" -100.0 %"), True)
        earlier.write_text('{"steps": 5}')
        done = bench(url(daemon, "chat"), *lengths, f"--compare={earlier}", status=64)
        expect("no bench", "expected a document that --json has written" in done.stderr, True)


def wrong_calls():
    with Daemon(CHAT) as daemon:
        for status, text, arguments in (
                (64, "--prompt-tokens: expected up to 16", ["--prompt-tokens=0"]),
                (64, "--prompt-tokens: expected up to 16", ["--prompt-tokens=5..3"]),
                (64, "--prompt-tokens: expected up to 16", ["--prompt-tokens=1,"]),
                (64, "--prompt-tokens: expected up to 16", ["--prompt-tokens=" + "9" * 40]),
                (64, "--answer-tokens: expected up to 16", ["--answer-tokens=" + "1," * 16 + "1"]),
                (64, "--shape: not of completions", ["--answer-tokens=1", "--shape=x=1"]),
                (64, "--form: not of completions", ["--answer-tokens=1", "--form=json"]),
                (64, "expected one of them", ["--prompts=x", "--prompt-tokens=1"]),
                (65, "the context of model 'chat' has 256", ["--prompt-tokens=512"])):
            done = bench(url(daemon, "chat"), *arguments, status=status)
            expect(f"{text}: {done.stderr}", text in done.stderr and not done.stdout, True)
        done = bench(url(daemon, "none"), "--answer-tokens=1", status=66)
        expect("no such model", "HTTP 404" in done.stderr, True)


def hostile_servers():
    """What is no answer has failed, with the reason."""
    for parts, text in (
            ([b"data: {\n\n"], "the server sent no event"),
            ([b"data: [1]\n\n"], "the server sent no event"),
            ([b'data: {"x": ' + b"[" * 200 + b"\n\n"], "the server sent no event: "),
            ([b'data: {"error": ' + b"[" * 200 + b"\n\n"], "the server sent no event: "),
            ([b"data: " + b"9" * (5 << 20)], "an event of more than"),
            ([event(error={"message": "it\x1b[2J broke"})], "the answer ended: "),
            ([b"data: [DONE]\n\n"], "no event with text"),
            ([token(), event(choices=[], usage={"completion_tokens": -1})], "no event"),
            ([event(choices=[{"text": 5}, {}], usage=[]), b"id: 7\n\n"], "no event with text")):
        with Fake(parts) as fake:
            status = 77 if "ended" in text else 65
            done = bench(fake.url, "--answer-tokens=4", "--requests=2", status=status)
            expect(f"{text}: {done.stderr}", done.stderr.count(text), 1)
            expect("no controls", "\x1b" in done.stderr, False)
    with Fake([part for part in KNOWN if isinstance(part, bytes)]) as fake:
        expect("all at once", step(fake.url, "--answer-tokens=4", "--requests=2")["ok"], 2)


def uncounted():
    """A server that sends no usage, or half of it, has no figures of tokens, rather than zeros."""
    for usage in ([], [event(choices=[], usage={"prompt_tokens": 40})],
                  [event(choices=[], usage={})]):
        with Fake([part for part in KNOWN if part not in (USAGE, FIRST_S, GAP_S)] + usage) as fake:
            found = step(fake.url, "--answer-tokens=6", "--requests=3")
            expect("ok", found["ok"], 3)
            for name in ("total_input_tokens", "total_output_tokens", "output_throughput",
                         "total_token_throughput", "pp", "tg", "mean_tpot_ms"):
                expect(name, found.get(name), None)
            for name in ("mean_ttft_ms", "mean_itl_ms", "mean_e2el_ms"):
                expect(name, found[name] > 0, True)
            shown = bench(fake.url, "--answer-tokens=6", "--requests=3").stdout
            expect(shown, "did not count those of 3 of 3 answers\n" in shown, True)
            expect(shown, "tok/s" in shown or " pp " in shown, False)
            shown = bench(fake.url, "--answer-tokens=6", "--requests=3", "--clients=1,2").stdout
            expect(shown, "tok/s is unknown where the server did not count" in shown, True)
            expect(shown, len(re.findall(r"^ +[12] +[\d.]+ +0 +- +[\d.]", shown, re.M)), 2)


CHECKS = (known_times, uncounted, counts_agree, files, wrong_calls, hostile_servers)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
