#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Language models: completions, chats, streams, against a real daemon with a tiny model.

The model and what eager PyTorch answers come from contrib/export/chat.py. run_formats.py asks the
same model for answers of a form, and run_openai.py uses it with OpenAI's own client.

usage: run_generate.py, with top_srcdir and top_builddir in the environment.
"""
import contextlib
import json
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

from load import in_threads, wait_until
from run_http import (MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request,
                      expect)

FOLDER = MODELS / "chat"
CHAT = ["--model", f"chat={FOLDER / 'model.pte'}"]
ADD = str(MODELS / "add.pte")
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
VOCAB, CONTEXT = 448, 256
LONG = {"temperature": 0, "max_tokens": 200, "ignore_eos": True}
HELLO = [{"role": "user", "content": "Hello!"}]
STREAMS = 20


@contextlib.contextmanager
def program_as_chat(name):
    """Options of a daemon whose model "chat" is tests/models/|name|/model.pte, with the tokens of
    the chat model."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MODELS / name / "model.pte", folder)
        for file in FOLDER.glob("tokenizer*"):
            shutil.copy(file, folder)
        yield [f"--model=chat={folder}/model.pte"]


def post(client, path, body, fields=()):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client.send(build_request("POST", path, data, fields))
    return client.answer()


def ask(client, path, body):
    status = post(client, path, body)
    if status != 200:
        raise Failure(f"{path}: {status} {client.body[:300]!r}")
    return json.loads(client.body)


def chat(client, messages, **members):
    return ask(client, "/v1/chat/completions",
               {"model": "chat", "messages": messages, "temperature": 0, **members})


def complete(client, prompt, **members):
    return ask(client, "/v1/completions",
               {"model": "chat", "prompt": prompt, "temperature": 0, **members})


class Stream:
    """The events of one request, read from a connection of its own."""

    def __init__(self, port, path, body, fields=(), unix=None, client=None):
        self.client = self.narrow(unix) if unix else client or Client(port)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.client.send(build_request("POST", path, data, fields))
        while b"\r\n\r\n" not in self.client.unread:
            self.client.receive()
        head, _, self.client.unread = self.client.unread.partition(b"\r\n\r\n")
        self.head = head.decode().lower()

    @staticmethod
    def narrow(path):
        """A client that takes little before it reads: a socket of this family holds 200 KB."""
        client = Client.__new__(Client)
        client.socket = socket.socket(socket.AF_UNIX)
        client.socket.settimeout(TIMEOUT_S)
        client.socket.connect(path)
        client.unread, client.fields, client.body = b"", [], b""
        return client

    def chunk(self):
        """The next chunk; empty: the end."""
        while b"\r\n" not in self.client.unread:
            self.client.receive()
        size, _, self.client.unread = self.client.unread.partition(b"\r\n")
        data = self.client.take(int(size, 16) + 2)
        return data[:-2]

    def events(self):
        """All events that are left; checks their form."""
        data = b"".join(iter(self.chunk, b""))
        parts = data.decode().split("\n\n")
        expect("end of the events", parts.pop(), "")
        expect("form of events", [p[:60] for p in parts if not p.startswith("data: ")], [])
        texts = [part[len("data: "):] for part in parts]
        return [json.loads(text) if text != "[DONE]" else text for text in texts]


def stream(port, path, body):
    return Stream(port, path, {**body, "stream": True}).events()


def delta_text(events, index=0):
    choices = [c for e in events if e != "[DONE]" for c in e["choices"] if c["index"] == index]
    return "".join(c["delta"].get("content") or "" if "delta" in c else c["text"] for c in choices)


def joined_calls(events, index=0):
    """The calls of a stream, as an answer that is none has them."""
    calls = []
    choices = [c for e in events if e != "[DONE]" for c in e["choices"] if c["index"] == index]
    for delta in (d for c in choices for d in c["delta"].get("tool_calls", [])):
        if delta["index"] == len(calls):
            calls.append({key: value for key, value in delta.items() if key != "index"})
        else:
            expect("goes on", (delta["index"], list(delta), list(delta["function"])),
                   (len(calls) - 1, ["index", "function"], ["arguments"]))
            calls[-1]["function"]["arguments"] += delta["function"]["arguments"]
    return calls


