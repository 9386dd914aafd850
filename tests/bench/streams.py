#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures how many tokens a second a language model generates for 1, 2, 4 and 8 clients at a time.

Each client streams one greedy completion after the other from one daemon; the numbers of clients
take turns, ROUNDS times, so that a machine that becomes slower is slower for all of them. A time
between tokens is that between two events of a stream, without the first. The table has the best
round of each number of clients: tokens a second of all clients together, that over the rate of one
client, the processor time of the whole daemon for a token, which other programs of a busy machine
change less, the median time between tokens and the 99th percentile, and the latter over the median
of one client.

With --prompts N a further client sends prompts of N tokens all the while, one after the other, each
of which gets one token. The table then has their median time until that token, and how many tokens
of them were computed a second.

"steps alone" has the same for a daemon with --max-batch=1, which runs the steps of all clients one
by one: the difference is what rows of one call save.

What a model can gain is bounded by its products: weights that do not fit the caches are read once
for all rows, but the multiplications of each row remain. tests/bench/decode.py makes a model of
570 MB (`--cache FOLDER`), which is large enough; it has no words, so `--vocab 32000` makes some.

usage: streams.py [--model FILE] [--vocab N] [--tokens N] [--rounds N] [--workers N] [--prompts N]
    [--clients N,N] [--option=--OPTION=VALUE]
"""
import argparse
import http.client
import json
import os
import random
import re
import select
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

from daemon import Daemon

TOP = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
CLIENTS = (1, 2, 4, 8)
PROVING_S = 300


class Server(Daemon):
    """A pted with the one model, which has found out whether steps may run together."""

    def __init__(self, model, *options):
        super().__init__(f"--model=m={model}", *options)

    def stats(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/v2/models/m/stats")
        return json.loads(connection.getresponse().read())["model_stats"][0]

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        return float(re.search(rf"^{name}{{.*}} (\S+)", text, re.MULTILINE)[1])

    def processor_ns(self):
        """Of all threads so far."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks)

    def wait_proven(self):
        """The rows that may run together, when the trial has ended; 1: none."""
        end = time.monotonic() + PROVING_S
        while self.metric("pted_model_batch_trial_open") and time.monotonic() < end:
            time.sleep(0.2)
        stats = self.stats()
        if stats["batch_rows_max"] == 1:
            print(f"streams: steps run alone: {stats.get('batch_refusal')}", file=sys.stderr)
        return stats["batch_rows_max"]


class Stream:
    """A completion of one client, event by event."""

    def __init__(self, port, prompt, tokens, is_waited_for=True, **members):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.words = []  # the texts of the events
        self.usage = None
        self.response = None
        body = {"model": "m", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True,
                "stream": True, **members}
        self.connection.request("POST", "/v1/completions", json.dumps(body))
        if is_waited_for:
            self.wait()

    def wait(self):
        """Reads the head of the answer, which comes with the first event."""
        self.response = self.connection.getresponse()
        if self.response.status != 200:
            sys.exit(f"streams: {self.response.status} {self.response.read()[:200]!r}")

    def has_answer(self):
        return bool(select.select([self.connection.sock], [], [], 0)[0])

    def next(self):
        """When the next event with a choice came; None: there are no more."""
        while True:
            line = self.response.readline()
            if not line:
                return None
            if line.startswith(b"data: {"):
                now, event = time.perf_counter(), json.loads(line[6:])
                self.usage = event.get("usage") or self.usage
                if event.get("choices"):
                    self.words.append(event["choices"][0]["text"])
                    return now

    def close(self):
        if self.response:
            self.response.close()
        self.connection.close()


def stream(port, number, tokens, times):
    """Generates |tokens| tokens; appends when each event came."""
    client = Stream(port, [1 + number, 2, 3 + number], tokens, temperature=0, logprobs=0)
    own = []
    while now := client.next():
        own.append(now)
    client.close()
    times.append(own)


