#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pipelines: wrong files, load, lack of memory, deadlines, and clients that disconnect.

tests/models/run_pipelines.py tests the results of pipelines.

usage: run_pipelines.py, with top_srcdir and top_builddir in the environment.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

import load
from load import (ADD, DEEP, FOUND, SIZES, in_threads, ring_option, send, send_hold,
                  wait_until)
from run_daemon import expect_exit
from run_http import MODELS, SOURCE, Client, Daemon, Failure, Report, build_request, expect

THREE_DEEP = {"three": {"steps": [
    {"model": "deep", "inputs": [{"input": 0}]},
    {"model": "deep", "inputs": [{"from": 0, "output": 0}]},
    {"model": "deep", "inputs": [{"from": 1, "output": 0}]}]}}
STATUSES = {200, 429, 504}
KEYWORDS, FAULTS = str(MODELS / "keywords.pte"), str(MODELS / "faults.pte")


class Pipelines(tempfile.TemporaryDirectory):
    """A file of pipelines. Entering it returns the arguments with which pted serves it."""

    def __init__(self, pipelines, *arguments):
        super().__init__()
        self.path = Path(self.name) / "pipelines.json"
        self.path.write_text(pipelines if isinstance(pipelines, str) else json.dumps(pipelines))
        self.arguments = [*arguments, "--pipeline", str(self.path)]

    def __enter__(self):
        super().__enter__()
        return self.arguments


# ---- files --------------------------------------------------------------------------------------

def refuse(text, document, *models, status=64):
    with Pipelines(document, "--listen", "127.0.0.1:0", *models) as arguments:
        expect_exit(status, text, *arguments)


def step(model, *inputs, **members):
    return {"model": model, "inputs": list(inputs), **members}


IN0, IN1, FROM0 = {"input": 0}, {"input": 1}, {"from": 0, "output": 0}


