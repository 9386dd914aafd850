#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Encoders of texts: vectors and rankings, against a real daemon with a tiny model.

The model and what eager PyTorch computes come from contrib/export/encoder.py. run_openai.py uses
the same model with OpenAI's own client.

usage: run_embeddings.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import gzip
import json
import math
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from load import in_threads, wait_until
from run_http import (MODELS, Client, Daemon, Failure, Report, build_request, expect)

FOLDER = MODELS / "encoder"
ENCODER = ["--model", f"enc={FOLDER / 'model.pte'}"]
CHAT = ["--model", f"chat={MODELS / 'chat' / 'model.pte'}"]
ANSWERS = json.loads((FOLDER / "answers.json").read_text())
SINGLE, PAIRS, QUERY = ANSWERS["single"], ANSWERS["pairs"], ANSWERS["query"]
TEXTS = [row["text"] for row in SINGLE]
WIDTH, LENGTH = 32, 48
CLOSE = 2e-4


def post(client, path, body):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client.send(build_request("POST", path, data))
    return client.answer()


def ask(client, path, body):
    status = post(client, path, body)
    if status != 200:
        raise Failure(f"{path}: {status} {client.body[:300]!r}")
    return json.loads(client.body)


def normalized(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def expect_close(name, got, wanted):
    expect(f"{name}: size", len(got), len(wanted))
    worst = max(abs(a - b) for a, b in zip(got, wanted))
    if not worst < CLOSE:
        raise Failure(f"{name}: a difference of {worst}")


def embed(client, model, texts, **members):
    answer = ask(client, "/v1/embeddings", {"model": model, "input": texts, **members})
    expect("indices", [row["index"] for row in answer["data"]],
           list(range(len(answer["data"]))))
    return [row["embedding"] for row in answer["data"]], answer["usage"]


def golden():
    """All that PyTorch computes: pooled in both ways, cut, one by one and in one request."""
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        vectors, usage = embed(client, "enc", TEXTS, truncate=True)
        rows, _ = embed(client, "enc.rows", TEXTS, truncate=True)
        for row, vector, first in zip(SINGLE, vectors, rows):
            expect_close(row["text"], vector, normalized(row["mean"]))
            expect_close(row["text"], first, row["cls"])
            single, alone = embed(client, "enc", row["text"], truncate=True)
            expect("alone", single[0], vector)
            expect("tokens", alone, {"prompt_tokens": len(row["ids"]),
                                     "total_tokens": len(row["ids"])})
            by_ids, _ = embed(client, "enc", row["ids"])
            expect("ids", by_ids[0], vector)
        embed(client, "enc", ["a cat " * 99, "a cat", [1] * 99], truncate=True)
        expect("two are cut", client.field("x-truncated-texts"), "2")
        embed(client, "enc", "a cat", truncate=True)
        expect("none is cut", client.field("x-truncated-texts"), None)
        expect("all tokens", usage["total_tokens"], sum(len(row["ids"]) for row in SINGLE))
        lists, _ = embed(client, "enc", [row["ids"] for row in SINGLE])
        expect("lists of ids", lists, vectors)


def rows_together():
    """Padded texts run together once the model has been proven: with the same bits."""
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)

        def is_proven():
            client.send(build_request("GET", "/v2/models/enc.rows/config", b""))
            return client.answer() == 200 and b"dynamic_batching" in client.body
        wait_until("the proof of batches", is_proven)
        rows, _ = embed(client, "enc.rows", TEXTS * 3, truncate=True)
        for i, row in enumerate(SINGLE):
            alone, _ = embed(client, "enc.rows", row["text"], truncate=True)
            for copy in range(3):
                expect("together", rows[i + copy * len(SINGLE)], alone[0])


