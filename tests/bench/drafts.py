#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures what guesses at the next tokens are worth: tokens a second of one greedy answer.

A daemon that checks guesses and one that does not (--draft-tokens-max=0) take turns, ROUNDS times;
the best round of each counts. The cases differ in how much there is to guess:

    nothing     no prediction: guesses come from the prompt and the answer alone
    all         the prediction is the answer
    N of M      after each N tokens of the answer, the prediction has another one
    wrong       the prediction is another answer: the price of guesses that are wrong

The answers of both must be the same. "right" is the part of the checked guesses that were right,
"a step" the tokens that a step gives.

The model is that of tests/bench/decode.py (`--cache FOLDER` makes it). It has no words, so a
tokenizer and a chat template are made for it.

usage: drafts.py --model FILE [--vocab N] [--tokens N] [--rounds N] [--workers N] [CASE...]
"""
import argparse
import http.client
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from streams import Server

PROMPT = "t17 t4 t99 t1205 t33"


def make_tokenizer(folder, count):
    """Words for a model that comes with none, and a template that has only the prompt."""
    words = {f"t{i}": i for i in range(count)}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "BPE", "vocab": words, "merges": [], "ignore_merges": True}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "chat_template": "{% for message in messages %}{{ message.content }} {% endfor %}"}))


def request(daemon, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=600)
    connection.request(method, path, body)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    if response.status != 200:
        sys.exit(f"drafts: {path}: {response.status} {data[:300]!r}")
    return data


def ask(daemon, tokens, prediction):
    """The answer, and the seconds that it took."""
    body = {"model": "m", "messages": [{"role": "user", "content": PROMPT}], "temperature": 0,
            "max_tokens": tokens, "ignore_eos": True, "cache_prompt": False}
    if prediction:
        body["prediction"] = {"type": "content", "content": prediction}
    begin = time.perf_counter()
    answer = json.loads(request(daemon, "POST", "/v1/chat/completions", json.dumps(body)))
    return answer["choices"][0]["message"]["content"], time.perf_counter() - begin


def count(daemon, name):
    text = request(daemon, "GET", "/metrics").decode()
    return float(re.search(rf"^pted_model_{name}_total{{[^}}]*}} (\S+)$", text, re.M)[1])


def change(answer, each):
    """The answer with another token in place of every |each|th."""
    words = answer.split()
    return " ".join("t7" if i % each == each - 1 else word for i, word in enumerate(words))


def measure(guessing, plain, args, prediction):
    best = {guessing: float("inf"), plain: float("inf")}
    before = [count(guessing, name) for name in ("draft_tokens", "accepted_tokens")]
    answers = set()
    for turn in range(args.rounds):
        for daemon in (guessing, plain) if turn % 2 else (plain, guessing):
            answer, seconds = ask(daemon, args.tokens, prediction)
            answers.add(answer)
            best[daemon] = min(best[daemon], seconds)
    if len(answers) != 1:
        sys.exit("drafts: the answers differ")
    checked, right = (count(guessing, name) - was
                      for name, was in zip(("draft_tokens", "accepted_tokens"), before))
    total = args.rounds * args.tokens
    return args.tokens / best[plain], args.tokens / best[guessing], checked, right, total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: all of them")
    parser.add_argument("--model", required=True)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_tokenizer(folder, args.vocab)
        options = [f"--workers={args.workers}", f"--tokenizer=m={folder}/tokenizer.json"]
        with Server(args.model, *options) as guessing, \
                Server(args.model, *options, "--draft-tokens-max=0") as plain:
            for daemon in (guessing, plain):
                daemon.wait_proven()
            answer, _ = ask(plain, args.tokens, None)
            cases = {"nothing": None, "all": answer, "15 of 16": change(answer, 16),
                     "7 of 8": change(answer, 8), "3 of 4": change(answer, 4),
                     "wrong": " ".join(reversed(answer.split()))}
            print(f"{'case':>10} {'plain/s':>8} {'guess/s':>8} {'ratio':>6} {'checked':>8} "
                  f"{'right':>6} {'a step':>7}")
            for case, prediction in cases.items():
                if args.cases and case not in args.cases:
                    continue
                slow, fast, checked, right, total = measure(guessing, plain, args, prediction)
                print(f"{case:>10} {slow:>8.1f} {fast:>8.1f} {fast / slow:>6.2f} {checked:>8.0f} "
                      f"{right / checked if checked else 0:>6.2f} {total / (total - right):>7.2f}")


if __name__ == "__main__":
    main()
