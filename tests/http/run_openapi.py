#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""/openapi.json before a public validator, and a client that a public generator makes of it.

Skipped without the Python packages openapi-spec-validator and openapi-python-client.

usage: run_openapi.py, with top_srcdir and top_builddir in the environment.
"""
import importlib
import io
import json
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager

import interpreter
import tones
from run_console_pages import media_models, scene_png
from run_daemon import ADD, DIGITS
from run_generate import CHAT
from run_http import MODELS, Daemon, Failure, Report, expect
from run_media import missing_library, png

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


def media():
    """Bodies that are files or texts, and results of people, for a model whose card has them."""
    if missing_library():
        print(f"skipped: files as bodies, lib{missing_library()} is not installed")
        return
    validate = importlib.import_module("openapi_spec_validator").validate
    with tempfile.TemporaryDirectory() as folder, Daemon(media_models(folder)) as daemon:
        document = fetch(daemon)
        validate(document)
        wanted = {"digits": ["image/*", "application/octet-stream", "multipart/form-data"],
                  "media.second": ["audio/*", "application/octet-stream", "multipart/form-data"],
                  "media.sums": ["multipart/form-data"],
                  "enc": ["text/plain", "multipart/form-data"], "enc.rows": []}
        for model, types in wanted.items():
            post = document["paths"][f"/v2/models/{model}/call"]["post"]
            expect(model, sorted(post["requestBody"]["content"]),
                   sorted(["application/json", *types]))
        post = document["paths"]["/v2/models/digits/call"]["post"]
        expect("top_k", {"$ref": "#/components/parameters/TopK"} in post["parameters"], True)
        form = document["paths"]["/v2/models/media.sums/call"]["post"]["requestBody"]["content"][
            "multipart/form-data"]["schema"]
        expect("fields", form["required"], ["picture", "sound", "bias"])
        form = document["paths"]["/v2/models/enc/call"]["post"]["requestBody"]["content"][
            "multipart/form-data"]["schema"]
        expect("filled ones may be left out", form["required"], ["input_ids"])
        for model, query in (("squares.boxes", ""), ("squares.map", ""), ("digits", ""),
                             ("digits", "?top_k=0")):
            match_schema(daemon, document, model, query)
        with generated(folder, document):
            send_media(daemon)


def match_schema(daemon, document, model, query):
    """What comes for a picture is what the document says."""
    path = f"/v2/models/{model}/call"
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}{path}{query}", scene_png(),
                                     {"Content-Type": "image/png"})
    with urllib.request.urlopen(request) as answer:
        result = json.load(answer)
    schema = document["paths"][path]["post"]["responses"]["200"]["content"]["application/json"][
        "schema"]
    jsonschema = importlib.import_module("jsonschema")
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(
        result)


def send_media(daemon):
    """A picture alone, two in a form, a form of several inputs; classes, boxes and a map."""
    load = importlib.import_module
    types, files = load("pted_client.models"), load("pted_client.types")
    api = load("pted_client").Client(base_url=f"http://127.0.0.1:{daemon.port}")

    def file(data):
        return files.File(payload=io.BytesIO(data), file_name="f")

    def call(model, body, **query):
        answer = load(f"pted_client.api.models.call_{model}").sync(
            client=api, body=body, **query)
        if isinstance(answer, types.Error):
            raise Failure(answer.error)
        return answer.result

    boxes, = call("squares_boxes", file(scene_png()))
    expect("boxes", [(type(box), box.label) for box in sorted(boxes, key=lambda box: box.index)],
           [(types.Box, "red"), (types.Box, "blue")])
    rows = call("squares_boxes", types.CallSquaresBoxesFilesBody(
        picture=[file(scene_png()), file(scene_png())]))
    expect("rows", [len(row) for row in rows], [2, 2])
    found, = call("squares_map", file(scene_png()))
    expect("map", [item.label for item in found.classes], ["nothing", "red", "blue"])
    best, = call("digits", file(scene_png()), top_k=3)
    expect("classes", [type(item) for item in best], [types.Class] * 3)
    sum_, = call("media_sums", types.CallMediaSumsFilesBody(
        picture=[file(png([(255, 255, 255)] * 4, 2))],
        sound=[file(tones.wav([0.5] * 160, 1000))], bias="[2]"))
    expect("sum", round(sum_), 12 * 255 + 80 + 2)
    wrong = load("pted_client.api.models.call_digits").sync(client=api, body=file(b"no picture"))
    expect("refusal", type(wrong), types.Error)


def signatures():
    """The schemas of each model's signature are schemas, and its example and answer match them."""
    validator = importlib.import_module("jsonschema").Draft202012Validator

    def get(path, body=None):
        with urllib.request.urlopen(f"http://127.0.0.1:{daemon.port}{path}", body) as answer:
            return json.load(answer)

    with Daemon(["--models", str(MODELS)]) as daemon:
        components = {"components": fetch(daemon)["components"]}
        names = get("/v2/models")["models"]
        expect("there are many", len(names) > 50, True)
        for name in names:
            signature = get(f"/v2/models/{name}/signature")
            schema = signature["schema"]
            validator.check_schema(schema)
            validator(schema).validate(signature["example"])
            result = get(f"/v2/models/{name}/call", json.dumps(signature["example"]).encode())
            text = json.dumps(signature["result_schema"]).replace("/openapi.json#", "#")
            validator.check_schema(json.loads(text))
            validator({**json.loads(text), **components}).validate(result["result"])


@contextmanager
def generated(folder, document):
    """The client that is made from |document| can be imported; others are forgotten."""
    with open(f"{folder}/openapi.json", "w", encoding="utf-8") as file:
        json.dump(document, file)
    subprocess.run([sys.executable, "-m", "openapi_python_client", "generate", "--path",
                    f"{folder}/openapi.json", "--meta", "none", "--output-path",
                    f"{folder}/pted_client"], check=True, timeout=LONG_S,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for name in [name for name in sys.modules if name.split(".")[0] == "pted_client"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def client():
    """The generated client calls a model, by tensors and by structure, and is told of mistakes."""
    with tempfile.TemporaryDirectory() as folder, Daemon([ADD, *CHAT]) as daemon:
        with generated(folder, fetch(daemon)):
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


CHECKS = (valid, client, media, signatures)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
