#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pte as a client: against a real daemon, and against servers that say anything.

usage: run_pte_client.py, with top_srcdir and top_builddir in the environment.
"""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from run_access import line
from run_http import MODELS, TIMEOUT_S, Daemon, Failure, Report, expect
from run_pte import PTE, npy

ADD = str(MODELS / "add.pte")
TENSOR = {"name": "x", "datatype": "FP32", "shape": [2]}
META = {"name": "m", "versions": ["1"], "platform": "other", "inputs": [TENSOR],
        "outputs": [dict(TENSOR, name="y")]}
ONE, TWO = struct.pack("<f", 1), struct.pack("<ff", 1, 2)


def run(*arguments, **environment):
    """The process at its end. What the machine has of proxies, CAs and tokens has no part in it."""
    clean = {name: value for name, value in os.environ.items() if not re.search(
        "_proxy$|^PTED_TOKEN$|^PTED_.*LISTEN$|^CURL_CA_BUNDLE$|^SSL_CERT", name, re.IGNORECASE)}
    return subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=False, env={**clean, **environment})


def check(status, pattern, *arguments, **environment):
    """Status 0 and |pattern| in stdout, or another status and it in stderr. No terminal would
    notice what is printed."""
    done = run(*arguments, **environment)
    text = done.stderr if status else done.stdout
    statuses = status if isinstance(status, tuple) else (status,)
    if done.returncode not in statuses or not re.search(pattern, text):
        raise Failure(f"pte {' '.join(arguments)}: status {done.returncode}, "
                      f"{done.stdout[:600]!r}, {done.stderr[:600]!r}; "
                      f"expected {status} and {pattern!r}")
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.stdout + done.stderr):
        raise Failure(f"pte {' '.join(arguments)} prints controls: {done.stderr!r}")
    return text


# ---- a real daemon ----

def same(daemon, model, *options, method=None):
    """The file and the URL print the same."""
    own = (*options, *(("--method", method) if method else ()))
    left = run("run", str(MODELS / f"{model}.pte"), *own)
    for url in (f"http://127.0.0.1:{daemon.port}/{model}",
                f"http://127.0.0.1:{daemon.port}/v2/models/{model}"):
        right = run("run", url, *own)
        for part in ("returncode", "stdout", "stderr"):
            expect(f"{part} of {model} {own}", getattr(right, part), getattr(left, part))
    expect(f"status of {model}", left.returncode, 0)


def file_and_url():
    with Daemon(["--models", str(MODELS)]) as daemon, tempfile.TemporaryDirectory() as folder:
        array = Path(folder) / "a.npy"
        array.write_bytes(npy("<f4", "(2, 3)", struct.pack("<6f", *range(6))))
        raw = Path(folder) / "a.bin"
        raw.write_bytes(struct.pack("<6f", *range(6)))
        same(daemon, "add")
        same(daemon, "add", "--input", f"input_0={array}", "--input", "input_1=[1,1,1,1,1,1]")
        same(daemon, "add", "--input", f"input_0={raw}:2x3")
        same(daemon, "scalars")
        same(daemon, "scalars", "--input", "input_1=4", "--input", "input_5=2.5")
        same(daemon, "shapes", method="recall")
        same(daemon, "shapes", "--shape", "input_0=2x5x6", method="recall")
        same(daemon, "shapes", method="step")
        same(daemon, "digits", "--top-k", "3", "--shape", "input_0=2x1x8x8")
        same(daemon, "keywords")
        same(daemon, "mlp")
        for method in ("encode", "decode", "get_name", "get_scale", "get_table", "is_trained"):
            same(daemon, "methods", method=method)
        for options in ((), ("--shape", "input_0=3x3"), ("--shape", "input_0=2x4")):
            same(daemon, "joined", *options, method="forward$results")
        same(daemon, "lists", "--shape", "input_1=4x3", method="forward$results")
        same(daemon, "methods", "--shape", "input_0=3x10", method="encode$results")
        write_results(daemon, folder)
        repeat_and_refuse(daemon)
        listings(daemon)
        tops(daemon)


def write_results(daemon, folder):
    """--output writes the same files."""
    for name, source in (("file", str(MODELS / "scalars.pte")),
                         ("url", f"http://127.0.0.1:{daemon.port}/scalars")):
        check(0, "^$", "run", source, "--output", f"{folder}/{name}")
    left, right = (sorted((path.name, path.read_bytes()) for path in Path(folder, name).iterdir())
                   for name in ("file", "url"))
    expect("files of --output", right, left)
    check(74, "is a file", "run", f"http://127.0.0.1:{daemon.port}/add", "--output",
          f"{folder}/a.npy")


def repeat_and_refuse(daemon):
    url = f"http://127.0.0.1:{daemon.port}"
    check(0, r"^shapes: input_0=2x3 input_1=2x3\nmedian_us: [\d.]+\np10_us: ", "run", f"{url}/add",
          "--repeat", "5")
    check(66, "HTTP 404: no model 'nope'", "run", f"{url}/nope")
    check(66, r"no method 'forward\$results': the sizes of results do not vary", "run",
          f"{url}/add", "--method", "forward$results")
    check(65, "HTTP 400: .*dim 1 is 9, expected at most 4", "run", f"{url}/joined", "--method",
          "forward$results", "--shape", "input_0=3x9")
    check(66, "HTTP 404: .*'add.nope'", "run", f"{url}/add", "--method", "nope")
    check(66, "HTTP 404: .*version", "run", f"{url}/add/versions/7")
    check(65, "input_0.*expected.*2,3", "run", f"{url}/add", "--shape", "input_0=3x3")
    check(65, "HTTP 400: .*divided by zero", "run", f"{url}/faults", "--method", "divide")
    check(64, "--input nope=1: expected NAME=X, where NAME is one of input_0 and input_1", "run",
          f"{url}/add", "--input", "nope=1")
    check(65, "the answer has more than 1024 bytes", "run", f"{url}/conv_ops",
          "--answer-bytes-max", "1024", "--repeat", "2")
    check(64, "--workers: only with a file", "run", f"{url}/add", "--workers", "1")
    check(64, "--device: only with a file", "run", f"{url}/add", "--device=cpu")
    check(64, "--insecure: only with a URL", "run", ADD, "--insecure")
    check(64, "--timeout: only with a URL", "run", ADD, "--timeout=1s")
    check(64, "--timeout: expected", "run", f"{url}/add", "--timeout=soon")
    check(64, "expected a model behind the server", "run", url)


def listings(daemon):
    url = f"http://127.0.0.1:{daemon.port}"
    check(0, r"^MODEL +VERSION +STATE +INPUTS -> RESULTS\n(.*\n)*add +1 +READY +\(input_0 "
          r"float32\[2,3\], input_1 float32\[2,3\]\) -> \(output_0 float32\[2,3\]\)\n", "ls", url)
    rows = json.loads(check(0, "", "ls", "--json", url))
    expect("types of add", [row for row in rows if row["name"] == "add"][0]["outputs"],
           [{"name": "output_0", "datatype": "FP32", "shape": [2, 3]}])
    with Daemon([str(MODELS / "methods.pte")]) as methods:
        other = f"http://127.0.0.1:{methods.port}"
        check(0, r"^MODEL.*\nmethods.decode .*\nmethods.encode .*\nconstants: methods.get_name, "
              r"methods.get_scale, .*, methods.is_trained\n$", "ls", other)
        check(0, r"^MODEL.*\nmethods.get_width .*\n$", "ls", f"{other}/methods.get_width")
        rows = json.loads(check(0, "", "ls", "--json", other))
        expect("constants", sum(row.get("constant", False) for row in rows), len(rows) - 2)
    expect("one row", len(check(0, "^MODEL.*\nadd ", "ls", f"{url}/add").splitlines()), 2)
    check(66, "no model 'nope'", "ls", f"{url}/nope")
    check(77, "HTTP 403: ", "load", f"{url}/add")
    check(64, "expected a URL", "ls")
    check(64, "one URL only", "ls", url, url)
    check(64, "unknown option '--nope'", "ls", url, "--nope")
    check(64, "without a version", "load", f"{url}/add/versions/1")


def tops(daemon):
    """Tables and lines of JSON while calls run."""
    url = f"http://127.0.0.1:{daemon.port}"
    with subprocess.Popen([PTE, "run", f"{url}/digits", "--repeat", "10000000"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while True:
                top = json.loads(check(0, "", "top", "--once", "--json", "--interval", "300ms",
                                       url))
                first = top["models"][0]
                if first["requests_s"] > 0 and first["rows_s"] > 0:
                    break
                if time.monotonic() > deadline:
                    raise Failure(f"no requests in {first}")
            expect("the busiest model", first["name"], "digits")
            if not top["resident_bytes"] or not first["compute_us"] or first["batch"] < 1:
                raise Failure(f"top says {top['resident_bytes']}, {first}")
            text = check(0, r"\nMODEL +VER +REQ/S +ROWS/S .*\ndigits +1 ", "top", "--once",
                         "--interval", "300ms", url)
            if max(map(len, text.splitlines())) > 160:
                raise Failure(f"long lines: {text[:400]}")
        finally:
            load.kill()
    check(64, "a server alone", "top", f"{url}/add")


def unix_sockets():
    """A daemon at a socket; a model is loaded and unloaded there; abstract names are known."""
    with tempfile.TemporaryDirectory() as folder:
        path, admin = f"{folder}/a:b.sock", f"{folder}/admin.sock"
        with Daemon(["--admin-listen", f"unix:{admin}", "--model", f"x={ADD}", "--listen",
                     f"unix:{path}"]):
            left = run("run", ADD)
            expect("the result", check(0, "output_0", "run", f"unix:{path}:/x"), left.stdout)
            check(0, "output_0", "run", f"unix:{path}:/v2/models/x/versions/1",
                  http_proxy="http://127.0.0.1:1")
            check(0, "^x: unloaded\n$", "unload", f"unix:{admin}:/x", "--dependents")
            check(0, r"\nx +1 +UNAVAILABLE +unloaded\n$", "ls", f"unix:{path}")
            check(77, "HTTP 503: .*", "run", f"unix:{path}:/x")
            check(0, "^x: loaded\n$", "load", f"unix:{admin}:/x")
            check(66, "HTTP 404: ", "load", f"unix:{admin}:/y")
            check(0, "output_0", "run", f"unix:{path}:/x")
        check(77, f"unix:{path}: cannot connect: No such file", "run", f"unix:{path}:/x")
        check(77, "unix:@nobody.listens: cannot connect: Connection refused", "ls",
              "unix:@nobody.listens")


def tokens():
    """A token on the command line, in a file, in a variable; a wrong one, and none."""
    with tempfile.TemporaryDirectory() as folder:
        known, mine = Path(folder) / "tokens", Path(folder) / "mine"
        known.write_text("\n".join([line("a", "infer,read", "good-token"),
                                    line("b", "infer", "infer-token")]) + "\n")
        mine.write_text("good-token\n")
        with Daemon([ADD, "--token-file", str(known)]) as daemon:
            url = f"http://127.0.0.1:{daemon.port}/add"
            check(0, "output_0", "run", url, "--token", "good-token")
            check(0, "output_0", "run", url, "--token-file", str(mine))
            check(0, "output_0", "run", url, PTED_TOKEN="good-token")
            check(0, "output_0", "run", url, "--token=good-token", PTED_TOKEN="wrong")
            check(77, "HTTP 401: ", "run", url)
            check(77, "; the token comes from --token-file or PTED_TOKEN", "run", url, "--token",
                  "wrong")
            check(77, "HTTP 403: ", "run", url, "--token", "infer-token")
            check(77, "HTTP 401: ", "top", "--once", f"http://127.0.0.1:{daemon.port}")
            check(64, "--token: expected a token", "run", url, "--token", "a\r\nX: y")
            check(64, "--token: expected a token", "run", url, "--token", "")
            check(64, f"--token-file {known}: expected a token", "run", url, "--token-file",
                  str(known))
            check(66, "--token-file /nonexistent: No such file", "run", url, "--token-file",
                  "/nonexistent")


def targets():
    """What is no target, or nobody's."""
    check(77, "http://127.0.0.1:1: cannot connect: Connection refused", "run",
          "http://127.0.0.1:1/m")
    check(77, "ould not resolve", "ls", "http://name.invalid:8000", "--timeout", "20s")
    for text in ("http://", "http:///m", "http://a b/m", "http://h:0/m", "http://h:65536/m",
                 "http://h/m?x", "http://h/m#x", "http://h/%zz", "http://h/a/b", "http://[::1/m",
                 "unix:", "unix:/x:/..", "ftp://h/m", "http://h/%00"):
        check(64 if not text.startswith("ftp") else 66, "", "run", text)
        check(64, "expected", "ls", text)
    text = check(64, "--token", "run", "http://me:secret@h/m")
    if "secret" in text:
        raise Failure(f"a password is shown: {text}")


