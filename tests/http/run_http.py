#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plays .t files against a real pted on a port that the system chooses.

Each file is a list of plays against one daemon. A line is one directive:

    option --header-timeout=300ms   for the daemon; before the first play
    model NAME [as OTHER]           serve tests/models/NAME.pte; before the first play
    play TITLE                      begins a play, with a fresh connection
    > LINE                          sends LINE and CRLF
    >> TEXT                         sends TEXT; escapes such as \\r\\n and \\x00 are bytes
    >* COUNT TEXT                   sends TEXT COUNT times
    get PATH                        sends a GET
    post PATH BODY                  sends a POST; BODY may have escapes
    post+ PATH NAME:VALUE,... BODY  ...with more header fields
    connect | half-close | reset    a new connection; no more bytes from us; a reset
    wait SECONDS                    lets the daemon read; no result may depend on it
    < STATUS                        the next answer has this status
    <HEAD STATUS                    ...and is the answer to a HEAD
    field NAME: REGEX               of the last answer
    no-field NAME
    body REGEX                      the whole body; json TEXT the same as JSON; bytes with escapes
    closed                          the daemon closes the connection and sends nothing more
    open                            the daemon keeps the connection and sends nothing more
    before TEXT | behind TEXT       text around the TEXT of `accepted` and `refused`
    accepted TEXT                   sends TEXT and a GET on two new connections, at once and byte by
                                    byte; both answers have status 200
    refused STATUS TEXT             likewise, but the first answer has STATUS, and the daemon closes

A play fails at its first wrong directive; the next one starts on a new connection.
usage: run_http.py [FILE.t...], with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import select
import shlex
import socket
import struct
import subprocess
import sys
import time
import weakref
from pathlib import Path

from child_log import ChildLog

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", SOURCE))
PTED = os.environ.get("PTED", str(BUILD / "pted"))
MODELS = SOURCE / "tests" / "models"
TIMEOUT_S = 60
QUIET_S = 0.15


class Failure(Exception):
    """A result differs from the expected one."""


def is_emulated():
    """Is the program one for another CPU? The memory of its emulator counts as the program's."""
    def cpu(path):
        with open(path, "rb") as file:
            return file.read(20)[18:]  # e_machine of ELF
    return cpu(PTED) != cpu(sys.executable)


def expect(what, got, want):
    if got != want:
        raise Failure(f"{what}: {got!r}, expected {want!r}")


