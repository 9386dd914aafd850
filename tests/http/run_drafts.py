#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Guesses at the next tokens of an answer: steps that check them give the answers of steps that do
not, whatever a request asks for, and statistics show that guesses were checked.

tests/unit/test_speculation compares bits, tests/unit/test_drafts says where guesses come from.

usage: run_drafts.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import json
import os
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from load import TRIAL_S, get_json, in_threads, wait_until
from run_continuous import stats, wait_proven
from run_generate import (ANSWERS, CHAT, FOLDER, Stream, ask, chat, complete, delta_text, metric,
                          post, program_as_chat, stream, wait_idle)
from run_http import MODELS, Client, Daemon, Failure, Report, expect

# Without kept states: a step of many tokens and one of one token round differently.
CHAT = [*CHAT, "--prefix-bytes-max=0"]
CONTEXT, LONGER = 256, 8192
# Prompts that repeat themselves, so that there is something to guess.
ECHO = "the cat sat on the mat. the cat sat on the mat. the cat sat on"
TURNS = ANSWERS[1]["prompt"] + ANSWERS[1]["answer"] + "<|im_end|>\n" + ANSWERS[1]["prompt"]


class Guessing(Daemon):
    """A daemon that has found out that guesses can be checked."""

    def __init__(self, *options, base=CHAT, **popen):
        super().__init__([*base, *options], **popen)

    def __enter__(self):
        super().__enter__()
        wait_proven(Client(self.port))
        self.wait_for("checks up to 7 guessed tokens")
        return self


def checked(client):
    return metric(client, "pted_model_draft_tokens_total")


def accepted(client):
    return metric(client, "pted_model_accepted_tokens_total")


SAMPLINGS = (
    {"temperature": 0},
    {"temperature": 0, "logprobs": 3},
    {"temperature": 1, "seed": 5},
    {"temperature": 0.6, "seed": 9, "logprobs": 1, "n": 3},
    {"temperature": 2, "top_k": 4, "seed": 1},
    {"temperature": 1, "top_p": 0.8, "min_p": 0.02, "seed": 2},
    {"temperature": 0, "repetition_penalty": 1.3},
    {"temperature": 0, "frequency_penalty": 0.4, "presence_penalty": 0.2},
    {"temperature": 0, "logit_bias": {"295": 3, "10": -100}},
    {"temperature": 0, "stop": ["sat on", "Tokyo"]},
    {"temperature": 0, "stop_token_ids": [295]},
    {"temperature": 0, "ignore_eos": False},
    {"temperature": 0, "echo": True},
    {"temperature": 1, "seed": 4, "guided_regex": "( the| cat| sat| on| mat|\\.){4,40}"},
    {"temperature": 0, "guided_json": {"type": "array", "items": {"enum": ["cat", "mat"]},
                                       "minItems": 6, "maxItems": 9}},
)


def same_answers():
    """Texts, logarithms, reasons and counts are those without guesses."""
    with Guessing() as daemon, Daemon([*CHAT, "--draft-tokens-max=0"]) as without:
        client, other = Client(daemon.port), Client(without.port)
        for prompt in (ECHO, TURNS):
            for members in SAMPLINGS:
                body = {"model": "chat", "prompt": prompt, "max_tokens": 48, "ignore_eos": True,
                        **members}
                answer = ask(client, "/v1/completions", body)
                plain = ask(other, "/v1/completions", body)
                expect(f"{members}", answer["choices"], plain["choices"])
                expect(f"usage of {members}", answer["usage"], plain["usage"])
                events = stream(daemon.port, "/v1/completions", body)
                expect(f"stream of {members}",
                       [delta_text(events, i) for i in range(members.get("n", 1))],
                       [choice["text"] for choice in plain["choices"]])
        if not checked(client) > accepted(client) > 100:
            raise Failure(f"{checked(client)} guesses checked, {accepted(client)} right")
        expect("off", checked(other), 0.0)
        wait_idle(client)
        expect("all tokens are counted", metric(client, "pted_model_answer_tokens_total"),
               3 * metric(other, "pted_model_answer_tokens_total") / 1.5)
        times = metric(client, "pted_model_next_token_seconds_count")
        expect("times between tokens", times,
               2 * metric(other, "pted_model_next_token_seconds_count"))


