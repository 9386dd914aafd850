#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ollama's routes against a real daemon with a tiny model: lines, times, refusals; by raw bytes,
and by Ollama's own client if the Python package ollama is there.

usage: run_ollama.py, with top_srcdir and top_builddir in the environment.
"""
import importlib
import json
import sys
import time
from datetime import datetime

import interpreter
from load import wait_until
from run_embeddings import ENCODER
from run_embeddings import TEXTS as SENTENCES
from run_generate import (ANSWERS, CHAT, CONTEXT, HELLO, VOCAB, Stream, ask, chat, complete, post,
                          wait_idle)
from run_http import Client, Daemon, Failure, Report, build_request, expect
from run_infill import AFTER, BEFORE, FAMILIES, model_with
from run_thinking import JAPAN, TEXTS, served

HAS_CLIENT = interpreter.has("ollama")
ASKED = [{"role": "user", "content": "How is the weather in Oslo?"}]
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                   "required": ["city"]}}}
GREEDY = {"temperature": 0, "num_predict": 60}


def body_of(messages, options=None, **members):
    return {"model": "chat", "messages": messages, "options": {**GREEDY, **(options or {})},
            **members}


def say(client, messages, options=None, **members):
    return ask(client, "/api/chat", body_of(messages, options, stream=False, **members))


def lines_of(port, path, body):
    """The lines of a stream; checks where they end and which one is the last."""
    stream = Stream(port, path, body)
    expect("type", "content-type: application/x-ndjson\r\n" in stream.head, True)
    parts = b"".join(iter(stream.chunk, b"")).decode().split("\n")
    expect("end of the lines", parts.pop(), "")
    lines = [json.loads(part) for part in parts]
    expect("done", [line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
    return lines


def text_of(lines):
    return "".join(line["message"]["content"] if "message" in line else line["response"]
                   for line in lines)


def check_times(answer):
    """Times are of this clock, and parts of the whole."""
    names = ("load_duration", "prompt_eval_duration", "eval_duration")
    parts = [answer[name] for name in names]
    expect("parts", 0 < sum(parts) <= answer["total_duration"], True)
    expect("of a prompt", answer["prompt_eval_duration"] > 0, True)
    made = datetime.fromisoformat(answer["created_at"][:19] + "+00:00").timestamp()
    expect("now", abs(made - time.time()) < 60, True)


def chats():
    """The same answers as of /v1/chat/completions."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS[:8]:
            answer = say(client, row["messages"])
            expect("text", answer["message"], {"role": "assistant", "content": row["answer"]})
            expect("end", (answer["model"], answer["done"], answer["done_reason"]),
                   ("chat", True, "stop"))
            expect("counts", (answer["prompt_eval_count"], answer["eval_count"]),
                   (len(row["ids"]), len(row["answer_ids"]) + 1))
            check_times(answer)
            lines = lines_of(daemon.port, "/api/chat", body_of(row["messages"]))
            expect("text", text_of(lines), row["answer"])
            expect("several", len(lines) > 2, True)
            expect("the last has none", lines[-1]["message"]["content"], "")
            expect("counts", (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]),
                   (len(row["ids"]), len(row["answer_ids"]) + 1))
            check_times(lines[-1])
        tagged = ask(client, "/api/chat", {**body_of(HELLO, stream=False), "model": "chat:latest"})
        expect("a tag", tagged["model"], "chat")
        wait_idle(client)


