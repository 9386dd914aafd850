#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/openapi.json before a public validator, and a client that a public generator makes of it.

Skipped without the Python packages openapi-spec-validator and openapi-python-client.

usage: run_openapi.py, with top_srcdir and top_builddir in the environment.
"""
import importlib
import json
import subprocess
import sys
import tempfile
import urllib.request

import interpreter
from run_daemon import ADD, DIGITS
from run_generate import CHAT
from run_http import MODELS, Daemon, Report, expect

if not interpreter.has("openapi_spec_validator", "openapi_python_client"):
    print("SKIP: the Python packages openapi-spec-validator or openapi-python-client are missing")
    sys.exit(77)

LONG_S = 240


def fetch(daemon):
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}/openapi.json") as answer:
        return json.load(answer)


def valid():
    validate = importlib.import_module("openapi_spec_validator").validate
    names = ["keywords", "lists", "methods", "loops", "found", "scalars"]
    with Daemon([ADD, DIGITS, *CHAT, *(str(MODELS / f"{name}.pte") for name in names)]) as daemon:
        validate(fetch(daemon))


def client():
    """The generated client calls a model, by tensors and by structure, and is told of mistakes."""
    with tempfile.TemporaryDirectory() as folder, Daemon([ADD, *CHAT]) as daemon:
        with open(f"{folder}/openapi.json", "w", encoding="utf-8") as file:
            json.dump(fetch(daemon), file)
        subprocess.run([sys.executable, "-m", "openapi_python_client", "generate", "--path",
                        f"{folder}/openapi.json", "--meta", "none", "--output-path",
                        f"{folder}/pted_client"], check=True, timeout=LONG_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sys.path.insert(0, folder)
        use_client(daemon)


def use_client(daemon):
    load = importlib.import_module
    types = load("pted_client.models")
    api = load("pted_client").Client(base_url=f"http://127.0.0.1:{daemon.port}")
    meta = load("pted_client.api.models.model").sync("add", client=api)
    expect("inputs", [(i.name, i.shape) for i in meta.inputs],
           [("input_0", [2, 3]), ("input_1", [2, 3])])
    tensors = [types.Tensor(name=name, datatype="FP32", shape=[2, 3], data=[1, 2, 3, 4, 5, 6])
               for name in ("input_0", "input_1")]
    infer = load("pted_client.api.calls.infer")
    answer = infer.sync("add", client=api, body=types.InferRequest(inputs=tensors))
    expect("sum", answer.outputs[0].data, [2, 4, 6, 8, 10, 12])
    refused = infer.sync("add", client=api, body=types.InferRequest(inputs=tensors[:1]))
    expect("refusal", "input_1" in refused.error, True)
    body = types.CallAddBody.from_dict({"args": [[[1, 2, 3]] * 2, [[1, 1, 1]] * 2]})
    called = load("pted_client.api.models.call_add").sync(client=api, body=body)
    expect("call", called.result, [[2, 3, 4]] * 2)
    request = types.ChatRequest.from_dict({
        "model": "chat", "temperature": 0,
        "messages": [{"role": "user", "content": "What is the capital of Japan?"}]})
    said = load("pted_client.api.language_models.chat").sync(client=api, body=request)
    expect("chat", said.choices[0].message.content, "The capital of Japan is Tokyo.")


CHECKS = (valid, client)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