class Prompts(threading.Thread):
    """Sends prompts of |count| tokens, one after the other, until the block ends; |times| has the
    seconds until the one token of each."""

    def __init__(self, port, count):
        super().__init__()
        self.port, self.count = port, count
        self.is_ended = False
        self.times = []

    def __enter__(self):
        if self.count:
            self.start()
        return self

    def __exit__(self, *_):
        self.is_ended = True
        if self.count:
            self.join()

    def run(self):
        source = random.Random(1)
        while not self.is_ended:
            ids = [source.randrange(3, 250) for _ in range(self.count)]
            begin = time.perf_counter()
            client = Stream(self.port, ids, 1, temperature=0, cache_prompt=False)
            while client.next():
                pass
            client.close()
            self.times.append(time.perf_counter() - begin)


class Round:
    """What one round has measured."""

    def __init__(self, daemon, clients, args):
        streams = []
        threads = [threading.Thread(target=stream, args=(daemon.port, n, args.tokens, streams))
                   for n in range(clients)]
        with Prompts(daemon.port, args.prompts) as prompts:
            used, begin = daemon.processor_ns(), time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            took = time.perf_counter() - begin
            used = daemon.processor_ns() - used
        self.rate = clients * args.tokens / took
        self.processor_ms = used / 1e6 / (clients * args.tokens)
        self.gaps = sorted(b - a for own in streams for a, b in zip(own[1:], own[2:]))
        self.prompts = prompts.times
        self.prompt_rate = args.prompts * len(prompts.times) / took


def make_tokenizer(path, count):
    """Words for a model that comes with none."""
    vocab = {f"t{i}": i for i in range(count)}
    path.write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
        "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": []}}))


def percentile(gaps, part):
    return gaps[min(int(len(gaps) * part), len(gaps) - 1)] if gaps else float("nan")


def table(title, results):
    one = results[min(results)]
    step = statistics.median(one.gaps)
    print(title)
    print(f"{'clients':>8} {'tokens/s':>9} {'of one':>7} {'cpu ms':>7} {'p50 ms':>8} {'p99 ms':>8} "
          f"{'p99 of one':>11}")
    for clients, found in results.items():
        p99 = percentile(found.gaps, 0.99)
        line = (f"{clients:>8} {found.rate:>9.1f} {found.rate / one.rate:>7.2f} "
                f"{found.processor_ms:>7.2f} {1e3 * statistics.median(found.gaps):>8.2f} "
                f"{1e3 * p99:>8.2f} {p99 / step:>11.2f}")
        if found.prompts:
            line += (f"  prompts: {1e3 * statistics.median(found.prompts):.0f} ms, "
                     f"{found.prompt_rate:.0f} tokens/s")
        print(line)


def run(daemon, args, counts=CLIENTS):
    """{clients: the best round}."""
    best = {}
    for _ in range(args.rounds):
        for clients in counts:
            result = Round(daemon, clients, args)
            if clients not in best or result.rate > best[clients].rate:
                best[clients] = result
    return best


def compare(args, options):
    """Both tables."""
    with Server(args.model, *options, "--max-batch=8") as daemon:
        rows = daemon.wait_proven()
        table(f"steps together, up to {rows} rows", run(daemon, args, args.clients))
        print("runs by rows:", {batch["batch_size"]: batch["compute_infer"]["count"]
                                for batch in daemon.stats()["batch_stats"]})
    if not args.together_only:
        with Server(args.model, *options, "--max-batch=1") as daemon:
            table("steps alone", run(daemon, args, args.clients))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=TOP / "tests/models/chat/model.pte")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--vocab", type=int, default=0, help="makes a tokenizer of so many words")
    parser.add_argument("--together-only", action="store_true")
    parser.add_argument("--prompts", type=int, default=0, help="tokens of prompts beside them")
    parser.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")],
                        default=CLIENTS, help="numbers of clients (1,2,4,8)")
    parser.add_argument("--option", action="append", default=[], help="of the daemon")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--workers={args.workers}", *args.option]
        if args.vocab:
            path = Path(folder) / "tokenizer.json"
            make_tokenizer(path, args.vocab)
            options.append(f"--tokenizer=m={path}")
        compare(args, options)


if __name__ == "__main__":
    main()
