#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""KServe's first protocol, against a real daemon.

usage: run_predict.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import json
import sys
import tempfile

from run_console_pages import media_models, scene_png
from run_daemon import ADD, DIGITS
from run_http import MODELS, Client, Daemon, Report, build_request, expect
from run_media import missing_library

ROW = [[[i * 8.0 + j for j in range(8)] for i in range(8)]]


def ask(client, model, body, text=None):
    """The status; |text| is what stands in the error."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client.send(build_request("POST", f"/v1/models/{model}:predict", data))
    status = client.answer()
    if text and text not in json.loads(client.body)["error"]:
        expect("error", json.loads(client.body)["error"], text)
    return status


def result(client, model, body):
    """The result of the same call in the model's own structure."""
    client.send(build_request("POST", f"/v2/models/{model}/call", json.dumps(body).encode()))
    expect("call", client.answer(), 200)
    return json.loads(client.body)["result"]


def rows():
    """Rows of the only input, as many as there are."""
    with Daemon([DIGITS, ADD]) as daemon:
        client = Client(daemon.port)
        for count in (1, 3):
            wanted = result(client, "digits", {"args": [[ROW] * count]})
            expect("predict", ask(client, "digits", {"instances": [ROW] * count}), 200)
            expect("rows", json.loads(client.body)["predictions"], wanted)
        expect("a column", ask(client, "digits", {"inputs": [ROW]}), 200)
        expect("named", ask(client, "digits", {"inputs": {"input_0": [ROW]},
                                               "signature_name": "serving_default"}), 200)
        expect("the same", json.loads(client.body)["predictions"],
               result(client, "digits", {"args": [[ROW]]}))


def columns():
    """Several inputs by name."""
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        a, b = [[1, 2, 3], [4, 5, 6]], [[1, 1, 1], [2, 2, 2]]
        expect("predict", ask(client, "add", {"inputs": {"input_1": b, "input_0": a}}), 200)
        expect("sum", json.loads(client.body)["predictions"], [[2, 3, 4], [6, 7, 8]])


def named_rows():
    """Rows of several inputs by name, and of one: TensorFlow Serving's row format."""
    with Daemon([ADD, DIGITS, str(MODELS / "keywords.pte")]) as daemon:
        client = Client(daemon.port)
        instances = [{"input_0": [1, 2, 3], "input_1": [1, 1, 1]},
                     {"input_1": [2, 2, 2], "input_0": [4, 5, "NaN"]}]
        expect("predict", ask(client, "add", {"instances": instances}), 200)
        expect("sum", json.loads(client.body)["predictions"], [[2, 3, 4], [6, 7, "NaN"]])
        wanted = result(client, "digits", {"args": [[ROW, ROW]]})
        expect("one input", ask(client, "digits", {"instances": [{"input_0": ROW}] * 2}), 200)
        expect("rows", json.loads(client.body)["predictions"], wanted)
        row = {"input_0": [1, 2, 3, 4], "ids": 1, "positions": 0, "mask": True,
               "features.image": [[1, 2], [3, 4]], "features.scales.0": 1, "features.scales.1": 2}
        expect("columns", ask(client, "keywords", {
            "inputs": {name: [value] * 4 for name, value in row.items()}}), 200)
        wanted = json.loads(client.body)["predictions"]["logits"]
        expect("numbers as rows", ask(client, "keywords", {"instances": [row] * 4}), 200)
        found = json.loads(client.body)["predictions"]
        expect("the same rows", [entry["logits"] for entry in found], wanted)
        for body, text in (
                ([{"input_0": [1, 2, 3]}] * 2, "args[1]: missing"),
                ([{"input_0": [1, 2, 3], "input_1": [1, 1, 1]}, {"input_0": [1, 2, 3]}],
                 "args[1]: expected 2 rows, got 1"),
                ([{"input_0": [1, 2, 3]}, {"input_0": [1, 2, 3], "input_1": [1, 1, 1]}],
                 "instances[1][\"input_1\"]: an earlier row lacks this input"),
                ([{"input_0": [1, 2, 3]}, {"input_0": [1, 2]}],
                 "instances[1][\"input_0\"]: expected the shape of the first row, got [2]"),
                ([{"input_0": [[1], [2, 3]]}], "args[0][0][1]: "),
                ([{"input_0": [1, 2, 3], "input_1": [1, "x", 1]},
                  {"input_0": [1, 2, 3], "input_1": [1, 1, 1]}], "args[1][0][1]"),
                ([{"input_0": {"a": 1}}],
                 'instances[0]["input_0"]: expected a row of float32[2,3], got an object'),
                ([{"input_0": [1, 2, 3], "input_1": [1, 1, 1]}] * 3,
                 "args[0]: expected float32[2,3], got shape [3,3]"),
                ([{"nope": 1}], "instances[0]: "), ([{}], "missing"),
                ([{"input_0": [1, 2, 3]}, 5], "expected an object")):
            expect(str(body), ask(client, "add", {"instances": body}, text), 400)
        expect("twice", ask(client, "add", b'{"instances":[{"input_0":[1,2,3],"input_0":[1]}]}'),
               400)
        expect("goes on", ask(client, "digits", {"instances": [ROW]}), 200)


