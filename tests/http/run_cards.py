#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cards of models against a real daemon: names, labels, parameters, first calls; which source
counts; cards that come, change and go while models are served; damaged cards; `pte card`.

usage: run_cards.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from load import wait_until
from run_daemon import expect_exit
from run_http import (BUILD, MODELS, PTED, SOURCE, TIMEOUT_S, Client, Daemon, Failure, Report,
                      build_request, expect)

try:
    import jsonschema
except ImportError:
    jsonschema = None

PTE = os.environ.get("PTE", str(BUILD / "pte"))
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ROW = [0.1 * (i % 7) for i in range(64)]
CARD = {"description": "digits in pictures of 8x8", "inputs": ["image"],
        "outputs": {"output_0": {"name": "scores", "description": "before softmax",
                                 "labels": DIGITS}},
        "warm_up": [{"shapes": {"input_0": [3, 1, 8, 8]}},
                    {"args": [{"dtype": "float32", "shape": [2, 1, 8, 8], "fill": 0.5}]}],
        "max_batch": 4, "running_count_max": 3}


def put(path, content):
    """Renames it into its place, as an operator does. |content|: a card, its text, or a file."""
    hidden = path.parent / f".{path.name}.new"
    if isinstance(content, Path):
        shutil.copy(content, hidden)
    else:
        hidden.write_text(content if isinstance(content, str) else json.dumps(content),
                          encoding="utf-8")
    os.replace(hidden, path)


@contextmanager
def folder_of(*models, **cards):
    """A folder with these models, and cards by the names of models."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "models"
        folder.mkdir()
        for model in models:
            put(folder / f"{model}.pte", MODELS / f"{model}.pte")
        for model, card in cards.items():
            put(folder / f"{model}.card.json", card)
        yield folder


def ask(port, path, body=None):
    """The status and the answer's JSON."""
    client = Client(port)
    content = b"" if body is None else json.dumps(body).encode()
    client.send(build_request("GET" if body is None else "POST", path, content))
    status = client.answer()
    client.close()
    return status, json.loads(client.body) if client.body else None


def infer(port, name, model="digits", rows=1, **members):
    return ask(port, f"/v2/models/{model}/infer", {"inputs": [
        {"name": name, "datatype": "FP32", "shape": [rows, 1, 8, 8], "data": ROW * rows}],
        **members})


def call(port, top_k=None, model="digits", **arguments):
    parameters = {} if top_k is None else {"parameters": {"top_k": top_k}}
    return ask(port, f"/v2/models/{model}/call", {**arguments, **parameters})


def picture(rows=1):
    return {"dtype": "float32", "shape": [rows, 1, 8, 8], "fill": 0.5}


def names_of(port, model="digits"):
    status, answer = ask(port, f"/v2/models/{model}")
    if status != 200:
        return status, answer["error"]
    return ([io["name"] for io in answer["inputs"]], [io["name"] for io in answer["outputs"]])


def state_of(port, model="digits"):
    _, rows = ask(port, "/v2/repository/index", {})
    row, = (row for row in rows if row["name"] == model)
    return row["state"], row.get("reason")


# ---- what a card says ----------------------------------------------------------------------------

def everything():
    """Names in requests, answers, metadata and errors; labels; parameters; calls at the start."""
    named = {**CARD, "warm_up": [*CARD["warm_up"], {"shapes": {"image": [1, 1, 8, 8]}},
                                 {"kwargs": {"image": picture(5)}}]}
    with folder_of("digits", digits=named) as folder, \
            Daemon(["--models", str(folder)]) as daemon:
        port = daemon.port
        _, meta = ask(port, "/v2/models/digits")
        expect("names", (meta["inputs"][0]["name"], meta["outputs"][0]["name"]),
               ("image", "scores"))
        expect("descriptions", (meta["description"], meta["outputs"][0]["description"]),
               ("digits in pictures of 8x8", "before softmax"))
        expect("labels", meta["outputs"][0]["label_count"], 10)
        _, config = ask(port, "/v2/models/digits/config")
        expect("config", config["input"][0]["name"], "image")
        _, signature = ask(port, "/v2/models/digits/signature")
        expect("signature", (signature["input_names"], signature["result_names"]),
               (["image"], ["scores"]))
        expect("their labels", signature["labels"], {"scores": DIGITS})
        for name in ("image", "input_0"):
            status, answer = infer(port, name)
            expect("infer", (status, answer["outputs"][0]["name"]), (200, "scores"))
        status, answer = infer(port, "image", outputs=[{"name": "output_0"}])
        expect("alias", (status, answer["outputs"][0]["name"]), (200, "output_0"))
        expect("unknown", infer(port, "picture")[1]["error"],
               "inputs[0].name: model 'digits' has no input 'picture', expected image")
        status, answer = infer(port, "image", outputs=[
            {"name": "scores", "parameters": {"classification": 1}}])
        score, index, label = answer["outputs"][0]["data"][0].split(":")
        expect("label", label, DIGITS[int(index)])
        expect("parameter", running_max(port), 3)
        plans = ask(port, "/v2/models/digits/stats")[1]
        expect("no request was counted before ours", plans["model_stats"][0]["inference_count"], 4)


