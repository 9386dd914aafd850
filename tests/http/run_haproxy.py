#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Three daemons behind a real haproxy with contrib/haproxy/haproxy.cfg: each is restarted, and the
model is replaced in each, while clients send requests. Not one request fails. Sequences stay with
one process. A client is known by what haproxy says of it, in each way that haproxy can say it.

usage: run_haproxy.py, with top_srcdir and top_builddir in the environment. Without haproxy the exit
status is 77.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from load import wait_until
from run_http import (MODELS, PTED, SOURCE, TIMEOUT_S, Client, Failure, Report, build_request,
                      expect)
from run_proxy import Sequences, keeps_its_sequence

HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
CONFIG = SOURCE / "contrib/haproxy/haproxy.cfg"
CLIENTS = 6
BODY = json.dumps({"inputs": [
    {"name": f"input_{i}", "shape": [2, 3], "datatype": "FP32", "data": [i + 1] * 6}
    for i in range(2)]}).encode()
SKIP = 77


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Process:
    """One daemon, always at the same port."""

    def __init__(self, folder, port):
        self.folder, self.port = folder, port
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [PTED, "--listen", f"127.0.0.1:{self.port}", "--models", str(self.folder), "--watch",
             "--workers=1", str(MODELS / "running.pte")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until("the daemon", lambda: is_open(self.port))

    def stop(self):
        self.process.terminate()
        expect("exit status", self.process.wait(TIMEOUT_S), 0)


@contextmanager
def cluster():
    """Yields the port of haproxy and the three daemons."""
    with tempfile.TemporaryDirectory() as name:
        processes = []
        for i in range(3):
            folder = Path(name) / str(i)
            folder.mkdir()
            shutil.copy(MODELS / "add.pte", folder / "add.pte")
            processes.append(Process(folder, free_port()))
        port = free_port()
        names = ("PTED_ONE", "PTED_TWO", "PTED_THREE")
        environment = {**os.environ, "PTED_BIND": f"127.0.0.1:{port}",
                       **{name: f"127.0.0.1:{process.port}"
                          for name, process in zip(names, processes)}}
        proxy = subprocess.Popen([HAPROXY, "-db", "-f", CONFIG], env=environment,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            wait_until("haproxy", lambda: is_open(port))
            wait_until("answers", lambda: send(Client(port)) == 200)
            yield port, processes
        finally:
            proxy.send_signal(signal.SIGKILL)
            proxy.wait()
            for process in processes:
                process.stop()


def send(client):
    client.send(build_request("POST", "/v2/models/add/infer", BODY))
    return client.answer()


class Load:
    def __init__(self, port):
        self.port = port
        self.count, self.failures, self.has_ended = 0, [], False
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]

    def run(self):
        try:
            client = Client(self.port)
            while not self.has_ended:
                status = send(client)
                expect(f"status: {client.body[:200]!r}", status, 200)
                expect("sum", json.loads(client.body)["outputs"][0]["data"], [3.0] * 6)
                self.count += 1
        except (Failure, OSError, ValueError) as failure:
            self.failures.append(failure)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def wait(self, answers):
        goal = self.count + answers
        wait_until("answers", lambda: self.failures or self.count >= goal)

    def __exit__(self, *_):
        self.has_ended = True
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


def rolling_restart():
    with cluster() as (port, processes), Load(port) as load:
        for process in processes * 2:
            load.wait(200)
            process.stop()
            load.wait(200)
            process.start()
            time.sleep(0.5)  # haproxy looks every 200 ms


def rolling_update():
    with cluster() as (port, processes), Load(port) as load:
        for process in processes:
            load.wait(200)
            new = process.folder / ".new"
            shutil.copy(MODELS / "add.pte", new)
            os.replace(new, process.folder / "add.pte")
        load.wait(1000)


def sequences_stay():
    with cluster() as (port, _):
        clients = {f"s{n}": Client(port) for n in range(9)}
        for count in range(1, 6):
            for name, client in clients.items():
                parameters = {"sequence_id": name, "sequence_start": count == 1}
                body = json.dumps({"args": [[1.0, 2.0, 3.0]], "parameters": parameters}).encode()
                client.send(build_request("POST", "/v2/models/running/call", body,
                                          [f"X-Sequence-Id: {name}"]))
                expect(f"{name}: {client.body[:200]!r}", client.answer(), 200)
                expect(name, json.loads(client.body)["result"][1][0], float(count))


# How haproxy says it: --proxy-says, a line of its configuration, and words about the server there.
WAYS = (
    ("x-forwarded-for", "option forwardfor", ""),
    ("forwarded", "http-request add-header Forwarded for=%[src]", ""),
    ("proxy-protocol", "", "send-proxy"),
    ("proxy-protocol", "", "send-proxy-v2 check inter 100ms"),
    ("proxy-protocol", "", "send-proxy-v2 proxy-v2-options unique-id,crc32c"),
)
WITH_A_WAY = """
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    option http-keep-alive
listen models
    bind 127.0.0.1:{port}
    {line}
    server one 127.0.0.1:{to} {words}
"""


@contextmanager
def one_behind(line, words, to):
    """Yields the port of a haproxy in front of one daemon at the port |to|."""
    port = free_port()
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(WITH_A_WAY.format(port=port, line=line, to=to, words=words))
        config.flush()
        proxy = subprocess.Popen([HAPROXY, "-db", "-f", config.name], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until("haproxy", lambda: is_open(port))
            yield port
        finally:
            proxy.send_signal(signal.SIGKILL)
            proxy.wait()


def clients_are_known():
    """Two clients behind haproxy are two clients: one cannot take the share of the other."""
    for says, line, words in WAYS:
        arguments = ["--proxy=127.0.0.1", f"--proxy-says={says}", "--log-requests=all"]
        with Sequences(*arguments) as daemon, \
             one_behind(line, words, daemon.port) as port:
            one, another, many = (Client(port, f"127.0.0.{n}") for n in (2, 2, 3))
            expect(f"{says} {words}: two", keeps_its_sequence(one, many), True)
            expect(f"{says} {words}: the same", keeps_its_sequence(one, another), False)
            forged = ["X-Forwarded-For: 203.0.113.9", "Forwarded: for=203.0.113.9"]
            expect(f"{says} {words}: forged", keeps_its_sequence(one, another, [], forged), False)
            daemon.wait_for(r"remote=127\.0\.0\.3\S* via=127\.0\.0\.1:\d+ method=POST")
    with Sequences("--proxy=127.0.0.9") as daemon, \
         one_behind(WAYS[0][1], "", daemon.port) as port:
        one, many = Client(port, "127.0.0.2"), Client(port, "127.0.0.3")
        expect("of no named proxy", keeps_its_sequence(one, many), False)


def main():
    if not HAPROXY:
        print("1..0 # SKIP haproxy is not installed")
        return SKIP
    report = Report()
    report.run_all((rolling_restart, rolling_update, sequences_stay, clients_are_known))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
