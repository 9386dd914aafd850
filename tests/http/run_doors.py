#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The routes of other servers that clients knock at first: vLLM, llama.cpp, TEI, Cohere, KServe.

run_peers.py asks the same with clients of those servers.

usage: run_doors.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import json
import math
import shutil
import struct
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from run_embeddings import ENCODER, FOLDER, PAIRS, QUERY, TEXTS, WIDTH, expect_close
from run_generate import ANSWERS, CHAT, CONTEXT, HELLO, VOCAB, Stream, ask, post
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
        for path in ("/health", "/v1/health", "/ping"):
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
                ("/tokenize", {}, "prompt, content, messages or inputs is missing"),
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


@contextmanager
def classifier(card, program="classes"):
    """A server of one program of the encoder's folder, with |card|."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FOLDER / f"{program}.pte", folder / "model.pte")
        shutil.copy(FOLDER / "tokenizer.json", folder)
        (folder / "model.card.json").write_text(json.dumps(card))
        with Daemon([*ENCODER, "--model", f"cls={folder / 'model.pte'}"]) as daemon:
            yield Client(daemon.port)


def softmax(logits):
    exponents = [math.exp(x - max(logits)) for x in logits]
    return [x / sum(exponents) for x in exponents]


def classes():
    """/predict: the classes of texts and of pairs, the most probable one first."""
    with classifier({"labels": ["a", "b", "c"]}) as client:
        logits = [ask(client, "/v2/models/cls/embed", {"inputs": text, "normalize": False})[0]
                  for text in TEXTS[:2]]
        for raw in (False, True):
            wanted = logits[0] if raw else softmax(logits[0])
            rows = ask(client, "/predict", {"inputs": TEXTS[0], "raw_scores": raw})
            got = {row["label"]: row["score"] for row in rows}
            expect_close("scores", [got[label] for label in "abc"], wanted)
            expect("order", [row["score"] for row in rows], sorted(got.values(), reverse=True))
        several = ask(client, "/predict", {"inputs": [[text] for text in TEXTS[:2]]})
        expect("a list", several[0], ask(client, "/predict", {"inputs": [TEXTS[0]]}))
        expect_close("the second", sorted(row["score"] for row in several[1]),
                     sorted(softmax(logits[1])))
        pair = ask(client, "/predict", {"inputs": TEXTS[:2]})
        expect("a pair", ask(client, "/predict", {"inputs": [TEXTS[:2], TEXTS[:1]]})[0], pair)
        expect("is not its first text", pair == several[0], False)
        # A cross-encoder has one class.
        text = PAIRS[0]["text"]
        scored = ask(client, "/predict", {"inputs": [QUERY, text], "model": "enc.score",
                                          "raw_scores": True, "truncate": True})
        expect("label", scored[0]["label"], "LABEL_0")
        expect_close("score", [scored[0]["score"]], [PAIRS[0]["logit"]])
        for inputs, why in (([], "inputs: expected one text or two"),
                            ([[]], "inputs[0]: expected one text or two"),
                            (["a", "b", "c"], "inputs[2]: expected one text or two"),
                            ([["a", "b", "c"]], "inputs[0][2]: expected one text or two"),
                            ([["a"], "b"], "inputs[1]: expected an array"),
                            (["a", ["b"]], "inputs[1]: expected a string"),
                            (5, "inputs: expected a string"), ([5], "inputs[0]: expected a string"),
                            ([["a"]] * 2049, "inputs[2048][0]: expected at most 2048"),
                            ("hello " * 200, "inputs[0]: it has 202 tokens")):
            expect(why, why in refusal(client, "/predict", {"inputs": inputs}), True)
        expect("vectors", "use /embed" in refusal(client, "/predict", {"inputs": "a",
                                                                       "model": "enc"}), True)
        refusal(client, "/predict", {"inputs": "a", "model": "nobody"}, 404)
    with classifier({"outputs": [{"name": "scores", "steps": ["softmax"]}]}) as client:
        rows = ask(client, "/predict", {"inputs": TEXTS[0]})
        got = {row["label"]: row["score"] for row in rows}
        expect_close("once", [got[f"LABEL_{i}"] for i in range(3)], softmax(logits[0]))
    with Daemon(CHAT) as daemon:
        expect("none", refusal(Client(daemon.port), "/predict", {"inputs": "a"}, 404),
               "no classifier of texts is loaded")


def states():
    """A vector for each token, and what becomes of them: their mean, the words that they say."""
    words = {"methods": {"forward": {"embedding": {"pooling": "splade"}}}}
    with classifier(words, "model") as client:
        both = ask(client, "/embed_all", {"inputs": TEXTS[:2], "model": "enc"})
        means = ask(client, "/v2/models/enc/embed", {"inputs": TEXTS[:2], "normalize": False})
        sparse = ask(client, "/embed_sparse", {"inputs": TEXTS[:2], "model": "cls"})
        for rows, mean, words in zip(both, means, sparse):
            expect("width", {len(row) for row in rows}, {WIDTH})
            expect_close("mean", [sum(column) / len(rows) for column in zip(*rows)], mean)
            peaks = [math.log1p(max(0, *column)) for column in zip(*rows)]
            expect("places", [word["index"] for word in words],
                   [i for i, peak in enumerate(peaks) if peak > 0])
            expect_close("values", [word["value"] for word in words],
                         [peak for peak in peaks if peak > 0])
        dense = ask(client, "/v2/models/cls/embed", {"inputs": TEXTS[0]})[0]
        expect("dense", [x for x in dense if x], [word["value"] for word in sparse[0]])
        expect("ids", len(ask(client, "/embed_all", {"inputs": [[2, 5, 3]], "model": "enc"})[0]), 3)
        why = refusal(client, "/embed_sparse", {"inputs": "a", "model": "enc"})
        expect("not sparse", "gives no sparse vectors" in why, True)
        expect("too long", "tokens" in refusal(client, "/embed_all", {"inputs": "hello " * 99,
                                                                      "model": "enc"}), True)
    with classifier({}) as client:
        why = refusal(client, "/embed_all", {"inputs": "a", "model": "cls"})
        expect("one vector", "not one for each token" in why, True)
    with Daemon([*ENCODER, "--ring-bytes=1M"]) as daemon:
        client = Client(daemon.port)
        many = {"inputs": ["hello " * 40] * 2000, "model": "enc"}
        expect("no room", post(client, "/embed_all", many), 413)
        expect("alive", post(client, "/embed_all", {"inputs": "a", "model": "enc"}), 200)


def similar():
    """/similarity and Cohere's /v2/embed have the vectors of /embed."""
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        rows = ask(client, "/embed", {"inputs": TEXTS[:3], "model": "enc"})
        wanted = [sum(x * y for x, y in zip(rows[0], row)) for row in rows[1:]]
        inputs = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:3]}
        expect_close("cosines", ask(client, "/similarity", {"inputs": inputs, "model": "enc"}),
                     wanted)
        long = {"source_sentence": "a", "sentences": ["hello " * 99]}
        body = {"inputs": long, "model": "enc", "parameters": {"truncation_direction": "Right"}}
        expect("long", "inputs.sentences[0]: it has" in refusal(client, "/similarity", body), True)
        body["parameters"]["truncate"] = True
        expect("cut", len(ask(client, "/similarity", body)), 1)
        for inputs, why in (({}, "inputs.sentences is missing"), (5, "inputs: expected"),
                            ({"sentences": ["a"]}, "inputs.source_sentence is missing"),
                            ({"source_sentence": "a", "sentences": []}, "at least one text"),
                            ({"source_sentence": "a", "sentences": "a"}, "expected an array")):
            got = refusal(client, "/similarity", {"inputs": inputs, "model": "enc"})
            expect(f"{got} has {why}", why in got, True)
        inputs = {"source_sentence": "a", "sentences": ["a"]}
        why = refusal(client, "/similarity", {"inputs": inputs, "model": "enc.score"})
        expect("pairs", "use /rerank" in why, True)
        body = {"model": "enc", "texts": TEXTS[:3], "input_type": "search_query", "priority": 1}
        answer = ask(client, "/v2/embed", body)
        expect("floats", answer["embeddings"], {"float": rows})
        expect("texts", (answer["texts"], answer["response_type"], len(answer["id"])),
               (TEXTS[:3], "embeddings_by_type", 16))
        both = ask(client, "/v2/embed", {**body, "embedding_types": ["base64", "float"]})
        coded = [base64.b64decode(text) for text in both["embeddings"]["base64"]]
        expect("base64", [list(struct.unpack(f"<{WIDTH}f", bits))[0] for bits in coded],
               [struct.unpack("<f", struct.pack("<f", row[0]))[0] for row in rows])
        expect("and floats", both["embeddings"]["float"], rows)
        short = ask(client, "/v2/embed", {**body, "output_dimension": 8})
        expect("dimensions", {len(row) for row in short["embeddings"]["float"]}, {8})
        long = {"model": "enc", "texts": ["hello " * 99]}
        for truncate, status in ((None, 200), ("END", 200), ("NONE", 400), ("START", 400),
                                 ("x", 400), (True, 400)):
            expect(truncate, post(client, "/v2/embed", {**long, "truncate": truncate}), status)
        for members, why in (({"embedding_types": ["int8"]}, 'expected "float" or "base64"'),
                             ({"embedding_types": []}, "at least one type"),
                             ({"embedding_types": "float"}, "expected an array"),
                             ({"images": ["data:"]}, "images: it is not done here"),
                             ({"max_tokens": 5}, "max_tokens: it is not done here"),
                             ({"texts": None}, "texts is missing")):
            got = refusal(client, "/v2/embed", {**body, **members})
            expect(f"{got} has {why}", why in got, True)


