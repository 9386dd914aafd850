#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lm-eval's local-completions scores a language model by a real daemon, with tasks of local files.

Skipped without the Python packages lm_eval (0.4.13) and transformers, which need no torch here.
run_scoring.py sends the same requests without them.

usage: run_lm_eval.py, with top_srcdir and top_builddir in the environment.
"""
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from run_generate import ANSWERS, CHAT, CONTEXT, FOLDER
from run_http import Client, Daemon, Failure, Report, expect
from run_scoring import rows_of

if not all(importlib.util.find_spec(name) for name in ("lm_eval", "transformers")):
    print("SKIP: the Python packages lm_eval and transformers are missing")
    sys.exit(77)

TASK = """\
task: {name}
dataset_path: json
dataset_kwargs:
  data_files: {{test: {file}}}
test_split: test
output_type: {kind}
{members}
metric_list:
"""
KINDS = {
    "choices": ("multiple_choice", 'doc_to_text: "{{question}}"\ndoc_to_choice: choices\n'
                                   'doc_to_target: answer\ntarget_delimiter: ""', ["acc"]),
    "words": ("loglikelihood_rolling", 'doc_to_text: ""\ndoc_to_target: "{{question}}"',
              ["byte_perplexity"]),
}


def write_tasks(folder):
    rows = [{"question": row["prompt"], "answer": i, "choices": [r["answer"] for r in ANSWERS[:3]]}
            for i, row in enumerate(ANSWERS[:3])]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    for name, (kind, members, metrics) in KINDS.items():
        text = TASK.format(name=name, file=folder / "rows.jsonl", kind=kind, members=members)
        text += "".join(f"  - metric: {metric}\n" for metric in metrics)
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def run(port, folder, batch):
    url = f"http://127.0.0.1:{port}/v1/completions"
    command = [sys.executable, "-m", "lm_eval", "run", "--model", "local-completions", "--tasks",
               "choices,words", "--include_path", str(folder), "--batch_size", str(batch),
               "--model_args", f"model=chat,base_url={url},tokenizer={FOLDER},max_length={CONTEXT}"]
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Failure(done.stderr[-2000:])
    return dict(re.findall(r"\|(acc|byte_perplexity) *\|[^|]*\| *([0-9.]+)\|", done.stdout))


def perplexity(client):
    """What byte_perplexity has to be: lm-eval puts the token that ends an answer before a text."""
    total, size = 0, 0
    for row in ANSWERS[:3]:
        ids = [1, *row["ids"]]
        rows = rows_of(client, ids)
        total += sum(rows[i][ids[i + 1]] for i in range(len(ids) - 1))
        size += len(row["prompt"].encode())
    return math.exp(-total / size)


def scores():
    with Daemon(CHAT) as daemon, tempfile.TemporaryDirectory() as folder:
        write_tasks(Path(folder))
        wanted = perplexity(Client(daemon.port))
        for batch in (1, 8):
            found = run(daemon.port, Path(folder), batch)
            expect("it picks its own answers", float(found["acc"]), 1.0)
            if abs(float(found["byte_perplexity"]) - wanted) > 2e-4 * wanted:
                raise Failure(f"byte_perplexity: {found}, expected {wanted}")


def main():
    report = Report()
    report.run_all((scores,))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