# ---- a server that says anything ----

class Server:
    """Answers each path of |answers| with its bytes, or by a function of the connection, and each
    other path with 404. |requests| has what was asked."""

    def __init__(self, answers):
        self.answers, self.requests = answers, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *why):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def serve(self):
        """Until the end: a thread for each connection."""
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        """One request, one answer."""
        data = b""
        try:
            while b"\r\n\r\n" not in data:
                data += self.more(connection)
            head, _, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"\r\nContent-Length: (\d+)", head)
            while length and len(body) < int(length[1]):
                body += self.more(connection)
            path = head.split(b" ")[1].decode()
            self.requests.append((path, head, body))
            answer = self.answers.get(path, answer_of(b'{"error":"no such path"}', status=404))
            if callable(answer):
                answer(connection)
            else:
                connection.sendall(answer)
        except OSError:
            pass
        finally:
            connection.close()

    @staticmethod
    def more(connection):
        """The next bytes."""
        data = connection.recv(65536)
        if not data:
            raise OSError
        return data


def answer_of(body, *fields, status=200):
    """An answer with the right length."""
    head = [f"HTTP/1.1 {status} Some Reason", "Connection: close", f"Content-Length: {len(body)}",
            *fields]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def as_json(value, *fields, status=200):
    return answer_of(json.dumps(value).encode(), *fields, status=status)