def first_cohere():
    """/v1/embed: a list of vectors unless types are named."""
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        rows = ask(client, "/embed", {"inputs": TEXTS[:3], "model": "enc"})
        body = {"model": "enc", "texts": TEXTS[:3], "input_type": "search_query"}
        answer = ask(client, "/v1/embed", body)
        expect("floats", (answer["embeddings"], answer["texts"], answer["response_type"]),
               (rows, TEXTS[:3], "embeddings_floats"))
        typed = ask(client, "/v1/embed", {**body, "embedding_types": ["float"]})
        expect("by type", (typed["embeddings"], typed["response_type"]),
               ({"float": rows}, "embeddings_by_type"))
        long = {"model": "enc", "texts": ["hello " * 99]}
        for truncate, status in ((None, 200), ("NONE", 400), ("START", 400)):
            expect(truncate, post(client, "/v1/embed", {**long, "truncate": truncate}), status)
        expect("form", refusal(client, "/v1/embed", {"model": "enc"}), "texts is missing")


def scores():
    """vLLM's /score: a text before texts, or as many before as many."""
    texts = [row["text"] for row in PAIRS[:3]]
    wanted = [1 / (1 + math.exp(-row["logit"])) for row in PAIRS[:3]]
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        pairs = {"model": "enc.score", "text_1": QUERY, "text_2": texts,
                 "truncate_prompt_tokens": -1}
        for path in ("/score", "/v1/score"):
            answer = ask(client, path, pairs)
            expect_close("scores", [row["score"] for row in answer["data"]], wanted)
            expect("rows", [(row["index"], row["object"]) for row in answer["data"]],
                   [(i, "score") for i in range(3)])
        expect("usage", answer["usage"]["prompt_tokens"] > 6, True)
        expect("form", (answer["object"], answer["id"][:6], answer["model"]),
               ("list", "score-", "enc.score"))
        raw = ask(client, "/score", {**pairs, "use_activation": False})
        expect_close("raw", [row["score"] for row in raw["data"]],
                     [row["logit"] for row in PAIRS[:3]])
        each = ask(client, "/score", {**pairs, "text_1": [QUERY] * 3})
        expect("each", each["data"], answer["data"])
        one = ask(client, "/score", {**pairs, "text_1": None, "text_2": None,
                                     "queries": [QUERY], "documents": texts[0]})
        expect("one", one["data"], answer["data"][:1])
        # Another encoder compares vectors.
        rows = ask(client, "/embed", {"inputs": TEXTS[:4], "model": "enc"})
        cosines = [sum(x * y for x, y in zip(rows[i], rows[i + 2])) for i in range(2)]
        answer = ask(client, "/score", {"model": "enc", "text_1": TEXTS[:2], "text_2": TEXTS[2:4]})
        expect_close("cosines", [row["score"] for row in answer["data"]], cosines)
        for members, why in (
                ({"text_1": None}, "text_1 is missing"), ({"text_1": []}, "text_1 is missing"),
                ({"text_2": None}, "text_2 is missing"),
                ({"text_1": ["a", "b"]}, "as many as text_2 has (3), got 2"),
                ({"queries": "a"}, "expected either text_1 or queries"),
                ({"items": ["a"]}, "expected one of text_2, documents and items"),
                ({"text_1": [["a"]]}, "text_1[0]: expected a string"),
                ({"text_1": ["a"] * 2049}, "text_1[2048]: expected at most 2048"),
                ({"truncate_prompt_tokens": 0}, "expected -1, or a number from 1"),
                ({"truncate_prompt_tokens": 10**30}, "truncate_prompt_tokens: "),
                ({"truncate_prompt_tokens": 2}, "the model takes at most 2"),
                ({"truncate_prompt_tokens": None, "text_2": ["hello " * 99]}, "text_2[0]: it has"),
                ({"use_activation": 1}, "use_activation: expected")):
            got = refusal(client, "/score", {**pairs, **members})["message"]
            expect(f"{got} has {why}", why in got, True)
        long = {"model": "enc", "text_1": ["a", "hello " * 99], "text_2": ["a", "b"]}
        expect("which", refusal(client, "/score", long)["message"][:17], "text_1[1]: it has")
        refusal(client, "/score", {**pairs, "model": "nobody"}, 404)


