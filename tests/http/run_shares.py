#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one client may take of what all clients use, against a real daemon: whoever takes all that
there is, probes, administrators and other clients find some.

usage: run_shares.py, with top_srcdir and top_builddir in the environment.
"""
import socket
import sys
import tempfile

from run_daemon import ADD, add_body, infer
from run_http import Client, Daemon, Report, build_request, expect
from run_metrics import pick, read

OTHER = "127.0.0.2"  # another client
SILENT = 80


class Roles(Daemon):
    """A daemon with an address of each role."""

    def __init__(self, *arguments):
        super().__init__([ADD, "--admin-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0",
                          *arguments])

    def health_port(self):
        """The port of --health-listen."""
        said = self.wait_for(r"listening on http://127\.0\.0\.1:(\d+) for probes")
        return int(said[1])


def ask(client, method, target):
    """The status."""
    client.send(build_request(method, target))
    return client.answer()


def is_closed(client):
    """Waits until the daemon has closed or refused the connection, without an answer."""
    try:
        return client.socket.recv(1) == b""
    except ConnectionResetError:
        return True


def scrape(port, source=OTHER):
    """The metrics."""
    client = Client(port, source)
    expect("metrics", ask(client, "GET", "/metrics"), 200)
    return read(client.body.decode())


def keep_busy(client):
    """Sends the head of a request, which the daemon has seen on return. Returns the body."""
    request = build_request("POST", "/v2/models/add/infer", add_body(), ["Expect: 100-continue"])
    head, _, body = request.partition(b"\r\n\r\n")
    client.send(head + b"\r\n\r\n")
    expect("interim", client.answer(), 100)
    return body


def silence_keeps_nobody_out():
    """Connections that send nothing, more than there are places, and an answer for everybody."""
    with Roles("--connection-count-max=64") as daemon:
        silent = [Client(daemon.port) for _ in range(SILENT)]
        for _ in range(3):
            expect("a probe", ask(Client(daemon.health_port()), "GET", "/v2/health/ready"), 200)
            expect("an administrator",
                   ask(Client(daemon.admin_port()), "POST", "/v2/repository/index"), 200)
            expect("another client", infer(Client(daemon.port, OTHER)), 200)
            expect("the same client", infer(Client(daemon.port)), 200)
        expect("the longest silent", is_closed(silent[0]), True)
        expect("the last one", infer(silent[-1]), 200)
        metrics = scrape(daemon.health_port())
        expect("displaced", pick(metrics, "pted_connections_displaced_total") > 0, True)


def half_a_head_is_silence():
    """Bytes that are no whole head keep no place."""
    with Roles("--connection-count-max=64") as daemon:
        for i in range(SILENT):
            Client(daemon.port, f"127.0.1.{i % 40}").send(b"GET / HTTP/1.1\r\nHost: ")
        expect("a probe", ask(Client(daemon.health_port()), "GET", "/v2/health/ready"), 200)
        expect("another client", infer(Client(daemon.port, OTHER)), 200)


def one_who_has_few_keeps_them():
    """The connection of a client that has one is the oldest, and stays."""
    with Roles("--connection-count-max=64") as daemon:
        one = Client(daemon.port, OTHER)
        expect("at first", infer(one), 200)
        many = [Client(daemon.port) for _ in range(SILENT)]
        expect("the last of many", infer(many[-1]), 200)
        expect("the oldest of many", is_closed(many[0]), True)
        expect("the one", infer(one), 200)


def busy_ones_stay():
    """If all of its connections have requests, a client gets 503, and others find places."""
    with Daemon([ADD, "--connection-count-max=4"]) as daemon:
        clients = [Client(daemon.port) for _ in range(3)]
        rests = [keep_busy(client) for client in clients]
        extra = Client(daemon.port)
        expect("beyond it", extra.answer(), 503)
        expect("why", extra.body, b'{"error":"this client has 3 of 4 connections, the '
               b'others are for other clients"}')
        expect("Retry-After", extra.field("retry-after"), "1")
        other = Client(daemon.port, OTHER)
        expect("a place that is kept for others", infer(other), 200)
        clients[0].send(rests[0])
        expect("the end of a body", clients[0].answer(), 200)
        expect("in the place of an idle one", infer(Client(daemon.port)), 200)
        expect("which is closed", is_closed(clients[0]), True)
        expect("one that has few", infer(other), 200)


def no_lack_of_descriptors():
    """Refused clients hold few descriptors: another one is answered while they stay."""
    with Daemon([ADD, "--connection-count-max=4"]) as daemon:
        clients = [Client(daemon.port) for _ in range(3)]
        rests = [keep_busy(client) for client in clients]
        refused = [Client(daemon.port) for _ in range(100)]
        expect("another", infer(Client(daemon.port, OTHER)), 200)
        expect("open", pick(scrape(daemon.port), "pted_connections") < 30, True)
        for client, rest in zip(clients, rests):
            client.send(rest)
            expect("the end of a body", client.answer(), 200)
        for client in refused:
            client.close()


def each_connection_to_a_path_is_a_client():
    """Clients of a socket in the file system are not told apart, and share nothing."""
    with tempfile.TemporaryDirectory() as folder, \
         Daemon([ADD, "--connection-count-max=8"],
                listen=("--listen", "127.0.0.1:0", "--listen", f"unix:{folder}/s")) as daemon:
        sockets = []
        for _ in range(12):
            sockets.append(socket.socket(socket.AF_UNIX))
            sockets[-1].connect(f"{folder}/s")
        expect("a client of the network", infer(Client(daemon.port)), 200)
        for one in sockets:
            one.close()


CHECKS = (silence_keeps_nobody_out, half_a_head_is_silence, one_who_has_few_keeps_them,
          busy_ones_stay, no_lack_of_descriptors, each_connection_to_a_path_is_a_client)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
