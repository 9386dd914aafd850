#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pted_server.Client, the client of the Python package: stored cases of models by both of its ways
to call, against what PyTorch gave; sequences, streams, errors, connections; a server that
misbehaves.

Needs numpy, which PYTHON may have.

usage: run_python.py, with top_srcdir and top_builddir in the environment.
"""
import ast
import errno
import http.client
import io
import json
import os
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager

import interpreter
from run_daemon import ADD
from run_http import MODELS, SOURCE, Daemon, Failure, Report, expect

if not interpreter.has("numpy"):
    print("SKIP: the Python package numpy is missing")
    sys.exit(77)

import numpy as np
from run_access import Guarded
from run_generate import ANSWERS, CHAT
from tls_client import Authority, TlsDaemon

PACKAGE = SOURCE / "python"
sys.path[:0] = [str(PACKAGE), str(MODELS)]

import run_models  # noqa: E402  beside the models
from pted_server import Client, ServerError, tensors, transport  # noqa: E402

STORED = ("add", "branches", "edits", "joined", "lists", "methods", "odd_keys", "pointwise_types",
          "promotion", "queries", "scalars", "shapes", "sizes", "view_types", "xnn_half",
          "zero_batch", "zero_size")
WITH_STATE = ("ring", "tally")
ONES = np.ones((2, 3), "f4")
CARD = SOURCE / "docs" / "examples" / "digits.card.json"


def connect(daemon, **more):
    return Client(f"http://127.0.0.1:{daemon.port}", timeout=30, **more)


def refused(call, *args, kind=ServerError, **more):
    """The exception that a call ends with."""
    try:
        got = call(*args, **more)
    except kind as why:
        return why
    raise Failure(f"expected {kind.__name__}, got {got!r}")


# ---- stored cases ----

def array_of(folder, leaf):
    """What a user would give: an array, a number, a text or None."""
    stored = run_models.read_leaf(folder, leaf)
    if not isinstance(stored, run_models.Tensor):
        return stored
    form = run_models.TYPES[stored.dtype][1]
    array = np.frombuffer(stored.raw, form).reshape(stored.shape)
    return array if leaf["kind"] == "tensor" else array.item()


def as_found(value, leaf):
    """A result as compare_all() takes it."""
    if isinstance(value, str):
        return "BYTES", [1], [value]
    array = np.asarray(value)
    if array.dtype == object:
        return "BYTES", list(array.shape), [text.decode() for text in array.tolist()]
    dtype = leaf["dtype"] if "dtype" in leaf else run_models.SCALARS[leaf["kind"]]
    got = {"bfloat16": "float32"}.get(dtype, dtype)
    expect("type", array.dtype.name, got)
    expect("may be written to", array.flags.writeable, True)
    return run_models.TYPES[dtype][0], list(array.shape), array.reshape(-1).tolist()


def by_structure(client, model, case, folder, ask):
    signature = client.signature(model)
    inputs, results = [ast.literal_eval(re.sub(r"\br(\d+)\b", r"\1", side))
                       for side in signature["readable"]["sip"].split(" -> ")]
    given = [array_of(folder, leaf) for leaf in case["inputs"]]
    filled = run_models.fill(inputs, lambda index: given[index])
    if isinstance(filled, dict):
        answer = ask(kwargs=filled)
    elif set(signature["example"]) == {"args", "kwargs"}:
        answer = ask(args=tuple(filled[:-1]), kwargs=filled[-1])
    else:
        answer = ask(args=filled)
    names, found = run_models.output_names(case), {}
    for index, value in run_models.pair_leaves(results, answer):
        if value is not None:
            found[index] = as_found(value, case["outputs"][index])
    return {names[index]: found[index] for index in sorted(found)}


def by_name(client, model, case, folder, ask):
    given = zip(run_models.input_names(case), case["inputs"])
    known = {one["name"] for one in client.metadata(model)["inputs"]}
    inputs = {}
    for name, leaf in given:
        value = array_of(folder, leaf)
        if value is not None and name in known:
            inputs[name] = [value] if isinstance(value, str) else value
    answer = ask(inputs)
    leaves = dict(zip(run_models.output_names(case), case["outputs"]))
    return {name: as_found(value, leaves[name]) for name, value in answer.items()}


def cases(description):
    for number, case in enumerate(description["cases"]):
        yield number, case, run_models.served_name(description, case["method"])


def stored():
    paths = [str(MODELS / f"{name}.pte") for name in STORED]
    count = 0
    with Daemon(paths) as daemon, connect(daemon) as client:
        for name in STORED:
            description = json.loads((MODELS / f"{name}.json").read_text())
            for number, case, model in cases(description):
                if case["state"] != "fresh":
                    continue
                count += 1
                for way, ask in ((by_structure, client.call), (by_name, client.infer)):
                    try:
                        got = way(client, model, case, MODELS,
                                  lambda *args, **kwargs: ask(model, *args, **kwargs))
                        run_models.compare_all(got, case, MODELS, description["tolerance"])
                    except Exception as why:
                        raise Failure(f"{name} case {number} {way.__name__}: {why}") from why
    expect(f"{count} cases", count > 30, True)


def sequences():
    paths = [str(MODELS / f"{name}.pte") for name in WITH_STATE]
    with Daemon(paths) as daemon, connect(daemon) as client:
        for name in WITH_STATE:
            description = json.loads((MODELS / f"{name}.json").read_text())
            for run in run_models.split_runs(description["cases"]):
                model = run_models.served_name(description, run[0][1]["method"])
                for way, verb in ((by_structure, "call"), (by_name, "infer")):
                    sequence = client.sequence(model)
                    for number, case in run:
                        is_last = number == run[-1][0]
                        got = way(client, model, case, MODELS, lambda *args, **kwargs: getattr(
                            sequence, verb)(*args, is_last=is_last, **kwargs))
                        run_models.compare_all(got, case, MODELS, description["tolerance"])
                why = refused(by_structure, client, model, run[0][1], MODELS,
                              lambda **given: client.call(
                                  model, parameters={"sequence_id": sequence.name}, **given))
                expect("the last call has ended it", why.status, 400)


# ---- arguments ----

def arguments():
    with Daemon([ADD, str(MODELS / "joined.pte")]) as daemon, connect(daemon) as client:
        total = client.call("add", ([[1, 2, 3], [4, 5, 6]], ONES))
        expect("lists", total.tolist(), [[2, 3, 4], [5, 6, 7]])
        columns = np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3))
        for what, array in (("columns", columns), ("big-endian", columns.astype(">f4")),
                            ("every other", np.repeat(columns, 2, 1)[:, ::2])):
            for got in (client.call("add", (array, ONES)),
                        client.infer("add", {"input_0": array, "input_1": ONES})["output_0"]):
                expect(what, got.tolist(), [[1, 2, 3], [4, 5, 6]])
        expect("some outputs", list(client.infer(
            "joined", {"input_0": np.ones((3, 4), "f4"), "input_1": np.bool_(True)},
            ["output_3", "output_1"])), ["output_3", "output_1"])
        expect("NaN", np.isnan(client.call("add", ([[float("nan")] * 3] * 2, ONES))).all(), True)
        for wrong, kind, text in (
                (ONES, TypeError, "args: expected a tuple of arguments, got ndarray"),
                ((np.array([object()]), ONES), TypeError, "got object")):
            expect(text, text in str(refused(client.call, "add", wrong, kind=kind)), True)
        rows = client.shape("joined", (np.empty((3, 4), "f4"), True))
        expect("shape", [row["shape"] for row in rows][:2], [[6, 4], [3]])
        expect("bytes", client.shape("add", (ONES, ONES))[0]["bytes"], 24)


def orders():
    """An array whose dim 1 is innermost is sent from where it lies, and results may come so."""
    pixels = np.arange(3 * 24 * 20, dtype="f4").reshape(1, 24, 20, 3) / 64
    image = pixels.transpose(0, 3, 1, 2)
    data = tensors.Data()
    expect("said", tensors.to_json(image, data), {
        "dtype": "float32", "shape": [1, 3, 24, 20], "binary_data_size": 5760,
        "order": "channels_last"})
    expect("where it lies", np.shares_memory(np.asarray(data.parts[0]), pixels), True)
    with Daemon([str(MODELS / "unet.pte")]) as daemon, connect(daemon) as client:
        plain = client.call("unet", (np.ascontiguousarray(image),))
        for got in (client.call("unet", (image,)),
                    client.infer("unet", {"input_0": image})["output_0"],
                    client.call("unet", (image.astype(">f4"),)),
                    client.call("unet", (image,), parameters={"order": "channels_last"})):
            expect("shape", got.shape, (1, 2, 24, 20))
            expect("numbers", (got == plain).all(), True)
        expect("memory", got.transpose(0, 2, 3, 1).flags.c_contiguous, True)


class Tensor:
    """What numpy can make an array of, such as a tensor of PyTorch."""

    def __array__(self, dtype=None, copy=None):
        return ONES


def tensors_and_files():
    picture = (SOURCE / "docs" / "examples" / "seven.png").read_bytes()
    with Daemon([ADD, str(MODELS / "digits.pte"), "--card", f"digits={CARD}"]) as daemon, \
            connect(daemon) as client:
        expect("a tensor", client.call("add", (Tensor(), Tensor())).tolist(), [[2] * 3] * 2)
        name = client.metadata("digits")["inputs"][0]["name"]
        best = client.call("digits", (picture,), parameters={"top_k": 1})
        expect("a file", best[0][0]["label"], "seven")
        for files in ([picture, picture], np.array([picture, picture], object)):
            best = client.infer("digits", {name: files})
            expect("files", next(iter(best.values())).argmax(-1).tolist(), [7, 7])
    numbers = memoryview(np.arange(6, dtype="i4"))
    for data in (None, tensors.Data()):
        expect("bytes", tensors.to_json(numbers, data), {"binary_data_size": 24})
    for value, sent in ((b"a\0\0", b"a\0\0"), ([b"a\0", b"bc"], b"a\0bc"),
                        (["a\0", "b"], b"a\0b"), (np.array(["a", "bc"]), b"abc")):
        data = tensors.Data()
        tensors.infer_input("x", value, data)
        texts = tensors.Reader(b"".join(data.parts)).texts([-1], sum(map(len, data.parts)))
        expect("zeros at the end", b"".join(texts.tolist()), sent)


# ---- what is served ----

def models():
    with Daemon([ADD]) as daemon, connect(daemon) as client:
        expect("ready", client.is_ready(), True)
        expect("models", [(one["name"], one["state"]) for one in client.models()],
               [("add", "READY")])
        expect("metadata", client.metadata("add")["inputs"][0]["shape"], [2, 3])
        expect("signature", client.signature("add")["inputs"], ["float32[2,3]"] * 2)
        expect("other routes", client.request("GET", "/v2")["name"], "pted")
        expect("text", "pted_build_info" in client.request("GET", "/metrics"), True)
        port = daemon.port
    expect("nobody listens", Client(f"127.0.0.1:{port}").is_ready(), False)
    refused(Client(f"127.0.0.1:{port}").models, kind=ConnectionRefusedError)


def errors():
    with Daemon([ADD, "--body-bytes-max", "1M"]) as daemon, connect(daemon) as client:
        why = refused(client.call, "none", (ONES,))
        expect("404", (why.status, why.text), (404, "no model 'none', see GET /v2/models"))
        why = refused(client.call, "add", (ONES.astype("f8"), ONES))
        expect("type", (why.status, why.text, str(why)),
               (400, "args[0]: expected float32[2,3], got float64",
                "args[0]: expected float32[2,3], got float64 (400)"))
        why = refused(client.infer, "add", {"input_0": ONES})
        expect("input", (why.status, "input_1" in why.text), (400, True))
        why = refused(client.chat, [{"role": "user", "content": "?"}], "add")
        expect("OpenAI's form", (why.status, why.text.startswith("{")), (400, False))
        why = refused(client.call, "add", (np.ones((4 << 20,), "f4"), ONES))
        expect("too large", why.status, 413)
        expect("goes on", client.call("add", (ONES, ONES)).sum(), 12)


# ---- language models ----

def language():
    row = ANSWERS[0]
    with Daemon(CHAT) as daemon, connect(daemon) as client:
        answer = client.chat(row["messages"], temperature=0)
        expect("chat", answer["choices"][0]["message"]["content"], row["answer"])
        pieces = list(client.stream_chat(row["messages"], "chat", temperature=0))
        expect("stream", "".join(piece["choices"][0]["delta"].get("content") or ""
                                 for piece in pieces), row["answer"])
        expect("in parts", len(pieces) > 2, True)
        asked = {"max_tokens": 4, "temperature": 0}
        text = client.generate("chat", "What is", **asked)["text_output"]
        parts = [part["text_output"] for part in client.stream_generate("chat", "What is", **asked)]
        expect("generate", ("".join(parts), len(parts)), (text, 4))
        stream = client.stream_generate("chat", "What is", max_tokens=100, ignore_eos=True)
        expect("begun", "text_output" in next(stream), True)
        stream.close()
        why = refused(next, client.stream_chat(row["messages"], "none"))
        expect("a stream of no model", why.status, 404)
        expect("goes on", client.generate("chat", "What is", **asked)["text_output"], text)


# ---- connections ----

def kept():
    with Daemon([ADD]) as daemon, connect(daemon) as client:
        for _ in range(5):
            client.call("add", (ONES, ONES))
            refused(client.call, "none")
        expect("one", len(client._transport.idle), 1)
        faults = []

        def ask(value):
            for _ in range(50):
                got = client.call("add", (ONES * value, ONES))
                if (got != value + 1).any():
                    faults.append(got)
        threads = [threading.Thread(target=ask, args=(value,)) for value in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect("threads", faults, [])
        expect("no more than there were threads", len(client._transport.idle) <= 8, True)


def dropped():
    """Connections that the server has closed go when another one is kept."""
    with Daemon([ADD]) as daemon, connect(daemon) as client:
        client.request("GET", "/v2")
        stale = http.client.HTTPConnection("127.0.0.1")
        stale.sock, theirs = socket.socketpair()
        client._transport.idle.insert(0, stale)
        theirs.close()
        client.request("GET", "/v2")
        expect("kept", (len(client._transport.idle), stale.sock), (1, None))


class Emptied(list):
    """A list whose last item another thread took after this one had asked how many there are."""

    def __len__(self):
        return 1


class Unreachable(http.client.HTTPConnection):
    def connect(self):
        raise TimeoutError(errno.ETIMEDOUT, "the host is down")


def without_luck():
    client = Client("127.0.0.1:1", timeout=None)
    client._transport.idle = Emptied()
    client.close()
    client._transport.connect = lambda: Unreachable("127.0.0.1")
    text = str(refused(client.models, kind=TimeoutError))
    expect("no timeout of ours", "the host is down" in text, True)


class Noting(http.client.HTTPConnection):
    """Notes how many bytes each wait sends."""

    def __init__(self, port):
        super().__init__("127.0.0.1", port)
        self.sizes = []

    def send(self, data):
        self.sizes.append(len(data))
        super().send(data)


def large():
    """A large request leaves in pieces: the timeout is not one for all of it."""
    with Daemon([str(MODELS / "joined.pte"), "--body-bytes-max", "32M"]) as daemon, \
            connect(daemon) as client:
        noting = Noting(daemon.port)
        client._transport.connect = lambda: noting
        why = refused(client.call, "joined", (np.zeros((5, 1 << 20), "f4"), True))
        expect("status", why.status, 400)
        expect("all of it", sum(noting.sizes) > 20 << 20, True)
        expect("bytes at once", max(noting.sizes), 1 << 20)


def sockets():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        with Daemon([ADD, "--listen", f"unix:{path}"]) as daemon, Client(f"unix:{path}") as client:
            daemon.wait_for("listening on unix:")
            expect("a file", client.call("add", (ONES, ONES)).sum(), 12)
    name = f"pted-test-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + name)
    listener.listen()
    with server(message(200, "{}"), listener=listener):
        expect("an abstract name", Client(f"unix:@{name}").request("GET", "/v2"), {})


def tls():
    authority = Authority()
    context = authority.context()
    with TlsDaemon([ADD], *authority.sign("server")) as daemon:
        with Client(f"https://localhost:{daemon.port}", tls=context) as client:
            for _ in range(3):
                expect("TLS", client.call("add", (ONES, ONES)).sum(), 12)
            expect("kept", len(client._transport.idle), 1)
        refused(Client(f"https://localhost:{daemon.port}").models, kind=OSError)
    authority.close()


def tokens():
    with Guarded() as guarded:
        expect("none", refused(connect(guarded.daemon).models).status, 401)
        with connect(guarded.daemon, token="infer-token") as client:
            expect("token", client.call("add", (ONES, ONES)).sum(), 12)
            expect("scope", refused(client.models).status, 403)
    for token in ("secret\n", "secret\r\nX: y", "secr\u00e9t"):
        text = str(refused(Client, token=token, kind=ValueError))
        expect("not shown", (text.startswith("token: "), "secr" in text), (True, False))


def urls():
    for url in ("ftp://host", "http://", "http://host:x", "unix:"):
        refused(Client, url, kind=ValueError)
    client = Client("http://[::1]:81/behind/")
    expect("prefix", (client._transport.host, client._transport.port, client._transport.prefix),
           ("::1", 81, "/behind"))


# ---- a server that misbehaves ----

def read_request(connection):
    """With its body: a socket that closes with bytes unread resets what the other side reads."""
    data, length = b"", 0
    while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < length:
        part = connection.recv(65536)
        if not part:
            break
        data += part
        named = re.search(rb"\r\nContent-Length: *(\d+)\r\n", data, re.IGNORECASE)
        length = int(named[1]) if named else 0
    return data


@contextmanager
def server(*answers, listener=None):
    """Answers each request with the next text, and closes the connection behind it unless it ends
    with KEEP; None: says nothing until the client has gone. Yields the port and the requests."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    heads = []

    def play():
        rest = list(answers)
        while rest:
            with listener.accept()[0] as connection:
                is_open = True
                while is_open and rest:
                    data = read_request(connection)
                    if not data:
                        break
                    heads.append(data)
                    answer = rest.pop(0)
                    if answer is None:
                        connection.recv(1)
                        break
                    connection.sendall(answer.removesuffix(KEEP))
                    is_open = answer.endswith(KEEP)
    thread = threading.Thread(target=play, daemon=True)
    thread.start()
    yield listener.getsockname()[1], heads
    thread.join(10)
    listener.close()
    expect("the server has said all", thread.is_alive(), False)


