#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How much the event loop does in a step of a request, counted in bytes and not in time: requests
that are as expensive as clients can make them (tests/bench/loop_turns.py measures their times)
leave the loop no more than --inline-bytes-max of text and as much of tensors. Memory for tensors is
counted where it is reserved, so a step that ought to run on a thread is seen whoever sent it there.

usage: run_turns.py, with top_srcdir and top_builddir in the environment.
"""
import re
import sys
import tempfile
import time

import load
from run_http import SOURCE, Client, Daemon, Failure, Report, build_request, expect

sys.path.insert(0, str(SOURCE / "tests" / "bench"))
import loop_turns  # noqa: E402  pylint: disable=wrong-import-position

INLINE_BYTES_MAX = 64 << 10
TRIES_S = 0.2  # a time for some tries; on a slow machine there are fewer
CASES = ("body_inline", "body_gzip_small", "body_copied", "answer_deflated", "call_fill",
         "list_of_calls", "lists_that_wait", "calls_that_wait", "upload_chunked")
STEPS = set(re.findall(r"^(?:CALL_)?STEP\((\w+)",
                       (SOURCE / "server/daemon/request/request.def").read_text(), re.MULTILINE))
PARTS = STEPS | set(re.findall(r'^TURN_PART\(\w+, "(\w+)"',
                               (SOURCE / "server/daemon/loop/turn_part.def").read_text(),
                               re.MULTILINE))


def figures(port, name):
    """By step."""
    client = Client(port)
    client.send(build_request("GET", "/metrics"))
    expect("status", client.answer(), 200)
    return {step: float(value) for step, value in
            re.findall(rf'^{name}{{step="(\w+)"}} (\S+)$', client.body.decode(), re.MULTILINE)}


def check_bytes(port):
    """Looks for steps that have handled too much; they are named after the step."""
    handled = figures(port, "pted_loop_step_bytes")
    too_much = {step: count for step, count in handled.items() if count > 2 * INLINE_BYTES_MAX}
    expect("steps on the loop with too many bytes", too_much, {})
    if not any(handled.values()) or set(handled) != STEPS:
        raise Failure(f"bytes of steps: {handled}")


def check_case(name, arguments, function):
    with tempfile.TemporaryDirectory() as folder:
        with Daemon(loop_turns.arguments_of(arguments, folder)) as daemon:
            function(daemon.port)
            check_bytes(daemon.port)
            longest = figures(daemon.port, "pted_loop_longest_turn_seconds")
            if not any(longest.values()) or set(longest) != PARTS:
                raise Failure(f"longest turns: {longest}")


def retries():
    """A call that runs until its client goes holds half of the memory. A list that takes more than
    the rest for its inputs is tried every 20 ms, and has its turn when that client has gone.
    """
    with Daemon(["--ring-bytes", "1M", "--workers=1", load.HOLD, loop_turns.WIDE]) as daemon:
        holder = load.send_hold(daemon, 16384, goes_on=True)
        load.wait_for_load(daemon, 1, 0)
        client = Client(daemon.port)
        client.send(loop_turns.wide_list(48, 60))
        time.sleep(TRIES_S)
        check_bytes(daemon.port)
        memory = load.get_json(Client(daemon.port), "/v2/models/stats")["memory"]
        if memory["lists"]["peak"] < 2 * INLINE_BYTES_MAX:
            raise Failure(f"the list has found no memory: {memory}")
        holder.close()
        client.answer()
        check_bytes(daemon.port)


def main():
    report = Report()
    report.run("retries", retries)
    for name, arguments, function in loop_turns.CASES:
        if name in CASES:
            report.run(name, check_case, name, arguments, function)
    expect("cases", report.count, 1 + len(CASES))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
