#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gRPC against a real daemon: tritonclient.grpc, stubs of its package, health checks, reflection.

Answers and errors are compared with those of HTTP. What pted says of its messages is compared with
the packages' own descriptions. Skipped without the packages of tests/requirements.txt; PYTHON names
an interpreter that has them.

usage: run_grpc.py, with top_srcdir and top_builddir in the environment.
"""
import hashlib
import http.client
import json
import os
import pathlib
import queue
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import interpreter
from http2_client import (CANCEL, DATA, END_STREAM, INITIAL_WINDOW_SIZE, RST_STREAM, SETTINGS,
                          WINDOW_UPDATE, Http2Client, frame, setting)
from load import HOLD, wait_until
from run_http import BUILD, MODELS, Daemon, Failure, Report, expect

if interpreter.has("tritonclient.grpc", "grpc_health.v1.health_pb2", "numpy", "ml_dtypes",
                   "grpc_reflection.v1alpha.proto_reflection_descriptor_database"):
    import grpc
    import ml_dtypes
    import numpy
    import tritonclient.grpc as triton
    from google.protobuf import descriptor_pb2, json_format, message_factory
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_health.v1 import health_pb2, health_pb2_grpc
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
        ProtoReflectionDescriptorDatabase)
    from tritonclient.grpc import (aio, model_config_pb2, service_pb2, service_pb2_grpc)
    from tritonclient.utils import shared_memory as shm
else:
    triton = None

SKIPPED = 77
PTE = os.environ.get("PTE", str(BUILD / "pte"))
WAIT_S = 60
SERVICE = "inference.GRPCInferenceService"
TOKEN = "secret-of-ci"
made = set()  # calls of tritonclient that a check has made


def models(*names):
    return ["--workers=2", *(str(MODELS / f"{name}.pte") for name in names)]


class Caller:
    """The client that blocks; notes which calls have been made."""

    def __init__(self, port):
        self.client = triton.InferenceServerClient(f"127.0.0.1:{port}")

    def __getattr__(self, name):
        made.add(name)
        return getattr(self.client, name)


def ask(port, path, body=None):
    """The JSON of the HTTP side, and its status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.request("GET" if body is None else "POST", path,
                       None if body is None else json.dumps(body))
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text else {}


def refused(code, call, *args, text="", **options):
    try:
        call(*args, **options)
    except triton.InferenceServerException as refusal:
        got, message = str(refusal.status()).rsplit(".", maxsplit=1)[-1], refusal.message()
    except grpc.RpcError as refusal:
        got, message = refusal.code().name, refusal.details()
    else:
        raise Failure(f"{call}: expected a refusal, got an answer")
    expect(f"code, with '{message}'", got, code)
    if text not in message:
        raise Failure(f"{message!r}, expected {text!r}")


def tensor(name, array, kind="FP32"):
    item = triton.InferInput(name, array.shape, kind)
    item.set_data_from_numpy(array)
    return item


def addends():
    return numpy.arange(6, dtype=numpy.float32).reshape(2, 3)


def add_inputs():
    return [tensor("input_0", addends()), tensor("input_1", addends())]


def add(client, **options):
    return client.infer("add", add_inputs(), **options)


def stub_of(port, **options):
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", **options)
    return service_pb2_grpc.GRPCInferenceServiceStub(channel)


# ---- what the server and its models are ----

def only(document, names):
    return {name: document[name] for name in names}


def describes(client, port):
    """What the server says is what it says over HTTP."""
    expect("live, ready", (client.is_server_live(), client.is_server_ready()), (True, True))
    expect("model ready", (client.is_model_ready("mlp"), client.is_model_ready("mlp", "1"),
                           client.is_model_ready("mlp", "7"), client.is_model_ready("nobody")),
           (True, True, False, False))
    expect("server", client.get_server_metadata(as_json=True),
           only(ask(port, "/v2")[1], ("name", "version", "extensions")))
    for name in ("mlp", "pointwise_types"):
        there = ask(port, f"/v2/models/{name}")[1]
        for item in there["inputs"] + there["outputs"]:
            for more in set(item) - {"name", "datatype", "shape"}:
                del item[more]
            item["shape"] = [str(dim) for dim in item["shape"]]
            if not item["shape"]:
                del item["shape"]
        expect(name, client.get_model_metadata(name, "1", as_json=True),
               only(there, ("name", "versions", "platform", "inputs", "outputs")))
    configures(client, port, "mlp")
    refused("NOT_FOUND", client.get_model_metadata, "nobody",
            text=ask(port, "/v2/models/nobody")[1]["error"])
    refused("NOT_FOUND", client.get_model_metadata, "mlp", "7",
            text=ask(port, "/v2/models/mlp/versions/7")[1]["error"])
    refused("INVALID_ARGUMENT", client.get_model_metadata, "mlp", "x", text="version: expected")