def wrong_documents():
    for text, document in (
            ("pipelines.json: expected a key, got the end of the file (line 1, column 2)", "{"),
            ("pipelines.json: expected a value, got the end of the file (line 1, column 1)", ""),
            ("pipelines.json: expected an object, got an array (line 1, column 1)", "[]"),
            ("pipelines.json: expected the end of the file, got 'x' (line 2, column 2)",
             '{"p": {"steps": []}}\n x'),
            ("pipelines.json: expected ',' or '}', got '\"' (line 3, column 1)",
             '// Two pipelines.\n{"p": {"steps": []} /* no comma */\n"q": {"steps": []}}'),
            ("pipelines.json: the comment has no end (line 1, column 4)", "{} /* }"),
            ("pipelines.json: p: expected an object, got a number", {"p": 1}),
            ("pipelines.json: p: expected steps, got none", {"p": {"inputs": []}}),
            ('p.outputs: expected one result or more; without "outputs" the pipeline has those of '
             "its last step", {"p": {"steps": [step("add", IN0, IN1)], "outputs": []}}),
            ("pipeline 'p': step 0 (add): input 'input_0': expected float32[2,3], got nothing",
             {"p": {"steps": [{"model": "add", "inputs": {}}]}}),
            ("pipeline 'p': expected 1 to 64 steps, got 0", {"p": {"steps": []}}),
            ("p.steps[64]: expected at most 64 steps",
             {"p": {"steps": [step("add", IN0, IN1)] * 65}}),
            ("p.steps[0]: expected model and inputs, got no inputs",
             {"p": {"steps": [{"model": "add"}]}}),
            ("expected model and inputs, got no model", {"p": {"steps": [{"inputs": []}]}}),
            ("p.steps[0].more: unknown member, expected name, model, method, version or "
             "inputs",
             {"p": {"steps": [step("add", IN0, IN1, more=1)]}}),
            ("p.steps[0].inputs[0].in: unknown member, expected input, or from and output",
             {"p": {"steps": [step("add", {"in": 0}, IN1)]}}),
            ("expected input, or from and output",
             {"p": {"steps": [step("add", {"input": 0, "output": 0}, IN1)]}}),
            ("expected input, or from and output", {"p": {"steps": [step("add", {}, IN1)]}}),
            ("p.steps[0].inputs[0].input: expected a whole number from 0 to 4294967295, got -1",
             {"p": {"steps": [step("add", {"input": -1}, IN1)]}}),
            ("p.steps[0].inputs[1].input: expected a whole number from 0 to 4294967295, got "
             "4294967296", {"p": {"steps": [step("add", IN0, {"input": 1 << 32})]}}),
            ("p.steps[0].inputs[1].input: expected a whole number from 0 to 4294967295, got 1.0",
             {"p": {"steps": [step("add", IN0, {"input": 1.0})]}}),
            ("p.steps[0].version: expected a whole number, got a string",
             {"p": {"steps": [step("add", IN0, IN1, version="1")]}}),
            ("p.steps[0].model: expected a string, got null",
             {"p": {"steps": [step(None, IN0, IN1)]}}),
            # A typo must not change the results without an error.
            ("pipelines.json: p.output: unknown member, expected inputs, steps, outputs or "
             "description", {"p": {"steps": [step("add", IN0, IN1)], "output": []}}),
            ("p.outputs[0].nam: unknown member, expected from, output or name",
             {"p": {"steps": [step("add", IN0, IN1)], "outputs": [{**FROM0, "nam": "x"}]}}),
            ("p.outputs[0].input: unknown member, expected from",
             {"p": {"steps": [step("add", IN0, IN1)], "outputs": [IN0]}}),
            ("p.steps[0].inputs[1].name: unknown member, expected input, or from and output",
             {"p": {"steps": [step("add", IN0, {"input": 1, "name": "x"})]}}),
            ("p.steps[0].inputs.input_0.in: unknown member, expected",
             {"p": {"steps": [{"model": "add", "inputs": {"input_0": {"in": 0}}}]}}),
            ("p.inputs[1]: expected a string, got a number",
             {"p": {"inputs": ["x", 1], "steps": [step("add", IN0, IN1)]}}),
            ("p.steps[1].inputs[0].output: expected an output's number, its name or its path, got "
             "null", {"p": {"steps": [step("add", IN0, IN1),
                                      step("add", {"from": 0, "output": None}, IN1)]}}),
            ("p.steps[1].inputs[0].output[1]: expected a whole number from 0 to "
             "9223372036854775807, got -1",
             {"p": {"steps": [step("add", IN0, IN1),
                              step("add", {"from": 0, "output": ["a", -1]}, IN1)]}}),
            ("p.steps: the key repeats in its object (line 1, column 30)",
             '{"p": {"steps": [], "steps": []}}')):
        refuse(text, document, ADD)
    for text, output in (("expected a path of at most 64 steps", [0] * 65),
                         ("expected at most 128 bytes of text, got 129", "a" * 129)):
        refuse(f"p.steps[1].inputs[0].output: {text}",
               {"p": {"steps": [step("add", IN0, IN1),
                                step("add", {"from": 0, "output": output}, IN1)]}}, ADD, status=65)
    refuse("pipelines.json: the file has more than 1048576 values", {"p": [0] * (1 << 20)}, ADD,
           status=65)


def documented():
    """The example of pipelines.md is valid, comments included; only its models are missing."""
    page = (SOURCE / "docs/how-to/pipelines.md").read_text().split("\n\n")[1]
    example = "\n".join(line.removeprefix("    ") for line in page.split("\n"))
    expect("comments in the example", "//" in example and "/*" in example, True)
    refuse("pipelines.json: pipeline 'digit_code': step 0: no model 'digits'", example, ADD)
    refuse("pipelines.json: digit_code.steps[1].inputs.input_0.form: unknown member, expected "
           "input, or from and output (line 7, column 37)",
           example.replace('{"from"', '{"form"', 1), ADD)