def exporters():
    """Programs as others write them: ExecuTorch's export_llm since 1.5, where each use of the
    position reads it again; transformers' static cache, written by index and read by a mask; its
    cache that grows. All answer these prompts with repetitions, so that almost all guesses are
    right and worth a check also where a sanitizer or another process makes it dear."""
    grows = ["--model", f"chat={MODELS / 'exported' / 'growing'}/"]
    for name, tokens, count in (("llm", [123, 102, 244] * 12, 60),
                                ("static_cache", [5, 9, 200, 31] * 6, 60),
                                ("growing", [52, 85] * 12, 40)):
        with (contextlib.nullcontext(grows) if name == "growing"
              else program_as_chat(name)) as model:
            options = [*model, "--prefix-bytes-max=0"]
            with Guessing(base=options) as daemon, \
                    Daemon([*options, "--draft-tokens-max=0"]) as plain:
                client, other = Client(daemon.port), Client(plain.port)
                prompt = {"prompt": tokens, "max_tokens": count, "ignore_eos": True}
                for members in SAMPLINGS[:6]:
                    answers = [complete(one, **prompt, **members)["choices"]
                               for one in (client, other)]
                    expect(f"{name}, {members}", answers[0], answers[1])
                wait_until(f"{name}: guesses",
                           lambda: complete(client, **prompt) and checked(client) > 0, TRIAL_S)


def metadata(client, name):
    return get_json(client, f"/v2/models/{name}")


def index_row(client, name):
    expect("index", post(client, "/v2/repository/index", {}), 200)
    return next(row for row in json.loads(client.body) if row["name"] == name)


def what_is_lacking():
    """Nothing, and everything that an option has turned off."""
    with Guessing() as daemon:
        client = Client(daemon.port)
        for form in (metadata(client, "chat"), index_row(client, "chat"),
                     metadata(client, "chat.get_vocab_size")):
            expect("all there", "lacks" in form, False)
    for option, lacks in (("--draft-tokens-max=0", {"guesses": "no guesses are to be checked"}),
                          ("--max-batch=1", {"steps": "batches are off",
                                             "guesses": "its steps run one by one"})):
        with Daemon([*CHAT, option]) as daemon:
            daemon.wait_for("not checked" if "draft" in option else "serving")
            client = Client(daemon.port)
            wait_until(option, lambda: "lacks" in metadata(client, "chat"))
            for form in (metadata(client, "chat"), index_row(client, "chat")):
                expect(option, form["lacks"], lacks)


def accepted_prediction(row):
    """Tokens of the whole answer of |row| that were right as a prediction. How many are checked
    depends on the costs that a daemon has measured when it started, so each call starts one."""
    with Guessing() as daemon:
        events = stream(daemon.port, "/v1/chat/completions",
                        {"model": "chat", "messages": row["messages"], "temperature": 0,
                         "stream_options": {"include_usage": True},
                         "prediction": {"type": "content", "content": row["answer"]}})
        expect("stream", delta_text(events), row["answer"])
        return events[-2]["usage"]["completion_tokens_details"]["accepted_prediction_tokens"]


def prediction():
    """What the client says that the answer may be like. Short answers are guessed or not, as the
    costs of a check say, which differ from machine to machine."""
    with Guessing() as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            text, plain = row["answer"], chat(client, row["messages"])
            expect("no details", "completion_tokens_details" in plain["usage"], False)
            middle = len(text) // 2
            parts = [{"type": "text", "text": part} for part in (text[:middle], text[middle:])]
            for content in (text, parts, "Something else, of which nothing comes.", ""):
                wait_idle(client)  # beside another answer nothing is guessed
                answer = chat(client, row["messages"],
                              prediction={"type": "content", "content": content})
                expect("answer", answer["choices"], plain["choices"])
                details = answer["usage"]["completion_tokens_details"]
                if content in ("",):
                    expect("nothing", details, {"accepted_prediction_tokens": 0,
                                                "rejected_prediction_tokens": 0})
        wait_idle(client)
        expect("longer than the context",
               chat(client, ANSWERS[0]["messages"],
                    prediction={"type": "content", "content": "word " * 100000})["choices"][0]
               ["message"]["content"], ANSWERS[0]["answer"])
    longest = max(ANSWERS, key=lambda row: len(row["answer"]))
    wait_until("tokens of a prediction that were right",
               lambda: accepted_prediction(longest) > 0, TRIAL_S)