def calls():
    """Positional arguments by name, and top_k."""
    with folder_of("digits", "add", "faults", digits=CARD, add={"inputs": ["left", "right"]}) \
            as folder, Daemon(["--models", str(folder)]) as daemon:
        port = daemon.port
        one, two = [[1, 1, 1]] * 2, [[2, 2, 2]] * 2
        by_position = call(port, model="add", args=[one, two])
        expect("position", by_position[0], 200)
        for arguments in ({"kwargs": {"left": one, "right": two}},
                          {"kwargs": {"right": two}, "args": [one]},
                          {"args": [], "kwargs": {"right": two, "left": one}}):
            expect("names", call(port, model="add", **arguments), by_position)
        for arguments, text in (
                ({"args": [one], "kwargs": {"left": two}},
                 'args[0]: given twice, at its place and as "left"'),
                ({"kwargs": {"left": two}, "args": [one, two]},
                 'args[0]: given twice, at its place and as "left"'),
                ({"args": [one], "kwargs": {"Right": two}},
                 'kwargs["Right"]: unknown member, expected "left", "right"'),
                ({"kwargs": {"left": one}}, 'kwargs["right"]: missing, expected float32[2,3]'),
                ({"args": [one]}, "args[1]: missing, expected float32[2,3]")):
            expect("refused", call(port, model="add", **arguments)[1]["error"], text)
        status, whole = call(port, args=[picture(2)])
        status, answer = call(port, 3, args=[picture(2)])
        expect("top_k", status, 200)
        for row, classes in zip(whole["result"], answer["result"]):
            order = sorted(range(10), key=lambda i: -row[i])[:3]
            expect("classes", classes, [{"label": DIGITS[i], "index": i, "score": row[i]}
                                        for i in order])
        expect("all", len(call(port, 1000, args=[picture()])[1]["result"][0]), 10)
        expect("without labels", call(port, 1, model="add", args=[one, two])[1]["result"],
               [[{"index": 0, "score": 3.0}]] * 2)
        for bad in (-1, 1.5, "1", 10 ** 9):
            expect("bad", call(port, bad, args=[picture()])[0], 400)
        status, answer = ask(port, "/v2/batch", [
            {"model_name": "digits", "kwargs": {"image": picture()}, "parameters": {"top_k": 1}}])
        expect("list", answer[0]["result"][0][0]["label"] in DIGITS, True)


