#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Language models as today's exporters write them, against a real daemon.

contrib/export/prefill.py makes tests/models/prefill: language models whose prompts have a method of
their own. contrib/export/exported.py makes tests/models/exported: folders of transformers' own
exporter. contrib/export/optimum_tasks.py makes tests/models/optimum.

usage: run_exporters.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from load import get_json, in_threads, wait_until
from run_continuous import answer_of, join, steps_by_rows, wait_proven
from run_generate import ask, chat, complete, post, wait_idle
from run_http import BUILD, MODELS, Client, Daemon, Failure, Report, expect

PREFILL = MODELS / "prefill"
EXPORTED = MODELS / "exported"
OPTIMUM = MODELS / "optimum"
PTE = os.environ.get("PTE", str(BUILD / "pte"))
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


def parts_beside():
    """Another model's export.json, what a card and generation_config.json say about ends, and a
    part that cannot be used: the other one stays, and there is no model of both."""
    row = json.loads((PREFILL / "answers.json").read_text())[0]
    prompt, ids = list(row["prompt"].encode()), list(row["answer"].encode())
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "decode.pte"
        shutil.copy(PREFILL / "parts.pte", path)
        shutil.copy(EXPORTED / "static" / "export.json", place)

        def count(**files):
            for name, members in files.items():
                (Path(place) / name).write_text(json.dumps(members))
            with Daemon(["--model", f"m={path}"]) as daemon:
                answer = complete(Client(daemon.port), prompt, model="m", max_tokens=len(ids))
                return answer["usage"]["completion_tokens"]

        expect("export.json", count(), len(ids))
        expect("ends of a card", count(**{
            "decode.card.json": {"generation": {"stop_token_ids": [ids[3]]}}}),
            ids.index(ids[3]) + 1)
        (Path(place) / "decode.card.json").unlink()
        program = path.read_bytes()
        expect("the embedding", program.count(b"aten::embedding"), 1)
        path.write_bytes(program.replace(b"aten::embedding", b"aten::embeddinq"))
        with Daemon(["--model", f"m={path}"]) as daemon:
            client = Client(daemon.port)
            embedded = [[[0.5] * 16] * 3]
            logits = ask(client, "/v2/models/m.text_decoder/call", {"args": [embedded, [0]]})
            expect("a part", len(logits["result"][0]), 256)
            models = [row["name"] for row in ask(client, "/v2/repository/index", {})]
            expect("models", ("m" in models, "m.text_decoder" in models), (False, True))


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


