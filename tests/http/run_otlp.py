#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Spans of calls, as a collector of OpenTelemetry gets them from a real daemon.

usage: run_otlp.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import json
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from run_answers import make_png
from run_cards import folder_of
from run_daemon import ADD, add_body, expect_exit, infer
from run_http import TIMEOUT_S, Client, Daemon, Report, build_request, expect
from run_metrics import pick, read, scrape

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-01"


class Collector:
    """Takes spans. |statuses|: of the first answers; later ones are 200. None: it hangs up."""

    def __init__(self, *statuses):
        self.spans, self.requests, self.statuses = [], [], list(statuses)
        self.changed = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            """One post."""
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                """Keeps the spans and answers."""
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with collector.changed:
                    status = collector.statuses.pop(0) if collector.statuses else 200
                    collector.requests.append((self.path, self.headers["Content-Type"], body))
                    if status == 200:
                        for scope in body["resourceSpans"][0]["scopeSpans"]:
                            collector.spans += scope["spans"]
                    collector.changed.notify_all()
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *arguments):  # pylint: disable=arguments-differ
                """Says nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *why):
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count):
        """The spans, once there are |count|."""
        with self.changed:
            self.changed.wait_for(lambda: len(self.spans) >= count, TIMEOUT_S)
            expect("spans", len(self.spans), count)
            return self.spans


def call(client, *fields, model="add", body=None):
    """The status of a call."""
    target = f"/v2/models/{model}/infer?access_token=secret"  # which no span has
    client.send(build_request("POST", target, body or add_body(), fields))
    status = client.answer()
    return status


def attributes(span):
    """The attributes by key, as Python has them."""
    values = {}
    for row in span["attributes"]:
        (kind, value), = row["value"].items()
        values[row["key"]] = int(value) if kind == "intValue" else value
    return values


def spans_of_a_call():
    """A call whose caller records it has its span, and one for each phase."""
    with Collector() as collector, Daemon([ADD, "--otlp-endpoint", collector.url + "/",
                                           "--otlp-service", 'the "edge"']) as daemon:
        client = Client(daemon.port)
        before = time.time_ns()
        expect("infer", call(client, SAMPLED, "User-Agent: test/1"), 200)
        field = client.field("traceparent")
        whole, *phases = collector.wait(5)
        path, content_type, body = collector.requests[0]
        expect("where", (path, content_type), ("/v1/traces", "application/json"))
        resource = body["resourceSpans"][0]["resource"]
        expect("service", attributes(resource)["service.name"], 'the "edge"')
        expect("ids", (whole["traceId"], whole["parentSpanId"], whole["spanId"]),
               (TRACE, PARENT, field.split("-")[2]))
        expect("name", (whole["name"], whole["kind"]),
               ("POST /v2/models/{m}[/versions/{v}]/infer", 2))
        values = attributes(whole)
        address = "127.0.0.1:%d" % client.socket.getsockname()[1]
        expect("attributes", values, {
            "http.request.method": "POST", "http.route": "/v2/models/{m}[/versions/{v}]/infer",
            "url.path": "/v2/models/add/infer", "client.address": address,
            "user_agent.original": "test/1", "http.response.status_code": 200,
            "pted.model": "add", "pted.batch_size": 1})
        expect("phases", [span["name"] for span in phases],
               ["prepare", "queue", "compute", "encode"])
        at = int(whole["startTimeUnixNano"])
        expect("now", before - 10**9 < at < time.time_ns(), True)
        for span in phases:
            expect("parent", (span["traceId"], span["parentSpanId"]), (TRACE, whole["spanId"]))
            expect("in order", int(span["startTimeUnixNano"]), at)
            at = int(span["endTimeUnixNano"])
        expect("inside", at <= int(whole["endTimeUnixNano"]), True)
        expect("ids differ", len({span["spanId"] for span in collector.spans}), 5)


def spans_of_files():
    """Reading files has a span below "prepare"."""
    if not ctypes.util.find_library("png16"):
        return
    card = {"inputs": [{"name": "image", "image": {"scale": 0.0625}}]}
    with folder_of("digits", digits=card) as folder, Collector() as collector, \
            Daemon(["--models", str(folder), "--otlp-endpoint", collector.url]) as daemon:
        client = Client(daemon.port)
        client.send(build_request("POST", "/v2/models/digits/call", make_png(8),
                                  ["Content-Type: image/png", SAMPLED]))
        expect("call", client.answer(), 200)
        spans = {span["name"]: span for span in collector.wait(6)}
        prepare, decode = spans["prepare"], spans["decode"]
        expect("parent", decode["parentSpanId"], prepare["spanId"])
        times = [int(span[f"{side}TimeUnixNano"]) for span, side in
                 ((prepare, "start"), (decode, "start"), (decode, "end"), (prepare, "end"))]
        expect("inside", times, sorted(times))


def which_requests():
    """The caller's flag decides; one of N other calls begins a trace; nothing else has spans."""
    with Collector() as collector, Daemon([ADD, "--otlp-endpoint", collector.url,
                                           "--trace-sample=4"]) as daemon:
        client = Client(daemon.port)
        expect("not recorded", call(client, SAMPLED[:-1] + "0"), 200)
        client.send(build_request("GET", "/v2/health/live"))
        expect("live", client.answer(), 200)
        fields = []
        for _ in range(8):
            expect("infer", call(client), 200)
            fields.append(client.field("traceparent"))
        expect("traces", [field is not None for field in fields], [True, False, False, False] * 2)
        expect("wrong", call(client, SAMPLED, model="nope"), 404)
        spans = collector.wait(11)
        roots = [span for span in spans if span["kind"] == 2]
        expect("roots", [("parentSpanId" in span, attributes(span)["http.response.status_code"])
                         for span in roots], [(False, 200), (False, 200), (True, 404)])
        expect("its trace", roots[0]["traceId"], fields[0].split("-")[1])
        series = read(scrape(client))
        expect("counted", (pick(series, "pted_traced_requests_total"),
                           pick(series, "pted_traced_lost_requests_total")), (3, 0))
    with Collector() as collector, Daemon([ADD, "--otlp-endpoint", collector.url,
                                           "--trace-sample=0"]) as daemon:
        expect("infer", call(Client(daemon.port)), 200)
        daemon.stop()
        expect("no trace begins", collector.spans, [])