def structures():
    """Names of keyword arguments and of entries of dictionaries are the keys of a `call`."""
    card = {"inputs": {"input_0": "rows", "positions": "places", "mask": "valid",
                       "features.image": "features.picture", "features.scales.0": "first_scale"},
            "outputs": {"logits": "kept", "kept": "count", "boxes.0": "corners"}}
    forward = {"args": [[[1, 2, 3, 4]], {"ids": [1], "positions": [0]}],
               "kwargs": {"mask": [True], "features": {"image": [[[1, 2], [3, 4]]],
                                                       "scales": [[1] * 4, [2] * 4]}}}
    renamed = {"args": [[[1, 2, 3, 4]], {"ids": [1], "places": [0]}],
               "kwargs": {"valid": [True], "features": {"picture": [[[1, 2], [3, 4]]],
                                                        "scales": [[1] * 4, [2] * 4]}}}
    by_name = {"kwargs": {"rows": [[1, 2, 3, 4]], "ids": [1], "places": [0], "valid": [True],
                          "features.picture": [[[1, 2], [3, 4]]], "first_scale": [1] * 4,
                          "features.scales.1": [2] * 4}}
    with folder_of("keywords") as plain, Daemon(["--models", str(plain)]) as daemon:
        status, before = call(daemon.port, model="keywords", **forward)
        expect("without a card", (status, before.get("error")), (200, None))
    wanted = {"boxes": before["result"]["boxes"], "count": before["result"]["kept"],
              "kept": before["result"]["logits"]}
    with folder_of("keywords", keywords=card) as folder, \
            Daemon(["--models", str(folder)]) as daemon:
        port = daemon.port
        for arguments in (renamed, by_name):
            expect("result", call(port, model="keywords", **arguments), (200, {"result": wanted}))
        for old, text in (
                ("mask", 'kwargs["mask"]: unknown member, expected "features", "valid", "rows", '
                         '"ids", "places", "features.picture", "first_scale", "features.scales.1"'),
                ("image", 'kwargs["image"]: unknown member')):
            _, answer = call(port, model="keywords", args=renamed["args"],
                             kwargs={**renamed["kwargs"], old: [True]})
            expect("refused", answer["error"][:len(text)], text)
        for arguments, text in (
                ({**renamed, "kwargs": {**renamed["kwargs"], "valid": ["x"]}},
                 'kwargs["valid"][0]'),
                ({**renamed, "kwargs": {"valid": [True]}},
                 'kwargs["features"]["picture"]: missing'),
                ({**renamed, "kwargs": {**renamed["kwargs"], "places": [0]}},
                 'args[1]["places"]: given twice, at its place and as "places"')):
            _, answer = call(port, model="keywords", **arguments)
            expect("place", answer["error"][:len(text)], text)
        _, signature = ask(port, "/v2/models/keywords/signature")
        expect("sip", signature["readable"]["sip"],
               '[r0, {"ids": r1, "places": r2}, {"features": {"picture": r4, "scales": [r5, r6]}, '
               '"valid": r3}] -> {"boxes": [r1, r2], "count": r3, "kept": r0}')
        expect("example", sorted(signature["example"]["kwargs"]), ["features", "valid"])
        expect("it works", call(port, model="keywords", **signature["example"])[0], 200)
        document = ask(port, "/openapi.json")[1]["paths"]["/v2/models/keywords/call"]["post"]
        answer = document["responses"]["200"]["content"]["application/json"]["schema"]
        expect("openapi", sorted(answer["properties"]["result"]["properties"]),
               ["boxes", "count", "kept"])
        if jsonschema:
            check = jsonschema.Draft202012Validator(signature["schema"]).is_valid
            expect("schema", (check(renamed), check(forward)), (True, False))
        _, batch = ask(port, "/v2/batch", [
            {"id": "a", "model_name": "keywords", **renamed},
            {"model_name": "keywords", "args": [{"$from": {"id": "a", "output": ["kept"]}},
                                                renamed["args"][1]], "kwargs": renamed["kwargs"]}])
        expect("path", [row["status"] for row in batch], [200, 200])


def methods():
    """Of a program with several methods; the default one may be named, too."""
    card = {"methods": {"encode": {"inputs": ["text"], "description": "to a vector",
                                   "warm_up": [{"shapes": {"text": [2, 10]}}]},
                        "decode": {"inputs": {"input_1": "scale"}}}}
    with folder_of("methods", methods=card) as folder, \
            Daemon(["--models", str(folder)]) as daemon:
        expect("encode", names_of(daemon.port, "methods.encode"), (["text"], ["output_0"]))
        expect("decode", names_of(daemon.port, "methods.decode")[0], ["input_0", "scale"])
        expect("what", ask(daemon.port, "/v2/models/methods.encode")[1]["description"],
               "to a vector")


def pipelines():
    """Steps are wired by the card's names; results keep the labels of the step that gives them."""
    document = {"both": {"steps": [{"model": "digits", "inputs": {"image": {"input": "picture"}}}],
                         "outputs": [{"name": "answer", "from": 0, "output": "scores"}]},
                "plain": {"steps": [{"model": "digits", "inputs": [{"input": 0}]}]}}
    with folder_of("digits", digits=CARD) as folder:
        path = folder.parent / "pipelines.json"
        put(path, document)
        with Daemon(["--models", str(folder), "--pipeline", str(path)]) as daemon:
            expect("names", names_of(daemon.port, "both"), (["picture"], ["answer"]))
            expect("names of steps", names_of(daemon.port, "plain"), (["image"], ["scores"]))
            _, answer = call(daemon.port, 1, model="both", kwargs={"picture": picture()})
            expect("labels", answer["result"]["answer"][0][0]["label"] in DIGITS, True)
            _, answer = infer(daemon.port, "image", model="plain", outputs=[
                {"name": "scores", "parameters": {"classification": 1}}])
            expect("label", answer["outputs"][0]["data"][0].split(":")[2] in DIGITS, True)