def output(**changes):
    """An output of the answer, in JSON form or binary."""
    members = {"name": "y", "datatype": "FP32", "shape": [2], "data": [1, 2], **changes}
    return {key: value for key, value in members.items() if value is not None}


def results(*outputs, behind=b"", length=None):
    """An answer to a call."""
    head = json.dumps({"model_name": "m", "outputs": outputs}).encode()
    fields = [f"Inference-Header-Content-Length: {length or len(head)}"] if behind or length else []
    return answer_of(head + behind, *fields)


def people(kind, *rows, **changes):
    """The metadata of a model with an answer for people, and rows of that for the tensor."""
    meta = {**META, "outputs": [dict(TENSOR, name="y", answer=kind)]}
    return meta, results({"name": "y", "datatype": "BYTES", "shape": [len(rows)],
                          "data": list(rows), **changes})


def hostile_answers():
    """What is no JSON, or no answer of the kind, is refused; nothing disturbs the terminal."""
    png = '{"png": "iVBO", "width": 1, "classes": [\n{"label": "a\u202e"}]}'
    rows = (
        (*people("boxes", '[1,\n\t"\u009b\u202e"]', "[]"), 0,
         r'y\[0\]: \[1,  "\\u009b\\u202e"\]\ny\[1\]'),
        (*people("map", png), 0, r'y\[0\]: {"width":1,"classes":\[ {"label": "a\\u202e"}\]}'),
        (*people("text", '"\\u001b[2J\x7f"'), 0, r'y\[0\]: "\\u001b\[2J\\u007f"'),
        (*people("text", '"a"', shape=[1, 1], data=['"a"']), 0, r'y: string\[1,1\] \["\\"a\\""\]'),
        (*people("classes", "x"), 0, 'y: string "x"'),
        (*people("unheard of", "x"), 0, 'y: string "x"'),
        (*people("boxes"), 0, "^$"),
        (*people("boxes", "{}"), 65, "'y': row 0: expected an array, got an object"),
        (*people("boxes", "[]", "[1"), 65, "'y': row 1: "),
        (*people("boxes", "[] []"), 65, "'y': row 0: "),
        (*people("map", "[]"), 65, "'y': row 0: expected an object"),
        (*people("map", '{"png": 1}'), 65, "'y': row 0: png: expected a string"),
        (*people("map", '{"a": 1, "a": 2}'), 65, "'y': row 0: "),
        (*people("text", "a"), 65, "'y': row 0: "),
        (*people("text", ""), 65, "'y': row 0: "),
        (*people("text", "[" * 100000), 65, "'y': row 0: "),
    )
    answers = {}
    with Server(answers) as server, tempfile.TemporaryDirectory() as folder:
        for meta, answer, status, pattern in rows:
            answers.update({"/v2/models/m": as_json(meta), "/v2/models/m/infer": answer})
            check(status, pattern, "run", f"{server.url}/m")
        for row, pattern in (('{"png": "iVB"}', "expected a member 'png' in base64"),
                             ("{}", "expected a member 'png'"),
                             ('{"png": ""}', "expected a member 'png'"),
                             ('{"png": "i*BO"}', "png: malformed base64")):
            meta, answer = people("map", row)
            answers.update({"/v2/models/m": as_json(meta), "/v2/models/m/infer": answer})
            check(65, pattern, "run", f"{server.url}/m", "--output", folder)
        body = server.requests[-1][2]
        head = json.loads(body[:body.rindex(b"true}}") + 6])
        expect("outputs", head["outputs"], [
            {"name": "y", "parameters": {"binary_data": True, "answer": "json"}},
            {"name": "y", "parameters": {"binary_data": True}}])


