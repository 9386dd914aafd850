#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors with strides and an offset. For each form of a request, with small and large bodies, the
results equal those of the same tensors packed. A layout that leaves the received bytes is refused.

usage: run_layouts.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import json
import random
import struct
import sys

from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

# OIP's name: name in calls, struct's letter
TYPES = {"BOOL": ("bool", "B"), "UINT8": ("uint8", "B"), "INT8": ("int8", "b"),
         "INT16": ("int16", "h"), "UINT16": ("uint16", "H"), "INT32": ("int32", "i"),
         "UINT32": ("uint32", "I"), "INT64": ("int64", "q"), "UINT64": ("uint64", "Q"),
         "FP16": ("float16", "e"), "BF16": ("bfloat16", "H"), "FP32": ("float32", "f"),
         "FP64": ("float64", "d")}
# name: what dims of any size are, rounds; a body of digits is too large for the loop
SERVED = {"add": ((), 12), "promotion": ((), 12), "view_types": ((), 6), "digits": ((300, 8, 8), 3)}


def count(shape):
    total = 1
    for dim in shape:
        total *= dim
    return total


def indices(shape):
    """All indices of |shape|, row-major."""
    if not shape:
        yield ()
        return
    for first in range(shape[0]):
        for rest in indices(shape[1:]):
            yield (first, *rest)


class Tensor:
    """A packed tensor of random elements, and other layouts of the same elements."""

    def __init__(self, entry, extents, chance):
        self.name, self.datatype = entry["name"], entry["datatype"]
        extents = iter(extents)
        self.shape = [next(extents) if dim < 0 else dim for dim in entry["shape"]]
        letter = TYPES[self.datatype][1]
        self.width = struct.calcsize("=" + letter)
        whole = 2 if self.datatype == "BOOL" else 16
        values = [chance.randrange(whole) for _ in range(count(self.shape))]
        if self.datatype == "BF16":    # the upper half of a float
            values = [struct.unpack("<I", struct.pack("<f", value))[0] >> 16 for value in values]
        self.packed = struct.pack(f"<{len(values)}{letter}", *values)

    def element(self, number):
        return self.packed[number * self.width:(number + 1) * self.width]

    def scatter(self, chance):
        """Returns (bytes, strides, offset): dims in random order, with gaps, some backwards."""
        order = list(range(len(self.shape)))
        chance.shuffle(order)
        strides, step = [0] * len(order), self.width
        for dim in order:
            strides[dim] = step * chance.choice((1, 1, -1))
            step = step * self.shape[dim] + self.width * chance.choice((0, 0, 1))
        low = sum((dim - 1) * stride for dim, stride in zip(self.shape, strides) if stride < 0)
        high = sum((dim - 1) * stride for dim, stride in zip(self.shape, strides) if stride > 0)
        offset = -low + chance.choice((0, 0, 1, 3, 64))
        data = bytearray(chance.randbytes(offset + high + self.width + chance.choice((0, 5))))
        for number, index in enumerate(indices(self.shape)):
            at = offset + sum(i * stride for i, stride in zip(index, strides))
            data[at:at + self.width] = self.element(number)
        return bytes(data), strides, offset

    def repeat(self, dim):
        """All elements along |dim| become the same one."""
        inner = count(self.shape[dim + 1:]) * self.width
        outer = inner * self.shape[dim]
        self.packed = b"".join(self.packed[at:at + inner] * self.shape[dim]
                               for at in range(0, len(self.packed), outer))


# ---- requests ----

def request(client, path, body, blobs):
    head = json.dumps(body).encode()
    fields = [f"Inference-Header-Content-Length: {len(head)}"]
    client.send(build_request("POST", path, head + b"".join(blobs), fields))
    status = client.answer()
    size = client.field("Inference-Header-Content-Length")
    return status, client.body if size is None else client.body[int(size):]


def infer(client, model, tensors, layouts):
    """|layouts| has layouts by name; a tensor without one is packed."""
    inputs, blobs = [], []
    for tensor in tensors:
        data, extra = tensor.packed, {}
        if tensor.name in layouts:
            data, strides, offset = layouts[tensor.name]
            extra = {"strides": strides, "offset": offset}
        blobs.append(data)
        inputs.append({"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype,
                       "parameters": {"binary_data_size": len(data), **extra}})
    return request(client, f"/v2/models/{model}/infer",
                   {"inputs": inputs, "parameters": {"binary_data_output": True}}, blobs)


def call(client, model, tensors, layouts, is_base64):
    args, blobs = [], []
    for tensor in tensors:
        leaf = {"dtype": TYPES[tensor.datatype][0], "shape": tensor.shape}
        data = tensor.packed
        if tensor.name in layouts:
            data, leaf["strides"], leaf["offset"] = layouts[tensor.name]
        if is_base64:
            leaf["base64"] = base64.b64encode(data).decode()
        else:
            leaf["binary_data_size"] = len(data)
            blobs.append(data)
        args.append(leaf)
    return request(client, f"/v2/models/{model}/call?binary=1", {"args": args}, blobs)


