#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""States of ended generations that later prompts use, against a real daemon with a tiny model.

usage: run_prefix.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import signal
import shutil
import sys
import tempfile
from pathlib import Path

from load import get_json, in_threads, wait_until
from run_access import line
from run_generate import (ANSWERS, CHAT, FOLDER, HELLO, Stream, chat, complete, delta_text, metric,
                          post, program_as_chat, stream, wait_idle)
from run_http import Client, Daemon, Failure, Report, expect

COUNT_TO = [{"role": "user", "content": "Count from 2 to 7."}]
CAPITAL = {"role": "user", "content": "What is the capital of Japan?"}


def computed(client):
    return metric(client, "pted_model_prompt_tokens_total")


def cached(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def turns():
    """A second turn computes only its new tokens, and says so; the answer is the same."""
    with Daemon(CHAT) as daemon, Daemon([*CHAT, "--prefix-bytes-max=0"]) as without:
        client, other = Client(daemon.port), Client(without.port)
        messages, had = list(COUNT_TO), 0
        for turn in range(4):
            before = computed(client)
            answer, plain = chat(client, messages), chat(other, messages)
            expect("answer", answer["choices"], plain["choices"])
            expect("nothing is kept", cached(plain), 0)
            usage = answer["usage"]
            expect(f"cached in turn {turn}", cached(answer) >= had, True)
            expect("computed", computed(client) - before, usage["prompt_tokens"] - cached(answer))
            # The last token of an answer was never computed.
            had = usage["total_tokens"] - 1
            messages += [answer["choices"][0]["message"], CAPITAL]
        expect("hits", metric(client, "pted_model_prefix_hits_total"), 3.0)
        expect("one state does for all", metric(client, "pted_prefixes"), 1.0)
        expect("bytes", metric(client, "pted_prefix_bytes") > 0, True)
        expect("off", metric(other, "pted_prefixes"), 0.0)
        saved = metric(client, "pted_model_cached_tokens_total")
        expect("saved", computed(client) + saved, computed(other))
        wait_idle(client)
        # Another end of the same beginning, and what a request may say.
        again = chat(client, COUNT_TO, n=3)
        expect("a beginning", cached(again), again["usage"]["prompt_tokens"] - 1)
        expect("choices", {c["message"]["content"] for c in again["choices"]},
               {ANSWERS[2]["answer"]})
        expect("cache_prompt", cached(chat(client, COUNT_TO, cache_prompt=False)), 0)
        expect("seed", cached(chat(client, COUNT_TO, seed=1)), 0)
        expect("seed with", cached(chat(client, COUNT_TO, seed=1, cache_prompt=True)) > 0, True)
        expect("type", post(client, "/v1/completions",
                            {"model": "chat", "prompt": "a", "cache_prompt": 1}), 400)
        text = complete(client, ANSWERS[2]["prompt"], max_tokens=60)
        expect("completion", text["choices"][0]["text"], ANSWERS[2]["answer"])
        expect("of a chat", cached(text) > 0, True)


def choices():
    """The choices of a prompt share its tokens."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = chat(client, COUNT_TO, n=4)
        count = answer["usage"]["prompt_tokens"]
        expect("computed", computed(client), count + 3.0)
        expect("cached", cached(answer), 0)


def crowd():
    """Concurrent requests with one beginning do not disturb each other."""
    beginning = ANSWERS[2]["messages"] + [{"role": "assistant", "content": ANSWERS[2]["answer"]}]
    with Daemon(CHAT) as daemon, Daemon([*CHAT, "--prefix-bytes-max=0"]) as without:
        other = Client(without.port)
        bodies = [beginning + row["messages"] for row in ANSWERS]
        expected = [chat(other, body)["choices"][0]["message"]["content"] for body in bodies]
        client = Client(daemon.port)
        chat(client, ANSWERS[2]["messages"])

        def one(index):
            mine = index % len(bodies)
            for _ in range(2):
                events = stream(daemon.port, "/v1/chat/completions",
                                {"model": "chat", "messages": bodies[mine], "temperature": 0})
                expect(f"stream {index}", delta_text(events), expected[mine])
        in_threads(12, one)
        wait_idle(client)
        expect("hits", metric(client, "pted_model_prefix_hits_total"), 24.0)


def leaving():
    """A client that left, and comes back with what it has got."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        body = {"model": "chat", "messages": HELLO, "temperature": 0, "max_tokens": 200,
                "ignore_eos": True, "stream": True}
        first = Stream(daemon.port, "/v1/chat/completions", body)
        first.chunk()
        first.client.reset()
        wait_idle(client)
        whole = chat(client, HELLO)
        expect("answer", whole["choices"][0]["message"]["content"],
               chat(client, HELLO, cache_prompt=False)["choices"][0]["message"]["content"])