# ---- sources -------------------------------------------------------------------------------------

def label_of(port):
    _, answer = call(port, 1, args=[picture()])
    return answer["result"][0][0].get("label", "")


def running_max(port):
    return ask(port, "/v2/models/digits/config")[1]["instance_group"][0]["count"]


def sources():
    """The command line counts more than pted.json, which counts more than the card."""
    card = {**CARD, "running_count_max": 11}
    with folder_of("digits", digits=card) as folder:
        top = folder.parent
        (top / "lines").write_text("".join(f"line {i}\n" for i in range(10)))
        document = top / "pted.json"

        def start(model, *arguments, **settings):
            put(document, {"model_folders": ["models"], "models": {"digits": model}, **settings})
            return Daemon(["--config", str(document), *arguments])
        with start({"max_batch": 2}) as daemon:
            expect("card", names_of(daemon.port), (["image"], ["scores"]))
            expect("card", label_of(daemon.port) in DIGITS, True)
            expect("running", running_max(daemon.port), 11)
        with start({"inputs": ["x"]}, running_count_max=12) as daemon:
            expect("document", names_of(daemon.port), (["x"], ["scores"]))
            expect("running of all", running_max(daemon.port), 12)
        with start({"running_count_max": 13}, running_count_max=12) as daemon:
            expect("running of one", running_max(daemon.port), 13)
        with start({}, "--running-count-max", "14") as daemon:
            expect("running of the command line", running_max(daemon.port), 14)
        with start({"labels": [f"inline {i}" for i in range(10)]}) as daemon:
            expect("inline", label_of(daemon.port).startswith("inline "), True)
        with start({"labels": "lines"}) as daemon:
            expect("file", label_of(daemon.port).startswith("line "), True)
        own = {"outputs": [{"labels": [f"own {i}" for i in range(10)]}], "labels": "lines"}
        with start(own) as daemon:
            expect("an output's own", label_of(daemon.port).startswith("own "), True)
        with start(own, "--labels", f"digits={top}/lines") as daemon:
            expect("option", label_of(daemon.port).startswith("line "), True)
        put(top / "other.json", {"inputs": ["other"], "labels": "lines"})
        with start({"card": "other.json"}) as daemon:
            expect("another card", names_of(daemon.port), (["other"], ["output_0"]))
            expect("relative to the card", label_of(daemon.port).startswith("line "), True)
        with start({}, "--card", f"digits={top}/other.json") as daemon:
            expect("by option", names_of(daemon.port)[0], ["other"])
        put(document, {"models": {"nobody": {"inputs": ["x"]}}})
        expect_exit(64, "no model file is served as 'nobody'", "--config", str(document),
                    str(folder / "digits.pte"))
    expect_exit(66, "none.json: No such file or directory", str(MODELS / "digits.pte"),
                "--card=digits=/none.json")


