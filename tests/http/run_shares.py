#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one client may take of what all clients use, against a real daemon: whoever takes all that
there is, probes, administrators and other clients find some.

usage: run_shares.py, with top_srcdir and top_builddir in the environment.
"""
import json
import socket
import sys
import tempfile
import threading
import time

from load import wait_until
from run_daemon import ADD, add_body, infer
from run_generate import CHAT, HELLO, LONG, Stream, metric, post
from run_http import TIMEOUT_S, Client, Daemon, Report, build_request, expect
from run_metrics import pick, read

OTHER = "127.0.0.2"  # another client
THIRD, FOURTH = "127.0.0.3", "127.0.0.4"
SILENT = 80
PATH = "/v1/chat/completions"
# An answer of many times what sockets hold, as a stream.
# Clients that do not read are not to be closed before others need their places.
PATIENT = [*CHAT, "--write-timeout=600s", "--rate-min=0"]
ENDLESS = {"model": "chat", "messages": HELLO, **LONG, "n": 64, "logprobs": True,
           "top_logprobs": 20, "stream": True}


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


def keep_busy(client, *fields):
    """Sends the head of a request, which the daemon has seen on return. Returns the body."""
    request = build_request("POST", "/v2/models/add/infer", add_body(),
                            ["Expect: 100-continue", *fields])
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


class Narrow(Client):
    """A client whose socket takes little before it reads."""

    def connect(self, port):
        plain = socket.socket()
        plain.settimeout(TIMEOUT_S)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.bind((self.source, 0))
        plain.connect(("127.0.0.1", port))
        return plain


class Slow(Stream):
    """A stream that is not read beyond its first event."""

    def __init__(self, port, source, n=64):
        super().__init__(port, PATH, {**ENDLESS, "n": n}, client=Narrow(port, source))
        self.chunk()


class Read(threading.Thread):
    """A stream that is read as it comes."""

    def __init__(self, port, source):
        super().__init__()
        self.last = None
        self.stream = Stream(port, PATH, ENDLESS, client=Client(port, source))
        expect("a stream", self.stream.head.startswith("http/1.1 200"), True)
        self.start()

    def run(self):
        self.last = read_end(self.stream)


def chat(port, source):
    """The status of an answer of a language model, and its error."""
    client = Client(port, source)
    status = post(client, PATH, {"model": "chat", "messages": HELLO})
    client.close()
    return status, "" if status == 200 else json.loads(client.body)["error"]["message"]


def count_displaced(daemon):
    """Streams that have given way, and generations under way."""
    client = Client(daemon.port)
    return (metric(client, "pted_streams_displaced_total"),
            metric(client, "pted_model_generations"))


def ask_chat(port, source, messages):
    """Tokens of the prompt that no earlier answer has left."""
    client = Client(port, source)
    expect("a chat", post(client, PATH, {"model": "chat", "messages": messages, "temperature": 0}),
           200)
    client.close()
    usage = json.loads(client.body)["usage"]
    return usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]


def kept_states_stay():
    """A client with many prompts does not push out what another one's prompt has left."""
    with Daemon(CHAT) as daemon:
        ask_chat(daemon.port, THIRD, HELLO)
        one = int(metric(Client(daemon.port), "pted_prefix_bytes"))
    with Daemon([*CHAT, f"--prefix-bytes-max={4 * one}"]) as daemon:
        ask_chat(daemon.port, THIRD, HELLO)
        for i in range(12):
            ask_chat(daemon.port, OTHER, [{"role": "user", "content": f"{i} is what?"}])
        expect("others push out none", ask_chat(daemon.port, THIRD, HELLO), 1)
        taken = metric(Client(daemon.port), "pted_share_taken_back_total", 'resource="prefixes"')
        expect("they give way to their own", taken > 4, True)


def read_end(stream):
    """Reads what is left of a stream: the text of its last event."""
    data = b"".join(iter(stream.chunk, b"")).decode()
    return data.rstrip("\n").rpartition("\n\n")[2].removeprefix("data: ")


def stands_still(daemon):
    """Has no token come for longer than a stream that is not read keeps its place?"""
    client = Client(daemon.port)
    before = metric(client, "pted_model_answer_tokens_total")
    time.sleep(1.2)
    return metric(client, "pted_model_answer_tokens_total") == before


def has_lost(stream):
    """Is its end the error?"""
    end = read_end(stream)
    return end != "[DONE]" and "had not read this stream for" in json.loads(end)["error"]["message"]


def leave(streams):
    """Their clients go."""
    for one in streams:
        one.client.reset()


def one_client_leaves_a_language_model_to_others():
    """Whoever takes all generations, there is one for another client."""
    with Daemon([*PATIENT, "--generation-count-max=4"]) as daemon:
        slow = [Slow(daemon.port, OTHER) for _ in range(3)]
        status, why = chat(daemon.port, OTHER)
        if status != 200:  # unless one of its own has not been read for long enough
            expect("the same client", (status, "this client has 3 of 4 generations" in why),
                   (429, True))
        expect("another client", chat(daemon.port, THIRD)[0], 200)
        leave(slow)