def commented():
    """Comments are ignored, and a string may contain what looks like a comment."""
    text = """// twice // the same
    {"twice": {"description": "http://x /* no comment */ \\\\", /* one, */ "steps": [
        {"name": "a", "model": "add", // "model": "none",
         "inputs": [{"input": 0}, {"input": /* or 0 */ 1}]},
        {"model": "add", "inputs": [{"from": "a"}, {"input": 1}]}]}} // the end"""
    with Pipelines(text, ADD) as arguments, Daemon(arguments) as daemon:
        answer = ask(Client(daemon.port), "/v2/models/twice/call", {"args": [STEPS, ONES]})
        expect("result", answer["result"], [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])


def wrong_graphs():
    for text, steps in (
            ("pipeline 'p': step 0: no model 'sub', expected one that is served, or a pipeline "
             "that stands before this one", [step("sub", IN0)]),
            ("step 0: no model 'add' of that version", [step("add", IN0, IN1, version=2)]),
            ("step 0: no model 'add' with a method 'backward'",
             [step("add", IN0, IN1, method="backward")]),
            ("pipeline 'p': step 0 (add): expected 2 inputs, got 1", [step("add", IN0)]),
            ("pipeline 'p': step 1 (add): input 'input_0': takes a result of step 1, which is "
             "itself",
             [step("add", IN0, IN1), step("add", {"from": 1, "output": 0}, IN1)]),
            ("pipeline 'p': step 1 (add): input 'input_1': step 9: there are 2",
             [step("add", IN0, IN1), step("add", IN0, {"from": 9, "output": 0})]),
            ("pipeline 'p': step 1 (deep): input 'input_0': expected float32[?,4], got "
             "float32[2,3]",
             [step("add", IN0, IN1), step("deep", FROM0)]),
            ("pipeline 'p': inputs have a gap: 0 is unused, 1 is used",
             [step("deep", IN1)])):
        refuse(text, {"p": {"steps": steps}}, ADD, DEEP)


def named(steps, **members):
    return {"p": {"steps": steps, **members}}


X, Y = {"input": "x"}, {"input": "y"}


def wrong_references():
    """A name in the document that leads nowhere: the error lists the names that exist."""
    first = {"name": "first", **step("add", X, Y)}
    for text, document in (
            ("pipeline 'p': step 0 (add): there is no input 'b', expected one of input_0 and "
             "input_1", named([{"model": "add", "inputs": {"b": X}}])),
            ("pipeline 'p': step 0 (keywords): input 'ids' is given twice",
             named([{"model": "keywords", "inputs": {"ids": X, "input_1": Y}}])),
            ("pipeline 'p': step 0 (keywords): input 'positions': expected int64[?], got nothing",
             named([{"model": "keywords", "inputs": {"ids": X, "input_0": Y}}])),
            ("pipeline 'p': step 1 (add): input 'input_0': no step is called 'frist'",
             named([first, step("add", {"from": "frist"}, Y)])),
            ("pipeline 'p': step 1 (add): input 'input_0': output of step 0 (first): there is no "
             "output 'sum', expected output_0",
             named([first, step("add", {"from": "first", "output": "sum"}, Y)])),
            ("pipeline 'p': step 1 (add): input 'input_1': output of step 0 (keywords): there is "
             "no [2]: result[\"boxes\"] is a list of 2",
             named([step("keywords", *({"input": i} for i in range(7))),
                    step("add", IN0, {"from": 0, "output": ["boxes", 2]})])),
            ("pipeline 'p': outputs[1]: output of step 0 (keywords): no output is named, expected "
             "one of logits, boxes.0, boxes.1 and kept",
             named([step("keywords", *({"input": i} for i in range(7)))],
                   outputs=[{"from": 0, "output": 3}, {"from": 0}])),
            ("pipeline 'p': outputs[0]: step 4294967295: there are 1",
             named([first], outputs=[{"from": 4294967295}])),
            ("pipeline 'p': outputs[0]: no step is called ''", named([first],
                                                                    outputs=[{"from": ""}])),
            ("pipeline 'p': inputs of the pipeline are given by number and by name ('x'), expected "
             "one of both", named([step("add", X, IN1)])),
            ("pipeline 'p': inputs of the pipeline are given by number and by name ('x')",
             named([step("add", X, {"input": "input_1"})])),
            ("pipeline 'p': step 0 (first): input 'input_1': \"inputs\" of the pipeline do not "
             "list 'y'", named([first], inputs=["x", "z"])),
            ("step 0 (add): input 'input_1': input 2: the pipeline lists 2",
             named([step("add", X, {"input": 2})], inputs=["x", "y"])),
            ("pipeline 'p': no step takes input 'z'", named([first], inputs=["x", "y", "z"])),
            ("pipeline 'p': input 1: repeats the name 'x' of input 0",
             named([first], inputs=["x", "x", "y"])),
            ("pipeline 'p': input 'two words': expected a name of 1 to 128",
             named([step("add", X, {"input": "two words"})])),
            ("pipeline 'p': output 1: repeats the name 'a' of output 0",
             named([first], outputs=[{"from": 0, "name": "a"}, {"from": 0, "name": "a"}])),
            ("pipeline 'p': output 'output_5': expected a name",
             named([first], outputs=[{"from": 0, "name": "output_5"}])),
            ("pipeline 'p': step 1: repeats the name 'first' of step 0", named([first, first])),
            ("pipeline 'p': step 0: expected a name of 1 to 128 of A-Z a-z 0-9 _ - . :, got 'a b'",
             named([{**first, "name": "a b"}]))):
        refuse(text, document, ADD, KEYWORDS)