def prompts():
    """A prompt is the only message, with a system prompt before it; or, raw, the prompt itself."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        row = ANSWERS[0]
        asked = {"model": "chat", "options": GREEDY, "prompt": row["messages"][0]["content"]}
        answer = ask(client, "/api/generate", {**asked, "stream": False})
        expect("text", (answer["response"], answer["prompt_eval_count"]),
               (row["answer"], len(row["ids"])))
        check_times(answer)
        expect("stream", text_of(lines_of(daemon.port, "/api/generate", asked)), row["answer"])
        raw = {**asked, "prompt": row["prompt"], "raw": True, "stream": False}
        expect("raw", ask(client, "/api/generate", raw)["response"], row["answer"])
        system = "You answer \"briefly\".\n"
        told = ask(client, "/api/generate", {**asked, "system": system, "stream": False})
        plain = chat(client, [{"role": "system", "content": system}, *row["messages"]],
                     max_tokens=60)
        expect("system", (told["response"], told["prompt_eval_count"]),
               (plain["choices"][0]["message"]["content"], plain["usage"]["prompt_tokens"]))


def infill():
    """A suffix: the answer is what belongs between the two, as of /v1/completions."""
    with model_with(FAMILIES["qwen"]) as (arguments, _), Daemon(arguments) as daemon:
        client = Client(daemon.port)
        wanted = complete(client, BEFORE, suffix=AFTER, max_tokens=12)
        answer = ask(client, "/api/generate", {
            "model": "chat", "prompt": BEFORE, "suffix": AFTER, "stream": False,
            "options": {"temperature": 0, "num_predict": 12}})
        expect("text", answer["response"], wanted["choices"][0]["text"])
        expect("tokens", answer["prompt_eval_count"], wanted["usage"]["prompt_tokens"])
        expect("can", "insert" in ask(client, "/api/show", {"model": "chat"})["capabilities"], True)


def options():
    """Members of options may stand beside them, and not in both."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        count = ANSWERS[2]["messages"]
        for given in ({"options": {"temperature": 0, "stop": ["9", "5, "]}},
                      {"temperature": 0, "stop": "5, "},
                      {"temperature": 0, "options": {"stop": ["5, "], "num_ctx": 4096, "num_gpu": 1,
                                                     "repeat_last_n": 64, "typical_p": 1.0}}):
            answer = ask(client, "/api/chat", {"model": "chat", "messages": count, "stream": False,
                                               "keep_alive": "5m", **given})
            expect("stopped", (answer["message"]["content"], answer["done_reason"]),
                   ("2, 3, 4, ", "stop"))
        cut = say(client, HELLO, {"num_predict": 2})
        expect("cut", (cut["done_reason"], cut["eval_count"]), ("length", 2))
        for everything in (-1, -2, 0):
            expect("all", say(client, HELLO, {"num_predict": everything})["done_reason"], "stop")
        drawn = {"temperature": 5, "seed": 7, "num_predict": 20}
        first, second = (say(client, HELLO, drawn)["message"]["content"] for _ in range(2))
        expect("seed", first, second)
        drawn["seed"] = -1
        expect("no seed", len({say(client, HELLO, drawn)["message"]["content"]
                               for _ in range(4)}) > 1, True)
        marks = lines_of(daemon.port, "/api/chat", body_of(JAPAN, logprobs=True, top_logprobs=2))
        told = [mark for line in marks[:-1] for mark in line["logprobs"]]
        expect("logarithms", (len(told), len(told[0]["top_logprobs"])),
               (marks[-1]["eval_count"], 2))
        whole = say(client, JAPAN, logprobs=True, top_logprobs=2)["logprobs"]
        expect("the same", [mark["bytes"] for mark in whole], [mark["bytes"] for mark in told])


def loads():
    """Without a prompt the model is loaded, or, with keep_alive 0, no longer needed."""
    with Daemon([*CHAT, "--idle-unload=1h"]) as daemon:
        client = Client(daemon.port)
        for path, name in (("/api/generate", "response"), ("/api/chat", "message")):
            for body, why in (({}, "load"), ({"prompt": "", "messages": []}, "load"),
                              ({"keep_alive": 3600, "stream": True}, "load"),
                              ({"keep_alive": 0}, "unload")):
                answer = ask(client, path, {"model": "chat", **body})
                expect(body, (answer["done"], answer["done_reason"]), (True, why))
                expect("nothing", answer[name] in ("", {"role": "assistant", "content": ""}), True)
                expect("no counts", "eval_count" in answer, False)
        expect("nobody", post(client, "/api/generate", {"model": "nobody"}), 404)


def tools():
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = say(client, ASKED, tools=[WEATHER])
        call = answer["message"]["tool_calls"][0]
        expect("call", (call["function"]["name"], call["function"]["arguments"]),
               ("weather", {"city": "Oslo"}))
        expect("text", (answer["message"]["content"], answer["done_reason"]), ("", "stop"))
        lines = lines_of(daemon.port, "/api/chat", body_of(ASKED, tools=[WEATHER]))
        calls = [line["message"]["tool_calls"] for line in lines if "tool_calls" in line["message"]]
        expect("once", [part["function"]["arguments"] for part in calls[0]], [{"city": "Oslo"}])
        expect("lines", (len(calls), text_of(lines)), (1, ""))
        told = [*ASKED, {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "weather", "arguments": {"city": "Oslo"}}}]},
            {"role": "tool", "tool_name": "weather", "content": "sunny"}]
        plain = [*ASKED, {"role": "assistant", "content": ""}, {"role": "tool", "content": "sunny"}]
        expect("tokens", say(client, told, {"num_predict": 1})["prompt_eval_count"],
               chat(client, plain, max_tokens=1)["usage"]["prompt_tokens"])


