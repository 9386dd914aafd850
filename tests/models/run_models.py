#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every stored case of the test models through `pte run` and through a real pted.

A description NAME.json (contrib/export/README.md) names the inputs and the outputs that PyTorch
gave. Each case runs five ways: pte with files, HTTP with JSON tensors, HTTP with binary tensors,
and both again as calls by structure, whose answers must have the shapes that /shape says;
every output must have its type and shape and be within the model's tolerance. Its name must be the
one that the structure of the case gives; inputs are given by name in one way and by alias in
another. Cases that go on
where the one before them ended run as sequences, two at a time and in turns. Models with labels
must also classify as many images rightly as PyTorch did.

With PTED_DEVICE in the environment the daemon computes on that device, and each case runs once,
over HTTP with binary tensors, and the sequences; see vulkan.sh. With PTED_PRECISION=bf16 likewise
in that precision; floats may then differ by BF16_PART of the largest number of their output.

With PTED_TEST_COLLECTION=DIR the models of that folder run in place of all others.

usage: run_models.py [NAME...], with top_srcdir and top_builddir in the environment.
"""
import ast
import http.client
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
from child_log import ChildLog  # noqa: E402

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", SOURCE))
PTED = os.environ.get("PTED", str(BUILD / "pted"))
PTE = os.environ.get("PTE", str(BUILD / "pte"))
DEVICE = os.environ.get("PTED_DEVICE")
PRECISION = os.environ.get("PTED_PRECISION")
BF16_PART = 1 / 32
BUNDLED = SOURCE / "tests" / "models"
# A larger collection that may lie in or beside the source tree. All of it runs, but what is in
# CORPUS_EXCLUDED.
CORPUS = next((folder / "shared/models/public" for folder in (SOURCE, SOURCE.parent)
               if (folder / "shared/models/public").is_dir()), None)
CORPUS_EXCLUDED = {}  # name: reason
COLLECTION = os.environ.get("PTED_TEST_COLLECTION")
ACCURACY_MAY_DIFFER = 0.005
TIMEOUT_S = 120

# dtype of a description: name in the protocol, type in an .npy file, format of struct.
TYPES = {
    "float32": ("FP32", "<f4", "f"), "float64": ("FP64", "<f8", "d"),
    "float16": ("FP16", "<f2", "e"), "bfloat16": ("BF16", "<V2", "H"),
    "int8": ("INT8", "|i1", "b"), "uint8": ("UINT8", "|u1", "B"), "int16": ("INT16", "<i2", "h"),
    "int32": ("INT32", "<i4", "i"), "int64": ("INT64", "<i8", "q"), "bool": ("BOOL", "|b1", "?"),
}
SCALARS = {"int": "int64", "float": "float64", "bool": "bool"}


class Failure(Exception):
    """A case that went wrong, and how."""


class Tensor:
    """A dtype, a shape and the bytes; a scalar argument is a tensor of rank 0."""

    def __init__(self, dtype, shape, raw):
        self.dtype, self.shape, self.raw = dtype, list(shape), raw

    @property
    def values(self):
        form = TYPES[self.dtype][2]
        found = [item for item, in struct.iter_unpack("<" + form, self.raw)]
        return found if self.dtype != "bfloat16" else [widen(bits) for bits in found]


def widen(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def read_leaf(folder, leaf):
    """A leaf of a case as a Tensor, a str, or None for a None."""
    if leaf["kind"] == "none":
        return None
    if leaf["kind"] == "string":
        return leaf["value"]
    if leaf["kind"] == "tensor":
        return Tensor(leaf["dtype"], leaf["shape"], (folder / leaf["file"]).read_bytes())
    dtype = SCALARS[leaf["kind"]]
    return Tensor(dtype, [], struct.pack("<" + TYPES[dtype][2], leaf["value"]))


# ---- names --------------------------------------------------------------------------------------

NAME = re.compile(r"(?!-)[A-Za-z0-9_:-]+(\.[A-Za-z0-9_:-]+)*", re.ASCII)
NAME_BYTES_MAX = 128


def find_paths(tree, path=()):
    """(raw index, keys and positions) of each leaf of a case's tree."""
    if tree["type"] == "leaf":
        yield tree["index"], path
    elif isinstance(tree["items"], dict):
        for key, part in tree["items"].items():
            yield from find_paths(part, (*path, key))
    else:
        for position, part in enumerate(tree["items"]):
            yield from find_paths(part, (*path, position))


