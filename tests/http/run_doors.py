#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The routes of other servers that clients knock at first: vLLM, llama.cpp, TEI, Cohere, KServe.

run_peers.py asks the same with clients of those servers.

usage: run_doors.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from run_embeddings import ENCODER, PAIRS, QUERY
from run_generate import ANSWERS, CHAT, CONTEXT, HELLO, VOCAB, ask, post
from run_http import Client, Daemon, Report, build_request, expect

PROMPT = "<|im_start|>user\nHello!<|im_end|>\n<|im_start|>assistant\n"


def get(client, path, *fields):
    client.send(build_request("GET", path, None, fields))
    return client.answer()


def fetch(client, path, *fields):
    expect(path, get(client, path, *fields), 200)
    return json.loads(client.body)


def refusal(client, path, body, status=400):
    expect(path, post(client, path, body), status)
    answer = json.loads(client.body)
    return answer.get("error", answer.get("message"))


def signs_of_life():
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        for path in ("/health", "/ping"):
            expect(path, fetch(client, path), {"status": "ok"})
        expect("version", list(fetch(client, "/version")), ["version"])
        for accept in ("application/json", "*/*"):
            expect("alive", fetch(client, "/", f"Accept: {accept}"), {"status": "alive"})
        for fields in ((), ("Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8",)):
            expect("a page", get(client, "/", *fields), 200)
            expect("HTML", client.body[:15], b"<!doctype html>")
        expect("nothing changes", post(client, "/props", {}), 405)
    with Daemon([*CHAT, "--console=off"]) as daemon:
        client = Client(daemon.port)
        expect("alive", fetch(client, "/", "Accept: application/json"), {"status": "alive"})


def stopping():
    """As long as a request is under way, a server that stops is not healthy."""
    with Daemon(CHAT) as daemon:
        client, slow = Client(daemon.port), Client(daemon.port)
        expect("health", get(client, "/health"), 200)
        slow.send(b"POST /tokenize HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n{")
        client.send(build_request("GET", "/health")[:-2])
        expect("they have come", get(Client(daemon.port), "/health"), 200)
        daemon.process.terminate()
        daemon.wait_for("stopping")
        client.send(b"\r\n")
        expect("health", client.answer(), 503)
        slow.send(b'"prompt":"a"}')
        expect("the request", slow.answer(), 200)


def what_models_are():
    with Daemon([*CHAT, *ENCODER]) as daemon:
        client = Client(daemon.port)
        rows = {row["id"]: row for row in fetch(client, "/v1/models")["data"]}
        chat = rows["chat"]
        expect("context", (chat["max_model_len"], chat["context_length"]), (CONTEXT, CONTEXT))
        expect("meta", (chat["meta"]["n_vocab"], chat["meta"]["n_ctx_train"]), (VOCAB, CONTEXT))
        expect("an encoder", rows["enc"]["max_model_len"], 48)
        expect("one", fetch(client, "/v1/models/chat")["max_model_len"], CONTEXT)
        for path in ("/props", "/props?model=chat", "/props?autoload=0&model=%63hat"):
            props = fetch(client, path)
            expect("model", props["model_alias"], "chat")
            settings = props["default_generation_settings"]
            expect("context", settings["n_ctx"], CONTEXT)
            expect("defaults", settings["params"]["temperature"], 1)
            expect("template", "im_start" in props["chat_template"], True)
            expect("slots", props["total_slots"] > 0, True)
        expect("nobody", get(client, "/props?model=nobody"), 404)
        expect("an encoder", get(client, "/props?model=enc"), 400)
        expect("malformed", get(client, "/props?model=%zz"), 400)


