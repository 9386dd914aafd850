#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors in shared memory, against a real daemon: regions, calls, refusals, hostile owners.

The test plays the client with files in /dev/shm, which are the objects of shm_open(3).

usage: run_shared_memory.py, with top_srcdir and top_builddir in the environment.
"""
import fcntl
import hashlib
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import tempfile
import threading

from run_daemon import ADD, DIGITS
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect
from run_metrics import pick, read

SHM = pathlib.Path("/dev/shm")
SKIPPED = 77
REGIONS = "/v2/systemsharedmemory"
TENSOR = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
BYTES = struct.pack("<6f", *TENSOR)


class Object:
    """Shared memory of this process, with a name of its own."""

    def __init__(self, size, content=b""):
        handle, path = tempfile.mkstemp(prefix="pted-test-", dir=SHM)
        self.path = pathlib.Path(path)
        self.key = "/" + self.path.name
        with open(handle, "wb") as file:
            file.write(content)
            file.truncate(size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.path.unlink()

    def read(self, offset, size):
        with open(self.path, "rb") as file:
            file.seek(offset)
            return file.read(size)

    def write(self, offset, content):
        with open(self.path, "r+b") as file:
            file.seek(offset)
            file.write(content)


class UnixClient(Client):
    """A connection to a socket in the file system."""

    def __init__(self, path):  # pylint: disable=super-init-not-called
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(path)
        self.unread = self.body = b""
        self.fields = []


def ask(client, method, path, body=None):
    """The status; the answer's JSON is client.json."""
    client.send(build_request(method, path, None if body is None else json.dumps(body).encode()))
    status = client.answer()
    client.json = json.loads(client.body) if client.body else None
    return status


def register(client, name, key, size, offset=0):
    return ask(client, "POST", f"{REGIONS}/region/{name}/register",
               {"key": key, "offset": offset, "byte_size": size})


def unregister(client, name=None):
    part = "" if name is None else f"/region/{name}"
    return ask(client, "POST", f"{REGIONS}{part}/unregister", {})


def names(client):
    expect("status", ask(client, "GET", f"{REGIONS}/status"), 200)
    return [row["name"] for row in client.json]


def at(region, size, offset=None):
    parameters = {"shared_memory_region": region, "shared_memory_byte_size": size}
    return parameters if offset is None else {**parameters, "shared_memory_offset": offset}


def tensor(name, parameters=None, data=None, shape=(2, 3), kind="FP32"):
    item = {"name": name, "shape": list(shape), "datatype": kind}
    if parameters is not None:
        item["parameters"] = parameters
    return item if data is None else {**item, "data": data}


def add(client, first, second, output=None):
    body = {"inputs": [tensor("input_0", **first), tensor("input_1", **second)]}
    if output is not None:
        body["outputs"] = [{"name": "output_0", "parameters": output}]
    return ask(client, "POST", "/v2/models/add/infer", body)


def daemon(*options, models=(ADD,)):
    return Daemon(["--workers=2", "--shared-memory=loopback", *options, *models])


# ---- use ----

def calls():
    """Inputs are read from regions, outputs are written there; both at offsets."""
    with daemon() as server, Object(4096, bytes(64) + BYTES) as given, Object(100) as taken:
        client = Client(server.port)
        expect("register", register(client, "in", given.key, 4032, 64), 200)
        expect("without a slash", register(client, "out", taken.key[1:], 100), 200)
        expect("names", names(client), ["in", "out"])
        expect("one", ask(client, "GET", f"{REGIONS}/region/in/status"), 200)
        expect("one", client.json, [{"name": "in", "key": given.key, "offset": 64,
                                     "byte_size": 4032}])
        one = {"parameters": at("in", 24)}
        expect("infer", add(client, one, {"data": TENSOR}, at("out", 28, 8)), 200)
        output, = client.json["outputs"]
        expect("no data", sorted(output), ["datatype", "name", "parameters", "shape"])
        expect("where", output["parameters"], at("out", 24, 8))
        expect("sum", struct.unpack("<6f", taken.read(8, 24)), tuple(2 * x for x in TENSOR))
        expect("what is beside it", (taken.read(0, 8), taken.read(32, 8)), (bytes(8), bytes(8)))
        given.write(64, struct.pack("<f", 100))
        expect("infer again", add(client, one, one), 200)
        expect("new bytes", client.json["outputs"][0]["data"][0], 200.0)
        expect("extension", ask(client, "GET", "/v2"), 200)
        expect("extension", "system_shared_memory" in client.json["extensions"], True)
        expect("unregister", unregister(client, "in"), 200)
        expect("twice", unregister(client, "in"), 200)
        expect("names", names(client), ["out"])
        expect("gone", add(client, one, one), 404)
        expect("all", unregister(client), 200)
        expect("names", names(client), [])


