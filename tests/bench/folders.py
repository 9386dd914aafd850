#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Milliseconds of a token of language models that exporters wrote as folders, side by side: with
caches that grow and of a fixed size, or by two builds of pted.

Each model has a daemon of its own. Streams of TOKENS tokens behind so many others take turns,
ROUNDS times; the time is the median between two tokens. No guesses are checked. With --streams
that many streams run at once; tokens a second are those of all of them, from the first token of
the last one on.

usage: folders.py [--at N,...] [--rounds N] [--streams N] [--workers N] NAME=FOLDER[=PTED]...
"""
import argparse
import http.client
import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path

import daemon

TOKENS = 48


def stream(port, prompt, times):
    """Notes when each token of an answer comes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = {"model": "m", "prompt": prompt, "max_tokens": TOKENS, "temperature": 0,
            "ignore_eos": True, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body))
    response = connection.getresponse()
    for line in response:
        if line.startswith(b"data: {"):
            times.append(time.perf_counter())
    connection.close()
    if response.status != 200 or len(times) < TOKENS:
        sys.exit(f"folders: status {response.status}, {len(times)} tokens")


def run(port, at, streams):
    """Milliseconds between two tokens of a stream, and tokens a second of all streams."""
    times = [[] for _ in range(streams)]
    # another beginning for each, so that none goes on from the state of an earlier one
    prompts = [[5 + (7 * i + k) % 90 for i in range(at)] for k in range(streams)]
    threads = [threading.Thread(target=stream, args=(port, prompts[k], times[k]))
               for k in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gaps = [b - a for row in times for a, b in zip(row, row[1:])]
    begin, end = max(row[0] for row in times), min(row[-1] for row in times)
    count = sum(begin <= moment <= end for row in times for moment in row)
    return statistics.median(gaps) * 1e3, (count - streams) / max(end - begin, 1e-9)


def proven_rows(port):
    """How many steps run together."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/v2/models/m/stats")
    row = json.loads(connection.getresponse().read())["model_stats"][0]
    connection.close()
    return row.get("batch_rows_proven", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", default="64,1024")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("models", nargs="+", metavar="NAME=FOLDER[=PTED]")
    options = parser.parse_args()
    daemons = {}
    for model in options.models:
        name, folder, *binary = model.split("=")
        daemon.PTED = Path(binary[0] if binary else os.environ.get("top_builddir", ".") + "/pted")
        daemons[name] = daemon.Daemon(f"--model=m={folder}/", f"--workers={options.workers}",
                                      "--draft-tokens-max=0", "--prefix-bytes-max=0")
    time.sleep(5)
    try:
        print(f"| rows | {' | '.join(f'{name}, ms | tokens/s' for name in daemons)} |")
        for at in map(int, options.at.split(",")):
            found = {name: [] for name in daemons}
            for i in range(options.rounds + 1):
                for name, one in daemons.items():
                    measured = run(one.port, at, options.streams)
                    if i > 0:  # the first one makes plans
                        found[name].append(measured)
            cells = [f"{statistics.median(ms for ms, _ in rows):.2f} | "
                     f"{statistics.median(rate for _, rate in rows):.0f}"
                     for rows in found.values()]
            print(f"| {at} | {' | '.join(cells)} |", flush=True)
        rows = {name: proven_rows(one.port) for name, one in daemons.items()}
        print("rows of a step: " + ", ".join(f"{name} {n}" for name, n in rows.items()))
    finally:
        for one in daemons.values():
            one.__exit__()


if __name__ == "__main__":
    sys.exit(main())
