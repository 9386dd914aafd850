#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What caches in 8 bits cost and save, beside caches of floats of the same model.

With --text: a model whose tokens are bytes, and which gives the logits of all tokens of a call,
reads windows of the text. The table has the perplexity of both, the largest difference of a logit,
its root mean square, and how often both have the same best token.

With --at: milliseconds of a token behind so many others. A prompt of that length is read once and
kept; answers of 8 and 72 tokens begin with it in turns, ROUNDS times, the caches taking turns, too.
A time is the difference of the medians over 64. No guesses are checked.

usage: cache_int8.py --model FILE [--text FILE [--windows N]] [--at N,...] [--rounds N]
                     [--workers N] [--vocab N]
"""
import argparse
import http.client
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy

from daemon import Daemon
from drafts import make_tokenizer

WINDOW = 127
FEW, MANY = 8, 72


def post(daemon, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=600)
    connection.request("POST", path, json.dumps(body))
    response = connection.getresponse()
    data = response.read()
    connection.close()
    if response.status != 200:
        sys.exit(f"cache_int8: {path}: {response.status} {data[:300]!r}")
    return json.loads(data)


def logits(daemon, name, window):
    """Rows of logits of the bytes of |window|."""
    body = {"inputs": [{"name": "input_0", "datatype": "INT64", "shape": [1, len(window)],
                        "data": list(window)},
                       {"name": "input_1", "datatype": "INT64", "shape": [1], "data": [0]}]}
    out = post(daemon, f"/v2/models/{name}/infer", body)["outputs"][0]
    return numpy.array(out["data"], dtype=numpy.float64).reshape(len(window), -1)


def lost(rows, right):
    """The sum of what the rows give away: minus the logarithms of the right tokens."""
    shifted = rows - rows.max(1, keepdims=True)
    logarithms = shifted - numpy.log(numpy.exp(shifted).sum(1, keepdims=True))
    return -logarithms[numpy.arange(len(right)), right].sum()


def compare(daemon, text, windows):
    step = max(1, (len(text) - WINDOW - 1) // windows)
    sums, count, largest, greatest, squares, alike = [0.0, 0.0], 0, 0.0, 0.0, 0.0, 0
    for at in range(0, len(text) - WINDOW - 1, step):
        window, right = text[at:at + WINDOW], list(text[at + 1:at + WINDOW + 1])
        rows = [logits(daemon, name, window) for name in ("float", "int8")]
        sums = [old + lost(one, right) for old, one in zip(sums, rows)]
        difference = numpy.abs(rows[0] - rows[1])
        largest, greatest = max(largest, difference.max()), max(greatest, numpy.abs(rows[0]).max())
        squares += (difference ** 2).mean() * WINDOW
        alike += (rows[0].argmax(1) == rows[1].argmax(1)).sum()
        count += WINDOW
    print(f"{count} tokens: perplexity {math.exp(sums[0] / count):.4f} and "
          f"{math.exp(sums[1] / count):.4f}; logits up to {greatest:.1f} differ by at most "
          f"{largest:.2f}, {math.sqrt(squares / count):.3f} in the mean of squares; "
          f"the best token is the same for {100 * alike / count:.1f} %")


def ask(daemon, name, prompt, tokens):
    """The seconds of an answer."""
    begin = time.perf_counter()
    post(daemon, "/v1/completions", {"model": name, "prompt": prompt, "temperature": 0,
                                     "max_tokens": tokens, "ignore_eos": True})
    return time.perf_counter() - begin


def time_steps(daemon, length, vocab, rounds):
    prompt = " ".join(f"t{(i * 7919 + 17) % vocab}" for i in range(length))
    times = {(name, tokens): [] for name in ("float", "int8") for tokens in (FEW, MANY)}
    for name, tokens in times:
        ask(daemon, name, prompt, tokens)
    for _ in range(rounds):
        for name, tokens in times:
            times[name, tokens].append(ask(daemon, name, prompt, tokens))
    floats, ints = ((statistics.median(times[name, MANY]) - statistics.median(times[name, FEW])) *
                    1000 / (MANY - FEW) for name in ("float", "int8"))
    print(f"behind {length} tokens: {floats:.2f} and {ints:.2f} ms, {ints / floats:.2f}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--windows", type=int, default=300)
    parser.add_argument("--at", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--vocab", type=int, default=2000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        card = Path(name) / "int8.card.json"
        card.write_text('{"cache": "int8"}')
        make_tokenizer(Path(name), args.vocab)
        options = [f"--model=float={args.model}", f"--model=int8={args.model}",
                   f"--card=int8={card}", "--draft-tokens-max=0", f"--workers={args.workers}",
                   "--sequence-bytes-max=8G", "--prefix-bytes-max=4G"]
        options += [f"--tokenizer={model}={name}" for model in ("float", "int8") if args.at]
        with Daemon(*options) as daemon:
            if args.text:
                compare(daemon, args.text.read_bytes(), args.windows)
            for length in (int(text) for text in args.at.split(",") if text):
                time_steps(daemon, length, args.vocab, args.rounds)


if __name__ == "__main__":
    main()