def kinds():
    """Numbers, booleans and tensors of rank 0, which the model has as inputs and as outputs."""
    packed = {"input_0": ([6], "FP32", BYTES), "input_1": ([], "INT64", struct.pack("<q", 4)),
              "input_2": ([], "FP64", struct.pack("<d", 0.5)), "input_3": ([], "BOOL", b"\x07"),
              "input_5": ([], "FP32", struct.pack("<f", 1))}
    with daemon(models=(str(MODELS / "scalars.pte"),)) as server, Object(4096) as memory:
        client = Client(server.port)
        expect("register", register(client, "r", memory.key, 4096), 200)
        inputs, offset = [], 0
        for name, (shape, kind, value) in packed.items():
            memory.write(offset, value)
            inputs.append(tensor(name, at("r", len(value), offset), shape=shape, kind=kind))
            offset += len(value)
        outputs = [{"name": f"output_{i}", "parameters": at("r", 64, 1024 + 64 * i)}
                   for i in (0, 1, 3, 4, 5)]
        path = "/v2/models/scalars/infer"
        expect("infer", ask(client, "POST", path, {"inputs": inputs}), 200)
        wanted = {item["name"]: item["data"] for item in client.json["outputs"]}
        expect("shared", ask(client, "POST", path, {"inputs": inputs, "outputs": outputs}), 200)
        forms = {"FP32": "f", "FP64": "d", "INT64": "q", "BOOL": "?"}
        for item in client.json["outputs"]:
            where = item["parameters"]
            data = memory.read(where["shared_memory_offset"], where["shared_memory_byte_size"])
            form = forms[item["datatype"]]
            expect(item["name"], list(struct.unpack(f"<{len(data) // struct.calcsize(form)}{form}",
                                                    data)), wanted[item["name"]])


def strings():
    """A string has its length in front, as in a binary answer."""
    name = "autoencoder \u00e9".encode()
    path = "/v2/models/methods.get_name/infer"
    with daemon(models=(str(MODELS / "methods.pte"),)) as server, Object(64) as memory:
        client = Client(server.port)
        expect("register", register(client, "r", memory.key, 64), 200)
        for size, status in ((len(name) + 3, 400), (len(name) + 4, 200), (60, 200)):
            output = {"name": "output_0", "parameters": at("r", size, 2)}
            expect(f"{size} bytes", ask(client, "POST", path, {"inputs": [], "outputs": [output]}),
                   status)
        expect("string", memory.read(2, len(name) + 5), struct.pack("<I", len(name)) + name + b"\0")


def lists():
    """The calls of a list use regions, too."""
    with daemon() as server, Object(4096, BYTES) as memory:
        client = Client(server.port)
        expect("register", register(client, "r", memory.key, 4096), 200)
        one = {"model_name": "add", "id": "a",
               "inputs": [tensor("input_0", at("r", 24)), tensor("input_1", at("r", 24))],
               "outputs": [{"name": "output_0", "parameters": at("r", 24, 1024)}]}
        small = {**one, "id": "b", "outputs": [{"name": "output_0", "parameters": at("r", 23)}]}
        quiet = {**one, "id": "c", "answer": False,
                 "outputs": [{"name": "output_0", "parameters": at("r", 24, 2048)}]}
        expect("batch", ask(client, "POST", "/v2/batch", [one, small, quiet]), 200)
        expect("each", [item["status"] for item in client.json], [200, 400, 200])
        expect("text", client.json[1]["error"], "output 'output_0': shared_memory_byte_size is 23, "
               "expected at least 24")
        expect("no answer", memory.read(2048, 24), bytes(24))
        expect("sum", struct.unpack("<6f", memory.read(1024, 24)), tuple(2 * x for x in TENSOR))


