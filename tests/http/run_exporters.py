#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Language models as today's exporters write them, against a real daemon.

contrib/export/prefill.py makes tests/models/prefill: language models whose prompts have a method of
their own.

usage: run_exporters.py, with top_srcdir and top_builddir in the environment.
"""
import json
import sys

from run_generate import ask, post, wait_idle
from run_http import MODELS, Client, Daemon, Report, expect

PREFILL = MODELS / "prefill"


def complete(client, model, prompt, **members):
    return ask(client, "/v1/completions",
               {"model": model, "prompt": prompt, "temperature": 0, **members})


def two_methods():
    """Prompts go through `prefill`, tokens through `decode`, and both are one model."""
    rows = json.loads((PREFILL / "answers.json").read_text())
    for name in ("shared", "apart"):
        with Daemon(["--model", f"m={PREFILL / f'{name}.pte'}"]) as daemon:
            client = Client(daemon.port)
            for row in rows:
                for fields in ({}, {"seed": 1}, {"cache_prompt": False}):
                    answer = complete(client, "m", list(row["prompt"].encode()),
                                      max_tokens=len(row["answer"]), **fields)
                    expect(f"{name}: {row['prompt']}", answer["choices"][0]["text"],
                           row["answer"])
            # No name: it is the only language model of the daemon.
            body = {"prompt": [1], "max_tokens": 2, "temperature": 0}
            expect("no name", post(client, "/v1/completions", body), 200)
            wait_idle(client)


def main():
    report = Report()
    report.run_all((two_methods,))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