KEEP = b"<keep>"


def message(status, body, *fields):
    lines = [f"HTTP/1.1 {status} Word", f"Content-Length: {len(body)}", *fields, "", body]
    return "\r\n".join(lines).encode()


def misbehaves():
    ok = message(200, "{}")
    with server(message(429, '{"error":"busy"}', "Retry-After: 3")) as (port, _):
        why = refused(Client(f"127.0.0.1:{port}").models)
        expect("429", (why.status, why.text, why.retry_after), (429, "busy", 3.0))
    with server(message(503, "", "Retry-After: ?").replace(b"?", b"\xb2")) as (port, _):
        expect("no number", refused(Client(f"127.0.0.1:{port}").models).retry_after, None)
    with server(message(502, "<html>gone")) as (port, _):
        expect("a proxy", refused(Client(f"127.0.0.1:{port}").models).text, "<html>gone")
    with server(ok, ok, ok) as (port, heads):
        client = Client(f"127.0.0.1:{port}")
        for _ in range(3):  # closed while idle: a new connection, and nothing is sent twice
            client.request("GET", "/v2")
            select.select([client._transport.idle[0].sock], [], [], 10)
        expect("requests", len(heads), 3)
    with server(None) as (port, _):
        client = Client(f"127.0.0.1:{port}", timeout=0.2)
        text = str(refused(client.models, kind=TimeoutError))
        expect("silence", text, f"127.0.0.1:{port}: nothing came in 0.2 s")
    for cut in (ok[:-1], b"", b"HTTP/1.1 20", b"nonsense\r\n\r\n"):
        with server(cut) as (port, heads):
            refused(Client(f"127.0.0.1:{port}").request, "GET", "/v2", kind=ConnectionError)
            expect("not sent again", len(heads), 1)
    event = "data: {}\n\ndata: {\"error\":{\"message\":\"lost\"}}\n\n"
    with server(message(200, event)) as (port, _):
        stream = Client(f"127.0.0.1:{port}").stream_chat([])
        expect("an event", next(stream), {})
        expect("an error in a stream", refused(next, stream).text, "lost")
    short = '{"result":{"dtype":"float32","shape":[2],"binary_data_size":8}}'
    with server(message(200, short + "1234",
                        f"Inference-Header-Content-Length: {len(short)}")) as (port, _):
        refused(Client(f"127.0.0.1:{port}").call, "add", kind=ConnectionError)


