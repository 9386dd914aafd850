#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps of several generations run as rows of one call: the answers are those that each has alone,
and statistics show that the steps ran together.

tests/unit/test_steps compares bits; this is about requests that come, stay, leave and fail.

usage: run_continuous.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from load import in_threads, wait_until
from run_generate import ANSWERS, CHAT, VOCAB, Stream, ask, wait_idle
from run_http import Client, Daemon, Report, build_request, expect

ROWS = 8
# Without kept states: a step of many tokens and several of one round differently.
CHAT = [*CHAT, "--prefix-bytes-max=0"]
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


def join(client, count, one, check):
    """Calls one(i) for all i at once, and check() behind each round: three rounds and, since it is
    measured whether to join pays, as many more as it takes until a step has several rows."""
    rounds = 0

    def is_joined():
        nonlocal rounds
        in_threads(count, one)
        check()
        rounds += 1
        return rounds >= 3 and max(steps_by_rows(client)) > 1
    wait_until("steps of several rows", is_joined)


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

        join(client, len(PROMPTS), one, lambda: expect("answers", answers, alone))
        expect("rows at most", max(steps_by_rows(client)) <= ROWS, True)
        wait_idle(client)


def long_body(prompt):
    return body_of(prompt, max_tokens=200, stream=True)


def leaving():
    """Clients that go away end their rows; the others get what they get alone."""
    with Together() as daemon:
        client = Client(daemon.port)
        alone = answer_of(ask(client, "/v1/completions",
                              body_of(PROMPTS[0], max_tokens=200))["choices"][0])
        stays = []

        def one(i):
            if i % 2:
                stream = Stream(daemon.port, "/v1/completions", long_body(PROMPTS[i]))
                for _ in range(i):
                    stream.chunk()
                stream.client.reset()
            else:
                answer = ask(Client(daemon.port), "/v1/completions",
                             body_of(PROMPTS[0], max_tokens=200))
                stays.append(answer_of(answer["choices"][0]))

        in_threads(8, one)
        expect("those who stay", stays, [alone] * 4)
        wait_idle(client)


def deadlines():
    """A row whose time is over fails; the others go on."""
    with Together() as daemon:
        client = Client(daemon.port)
        alone = answer_of(ask(client, "/v1/completions", body_of(PROMPTS[1]))["choices"][0])
        answers, late = [], []

        def one(i):
            if i % 2:
                other = Client(daemon.port)
                other.send(build_request("POST", "/v1/completions", json.dumps(
                    body_of(PROMPTS[i], max_tokens=240)).encode(), ["X-Request-Timeout-Ms: 1"]))
                late.append(other.answer())
            else:
                for _ in range(5):
                    answer = ask(Client(daemon.port), "/v1/completions", body_of(PROMPTS[1]))
                    answers.append(answer_of(answer["choices"][0]))

        in_threads(6, one)
        expect("the others", answers, [alone] * 15)
        expect("late ones", late, [504] * 3)
        wait_idle(client)


def prompts():
    """Long prompts come part by part, while others get tokens: nobody's answer changes."""
    prompt = [(7 * i) % VOCAB for i in range(200)]
    with Together("--prefill-tokens-max=16") as daemon:
        client = Client(daemon.port)
        alone = [answer_of(ask(client, "/v1/completions", body_of(p))["choices"][0])
                 for p in (PROMPTS[2], prompt)]
        answers = [[], []]

        def one(i):
            which = int(i >= 4)
            for _ in range(4):
                answer = ask(Client(daemon.port), "/v1/completions",
                             body_of(prompt if which else PROMPTS[2]))
                answers[which].append(answer_of(answer["choices"][0]))

        in_threads(8, one)
        expect("short prompts", answers[0], [alone[0]] * 16)
        expect("long prompts", answers[1], [alone[1]] * 16)
        wait_idle(client)


def run_count(client):
    return sum(steps_by_rows(client).values())