def hostile_sizes():
    """What a server says of the sizes of results."""
    size = {"name": "y", "datatype": "FP32", "shape": [2, 3], "bytes": 24}
    meta = {**META, "outputs": [dict(TENSOR, name="y", shape=[-1, 3])]}
    rows = (
        ([size], 0, r"^y: float32\[2,3\], 24 bytes\n$"),
        ([{**size, "shape": [-1, 3], "bounds": [4, 3], "bytes_max": 48}], 0,
         r"^y: depends on data, at most float32\[4,3\], 48 bytes\n$"),
        ([{**size, "name": "z"}], 65, "metadata have no such output"),
        ([{**size, "name": "y\n"}], 65, "expected a name"),
        ([{**size, "shape": [-1, 3]}], 65, r"outputs\[0\].shape\[0\]"),
        ([{**size, "shape": [1] * 17}], 65, "at most 16 dims"),
        ([{**size, "bytes": -1}], 65, r"outputs\[0\].bytes"),
        ([{**size, "bytes": 2 ** 64}], 65, r"outputs\[0\].bytes"),
        ([{**size, "bytes": None}], 65, r"outputs\[0\].bytes"),
        ([{**size, "bounds": [2, 3]}], 65, "'bytes_max'"),
        ([{"name": "y", "bytes": 4}], 65, "'shape'"), ([1], 65, r"outputs\[0\]"),
        ({}, 65, "outputs"), (None, 65, "outputs"))
    answers = {"/v2/models/m": as_json(meta)}
    with Server(answers) as server:
        for outputs, status, pattern in rows:
            answers["/v2/models/m/shape"] = as_json({"outputs": outputs})
            check(status, pattern, "run", f"{server.url}/m", "--method", "forward$results")
        answers["/v2/models/m/shape"] = answer_of(b"[")
        check(65, "", "run", f"{server.url}/m", "--method", "forward$results")
        answers["/v2/models/m/shape"] = answer_of(b"no such path", status=404)
        check(66, "HTTP 404", "run", f"{server.url}/m", "--method", "forward$results")


def binary(size, **changes):
    return output(data=None, parameters={"binary_data_size": size}, **changes)


def other_servers():
    """Without signatures and statistics of ours; with and without the binary extension."""
    meta = {"inputs": [dict(TENSOR, shape=[-1, 2]), {"name": "t", "datatype": "BYTES",
                                                     "shape": [-1]}],
            "outputs": [dict(TENSOR, name="y"), {"name": "s", "datatype": "BYTES", "shape": [2]}]}
    strings = struct.pack("<I", 1) + b"a" + struct.pack("<I", 3) + "é\x1b".encode()
    answers = {
        "/v2/models/m": as_json(meta), "/v2": as_json({"extensions": ["binary_tensor_data"]}),
        "/v2/models/m/infer": results(binary(8), binary(len(strings), name="s", datatype="BYTES"),
                                      behind=TWO + strings)}
    shown = r'y: float32\[2\] \[1.0, 2.0\]\ns: string\[2\] \["a", "é\\u001b"\]\n'
    call = ("--input", "x=[[5,6]]", "--input", 't=["p","q"]')
    with Server(answers) as server, tempfile.TemporaryDirectory() as folder:
        check(0, shown, "run", f"{server.url}/m", *call)
        body = server.requests[-1][2]
        head = json.loads(body[:body.index(b"}}") + 2].decode() if b"binary_data_output" not in body
                          else body[:body.index(b"true}}") + 6])
        expect("the request", head["inputs"],
               [{"name": "x", "shape": [1, 2], "datatype": "FP32",
                 "parameters": {"binary_data_size": 8}},
                {"name": "t", "shape": [2], "datatype": "BYTES",
                 "parameters": {"binary_data_size": 10}}])
        expect("its bytes", body[-18:], struct.pack("<ff", 5, 6) + struct.pack("<I", 1) + b"p" +
               struct.pack("<I", 1) + b"q")
        check(0, "^$", "run", f"{server.url}/m", *call, "--output", folder)
        if b"'|S3'" not in (Path(folder) / "s.npy").read_bytes():
            raise Failure("no array of strings")
        answers["/v2"] = as_json({"extensions": ["statistics"]})
        answers["/v2/models/m/infer"] = results(
            output(), output(name="s", datatype="BYTES", data=["a", "é\x1b"]))
        check(0, shown, "run", f"{server.url}/m", *call)
        expect("the request in JSON", json.loads(server.requests[-1][2]),
               {"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [5.0, 6.0]},
                           {"name": "t", "shape": [2], "datatype": "BYTES", "data": ["p", "q"]}]})
        check(0, "^y: ", "run", f"{server.url}/m", "--input", 't="p"', "--shape", "t=3")


