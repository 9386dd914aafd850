#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Logarithms of the probabilities of a prompt's tokens: echo with logprobs, and prompt_logprobs.

What they should be comes from the logits of plain calls of the same programs, as tensors, with the
arithmetic of Python: no sampler, no reply, no parts of a prompt.

usage: run_scoring.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import json
import math
import shutil
import sys
import tempfile
import threading
from pathlib import Path

from run_generate import (ANSWERS, CHAT, CONTEXT, HELLO, VOCAB, ask, chat, complete, metric, post,
                          program_as_chat, stream, wait_idle)
from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

CLOSE = 2e-4
PROMPTS = [row["ids"] for row in ANSWERS[:3]]


# ---------------------------------------------------------------- what is expected

def log_softmax(logits):
    top = max(logits)
    total = top + math.log(math.fsum(math.exp(x - top) for x in logits))
    return [x - total for x in logits]


def rows_of(client, ids, name="chat", is_named=False):
    """The logarithms behind each of |ids|, token by token in a sequence. |is_named|: the position
    is."""
    rows = []
    for position, token in enumerate(ids):
        body = {"args": [[[token]], {"input_pos": [position]} if is_named else [position]],
                "parameters": {"sequence_id": 77, "sequence_start": position == 0,
                               "sequence_end": position == len(ids) - 1}}
        logits = ask(client, f"/v2/models/{name}/call", body)["result"][0]
        rows.append(log_softmax(logits[-1] if isinstance(logits[0], list) else logits))
    return rows


def ranking(row):
    return sorted(range(len(row)), key=lambda i: -row[i])


def close(what, got, expected):
    if len(got) != len(expected) or any(
            abs(a - b) > CLOSE * max(1, abs(b)) for a, b in zip(got, expected)):
        raise Failure(f"{what}: expected {expected}, got {got}")


def check_echo(marks, ids, rows, top):
    """The list of a completion that echoes |ids|; |marks| may go on with an answer."""
    count = len(ids)
    expect("no logarithm of the first", (marks["token_logprobs"][0], marks["top_logprobs"][0]),
           (None, None))
    close("logarithms", marks["token_logprobs"][1:count],
          [rows[i][ids[i + 1]] for i in range(count - 1)])
    for i in range(1, count):
        tops = list(marks["top_logprobs"][i].values())
        best = [rows[i - 1][t] for t in ranking(rows[i - 1])[:top]]
        chosen = rows[i - 1][ids[i]]
        if any(min(abs(value - wanted) for wanted in [*best, chosen]) > CLOSE for value in tops):
            raise Failure(f"top_logprobs of {i}: {tops} of {best}")
        own = marks["token_logprobs"][i]
        expect("the token is one of them", own in tops, True)
        expect("is it the best one", own == max(tops),
               ranking(rows[i - 1])[0] == ids[i] if top else True)


def check_offsets(choice):
    """Tokens stand in the text where they say; special ones are not in it."""
    marks, at = choice["logprobs"], 0
    for token, offset in zip(marks["tokens"], marks["text_offset"]):
        expect("offset", offset, at)
        if not token.startswith("<|im_"):
            expect("text there", choice["text"][at:at + len(token)], token)
            at += len(token)
    expect("end of the text", at, len(choice["text"]))


def check_list(items, ids, rows, top):
    """prompt_logprobs."""
    expect("tokens", len(items), len(ids))
    expect("the first", items[0], None)
    for i in range(1, len(ids)):
        row, item = rows[i - 1], items[i]
        close("logarithm", [item[str(ids[i])]["logprob"]], [row[ids[i]]])
        expect("the token of the prompt is first", next(iter(item)), str(ids[i]))
        rank = 1 + sum(value > row[ids[i]] for value in row)
        if abs(item[str(ids[i])]["rank"] - rank) > 1:  # two may be almost equal
            raise Failure(f"rank of {i}: {item}, expected {rank}")
        others = [v for k, v in item.items() if k != str(ids[i])]
        expect("others", len(item) in (top, top + 1), True)
        close("others", [v["logprob"] for v in others],
              [row[ranking(row)[v["rank"] - 1]] for v in others])


# ---------------------------------------------------------------- checks