def join_path(path, prefix):
    """The path as a name; None where it is none."""
    name = ".".join(map(str, path))
    is_alias = name.startswith(prefix) and name[len(prefix):].isdigit()
    return name if NAME.fullmatch(name) and len(name) <= NAME_BYTES_MAX and not is_alias else None


def name_leaves(paths, prefix):
    """Raw index: name. The rule of runtime/program/names.h, once more."""
    first_keys = {i: next((n for n, key in enumerate(path) if isinstance(key, str)), len(path))
                  for i, path in paths.items()}
    names = {i: join_path(path[first_keys[i]:], prefix) for i, path in paths.items()}
    taken = list(names.values())
    names = {i: name and (name if taken.count(name) == 1 else join_path(paths[i], prefix))
             for i, name in names.items()}
    taken = list(names.values())
    return {i: name if name and taken.count(name) == 1 else f"{prefix}{i}"
            for i, name in names.items()}


def input_names(case):
    """By raw index; a constant method has no tree. Cases of pipelines say their names."""
    if "input_names" in case:
        return case["input_names"]
    tree = case.get("inputs_tree")
    if not tree:
        return [f"input_{i}" for i in range(len(case["inputs"]))]
    paths = {**dict(find_paths(tree["args"])), **dict(find_paths(tree["kwargs"]))}
    names = name_leaves(paths, "input_")
    return [names[i] for i in range(len(case["inputs"]))]


def output_names(case):
    """Likewise."""
    if "output_names" in case:
        return case["output_names"]
    names = name_leaves(dict(find_paths(case["outputs_tree"])), "output_") \
        if "outputs_tree" in case else {}
    return [names.get(i, f"output_{i}") for i in range(len(case["outputs"]))]


# ---- comparing ----------------------------------------------------------------------------------

def close(got, want, rtol, atol):
    if got == want or (got != got and want != want):
        return True
    return math.isfinite(got) and math.isfinite(want) and abs(got - want) <= atol + rtol * abs(want)


def compare(name, got, want, tolerance):
    """Raises Failure unless got, as (type name, shape, values), is what PyTorch gave."""
    if isinstance(want, str):
        expected = ("BYTES", [1], [want])
        if got != expected:
            raise Failure(f"{name}: {got}, expected {expected}")
        return
    datatype, shape, values = got
    if (datatype, shape) != (TYPES[want.dtype][0], want.shape):
        raise Failure(f"{name}: {datatype} {shape}, expected {want.dtype} {want.shape}")
    wanted = want.values
    if len(values) != len(wanted):
        raise Failure(f"{name}: {len(values)} elements, expected {len(wanted)}")
    if "float" in want.dtype:    # in JSON, what is no number is a string
        values = [float(v) if v in ("NaN", "Infinity", "-Infinity") else v for v in values]
    inexact = "float" in want.dtype or tolerance["atol"] >= 0.5
    rtol, atol = (tolerance["rtol"], tolerance["atol"]) if inexact else (0, 0)
    if PRECISION == "bf16" and "float" in want.dtype:
        atol += BF16_PART * max((abs(x) for x in wanted if math.isfinite(x)), default=0)
    wrong = [i for i, (a, b) in enumerate(zip(values, wanted)) if not close(a, b, rtol, atol)]
    if wrong:
        i = wrong[0]
        raise Failure(f"{name}: element {i} of {want.shape} is {values[i]}, expected {wanted[i]}; "
                      f"{len(wrong)} of {len(wanted)} differ")


def compare_all(got, case, folder, tolerance):
    """got: name of an output to (type name, shape, values)."""
    expected = dict(zip(output_names(case), (read_leaf(folder, leaf) for leaf in case["outputs"]),
                        strict=True))
    expected = {name: leaf for name, leaf in expected.items() if leaf is not None}
    if list(got) != list(expected):
        raise Failure(f"outputs {list(got)}, expected {list(expected)}")
    for name, want in expected.items():
        compare(name, got[name], want, tolerance)


def count_right(logits, labels):
    """How many rows have their largest value where the label says."""
    classes = len(logits) // len(labels)
    rows = (logits[i * classes:(i + 1) * classes] for i in range(len(labels)))
    return sum(row.index(max(row)) == label for row, label in zip(rows, labels))


