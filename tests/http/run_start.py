#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a daemon does while its first models load: probes get answers, calls wait, other requests
get 503, and a signal or a bad file ends it. The models come from a server that holds them back.

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
                             ("/v1/models", None)):
            status, head, answer = ask(path, target, body)
            expect(target, (status, "models are loading" in answer), (503, True))
            expect(f"{target}: when to ask again", "Retry-After: 1" in head, True)
        expect("no such path", ask(path, "/nowhere")[0], 404)
        origin.may_send.set()
        daemon.wait_for("serving 1 of 1 models")
        status, _, answer = ask(path, "/v2/models/add/call", json.dumps({"args": [MATRIX, MATRIX]}))
        expect("a call", (status, json.loads(answer)),
               (200, {"result": [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]}))


MATRIX = [[1, 2, 3], [4, 5, 6]]
CALLS = (("/v2/models/add/call", json.dumps({"args": [MATRIX, MATRIX]}), 200),
         ("/v2/models/add.forward/call", json.dumps({"args": [MATRIX, MATRIX]}), 200),
         ("/v2/models/add/call", '{"args":[]}', 400), ("/v2/models/none/call", "{}", 404),
         ("/v2/batch", json.dumps([{"model_name": "add", "args": [MATRIX, MATRIX]}]), 200),
         ("/v1/chat/completions", '{"messages":[]}', 404),
         ("/v1/embeddings", '{"model":"add","input":"a"}', 400),
         ("/v2/models/add/generate", '{"text_input":"a"}', 400))


class Waiting:
    """A call at the socket |path|, whose answer is awaited on a thread."""

    def __init__(self, path, target, body, *fields):
        self.answer = None
        self.thread = threading.Thread(target=self.run, args=(path, target, body, fields))
        self.thread.start()

    def run(self, path, target, body, fields):
        """Keeps the answer, or None if there is none."""
        command = ["curl", "-s", "-w", "\n%{http_code}", "--unix-socket", path, "--data-binary",
                   body, *(part for field in fields for part in ("-H", field))]
        done = subprocess.run([*command, f"http://x{target}"], capture_output=True, text=True,
                              check=False)
        self.answer = done.stdout.rpartition("\n") if done.returncode == 0 else None

    def join(self):
        """The status and the body."""
        self.thread.join()
        return (int(self.answer[2]), self.answer[0]) if self.answer else (0, "")


def wait_for_waiting(path, count):
    """Waits until so many calls wait."""
    line = f'pted_share_used{{resource="loading"}} {count}\n'
    wait_until(f"{count} calls wait", lambda: line in ask(path, "/metrics")[2])


def calls():
    """They wait for the models, and get the answers that they get later, too."""
    with starting() as (daemon, path, origin):
        waiting = [Waiting(path, target, body) for target, body, _ in CALLS]
        wait_for_waiting(path, len(CALLS))
        late = Waiting(path, *CALLS[0][:2], "X-Request-Timeout-Ms: 30")
        expect("its time is over", late.join()[0], 504)
        for (target, body, _), who in ((CALLS[0], "model 'add' is"), (CALLS[5], "the models are")):
            status, text = Waiting(path, target, body, "X-Request-Timeout-Ms: 30").join()
            expect(f"why: {text}", (status, f"{who} still loading after " in text), (504, True))
        origin.may_send.set()
        for call, (target, body, status) in zip(waiting, CALLS):
            got = call.join()
            expect(f"{target}: {got[1][:200]}", got[0], status)
            if status == 200:
                expect(target, ask(path, target, body)[2], got[1])
        wait_for_waiting(path, 0)
        daemon.wait_for("serving 1 of 1 models")


def too_many_calls():
    """Some wait no longer than they may, and there are places for a few."""
    with starting("--loading-count-max", "2", "--loading-timeout", "1s") as (_, path, origin):
        waiting = [Waiting(path, *CALLS[0][:2]) for _ in range(2)]
        wait_for_waiting(path, 2)
        expect("one more", ask(path, *CALLS[0][:2])[0], 429)
        expect("after a while", [call.join()[0] for call in waiting], [503, 503])
        origin.may_send.set()


def calls_of_a_start_that_fails():
    for data, number in ((b"no program, although it has more than the 64 bytes that one must have",
                          None), (DATA, signal.SIGTERM)):
        with starting(data=data) as (daemon, path, origin):
            waiting = [Waiting(path, *CALLS[0][:2]) for _ in range(3)]
            wait_for_waiting(path, 3)
            if number:
                daemon.process.send_signal(number)
            else:
                origin.may_send.set()
            expect("answers", [(status, "the daemon is stopping" in text)
                               for status, text in (call.join() for call in waiting)],
                   [(503, True)] * 3)
            expect("status", daemon.process.wait(TIMEOUT_S), 0 if number else 65)


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


CHECKS = (probes, other_requests, calls, too_many_calls, calls_of_a_start_that_fails, stopped,
          bad_file, hangup)


def main():
    report = Report()
    for check in CHECKS:
        report.run(check.__name__, check)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