def metric(client, name, labels=""):
    client.send(build_request("GET", "/metrics"))
    expect("metrics", client.answer(), 200)
    found = re.search(rf"^{name}\{{?[^\n]*{labels}[^\n]* ([0-9.e+]+)$", client.body.decode(), re.M)
    return float(found[1]) if found else None


def wait_idle(client):
    """Nothing is generated, and no sequence is left."""
    wait_until("generations end", lambda: metric(client, "pted_model_generations") == 0)
    wait_until("sequences end", lambda: metric(client, "pted_sequences") == 0)


# ---------------------------------------------------------------- answers

def golden():
    """Greedy answers are those of PyTorch, by every route, as a stream and whole."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS:
            answer = chat(client, row["messages"])
            choice = answer["choices"][0]
            expect("answer", choice["message"],
                   {"role": "assistant", "content": row["answer"], "refusal": None})
            expect("reason", choice["finish_reason"], row["finish_reason"])
            counts = {"prompt_tokens": len(row["ids"]),
                      "completion_tokens": len(row["answer_ids"]) + 1,
                      "total_tokens": len(row["ids"]) + len(row["answer_ids"]) + 1}
            cached = answer["usage"].pop("prompt_tokens_details")["cached_tokens"]
            expect("usage", answer["usage"], counts)
            expect("cached", cached < len(row["ids"]), True)
            counts["prompt_tokens_details"] = {"cached_tokens": len(row["ids"]) - 1}
            events = stream(daemon.port, "/v1/chat/completions",
                            {"model": "chat", "messages": row["messages"], "temperature": 0,
                             "stream_options": {"include_usage": True}})
            expect("stream", delta_text(events), row["answer"])
            expect("usage of the stream", events[-2]["usage"], counts)
            expect("end", events[-1], "[DONE]")
            expect("role", events[0]["choices"][0]["delta"]["role"], "assistant")
            for prompt in (row["prompt"], row["ids"]):
                text = complete(client, prompt, max_tokens=60)["choices"][0]["text"]
                expect("completion", text, row["answer"])
            body = {"text_input": row["prompt"],
                    "parameters": {"max_tokens": 60, "temperature": 0}}
            whole = ask(client, "/v2/models/chat/generate", body)
            expect("generate", whole["text_output"], row["answer"])
            pieces = Stream(daemon.port, "/v2/models/chat/generate_stream", body).events()
            expect("generate_stream", "".join(p["text_output"] for p in pieces), row["answer"])
        wait_idle(client)


def same_as_calls():
    """The ids are those of plain calls with a sequence, one token each."""
    row = ANSWERS[2]
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        ids, position, out = row["ids"], 0, []
        while len(out) < len(row["answer_ids"]):
            body = {"args": [[ids], [position]],
                    "parameters": {"sequence_id": 5, "sequence_start": position == 0}}
            logits = ask(client, "/v2/models/chat/call", body)["result"][0][-1]
            position += len(ids)
            ids = [max(range(VOCAB), key=lambda i: logits[i])]
            out += ids
        expect("ids", out, row["answer_ids"])
        words = ask(client, "/v2/models/chat/detokenize", {"tokens": out})
        expect("text", words["text"], row["answer"])
        words = ask(client, "/v2/models/chat/tokenize", {"text": row["prompt"]})
        expect("tokens", words, {"count": len(row["ids"]), "context": CONTEXT,
                                 "tokens": row["ids"]})


def prefill():
    """The parts of a prompt make no difference."""
    row = ANSWERS[-1]
    for size in (1, 7, 64):
        with Daemon([*CHAT, f"--prefill-tokens-max={size}"]) as daemon:
            answer = chat(Client(daemon.port), row["messages"])
            expect("answer", answer["choices"][0]["message"]["content"], row["answer"])


def characters():
    """Events have whole characters, though tokens are parts of them."""
    with Daemon(CHAT) as daemon:
        for row in ANSWERS:
            events = stream(daemon.port, "/v1/chat/completions",
                            {"model": "chat", "messages": row["messages"], "temperature": 0})
            if any("�" in json.dumps(e, ensure_ascii=False) for e in events):
                raise Failure(f"half a character: {events}")
            expect("text", delta_text(events), row["answer"])


# ---------------------------------------------------------------- what requests may ask for

def sampling():
    """The same seed gives the same text, another seed another one; choices differ."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        asked = {"messages": ANSWERS[0]["messages"], "temperature": 5, "max_tokens": 30}
        one = chat(client, **asked, seed=1, n=3)["choices"]
        two = chat(client, **asked, seed=1, n=3)["choices"]
        three = chat(client, **asked, seed=2, n=3)["choices"]
        texts = [[c["message"]["content"] for c in choices] for choices in (one, two, three)]
        expect("same seed", texts[0], texts[1])
        expect("all differ", len(set(texts[0] + texts[2])), 6)
        expect("indices", [c["index"] for c in one], [0, 1, 2])
        events = stream(daemon.port, "/v1/chat/completions", {"model": "chat", **asked, "seed": 1,
                                                              "n": 3})
        expect("streams", [delta_text(events, i) for i in range(3)], texts[0])
        for members in ({"top_k": 1}, {"top_p": 0}, {"top_p": 1e-9}, {"min_p": 1}):
            answer = chat(client, **{**asked, **members})
            expect(str(members), answer["choices"][0]["message"]["content"],
                   ANSWERS[0]["answer"])
        row = ANSWERS[0]
        banned = {str(row["answer_ids"][0]): -100}
        other = chat(client, row["messages"], logit_bias=banned, max_tokens=3)
        if other["choices"][0]["message"]["content"] == row["answer"]:
            raise Failure("a banned token was chosen")
        plain = chat(client, HELLO, **LONG)["choices"][0]["message"]["content"]
        for members in ({"frequency_penalty": 2}, {"presence_penalty": 2},
                        {"repetition_penalty": 50}):
            text = chat(client, HELLO, **LONG, **members)["choices"][0]["message"]["content"]
            expect(f"{members} changes the text", text != plain, True)