def pooled():
    """vLLM's /classify and /pooling, and llama.cpp's /embeddings."""
    with classifier({"labels": ["a", "b", "c"]}) as client:
        named = {"model": "cls", "input": TEXTS[:2]}
        answer = ask(client, "/classify", {"input": TEXTS[:2]})
        rows = ask(client, "/predict", {"inputs": [[text] for text in TEXTS[:2]]})
        for got, row in zip(answer["data"], rows):
            expect("probable", (got["label"], got["num_classes"]), (row[0]["label"], 3))
            expect("all", dict(zip("abc", got["probs"])), {c["label"]: c["score"] for c in row})
        expect("id", (answer["id"][:9], answer["model"]), ("classify-", "cls"))
        one = ask(client, "/classify", {"model": "cls", "input": TEXTS[0]})
        expect("one", one["data"], answer["data"][:1])
        for members in ({}, {"task": "classify"}):
            got = ask(client, "/pooling", {**named, **members})["data"]
            expect("classes", [row["data"] for row in got],
                   [row["probs"] for row in answer["data"]])
        why = refusal(client, "/classify", {"model": "enc", "input": "a"})["message"]
        expect("vectors", "not scores of classes" in why, True)

        all_rows = ask(client, "/embed_all", {"model": "enc", "inputs": TEXTS[:2]})
        enc = {"model": "enc", "input": TEXTS[:2]}
        answer = ask(client, "/pooling", enc)
        expect("tokens", [row["data"] for row in answer["data"]], all_rows)
        expect("rows", [(row["index"], row["object"]) for row in answer["data"]],
               [(0, "pooling"), (1, "pooling")])
        coded = ask(client, "/pooling", {**enc, "encoding_format": "base64"})["data"][1]["data"]
        bits = base64.b64decode(coded)
        expect("base64", len(bits), 4 * WIDTH * len(all_rows[1]))
        expect_close("numbers", struct.unpack(f"<{WIDTH}f", bits[-4 * WIDTH:]), all_rows[1][-1])
        own = ask(client, "/v1/embeddings", enc)["data"]
        got = ask(client, "/pooling", {**enc, "task": "embed"})["data"]
        expect("texts", [row["data"] for row in got], [row["embedding"] for row in own])
        for members, why in (({"task": "plugin"}, 'expected "embed"'), ({"input": []}, "at least"),
                             ({"dimensions": 4}, "one vector a text"),
                             ({"task": "classify"}, "not scores of classes"),
                             ({"model": "cls", "task": "token_embed"}, "not one for each token")):
            got = refusal(client, "/pooling", {**enc, **members})["message"]
            expect(f"{got} has {why}", why in got, True)

        rows = ask(client, "/embed", {"model": "enc", "inputs": TEXTS[:2]})
        for path in ("/embedding", "/embeddings"):
            expect(path, ask(client, path, {"model": "enc", "content": TEXTS[:2]}),
                   [{"index": i, "embedding": [rows[i]]} for i in range(2)])
            expect("OpenAI's", ask(client, path, enc), ask(client, "/v1/embeddings", enc))
        plain = ask(client, "/embed", {"model": "enc", "inputs": TEXTS[0], "normalize": False})
        expect("not normalized", ask(client, "/embedding", {"model": "enc", "content": TEXTS[0],
                                                            "embd_normalize": -1}),
               [{"index": 0, "embedding": plain}])
        for members, why in (({}, "content is missing"), ({"content": "a", "input": "a"}, "either"),
                             ({"content": "a", "embd_normalize": 1}, "expected 2")):
            got = refusal(client, "/embedding", {"model": "enc", **members})["message"]
            expect(f"{got} has {why}", why in got, True)
        ranked = {"model": "enc.score", "query": QUERY, "documents": [PAIRS[0]["text"]],
                  "truncate": True}
        for path in ("/reranking", "/v1/reranking"):
            expect(path, ask(client, path, ranked), ask(client, "/v1/rerank", ranked))