def large():
    """More bytes than the loop copies itself, in and out."""
    rows = 360
    with daemon(models=(DIGITS,)) as server, Object(1 << 22) as memory:
        client = Client(server.port)
        expect("register", register(client, "r", memory.key, 1 << 22), 200)
        item = tensor("input_0", at("r", rows * 64 * 4), shape=(rows, 1, 8, 8))
        out = at("r", rows * 40, 2 << 20)
        expect("infer", ask(client, "POST", "/v2/models/digits/infer", {
            "inputs": [item], "outputs": [{"name": "output_0", "parameters": out}]}), 200)
        scores = memory.read(2 << 20, rows * 40)
        expect("each row is the same", scores, scores[:40] * rows)
        expect("not nothing", scores[:40] != bytes(40), True)


# ---- refusals ----

def regions():
    """Each wrong region has its error, and nothing is kept of it."""
    with daemon("--region-count-max=3", "--region-bytes-max=8192") as server, \
            Object(4096) as memory:
        client = Client(server.port)
        key = memory.key
        for name, bad, size, offset, status in (
                ("a", "/../etc/passwd", 1, 0, 400), ("a", "//a", 1, 0, 400), ("a", "/", 1, 0, 400),
                ("a", "", 1, 0, 400), ("a", "..", 1, 0, 400), ("a", "/a\0b", 1, 0, 400),
                ("a", "x" * 256, 1, 0, 400), ("a", "x" * 2000, 1, 0, 413),
                ("a", key + "-missing", 1, 0, 400), ("a", key, 0, 0, 400),
                ("a", key, 4097, 0, 400), ("a", key, 4096, 1, 400), ("a", key, 1, 4096, 400),
                ("a", key, 2 ** 64 - 1, 1, 400), ("a", key, 1, 2 ** 64 - 1, 400),
                ("a", key, 2 ** 63, 2 ** 63, 400), ("a", key, -1, 0, 400), ("a", key, 1, -1, 400),
                ("a", key, 2 ** 64, 0, 400), ("a", key, 1.5, 0, 400), ("a", key, "1", 0, 400),
                ("a" * 129, key, 1, 0, 400), ("%00", key, 1, 0, 400), ("a/b", key, 1, 0, 404)):
            expect(f"{name[:9]} {bad[:20]!r} {size} {offset}",
                   register(client, name, bad, size, offset), status)
        for body in ([], {}, {"key": key}, {"byte_size": 1}, "x", None):
            expect(str(body), ask(client, "POST", f"{REGIONS}/region/a/register", body), 400)
        expect("names", names(client), [])
        expect("first", register(client, "a", key, 4096), 200)
        expect("the name is taken", register(client, "a", key, 1), 400)
        expect("too many bytes", register(client, "b", key, 4097 - 1), 200)
        expect("too many bytes", register(client, "c", key, 1), 429)
        unregister(client, "b")
        expect("room again", register(client, "b", key, 1), 200)
        expect("a third", register(client, "c", key, 1), 200)
        expect("too many", register(client, "d", key, 1), 429)
        expect("unknown", ask(client, "GET", f"{REGIONS}/region/nope/status"), 404)
        os.symlink("/etc/hostname", SHM / (memory.path.name + "-link"))
        try:
            expect("a link", register(client, "d", key + "-link", 1), 400)
        finally:
            (SHM / (memory.path.name + "-link")).unlink()
        os.mkfifo(SHM / (memory.path.name + "-fifo"))
        try:
            expect("a pipe", register(client, "d", key + "-fifo", 1), 400)
        finally:
            (SHM / (memory.path.name + "-fifo")).unlink()


def tensors():
    """Each wrong use of a region has its error."""
    with daemon() as server, Object(100, BYTES) as memory:
        client = Client(server.port)
        expect("register", register(client, "r", memory.key, 90), 200)
        good = {"parameters": at("r", 24)}
        for bad in (at("r", 23), at("r", 25), at("r", 24, 67), at("r", 24, 2 ** 64 - 1),
                    at("r", 2 ** 64 - 1), at("r", 0), {"shared_memory_region": "r"},
                    {"shared_memory_byte_size": 24}, {"shared_memory_offset": 0},
                    at("", 24), {**at("r", 24), "binary_data_size": 24},
                    {**at("r", 24), "strides": [12, 4]}, at(7, 24), at("r", "24"), at("r", -1)):
            expect(str(bad), add(client, good, {"parameters": bad}), 400)
        expect("both", add(client, good, {"parameters": at("r", 24), "data": TENSOR}), 400)
        expect("unknown", add(client, good, {"parameters": at("q", 24)}), 404)
        for bad, status in ((at("r", 23), 400), (at("r", 0), 400), (at("r", 91), 400),
                            (at("r", 24, 67), 400), (at("r", 24, 2 ** 64 - 1), 400),
                            ({"shared_memory_region": "r"}, 400), (at("q", 24), 404),
                            ({**at("r", 24), "classification": 2}, 400)):
            expect(f"output {bad}", add(client, good, good, bad), status)
        expect("right", add(client, good, good, at("r", 24, 66)), 200)