def ends():
    """What ends an answer, and what is held back until that is known."""
    row = ANSWERS[2]  # 2, 3, 4, 5, 6, 7.
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for members, text, reason in (
                ({"stop": "4"}, "2, 3, ", "stop"), ({"stop": [", 4", "7"]}, "2, 3", "stop"),
                ({"stop": ["zz"]}, row["answer"], "stop"), ({"stop": row["answer"]}, "", "stop"),
                ({"stop": "7.x"}, row["answer"], "stop"), ({"max_tokens": 1}, "2", "length"),
                ({"max_completion_tokens": 0}, "", "length"),
                ({"stop_token_ids": [row["answer_ids"][0]]}, "", "stop")):
            choice = chat(client, row["messages"], **members)["choices"][0]
            expect(f"{members}", choice["message"]["content"], text)
            expect(f"{members}", choice["finish_reason"], reason)
            events = stream(daemon.port, "/v1/chat/completions",
                            {"model": "chat", "messages": row["messages"], "temperature": 0,
                             **members})
            expect(f"{members} in a stream", delta_text(events), text)
            expect("reason", events[-2]["choices"][0]["finish_reason"], reason)
        answer = chat(client, row["messages"], **LONG)
        expect("no end", answer["choices"][0]["finish_reason"], "length")
        left = CONTEXT - len(row["ids"])
        answer = chat(client, row["messages"], **{**LONG, "max_tokens": 5000})
        expect("the context ends it", answer["usage"]["completion_tokens"], left)
        answer = complete(client, row["prompt"], echo=True)
        expect("echo", "2, 3" in answer["choices"][0]["text"], True)
        expect("echo", "Count from 2" in answer["choices"][0]["text"], True)
        answer = complete(client, [r["prompt"] for r in ANSWERS[:3]], max_tokens=40, n=2)
        expect("prompts", [c["text"] for c in answer["choices"]],
               [r["answer"] for r in ANSWERS[:3] for _ in range(2)])
        wait_idle(client)


