#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who comes next where something is short, by two clients: requests in flight, places in a queue,
threads, memory, lines of the log. run_shares.py has the places of connections.

usage: run_fairness.py, with top_srcdir and top_builddir in the environment.
"""
import gzip
import json
import os
import sys
import threading
import time

from load import (HELD_WORKER, hold_request, occupy, release, send_hold, wait_for_load, wait_until)
from run_access import Guarded, line
from run_daemon import ADD, add_body
from run_http import Client, Daemon, Report, build_request, expect
from run_metrics import pick
from run_shares import OTHER, ask, scrape


def resource(port, metric, name):
    """The figure of a resource, by one of the metrics of shares."""
    return pick(scrape(port), f"pted_share_{metric}", f'resource="{name}"')


def begin_request(port, source, token):
    """A request whose head is there. Returns its connection and the status: 100, or a refusal."""
    client = Client(port, source)
    fields = ["Expect: 100-continue", f"Authorization: Bearer {token}"]
    head, _, _ = build_request("POST", "/v2/models/add/infer", add_body(), fields).partition(
        b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    return client, client.answer()


def requests_in_flight():
    """One token comes from many addresses. Its requests leave some to another token, and probes."""
    lines = (line("one", "infer", "first"), line("two", "infer", "second"))
    with Guarded("--connection-count-max=32", "--health-listen", "127.0.0.1:0",
                 lines=lines) as tokens:
        port = tokens.daemon.port
        held = [begin_request(port, f"127.0.1.{i // 2}", "first") for i in range(24)]
        expect("as many as one may have", [status for _, status in held], [100] * 24)
        extra, status = begin_request(port, "127.0.1.9", "first")
        expect("beyond it", status, 429)
        expect("why", extra.body, b'{"error":"this client has 24 of 32 requests in flight, the '
               b'others are for other clients"}')
        expect("Retry-After", extra.field("retry-after"), "1")
        extra.close()
        other, status = begin_request(port, OTHER, "second")
        expect("another client", status, 100)
        probe = Client(port, "127.0.1.20")
        expect("a probe", ask(probe, "GET", "/v2/health/live"), 200)
        health = int(tokens.daemon.wait_for(r"http://127\.0\.0\.1:(\d+) for probes")[1])
        expect("most", resource(health, "most_held", "requests"), 24)
        expect("refused", resource(health, "refused_total", "requests"), 1)
        for client, _ in held[:2]:
            client.close()
        wait_until("two have ended", lambda: resource(health, "used", "requests") == 23)
        expect("in its place", begin_request(port, "127.0.1.9", "first")[1], 100)
        other.close()


def queue_of_a_model():
    """A client that has filled its part of a queue leaves places to another one."""
    with Daemon([*HELD_WORKER, "--queue-count-max=8"]) as daemon:
        held = occupy(daemon)
        waiting = [send_hold(daemon, 1) for _ in range(6)]
        wait_for_load(daemon, 2, 6)
        late = send_hold(daemon, 1)
        expect("beyond its part", late.answer(), 429)
        expect("why", late.body, b'{"error":"model \'hold\': this client has 6 of 8 requests that '
               b'wait to run, the others are for other clients"}')
        other = Client(daemon.port, OTHER)
        other.send(hold_request(1))
        wait_for_load(daemon, 2, 7)
        expect("most", resource(daemon.port, "most_held", "queues"), 6)
        expect("refused", resource(daemon.port, "refused_total", "queues"), 1)
        release(held)
        for client in (*waiting, other):
            expect("one that waited", client.answer(), 200)
        expect("used", resource(daemon.port, "used", "queues"), 0)


def lines_of_the_log():
    """A client that makes mistakes all the time leaves lines of the log to another one."""
    with Daemon([ADD]) as daemon:
        noisy, other = Client(daemon.port), Client(daemon.port, OTHER)
        for _ in range(50):
            expect("a mistake", ask(noisy, "GET", "/nowhere"), 404)
        expect("of another client", ask(other, "GET", "/elsewhere"), 404)
        daemon.wait_for("404 /elsewhere: ")
        most = resource(daemon.port, "most_held", "log_lines")
        expect(f"most: {most}", 10 <= most < 20, True)


def threads_in_turn():
    """Many long requests of a client wait for one thread. A long one of another client comes next,
    not last."""
    environment = {**os.environ, "UV_THREADPOOL_SIZE": "3"}  # one for heavy work
    matrix = [[1, 2, 3], [4, 5, 6]]
    text = json.dumps({"args": [matrix, matrix]}).encode()
    body = gzip.compress(text + b" " * (32 << 20))  # takes time to inflate and to read
    with Daemon([ADD], env=environment) as daemon:
        order = []

        def send(source, name):
            client = Client(daemon.port, source)
            client.send(build_request("POST", "/v2/models/add/call", body,
                                      ["Content-Encoding: gzip"]))
            expect(name, client.answer(), 200)
            order.append(name)

        threads = [threading.Thread(target=send, args=("127.0.0.1", "many")) for _ in range(16)]
        for thread in threads:
            thread.start()
        wait_until("many wait", lambda: pick(scrape(daemon.port), "pted_pool_tasks",
                                             'kind="heavy"') > 8)
        one = threading.Thread(target=send, args=(OTHER, "one"))
        one.start()
        for thread in (*threads, one):
            thread.join()
        expect(f"the last ones, of {order}", order[-3:], ["many"] * 3)


def memory_in_turn():
    """Many large uploads of a client wait for memory. One of another client comes next."""
    body = bytes(3 << 20)
    with Daemon([ADD, "--ring-bytes=16M"]) as daemon:
        order = []

        def send(source, name):
            client = Client(daemon.port, source)
            message = build_request("POST", "/v2/models/add/infer", body,
                                    ["Inference-Header-Content-Length: 100"])
            for begin in range(0, len(message), 1 << 16):
                client.send(message[begin:begin + (1 << 16)])
                time.sleep(0.005)  # it moves, but it takes some time
            expect(name, client.answer(), 400)
            order.append(name)

        threads = [threading.Thread(target=send, args=("127.0.0.1", "many")) for _ in range(12)]
        for thread in threads:
            thread.start()
        wait_until("memory is short", lambda: resource(daemon.port, "used", "transfers") > 6 << 20)
        one = threading.Thread(target=send, args=(OTHER, "one"))
        one.start()
        for thread in (*threads, one):
            thread.join()
        expect(f"the last ones, of {order}", order[-3:], ["many"] * 3)


CHECKS = (requests_in_flight, queue_of_a_model, lines_of_the_log, threads_in_turn, memory_in_turn)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
