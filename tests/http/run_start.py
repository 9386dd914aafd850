#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a daemon does while its first models load: probes get answers, other requests get 503, and a
signal or a bad file ends it. The models come from a server that holds them back.

usage: run_start.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager

from load import wait_until
from run_fetch import DATA, Origin
from run_http import TIMEOUT_S, Daemon, Report, expect


class HoldingOrigin(Origin):
    """Sends no file before |may_send| is set."""

    def __init__(self):
        super().__init__()
        self.may_send = threading.Event()

    def send_file(self, handler, data):
        self.may_send.wait(TIMEOUT_S)
        super().send_file(handler, data)


def ask(path, target, body=None):
    """The status, the fields and the body of the answer at the socket |path|."""
    done = subprocess.run(
        ["curl", "-s", "-i", "--unix-socket", path, *(("--data-binary", body) if body else ()),
         f"http://x{target}"], capture_output=True, text=True, check=True)
    head, _, answer = done.stdout.partition("\n\n")
    return int(head.split()[1]), head, answer


@contextmanager
def starting(*arguments, data=DATA):
    """Yields a daemon whose model is held back, its socket, and the server that holds it."""
    with tempfile.TemporaryDirectory() as folder, HoldingOrigin() as origin:
        origin.files["/add.pte"] = data
        path = f"{folder}/socket"
        daemon = Daemon(["--cache-dir", f"{folder}/cache", f"{origin.url}/add.pte", *arguments],
                        listen=("--listen", f"unix:{path}"))
        wait_until("the file is asked for", lambda: origin.requests)
        yield daemon, path, origin
        if daemon.process.poll() is None:
            daemon.stop()


def probes():
    """Live, but not ready; a scraper sees that, too. Then it serves."""
    with starting() as (daemon, path, origin):
        expect("live", ask(path, "/v2/health/live")[0], 200)
        status, head, body = ask(path, "/v2/health/ready")
        expect("ready", (status, json.loads(body)["error"]), (503, "models are loading"))
        expect("when to ask again", "Retry-After: 1" in head, True)
        expect("metrics", "pted_ready 0\n" in ask(path, "/metrics")[2], True)
        expect("not yet", "listening" in daemon.read_log(), False)
        origin.may_send.set()
        daemon.wait_for(f"listening on unix:{path} ")
        daemon.wait_for("serving 1 of 1 models")
        expect("ready", ask(path, "/v2/health/ready")[0], 200)
        expect("metrics", "pted_ready 1\n" in ask(path, "/metrics")[2], True)
        expect("the model", json.loads(ask(path, "/v2/models")[2]), {"models": ["add"]})


def other_requests():
    """Nobody is told that a model is missing which may come, or gets a list without it."""
    with starting() as (daemon, path, origin):
        for target, body in (("/v2/models", None), ("/v2/models/add/ready", None),
                             ("/v2/models/add/call", '{"args":[]}'),
                             ("/v1/models", None), ("/v1/chat/completions", "{}")):
            status, head, answer = ask(path, target, body)
            expect(target, (status, "models are loading" in answer), (503, True))
            expect(f"{target}: when to ask again", "Retry-After: 1" in head, True)
        expect("no such path", ask(path, "/nowhere")[0], 404)
        origin.may_send.set()
        daemon.wait_for("serving 1 of 1 models")
        matrix = [[1, 2, 3], [4, 5, 6]]
        status, _, answer = ask(path, "/v2/models/add/call", json.dumps({"args": [matrix, matrix]}))
        expect("a call", (status, json.loads(answer)),
               (200, {"result": [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]}))


def stopped():
    """A signal ends it at once, whatever a thread waits for; that is no failure."""
    for number in (signal.SIGTERM, signal.SIGINT):
        with starting() as (daemon, path, _):
            daemon.process.send_signal(number)
            expect("status", daemon.process.wait(TIMEOUT_S), 0)
            daemon.wait_for("stopped while models were loading")
            expect("its socket", os.path.exists(path), False)


def bad_file():
    """The daemon ends with the message and the status of the file, as it does without a client."""
    with starting(data=b"no program, although it has more than the 64 bytes that one must have"
                  ) as (daemon, path, origin):
        expect("live", ask(path, "/v2/health/live")[0], 200)
        origin.may_send.set()
        expect("status", daemon.process.wait(TIMEOUT_S), 65)
        daemon.wait_for(r"error: .*/add\.pte: expected an ExecuTorch program")
        log = daemon.read_log()
        expect("lines", ("listening" in log, "stopped" in log), (False, False))
        expect("its socket", os.path.exists(path), False)


def hangup():
    """SIGHUP waits for the first models, and then looks for changed ones."""
    with starting() as (daemon, path, origin):
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("SIGHUP: looking for changed models")
        expect("ready", ask(path, "/v2/health/ready")[0], 503)
        origin.may_send.set()
        daemon.wait_for("model files: 0 loaded, 0 failed, 0 gone, 1 unchanged")
        expect("ready", ask(path, "/v2/health/ready")[0], 200)


CHECKS = (probes, other_requests, stopped, bad_file, hangup)


def main():
    report = Report()
    for check in CHECKS:
        report.run(check.__name__, check)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
