#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TLS, and listeners for probes, against a real daemon.

usage: run_tls.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import random
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from run_daemon import ADD, add_body, run
from run_http import PTED, TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect
from run_metrics import pick, read
from tls_client import RSA, Authority, TlsClient, TlsDaemon, TlsSocket, need_openssl, openssl

V2, V3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
GET = build_request("GET", "/v2/health/live")
INFER = build_request("POST", "/v2/models/add/infer", add_body())
CURL = shutil.which("curl")
WIDE = str(Path(ADD).with_name("wide.pte"))


class World:
    """What most checks share: an authority and a certificate of it."""

    def __init__(self):
        self.authority = Authority()
        self.pair = self.authority.sign("server")
        self.rsa = self.authority.sign("rsa", key=RSA)
        self.context = self.authority.context()

    def daemon(self, *arguments, pair=None, **named):
        """A daemon of TLS with the model add."""
        return TlsDaemon([ADD, *arguments], *(pair or self.pair), **named)

    def client(self, daemon, **named):
        """A client of it."""
        return TlsClient(daemon.port, named.pop("context", self.context), **named)


WORLD = None


def ask(client, data=INFER):
    """The status of the answer."""
    client.send(data)
    return client.answer()


def scrape(daemon):
    """The series of a daemon with --health-listen."""
    port = int(daemon.wait_for(r"listening on http://127\.0\.0\.1:(\d+) for probes")[1])
    client = Client(port)
    expect("metrics", ask(client, build_request("GET", "/metrics")), 200)
    client.close()
    return read(client.body.decode())


def wait_until(what, condition):
    """Fails if it does not become true."""
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not in time")
        time.sleep(0.01)


def wait_for_failures(daemon, reason, count):
    """Waits for a number of handshakes that failed for that reason."""
    wait_until(f"{reason} {count}", lambda: pick(
        scrape(daemon), "pted_tls_handshake_failures_total", f'reason="{reason}"') >= count)


HEALTH = ("--health-listen", "127.0.0.1:0")


# ---- requests ----

def versions():
    """TLS 1.2 and 1.3, RSA and ECDSA, and nothing older; sessions are resumed."""
    for pair in (WORLD.pair, WORLD.rsa):
        with WORLD.daemon(*HEALTH, "--access-log=all", pair=pair) as daemon:
            for version, name in ((V2, "TLSv1.2"), (V3, "TLSv1.3")):
                context = WORLD.authority.context(version=version)
                client = WORLD.client(daemon, context=context)
                expect("infer", ask(client), 200)
                expect("version", client.socket.tls.version(), name)
                session = client.socket.tls.session
                client.close()
                again = WORLD.client(daemon, context=context, session=session)
                expect("infer again", ask(again), 200)
                expect("resumed", again.socket.tls.session_reused, True)
                again.close()
                series = scrape(daemon)
                for kind in ("new", "resumed"):
                    expect(kind, pick(series, "pted_tls_handshakes_total", f'version="{name}"',
                                      f'session="{kind}"'), 1)
                daemon.wait_for(f'"tls":"{name}"')
            expect("expiry", 29 < (pick(series, "pted_tls_certificate_expiry_time_seconds") -
                                   time.time()) / 86400 < 31, True)
    with WORLD.daemon("--tls-min-version=1.3") as daemon:
        expect("1.3", ask(WORLD.client(daemon)), 200)
        refused(daemon, WORLD.authority.context(version=V2))
    with WORLD.daemon() as daemon:
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{daemon.port}",
                               "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, check=False)
        expect("1.1", done.returncode != 0, True)
        for cipher in ("AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-SHA"):  # no secrecy; CBC
            old = WORLD.authority.context(version=V2)
            old.set_ciphers(cipher)
            refused(daemon, old)
        for names, status in ((["http/1.1"], 200), (["h3", "http/1.1"], 200)):
            named = WORLD.authority.context()
            named.set_alpn_protocols(names)
            client = WORLD.client(daemon, context=named)
            expect("ALPN", ask(client), status)
            expect("chosen", client.socket.tls.selected_alpn_protocol(), "http/1.1")
        only = WORLD.authority.context()
        only.set_alpn_protocols(["h3"])
        refused(daemon, only)
        expect("afterwards", ask(WORLD.client(daemon)), 200)


