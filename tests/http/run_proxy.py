#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Who a client is behind proxies, against a real daemon: whose word is believed, what of it, who is
charged, what the logs say. run_haproxy.py does it with a real proxy, and tests/unit/test_forwarded
has the forms of the fields.

usage: run_proxy.py, with top_srcdir and top_builddir in the environment.
"""
import json
import resource
import shutil
import socket
import struct
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from run_daemon import ADD, infer
from run_http import MODELS, Client, Daemon, Report, build_request, expect
from run_shares import Roles, is_closed, keep_busy
from tls_client import Authority, TlsDaemon

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


SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def header_of(address, version=2, extra=b""):
    """The header of the PROXY protocol for a client at |address|."""
    if version == 1:
        return f"PROXY TCP4 {address} 10.0.0.1 4711 8000\r\n".encode()
    block = socket.inet_aton(address) + socket.inet_aton("10.0.0.1") + struct.pack(">HH", 4711, 80)
    block += extra
    return SIGNATURE + b"\x21\x11" + struct.pack(">H", len(block)) + block


LOCAL = SIGNATURE + b"\x20\0\0\0"


def introduce(port, header, source=PROXY):
    """A connection that begins with |header|."""
    client = Client(port, source)
    client.send(header)
    return client


class WithHeader(Sequences):
    """A daemon whose proxy speaks the PROXY protocol."""

    def __init__(self, *arguments):
        super().__init__(f"--proxy={PROXY}", "--proxy-says=proxy-protocol", *arguments)


def headers_name_clients():
    with WithHeader("--log-requests=all") as daemon:
        def keeps(one, many):
            return keeps_its_sequence(introduce(daemon.port, one), introduce(daemon.port, many))
        here, there = header_of(HERE), header_of(THERE)
        expect("two", keeps(here, there), True)
        expect("the same, in both versions", keeps(here, header_of(HERE, 1)), False)
        expect("the proxy and a client", keeps(LOCAL, here), True)
        expect("the proxy itself", keeps(LOCAL, b"PROXY UNKNOWN\r\n"), False)
        stranger = Client(daemon.port, STRANGER)
        expect("another peer is a plain client", infer(stranger), 200)
        expect("with a header", introduce(daemon.port, here, STRANGER).answer(), 400)
        client = introduce(daemon.port, header_of(HERE, 2, b"\x04\xff\xf0" + bytes(65520)))
        client.send(build_request("GET", "/v2", fields=[field_for("", THERE)]))
        expect("behind 64 KiB", client.answer(), 200)
        daemon.wait_for(r"remote=203\.0\.113\.1:4711 via=127\.0\.0\.2:\d+ method=GET")


def headers_come_in_pieces():
    with WithHeader() as daemon:
        for header in (header_of(HERE, 1), header_of(HERE)):
            client = Client(daemon.port, PROXY)
            for i in range(len(header)):
                client.send(header[i:i + 1])
                time.sleep(0.002)
            expect("a byte at a time", infer(client), 200)
            client = Client(daemon.port, PROXY)
            client.send(header + build_request("GET", "/v2") + build_request("GET", "/v2/none"))
            expect("in one piece with requests", (client.answer(), client.answer()), (200, 404))


def malformed_headers_end_connections():
    rows = ((build_request("GET", "/v2"), "expected PROXY at its beginning, or the signature"),
            (b"PROXY TCP4 203.0.113.9\r\n", "expected PROXY TCP4 FROM TO PORT PORT"),
            (SIGNATURE + b"\x31\x11\0\x0c", "byte 12: expected version 2"),
            (b"PROXY " + b"x" * 200, "expected at most 107 bytes"))
    with WithHeader("--header-timeout=300ms") as daemon:
        for header, why in rows:
            expect(why, is_closed(introduce(daemon.port, header)), True)
            daemon.wait_for(rf"proxy 127\.0\.0\.2:\d+: PROXY header.*{why}")
        expect("too late", is_closed(introduce(daemon.port, header_of(HERE)[:20])), True)
        daemon.wait_for("PROXY header: not complete in time after 20 bytes")
        cut = introduce(daemon.port, header_of(HERE)[:20])
        cut.socket.shutdown(socket.SHUT_WR)
        expect("cut", is_closed(cut), True)
        daemon.wait_for("PROXY header: the proxy closes the connection after 20 bytes")
        lines = daemon.read_log().count("PROXY header")
        Client(daemon.port, PROXY).close()
        expect("after a mere look", infer(introduce(daemon.port, header_of(HERE))), 200)
        expect("lines", daemon.read_log().count("PROXY header"), lines)


def connections_are_charged_to_clients():
    """Silent connections of one client behind the proxy push out none of another's."""
    with Roles("--connection-count-max=64", f"--proxy={PROXY}",
               "--proxy-says=proxy-protocol") as daemon:
        one = introduce(daemon.port, header_of(THERE))
        expect("the one", infer(one), 200)
        many = [introduce(daemon.port, header_of(HERE)) for _ in range(80)]
        expect("the last of many", infer(many[-1]), 200)
        expect("the first of many", is_closed(many[0]), True)
        expect("the one stays", infer(one), 200)
        probe = Client(daemon.health_port(), PROXY)
        probe.send(build_request("GET", "/v2/health/ready"))
        expect("a probe needs no header", probe.answer(), 200)
    with Daemon([ADD, "--connection-count-max=4", f"--proxy={PROXY}",
                 "--proxy-says=proxy-protocol"]) as daemon:
        clients = [introduce(daemon.port, header_of(HERE)) for _ in range(3)]
        for client in clients:
            keep_busy(client)
        extra = introduce(daemon.port, header_of(HERE))
        expect("beyond its share", extra.answer(), 503)
        expect("another", infer(introduce(daemon.port, header_of(THERE))), 200)
    with Daemon([ADD, "--connection-count-max=64", f"--proxy={PROXY}",
                 "--proxy-says=proxy-protocol"]) as daemon:
        silent = [Client(daemon.port, PROXY) for _ in range(80)]
        expect("the first without a header", is_closed(silent[0]), True)
        silent[-1].send(header_of(HERE))
        expect("the last", infer(silent[-1]), 200)
        expect("a stranger", infer(Client(daemon.port, STRANGER)), 200)