def decoded():
    """TEI's /decode."""
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        ids = [[token["id"] for token in row]
               for row in ask(client, "/tokenize", {"model": "enc", "inputs": ["cat dog", "cat"]})]
        texts = [ask(client, "/detokenize", {"model": "enc", "tokens": row})["content"]
                 for row in ids]
        expect("lists", ask(client, "/decode", {"model": "enc", "ids": ids}), texts)
        expect("a list", ask(client, "/decode", {"model": "enc", "ids": ids[1],
                                                 "skip_special_tokens": True}), texts[1:])
        expect("none", ask(client, "/decode", {"model": "enc", "ids": []}), [])
        expect("empty", ask(client, "/decode", {"model": "enc", "ids": [[]]}), [""])
        for members, why in (({}, "ids is missing"), ({"ids": 5}, "ids: expected an array"),
                             ({"ids": [[1], 5]}, "ids[1]: expected an array"),
                             ({"ids": [[[1]]]}, "ids[0][0]: expected"),
                             ({"ids": [9999]}, "ids: expected ids below"),
                             ({"ids": [[2**70]]}, "ids[0][0]: "),
                             ({"ids": [[]] * 2049}, "ids[2048]: expected at most 2048 lists"),
                             ({"ids": [1], "skip_special_tokens": False}, "expected true")):
            got = refusal(client, "/decode", {"model": "enc", **members})
            expect(f"{got} has {why}", why in got, True)


