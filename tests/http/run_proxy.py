#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who a client is behind proxies, against a real daemon: whose word is believed, what of it, who is
charged, what the logs say. run_haproxy.py does it with a real proxy, and tests/unit/test_forwarded
has the forms of the fields.

usage: run_proxy.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys
import tempfile
from pathlib import Path

from run_daemon import ADD, infer
from run_http import MODELS, Client, Daemon, Report, build_request, expect
from run_shares import is_closed, keep_busy

RUNNING = str(MODELS / "running.pte")
PROXY, STRANGER = "127.0.0.2", "127.0.0.3"  # both connect; only the first is named
HERE, THERE = "203.0.113.1", "203.0.113.2"  # clients


def field_for(says, *addresses):
    """The field in which a proxy says that the request came by |addresses|."""
    if says == "forwarded":
        return "Forwarded: " + ", ".join(f"for={address}" for address in addresses)
    return "X-Forwarded-For: " + ", ".join(addresses)


def count(client, name, *fields, start=False):
    """Counts on in a sequence; None: it is gone."""
    body = {"args": [[1.0, 2.0, 3.0]],
            "parameters": {"sequence_id": name, "sequence_start": start}}
    client.send(build_request("POST", "/v2/models/running/call", json.dumps(body).encode(), fields))
    status = client.answer()
    return json.loads(client.body)["result"][1][0] if status == 200 else None


def keeps_its_sequence(one, many, fields_of_one=(), fields_of_many=()):
    """Is a sequence of |one| kept while |many| begins more than there is room for?"""
    expect("the one begins", count(one, "one", *fields_of_one, start=True), 1.0)
    for i in range(20):
        count(many, f"many-{i}", *fields_of_many, start=True)
    return count(one, "one", *fields_of_one) == 2.0


def tells_apart(port, fields_of_one, fields_of_many, source=PROXY):
    """Are these fields those of two clients?"""
    return keeps_its_sequence(Client(port, source), Client(port, source),
                              fields_of_one, fields_of_many)


class Sequences(Daemon):
    """A daemon that has room for a few sequences."""

    def __init__(self, *arguments):
        super().__init__([RUNNING, ADD, "--sequence-count-max=8", *arguments])


def clients_are_told_apart():
    for says in ("x-forwarded-for", "forwarded"):
        with Sequences(f"--proxy={PROXY}", f"--proxy-says={says}") as daemon:
            here, there = [field_for(says, HERE)], [field_for(says, THERE)]
            expect(f"{says}: two", tells_apart(daemon.port, here, there), True)
            expect(f"{says}: the same", tells_apart(daemon.port, here, here), False)
            forged = [field_for(says, "198.51.100.1"), field_for(says, HERE, PROXY)]
            expect(f"{says}: behind two", tells_apart(daemon.port, here, forged), False)


def only_named_proxies_are_believed():
    here, there = [field_for("", HERE)], [field_for("", THERE)]
    with Sequences(f"--proxy={PROXY}") as daemon:
        expect("a stranger", tells_apart(daemon.port, here, there, STRANGER), False)
        other = [field_for("forwarded", THERE)]
        expect("another field", tells_apart(daemon.port, [], other), False)
        said = [field_for("", "nonsense")]
        expect("malformed", tells_apart(daemon.port, [], said), False)
        expect("and the proxy", tells_apart(daemon.port, here, said), True)
        line = daemon.wait_for(r"proxy 127\.0\.0\.2:\d+: X-Forwarded-For: expected an address, "
                               r"got 'nonsense'")
        expect("in the log", line is not None, True)
    with Sequences() as daemon:
        expect("without the setting", tells_apart(daemon.port, here, there), False)


def connections_of_a_proxy_are_of_many():
    """No connection of a proxy is refused or closed for the number of the others."""
    with Daemon([ADD, "--connection-count-max=8", f"--proxy={PROXY}"]) as daemon:
        said = [Client(daemon.port, PROXY) for _ in range(7)]
        rests = [keep_busy(client, f"X-Forwarded-For: 203.0.113.{i}")
                 for i, client in enumerate(said)]
        expect("one that is left", infer(Client(daemon.port, STRANGER)), 200)
        for client, rest in zip(said, rests):
            client.send(rest)
            expect("the end of a body", client.answer(), 200)
    with Daemon([ADD, "--connection-count-max=8"]) as daemon:
        clients = [Client(daemon.port, PROXY) for _ in range(6)]
        for client in clients:
            keep_busy(client)
        expect("without the setting", Client(daemon.port, PROXY).answer(), 503)


def a_silent_one_of_a_proxy_gives_way():
    """When all places are taken, the one that has been silent for the longest time goes."""
    with Daemon([ADD, "--connection-count-max=8", f"--proxy={PROXY}"]) as daemon:
        silent = [Client(daemon.port, PROXY) for _ in range(9)]
        expect("a client", infer(Client(daemon.port, STRANGER)), 200)
        expect("the first", is_closed(silent[0]), True)
        expect("the last", infer(silent[-1]), 200)


def logs_have_both():
    """remote= is the client, via= the proxy; in the JSON of the access log too."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with Daemon([ADD, "--log-requests=all", "--access-log=all", f"--access-log-file={log}",
                     f"--proxy={PROXY}"]) as daemon:
            client = Client(daemon.port, PROXY)
            for field in (f"X-Forwarded-For: {HERE}", "X-Forwarded-For: [2001:db8::1]:80",
                          "X-Forwarded-For: unknown", "Accept: */*"):
                client.send(build_request("GET", "/v2", fields=[field]))
                expect("status", client.answer(), 200)
            expect("a stranger", infer(Client(daemon.port, STRANGER)), 200)
            for pattern in (r"remote=203\.0\.113\.1 via=127\.0\.0\.2:\d+ method=GET",
                            r"remote=2001:db8::1 via=127\.0\.0\.2:\d+ method=GET",
                            r"remote=127\.0\.0\.2:\d+ method=GET",
                            r"remote=127\.0\.0\.3:\d+ method=POST"):
                expect(pattern, daemon.wait_for(pattern) is not None, True)
        entries = [json.loads(line) for line in log.read_text().splitlines()]
        remotes = [entry["remote"].rpartition(":")[0] or entry["remote"] for entry in entries]
        expect("remote", remotes, [HERE, "2001:db8:", PROXY, PROXY, STRANGER])
        expect("via", ["via" in entry for entry in entries], [True, True, False, False, False])
        expect("the proxy", entries[0]["via"].rpartition(":")[0], PROXY)


CHECKS = (clients_are_told_apart, only_named_proxies_are_believed,
          connections_of_a_proxy_are_of_many, a_silent_one_of_a_proxy_gives_way, logs_have_both)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