def check_accuracy(got, labels, facts):
    """Only a case over the whole test set has an accuracy to compare. It is that of the network in
    floats: one of bytes may take some pictures for others."""
    if len(labels) != facts.get("test_images"):
        return
    accuracy = round(count_right(got["output_0"][2], labels) / len(labels), 4)
    if abs(accuracy - facts["float_test_accuracy"]) > ACCURACY_MAY_DIFFER:
        raise Failure(f"accuracy {accuracy}, PyTorch's is {facts['float_test_accuracy']}")


# ---- pte run ------------------------------------------------------------------------------------

def read_npy(path):
    """(type name, shape, values) of an .npy file of version 1.0."""
    data = path.read_bytes()
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise Failure(f"{path.name}: not an .npy file of version 1.0")
    size, = struct.unpack_from("<H", data, 8)
    header = ast.literal_eval(data[10:10 + size].decode("latin-1"))
    if (10 + size) % 64 or header["fortran_order"]:
        raise Failure(f"{path.name}: header of {size} bytes, {header}")
    raw = data[10 + size:]
    if header["descr"].startswith("|S"):
        return "BYTES", list(header["shape"]), [raw.decode()]
    dtype = next((d for d, names in TYPES.items() if names[1] == header["descr"]), None)
    if dtype is None:
        raise Failure(f"{path.name}: type {header['descr']}")
    return TYPES[dtype][0], list(header["shape"]), Tensor(dtype, header["shape"], raw).values


def pte_input(folder, name, leaf):
    """The argument of --input: a raw file with its dims, or JSON text where there are none."""
    tensor = read_leaf(folder, leaf)
    if not tensor.shape:
        return f"{name}={json.dumps(tensor.values[0])}"
    return f"{name}={folder / leaf['file']}:{'x'.join(map(str, tensor.shape))}"