def wrong_names():
    good = {"steps": [step("add", IN0, IN1)]}
    refuse("there are two of them", {"add": good}, ADD)
    refuse("model name", {"a/b": good}, ADD)
    refuse("step 0: no model 'second'", {"first": {"steps": [step("second", IN0, IN1)]},
                                         "second": good}, ADD)
    expect_exit(66, "--pipeline nowhere.json: ", "--pipeline", "nowhere.json", ADD)


# ---- memory -------------------------------------------------------------------------------------

def never_enough():
    """The ring has room for one step with that many rows, and never for three."""
    rows = max(load.MANY_ROWS, 1024)  # a ring has 1 MiB
    with Pipelines(THREE_DEEP, "--workers=1", f"--ring-bytes={rows * 1536}", DEEP) as arguments, \
            Daemon(arguments) as daemon:
        for _ in range(5):
            large = send(daemon, rows, model="three")
            expect("too many for three", large.answer(), 413)
            text = json.loads(large.body)["error"]
            expect(text, text.endswith(f"the memory for requests has {rows * 1536}"), True)
            expect("one of them", send(daemon, rows).answer(), 200)
            expect("few", send(daemon, 64, model="three").answer(), 200)


def enough_later():
    """There is room for one pipeline and not for several. A request that gets 429 may be repeated.
    """
    rows = max(load.MANY_ROWS, 1024)
    with Pipelines(THREE_DEEP, "--workers=1", f"--ring-bytes={rows * 4096}", DEEP) as arguments, \
            Daemon(arguments) as daemon:
        clients = [send(daemon, rows, model="three") for _ in range(4)]
        statuses = {client.answer() for client in clients}
        expect(f"{statuses}", 200 in statuses and statuses <= {200, 429}, True)
        expect("alone", send(daemon, rows, model="three").answer(), 200)


def cut_while_running():
    """A pipeline has one deadline. After it the worker is free for the next call."""
    two = {"two": {"steps": [
        {"model": "hold", "inputs": [{"input": 0}, {"input": 1}]},
        {"model": "hold", "inputs": [{"from": 0, "output": 0}, {"input": 1}]}]}}
    with Pipelines(two, *load.HELD_WORKER) as arguments, Daemon(arguments) as daemon:
        def ask(ms):
            late = send_hold(daemon, 1, fields=[f"X-Request-Timeout-Ms: {ms}"], model="two",
                             goes_on=True)
            expect("late", late.answer(), 504)
            text = json.loads(late.body)["error"]
            expect("the next one", send_hold(daemon, 1, model="two").answer(), 200)
            return text == f"model 'two': not done after {ms} ms"
        load.cut_while_running(ask)