def lengths():
    """Memory follows the bytes that come, and not the length that a server names."""
    huge = message(200, "{}").replace(b"Length: 2", b"Length: %d" % (1 << 50))
    with server(huge) as (port, _):
        text = str(refused(Client(f"127.0.0.1:{port}").request, "GET", "/v2", kind=ConnectionError))
        expect("what is missing", str((1 << 50) - 2) in text, True)
    zeros = transport.TRUSTED_BYTES_MAX // 16 * 5 + 1
    head = json.dumps({"result": {"dtype": "float64", "shape": [zeros],
                                  "binary_data_size": 8 * zeros}})
    body = head.encode() + bytes(8 * zeros - 1) + b"\x40"
    field = f"Inference-Header-Content-Length: {len(head)}"
    whole = message(200, "", field).replace(b"Length: 0", b"Length: %d" % len(body)) + body
    with server(whole) as (port, _):
        result = Client(f"127.0.0.1:{port}").call("m")
        expect("a large answer", (result.shape, result[-2:].tolist()), ((zeros,), [0.0, 2.0]))
        result[0] = 1  # it can be written to


def chunked(*chunks, is_whole=True):
    sizes = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in map(str.encode, chunks)]
    return b"".join([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *sizes,
                     b"0\r\n\r\n" if is_whole else b""])