def check_config():
    """The document's own members are checked without models, with their places."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "pted.json"
        path.write_text('{"models": {"a": {"path": "a.pte",\n  "inputs": [{"nam": "x"}]},\n'
                        ' "b": {"device": "cpu"}, "c": {"instances": 2},\n'
                        ' "d": {"warm_up": {}}, "e": {"descripton": "x"}}}')
        done = subprocess.run([PTED, "--config", str(path), "--check-config"], check=False,
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        lines = [line for line in done.stderr.replace(name + "/", "").splitlines()
                 if "No such file" not in line]  # of the programs
        expect("lines", [line.split(": ", 2)[:2] for line in lines], [
            ["pted.json:2:22", "models.a.inputs[0].nam"], ["pted.json:3:18", "models.b.device"],
            ["pted.json:3:45", "models.c.instances"], ["pted.json:4:19", "models.d.warm_up"],
            ["pted.json:4:44", "models.e.descripton"]])
        expect("unknown", lines[0].split(": ", 2)[2],
               "unknown member, expected name, description, image, sound or text")
        expect("near", lines[4].endswith("did you mean 'description'?"), True)


# ---- reloads -------------------------------------------------------------------------------------

def reloads():
    """A card that comes, changes, is damaged and goes is followed; requests go on meanwhile."""
    with folder_of("digits") as folder, \
            Daemon(["--models", str(folder), "--watch", "--admin-listen", "127.0.0.1:0"]) as daemon:
        port, path = daemon.port, folder / "digits.card.json"
        expect("no card", names_of(port), (["input_0"], ["output_0"]))
        put(path, CARD)
        wait_until("the card's names", lambda: names_of(port) == (["image"], ["scores"]))
        put(path, {**CARD, "inputs": ["picture"]})
        wait_until("other names", lambda: names_of(port)[0] == ["picture"])
        put(path, {"inputs": [], "outputs": 1})
        wait_until("a reason", lambda: (state_of(port)[1] or "").startswith("digits.card.json:1:"))
        expect("the old one goes on", state_of(port),
               ("READY", "digits.card.json:1:27: outputs: expected a list or an object, "
                         "got a number"))
        daemon.wait_for("model files: 0 loaded, 1 failed, 0 gone, 0 unchanged; serving 1 of 1")
        expect("still called", infer(port, "picture")[0], 200)
        status, answer = ask(daemon.admin_port(), "/v2/repository/models/digits/load", {})
        expect("by name", (status, "digits.card.json:1:27: outputs" in answer["error"]),
               (400, True))
        path.unlink()
        wait_until("names of the program", lambda: names_of(port) == (["input_0"], ["output_0"]))
        expect("no reason", state_of(port), ("READY", None))


def hangup():
    """SIGHUP follows members of pted.json, and cards beside models that were given one by one."""
    with folder_of("digits", digits=CARD) as folder:
        document = folder.parent / "pted.json"

        def write(**model):
            put(document, {"models": {"digits": {"path": "models/digits.pte", **model}}})
        write()
        with Daemon(["--config", str(document)]) as daemon:
            port = daemon.port
            expect("card", names_of(port)[0], ["image"])
            write(inputs=["x"])
            daemon.process.send_signal(signal.SIGHUP)
            wait_until("members", lambda: names_of(port)[0] == ["x"])
            write(inputs=["y"])
            daemon.process.send_signal(signal.SIGHUP)
            wait_until("other members", lambda: names_of(port)[0] == ["y"])
            write()
            put(folder / "digits.card.json", {"inputs": ["z"]})
            daemon.process.send_signal(signal.SIGHUP)
            wait_until("the new card", lambda: names_of(port)[0] == ["z"])


# ---- damaged cards -------------------------------------------------------------------------------

HUGE = 9 << 20
DAMAGED = (
    ("", "1:1: expected a value"),
    ("[]", "1:1: expected an object, got an array"),
    ('{"inputs": ["a"', "expected ',' or ']', got the end of the file"),
    ('{"inputs": ["a"], "inputs": ["b"]}', "1:29: inputs: the key repeats in its object"),
    ("[" * 10000, "1:65: the values are nested deeper than 64"),
    (" " * HUGE, "more than 8388608 bytes"),
    ('{"description": "\ud800"}', None),
    ('{"inputs": ["a", "b"]}', "1:12: inputs: the program has 1, got 2"),
    ('{"inputs": ["input_1"]}', "1:13: inputs[0]: expected a name"),
    ('{"inputs": ["a b"]}', "1:13: inputs[0]: expected a name"),
    ('{"inputs": {"x": "y"}}', "1:18: inputs.x: the program has no such input, expected input_0"),
    ('{"inputs": [{"labels": ["a"]}]}',
     "unknown member, expected name, description, image, sound or text"),
    ('{"outputs": [{"labels": ["a", "b"]}]}',
     "1:25: outputs[0].labels: 'output_0' has 10 classes, got 2 labels"),
    ('{"outputs": [{"labels": []}]}', "expected labels, got an empty list"),
    ('{"outputs": [{"labels": [1]}]}', "outputs[0].labels[0]: expected a string, got a number"),
    ('{"outputs": [{"labels": "none"}]}', "none: No such file or directory"),
    ('{"labels": ["a"]}', "labels: there are 1 labels, and no output has as many classes"),
    ('{"methods": {"encode": {}}}', "methods.encode: the program has no such method"),
    ('{"methods": {"forward": {}}, "inputs": ["a"]}',
     "inputs: method 'forward' has an entry in \"methods\", too"),
    ('{"methods": {"forward": {"max_batch": 1}}}', "expected a member of a method"),
    ('{"max_batch": 65}', "expected a whole number from 0 to 64, got 65"),
    ('{"precision": "int3"}', "expected exact, fast or bf16"),
    ('{"cache": "int4"}', "1:11: cache: expected float or int8, got 'int4'"),
    ('{"version_count_max": 1}', "a card is about one version"),
    ('{"instances": 2}', "there are no instances"),
    ('{"device": "vulkan:0"}', "a model has no device of its own"),
    ('{"warm_up": [{}]}', "warm_up[0]: args[0]: missing"),
    ('{"warm_up": [{"shapes": {"y": [1]}}]}', "there is no tensor 'y', expected input_0"),
    ('{"warm_up": [{"shapes": {"input_0": [1, 2, 8, 8]}}]}', "warm_up[0]: "),
    ('{"warm_up": [{"shapes": {"input_0": [400, 1, 8, 8]}}]}', "warm_up[0]: "),
    ('{"warm_up": [{"args": [[[["x"]]]]}]}', "warm_up[0]: args[0]"),
    ('{"warm_up": [{"args": [], "shapes": {}}]}', "got both"),
    ('{"warm_up": [{"args": [{"dtype": "float32", "shape": [1, 1, 8, 8], "binary_data_size": 256}]'
     '}]}', "warm_up[0]: "),
)


def damaged():
    """Each is a reason in the index and the log; the other model goes on."""
    with folder_of("digits", "add") as folder, \
            Daemon(["--models", str(folder), "--watch", "--admin-listen", "127.0.0.1:0"]) as daemon:
        admin, path = daemon.admin_port(), folder / "digits.card.json"
        for text, reason in DAMAGED:
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            status, answer = ask(admin, "/v2/repository/models/digits/load", {})
            if status != 400 or "digits.card.json" not in answer["error"] or \
                    (reason or "") not in answer["error"]:
                raise Failure(f"{text[:60]}: {status} {answer}, expected {reason}")
            expect("add", ask(daemon.port, "/v2/models/add/ready")[0], 200)
        path.write_text('{"cache": "int8"}', encoding="utf-8")
        expect("no caches", ask(admin, "/v2/repository/models/digits/load", {}),
               (400, {"error": "cache int8: the program has no mutable buffer that is written by "
                               "rows and read by attention"}))
        path.unlink()
    with folder_of("digits", "add", digits='{"input": []}') as folder, \
            Daemon(["--models", str(folder), "--model-bytes-max", "1G"]) as daemon:
        expect("index", state_of(daemon.port),
               ("UNAVAILABLE", "digits.card.json:1:11: input: expected a member of a card, got an "
                               "unknown one; did you mean 'inputs'?"))
        daemon.wait_for("model file .*digits.pte: digits.card.json:1:11: input: ")
        expect("add", state_of(daemon.port, "add"), ("READY", None))
        expect_exit(65, "digits.card.json:1:11: input", str(folder / "digits.pte"))


def pipes():
    """A fifo in a folder of models delays nobody."""
    with folder_of("add", "digits") as folder:
        os.mkfifo(folder / "add.card.json")
        os.mkfifo(folder / "tokenizer.json")
        shutil.copy(MODELS / "chat" / "model.pte", folder / "chat.pte")
        with Daemon(["--models", str(folder)]) as daemon:
            expect("digits", state_of(daemon.port), ("READY", None))
            for name, pipe in (("add", "add.card.json"), ("chat", "tokenizer.json")):
                state, reason = state_of(daemon.port, name)
                expect(name, (state, reason.partition(":")[0]), ("UNAVAILABLE", pipe))


# ---- the schema, and pte -------------------------------------------------------------------------

def schema():
    """The schema takes what the daemon takes, as far as no program is needed."""
    text = json.loads((SOURCE / "conf" / "pted-card.schema.json").read_text())
    if not jsonschema:
        print("schema: the package jsonschema is not here, so the schema is only parsed")
        return
    jsonschema.Draft202012Validator.check_schema(text)
    validator = jsonschema.Draft202012Validator(text)
    in_document = jsonschema.Draft202012Validator(
        json.loads((SOURCE / "conf" / "pted.schema.json").read_text()))
    good = [CARD, {}, {"inputs": [None, "a.b:c"]}, {"labels": "file"}, {"precision": "bf16"},
            {"methods": {"m": {"warm_up": []}}}, {"warm_up": [{"args": [], "kwargs": {}}]},
            {"cache": "float"}]
    bad = [json.loads(text) for text in (
        '{"input": []}', '{"inputs": ["input_1"]}', '{"inputs": ["-a"]}', '{"inputs": 1}',
        '{"inputs": ["a..b"]}', '{"inputs": [{"labels": ["a"]}]}', '{"outputs": {"x": 1}}',
        '{"outputs": [{"labels": []}]}', '{"max_batch": 65}', '{"device": "cpu"}',
        '{"methods": {"m": {"max_batch": 1}}}', '{"methods": {"m": {"labels": ["a"]}}}',
        '{"warm_up": [{"x": 1}]}', '{"warm_up": [{"args": [], "shapes": {}}]}', '{"labels": [1]}',
        '{"labels": 1}', '{"description": null}', '{"cache": true}', '{"cache": "f16"}')]
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "pted.json"
        for is_good, cards in ((True, good), (False, bad)):
            for card in cards:
                document = {"models": {"m": card}}
                path.write_text(json.dumps(document))
                done = subprocess.run([PTED, "--check-config", "--config", str(path)],
                                      capture_output=True, check=False, timeout=TIMEOUT_S)
                expect(str(card), (validator.is_valid(card), in_document.is_valid(document),
                                   done.returncode in (0, 66)), (is_good,) * 3)  # there is no file
    validator.validate({"$schema": "x"})
    for card in ({"version_count_max": 1}, []):
        expect(str(card), validator.is_valid(card), False)


def pte(*arguments, status=0):
    done = subprocess.run([PTE, *arguments], capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_S)
    if done.returncode != status:
        raise Failure(f"pte {arguments}: status {done.returncode}, {done.stderr}")
    return done.stdout if status == 0 else done.stderr


def warned(*arguments, status=0):
    """What `pte card --check` says on stderr."""
    done = subprocess.run([PTE, "card", "--check", *arguments], capture_output=True, text=True,
                          check=False, timeout=TIMEOUT_S)
    expect(f"status of {arguments}: {done.stderr}", done.returncode, status)
    return done.stderr


def check_finds_what_the_daemon_refuses():
    """In the daemon's words; and it warns of what few pictures pass."""
    def image(**members):
        return {"inputs": [{"name": "image", "image": {"colors": "gray", **members}}]}
    with folder_of("digits") as folder:
        card, program = folder / "digits.card.json", str(folder / "digits.pte")
        rows = ((image(resize=9), 65, "side becomes 9, the program takes at most [8, 8]"),
                (image(resize=[9, 8]), 65, "height: expected at most 8, got 9"),
                (image(), 0, ""), (image(resize=6), 0, ""), (image(resize=8), 0, ""),
                (image(resize=6, crop=8), 0, "the crop is larger than the shorter side"),
                (image(resize=8, crop=8), 0, ""), (image(resize=[8, 8]), 0, ""),
                (image(crop=8), 0, ""), (image(resize=8, fit="inside"), 0, ""))
        for content, status, text in rows:
            put(card, content)
            said = warned(str(card), program, status=status)
            expect(f"{content}: {said}", text in said if text else said == "", True)
            if status:
                expect("the same words", said.removeprefix("pte: ").strip() in refusal(folder),
                       True)
    with folder_of("unet") as folder:  # pictures of one size
        card, program = folder / "unet.card.json", str(folder / "unet.pte")
        crops = "; with a resize to [24, 20], or with a crop, all are\n"
        rows = (({}, f"only pictures of 24 x 20 are taken{crops}"),
                ({"resize": 20}, f"only pictures with the proportions of 24 x 20 are taken{crops}"),
                ({"resize": [24, 20]}, ""), ({"crop": [24, 20]}, ""),
                ({"resize": 24, "crop": [24, 20]}, ""))
        for members, text in rows:
            put(card, {"inputs": [{"name": "image", "image": members}]})
            said = warned(str(card), program)
            place = "pte card: warning: unet.card.json:1:40: inputs[0].image: " if text else ""
            expect(f"{members}", said, place + text)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(MODELS / "encoder" / "model.pte", folder / "enc.pte")
        card, program = folder / "enc.card.json", str(folder / "enc.pte")
        put(card, {"inputs": {"input_ids": {"text": {}}}})
        said = warned(str(card), program, status=65)
        expect("no tokenizer", said,
               "pte: input 'input_ids': text: there is no tokenizer beside the program\n")
        expect("the same words", said.removeprefix("pte: ").strip() in refusal(folder), True)
        expect("another place", warned(str(card), "--tokenizer", str(MODELS / "encoder"), program),
               "")
        expect("without --check", "only with --check" in pte("card", "--tokenizer", name, program,
                                                             status=64), True)


