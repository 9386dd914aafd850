#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The watchdog gets signs of life as long as work is done. The test stops threads of a real daemon
by ptrace(2) and continues them later. Where ptrace(2) is not allowed, the test is skipped (77).

usage: run_watchdog.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes
import os
import select
import socket
import sys
import tempfile
from pathlib import Path

from run_daemon import ADD, DIGITS, add_body, digits_body, infer
from run_http import TIMEOUT_S, Client, Daemon, Report, build_request, expect

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WAIT_ALL = 0x40000000  # __WALL: threads, too
INTERVAL_MS = 50
STUCK_DEVICE = "watchdog: the device has work"
STUCK_POOL = "watchdog: threads have steps of requests to run"
SKIP = 77

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, thread):
    if libc.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Frozen:
    """Threads that are stopped inside of the block."""

    def __init__(self, threads):
        self.threads = threads

    def __enter__(self):
        for thread in self.threads:
            ptrace(PTRACE_SEIZE, thread)
            ptrace(PTRACE_INTERRUPT, thread)
            os.waitpid(thread, WAIT_ALL)
        return self

    def __exit__(self, *_):
        for thread in self.threads:
            try:
                ptrace(PTRACE_DETACH, thread)
            except ProcessLookupError:  # it has ended, and the daemon cannot end before this wait
                os.waitpid(thread, WAIT_ALL)


def threads_of(daemon, is_worker):
    """The threads of the device's workers or of libuv's pool, found by their names."""
    pid = daemon.process.pid
    names = {int(task.name): (task / "comm").read_text().strip()
             for task in Path(f"/proc/{pid}/task").iterdir()}
    return [task for task, name in names.items()
            if task != pid and name.startswith("worker-") == is_worker]


class Watched:
    """A daemon with a watchdog. The test receives its signs of life."""

    def __init__(self, arguments):
        self.folder = tempfile.TemporaryDirectory()
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = f"{self.folder.name}/notify"
        self.notices.bind(path)
        self.notices.settimeout(TIMEOUT_S)
        environment = {**os.environ, "NOTIFY_SOCKET": path, "UV_THREADPOOL_SIZE": "3",
                       "WATCHDOG_USEC": str(2 * INTERVAL_MS * 1000)}
        self.daemon = Daemon(arguments, env=environment)

    def __enter__(self):
        self.daemon.__enter__()
        return self

    def __exit__(self, *args):
        try:
            self.daemon.__exit__(*args)
        finally:
            self.notices.close()
            self.folder.cleanup()

    def wait_for_sign(self):
        while self.notices.recv(4096) != b"WATCHDOG=1":
            pass

    def has_sign(self):
        while select.select([self.notices], [], [], 0)[0]:
            if self.notices.recv(4096) == b"WATCHDOG=1":
                return True
        return False

    def wait_for_lines(self, text, count):
        self.daemon.wait_for(rf"(?:{text}(?:.|\n)*){{{count}}}")


def signs_of_life():
    """Signs of life come from the end of the start to the end, busy or idle."""
    with Watched([ADD]) as watched:
        expect("first", watched.notices.recv(4096), b"READY=1\nSTATUS=serving 1 of 1 models")
        client = Client(watched.daemon.port)
        for _ in range(5):
            watched.wait_for_sign()
            client.send(build_request("POST", "/v2/models/add/infer", add_body()))
            expect("infer", client.answer(), 200)


def goes_silent(watched, threads, rows, line):
    """A request needs |threads|, which are stopped. No sign of life comes until they run again, and
    then the request is answered."""
    client = Client(watched.daemon.port)
    request = build_request("POST", "/v2/models/digits/infer", digits_body(rows))
    watched.wait_for_sign()
    with Frozen(threads):
        client.send(request)
        watched.wait_for_lines(line, 1)
        while watched.has_sign():
            pass
        watched.wait_for_lines(line, 3)
        expect("a sign of life", watched.has_sign(), False)
        other = Client(watched.daemon.port)
        other.send(build_request("GET", "/v2/health/live"))
        expect("the loop answers", other.answer(), 200)
    expect("the request", client.answer(), 200)
    watched.daemon.wait_for("watchdog: all parts make progress again")
    watched.wait_for_sign()


def stuck_device():
    with Watched([DIGITS, "--workers=1", "--max-batch=1"]) as watched:
        workers = threads_of(watched.daemon, True)
        expect("workers", len(workers), 1)
        goes_silent(watched, workers, 360, STUCK_DEVICE)


def stuck_pool():
    with Watched([DIGITS, "--inline-bytes-max=1K", "--max-batch=1"]) as watched:
        pool = threads_of(watched.daemon, False)
        expect("threads of the pool", len(pool) >= 3, True)  # a sanitizer may have one, too
        goes_silent(watched, pool, 360, STUCK_POOL)


def idle_threads_are_not_missed():
    """Idle threads do not count as stuck: all of them are stopped, and the signs go on."""
    with Watched([ADD, "--max-batch=1"]) as watched:
        expect("planned", infer(Client(watched.daemon.port)), 200)
        watched.wait_for_sign()
        with Frozen(threads_of(watched.daemon, True) + threads_of(watched.daemon, False)):
            client = Client(watched.daemon.port)
            for _ in range(5):
                watched.wait_for_sign()
                client.send(build_request("POST", "/v2/models/add/infer", add_body()))
                expect("a small request", client.answer(), 200)
        expect("complaints", "watchdog" in watched.daemon.read_log(), False)


def main():
    with Daemon([ADD]) as daemon:
        try:
            with Frozen(threads_of(daemon, True)):
                pass
        except OSError as error:
            print(f"1..0 # skip ptrace: {error}")
            return SKIP
    report = Report()
    report.run_all((signs_of_life, stuck_device, stuck_pool, idle_threads_are_not_missed))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