def read_inputs(client, model):
    client.send(build_request("GET", f"/v2/models/{model}"))
    expect("status", client.answer(), 200)
    return json.loads(client.body)["inputs"]


def input_counts(client, model):
    client.send(build_request("GET", f"/v2/models/{model}/stats"))
    expect("status", client.answer(), 200)
    return json.loads(client.body)["model_stats"][0]["inputs"]


def converted(client, model):
    return input_counts(client, model)["converted"]


# ---- checks ----

def same_results(client, model):
    """The results are the same bytes for every layout of the inputs."""
    chance = random.Random(model)
    extents, rounds = SERVED[model]
    tensors = [Tensor(entry, extents, chance) for entry in read_inputs(client, model)]
    status, want = infer(client, model, tensors, {})
    expect("status of the packed tensors", status, 200)
    before = converted(client, model)
    for _ in range(rounds):
        layouts = {tensor.name: tensor.scatter(chance) for tensor in tensors
                   if chance.random() < 0.8}
        for how, answer in (("infer", infer(client, model, tensors, layouts)),
                            ("call", call(client, model, tensors, layouts, False)),
                            ("base64", call(client, model, tensors, layouts, True))):
            if answer != (200, want):
                raise Failure(f"{how} of {layouts}: status {answer[0]}, {answer[1][:200]}")
    if converted(client, model) == before:
        raise Failure("the device has converted nothing")


def shared_elements(client, model):
    """A stride of 0 repeats an element, so one row is enough for all rows."""
    chance = random.Random(0)
    tensors = [Tensor(entry, (), chance) for entry in read_inputs(client, model)]
    tensors[0].repeat(0)
    _, want = infer(client, model, tensors, {})
    layouts = {tensors[0].name: (tensors[0].packed[:12], [0, 4], 0)}
    expect("one row for two", infer(client, model, tensors, layouts), (200, want))
    expect("in a call", call(client, model, tensors, layouts, False), (200, want))


def refused(client, model):
    """A layout is refused if it does not fit the shape or leaves the received bytes."""
    chance = random.Random(0)
    tensors = [Tensor(entry, (), chance) for entry in read_inputs(client, model)]
    tensors[0].name = "input_0"
    reaches = "shape [2,3] with strides {} from byte {} on reaches beyond the {} bytes that came"
    for size, strides, offset, text in (
            (24, [12], 0, ".strides: expected 2 (shape [2,3]), got 1"),
            (24, [12, 4, 4], 0, ".strides: expected 2 (shape [2,3]), got 3"),
            (24, [12, 6], 0, ".strides[1]: expected a multiple of 4, the bytes of an element, "
                             "got 6"),
            (24, [12, 4], 1, ": " + reaches.format("[12,4]", 1, 24)),
            (23, [12, 4], 0, ": " + reaches.format("[12,4]", 0, 23)),
            (24, [16, 4], 0, ": " + reaches.format("[16,4]", 0, 24)),
            (24, [12, -4], 4, ": " + reaches.format("[12,-4]", 4, 24)),
            (24, [-12, 4], 11, ": " + reaches.format("[-12,4]", 11, 24)),
            (24, [12, 4], 2 ** 64 - 1, ": " + reaches.format("[12,4]", 2 ** 64 - 1, 24)),
            (24, [2 ** 62, 2 ** 62], 0, ": " + reaches.format(f"[{2 ** 62},{2 ** 62}]", 0, 24)),
            (24, [-2 ** 63, 4], 24, ": " + reaches.format(f"[{-2 ** 63},4]", 24, 24)),
            (0, [0, 0], 0, ": " + reaches.format("[0,0]", 0, 0))):
        layouts = {"input_0": (bytes(size), strides, offset)}
        for place, (status, body) in (("inputs[0]", infer(client, model, tensors, layouts)),
                                      ("args[0]", call(client, model, tensors, layouts, False)),
                                      ("args[0]", call(client, model, tensors, layouts, True))):
            expect(f"{strides} from {offset}", (status, json.loads(body)["error"]),
                   (400, place + text))