def refused(daemon, context):
    """A client of that kind gets no answer, but an alert or the end."""
    try:
        client = TlsClient(daemon.port, context)
        status = ask(client)  # of TLS 1.3: the refusal comes after the client's handshake
    except (ssl.SSLError, ConnectionError, Failure) as error:
        return error
    raise Failure(f"expected no handshake, got {status}")


def sizes():
    """Bodies and answers around the size of a record, and of many records."""
    with WORLD.daemon(WIDE, "--body-bytes-max=64M") as daemon:
        client = WORLD.client(daemon)
        for rows in (1, 2, 255, 256, 257, 511, 512, 513, 1023, 1024, 4096, 65536):
            data = struct.pack("<f", rows) * (rows * 16)
            head = json.dumps({"inputs": [{
                "name": "input_0", "shape": [rows, 16], "datatype": "FP32",
                "parameters": {"binary_data_size": len(data)}}],
                "parameters": {"binary_data_output": True}}).encode()
            status = ask(client, build_request(
                "POST", "/v2/models/wide/infer", head + data,
                [f"Inference-Header-Content-Length: {len(head)}"]))
            expect(f"{rows} rows", status, 200)
            cut = int(client.field("inference-header-content-length"))
            expect("bytes of the answer", len(client.body) - cut, len(data))
            expect("answer", client.body[cut:cut + 4], client.body[-4:])
        client.close()


def pipelined():
    """Many requests in one record, and in the smallest pieces."""
    with WORLD.daemon() as daemon:
        client = WORLD.client(daemon)
        for count in (2, 200):
            client.send((GET + INFER) * count)
            expect("answers", [client.answer() for _ in range(2 * count)], [200] * 2 * count)
        client.close()
        slow = WORLD.client(daemon, piece=1)   # the handshake, too
        expect("byte by byte", ask(slow), 200)
        for byte in GET:
            slow.socket.sendall(bytes([byte]))  # a record each
        expect("a record for each byte", slow.answer(), 200)
        slow.close()


def slow_reader():
    """A client that does not read holds up nobody; then it gets everything."""
    with WORLD.daemon(WIDE) as daemon:
        data = struct.pack("<f", 2) * (16384 * 64)
        head = json.dumps({"inputs": [{
            "name": "input_0", "shape": [16384, 64], "datatype": "FP32",
            "parameters": {"binary_data_size": len(data)}}],
            "parameters": {"binary_data_output": True}}).encode()
        request = build_request("POST", "/v2/models/wide/infer", head + data,
                                [f"Inference-Header-Content-Length: {len(head)}"])
        slow = WORLD.client(daemon)
        slow.send(request)
        quick = WORLD.client(daemon)
        for _ in range(20):
            expect("others", ask(quick), 200)
        expect("slow", slow.answer(), 200)
        cut = int(slow.field("inference-header-content-length"))
        expect("its bytes", len(slow.body) - cut, len(data))
        slow.send(request)
        slow.reset()                           # in the middle of the answer, or before it
        expect("others", ask(quick), 200)


# ---- certificates of clients ----

def client_certificates():
    """Only clients with a good certificate get in; the log has its name, which cannot forge."""
    authority, other = WORLD.authority, Authority("other")
    usage = {"usage": "clientAuth"}
    good = authority.sign("good", '/O=Example/CN=robot "1"\n\\u202e', **usage)
    expired = authority.sign("expired", "/CN=old", is_expired=True, **usage)
    foreign = other.sign("foreign", "/CN=foreign", **usage)
    wrong_use = authority.sign("wrong", "/CN=server", usage="serverAuth")
    try:
        with WORLD.daemon(*HEALTH, "--tls-client-ca", authority.ca, "--access-log=all") as daemon:
            for version in (V2, V3):
                client = WORLD.client(daemon, context=authority.context(good, version))
                expect("good", ask(client), 200)
                client.close()
                for bad in (None, expired, foreign, wrong_use):
                    refused(daemon, authority.context(bad, version))
            wait_for_failures(daemon, "certificate", 8)
            for text in ("peer did not return a certificate", "certificate has expired",
                         "unable to get local issuer certificate|unable to verify", "purpose"):
                daemon.wait_for(f"TLS: no handshake with 127.*({text}).*certificate")
            line = json.loads(daemon.wait_for(r'\n(\{"time".*"tls_subject":.*\})\n')[1])
            expect("subject", "O=Example" in line["tls_subject"] and "robot" in
                   line["tls_subject"], True)
            expect("no control", any(ord(c) < 32 for c in line["tls_subject"]), False)
    finally:
        other.close()