def bad_predictions():
    """Refused with the place."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for value, word in (("text", "object"), ({}, "content"), ({"type": "content"}, "content"),
                            ({"type": "other", "content": "a"}, "content"),
                            ({"type": "content", "content": 3}, "string"),
                            ({"type": "content", "content": [{"type": "text"}]}, "text"),
                            ({"type": "content", "content": [{"type": "image", "text": "a"}]},
                             "text"),
                            ({"type": "content", "content": [{"text": "a"}]}, "text")):
            body = {"model": "chat", "messages": ANSWERS[0]["messages"], "prediction": value}
            expect(f"{value}", post(client, "/v1/chat/completions", body), 400)
            text = json.loads(client.body)["error"]["message"]
            expect(f"{text} says where", bool(re.search(r"prediction", text)), True)
            expect(f"{text} says what", word in text, True)
        for value in (None, {"type": "content", "content": "Hello!", "more": [1]}):
            chat(client, ANSWERS[0]["messages"], prediction=value)


def whole_context():
    """Answers that end with the context: guesses never go behind it."""
    with Guessing() as daemon, Daemon([*CHAT, "--draft-tokens-max=0"]) as without:
        client, other = Client(daemon.port), Client(without.port)
        ids = ANSWERS[1]["ids"]
        for count in (CONTEXT - 1, CONTEXT - 5, 120):
            prompt = (ids * CONTEXT)[:count]
            for tokens in (1, 2, 9, CONTEXT):
                body = {"max_tokens": tokens, "ignore_eos": True, "logprobs": 0}
                answer, plain = complete(client, prompt, **body), complete(other, prompt, **body)
                expect(f"{count} and {tokens}", answer["choices"], plain["choices"])
                expect("tokens", answer["usage"]["completion_tokens"],
                       min(tokens, CONTEXT - count))
        expect("checked", accepted(client) > 0, True)


def longer_context(folder):
    """The model, with a program that says that it has a longer context than its buffers."""
    for file in FOLDER.iterdir():
        shutil.copy(file, folder)
    path = Path(folder) / "model.pte"
    data = bytearray(path.read_bytes())
    at = data.rindex(struct.pack("<q", CONTEXT), 0, data.index(b"get_max_context_len"))
    data[at:at + 8] = struct.pack("<q", LONGER)
    path.write_bytes(data)
    return [f"--model=chat={path}", "--prefix-bytes-max=0"]


def wrong_context():
    """Guesses stay within the buffers, and a prediction of too many tokens has no ids: memory that
    nothing was written to is none."""
    with tempfile.TemporaryDirectory() as folder:
        options = longer_context(folder)
        spoilt = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.perturb=165"}
        with Guessing(base=options, env=spoilt) as daemon, \
                Daemon([*options, "--draft-tokens-max=0"]) as plain:
            client, other = Client(daemon.port), Client(plain.port)
            body = {"guided_regex": "(assistant\n){1,8}[a-z ]{8}", "max_tokens": 60}
            answer = chat(client, ANSWERS[0]["messages"], **body)
            for text in ("q,;:" * 400000, "\u00e9" * 400000):
                expect("answer", chat(client, ANSWERS[0]["messages"], **body,
                                      prediction={"type": "content", "content": text})["choices"],
                       answer["choices"])
            body = {"model": "chat", "max_tokens": LONGER, "temperature": 0, "ignore_eos": True,
                    "guided_regex": "( the){30}"}
            statuses = []
            for count in range(174, 184):
                body["prompt"] = (ANSWERS[1]["ids"] * CONTEXT)[:count]
                statuses += [post(one, "/v1/completions", body) for one in (client, other)]
                answers = [json.loads(one.body).get("choices") for one in (client, other)]
                expect(f"{count} tokens", answers[0], answers[1])
            expect("statuses", statuses[::2], statuses[1::2])
            expect("some answers end in time", set(statuses), {200, 400})
            expect("checked", accepted(client) > 0, True)


def other_caches():
    """Models that remember the last 8 tokens, in a ring or in a window that moves: a guess that is
    wrong would stay there, so none is checked, though answers repeat themselves; neither is an
    answer's state kept for others that only begin like it."""
    for name in ("ring", "window"):
        options = [f"--model=m={MODELS / name}.pte", "--max-batch=8"]
        with Daemon(options) as daemon, \
                Daemon([*options, "--draft-tokens-max=0", "--prefix-bytes-max=0"]) as without:
            why = daemon.wait_for("guessed tokens are not checked: (.*)")[1]
            for form in (metadata(Client(daemon.port), "m"), index_row(Client(daemon.port), "m")):
                expect(f"{name}: guesses", form["lacks"]["guesses"], why)
                expect(f"{name}: beginnings", "its mutable buffers" in form["lacks"]["prefixes"],
                       True)
            expect(f"{name}: {why}", "its mutable buffers" in why or "cannot be joined" in why,
                   True)
            client, other = Client(daemon.port), Client(without.port)
            body = {"model": "m", "max_tokens": 100, "ignore_eos": True, "logprobs": 1}
            for count, temperature in ((1, 0), (5, 0), (9, 0.5), (40, 0), (33, 0), (40, 0)):
                body.update(prompt=([2, 7, 11] * count)[:count], temperature=temperature,
                            seed=count)
                answer, plain = (ask(one, "/v1/completions", body) for one in (client, other))
                expect(f"{name}, {count} tokens", answer["choices"], plain["choices"])
            in_threads(4, lambda _: expect(f"{name}, together",
                                           ask(Client(daemon.port), "/v1/completions",
                                               body)["choices"], plain["choices"]))
            expect(f"{name}, guesses", (checked(client), checked(other)), (0.0, 0.0))