def configures(client, port, name):
    """Both are asked until they are of the same time: trials of batches change what they say."""
    def is_same():
        there = ask(port, f"/v2/models/{name}/config")[1]
        for more in ("dynamic_batching", "sequence_batching"):
            there.get(more, {}).pop("priority_queue_policy", None)
            for member in ("control_input", "state"):
                there.get(more, {}).pop(member, None)
        return client.get_model_config(name).config == json_format.ParseDict(
            there, model_config_pb2.ModelConfig())
    wait_until(f"the same configuration of {name}", is_same)


def counts(client, port):
    """Statistics of one model, and of all."""
    before, = client.get_inference_statistics("mlp").model_stats
    for rows in (1, 4):
        client.infer("mlp", [tensor("input_0", numpy.zeros((rows, 12), numpy.float32))])
    row, = client.get_inference_statistics("mlp", "1").model_stats
    expect("inferences, executions", (row.inference_count - before.inference_count,
                                      row.execution_count - before.execution_count), (5, 2))
    expect("sizes", {1, 4} <= {batch.batch_size for batch in row.batch_stats}, True)
    there, = ask(port, "/v2/models/mlp/stats")[1]["model_stats"]
    expect("success", (row.inference_stats.success.count, row.inference_stats.success.ns),
           tuple(there["inference_stats"]["success"].values()))
    expect("all models", {"add", "mlp"} <=
           {row.name for row in client.get_inference_statistics().model_stats}, True)
    refused("NOT_FOUND", client.get_inference_statistics, "nobody")


# ---- inference ----

def infers(client, port):
    """Raw tensors, options of a call, and refusals."""
    a = addends()
    answer = add(client, request_id="\u00e9 7", priority=1, timeout=30_000_000,
                 parameters={"text": "t\"", "number": -7, "float": 0.5, "flag": True})
    expect("sum", answer.as_numpy("output_0").tolist(), (a + a).tolist())
    response = answer.get_response()
    expect("names", (response.id, response.model_name, response.model_version),
           ("\u00e9 7", "add", "1"))
    expect("version", add(client, model_version="1").get_response().model_version, "1")
    wrong = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [2, 3],
                         "data": a.reshape(-1).tolist()}]}
    refused("INVALID_ARGUMENT", client.infer, "add", [tensor("input_0", a)],
            text=ask(port, "/v2/models/add/infer", wrong)[1]["error"])
    refused("NOT_FOUND", add, client, model_version="7", text="no version 7")
    refused("NOT_FOUND", client.infer, "nobody", add_inputs(), text="no model 'nobody'")
    refused("INVALID_ARGUMENT", client.infer, "no/body", add_inputs(), text="model_name")
    refused("INVALID_ARGUMENT", add, client, parameters={"nan": "no"}, text="parameters.nan")
    refused("INVALID_ARGUMENT", client.infer, "add",
            [tensor("input_0", a.astype(numpy.int32), "INT32"), tensor("input_1", a)],
            text="datatype is INT32")
    refused("INVALID_ARGUMENT", add, client, text="'nothing'",
            outputs=[triton.InferRequestedOutput("nothing")])


def types(client, _port):
    """Every element type that numpy has, and strings."""
    inputs = []
    for item in client.get_model_metadata("pointwise_types").inputs:
        kind = item.datatype
        kinds = {"BF16": ml_dtypes.bfloat16, "BOOL": numpy.bool_}
        dtype = kinds.get(kind) or numpy.dtype(kind.lower().replace("fp", "float")).type
        inputs.append(tensor(item.name, numpy.ones(list(item.shape), dtype), kind))
    answer = client.infer("pointwise_types", inputs)
    seen = set()
    for item in answer.get_response().outputs:
        expect(item.name, list(answer.as_numpy(item.name).shape), list(item.shape))
        seen.add(item.datatype)
    expect("types", seen >= {"FP16", "BF16", "FP32", "FP64", "INT8", "UINT8", "BOOL"}, True)
    text = client.infer("methods.get_name", []).as_numpy("output_0")
    expect("bytes", text.reshape(-1).tolist(), ["autoencoder \u00e9".encode()])


