#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A request gets the same answer whatever its connection has sent before. Connections remember the
head, the route and the form of a request, so the one that comes next is changed in every place: in
a byte, in a value, in its length, in the models that there are.

usage: run_again.py, with top_srcdir and top_builddir in the environment.
"""
import hashlib
import json
import random
import re
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from run_http import MODELS, Client, Daemon, Report, build_request, expect

ROUNDS = 600
LEARN_EACH = 16  # a connection whose requests differ learns one of so many
HEADER_BYTES_MAX = 32768  # the default of --header-bytes-max
TOKEN = "a-token-of-the-test-0123456789"
TRACE = b"0123456789abcdef0123456789abcdef"
FIELDS = ["Content-Type: application/json", f"Authorization: Bearer {TOKEN}", "X-Request-Id: r-1",
          f"traceparent: 00-{TRACE.decode()}-0123456789abcdef-01"]
LAST = build_request("GET", "/v2/health/live", fields=["Connection: close"])
BYTES = b"\"\\]}[{,:0159x \t\r\n\x01\x7f\x80/?%-+."


def tensors(data):
    return [{"name": f"input_{i}", "shape": [2, 3], "datatype": "FP32", **data(i)}
            for i in range(2)]


def request(value, path="/v2/models/add/infer", fields=FIELDS, tail=b""):
    head = json.dumps(value, separators=(",", ":")).encode()
    if tail:
        fields = [*fields, f"Inference-Header-Content-Length: {len(head)}"]
    return build_request("POST", path, head + tail, fields)


def numbers(i):
    return {"data": [i + k for k in range(6)]}


def sized(_):
    return {"parameters": {"binary_data_size": 24}}


BASES = {
    "JSON": request({"id": "a", "inputs": tensors(numbers),
                     "outputs": [{"name": "output_0"}], "parameters": {"priority": 1}}),
    "binary": request({"inputs": tensors(sized), "parameters": {"binary_data_output": True}},
                      tail=bytes(range(48))),
    "call": request({"args": [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6]]]},
                    "/v2/models/add/call?top_k=0"),
}


def others(base):
    """Requests that differ from |base| in a value."""
    head, _, body = base.partition(b"\r\n\r\n")
    for old, new in ((b"r-1", b""), (b"r-1", b"another id"), (b"r-1", b"x" * 300),
                     (b"f-01", b"f-00"), (b"f-01", b""), (b"Bearer a", b"Bearer b"),
                     (b"/add/", b"/none/"), (b"/add/", b"/digits/"), (b"infer", b"infer?top_k=1"),
                     (b"infer", b"infer?binary=1"), (b"application/json", b"image/png"),
                     (b"Host: test", b"Host: a b"), (b"1.1", b"1.0"),
                     (b"Content-Length: ", b"Content-Length: 0"),
                     (b"Content-Length: ", b"Content-Length: +"),
                     (b"Content-Length: ", b"Content-Length: 99999999999999999999"),
                     (b"Content-Length: ", b"Content-Length:  "),
                     (b"Content-Length: ", b"Content-Length: 1\r\nContent-Length: ")):
        yield head.replace(old, new) + b"\r\n\r\n" + body
    longer = body.replace(b'"a"', b'"a longer id"').replace(b"[0,1,2", b"[1e1,-2.5,300")
    yield head.replace(str(len(body)).encode(), str(len(longer)).encode()) + b"\r\n\r\n" + longer


def unusual_lengths(daemon, name):
    """Content-Length in forms that are allowed and rare: the body is never taken for a request."""
    inner = build_request("GET", "/v2/health/live?inner", fields=FIELDS)
    head = BASES[name].partition(b"\r\n\r\n")[0]
    for form in (b"Content-Length: %d ", b"Content-Length: %019d", b"Content-Length:%d\t",
                 b"Content-Length: %d\r\nX-Other: 1"):
        data = re.sub(rb"Content-Length: \d+", form % len(inner), head) + b"\r\n\r\n" + inner
        status = ask(daemon.port, [], data)[9:12].decode()
        for count in range(4):
            again = ask(daemon.port, [], data * (count + 1))
            expect(f"{form}: statuses", re.findall(rb"HTTP/1.1 (\d+)", again)[:-1],
                   [status.encode()] * (count + 1))


def longest_head(daemon, _):
    """A head that is just short enough stays so, however long the values before it were."""
    def get(count):
        return build_request("GET", "/v2", fields=["X-Request-Id: " + "i" * count, FIELDS[1]])
    longest = get(HEADER_BYTES_MAX - len(get(0)))
    expect("bytes", len(longest), HEADER_BYTES_MAX)
    data = compare(daemon.port, "longest head", [get(700)] * 3, longest)
    expect("status", data[:12], b"HTTP/1.1 200")


def pauses(daemon, _):
    """A client that pauses is not known any more, and is answered as before."""
    client = Client(daemon.port)
    for pause_s in (0, 0, 0, 3.2, 0, 0, 0):
        time.sleep(pause_s)
        client.send(BASES["JSON"])
        expect("status", client.answer(), 200)
    client.close()


def lengths_mix(daemon, name):
    """Short and long requests follow each other; what was learnt of the short ones is freed."""
    longer = BASES[name].replace(b'"id":"a"', b'"id":"a"' + b" " * 9000)
    head, _, body = longer.partition(b"\r\n\r\n")
    longer = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body),
                    head) + b"\r\n\r\n" + body
    client = Client(daemon.port)
    for data in (BASES[name], BASES[name], longer) * 20:
        client.send(data)
        expect("status", client.answer(), 200)
    client.close()


def damaged(base, chance):
    at = chance.randrange(len(base))
    byte = bytes([chance.choice(BYTES)])
    return base[:at] + chance.choice((byte, byte + base[at:at + 1], b"", base[at:at + 1] * 2)) + \
        base[at + 1:]


def ask(port, before, data):
    """All that comes for |data| behind the requests |before|, and one that ends the connection."""
    client = Client(port)
    for one in before:
        client.send(one)
        expect("status before", client.answer(), 200)
    client.send(data + LAST)
    try:
        client.socket.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # it is closed already
    got = client.unread
    try:
        for part in iter(lambda: client.socket.recv(65536), b""):
            got += part
    except ConnectionResetError:
        pass
    client.close()
    got = re.sub(rb"\r\nDate: [^\r]*", b"", got)
    return re.sub(rb"\r\ntraceparent: 00-(\w*)[^\r]*",
                  lambda found: b"\r\ntrace: " + (found[1] if found[1] == TRACE else b"new"), got)


def compare(port, what, before, data):
    for _ in range(3):  # a reset may overtake the end of an answer
        alone, again = ask(port, [], data), ask(port, before, data)
        if alone == again:
            return alone
    expect(f"{what}: {data!r}", again, alone)
    return again


def values(daemon, name):
    for data in others(BASES[name]):
        compare(daemon.port, name, [BASES[name]] * 3, data)


def bytes_differ(daemon, name):
    chance = random.Random(name)
    good = 0
    for _ in range(ROUNDS):
        data = damaged(BASES[name], chance)
        good += compare(daemon.port, name, [BASES[name]] * 3, data).startswith(b"HTTP/1.1 200")
    expect("some answers are results", 0 < good < ROUNDS, True)


def follow(daemon, name):
    """Each request behind each."""
    for other in BASES.values():
        data = compare(daemon.port, name, [other, BASES[name], other, other], BASES[name])
        expect("status", data[:12], b"HTTP/1.1 200")


def in_pieces(daemon, name):
    """The bytes come in two parts, or the one request with the next."""
    client = Client(daemon.port)
    whole = BASES[name]
    client.send(whole * 3)
    bodies = []
    for _ in range(3):
        expect("status", client.answer(), 200)
        bodies.append(client.body)
    for cut in range(1, len(whole), 7):
        client.send(whole[:cut])
        client.send(whole[cut:])
        expect(f"cut at {cut}", client.answer(), 200)
        bodies.append(client.body)
    expect("different answers", len(set(bodies)), 1)
    client.close()


def models_change(daemon, _):
    """What is remembered leads to no model that is not there."""
    client, admin = Client(daemon.port), Client(daemon.admin_port())
    for action, status in (("unload", 503), ("load", 200)) * 2:
        for _ in range(3):
            client.send(BASES["JSON"])
            client.answer()
        admin.send(build_request("POST", f"/v2/repository/models/add/{action}", b""))
        expect(action, admin.answer(), 200)
        client.send(BASES["JSON"])
        expect(f"status after {action}", client.answer(), status)


def ask_fresh(port, data):
    """The answer of a connection that has sent nothing before."""
    client = Client(port)
    client.send(data)
    status = client.answer()
    client.close()
    return status, client.body


def files_change(folder):
    """Inputs that were found for one model are not those of another one with its name, which has
    other types and shapes for the same names; and forms of requests take turns."""
    file = Path(folder) / "m.pte"
    bases = [request({"inputs": [{"name": f"input_{i}", "shape": shape, "datatype": datatype,
                                  "data": [k + i for k in range(count)]}
                                 for i, (shape, count) in enumerate(shapes)]},
                     "/v2/models/m/infer")
             for datatype, shapes in (("FP32", [([2, 3], 6)] * 2),
                                      ("FP32", [([4, 5], 20), ([2, 3], 6)]),
                                      ("INT64", [([6], 6)] * 2))]
    swapped = request({"inputs": tensors(numbers)[::-1]}, "/v2/models/m/infer")
    shutil.copy(MODELS / "add.pte", file)
    with Daemon([f"--token-file={Path(folder) / 'tokens'}", "--admin-listen=127.0.0.1:0",
                 "--workers=1", str(file)]) as daemon:
        admin, clients = Client(daemon.admin_port()), [Client(daemon.port) for _ in range(4)]
        for name, right in (("add", 0), ("found", 1), ("add", 0), ("int64_exact", 2)):
            shutil.copy(MODELS / f"{name}.pte", Path(folder) / "fresh")
            (Path(folder) / "fresh").rename(file)
            admin.send(build_request("POST", "/v2/repository/models/m/load", b""))
            expect(f"{name}: load", admin.answer(), 200)
            row = (bases[right], *bases, swapped, bases[right])
            fresh = {data: ask_fresh(daemon.port, data) for data in row}
            expect(f"{name}: status", fresh[bases[right]][0], 200)
            for data, client in zip((*bases, swapped), clients):  # as before the change
                client.send(data)
                expect(f"{name}: answer", (client.answer(), client.body), fresh[data])
            for client in clients:  # forms take turns
                client.send(b"".join(row))
                expect(f"{name}: answers", [(client.answer(), client.body) for _ in row],
                       [fresh[data] for data in row])
            for data, client in zip((*bases, swapped), clients):  # each learns its form again
                for _ in range(LEARN_EACH + 4):
                    client.send(data)
                    expect(f"{name}: answer", (client.answer(), client.body), fresh[data])


def main():
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder) / "tokens"
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        tokens.write_text(f"test infer,read sha256:{digest}\n")
        tokens.chmod(0o600)
        with Daemon([f"--token-file={tokens}", "--admin-listen=127.0.0.1:0", "--workers=1",
                     str(MODELS / "add.pte"), str(MODELS / "digits.pte")]) as daemon:
            for name in BASES:
                for check in (values, bytes_differ, follow, in_pieces):
                    report.run(f"{name}: {check.__name__}", check, daemon, name)
            report.run("unusual lengths", unusual_lengths, daemon, "JSON")
            report.run("longest head", longest_head, daemon, None)
            report.run("lengths mix", lengths_mix, daemon, "JSON")
            report.run("pauses", pauses, daemon, None)
            report.run("models change", models_change, daemon, None)
        report.run("files change", files_change, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