def echoes():
    """A prompt with and without an answer, as text, ids and several, whole and as a stream."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        rows = [rows_of(client, ids) for ids in PROMPTS]
        for top in (0, 1, 5, 20):
            for tokens in (0, 1, 4):
                answer = complete(client, PROMPTS, echo=True, logprobs=top, max_tokens=tokens)
                for choice, ids, row in zip(answer["choices"], PROMPTS, rows):
                    marks = choice["logprobs"]
                    check_echo(marks, ids, row, top)
                    check_offsets(choice)
                    expect("tokens", len(marks["tokens"]) - len(ids) in range(tokens + 1), True)
                    expect("text", choice["text"].startswith(
                        ask(client, "/v2/models/chat/detokenize", {"tokens": ids})["text"]), True)
        text = complete(client, "Count from 2", echo=True, logprobs=1, max_tokens=0)["choices"][0]
        expect("text", text["text"], "Count from 2")
        expect("tokens", "".join(text["logprobs"]["tokens"]), "Count from 2")
        expect("usage", complete(client, PROMPTS[0], echo=True, logprobs=1,
                                 max_tokens=0)["usage"]["completion_tokens"], 0)
        members = {"model": "chat", "prompt": PROMPTS, "temperature": 0, "echo": True,
                   "logprobs": 2, "max_tokens": 4}
        whole = ask(client, "/v1/completions", members)["choices"]
        events = stream(daemon.port, "/v1/completions", members)
        for choice in whole:
            pieces = [c for e in events[:-1] for c in e["choices"] if c["index"] == choice["index"]]
            expect("text of a stream", "".join(c["text"] for c in pieces), choice["text"])
            for name in choice["logprobs"]:
                expect(f"{name} of a stream", [v for c in pieces for v in c["logprobs"][name]],
                       choice["logprobs"][name])
        one = complete(client, [PROMPTS[0][0]], echo=True, logprobs=1, max_tokens=0)
        expect("one token", one["choices"][0]["logprobs"]["token_logprobs"], [None])
        wait_idle(client)


@contextlib.contextmanager
def pieces_as_chat():
    """The chat model with words in the form of Llama 2: a blank before a text, and bytes."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), *PIECES]
    words += [f"filler{i}" for i in range(VOCAB - len(words))]
    blank = {"type": "Prepend", "prepend": "\u2581"}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": words[i], "special": True, "single_word": False,
                          "lstrip": False, "rstrip": False, "normalized": False}
                         for i in range(3)],
        "normalizer": {"type": "Sequence", "normalizers": [
            blank, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "fuse_unk": True,
                  "vocab": {word: i for i, word in enumerate(words)}, "merges": []}}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MODELS / "chat/model.pte", folder)
        (Path(folder) / "tokenizer.json").write_text(json.dumps(tokenizer))
        yield [f"--model=chat={folder}/model.pte"]


PIECES = ["\u2581The", "\u2581cat", "s", "\u2581"]
THE, CAT, S, BLANK = range(259, 263)
NEWLINE = 3 + 10


def offsets_of_pieces():
    """The blank before a text is none of it; bytes come with the token behind them."""
    with pieces_as_chat() as options, Daemon(options) as daemon:
        client = Client(daemon.port)
        for ids, text, offsets in (
                ([THE, CAT, S], "The cats", [0, 3, 7]),
                ([1, THE, CAT], "The cat", [0, 0, 3]),
                ([BLANK, THE], " The", [0, 0]),
                ([THE, NEWLINE, NEWLINE, S, CAT], "The\n\ns cat", [0, 3, 4, 5, 6]),
                ([THE, 3 + 0xe2, 3 + 0x82, 3 + 0xac, S], "The\u20acs", [0, 3, 4, 4, 4]),
                ([THE, 3 + 0xff, 3 + 0x80, S], "The\ufffd\ufffds", [0, 3, 4, 5])):
            choice = complete(client, [ids], echo=True, logprobs=0, max_tokens=0)["choices"][0]
            expect(f"text of {ids}", choice["text"], text)
            expect(f"offsets of {ids}", choice["logprobs"]["text_offset"], offsets)