def logprobs():
    """Logarithms of probabilities, most probable first."""
    row = ANSWERS[1]
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        marks = chat(client, row["messages"], logprobs=True,
                     top_logprobs=3)["choices"][0]["logprobs"]["content"]
        expect("count", len(marks), len(row["answer_ids"]) + 1)
        for mark in marks:
            expect("the most probable one", mark["top_logprobs"][0]["token"], mark["token"])
            expect("bytes", bytes(mark["bytes"]).decode("utf-8", "replace"), mark["token"])
            values = [top["logprob"] for top in mark["top_logprobs"]]
            expect("order", values, sorted(values, reverse=True))
            expect("a probability", values[0] <= 0, True)
        expect("text", "".join(m["token"] for m in marks[:-1]), row["answer"])
        whole = complete(client, row["prompt"], logprobs=2, max_tokens=4)["choices"][0]
        expect("tokens", "".join(whole["logprobs"]["tokens"]), whole["text"])
        expect("offsets", whole["logprobs"]["text_offset"][0], 0)
        members = {"guided_regex": "日a本b", "logprobs": 0, "max_tokens": 20}
        wide = complete(client, "x", **members)["choices"][0]
        pieces = stream(daemon.port, "/v1/completions",
                        {"model": "chat", "prompt": "x", "temperature": 0, **members})
        expect("offsets in a stream", [at for piece in pieces[:-1]
                                       for at in piece["choices"][0]["logprobs"]["text_offset"]],
               wide["logprobs"]["text_offset"])
        at = dict(zip(wide["logprobs"]["tokens"], wide["logprobs"]["text_offset"]))
        expect("offsets of characters", (wide["text"], at["a"], at["b"]), ("日a本b", 1, 3))
        events = stream(daemon.port, "/v1/chat/completions",
                        {"model": "chat", "messages": row["messages"], "temperature": 0,
                         "logprobs": True, "top_logprobs": 3, "cache_prompt": False})
        streamed = [m for e in events[:-1] for c in e["choices"]
                    for m in c["logprobs"]["content"]]
        expect("in a stream", streamed, marks)


def models():
    """The list is for clients of KServe and of OpenAI."""
    with Daemon([*CHAT, "--model", f"add={ADD}"]) as daemon:
        client = Client(daemon.port)
        client.send(build_request("GET", "/v1/models"))
        expect("status", client.answer(), 200)
        listed = json.loads(client.body)
        expect("object", listed["object"], "list")
        expect("what clients of OpenAI can use", [m["id"] for m in listed["data"]], ["chat"])
        names = listed["models"]
        expect("all names", {"add", "chat", "chat.get_max_seq_len"} <= set(names), True)
        expect("the log has no line for a constant", "chat.get_max_seq_len" in daemon.read_log(),
               False)
        client.send(build_request("GET", "/v1/models/chat"))
        expect("status", client.answer(), 200)
        one = json.loads(client.body)
        expect("one", (one["name"], one["id"], one["ready"], one["object"]),
               ("chat", "chat", True, "model"))
        client.send(build_request("GET", "/v1/models/no%zz"))
        expect("no name", client.answer(), 400)
        expect("its form", json.loads(client.body)["error"]["type"], "invalid_request_error")


# ---------------------------------------------------------------- forms of answers

SCHEMA = {"type": "object", "additionalProperties": False,
          "properties": {"city": {"enum": ["Tokyo", "Paris", "\u6771\u4eac"]},
                         "days": {"type": "integer"},
                         "tags": {"type": "array", "items": {"type": "boolean"},
                                  "minItems": 1, "maxItems": 3}},
          "required": ["city", "days", "tags"]}


def as_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


def check_schema(text):
    value = json.loads(text)
    expect("members", list(value), ["city", "days", "tags"])
    expect("enum", value["city"] in SCHEMA["properties"]["city"]["enum"], True)
    expect("integer", type(value["days"]), int)
    expect("array", [type(tag) for tag in value["tags"]], [bool] * len(value["tags"]))
    expect("items", 1 <= len(value["tags"]) <= 3, True)