def growing():
    """Caches that grow are those of attention: nothing is lacking, and steps run together with the
    bits that they have alone. Prompts come in parts, share their beginning and end with the
    context; caches have 8 bits if the card says so."""
    rows = json.loads((EXPORTED / "answers.json").read_text())
    model = ["--model", f"chat={EXPORTED / 'growing'}/"]
    with Daemon([*model, "--prefix-bytes-max=0"]) as daemon:
        client = Client(daemon.port)
        wait_proven(client)
        expect("lacks", get_json(client, "/v2/models/chat").get("lacks"), None)
        bodies = [{"model": "chat", "prompt": row["ids"][i:], "temperature": 0, "max_tokens": 24,
                   "ignore_eos": True, "logprobs": 1} for row in rows for i in range(3)]
        alone = [answer_of(ask(client, "/v1/completions", body)["choices"][0]) for body in bodies]
        expect("alone", set(steps_by_rows(client)), {1})
        answers = [None] * len(bodies)

        def one(i):
            answer = ask(Client(daemon.port), "/v1/completions", bodies[i])
            answers[i] = answer_of(answer["choices"][0])

        join(client, len(bodies), one, lambda: expect("together", answers, alone))
        wait_idle(client)
    with Daemon([*model, "--prefill-tokens-max=3"]) as daemon:
        client = Client(daemon.port)
        for row in rows:
            answer = chat(client, row["messages"], max_tokens=len(row["answer_ids"]),
                          ignore_eos=True)
            expect("parts", answer["choices"][0]["message"]["content"], row["answer"])
    with Daemon(model) as daemon:
        client = Client(daemon.port)
        ids = (rows[0]["ids"] + rows[0]["answer_ids"])[:20]
        for prompt, cached in ((ids + [7, 8], 0), (ids + [9, 10, 11], len(ids))):
            answer = ask(client, "/v1/completions",
                         {"model": "chat", "prompt": prompt, "max_tokens": 4, "ignore_eos": True})
            expect("a beginning", answer["usage"]["prompt_tokens_details"]["cached_tokens"], cached)
        for count in (62, 63, 64, 65):
            status = post(client, "/v1/completions",
                          {"model": "chat", "prompt": [5] * count, "max_tokens": 9,
                           "ignore_eos": True})
            expect(f"{count} tokens", status, 200 if count < ROWS["growing"] else 400)
            if status == 200:
                used = json.loads(client.body)["usage"]["total_tokens"]
                expect(f"{count} tokens", used, ROWS["growing"])
        wait_idle(client)
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(EXPORTED / "growing", Path(place) / "chat")
        (folder / "decode.card.json").write_text(json.dumps({"cache": "int8"}))
        with Daemon(["--model", f"chat={folder}/"]) as daemon:
            client = Client(daemon.port)
            expect("cache", get_json(client, "/v2/models/chat")["cache"], "int8")
            answer = chat(client, rows[0]["messages"], max_tokens=20, ignore_eos=True)
            expect("8 bits", answer["usage"]["completion_tokens"], 20)


def windows():
    """Where tokens see the last rows only, caches are cut from their buffers at each step, unless
    the buffers have no more rows than that."""
    for name, options in (("window", []), ("window", ["--prefill-tokens-max=5"]), ("wide", []),
                          ("wide", ["--prefill-tokens-max=5"])):
        rows = json.loads((EXPORTED / f"{name}_answers.json").read_text())
        with Daemon(["--model", f"chat={EXPORTED / name}/", *options]) as daemon:
            client = Client(daemon.port)
            for row in rows:
                answer = chat(client, row["messages"], max_tokens=len(row["answer_ids"]),
                              ignore_eos=True)
                expect(name, answer["choices"][0]["message"]["content"], row["answer"])
            if name == "wide":
                wait_proven(client)
            lacks = get_json(client, "/v2/models/chat").get("lacks") or {}
            expect(f"{name}: prefixes", "prefixes" in lacks, name == "window")
            wait_idle(client)


def close(what, got, want):
    """Numbers as PyTorch has them, which answers.json has rounded."""
    def flat(x):
        return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]
    got = flat(got)
    expect(f"{what}: numbers", len(got), len(want))
    away = max(abs(a - b) for a, b in zip(got, want))
    expect(f"{what}: {away} away", away < 1e-4, True)


def call(client, model, *args, kwargs=None, **parameters):
    return ask(client, f"/v2/models/{model}/call",
               {"args": args, "kwargs": kwargs, "parameters": parameters})["result"]


