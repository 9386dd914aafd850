#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Clients of another project against a real daemon: Triton's Python clients and its perf_analyzer.

Every call of tritonclient.http is made, by the client that blocks and by that of asyncio; a call
that no check makes fails the test. A client that is not installed is left out; without all of them
the test is skipped. The Python clients are those of `pip install -r tests/requirements.txt`; PYTHON
names an interpreter that has them. perf_analyzer came with tritonclient up to 2.40 and must be in
PATH.

usage: run_clients.py, with top_srcdir and top_builddir in the environment.
"""
import asyncio
import hashlib
import http.client
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile

import interpreter
from run_http import MODELS, Daemon, Failure, Report, expect

if interpreter.has("tritonclient.http", "tritonclient.http.aio", "numpy", "ml_dtypes"):
    import ml_dtypes
    import numpy
    import tritonclient.http as triton
    from tritonclient.http import aio
    from tritonclient.http.auth import BasicAuth
    from tritonclient.utils import shared_memory as shm
else:
    triton = None

PERF_ANALYZER = shutil.which("perf_analyzer")
SKIPPED = 77
ANALYZER_S = 120  # the limit for one measurement, also with sanitizers
WAIT_S = 60


def models(*names):
    return ["--workers=2", *(str(MODELS / f"{name}.pte") for name in names)]


# ---- the two clients as one ----

class Caller:
    """Makes the calls of a client, waits for those of asyncio, and notes which have been made."""

    made = {}  # names of calls, by the kind of client

    def __init__(self, kind, port, **options):
        self.kind, self.url = kind, f"127.0.0.1:{port}"
        self.loop = asyncio.new_event_loop() if kind == "aio" else None
        self.calls = self.made.setdefault(kind, set())
        self.client = self.wait(self.connect(options))

    async def connect(self, options):
        """A client of asyncio is made while the loop runs; the other one may be, too."""
        module = aio if self.loop else triton
        return module.InferenceServerClient(self.url, **options)

    def wait(self, result):
        if not inspect.iscoroutine(result):
            return result
        return (self.loop or asyncio.new_event_loop()).run_until_complete(result)

    def __getattr__(self, name):
        call = getattr(self.client, name)

        def made(*args, **options):
            self.calls.add(name)
            return self.wait(call(*args, **options))
        return made

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def refused(status, call, *args, text="", **options):
    try:
        call(*args, **options)
    except triton.InferenceServerException as refusal:
        expect("status of a refusal", refusal.status(), status)
        if text not in refusal.message():
            raise Failure(f"{refusal.message()!r}, expected {text!r}") from refusal
    else:
        raise Failure(f"{call}: expected a refusal, got an answer")


def tensor(name, array, is_binary=True, kind="FP32"):
    item = triton.InferInput(name, array.shape, kind)
    item.set_data_from_numpy(array, binary_data=is_binary)
    return item


def wanted(name="output_0", *args, **options):
    return [triton.InferRequestedOutput(name, *args, **options)]


def addends():
    return numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def add(client, **options):
    a = addends()
    return client.infer("add", [tensor("input_0", a), tensor("input_1", a)], **options)


# ---- checks ----

def describes(client):
    """All requests of the client except inferences, and that their answers agree."""
    expect("live, ready", (client.is_server_live(), client.is_server_ready()), (True, True))
    expect("extensions", set(client.get_server_metadata()["extensions"]),
           {"binary_tensor_data", "classification", "logging", "model_configuration",
            "model_repository", "model_repository(unload_dependents)", "schedule_policy",
            "sequence", "sequence(string_id)", "statistics", "system_shared_memory", "trace"})
    expect("model ready", (client.is_model_ready("mlp"), client.is_model_ready("mlp", "1"),
                           client.is_model_ready("nobody")), (True, True, False))
    metadata = client.get_model_metadata("mlp")
    expect("version", client.get_model_metadata("mlp", "1")["versions"], ["1"])
    config = client.get_model_config("mlp", "1")
    expect("names", [item["name"] for item in config["input"]],
           [item["name"] for item in metadata["inputs"]])
    expect("shapes", [[-1, *item["dims"]] for item in config["output"]],
           [item["shape"] for item in metadata["outputs"]])
    rows = client.get_model_repository_index()
    expect("index", {row["name"]: row["state"] for row in rows if "." not in row["name"]},
           {name: "READY" for name in ("add", "mlp", "pointwise_types", "running")})
    # What a row says beside this may change while the first calls are timed.
    same = client.get_model_repository_index(query_params={"a": ["b", "c d"], "e": 1})
    expect("other parameters", [(row["name"], row["state"]) for row in same],
           [(row["name"], row["state"]) for row in rows])
    for call in (client.get_model_metadata, client.get_model_config,
                 client.get_inference_statistics, client.get_trace_settings):
        refused("404", call, "nobody", text="no model 'nobody'")
    refused("404", client.get_model_metadata, "mlp", "7")


def infers(client):
    """Tensors in binary and in JSON, in both directions. A refusal arrives as an exception."""
    a = addends()
    for is_binary in (True, False):
        answer = client.infer("add", [tensor("input_0", a, is_binary),
                                      tensor("input_1", a, not is_binary)],
                              outputs=wanted(binary_data=is_binary), request_id="7")
        expect("sum", answer.as_numpy("output_0").tolist(), (a + a).tolist())
        expect("id", answer.get_response()["id"], "7")
        expect("form", "data" in answer.get_output("output_0"), not is_binary)
    refused("400", client.infer, "add", [tensor("input_0", a)], text="'input_1' is missing")
    refused("404", add, client, model_version="7", text="no version 7")
    expect("version", add(client, model_version="1").get_response()["model_version"], "1")


def options(client):
    """Every option of a call."""
    a = addends()
    answer = add(client, request_id="\u00e9 \"", priority=1, timeout=30_000_000,
                 headers={"X-Anything": "1"}, query_params={"binary": 0},
                 parameters={"text": "t", "number": 7, "float": 0.5, "flag": True})
    expect("sum", answer.as_numpy("output_0").tolist(), (a + a).tolist())
    expect("id", answer.get_response()["id"], "\u00e9 \"")
    for there in (None, "gzip", "deflate"):
        for back in (None, "gzip", "deflate"):
            rows = numpy.ones((32, 12), numpy.float32)
            answer = client.infer("mlp", [tensor("input_0", rows)],
                                  request_compression_algorithm=there,
                                  response_compression_algorithm=back)
            expect("shape", answer.as_numpy("output_0").shape[0], 32)
    refused("400", add, client, parameters={"nan": "no"}, text="parameters.nan")
    expect("other parameters", add(client, query_params={"q": "a b"}).as_numpy("output_0").tolist(),
           (a + a).tolist())
    refused("400", add, client, query_params={"top-k": 1}, text="did you mean 'top_k'?")


def bodies(client):
    """The client makes a body and reads an answer, which another library carries."""
    a = addends()
    body, json_bytes = client.generate_request_body(
        [tensor("input_0", a), tensor("input_1", a, False)], outputs=wanted(), request_id="b")
    answer, fields = carry(client.url, body, json_bytes)
    json_bytes = int(fields["Inference-Header-Content-Length"])
    result = client.parse_response_body(answer, header_length=json_bytes)
    expect("sum", result.as_numpy("output_0").tolist(), (a + a).tolist())
    inputs = [tensor("input_0", a, False), tensor("input_1", a, False)]
    body, json_bytes = client.generate_request_body(inputs, outputs=wanted("output_0", False))
    expect("all JSON", json_bytes, None)
    answer, _ = carry(client.url, body, None)
    expect("sum", client.parse_response_body(answer).as_numpy("output_0").tolist(),
           (a + a).tolist())


def carry(url, body, json_bytes):
    """The body of an answer, and its fields."""
    connection = http.client.HTTPConnection(url, timeout=WAIT_S)
    fields = {} if json_bytes is None else {"Inference-Header-Content-Length": str(json_bytes)}
    connection.request("POST", "/v2/models/add/infer", body, fields)
    answer = connection.getresponse()
    expect("status", answer.status, 200)
    return answer.read(), answer.headers


def asynchronous(client):
    """Only the client that blocks has it: several calls at a time."""
    a = addends()
    calls = [client.async_infer("add", [tensor("input_0", a * i), tensor("input_1", a)],
                                request_id=str(i)) for i in range(8)]
    for i, call in enumerate(calls):
        answer = call.get_result(timeout=WAIT_S)
        expect("sum", answer.as_numpy("output_0").tolist(), (a * i + a).tolist())
        expect("id", answer.get_response()["id"], str(i))
    refused("400", client.async_infer("add", [tensor("input_0", a)]).get_result)


def not_numbers(client):
    """NaN and the infinities arrive unchanged, in binary and in JSON."""
    a = numpy.array([[1, numpy.nan, numpy.inf], [-numpy.inf, 0, -0.5]], numpy.float32)
    zeros = numpy.zeros_like(a)
    for is_binary in (True, False):
        for is_answer_binary in (True, False):
            answer = client.infer("add", [tensor("input_0", a, is_binary),
                                          tensor("input_1", zeros, False)],
                                  outputs=wanted(binary_data=is_answer_binary))
            got = answer.as_numpy("output_0")
            expect("type", got.dtype, a.dtype)
            expect("NaN and infinities", repr(got.tolist()), repr(a.tolist()))


def types(client):
    """Every element type, BF16 and strings, too."""
    kinds = {"BF16": ml_dtypes.bfloat16, "BOOL": numpy.bool_}
    inputs = []
    for item in client.get_model_metadata("pointwise_types")["inputs"]:
        kind = item["datatype"]
        dtype = kinds.get(kind) or numpy.dtype(
            kind.lower().replace("fp", "float")).type
        inputs.append(tensor(item["name"], numpy.ones(item["shape"], dtype), kind=kind))
    answer = client.infer("pointwise_types", inputs)
    seen = set()
    for item in answer.get_response()["outputs"]:
        array = answer.as_numpy(item["name"])
        expect(item["name"], list(array.shape), item["shape"])
        seen.add(item["datatype"])
    expect("types", seen >= {"FP16", "BF16", "FP32", "FP64", "INT8", "UINT8", "BOOL"}, True)
    name = "autoencoder \u00e9"
    text = client.infer("methods.get_name", []).as_numpy("output_0")
    expect("bytes", text.reshape(-1).tolist(), [name.encode()])
    text = client.infer("methods.get_name", [], outputs=wanted(binary_data=False))
    expect("text", text.as_numpy("output_0").reshape(-1).tolist(), [name])


def sequences(client):
    """The state of a sequence, by number and by text."""
    ones = numpy.ones(3, numpy.float32)
    for name in (7, "seven"):
        for step in range(3):
            answer = client.infer("running", [tensor("input_0", ones)], sequence_id=name,
                                  sequence_start=step == 0, sequence_end=step == 2)
            count = int(answer.as_numpy("output_1").reshape(-1)[0])
            first = count if step == 0 else first
            expect("count", count, first + step)


def classifies(client):
    """The classification extension: scores with their indices, highest first."""
    rows = numpy.zeros((2, 12), numpy.float32)
    scores = client.infer("mlp", [tensor("input_0", rows)]).as_numpy("output_0")
    for is_binary in (True, False):
        texts = client.infer("mlp", [tensor("input_0", rows)],
                             outputs=wanted("output_0", is_binary, class_count=2))
        texts = texts.as_numpy("output_0")
        expect("shape", texts.shape, (2, 2))
        first = texts[0][0].decode() if isinstance(texts[0][0], bytes) else texts[0][0]
        expect("highest", int(first.split(":")[1]), int(scores[0].argmax()))


def counts(client):
    """The statistics count samples, executions and batch sizes of successive requests."""
    before, = client.get_inference_statistics("mlp")["model_stats"]
    for rows in (1, 4):
        client.infer("mlp", [tensor("input_0", numpy.zeros((rows, 12), numpy.float32))])
    row, = client.get_inference_statistics("mlp", "1")["model_stats"]
    expect("inferences, executions", (row["inference_count"] - before["inference_count"],
                                      row["execution_count"] - before["execution_count"]), (5, 2))
    expect("sizes", {1, 4} <= {batch["batch_size"] for batch in row["batch_stats"]}, True)
    expect("all models", {"add", "mlp"} <=
           {row["name"] for row in client.get_inference_statistics()["model_stats"]}, True)


def shares(client):
    """Tensors in shared memory."""
    a, name = addends(), f"pted-clients-{os.getpid()}-{client.kind}"
    handle = shm.create_shared_memory_region("region", name, 96)
    try:
        client.unregister_system_shared_memory()
        shm.set_shared_memory_region(handle, [a])
        client.register_system_shared_memory("region", name, 96)
        row, = client.get_system_shared_memory_status("region")
        expect("status", row, {"name": "region", "key": name, "offset": 0, "byte_size": 96})
        expect("all", client.get_system_shared_memory_status(), [row])
        item = triton.InferInput("input_0", [2, 3], "FP32")
        item.set_shared_memory("region", 24)
        output, = wanted()
        output.set_shared_memory("region", 24, offset=48)
        answer = client.infer("add", [item, tensor("input_1", a)], outputs=[output])
        expect("no data", "data" in answer.get_output("output_0"), False)
        got = shm.get_contents_as_numpy(handle, numpy.float32, [2, 3], offset=48)
        expect("sum", got.tolist(), (a + a).tolist())
        output.set_shared_memory("region", 23, offset=48)
        refused("400", client.infer, "add", [item, tensor("input_1", a)], outputs=[output],
                text="expected at least 24")
        refused("400", client.register_system_shared_memory, "region", name, 96)
        refused("400", client.register_system_shared_memory, "other", name, 97)
        client.unregister_system_shared_memory("region")
        refused("404", client.infer, "add", [item, tensor("input_1", a)])
        refused("404", client.get_system_shared_memory_status, "region")
    finally:
        shm.destroy_shared_memory_region(handle)
    expect("CUDA", client.get_cuda_shared_memory_status(), [])
    client.unregister_cuda_shared_memory()
    client.unregister_cuda_shared_memory("region")
    refused("404", client.get_cuda_shared_memory_status, "region")
    refused("501", client.register_cuda_shared_memory, "region", b"\0" * 64, 0, 64)


def is_no_administrator(client):
    """Anybody may look, but change nothing."""
    for call in (lambda: client.update_log_settings({"log_info": False}),
                 lambda: client.update_trace_settings(settings={"trace_rate": "1"}),
                 lambda: client.update_trace_settings("add", {}),
                 lambda: client.load_model("mlp"), lambda: client.unload_model("mlp")):
        refused("403", call, text="for administrators")
    expect("log", client.get_log_settings(),
           {"log_file": "", "log_error": True, "log_warning": True, "log_info": True,
            "log_verbose_level": 0, "log_format": "ISO8601"})
    expect("traces", client.get_trace_settings(), client.get_trace_settings("add"))


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
    refused("404", client.load_model, "nobody")
    refused("501", client.load_model, "mlp", config="{}")
    refused("501", client.load_model, "mlp", config="{}", files={"file:1/x": b""})
    expect("still ready", client.is_model_ready("mlp"), True)


def sets_log(client):
    """The level of the log, kind by kind; what cannot change is refused."""
    def kinds():
        got = client.get_log_settings()
        return (got["log_error"], got["log_warning"], got["log_info"], got["log_verbose_level"])
    for change, want in (({"log_verbose_level": 2}, (True, True, True, 1)),
                         ({"log_info": False}, (True, True, False, 0)),
                         ({}, (True, True, False, 0)),
                         ({"log_warning": False}, (True, False, False, 0)),
                         ({"log_verbose_level": 1, "log_info": True}, (True, True, True, 1)),
                         ({"log_verbose_level": 0}, (True, True, True, 0)),
                         ({"log_file": "", "log_format": "ISO8601"}, (True, True, True, 0))):
        answer = client.update_log_settings(change)
        expect("answer", answer, client.get_log_settings())
        expect(f"{change}", kinds(), want)
    for change, status in (({"log_error": False}, "400"), ({"log_file": "/tmp/x"}, "501"),
                           ({"log_warning": False, "log_info": True}, "400"),
                           ({"log_format": "default"}, "501"), ({"log_nothing": True}, "400"),
                           ({"log_info": "yes"}, "400"), ({"log_verbose_level": -1}, "400")):
        refused(status, client.update_log_settings, change)
    expect("as before", kinds(), (True, True, True, 0))


def sets_traces(client):
    """Traces without a collector are off, and cannot be switched on."""
    expect("settings", client.get_trace_settings(),
           {"trace_level": ["OFF"], "trace_rate": "100", "trace_count": "-1",
            "log_frequency": "0", "trace_file": "", "trace_mode": "opentelemetry"})
    expect("nothing", client.update_trace_settings(settings={}), client.get_trace_settings())
    expect("default", client.update_trace_settings(
        settings={"trace_rate": None, "trace_level": ["OFF"]}), client.get_trace_settings("add"))
    for change, status in (({"trace_level": ["TIMESTAMPS"]}, "501"), ({"trace_rate": "7"}, "501"),
                           ({"trace_level": ["TENSORS"]}, "501"), ({"trace_file": "x"}, "501"),
                           ({"trace_level": ["LOUD"]}, "400"), ({"trace_rate": "x"}, "400"),
                           ({"trace_rate": "-1"}, "400"), ({"log_frequency": "1"}, "501"),
                           ({"trace_mode": "triton"}, "501"), ({"nothing": "1"}, "400")):
        refused(status, client.update_trace_settings, settings=change)
    refused("404", client.update_trace_settings, "nobody", {})
    client.update_trace_settings("add", {"trace_level": None})
    refused("501", client.update_trace_settings, "add", {"trace_level": ["OFF"]})


class Bearer:
    """A plugin of a client, which adds a token."""

    def __init__(self, token):
        self.token = token

    def __call__(self, request):
        request.headers["authorization"] = f"Bearer {self.token}"


def plugins(client):
    """A plugin adds the token that the daemon wants."""
    refused("401", client.get_server_metadata)
    expect("health needs none", client.is_server_live(), True)
    client.register_plugin(BasicAuth("user", "secret"))
    refused("401", client.get_server_metadata, text="Bearer")
    client.unregister_plugin()
    plugin = Bearer("secret-of-ci")
    client.register_plugin(plugin)
    expect("plugin", client.plugin(), plugin)
    expect("name", client.get_server_metadata()["name"], "pted")
    expect("sum", add(client).as_numpy("output_0").tolist(), (2 * addends()).tolist())
    refused("403", client.update_log_settings, {})


def everything(kind):
    """No call of the client has been left out."""
    module = aio if kind == "aio" else triton
    names = {name for name, _ in inspect.getmembers(module.InferenceServerClient, callable)
             if not name.startswith("_")}
    expect("calls that no check makes", names - Caller.made[kind], set())


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


def run_check(report, kind, check, client):
    def checked():
        try:
            check(client)
        except triton.InferenceServerException as error:
            raise Failure(f"{error}") from error
    report.run(f"tritonclient {kind} {check.__name__}", checked)


def run_checks(report, kind, checks, arguments, port=lambda daemon: daemon.port, **options):
    with Daemon(arguments) as daemon, Caller(kind, port(daemon), **options) as client:
        for check in checks:
            run_check(report, kind, check, client)


def run_triton(report, folder):
    tokens = os.path.join(folder, "tokens")
    with open(tokens, "w", encoding="utf-8") as file:
        file.write(f"ci infer,read sha256:{hashlib.sha256(b'secret-of-ci').hexdigest()}\n")
    served = models("add", "mlp", "methods", "pointwise_types", "running")
    for kind in ("http", "aio"):
        checks = [describes, infers, options, bodies, not_numbers, types, sequences, classifies,
                  counts, shares, is_no_administrator]
        limit = {"concurrency": 4} if kind == "http" else {"conn_limit": 4}
        run_checks(report, kind, checks + [asynchronous] * (kind == "http"),
                   ["--shared-memory=loopback", *served], **limit)
        run_checks(report, kind, [loads_and_unloads, sets_log, sets_traces],
                   ["--admin-listen", "127.0.0.1:0", *models("add", "mlp")], Daemon.admin_port)
        run_checks(report, kind, [plugins], ["--token-file", tokens, *models("add")])
        report.run(f"tritonclient {kind} everything", everything, kind)


def main():
    report = Report()
    if triton:
        with tempfile.TemporaryDirectory() as folder:
            run_triton(report, folder)
    if PERF_ANALYZER:
        report.run("perf_analyzer, one at a time", analyze, "add")
        report.run("perf_analyzer, samples and clients", analyze, "mlp", "-b", "4",
                   "--concurrency-range", "8")
        report.run("perf_analyzer, open loop", analyze, "mlp", "--request-rate-range", "200")
        report.run("perf_analyzer, sequences", analyze, "running", "--concurrency-range", "2")
    if not triton and not PERF_ANALYZER:
        print("neither tritonclient (tests/requirements.txt) nor perf_analyzer is installed")
        return SKIPPED
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
