#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Inputs that come as pictures, sounds or texts, in every form of a request, against a real daemon.

The methods of tests/models/media give back what they are given (contrib/export/media.py), so the
results show the pixels and samples that were read. Texts are those of tests/models/encoder, whose
ids come from the library tokenizers.

usage: run_media.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import ctypes.util
import json
import math
import random
import shutil
import signal
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import tones
from load import in_threads, wait_until
from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

CARD = {"methods": {
    "pixels": {"inputs": [{"name": "picture", "image": {"resize": [4, 6], "layout": "nhwc"}}]},
    "picture": {"inputs": [{"name": "picture",
                            "image": {"crop": [4, 6], "mean": [0.5, 0, 0.25], "std": 0.5}}]},
    "second": {"inputs": [{"name": "sound", "sound": {"rate": 1600, "seconds": 1}}]},
    "sound": {"inputs": [{"name": "sound", "sound": {"rate": 8000}}]},
    "mel": {"inputs": [{"name": "sound", "sound": {"features": "log_mel"}}]},
    "sums": {"inputs": [{"name": "picture", "image": {"resize": [2, 2], "layout": "nhwc"}},
                        {"name": "sound", "sound": {"rate": 1000, "seconds": 0.16}}, "bias"]}}}
TEXT = {"tokenizer": "tokenizer.json", "mask": "attention_mask", "types": "token_type_ids"}
FORM = "multipart/form-data; boundary=xx"
HEIGHT, WIDTH = 4, 6
CLIENTS = 16
DAMAGED = 300


def png_file(height, width, rows, is_interlaced=False):
    """A file of RGB, whose rows have their filter in front."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, is_interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def png(pixels, width=WIDTH):
    """RGB triples, row by row."""
    rows = [b"\0" + bytes(c for pixel in pixels[i:i + width] for c in pixel)
            for i in range(0, len(pixels), width)]
    return png_file(len(rows), width, b"".join(rows))


def pixels_of(seed):
    rng = random.Random(seed)
    return [tuple(rng.randrange(256) for _ in range(3)) for _ in range(HEIGHT * WIDTH)]


def flat(value):
    return [x for item in value for x in flat(item)] if isinstance(value, list) else [value]


def numbers(*seeds):
    return [float(c) for seed in seeds for pixel in pixels_of(seed) for c in pixel]


def b64(data):
    return base64.b64encode(data).decode()


def post(client, path, body, *fields):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    client.send(build_request("POST", path, data, list(fields)))
    return client.answer()


def ask(client, path, body, *fields):
    status = post(client, path, body, *fields)
    if status != 200:
        raise Failure(f"{path}: {status} {client.body[:300]!r}")
    return json.loads(client.body)


def refuse(client, status, text, path, body, *fields):
    got = post(client, path, body, *fields)
    message = json.loads(client.body)["error"]
    if got != status or text not in message:
        raise Failure(f"expected {status} {text!r}, got {got} {message!r}")


def call(model, query=""):
    return f"/v2/models/media.{model}/call{query}"


def infer(model):
    return f"/v2/models/media.{model}/infer"


def form(*parts):
    out = b""
    for name, data, is_file in parts:
        more = '; filename="f"' if is_file else ""
        out += (f'--xx\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() +
                data + b"\r\n")
    return out + b"--xx--\r\n"


class Media:
    """A daemon with the models in a folder of their own."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(MODELS / "media" / "model.pte", self.folder / "media.pte")
        (self.folder / "media.card.json").write_text(json.dumps(CARD))
        self.daemon = Daemon([*self.options, "--model", f"media={self.folder / 'media.pte'}"])
        return self.daemon.__enter__()

    def __exit__(self, *why):
        try:
            return self.daemon.__exit__(*why)
        finally:
            shutil.rmtree(self.folder)