def hostile_metadata():
    """Each answer to the first request, and what pte says of it."""
    rows = (
        (answer_of(b"not JSON at all"), 65, "/v2/models/m: "),
        (answer_of(b""), 65, "/v2/models/m: "),
        (answer_of(b"[" * 100000), 65, "/v2/models/m: "),
        (as_json([]), 65, "/v2/models/m: expected an object, got an array"),
        (as_json({"inputs": 1, "outputs": []}), 65, "inputs: expected an array"),
        (as_json({"inputs": []}), 65, "expected a member 'outputs'"),
        (as_json({"inputs": [{}], "outputs": []}), 65, r"inputs\[0\]: expected a member 'name'"),
        (as_json({"inputs": [dict(TENSOR, name="\x1b[2J")], "outputs": []}), 65, "name: "),
        (as_json({"inputs": [dict(TENSOR, name="x" * 300)], "outputs": []}), 65, "name: "),
        (as_json({"inputs": [dict(TENSOR, name="")], "outputs": []}), 65, "name: "),
        (as_json({"inputs": [dict(TENSOR, datatype="COMPLEX64")], "outputs": []}), 69, "datatype"),
        (as_json({"inputs": [dict(TENSOR, shape=[1] * 17)], "outputs": []}), 65, "at most 16 dims"),
        (as_json({"inputs": [dict(TENSOR, shape=[-2])], "outputs": []}), 65, "whole number"),
        (as_json({"inputs": [dict(TENSOR, shape=[1e300])], "outputs": []}), 65, "whole number"),
        (as_json({"inputs": [dict(TENSOR, shape=[2 ** 40] * 3)], "outputs": []}), 65,
         "too many bytes"),
        (as_json({"inputs": [dict(TENSOR, shape=[2 ** 40])], "outputs": []}), 65, "at most"),
        (as_json({"inputs": [dict(TENSOR, example_shape=[1, 2])], "outputs": []}), 65,
         "as many dims"),
        (as_json({"inputs": [TENSOR] * 2000, "outputs": []}), 69, "at most 1024, got 2000"),
        (as_json({"error": "a\x1b[31mb\u202e"}, status=500), 70,
         r"HTTP 500: a\\u001b\[31mb\\u202e"),
        (as_json({"error": {"message": "deep"}}, status=422), 64, "HTTP 422: deep"),
        (as_json({"detail": "x" * 5000}, status=429), 71, "HTTP 429: x+\n"),
        (answer_of(b"<html>\x1b]0;hi\x07", status=502), 77, r"HTTP 502: <html>\\u001b"),
        (answer_of(b"\xff\xfe", status=400), 65, r"HTTP 400: \\ufffd"),
        (answer_of(b"", status=504), 75, "HTTP 504\n"),
        (answer_of(b"", "Location: http://127.0.0.1:1/\x1b[2J", status=302), 69,
         r"HTTP 302: http://127.0.0.1:1/.*redirects are not followed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", 77, "the connection ended before"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n{}", 65, "more than"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", 65, ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 77, ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 77, ""),
        (b"", 77, "the connection ended before"),
        (b"\x00\x01\x02 garbage\r\n\r\n", 65, "expected an answer in HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 400000, (65, 77), ""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20000, (65, 77), ""),
    )
    answers = {}
    with Server(answers) as server:
        for answer, status, pattern in rows:
            answers["/v2/models/m"] = answer
            check(status, "^pte: (http://127|x: )[^\n]*" + pattern, "run", f"{server.url}/m")


def endless(connection):
    """A body without an end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{")
    while True:
        connection.sendall(b" " * 65536)


def silent(connection):
    """Half an answer, and then nothing until the client goes."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
    connection.recv(1)


def hostile_results():
    """Each answer to a call."""
    rows = (
        (results(output()), 0, r"^y: float32\[2\] \[1.0, 2.0\]\n$"),
        (results(binary(8), behind=TWO), 0, r"^y: float32\[2\] \[1.0, 2.0\]\n$"),
        (results(), 0, "^$"),
        (results(binary(8), behind=ONE), 65,
         "y': binary_data_size is 8, but only 4 bytes are left"),
        (results(binary(4), behind=ONE), 65, "y': expected 8 bytes for its shape, got 4"),
        (results(binary(4), behind=TWO), 65, "y': expected 8 bytes for its shape, got 4"),
        (results(binary(8), behind=TWO + ONE), 65, "4 bytes behind the last tensor"),
        (results(binary(2 ** 63), behind=TWO), 65, "binary_data_size is 9223372036854775808"),
        (results(binary(-8), behind=TWO), 65, "binary_data_size"),
        (results(output(), length=5), 65, ""),
        (results(output(), length=10 ** 9), 65,
         "Inference-Header-Content-Length: expected at most"),
        (results(output(), length="99999999999999999999999"), 65, "Inference-Header-Content"),
        (results(output(), length="-1"), 65, "Inference-Header-Content-Length"),
        (results(output(), length="7 7"), 65, "Inference-Header-Content-Length"),
        (results(output(shape=[3])), 65, "y': "),
        (results(output(shape=[2 ** 62, 8])), 65, ""),
        (results(output(shape=[2 ** 31])), 65, "y': expected 2147483648 elements"),
        (results(output(shape=[1] * 17)), 65, r"outputs\[0\].shape.*at most 16 dims"),
        (results(output(shape=[-1])), 65, r"outputs\[0\].shape"),
        (results(output(data=[1, "x"])), 65, "y': data"),
        (results(output(data=[[1], 2])), 65, "y': data"),
        (results(output(data=None)), 65, "expected name, datatype, shape, and data"),
        (results(output(datatype="COMPLEX128")), 69, "element type 'COMPLEX128'"),
        (results(output(name="\u202e")), 65, r"outputs\[0\].name"),
        (results(*[output()] * 1025), 69, "at most 1024 outputs"),
        (results(output(datatype="BYTES", data=["a\u202e\x1b"], shape=[1])), 0, r"y: string \"a"),
        (results(binary(3, datatype="BYTES"), behind=b"abc"), 65,
         "expected 2 strings, got 3 bytes"),
        (results(binary(8, datatype="BYTES"), behind=b"\xff" * 8), 65, "string 0 is not whole"),
        (results(binary(9, datatype="BYTES"), behind=b"\0" * 9), 65, "1 bytes too many"),
        (results(binary(8, datatype="BYTES", shape=[2 ** 40]), behind=b"\0" * 8), 65, "strings"),
        (as_json({"model_name": "m"}), 65, "/v2/models/m/infer: expected a member 'outputs'"),
        (answer_of(b"[" * 1000), 65, "/v2/models/m/infer: "),
        (as_json({"outputs": {}}), 65, "outputs: expected an array"),
        (answer_of(b'{"outputs":[],"outputs":[]}'), 65, "outputs"),
        (answer_of('{"outputs":[{"\x7f\u009b": x'.encode()), 65, r"\\u007f\\u009b"),
        (endless, 65, "the answer has more than 100000 bytes"),
        (silent, 75, r"no whole answer within 2000 ms \(--timeout\)"),
    )
    answers = {"/v2/models/m": as_json(META)}
    with Server(answers) as server:
        for answer, status, pattern in rows:
            answers["/v2/models/m/infer"] = answer
            limits = ["--timeout", "2s"] if answer is silent else []
            check(status, pattern, "run", f"{server.url}/m", "--answer-bytes-max", "100000",
                  *limits)
        with tempfile.TemporaryDirectory() as folder:
            inside = f"{folder}/a/b"
            os.makedirs(inside)
            answers["/v2/models/m/infer"] = results(output(name="../../y"))
            check(0, "^$", "run", f"{server.url}/m", "--output", inside)
            expect("files", [os.listdir(path) for path in (folder, f"{folder}/a", inside)],
                   [["a"], ["b"], ["_._.._y.npy"]])
            answers["/v2/models/m/infer"] = results(output(), output())
            check(74, "two results are called 'y'", "run", f"{server.url}/m", "--output", inside)


def hostile_lists():
    """What ls and top are told."""
    answers = {}
    with Server(answers) as server:
        for index, status, pattern in (
                (as_json({}), 65, "index: expected an array"),
                (as_json([1]), 65, "expected an object"), (as_json([{}]), 65, "expected a name"),
                (as_json([{"name": "\x1b"}]), 65, "expected a name"),
                (as_json([{"name": 1}]), 65, "name: expected a string"),
                (as_json([{"name": "a", "state": "\x1b[2J", "reason": "\u202eb"}]), 0,
                 r"\na +- +\\u001b\[2J +\\u202eb\n"),
                (as_json([{"name": "q/../r"}]), 0, r"\nq/../r +- +-\n"),
                (endless, 65, "more than")):
            answers["/v2/repository/index"] = index
            check(status, pattern, "ls", server.url)
        if not any(path == "/v2/models/q%2F..%2Fr" for path, _, _ in server.requests):
            raise Failure(f"paths {[path for path, _, _ in server.requests]}")
        big = 2 ** 64 - 1
        for stats, status, pattern in (
                (as_json([]), 65, "stats: expected an object"),
                (as_json({}), 65, "expected a member 'model_stats'"),
                (as_json({"model_stats": [[]]}), 65, "expected an object"),
                (as_json({"model_stats": [{"name": "\x1b"}]}), 65, "control"),
                (as_json({"model_stats": [{"name": "a", "inference_count": -1}]}), 65, "whole"),
                (as_json({"model_stats": [{"name": "a", "inference_count": big,
                                           "execution_count": 1,
                                           "inference_stats": {"success": {"count": big}}}]}), 0,
                 "\na "),
                (as_json({"model_stats": [{"name": "x" * 256, "version": "9" * 64}],
                          "memory": {"used": big, "bytes": big}}), 0, "\nx{40} "),
                (as_json({"model_stats": []}), 0, " 0 models"),
                (answer_of(b"", status=404), 66, "HTTP 404")):
            answers["/v2/models/stats"] = stats
            answers["/metrics"] = answer_of(b"process_resident_memory_bytes 1e400\n"
                                            b"process_start_time_seconds -5\n" + b"x" * 100)
            check(status, pattern, "top", "--once", "--interval", "50ms", server.url)


# ---- TLS and proxies ----

def make_certificates(folder):
    """A CA, a server and a client that it vouches for."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder,
                       timeout=TIMEOUT_S)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test CA")
    for name in ("server", "client"):
        openssl("req", *key[:-2], "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                f"/CN={name}")
        Path(folder, "ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-set_serial", "7", "-days", "2", "-extfile", "ext", "-out", f"{name}.pem")


class SecureServer(Server):
    """The same over TLS; |wants_client|: it shows its certificate, too."""

    def __init__(self, answers, folder, wants_client):
        super().__init__(answers)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")
        if wants_client:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(f"{folder}/ca.pem")
        self.url = self.url.replace("http:", "https:")

    def talk(self, connection):
        try:
            connection = self.context.wrap_socket(connection, server_side=True)
        except (OSError, ssl.SSLError):
            connection.close()
            return
        super().talk(connection)


def tls():
    if not shutil.which("openssl"):
        print("# no openssl: TLS is not tested")
        return
    answers = {"/v2/repository/index": as_json([])}
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(folder)
        ca, pem, key = (f"{folder}/{name}" for name in ("ca.pem", "client.pem", "client.key"))
        with SecureServer(answers, folder, False) as server:
            check(77, "certificate", "ls", server.url)
            check(0, "^MODEL", "ls", server.url, "--insecure")
            check(0, "^MODEL", "ls", server.url, "--cacert", ca)
            check(0, "^MODEL", "ls", server.url, CURL_CA_BUNDLE=ca)
            check(0, "^MODEL", "ls", server.url, SSL_CERT_FILE=ca)
            check(77, ".", "ls", server.url, "--cacert", pem)
            check(77, ".", "ls", server.url, "--cacert", "/nonexistent")
            check((65, 77), ".", "ls", server.url.replace("https:", "http:"))
        with SecureServer(answers, folder, True) as server:
            check(77, ".", "ls", server.url, "--cacert", ca)
            check(0, "^MODEL", "ls", server.url, "--cacert", ca, "--cert", pem, "--key", key)
    with Server(answers) as server:
        check(75, "no connection within 1000 ms", "ls", server.url.replace("http:", "https:"),
              "--timeout", "1s")


def pings():
    """A server that is there, that is not ready, and none; a model of it; without a URL the server
    is where the environment lets pted listen, and no proxy is asked."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "broken.pte").write_bytes(b"no program")
        with Daemon(["--models", folder, "--model", f"add={ADD}", "--listen",
                     f"unix:{folder}/s", "--health-listen", f"unix:{folder}/health"]) as daemon:
            at = f"127.0.0.1:{daemon.port}"
            check(0, f"^http://{at}: ready\n$", "ping", at)
            check(0, f"^http://{at}: live\n$", "ping", "--live", at)
            check(0, f"^unix:{folder}/health: ready\n$", "ping", f"unix:{folder}/health")
            check(0, f"^unix:{folder}/s: add: ready\n$", "ping", f"unix:{folder}/s:/add")
            check(0, "add: ready", "ping", f"{at}/v2/models/add/versions/1")
            check(66, "HTTP 404: no model 'none'", "ping", f"{at}/none")
            check(1, "HTTP 503: .*'broken'", "ping", f"{at}/broken")
            check(64, "--live: expected a server without a model", "ping", "--live", f"{at}/add")
            check(0, f"^http://{at}: ready\n$", "ping", PTED_LISTEN=f"0.0.0.0:{daemon.port},x",
                  http_proxy="http://127.0.0.1:1")
            check(0, f"^unix:{folder}/s: ready\n$", "ping", PTED_LISTEN=f",unix:{folder}/s")
            check(0, f"^unix:{folder}/health: ready\n$", "ping", PTED_LISTEN=at,
                  PTED_HEALTH_LISTEN=f"unix:{folder}/health")
            check((65, 77), f"^pte: https://127.0.0.1:{daemon.port}: ", "ping",
                  PTED_LISTEN=f"tls:{at}")
            check(64, "^pte: PTED_LISTEN: ", "ping", PTED_LISTEN="tls:unix:/x")
            check(64, "^pte: PTED_HEALTH_LISTEN: expected an address", "ping",
                  PTED_HEALTH_LISTEN="x" * 4000 + ":1")
        check(77, "cannot connect: ", "ping", at)
    no = {status: answer_of(b'{"error":"not yet"}', status=status)
          for status in (400, 401, 404, 500, 503)}
    for status, code in ((400, 1), (401, 77), (404, 66), (500, 1), (503, 1)):
        with Server({"/v2/health/ready": no[status],
                     "/v2/health/live": answer_of(b"")}) as server:
            check(code, f"^pte: {server.url}: HTTP {status}: not yet", "ping", server.url)
            check(0, "live", "ping", "--live", server.url)
    with Server({"/v2/health/ready": silent}) as server:
        check(75, "within 300 ms", "ping", "--timeout", "300ms", server.url)
        check(77, "cannot connect: ", "ping", PTED_LISTEN="[::]:1")
    with Server({"/v2/health/ready": lambda connection: connection.sendall(b"no HTTP")}) as server:
        check(65, server.url, "ping", server.url)


# Waits for names as if its server of names were away.
NO_NAMES = """
import fcntl, os, socket, struct, subprocess, sys
up = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(up, 0x8914, struct.pack("16sh14x", b"lo", 1))
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.9", 53))
for name, text in (("resolv.conf", "nameserver 127.0.0.9\\noptions timeout:30 attempts:5\\n"),
                   ("nsswitch.conf", "hosts: dns\\n")):
    path = os.path.join(sys.argv[1], name)
    with open(path, "w") as file:
        file.write(text)
    subprocess.run(["mount", "--bind", path, "/etc/" + name], check=True)
sys.exit(subprocess.run(sys.argv[2:], check=False).returncode)
"""


def slow_names():
    """--timeout also bounds the time for a name, which the C library bounds by minutes."""
    if not all(os.path.exists(f"/etc/{name}") for name in ("resolv.conf", "nsswitch.conf")) or \
            subprocess.run(["unshare", "-rmn", "true"], check=False).returncode:
        print("# no name spaces: slow names are not tested")
        return
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["unshare", "-rmn", sys.executable, "-c", NO_NAMES, folder, PTE, "ping", "--timeout",
             "200ms", "host.example:80"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=TIMEOUT_S, check=False)
        expect(done.stderr, done.returncode, 75)
        expect("text", done.stderr, "pte: http://host.example:80: no connection within 200 ms\n")


def proxies():
    """Requests go through the proxy of the environment, but not to those that NO_PROXY names."""
    answers = {"http://model.invalid/v2/repository/index": as_json([])}
    with Server(answers) as proxy:
        check(0, "^MODEL", "ls", "http://model.invalid", "--token", "secret-1",
              http_proxy=proxy.url)
        head = proxy.requests[-1][1]
        expect("the token on the way", b"Authorization: Bearer secret-1\r\n" in head, True)
        check(77, ".", "ls", "http://127.0.0.1:1", http_proxy=proxy.url, NO_PROXY="127.0.0.1")
        expect("requests of the proxy", len(proxy.requests), 1)
        answers["/v2/repository/index"] = answer_of(
            b"", f"Location: {proxy.url}/elsewhere", status=307)
        check(69, "HTTP 307: .*/elsewhere .redirects are not followed", "ls", proxy.url,
              "--token", "secret-2")
        expect("requests after a redirect", len(proxy.requests), 2)


# ---- a terminal ----

class Terminal:
    """pte top in a window of its own."""

    def __init__(self, *arguments, rows=12, columns=70):
        self.primary, self.secondary = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.secondary)
        self.text = ""
        self.process = subprocess.Popen([PTE, "top", "--interval", "100ms", *arguments],
                                        stdin=self.secondary, stdout=self.secondary,
                                        stderr=self.secondary, start_new_session=True,
                                        env={**os.environ, "TERM": "xterm"})

    def resize(self, rows, columns):
        fcntl.ioctl(self.secondary, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, text, count=1):
        """What the window gets from now on, until |text| has come |count| times."""
        deadline = time.monotonic() + TIMEOUT_S
        self.text = ""
        while self.text.count(text) < count:
            if time.monotonic() > deadline:
                raise Failure(f"no {text!r} in {self.text[-1000:]!r}")
            if select.select([self.primary], [], [], 0.1)[0]:
                self.text += os.read(self.primary, 65536).decode(errors="replace")
        return self.text

    def end(self, status):
        """The process ends, and the terminal is as it was."""
        self.read_until("\x1b[?25h\x1b[?1049l")
        expect("the status of top", self.process.wait(TIMEOUT_S), status)
        expect("the terminal", termios.tcgetattr(self.secondary), self.before)
        os.close(self.primary)
        os.close(self.secondary)