def offsets():
    """A stream whose text is held back has the offsets of the whole; bytes that are no character
    count."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for echo in (False, True):
            members = {"model": "chat", "prompt": "The capital of", "logprobs": 0, "echo": echo,
                       "max_tokens": 12, "temperature": 0, "stop": ["s Tz", "n xx"]}
            whole = ask(client, "/v1/completions", members)["choices"][0]["logprobs"]
            events = stream(daemon.port, "/v1/completions", members)
            expect("offsets of a stream",
                   [v for e in events[:-1] for c in e["choices"]
                    for v in c["logprobs"]["text_offset"]], whole["text_offset"])
        choice = complete(client, [[104, 66, 67]], echo=True, logprobs=0,
                          max_tokens=0)["choices"][0]
        expect("offsets", choice["logprobs"]["text_offset"], [0, 1, 2])
        expect("characters", len(choice["text"]), 3)


def lists():
    """prompt_logprobs of completions and chats."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        rows = [rows_of(client, ids) for ids in PROMPTS]
        for top in (0, 1, 20):
            answer = complete(client, PROMPTS, prompt_logprobs=top, max_tokens=2, n=2)
            expect("choices", len(answer["choices"]), 6)
            for choice in answer["choices"]:
                at = choice["index"] // 2
                check_list(choice["prompt_logprobs"], PROMPTS[at], rows[at], top)
                expect("no logprobs", choice["logprobs"], None)
            for source, ids, row in zip(ANSWERS, PROMPTS, rows):
                answer = chat(client, source["messages"], prompt_logprobs=top)
                check_list(answer["prompt_logprobs"], ids, row, top)
                expect("the answer", answer["choices"][0]["message"]["content"], source["answer"])
        item = complete(client, PROMPTS[1], prompt_logprobs=0,
                        max_tokens=0)["choices"][0]["prompt_logprobs"][1]
        words = ask(client, "/v2/models/chat/detokenize", {"tokens": [PROMPTS[1][1]]})
        expect("decoded_token", item[str(PROMPTS[1][1])]["decoded_token"], words["text"])
        both = complete(client, PROMPTS[1], prompt_logprobs=3, echo=True, logprobs=1, max_tokens=1)
        check_list(both["choices"][0]["prompt_logprobs"], PROMPTS[1], rows[1], 3)
        check_echo(both["choices"][0]["logprobs"], PROMPTS[1], rows[1], 1)
        expect("not asked for", "prompt_logprobs" in complete(client, "x")["choices"][0], False)


def parts():
    """The parts of a prompt, other answers and kept states make no difference."""
    for options in (["--prefill-tokens-max=1"], ["--prefill-tokens-max=3"], ["--workers=1"],
                    ["--prefill-tokens-shared=2"]):
        with Daemon([*CHAT, *options]) as daemon:
            client = Client(daemon.port)
            ids = PROMPTS[2]
            rows = rows_of(client, ids)
            stop = threading.Event()

            def others():
                own = Client(daemon.port)
                while not stop.is_set():
                    chat(own, HELLO, max_tokens=100, ignore_eos=True)
            beside = threading.Thread(target=others)
            beside.start()
            try:
                for members in ({}, {"seed": 1234}, {"cache_prompt": False}, {"n": 3}):
                    answer = complete(client, ids, echo=True, logprobs=1, max_tokens=1, **members)
                    for choice in answer["choices"]:
                        check_echo(choice["logprobs"], ids, rows, 1)
            finally:
                stop.set()
                beside.join()
            usage = complete(client, ids, echo=True, logprobs=1, max_tokens=1)["usage"]
            expect("nothing is taken from a kept state",
                   usage["prompt_tokens_details"]["cached_tokens"], 0)
            usage = complete(client, ids, max_tokens=1)["usage"]
            expect("its own state is kept",
                   usage["prompt_tokens_details"]["cached_tokens"] > 8, True)
            wait_idle(client)


@contextlib.contextmanager
def bytes_as_chat(name):
    yield [f"--model=chat={MODELS / name}.pte"]


def last_logits_only():
    """Programs that give the logits of the last token run token by token."""
    for name, model in (("llm", program_as_chat), ("static_cache", program_as_chat),
                        ("prefill/shared", bytes_as_chat), ("prefill/mixed", bytes_as_chat),
                        ("ring", bytes_as_chat)):
        with model(name) as options, Daemon(options) as daemon:
            client = Client(daemon.port)
            ids = list(b"The quick brown fox")
            rows = rows_of(client, ids, "chat.decode" if "prefill" in options[0] else "chat",
                           name == "llm")
            before = metric(client, "pted_model_prompt_tokens_total") or 0
            answer = complete(client, [ids], echo=True, logprobs=2, max_tokens=3, prompt_logprobs=4)
            check_echo(answer["choices"][0]["logprobs"], ids, rows, 2)
            check_list(answer["choices"][0]["prompt_logprobs"], ids, rows, 4)
            expect("tokens", metric(client, "pted_model_prompt_tokens_total") - before,
                   float(len(ids)))
            plain = complete(client, [ids], max_tokens=3)["choices"][0]["text"]
            expect("the answer is the same", answer["choices"][0]["text"].endswith(plain), True)


def read_as_harness(answer, context_counts):
    """(logarithm of the continuation, is it the greedy one) of each choice, as lm-eval 0.4.13 reads
    them: the last token is the answer's."""
    found = []
    for choice, count in zip(sorted(answer["choices"], key=lambda c: c["index"]), context_counts):
        values = choice["logprobs"]["token_logprobs"][count:-1]
        tops = choice["logprobs"]["top_logprobs"][count:-1]
        found.append((sum(values), all(v == max(t.values()) for v, t in zip(values, tops))))
    return found