def settings():
    """An administrator changes how many traces begin, switches spans off, and on again."""
    with Collector() as collector, Daemon([ADD, "--otlp-endpoint", collector.url, "--trace-sample",
                                           "9", "--admin-listen", "127.0.0.1:0"]) as daemon:
        client, admin = Client(daemon.port), Client(daemon.admin_port())

        def change(**wanted):
            admin.send(build_request("POST", "/v2/trace/setting", json.dumps(wanted).encode()))
            expect("change", admin.answer(), 200)
            got = json.loads(admin.body)
            return got["trace_level"], got["trace_rate"], got["trace_count"]

        def traced(count):
            fields = []
            for _ in range(count):
                expect("infer", call(client), 200)
                fields.append(client.field("traceparent") is not None)
            return sum(fields)

        expect("as it began", change(), (["TIMESTAMPS"], "9", "-1"))
        expect("every call", change(trace_rate="1"), (["TIMESTAMPS"], "1", "-1"))
        expect("traced", traced(3), 3)
        expect("two more", change(trace_count="2"), (["TIMESTAMPS"], "1", "2"))
        expect("traced", traced(5), 2)
        expect("none is left", change(), (["TIMESTAMPS"], "1", "0"))
        expect("off", change(trace_level=["OFF"], trace_count=None), (["OFF"], "1", "-1"))
        expect("traced", traced(2), 0)
        expect("callers' traces", call(client, SAMPLED), 200)
        expect("on", change(trace_level=["TIMESTAMPS"]), (["TIMESTAMPS"], "1", "-1"))
        expect("traced", traced(1), 1)
        expect("default", change(trace_rate=None), (["TIMESTAMPS"], "9", "-1"))
        spans = collector.wait(5 * 6)
        expect("none of the time when it was off",
               [span for span in spans if span["traceId"] == TRACE], [])


def hostile_clients():
    """Nothing that a client sends forges a span or breaks the document."""
    with Collector() as collector, Daemon([ADD, "--otlp-endpoint", collector.url]) as daemon:
        client = Client(daemon.port)
        agent = b'"},"a":[{' + b'"' * 300
        client.send(b"GET /v2/models/%22%5c HTTP/1.1\r\nHost: a\r\nUser-Agent: " + agent +
                    b"\r\n" + SAMPLED.encode() + b"\r\n\r\n")
        expect("status", client.answer(), 404)
        span, = collector.wait(1)
        values = attributes(span)
        expect("model", values["pted.model"], '"\\')
        expect("agent", values["user_agent.original"], agent.decode()[:200])


def collectors_that_fail():
    """A busy collector is asked again; one that refuses costs spans, and no call."""
    with Collector(503, None) as collector, Daemon([ADD, "--otlp-endpoint",
                                                    collector.url]) as daemon:
        client = Client(daemon.port)
        expect("infer", call(client, SAMPLED), 200)
        collector.wait(5)
        expect("tries", len(collector.requests), 3)
        expect("lost", pick(read(scrape(client)), "pted_traced_lost_requests_total"), 0)
    with Collector(400) as collector, Daemon([ADD, "--otlp-endpoint", collector.url]) as daemon:
        client = Client(daemon.port)
        expect("infer", call(client, SAMPLED), 200)
        daemon.wait_for(r"warning: traces: the collector answers 400; expected 200")
        expect("infer", call(client, SAMPLED), 200)
        daemon.wait_for(r"notice: traces: the collector takes spans again")
        expect("lost", pick(read(scrape(client)), "pted_traced_lost_requests_total"), 1)
        collector.wait(5)


def the_end():
    """The last spans are posted; a collector that does not answer does not delay the stop."""
    with Collector() as collector, Daemon([ADD, "--otlp-endpoint", collector.url]) as daemon:
        expect("infer", call(Client(daemon.port), SAMPLED), 200)
        daemon.stop()
        collector.wait(5)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with Daemon([ADD, "--otlp-endpoint", url]) as daemon:
            expect("infer", call(Client(daemon.port), SAMPLED), 200)
            expect("others", infer(Client(daemon.port)), 200)
            daemon.stop()


def wrong_settings():
    """An endpoint is a URL of HTTP."""
    expect_exit(64, "--otlp-endpoint: expected http://... or https://..., got 'localhost'", ADD,
                "--otlp-endpoint", "localhost")


CHECKS = (spans_of_a_call, spans_of_files, which_requests, settings, hostile_clients,
          collectors_that_fail, the_end, wrong_settings)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
