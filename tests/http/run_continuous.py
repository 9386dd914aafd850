#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps of several generations run as rows of one call: the answers are those that each has alone,
and statistics show that the steps ran together.

tests/unit/test_steps compares bits; this is about requests that come, stay, leave and fail.

usage: run_continuous.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys
import threading

from load import in_threads, wait_until
from run_generate import (ANSWERS, CHAT, CONTEXT, Stream, ask, chat, complete, delta_text, metric,
                          wait_idle)
from run_http import MODELS, Client, Daemon, Report, build_request, expect

ROWS = 8
TOGETHER = [*CHAT, f"--max-batch={ROWS}"]
PROMPTS = [row["ids"][:n] for row in ANSWERS for n in (3, 5, 9, 14)][:12]
TOKENS = 40


def stats(client, model="chat"):
    client.send(build_request("GET", f"/v2/models/{model}/stats"))
    expect("stats", client.answer(), 200)
    return json.loads(client.body)["model_stats"][0]


def steps_by_rows(client):
    """Runs of each size."""
    return {batch["batch_size"]: batch["compute_infer"]["count"]
            for batch in stats(client)["batch_stats"]}


def wait_proven(client, rows=ROWS, model="chat"):
    wait_until("the proof", lambda: stats(client, model)["batch_rows_proven"] == rows)


class Together(Daemon):
    """A daemon that has found out that steps may run together."""

    def __init__(self, *options):
        super().__init__([*TOGETHER, *options])

    def __enter__(self):
        super().__enter__()
        wait_proven(Client(self.port))
        return self


def body_of(prompt, **members):
    return {"model": "chat", "prompt": prompt, "temperature": 0, "max_tokens": TOKENS,
            "ignore_eos": True, "logprobs": 1, **members}


def answer_of(choice):
    """Text and logarithms: the logits were the same to the last bit that is printed."""
    return choice["text"], choice["logprobs"]["token_logprobs"]


def together():
    """Greedy answers and their logarithms are those of requests that run alone."""
    with Together() as daemon:
        client = Client(daemon.port)
        alone = [answer_of(ask(client, "/v1/completions", body_of(p))["choices"][0])
                 for p in PROMPTS]
        expect("steps alone", set(steps_by_rows(client)), {1})
        answers = [None] * len(PROMPTS)

        def one(i):
            answer = ask(Client(daemon.port), "/v1/completions", body_of(PROMPTS[i]))
            answers[i] = answer_of(answer["choices"][0])

        for _ in range(3):
            in_threads(len(PROMPTS), one)
            expect("answers", answers, alone)
        sizes = steps_by_rows(client)
        expect("steps of several rows", any(rows > 1 for rows in sizes), True)
        expect("rows at most", max(sizes) <= ROWS, True)
        wait_idle(client)


CHECKS = (together,)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