def cut():
    """The owner shortens its memory: the call fails, and the object does not grow again."""
    with daemon() as server, Object(8192, BYTES) as memory:
        client = Client(server.port)
        expect("register", register(client, "r", memory.key, 8192), 200)
        good = {"parameters": at("r", 24)}
        expect("before", add(client, good, good, at("r", 24, 8000)), 200)
        os.truncate(memory.path, 4096)
        expect("an input is there", add(client, good, good), 200)
        expect("an output is not", add(client, good, good, at("r", 24, 8000)), 400)
        expect("text", "cut short" in client.json["error"], True)
        expect("size", memory.path.stat().st_size, 4096)
        os.truncate(memory.path, 0)
        expect("an input is not there", add(client, good, good), 400)
        expect("the daemon goes on", add(client, {"data": TENSOR}, {"data": TENSOR}), 200)


def lease():
    """The owner of an object has a lease on it, so that others wait to open it; the daemon does
    not."""
    with daemon() as server, Object(4096, BYTES) as memory:
        client = Client(server.port)
        before = signal.signal(signal.SIGIO, signal.SIG_IGN)
        with open(memory.path, "r+b") as file:
            try:
                fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except OSError as error:
                print(f"# no lease here: {error}")
                return
            expect("held", register(client, "r", memory.key, 4096), 400)
        signal.signal(signal.SIGIO, before)
        expect("free again", register(client, "r", memory.key, 4096), 200)


def slow_owner():
    """An owner that gives its object memory keeps all writes to it waiting. They do so on a thread
    of the pool, and the daemon serves others meanwhile."""
    stop = threading.Event()

    def fill(path):
        with open(path, "r+b") as file:
            while not stop.is_set():
                try:
                    os.posix_fallocate(file.fileno(), 4096, 32 << 20)
                except OSError:
                    stop.wait(0.01)  # the machine has less
                os.truncate(path, 4096)

    with daemon() as server, Object(4096, BYTES) as memory:
        caller, other = Client(server.port), Client(server.port)
        expect("register", register(caller, "r", memory.key, 4096), 200)
        good = {"parameters": at("r", 24)}
        filler = threading.Thread(target=fill, args=(memory.path,), daemon=True)
        filler.start()
        most = 0
        for _ in range(1000):
            calling = threading.Thread(target=add, args=(caller, good, good, at("r", 24, 1024)))
            calling.start()
            while calling.is_alive() and most == 0:
                other.send(build_request("GET", "/metrics"))
                expect("metrics", other.answer(), 200)
                series = read(other.body.decode())
                most = pick(series, "pted_pool_tasks", 'kind="request"')
            calling.join()
            if most:
                break
        stop.set()
        filler.join()
        expect("tasks of the pool", most, 1)