def limits():
    """Bytes are bounded, the oldest states go, and sequences take what they need."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        chat(client, COUNT_TO)
        one = int(metric(client, "pted_prefix_bytes"))
    with Daemon([*CHAT, f"--prefix-bytes-max={2 * one + one // 2}"]) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            chat(client, row["messages"])
            if metric(client, "pted_prefix_bytes") > 2.5 * one:
                raise Failure("too many bytes")
        expect("as many as fit", metric(client, "pted_prefixes"), 2.0)
        expect("the last is there", cached(chat(client, ANSWERS[-1]["messages"])) > 8, True)
    state = 2 * one  # about what a sequence may need
    with Daemon([*CHAT, f"--sequence-bytes-max={state + one // 2}"]) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            answer = chat(client, row["messages"])
            expect("answer", answer["choices"][0]["message"]["content"], row["answer"])
    with Daemon([*CHAT, "--sequence-timeout=50ms"]) as daemon:
        client = Client(daemon.port)
        chat(client, COUNT_TO)
        wait_until("idle states go", lambda: metric(client, "pted_prefixes") == 0)


def owners():
    """Requests with different access tokens do not find each other's states."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokens"
        names = ("alice", "robert")
        path.write_text("".join(line(name, "infer", f"{name}-token") + "\n" for name in names))
        with Daemon([*CHAT, f"--token-file={path}"]) as daemon:
            client = Client(daemon.port)

            def ask_as(name):
                fields = [f"Authorization: Bearer {name}-token"]
                body = {"model": "chat", "messages": COUNT_TO, "temperature": 0}
                expect("status", post(client, "/v1/chat/completions", body, fields), 200)
                return cached(json.loads(client.body))
            expect("new", ask_as("alice"), 0)
            expect("another's", ask_as("robert"), 0)
            expect("its own", ask_as("alice") > 0, True)
            expect("likewise", ask_as("robert") > 0, True)