def unescape(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


class Daemon:
    """A pted for one test. Leaving the block ends it by SIGTERM and expects status 0.

    |log|: the file of --log-file; without it, the log is stderr. |command|: runs in place of pted.
    """

    def __init__(self, arguments, listen=("--listen", "127.0.0.1:0"), log=None, command=None,
                 **popen):
        self.log = ChildLog()
        self.log_path = log
        self.process = subprocess.Popen(command or [PTED, *listen, *arguments],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.log, **popen)
        self.port = None

    def read_log(self):
        if self.log_path:
            return self.log_path.read_text() if self.log_path.exists() else ""
        return self.log.read()

    def wait_for(self, pattern, begin=0):
        """|begin|: of the log's characters, the first one that counts."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            found = re.search(pattern, self.read_log()[begin:])
            if found:
                return found
            if ended:
                break
            time.sleep(0.01)
        # wait() sets returncode. Without it, __exit__() would report SIGKILL and hide this failure.
        self.process.kill()
        self.process.wait()
        raise Failure(f"no {pattern!r} in the log: {self.read_log().strip()}")

    def __enter__(self):
        self.port = int(self.wait_for(r"listening on https?://127\.0\.0\.1:(\d+)\n")[1])
        return self

    def admin_port(self):
        """The port of --admin-listen."""
        return int(self.wait_for(r"listening on http://127\.0\.0\.1:(\d+) for admin")[1])

    def stop(self):
        self.process.terminate()
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                status = self.process.wait(0.02)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise
                hang_up_clients()
        if status != 0:
            raise Failure(f"exit status {status}: {self.read_log().strip()}")

    def __exit__(self, kind, why, _):
        try:
            if self.process.poll() is None:
                self.stop()
            elif self.process.returncode != 0:
                raise Failure(f"died with {self.process.returncode}: {self.read_log().strip()}")
        except Failure as end:  # beside |why|, not in its place
            raise Failure(f"{why}; {end}" if kind else f"{end}") from why


CLIENTS = weakref.WeakSet()


def hang_up_clients():
    """Closes what the other side has closed, as clients do; without it a daemon that stops waits
    for --linger-timeout. Bytes that nobody has read yet do not matter."""
    for client in list(CLIENTS):
        if not isinstance(client.socket, socket.socket):
            continue  # TLS, which says more before its end
        try:
            poll = select.poll()
            poll.register(client.socket, select.POLLRDHUP)
            if poll.poll(0):
                client.socket.shutdown(socket.SHUT_WR)
        except (OSError, ValueError):  # closed already
            pass


class Client:
    """One connection; the fields and the body are those of its last answer."""

    def __init__(self, port, source="127.0.0.1"):
        self.source = source
        self.socket = self.connect(port)
        CLIENTS.add(self)
        self.unread = b""
        self.fields = []
        self.body = b""

    def connect(self, port):
        """A new socket, or what behaves like one."""
        plain = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, (self.source, 0))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the daemon closed the connection; the play reads what it answered before

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise Failure(f"closed after {self.unread[:200]!r}")
        self.unread += data

    def take(self, count):
        while len(self.unread) < count:
            self.receive()
        data, self.unread = self.unread[:count], self.unread[count:]
        return data

    def answer(self, is_head=False):
        """Reads the next answer. Returns its status; self.fields and self.body have the rest."""
        while b"\r\n\r\n" not in self.unread:
            self.receive()
        head, _, self.unread = self.unread.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [A-Za-z ]+", lines[0])
        if not found:
            raise Failure(f"status line {lines[0]!r}")
        self.fields = [tuple(line.split(": ", 1)) for line in lines[1:]]
        status = int(found[1])
        if status == 100:
            self.body = b""
            return status
        self.check_fields()
        size = int(self.field("content-length"))
        self.body = b"" if is_head else self.take(size)
        return status

    def check_fields(self):
        names = [field[0].lower() for field in self.fields]
        if len(names) != len(set(names)) or any(len(field) != 2 for field in self.fields):
            raise Failure(f"fields {self.fields}")
        for name in ("content-type", "content-length", "date"):
            if name not in names:
                raise Failure(f"no {name} in {self.fields}")

    def field(self, name):
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    def is_closed(self):
        self.socket.settimeout(QUIET_S)
        try:
            data = self.socket.recv(1)
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        finally:
            self.socket.settimeout(TIMEOUT_S)
        if data or self.unread:
            raise Failure(f"unexpected bytes {(self.unread + data)!r}")
        return True


def build_request(method, path, body=None, fields=(), host="test"):
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *fields]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def show(body):
    return body[:400].decode("latin-1")


class Play:
    """The directives of one play; a method do_X handles directive X."""

    def __init__(self, port, connect=Client):
        self.port = port
        self.connect = connect
        self.client = connect(port)
        self.before = self.behind = b""

    def do_connect(self, _):
        self.client.close()
        self.client = self.connect(self.port)

    def do_half_close(self, _):
        self.client.socket.shutdown(socket.SHUT_WR)

    def do_reset(self, _):
        self.client.reset()

    def do_wait(self, text):
        time.sleep(float(text))

    def do_line(self, text):
        self.client.send(text.encode("latin-1") + b"\r\n")

    def do_text(self, text):
        self.client.send(unescape(text))

    def do_times(self, text):
        count, part = text.split(" ", 1)
        self.client.send(unescape(part) * int(count))

    def do_get(self, path):
        self.client.send(build_request("GET", path))

    def do_post(self, text):
        path, _, body = text.partition(" ")
        self.client.send(build_request("POST", path, unescape(body)))

    def do_post_fields(self, text):
        path, fields, body = (text + " ").split(" ", 2)
        fields = [field.replace(":", ": ", 1) for field in fields.split(",")]
        self.client.send(build_request("POST", path, unescape(body.rstrip(" ")), fields))

    def do_status(self, text, is_head=False):
        status = self.client.answer(is_head)
        if status != int(text):
            raise Failure(f"status {status}, expected {text}: {show(self.client.body)}")
        if status >= 400 and not is_head:
            error = json.loads(self.client.body)
            if list(error) != ["error"] or not isinstance(error["error"], str):
                raise Failure(f"expected an error object, got {show(self.client.body)}")

    def do_head_status(self, text):
        self.do_status(text, True)

    def do_field(self, text):
        name, pattern = text.split(": ", 1)
        value = self.client.field(name)
        if value is None or not re.fullmatch(pattern, value):
            raise Failure(f"{name} is {value!r}, expected {pattern!r}")

    def do_no_field(self, name):
        if self.client.field(name) is not None:
            raise Failure(f"{name} is {self.client.field(name)!r}, expected none")

    def do_body(self, pattern):
        if not re.fullmatch(pattern, self.client.body.decode("latin-1"), re.DOTALL):
            raise Failure(f"body {show(self.client.body)!r}, expected {pattern!r}")

    def do_json(self, text):
        if json.loads(self.client.body) != json.loads(text):
            raise Failure(f"body {show(self.client.body)}, expected {text}")

    def do_bytes(self, text):
        if self.client.body != unescape(text):
            raise Failure(f"body {self.client.body!r}, expected {unescape(text)!r}")

    def do_closed(self, _):
        deadline = time.monotonic() + TIMEOUT_S
        while not self.client.is_closed():
            if time.monotonic() > deadline:
                raise Failure("the connection is open")

    def do_open(self, _):
        if self.client.is_closed():
            raise Failure("the connection is closed")

    def do_before(self, text):
        self.before = unescape(text)

    def do_behind(self, text):
        self.behind = unescape(text)

    def send_cut(self, data, size):
        self.do_connect(None)
        for at in range(0, len(data), size):
            self.client.send(data[at:at + size])

    def do_accepted(self, text):
        data = self.before + unescape(text) + self.behind
        for size in (len(data), 1):
            self.send_cut(data + build_request("GET", "/v2/health/live"), size)
            self.do_status("200")
            self.do_status("200")
            self.do_json('{"live": true}')

    def do_refused(self, text):
        status, _, part = text.partition(" ")
        data = self.before + unescape(part) + self.behind
        for size in (len(data), 1):
            self.send_cut(data + build_request("GET", "/v2/health/live"), size)
            self.do_status(status)
            self.do_closed(None)


NAMES = {">": "line", ">>": "text", ">*": "times", "<": "status", "<HEAD": "head_status",
         "post+": "post_fields"}


def read_plays(path):
    """Returns (arguments of the daemon, [(title, [(line number, directive, text)])])."""
    arguments, plays = [], []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        directive, _, text = line.partition(" ")
        if directive == "option":
            arguments += shlex.split(text)
        elif directive == "model":
            name, _, other = text.partition(" as ")
            arguments += ["--model", f"{other or name}={MODELS / name}.pte"]
        elif directive == "play":
            plays.append((text, []))
        else:
            name = NAMES.get(directive, directive.replace("-", "_"))
            if not plays or not hasattr(Play, "do_" + name):
                raise SystemExit(f"{path}:{number}: expected a directive, got {line!r}")
            plays[-1][1].append((number, name, text))
    if not plays:
        raise SystemExit(f"{path}: expected at least one play, got none")
    return arguments, plays


def perform(port, directives, connect=Client):
    play = Play(port, connect)
    try:
        for number, name, text in directives:
            try:
                getattr(play, "do_" + name)(text)
            except (Failure, OSError, ValueError) as error:
                kind = "" if isinstance(error, Failure) else f"{type(error).__name__}: "
                raise Failure(f"line {number}: {kind}{error}") from error
    finally:
        play.client.close()


class Report:
    """Counts the checks and prints their results in the Test Anything Protocol. A check may run
    others, whose results come first."""

    def __init__(self):
        self.count = self.failed = 0

    def run(self, title, check, *args):
        try:
            check(*args)
            self.end("ok", title)
        except (Failure, OSError, ValueError, subprocess.TimeoutExpired) as error:
            self.failed += 1
            self.end("not ok", f"{title}: {error}")

    def end(self, result, text):
        self.count += 1
        print(f"{result} {self.count} - {text}", flush=True)

    def run_all(self, checks):
        for check in checks:
            self.run(check.__name__, check)

    def finish(self):
        print(f"1..{self.count}")
        return 1 if self.failed or self.count == 0 else 0


def run_file(report, path, connect=Client, **daemon_arguments):
    """|connect|: makes the clients."""
    arguments, plays = read_plays(path)

    def run_all():
        with Daemon(arguments, **daemon_arguments) as daemon:
            for title, directives in plays:
                report.run(f"{path.stem}: {title}", perform, daemon.port, directives, connect)
    report.run(f"{path.stem}: the daemon starts, survives and stops", run_all)


def main(names):
    report = Report()
    paths = [Path(name) for name in names] or sorted(Path(__file__).parent.glob("*.t"))
    for path in paths:
        run_file(report, path)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