def refusal(folder):
    """Why pted does not load the model of the folder."""
    with Daemon(["--models", str(folder)]) as daemon:
        return ask(daemon.port, "/v2/repository/index", {})[1][0]["reason"]


def check_order(folder):
    """The card and the program in each other's place."""
    program = str(folder / "digits.pte")
    text = pte("card", "--check", program, "digits.card.json", status=64)
    expect("the order", "the order is --check CARD FILE.pte" in text or text, True)


def check_proposals(folder):
    """What a first card says of pictures holds without its slashes; labels are the program's."""
    put(folder / "answers.pte", MODELS / "answers.pte")
    for name, wanted in (("digits", '{"resize": [8, 8]}'),
                         ("answers", '{"resize": [12, 16], "mean": [0.485, 0.456, 0.406], '
                                     '"std": [0.229, 0.224, 0.225]}')):
        program, card = str(folder / f"{name}.pte"), folder.parent / f"{name}.json"
        text = pte("card", program)
        expect(f"an image in {name}", f'// , "name": "image", "image": {wanted}\n' in text, True)
        put(card, text)
        expect("as a comment", pte("card", "--check", str(card), program), "")
        put(card, text.replace('// , "name"', ', "name"'))
        if ctypes.util.find_library("png16"):
            expect("without slashes", pte("card", "--check", str(card), program), "")
        names = '"labels": ["zero", "the \\"one\\"", "two", '
        expect(f"labels of {name}", names in text, name == "answers")
    expect("no picture", "image" in pte("card", str(folder / "mlp.pte")), False)
    (folder / "answers.pte").unlink()