def streams():
    """A stream has an end mark of its own; without it the text may lack its last words."""
    word, last, done = "data: {}\n\n", 'data: {"finish_reason":"stop"}\n\n', "data: [DONE]\n\n"
    for whole in (chunked("data", ": {}", "\n\nda", "ta: [DONE]\n\n"), message(200, word + done)):
        with server(whole + KEEP, whole) as (port, _):
            client = Client(f"127.0.0.1:{port}")
            expect("whole", [list(client.stream_chat([])) for _ in range(2)], [[{}]] * 2)
    with server(chunked(word, last)) as (port, _):
        expect("generate", list(Client(f"127.0.0.1:{port}").stream_generate("m", "?")),
               [{}, {"finish_reason": "stop"}])
    cut = message(200, word + done)[:-2]
    for answer in (chunked(word, is_whole=False), chunked(word + done, is_whole=False), cut,
                   chunked(word), message(200, word)):
        for verb in ("stream_chat", "stream_generate"):
            with server(answer) as (port, _):
                stream = getattr(Client(f"127.0.0.1:{port}"), verb)("m", "?")
                expect("an event", next(stream), {})
                refused(list, stream, kind=ConnectionError)
    endless = io.BytesIO(b"x" * (transport.EVENT_BYTES_MAX + 1))
    refused(list, transport.lines_of(endless), kind=ConnectionError)