def typed(_client, port):
    """Typed contents, of one input or of both; refusals of theirs."""
    stub = stub_of(port)
    a = addends()
    request = service_pb2.ModelInferRequest(model_name="add")
    for i in range(2):
        item = request.inputs.add(name=f"input_{i}", datatype="FP32", shape=[2, 3])
        item.contents.fp32_contents.extend(a.reshape(-1).tolist())
    answer = stub.ModelInfer(request)
    expect("sum", numpy.frombuffer(answer.raw_output_contents[0], numpy.float32).tolist(),
           (a + a).reshape(-1).tolist())
    request.inputs[1].contents.fp32_contents.append(1)
    refused("INVALID_ARGUMENT", stub.ModelInfer, request, text="inputs[1]")
    request.inputs[1].ClearField("contents")
    refused("INVALID_ARGUMENT", stub.ModelInfer, request, text="got neither")
    request.raw_input_contents.append(a.tobytes())
    refused("INVALID_ARGUMENT", stub.ModelInfer, request, text="beside raw_input_contents")
    request = service_pb2.ModelInferRequest(model_name="pointwise_types")
    raw_types = {"FP16", "BF16"}
    lists = {"FP32": "fp32", "FP64": "fp64", "BOOL": "bool", "INT64": "int64", "UINT64": "uint64",
             "UINT8": "uint", "UINT16": "uint", "UINT32": "uint"}
    metadata = stub.ModelMetadata(service_pb2.ModelMetadataRequest(name="pointwise_types"))
    for meta in metadata.inputs:
        item = request.inputs.add(name=meta.name, datatype=meta.datatype, shape=meta.shape)
        kind = lists.get(meta.datatype, "int")
        if meta.datatype not in raw_types:
            count = int(numpy.prod(list(meta.shape)))
            getattr(item.contents, f"{kind}_contents").extend([1] * count)
    kinds = {meta.datatype for meta in metadata.inputs}
    if kinds & raw_types:
        refused("INVALID_ARGUMENT", stub.ModelInfer, request, text="contents")


def large(client, port):
    """Tensors of megabytes are used in the body, and sent from where they are computed."""
    rows = numpy.random.default_rng(1).random((16384, 64), numpy.float32)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    before = ask(port, "/v2/models/wide/stats")[1]["model_stats"][0]["inputs"]
    head = json.dumps({"inputs": [{"name": "input_0", "datatype": "FP32", "shape": rows.shape}],
                       "parameters": {"binary_data_output": True}}).encode()
    connection.request("POST", "/v2/models/wide/infer", head + rows.tobytes(),
                       {"Inference-Header-Content-Length": str(len(head))})
    answer = connection.getresponse()
    there = answer.read()[int(answer.headers["Inference-Header-Content-Length"]):]
    for algorithm in (None, "gzip", "deflate"):
        here = client.infer("wide", [tensor("input_0", rows)], compression_algorithm=algorithm)
        expect(f"{algorithm}", here.as_numpy("output_0").tobytes() == there, True)
    after = ask(port, "/v2/models/wide/stats")[1]["model_stats"][0]["inputs"]
    expect("all calls", sum(after.values()) - sum(before.values()), 4)
    expect("in place", after["in_place"] - before["in_place"] >= 2, True)


def classifies(client, _port):
    rows = numpy.zeros((2, 12), numpy.float32)
    scores = client.infer("mlp", [tensor("input_0", rows)]).as_numpy("output_0")
    texts = client.infer("mlp", [tensor("input_0", rows)], outputs=[
        triton.InferRequestedOutput("output_0", class_count=2)]).as_numpy("output_0")
    expect("shape", texts.shape, (2, 2))
    expect("highest", int(texts[0][0].decode().split(":")[1]), int(scores[0].argmax()))


def sequences(client, _port):
    """The state of a sequence, by number and by text."""
    ones = numpy.ones(3, numpy.float32)
    for name in (7, "seven"):
        for step in range(3):
            answer = client.infer("running", [tensor("input_0", ones)], sequence_id=name,
                                  sequence_start=step == 0, sequence_end=step == 2)
            count = int(answer.as_numpy("output_1").reshape(-1)[0])
            first = count if step == 0 else first
            expect("count", count, first + step)


def shares(client, _port):
    """Tensors in shared memory."""
    a, name = addends(), f"pted-grpc-{os.getpid()}"
    handle = shm.create_shared_memory_region("region", name, 96)
    try:
        client.unregister_system_shared_memory()
        shm.set_shared_memory_region(handle, [a])
        client.register_system_shared_memory("region", name, 96)
        row = client.get_system_shared_memory_status("region").regions["region"]
        expect("status", (row.name, row.key, row.offset, row.byte_size), ("region", name, 0, 96))
        expect("all", list(client.get_system_shared_memory_status().regions), ["region"])
        item = triton.InferInput("input_0", [2, 3], "FP32")
        item.set_shared_memory("region", 24)
        output = triton.InferRequestedOutput("output_0")
        output.set_shared_memory("region", 24, offset=48)
        answer = client.infer("add", [item, tensor("input_1", a)], outputs=[output])
        expect("no data", list(answer.get_response().raw_output_contents), [b""])
        got = shm.get_contents_as_numpy(handle, numpy.float32, [2, 3], offset=48)
        expect("sum", got.tolist(), (a + a).tolist())
        output.set_shared_memory("region", 23, offset=48)
        refused("INVALID_ARGUMENT", client.infer, "add", [item, tensor("input_1", a)],
                outputs=[output], text="expected at least 24")
        refused("INVALID_ARGUMENT", client.register_system_shared_memory, "region", name, 96)
        client.unregister_system_shared_memory("region")
        refused("NOT_FOUND", client.infer, "add", [item, tensor("input_1", a)])
        refused("NOT_FOUND", client.get_system_shared_memory_status, "region")
    finally:
        shm.destroy_shared_memory_region(handle)
    expect("CUDA", len(client.get_cuda_shared_memory_status().regions), 0)
    client.unregister_cuda_shared_memory()
    refused("NOT_FOUND", client.get_cuda_shared_memory_status, "region")
    refused("UNIMPLEMENTED", client.register_cuda_shared_memory, "region", b"AAAA", 0, 64)