def one_job():
    """The scheduler, its limits and its statistics count a pipeline as one call, and no step."""
    with Pipelines(THREE_DEEP, "--workers=1", DEEP) as arguments, Daemon(arguments) as daemon:
        for _ in range(3):
            expect("status", send(daemon, 8, model="three").answer(), 200)
        client = Client(daemon.port)
        counts = {}
        for model in ("three", "deep"):
            client.send(build_request("GET", f"/v2/models/{model}/stats"))
            expect("status", client.answer(), 200)
            counts[model] = json.loads(client.body)["model_stats"][0]["inference_count"]
        expect("calls", counts, {"three": 3, "deep": 0})


def random_requests():
    """Random requests, some of which fail. At the end the ring has room for a request that needs
    most of it."""
    with Pipelines(THREE_DEEP, "--workers=2", ring_option(2880), DEEP) as arguments, \
            Daemon(arguments) as daemon:
        def run(seed):
            rng = random.Random(seed)
            for _ in range(25):
                rows = rng.choice((1, 64, load.MANY_ROWS // 4, load.MANY_ROWS))
                fields = [] if rng.random() < 0.5 else [f"X-Request-Timeout-Ms: "
                                                        f"{rng.randrange(1, 30)}"]
                client = send(daemon, rows, fields=fields, model="three")
                if rng.random() < 0.4:
                    client.reset()
                elif client.answer() not in STATUSES:
                    raise Failure(f"answer {client.body[:200]!r}")
        in_threads(6, run)
        wait_until("the ring is empty",
                   lambda: send(daemon, load.MANY_ROWS, model="three").answer() == 200)


# ---- data ---------------------------------------------------------------------------------------

def infer(client, model, *tensors):
    body = {"inputs": [{"name": f"input_{i}", "datatype": "FP32", "shape": shape, "data": data}
                       for i, (shape, data) in enumerate(tensors)]}
    client.send(build_request("POST", f"/v2/models/{model}/infer", json.dumps(body).encode()))
    return client.answer()


def late_steps():
    """A size is known only after the step before has run, and then it does not fit."""
    late = {"late": {"steps": [step("found", IN0, IN1),
                               step("sizes", {"from": 0, "output": 1}, {"input": 2})]}}
    with Pipelines(late, FOUND, SIZES) as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        for count, status in ((5, 200), (12, 400), (9, 200)):
            data = [3.0] * count + [-3.0] * (20 - count)
            expect(f"{count} above zero", infer(client, "late", ([4, 5], data), ([2, 3], [1] * 6),
                                                ([4], [1, 2, 3, 4])), status)
            if status == 400:
                error = json.loads(client.body)["error"]
                expect("where", "step 1 (sizes): input 'input_0': dim 0 is" in error, True)
            else:
                shapes = [output["shape"] for output in json.loads(client.body)["outputs"]]
                expect("shape", shapes[1], [count])


# ---- names and structure ------------------------------------------------------------------------

ONES, STEPS = [[1.0] * 3] * 2, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
ROW = {"input_0": [[1, 2, 3, 4]], "ids": [1], "positions": [2], "mask": [True],
       "features.image": [[[2, 4], [6, 8]]], "features.scales.0": [1] * 4,
       "features.scales.1": [0] * 4}
BY_NAME = {
    # (right + left) + left, and the sum in the middle
    "named": {
        "description": "inputs, steps and outputs have names",
        "inputs": ["left", "right"],
        "steps": [{"name": "first", "model": "add.forward",
                   "inputs": {"input_1": {"input": "left"}, "input_0": {"input": "input_1"}}},
                  step("add", {"from": "first"}, {"input": 0})],
        "outputs": [{"name": "sum", "from": 1, "output": "output_0"},
                    {"name": "middle", "from": "first", "output": []}]},
    "renamed": {"steps": [
        {"model": "keywords", "inputs": {name: {"input": f"my_{i}"}
                                         for i, name in enumerate(ROW)}}]},
    "passed_on": {"steps": [
        {"model": "keywords", "inputs": {name: {"input": i} for i, name in enumerate(ROW)}}]},
    "nested": {"steps": [
        {"name": "inner", "model": "passed_on",
         "inputs": {**{name: {"input": i} for i, name in enumerate(ROW)}}},
        {"model": "keywords",
         "inputs": {**{name: {"input": i} for i, name in enumerate(ROW)},
                    "input_0": {"from": "inner", "output": ["boxes", 1]},
                    "ids": {"from": "inner", "output": "kept"}}}]},
}


def ask(client, path, body=None):
    request = build_request("POST", path, json.dumps(body).encode()) if body is not None \
        else build_request("GET", path)
    client.send(request)
    expect(f"{path}: {client.body[:300]}", client.answer(), 200)
    return json.loads(client.body)


def names_of(client, model):
    meta = ask(client, f"/v2/models/{model}")
    return [[entry["name"] for entry in meta[side]] for side in ("inputs", "outputs")]


def names_and_structure():
    """Inputs and outputs by name, by alias and by structure. A pipeline has the structure of the
    results of its last step."""
    results = ["logits", "boxes.0", "boxes.1", "kept"]
    with Pipelines(BY_NAME, ADD, KEYWORDS) as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        expect("named", names_of(client, "named"), [["left", "right"], ["sum", "middle"]])
        for names in (("left", "right"), ("input_0", "input_1")):
            answer = ask(client, "/v2/models/named/infer", {"inputs": [
                {"name": name, "datatype": "FP32", "shape": [2, 3], "data": data}
                for name, data in zip(names, (STEPS, ONES))]})
            expect("outputs", [(entry["name"], entry["data"]) for entry in answer["outputs"]],
                   [("sum", [3.0, 5.0, 7.0, 9.0, 11.0, 13.0]),
                    ("middle", [2.0, 3.0, 4.0, 5.0, 6.0, 7.0])])
        answer = ask(client, "/v2/models/named/call", {"kwargs": {"left": STEPS, "right": ONES}})
        expect("members", sorted(answer["result"]), ["middle", "sum"])
        expect("passed on", names_of(client, "passed_on"), [list(ROW), results])
        expect("nested", names_of(client, "nested"), [list(ROW), results])
        row = list(ROW.values())
        want = ask(client, "/v2/models/keywords/call", {
            "args": [ROW["input_0"], {"ids": [1], "positions": [2]}],
            "kwargs": {"mask": [True], "features": {"image": ROW["features.image"],
                                                    "scales": [[1] * 4, [0] * 4]}}})
        expect("structure", ask(client, "/v2/models/passed_on/call", {"args": row}), want)
        expect("structure of both", sorted(ask(client, "/v2/models/nested/call",
                                               {"args": row})["result"]),
               ["boxes", "kept", "logits"])
        answer = ask(client, "/v2/batch", [
            {"id": "a", "model_name": "nested", "args": row, "answer": False},
            {"model_name": "keywords", "args": [{"$from": {"id": "a", "output": ["boxes", 1]}},
                                                {"ids": {"$from": {"id": "a", "output": "kept"}},
                                                 "positions": [1]}],
             "kwargs": {"mask": [True], "features": {"image": ROW["features.image"],
                                                     "scales": [[1] * 4, [0] * 4]}}}])
        expect("list", [call["status"] for call in answer], [200, 200])


TENSORS = [{"datatype": kind, "shape": shape, "data": data} for (kind, shape), data in zip(
    (("FP32", [1, 4]), ("INT64", [1]), ("INT64", [1]), ("BOOL", [1]), ("FP32", [1, 2, 2]),
     ("FP32", [4]), ("FP32", [4])), ROW.values())]


def refuse_call(client, path, body, text):
    client.send(build_request("POST", f"/v2/models/{path}", json.dumps(body).encode()))
    expect(path, client.answer(), 400)
    error = json.loads(client.body)["error"]
    expect(error, text in error, True)


def errors_by_name():
    """Errors about inputs of a step, and errors about inputs of the pipeline."""
    with Pipelines(BY_NAME, ADD, KEYWORDS) as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        for path, body, text in (
                ("infer", {"inputs": [{"name": "left", "datatype": "FP32", "shape": [2, 3],
                                       "data": STEPS}]}, "input 'right' is missing"),
                ("infer", {"inputs": [{"name": name, "datatype": "FP32", "shape": [2, 3],
                                       "data": STEPS} for name in ("left", "right", "input_1")]},
                 "inputs[2].name: 'input_1' is the input of inputs[1], 'right'"),
                ("call", {"kwargs": {"left": STEPS}}, 'kwargs["right"]: missing'),
                ("call", {"args": [STEPS, ONES]}, "args: the method takes none, expected kwargs: "
                 '"left", "right"'),
                ("call", {"kwargs": {"left": STEPS, "rigth": ONES}},
                 'kwargs["rigth"]: unknown member, expected "left", "right"')):
            refuse_call(client, f"named/{path}", body, text)
        # An error in a step uses the pipeline's names for its inputs.
        call = {f"my_{i}": value for i, value in enumerate(ROW.values())}
        call["my_3"] = [True, False]
        refuse_call(client, "renamed/call", {"kwargs": call},
                    'step 0 (keywords): kwargs["my_3"]: dim 0 is 2, expected 1, as dim 0 of '
                    'kwargs["my_4"]')
        tensors = [{"name": f"my_{i}", **tensor} for i, tensor in enumerate(TENSORS)]
        tensors[3].update(shape=[2], data=[True, False])
        refuse_call(client, "renamed/infer", {"inputs": tensors},
                    "step 0 (keywords): input 'my_3': dim 0 is 2, expected 1, as dim 0 of input "
                    "'my_4'")
        refuse_call(client, "keywords/infer", {"inputs": [
            {**tensor, "name": name} for name, tensor in zip(ROW, tensors)]},
                    "input 'mask': dim 0 is 2")  # the pipeline's names are gone


# ---- steps --------------------------------------------------------------------------------------

def steps_are_counted():
    """Each step counts its calls, failures and time, for every form of a call of the pipeline."""
    faulty = {"inner": {"steps": [{"name": "divide", "model": "faults", "method": "divide",
                                   "inputs": [IN0, IN1]}]},
              "outer": {"steps": [step("inner", IN0, IN1),
                                  {"name": "again", **step("inner", FROM0, IN1)}]}}
    with Pipelines(faulty, FAULTS) as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        for divisor, status in ((1, 200), (2, 200), (0, 400)):
            body = {"args": [[8, 8, 8, 8], [divisor] * 4]}
            client.send(build_request("POST", "/v2/models/outer/call", json.dumps(body).encode()))
            expect(f"by {divisor}", client.answer(), status)
        rows = {}
        for model in ("inner", "outer", "faults.divide"):
            row = ask(client, f"/v2/models/{model}/stats")["model_stats"][0]
            rows[model] = [(one["name"], one["model"], one["success"]["count"],
                            one["fail"]["count"]) for one in row.get("steps", ())]
            if not all(one["success"]["ns"] > 0 for one in row.get("steps", ())):
                raise Failure(f"no time: {row}")
        expect("steps", rows, {
            "faults.divide": [], "inner": [("divide", "faults.divide", 4, 1)],
            "outer": [("inner", "inner", 2, 1), ("again", "inner", 2, 0)]})


def wrap(inner, count):
    """A chain of |count| steps. Each step takes the result of the one before."""
    return {"steps": [step(inner, IN0)] + [step(inner, {"from": i, "output": 0})
                                           for i in range(count - 1)]}


def levels(*counts):
    """Nested pipelines, the innermost first. The outermost is called top."""
    document, inner = {}, "deep"
    for level, count in enumerate(counts, 1):
        name = "top" if level == len(counts) else f"level{level}"
        document[name] = wrap(inner, count)
        inner = name
    return document


def nests():
    """The total size of nested pipelines is checked before they are built."""
    counted = "those of the pipelines in it counted, got"
    for counts, name, got in (((64, 64), "top", 4160), ((64, 64, 64), "level2", 4160),
                              ((4, 64, 64, 64), "level2", 320), ((2, 64, 2, 64, 64), "level3", 386),
                              ((2, 3, 4, 5, 6, 7), "level5", 1236),
                              ((64, 3, 1, 1, 1, 2), "top", 398), ((63, 4, 1), "top", 257)):
        refuse(f"pipeline '{name}': expected at most 256 steps, {counted} {got}", levels(*counts),
               DEEP)
    inputs = [{"input": i} for i in range(252)]
    many = {"l1": {"steps": [step("keywords", *inputs[i:i + 7]) for i in range(0, 252, 7)]}}
    many.update({f"l{level}": {"steps": [step(f"l{level - 1}", *inputs)] * (1 + (level == 16))}
                 for level in range(2, 17)})
    refuse(f"pipeline 'l16': expected at most 4096 inputs of steps, {counted} 8064", many, KEYWORDS)
    refuse("pipeline 'top': expected pipelines inside each other at most 16 deep, got 17",
           levels(*[1] * 17), DEEP)
    for counts in ((63, 4), (15, 3, 5), (7, 2, 3, 4), (3, 2, 2, 3, 4), (2, 2, 2, 2, 2, 4),
                   (16, *[1] * 14, 8), [1] * 16):
        with Pipelines(levels(*counts), DEEP) as arguments, Daemon(arguments) as daemon:
            expect(f"{counts}", send(daemon, 2, model="top").answer(), 200)
            expect(f"{counts} again", send(daemon, 2, model="top").answer(), 200)


def nested_calls():
    """In a list, the steps of pipelines and their memory count toward the limits."""
    with Pipelines(levels(63, 4), DEEP) as arguments, Daemon(arguments) as daemon:
        call = {"model_name": "top", "args": [[[1, 2, 3, 4]]]}
        client = Client(daemon.port)
        expect("a list", [one["status"] for one in ask(client, "/v2/batch", [call])], [200])
        client.send(build_request("POST", "/v2/batch", json.dumps([call, call]).encode()))
        expect("a longer list", client.answer(), 413)
        expect("its text", json.loads(client.body)["error"],
               "[1]: a list may have 512 calls, steps of pipelines included; got "
               "514")
    inputs = [{"input": i} for i in range(7)]
    wide = {"inner": {"steps": [step("keywords", *inputs)] * 63},
            "outer": {"steps": [step("inner", *inputs)] * 4}}
    with Pipelines(levels(63, 4), DEEP) as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        for rows in (3, 1, 3):  # before and after there is a plan
            sizes = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [rows, 4]}]}
            answer = ask(client, "/v2/models/top/shape", sizes)
            expect("shape", [one["shape"] for one in answer["outputs"]], [[rows, 4]])
            expect("call", ask(client, "/v2/models/top/call",
                               {"args": [[[1, 2, 3, 4]] * rows]}).keys(), {"result"})
        client.send(build_request("POST", "/v2/models/top/shape", json.dumps(
            {"args": [{"dtype": "float32", "shape": [3, 5]}]}).encode()))
        expect("a wrong shape", client.answer(), 400)
    for ring, status in (("1M", 413), ("16M", 200)):
        with Pipelines(wide, KEYWORDS, "--ring-bytes", ring) as arguments, \
                Daemon(arguments) as daemon:
            client = Client(daemon.port)
            call = {"args": list(ROW.values())}
            for path, body in (("models/outer/call", call),
                               ("batch", [{"model_name": "outer", **call}])):
                client.send(build_request("POST", f"/v2/{path}", json.dumps(body).encode()))
                expect(f"{path} in {ring}", client.answer(), status)


CHECKS = (wrong_documents, documented, commented, wrong_graphs, wrong_references, wrong_names,
          never_enough, enough_later, cut_while_running, one_job, random_requests, late_steps,
          names_and_structure, errors_by_name, steps_are_counted, nests, nested_calls)


def main():
    report = Report()
    load.calibrate()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
