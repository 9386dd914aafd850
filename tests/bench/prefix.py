#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first token of a prompt whose beginning is known, with kept states and without.

Two daemons are asked in turn: first for a prompt without its last NEW tokens, then for all of it.
The times are the minima of ROUNDS second requests, as a client sees them.

usage: prefix.py [FILE [TOKENS [VOCAB]]], with top_srcdir and top_builddir in the environment; FILE
is a language model with its tokenizer beside it.
"""
import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["top_srcdir"]) / "tests" / "http"))
from run_http import MODELS, Client, Daemon, Failure, build_request

NEW, ROUNDS = 16, 15


def first_token(client, ids):
    """Seconds, and the tokens that were not computed again."""
    body = json.dumps({"model": "m", "prompt": ids, "max_tokens": 1, "temperature": 0}).encode()
    begin = time.perf_counter()
    client.send(build_request("POST", "/v1/completions", body))
    status = client.answer()
    seconds = time.perf_counter() - begin
    if status != 200:
        raise Failure(f"{status}: {client.body[:200]!r}")
    usage = json.loads(client.body)["usage"]
    return seconds, usage["prompt_tokens_details"]["cached_tokens"]


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else MODELS / "chat" / "model.pte"
    tokens = int(sys.argv[2]) if len(sys.argv) > 2 else 240
    vocab = int(sys.argv[3]) if len(sys.argv) > 3 else 440
    arguments = ["--model", f"m={path}"]
    with Daemon(arguments) as kept, Daemon([*arguments, "--prefix-bytes-max=0"]) as plain:
        times = {kept: [], plain: []}
        for _ in range(ROUNDS):
            ids = [random.randrange(3, vocab) for _ in range(tokens)]
            for daemon in (kept, plain):
                client = Client(daemon.port)
                first_token(client, ids[:-NEW])
                seconds, cached = first_token(client, ids)
                if (cached > 0) != (daemon is kept):
                    raise Failure(f"{cached} tokens were cached")
                times[daemon].append(seconds)
                client.close()
        with_ms, without_ms = min(times[kept]) * 1000, min(times[plain]) * 1000
    print(f"{tokens} tokens, {NEW} of them new: first token after {with_ms:.2f} ms, "
          f"without kept states {without_ms:.2f} ms ({without_ms / with_ms:.1f} times)")


if __name__ == "__main__":
    main()