def thoughts():
    with served(TEXTS) as (client, port):
        for members in ({}, {"think": True}, {"think": "low"}):
            answer = say(client, JAPAN, **members)["message"]
            expect("thought", (answer["thinking"], answer["content"]), ("of", "Tokyo."))
        lines = lines_of(port, "/api/chat", body_of(JAPAN))
        expect("thought", "".join(line["message"].get("thinking", "") for line in lines), "of")
        expect("text", text_of(lines), "Tokyo.")
        one = {"model": "chat", "prompt": JAPAN[0]["content"], "options": GREEDY}
        answer = ask(client, "/api/generate", {**one, "stream": False})
        expect("thought", (answer["thinking"], answer["response"]), ("of", "Tokyo."))
        back = [*JAPAN, {"role": "assistant", "content": "Tokyo.", "thinking": "of"}, *HELLO]
        expect("sent back", say(client, back)["done"], True)


def formats():
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
              "additionalProperties": False}
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        answer = say(client, HELLO, format=schema)["message"]["content"]
        expect("a", list(json.loads(answer)), ["a"])
        answer = say(client, HELLO, {"num_predict": 200, "stop": ["}"]}, format="json")
        expect("an object", answer["message"]["content"].lstrip()[:1], "{")
        for nothing in ("", None):
            expect("none", say(client, JAPAN, format=nothing)["message"]["content"],
                   "The capital of Japan is Tokyo.")


def models():
    """What there is, what is loaded, and what nobody changes here."""
    with Daemon([*CHAT, *ENCODER]) as daemon:
        client = Client(daemon.port)
        client.send(build_request("GET", "/api/tags"))
        expect("tags", client.answer(), 200)
        rows = {row["name"]: row for row in json.loads(client.body)["models"]}
        expect("names", "chat" in rows and "enc" in rows, True)
        row = rows["chat"]
        expect("row", (row["model"], row["size"] > 0, len(row["digest"]), row["details"]["format"]),
               ("chat", True, 32, "pte"))
        expect("they differ", rows["enc"]["digest"] == row["digest"], False)
        client.send(build_request("GET", "/api/ps?a=1"))
        expect("ps", client.answer(), 200)
        loaded = {row["name"]: row for row in json.loads(client.body)["models"]}["chat"]
        expect("loaded", (loaded["context_length"], loaded["size_vram"]), (CONTEXT, 0))
        expect("for ever", int(loaded["expires_at"][:4]) > 2200, True)
        for name in ("model", "name"):
            shown = ask(client, "/api/show", {name: "chat:latest", "verbose": True})
            expect("template", "im_start" in shown["template"], True)
            expect("can", shown["capabilities"][0], "completion")
            info = shown["model_info"]
            expect("info", (info["pte.context_length"], info["pte.vocab_size"]), (CONTEXT, VOCAB))
        expect("an encoder", ask(client, "/api/show", {"model": "enc"})["capabilities"],
               ["embedding"])
        for body, status in (({"model": "nobody"}, 404), ({"model": 5}, 400), (b"[", 400),
                             ({"model": "a\0b"}, 400)):
            expect(body, post(client, "/api/show", body), status)
            expect("form", list(json.loads(client.body)), ["error"])
        for method, path in (("POST", "/api/pull"), ("POST", "/api/push"), ("POST", "/api/create"),
                             ("POST", "/api/copy"), ("DELETE", "/api/delete")):
            client.send(build_request(method, path, b'{"model": "chat"}'))
            expect(path, client.answer(), 501)
            expect("why", "not changed by this path" in json.loads(client.body)["error"], True)
        client.send(build_request("GET", "/api/nothing"))
        expect("unknown", client.answer(), 404)
    with Daemon([*CHAT, "--idle-unload=1h"]) as daemon:
        client = Client(daemon.port)
        ask(client, "/api/chat", {"model": "chat"})
        client.send(build_request("GET", "/api/ps"))
        expect("ps", client.answer(), 200)
        due = json.loads(client.body)["models"][0]["expires_at"]
        left = datetime.fromisoformat(due[:19] + "+00:00").timestamp() - time.time()
        expect("an hour", 3000 < left < 3700, True)


