#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pipelines under load and without memory, deadlines and clients that go, files that are wrong.

What pipelines compute is the affair of tests/models/run_pipelines.py.

usage: run_pipelines.py, with top_srcdir and top_builddir in the environment.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

import load
from load import ADD, DEEP, FOUND, SIZES, in_threads, ring_option, send, wait_until
from run_daemon import expect_exit
from run_http import Client, Daemon, Failure, Report, build_request, expect

THREE_DEEP = {"three": {"steps": [
    {"model": "deep", "inputs": [{"input": 0}]},
    {"model": "deep", "inputs": [{"from": 0, "output": 0}]},
    {"model": "deep", "inputs": [{"from": 1, "output": 0}]}]}}
STATUSES = {200, 429, 504}


class Pipelines(tempfile.TemporaryDirectory):
    """A file of pipelines; entering gives the arguments that serve it."""

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
            ("pipelines.json: ", "{"), ("pipelines.json: ", ""), ("pipelines.json: ", "[]"),
            ("pipelines.json: ", '{"p": {"steps": []}} x'),
            ("pipelines.json: p: expected ", {"p": 1}),
            ("pipelines.json: p: expected steps", {"p": {"outputs": []}}),
            ("pipeline 'p': expected 1 to 64 steps, got 0", {"p": {"steps": []}}),
            ("expected at most 64 steps", {"p": {"steps": [step("add", IN0, IN1)] * 65}}),
            ("expected model and inputs", {"p": {"steps": [{"model": "add"}]}}),
            ("expected model and inputs", {"p": {"steps": [{"inputs": []}]}}),
            ("unknown member, expected model, version, method or inputs",
             {"p": {"steps": [step("add", IN0, IN1, more=1)]}}),
            ("unknown member, expected input, or from and output",
             {"p": {"steps": [step("add", {"in": 0}, IN1)]}}),
            ("expected input, or from and output",
             {"p": {"steps": [step("add", {"input": 0, "output": 0}, IN1)]}}),
            ("expected input, or from and output", {"p": {"steps": [step("add", {}, IN1)]}}),
            ("expected input, or from and output", {"p": {"steps": [step("add", {"from": 0})]}}),
            ("p.steps[0].inputs[0].input: ", {"p": {"steps": [step("add", {"input": -1}, IN1)]}}),
            ("p.steps[0].inputs[1].input: expected a number below 2^32",
             {"p": {"steps": [step("add", IN0, {"input": 1 << 32})]}})):
        refuse(text, document, ADD)


def wrong_graphs():
    for text, steps in (
            ("pipeline 'p': step 0: no model 'sub'", [step("sub", IN0)]),
            ("step 0: no model 'add' of that version", [step("add", IN0, IN1, version=2)]),
            ("step 0: no model 'add' with a method 'backward'",
             [step("add", IN0, IN1, method="backward")]),
            ("pipeline 'p': step 0 (add): expected 2 inputs, got 1", [step("add", IN0)]),
            ("pipeline 'p': step 1 (add): input 0: takes a result of step 1, which is itself",
             [step("add", IN0, IN1), step("add", {"from": 1, "output": 0}, IN1)]),
            ("pipeline 'p': step 1 (add): input 1: step 9: there are 2",
             [step("add", IN0, IN1), step("add", IN0, {"from": 9, "output": 0})]),
            ("pipeline 'p': step 1 (deep): input 0: expected float32[?,4], got float32[2,3]",
             [step("add", IN0, IN1), step("deep", FROM0)]),
            ("pipeline 'p': no step takes input 0, but one takes input 1",
             [step("deep", IN1)])):
        refuse(text, {"p": {"steps": steps}}, ADD, DEEP)


def wrong_names():
    good = {"steps": [step("add", IN0, IN1)]}
    refuse("there are two of them", {"add": good}, ADD)
    refuse("model name", {"a/b": good}, ADD)
    refuse("step 0: no model 'second'", {"first": {"steps": [step("second", IN0, IN1)]},
                                         "second": good}, ADD)
    expect_exit(66, "--pipeline nowhere.json: ", "--pipeline", "nowhere.json", ADD)


# ---- memory -------------------------------------------------------------------------------------

def never_enough():
    """The ring has room for one step of so many rows, and never for three."""
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
    """There is room for one pipeline and not for several: who comes too early may come again."""
    rows = max(load.MANY_ROWS, 1024)
    with Pipelines(THREE_DEEP, "--workers=1", f"--ring-bytes={rows * 4096}", DEEP) as arguments, \
            Daemon(arguments) as daemon:
        clients = [send(daemon, rows, model="three") for _ in range(4)]
        statuses = {client.answer() for client in clients}
        expect(f"{statuses}", 200 in statuses and statuses <= {200, 429}, True)
        expect("alone", send(daemon, rows, model="three").answer(), 200)


def cut_while_running():
    """One deadline for the whole; the worker is free for the next one."""
    with Pipelines(THREE_DEEP, "--workers=1", DEEP) as arguments, Daemon(arguments) as daemon:
        expect("the first, with its plan", send(daemon, 64, model="three").answer(), 200)
        late = send(daemon, load.MANY_ROWS, fields=["X-Request-Timeout-Ms: 50"], model="three")
        expect("late", late.answer(), 504)
        expect("text", json.loads(late.body)["error"], "model 'three': not done after 50 ms")
        expect("the next one", send(daemon, 1, model="three").answer(), 200)


def one_job():
    """To the scheduler, its limits and its statistics a pipeline is one call, and no step is."""
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
    """Whatever becomes of them: at the end the ring has room for what needs most of it."""
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
    """A size that is only known when the step before has run, and that does not fit then."""
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


CHECKS = (wrong_documents, wrong_graphs, wrong_names, never_enough, enough_later, cut_while_running,
          one_job, random_requests, late_steps)


def main():
    report = Report()
    load.calibrate()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
