#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The memory for requests with clients that are slow or that only announce a body. No other client
waits for them or is refused, and all of the memory comes back. No result depends on the time that
something takes: each test waits for the state that it expects.
"""
import gzip
import json
import re
import select
import signal
import socket
import struct
import sys
import threading
import time
from pathlib import Path

import load
from load import ADD, DEEP, deep_request, get_json, in_threads, send, wait_until
from run_http import (MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect)

WIDE = str(MODELS / "wide.pte")
MIB = 1 << 20
HEAD = "POST /v2/models/{}/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n"


def wide_request(rows, is_binary=True):
    """A request with 256 bytes a row in both directions; all elements of the result are 1.0."""
    tensor = {"name": "input_0", "shape": [rows, 64], "datatype": "FP32",
              "parameters": {"binary_data_size": rows * 256}}
    head = json.dumps({"inputs": [tensor],
                       "parameters": {"binary_data_output": is_binary}}).encode()
    return build_request("POST", "/v2/models/wide/infer", head + bytes(rows * 256),
                         [f"Inference-Header-Content-Length: {len(head)}"])


def ask_wide(client, rows):
    client.send(wide_request(rows))
    status = client.answer()
    expect(f"{rows} rows: {client.body[:300]}", status, 200)
    expect("the last number", client.body[-4:], struct.pack("<f", 1))


def add_request(padding=0):
    tensors = [{"name": name, "shape": [2, 3], "datatype": "FP32", "data": [1] * 6}
               for name in ("input_0", "input_1")]
    body = b" " * padding + json.dumps({"inputs": tensors}).encode()
    return build_request("POST", "/v2/models/add/infer", body)


def memory_of(daemon):
    return get_json(Client(daemon.port), "/v2/models/stats")["memory"]


def wait_until_empty(daemon):
    wait_until("all memory is free", lambda: memory_of(daemon)["used"] == 0)


def is_sanitized(daemon):
    """With a sanitizer, the process keeps freed memory and has much memory of the sanitizer."""
    maps = Path(f"/proc/{daemon.process.pid}/maps").read_text()
    return "libasan" in maps or "libtsan" in maps


def resident_mib(daemon):
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) / 1024


def deaf_client(daemon):
    """A client that never reads, with the smallest possible receive buffer."""
    deaf = Client.__new__(Client)
    deaf.socket = socket.socket()
    deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.socket.connect(("127.0.0.1", daemon.port))
    deaf.socket.settimeout(TIMEOUT_S)
    deaf.unread, deaf.fields, deaf.body = b"", [], b""
    return deaf


def ask_others(daemon, count=20):
    """Sends requests of all sizes from clients that are not slow."""
    client = Client(daemon.port)
    for number in range(count):
        ask_wide(client, (1, 100, 2000, 8000)[number % 4])


# ---- announced bodies ---------------------------------------------------------------------------

def heads_without_bodies():
    with Daemon([WIDE, "--ring-bytes=32M"]) as daemon:
        clients = [Client(daemon.port) for _ in range(8)]
        for client in clients:
            client.send(HEAD.format("wide", 24 * MIB).encode())
        ask_others(daemon)
        expect("held", memory_of(daemon)["transfers"]["held"], 0)
        for client in clients:
            client.reset()


def a_body_for_which_there_is_never_room():
    """It is refused at once: while it arrived, other requests would wait for it."""
    with Daemon([WIDE, "--ring-bytes=4M"]) as daemon:
        client = Client(daemon.port)
        client.send(HEAD.format("wide", 5 * MIB).encode())
        expect("status", client.answer(), 413)
        expect("text", json.loads(client.body)["error"],
               "request body: 5242880 bytes wanted: the memory for requests has 4194304")


def a_body_that_stops_in_the_middle():
    with Daemon([WIDE, "--ring-bytes=32M"]) as daemon:
        client = Client(daemon.port)
        client.send(HEAD.format("wide", 65537).encode() + b" " * 65000)
        wait_until("it has come", lambda: memory_of(daemon)["transfers"]["held"] >= 65000)
        ask_others(daemon, 100)
        expect("held", memory_of(daemon)["transfers"]["held"] <= 2 * 65536 + (256 << 10), True)
        client.reset()
        wait_until_empty(daemon)


# ---- memory held by clients ----------------------------------------------------------------------

def an_unread_answer():
    """While a client does not read, its request holds no inputs, no workspace and no results."""
    with Daemon([WIDE, "--ring-bytes=64M"]) as daemon:
        for is_binary in (True, False):
            deaf = deaf_client(daemon)
            deaf.send(wide_request(32768, is_binary))
            def is_written():
                stats = get_json(Client(daemon.port), "/v2/models/stats")
                memory, wide = stats["memory"], stats["model_stats"][0]
                return (wide["memory"]["peak"] > 0 and memory["transfers"]["held"] > MIB and
                        memory["running"]["held"] == wide["memory"]["held"] == 0)
            wait_until("only clients hold memory", is_written)
            ask_others(daemon)
            deaf.reset()
            wait_until_empty(daemon)


def small_unread_answers():
    """When the rest of an answer is small, the connection keeps a copy and the request ends."""
    with Daemon([ADD]) as daemon:
        deaf = deaf_client(daemon)
        deaf.socket.setblocking(False)
        request = add_request()
        def has_stalled():
            try:
                while deaf.socket.send(request * 100):
                    pass
            except BlockingIOError:
                return memory_of(daemon)["transfers"]["held"] > 0
        wait_until("its answers wait", has_stalled)
        expect("little", memory_of(daemon)["transfers"]["held"] < MIB, True)
        deaf.socket.settimeout(TIMEOUT_S)
        expect("the first answer", deaf.answer(), 200)
        deaf.reset()
        wait_until_empty(daemon)


def is_wide_answered(daemon, rows):
    """False: this client was the slow one, which it is on a machine that gives it no time."""
    client = Client(daemon.port)
    client.send(wide_request(rows))
    status = client.answer()
    client.close()
    expect(f"{rows} rows: {client.body[:300]}", status in (200, 429), True)
    return status == 200


def the_slowest_body_is_refused():
    """Stalled bodies fill the memory that clients may hold. Bodies that arrive quickly still get
    memory, because the slowest clients give theirs back."""
    with Daemon([WIDE, "--ring-bytes=16M"]) as daemon:
        slow = [Client(daemon.port) for _ in range(6)]
        for client in slow:
            client.send(HEAD.format("wide", 4 * MIB).encode() + b" " * MIB)
        wait_until("they hold memory", lambda: memory_of(daemon)["transfers"]["held"] >= 4 * MIB)
        in_threads(2, lambda _: wait_until("a quick body",
                                           lambda: is_wide_answered(daemon, 16384)))
        expect("evicted", memory_of(daemon)["evicted"] > 0, True)
        ready, _, _ = select.select([client.socket for client in slow], [], [], TIMEOUT_S)
        client = next(client for client in slow if client.socket in ready)
        expect("a slow one", client.answer(), 429)
        expect("text", json.loads(client.body)["error"],
               "request body: too slow while others need its memory")
        for client in slow:
            client.reset()
        wait_until_empty(daemon)


class Stalling:
    """A client that pipelines requests with small answers and never reads."""
    many = build_request("GET", "/v2/models/wide/signature") * 20000

    def __init__(self, daemon):
        self.client = deaf_client(daemon)
        self.client.socket.setblocking(False)
        self.sent = 0

    def ask(self):
        """Sends a request. Returns false if the daemon has closed the connection."""
        try:
            self.sent += self.client.socket.send(self.many[self.sent % len(self.many):][:65536])
        except BlockingIOError:
            pass
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True


def upload_on(daemon, is_over):
    """Promises nearly all of the memory to an upload that goes on, and then to the next one."""
    while not is_over.is_set():
        client = Client(daemon.port)
        try:
            client.send(HEAD.format("wide", 7 * MIB).encode())
            for _ in range(6 * MIB // 4096):
                client.send(b" " * 4096)
                if is_over.wait(0.05):
                    break
        except (BrokenPipeError, ConnectionResetError):
            pass
        client.reset()


def stalled_readers_beside_an_upload():
    """Small answers that no client reads exceed the memory that clients may hold beside an upload.
    Each reader that stalls disconnects the slowest one, until it is the slowest one itself."""
    with Daemon([WIDE, "--ring-bytes=8M", "--write-timeout=10m"]) as daemon:
        is_over = threading.Event()
        crowd = [Stalling(daemon) for _ in range(16)]
        def held():
            for i, stalling in enumerate(crowd):
                if not stalling.ask():
                    crowd[i] = Stalling(daemon)
            return memory_of(daemon)["transfers"]["held"]
        wait_until("they hold memory", lambda: held() >= 12 * 131072)
        upload = threading.Thread(target=upload_on, args=(daemon, is_over))
        upload.start()
        try:
            wait_until("they give way", lambda: held() and memory_of(daemon)["evicted"] >= 16)
        finally:
            is_over.set()
            upload.join()
        for stalling in crowd:
            stalling.client.reset()
        wait_until_empty(daemon)


def waiting_is_not_slow():
    """The time in which a body waits for memory does not count as slow."""
    with Daemon([WIDE, "--ring-bytes=8M", "--rate-min=1", "--rate-window=100ms"]) as daemon:
        is_over = threading.Event()
        upload = threading.Thread(target=upload_on, args=(daemon, is_over))
        upload.start()
        try:
            wait_until("it holds memory", lambda: memory_of(daemon)["transfers"]["held"] >= 4 * MIB)
            client = Client(daemon.port)
            client.send(wide_request(8000))
            status = client.answer()
            expect(f"{status}: {client.body[:200]}", status in (200, 429), True)
        finally:
            is_over.set()
            upload.join()


class Crowd:
    """Clients that are slow in three ways. After the start they need no work by this process."""

    def __init__(self, daemon, count):
        self.clients = []
        for number in range(count):
            client = deaf_client(daemon)
            if number % 3 == 0:
                client.send(wide_request(4096, number % 2 == 0))
            elif number % 3 == 1:
                client.send(HEAD.format("wide", MIB).encode() + b" " * (MIB // 2))
            else:
                client.send(HEAD.format("wide", 60000).encode() + b" " * 59999)
            self.clients.append(client)

    def close(self):
        for client in self.clients:
            client.reset()


def slow_clients_beside_load():
    """Hundreds of slow senders and readers, and large calls in the queue, beside full load on a
    small ring. No other client is refused."""
    rows = min(1024, load.MANY_ROWS)
    with Daemon([WIDE, DEEP, "--ring-bytes=32M", "--workers=2",
                 "--request-timeout=10m"]) as daemon:
        crowds = []
        large = [send(daemon, rows) for _ in range(40)]
        in_threads(3, lambda _: crowds.append(Crowd(daemon, 80)))
        in_threads(4, lambda _: ask_others(daemon, 60))
        for client in large:
            status = client.answer()
            expect(f"a large call: {client.body[:300]}", status, 200)
        for crowd in crowds:
            crowd.close()
        wait_until_empty(daemon)


# ---- how fast ------------------------------------------------------------------------------------

def too_slow_a_body():
    with Daemon([WIDE, "--rate-min=1M", "--rate-window=100ms"]) as daemon:
        client = Client(daemon.port)
        client.send(HEAD.format("wide", 4 * MIB).encode())
        expect("status", client.answer(), 408)
        expect("text", json.loads(client.body)["error"],
               "request body: fewer bytes a second than --rate-min")
        wait_until("closed", client.is_closed)


def too_slow_a_reader():
    with Daemon([WIDE, "--rate-min=1M", "--rate-window=100ms"]) as daemon:
        deaf = deaf_client(daemon)
        deaf.send(wide_request(65536))
        wait_until_empty(daemon)
        try:
            while deaf.socket.recv(MIB):
                pass
        except ConnectionResetError:
            pass
        ask_others(daemon)


def small_bodies_pass():
    """Uploads that need all of the memory wait for each other. A small body does not wait for them,
    although it arrives after its head."""
    with Daemon([WIDE, ADD, "--ring-bytes=1M"]) as daemon:
        uploads, is_over = [Client(daemon.port) for _ in range(12)], threading.Event()
        for upload in uploads:
            upload.send(HEAD.format("wide", 1000000).encode())

        def go_on():
            while not is_over.wait(0.01):
                for upload in uploads:
                    try:
                        upload.socket.send(bytes(1000), socket.MSG_DONTWAIT)
                    except OSError:
                        pass  # the upload waits for memory, or it was refused
        sender = threading.Thread(target=go_on)
        sender.start()
        try:
            head, _, body = add_request().partition(b"\r\n\r\n")
            for _ in range(20):
                client = Client(daemon.port)
                client.send(head + b"\r\n\r\n")
                time.sleep(0.02)
                client.send(body)
                expect("a small one", client.answer(), 200)
        finally:
            is_over.set()
            sender.join()


def waiting_clients_disconnect():
    """The last client that waits for memory disconnects before the daemon retries its request."""
    with Daemon([WIDE, "--ring-bytes=1M", "--rate-min=0"]) as daemon:
        for _ in range(20):
            clients = []
            for size in (500000, 500000, 500000):
                clients.append(Client(daemon.port))
                clients[-1].send(HEAD.format("wide", size + 1).encode() + bytes(size))
            wait_until("much is held", lambda: memory_of(daemon)["used"] > 400000)
            for client in clients:
                client.reset()
        wait_until_empty(daemon)
        ask_wide(Client(daemon.port), 1000)


# ---- memory of the process -----------------------------------------------------------------------

def memory_goes_back():
    """After a high load the process becomes nearly as small as before."""
    with Daemon([WIDE]) as daemon:
        ask_others(daemon)
        before = resident_mib(daemon)
        def ask_much(number):
            client = Client(daemon.port)
            for rows in (65536, 30000):
                client.send(wide_request(rows, number % 2 == 0))
                expect("status", client.answer(), 200)
        in_threads(4, ask_much)
        grown = memory_of(daemon)["peak"]
        expect(f"{grown} bytes at the peak", grown > 32 * MIB, True)
        if not is_sanitized(daemon):
            wait_until("small again", lambda: resident_mib(daemon) < before + 20)
        wait_until_empty(daemon)


def workspaces_go_back():
    """Also if more than the idle time passes before the memory of requests has gone back: the
    workspaces come after it, and only when they have been idle for two looks."""
    with Daemon(["--workers=2", WIDE, DEEP]) as daemon:
        if is_sanitized(daemon):
            return  # it keeps freed memory, and a thread would compute for more than a minute
        ask_others(daemon)
        before = resident_mib(daemon)
        def ask_much(_):
            client = Client(daemon.port)
            client.send(deep_request(16384))  # takes a workspace of 12 MiB
            expect("status", client.answer(), 200)
            ask_wide(client, 65536)
        in_threads(2, ask_much)  # on a slow machine, a workspace may go back before the end
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(5)
        daemon.process.send_signal(signal.SIGCONT)
        wait_until("small again", lambda: resident_mib(daemon) < before + 6)


# ---- long work -----------------------------------------------------------------------------------

def bodies_that_inflate():
    """Eight bodies of 60 KiB that become 60 MiB keep threads busy, and not the loop: a request that
    arrives after all of them is answered before the last one.

    The daemon is stopped while the requests are sent, and its log tells the order of the answers.
    So the result does not depend on how fast this client is."""
    bomb = build_request("POST", "/v2/models/add/infer", gzip.compress(bytes(60 * MIB)),
                         ["Content-Encoding: gzip"])
    with Daemon([ADD, "--log-requests=all"]) as daemon:
        bombers, client = [Client(daemon.port) for _ in range(8)], Client(daemon.port)
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            for bomber in bombers:
                bomber.send(bomb)
            client.send(build_request("GET", "/v2/health/live"))
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        expect("live", client.answer(), 200)
        for bomber in bombers:
            expect("a bomb", bomber.answer() in (400, 429), True)
        daemon.wait_for(r"(?s)(path=.*){9}")
        paths = re.findall(r"path=(\S+)", daemon.read_log())
        expect("the path of the last answer", paths[-1], "/v2/models/add/infer")


# ---- stopping ------------------------------------------------------------------------------------

def incomplete_requests_at_the_end():
    """After SIGTERM a complete request is finished. Incomplete requests have less time."""
    with Daemon([*load.HELD_WORKER, WIDE, "--drain-incomplete-timeout=200ms"]) as daemon:
        heads = Client(daemon.port)
        heads.send(b"POST /v2/models/wide/infer HTTP/1.1\r\nHost: a\r\n")
        body = Client(daemon.port)
        body.send(HEAD.format("wide", 100000).encode() + b" " * 70000)
        held, waiting = load.occupy(daemon), load.send_hold(daemon, 1)
        load.wait_for_load(daemon, 2, 1)
        daemon.process.terminate()
        expect("the head", heads.answer(), 408)
        expect("the body", body.answer(), 408)
        expect("text", json.loads(body.body)["error"], "request body: not complete in time")
        load.release(held)
        expect("the complete one", waiting.answer(), 200)
        expect("exit status", daemon.process.wait(TIMEOUT_S), 0)


def weights_are_kept_once():
    """A loaded model keeps its packed weights. The pages of the file, and what loading made on the
    way, go back to the system."""
    path = next((folder / "shared/models/public/resnet18_xnn.pte"
                 for folder in MODELS.resolve().parents[1:3]
                 if (folder / "shared/models/public").is_dir()), None)
    if not path:
        print("# skipped: the collection shared/models/public is not here")
        return
    with Daemon(["--precision=exact", str(path)]) as daemon:
        if is_sanitized(daemon):
            print("# skipped: a sanitizer keeps freed memory")
            return
        weights = float(daemon.wait_for(r"; weights (\d+\.\d) MiB ")[1])
        wait_until(f"at most 1.1 times {weights} MiB and 12 MiB for the rest",
                   lambda: resident_mib(daemon) <= 1.1 * weights + 12)


CHECKS = (
    heads_without_bodies, a_body_for_which_there_is_never_room, a_body_that_stops_in_the_middle,
    an_unread_answer, small_unread_answers, the_slowest_body_is_refused,
    stalled_readers_beside_an_upload, waiting_is_not_slow, slow_clients_beside_load,
    too_slow_a_body, too_slow_a_reader, waiting_clients_disconnect, small_bodies_pass,
    memory_goes_back, workspaces_go_back, bodies_that_inflate,
    incomplete_requests_at_the_end, weights_are_kept_once)


def main():
    report = Report()
    load.calibrate()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