def heavy_masks():
    """Masks that take long are made by the threads for heavy work; others are free meanwhile."""
    slow = {"model": "chat", "prompt": "hi", "max_tokens": 30, "temperature": 2,
            "guided_regex": "([a-z0-9 ,.]{0,60}[aeiou]){30}x"}
    with Daemon(CHAT) as daemon:
        client, seen = Client(daemon.port), set()

        def attack(_):
            other = Client(daemon.port)
            for _ in range(3):
                status = post(other, "/v1/completions", slow)
                expect("status", status in (200, 413), True)  # it may have too many states

        attackers = [threading.Thread(target=attack, args=(i,)) for i in range(4)]
        for thread in attackers:
            thread.start()
        while any(thread.is_alive() for thread in attackers):
            seen.add(metric(client, "pted_pool_tasks", 'kind="heavy"'))
        expect("heavy", max(seen) > 0, True)
        # What is known beside the guesses of a step is as heavy.
        guessed = {**slow, "prompt": "x", "temperature": 0,
                   "guided_regex": "a{8}([a-z0-9 ,.]{0,60}[aeiou]){30}x"}
        expect("behind guesses", post(client, "/v1/completions", guessed) in (200, 413), True)
        golden_text = complete(client, ANSWERS[2]["prompt"], max_tokens=60)["choices"][0]["text"]
        expect("others", golden_text, ANSWERS[2]["answer"])
        wait_idle(client)


def large_walks():
    """What a grammar makes the daemon remember counts as memory of the request."""
    slow = {"model": "chat", "prompt": "hi", "max_tokens": 30, "temperature": 2, "seed": 1,
            "guided_regex": "([a-z0-9 ,.]{0,60}[aeiou]){30}x"}
    with Daemon([*CHAT, "--ring-bytes=8M"]) as daemon:
        client = Client(daemon.port)
        for _ in range(3):
            expect("refused", post(client, "/v1/completions", slow), 413)
            expect("why", "the memory for requests has 8388608" in
                   json.loads(client.body)["error"]["message"], True)
            answer = complete(client, "hi", guided_regex="[ab]{3}-[0-9]{2}")
            expect("others", answer["choices"][0]["finish_reason"], "stop")
        wait_idle(client)


def format_crowd():
    """Constrained streams at one time: each has its own state; they share the vocabulary."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)

        def one(index):
            body = {"model": "chat", "messages": HELLO, "temperature": 1, "seed": index,
                    "max_tokens": 150, "response_format": as_schema(SCHEMA)}
            texts = []
            for _ in range(2):
                events = stream(daemon.port, "/v1/chat/completions", body)
                texts.append(delta_text(events))
                if events[-2]["choices"][0]["finish_reason"] == "stop":
                    check_schema(texts[-1])
            expect("same seed", texts[0], texts[1])
        in_threads(8, one)
        wait_idle(client)


# ---------------------------------------------------------------- clients

def leaving():
    """A client that goes ends its generation, and its sequence is free."""
    body = {"model": "chat", "messages": HELLO, **LONG, "n": 64}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for is_stream in (True, False):
            before = metric(client, "pted_model_answer_tokens_total")
            gone = Client(daemon.port)
            gone.send(build_request("POST", "/v1/chat/completions",
                                    json.dumps({**body, "stream": is_stream}).encode()))
            wait_until("tokens", lambda: metric(client, "pted_model_answer_tokens_total") >
                       before + 5)
            gone.reset()
            wait_idle(client)
            made = metric(client, "pted_model_answer_tokens_total") - before
            expect("it stopped early", made < 64 * 200, True)
        expect("others", chat(client, HELLO)["choices"][0]["message"]["content"],
               ANSWERS[0]["answer"])


def broken_streams():
    """A client that goes while an event is written has cancelled its request: it was counted as
    one that succeeded, and its times began when the machine did."""
    body = {"model": "chat", "messages": HELLO, **LONG, "n": 64, "stream": True}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for i in range(40):
            gone = Client(daemon.port)
            gone.send(build_request("POST", "/v1/chat/completions", json.dumps(body).encode()))
            gone.socket.recv(100)
            time.sleep(0.0002 * i)
            gone.reset()
        wait_idle(client)
        client.send(build_request("GET", "/v2/models/chat/stats"))
        expect("status", client.answer(), 200)
        phases = json.loads(client.body)["model_stats"][0]["inference_stats"]
        expect("cancelled", phases["cancel"]["count"], 40)
        expect("success", phases["success"]["count"], 0)
        for name, phase in phases.items():
            if phase["ns"] > 40 * TIMEOUT_S * 10**9:
                raise Failure(f"{name}: {phase}")


def slow_readers():
    """A stream that is not read waits; then it goes on, or it is cut, and others are not hurt."""
    body = {"model": "chat", "messages": HELLO, **LONG, "n": 64, "logprobs": True,
            "top_logprobs": 20, "stream": True}
    with tempfile.TemporaryDirectory() as folder:
        unix = f"{folder}/socket"
        waiting_reader(unix, body)
        stuck_reader(unix, body)


def waiting_reader(unix, body):
    with Daemon([*CHAT, f"--listen=unix:{unix}"]) as daemon:
        client = Client(daemon.port)
        slow = Stream(daemon.port, "/v1/chat/completions", {**body, "n": 8}, unix=unix)
        seen = [0.0]

        def stands_still():
            last, seen[0] = seen[0], metric(client, "pted_model_answer_tokens_total")
            time.sleep(0.05)
            return last == seen[0]
        wait_until("the generation waits", stands_still)
        expect("not done", metric(client, "pted_model_generations"), 1.0)
        expect("others", chat(client, HELLO)["choices"][0]["message"]["content"],
               ANSWERS[0]["answer"])
        events = slow.events()
        expect("end", events[-1], "[DONE]")
        texts = {delta_text(events, i) for i in range(8)}
        expect("one text", len(texts), 1)
        wait_idle(client)


def stuck_reader(unix, body):
    with Daemon([*CHAT, f"--listen=unix:{unix}", "--write-timeout=200ms"]) as daemon:
        client = Client(daemon.port)
        stuck = Stream(daemon.port, "/v1/chat/completions", body, unix=unix)
        wait_idle(client)
        try:
            stuck.events()
            raise Failure("the stream was not cut")
        except (Failure, ConnectionResetError, json.JSONDecodeError) as why:
            if "not cut" in str(why):
                raise


def crowd():
    """Many streams at a time: each gets its own answer."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)

        def one(index):
            row = ANSWERS[index % len(ANSWERS)]
            for _ in range(2):
                events = stream(daemon.port, "/v1/chat/completions",
                                {"model": "chat", "messages": row["messages"], "temperature": 0})
                expect(f"stream {index}", delta_text(events), row["answer"])
        in_threads(STREAMS, one)
        wait_idle(client)