def turns():
    """A kept state whose last rows were guessed wrong is used like any other."""
    options = [option for option in CHAT if not option.startswith("--prefix")]
    with Guessing(*options[2:], "--prefix-bytes-max=64M") as daemon:
        client = Client(daemon.port)
        alone = Client(daemon.port)
        messages = list(ANSWERS[1]["messages"])
        for _ in range(5):
            answer = chat(client, messages)
            text = answer["choices"][0]["message"]["content"]
            expect("answer", text, chat(alone, messages, cache_prompt=False)["choices"][0]
                   ["message"]["content"])
            messages += [{"role": "assistant", "content": text}, *ANSWERS[1]["messages"]]
        expect("states were used", metric(client, "pted_model_prefix_hits_total") > 3, True)
        expect("guesses were checked", accepted(client) > 0, True)


def several():
    """While others generate nothing is guessed: their steps run together; all answers are right."""
    with Guessing("--max-batch=8") as daemon:
        client = Client(daemon.port)
        body = {"model": "chat", "prompt": TURNS, "temperature": 0, "max_tokens": 60,
                "ignore_eos": True}
        expected = ask(client, "/v1/completions", body)["choices"][0]["text"]

        def one(index):
            for _ in range(3):
                events = stream(daemon.port, "/v1/completions", body)
                expect(f"stream {index}", delta_text(events), expected)
        in_threads(6, one)
        wait_idle(client)
        rows = [batch["batch_size"] for batch in stats(client)["batch_stats"]]
        expect("steps ran together", max(rows) > 1, True)


def leaving():
    """Clients that leave in the middle, again and again."""
    with Guessing() as daemon:
        client = Client(daemon.port)
        body = {"model": "chat", "prompt": TURNS, "temperature": 0, "max_tokens": 150,
                "ignore_eos": True, "n": 4, "stream": True}
        for _ in range(12):
            running = Stream(daemon.port, "/v1/completions", body)
            running.chunk()
            running.client.reset()
        wait_idle(client)
        wait_until("memory", lambda: metric(client, "pted_sequence_bytes") == 0)
        expect("answer", chat(client, ANSWERS[0]["messages"])["choices"][0]["message"]["content"],
               ANSWERS[0]["answer"])


def settings():
    """A smaller number, for one model; and none, with and without batches. How many guesses are
    worth a check depends on the times of this machine, so few may be worth none."""
    for option, word in (("--draft-tokens-max=3", "checks up to 3 guessed tokens"),
                         ("--set=chat:draft-tokens-max=1", "checks up to 1 guessed tokens"),
                         ("--draft-tokens-max=0", "guessed tokens are not checked")):
        with Daemon([*CHAT, option]) as daemon:
            daemon.wait_for(word)
            client = Client(daemon.port)
            complete(client, ECHO, max_tokens=48, ignore_eos=True)
            if "not" in word:
                expect(option, checked(client), 0.0)
    with Daemon([*CHAT, "--max-batch=1"]) as daemon:
        client = Client(daemon.port)
        complete(client, ECHO, max_tokens=48, ignore_eos=True)
        expect("--max-batch=1", checked(client), 0.0)


CHECKS = (exporters, what_is_lacking, same_answers, prediction, bad_predictions,
          whole_context, wrong_context, other_caches, turns, several, leaving, settings)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