def asynchronous(client, port):
    """Several calls at a time, by threads and by asyncio."""
    import asyncio
    a, done = addends(), threading.Semaphore(0)
    answers = [None] * 8

    def note(i, result, error):
        answers[i] = error or result
        done.release()
    for i in range(8):
        client.async_infer("add", [tensor("input_0", a * i), tensor("input_1", a)],
                           callback=lambda result, error, i=i: note(i, result, error))
    for i in range(8):
        if not done.acquire(timeout=WAIT_S):
            raise Failure("a call has no end")
    for i in range(8):
        expect("sum", answers[i].as_numpy("output_0").tolist(), (a * i + a).tolist())

    async def many():
        async with aio.InferenceServerClient(f"127.0.0.1:{port}") as other:
            expect("live", await other.is_server_live(), True)
            got = await asyncio.gather(*(other.infer("add", add_inputs()) for _ in range(8)))
            for answer in got:
                expect("sum", answer.as_numpy("output_0").tolist(), (a + a).tolist())
    asyncio.run(many())


# ---- outcomes ----

def raw_call(port, path, body=b"", **fields):
    """A call whose messages are bytes."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    call = channel.unary_unary(path, lambda message: message, lambda message: message)
    try:
        return call(body, timeout=WAIT_S, metadata=tuple(fields.items()))
    finally:
        channel.close()


def outcomes(_client, port):
    """Statuses of calls that are wrong before a model is asked."""
    expect("answer", raw_call(port, f"/{SERVICE}/ServerLive"), b"\x08\x01")
    refused("UNIMPLEMENTED", raw_call, port, f"/{SERVICE}/Nothing", text="no method")
    refused("UNIMPLEMENTED", raw_call, port, "/nothing.Service/Call")
    refused("INVALID_ARGUMENT", raw_call, port, f"/{SERVICE}/ModelReady", b"\x0a\x05",
            text="ModelReadyRequest")
    refused("INVALID_ARGUMENT", raw_call, port, f"/{SERVICE}/ModelInfer", b"\x0a\x05",
            text="damaged")
    refused("INVALID_ARGUMENT", raw_call, port, f"/{SERVICE}/ModelMetadata", b"\x0a\x01\xff",
            text="UTF-8")
    status, answer = ask_type(port, "application/grpc-web+proto")
    expect("grpc-web", (status, "grpc-web needs a proxy" in answer["error"]), (415, True))
    status, answer = ask_type(port, "application/json")
    expect("JSON", (status, "expected application/grpc" in answer["error"]), (415, True))
    status, answer = ask_type(port, "application/grpc")
    expect("without trailers", (status, "trailers" in answer["error"]), (400, True))


def refuses_before_messages(daemon):
    """The method of HTTP, codings, metadata and pages of others."""
    client = Http2Client(daemon.port)
    path = f"/{SERVICE}/ServerLive"
    code, _ = outcome(client.ask("GET", path, CALL))
    expect("GET", code, "12")
    code, fields = outcome(client.ask("POST", path, [*CALL, ("grpc-encoding", "snappy")],
                                      framed(b"")))
    expect("coding", (code, fields.get("grpc-accept-encoding")), ("12", "identity, gzip, deflate"))
    code, fields = outcome(client.ask("POST", path, [*CALL, *[("x-a", "v")] * 200], framed(b"")))
    expect("metadata", (fields[":status"], code), ("200", "8"))
    for name in ("SystemSharedMemoryUnregister", "TraceSetting", "LogSettings"):
        answer = client.ask("POST", f"/{SERVICE}/{name}",
                            [*CALL, ("origin", "https://page.test")], framed(b""))
        code, fields = outcome(answer)
        expect(f"page, {name}", (code, "Origin" in fields["grpc-message"]), ("7", True))
    client.close()


def ask_type(port, kind):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    connection.request("POST", f"/{SERVICE}/ServerLive", struct.pack(">BI", 0, 0),
                       {"Content-Type": kind})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def held(goes_on=True):
    """A call of a model that runs until its client goes."""
    request = service_pb2.ModelInferRequest(model_name="hold")
    request.inputs.add(name="input_0", datatype="FP32", shape=[1, 4])
    request.inputs.add(name="input_1", datatype="BOOL", shape=[])
    request.raw_input_contents.append(bytes(16))
    request.raw_input_contents.append(bytes([goes_on]))
    return request


def ask_raw(port, request, *fields):
    message = request.SerializeToString()
    return send_raw(port, "ModelInfer", struct.pack(">BI", 0, len(message)) + message, *fields)


def send_raw(port, method, body, *fields):
    """The whole answer over HTTP/1.1, which has trailers, too."""
    head = "\r\n".join([f"POST /{SERVICE}/{method} HTTP/1.1", "Host: x", "TE: trailers",
                        "Content-Type: application/grpc", "Connection: close",
                        f"Content-Length: {len(body)}", *fields, "", ""]).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as client:
        client.sendall(head + body)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer


def deadlines(_client, port):
    """The server ends a call when its time is over, and when its client cancels it."""
    answer = ask_raw(port, held(), "grpc-timeout: 300m")
    if b"\r\ngrpc-status: 4\r\ngrpc-message: " not in answer or b"after 300 ms" not in answer:
        raise Failure(f"the answer is {answer!r}")
    answer = ask_raw(port, held(False), "grpc-timeout: 3 m")
    if b"\r\ngrpc-status: 3\r\n" not in answer:
        raise Failure(f"the answer is {answer!r}")
    stub = stub_of(port)
    expect("no deadline", len(stub.ModelInfer(held(False), timeout=WAIT_S).outputs) > 0, True)
    refused("DEADLINE_EXCEEDED", stub.ModelInfer, held(), timeout=0.3)
    call = stub.ModelInfer.future(held())
    wait_for_load(port, 1)
    call.cancel()
    expect("cancelled", call.cancelled(), True)
    wait_for_load(port, 0)


def wait_for_load(port, running):
    load = {}
    deadline = time.monotonic() + WAIT_S
    while load.get("running") != running:
        if time.monotonic() > deadline:
            raise Failure(f"{load}, expected {running} calls that run")
        load = ask(port, "/v2/models/hold/stats")[1]["model_stats"][0]["load"]


# ---- health, reflection ----

def checks_health(_client, port):
    stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
    serving = health_pb2.HealthCheckResponse.SERVING
    for name in ("", SERVICE, "grpc.health.v1.Health"):
        expect(name, stub.Check(health_pb2.HealthCheckRequest(service=name)).status, serving)
    refused("NOT_FOUND", stub.Check, health_pb2.HealthCheckRequest(service="nothing"))


def watches_health(daemon):
    """A watcher is told what the server and its services are, and each change."""
    serving, gone = health_pb2.HealthCheckResponse.SERVING, \
        health_pb2.HealthCheckResponse.NOT_SERVING
    stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{daemon.port}"))
    watchers = [stub.Watch(health_pb2.HealthCheckRequest(service=name), timeout=WAIT_S)
                for name in ("", SERVICE, "grpc.health.v1.Health")]
    for watcher in watchers:
        expect("first", next(watcher).status, serving)
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="x" * 300), timeout=WAIT_S)
    expect("unknown", next(unknown).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN)
    left = stub.Watch(health_pb2.HealthCheckRequest(), timeout=WAIT_S)
    expect("first", next(left).status, serving)
    left.cancel()
    time.sleep(0.5)
    expect("still one", stub.Check(health_pb2.HealthCheckRequest()).status, serving)
    answer = Http2Client(daemon.port).ask("POST", "/grpc.health.v1.Health/Watch", CALL, b"\0\0\0")
    expect("no message", outcome(answer)[0], "3")
    daemon.process.terminate()
    for watcher in watchers:
        expect("then", next(watcher).status, gone)
        refused("UNAVAILABLE", next, watcher)
    refused("UNAVAILABLE", next, unknown)
    expect("exit", daemon.process.wait(WAIT_S), 0)


def has_its_own_port(daemon):
    """At an address for gRPC alone others get a clear answer, by each version of HTTP."""
    port = int(daemon.wait_for(r"listening on grpc://127\.0\.0\.1:(\d+)\n")[1])
    expect("sum", add(Caller(port)).as_numpy("output_0").tolist(), (2 * addends()).tolist())
    stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
    expect("health", stub.Check(health_pb2.HealthCheckRequest()).status,
           health_pb2.HealthCheckResponse.SERVING)
    for path in ("/v2", "/v2/health/ready", "/v2/models/add"):
        status, answer = ask(port, path)
        expect("HTTP/1.1", (status, "is for gRPC" in answer["error"]), (403, True))
    answer = Http2Client(port).ask("GET", "/v2")
    expect("HTTP/2", (answer.status, b"is for gRPC" in answer.body), (403, True))
    expect("the other one", ask(daemon.port, "/v2")[0], 200)
    listen = f"grpc:127.0.0.1:{port},127.0.0.1:{daemon.port}"
    ping = subprocess.run([PTE, "ping"], env={**os.environ, "PTED_LISTEN": listen},
                          capture_output=True, check=False)
    expect("ping", (ping.returncode, ping.stderr), (0, b""))


def reflects(_client, port):
    """A client without any files calls a method that it finds by reflection."""
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    database = ProtoReflectionDescriptorDatabase(channel)
    expect("services", sorted(database.get_services()),
           ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection", SERVICE])
    pool = DescriptorPool(database)
    method = pool.FindServiceByName(SERVICE).FindMethodByName("ModelMetadata")
    request = message_factory.GetMessageClass(method.input_type)(name="mlp")
    answer = message_factory.GetMessageClass(method.output_type)()
    answer.ParseFromString(raw_call(port, f"/{SERVICE}/ModelMetadata", request.SerializeToString()))
    expect("name", (answer.name, answer.inputs[0].datatype), ("mlp", "FP32"))
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    unknown, = stub.ServerReflectionInfo(iter(
        [reflection_pb2.ServerReflectionRequest(file_containing_symbol="inference.Nothing")]))
    expect("unknown", unknown.error_response.error_code, 5)
    compares(stub)
    asks_in_turn(stub)


def asks_in_turn(stub):
    """A client that sends its next question when it has an answer, as grpcurl does."""
    questions = queue.Queue()
    answers = stub.ServerReflectionInfo(iter(questions.get, None), timeout=WAIT_S)
    for name in (SERVICE, "grpc.health.v1.Health", "nothing", SERVICE):
        questions.put(reflection_pb2.ServerReflectionRequest(file_containing_symbol=name))
        answer = next(answers)
        expect("question", answer.original_request.file_containing_symbol, name)
        expect("is known", answer.HasField("file_descriptor_response"), name != "nothing")
    questions.put(None)
    expect("the end", list(answers), [])
    many = stub.ServerReflectionInfo(
        iter([reflection_pb2.ServerReflectionRequest(list_services="")] * 65))
    refused("RESOURCE_EXHAUSTED", list, many, text="more than 64")


REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
CALL = [("content-type", "application/grpc"), ("te", "trailers")]
WAITING = 100  # streams


def framed(message):
    return struct.pack(">BI", 0, len(message)) + message


def ask_file(symbol):
    return framed(b"\x22" + bytes([len(symbol)]) + symbol.encode())


def outcome(answer):
    fields = {name: value for head in answer.heads for name, value in head}
    return fields.get("grpc-status"), fields


def resident_bytes(process):
    pages = pathlib.Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


def bounds_questions(daemon):
    """A client that takes no answers has one of each call made, and all of them once it takes
    them."""
    client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
    calls = [client.begin("POST", REFLECTION, CALL, ends=False) for _ in range(WAITING)]
    client.ping()
    before = resident_bytes(daemon.process)
    client.send(*(frame(DATA, 0, call, ask_file(SERVICE) * 64) for call in calls))
    client.ping()
    grown = resident_bytes(daemon.process) - before
    if grown > 32 << 20:  # all answers have 70 MB
        raise Failure(f"{grown} bytes for {WAITING} answers")
    client.gives = True
    client.send(frame(SETTINGS, 0, 0, setting(INITIAL_WINDOW_SIZE, 1 << 24)),
                frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
    client.send(*(frame(DATA, END_STREAM, call) for call in calls))
    for call in calls:
        answer = client.answer(call)
        expect("status", outcome(answer)[0], "0")
        sizes, at = [], 0
        while at < len(answer.body):
            sizes.append(int.from_bytes(answer.body[at + 1:at + 5], "big"))
            at += 5 + sizes[-1]
        expect("answers of one size", (len(sizes), len(set(sizes)), at), (64, 1, len(answer.body)))
    client.close()


def refuses_long_questions(daemon):
    """The prefix is enough, before a byte of the question."""
    client = Http2Client(daemon.port)
    for body in (struct.pack(">BI", 0, 4097), ask_file(SERVICE) + struct.pack(">BI", 0, 60 << 20)):
        answer = client.answer(client.begin("POST", REFLECTION, CALL, body, ends=False))
        code, fields = outcome(answer)
        expect("status", (code, "at most 4096 bytes" in fields["grpc-message"]), ("8", True))
    client.close()


def leaves_reflection(daemon):
    """Clients that go with questions open harm nobody."""
    for ends in (False, True):
        for window in (0, 20000, 1 << 20):
            client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, window), gives=False)
            calls = [client.begin("POST", REFLECTION, CALL, ask_file(SERVICE) * 64, ends=ends)
                     for _ in range(8)]
            client.ping()
            client.send(*(frame(RST_STREAM, 0, call, struct.pack(">I", CANCEL))
                          for call in calls[:4]))
            client.ping()
            client.close()
    expect("live", raw_call(daemon.port, f"/{SERVICE}/ServerLive"), b"\x08\x01")


def fields_of(message):
    return {field.name: (field.number, field.type, field.label) for field in message.field}


def walk(messages, prefix=""):
    for message in messages:
        yield prefix + message.name, message
        yield from walk(message.nested_type, prefix + message.name + ".")


def compares(stub):
    """What pted says of each message agrees with the packages; of a configuration it says less."""
    packages = {"inference": (service_pb2, model_config_pb2), "grpc.health.v1": (health_pb2,),
                "grpc.reflection.v1alpha": (reflection_pb2,)}
    for symbol in (SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"):
        answer, = stub.ServerReflectionInfo(iter(
            [reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)]))
        here = descriptor_pb2.FileDescriptorProto.FromString(
            answer.file_descriptor_response.file_descriptor_proto[0])
        there, enums, services = {}, {}, {}
        for module in packages[here.package]:
            file = descriptor_pb2.FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(file)
            there.update(walk(file.message_type))
            enums.update({item.name: item for item in file.enum_type})
            services.update({item.name: item for item in file.service})
        seen = dict(walk(here.message_type))
        for name, message in seen.items():
            theirs = fields_of(there[name])
            expect(name, {key: theirs.get(key) for key in fields_of(message)}, fields_of(message))
            for item in message.enum_type:
                expect(item.name, item, *(e for e in there[name].enum_type if e.name == item.name))
            if not name.startswith("Model") or name.startswith("ModelInfer"):
                expect(f"all of {name}", set(theirs), set(fields_of(message)))
        for item in here.enum_type:
            expect(item.name, item, enums[item.name])
        for item in here.service:
            expect(item.name, {m.name: (m.input_type, m.output_type, m.client_streaming,
                                        m.server_streaming) for m in item.method},
                   {m.name: (m.input_type, m.output_type, m.client_streaming,
                             m.server_streaming) for m in services[item.name].method})


# ---- administrators ----

def is_no_administrator(client, port):
    """Anybody may look, but change nothing."""
    for call in (lambda: client.update_log_settings({"log_info": False}),
                 lambda: client.update_trace_settings(settings={"trace_rate": "1"}),
                 lambda: client.load_model("mlp"), lambda: client.unload_model("mlp")):
        refused("PERMISSION_DENIED", call, text="for administrators")
    there = ask(port, "/v2/logging")[1]
    here = client.get_log_settings().settings
    expect("log", {name: list(v for _, v in value.ListFields())[:1] or [False]
                   for name, value in here.items()},
           {name: [value] if value != "" else [""] for name, value in there.items()})
    there = ask(port, "/v2/trace/setting")[1]
    here = client.get_trace_settings().settings
    expect("traces", {name: list(value.value) for name, value in here.items()},
           {name: value if isinstance(value, list) else [value] for name, value in there.items()})
    expect("of a model", client.get_trace_settings("add").settings["trace_rate"].value,
           here["trace_rate"].value)


def loads_and_unloads(client, _port):
    client.unload_model("mlp")
    expect("ready", client.is_model_ready("mlp"), False)
    expect("index", {row.name: row.state for row in client.get_model_repository_index().models},
           {"add": "READY", "mlp": "UNAVAILABLE"})
    client.load_model("mlp")
    expect("ready", client.is_model_ready("mlp"), True)
    client.unload_model("mlp", unload_dependents=True)
    client.load_model("mlp")
    refused("NOT_FOUND", client.load_model, "nobody")
    refused("UNIMPLEMENTED", client.load_model, "mlp", config="{}")
    refused("UNIMPLEMENTED", client.load_model, "mlp", config="{}", files={"file:1/x": b"abc"})
    expect("still ready", client.is_model_ready("mlp"), True)


def sets(client, _port):
    """Settings of the log and of traces."""
    got = client.update_log_settings({"log_info": False}).settings
    expect("log", (got["log_info"].bool_param, got["log_error"].bool_param), (False, True))
    refused("INVALID_ARGUMENT", client.update_log_settings, {"log_error": False})
    refused("UNIMPLEMENTED", client.update_log_settings, {"log_file": "/tmp/x"})
    client.update_log_settings({"log_info": True})
    expect("default", client.update_trace_settings(settings={
        "trace_rate": None, "trace_level": ["OFF"]}).settings["trace_level"].value, ["OFF"])
    refused("UNIMPLEMENTED", client.update_trace_settings, settings={"trace_rate": "7"})
    refused("INVALID_ARGUMENT", client.update_trace_settings, settings={"trace_level": ["LOUD"]})
    refused("NOT_FOUND", client.update_trace_settings, "nobody", {})


def metadata(_client, port):
    """Tokens, traces and ids are metadata."""
    stub = stub_of(port)
    ask_server = service_pb2.ServerMetadataRequest()
    refused("UNAUTHENTICATED", stub.ServerMetadata, ask_server, text="Bearer")
    refused("UNAUTHENTICATED", stub.ModelInfer, service_pb2.ModelInferRequest(model_name="add"))
    expect("health needs none", stub.ServerLive(service_pb2.ServerLiveRequest()).live, True)
    token = (("authorization", f"Bearer {TOKEN}"),)
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    answer, call = stub.ServerMetadata.with_call(
        ask_server, metadata=(*token, ("traceparent", trace), ("x-request-id", "r7")))
    expect("name", answer.name, "pted")
    here = dict(call.initial_metadata())
    expect("id, trace", (here["x-request-id"], here["traceparent"][:35]), ("r7", trace[:35]))
    settings = service_pb2.LogSettingsRequest()
    expect("log", len(stub.LogSettings(settings, metadata=token).settings) > 3, True)
    settings.settings["log_info"].bool_param = False
    refused("PERMISSION_DENIED", stub.LogSettings, settings, metadata=token, text="scope admin")
    refused("PERMISSION_DENIED", stub.RepositoryModelUnload, metadata=token, text="scope admin",
            request=service_pb2.RepositoryModelUnloadRequest(model_name="add"))


def limits(_client, port):
    """Messages as large as the limit of bodies, and what their prefixes say."""
    stub = stub_of(port)
    request = service_pb2.ModelInferRequest(model_name="wide")
    request.inputs.add(name="input_0", datatype="FP32", shape=[3072, 64])
    request.raw_input_contents.append(bytes(3072 * 256))
    expect("below the limit", len(stub.ModelInfer(request).outputs), 1)
    request.raw_input_contents[0] = bytes(1 << 20)
    refused("RESOURCE_EXHAUSTED", stub.ModelInfer, request, text="expected at most 1048576")
    control = service_pb2.SystemSharedMemoryRegisterRequest(key="k" * (300 << 10))
    refused("RESOURCE_EXHAUSTED", stub.SystemSharedMemoryRegister, control)
    expect("still there", stub.ServerLive(service_pb2.ServerLiveRequest()).live, True)
    for prefix, text in ((b"\0\0\0\0\2", b"got 1"), (b"\2\0\0\0\1", b"begins with 2"),
                         (b"\0\0\0", b"got 4"), (b"\0\0\0\0\0", b"bytes behind it"),
                         (b"\0\xff\xff\xff\xff", b"4294967295 bytes"),
                         (b"\1\0\0\0\1", b"grpc-encoding")):
        answer = send_raw(port, "ModelInfer", prefix + b"x")
        if text not in answer:
            raise Failure(f"{prefix}: {answer!r}, expected {text}")


def everything():
    """No call of the client has been left out."""
    names = {name for name in dir(triton.InferenceServerClient) if not name.startswith("_")}
    expect("calls that no check makes", names - made,
           {"plugin", "register_plugin", "unregister_plugin", "close", "start_stream",
            "stop_stream", "async_stream_infer"})  # run_grpc_stream.py has the last ones


def run_check(check, client, port):
    try:
        check(client, port)
    except (triton.InferenceServerException, grpc.RpcError) as error:
        raise Failure(f"{error}") from error


def run_checks(report, checks, arguments, port=lambda daemon: daemon.port):
    with Daemon(arguments) as daemon:
        client = Caller(port(daemon))
        for check in checks:
            report.run(check.__name__, run_check, check, client, port(daemon))
        client.client.close()


def main():
    if not triton:
        print("tritonclient[grpc] and its companions (tests/requirements.txt) are not installed")
        return SKIPPED
    report = Report()
    run_checks(report, [describes, counts, infers, types, typed, large, classifies, sequences,
                        shares, asynchronous, outcomes, deadlines, checks_health, reflects,
                        is_no_administrator],
               ["--shared-memory=loopback",
                *models("add", "mlp", "methods", "pointwise_types", "running", "wide"), HOLD])
    run_checks(report, [limits], ["--body-bytes-max=1048576", *models("wide")])
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"ci infer,read sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
        file.flush()
        run_checks(report, [metadata], ["--token-file", file.name, *models("add")])
    run_checks(report, [loads_and_unloads, sets],
               ["--admin-listen", "127.0.0.1:0", *models("add", "mlp")], Daemon.admin_port)
    with Daemon([*models("add"), "--admin-listen", "127.0.0.1:0"]) as daemon:
        for check in (bounds_questions, refuses_long_questions, leaves_reflection,
                      refuses_before_messages):
            report.run(check.__name__, check, daemon)
    with Daemon(models("add")) as daemon:
        report.run("watches_health", watches_health, daemon)
    with Daemon(["--listen", "grpc:127.0.0.1:0", *models("add")]) as daemon:
        report.run("has_its_own_port", has_its_own_port, daemon)
    report.run("everything", everything)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