def bodies():
    """A file as it is, on both routes; its first bytes tell the format."""
    with Media() as daemon:
        client = Client(daemon.port)
        for kind in ("image/png", "image/jpeg", "application/octet-stream"):
            answer = ask(client, call("pixels"), png(pixels_of(1)), f"Content-Type: {kind}")
            expect(kind, flat(answer["result"]), numbers(1))
        answer = ask(client, infer("pixels"), png(pixels_of(2)), "Content-Type: image/png")
        expect("infer", answer["outputs"][0]["data"], numbers(2))
        answer = ask(client, call("picture"), png(pixels_of(3)), "Content-Type: image/png")
        wanted = [(p[c] / 255 - (0.5, 0, 0.25)[c]) / 0.5
                  for c in range(3) for p in pixels_of(3)]
        worst = max(abs(a - b) for a, b in zip(flat(answer["result"]), wanted))
        expect("normalised", worst < 1e-5, True)
        meta = json.loads((client.send(b"GET /v2/models/media.sums HTTP/1.1\r\nHost: a\r\n\r\n"),
                           client.answer(), client.body)[2])
        expect("metadata", [row.get("media") for row in meta["inputs"]], ["image", "sound", None])
        expect("forms", [meta["inputs"][0]["image"], meta["inputs"][1]["sound"]],
               [{"resize": [2, 2], "fit": "stretch"}, {"rate": 1000}])


def several_sizes():
    """A program whose height and width vary gets pictures as they are: in each form of a request.
    The pictures of one call have one size."""
    methods = {"map": {"inputs": [{"name": "picture", "image": {"scale": 1, "resize": 10}}],
                       "outputs": [{"name": "ground", "answer": {"map": {"picture": "sent"}}}]}}
    card = {"inputs": [{"name": "picture", "image": {"scale": 1}}], "methods": methods}

    def picture(height, width, seed=1):
        return png(random.Random(seed).choices([(i, 2 * i, 255 - i) for i in range(100)],
                                               k=height * width), width)

    def planes(height, width, seed=1):
        pixels = random.Random(seed).choices([(i, 2 * i, 255 - i) for i in range(100)],
                                             k=height * width)
        return [[[float(pixels[y * width + x][c]) for x in range(width)] for y in range(height)]
                for c in range(3)]

    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MODELS / "media" / "sizes.pte", folder)
        (Path(folder) / "sizes.card.json").write_text(json.dumps(card))
        with Daemon(["--models", folder]) as daemon:
            client = Client(daemon.port)
            path = "/v2/models/sizes/call"
            client.send(build_request("GET", "/v2/models/sizes", b""))
            client.answer()
            expect("metadata", json.loads(client.body)["inputs"][0]["shape"], [-1, -1, -1, 3])
            for size in ((7, 11), (1, 1), (30, 40), (1, 40), (30, 1)):
                answer = ask(client, path, picture(*size), "Content-Type: image/png")
                expect(f"{size}", answer["result"], [planes(*size)])
            two = [b64(picture(5, 9, seed)) for seed in (1, 2)]
            wanted = [planes(5, 9, 1), planes(5, 9, 2)]
            expect("rows", ask(client, path, {"args": [two]})["result"], wanted)
            expect("predict", ask(client, "/v1/models/sizes:predict", {
                "instances": [{"b64": file} for file in two]})["predictions"], wanted)
            body = form(("picture", picture(5, 9, 1), True), ("picture", picture(5, 9, 2), True))
            answer = ask(client, path, body, f"Content-Type: {FORM}")
            expect("form", answer["result"], wanted)
            answer = ask(client, "/v2/models/sizes/infer", {"inputs": [
                {"name": "picture", "datatype": "BYTES", "shape": [2], "data": two}]})
            expect("infer", answer["outputs"][0]["shape"], [2, 3, 5, 9])
            calls = [{"model_name": "sizes", "args": [b64(picture(*size))]}
                     for size in ((3, 4), (4, 3))]
            answer = ask(client, "/v2/batch", calls)
            expect("list", [one["result"] for one in answer],
                   [[planes(3, 4)], [planes(4, 3)]])
            tensor = {"dtype": "uint8", "shape": [1, 2, 3, 3], "fill": 7}
            expect("pixels", flat(ask(client, path, {"args": [tensor]})["result"]), [7.0] * 18)
            answer = ask(client, "/v2/models/sizes.map/call", picture(20, 26),
                         "Content-Type: image/png")
            ground = answer["result"][0]
            expect("map", (ground["width"], ground["height"]), (26, 20))
            expect("pixels of the map", sum(row["pixels"] for row in ground["classes"]), 520)
            refuse(client, 400, "args[0][1]: expected a picture that becomes 5 x 9 (height x "
                   "width), as the first one of the call, got one that becomes 9 x 5", path,
                   {"args": [[two[0], b64(picture(9, 5))]]})
            refuse(client, 400, "at most 30 x 40 (height x width), got one that becomes 31 x 40",
                   path, picture(31, 40), "Content-Type: image/png")
            refuse(client, 400, "PNG", path, picture(9, 9)[:20], "Content-Type: image/png")
            refuse(client, 400, "at most 30 x 40", "/v2/models/sizes.map/call", picture(1, 9),
                   "Content-Type: image/png")


