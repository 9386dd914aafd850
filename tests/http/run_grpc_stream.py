#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ModelStreamInfer against a real daemon: streams of tritonclient, and clients that send and read
what they like. Skipped as run_grpc.py is.

usage: run_grpc_stream.py, with top_srcdir and top_builddir in the environment.
"""
import queue
import socket
import struct
import sys
import threading
import time

from http2_client import (CANCEL, DATA, END_STREAM, INITIAL_WINDOW_SIZE, RST_STREAM, WINDOW_UPDATE,
                          Http2Client, frame, setting)
from load import HOLD, wait_until
from run_grpc import (CALL, SERVICE, SKIPPED, WAIT_S, add_inputs, addends, ask, framed, held,
                      models, outcome, refused, resident_bytes, send_raw, stub_of, tensor, triton,
                      wait_for_load)
from run_generate import CHAT
from run_http import Daemon, Failure, Report, expect

if triton:
    import asyncio

    import grpc
    import numpy
    from tritonclient.grpc import aio, service_pb2

PATH = f"/{SERVICE}/ModelStreamInfer"
WIDE_ROWS = 100  # rows of 256 bytes


class Stream:
    """A stream of the client that blocks."""

    def __init__(self, port, **options):
        self.client = triton.InferenceServerClient(f"127.0.0.1:{port}")
        self.answers = queue.Queue()
        self.client.start_stream(lambda result, error: self.answers.put((result, error)),
                                 **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop_stream()
        self.client.close()

    def infer(self, *arguments, **options):
        self.client.async_stream_infer(*arguments, **options)

    def take(self):
        """The next answer: its message, or the text of its error."""
        result, error = self.answers.get(timeout=WAIT_S)
        return error.message() if error else result.get_response()


def wide_request(rows=WIDE_ROWS, **more):
    request = service_pb2.ModelInferRequest(model_name="wide", **more)
    request.inputs.add(name="input_0", datatype="FP32", shape=[rows, 64])
    request.raw_input_contents.append(bytes(rows * 256))
    return request


def add_request(**more):
    request = service_pb2.ModelInferRequest(model_name="add", **more)
    for i in range(2):
        request.inputs.add(name=f"input_{i}", datatype="FP32", shape=[2, 3])
        request.raw_input_contents.append(addends().tobytes())
    return request


def timed(request, ms):
    request.parameters["timeout"].int64_param = ms * 1000
    return request


def sum_of(response):
    return numpy.frombuffer(response.raw_output_contents[0], numpy.float32).tolist()


SUM = [float(2 * i) for i in range(6)]


def messages_of(body):
    """The answers of a stream, from the bytes of its body."""
    at, found = 0, []
    while at < len(body):
        size = struct.unpack(">I", body[at + 1:at + 5])[0]
        found.append(service_pb2.ModelStreamInferResponse.FromString(body[at + 5:at + 5 + size]))
        at += 5 + size
    return found


def bytes_of(*requests):
    return b"".join(framed(request.SerializeToString()) for request in requests)


# ---- answers ----

def answers(port):
    """Many requests in flight; an error is one answer, and the stream goes on."""
    with Stream(port) as stream:
        for i in range(200):
            stream.infer("nobody" if i % 10 == 0 else "add", add_inputs(), request_id=f"r{i}")
        seen = {}
        for i in range(200):
            got = stream.take()
            if isinstance(got, str):
                seen[len(seen)] = got
                continue
            expect("sum", sum_of(got), SUM)
            expect("final", got.parameters["triton_final_response"].bool_param, True)
            seen[got.id] = got
        errors = [text for text in seen.values() if isinstance(text, str)]
        expect("errors", set(errors), {ask(port, "/v2/models/nobody")[1]["error"]})
        expect("counts", (len(seen), len(errors)), (200, 20))
    row, = ask(port, "/v2/models/add/stats")[1]["model_stats"]
    expect("counted", row["inference_stats"]["success"]["count"], 180)


def names_failures(port):
    """An error has the id of its request beside it."""
    with Stream(port) as stream:
        stream.infer("add", add_inputs(), request_id="x", model_version="7")
        expect("text", "no version 7" in stream.take(), True)
    call = stub_of(port).ModelStreamInfer(iter([add_request(id="\u00e9", model_version="7")]))
    got = next(call)
    expect("id", (got.infer_response.id, "no version 7" in got.error_message), ("\u00e9", True))
    expect("end", (list(call), call.code()), ([], grpc.StatusCode.OK))


def orders(port):
    """Answers without an id have the order of their requests; others do not wait."""
    stub = stub_of(port)
    slow, fast = timed(held(), 400), add_request()
    got = list(stub.ModelStreamInfer(iter([slow, fast, fast])))
    expect("first", "after 400 ms" in got[0].error_message, True)
    expect("others", [sum_of(one.infer_response) for one in got[1:]], [SUM, SUM])
    slow.id, fast.id = "slow", "fast"
    got = list(stub.ModelStreamInfer(iter([slow, fast, fast])))
    expect("as they come", [one.infer_response.id for one in got], ["fast", "fast", "slow"])


def asynchronous(port):
    """The client of asyncio."""
    async def requests():
        for i in range(50):
            yield {"model_name": "add", "inputs": add_inputs(), "request_id": str(i),
                   "enable_empty_final_response": i % 2 == 0}

    async def many():
        seen = []
        async with aio.InferenceServerClient(f"127.0.0.1:{port}") as client:
            async for result, error in client.stream_infer(requests(), stream_timeout=WAIT_S):
                expect("error", error, None)
                seen.append(result.get_response().id)
        return seen
    expect("ids", sorted(asyncio.run(many()), key=int), [str(i) for i in range(50)])


def sequences(port):
    """Calls of a sequence keep their order, however many are in flight."""
    ones = numpy.ones(3, numpy.float32)
    with Stream(port) as stream:
        for name in (7, "seven"):
            for step in range(40):
                stream.infer("running", [tensor("input_0", ones)], sequence_id=name,
                             sequence_start=step == 0, sequence_end=step == 39,
                             request_id=f"{name} {step}")
        steps = {"7": [], "seven": []}
        for _ in range(80):
            got = stream.take()
            name, step = got.id.split()
            place = [output.name for output in got.outputs].index("output_1")
            count = int.from_bytes(got.raw_output_contents[place], "little")
            steps[name].append((int(step), count))
        for rows in steps.values():
            first = rows[0][1]
            expect("steps", rows, [(step, first + step) for step in range(40)])


def compresses(port):
    """Compressed requests."""
    for algorithm in (grpc.Compression.Gzip, grpc.Compression.Deflate):
        got = list(stub_of(port).ModelStreamInfer(iter([wide_request(id="a"), add_request()] * 3),
                                                  compression=algorithm))
        expect("answers", [len(one.infer_response.outputs) for one in got], [1] * 6)


def large(port):
    """A message of megabytes, between small ones."""
    got = list(stub_of(port, options=[("grpc.max_receive_message_length", -1)]).ModelStreamInfer(
        iter([add_request(), wide_request(16384), add_request()])))
    expect("sizes", [len(one.infer_response.raw_output_contents[0]) > 1 << 16 for one in got],
           [False, True, False])


# ---- generations ----

PROMPT = "Once upon a time"


def text_of(response):
    """The text of an answer to a generation."""
    expect("outputs", [(out.name, out.datatype, list(out.shape)) for out in response.outputs],
           [("text_output", "BYTES", [1])])
    raw = response.raw_output_contents[0]
    expect("length", struct.unpack("<I", raw[:4])[0], len(raw) - 4)
    return raw[4:].decode()


def said(port, **members):
    """What HTTP answers."""
    status, answer = ask(port, "/v2/models/chat/generate",
                         {"text_input": PROMPT, "parameters": {"temperature": 0, **members}})
    expect("status", status, 200)
    return answer


def text_input(text=PROMPT, name="text_input", shape=(1,)):
    item = triton.InferInput(name, shape, "BYTES")
    item.set_data_from_numpy(numpy.array([text.encode()], numpy.object_).reshape(shape))
    return item


def number_input(name, value, kind, dtype, shape=(1,)):
    item = triton.InferInput(name, shape, kind)
    item.set_data_from_numpy(numpy.array([value], dtype).reshape(shape))
    return item


def is_final(response):
    return response.parameters["triton_final_response"].bool_param


def generates(port):
    """Tokens as they come, until the one that says that it is the last."""
    there = said(port, max_tokens=24, ignore_eos=True)
    options = {"temperature": 0, "ignore_eos": True}
    ways = (
        ([text_input()], {"parameters": {**options, "max_tokens": 24}}),
        ([text_input(shape=(1, 1)), number_input("max_tokens", 24, "INT32", numpy.int32, (1, 1)),
          number_input("temperature", 0, "FP32", numpy.float32),
          number_input("ignore_eos", True, "BOOL", numpy.bool_)],
         {"enable_empty_final_response": True}),
        ([text_input(), number_input("stream", True, "BOOL", numpy.bool_),
          text_input('{"temperature": 0, "max_tokens": 24, "ignore_eos": true}',
                     "sampling_parameters")], {}),
    )
    with Stream(port) as stream:
        for inputs, more in ways:
            stream.infer("chat", inputs, request_id="g", **more)
            pieces = [stream.take()]
            while not is_final(pieces[-1]):
                pieces.append(stream.take())
            expect("text", "".join(text_of(piece) for piece in pieces), there["text_output"])
            expect("several", len(pieces) > 4, True)
            expect("id", {(piece.id, piece.model_name) for piece in pieces}, {("g", "chat")})
            last = pieces[-1].parameters
            expect("end", (last["finish_reason"].string_param,
                           last["prompt_tokens"].int64_param,
                           last["completion_tokens"].int64_param),
                   ("length", there["usage"]["prompt_tokens"], 24))
        stream.infer("chat", [text_input(), number_input("stream", False, "BOOL", numpy.bool_)],
                     parameters={**options, "max_tokens": 24})
        whole = stream.take()
        expect("one answer", (text_of(whole), is_final(whole)), (there["text_output"], True))


def generates_once(client, port):
    """ModelInfer has the whole text."""
    there = said(port, max_tokens=9)
    got = client.infer("chat", [text_input()], request_id="u",
                       parameters={"temperature": 0, "max_tokens": 9}).get_response()
    expect("text", (text_of(got), got.id), (there["text_output"], "u"))
    expect("reason", got.parameters["finish_reason"].string_param, there["finish_reason"])
    stop = triton.InferInput("stop", [2], "BYTES")
    stop.set_data_from_numpy(numpy.array([b"the", b" a"], numpy.object_))
    got = client.infer("chat", [text_input(), stop], parameters={"temperature": 0,
                                                                 "max_tokens": 40})
    expect("stops", text_of(got.get_response()),
           said(port, max_tokens=40, stop=["the", " a"])["text_output"])
    for inputs, parameters, text in (
            ([text_input()], {"stream": True}, "expected ModelStreamInfer"),
            ([text_input()], {"max_tokens": -1}, "max_tokens"),
            ([text_input(), text_input("[]", "sampling_parameters")], {}, "JSON object"),
            ([text_input(), text_input('{"a":1}}', "sampling_parameters")], {}, "sampling_"),
            ([text_input(), number_input("max_tokens", 3, "INT32", numpy.int32)],
             {"max_tokens": 3}, "max_tokens: the key repeats"),
            ([number_input("text_input", 3, "INT32", numpy.int32)], {}, "of datatype BYTES")):
        refused("INVALID_ARGUMENT", client.infer, "chat", inputs, parameters=parameters, text=text)
    refused("INVALID_ARGUMENT", client.infer, "add", [text_input()])


LONG = {"temperature": 0, "ignore_eos": True, "max_tokens": 200}


def generate_request(**more):
    request = service_pb2.ModelInferRequest(model_name="chat", **more)
    request.inputs.add(name="text_input", datatype="BYTES", shape=[1]).contents.bytes_contents \
        .append(PROMPT.encode())
    for name, value in LONG.items():
        kind = {bool: "bool_param", int: "int64_param"}[type(value)]
        setattr(request.parameters[name], kind, value)
    return request


def mixes(port):
    """Two generations and calls of tensors on one stream."""
    there = said(port, **LONG)["text_output"]
    requests = [generate_request(id="a"), generate_request(id="b"), add_request(id="t"),
                add_request(id="u")]
    texts, order = {"a": "", "b": ""}, []
    for one in stub_of(port).ModelStreamInfer(iter(requests)):
        answer = one.infer_response
        expect("error", one.error_message, "")
        order.append(answer.id)
        if answer.id in texts:
            texts[answer.id] += text_of(answer)
    expect("texts", texts, {"a": there, "b": there})
    expect("side by side", order.index("b") < len(order) - order[::-1].index("a"), True)
    expect("tensors first", max(order.index("t"), order.index("u")) < len(order) - 20, True)


def stops_in_generation(daemon):
    """A client that stops reading in the middle of an answer, one that resets it, and one whose
    model is asked for something wrong in between."""
    there = said(daemon.port, **LONG)["text_output"]
    client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 500), gives=False)
    number = client.begin("POST", PATH, CALL, bytes_of(generate_request(id="a")))
    left = client.begin("POST", PATH, CALL, bytes_of(generate_request(id="b")))
    client.until(lambda: len(client.answers[number].body) == 500)
    client.send(frame(RST_STREAM, 0, left, struct.pack(">I", CANCEL)))
    time.sleep(0.5)
    client.ping()
    expect("held", len(client.answers[number].body), 500)
    client.send(frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 1 << 20)))
    answer = client.answer(number)
    found = messages_of(answer.body)
    expect("text", "".join(text_of(one.infer_response) for one in found), there)
    wait_until("no generation is left", lambda: ask(daemon.port, "/v2/models/chat/stats")[1][
        "model_stats"][0]["load"]["running"] == 0)
    client.close()


# ---- ends ----

def cancels(port):
    """A stream that is reset, or whose time is over, cancels its calls."""
    stub = stub_of(port)
    for end in (lambda call: call.cancel(), lambda call: refused("DEADLINE_EXCEEDED", next, call)):
        call = stub.ModelStreamInfer(iter([held(), held(), held()]), timeout=3)
        wait_for_load(port, 3)
        end(call)
        wait_for_load(port, 0)
    client = Http2Client(port)
    number = client.begin("POST", PATH, CALL, bytes_of(held(), held()), ends=False)
    wait_for_load(port, 2)
    client.send(frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL)))
    wait_for_load(port, 0)
    number = client.begin("POST", PATH, [*CALL, ("grpc-timeout", "400m")], bytes_of(held()))
    got = messages_of(client.answer(number).body)
    expect("deadline", ["not done after" in one.error_message for one in got], [True])
    client.close()


def broken(port):
    """Messages that are none, and those that come in pieces."""
    client = Http2Client(port)
    for body, status, text in ((b"\2\0\0\0\1x", "3", "begins with 2"),
                               (b"\0\xff\xff\xff\xff" + b"x" * 100, "8", "--body-bytes-max"),
                               (b"\0\0\0", "3", "within a message"),
                               (framed(b"x" * 50)[:30], "3", "within a message"),
                               (b"", "0", ""),
                               (bytes_of(add_request()) + b"\0\0", "3", "within a message")):
        code, fields = outcome(client.ask("POST", PATH, CALL, body))
        expect(text, (code, text in fields.get("grpc-message", "")), (status, True))
    answer = client.ask("POST", PATH, CALL, framed(b"") + framed(b"\x0a\x05") +
                        framed(b"\xff" * 300) + bytes_of(add_request()))
    got = messages_of(answer.body)
    expect("outcome", (outcome(answer)[0], len(got)), ("0", 4))
    expect("errors", [bool(one.error_message) for one in got], [True, True, True, False])
    for size in (1, 3, 7):
        body = bytes_of(add_request(), add_request())
        number = client.begin("POST", PATH, CALL, ends=False)
        for at in range(0, len(body), size):
            client.send(frame(DATA, 0, number, body[at:at + size]))
        client.send(frame(DATA, END_STREAM, number))
        got = messages_of(client.answer(number).body)
        expect("pieces", [sum_of(one.infer_response) for one in got], [SUM, SUM])
    client.close()
    answer = send_raw(port, "ModelStreamInfer", bytes_of(add_request()))
    expect("HTTP/1.1", b"\r\ngrpc-status: 12\r\n" in answer and b"needs HTTP/2" in answer, True)


def leaves(daemon):
    """Clients that go at any place harm nobody."""
    body = bytes_of(wide_request(), held(), add_request(), wide_request(id="x")) * 4
    for window in (0, 5000, 1 << 20):
        for cut in (3, 20, 70000, len(body)):
            client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, window), gives=False)
            for number in [client.begin("POST", PATH, CALL, body[:min(cut, 65000)], ends=False)
                           for _ in range(3)][:2]:
                client.send(frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL)))
            client.ping()
            client.close()
    wait_for_load(daemon.port, 0)
    answers_others(daemon.port)


def answers_others(port):
    got, = stub_of(port).ModelStreamInfer(iter([add_request()]))
    expect("sum", sum_of(got.infer_response), SUM)


# ---- memory ----

LARGE_ROWS = 1250  # of a ring of 2 MiB there is room for six


def fill_memory(client, count):
    """Streams that hold memory: an answer that is not taken, and a message that does not end."""
    streams = [client.begin("POST", PATH, CALL, ends=False) for _ in range(count)]
    client.ping()
    for number in streams:
        client.send(frame(DATA, 0, number, framed(b"\x0a\x01x")))
    client.ping()
    for number in streams:
        client.send_body(number, b"\0" + struct.pack(">I", 1000000) + bytes(60000))


def begin_late(daemon, client, first):
    """A stream whose first answer is late, and a large one that waits for it."""
    number = client.begin("POST", PATH, CALL, ends=False)
    client.send_body(number, bytes_of(first))
    wait_for_load(daemon.port, 1)
    client.send_body(number, bytes_of(wide_request(LARGE_ROWS)))
    return number


def texts_of(answer):
    """The errors of the answers of a stream that has ended well."""
    expect("outcome", (answer.reset, outcome(answer)[0]), (None, "0"))
    return [one.error_message for one in messages_of(answer.body)]


GIVEN = "the answer waits for those before it while others need its memory"


def needs_its_own(daemon):
    """A message needs memory while an answer of its own stream waits for its turn: that stays."""
    client = Http2Client(daemon.port)
    others = [Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
              for _ in range(2)]
    number = begin_late(daemon, client, timed(held(), 2500))
    time.sleep(0.3)
    for other in others:
        fill_memory(other, 15)
    client.send(frame(DATA, END_STREAM, number, bytes_of(add_request())))
    texts = texts_of(client.answer(number))
    expect("errors", ("after 2500 ms" in texts[0], len(texts)), (True, 3))
    expect("others", set(texts[1:]) <= {"", GIVEN}, True)
    for one in (client, *others):
        one.close()
    answers_others(daemon.port)


def needs_more(daemon):
    """A client that takes one of its answers sends on, where the others, which wait for their turn,
    and an upload that has stopped hold the memory."""
    client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
    number = begin_late(daemon, client, held())
    client.send_body(number, bytes_of(wide_request(400)))
    with socket.create_connection(("127.0.0.1", daemon.port)) as stalled:
        stalled.sendall(b"POST /v2/models/wide/infer HTTP/1.1\r\nHost: x\r\n"
                        b"Content-Type: application/octet-stream\r\n"
                        b"Inference-Header-Content-Length: 100\r\nContent-Length: 305000\r\n\r\n" +
                        bytes(304000))
        time.sleep(0.5)
        client.send_body(number, bytes_of(add_request(id="e")))
        time.sleep(0.3)
        body = bytes_of(wide_request(300), add_request())
        client.send_body(number, body[:30000])
        client.send(frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 1000)))
        client.send_body(number, body[30000:])
    expect("reset", client.answers[number].reset, None)
    client.close()
    wait_for_load(daemon.port, 0)
    answers_others(daemon.port)


def gives_way(daemon):
    """Others need the memory of answers that wait for their turn: errors take their places, and
    the stream goes on."""
    client = Http2Client(daemon.port)
    number = begin_late(daemon, client, timed(held(), 2500))
    time.sleep(0.3)
    for _ in range(2):
        client.send_body(number, bytes_of(wide_request(LARGE_ROWS)))
    time.sleep(0.3)
    stub = stub_of(daemon.port)
    for _ in range(3):
        got = stub.ModelInfer(wide_request(3 * LARGE_ROWS))
        expect("bytes", len(got.raw_output_contents[0]), 3 * LARGE_ROWS * 256)
    client.send(frame(DATA, END_STREAM, number, bytes_of(add_request())))
    texts = texts_of(client.answer(number))
    expect("errors", ("after 2500 ms" in texts[0], len(texts), texts[-1]), (True, 5, ""))
    expect("others", set(texts[1:]), {"", GIVEN})
    client.close()


# ---- bounds ----

def bounds_calls(daemon):
    """So many calls of a stream at a time, and what is behind them is not read."""
    client = Http2Client(daemon.port)
    number = client.begin("POST", PATH, CALL, bytes_of(*[held()] * 3), ends=False)
    wait_for_load(daemon.port, 2)
    body = bytes_of(*[wide_request(60)] * 4)
    client.send(frame(DATA, 0, number, body[:16000]), frame(DATA, 0, number, body[16000:32000]),
                frame(DATA, 0, number, body[32000:48000]))
    client.ping()
    time.sleep(0.3)
    client.ping()
    expect("not read", client.windows.get(number, 0) < 32000, True)
    wait_for_load(daemon.port, 2)
    others = client.ask("POST", PATH, CALL, bytes_of(add_request()))
    expect("others", sum_of(messages_of(others.body)[0].infer_response), SUM)
    client.send(frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL)))
    wait_for_load(daemon.port, 0)
    client.close()


def stops_reading(daemon):
    """Who does not read is not read, and loses nothing; others of the connection go on."""
    client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 0), gives=False)
    body = bytes_of(wide_request())
    streams = [client.begin("POST", PATH, CALL, ends=False) for _ in range(8)]
    client.ping()
    before, sent = resident_bytes(daemon.process), 0
    while sent < 40 and (client.windows.get(streams[0], 0) + 65535 >= (sent + 1) * len(body)):
        for number in streams:
            for at in range(0, len(body), 16384):
                client.send(frame(DATA, 0, number, body[at:at + 16384]))
        sent += 1
        client.ping()
        client.ping()
    expect("messages that were taken", 0 < sent < 8, True)
    grown = resident_bytes(daemon.process) - before
    expect(f"bytes: {grown}", grown < 64 << 20, True)
    live = client.begin("POST", PATH, CALL, bytes_of(add_request()))
    client.send(frame(WINDOW_UPDATE, 0, live, struct.pack(">I", 1 << 16)))
    expect("others", len(messages_of(client.answer(live).body)), 1)
    client.gives = True
    client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30)))
    for number in streams:
        client.send(frame(DATA, END_STREAM, number),
                    frame(WINDOW_UPDATE, 0, number, struct.pack(">I", 1 << 24)))
    for number in streams:
        got = messages_of(client.answer(number).body)
        expect("answers", [len(one.infer_response.outputs) for one in got], [1] * sent)
    client.close()


def tiny(daemon):
    """Thousands of empty messages in few frames beside another client."""
    client = Http2Client(daemon.port, setting(INITIAL_WINDOW_SIZE, 1 << 24), gives=False)
    client.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24)))
    number = client.begin("POST", PATH, CALL, ends=False)
    client.send(*(frame(DATA, 0, number, framed(b"") * 1000) for _ in range(12)))
    answers_others(daemon.port)
    client.send(frame(DATA, END_STREAM, number))
    answer = client.answer(number)
    expect("outcome", (outcome(answer)[0], len(messages_of(answer.body))), ("0", 12000))
    client.close()


def rests(daemon):
    """A stream without calls ends in time; one whose calls run does not."""
    client = Http2Client(daemon.port)
    number = client.begin("POST", PATH, CALL, bytes_of(timed(held(), 2500)), ends=False)
    got = client.answer(number)
    found = messages_of(got.body)
    expect("late answer", ["after 2500 ms" in one.error_message for one in found], [True])
    expect("then the end", outcome(got)[0], "4")
    number = client.begin("POST", PATH, CALL, bytes_of(add_request())[:50], ends=False)
    expect("half a message", outcome(client.answer(number))[0], "4")
    client.close()


def drains(daemon):
    """Calls that run are answered while the daemon stops; then the stream ends."""
    client = Http2Client(daemon.port)
    number = client.begin("POST", PATH, CALL, bytes_of(timed(held(), 1500), held()), ends=False)
    wait_for_load(daemon.port, 2)
    daemon.process.terminate()
    client.send(frame(DATA, 0, number, bytes_of(timed(held(), 200))))
    ended = threading.Timer(2.5, lambda: client.send(
        frame(RST_STREAM, 0, number, struct.pack(">I", CANCEL))))
    ended.start()
    client.until(lambda: client.answers[number].body)
    found = messages_of(client.answers[number].body)
    expect("answer", ["after 1500 ms" in one.error_message for one in found], [True])
    ended.join()
    client.close()
    expect("exit", daemon.process.wait(WAIT_S), 0)


def ends_at_stop(daemon):
    """A stream without calls ends when the daemon stops."""
    client = Http2Client(daemon.port)
    number = client.begin("POST", PATH, CALL, bytes_of(add_request()), ends=False)
    client.until(lambda: client.answers[number].body)
    daemon.process.terminate()
    expect("outcome", outcome(client.answer(number))[0], "14")
    client.close()
    expect("exit", daemon.process.wait(WAIT_S), 0)


def main():
    if not triton:
        print("tritonclient[grpc] and its companions (tests/requirements.txt) are not installed")
        return SKIPPED
    report = Report()
    served = models("add", "wide", "running")
    with Daemon([*served, HOLD]) as daemon:
        for check in (answers, names_failures, orders, asynchronous, sequences, compresses, large,
                      cancels, broken):
            report.run(check.__name__, check, daemon.port)
        for check in (leaves, stops_reading, tiny):
            report.run(check.__name__, check, daemon)
    with Daemon([*CHAT, *served]) as daemon:
        client = triton.InferenceServerClient(f"127.0.0.1:{daemon.port}")
        report.run("generates_once", generates_once, client, daemon.port)
        client.close()
        for check in (generates, mixes):
            report.run(check.__name__, check, daemon.port)
        report.run("stops_in_generation", stops_in_generation, daemon)
    with Daemon(["--ring-bytes=2M", *served, HOLD]) as daemon:
        for check in (needs_its_own, needs_more, gives_way):
            report.run(check.__name__, check, daemon)
    with Daemon(["--stream-call-count-max=2", *served, HOLD]) as daemon:
        report.run("bounds_calls", bounds_calls, daemon)
    with Daemon(["--idle-timeout=1s", "--body-timeout=500ms", *served, HOLD]) as daemon:
        report.run("rests", rests, daemon)
    for check in (drains, ends_at_stop):
        with Daemon(["--drain-incomplete-timeout=300ms", *served, HOLD]) as daemon:
            report.run(check.__name__, check, daemon)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