def media_rows():
    """A text needs no mask; files and texts are rows, too, by name or alone."""
    if missing_library():
        print(f"skipped: files and texts, lib{missing_library()} is not installed")
        return
    with tempfile.TemporaryDirectory() as folder, Daemon(media_models(folder)) as daemon:
        client = Client(daemon.port)
        wanted = result(client, "enc", {"kwargs": {"input_ids": "red green"}})[
            "last_hidden_state"]
        for body in ({"instances": ["red green"]}, {"inputs": "red green"},
                     {"instances": [{"input_ids": "red green"}]}):
            expect("texts", ask(client, "enc", body), 200)
            expect("the same", json.loads(client.body)["predictions"], wanted)
        picture = {"b64": base64.b64encode(scene_png()).decode()}
        expect("files", ask(client, "digits", {"instances": [picture, picture]}), 200)
        wanted = json.loads(client.body)["predictions"]
        for row in (picture, picture["b64"]):
            expect("files", ask(client, "digits", {"instances": [{"image": row}] * 2}), 200)
            expect("the same files", json.loads(client.body)["predictions"], wanted)
        pixels = [[[0] * 8] * 8]
        for rows_, text in (([{"image": pixels}, {"image": picture}], "a file or a text in place"),
                            ([{"image": picture}, {"image": pixels}], "numbers in place of")):
            expect("mixed", ask(client, "digits", {"instances": rows_}, text), 400)


def refusals():
    """Each mistake has its error, and the daemon goes on."""
    a = [[1, 2, 3], [4, 5, 6]]
    with Daemon([ADD, DIGITS]) as daemon:
        client = Client(daemon.port)
        for body, text in (
                ({"instances": [a]}, "the model has 2 inputs, expected \"inputs\""),
                ({"inputs": {"input_0": a}}, "missing"),
                ({"inputs": {"input_0": a, "nope": a}}, "inputs: "),
                ({"instances": [a], "inputs": {}}, "the model has 2 inputs"),
                ({"inputs": {"input_0": a, "input_1": a}, "instances": []}, "got both"),
                ({"rows": []}, "expected instances, inputs or parameters"),
                ({}, '"instances" or "inputs" is missing'),
                ([], "object"), (b"", ""), (b"{", ""), (b'{"inputs":{"', ""),
                ({"inputs": {"input_0": a, "input_1": [[1]]}}, ""),
                ({"inputs": {"input_0": "x", "input_1": a}}, "")):
            expect(str(body), ask(client, "add", body, text), 400)
        for instances in ([], [[]], [ROW, [[1]]], {"a": 1}, None, "x", [{"input_0": ROW}]):
            expect(str(instances)[:40], ask(client, "digits", {"instances": instances}) in
                   (200, 400), True)
        expect("unknown", ask(client, "nope", {"instances": [ROW]}), 404)
        client.send(build_request("GET", "/v1/models/digits:predict"))
        expect("no model has that name", client.answer(), 404)
        expect("twice", ask(client, "add", b'{"inputs":{"input_0":[[1,2,3],[4,5,6]],'
                            b'"input_0":[[1,2,3],[4,5,6]]}}'), 400)
        expect("goes on", ask(client, "digits", {"instances": [ROW]}), 200)


def several_outputs():
    """Several outputs are an object by name."""
    with Daemon([str(MODELS / "reduce_ops.pte")]) as daemon:
        client = Client(daemon.port)
        client.send(build_request("GET", "/v2/models/reduce_ops"))
        expect("metadata", client.answer(), 200)
        meta = json.loads(client.body)
        expect("there are several", len(meta["outputs"]) > 1, True)
        inputs = {}
        for entry in meta["inputs"]:
            value = 1
            for size in reversed(entry.get("example_shape", entry["shape"])):
                value = [value] * size
            inputs[entry["name"]] = value
        expect("predict", ask(client, "reduce_ops", {"inputs": inputs}), 200)
        expect("names", set(json.loads(client.body)["predictions"]),
               {entry["name"] for entry in meta["outputs"]})


def models():
    """The routes about models."""
    with Daemon([ADD, DIGITS]) as daemon:
        client = Client(daemon.port)
        client.send(build_request("GET", "/v1/models"))
        expect("models", (client.answer(), json.loads(client.body)["models"]),
               (200, ["add", "digits"]))
        client.send(build_request("GET", "/v1/models/add"))
        expect("status", client.answer(), 200)
        ready = json.loads(client.body)
        expect("ready", (ready["name"], ready["ready"]), ("add", True))
        client.send(build_request("GET", "/v1/models/nope"))
        expect("unknown", client.answer(), 404)


CHECKS = (rows, columns, named_rows, media_rows, refusals, several_outputs, models)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