def json_forms():
    files = [b64(png(pixels_of(seed))) for seed in range(3)]
    with Media() as daemon:
        client = Client(daemon.port)
        for value in ({"base64": files[0]}, {"b64": files[0]}, files[0], [files[0]],
                      "data:image/png;base64," + files[0]):
            answer = ask(client, call("pixels"), {"kwargs": {"picture": value}})
            expect("one", flat(answer["result"]), numbers(0))
        rows = [{"base64": files[0]}, files[1], {"b64": files[2]}]
        answer = ask(client, call("pixels"), {"args": [rows]})
        expect("rows", flat(answer["result"]), numbers(0, 1, 2))
        answer = ask(client, "/v1/models/media.pixels:predict",
                     {"instances": [{"b64": files[2]}, {"b64": files[1]}]})
        expect("predict", flat(answer["predictions"]), numbers(2, 1))
        tensor = {"dtype": "uint8", "shape": [1, HEIGHT, WIDTH, 3], "fill": 7}
        expect("pixels", flat(ask(client, call("pixels"), {"args": [tensor]})["result"]),
               [7.0] * (HEIGHT * WIDTH * 3))
        head = json.dumps({"args": [{"binary_data_size": len(png(pixels_of(4)))}]}).encode()
        answer = ask(client, call("pixels"), head + png(pixels_of(4)),
                     f"Inference-Header-Content-Length: {len(head)}")
        expect("behind", flat(answer["result"]), numbers(4))
        refuse(client, 400, "expected at most 16 files, got 17", call("pixels"),
               {"args": [[files[0]] * 17]})
        refuse(client, 400, "args[0][1]: malformed base64", call("pixels"),
               {"args": [[files[0], "!!!!"]]})
        refuse(client, 400, "or a file in base64", call("pixels"), {"args": [True]})
        for url in ("http://a.example/b.png", "https://a.example/b.png"):
            refuse(client, 400, "args[0]: expected a file in base64, got a URL", call("pixels"),
                   {"args": [url]})
        refuse(client, 400, "args[0][1]: expected a file", call("pixels"),
               {"args": [[files[0], 1]]})


def strings():
    """BYTES of the Open Inference Protocol, and lists of calls."""
    files = [png(pixels_of(seed)) for seed in range(3)]
    with Media() as daemon:
        client = Client(daemon.port)
        tensor = {"name": "picture", "datatype": "BYTES", "shape": [3]}
        text = {"inputs": [{**tensor, "data": [b64(file) for file in files]}]}
        answer = ask(client, infer("pixels"), text)
        expect("JSON", answer["outputs"][0]["data"], numbers(0, 1, 2))
        data = b"".join(struct.pack("<I", len(file)) + file for file in files)
        head = json.dumps({"inputs": [{**tensor, "shape": [3, 1], "parameters": {
            "binary_data_size": len(data)}}]}).encode()
        answer = ask(client, infer("pixels"), head + data,
                     f"Inference-Header-Content-Length: {len(head)}")
        expect("binary", answer["outputs"][0]["data"], numbers(0, 1, 2))
        answer = ask(client, "/v2/batch", [
            {"model_name": "media.pixels", **text},
            {"model_name": "media.pixels", "args": [[b64(files[2]), b64(files[1])]]},
            {"model_name": "media.pixels", "args": ["AAAA"]}])
        expect("statuses", [row["status"] for row in answer], [200, 200, 400])
        expect("list", flat(answer[0]["outputs"][0]["data"]), numbers(0, 1, 2))
        expect("list", flat(answer[1]["result"]), numbers(2, 1))