def by_body():
    """Where there is one path for all, the members of the body say what is asked."""
    chat = {"model": "chat", "messages": HELLO, "temperature": 0}
    prompt = {"model": "chat", "prompt": "Hello", "max_tokens": 4, "temperature": 0}
    words = {"methods": {"forward": {"embedding": {"pooling": "splade"}}}}
    with Daemon([*CHAT, *ENCODER]) as daemon:
        client = Client(daemon.port)
        for path in ("/", "/invocations?x=y"):
            for own, part, body in (
                    ("/v1/chat/completions", "choices", chat),
                    ("/v1/completions", "choices", prompt),
                    ("/v1/embeddings", "data", {"model": "enc", "input": TEXTS[:2]}),
                    ("/rerank", "results", {"model": "enc.score", "query": QUERY,
                                            "documents": TEXTS[:2], "inputs": None}),
                    ("/rerank", 0, {"query": QUERY, "texts": TEXTS[:2], "model": "enc"}),
                    ("/embed", 1, {"inputs": TEXTS[:2], "model": "enc"}),
                    ("/predict", 0, {"inputs": TEXTS[:2], "model": "enc.score"}),
                    ("/similarity", 0, {"model": "enc", "inputs": {
                        "source_sentence": TEXTS[0], "sentences": TEXTS[1:2]}})):
                expect(own, ask(client, path, body)[part], ask(client, own, body)[part])
        # Python's json writes what is no text; the reader of chats takes it, so that of "/" does.
        odd = json.dumps({**chat, "messages": [{"role": "user", "content": "\ud800"}]}).encode()
        expect("odd", post(client, "/", odd), post(client, "/v1/chat/completions", odd))
        with_events = Stream(daemon.port, "/invocations", {**chat, "stream": True})
        expect("events", "text/event-stream" in with_events.head, True)
        expect("the last one", list(with_events.events())[-1], "[DONE]")
        for body, why in (({}, "expected one of the members messages"), ([], "expected an object"),
                          ({"inputs": "a"}, "several could answer"),
                          ({"inputs": "a", "model": "chat"}, "is no encoder"),
                          ({"messages": HELLO, "model": "enc"}, "is no language model"),
                          ({"messages": 5, "inputs": "a"}, "messages: expected"),
                          ({"inputs": [{"name": "x"}], "model": "enc"}, "inputs[0]: expected"),
                          ({"inputs": "a", "model": 5}, "model: expected"),
                          (b'{"inputs": "a"', "end"), (b'{"inputs": "a"} x', "byte 16"),
                          (b'{"inputs": [[}', "inputs: "), (b"RIFF", "expected an object")):
            got = refusal(client, "/", body)
            expect(f"{got} has {why}", why in got, True)
        expect("nobody", refusal(client, "/", {"inputs": "a", "model": "nobody"}, 404),
               "no model 'nobody', see GET /v2/models")
        text = {"name": "text_input", "datatype": "BYTES", "shape": [1], "data": ["a"]}
        why = refusal(client, "/v2/models/chat/infer", {"inputs": [text]})
        expect("prompts", why.endswith("; prompts go to its route generate"), True)
        why = refusal(client, "/v2/models/enc/infer", {"inputs": [text]})
        expect("no prompts", why.endswith("token_type_ids"), True)
        expect("OpenAI's form", refusal(client, "/invocations", {})["type"],
               "invalid_request_error")
    with classifier(words, "model") as client:
        body = {"inputs": TEXTS[0], "model": "cls"}
        expect("sparse", ask(client, "/", body), ask(client, "/embed_sparse", body))
    with Daemon(["--model", f"cls={FOLDER / 'classes.pte'}"]) as daemon:
        body = {"inputs": [TEXTS[:2], TEXTS[:1]]}
        expect("classes", ask(Client(daemon.port), "/", body),
               ask(Client(daemon.port), "/predict", body))
    with Daemon(CHAT) as daemon:
        expect("none", refusal(Client(daemon.port), "/", {"inputs": "a"}, 404),
               "no encoder of texts is loaded")