def misplaced(client, model):
    """A layout is refused for a tensor that is not in binary."""
    shape = {"name": "input_0", "shape": [2, 3], "datatype": "FP32"}
    only = "inputs[0]: strides, order and offset are for tensors with binary_data_size"
    for entry, text in (
            ({**shape, "data": [1] * 6, "parameters": {"offset": 0}}, only),
            ({**shape, "parameters": {"strides": [12, 4]}}, only),
            ({**shape, "datatype": "BYTES", "parameters": {"binary_data_size": 24, "offset": 4}},
             only + ", not for BYTES"),
            ({**shape, "parameters": {"binary_data_size": 24, "strides": 4}},
             "inputs[0].parameters.strides: expected an array, got a number"),
            ({**shape, "parameters": {"binary_data_size": 24, "strides": [4.5]}},
             "inputs[0].parameters.strides[0]: expected an integer, got 4.5"),
            ({**shape, "parameters": {"binary_data_size": 24, "offset": -4}},
             "inputs[0].parameters.offset: expected a whole number, got -4"),
            ({**shape, "parameters": {"binary_data_size": 24, "strides": [4] * 17}},
             "inputs[0].parameters.strides[16]: more than 16 strides")):
        status, body = request(client, f"/v2/models/{model}/infer", {"inputs": [entry]},
                               [bytes(24)])
        error = json.loads(body)["error"]
        if status not in (400, 413) or not error.startswith(text):
            raise Failure(f"{entry}: {status} {error}, expected {text}")
    leaf = {"dtype": "float32", "shape": [2, 3], "fill": 1, "strides": [12, 4]}
    status, body = request(client, f"/v2/models/{model}/call", {"args": [leaf]}, [])
    expect("fill", (status, json.loads(body)["error"]),
           (400, "args[0]: strides, order and offset are for tensors with base64 or "
                 "binary_data_size"))


def packed_strides(tensor):
    return [count(tensor.shape[d + 1:]) * tensor.width for d in range(len(tensor.shape))]


def send_placed(client, model, tensors, size, **moved):
    """A body of |size| bytes. Returns by how much the counts of inputs went up."""
    inputs, blobs = [], []
    for tensor in tensors:
        data, extra = tensor.packed, {}
        if moved.get("name") == tensor.name:
            data, extra = bytes(moved["offset"]) + data, {"offset": moved["offset"]}
        blobs.append(data)
        inputs.append({"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype,
                       "parameters": {"binary_data_size": len(data), **extra}})
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    head += b" " * (size - len(head) - sum(map(len, blobs)))
    before = input_counts(client, model)
    client.send(build_request("POST", f"/v2/models/{model}/infer", head + b"".join(blobs),
                              [f"Inference-Header-Content-Length: {len(head)}"]))
    expect("status", client.answer(), 200)
    after = input_counts(client, model)
    return {how: after[how] - before[how] for how in after}


def in_place(client, model):
    """What follows "in_place" of the signature is used where it lies, and nothing else is."""
    client.send(build_request("GET", f"/v2/models/{model}/signature"))
    expect("status", client.answer(), 200)
    signature = json.loads(client.body)
    said = signature["in_place"]
    forms = dict(zip(signature["input_names"], said["inputs"]))
    tensors = [Tensor(entry, SERVED[model][0], random.Random(1))
               for entry in read_inputs(client, model)]
    expect("little-endian", said["byte_order"], "little")
    for tensor in tensors:
        expect(f"is {tensor.datatype} used", forms[tensor.name] is not None,
               tensor.datatype != "BOOL")
    used = [tensor for tensor in tensors if forms[tensor.name]]
    for tensor in used:
        strides = packed_strides(tensor)
        expect("strides", [stride for stride in forms[tensor.name]["strides"]],
               [stride if said >= 0 else -1
                for stride, said in zip(strides, forms[tensor.name]["strides"])])
    tensors.sort(key=lambda tensor: -(forms[tensor.name] or {"alignment": 0})["alignment"])
    least = said["body_bytes_min"]
    large = sum(len(tensor.packed) for tensor in tensors) + 4096 >= least
    size = 0 if large else least
    expect("used", send_placed(client, model, tensors, size),
           {"in_place": len(used), "converted": 0})
    if not large:
        expect("a smaller body", send_placed(client, model, tensors, least - 1),
               {"in_place": 0, "converted": 0})
    for tensor in used:
        rest = [tensor, *(other for other in tensors if other is not tensor)]
        alignment = forms[tensor.name]["alignment"]
        if alignment > 1:
            moved = send_placed(client, model, rest[:1] + rest[1:], size, name=tensor.name,
                                offset=alignment // 2)
            expect(f"{tensor.datatype} at half of its alignment", moved["converted"] > 0, True)


def run_checks(report, *options):
    arguments = ["--workers=2", *options, *(str(MODELS / f"{name}.pte") for name in SERVED)]
    with Daemon(arguments) as daemon:
        for check, model in (*((same_results, model) for model in SERVED),
                             *((in_place, model) for model in SERVED),
                             *((check, "add") for check in (shared_elements, refused, misplaced))):
            client = Client(daemon.port)
            words = (check.__name__.replace("_", " "), model, *options)
            report.run(", ".join(words), check, client, model)
            client.close()


def main():
    report = Report()
    run_checks(report)
    run_checks(report, "--inline-bytes-max=1")  # the loop leaves what has to be copied to a thread
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