def forms():
    """A field for each input, files and JSON."""
    sound = tones.wav([0.5] * 160, 1000)
    with Media() as daemon:
        client = Client(daemon.port)
        kind = f"Content-Type: {FORM}"
        white = png([(255, 255, 255)] * (HEIGHT * WIDTH))
        parts = [("picture", white, True), ("sound", sound, True), ("bias", b"[2]", False)]
        answer = ask(client, call("sums"), form(*parts), kind)
        expect("sum", round(answer["result"][0]), 12 * 255 + 80 + 2)
        twice = form(*parts, ("picture", white, True), ("input_1", sound, True))
        answer = ask(client, infer("sums"), twice, kind)
        expect("rows", answer["outputs"][0]["shape"], [2])
        refuse(client, 400, "no input 'cat'", call("sums"), form(("cat", white, True)), kind)
        refuse(client, 400, "missing", call("sums"), form(parts[0]), kind)
        refuse(client, 400, "given twice", call("sums"), form(*parts, parts[2]), kind)
        refuse(client, 400, "field 'parameters': given twice", call("sums"),
               form(*parts, *[("parameters", b"{}", False)] * 2), kind)
        refuse(client, 400, "boundary", call("sums"), b"x", "Content-Type: multipart/form-data")


def sounds():
    with Media() as daemon:
        client = Client(daemon.port)
        kind = "Content-Type: audio/wav"
        result = flat(ask(client, call("second"), tones.wav([0.25] * 1000, 1600), kind)["result"])
        expect("padded", (len(result), round(result[999], 3), result[1000]), (1600, 0.25, 0.0))
        result = flat(ask(client, call("second"), tones.wav([0.25] * 2000, 1600), kind)["result"])
        expect("cut", (len(result), round(result[1599], 3)), (1600, 0.25))
        result = flat(ask(client, call("sound"), tones.wav([0.5] * 80, 8000), kind)["result"])
        expect("as long as it is", len(result), 80)
        for name, seconds in (("sound.mp3", 31104 / 22050), ("sound.opus", 0.94)):
            file = (MODELS / "whisper" / name).read_bytes()
            for kind_of_it in ("audio/mpeg", "audio/ogg"):  # the first bytes tell
                answer = ask(client, call("sound"), file, f"Content-Type: {kind_of_it}")
                expect(name, abs(len(flat(answer["result"])) - 8000 * seconds) <= 1, True)
        both = {"args": [[b64(tones.wav([0.5] * n, 8000)) for n in (80, 200)]]}
        result = ask(client, call("sound"), both)["result"]
        expect("the longest", [len(row) for row in result], [200, 200])
        expect("silence behind", (result[0][79] > 0.4, result[0][80]), (True, 0.0))
        mel = ask(client, call("mel"), tones.wav([0.1] * 1600), kind)["result"]
        expect("frames", (len(mel[0]), len(mel[0][0])), (8, 10))
        expect("finite", all(math.isfinite(x) for x in flat(mel)), True)