# ---- clients that do not speak TLS, or badly ----

def plain(daemon, data, is_all=False):
    """Sends bytes without TLS; returns what comes until the end. |is_all|: says that it is all."""
    with socket.create_connection(("127.0.0.1", daemon.port), TIMEOUT_S) as client:
        try:
            client.sendall(data)
            if is_all:
                client.shutdown(socket.SHUT_WR)
            answer = b""
            while True:
                part = client.recv(65536)
                if not part:
                    return answer
                answer += part
        except ConnectionError:
            return answer


def plain_http():
    """HTTP without TLS is answered 400 in its own language; TLS to a plain port is refused."""
    with WORLD.daemon(*HEALTH) as daemon:
        for data in (GET, INFER, b"OPTIONS * HTTP/1.1\r\n\r\n", b"P"):
            answer = plain(daemon, data)
            expect("status", answer.split(b"\r\n")[0], b"HTTP/1.1 400 Bad Request")
            expect("text", json.loads(answer.partition(b"\r\n\r\n")[2])["error"],
                   "this address speaks TLS: ask it by https://")
        daemon.wait_for("the client speaks HTTP without TLS")
        wait_for_failures(daemon, "http", 4)
        expect("others", ask(WORLD.client(daemon)), 200)
    with Daemon([ADD]) as daemon:
        refused(daemon, WORLD.context)