def frames(text):
    """The lines of whole frames, without control sequences."""
    return [[re.sub(r"\x1b\[[?0-9]*[A-Za-z]", "", line) for line in re.split(r"\r+\n", frame)]
            for frame in text.split("\x1b[H")[1:-1]]


def terminals():
    with Daemon(["--models", str(MODELS)]) as daemon:
        url = f"http://127.0.0.1:{daemon.port}"
        for key in (b"q", b"\x03"):
            window = Terminal(url)
            text = window.read_until("\x1b[H", 4)
            if not text.startswith("\x1b[?1049h\x1b[?25l"):
                raise Failure(f"begins with {text[:40]!r}")
            for frame in frames(text):
                if len(frame) > 12 or max(map(len, frame)) > 70 or "MODEL" not in frame[2]:
                    raise Failure(f"a frame for 12 x 70: {frame}")
            window.resize(8, 40)
            os.kill(window.process.pid, signal.SIGWINCH)
            window.read_until("\x1b[H", 2)
            for frame in frames(window.read_until("\x1b[H", 4)):
                if len(frame) > 8 or max(map(len, frame)) > 40:
                    raise Failure(f"a frame for 8 x 40: {frame}")
            if key == b"\x03":
                os.kill(window.process.pid, signal.SIGINT)
            else:
                os.write(window.primary, key)
            window.end(0)
        window = Terminal(url)
        window.read_until("MODEL")
        daemon.stop()
        window.read_until("cannot connect")
        os.kill(window.process.pid, signal.SIGTERM)
        window.end(0)
    window = Terminal("http://127.0.0.1:1")
    window.end(77)
    with Server({"/v2/models/stats": silent}) as server:
        window = Terminal(server.url)
        window.read_until("\x1b[?25l")
        os.write(window.primary, b"q")
        window.end(0)


def main():
    if "libcurl" in run("ls", "unix:/nonexistent").stderr:
        print("no libcurl: nothing is tested")
        return 77
    report = Report()
    for name, check_one in (("file and URL print the same", file_and_url),
                            ("unix sockets", unix_sockets), ("tokens", tokens),
                            ("targets", targets), ("other servers", other_servers),
                            ("hostile metadata", hostile_metadata),
                            ("hostile results", hostile_results),
                            ("hostile answers", hostile_answers),
                            ("hostile sizes", hostile_sizes),
                            ("hostile lists", hostile_lists), ("TLS", tls),
                            ("pings", pings), ("slow names", slow_names),
                            ("proxies", proxies), ("terminals", terminals)):
        report.run(name, check_one)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