def harness():
    """The requests of lm-eval's local-completions (0.4.13) for questions with several answers: each
    is a prompt of ids with a continuation."""
    endings = [row["answer_ids"] for row in ANSWERS[:3]]
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS[:3]:
            prompts = [row["ids"] + ending for ending in endings]
            answer = ask(client, "/v1/completions", {
                "model": "chat", "prompt": prompts, "temperature": 0, "max_tokens": 1,
                "logprobs": 1, "seed": 1234, "echo": True})
            found = read_as_harness(answer, [len(row["ids"])] * 3)
            expected = []
            for ids, ending in zip(prompts, endings):
                rows = rows_of(client, ids)[len(row["ids"]) - 1:]
                expected.append((sum(r[t] for r, t in zip(rows, ending)),
                                 all(ranking(r)[0] == t for r, t in zip(rows, ending))))
            close("sums", [v for v, _ in found], [v for v, _ in expected])
            expect("greedy", [g for _, g in found], [g for _, g in expected])
            best = max(range(3), key=lambda i: found[i][0])
            expect("the model picks its own answer", endings[best], row["answer_ids"])
            expect("which is the greedy one", found[best][1], True)


def refusals():
    """What no list can be, and what does not fit."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for body, words in (
                (b'"prompt_logprobs": 21', "0 to 20"),
                (b'"prompt_logprobs": -1', "prompt_logprobs"),
                (b'"prompt_logprobs": 1.5', "prompt_logprobs"),
                (b'"prompt_logprobs": "1"', "prompt_logprobs"),
                (b'"prompt_logprobs": []', "prompt_logprobs"),
                (b'"prompt_logprobs": 99999999999999999999', "prompt_logprobs"),
                (b'"prompt_logprobs": 1, "stream": true', "not in a stream"),
                (b'"prompt_logprobs": 1, "prompt_logprobs": 2', "prompt_logprobs")):
            for path, prompt in (("completions", b'"prompt": "x"'), (
                    "chat/completions", b'"messages": [{"role": "user", "content": "x"}]')):
                status = post(client, f"/v1/{path}", b"{" + prompt + b", " + body + b"}")
                expect(f"{body}", (status, words in client.body.decode()), (400, True))
        expect("null is the default", complete(client, "x", prompt_logprobs=None, max_tokens=1)
               ["choices"][0].get("prompt_logprobs"), None)
        for prompt in ([[VOCAB]], [[]], [[1] * CONTEXT], [[1, "a"]], [[1], 2]):
            expect(f"{str(prompt)[:30]}", post(client, "/v1/completions", {
                "model": "chat", "prompt": prompt, "echo": True, "logprobs": 1}), 400)
        full = complete(client, [[5] * (CONTEXT - 1)], echo=True, logprobs=1, max_tokens=9)
        expect("a full context", len(full["choices"][0]["logprobs"]["tokens"]), CONTEXT)
        wait_idle(client)


def memory():
    """Lists are charged to --ring-bytes, and end with --answer-bytes-max; other clients are not
    hurt. What one client may have, its long answers can take until they are refused."""
    body = {"model": "chat", "prompt": [[7] * 250] * 64, "prompt_logprobs": 20, "echo": True,
            "logprobs": 20, "max_tokens": 0}
    for options, codes in ((["--ring-bytes=2M"], {413, 429}),
                           (["--answer-bytes-max=100000"], {413})):
        with Daemon([*CHAT, *options]) as daemon:
            client = Client(daemon.port, "127.0.0.2")
            found = set()

            def send():
                own = Client(daemon.port)
                found.add(post(own, "/v1/completions", body))
            senders = [threading.Thread(target=send) for _ in range(3)]
            for sender in senders:
                sender.start()
            for row in ANSWERS[:2]:
                expect("a small one", chat(client, row["messages"])["choices"][0]["message"]
                       ["content"], row["answer"])
            for sender in senders:
                sender.join()
            expect("statuses", bool(found) and found <= codes, True)
            client.send(build_request("GET", "/v2/models/stats"))
            expect("stats", client.answer(), 200)
            expect("all is given back", json.loads(client.body)["memory"]["answers"]["held"], 0)
            wait_idle(client)


def leaving():
    """A client that leaves while its prompts are scored leaves nothing behind."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for _ in range(5):
            late = Client(daemon.port)
            data = json.dumps({"model": "chat", "prompt": [[7] * 250] * 64, "prompt_logprobs": 20,
                               "max_tokens": 50, "ignore_eos": True}).encode()
            late.send(build_request("POST", "/v1/completions", data))
            complete(client, "x", max_tokens=5)
            late.close()
        wait_idle(client)


CHECKS = (echoes, offsets, offsets_of_pieces, lists, parts, last_logits_only, harness, refusals,
          memory, leaving)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