def forms():
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        (plain,), _ = embed(client, "enc", TEXTS[0])
        answer = ask(client, "/v1/embeddings", {"model": "enc", "input": [TEXTS[0]],
                                                "encoding_format": "base64"})
        raw = base64.b64decode(answer["data"][0]["embedding"], validate=True)
        # Printed floats have as few digits as give the same float.
        expect("base64", raw, struct.pack(f"<{WIDTH}f", *plain))
        for count in (1, 3, 31, 32):
            (short,), _ = embed(client, "enc", TEXTS[0], dimensions=count)
            expect_close("dimensions", short, normalized(plain[:count]))
            answer = ask(client, "/v1/embeddings", {"model": "enc", "input": TEXTS[0],
                                                    "dimensions": count,
                                                    "encoding_format": "base64"})
            raw = base64.b64decode(answer["data"][0]["embedding"], validate=True)
            expect("base64 of some", raw, struct.pack(f"<{count}f", *short))
        tei = ask(client, "/v2/models/enc/embed", {"inputs": [TEXTS[0], TEXTS[1]]})
        expect("TEI", tei[0], plain)
        long = ask(client, "/v2/models/enc/embed", {"inputs": TEXTS[0], "normalize": False})
        expect_close("not normalized", long[0], SINGLE[0]["mean"])
        expect("null", embed(client, "enc", TEXTS[0], dimensions=None, user=None)[0][0], plain)


def rankings():
    with Daemon(ENCODER) as daemon:
        client = Client(daemon.port)
        body = {"query": QUERY, "texts": [row["text"] for row in PAIRS], "truncate": True}
        raw = ask(client, "/rerank", {**body, "raw_scores": True, "return_text": True})
        expect("indices", sorted(row["index"] for row in raw), list(range(len(PAIRS))))
        expect("order", [row["score"] for row in raw],
               sorted((row["score"] for row in raw), reverse=True))
        for row in raw:
            expect_close("logit", [row["score"]], [PAIRS[row["index"]]["logit"]])
            expect("text", row["text"], PAIRS[row["index"]]["text"])
        scores = ask(client, "/v2/models/enc.score/rerank", body)
        for row in scores:
            logit = PAIRS[row["index"]]["logit"]
            expect_close("score", [row["score"]], [1 / (1 + math.exp(-logit))])
            expect("members", sorted(row), ["index", "score"])
        documents = [row["text"] for row in PAIRS[:5]] + [{"text": PAIRS[5]["text"]}]
        jina = ask(client, "/v1/rerank", {"model": "enc.score", "query": QUERY, "top_n": 2,
                                          "documents": documents})
        best = sorted(range(6), key=lambda i: -PAIRS[i]["logit"])[:2]
        expect("best", [row["index"] for row in jina["results"]], best)
        expect("document", jina["results"][0]["document"], {"text": PAIRS[best[0]]["text"]})
        expect("usage", jina["usage"]["total_tokens"], sum(row["tokens"] for row in PAIRS[:6]))
        # By the cosine of vectors, if the model reads single texts.
        vectors, _ = embed(client, "enc", [QUERY] + TEXTS, truncate=True)
        cosine = ask(client, "/v1/rerank", {"model": "enc", "query": QUERY, "documents": TEXTS,
                                            "truncate": True, "return_documents": False})
        for row in cosine["results"]:
            wanted = sum(a * b for a, b in zip(vectors[0], vectors[row["index"] + 1]))
            expect_close("cosine", [row["relevance_score"]], [wanted])