def reload():
    """A model that is loaded anew begins with no states."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "chat"
        shutil.copytree(FOLDER, place)
        model = place / "model.pte"
        with Daemon(["--model", f"chat={model}"]) as daemon:
            client = Client(daemon.port)
            chat(client, COUNT_TO)
            expect("kept", cached(chat(client, COUNT_TO)) > 0, True)
            running = Stream(daemon.port, "/v1/chat/completions",
                             {"model": "chat", "messages": COUNT_TO, "temperature": 0,
                              "max_tokens": 200, "ignore_eos": True, "n": 8, "stream": True})
            running.chunk()
            os.replace(shutil.copy(model, place / "new"), model)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for("model files: 1 loaded")
            expect("dropped", metric(client, "pted_prefixes"), 0.0)
            expect("the old one goes on", running.events()[-1], "[DONE]")
            expect("keeps nothing", metric(client, "pted_prefixes"), 0.0)
            expect("new", cached(chat(client, COUNT_TO)), 0)
            expect("again", cached(chat(client, COUNT_TO)) > 0, True)


def exporters():
    """Programs as others write them, see run_drafts.py: two prompts with one beginning share its
    states, and answers stay as they are."""
    for name in ("llm", "static_cache"):
        with program_as_chat(name) as model, Daemon(model) as daemon, \
                Daemon([*model, "--prefix-bytes-max=0"]) as without:
            client, other = Client(daemon.port), Client(without.port)
            begin = [(7 * i) % 400 + 2 for i in range(40)]
            for end in ([3], [4, 5], [6] * 20):
                answer, plain = (complete(one, begin + end, max_tokens=20, ignore_eos=True)
                                 for one in (client, other))
                expect("answer", answer["choices"], plain["choices"])
                expect(f"{name}: cached before {end}", cached(answer),
                       0 if end == [3] else len(begin))


def crowd_of_pages():
    """Answers that run at the same time, and the states that they leave, hold the rows of their
    common beginning once."""
    begin, ends = [(7 * i) % 400 + 2 for i in range(1600)], range(6)
    with program_as_chat("long_cache") as model, Daemon(model) as daemon, \
            Daemon([*model, "--prefix-bytes-max=0"]) as without:
        client, other = Client(daemon.port), Client(without.port)

        def ask(whom, end, **options):
            return complete(whom, [*begin, end, end + 1], max_tokens=12, ignore_eos=True, **options)
        expected = [ask(other, 20 + end)["choices"] for end in ends]
        ask(client, 10)
        wait_idle(client)
        one = metric(client, "pted_prefix_bytes")

        def one_answer(end):
            answer = ask(Client(daemon.port), 20 + end)
            expect("answer", answer["choices"], expected[end])
            expect("cached", cached(answer), len(begin))
        in_threads(len(ends), one_answer)
        wait_idle(client)
        expect("states", metric(client, "pted_prefixes"), 1.0 + len(ends))
        more = metric(client, "pted_prefix_bytes") - one
        tokens = 4 * len(begin) + 4096
        expect(f"{more} bytes more than {one}", more < len(ends) * (4 * 4096 + tokens), True)


def in_8_bits():
    """Caches in 8 bits are shared, guessed at and joined as others are, and the answers are those
    of floats."""
    begin = [(7 * i) % 400 + 2 for i in range(1600)]
    with program_as_chat("long_cache") as model, tempfile.TemporaryDirectory() as folder:
        card = Path(folder) / "chat.card.json"
        card.write_text('{"cache": "int8"}', encoding="utf-8")
        with Daemon([*model, f"--card=chat={card}"]) as daemon, \
                Daemon([*model, f"--card=chat={card}", "--prefix-bytes-max=0"]) as without:
            client, other = Client(daemon.port), Client(without.port)
            for end in range(3):
                answer, plain = (complete(one, [*begin, end], max_tokens=12, ignore_eos=True)
                                 for one in (client, other))
                expect("answer", answer["choices"], plain["choices"])
                expect("cached", cached(answer), len(begin) if end else 0)
    with tempfile.TemporaryDirectory() as folder:
        card = Path(folder) / "chat.card.json"
        card.write_text('{"cache": "int8"}', encoding="utf-8")
        with Daemon([*CHAT, f"--card=chat={card}"]) as daemon, Daemon(CHAT) as floats:
            client = Client(daemon.port)
            taken = []
            for one, expected in ((client, "int8"), (Client(floats.port), None)):
                expect("metadata", get_json(one, "/v2/models/chat").get("cache"), expected)
                chat(one, COUNT_TO)
                taken.append(metric(one, "pted_prefix_bytes"))
            expect("fewer bytes", 2 * taken[0] <= taken[1], True)
            expect("cached", cached(chat(client, COUNT_TO)) > 8, True)

            def ask_one(number):
                row = ANSWERS[number % len(ANSWERS)]
                with_own = Client(daemon.port)
                answer = chat(with_own, row["messages"])
                expect("answer", answer["choices"][0]["message"]["content"], row["answer"])
            in_threads(12, ask_one)


CHECKS = (exporters, crowd_of_pages, turns, choices, crowd, leaving, limits, owners, reload,
          in_8_bits)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