def texts():
    """The ids are those of the library tokenizers; mask and types need not be sent."""
    rows = json.loads((MODELS / "encoder" / "answers.json").read_text())["single"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("model.pte", "tokenizer.json"):
            shutil.copy(MODELS / "encoder" / file, folder / file)
        (folder / "model.card.json").write_text(json.dumps(
            {"inputs": {"input_ids": {"text": TEXT}}}))
        with Daemon(["--model", f"enc={folder / 'model.pte'}"]) as daemon:
            client = Client(daemon.port)
            for row in (row for row in rows if len(row["ids"]) <= 48):
                ids, ones = [row["ids"]], [[1] * len(row["ids"])]
                wanted = ask(client, "/v2/models/enc/call", {"kwargs": {
                    "input_ids": ids, "attention_mask": ones,
                    "token_type_ids": [[0] * len(row["ids"])]}})
                got = ask(client, "/v2/models/enc/call", {"kwargs": {"input_ids": row["text"]}})
                expect(row["text"], got, wanted)
                given = {"name": "input_ids", "datatype": "BYTES", "shape": [1],
                         "data": [row["text"]]}
                got = ask(client, "/v2/models/enc/infer", {"inputs": [given]})
                states = wanted["result"]
                states = list(states.values()) if isinstance(states, dict) else states
                expect("infer", got["outputs"][0]["data"], flat(states))
                if row["text"]:
                    expect("body", ask(client, "/v2/models/enc/call", row["text"].encode(),
                                       "Content-Type: text/plain; charset=utf-8"), wanted)
            refuse(client, 400, "UTF-8", "/v2/models/enc/call", b"\xff\xfe",
                   "Content-Type: text/plain")
            # Of a text that is much too long only what may become tokens is looked at.
            plain, short, long = "Content-Type: text/plain", b"a \xc3\xa9 cat " * 100, 3_000_000
            expect("cut", ask(client, "/v2/models/enc/call", short * (long // len(short)), plain),
                   ask(client, "/v2/models/enc/call", short, plain))
            expect("it is said", client.field("x-truncated-texts"), "1")
            ask(client, "/v2/models/enc/call", b"a cat", plain)
            expect("nothing is cut", client.field("x-truncated-texts"), None)


def step(model, **inputs):
    return {"model": model, "inputs": {name: {"input": given} for name, given in inputs.items()}}


PIPELINES = {
    "one": {"inputs": ["photo"], "steps": [step("media.pixels", picture="photo")]},
    "two": {"inputs": ["photo"], "steps": [step("media.pixels", picture="photo"),
                                           step("media.pixels", picture="photo")],
            "outputs": [{"from": 0, "output": 0}, {"from": 1, "output": 0}]},
    "outer": {"inputs": ["image"], "steps": [step("one", photo="image")]},
    "hear": {"inputs": ["noise"], "steps": [step("media.sound", sound="noise")]},
    "read": {"inputs": ["words", "valid", "kinds"], "steps": [
        step("enc", input_ids="words", attention_mask="valid", token_type_ids="kinds")]}}


class Pipelines(Media):
    """A daemon with two models of one file, with other cards, an encoder, and pipelines of them."""

    def __init__(self, pipelines, card=None, options=()):
        super().__init__()
        self.options = options
        self.pipelines, self.card = pipelines, card or CARD

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp())
        for name, source in (("media.pte", "media/model.pte"), ("other.pte", "media/model.pte"),
                             ("enc.pte", "encoder/model.pte"),
                             ("enc.tokenizer.json", "encoder/tokenizer.json"),
                             ("enc2.pte", "encoder/model.pte"),
                             ("enc2.tokenizer.json", "encoder/tokenizer.json")):
            shutil.copy(MODELS / source, self.folder / name)
        text = {"inputs": {"input_ids": {"text": {key: TEXT[key] for key in ("mask", "types")}}}}
        for name, card in (("media", CARD), ("other", self.card), ("enc", text), ("enc2", text)):
            (self.folder / f"{name}.card.json").write_text(json.dumps(card))
        (self.folder / "pipelines.json").write_text(json.dumps(self.pipelines))
        self.daemon = Daemon(["--models", str(self.folder), "--pipeline",
                              str(self.folder / "pipelines.json"), *self.options])
        try:
            return self.daemon.__enter__()
        except Failure:
            shutil.rmtree(self.folder)
            raise


def pipelines():
    """Inputs of pipelines come as those of their steps do."""
    with Pipelines(PIPELINES) as daemon:
        client = Client(daemon.port)
        files = [png(pixels_of(seed)) for seed in (1, 2, 3)]
        for model, name in (("one", "photo"), ("outer", "image")):
            path = f"/v2/models/{model}/call"
            got = ask(client, path, files[0], "Content-Type: image/png")
            expect(f"{model}: body", flat(got["result"]), numbers(1))
            got = ask(client, path, {"kwargs": {name: [b64(file) for file in files]}})
            expect(f"{model}: rows", flat(got["result"]), numbers(1, 2, 3))
            got = ask(client, path, form((name, files[1], True)), f"Content-Type: {FORM}")
            expect(f"{model}: form", flat(got["result"]), numbers(2))
            given = {"name": name, "datatype": "BYTES", "shape": [1], "data": [b64(files[2])]}
            got = ask(client, f"/v2/models/{model}/infer", {"inputs": [given]})
            expect(f"{model}: infer", got["outputs"][0]["data"], numbers(3))
            client.send(build_request("GET", f"/v2/models/{model}"))
            client.answer()
            expect(f"{model}: metadata", json.loads(client.body)["inputs"][0]["media"], "image")
            refuse(client, 400, "a damaged PNG file", path, files[0][:60],
                   "Content-Type: image/png")
        got = ask(client, "/v2/models/two/call", files[0], "Content-Type: image/png")
        expect("two steps", [flat(one) for one in got["result"]], [numbers(1), numbers(1)])
        sound = tones.wav([0.5] * 80, 8000)
        wanted = ask(client, call("sound"), sound, "Content-Type: audio/wav")
        expect("sound", ask(client, "/v2/models/hear/call", sound, "Content-Type: audio/wav"),
               wanted)
        wanted = ask(client, "/v2/models/enc/call", b"a cat", "Content-Type: text/plain")
        expect("text", ask(client, "/v2/models/read/call", b"a cat", "Content-Type: text/plain"),
               wanted)
        expect("text by name",
               ask(client, "/v2/models/read/call", {"kwargs": {"words": "a cat"}}), wanted)
        pixels = {"dtype": "uint8", "shape": [1, 4, 6, 3], "fill": 9}
        got = ask(client, "/v2/models/one/call", {"kwargs": {"photo": pixels}})
        expect("a tensor", flat(got["result"]), [9.0] * 72)


def pipelines_at_odds():
    """Steps that make different things of one file; copies of a tokenizer are one."""
    both = {"inputs": ["x"], "steps": [step("media.pixels", picture="x"),
                                       step("other.pixels", picture="x")]}
    texts_of = {"inputs": ["x", "y", "z"], "steps": [
        step(name, input_ids="x", attention_mask="y", token_type_ids="z")
        for name in ("enc", "enc2")]}
    with Pipelines({"both": both, "texts": texts_of}) as daemon:
        client = Client(daemon.port)
        ask(client, "/v2/models/both/call", png(pixels_of(1)), "Content-Type: image/png")
        ask(client, "/v2/models/texts/call", b"a cat", "Content-Type: text/plain")
    other = {"methods": {"pixels": {"inputs": [
        {"name": "picture", "image": {"crop": [4, 6], "layout": "nhwc"}}]}}}
    try:
        with Pipelines({"both": both}, other):
            raise Failure("it was served")
    except Failure as err:
        wanted = ("pipeline 'both': input 'x': step 0 (media.pixels) and step 1 (other.pixels) "
                  'make different things of it: expected the same "resize" in both cards, or two '
                  "inputs")
        expect("why", wanted in str(err), True)


def pipeline_with_a_new_tokenizer():
    """The steps of an input have one tokenizer, that which they were loaded with."""
    texts_of = {"inputs": ["x", "y", "z"], "steps": [
        step(name, input_ids="x", attention_mask="y", token_type_ids="z")
        for name in ("enc", "enc2")], "outputs": [{"from": 0, "output": 0},
                                                  {"from": 1, "output": 0}]}
    served = Pipelines({"texts": texts_of}, options=["--admin-listen", "127.0.0.1:0"])
    with served as daemon:
        def answer():
            return ask(Client(daemon.port), "/v2/models/texts/call", b"a cat",
                       "Content-Type: text/plain")["result"]

        before = answer()
        changed = json.loads((served.folder / "enc.tokenizer.json").read_text())
        words = changed["model"]["vocab"]
        words["a"], words["c"] = words["c"], words["a"]
        for name in ("enc", "enc2"):
            (served.folder / f"{name}.tokenizer.json").write_text(json.dumps(changed))
        refuse(Client(daemon.admin_port()), 400, 'expected the same "tokenizer" in both cards',
               "/v2/repository/models/enc2/load", {})
        expect("as before", answer(), before)
        for name in ("enc", "enc2"):
            path = served.folder / f"{name}.card.json"
            path.write_text(path.read_text() + "\n")
        daemon.process.send_signal(signal.SIGHUP)
        wait_until("both have it", lambda: answer() != before)
        first, second = answer()
        expect("one tokenizer", first, second)


def phases():
    """Reading has a phase of its own, in metrics, statistics, the access log and profiles."""
    with tempfile.NamedTemporaryFile() as log:
        with Media("--access-log", "all", "--access-log-file", log.name,
                   "--profile-spans-max", "10000") as daemon:
            client = Client(daemon.port)
            files = [b64(png(pixels_of(seed))) for seed in range(3)]
            pixels = {"dtype": "uint8", "shape": [1, 4, 6, 3], "fill": 1}
            for given in (files[:1], files, pixels):
                ask(client, call("pixels"), {"args": [given]})
            profile = ask(client, call("pixels", "?profile=1"), {"args": [files]})["profile"]
            expect("profile", profile["decode_us"] > 0, True)
            client.send(build_request("GET", "/v2/models/media.pixels/stats"))
            client.answer()
            stats = json.loads(client.body)["model_stats"][0]["inference_stats"]
            expect("statistics", (stats["decode"]["count"], stats["compute_input"]["count"]),
                   (3, 4))
            expect("a part", 0 < stats["decode"]["ns"] <= stats["compute_input"]["ns"], True)
            client.send(build_request("GET", "/metrics"))
            client.answer()
            page = client.body.decode()
        for phase, count in (("decode", 3), ("prepare", 4)):
            expect(phase, 'pted_model_phase_duration_seconds_count{model="media.pixels",'
                   f'version="1",phase="{phase}"}} {count}\n' in page, True)
        lines = [json.loads(line) for line in Path(log.name).read_text().splitlines()]
        expect("access log", [("decode_us" in line, "prepare_us" in line) for line in lines[:4]],
               [(True, True), (True, True), (False, True), (True, True)])


def refusals():
    with Media("--image-pixels-max", "1000") as daemon:
        client = Client(daemon.port)
        kind = "Content-Type: image/png"
        refuse(client, 413, "", call("pixels"), png([(0, 0, 0)] * 1600, 40), kind)
        refuse(client, 400, "the body is an unknown format", call("pixels"), b"hello", kind)
        refuse(client, 400, "the body is empty", call("pixels"), b"", kind)
        for data, name in ((b"GIF89a", "GIF"), (b"BM123", "BMP"), (b"II*\0", "TIFF"),
                           (b"\0\0\0 ftypheic", "HEIC"), (b"\0\0\0 ftypavif", "AVIF")):
            refuse(client, 400, f"the body is {name}, expected JPEG, PNG or WebP", call("pixels"),
                   data, kind)
        refuse(client, 400, "the file is empty, expected JPEG, PNG or WebP", call("pixels"),
               {"args": [{"base64": ""}]})
        stripped = png(pixels_of(1)).replace(b"\r", b"").replace(b"\n", b"")
        refuse(client, 400, "its line ends were changed on the way; curl's --data-binary keeps",
               call("pixels"), stripped, "Content-Type: application/x-www-form-urlencoded")
        refuse(client, 400, "its line ends were changed on the way; curl's --data-binary keeps",
               call("pixels"), stripped.split(b"\0")[0], kind)  # curl 7 stops at a NUL, too
        refuse(client, 400, "field 'picture': expected a file, got 9 bytes of an unknown format; "
               "curl sends a file as picture=@FILE", call("pixels"),
               form(("picture", b"seven.jpg", False)), f"Content-Type: {FORM}")
        for unsaid in ("application/octet-stream", "application/x-www-form-urlencoded"):
            refuse(client, 400, "the body is an unknown format, expected JPEG, PNG or WebP",
                   call("pixels"), b"<\0no picture", f"Content-Type: {unsaid}")
            refuse(client, 400, 'unknown member', call("pixels"), b' {"a": 1}',
                   f"Content-Type: {unsaid}")
        none = "takes no {}, its card says nothing of it"
        sound = tones.wav([0.0])
        for path, data, kind_of, word in (
                (call("pixels"), sound, "audio/wav", "sound"),
                (call("pixels"), sound, "image/png", "sound"),
                (infer("pixels"), sound, "audio/wav", "sound"),
                (call("second"), png(pixels_of(1)), "image/png", "picture"),
                (call("pixels"), b"hello", "text/plain", "text"),
                (infer("second"), b"hello", "text/plain; charset=utf-8", "text")):
            refuse(client, 415, none.format(word), path, data, f"Content-Type: {kind_of}")
        given = {"args": [{"dtype": "uint8", "shape": [1, 4, 6, 3], "fill": 1}]}
        ask(client, call("pixels"), given, "Content-Type: text/plain")
        refuse(client, 400, "top_k", call("pixels", "?top_k=x"), png(pixels_of(1)), kind)
        refuse(client, 400, "a number up to 4294967295", call("pixels", "?top_k=99999999999"),
               png(pixels_of(1)), kind)
        expect("alive", post(client, call("pixels"), png(pixels_of(1)), kind), 200)
    with Daemon(["--model", f"add={MODELS / 'add.pte'}"]) as daemon:
        client = Client(daemon.port)
        for kind, word in (("image/png", "picture"), ("audio/wav", "sound"),
                           ("text/plain", "text")):
            refuse(client, 415, f"model 'add' takes no {word}, its card says nothing of it",
                   "/v2/models/add/call", b"x", f"Content-Type: {kind}")
            if word != "text":
                client = Client(daemon.port)


def damaged():
    """Clear answers, and the memory for requests comes back."""
    rng = random.Random(7)
    good = png(pixels_of(5))
    with Media() as daemon:
        client = Client(daemon.port)
        for _ in range(DAMAGED):
            bad = bytearray(good)
            for _ in range(rng.randrange(1, 4)):
                bad[rng.randrange(8, len(bad))] = rng.randrange(256)
            bad = bad[:rng.randrange(20, len(bad) + 1)]
            status = post(client, call("pixels"), {"args": [[b64(good), b64(bytes(bad))]]})
            if status not in (200, 400, 413):
                raise Failure(f"{status} {client.body[:200]!r}")
        answer = ask(client, call("pixels"), good, "Content-Type: image/png")
        expect("after that", flat(answer["result"]), numbers(5))


def together():
    """Clients at the same time, each with several files."""
    with Media("--ring-bytes", "2M") as daemon:
        def run(number):
            client = Client(daemon.port)
            for turn in range(8):
                seeds = [number * 100 + turn * 10 + i for i in range(1 + turn % 5)]
                files = [b64(png(pixels_of(seed))) for seed in seeds]
                answer = ask(client, call("pixels"), {"args": [files]})
                expect("own pixels", flat(answer["result"]), numbers(*seeds))
        in_threads(CLIENTS, run)


def too_large_to_read():
    """A file whose reading takes more than the memory for requests, as its head says."""
    kept_whole = png_file(4000, 4000, b"\0" * 64, is_interlaced=True)
    with Media("--ring-bytes", "2M") as daemon:
        client = Client(daemon.port)
        kind = "Content-Type: image/png"
        refuse(client, 413, "the memory for requests has", call("picture"), kept_whole, kind)
        answer = ask(client, call("pixels"), png(pixels_of(1)), kind)
        expect("after that", flat(answer["result"]), numbers(1))


def leaving():
    """Clients that go while their files are read."""
    body = json.dumps({"args": [[b64(png(pixels_of(i))) for i in range(16)]]}).encode()
    with Media() as daemon:
        for _ in range(40):
            client = Client(daemon.port)
            client.send(build_request("POST", call("pixels"), body))
            client.reset()
        client = Client(daemon.port)
        answer = ask(client, call("pixels"), png(pixels_of(1)), "Content-Type: image/png")
        expect("others", flat(answer["result"]), numbers(1))


def missing_library():
    """A library that reads media and is not installed, or None."""
    names = ("png16", "sndfile", "soxr")
    return next((name for name in names if not ctypes.util.find_library(name)), None)


def main():
    if missing_library():
        print(f"SKIP: lib{missing_library()} is not installed")
        return 77
    report = Report()
    for title, check in (("bodies", bodies), ("several sizes", several_sizes),
                         ("JSON", json_forms), ("BYTES", strings),
                         ("forms", forms), ("sounds", sounds), ("texts", texts),
                         ("pipelines", pipelines), ("pipelines at odds", pipelines_at_odds),
                         ("a new tokenizer", pipeline_with_a_new_tokenizer), ("phases", phases),
                         ("refusals", refusals), ("damaged", damaged), ("together", together),
                         ("too_large_to_read", too_large_to_read), ("leaving", leaving)):
        report.run(title, check)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