def facts():
    """/info, and tokens as TEI has them."""
    with classifier({"labels": ["a", "b", "c"]}) as client:
        info = fetch(client, "/info?model=enc")
        expect("an encoder", (info["model_id"], info["model_type"], info["max_input_length"]),
               ("enc", {"embedding": {"pooling": "mean"}}, 48))
        expect("several", get(client, "/info"), 400)
        kind = fetch(client, "/info?model=cls")["model_type"]["classifier"]
        expect("labels", (kind["id2label"]["1"], kind["label2id"]["c"]), ("b", 2))
        expect("pairs", list(fetch(client, "/info?model=enc.score")["model_type"]), ["reranker"])
        expect("nobody", get(client, "/info?model=nobody"), 404)
        expect("malformed", get(client, "/info?model=%zz"), 400)
        rows = ask(client, "/tokenize", {"model": "enc", "inputs": ["cat dog", "cat"]})
        plain = ask(client, "/tokenize", {"model": "enc", "prompt": "cat dog"})["tokens"]
        expect("ids", [row["id"] for row in rows[0]], plain)
        expect("special", [row["special"] for row in rows[0]], [True, False, False, True])
        expect("text", rows[1][1], {"id": plain[1], "text": " cat", "special": False,
                                    "start": None, "stop": None})
        alone = ask(client, "/tokenize", {"model": "enc", "inputs": "cat",
                                          "add_special_tokens": False})
        expect("alone", alone, [[rows[1][1]]])
        for inputs, why in ((5, "inputs: expected a string"), ([5], "inputs[0]: expected a string"),
                            ([["a"]], "inputs[0]: expected a string"),
                            (["a"] * 2049, "inputs[2048]: expected at most 2048")):
            expect(why, why in refusal(client, "/tokenize", {"model": "enc", "inputs": inputs}),
                   True)
    with Daemon(CHAT) as daemon:
        expect("no encoder", get(Client(daemon.port), "/info"), 404)
    with Daemon(["--model", f"cls={FOLDER / 'classes.pte'}"]) as daemon:
        info = fetch(Client(daemon.port), "/info")
        expect("a classifier", (info["model_id"], list(info["model_type"])),
               ("cls", ["classifier"]))


CHECKS = (signs_of_life, stopping, what_models_are, tokens, rankings, classes, states, similar,
          first_cohere, scores, pooled, decoded, by_body, facts)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
