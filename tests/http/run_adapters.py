#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adapters (LoRA) of a language model, as export_llm of ExecuTorch writes them: their answers are
PyTorch's, sequences of different adapters run as rows of one step, and one of them may go.

contrib/export/adapters.py makes tests/models/adapters.

usage: run_adapters.py, with top_srcdir and top_builddir in the environment
"""
import json
import sys

from load import in_threads, wait_until
from run_generate import complete, wait_idle
from run_http import MODELS, Client, Daemon, Report, build_request, expect

ADAPTERS = MODELS / "adapters"
ANSWERS = json.loads((ADAPTERS / "answers.json").read_text())
LONG = 48


def serve(*names, options=()):
    arguments = ["--admin-listen", "127.0.0.1:0", *options]
    for name in names:
        arguments += [str(ADAPTERS / f"{name}.pte"), "--data",
                      f"{name}={ADAPTERS / 'foundation.ptd'}"]
    return Daemon(arguments)


def ask(port, path, body=None):
    client = Client(port)
    client.send(build_request("POST", path, json.dumps(body).encode()) if body is not None
                else build_request("GET", path))
    status = client.answer()
    client.close()
    expect(path, status, 200)
    return json.loads(client.body) if client.body else None


def answer(port, model, prompt, tokens):
    client = Client(port)
    got = complete(client, list(prompt.encode()), model=model, max_tokens=tokens,
                   ignore_eos=True, cache_prompt=False, seed=1)
    client.close()
    return got["choices"][0]["text"]


def answers_of_pytorch():
    with serve(*ANSWERS) as daemon:
        for model, rows in ANSWERS.items():
            for row in rows:
                expect(f"{model}: {row['prompt']}",
                       answer(daemon.port, model, row["prompt"], len(row["answer"])),
                       bytes(row["answer"]).decode(errors="replace"))
        roots = {model: ask(daemon.port, f"/v1/models/{model}")["root"] for model in ANSWERS}
        expect("roots", roots, dict.fromkeys(ANSWERS, "base"))


def batches(port, model):
    """Steps by the number of rows that ran as one."""
    stats = ask(port, f"/v2/models/{model}/stats")["model_stats"][0]
    return {row["batch_size"]: row["compute_infer"]["count"] for row in stats["batch_stats"]}


def together():
    """Two sequences, of one adapter each: steps of two rows have both."""
    # A given number of rows: nothing is measured, so joining does not depend on times.
    with serve(*ANSWERS, options=("--max-batch", "8")) as daemon:
        port = daemon.port
        prompts = [(model, row["prompt"]) for model in ANSWERS for row in ANSWERS[model][:2]]
        alone = {key: answer(port, *key, LONG) for key in prompts}

        def check(key):
            expect(f"{key} beside others", answer(port, *key, LONG), alone[key])

        def both_joined():
            in_threads(2, lambda i: check((("red", "blue")[i], ANSWERS["red"][0]["prompt"])))
            return batches(port, "red").get(2, 0) > 0 and batches(port, "blue").get(2, 0) > 0
        wait_until("steps of both as one", both_joined)
        for _ in range(4):
            in_threads(len(prompts), lambda i: check(prompts[i]))
        wait_idle(Client(port))


def one_goes():
    """A model is unloaded while its rows run with those of others, and comes back."""
    with serve("red", "blue", options=("--max-batch", "8")) as daemon:
        port, admin = daemon.port, daemon.admin_port()
        prompt = ANSWERS["red"][0]["prompt"]
        alone = {model: answer(port, model, prompt, LONG) for model in ("red", "blue")}

        def try_red():
            """It is there or not; if it is, its answer is as ever."""
            body = {"model": "red", "prompt": list(prompt.encode()), "max_tokens": LONG,
                    "ignore_eos": True, "cache_prompt": False, "temperature": 0}
            client = Client(port)
            client.send(build_request("POST", "/v1/completions", json.dumps(body).encode()))
            if client.answer() == 200:
                expect("red", json.loads(client.body)["choices"][0]["text"], alone["red"])
            client.close()

        def work(number):
            for i in range(16):
                if number == 0:
                    ask(admin, "/v2/repository/models/red/unload", {})
                    ask(admin, "/v2/repository/models/red/load", {})
                elif number == 1:
                    try_red()
                else:
                    expect(f"answer {i}", answer(port, "blue", prompt, LONG), alone["blue"])
        in_threads(4, work)

        def both_joined():
            in_threads(2, lambda i: expect(
                "after it came back", answer(port, ("red", "blue")[i], prompt, LONG),
                alone[("red", "blue")[i]]))
            return batches(port, "red").get(2, 0) > 0
        wait_until("steps of both as one", both_joined)


def main():
    report = Report()
    report.run_all((answers_of_pytorch, together, one_goes))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
