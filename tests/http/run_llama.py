#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/completion and /infill, as clients of llama.cpp's server ask, against a real daemon with a tiny
model.

usage: run_llama.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from load import wait_until
from run_generate import ANSWERS, CHAT, CONTEXT, VOCAB, Stream, ask, complete, post, wait_idle
from run_embeddings import expect_close
from run_http import Client, Daemon, Failure, Report, build_request, expect
from run_infill import AFTER, BEFORE, FAMILIES, ids_of, model_with

COUNT = ANSWERS[2]
FILES = ("<|repo_name|>", "<|file_sep|>")


def say(client, path="/completion", **members):
    return ask(client, path, {"model": "chat", "temperature": 0, **members})


def stream(port, path="/completion", **members):
    events = Stream(port, path, {"model": "chat", "temperature": 0, "stream": True, **members})
    return list(events.events())


def completions():
    """The answers are those of /v1/completions."""
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for row in ANSWERS[:6]:
            answer = say(client, prompt=row["ids"], n_predict=40, samplers=["top_k"], id_slot=-1)
            told = complete(client, [row["ids"]], max_tokens=40)["choices"][0]
            expect("text", answer["content"], told["text"])
            kind = {"stop": "eos", "length": "limit"}[told["finish_reason"]]
            expect("end", (answer["stop"], answer["stop_type"], answer["stopping_word"]),
                   (True, kind, ""))
            expect("prompt", answer["tokens_evaluated"], len(row["ids"]))
            timings = answer["timings"]
            expect("times", timings["cache_n"] + timings["prompt_n"], len(row["ids"]))
            expect("predicted", timings["predicted_n"], answer["tokens_predicted"])
            events = stream(daemon.port, prompt=row["ids"], n_predict=40)
            expect("stream", "".join(event["content"] for event in events), told["text"])
            expect("stops", [event["stop"] for event in events],
                   [False] * (len(events) - 1) + [True])
            expect("last", (events[-1]["content"], events[-1]["stop_type"]), ("", kind))
        for count in (-1, None):
            full = say(client, prompt="Hello", n_predict=count, ignore_eos=True)
            expect("context", full["tokens_evaluated"] + full["tokens_predicted"], CONTEXT)
        expect("none", say(client, prompt="Hello", n_predict=0)["content"], "")
        for built in (say(client, prompt=COUNT["ids"], stop=["9", "5, "]),
                      stream(daemon.port, prompt=COUNT["ids"], stop=["9", "5, "])[-1]):
            expect("word", (built["stop_type"], built["stopping_word"]), ("word", "5, "))
        first = say(client, prompt=COUNT["ids"], n_predict=1, n_probs=2)
        row, = first["completion_probabilities"]
        expect("members", list(row), ["id", "token", "logprob", "bytes", "top_logprobs"])
        best = [(top["id"], top["token"]) for top in row["top_logprobs"]]
        expect("tops", (len(best), best[0]), (2, (row["id"], row["token"])))
        told = complete(client, [COUNT["ids"]], max_tokens=1, logprobs=2)["choices"][0]["logprobs"]
        expect_close("logarithm", [row["logprob"]], told["token_logprobs"])
        for banned in ([[row["id"], False]], [[row["id"], -100]], {str(row["id"]): -100}):
            other = say(client, prompt=COUNT["ids"], n_predict=1, n_probs=1, logit_bias=banned)
            expect("banned", other["content"] == first["content"], False)
        schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"],
                  "additionalProperties": False}
        formed = say(client, prompt="Hello", n_predict=100, json_schema=schema, grammar="")
        expect("schema", list(json.loads(formed["content"])), ["a"])
        texts = {say(client, prompt="Hello", temperature=5, n_predict=20, seed=-1)["content"]
                 for _ in range(4)}
        expect("no seed", len(texts) > 1, True)
        wait_idle(client)


def gaps():
    """The prompt has both texts, with the tokens of the family."""
    for prefix, suffix, middle, _ in (FAMILIES["starcoder"], FAMILIES["mistral"]):
        tokens = [token for token in (prefix, suffix, middle) if token]
        with model_with(tokens) as (options, ids), Daemon(options) as daemon:
            client = Client(daemon.port)
            before, after, begun = (ids_of(client, text) for text in (BEFORE, AFTER, " is"))
            whole = ([ids[prefix], *before, ids[suffix], *after, ids[middle], *begun] if middle
                     else [ids[suffix], *after, ids[prefix], *before, *begun])
            wanted = complete(client, [whole], max_tokens=12)
            asked = {"input_prefix": BEFORE, "input_suffix": AFTER, "prompt": " is",
                     "n_predict": 12}
            answer = say(client, "/infill", **asked)
            expect("text", answer["content"], wanted["choices"][0]["text"])
            expect("tokens", answer["tokens_evaluated"], len(whole))
            events = stream(daemon.port, "/infill", **asked)
            expect("stream", "".join(event["content"] for event in events), answer["content"])
            empty = say(client, "/infill", input_prefix="", input_suffix="", n_predict=1)
            expect("nothing", empty["tokens_evaluated"], len(tokens))