def hear(client, row):
    """Whisper's two methods, token by token, in a sequence."""
    sound = [((i * 13 + i // 11) % 41 - 20) / 20 for i in range(80 * 200)]
    rows = [sound[i * 200:i * 200 + 200] for i in range(80)]
    hidden = call(client, "speech.encoder", [rows])
    ids = list(row["ids"])
    count = len(row["ids"]) + len(row["answer_ids"]) - 1
    for at in range(count):
        logits = call(client, "speech.text_decoder", [[ids[at]]], hidden, [at], sequence_id=1,
                      sequence_start=at == 0, sequence_end=at == count - 1)[0][0]
        if at + 1 >= len(row["ids"]):
            ids.append(max(range(len(logits)), key=logits.__getitem__))
    expect("speech", ids, row["ids"] + row["answer_ids"])
    close("speech", logits, row["logits"])


def optimum():
    """optimum-executorch's tasks: tokens and numbers of PyTorch."""
    rows = json.loads((OPTIMUM / "answers.json").read_text())
    files = {"text": "text/model", "fast": "text/fast", "parts": "text/parts",
             "masked": "masked/model", "picture": "picture/model", "speech": "speech/model"}
    with Daemon([word for name, file in files.items()
                 for word in ("--model", f"{name}={OPTIMUM / file}.pte")]) as daemon:
        client = Client(daemon.port)
        for name in ("text", "fast", "parts"):
            for row in rows["parts" if name == "parts" else "text"]:
                answer = complete(client, row["prompt"], model=name, ignore_eos=True,
                                  max_tokens=len(row["answer_ids"]))
                expect(f"{name}: {row['prompt']}", answer["choices"][0]["text"], row["answer"])
                expect(f"{name}: tokens", answer["usage"]["prompt_tokens"], len(row["ids"]))
        ids, pixels = rows["masked"]["ids"], bytes.fromhex(rows["picture"]["pixels"])
        mask = {"attention_mask": [[1] * len(ids[0])]}
        close("masked", call(client, "masked", ids, kwargs=mask), rows["masked"]["logits"])
        side = int((len(pixels) / 3) ** 0.5)
        lines = [[x / 255 for x in pixels[i:i + side]] for i in range(0, len(pixels), side)]
        planes = [lines[i:i + side] for i in range(0, len(lines), side)]
        close("picture", call(client, "picture", kwargs={"pixel_values": [planes]}),
              rows["picture"]["logits"])
        hear(client, rows["speech"])
        wait_idle(client)


def damaged():
    """An export.json that is damaged, or is of something else, is left out; one that does not fit
    the program is an error."""
    manifest = json.loads((EXPORTED / "static" / "export.json").read_text())
    component = manifest["components"]["decode"]
    whole = component["metadata"]["in_spec"]
    others = ["[]", '{"components": {"decode": {"file": "other.pte", "metadata": [1]}}}', "7",
              '{"components": {"decode": {"file": "decode.pte", "metadata": "in_spec"}}}']
    texts = ["{", "no JSON", '{"components": {"decode": {"file": 7, "metadata": {"in_spec": "x", '
             '"out_spec": "y"}}}}']
    for spec in (whole.replace('\\"input_ids\\", ', ""), "[1, {", "[" * 200):
        component["metadata"]["in_spec"] = spec
        texts.append(json.dumps(manifest))
    for text in others + texts:
        with tempfile.TemporaryDirectory() as place:
            folder = shutil.copytree(EXPORTED / "static", Path(place) / "m")
            (folder / "export.json").write_text(text)
            with Daemon(["--model", f"m={folder / 'decode.pte'}"]) as daemon:
                body = {"model": "m", "prompt": "a"}
                status = post(Client(daemon.port), "/v1/completions", body)
                expect(f"{text[-40:]}: tensors alone", status, 400)
                says = "warning: model 'm': export.json is left out: " in daemon.read_log()
                expect(f"{text[-40:]}: a warning", says, text in texts)
    component["metadata"]["in_spec"] = whole
    component["file"] = "add.pte"
    with tempfile.TemporaryDirectory() as place:
        path = shutil.copy(MODELS / "add.pte", place)
        (Path(place) / "export.json").write_text(json.dumps(manifest))
        try:
            with Daemon(["--model", f"m={path}"]):
                raise AssertionError("a cache that does not fit")
        except Failure as failure:
            expect(failure, "the description of the caches has" in str(failure), True)


def write_config(folder, **members):
    (folder / "generation_config.json").write_text(json.dumps(members))


def defaults():
    """generation_config.json: what requests get that say nothing, and a card that outranks it."""
    row = json.loads((EXPORTED / "answers.json").read_text())[0]
    ids, end = row["answer_ids"], row["answer_ids"][3]
    cut = ids.index(end)
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(EXPORTED / "static", Path(place) / "chat")
        write_config(folder, top_k=1, top_p=0.5, temperature=0.25, max_new_tokens=6,
                     eos_token_id=[2], do_sample=True, max_length=20, min_p=None)

        def answer(client, **fields):
            return ask(client, "/v1/chat/completions",
                       {"model": "chat", "messages": row["messages"], **fields})["usage"]

        def echo(client, **fields):
            said = ask(client, "/v1/responses", {"model": "chat", "input": "Hi", **fields})
            return said["temperature"], said["top_p"], said["usage"]["output_tokens"]

        with Daemon(["--model", f"chat={folder}"]) as daemon:
            client = Client(daemon.port)
            expect("of the file", echo(client)[:2], (0.25, 0.5))
            expect("of the request", echo(client, temperature=0, top_p=1, max_output_tokens=2),
                   (0, 1, 2))
            expect("null", echo(client, temperature=None)[0], 0.25)
            expect("max_new_tokens", answer(client, ignore_eos=True)["completion_tokens"], 6)
            for seed in range(5):
                said = ask(client, "/v1/completions",
                           {"model": "chat", "prompt": row["ids"], "seed": seed})
                expect("top_k", said["choices"][0]["text"], row["answer"][:6])
        write_config(folder, eos_token_id=[2, end], temperature=0)
        with Daemon(["--model", f"chat={folder}"]) as daemon:
            expect("eos_token_id", answer(Client(daemon.port))["completion_tokens"], cut + 1)
        for ends in (-1, [2, -1], "2", [2] * 33):
            write_config(folder, eos_token_id=ends, temperature=0, max_new_tokens=6)
            with Daemon(["--model", f"chat={folder}"]) as daemon:
                expect(f"{ends}", ask(Client(daemon.port), "/v1/completions",
                                      {"model": "chat", "prompt": ids, "seed": 1})
                       ["object"], "text_completion")
                expect(f"{ends}", "eos_token_id: expected up to 32 ids" in daemon.read_log(), True)
        (folder / "decode.card.json").write_text(
            '{"generation": {"temperature": 0, "stop_token_ids": [], "max_tokens": 12}}')
        with Daemon(["--model", f"chat={folder}"]) as daemon:
            expect("a card", answer(Client(daemon.port))["completion_tokens"], 12)


def shown():
    """pte card says what comes from generation_config.json and export.json."""
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(EXPORTED / "static", Path(place) / "chat")
        write_config(folder, temperature=0.6, eos_token_id=7, top_p=3, max_new_tokens=0.5)
        done = subprocess.run([PTE, "card", folder], capture_output=True, text=True, check=False)
        for text in ("// generation_config.json: temperature, eos_token_id\n",
                     '"generation": {"temperature": 0.6, "stop_token_ids": [7]}',
                     "// export.json: 6 inputs of the file are a cache, which pted keeps\n"):
            expect(f"{text} in {done.stdout}", text in done.stdout, True)
        for text in ("top_p: expected a number from 0 to 1\n",
                     "max_new_tokens: expected an integer from 1 to "):
            expect(f"{text} in {done.stderr}", f"generation_config.json: {text}" in done.stderr,
                   True)
        card = Path(place) / "a.card.json"
        card.write_text(done.stdout)
        check = [PTE, "card", "--check", card, folder]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        expect(done.stderr, done.returncode, 0)
        for value in ("2", '{"temperature": 101}', '{"top_k": 0.5}', '{"stop_token_ids": 2}',
                      '{"stop_token_ids": [-1]}', '{"topk": 1}'):
            card.write_text(f'{{"generation": {value}}}')
            done = subprocess.run(check, capture_output=True, text=True, check=False)
            expect(f"{value}: {done.stderr}", done.returncode, 65)
            expect(f"{value}: {done.stderr}", "generation" in done.stderr, True)


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
    report.run_all((two_methods, parts, parts_beside, transformers, growing, windows, optimum,
                    damaged, late, defaults, shown))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