def ways():
    """Only the ways that the option names."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        for mode, want in (("off", (501, 501)), ("unix", (501, 200)), ("loopback", (200, 200))):
            with Daemon([f"--shared-memory={mode}", "--listen", f"unix:{path}", ADD]) as server, \
                    Object(24, BYTES) as memory:
                port = server.port
                got = []
                for client in (Client(port), UnixClient(path)):
                    got.append(register(client, f"r{len(got)}", memory.key, 24))
                    expect("status", ask(client, "GET", f"{REGIONS}/status"), got[-1])
                    expect("unregister", unregister(client, "r"), got[-1])
                    good = {"parameters": at("r1" if got[-1] == 200 and len(got) > 1 else "r0", 24)}
                    expect("infer", add(client, good, good), got[-1])
                    client.close()
                expect(mode, tuple(got), want)
                client = Client(port)
                expect("extension", ask(client, "GET", "/v2"), 200)
                expect("extension", "system_shared_memory" in client.json["extensions"],
                       mode != "off")
                client.close()


def tokens():
    """A token of scope infer registers, one of scope read looks."""
    def send(client, token, method, path, body=None):
        client.send(build_request(method, path, body, [f"Authorization: Bearer {token}"]))
        return client.answer()
    with tempfile.TemporaryDirectory() as folder, Object(24, BYTES) as memory:
        path = pathlib.Path(folder) / "tokens"
        lines = []
        for scope in ("infer", "read", "admin"):
            lines.append(f"{scope} {scope} sha256:{hashlib.sha256(scope.encode()).hexdigest()}\n")
        path.write_text("".join(lines))
        with daemon("--token-file", str(path)) as server:
            client = Client(server.port)
            body = json.dumps({"key": memory.key, "byte_size": 24}).encode()
            for scope, put, get in (("read", 403, 200), ("admin", 403, 403), ("infer", 200, 403),
                                    ("none", 401, 401)):
                expect(f"{scope} registers", send(client, scope, "POST",
                                                  f"{REGIONS}/region/r/register", body), put)
                expect(f"{scope} looks", send(client, scope, "GET", f"{REGIONS}/status"), get)
                expect(f"{scope} unregisters", send(client, scope, "POST", f"{REGIONS}/unregister",
                                                    b""), put)
                for what in ("logging", "trace/setting"):
                    got = send(client, scope, "POST", f"/v2/{what}", b"{}")
                    expect(f"{scope} sets {what}", got,
                           {"none": 401, "admin": 200}.get(scope, 403))


def cuda():
    """There are no regions of CUDA, and there never will be any."""
    with Daemon([ADD]) as server:
        client = Client(server.port)
        cuda = "/v2/cudasharedmemory"
        expect("status", (ask(client, "GET", f"{cuda}/status"), client.json), (200, []))
        expect("one", ask(client, "GET", f"{cuda}/region/r/status"), 404)
        expect("register", ask(client, "POST", f"{cuda}/region/r/register",
                               {"raw_handle": {"b64": "AA=="}, "device_id": 0, "byte_size": 1}),
               501)
        expect("unregister", ask(client, "POST", f"{cuda}/region/r/unregister", {}), 200)
        expect("all", ask(client, "POST", f"{cuda}/unregister", {}), 200)


# ---- load ----

def changes_under_load():
    """Regions come and go while calls use them, and their owner changes the bytes all the time."""
    rounds = 150
    with daemon() as server, Object(1 << 16, BYTES) as memory:
        stop, failures = threading.Event(), []

        def call(client):
            good = {"parameters": at("r", 24)}
            for i in range(rounds):
                status = add(client, good, good, at("r", 24, 4096 + 32 * i) if i % 2 else None)
                if status not in (200, 404):
                    failures.append((status, client.json))

        def change(client):
            while not stop.is_set():
                for status in (register(client, "r", memory.key, 1 << 16), unregister(client, "r")):
                    if status not in (200, 400):
                        failures.append((status, client.json))

        def scribble():
            while not stop.is_set():
                memory.write(0, os.urandom(24))

        callers = [threading.Thread(target=call, args=(Client(server.port),)) for _ in range(3)]
        others = [threading.Thread(target=change, args=(Client(server.port),)) for _ in range(2)]
        others.append(threading.Thread(target=scribble))
        for thread in callers + others:
            thread.start()
        for thread in callers:
            thread.join()
        stop.set()
        for thread in others:
            thread.join()
        expect("failures", failures[:3], [])
        client = Client(server.port)
        unregister(client)
        held = [os.readlink(f) for f in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()]
        expect("open objects", [path for path in held if path.startswith("/dev/shm")], [])


def pages():
    """Without tokens, a page of another origin registers and unregisters nothing; a page that the
    operator names, and the daemon's own, do."""
    page = "https://app.example.org"
    with daemon("--cors-origin", page) as server, Object(24, BYTES) as memory:
        client = Client(server.port)
        body = json.dumps({"key": memory.key, "byte_size": 24}).encode()
        for host, origin, want in (("evil.example", "http://evil.example", 403),
                                   ("127.0.0.1", "http://evil.example", 403),
                                   ("127.0.0.1", "http://127.0.0.1", 200), ("test", page, 200)):
            for what in ("region/r/register", "region/r/unregister", "unregister"):
                client.send(build_request("POST", f"{REGIONS}/{what}",
                                          body if what.endswith("/register") else b"",
                                          [f"Origin: {origin}"], host))
                expect(f"{what} at {host} of {origin}", client.answer(), want)
        expect("no region", names(client), [])


def main():
    if not os.access(SHM, os.W_OK):
        print(f"{SHM} cannot be written here")
        return SKIPPED
    report = Report()
    report.run_all((calls, kinds, strings, lists, large, regions, tensors, cut, lease,
                    slow_owner, ways, tokens, pages, cuda, changes_under_load))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