def first_cards():
    """`pte card` writes a card of every model that its own check and a daemon take."""
    names = ("digits", "methods", "keywords", "odd_keys", "scalars", "lists", "mlp", "tally")
    with folder_of(*names) as folder:
        for name in names:
            program, card = folder / f"{name}.pte", folder / f"{name}.card.json"
            before = pte("inspect", str(program))
            text = pte("card", str(program))
            card.write_text(text)
            expect("nothing to say", pte("card", "--check", str(card), str(program)), "")
            expect("the same names", pte("inspect", str(program)), before)
        check_proposals(folder)
        check_order(folder)
        expect("constants", '// "get_width": 10\n' in (folder / "methods.card.json").read_text(),
               True)
        with Daemon(["--models", str(folder)]) as daemon:
            daemon.wait_for(r"serving (\d+) of \1 models")
        card = folder / "digits.card.json"
        put(card, CARD)
        program = str(folder / "digits.pte")
        expect("inspect", "image  float32" in pte("inspect", program), True)
        text = pte("run", "--shape", "image=2x1x8x8", program)
        expect("run", "scores: float32" in text, True)
        expect("labels", '5 "five": ' in text, True)
        other = folder.parent / "other.json"
        put(other, {"inputs": ["other"]})
        expect("another", "where NAME is other\n" in pte(
            "run", "--card", str(other), "--input", "x=1", program, status=64), True)
        put(card, {"warm_up": [{"args": [1]}]})
        expect("check", pte("card", "--check", str(card), program, status=65),
               "pte: digits.card.json:1:14: warm_up[0]: args[0]: expected float32[?,1,?,?], "
               "got a number\n")
        put(card, {"inputs": 1})
        expect("run, too", pte("run", program, status=65).split(": ")[1], "digits.card.json:1:12")
        put(card, CARD)
        with Daemon(["--models", str(folder)]) as daemon:
            url = f"http://127.0.0.1:{daemon.port}/digits"
            arguments = ("--shape", "image=2x1x8x8")
            expect("a server's labels", pte("run", url, *arguments),
                   pte("run", program, *arguments))
    expect("usage", "expected FILE" in pte("card", status=64), True)
    pte("card", "/none.pte", status=66)


CHECKS = (everything, calls, structures, methods, pipelines, sources, check_config, reloads, hangup,
          damaged, pipes, schema, first_cards, check_finds_what_the_daemon_refuses)


def main():
    report = Report()
    for check in CHECKS:
        report.run(check.__name__, check)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