def wrong_forms():
    """Answers that pted does not give."""
    asked = {"request": ("GET", "/v2"), "call": ("m",), "infer": ("m", {}), "shape": ("m",)}
    form = '{"result":{"dtype":%s,"shape":%s,"binary_data_size":8}}'
    texts = ('{"outputs":[{"name":"x","datatype":"BYTES","shape":[1],'
             '"parameters":{"binary_data_size":8}}]}')
    for verb, head, behind, size in (
            ("request", "no JSON", "", None), ("request", "[" * 100000, "", None),
            ("call", "{}", "", None), ("call", "[]", "", None), ("shape", "[]", "", None),
            ("infer", "{}", "", None), ("infer", '{"outputs":[{}]}', "", None),
            ("infer", texts, "\x08\0\0\0text", len(texts)),
            *(("call", form % (dtype, shape), "12345678", len(form % (dtype, shape)))
              for dtype, shape in (('"float32"', "[3]"), ('"float32"', f"[{10**19}]"),
                                   ('"float33"', "[2]"), ("[]", "[2]"), ('"float32"', '"a"'))),
            *(("call", "{}", "", size) for size in (-1, 3, "x"))):
        fields = [] if size is None else [f"Inference-Header-Content-Length: {size}"]
        with server(message(200, head + behind, *fields)) as (port, _):
            client = Client(f"127.0.0.1:{port}")
            why = refused(getattr(client, verb), *asked[verb], kind=Exception)
        expect(f"{verb} {head[:80]} {size}: {why!r}",
               (type(why), "no answer of pted" in str(why)), (ConnectionError, True))
    with server(chunked("data: {\n\n")) as (port, _):
        refused(list, Client(f"127.0.0.1:{port}").stream_chat([]), kind=ConnectionError)


# ---- the package ----

def package():
    """No import brings more than it needs, and Python 3.9 can read all of it."""
    script = ("import sys, pted_server, pted_server.export, pted_server.export.folder\n"
              "print([name for name in ('numpy', 'torch', 'http') if name in sys.modules])\n"
              "pted_server.ServerError\n"
              "print('numpy' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    expect(done.stderr, done.stdout.splitlines(), ["[]", "False"])
    files = sorted(PACKAGE.rglob("*.py"))
    expect("files", len(files) > 10, True)
    for path in files:
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))


def page():
    """The example of docs/how-to/python.md prints what is below it."""
    text = (SOURCE / "docs/how-to/python.md").read_text(encoding="utf-8")
    script, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.S).groups()
    with Daemon([ADD]) as daemon:
        done = subprocess.run([sys.executable, "-c", script.replace("8000", str(daemon.port))],
                              capture_output=True, text=True, check=False,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
    expect(done.stderr, done.stdout, shown)


def main():
    report = Report()
    report.run_all((stored, sequences, arguments, orders, tensors_and_files, models, errors,
                    language, kept, dropped, without_luck, large, sockets, tls, tokens, urls,
                    misbehaves, lengths, streams, wrong_forms, package, page))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