def tokens():
    with Daemon(CHAT) as daemon:
        client = Client(daemon.port)
        row = ANSWERS[0]
        answer = ask(client, "/tokenize", {"model": "chat", "messages": row["messages"]})
        expect("a chat", (answer["tokens"], answer["count"]), (row["ids"], len(row["ids"])))
        expect("context", answer["max_model_len"], CONTEXT)
        expect("texts", ask(client, "/tokenize", {"prompt": "hello", "return_token_strs": True}),
               {"count": 2, "max_model_len": CONTEXT, "tokens": [277, 297],
                "token_strs": ["he", "llo"]})
        expect("content", ask(client, "/tokenize", {"content": "hello"})["tokens"], [277, 297])
        pieces = ask(client, "/tokenize", {"content": "a\u00e9", "with_pieces": True})["tokens"]
        expect("pieces", [piece["piece"] for piece in pieces], ["a", [0xc3], [0xa9]])
        expect("text", ask(client, "/detokenize", {"model": "chat", "tokens": [277, 297]}),
               {"prompt": "hello", "content": "hello"})
        expect("prompt", ask(client, "/apply-template", {"messages": HELLO}), {"prompt": PROMPT})
        # Longer than what is read on the loop, and longer than the context.
        long = ask(client, "/tokenize", {"prompt": "hello " * 60000})
        expect("long", long["count"] > 60000, True)
        for path, body, why in (
                ("/tokenize", {}, "prompt, content or messages is missing"),
                ("/tokenize", {"messages": []}, "messages: expected at least one"),
                ("/tokenize", {"messages": [{"role": "user"}]}, "messages[0]: content is missing"),
                ("/tokenize", {"prompt": 5}, "prompt: expected a string"),
                ("/detokenize", {"tokens": [VOCAB]}, f"tokens[0]: expected ids below {VOCAB}"),
                ("/detokenize", {"tokens": [2**40]}, f"tokens[0]: expected ids below {VOCAB}"),
                ("/apply-template", {}, "messages is missing"),
                ("/apply-template", b"[", "expected an object")):
            expect(why, why in refusal(client, path, body), True)
        refusal(client, "/tokenize", {"model": "nobody", "prompt": "a"}, 404)
    with Daemon([*CHAT, *ENCODER]) as daemon:
        client = Client(daemon.port)
        expect("which", "several could answer" in refusal(client, "/tokenize", {"prompt": "a"}),
               True)
        enc = {"model": "enc", "prompt": "hello"}
        expect("around", ask(client, "/tokenize", enc)["tokens"], [2, 1, 3])
        expect("alone", ask(client, "/tokenize", {**enc, "add_special_tokens": False})["tokens"],
               [1])
        content = {"model": "enc", "content": "hello"}
        expect("alone", ask(client, "/tokenize", content)["tokens"], [1])
        expect("around", ask(client, "/tokenize", {**content, "add_special": True})["tokens"],
               [2, 1, 3])


def rankings():
    documents = [row["text"] for row in PAIRS[:5]]
    body = {"query": QUERY, "documents": documents, "truncate": True}
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        jina = ask(client, "/v1/rerank", {**body, "model": "enc.score", "top_n": 2})
        expect("vLLM's", ask(client, "/rerank", {**body, "model": "enc.score", "top_n": 2}), jina)
        cohere = ask(client, "/v2/rerank", {**body, "model": "enc.score", "top_n": 2})
        expect("Cohere's", cohere["results"], [
            {name: row[name] for name in ("index", "relevance_score")} for row in jina["results"]])
        expect("meta", cohere["meta"]["tokens"]["input_tokens"], jina["usage"]["prompt_tokens"])
        tei = ask(client, "/rerank", {"query": QUERY, "texts": documents, "truncate": True})
        expect("all", sorted(row["index"] for row in tei), list(range(5)))
        long = {"model": "enc.score", "query": "hello", "documents": ["hello " * 200]}
        expect("cut", len(ask(client, "/v2/rerank", long)["results"]), 1)
        refusal(client, "/rerank", long)
        both = {**body, "texts": documents}
        expect("both", "either texts or documents" in refusal(client, "/rerank", both), True)
        expect("form", refusal(client, "/v2/rerank", {"query": "a"}), "documents is missing")


CHECKS = (signs_of_life, stopping, what_models_are, tokens, rankings)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