def unread_streams_give_way():
    """Streams that are not read have all generations. A newcomer gets the place of one, which then
    ends with an error; the others go on."""
    with Daemon([*PATIENT, "--generation-count-max=4", "--log-level=debug"]) as daemon:
        slow = [Slow(daemon.port, source, 32) for source in (OTHER, OTHER, OTHER, FOURTH)]
        wait_until("an answer", lambda: chat(daemon.port, THIRD)[0] == 200)
        expect("one is enough", count_displaced(daemon), (1.0, 3.0))
        expect("another one", chat(daemon.port, THIRD)[0], 200)
        expect("in the place that is free now", count_displaced(daemon), (1.0, 3.0))
        expect("how many have lost", sum(has_lost(one) for one in slow), 1)
        daemon.wait_for(r"429 /v1/chat/completions: the client had not read this stream for")


def unread_states_give_way():
    """The same, where the states of sequences are short and not the places."""
    with Daemon([*PATIENT, "--sequence-count-max=3"]) as daemon:
        slow = [Slow(daemon.port, OTHER) for _ in range(3)]
        bytes_each = int(metric(Client(daemon.port), "pted_sequence_bytes")) // 3
        # Before that a stream may lose its state between two of its answers.
        wait_until("they are not read", lambda: stands_still(daemon))
        wait_until("an answer", lambda: chat(daemon.port, THIRD)[0] == 200)
        expect("one is enough", count_displaced(daemon), (1.0, 2.0))
        leave(slow)
    with Daemon([*PATIENT, f"--sequence-bytes-max={4 * bytes_each}"]) as daemon:
        slow = [Slow(daemon.port, OTHER) for _ in range(3)]
        expect("kept for others", chat(daemon.port, THIRD)[0], 200)
        slow.append(Slow(daemon.port, FOURTH))
        wait_until("they are not read", lambda: stands_still(daemon))
        wait_until("an answer", lambda: chat(daemon.port, THIRD)[0] == 200)
        expect("one is enough", count_displaced(daemon), (1.0, 3.0))
        leave(slow)


def streams_that_are_read_stay():
    """Of three that are read and one that is not, the last one gives way, and no other."""
    with Daemon([*PATIENT, "--generation-count-max=4"]) as daemon:
        slow = Slow(daemon.port, FOURTH)
        wait_until("it is not read", lambda: stands_still(daemon))
        read = [Read(daemon.port, source) for source in (OTHER, OTHER, "127.0.0.5")]
        wait_until("an answer", lambda: chat(daemon.port, THIRD)[0] == 200)
        for one in read:
            one.join()
        expect("read to their ends", [one.last for one in read], ["[DONE]"] * 3)
        expect("not read", (count_displaced(daemon)[0], has_lost(slow)), (1.0, True))


def one_who_has_fewer_keeps_its_stream():
    """A client cannot take the place of another one's stream if it has as many itself."""
    with Daemon([*PATIENT, "--generation-count-max=2"]) as daemon:
        slow = Slow(daemon.port, OTHER, 32)
        read = Read(daemon.port, THIRD)
        statuses = set()
        while read.is_alive():
            statuses.add(chat(daemon.port, THIRD)[0])
        expect("all are in use at first", 429 in statuses, True)
        expect("read to its end", read.last, "[DONE]")
        expect("not read, and there", (count_displaced(daemon)[0], has_lost(slow)), (0.0, False))


class PathClient(Client):
    """A connection to a socket in the file system."""

    def connect(self, port):
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(TIMEOUT_S)
        plain.connect(port)
        return plain


def clients_of_a_path_may_be_one():
    """With --unix-clients one, all of them have one share."""
    with tempfile.TemporaryDirectory() as folder, \
         Daemon([ADD, "--connection-count-max=4", "--unix-clients=one"],
                listen=("--listen", "127.0.0.1:0", "--listen", f"unix:{folder}/s")) as daemon:
        clients = [PathClient(f"{folder}/s") for _ in range(3)]
        for client in clients:
            keep_busy(client)
        extra = PathClient(f"{folder}/s")
        expect("beyond it", extra.answer(), 503)
        expect("why", extra.body, b'{"error":"this client has 3 of 4 connections, '
                                  b'the others are for other clients"}')
        expect("a client of the network", infer(Client(daemon.port)), 200)


CHECKS = (silence_keeps_nobody_out, half_a_head_is_silence, one_who_has_few_keeps_them,
          busy_ones_stay, no_lack_of_descriptors, each_connection_to_a_path_is_a_client,
          clients_of_a_path_may_be_one,
          one_client_leaves_a_language_model_to_others, unread_streams_give_way,
          unread_states_give_way, streams_that_are_read_stay, one_who_has_fewer_keeps_its_stream,
          kept_states_stay)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
