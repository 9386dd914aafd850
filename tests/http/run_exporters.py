#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Language models as today's exporters write them, against a real daemon.

contrib/export/prefill.py makes tests/models/prefill: language models whose prompts have a method of
their own. contrib/export/exported.py makes tests/models/exported: folders of transformers' own
exporter.

usage: run_exporters.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from load import get_json, in_threads, wait_until
from run_generate import ask, chat, complete, post, wait_idle
from run_http import MODELS, Client, Daemon, Failure, Report, expect

PREFILL = MODELS / "prefill"
EXPORTED = MODELS / "exported"
ROWS = {"static": 96, "growing": 64}


def two_methods():
    """Prompts go through `prefill`, tokens through `decode`, and both are one model."""
    rows = json.loads((PREFILL / "answers.json").read_text())
    for name in ("shared", "apart"):
        with Daemon(["--model", f"m={PREFILL / f'{name}.pte'}"]) as daemon:
            client = Client(daemon.port)
            for row in rows:
                for fields in ({}, {"seed": 1}, {"cache_prompt": False}):
                    answer = complete(client, list(row["prompt"].encode()), model="m",
                                      max_tokens=len(row["answer"]), **fields)
                    expect(f"{name}: {row['prompt']}", answer["choices"][0]["text"],
                           row["answer"])
            # No name: it is the only language model of the daemon.
            body = {"prompt": [1], "max_tokens": 2, "temperature": 0}
            expect("no name", post(client, "/v1/completions", body), 200)
            wait_idle(client)


def parts():
    """token_embedding and text_decoder are one model that takes tokens, with the name of the file.
    The embedding, which takes twice as many tokens, has the form of a language model and is none;
    a tokenizer beside it is not its own."""
    rows = json.loads((PREFILL / "answers.json").read_text())
    with Daemon(["--model", f"m={PREFILL / 'parts.pte'}"]) as daemon:
        client = Client(daemon.port)

        def check(row, client, **fields):
            answer = complete(client, list(row["prompt"].encode()), model="m",
                              max_tokens=len(row["answer"]), **fields)
            expect(f"parts: {row['prompt']}", answer["choices"][0]["text"], row["answer"])

        for row in rows:
            check(row, client, seed=1)
        in_threads(8, lambda i: check(rows[i % len(rows)], Client(daemon.port)))
        about = get_json(client, "/v2/models/m")
        expect("tokens", about["inputs"][0]["max_shape"], [1, 95])
        ids = list((rows[-1]["prompt"] + rows[-1]["answer"]).encode())
        answer = ask(client, "/v1/completions", {"model": "m", "prompt": ids, "max_tokens": 1})
        cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        expect("a state that was kept", cached, len(ids) - 1)
        rows_of_ids = {"args": [[list(b"Hi there")], [0]]}
        logits = ask(client, "/v2/models/m/call", rows_of_ids)["result"]
        embedded = ask(client, "/v2/models/m.token_embedding/call",
                       {"args": rows_of_ids["args"][:1]})["result"]
        expect("the two methods", ask(client, "/v2/models/m.text_decoder/call",
                                      {"args": [embedded, [0]]})["result"], logits)
        wait_idle(client)
    words = json.loads((EXPORTED / "static" / "tokenizer.json").read_text())
    vocab = words["model"]["vocab"]
    vocab.update({f"more {i}": i for i in range(len(vocab), 256)})
    with tempfile.TemporaryDirectory() as place:
        path = shutil.copy(PREFILL / "parts.pte", Path(place) / "m.pte")
        (Path(place) / "tokenizer.json").write_text(json.dumps(words))
        with Daemon([str(path)]) as daemon:
            client = Client(daemon.port)
            body = {"model": "m.token_embedding", "prompt": "Hi", "max_tokens": 1}
            expect("an embedding", post(client, "/v1/completions", body), 400)
            expect("tokens", complete(client, "Hi", model="m", max_tokens=1)["usage"]
                   ["completion_tokens"], 1)


def transformers():
    """Caches that go from call to call, of a fixed size and growing: answers of generate()."""
    rows = json.loads((EXPORTED / "answers.json").read_text())
    for name, context in ROWS.items():
        with Daemon(["--model", f"chat={EXPORTED / name}/"]) as daemon:
            client = Client(daemon.port)

            def check(row, client, **fields):
                answer = chat(client, row["messages"], max_tokens=len(row["answer_ids"]),
                              ignore_eos=True, **fields)
                text = answer["choices"][0]["message"]["content"]
                expect(f"{name}: {row['messages']}", text, row["answer"])
                expect(f"{name}: tokens", answer["usage"]["prompt_tokens"], len(row["ids"]))

            for row in rows:
                check(row, client, seed=1)
            in_threads(8, lambda i: check(rows[i % len(rows)], Client(daemon.port)))
            ids = rows[0]["ids"] + rows[0]["answer_ids"]
            answer = ask(client, "/v1/completions",
                         {"model": "chat", "prompt": ids, "max_tokens": 1})
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            expect(f"{name}: a state that was kept", cached, len(ids) - 1)
            answer = chat(client, rows[0]["messages"], max_tokens=1000, ignore_eos=True)
            expect(f"{name}: context", answer["usage"]["total_tokens"], context)
            expect(f"{name}: reason", answer["choices"][0]["finish_reason"], "length")
            wait_idle(client)


def damaged():
    """An export.json that is damaged, does not fit the program, or is of something else."""
    manifest = json.loads((EXPORTED / "static" / "export.json").read_text())
    component = manifest["components"]["decode"]
    whole = component["metadata"]["in_spec"]
    texts = ["[]", '{"components": {"decode": 1}}',
             '{"components": {"decode": {"file": "decode.pte", "metadata": [1]}}}',
             '{"components": {"decode": {"file": "decode.pte", "metadata": "in_spec"}}}',
             '{"components": [1]}', '{"components": {"decode": [1]}}']
    for spec in (None, whole.replace('\\"input_ids\\", ', ""), "[1, {", "[" * 200):
        component["metadata"]["in_spec"] = spec
        texts.append(json.dumps(manifest))
    texts += ["{"]
    for text in texts:
        with tempfile.TemporaryDirectory() as place:
            folder = shutil.copytree(EXPORTED / "static", Path(place) / "m")
            (folder / "export.json").write_text(text)
            try:
                with Daemon(["--model", f"m={folder / 'decode.pte'}"]) as daemon:
                    body = {"model": "m", "prompt": "a"}
                    status = post(Client(daemon.port), "/v1/completions", body)
                    expect(f"{text[-40:]}: tensors alone", status, 400)
            except Failure as failure:
                if "export.json: " not in str(failure):
                    raise


def late():
    """An export.json that comes after its program makes a chat of it."""
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(EXPORTED / "static", Path(place) / "m",
                                 ignore=lambda *_: ["export.json"])
        body = {"model": "m", "prompt": "a", "max_tokens": 1}
        with Daemon(["--model", f"m={folder / 'decode.pte'}"]) as daemon:
            client = Client(daemon.port)
            expect("tensors alone", post(client, "/v1/completions", body), 400)
            shutil.copy(EXPORTED / "static" / "export.json", folder)
            os.kill(daemon.process.pid, signal.SIGHUP)
            wait_until("it is a chat", lambda: post(client, "/v1/completions", body) == 200)


def main():
    report = Report()
    report.run_all((two_methods, parts, transformers, damaged, late))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