def refusals():
    long = TEXTS[-1]
    with Daemon(ENCODER + CHAT) as daemon:
        client = Client(daemon.port)
        openai = (
            ({"model": "enc", "input": long}, 400, "input[0]: it has 74 tokens, the model takes at "
                                                   f"most {LENGTH}"),
            ({"model": "enc", "input": ["a", [1] * 49]}, 400, "input[1]: it has 49 tokens"),
            ({"model": "enc", "input": [[1, 5000]]}, 400, "got 5000"),
            ({"model": "enc", "input": []}, 400, "at least one text"),
            ({"model": "enc", "input": [[]]}, 400, "at least one id"),
            ({"model": "enc", "input": ["a"] * 2049}, 400, "at most 2048 texts"),
            ({"model": "enc", "input": ["a"] * 10000}, 400, "at most 2048 texts"),
            ({"model": "enc", "input": [1, "a"]}, 400, "input[1]"),
            ({"model": "enc", "input": {"a": 1}}, 400, "input"),
            ({"model": "enc"}, 400, "input is missing"),
            ({"model": "enc", "input": "a", "dimensions": 33}, 400, "the model has 32, got 33"),
            ({"model": "enc", "input": "a", "dimensions": 0}, 400, "dimensions"),
            ({"model": "enc", "input": "a", "encoding_format": "hex"}, 400, "base64"),
            ({"model": "chat", "input": "a"}, 400, "is no encoder"),
            ({"model": "enc.score", "input": "a"}, 400, "use /rerank"),
            ({"model": "nobody", "input": "a"}, 404, "nobody"),
            ({"input": "a"}, 400, "model is missing"),
            ({"model": "enc", "inputs": "a"}, 400,
             "inputs: unknown member, did you mean 'input'? (byte"),
            ({"model": "enc", "input": "a", "Truncate": True}, 400, "did you mean 'truncate'?"),
        )
        for body, status, text in openai:
            expect(text, post(client, "/v1/embeddings", body), status)
            message = json.loads(client.body)["error"]["message"]
            expect(text, text in message or message, True)
        expect("broken", post(client, "/v1/embeddings", b'{"model": "enc", "input": "\xff"}'), 400)
        expect("surrogate", post(client, "/embed", b'{"inputs": "\\ud800"}'), 400)
        tei = (
            ("/v2/models/enc/embed", {"inputs": long}, "inputs[0]: it has 74 tokens"),
            ("/v2/models/enc/embed", {"inputs": "a", "truncation_direction": "Left"}, "Right"),
            ("/embed", {"inputs": "a"},
             "model is missing: several could answer, which GET /v1/models lists"),
            ("/rerank", {"texts": ["a"]}, "query is missing"),
            ("/rerank", {"query": "a"}, "texts or documents is missing"),
            ("/rerank", {"query": "a", "texts": [[1]]}, "texts[0]"),
            ("/v2/models/enc.score/embed", {"inputs": "a"}, "use /rerank"),
            ("/v2/models/enc.score/rerank", {"query": long, "texts": ["a"]}, "texts[0]: it has"),
        )
        for path, body, text in tei:
            expect(text, post(client, path, body), 400)
            answer = json.loads(client.body)
            expect("type", answer["error_type"], "validation")
            expect(text, text in answer["error"] or answer["error"], True)
        vectors, _ = embed(client, "enc", TEXTS[0])
        expect("alive", len(vectors[0]), WIDTH)


def which_is_meant():
    """Without a name the model is meant that has what the route needs. A card's word decides first:
    it makes an encoder of the classifier, and leaves two that are alike. Labels make it none."""
    card = {"methods": {"rows": {"outputs": {"last_hidden_state": {
        "answer": "classes"}}}}}
    said = {"embedding": {"pooling": "none"}}
    for about, words, texts_of, status in (
            ({}, {}, "enc", 200), ({}, {"embedding": {}}, "enc", 200), (said, {}, "classes", 200),
            (said, {"embedding": {}}, None, 400), ({"labels": ["a", "b", "c"]}, {}, "enc", 200)):
        with tempfile.TemporaryDirectory() as folder:
            for name, source, content in (("enc", "model", {**card, **words}),
                                          ("classes", "classes", about)):
                (Path(folder) / name).mkdir()
                shutil.copy(FOLDER / f"{source}.pte", Path(folder) / name / "model.pte")
                shutil.copy(FOLDER / "tokenizer.json", Path(folder) / name)
                (Path(folder) / name / "model.card.json").write_text(json.dumps(content))
            with Daemon(["--models", folder]) as daemon:
                client = Client(daemon.port)
                case = (about, words)
                for path, body, read in (
                        ("/embed", {"inputs": TEXTS[0]}, lambda answer: answer[0]),
                        ("/v1/embeddings", {"input": TEXTS[0]},
                         lambda answer: answer["data"][0]["embedding"])):
                    expect(f"{case} {path}", post(client, path, body), status)
                    if status == 200:
                        got = read(json.loads(client.body))
                        expect(f"{case} {path}", got, embed(client, texts_of, TEXTS[0])[0][0])
                best = ask(client, "/rerank", {"query": QUERY, "texts": [PAIRS[0]["text"]],
                                               "raw_scores": True, "truncate": True})
                expect_close(f"{case} rerank", [best[0]["score"]], [PAIRS[0]["logit"]])


def too_large():
    """Bodies with more text than the daemon takes, as they are or inflated: 413, in the form of
    each route, and the next request is answered."""
    texts, ids = "cat " * 20000, [1] * 40000
    with Daemon(ENCODER + ["--body-bytes-max=64K"]) as daemon:
        for path, member, model in (("/v1/embeddings", "input", {"model": "enc"}),
                                    ("/v2/models/enc/embed", "inputs", {}),
                                    ("/v2/models/enc.score/rerank", "texts", {"query": "a"})):
            for value in (texts, ids, ["cat"] * 20000):
                body = json.dumps({**model, member: value}).encode()
                for data, fields in ((body, ()),
                                     (gzip.compress(body), ("Content-Encoding: gzip",))):
                    client = Client(daemon.port)
                    client.send(build_request("POST", path, data, fields))
                    expect(f"{path} {fields}", client.answer(), 413)
                    answer = json.loads(client.body)
                    text = answer["error"]
                    text = text["message"] if isinstance(text, dict) else text
                    expect(f"{text} has the limit", "65536" in text or "64" in text, True)
            client = Client(daemon.port)
            expect("alive", post(client, "/v1/embeddings", {"model": "enc", "input": "cat"}), 200)


