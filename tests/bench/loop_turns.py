#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the longest steps of the event loop, for requests that are as expensive as the default
limits allow. Prints a line "name: us" for each case, in processor time. A preloaded library makes
the daemon take one socket's event at a time, so that the time between two calls of epoll is one
step, during which no other client is answered. The goal is at most 2000 us.

usage: loop_turns.py [CASE...]; top_srcdir and top_builddir as in make check.
"""
import gzip
import json
import mmap
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
os.environ.setdefault("top_srcdir", str(SOURCE))
sys.path.insert(0, str(SOURCE / "tests" / "http"))
# pylint: disable=wrong-import-position
from run_http import MODELS, Client, Daemon, build_request  # noqa: E402
from tls_client import CURVE, RSA, Authority, TlsClient  # noqa: E402

WIDE, ADD = str(MODELS / "wide.pte"), str(MODELS / "add.pte")
MIB = 1 << 20
CASES = []
CHUNKED = b"POST /v2/models/%s/infer HTTP/1.1\r\nHost:a\r\nTransfer-Encoding: chunked\r\n%s\r\n"


class Turns:
    """The figures of a daemon, in the file that its preloaded library writes."""

    def __init__(self, folder):
        self.path = Path(folder) / "turns"
        self.path.write_bytes(bytes(16))
        with self.path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 16)

    def begin(self):
        time.sleep(0.3)  # lets the rest of the last case end
        self.map[:16] = bytes(16)

    def end(self):
        return struct.unpack("<QQ", self.map[:16])


def case(*arguments):
    """Decorates a function (port) that sends its requests to a daemon with |arguments|."""
    def add(function):
        CASES.append((function.__name__, arguments, function))
        return function
    return add


def tensor(name, shape, **members):
    return {"name": name, "shape": shape, "datatype": "FP32", **members}


def infer_json(inputs, **members):
    return json.dumps({"inputs": inputs, **members}).encode()


def post(target, body, *fields):
    return build_request("POST", target, body, list(fields))


def ask(port, request):
    client = Client(port)
    client.send(request)
    client.status = client.answer()
    return client


def wide_json(rows):
    row = "[" + ",".join(["1.2345678"] * 64) + "]"
    return ('{"inputs":[{"name":"input_0","shape":[%d,64],"datatype":"FP32","data":[%s]}]}'
            % (rows, ",".join([row] * rows))).encode()


def wide_binary(content, *fields):
    """Rows of 256 bytes, and as many in the answer."""
    rows = len(content) // 256
    head = infer_json([tensor("input_0", [rows, 64],
                              parameters={"binary_data_size": len(content)})],
                      parameters={"binary_data_output": "Accept-Encoding: gzip" not in fields})
    return head + content, [f"Inference-Header-Content-Length: {len(head)}", *fields]


def post_wide(content, *fields):
    body, fields = wide_binary(content, *fields)
    return post("/v2/models/wide/infer", body, *fields)


ADD_BODY = infer_json([tensor(name, [2, 3], data=[1] * 6) for name in ("input_0", "input_1")])


@case(WIDE)
def body_inline(port):
    """The longest JSON of numbers that is decoded on the loop."""
    rows = (64 << 10) // (64 * 10 + 2) - 1
    for _ in range(5):
        ask(port, post("/v2/models/wide/infer", wide_json(rows)))


@case(WIDE)
def body_gzip_bomb(port):
    """60 KiB that inflate to 60 MiB."""
    bomb = gzip.compress(b" " * (60 << 20))
    for _ in range(3):
        ask(port, post("/v2/models/wide/infer", bomb, "Content-Encoding: gzip"))


@case(WIDE)
def body_gzip_small(port):
    """A small body that inflates to the most that is decoded on the loop; the answer is deflated.
    """
    body = gzip.compress(wide_json(90))
    for _ in range(5):
        ask(port, post("/v2/models/wide/infer", body, "Content-Encoding: gzip",
                       "Accept-Encoding: gzip"))


@case(WIDE)
def shape_gzip_bomb(port):
    bomb = gzip.compress(b" " * (60 << 20))
    for _ in range(3):
        ask(port, post("/v2/models/wide/shape", bomb, "Content-Encoding: gzip"))
        ask(port, post("/v2/batch", bomb, "Content-Encoding: gzip"))


@case(WIDE)
def body_copied(port):
    """Tensors behind their JSON that have to be copied, because their bytes are not in order."""
    for rows in (200, 300, 20000):
        parameters = {"binary_data_size": rows * 256, "strides": [4, rows * 4]}
        head = infer_json([tensor("input_0", [rows, 64], parameters=parameters)])
        ask(port, post("/v2/models/wide/infer", head + bytes(rows * 256),
                       f"Inference-Header-Content-Length: {len(head)}"))


@case(WIDE)
def answer_deflated(port):
    """The longest answer that is encoded and deflated on the loop."""
    for rows in (1, 50, 100, 200):
        numbers = os.urandom(rows * 256).replace(b"\x7f", b"\0").replace(b"\xff", b"\0")
        ask(port, post_wide(numbers, "Accept-Encoding: gzip"))


@case(WIDE)
def call_fill(port):
    """A short body that stands for many elements."""
    for rows in (200, 1000, 100000):
        body = json.dumps({"args": [{"dtype": "float32", "shape": [rows, 64], "fill": 1}]}).encode()
        ask(port, post("/v2/models/wide/call?binary=1", body))


@case(ADD)
def pipelined_get(port):
    client = Client(port)
    request = b"GET /v2 HTTP/1.1\r\nHost:a\r\n\r\n"
    count = (256 << 10) // len(request)
    client.send(request * count)
    for _ in range(count):
        client.answer()


@case(ADD)
def pipelined_infer(port):
    client = Client(port)
    request = post("/v2/models/add/infer", ADD_BODY)
    count = (256 << 10) // len(request)
    client.send(request * count)
    for _ in range(count):
        client.answer()


@case(ADD)
def pipelined_by_many(port):
    clients = [Client(port) for _ in range(64)]
    request = post("/v2/models/add/infer", ADD_BODY)
    count = (64 << 10) // len(request)
    for client in clients:
        client.send(request * count)
    for client in clients:
        for _ in range(count):
            client.answer()


@case(ADD)
def pipelined_refused(port):
    client = Client(port)
    request = b"POST /v2/models/add/infer HTTP/1.1\r\nHost:a\r\nContent-Length:1\r\n\r\nx"
    count = (128 << 10) // len(request)
    client.send(request * count)
    for _ in range(count):
        client.answer()


@case("--log-requests", "all", ADD)
def pipelined_logged(port):
    pipelined_refused(port)


@case(ADD)
def chunks_of_a_byte(port):
    client = Client(port)
    client.send(CHUNKED % (b"add", b"") + b"1\r\n \r\n" * (300 << 10) + b"0\r\n\r\n")
    client.answer()


@case(ADD)
def heads(port):
    """Heads with the maximal number of fields and bytes."""
    fields = [f"X-Field-{number}: " + "v" * 280 for number in range(90)]
    for _ in range(5):
        ask(port, build_request("GET", "/v2", b"", fields))


@case("--connection-count-max", "20000", ADD)
def connections(port):
    clients = [Client(port) for _ in range(3000)]
    for client in clients:
        client.send(b"GET /v2 HTTP/1.1\r\nHost:a\r\n\r\n")
    for client in clients:
        client.answer()
    time.sleep(2.5)  # the sweep visits all of them
    for client in clients:
        client.socket.close()


@case(WIDE)
def upload_large(port):
    """60 MiB, binary in both directions."""
    for _ in range(2):
        ask(port, post_wide(bytes(60 * MIB)))


@case(WIDE)
def upload_chunked(port):
    """30 MiB in chunks of 1 MiB."""
    body, fields = wide_binary(bytes(30 * MIB))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + MIB]), body[at:at + MIB])
                      for at in range(0, len(body), MIB))
    client = Client(port)
    client.send(CHUNKED % (b"wide", fields[0].encode() + b"\r\n") + chunks + b"0\r\n\r\n")
    client.answer()


@case("--ring-bytes", "8M", WIDE)
def uploads_that_wait(port):
    """1,500 clients need memory and get a little at a time."""
    head = b"POST /v2/models/wide/infer HTTP/1.1\r\nHost:a\r\nContent-Length:4194304\r\n\r\n"
    clients = [Client(port) for _ in range(1500)]
    for client in clients:
        client.send(head + bytes(70 << 10))
    for _ in range(30):
        for client in clients[::50]:
            try:
                client.send(bytes(100))
            except OSError:
                pass
        time.sleep(0.1)


@case("--ring-bytes", "16M", WIDE)
def answers_that_wait(port):
    """Answers of 1 MiB to 300 clients that do not read."""
    clients = [Client(port) for _ in range(300)]
    for client in clients:
        client.socket.setblocking(False)
        try:
            client.socket.send(post_wide(bytes(MIB)))
        except OSError:
            pass
    time.sleep(3)


@case(ADD)
def list_of_calls(port):
    """The most calls in one list whose body is still decoded on the loop."""
    item = {"model_name": "add", **json.loads(ADD_BODY)}
    for count in (16, 64):
        body = json.dumps([dict(item, id=f"r{n}") for n in range(count)]).encode()
        ask(port, post("/v2/batch", body))


def wide_list(count, rows):
    """A short body that stands for |rows| of 256 bytes for each of |count| calls."""
    call = {"model_name": "wide", "answer": False,
            "args": [{"dtype": "float32", "shape": [rows, 64], "fill": 0.5}]}
    return post("/v2/batch", json.dumps([call] * count).encode())


@case("--ring-bytes", "32M", WIDE)
def lists_that_wait(port):
    """Lists that need most of the memory for their inputs: all but one at a time are tried again
    and again.
    """
    clients = [Client(port) for _ in range(4)]
    for client in clients:
        client.send(wide_list(60, 1000))
    for client in clients:
        client.answer()


@case("--ring-bytes", "16M", WIDE)
def calls_that_wait(port):
    """Calls beside answers that hold the memory of their model, and are not read."""
    holders = [Client(port) for _ in range(12)]
    for client in holders:
        client.socket.setblocking(False)
        try:
            client.socket.send(post_wide(bytes(MIB)))
        except OSError:
            pass
    body = {"args": [{"dtype": "float32", "shape": [12000, 64], "fill": 1}]}
    clients = [Client(port) for _ in range(8)]
    for client in clients:
        client.send(post("/v2/models/wide/call?binary=1", json.dumps(body).encode()))
    for client in clients:
        client.answer()


@case(ADD)
def gets(port):
    for target in ("/v2", "/v2/models", "/v2/models/add", "/v2/models/stats",
                   "/v2/models/add/signature", "/v2/models/add/config"):
        ask(port, build_request("GET", target))
    ask(port, post("/v2/repository/index", b"{}"))


@case("MANY")
def gets_of_many_models(port):
    """1,000 models."""
    for target in ("/v2/models", "/v2/models/stats"):
        ask(port, build_request("GET", target))
    ask(port, post("/v2/repository/index", b"{}"))


def call_nested(port, name, inputs):
    """Calls once when plans have to be made, and once when they exist."""
    tensors = [tensor(f"input_{i}", [2, 4], data=[1] * 8) for i in range(inputs)]
    body = infer_json(tensors)
    for _ in range(5):
        client = ask(port, post(f"/v2/models/{name}/infer", body))
        if client.status != 200:
            sys.exit(f"status {client.status}: {client.body[:200]}")
    for target in ("", "/signature", "/config", "/stats"):
        ask(port, build_request("GET", f"/v2/models/{name}{target}"))
    ask(port, post(f"/v2/models/{name}/shape", body))


NESTED = {"NESTED": ("deep", True), "NESTED_MOBILE": ("mobile", False)}  # model, is it a row


@case("NESTED", 63, 4)
def pipeline_wide(port):
    call_nested(port, "level_1", 1)


@case("NESTED", 16, *[1] * 14, 8)
def pipeline_deep(port):
    call_nested(port, "level_15", 1)


@case("NESTED", 3, 3, 3, 5)
def pipeline_both(port):
    call_nested(port, "level_3", 1)


@case("NESTED_MOBILE", 62, 4)
def pipeline_shape(port):
    """Shapes of each step, for a model with many operators."""
    body = infer_json([tensor("input_0", [1, 3, 32, 32])])
    for _ in range(5):
        client = ask(port, post("/v2/models/level_1/shape", body))
        if client.status != 200:
            sys.exit(f"status {client.status}: {client.body[:200]}")


@case("LARGE")
def shape_and_signature(port):
    """The shape and the signature of the largest program of the tests."""
    client = ask(port, build_request("GET", "/v2/models"))
    name = json.loads(client.body)["models"][0]
    ask(port, build_request("GET", f"/v2/models/{name}/signature"))
    meta = json.loads(ask(port, build_request("GET", f"/v2/models/{name}")).body)
    inputs = [{"name": i["name"], "datatype": i["datatype"],
               "shape": [1 if d < 0 else d for d in i["shape"]]} for i in meta["inputs"]]
    for _ in range(3):
        ask(port, post(f"/v2/models/{name}/shape", json.dumps({"inputs": inputs}).encode()))


KEYS = {"TLS_ECDSA": CURVE, "TLS_RSA": RSA}
AUTHORITY = None  # of the certificates, once there is one


def handshakes(port):
    """200 clients begin theirs at once, then end them at once."""
    clients = []
    for _ in range(200):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = AUTHORITY.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        clients.append((socket.create_connection(("127.0.0.1", port)), tls, incoming, outgoing))
    for _ in range(2):
        for client, tls, incoming, outgoing in clients:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            client.sendall(outgoing.read())
        for client, _, incoming, _ in clients:
            incoming.write(client.recv(65536))


@case("TLS_ECDSA", ADD)
def handshakes_ecdsa(port):
    handshakes(port)


@case("TLS_RSA", ADD)
def handshakes_rsa(port):
    handshakes(port)


@case("TLS_ECDSA", WIDE)
def upload_tls(port):
    """60 MiB over TLS, binary in both directions."""
    client = TlsClient(port, AUTHORITY.context())
    client.send(post_wide(bytes(60 * MIB)))
    client.answer()


def nested(model, inputs, widths, is_row):
    """Nested pipelines. The innermost has widths[0] steps of |model|. If |is_row|, each step takes
    the result of the one before. |inputs| is the number of inputs of |model|."""
    document, inner = {}, model
    for level, width in enumerate(widths):
        steps = [{"model": inner,
                  "inputs": [{"from": at - 1, "output": 0} if is_row and at and not i else
                             {"input": i} for i in range(inputs)]} for at in range(width)]
        inner = f"level_{level}"
        document[inner] = {"steps": steps}
    return document, inner


def arguments_of(arguments, folder):
    if arguments == ("MANY",):
        models = Path(folder) / "models"
        models.mkdir()
        for number in range(1000):
            shutil.copy(ADD, models / f"model_{number}.pte")
        return ["--models", str(models)]
    if arguments == ("LARGE",):
        return [str(max(MODELS.glob("*.pte"), key=lambda path: path.stat().st_size))]
    if arguments[0] in KEYS:
        global AUTHORITY
        AUTHORITY = Authority()
        certificate, key = AUTHORITY.sign("server", key=KEYS[arguments[0]])
        return ["--tls-cert", certificate, "--tls-key", key, *arguments[1:]]
    if arguments[0] in NESTED:
        model, is_row = NESTED[arguments[0]]
        path = Path(folder) / "pipelines.json"
        path.write_text(json.dumps(nested(model, 1, arguments[1:], is_row)[0]))
        return [str(MODELS / f"{model}.pte"), "--pipeline", str(path)]
    return list(arguments)


def measure(name, arguments, function, library):
    with tempfile.TemporaryDirectory() as folder:
        turns = Turns(folder)
        environment = {**os.environ, "LD_PRELOAD": library, "LOOP_TURNS": str(turns.path)}
        listen = "tls:127.0.0.1:0" if arguments[0] in KEYS else "127.0.0.1:0"
        with Daemon(arguments_of(arguments, folder), env=environment,
                    listen=("--listen", listen)) as daemon:
            turns.begin()
            function(daemon.port)
            longest_ns, count = turns.end()
    print(f"{name}: {longest_ns / 1000:.0f} us ({count} turns)", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "loop_turns.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-I", str(BUILD), "-o", library,
                        str(SOURCE / "tests" / "bench" / "loop_turns.c"), "-ldl"], check=True)
        for name, arguments, function in CASES:
            if len(sys.argv) < 2 or name in sys.argv[1:]:
                measure(name, arguments, function, library)


if __name__ == "__main__":
    main()
