#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Orders of memory: version 2 of the raw function ABI against a reader and a writer of its grammar
that know nothing of pted's, the order that a method prefers, and tensors that come in it.

usage: run_orders.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import json
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from run_http import BUILD, MODELS, Client, Daemon, Failure, Report, build_request, expect

TYPES = ("float32", "float16", "float64", "bfloat16", "sint8", "sint16", "sint32", "sint64",
         "uint8", "uint16", "uint32", "uint64")
PTE = str(BUILD / "pte")
ROUNDS = 150


# ---- version 2: an independent reader and writer ----

class Refused(Exception):
    pass


def split(text):
    """Components (tag, number or content) of |text|."""
    items = []
    while text:
        found = re.match(r"([a-z_])(-?\d+)|([A-Z])(\d+)!", text)
        if not found:
            raise Refused
        if found[1]:
            items.append((found[1], found[2]))
            text = text[found.end():]
        else:
            end = found.end() + int(found[4]) - 1
            if int(found[4]) < 1 or end > len(text):
                raise Refused
            items.append((found[3], text[found.end():end]))
            text = text[end:]
    return items


def span(tag, content):
    return f"{tag}{len(content) + 1}!{content}"


def channels_last(rank):
    return [0, *range(2, rank), 1]


def read_order(items, rank):
    """Takes an order off the end of |items|. Returns (its canonical text, words for people)."""
    if not items or items[-1][0] not in "cC":
        return "", ""
    tag, value = items.pop()
    if rank < 2 or (tag == "c" and value not in ("0", "1")) or (value == "1" and rank < 3):
        raise Refused
    if tag == "c":
        return f"c{value}", (" row-major", " channels-last")[int(value)]
    axes = split(value)
    numbers = [int(number) for tag, number in axes]
    if any(tag != "a" or str(int(number)) != number for tag, number in axes) or \
            sorted(numbers) != list(range(rank)) or numbers == sorted(numbers) or \
            (rank >= 3 and numbers == channels_last(rank)):
        raise Refused
    return span("C", value), " in the order " + " ".join(map(str, numbers))


def read_type(tag, content):
    """Returns (canonical text, text for people)."""
    if tag not in "BSOU" or len(tag) != 1:
        raise Refused
    items = split(content)
    name, code = "float32", ""
    if tag in "BS" and items and items[0][0] == "t":
        number = items.pop(0)[1]
        if number not in [str(n) for n in range(12)]:
            raise Refused
        name, code = TYPES[int(number)], "" if number == "0" else f"t{number}"
    if tag != "B":
        if items:
            raise Refused
        return span(tag, code), {"S": name, "O": "ref", "U": "unrecognized"}[tag]
    order, words = read_order(items, sum(tag == "d" for tag, _ in items))
    if any(tag != "d" or int(value) < -1 for tag, value in items):
        raise Refused
    dims = [int(value) for _, value in items]
    text = ",".join("?" if dim < 0 else str(dim) for dim in dims)
    return (span("B", code + "".join(f"d{dim}" for dim in dims) + order),
            f"{name}[{text}]{words}")


def read(text):
    """Returns (canonical text, text for people) of a signature of version 2."""
    sides = split(text)
    if [tag for tag, _ in sides] != ["I", "R"]:
        raise Refused
    types = [[read_type(*item) for item in split(content)] for _, content in sides]
    canonical = "".join(span(tag, "".join(one[0] for one in side))
                        for tag, side in zip("IR", types))
    return canonical, " -> ".join("(" + ", ".join(one[1] for one in side) + ")" for side in types)


def random_type(chance):
    tag = chance.choice("BBBBSOU")
    code = chance.choice(("", f"t{chance.randrange(12)}"))
    if tag in "OU":
        return f"{tag}1!"
    if tag == "S":
        return span("S", code)
    rank = chance.randrange(7)
    dims = "".join(f"d{chance.choice((-1, 0, 1, 3, 224, 10 ** 6))}" for _ in range(rank))
    axes = list(range(rank))
    chance.shuffle(axes)
    listed = span("C", "".join(f"a{axis}" for axis in axes))
    return span("B", code + dims + chance.choice(("", "", "c0", "c1", listed, listed)))


def damage(text, chance):
    at = chance.randrange(len(text))
    return chance.choice((text[:at] + text[at + 1:],
                          text[:at] + chance.choice("aBcCd019!-tIR") + text[at + 1:],
                          text[:at] + chance.choice("ac01!") + text[at:]))