def run_pte(program, case, folder):
    command = [PTE, "run", str(program), "--method", case["method"]]
    for name, leaf in zip(input_names(case), case["inputs"], strict=True):
        if leaf["kind"] != "none":
            command += ["--input", pte_input(folder, name, leaf)]
    with tempfile.TemporaryDirectory() as output:
        done = subprocess.run(command + ["--output", output], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise Failure(f"exit status {done.returncode}: {done.stderr.strip()}")
        names = output_names(case)
        files = sorted(Path(output).iterdir(), key=lambda path: names.index(path.name[:-4]))
        return {path.name[:-4]: read_npy(path) for path in files}


# ---- the daemon ---------------------------------------------------------------------------------

class Daemon:
    """pted on a port that the system chose, serving the program or what the arguments say."""

    def __init__(self, *arguments):
        self.log = ChildLog()
        device = ["--device", DEVICE] if DEVICE else []
        device += ["--precision", PRECISION] if PRECISION else []
        self.process = subprocess.Popen([PTED, "--listen", "127.0.0.1:0", *device,
                                         *map(str, arguments)],
                                        stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        self.connection = None

    def read_log(self):
        return self.log.read()

    def __enter__(self):
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline and self.process.poll() is None:
            address = re.search(r"listening on http://127\.0\.0\.1:(\d+)\n", self.read_log())
            if address:
                self.connection = http.client.HTTPConnection("127.0.0.1", int(address[1]),
                                                             timeout=TIMEOUT_S)
                return self
            time.sleep(0.01)
        self.process.kill()
        raise Failure(f"pted did not start: {self.read_log().strip()}")

    def __exit__(self, *_):
        """SIGTERM must drain and exit with 0; a sanitizer's complaint makes it another number."""
        self.connection.close()
        self.process.terminate()
        if self.process.wait(TIMEOUT_S) != 0:
            raise Failure(f"pted ended with {self.process.returncode}: {self.read_log().strip()}")
        if "Validation Error" in self.read_log():    # of a Vulkan layer
            raise Failure(self.read_log().strip())

    def request(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise Failure(f"{path}: status {answer.status}: {content.decode(errors='replace')}")
        return answer, content


def describe_inputs(case, folder, by_alias=False):
    """(entry without data, tensor, leaf) of each argument that a request can carry."""
    names = input_names(case)
    for index, leaf in enumerate(case["inputs"]):
        tensor = read_leaf(folder, leaf)
        if tensor is not None:
            yield {"name": f"input_{index}" if by_alias else names[index], "shape": tensor.shape,
                   "datatype": TYPES[tensor.dtype][0]}, tensor, leaf


def infer_json(daemon, model, case, folder, parameters=None):
    inputs = [{**entry, "data": tensor.values}
              for entry, tensor, _ in describe_inputs(case, folder)]
    body = {"id": "json", "inputs": inputs, "parameters": parameters or {}}
    _, content = daemon.request("POST", f"/v2/models/{model}/infer", json.dumps(body),
                                {"Content-Type": "application/json"})
    answer = json.loads(content)
    if (answer.get("id"), answer.get("model_name")) != ("json", model):
        raise Failure(f"answer to {answer.get('id')} of {answer.get('model_name')}")
    return {entry["name"]: (entry["datatype"], entry["shape"], entry["data"])
            for entry in answer["outputs"]}


def infer_binary(daemon, model, case, folder, parameters=None):
    """Scalars are left out: the program's own value is meant then."""
    given = [(entry, tensor.raw) for entry, tensor, leaf in describe_inputs(case, folder, True)
             if leaf["kind"] == "tensor"]
    head = json.dumps({
        "inputs": [{**entry, "parameters": {"binary_data_size": len(raw)}} for entry, raw in given],
        "parameters": {"binary_data_output": True, **(parameters or {})}}).encode()
    answer, content = daemon.request(
        "POST", f"/v2/models/{model}/infer", head + b"".join(raw for _, raw in given),
        {"Content-Type": "application/octet-stream",
         "Inference-Header-Content-Length": str(len(head))})
    size = int(answer.getheader("Inference-Header-Content-Length", len(content)))
    found, offset = {}, size
    for entry in json.loads(content[:size])["outputs"]:
        end = offset + entry["parameters"]["binary_data_size"]
        found[entry["name"]] = (entry["datatype"], entry["shape"],
                                decode(entry["datatype"], entry["shape"], content[offset:end]))
        offset = end
    if offset != len(content):
        raise Failure(f"{len(content) - offset} bytes after the last output")
    return found


def infer_shapes(daemon, model, case, folder):
    """name: (datatype, shape) of each output, from the shapes of the inputs alone."""
    inputs = [entry for entry, _, _ in describe_inputs(case, folder)]
    _, content = daemon.request("POST", f"/v2/models/{model}/shape", json.dumps({"inputs": inputs}))
    return {entry["name"]: (entry["datatype"], entry["shape"])
            for entry in json.loads(content)["outputs"]}


# ---- calls by structure -------------------------------------------------------------------------

def fill(structure, leaf):
    """The same lists and dicts with leaf(raw index) where the index was."""
    if isinstance(structure, dict):
        return {key: fill(value, leaf) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [fill(value, leaf) for value in structure]
    return None if structure is None else leaf(structure)


def pair_leaves(structure, answer):
    """(raw index, value) of each leaf; the answer has exactly the structure's members."""
    if isinstance(structure, dict):
        if set(structure) != set(answer):
            raise Failure(f"members {sorted(answer)}, expected {sorted(structure)}")
        for key, value in structure.items():
            yield from pair_leaves(value, answer[key])
    elif isinstance(structure, (list, tuple)):
        if len(structure) != len(answer):
            raise Failure(f"{len(answer)} elements, expected {len(structure)}")
        for value, part in zip(structure, answer):
            yield from pair_leaves(value, part)
    elif structure is not None:
        yield structure, answer


def nest(values, shape):
    if not shape:
        return values[0]
    step = len(values) // shape[0] if shape[0] else 0
    return [nest(values[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


def fit_shape(pattern, value):
    """The dims of a leaf, whose known ones are those of the pattern."""
    shape = value["shape"] if isinstance(value, dict) else []
    while not isinstance(value, dict) and len(shape) < len(pattern):
        shape.append(len(value))
        value = value[0] if value else [[]] * max(pattern[len(shape):] + [0], default=0)
    if len(shape) != len(pattern) or any(a not in (-1, b) for a, b in zip(pattern, shape)):
        raise Failure(f"shape {shape}, announced as {pattern}")
    return shape


def flatten(value, shape):
    if not shape:
        return [value]
    if len(value) != shape[0]:
        raise Failure(f"{len(value)} elements, expected {shape}")
    return [item for part in value for item in flatten(part, shape[1:])]


def read_structure(daemon, model):
    """(structure of the inputs, of the results, does the former end in the keyword arguments)."""
    _, content = daemon.request("GET", f"/v2/models/{model}/signature")
    signature = json.loads(content)
    sides = [ast.literal_eval(re.sub(r"\br(\d+)\b", r"\1", side))
             for side in signature["readable"]["sip"].split(" -> ")]
    return *sides, set(signature["example"]) == {"args", "kwargs"}


def call(daemon, model, case, folder, is_binary):
    inputs, results, has_kwargs = read_structure(daemon, model)
    shapes = infer_shapes(daemon, model, case, folder)
    names = output_names(case)
    given = [read_leaf(folder, leaf) for leaf in case["inputs"]]
    blobs = []

    def leaf_of(index):
        tensor = given[index]
        if tensor is None or isinstance(tensor, str):
            return tensor
        if is_binary and case["inputs"][index]["kind"] == "tensor":
            blobs.append(tensor.raw)
            return {"dtype": tensor.dtype, "shape": tensor.shape,
                    "binary_data_size": len(tensor.raw)}
        return nest(tensor.values, tensor.shape)

    filled = fill(inputs, leaf_of)
    body = {"kwargs": filled} if isinstance(filled, dict) else {"args": filled}
    if has_kwargs:
        body = {"args": filled[:-1], "kwargs": filled[-1]}
    head = json.dumps(body).encode()
    answer, content = daemon.request(
        "POST", f"/v2/models/{model}/call" + ("?binary=1" if is_binary else ""),
        head + b"".join(blobs),
        {"Inference-Header-Content-Length": str(len(head))} if is_binary else {})
    end = int(answer.getheader("Inference-Header-Content-Length", len(content)))
    found, behind = {}, content[end:]
    for index, value in pair_leaves(results, json.loads(content[:end])["result"]):
        if names[index] not in shapes:
            if value is not None:
                raise Failure(f"result {index} is {value}, expected null")
            continue
        datatype, shape = shapes[names[index]]
        if -1 in shape:    # depends on data: the answer's own, which must fit
            shape = fit_shape(shape, value)
        if isinstance(value, dict):
            if value["shape"] != shape:
                raise Failure(f"result {index} has shape {value['shape']}, expected {shape}")
            raw, behind = behind[:value["binary_data_size"]], behind[value["binary_data_size"]:]
            found[index] = datatype, shape, Tensor(value["dtype"], shape, raw).values
        else:
            found[index] = datatype, shape, flatten(value, [] if datatype == "BYTES" else shape)
    if behind:
        raise Failure(f"{len(behind)} bytes after the last result")
    return {names[index]: found[index] for index in sorted(found)}


def call_json(daemon, model, case, folder):
    return call(daemon, model, case, folder, False)


def call_binary(daemon, model, case, folder):
    return call(daemon, model, case, folder, True)


def check_example(daemon, model):
    """The example that the signature gives works when it is sent back as it is."""
    _, content = daemon.request("GET", f"/v2/models/{model}/signature")
    example = content[content.index(b'"example":') + len(b'"example":'):-1]
    if json.loads(example) != json.loads(content)["example"]:
        raise Failure("the example is not the signature's last member")
    daemon.request("POST", f"/v2/models/{model}/call", example)


def decode(datatype, shape, raw):
    if datatype == "BYTES":
        size, = struct.unpack_from("<I", raw)
        return [raw[4:4 + size].decode()]
    dtype = next(d for d, names in TYPES.items() if names[0] == datatype)
    return Tensor(dtype, shape, raw).values


def check_bundled_images(daemon, model, facts):
    """The images as they are stored, one byte a pixel, against the accuracy PyTorch had."""
    pixels = (BUNDLED / "digits" / "images.u8").read_bytes()
    labels = list((BUNDLED / "digits" / "labels.u8").read_bytes())
    body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [len(labels), 1, 8, 8],
                        "data": [pixel / 16 for pixel in pixels]}]}
    _, content = daemon.request("POST", f"/v2/models/{model}/infer", json.dumps(body))
    got = {"output_0": (None, None, json.loads(content)["outputs"][0]["data"])}
    check_accuracy(got, labels, facts)


# ---- one model ----------------------------------------------------------------------------------

def served_name(description, method):
    """A program's only method, and `forward`, are served under the program's name."""
    plain = method == "forward" or len(description["methods"]) == 1
    return description["name"] if plain else f"{description['name']}.{method}"


def split_runs(cases):
    """The calls of each sequence, with their numbers: a fresh one and those that go on from it."""
    runs = []
    for number, case in enumerate(cases):
        if case["state"] == "fresh":
            runs.append([])
        runs[-1].append((number, case))
    return [run for run in runs if len(run) > 1]


def check_sequences(daemon, description, folder, runs):
    """Each (id, way of a request, calls) is a sequence; they take turns."""
    for turn in range(max(len(calls) for _, _, calls in runs)):
        for sequence, infer, calls in runs:
            if turn >= len(calls):
                continue
            number, case = calls[turn]
            parameters = {"sequence_id": sequence, "sequence_start": turn == 0,
                          "sequence_end": turn == len(calls) - 1}
            model = served_name(description, case["method"])
            try:
                got = infer(daemon, model, case, folder, parameters)
                compare_all(got, case, folder, description["tolerance"])
            except Failure as error:
                raise Failure(f"sequence {sequence}, case {number}: {error}") from error


def check_all_sequences(report, daemon, description, folder):
    """Each run beside the next one; the last, which may be the only one, beside the first."""
    runs = split_runs(description["cases"])
    for i, calls in enumerate(runs):
        pair = [(7, infer_json, calls), ("seven", infer_binary, runs[(i + 1) % len(runs)])]
        report.run(f"{description['name']} sequence of cases {calls[0][0]} to {calls[-1][0]}",
                   check_sequences, daemon, description, folder, pair)


class Report:
    def __init__(self):
        self.count = self.failed = 0

    def run(self, what, check, *args):
        try:
            check(*args)
            self.count += 1
            print(f"ok {self.count} - {what}", flush=True)
        except (Failure, OSError, ValueError, KeyError, http.client.HTTPException,
                subprocess.TimeoutExpired) as error:
            self.count += 1
            self.failed += 1
            kind = "" if isinstance(error, Failure) else f"{type(error).__name__}: "
            print(f"not ok {self.count} - {what}: {kind}{error}", flush=True)


def check_case(run, description, case, folder):
    got = run(case)
    compare_all(got, case, folder, description["tolerance"])
    if "labels" in case:
        check_accuracy(got, case["labels"], description["facts"])


def check_model(report, path):
    description, folder = json.loads(path.read_text()), path.parent
    name, program = description["name"], folder / description["file"]

    def run_all(way, run):
        for number, case in enumerate(description["cases"]):
            if case["state"] != "fresh":
                continue    # see check_all_sequences()
            report.run(f"{name} case {number} {case['method']} {way}", check_case, run, description,
                       case, folder)
    if DEVICE or PRECISION:
        with Daemon(program) as daemon:
            run_all(DEVICE or PRECISION, lambda case: infer_binary(
                daemon, served_name(description, case["method"]), case, folder))
            check_all_sequences(report, daemon, description, folder)
        return
    run_all("pte", lambda case: run_pte(program, case, folder))
    with Daemon(program) as daemon:
        for way, infer in (("json", infer_json), ("binary", infer_binary), ("call", call_json),
                           ("call binary", call_binary)):
            run_all(way, lambda case, infer=infer: infer(
                daemon, served_name(description, case["method"]), case, folder))
        check_all_sequences(report, daemon, description, folder)
        for method in description["methods"]:
            report.run(f"{name} example {method}", check_example, daemon,
                       served_name(description, method))
        if folder == BUNDLED and "float_test_accuracy" in description["facts"]:
            report.run(f"{name} bundled images", check_bundled_images, daemon, name,
                       description["facts"])


def is_model(path):
    """The collection has lists and pipelines beside the models."""
    return path.stem not in CORPUS_EXCLUDED and path.with_suffix(".pte").exists()


def main(names):
    paths = sorted((Path(COLLECTION) if COLLECTION else BUNDLED).glob("*.json"))
    if COLLECTION:
        paths = [path for path in paths if is_model(path)]
    elif CORPUS:
        paths += [path for path in sorted(CORPUS.glob("*.json")) if is_model(path)]
    else:
        print("# skipped: the collection shared/models/public is not here")
    paths = [path for path in paths if not names or path.stem in names]
    report = Report()
    for path in paths:
        report.run(f"{path.stem} in {path.parent.name}", check_model, report, path)
    print(f"1..{report.count}\n# {len(paths)} models, {report.failed} of {report.count} failed")
    return report.failed > 0 or not paths


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