def other_texts():
    """Other files come before the gap, with their names; what has no room is left out."""
    qwen = FAMILIES["qwen"][:3]
    with model_with([*qwen, *FILES]) as (options, ids), Daemon(options) as daemon:
        client = Client(daemon.port)
        extra = [{"filename": "a.py", "text": "one"}, {"filename": "b.py", "text": "two"}]
        whole = [ids[FILES[0]], *ids_of(client, "project\n")]
        for text in ("a.py\none", "b.py\ntwo", "current\n"):
            whole += [ids[FILES[1]], *ids_of(client, text)]
        whole += [ids[qwen[0]], *ids_of(client, BEFORE), ids[qwen[1]], *ids_of(client, AFTER),
                  ids[qwen[2]]]
        asked = {"input_prefix": BEFORE, "input_suffix": AFTER, "n_predict": 8}
        answer = say(client, "/infill", **asked, input_extra=extra)
        expect("text", answer["content"],
               complete(client, [whole], max_tokens=8)["choices"][0]["text"])
        expect("tokens", answer["tokens_evaluated"], len(whole))
        plain = say(client, "/infill", **asked)["tokens_evaluated"]
        expect("none", say(client, "/infill", **asked, input_extra=[])["tokens_evaluated"], plain)
        many = [{"text": f"{i} " + "x" * 3 * i} for i in range(200)]
        huge = say(client, "/infill", **asked, input_extra=many)
        expect("left out", CONTEXT - 40 < huge["tokens_evaluated"] <= CONTEXT - 8, True)
        long = say(client, "/infill", input_prefix="ab " * 40000 + BEFORE, n_predict=8,
                   input_suffix=AFTER + "cd " * 40000, input_extra=many)
        expect("long", CONTEXT - 20 < long["tokens_evaluated"] <= CONTEXT - 8, True)
        why = post(client, "/infill", {**asked, "prompt": "ab " * 300}), json.loads(client.body)
        expect("begun", (why[0], "has no room" in why[1]["error"]["message"]), (400, True))
        wait_idle(client)


def refusals():
    rows = (("/completion", {}, "prompt is missing"),
            ("/completion", {"prompt": 5}, "prompt: expected a text or a list of ids"),
            ("/completion", {"prompt": ["a", "b"]}, "several prompts go to /v1/completions"),
            ("/completion", {"prompt": {"prompt_string": "a"}}, "expected a text"),
            ("/completion", {"prompt": [VOCAB]}, f"expected ids below {VOCAB}"),
            ("/completion", {"prompt": "a", "n_predict": 1 << 60}, "n_predict: expected"),
            ("/completion", {"prompt": "a", "n_probs": 1 << 60}, "n_probs: expected"),
            ("/completion", {"prompt": "a", "logit_bias": [[1, 2, 3]]}, "numbers from -100 to 100"),
            ("/completion", {"prompt": "a", "logit_bias": [[1]]}, "numbers from -100 to 100"),
            ("/completion", {"prompt": "a", "logit_bias": [["a", 1]]}, "numbers from -100 to 100"),
            ("/completion", {"prompt": "a", "logit_bias": [[1, True]]}, "numbers from -100 to 100"),
            ("/completion", {"prompt": "a", "logit_bias": [[1, 1], [1, 1]]}, "the id repeats"),
            ("/completion", {"prompt": "a", "mirostat": 2}, "mirostat: it is not done here"),
            ("/completion", {"prompt": "a", "return_tokens": True}, "return_tokens: it is not"),
            ("/completion", {"prompt": "a", "json_schema": 5}, "json_schema: expected"),
            ("/infill", {}, "input_prefix is missing"),
            ("/infill", {"input_prefix": ["a"]}, "input_prefix: expected a string"),
            ("/infill", {"input_prefix": "a", "input_extra": {}}, "input_extra: expected an array"),
            ("/infill", {"input_prefix": "a", "input_extra": [5]}, "input_extra[0]: expected"),
            ("/infill", {"input_prefix": "a", "input_extra": [{}] * 257}, "at most 256 texts"),
            ("/infill", {"input_prefix": "a", "prompt": [1]}, "prompt: expected a string"),
            ("/infill", {"input_prefix": "a", "input_suffix": "b"}, "has no tokens for a gap"))
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for path, members, why in rows:
            expect(why, post(client, path, {"model": "chat", **members}), 400)
            message = json.loads(client.body)["error"]["message"]
            if why not in message:
                raise Failure(f"{members}: {message!r}, expected {why!r}")
        for body in (b"{", b"[]", b'{"prompt": "a", "prompt": "b"}', b'{"prompt": "a"',
                     b'{"input_prefix": "a", "input_extra": [{"text": "a}]}'):
            for path in ("/completion", "/infill"):
                expect("malformed", post(client, path, body), 400)
        deep = b'{"input_prefix": "a", "input_extra": [{"x": ' + b"[" * 9000
        expect("deep", post(client, "/infill", deep), 413)
        expect("nobody", post(client, "/completion", {"model": "x", "prompt": "a"}), 404)
        gone = Client(daemon.port)
        gone.send(build_request("POST", "/completion", json.dumps(
            {"prompt": "Hello", "stream": True, "ignore_eos": True}).encode()))
        gone.socket.recv(100)
        gone.reset()
        wait_until("it is over", lambda: wait_idle(client) is None)


CHECKS = (completions, gaps, other_texts, refusals)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