def headers_come_before_tls():
    with closing(Authority()) as authority:
        certificate, key = authority.sign("server")
        arguments = [ADD, "--log-requests=all", f"--proxy={PROXY}", "--proxy-says=proxy-protocol"]
        with TlsDaemon(arguments, certificate, key) as daemon:
            for header in (header_of(HERE, 1), header_of(HERE)):
                client = introduce(daemon.port, header)
                client.socket = authority.context().wrap_socket(client.socket,
                                                                server_hostname="localhost")
                expect("an answer", infer(client), 200)
            daemon.wait_for(r"remote=203\.0\.113\.1:4711 via=127\.0\.0\.2:\d+ method=POST")
            hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\x01"
            expect("TLS alone", is_closed(introduce(daemon.port, hello)), True)
            daemon.wait_for("PROXY header: expected PROXY at its beginning")
            expect("no handshake began", "TLS: no handshake" in daemon.read_log(), False)


def few_files():
    """Connections that have yet to say whose they are need descriptors beside those with places."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with Daemon([ADD, f"--proxy={PROXY}", "--proxy-says=proxy-protocol"],
                preexec_fn=limit) as daemon:
        daemon.wait_for("at most 16 connections: the process may have 64 files open")
        expect("one", infer(introduce(daemon.port, header_of(HERE))), 200)


CHECKS = (clients_are_told_apart, only_named_proxies_are_believed,
          connections_of_a_proxy_are_of_many, a_silent_one_of_a_proxy_gives_way, logs_have_both,
          headers_name_clients, headers_come_in_pieces, malformed_headers_end_connections,
          connections_are_charged_to_clients, few_files)
CHECKS += (headers_come_before_tls,) if shutil.which("openssl") else ()


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