def divided():
    """An answer has the same logarithms however its prompt is divided: no part has one token."""
    prompts = [[(7 * i) % VOCAB for i in range(count)] for count in (9, 33, 41)]
    wanted = None
    for part in (512, 32, 8, 5):
        with Daemon([*CHAT, f"--prefill-tokens-max={part}", "--prefix-bytes-max=0"]) as daemon:
            client = Client(daemon.port)
            answers = [answer_of(ask(client, "/v1/completions", body_of(p))["choices"][0])
                       for p in prompts]
            wanted = wanted or answers
            expect(f"parts of {part}", answers, wanted)


def short_parts():
    """While others get tokens a prompt comes in shorter parts, and only then."""
    prompt = [(7 * i) % VOCAB for i in range(200)]
    with Together("--prefill-tokens-shared=8", "--draft-tokens-max=0") as daemon:
        client = Client(daemon.port)
        body = body_of(prompt, max_tokens=1)
        before = run_count(client)
        text = ask(client, "/v1/completions", body)["choices"][0]["text"]
        expect("parts alone", run_count(client) - before, 1)

        def is_seen():
            """False: the stream ended too soon."""
            before = run_count(client)
            stream = Stream(daemon.port, "/v1/completions",
                            body_of(PROMPTS[0], max_tokens=240, n=8, stream=True,
                                    stream_options={"include_usage": True}))
            stream.chunk()
            choice = ask(client, "/v1/completions", body)["choices"][0]
            runs = run_count(client) - before
            is_beside = runs < 8 * 240
            while stream.chunk():
                pass
            wait_idle(client)
            if is_beside:
                expect("text", choice["text"], text)
                expect("parts", run_count(client) - before - 8 * 240, 25)
            return is_beside

        wait_until("a prompt beside a stream", is_seen)


def sampling():
    """Seeds and choices of one request do not depend on who else is there."""
    body = body_of(PROMPTS[3], temperature=2, seed=11, n=2)
    with Together() as daemon:
        client = Client(daemon.port)
        alone = [answer_of(c) for c in ask(client, "/v1/completions", body)["choices"]]
        answers = [None] * 6

        def one(i):
            answer = ask(Client(daemon.port), "/v1/completions", body)
            answers[i] = [answer_of(choice) for choice in answer["choices"]]

        in_threads(6, one)
        expect("answers", answers, [alone] * 6)


def calls_of_sequences():
    """Steps of plain calls with a sequence id run together with those of generations."""
    with Together() as daemon:
        client = Client(daemon.port)
        alone = answer_of(ask(client, "/v1/completions", body_of(PROMPTS[4]))["choices"][0])

        def logits(connection, number, position):
            body = {"args": [[[(position * 5) % VOCAB]], [position]],
                    "parameters": {"sequence_id": number, "sequence_start": position == 0}}
            return ask(connection, "/v2/models/chat/call", body)["result"]

        wanted = [logits(client, 1, position) for position in range(20)]
        answers, rows = [], []

        def one(i):
            if i % 2:
                answer = ask(Client(daemon.port), "/v1/completions", body_of(PROMPTS[4]))
                answers.append(answer_of(answer["choices"][0]))
            else:
                connection = Client(daemon.port)
                rows.append([logits(connection, 100 + i, position) for position in range(20)])

        in_threads(8, one)
        expect("generations", answers, [alone] * 4)
        expect("calls", rows, [wanted] * 4)


def alone():
    """--max-batch=1 turns it off, and the statistics say so."""
    with Daemon([*CHAT, "--max-batch=1"]) as daemon:
        client = Client(daemon.port)
        in_threads(4, lambda i: ask(Client(daemon.port), "/v1/completions", body_of(PROMPTS[i])))
        expect("runs", set(steps_by_rows(client)), {1})
        expect("reason", stats(client)["batch_refusal"], "batches are off")


CHECKS = (together, leaving, deadlines, prompts, divided, short_parts, sampling,
          calls_of_sequences, alone)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
