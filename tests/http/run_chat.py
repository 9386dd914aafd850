#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pte chat: by a file and by a server, in a terminal and without one, and with a hostile server.

usage: run_chat.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from run_generate import ANSWERS, CHAT, FOLDER
from run_http import MODELS, TIMEOUT_S, Daemon, Failure, Report, expect
from run_pte import PTE

MODEL = str(FOLDER / "model.pte")
GREEDY = ["--temperature", "0"]
ROWS = {row["messages"][-1]["content"]: row["answer"] for row in ANSWERS
        if len(row["messages"]) == 1}
CAPITAL, COUNT = "What is the capital of Japan?", "Count from 2 to 7."


def run(args, prompt, fields=None):
    env = {**os.environ, **(fields or {})}
    return subprocess.run([PTE, "chat", *args], input=prompt, capture_output=True, env=env,
                          timeout=TIMEOUT_S, check=False)


class Terminal:
    """pte chat at a terminal of its own."""

    def __init__(self, args, kind="dumb", fields=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": kind, **(fields or {})})
            try:
                os.execv(PTE, [PTE, "chat", *args])
            finally:
                os._exit(127)
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def read(self, until):
        """What comes until the pattern |until|, which is consumed."""
        deadline = time.monotonic() + TIMEOUT_S
        while not (found := re.search(until, self.seen)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise Failure(f"{until!r} does not come: {self.seen[-300:]!r}")
            try:
                part = os.read(self.fd, 65536)
            except OSError:
                part = b""
            if not part:
                raise Failure(f"{until!r} does not come before the end: {self.seen[-300:]!r}")
            self.seen += part
        text = self.seen[:found.end()]
        self.seen = self.seen[found.end():]
        return text.decode().replace("\r\n", "\n")

    def type(self, text):
        os.write(self.fd, text.encode())

    def keep(self):
        """At a Ctrl-C the terminal forgets neither what was typed nor what was printed."""
        mode = termios.tcgetattr(self.fd)
        mode[3] |= termios.NOFLSH
        termios.tcsetattr(self.fd, termios.TCSANOW, mode)

    def wait(self):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                raise Failure("pte does not end")
            if select.select([self.fd], [], [], 0.02)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    time.sleep(0.01)


def pipes():
    done = run([*GREEDY, MODEL], CAPITAL.encode())
    expect("status", (done.returncode, done.stderr), (0, b""))
    expect("answer", done.stdout.decode(), ROWS[CAPITAL] + "\n")
    with Daemon(CHAT) as daemon:
        url = f"http://127.0.0.1:{daemon.port}"
        for place in (url, url + "/chat"):
            done = run([*GREEDY, place], COUNT.encode() + b"\n")
            expect(place, (done.returncode, done.stdout.decode()), (0, ROWS[COUNT] + "\n"))
        short = run([*GREEDY, "--max-tokens", "3", url], COUNT.encode())
        expect("short", len(short.stdout) < len(ROWS[COUNT]), True)
        same = [run(["--seed", "5", "--max-tokens", "12", url], b"Hello!").stdout
                for _ in range(2)]
        expect("seed", same[0], same[1])
        with tempfile.NamedTemporaryFile("w", suffix=".json") as schema:
            schema.write('{"enum": ["yes", "no"]}')
            schema.flush()
            done = run([*GREEDY, "--json-schema", schema.name, url], b"Hello!")
            expect("schema", done.stdout in (b'"yes"\n', b'"no"\n'), True)


def refusals():
    with Daemon(CHAT) as daemon:
        url = f"http://127.0.0.1:{daemon.port}"
        rows = (
            ([], b"x", 64, b"expected FILE or URL"),
            (["a", "b"], b"x", 64, b"one FILE or URL only"),
            (["--temperature", "hot", url], b"x", 64, b"--temperature"),
            (["--temperature", "1,\"n\":2", url], b"x", 64, b"--temperature"),
            (["--what", url], b"x", 64, b"--what"),
            (["/nonexistent.pte"], b"x", 66, b"No such file"),
            ([str(MODELS / "add.pte")], b"x", 65, b"add.pte: HTTP 400: model 'add' is no language"),
            ([url + "/nobody"], b"x", 66, b"nobody"),
            ([url], b"", 64, b"expected a prompt"),
            (["--json-schema", "/nonexistent", url], b"x", 66, b"--json-schema"),
            (["http://127.0.0.1:1"], b"x", 77, b"cannot connect"),
            (["127.0.0.1:1"], b"x", 77, b"cannot connect"),
        )
        for args, prompt, status, text in rows:
            done = run(args, prompt)
            expect(text, text in done.stderr or done.stderr, True)
            expect(text, done.returncode, status)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "broken.pte"
        path.write_bytes(b"no program")
        done = run([str(path)], b"x")
        expect("broken", (done.returncode != 0, b"did not start" in done.stderr), (True, True))


def terminal():
    with Terminal([*GREEDY, MODEL]) as user:
        user.read(rb"> ")
        user.type(CAPITAL + "\n")
        text = user.read(rb"first after [0-9.]+ s\]\n?")
        expect("answer", ROWS[CAPITAL] in text or text, True)
        expect("speed", "tokens/s" in text or text, True)
        user.read(rb"> ")
        user.type("/help\n")
        user.read(rb"(?s)/clear.*Ctrl-C")
        user.type("/system You answer briefly.\n/system\n")
        user.read(rb"You answer briefly\.\r\n")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "saved.json"
            user.type(f"/save {path}\n")
            user.read(rb"[ \n]saved\r")
            saved = json.loads(path.read_text())
            expect("saved", saved["messages"],
                   [{"role": "system", "content": "You answer briefly."},
                    {"role": "user", "content": CAPITAL},
                    {"role": "assistant", "content": ROWS[CAPITAL]}])
            user.type(f"/clear\n/save {path}\n")
            user.read(rb"[ \n]saved\r")
            expect("cleared", len(json.loads(path.read_text())["messages"]), 1)
        user.type("\x04")
        expect("status", user.wait(), 0)


def no_language():
    """It is said before the prompt, of the file that the user named."""
    path = str(MODELS / "add.pte")
    with Terminal([path]) as user:
        text = user.read(rb"add\.pte: HTTP 400: model 'add' is no language model: GET ")
        expect("a prompt", "> " in text or "socket" in text, False)
        expect("status", user.wait(), 65)
    with tempfile.TemporaryDirectory() as folder:
        for file in FOLDER.iterdir():
            if file.is_file():
                (Path(folder) / file.name.replace("model.pte", "my-words.pte")).symlink_to(file)
        with Terminal([*GREEDY, f"{folder}/my-words.pte"]) as user:
            user.read(rb"my-words: /help")
            user.read(rb"> ")
            user.type("x" * 2000 + "\n")
            text = user.read(rb"HTTP 400: [^\n]*\n")
            expect("names", "usage" in text or "socket" in text, False)
            user.read(rb"> ")
            user.type("/bye\n")
            expect("status", user.wait(), 0)


def second_turn():
    """The history goes along: the answer is that of a chat with two turns."""
    row = next(row for row in ANSWERS if len(row["messages"]) == 3)
    with Terminal([*GREEDY, MODEL]) as user:
        user.read(rb"> ")
        for message in (row["messages"][0], row["messages"][2]):
            user.type(message["content"] + "\n")
            text = user.read(rb"first after [0-9.]+ s\]")
        expect("answer", row["answer"] in text or text, True)
        user.type("/bye\n")
        expect("status", user.wait(), 0)


class Hostile:
    """A server that answers each request with |pieces| of a body, and then does |after|."""

    def __init__(self, pieces, after="close", head=b"HTTP/1.1 200 OK\r\n"):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/m"
        self.pieces, self.after, self.head = pieces, after, head
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over.set()
        socket.create_connection(self.socket.getsockname()).close()
        self.thread.join()
        self.socket.close()

    def serve(self):
        while not self.is_over.is_set():
            client, _ = self.socket.accept()
            with client:
                client.settimeout(TIMEOUT_S)
                try:
                    self.answer(client)
                except OSError:
                    pass

    def answer(self, client):
        if self.is_over.is_set() or not client.recv(65536):
            return
        client.sendall(self.head + b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for piece in self.pieces:
            client.sendall(piece)
        while self.after == "wait" and not self.is_over.is_set():
            # The client goes away when the user stops the answer.
            if select.select([client], [], [], 0.02)[0] and not client.recv(1):
                self.is_over.set()


def event(text):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}
                                  ).encode() + b"\n\n"


def hostile_text():
    evil = "a\x1b]0;owned\x07b\x1b[2Jc\x9bd\u202ee\x7ff\rg\u2066h"
    with Hostile([event(evil), b"data: [DONE]\n\n"]) as server:
        with Terminal([server.url]) as user:
            user.read(rb"> ")
            user.type("x\n")
            text = user.read(rb"first after [0-9.]+ s\]")
            expect("clean", "a\ufffd]0;owned\ufffdb\ufffd[2Jc\ufffdd\ufffde\ufffdf\ufffdg\ufffdh"
                   in text or text, True)
            expect("controls", re.findall(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x9b]", text), [])
            user.type("\x04")
            expect("status", user.wait(), 0)
        plain = run([server.url], b"x")
        expect("a pipe gets what came", plain.stdout.decode(), evil + "\n")


def interrupting():
    with Hostile([event("begun")], after="wait") as server:
        with Terminal([server.url]) as user:
            user.read(rb"> ")
            user.type("\x03")
            user.read(rb"> ")
            user.type("x\n")
            user.read(rb"begun")
            user.type("\x03")
            user.read(rb"\[stopped")
            user.read(rb"> ")
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "saved.json"
                user.type(f"/save {path}\n")
                user.read(rb"[ \n]saved\r")
                expect("kept", json.loads(path.read_text())["messages"][-1]["content"], "begun")
            user.type("\x04")
            expect("status", user.wait(), 0)


def children_of(parent):
    """The processes that |parent| has started."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            stat = (folder / "stat").read_text() if folder.name.isdigit() else ""
        except OSError:
            continue
        if stat and int(stat.rsplit(")", 1)[1].split()[1]) == parent:
            found.append(int(folder.name))
    return found


def interrupting_a_file():
    """Ctrl-C stops an answer of the daemon that serves a file, and not the daemon: first before its
    first token, then in the middle, where the daemon is halted so that the answer cannot end."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as schema:
        schema.write('{"type": "string", "minLength": 200}')
        schema.flush()
        with Terminal([*GREEDY, "--json-schema", schema.name, MODEL]) as user:
            user.read(rb"> ")
            daemon, = children_of(user.pid)
            os.kill(daemon, signal.SIGSTOP)
            for attempt in range(50):
                user.type("Hello!\n")
                user.read(rb"Hello!\r\n")
                time.sleep(0.02 * attempt)  # a key that comes before the line is read discards it
                user.type("\x03")
                text = user.read(rb"\[stopped|\^C\r\n> ")
                if "stopped" in text:
                    break
            expect(f"attempt {attempt}: {text}", "stopped" in text, True)
            os.kill(daemon, signal.SIGCONT)
            user.read(rb"> ")
            user.keep()
            for attempt in range(50):
                user.type("Hello!\n")
                user.read(rb"Hello!\r\n")
                user.read(rb'"')
                os.kill(daemon, signal.SIGSTOP)
                user.type("\x03")
                text = user.read(rb"\[stopped|first after|\[[0-9]+ tokens")
                os.kill(daemon, signal.SIGCONT)
                user.read(rb"> ")
                if "stopped" in text:
                    break
                user.type("/clear\n")
                user.read(rb"> ")
            expect(f"attempt {attempt}: {text}", "stopped" in text, True)
            user.type("\x04")
            expect("status", user.wait(), 0)
            wait_gone(daemon)


def wait_gone(pid):
    deadline = time.monotonic() + TIMEOUT_S
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    expect("the daemon is gone", Path(f"/proc/{pid}").exists(), False)


def without_libedit():
    """Where the library is missing, or is none, the terminal edits lines: there is no history."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libedit.so.0", "libedit.so.2"):
            Path(folder, name).write_text("no library")
        state = Path(folder) / "state"
        fields = {"LD_LIBRARY_PATH": folder, "XDG_STATE_HOME": str(state)}
        with Terminal([*GREEDY, MODEL], "xterm", fields) as user:
            text = user.read(rb"> ")
            expect("no marks of libedit", "\x1b" in text, False)
            user.type(f"nothing\x15{CAPITAL}?\x7f\n")
            text = user.read(rb"first after [0-9.]+ s\]")
            expect("answer", ROWS[CAPITAL] in text or text, True)
            user.read(rb"> ")
            user.type("gone\x03")
            user.read(rb"> ")
            user.type("/system Brief.\n/system\n")
            user.read(rb"Brief\.\r\n")
            user.type("\x04")
            expect("status", user.wait(), 0)
        expect("no history", state.exists(), False)


def find_libedit():
    """Its file, or None. A static program, which has no loader, opens no library."""
    is_static = b"/ld-linux" not in Path(PTE).read_bytes()[:4096]
    found = None if is_static else ctypes.util.find_library("edit")
    if not found:
        print(f"SKIP: {'the program is static' if is_static else 'libedit is missing'}")
    return found


def opened_libedit(state):
    """The file of it that pte opens here. In an emulator it is not that of this interpreter."""
    with Terminal([*GREEDY, MODEL], "xterm", {"XDG_STATE_HOME": state}) as user:
        user.read(rb"> ")
        maps = Path(f"/proc/{user.pid}/maps").read_text(encoding="utf-8")
        user.type("\x04")
        expect("exit status", user.wait(), 0)
    found = re.search(r"/\S*libedit\.so\S*", maps)
    expect("pte has opened libedit", found is not None, True)
    return found[0]


def with_other_name():
    """Fedora, Arch and Alpine number libedit otherwise than Debian."""
    if not find_libedit():
        return
    with tempfile.TemporaryDirectory() as folder:
        state = str(Path(folder) / "state")
        path = opened_libedit(state)
        Path(folder, "libedit.so.2").write_text("no library")
        Path(folder, "libedit.so.0").symlink_to(path)
        fields = {"LD_LIBRARY_PATH": folder, "XDG_STATE_HOME": state}
        with Terminal([*GREEDY, MODEL], "xterm", fields) as user:
            expect("marks of libedit", "\x1b" in user.read(rb"> "), True)
            user.type("\x04")
            expect("exit status", user.wait(), 0)


# Behind it libedit has the terminal: before, the terminal itself would take keys like DEL.
PROMPT = rb"\x1b\[\?2004h[^>]*> "


def say(user, keys):
    user.read(PROMPT)
    user.type(keys)
    user.read(rb"first after [0-9.]+ s\]")


def said(user, folder):
    """What was sent so far, newest last."""
    path = Path(folder) / "saved.json"
    user.read(PROMPT)
    user.type(f"/save {path}\r")
    user.read(rb"saved\r")
    return [row["content"] for row in json.loads(path.read_text())["messages"]
            if row["role"] == "user"]


def editing():
    """Keys, the history of this chat and of one before, text with several lines that is pasted."""
    if not find_libedit():
        return
    with Hostile([event("ok"), b"data: [DONE]\n\n"]) as server, \
            tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        fields = {"XDG_STATE_HOME": str(state)}
        left, up, down = "\x1b[D", "\x1b[A", "\x1b[B"
        with Terminal([server.url], "xterm", fields) as user:
            say(user, f"hello wrld{left * 3}o\x01>> \x05!\r")
            say(user, "one two three\x17\x17four\r")
            say(user, "nothing\x15all\r")
            say(user, f"{up}{up}{up}{down} five\r")
            say(user, "z\u00e4h \u20ac\u4e2d\x7f\U0001f642\r")
            say(user, "\x1b[200~a\r\rb\nc\n\x01\x1b[Ad\te\x1b[201~ end\r")
            user.read(PROMPT)
            user.type("gone")
            user.read(rb"gone")
            user.type("\x03")
            say(user, "kept\r")
            want = [">> hello world!", "one four", "all", "one four five",
                    "z\u00e4h \u20ac\U0001f642", "a\n\nb\nc\n[Ad\te end", "kept"]
            expect("lines", said(user, folder), want)
            user.read(PROMPT)
            user.type("\x04")
            expect("status", user.wait(), 0)
        history = state / "pte" / "history"
        expect("only the user's", history.stat().st_mode & 0o077, 0)
        with Terminal([server.url], "xterm", {**fields, "LC_ALL": "C"}) as user:
            say(user, f"{up * 3}\r")  # behind /save and "kept"
            say(user, f"{up * 5}\r")
            expect("of the file", said(user, folder), [want[5], want[4]])
        history.write_bytes(b"_HiStOrY_V2_\n\\x\xff\\" + b"x" * 100000 + b"\n\0\n")
        with Terminal([server.url], "xterm", fields) as user:
            say(user, "still here\r")
            expect("a damaged file", said(user, folder), ["still here"])
        with Terminal([server.url], "xterm", {"XDG_STATE_HOME": "/dev/null/x"}) as user:
            say(user, f"no file{up}{down}\r")
            user.read(PROMPT)
            user.type("\x04")
            expect("status", user.wait(), 0)


def hostile_answers():
    rows = (
        ([b"data: {broken\n\n"], b"no event"),
        ([b'data: {"choices": 1}\n\n', b'data: {"choices": [[]]}\n\n'], b"no event"),
        ([b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n'], b"no event"),
        ([b'data: {"x": ' + b"[" * 200 + b"\n\n"], b"no event: "),
        ([b'data: {"error": {"message": "out of \\u001b[2J luck"}}\n\n'], b"luck"),
        ([b"data: " + b"x" * (5 << 20)], b"too long"),
    )
    for pieces, text in rows:
        with Hostile(pieces) as server:
            done = run([server.url], b"x")
            expect(text, text in done.stderr or done.stderr, True)
            expect(text, done.returncode != 0 and b"\x1b" not in done.stderr, True)
    with Hostile([b'{"error": {"message": "no \x1b[2J room"}}'],
                 head=b"HTTP/1.1 429 Busy\r\n") as server:
        done = run([server.url], b"x")
        expect("429", (b"room" in done.stderr, b"\x1b" in done.stderr), (True, False))
    with Hostile([event("never"), event(" ends")], after="wait") as server:
        done = run(["--timeout", "1s", server.url], b"x")
        expect("silence", (done.stdout, done.returncode), (b"never ends\n", 75))


CHECKS = (pipes, refusals, terminal, no_language, second_turn, hostile_text, interrupting,
          interrupting_a_file, without_libedit, with_other_name, editing, hostile_answers)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
