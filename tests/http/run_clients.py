#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients of another project against a real daemon: Triton's Python client and its perf_analyzer.

A client that is not installed is left out; without both, the test is skipped. The Python client is
that of `pip install tritonclient[http]`. perf_analyzer came with it up to 2.40 and must be in PATH.

usage: run_clients.py, with top_srcdir and top_builddir in the environment.
"""
import re
import shutil
import subprocess
import sys

from run_http import MODELS, Daemon, Failure, Report, expect

try:
    import numpy
    import tritonclient.http as triton
except ImportError:
    triton = None

PERF_ANALYZER = shutil.which("perf_analyzer")
SKIPPED = 77
ANALYZER_S = 120  # the limit for one measurement, also with sanitizers


def models(*names):
    return ["--workers=2", *(str(MODELS / f"{name}.pte") for name in names)]


# ---- tritonclient ----

def tensor(name, array, is_binary=True):
    item = triton.InferInput(name, array.shape, "FP32")
    item.set_data_from_numpy(array, binary_data=is_binary)
    return item


def describes(client):
    """All requests of the client except inferences, and that their answers agree."""
    expect("live, ready", (client.is_server_live(), client.is_server_ready()), (True, True))
    expect("extensions", {"binary_tensor_data", "model_configuration", "statistics"} <=
           set(client.get_server_metadata()["extensions"]), True)
    expect("model ready", (client.is_model_ready("mlp"), client.is_model_ready("mlp", "1"),
                           client.is_model_ready("nobody")), (True, True, False))
    metadata = client.get_model_metadata("mlp")
    config = client.get_model_config("mlp", "1")
    expect("names", [item["name"] for item in config["input"]],
           [item["name"] for item in metadata["inputs"]])
    expect("shapes", [[-1, *item["dims"]] for item in config["output"]],
           [item["shape"] for item in metadata["outputs"]])
    expect("index", {row["name"]: row["state"] for row in client.get_model_repository_index()},
           {"add": "READY", "mlp": "READY"})


def infers(client):
    """Tensors in binary and in JSON, in both directions. A refusal arrives as an exception."""
    a = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
    for is_binary in (True, False):
        outputs = [triton.InferRequestedOutput("output_0", binary_data=is_binary)]
        answer = client.infer("add", [tensor("input_0", a, is_binary),
                                      tensor("input_1", a, not is_binary)],
                              outputs=outputs, request_id="7")
        expect("sum", answer.as_numpy("output_0").tolist(), (a + a).tolist())
        expect("id", answer.get_response()["id"], "7")
    try:
        client.infer("add", [tensor("input_0", a)])
    except triton.InferenceServerException as refusal:
        expect("status of a refusal", refusal.status(), "400")
    else:
        raise Failure("a request without its second input: expected a refusal, got an answer")


def not_numbers(client):
    """NaN and the infinities arrive unchanged, in binary and in JSON."""
    a = numpy.array([[1, numpy.nan, numpy.inf], [-numpy.inf, 0, -0.5]], numpy.float32)
    zeros = numpy.zeros_like(a)
    for is_binary in (True, False):
        for is_answer_binary in (True, False):
            outputs = [triton.InferRequestedOutput("output_0", binary_data=is_answer_binary)]
            answer = client.infer("add", [tensor("input_0", a, is_binary),
                                          tensor("input_1", zeros, False)], outputs=outputs)
            got = answer.as_numpy("output_0")
            expect("type", got.dtype, a.dtype)
            expect("NaN and infinities", repr(got.tolist()), repr(a.tolist()))


def classifies(client):
    """The classification extension: scores with their indices, highest first."""
    rows = numpy.zeros((2, 12), numpy.float32)
    scores = client.infer("mlp", [tensor("input_0", rows)]).as_numpy("output_0")
    for is_binary in (True, False):
        outputs = [triton.InferRequestedOutput("output_0", is_binary, class_count=2)]
        texts = client.infer("mlp", [tensor("input_0", rows)], outputs=outputs)
        texts = texts.as_numpy("output_0")
        expect("shape", texts.shape, (2, 2))
        first = texts[0][0].decode() if isinstance(texts[0][0], bytes) else texts[0][0]
        expect("highest", int(first.split(":")[1]), int(scores[0].argmax()))


def counts(client):
    """The statistics count samples, executions and batch sizes of successive requests."""
    for rows in (1, 4):
        client.infer("mlp", [tensor("input_0", numpy.zeros((rows, 12), numpy.float32))])
    row, = client.get_inference_statistics("mlp")["model_stats"]
    expect("inferences, executions", (row["inference_count"], row["execution_count"]), (5, 2))
    expect("sizes", [batch["batch_size"] for batch in row["batch_stats"]], [1, 4])
    expect("all models", {row["name"] for row in client.get_inference_statistics()["model_stats"]},
           {"add", "mlp"})


def loads_and_unloads(client):
    """Through the address for administrators."""
    client.unload_model("mlp")
    expect("ready", client.is_model_ready("mlp"), False)
    expect("index", {row["name"]: row["state"] for row in client.get_model_repository_index()},
           {"add": "READY", "mlp": "UNAVAILABLE"})
    client.load_model("mlp")
    expect("ready", client.is_model_ready("mlp"), True)
    client.unload_model("mlp", unload_dependents=True)
    client.load_model("mlp")
    for refuse in (lambda: client.load_model("nobody"),
                   lambda: client.load_model("mlp", config="{}"),
                   lambda: client.load_model("mlp", config="{}", files={"file:1/x": b""})):
        try:
            refuse()
        except triton.InferenceServerException as refusal:
            expect("status of a refusal", refusal.status() in ("404", "501"), True)
        else:
            raise Failure("expected a refusal, got an answer")


# ---- perf_analyzer ----

def analyze(model, *options):
    """perf_analyzer measures without an error and finds the server's own statistics."""
    with Daemon(models(model)) as daemon:
        done = subprocess.run(
            [PERF_ANALYZER, "-m", model, "-u", f"127.0.0.1:{daemon.port}", *options,
             "--measurement-mode", "count_windows", "--measurement-request-count", "50",
             "--stability-percentage", "999"],
            capture_output=True, text=True, timeout=ANALYZER_S, check=False)
    seen = dict(re.findall(r"(Inference|Execution|Successful request) count: (\d+)", done.stdout))
    if done.returncode != 0 or len(seen) != 3 or "0" in seen.values():
        raise Failure(f"status {done.returncode}: {done.stdout[-500:]} {done.stderr[-500:]}")


def main():
    report = Report()
    if triton:
        with Daemon(models("add", "mlp")) as daemon:
            client = triton.InferenceServerClient(f"127.0.0.1:{daemon.port}")
            for check in (describes, infers, not_numbers, counts, classifies):
                report.run(f"tritonclient {check.__name__}", check, client)
            client.close()
        with Daemon(["--admin-listen", "127.0.0.1:0", *models("add", "mlp")]) as daemon:
            client = triton.InferenceServerClient(f"127.0.0.1:{daemon.admin_port()}")
            report.run("tritonclient loads_and_unloads", loads_and_unloads, client)
            client.close()
    if PERF_ANALYZER:
        report.run("perf_analyzer, one at a time", analyze, "add")
        report.run("perf_analyzer, samples and clients", analyze, "mlp", "-b", "4",
                   "--concurrency-range", "8")
        report.run("perf_analyzer, open loop", analyze, "mlp", "--request-rate-range", "200")
        report.run("perf_analyzer, sequences", analyze, "running", "--concurrency-range", "2")
    if not triton and not PERF_ANALYZER:
        print("neither tritonclient nor perf_analyzer is installed")
        return SKIPPED
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