def ask(kind, text):
    """Returns (canonical, readable), or None and the error."""
    done = subprocess.run([PTE, "sig", kind, text], capture_output=True, text=True, check=False)
    if done.returncode:
        if done.returncode != 1 or not re.match(r"pte: byte \d+: ", done.stderr):
            raise Failure(f"{text}: exit {done.returncode}, {done.stderr!r}")
        return None, done.stderr
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    return lines["canonical"], lines["readable"]


def version_2():
    """Random signatures, whole and damaged, mean the same to pted and to the reader above."""
    chance = random.Random(41)
    kinds = {True: 0, False: 0}
    for _ in range(ROUNDS):
        text = "".join(span(tag, "".join(random_type(chance) for _ in range(chance.randrange(4))))
                       for tag in "IR")
        if chance.random() < 0.4:
            text = damage(text, chance)
        try:
            want = read(text)
        except (Refused, ValueError, IndexError):
            want = None
        got = ask("f2", text)
        kinds[want is not None] += 1
        if (got if got[0] is not None else None) != want:
            raise Failure(f"{text}: got {got}, expected {want}")
        if want and ask("f2", want[0])[0] != want[0]:
            raise Failure(f"{want[0]} is not canonical")
        has_order = "c" in text or "C" in text
        if want and has_order and ask("f", text)[0] is not None:
            raise Failure(f"{text}: version 1 takes an order")
    expect("many of both", min(kinds.values()) > ROUNDS // 8, True)


def version_2_refusals():
    for buffer, at, why in (
            ("d2d3c2", 4, "expected the order c0 or c1, got 'c2'"),
            ("d2d3c00", 4, "expected the order c0 or c1, got 'c00'"),
            ("d2d3c1", 4, "channels last, but 2 dims"),
            ("d2c0", 2, "an order of memory of 1 dims"),
            ("d2d3c0d4", 6, "expected a dim 'd', got 'd'"),
            ("d2d3c0c0", 6, "expected a dim 'd', got 'c'"),
            ("d2d3C5!a0a1", 4, "expected the short form c0 of this order"),
            ("d1d2d3C7!a0a2a1", 6, "expected the short form c1 of this order"),
            ("d2d3C5!a1a1", 9, "expected each axis a0 to a1 once, got 'a1'"),
            ("d2d3C5!a1a2", 9, "expected each axis a0 to a1 once, got 'a2'"),
            ("d2d3C6!a1a00", 9, "expected each axis a0 to a1 once, got 'a00'"),
            ("d2d3C3!a1", 4, "expected 2 axes, one for each dim, got 1")):
        text = span("I", span("B", buffer)) + "R1!"
        expect(text, ask("f2", text)[1], f"pte: byte {text.index(buffer) + at}: {why}\n")


# ---- what a method prefers ----

def get(client, path):
    client.send(build_request("GET", path))
    return client.answer(), json.loads(client.body)


def signature(client):
    status, first = get(client, "/v2/models/head/signature")
    expect("status", status, 200)
    expect("version 1 unless asked", (first["fv"], first["f"]),
           ("1", "I12!B9!d1d3d8d8R11!B5!d1d4B1!"))
    status, second = get(client, "/v2/models/head/signature?fv=2")
    expect("version 2", (second["fv"], second["f"]),
           ("2", "I15!B11!d1d3d8d8c1R13!B7!d1d4c0B1!"))
    expect("for people", second["readable"]["f"],
           "(float32[1,3,8,8] channels-last) -> (float32[1,4] row-major, float32[])")
    expect("fv=1", get(client, "/v2/models/head/signature?fv=1")[1], first)
    expect("in place", first["in_place"]["inputs"],
           [{"alignment": 4, "strides": [768, 4, 96, 12], "order": "channels_last"}])
    for value in ("0", "3", "x"):
        expect(f"fv={value}", get(client, f"/v2/models/head/signature?fv={value}")[0], 400)


# ---- tensors that come in it ----

SHAPE = [1, 3, 8, 8]
COUNT = 192


def turn(values):
    """The values of a row-major tensor of SHAPE in the order channels_last."""
    return [values[(c * 8 + y) * 8 + x] for y in range(8) for x in range(8) for c in range(3)]


def pack(values):
    return struct.pack(f"<{len(values)}f", *values)


def counts(client):
    return get(client, "/v2/models/head/stats")[1]["model_stats"][0]["inputs"]


def send(client, path, body, data):
    """A body that is large enough for its tensors to be used where they are."""
    body["parameters"] = {"binary_data_output": False}
    head = json.dumps(body).encode()
    head += b" " * (1 << 17)
    client.send(build_request("POST", path, head + data,
                              [f"Inference-Header-Content-Length: {len(head)}"]))
    status = client.answer()
    return status, json.loads(client.body)


def infer(client, data, **extra):
    status, answer = send(client, "/v2/models/head/infer", {"inputs": [
        {"name": "input_0", "shape": SHAPE, "datatype": "FP32",
         "parameters": {"binary_data_size": len(data), **extra}}]}, data)
    return status, answer.get("error") or [one["data"] for one in answer["outputs"]]


def call(client, data, is_base64, **extra):
    leaf = {"dtype": "float32", "shape": SHAPE, **extra}
    if is_base64:
        leaf["base64"] = base64.b64encode(data).decode()
        data = b""
    else:
        leaf["binary_data_size"] = len(data)
    status, answer = send(client, "/v2/models/head/call", {"args": [leaf]}, data)
    return status, answer.get("error") or answer["result"]


def inputs(client):
    """The same numbers come back, and nothing is converted."""
    chance = random.Random(7)
    values = [chance.randrange(-40, 40) / 16 for _ in range(COUNT)]
    plain, turned = pack(values), pack(turn(values))
    status, want = infer(client, plain)
    expect("row-major", status, 200)
    expect("named", infer(client, plain, order="row_major"), (200, want))
    before = counts(client)
    expect("channels last", infer(client, turned, order="channels_last"), (200, want))
    expect("by strides", infer(client, turned, strides=[768, 4, 96, 12]), (200, want))
    after = counts(client)
    expect("in place", (after["in_place"] - before["in_place"],
                        after["converted"] - before["converted"]), (2, 0))
    status, result = call(client, plain, False)
    expect("a call", status, 200)
    for is_base64 in (False, True):
        expect("channels last", call(client, turned, is_base64, order="channels_last"),
               (200, result))
    expect("from an offset", infer(client, b"1234" + turned, order="channels_last", offset=4),
           (200, want))


# ---- results that are wanted in it ----

IMAGE = [1, 3, 24, 20]


def row_major_beside(client):
    """A result that is also wanted row-major, by its other name or for classes, stays right."""
    path = "/v2/models/named/infer"
    values = [chance / 64 for chance in range(3 * 24 * 20)]
    body = {"inputs": [{"name": "input_0", "shape": IMAGE, "datatype": "FP32", "data": values}]}

    def ask(outputs, query=""):
        client.send(build_request("POST", path + query, json.dumps({**body, "outputs": outputs})
                                  .encode()))
        return client.answer(), json.loads(client.body)
    turned = {"name": "mask", "parameters": {"order": "channels_last"}}
    plain = ask([{"name": "mask"}])[1]["outputs"][0]["data"]
    for outputs in ([turned, {"name": "output_0"}], [{"name": "output_0"}, turned]):
        status, answer = ask(outputs)
        expect("status", status, 200)
        data = {one["name"]: one["data"] for one in answer["outputs"]}
        expect("row-major", data["output_0"], plain)
        expect("turned", data["mask"], [plain[c * 480 + place] for place in range(480)
                                        for c in range(2)])
    expect("top_k", ask([turned], "?top_k=1"),
           (400, {"error": "output 'mask' has \"order\" beside top_k, expected one"}))


def pipeline_beside(client):
    """A result of a step that is two results of the pipeline is row-major in both."""
    values = [chance / 64 for chance in range(3 * 24 * 20)]
    outputs = [{"name": "a", "parameters": {"order": "channels_last"}}, {"name": "b"}]
    body = {"inputs": [{"name": "image", "shape": IMAGE, "datatype": "FP32", "data": values}],
            "outputs": outputs}
    client.send(build_request("POST", "/v2/models/twice/infer", json.dumps(body).encode()))
    expect("status", client.answer(), 200)
    data = {one["name"]: one["data"] for one in json.loads(client.body)["outputs"]}
    expect("turned", data["a"], [data["b"][c * 480 + place] for place in range(480)
                                 for c in range(2)])
    body["outputs"] = [{"name": "a"}]
    client.send(build_request("POST", "/v2/models/twice/infer", json.dumps(body).encode()))
    expect("status", client.answer(), 200)
    expect("row-major", json.loads(client.body)["outputs"][0]["data"], data["b"])


def large_results(client):
    """Results that the daemon turns may be larger than the memory for a request's own data."""
    shape = [16, 3, 30, 40]
    one = json.dumps({"model_name": "sizes", "inputs": [
        {"name": "input_0", "shape": shape, "datatype": "FP32", "data": [1] * 57600}],
                      "outputs": [{"name": "output_0",
                                   "parameters": {"order": "channels_last"}}]})
    client.send(build_request("POST", "/v2/batch", f"[{','.join([one] * 20)}]".encode()))
    expect("status", client.answer(), 200)
    expect("each", [answer["status"] for answer in json.loads(client.body)], [200] * 20)


def unet(client, is_binary, **extra):
    values = pack([chance / 64 for chance in range(3 * 24 * 20)])
    head = json.dumps({"inputs": [
        {"name": "input_0", "shape": IMAGE, "datatype": "FP32",
         "parameters": {"binary_data_size": len(values)}}], "outputs": [
             {"name": "output_0", "parameters": {"binary_data": is_binary, **extra}}]}).encode()
    client.send(build_request("POST", "/v2/models/unet/infer", head + values,
                              [f"Inference-Header-Content-Length: {len(head)}"]))
    status = client.answer()
    size = int(client.field("Inference-Header-Content-Length") or len(client.body))
    answer = json.loads(client.body[:size])
    if status != 200:
        return status, answer["error"], None
    output = answer["outputs"][0]
    expect("shape", output["shape"], [1, 2, 24, 20])
    data = list(struct.unpack("<960f", client.body[size:])) if is_binary else output["data"]
    return status, data, output.get("parameters", {})


def results(client):
    """The same numbers, in the other order, in binary and in JSON."""
    for is_binary in (True, False):
        status, plain, said = unet(client, is_binary)
        expect("status", status, 200)
        expect("nothing said", said.get("order"), None)
        status, turned, said = unet(client, is_binary, order="channels_last")
        expect("status", status, 200)
        expect("said", said.get("order"), "channels_last")
        expect("turned", turned, [plain[c * 480 + place] for place in range(480)
                                  for c in range(2)])
        expect("row-major", unet(client, is_binary, order="row_major")[1], plain)
    only = "outputs[0]: has \"order\" beside \"classification\", expected one"
    expect("of classes", only in unet(client, True, order="channels_last", classification=2)[1],
           True)
    expect("another word", unet(client, True, order="nhwc")[0], 400)


def flat(nested):
    return [x for part in nested for x in flat(part)] if isinstance(nested, list) else [nested]


def sizes(nested):
    return [len(nested), *sizes(nested[0])] if isinstance(nested, list) else []


def call_unet(client, query="", **parameters):
    """Returns the status, the result, and the bytes behind the JSON."""
    values = pack([chance / 64 for chance in range(3 * 24 * 20)])
    head = json.dumps({"args": [{"dtype": "float32", "shape": IMAGE,
                                 "binary_data_size": len(values)}],
                       "parameters": parameters}).encode()
    client.send(build_request("POST", f"/v2/models/unet/call{query}", head + values,
                              [f"Inference-Header-Content-Length: {len(head)}"]))
    status = client.answer()
    size = int(client.field("Inference-Header-Content-Length") or len(client.body))
    answer = json.loads(client.body[:size])
    return status, answer.get("error") or answer["result"], client.body[size:]


def results_of_calls(client):
    """The same numbers, in binary and in JSON, where arrays are nested as the numbers lie."""
    status, plain, _ = call_unet(client)
    expect("status", (status, sizes(plain)), (200, [1, 2, 24, 20]))
    plain = flat(plain)
    turned = [plain[c * 480 + place] for place in range(480) for c in range(2)]
    for query, parameters in (("", {"order": "channels_last"}), ("?order=channels_last", {}),
                              ("?order=channels_last", {"order": "row_major"})):
        status, result, _ = call_unet(client, query, **parameters)
        expect("status", (status, sizes(result)), (200, [1, 24, 20, 2]))
        expect("turned", flat(result) == turned, True)
        status, result, data = call_unet(client, query, binary_data_output=True, **parameters)
        expect("binary", (status, result), (200, {
            "dtype": "float32", "shape": [1, 2, 24, 20], "order": "channels_last",
            "binary_data_size": 3840}))
        expect("turned", data == pack(turned), True)
    expect("named", flat(call_unet(client, order="row_major")[1]), plain)
    expect("the query counts",
           flat(call_unet(client, "?order=row_major", order="channels_last")[1]), plain)
    status, error, _ = call_unet(client, order="nhwc")
    expect("another word", (status, "expected 'row_major' or 'channels_last'" in error),
           (400, True))
    expect("another word", call_unet(client, "?order=nhwc")[:2],
           (400, "order: expected row_major or channels_last, got 'nhwc'"))


def no_result_has_it(client):
    data = pack(range(COUNT))
    for query, parameters in (("", {"order": "channels_last"}), ("?order=channels_last", {})):
        head = json.dumps({"args": [{"dtype": "float32", "shape": SHAPE,
                                     "binary_data_size": len(data)}],
                           "parameters": parameters}).encode()
        client.send(build_request("POST", f"/v2/models/head/call{query}", head + data,
                                  [f"Inference-Header-Content-Length: {len(head)}"]))
        expect("status", client.answer(), 400)
        expect("error", json.loads(client.body)["error"],
               "parameters.order: no result is given as a tensor of 3 to 5 dims")


def order_of_all_outputs(client):
    """The query's order is that of the outputs that do not say; other parameters of `infer` keep
    their names."""
    values = [chance / 64 for chance in range(3 * 24 * 20)]
    body = {"inputs": [{"name": "input_0", "shape": IMAGE, "datatype": "FP32", "data": values}],
            "parameters": {"order": 7}}

    def ask(query, **more):
        client.send(build_request("POST", f"/v2/models/named/infer{query}",
                                  json.dumps({**body, **more}).encode()))
        expect("status", client.answer(), 200)
        return {one["name"]: one["data"] for one in json.loads(client.body)["outputs"]}
    plain = ask("")["mask"]
    turned = [plain[c * 480 + place] for place in range(480) for c in range(2)]
    expect("all", ask("?order=channels_last"), {"mask": turned})
    expect("one says", ask("?order=channels_last", outputs=[
        {"name": "mask"}, {"name": "output_0", "parameters": {"order": "row_major"}}]),
           {"mask": turned, "output_0": plain})


def results_that_are_not_preferred(client):
    """The daemon turns what its method gives row-major."""
    values = {}
    for order in ("row_major", "channels_last"):
        head = json.dumps({"inputs": [{"name": "input_0", "shape": [1, 3, 16, 16],
                                       "datatype": "FP32",
                                       "data": [i % 32 / 32 for i in range(768)]}],
                           "outputs": [{"name": "output_1", "parameters": {"order": order}}]})
        client.send(build_request("POST", "/v2/models/queries/infer", head.encode()))
        expect("status", client.answer(), 200)
        values[order] = json.loads(client.body)["outputs"][0]
    shape = values["row_major"]["shape"]
    channels, places = shape[1], shape[2]
    plain = values["row_major"]["data"]
    expect("turned", values["channels_last"]["data"],
           [plain[(n * channels + c) * places + s] for n in range(shape[0])
            for s in range(places) for c in range(channels)])


def refusals(client):
    data = bytes(4 * COUNT)
    expect("another word", infer(client, data, order="nhwc"),
           (400, "inputs[0].parameters.order: expected 'row_major' or 'channels_last', got 'nhwc' "
                 "(byte 124)"))
    expect("both", infer(client, data, order="channels_last", strides=[768, 4, 96, 12]),
           (400, "inputs[0]: expected strides or an order, got both"))
    expect("short", infer(client, data[:-1], order="channels_last")[0], 400)
    status, answer = send(client, "/v2/models/add/infer", {"inputs": [
        {"name": name, "shape": [2, 3], "datatype": "FP32",
         "parameters": {"binary_data_size": 24, "order": "channels_last"}}
        for name in ("input_0", "input_1")]}, bytes(48))
    expect("two dims", (status, answer["error"]),
           (400, "inputs[0].order: expected 3 to 5 dims, got shape [2,3]"))


def add_others(folder):
    """Options for a model whose result has a name, and for a pipeline that shows it twice."""
    place = Path(folder)
    (place / "card.json").write_text('{"outputs": ["mask"]}')
    (place / "pipelines.json").write_text(json.dumps({"twice": {
        "inputs": ["image"], "steps": [{"model": "unet", "inputs": [{"input": 0}]}],
        "outputs": [{"name": "a", "from": 0, "output": 0},
                    {"name": "b", "from": 0, "output": 0}]}}))
    return ["--model", f"named={MODELS / 'unet.pte'}", f"--card=named={place / 'card.json'}",
            "--pipeline", str(place / "pipelines.json")]


def main():
    report = Report()
    report.run_all((version_2, version_2_refusals))
    names = ("layers/head", "add", "unet", "queries", "media/sizes")
    for options in ([], ["--inline-bytes-max=1"]):
        with tempfile.TemporaryDirectory() as folder, \
                Daemon(["--workers=2", *options, *add_others(folder),
                        *(str(MODELS / f"{name}.pte") for name in names)]) as daemon:
            for check in (signature, inputs, results, results_of_calls, no_result_has_it,
                          order_of_all_outputs, results_that_are_not_preferred,
                          row_major_beside, pipeline_beside, large_results, refusals):
                client = Client(daemon.port)
                report.run(" ".join([check.__name__, *options]), check, client)
                client.close()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