def vectors():
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        wanted = ask(client, "/v2/models/enc/embed", {"inputs": SENTENCES[:3]})
        answer = ask(client, "/api/embed", {"model": "enc", "input": SENTENCES[:3],
                                            "options": {"num_ctx": 5}})
        expect("vectors", answer["embeddings"], wanted)
        expect("count", answer["prompt_eval_count"] > 3, True)
        expect("time", answer["total_duration"] > answer["load_duration"] >= 0, True)
        one = {"model": "enc:latest", "input": SENTENCES[0], "dimensions": 8}
        expect("one", [len(row) for row in ask(client, "/api/embed", one)["embeddings"]], [8])
        old = ask(client, "/api/embeddings", {"model": "enc", "prompt": SENTENCES[0]})
        expect("the older route", old, {"embedding": wanted[0]})
        long = {"model": "enc", "input": "hello " * 200}
        expect("long texts are cut", post(client, "/api/embed", long), 200)
        expect("unless", post(client, "/api/embed", {**long, "truncate": False}), 400)
        for path, body, why in (("/api/embed", {"model": "enc"}, "input is missing"),
                                ("/api/embed", {"model": "enc", "input": [5]}, "input[0]"),
                                ("/api/embed", {"model": "enc", "input": [[5]]}, "input[0]"),
                                ("/api/embed", {"model": "enc", "input": 5}, "input: expected"),
                                ("/api/embeddings", {"model": "enc"}, "prompt is missing"),
                                ("/api/embeddings", {"prompt": ["a"]}, "prompt: expected a text")):
            expect(body, post(client, path, body), 400)
            expect("why", why in json.loads(client.body)["error"], True)


def refusals():
    rows = (({"messages": [{"content": "a"}]}, "messages[0]: expected a message with a role"),
            ({"messages": [{"role": 5, "content": "a"}]}, "expected a message with a role"),
            ({"messages": [{"role": "user", "content": 5}]}, "messages[0]: content: expected"),
            ({"messages": [{"role": "user", "content": "a", "images": ["aGk="]}]},
             "messages[0]: language models take no images"),
            ({"messages": {}}, "messages: expected"),
            ({"messages": HELLO, "options": []}, "options: expected"),
            ({"messages": HELLO, "options": {"mirostat": 2}}, "options.mirostat: it is not done"),
            ({"messages": HELLO, "options": {"tfs_z": 0.5}}, "options.tfs_z: it is not done"),
            ({"messages": HELLO, "options": {"temperature": -1}}, "options.temperature: expected"),
            ({"messages": HELLO, "options": {"num_predict": 1 << 40}}, "options.num_predict"),
            ({"messages": HELLO, "options": {"seed": "a"}}, "options.seed: expected"),
            ({"messages": HELLO, "temperature": 1, "options": {"temperature": 1}},
             "given twice, in options and beside them"),
            ({"messages": HELLO, "think": 5}, "think: expected"),
            ({"messages": HELLO, "think": ""}, "think: expected a word"),
            ({"messages": HELLO, "format": "xml"}, "format: expected \"json\" or a JSON Schema"),
            ({"messages": HELLO, "format": 5}, "format: expected"),
            ({"messages": HELLO, "format": {"type": "a"}}, "format: schema: there is no such"),
            ({"messages": HELLO, "keep_alive": "soon"}, "keep_alive: expected"),
            ({"messages": HELLO, "top_logprobs": 2}, "expected logprobs to be true"),
            ({"messages": HELLO, "tools": {}}, "tools: expected"))
    more = (({"prompt": 5}, "prompt: expected"),
            ({"prompt": "a", "system": []}, "system: expected"),
            ({"prompt": "a", "images": ["aGk="]}, "images: it is not done here"),
            ({"prompt": "a", "context": [1]}, "context: it is not done here"),
            ({"prompt": "a", "template": "b"}, "template: it is not done here"),
            ({"prompt": "a", "suffix": "b"}, "suffix: the tokenizer of model 'chat' has no"),
            ({"prompt": "a", "suffix": "b", "system": "c"}, "system: not with a suffix"),
            ({"prompt": "a", "raw": "b"}, "raw: expected"))
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for path, all_rows in (("/api/chat", rows), ("/api/generate", more)):
            for members, why in all_rows:
                expect(why, post(client, path, {"model": "chat", **members}), 400)
                answer = json.loads(client.body)
                expect("form", list(answer), ["error"])
                if why not in answer["error"]:
                    raise Failure(f"{members}: {answer['error']!r}, expected {why!r}")
            for body in (b"{", b'{"messages": [[[[', b"[]", b'{"options": {"options": {"a":',
                         b'{"messages": [{"role": "user", "tool_calls": [[{',
                         b'{"format": {"a": ['):
                expect("malformed", post(client, path, body), 400)
        deep = b'{"model": "chat", "messages": [{"role": "user", "content": "a", "tool_calls": '
        post(client, "/api/chat", deep + b"[" * 5000 + b"]" * 5000 + b"}]}")
        expect("nothing changes", ask(client, "/api/generate", {
            "model": "chat", "prompt": "a", "suffix": "", "context": [], "images": [],
            "template": "", "stream": False, "options": None})["done"], True)
        wait_idle(client)