def limits():
    """Beyond a limit the answer is 429, with the numbers."""
    # More than sockets hold, so that the answer goes on until its client has taken it.
    body = {"model": "chat", "messages": HELLO, **LONG, "n": 64, "stream": True, "logprobs": True,
            "top_logprobs": 20}
    admin = ("--admin-listen", "127.0.0.1:0")  # it is not read, and its place goes to nobody
    for option, text in (("--generation-count-max=1", "has 1 generations under way"),
                         ("--sequence-count-max=1", "1 sequences with")):
        with Daemon([*CHAT, option, *admin]) as daemon:
            client = Client(daemon.port)
            first = Stream(daemon.admin_port(), "/v1/chat/completions", body)
            first.chunk()
            expect(option, post(client, "/v1/chat/completions",
                                {"model": "chat", "messages": HELLO}), 429)
            error = json.loads(client.body)["error"]
            expect("type", error["type"], "rate_limit_error")
            if text not in error["message"]:
                expect(option, error["message"], text)
            first.client.reset()
            wait_idle(client)
            expect("then", post(client, "/v1/chat/completions",
                                {"model": "chat", "messages": HELLO}), 200)
    with Daemon([*CHAT, "--generation-count-max=1", *admin]) as daemon:
        # Counted before it is rendered, and not any more when that fails.
        wrong = {"model": "chat", "messages": [{"role": "user", "content": "Hello! " * 200}]}
        client = Client(daemon.port)
        for _ in range(3):
            expect("too long", post(client, "/v1/chat/completions", wrong), 400)
        first = Stream(daemon.admin_port(), "/v1/chat/completions", body)
        first.chunk()
        expect("not rendered", post(client, "/v1/chat/completions", wrong), 429)
        first.client.reset()
        wait_idle(client)
        expect("no tokens", post(client, "/v1/completions", {"model": "chat", "prompt": [9999]}),
               400)
        expect("then", post(client, "/v1/completions", {"model": "chat", "prompt": "a"}), 200)
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        status = post(client, "/v1/chat/completions", {**body, "stream": False},
                      ["X-Request-Timeout-Ms: 20"])
        expect("too late", status, 504)
        for milliseconds in (100, 200, 400, 800):  # until the stream has begun before
            late = Stream(daemon.port, "/v1/chat/completions", body,
                          [f"X-Request-Timeout-Ms: {milliseconds}"])
            if late.head.startswith("http/1.1 200"):
                events = late.events()
                expect("in a stream", "ms" in events[-1]["error"]["message"], True)
                break
            late.client.reset()
        wait_idle(client)