def serve_with(card, text, methods=False):
    """A copy of the model with another card; |text|: of the error that refuses it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(FOLDER / "model.pte", folder)
        if text != "no tokenizer":
            shutil.copy(FOLDER / "tokenizer.json", folder)
        (folder / "model.card.json").write_text(json.dumps(card))
        with Daemon(["--model", f"enc={folder / 'model.pte'}"]) as daemon:
            client = Client(daemon.port)
            return [post(client, "/v1/embeddings", {"model": "enc", "input": "cat " * count})
                    for count in (1, 6, 9)] + [client.body]


def cards():
    statuses = serve_with({"embedding": {"max_tokens": 8}}, "")
    expect("max_tokens", statuses[:3], [200, 200, 400])
    expect("numbers", b"11 tokens, the model takes at most 8" in statuses[3], True)
    expect("no card", serve_with({}, "")[:3], [200, 200, 200])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("model.pte", "tokenizer.json"):
            shutil.copy(FOLDER / file, folder)
        (folder / "model.card.json").write_text(json.dumps(
            {"embedding": {"pooling": "last", "prefix": "the ", "normalize": False}}))
        with Daemon(["--model", f"enc={folder / 'model.pte'}"]) as daemon:
            client = Client(daemon.port)
            with_prefix, _ = embed(client, "enc", "cat")
            by_ids = ask(client, "/v2/models/enc/tokenize", {"text": "the cat"})
            expect("prefix", embed(client, "enc", by_ids["tokens"])[0], with_prefix)


def crowd():
    """Many clients at once get what one gets."""
    with Daemon(ENCODER) as daemon:
        wanted, _ = embed(Client(daemon.port), "enc", TEXTS, truncate=True)

        def one(index):
            client = Client(daemon.port)
            for i in range(10):
                k = (index + i) % len(TEXTS)
                got, _ = embed(client, "enc", [TEXTS[k]] * 3, truncate=True)
                expect("vector", got, [wanted[k]] * 3)
        in_threads(8, one)
        leaver = Client(daemon.port)
        leaver.send(build_request("POST", "/v1/embeddings", json.dumps(
            {"model": "enc", "input": TEXTS[:8] * 200}).encode()))
        leaver.socket.close()
        embed(Client(daemon.port), "enc", TEXTS[0])


def memory():
    """The vectors of a request are part of the memory for requests, which has no room for those of
    all clients here: some wait, and some may be sent away."""
    count, clients = 2048, 4
    with Daemon([*ENCODER, "--ring-bytes", "1M"]) as daemon:
        def memory_of(client):
            client.send(b"GET /v2/models/stats HTTP/1.1\r\nHost: a\r\n\r\n")
            expect("stats", client.answer(), 200)
            return json.loads(client.body)["memory"]

        client = Client(daemon.port)
        wanted, _ = embed(client, "enc", "a")
        expect("a small request", memory_of(client)["peak"] < count * WIDTH * 4, True)
        embed(client, "enc", ["a"] * count)
        expect("a large one", memory_of(client)["lists"]["peak"] >= count * WIDTH * 4, True)

        def one(_):
            client = Client(daemon.port)
            statuses.append(post(client, "/v1/embeddings", json.dumps(
                {"model": "enc", "input": ["a"] * count}).encode()))
            if statuses[-1] == 200:
                rows = json.loads(client.body)["data"]
                expect("vectors", all(row["embedding"] == wanted[0] for row in rows), True)
        statuses = []
        in_threads(clients, one)
        expect("statuses", set(statuses) <= {200, 429} and 200 in statuses, True)
        embed(client, "enc", ["a"] * count)
        wait_until("memory is free", lambda: memory_of(client)["used"] == 0)


CHECKS = (golden, rows_together, forms, rankings, refusals, which_is_meant, too_large, memory,
          cards, crowd)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