def leaving():
    """A client that leaves ends its answer; an error in a stream is its last line."""
    with Daemon(CHAT) as daemon:
        client, gone = Client(daemon.port), Client(daemon.port)
        endless = body_of(HELLO, {"num_predict": -1, "temperature": 100})
        gone.send(build_request("POST", "/api/chat", json.dumps(endless).encode()))
        gone.socket.recv(100)
        gone.reset()
        wait_until("it is over", lambda: wait_idle(client) is None)
    expect("an error", any(ends_late(endless, ms) for ms in (10, 20, 50, 100, 500)), True)


def ends_late(body, ms):
    """Has a stream begun, and then reached the limit?"""
    with Daemon([*CHAT, f"--generation-timeout={ms}ms"]) as daemon:
        for _ in range(10):
            stream = Stream(daemon.port, "/api/chat", {**body, "logprobs": True,
                                                       "top_logprobs": 20})
            if "x-ndjson" in stream.head:
                last = json.loads(b"".join(iter(stream.chunk, b"")).decode().split("\n")[-2])
                if "error" in last:
                    expect("the last line", (list(last), f"after {ms} ms" in last["error"]),
                           (["error"], True))
                    return True
    return False


def client_of(daemon):
    return importlib.import_module("ollama").Client(host=f"http://127.0.0.1:{daemon.port}")


def own_client():
    """Ollama's own package."""
    if not HAS_CLIENT:
        print("skipped: the Python package ollama is missing")
        return
    with Daemon([*CHAT, *ENCODER]) as daemon:
        api = client_of(daemon)
        for row in ANSWERS[:4]:
            answer = api.chat("chat", row["messages"], options=GREEDY)
            expect("text", answer.message.content, row["answer"])
            parts = list(api.chat("chat", row["messages"], options=GREEDY, stream=True))
            expect("stream", "".join(part.message.content for part in parts), row["answer"])
            expect("count", parts[-1].prompt_eval_count, len(row["ids"]))
        answer = api.chat("chat", ASKED, tools=[WEATHER], options=GREEDY)
        expect("call", answer.message.tool_calls[0].function.arguments, {"city": "Oslo"})
        back = [*ASKED, answer.message, {"role": "tool", "tool_name": "weather", "content": "x"}]
        expect("goes on", api.chat("chat", back, options=GREEDY).message.role, "assistant")
        expect("prompt", api.generate("chat", "Hello!", options=GREEDY).done_reason, "stop")
        expect("names", {row.model for row in api.list().models} >= {"chat", "enc"}, True)
        expect("loaded", {row.context_length for row in api.ps().models} >= {CONTEXT}, True)
        expect("shown", api.show("chat").modelinfo["pte.context_length"], CONTEXT)
        expect("vectors", len(api.embed("enc", SENTENCES[:2]).embeddings), 2)
        expect("a vector", len(api.embeddings("enc", SENTENCES[0]).embedding), 32)
        errors = importlib.import_module("ollama").ResponseError
        for what, status in ((lambda: api.chat("nobody", HELLO), 404),
                             (lambda: api.pull("chat"), 501), (lambda: api.delete("chat"), 501),
                             (lambda: api.copy("chat", "b"), 501)):
            try:
                what()
                raise Failure("no error")
            except errors as why:
                expect("status", why.status_code, status)


CHECKS = (chats, prompts, infill, options, loads, tools, thoughts, formats, models, vectors,
          refusals, leaving, own_client)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