def growing_answers():
    """Answers that grow from token to token are charged to --ring-bytes: those that get no more
    memory end with 429, or with 413 when there is no more, and small ones are not hurt."""
    ring = 2 << 20
    body = {"model": "chat", "prompt": ["a"] * 64, "logprobs": 20, **LONG, "n": 64}
    with Daemon([*CHAT, f"--ring-bytes={ring}"]) as daemon:
        client = Client(daemon.port)
        statuses = [None] * STREAMS
        others = threading.Thread(target=in_threads, args=(
            STREAMS, lambda i: statuses.__setitem__(i, post(Client(daemon.port),
                                                            "/v1/completions", body))))
        others.start()
        wait_until("answers hold memory", lambda: metric(
            client, "pted_ring_held_bytes", 'holder="answers"') > ring / 4)
        for row in ANSWERS:
            expect("a small one", chat(client, row["messages"])["choices"][0]["message"]["content"],
                   row["answer"])
        others.join()
        expect("statuses", set(statuses) <= {413, 429}, True)
        expect("others had the memory", 429 in statuses, True)
        client.send(build_request("GET", "/v2/models/stats"))
        expect("stats", client.answer(), 200)
        answers = json.loads(client.body)["memory"]["answers"]
        expect("peak", ring / 4 < answers["peak"] <= ring, True)
        expect("all is given back", answers["held"], 0)
        whole = complete(client, ["a"] * 4, logprobs=20, **LONG)
        expect("one that fits", len(whole["choices"]), 4)
        slow = Stream(daemon.port, "/v1/completions", {**body, "n": 2, "stream": True})
        expect("a stream holds little", slow.events()[-1], "[DONE]")


def total_time():
    """All steps of an answer together have --generation-timeout, which a model may have alone."""
    body = {"model": "chat", "messages": HELLO, **LONG, "n": 64}
    for option in ("--generation-timeout=100ms", "--set=chat:generation-timeout=100ms"):
        with Daemon([*CHAT, option]) as daemon:
            client = Client(daemon.port)
            expect("too late", post(client, "/v1/chat/completions", body), 504)
            text = "after 100 ms (--generation-timeout)"
            expect("text", text in json.loads(client.body)["error"]["message"], True)
            events = stream(daemon.port, "/v1/chat/completions", body)
            expect("in a stream", text in events[-1]["error"]["message"], True)
            wait_idle(client)


def logs():
    """The access log has the tokens; a stop lets a stream end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "access"
        with Daemon([*CHAT, "--access-log=all", f"--access-log-file={path}"]) as daemon:
            row = ANSWERS[0]
            chat(Client(daemon.port), row["messages"])
            client = Client(daemon.port)
            expect("first tokens", metric(client, "pted_model_first_token_seconds_count"), 1.0)
            expect("next tokens", metric(client, "pted_model_next_token_seconds_count"),
                   float(len(row["answer_ids"])))
            open_stream = Stream(daemon.port, "/v1/chat/completions",
                                 {"model": "chat", "messages": HELLO, **LONG, "n": 4,
                                  "stream": True})
            daemon.process.terminate()
            expect("end", open_stream.events()[-1], "[DONE]")
            expect("status", daemon.process.wait(TIMEOUT_S), 0)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        line = next(item for item in lines if "prompt_tokens" in item)
        expect("tokens", (line["prompt_tokens"], line["answer_tokens"]),
               (len(row["ids"]), len(row["answer_ids"]) + 1))
        expect("first token", line["first_token_us"] > 0, True)


CHECKS = (golden, same_as_calls, prefill, characters, sampling, ends, logprobs, models, heavy_masks,
          large_walks, format_crowd, leaving, broken_streams, slow_readers, crowd, limits,
          growing_answers, total_time, logs)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