def garbage():
    """Bytes that are no handshake, or a damaged one."""
    hello = client_hello()
    rng = random.Random(5)
    with WORLD.daemon(*HEALTH) as daemon:
        count = 0
        for data in (b"\0", b"\x16\x03\x01\0\0", b"\x16\x03\x01\0\x03\x01\0\0\0\0\0",
                     b"\x16\x03\x01\xff\xff" + b"\x01\xff\xff\xff" + bytes(70000),
                     b"\x16\x03\x01\x40\0\x01\0\x40\x01" + bytes(20000),
                     b"\x15\x03\x01\0\x02\x02\x28", b"\x17\x03\x03\0\x10" + bytes(16),
                     b"\x80\x2e\x01\x03\x01" + bytes(60), os.urandom(5000), b"get / http\r\n"):
            plain(daemon, data if data[:1] < b"A" or data[:1] > b"Z" else b"\0" + data, True)
            count += 1
        wait_until("failures", lambda: sum(
            value for (name, _), value in scrape(daemon).items()
            if name == "pted_tls_handshake_failures_total") >= count)
        for _ in range(150):
            data = bytearray(hello)
            for _ in range(rng.randrange(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            cut = rng.randrange(len(data)) if rng.random() < 0.3 else len(data)
            with socket.create_connection(("127.0.0.1", daemon.port), TIMEOUT_S) as client:
                client.sendall(data[:cut])
                client.shutdown(socket.SHUT_WR)
        expect("others", ask(WORLD.client(daemon)), 200)


def client_hello():
    """The first record of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = WORLD.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


class Mutant(TlsSocket):
    """Changes, cuts or repeats some of its records after the handshake."""

    rng = random.Random(11)
    is_armed = False

    def flush(self):
        data = bytearray(self.outgoing.read())
        if self.is_armed and data:
            how = self.rng.randrange(4)
            at = self.rng.randrange(len(data))
            if how == 0:
                data[at] ^= 1 << self.rng.randrange(8)
            elif how == 1:
                del data[at:]
            elif how == 2:
                data *= 2
            else:
                data[at:at] = self.rng.randbytes(self.rng.randrange(1, 40))
        if data:
            self.socket.sendall(data)


def mutated_records():
    """A damaged record ends its connection, and only that; no damaged request is answered."""
    with WORLD.daemon() as daemon:
        for round_ in range(150):
            version = (V2, V3)[round_ % 2]
            client = Mutant(daemon.port, WORLD.authority.context(version=version))
            client.sendall(GET)
            expect("before", client.recv(65536)[:15], b"HTTP/1.1 200 OK")
            client.is_armed = True
            try:
                client.sendall(INFER)
                client.socket.shutdown(socket.SHUT_WR)
                while client.socket.recv(65536):
                    pass
            except OSError:
                pass
            client.socket.close()
        expect("others", ask(WORLD.client(daemon)), 200)


def stalled():
    """Half a handshake is cut after --header-timeout; others are served meanwhile."""
    hello = client_hello()
    with WORLD.daemon(*HEALTH, "--header-timeout=3s", "--idle-timeout=60m") as daemon:
        stalls = []
        for size in (0, 1, 8, 9, 100, len(hello)):
            client = socket.create_connection(("127.0.0.1", daemon.port), TIMEOUT_S)
            client.sendall(hello[:size])
            stalls.append(client)
        idle = WORLD.client(daemon)             # a handshake, and no request
        for _ in range(20):
            expect("others", ask(WORLD.client(daemon)), 200)
        for client in stalls:
            while client.recv(65536):
                pass
            client.close()
        wait_for_failures(daemon, "cut", 6)
        expect("an idle connection stays", ask(idle), 200)


def cut_connections():
    """A client that goes at any point of its records costs nobody anything."""
    with WORLD.daemon(*HEALTH) as daemon:
        for size in range(1, len(client_hello()), 41):
            with socket.create_connection(("127.0.0.1", daemon.port), TIMEOUT_S) as client:
                client.sendall(client_hello()[:size])
        for size in range(1, len(INFER) + 40, 23):
            client = TlsSocket(daemon.port, WORLD.context)
            client.tls.write(INFER)
            client.socket.sendall(client.outgoing.read()[:size])
            if size % 2:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                  struct.pack("ii", 1, 0))
            client.socket.close()
        # Half a request, then an end without close_notify: not even a refusal is due.
        client = TlsSocket(daemon.port, WORLD.context)
        client.sendall(INFER[:-3])
        client.socket.shutdown(socket.SHUT_WR)
        expect("cut", client.recv(100), b"")
        wait_until("all are gone", lambda: pick(scrape(daemon), "pted_connections") == 1)
        expect("others", ask(WORLD.client(daemon)), 200)


def ends():
    """close_notify comes from the daemon, and from the client it ends only one direction."""
    with WORLD.daemon("--idle-timeout=2s") as daemon:
        for version in (V2, V3):
            context = WORLD.authority.context(version=version)
            half = TlsSocket(daemon.port, context)
            half.sendall(GET)
            half.shutdown(socket.SHUT_WR)
            data = b""
            while b'{"live":true}' not in data:
                part = half.recv(4096)
                if not part:
                    raise Failure(f"no answer after close_notify: {data!r}")
                data += part
            expect_notified(half)
            asked = TlsSocket(daemon.port, context)
            asked.sendall(build_request("GET", "/v2/health/live", fields=["Connection: close"]))
            expect("closes", asked.recv(4096)[:12], b"HTTP/1.1 200")
            expect_notified(asked)
            idle = TlsSocket(daemon.port, context)
            expect_notified(idle)               # --idle-timeout


def expect_notified(client):
    """The next thing is close_notify, after the rest of an answer."""
    try:
        while client.run(client.tls.read, 4096):
            pass
    except ssl.SSLZeroReturnError:
        pass
    except (ssl.SSLEOFError, ConnectionError) as error:
        raise Failure(f"expected close_notify, got {error}") from error
    client.socket.close()


def read_until(child, text):
    """What a program writes, up to |text| or its end."""
    data = b""
    while text not in data:
        part = child.stdout.read(65536)
        if not part:
            break
        data += part
    return data


def renegotiation():
    """A client of TLS 1.2 that asks to begin again is refused; keys of 1.3 may change."""
    with WORLD.daemon() as daemon:
        for version, letter in (("-tls1_2", "R"), ("-tls1_3", "K")):
            with subprocess.Popen(
                    ["openssl", "s_client", "-connect", f"127.0.0.1:{daemon.port}", version,
                     "-CAfile", WORLD.authority.ca], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0) as child:
                child.stdin.write(f"{letter}\n".encode())
                data = read_until(child, b"KEYUPDATE" if letter == "K" else b"RENEGOTIATING")
                time.sleep(0.1)                 # it takes a letter only as a line of its own
                try:
                    child.stdin.write(GET)
                except BrokenPipeError:
                    pass
                data += read_until(child, b'"live":true')
                child.kill()
            expect(f"{version} {data[-300:]!r}", b'"live":true' in data, letter == "K")
            expect("its reason", b"no renegotiation" in data, letter == "R")
        expect("others", ask(WORLD.client(daemon)), 200)


# ---- certificates change ----

def reload_under_load():
    """SIGHUP takes a new certificate into use; no request fails, no connection ends."""
    with tempfile.TemporaryDirectory() as folder:
        pair = [str(Path(folder) / name) for name in ("cert.pem", "key.pem")]

        def put(source):
            for path, origin in zip(pair, source):
                shutil.copy(origin, path + ".new")
                os.rename(path + ".new", path)

        put(WORLD.pair)
        with WORLD.daemon(*HEALTH, pair=pair) as daemon:
            kept = WORLD.client(daemon)
            expect("before", ask(kept), 200)
            stop, counts, problems = threading.Event(), [0, 0], []

            def load(index):
                while not stop.is_set():
                    try:
                        client = WORLD.client(daemon)
                        for _ in range(3):
                            if ask(client) != 200:
                                problems.append("status")
                        client.close()
                        counts[index] += 1
                    except (OSError, Failure) as error:
                        problems.append(repr(error))

            threads = [threading.Thread(target=load, args=(index,)) for index in range(2)]
            for thread in threads:
                thread.start()
            for round_ in range(6):
                put((WORLD.rsa, WORLD.pair)[round_ % 2])
                daemon.process.send_signal(signal.SIGHUP)
                wait_until("reload", lambda n=round_ + 2: daemon.read_log().count(
                    "TLS: the certificate of") >= n)
                before = list(counts)
                wait_until("load", lambda b=before: all(c > a for c, a in zip(counts, b)))
            is_shown = certificate_of(daemon)
            put(WORLD.rsa)
            Path(pair[1]).write_text("no key")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(r"SIGHUP: TLS key .*key\.pem: expected the key of the certificate")
            daemon.wait_for("the settings are refused; the old ones stay")
            expect("the old one", certificate_of(daemon), is_shown)
            shutil.copy(WORLD.rsa[1], pair[1])
            daemon.process.send_signal(signal.SIGHUP)
            wait_until("another", lambda: certificate_of(daemon) != is_shown)
            stop.set()
            for thread in threads:
                thread.join()
            expect("problems", problems, [])
            expect("a connection from before", ask(kept), 200)


def certificate_of(daemon):
    """What the daemon shows."""
    client = TlsSocket(daemon.port, WORLD.context)
    certificate = client.tls.getpeercert(True)
    client.close()
    return certificate


def files():
    """What is wrong with a file is said at the start and by --check-config."""
    certificate, key = WORLD.pair
    with tempfile.TemporaryDirectory() as folder:
        broken, locked = Path(folder) / "broken.pem", str(Path(folder) / "locked.key")
        broken.write_text("nothing")
        openssl("ec", "-in", key, "-out", locked, "-aes128", "-passout", "pass:x")
        other = WORLD.authority.sign("other")
        joined = Path(folder) / "joined.pem"
        joined.write_text(Path(certificate).read_text() + Path(key).read_text())
        joined.chmod(0o604)
        rows = (
            (66, "TLS certificate /none: No such file", "--tls-cert=/none"),
            (65, "TLS certificate /dev: expected a file", "--tls-cert=/dev"),
            (65, f"TLS certificate {broken}: expected certificates in PEM: no start line",
             f"--tls-cert={broken}"),
            (66, "TLS key /none: No such file", "--tls-cert", certificate, "--tls-key=/none"),
            (65, "expected the key of the certificate.*no certificate assigned", "--tls-cert",
             certificate, "--tls-key", WORLD.rsa[1]),
            (65, "expected the key of the certificate.*key values mismatch", "--tls-cert",
             certificate, "--tls-key", other[1]),
            (65, f"TLS key {locked}: expected the key of the certificate, in PEM and without a",
             "--tls-cert", certificate, "--tls-key", locked),
            (65, f"TLS key {certificate}: expected the key", "--tls-cert", certificate),
            (65, f"TLS client CA {broken}: expected certificates", "--tls-cert", certificate,
             "--tls-key", key, "--tls-client-ca", str(broken)),
        )
        for status, text, *arguments in rows:
            for more in ([], ["--check-config"]):
                done = run(ADD, *arguments, *more)
                expect(f"{arguments} {more}: {done.stderr}", done.returncode, status)
                expect(done.stderr, re.search(text, done.stderr) is not None, True)
        for option in ("--listen", "--admin-listen", "--health-listen"):
            done = run(ADD, option, "tls:127.0.0.1:0")
            expect(option, done.returncode, 64)
            expect("text", f"{option}: tls:127.0.0.1:0: expected --tls-cert FILE beside it" in
                   done.stderr, True)
        expect("good", run("--check-config", "--tls-cert", certificate, "--tls-key",
                           key).returncode, 0)
        arguments = ["--listen", "tls:127.0.0.1:0", "--tls-cert", str(joined), ADD]
        with Daemon(arguments, command=[PTED, *arguments]) as daemon:
            daemon.wait_for("every user of this machine may read the file of the key")
            expect("one file", ask(WORLD.client(daemon)), 200)
        big = WORLD.authority.sign("big", key=("-newkey", "rsa:3072", "-nodes"))
        old = WORLD.authority.sign("old", is_expired=True)
        with WORLD.daemon(pair=big) as daemon:
            daemon.wait_for("an RSA key of 3072 bits")
        with WORLD.daemon(pair=old) as daemon:
            daemon.wait_for("TLS: the certificate has expired")


# ---- listeners ----

def probes():
    """--health-listen answers probes and metrics without a token, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        tokens.write_text("ci read sha256:" + "0" * 64 + "\n")
        with Daemon([ADD, *HEALTH, "--health-listen", f"unix:{folder}/health", "--token-file",
                     str(tokens)]) as daemon:
            port = int(daemon.wait_for(r"127\.0\.0\.1:(\d+) for probes and metrics")[1])
            client, public = Client(port), Client(daemon.port)
            for target in ("/v2/health/live", "/v2/health/ready", "/metrics"):
                expect(target, ask(client, build_request("GET", target)), 200)
            expect("public metrics", ask(public, build_request("GET", "/metrics")), 401)
            for method, target in (("GET", "/v2"), ("GET", "/v2/models/add"),
                                   ("POST", "/v2/models/add/infer"), ("POST", "/v2/batch"),
                                   ("POST", "/v2/repository/models/add/load"),
                                   ("POST", "/v2/repository/index"), ("GET", "/v1/models")):
                expect(target, ask(client, build_request(method, target, b"{}")), 403)
                error = json.loads(client.body)["error"]
                text = error["message"] if target.startswith("/v1/") else error
                expect("why", text.startswith("this address is for probes"), True)
            expect("no such path", ask(client, build_request("GET", "/nope")), 404)
            if CURL:
                done = subprocess.run([CURL, "-s", "--unix-socket", f"{folder}/health",
                                       "http://x/v2/health/ready"], capture_output=True,
                                      text=True, check=False)
                expect("over the socket", done.stdout, '{"ready":true}')


def curl_asks():
    """curl over TLS: a port, a socket of the file system, the listener of administrators."""
    if not CURL:
        print("# no curl", flush=True)
        return
    with tempfile.TemporaryDirectory() as folder:
        with WORLD.daemon("--listen", f"tls:unix:{folder}/s", "--admin-listen",
                          f"tls:unix:{folder}/admin", "--health-listen",
                          "tls:127.0.0.1:0") as daemon:
            port = int(daemon.wait_for(r"https://127\.0\.0\.1:(\d+) for probes")[1])
            for arguments, url in (
                    ((), f"https://localhost:{daemon.port}/v2/health/ready"),
                    (("--http1.1",), f"https://localhost:{daemon.port}/v2/health/ready"),
                    ((), f"https://127.0.0.1:{port}/v2/health/ready"),
                    (("--unix-socket", f"{folder}/s"), "https://localhost/v2/health/ready"),
                    (("--unix-socket", f"{folder}/admin", "-X", "POST"),
                     "https://localhost/v2/repository/models/add/load"),
                    # A page that the daemon has shown by a name: its certificate is for the name.
                    (("--unix-socket", f"{folder}/admin", "-X", "POST", "-H",
                      "Host: pted.example", "-H", "Origin: https://pted.example"),
                     "https://localhost/v2/repository/models/add/load")):
                done = subprocess.run([CURL, "-sS", "--fail", "--cacert", WORLD.authority.ca,
                                       "-o", f"{folder}/out", "-w", "%{http_version}",
                                       *arguments, url], capture_output=True, text=True,
                                      check=False)
                expect(f"{url} {done.stderr}", done.returncode, 0)
                expect(f"{url}: version", done.stdout,
                       "1.1" if "--http1.1" in arguments else "2")


def handed_over():
    """Sockets of systemd have their role and TLS by name."""
    names = ("tls", "health", "admin-tls", "other")
    sockets = []
    for _ in names:
        listening = socket.create_server(("127.0.0.1", 0))
        sockets.append(listening)
    code = ("import os, sys\n"
            "count = int(sys.argv[1])\n"
            "high = [os.dup2(int(fd), 50 + i) for i, fd in enumerate(sys.argv[2:2 + count])]\n"
            "for i, fd in enumerate(high): os.dup2(fd, 3 + i)\n"
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count),"
            " LISTEN_FDNAMES=sys.argv[2 + count])\n"
            "os.execv(sys.argv[3 + count], sys.argv[3 + count:])\n")
    command = [sys.executable, "-c", code, str(len(names)),
               *(str(listening.fileno()) for listening in sockets), ":".join(names), PTED,
               "--tls-cert", WORLD.pair[0], "--tls-key", WORLD.pair[1], ADD]
    ports = [listening.getsockname()[1] for listening in sockets]
    with Daemon([], command=command, pass_fds=[s.fileno() for s in sockets]) as daemon:
        for port, purpose in zip(ports, ("https://@\n", "http://@ for probes",
                                         "https://@ for administrators", "http://@\n")):
            daemon.wait_for("listening on " + purpose.replace("@", rf"127\.0\.0\.1:{port}"))
        daemon.port = ports[0]
        expect("tls", ask(WORLD.client(daemon)), 200)
        expect("other", ask(Client(ports[3])), 200)
        expect("health", ask(Client(ports[1])), 403)
    for listening in sockets:
        listening.close()


def drain():
    """SIGTERM: a handshake that has begun may end, and its request is answered."""
    with WORLD.daemon() as daemon:

        class Slow(TlsSocket):
            """Stops the daemon between the two halves of its first record."""

            is_first = True

            def flush(self):
                data = self.outgoing.read()
                if self.is_first and data:
                    self.is_first = False
                    self.socket.sendall(data[:100])
                    expect("others", ask(WORLD.client(daemon)), 200)
                    daemon.process.terminate()
                    daemon.wait_for("stopping")
                    time.sleep(0.2)             # longer than idle connections are kept
                    data = data[100:]
                if data:
                    self.socket.sendall(data)

        client = Slow(daemon.port, WORLD.context)
        client.sendall(GET)
        answer = client.recv(4096)
        expect("status", answer[:15], b"HTTP/1.1 200 OK")
        expect("closes", b"Connection: close" in answer, True)
        expect_notified(client)
        expect("exit status", daemon.process.wait(TIMEOUT_S), 0)


CHECKS = (versions, sizes, pipelined, slow_reader, client_certificates, plain_http, garbage,
          mutated_records, stalled, cut_connections, ends, renegotiation, reload_under_load, files,
          probes, curl_asks, handed_over, drain)


def main():
    global WORLD
    need_openssl()
    WORLD = World()
    report = Report()
    report.run_all(CHECKS)
    WORLD.authority.close()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
