#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Answers for people against a real daemon: steps behind outputs, classes, boxes, maps, texts, as
the cards of models say; beside what PyTorch computes (contrib/export/answers.py); results that
nobody expects; cards that do not fit.

usage: run_answers.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import json
import struct
import sys
import zlib

from load import in_threads
from run_cards import MODELS, ask, folder_of, pte
from run_http import SOURCE, Client, Daemon, Report, build_request, expect

CASES = json.loads((SOURCE / "tests" / "http" / "answers.json").read_text(encoding="utf-8"))
LABELS = ["cat", "dog", "bird"]
ALPHABET = CASES["text"]["alphabet"]
FORMS = ("cxcywh", "xyxy", "xywh")


def card_of(**methods):
    return {"methods": {name: {"outputs": outputs} for name, outputs in methods.items()}}


def boxes_of(**members):
    return {"name": "found", "labels": LABELS, "answer": {"boxes": members}}


def call(port, method, *tensors, **parameters):
    return ask(port, f"/v2/models/answers.{method}/call",
               {"args": list(tensors), "parameters": parameters})


def result_of(port, method, *tensors, **parameters):
    status, answer = call(port, method, *tensors, **parameters)
    expect(f"status of {method}", status, 200)
    return answer["result"]


def serve(folder):
    return Daemon(["--models", str(folder)])


def close(what, got, wanted, bound=1e-4):
    if abs(got - wanted) > bound * (1 + abs(wanted)):
        expect(what, got, wanted)


def same_boxes(what, got, wanted, labels=LABELS):
    expect(f"{what}: boxes", len(got), len(wanted))
    for i, (box, right) in enumerate(zip(got, wanted)):
        expect(f"{what}: class {i}", box["index"], right["index"])
        expect(f"{what}: label {i}", box.get("label"), labels[right["index"]] if labels else None)
        close(f"{what}: score {i}", box["score"], right["score"])
        for side, number in zip(box["box"], right["box"]):
            close(f"{what}: box {i}", side, number)


def transposed(rows):
    return [list(column) for column in zip(*rows)]


def joined_of(case, factor=None):
    return [box + ([factor[i]] if factor else []) + scores
            for i, (box, scores) in enumerate(zip(case["boxes"], case["scores"]))]


def read_png(data):
    """Width, height, palette and the numbers of the pixels."""
    expect("signature", data[:8], b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        crc = struct.unpack_from(">I", data, at + 8 + length)[0]
        expect("checksum", crc, zlib.crc32(kind + body))
        chunks[kind] = chunks.get(kind, b"") + body
        at += 12 + length
    width, height, depth, color = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    expect("form", (depth, color), (8, 3))
    raw, above, rows = zlib.decompress(chunks[b"IDAT"]), bytes(width), []
    for y in range(height):
        kind, line = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
        for x in range(width):
            left = line[x - 1] if x else 0
            corner = above[x - 1] if x else 0
            guess = left + above[x] - corner
            paeth = min((abs(guess - v), i, v) for i, v in enumerate((left, above[x], corner)))[2]
            line[x] = (line[x] + (0, left, above[x], (left + above[x]) // 2, paeth)[kind]) % 256
        above = bytes(line)
        rows.append(list(line))
    return width, height, chunks[b"PLTE"], rows


# ---- boxes -------------------------------------------------------------------------------------


def test_boxes_in_one_tensor():
    usual = {"joined": [boxes_of()], "factors": [boxes_of(objectness=True)]}
    with folder_of("answers", answers=card_of(**usual)) as folder, serve(folder) as daemon:
        case = CASES["cxcywh"]
        got = result_of(daemon.port, "joined", [transposed(joined_of(case))] * 2)
        expect("rows", len(got), 2)
        same_boxes("joined", got[0], case["usual"])
        same_boxes("row 1", got[1], case["usual"])
        got = result_of(daemon.port, "factors", [joined_of(case, case["factor"])])
        same_boxes("factors", got[0], case["factors"])


def test_forms_and_limits():
    strict = {"score": 0.5, "iou": 0.2, "count": 7}
    for members, key in (({}, "usual"), (strict, "strict"), ({"across_classes": True}, "across")):
        for form in FORMS:
            card = card_of(joined=[boxes_of(form=form, order="candidates_last", **members)],
                           apart=[boxes_of(form=form, scores="output_1", **members)])
            with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
                case = CASES[form]
                got = result_of(daemon.port, "joined", [transposed(joined_of(case))])
                same_boxes(f"joined {form} {key}", got[0], case[key])
                got = result_of(daemon.port, "apart", [case["boxes"]], [case["scores"]])
                same_boxes(f"apart {form} {key}", got[0][0], case[key])
                expect("the scores", got[1], None)


def test_numbers_that_are_no_scores():
    """Rows behind the classes, such as coefficients of masks, are never an answer."""
    case = CASES["cxcywh"]
    for count, labels in ((2, {}), (2, {"labels": LABELS[:2]}), (1, {})):
        scores = [row[:count] + [9] * (3 - count) for row in case["scores"]]
        rows = [box + row for box, row in zip(case["boxes"], scores)]
        card = card_of(joined=[{"name": "found", **labels, "answer": {"boxes": {
            "class_count": count, "score": 0, "iou": 1}}}])
        with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
            got = result_of(daemon.port, "joined", [transposed(rows)])
            expect("some", len(got[0]) > 0, True)
            expect("classes", {box["index"] for box in got[0]} <= set(range(count)), True)
            expect("scores", max(box["score"] for box in got[0]) <= 1, True)
            expect("labels", all(("label" in box) == bool(labels) for box in got[0]), True)


def test_classes_that_the_model_chose():
    card = card_of(chosen=[boxes_of(scores="output_1", classes="kinds"), None, "kinds"])
    with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
        case = CASES["xyxy"]
        best = [max(row) for row in case["scores"]]
        classes = [row.index(max(row)) for row in case["scores"]]
        got = result_of(daemon.port, "chosen", [case["boxes"]], [best], [classes])
        same_boxes("chosen", got[0][0], case["usual"])
        expect("the rest", got[1:], [None, None])


def test_background_is_nothing():
    card = card_of(apart=[boxes_of(scores="output_1", background=0, score=0)])
    with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
        got = result_of(daemon.port, "apart", [[[0, 0, 1, 1], [5, 5, 9, 9]]],
                        [[[0.9, 0.1, 0.3], [0.9, 0.2, 0]]])
        expect("classes", [box["index"] for box in got[0][0]], [2, 1])


def test_hostile_boxes():
    """NaN, infinities, empty and inverted boxes, all boxes alike, none at all."""
    card = card_of(joined=[boxes_of(form="xyxy", order="candidates_last", count=1000)])
    with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
        rows = [["NaN", 0, 1, 1, 0.9, 0, 0], [0, 0, 1, 1, "NaN", "NaN", "NaN"],
                [0, 0, "Infinity", 1, 0.9, 0, 0], [3, 3, 3, 3, 0.5, 0, 0],
                [3, 3, 3, 3, 0.4, 0, 0], [9, 9, 5, 5, 0.6, "NaN", 0],
                [-3e38, -3e38, 3e38, 3e38, "Infinity", 0, 0]]
        got = result_of(daemon.port, "joined", [transposed(rows)])[0]
        expect("scores", [box["score"] for box in got], ["Infinity", 0.6, 0.5, 0.4])
        got = result_of(daemon.port, "joined", [transposed([[0, 0, 2, 2, 0.5, 0.5, 0.5]] * 40)])
        expect("alike", [box["index"] for box in got[0]], [0])
        got = result_of(daemon.port, "joined", [[[0] * 40] * 7] * 4)
        expect("none", got, [[], [], [], []])
        status, answer = call(daemon.port, "joined", {"dtype": "float32", "shape": [1, 3, 4],
                                                      "fill": 1})
        expect("too few features", status, 400)
        expect("text", answer["error"],
               "output 'found': the results have different numbers of boxes")


# ---- maps and texts ----------------------------------------------------------------------------


def check_map(png, wanted):
    width, height, palette, rows = read_png(png)
    expect("size", (width, height), (5, 6))
    expect("pixels", rows, wanted)
    expect("palette", list(palette[:9]), [0, 0, 0, 128, 0, 0, 0, 128, 0])


def test_map():
    case = CASES["map"]
    outputs = [{"name": "ground", "labels": ["sky", "road", "tree"], "answer": "map"}]
    with folder_of("answers", answers=card_of(map=outputs)) as folder, serve(folder) as daemon:
        got = result_of(daemon.port, "map", [case["given"]])[0]
        check_map(base64.b64decode(got["png"]), case["wanted"])
        flat = sum(case["wanted"], [])
        expect("classes", got["classes"],
               [{"label": label, "index": i, "pixels": flat.count(i)}
                for i, label in enumerate(["sky", "road", "tree"]) if i in flat])
        expect("size", (got["width"], got["height"]), (5, 6))
        expect("tensor", result_of(daemon.port, "map", [case["given"]], answer=False),
               [case["wanted"]])
        status, meta = ask(daemon.port, "/v2/models/answers.map")
        expect("metadata", (meta["outputs"][0]["datatype"], len(meta["outputs"][0]["shape"])),
               ("INT64", 3))


def test_map_in_the_protocol():
    case = CASES["map"]
    outputs = [{"name": "ground", "answer": "map"}]
    with folder_of("answers", answers=card_of(map=outputs)) as folder, serve(folder) as daemon:
        flat = sum(sum(case["given"], []), [])
        body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [2, 3, 6, 5],
                            "data": flat * 2}],
                "outputs": [{"name": "ground", "parameters": {"answer": True}}]}
        status, answer = ask(daemon.port, "/v2/models/answers.map/infer", body)
        output = answer["outputs"][0]
        expect("form", (status, output["datatype"], output["shape"]), (200, "BYTES", [2]))
        check_map(base64.b64decode(output["data"][1]), case["wanted"])
        body["outputs"][0]["parameters"]["binary_data"] = True
        client = Client(daemon.port)
        client.send(build_request("POST", "/v2/models/answers.map/infer",
                                  json.dumps(body).encode()))
        expect("status", client.answer(), 200)
        client.close()
        begin = client.body.index(b"\x89PNG")
        length = struct.unpack_from("<I", client.body, begin - 4)[0]
        check_map(client.body[begin:begin + length], case["wanted"])
        body["outputs"] = [{"name": "output_0", "parameters": {"answer": True,
                                                               "classification": 2}}]
        status, answer = ask(daemon.port, "/v2/models/answers.map/infer", body)
        expect("both", status, 400)


def test_json_in_the_protocol():
    """"json": as `call` has it; an output may be there twice."""
    case = CASES["map"]
    card = card_of(map=[{"name": "ground", "labels": ["sky", "road", "tree"], "answer": "map"}],
                   text=[{"name": "said", "labels": ALPHABET, "answer": "text"}])
    with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
        wanted = result_of(daemon.port, "map", [case["given"]])[0]
        body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [1, 3, 6, 5],
                            "data": [case["given"]]}],
                "outputs": [{"name": "ground", "parameters": {"answer": "json"}},
                            {"name": "ground"}, {"name": "ground"},
                            {"name": "ground", "parameters": {"answer": True}}]}
        status, answer = ask(daemon.port, "/v2/models/answers.map/infer", body)
        expect("status", status, 200)
        said, tensor = answer["outputs"]
        expect("said", (said["datatype"], said["shape"]), ("BYTES", [1]))
        expect("as call", json.loads(said["data"][0]), wanted)
        expect("tensor", (tensor["datatype"], tensor["data"]), ("INT64", sum(case["wanted"], [])))
        for word in ("JSON", "", 1, None):
            body["outputs"] = [{"name": "ground", "parameters": {"answer": word}}]
            status, answer = ask(daemon.port, "/v2/models/answers.map/infer", body)
            expect(f"answer: {word!r}", (status, "parameters.answer" in answer["error"]),
                   (400, True))
        best = [[float(i == label) for i in range(len(ALPHABET))] for label in (3, 4, 0, 3)]
        body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [1, 4, 5],
                            "data": sum(best, [])}],
                "outputs": [{"name": "said", "parameters": {"answer": "json"}}]}
        status, answer = ask(daemon.port, "/v2/models/answers.text/infer", body)
        expect("text", answer["outputs"][0]["data"], ['"c c"'])


def test_metadata():
    """What clients need to ask for answers, and to leave out what answers are made from."""
    card = card_of(chosen=[boxes_of(scores="output_1", classes="kinds"), None, "kinds"],
                   scores=[{"answer": {"classes": 3}}],
                   text=[{"labels": ALPHABET, "answer": "text"}])
    with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
        for method, wanted in (("chosen", {"picture": "sent", "scores": "output_1",
                                           "classes": "kinds"}),
                               ("scores", {"count": 3}), ("text", None)):
            status, meta = ask(daemon.port, f"/v2/models/answers.{method}")
            output = meta["outputs"][0]
            expect(method, output.get(output["answer"]), wanted)


def test_text():
    case = CASES["text"]
    outputs = [{"name": "said", "labels": ALPHABET, "answer": {"text": {"blank": 0}}}]
    with folder_of("answers", answers=card_of(text=outputs)) as folder, serve(folder) as daemon:
        def spell(*best):
            return [[float(i == label) for i in range(len(ALPHABET))] for label in best]
        got = result_of(daemon.port, "text", [case["given"], spell(*[1, 1, 0, 1, 2, 2] * 2)])
        expect("texts", got, [case["wanted"], "aabaab"])
        body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [1, 4, 5],
                            "data": sum(spell(3, 4, 0, 3), [])}],
                "outputs": [{"name": "said", "parameters": {"answer": True}}]}
        status, answer = ask(daemon.port, "/v2/models/answers.text/infer", body)
        expect("infer", answer["outputs"][0]["data"], ["c c"])


# ---- classes and steps -------------------------------------------------------------------------


def test_classes_and_softmax():
    case = CASES["scores"]
    labels = [f"class {i}" for i in range(10)]
    outputs = [{"name": "scores", "labels": labels, "steps": ["softmax"],
                "answer": {"classes": 3}}]
    order = sorted(range(10), key=lambda i: -case["softmax"][i])
    with folder_of("answers", answers=card_of(scores=outputs)) as folder, \
            serve(folder) as daemon:
        got = result_of(daemon.port, "scores", [case["given"]])[0]
        expect("classes", [entry["index"] for entry in got], order[:3])
        expect("labels", [entry["label"] for entry in got], [labels[i] for i in order[:3]])
        for entry, i in zip(got, order):
            close("score", entry["score"], case["softmax"][i], 1e-5)
        got = result_of(daemon.port, "scores", [case["given"]], top_k=1000)[0]
        expect("more than there are", [entry["index"] for entry in got], order)
        got = result_of(daemon.port, "scores", [case["given"]], answer=False)[0]
        for number, wanted in zip(got, case["softmax"]):
            close("softmax", number, wanted, 1e-5)
        for query in ("?top_k=2", "?top_k=2&binary=1"):
            status, answer = ask(daemon.port, f"/v2/models/answers.scores/call{query}",
                                 {"args": [[case["given"]]]})
            expect(query, [entry["index"] for entry in answer["result"][0]], order[:2])
        got = result_of(daemon.port, "scores", [["NaN"] * 10])[0]
        expect("NaN", [entry["index"] for entry in got], [0, 1, 2])
        body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [1, 10],
                            "data": case["given"]}],
                "outputs": [{"name": "scores", "parameters": {"answer": True}}]}
        status, answer = ask(daemon.port, "/v2/models/answers.scores/infer", body)
        expect("infer", [text.split(":")[2] for text in answer["outputs"][0]["data"]],
               [labels[i] for i in order[:3]])
        body["outputs"] = [{"name": "scores"}]
        status, answer = ask(daemon.port, "/v2/models/answers.scores/infer?top_k=2", body)
        expect("infer?top_k=2", [text.split(":")[2] for text in answer["outputs"][0]["data"]],
               [labels[i] for i in order[:2]])
        status, answer = ask(daemon.port, "/v2/models/answers.scores/infer", body)
        close("infer without it", answer["outputs"][0]["data"][0], case["softmax"][0], 1e-5)


def test_top_k_of_zero():
    """No classes: the scores, however it is said, and whatever the card's answer is."""
    form_of_scores = {"name": "scores", "labels": [f"class {i}" for i in range(10)]}
    for outputs in ([form_of_scores], [{**form_of_scores, "answer": {"classes": 3}}]):
        with folder_of("answers", answers=card_of(scores=outputs)) as folder, \
                serve(folder) as daemon:
            given = [CASES["scores"]["given"]]
            wanted = result_of(daemon.port, "scores", given, answer=False)
            expect("parameter", result_of(daemon.port, "scores", given, top_k=0), wanted)
            status, answer = ask(daemon.port, "/v2/models/answers.scores/call?top_k=0",
                                 {"args": [given]})
            expect("query", (status, answer["result"]), (200, wanted))
            status, answer = ask(daemon.port, "/v2/models/answers.scores/call?top_k=0",
                                 {"args": [given], "parameters": {"top_k": 2}})
            expect("the query counts", (status, answer["result"]), (200, wanted))


def test_top_k_of_boxes():
    with folder_of("answers", answers=card_of(joined=[boxes_of()])) as folder, \
            serve(folder) as daemon:
        given = [transposed(joined_of(CASES["cxcywh"]))]
        status, answer = call(daemon.port, "joined", given, top_k=2)
        expect("status", status, 400)
        expect("why", answer["error"], "parameters.top_k: 'found' is answered as boxes, top_k is "
               "for classes")


def make_png(side):
    """A grey picture of that many pixels a side."""
    def chunk(kind, body):
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + checksum
    rows = b"".join(b"\0" + bytes(x * 20 + y for x in range(side)) for y in range(side))
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def test_picture_to_label():
    """A body that is a picture has the answer of the card, too, unless it asks for others."""
    card = {"inputs": [{"name": "image", "image": {"scale": 0.0625}}],
            "outputs": [{"name": "scores", "labels": list("0123456789"), "steps": ["softmax"],
                         "answer": {"classes": 2}}]}
    png = make_png(8)
    with folder_of("digits", digits=card) as folder, serve(folder) as daemon:
        pixels = [[[x * 20 + y] for x in range(8)] for y in range(8)]
        wanted = ask(daemon.port, "/v2/models/digits/call", {"args": [[pixels]]})[1]["result"]
        expect("classes", len(wanted[0]), 2)
        for query, count in (("", 2), ("?top_k=3", 3)):
            client = Client(daemon.port)
            client.send(build_request("POST", f"/v2/models/digits/call{query}", png,
                                      ["Content-Type: image/png"]))
            status = client.answer()
            client.close()
            if status == 400 and b"package" in client.body or status == 501:
                return  # no library for PNG here
            got = json.loads(client.body)["result"]
            expect("status", (status, len(got[0])), (200, count))
            expect("the same", got[0][:2], wanted[0])
        for query, fields in (("?top_k=0", {}), ("", {"parameters": json.dumps({"top_k": 0})})):
            kind = "multipart/form-data; boundary=xx" if fields else "image/png"
            parts = [("image", png), *((name, text.encode()) for name, text in fields.items())]
            body = b"".join(b'--xx\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
                            % (name.encode(), data) for name, data in parts) + b"--xx--\r\n"
            client = Client(daemon.port)
            client.send(build_request("POST", f"/v2/models/digits/call{query}",
                                      body if fields else png, [f"Content-Type: {kind}"]))
            expect("scores", client.answer(), 200)
            expect("numbers", [type(item) for item in json.loads(client.body)["result"][0]],
                   [float] * 10)
            client.close()


def test_picture_to_steps():
    """A file for a pipeline: only the scores of classes become classes. Boxes stay numbers."""
    seen = {"inputs": [{"name": "image", "image": {"resize": [12, 16]}}], "outputs": [
        {"name": "found", "labels": LABELS, "answer": {"boxes": {"form": "xyxy"}}},
        {"name": "map", "labels": LABELS, "answer": "map"}]}
    card = {"methods": {"seen": seen, "scores": {"outputs": [
        {"name": "scores", "labels": [f"class {i}" for i in range(10)]}]}}}
    steps = [{"model": "answers.seen", "inputs": {name: {"input": name} for name in
                                                  ("image", "boxes", "pixels")}},
             {"model": "answers.scores", "inputs": [{"input": "numbers"}]}]
    wanted = {"inputs": ["image", "boxes", "pixels", "numbers"], "steps": steps,
              "outputs": [{"from": 0, "output": 0}, {"from": 0, "output": 1},
                          {"from": 1, "output": 0}]}
    seen["inputs"] += ["boxes", "pixels"]
    given = {"boxes": [candidates(FOUND)], "pixels": [[[0] * 8] * 6],
             "numbers": [[i / 10 for i in range(10)]]}
    with folder_of("answers", answers=card) as folder:
        (folder / "pipelines.json").write_text(json.dumps({"both": wanted}))
        with Daemon(["--models", str(folder), "--pipeline",
                     str(folder / "pipelines.json")]) as daemon:
            parts = [("image", make_png(8)), *((name, json.dumps(value).encode())
                                               for name, value in given.items())]
            body = b"".join(b'--xx\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' %
                            (name.encode(), data) for name, data in parts) + b"--xx--\r\n"
            client = Client(daemon.port)
            client.send(build_request("POST", "/v2/models/both/call", body,
                                      ["Content-Type: multipart/form-data; boundary=xx"]))
            status = client.answer()
            client.close()
            if status == 400 and b"package" in client.body or status == 501:
                return  # no library for PNG here
            expect("status", (status, client.body if status != 200 else b""), (200, b""))
            got = json.loads(client.body)["result"]
            expect("boxes", got[0][0][0][4], given["boxes"][0][0][4])
            expect("map", got[1], given["pixels"])
            expect("classes", [row["label"] for row in got[2][0]],
                   [f"class {i}" for i in range(9, 4, -1)])


# ---- where in the picture ----------------------------------------------------------------------


SEEN = (12, 16)  # height, width of the model's picture
FOUND = [3.25, 2.5, 10.75, 9]  # a box in it
ACROSS = [-4, 5, 40, 7]  # another one, which is wider


def turned_png(height, width, orientation):
    """A PNG file of so many pixels, with an orientation in EXIF."""
    def chunk(kind, body):
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + checksum
    exif = struct.pack(">2sHIHHHII", b"MM", 42, 8, 1, 0x112, 3, 1, orientation << 16) + bytes(4)
    rows = b"".join(b"\0" + bytes((x * 7 + y * 3 + c) % 256 for x in range(width)
                                  for c in range(3)) for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"eXIf", exif) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def flat_png(height, width):
    """Black, with a bit for each pixel."""
    def chunk(kind, body):
        checksum = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + checksum
    return (b"\x89PNG\r\n\x1a\n" +
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes((1 + (width + 7) // 8) * height))) +
            chunk(b"IEND", b""))


def steps_of(image, height, width):
    """What Pillow, torchvision and Ultralytics do to a picture: the size that it is resized to, and
    where its upper left corner lies in the model's picture then, as (height, width) and (y, x)."""
    resize, crop = image.get("resize"), image.get("crop")
    size, corner, canvas = [height, width], [0, 0], [height, width]
    if image.get("fit") in ("inside", "letterbox"):
        share = min(resize[0] / height, resize[1] / width)
        size = [round(height * share), round(width * share)]
        canvas = resize
        less = 0.1 if image["fit"] == "letterbox" else 0
        corner = [round((resize[i] - size[i]) / 2 - less) for i in range(2)]
    elif isinstance(resize, list):
        size = canvas = resize
    elif resize:
        short = min(height, width)
        size = canvas = [int(resize * height / short), int(resize * width / short)]
    if crop:
        for i in range(2):
            rest = crop[i] - canvas[i]
            corner[i] += rest // 2 if rest > 0 else -round(-rest / 2)
    return size, corner


def undone(image, height, width, box):
    """A box of the model's picture in the picture that is shown, which has that size."""
    size, corner = steps_of(image, height, width)
    place = [(box[i] - corner[1 - i % 2]) * (width, height)[i % 2] / size[1 - i % 2]
             for i in range(4)]
    return [min(max(place[i], 0), (width, height)[i % 2]) for i in range(4)]


def stored(orientation, height, width, box):
    """The pixels of the picture shown whose corners these are, moved as EXIF says, one by one."""
    moves = {1: lambda x, y: (x, y), 2: lambda x, y: (width - x, y),
             3: lambda x, y: (width - x, height - y), 4: lambda x, y: (x, height - y),
             5: lambda x, y: (y, x), 6: lambda x, y: (y, width - x),
             7: lambda x, y: (height - y, width - x), 8: lambda x, y: (height - y, x)}
    points = [moves[orientation](box[0], box[1]), moves[orientation](box[2], box[3])]
    return [min(p[0] for p in points), min(p[1] for p in points),
            max(p[0] for p in points), max(p[1] for p in points)]


def seen_card(image, **members):
    answer = {"boxes": {"form": "xyxy", "order": "candidates_first", "class_count": 3, **members}}
    return {"methods": {"seen": {"inputs": [{"name": "image", "image": image}],
                                 "outputs": [{"name": "found", "answer": answer}]}}}


def candidates(*boxes):
    nothing = [[0] * 7] * (40 - len(boxes))
    return [[*box, 0.9 - 0.1 * i, 0, 0] for i, box in enumerate(boxes)] + nothing


def find(port, pictures, boxes, relative=(1, 1)):
    """The boxes of each picture, as the daemon places those that the model finds."""
    found = candidates(*[[n / relative[1 - i % 2] for i, n in enumerate(box)] for box in boxes])
    pixels = [[[0] * 8] * 6] * len(pictures)
    status, answer = call(port, "seen", pictures, [found] * len(pictures), pixels)
    if status == 400 and "package" in answer["error"]:
        return None  # no library for PNG here
    expect("status", status, 200)
    return [[one["box"] for one in row] for row in answer["result"][0]]


def file_of(png):
    return {"base64": base64.b64encode(png).decode()}


def same_places(what, got, wanted):
    expect(f"{what}: boxes", len(got), len(wanted))
    for i, right in enumerate(wanted):
        for side, number in zip(got[i], right):
            close(f"{what}: box {i}", side, number, 1e-5)


FITS = (
    {},
    {"resize": [12, 16]},
    {"resize": 16, "crop": [12, 16]},
    {"resize": [12, 16], "fit": "inside"},
    {"resize": [20, 20], "fit": "inside", "crop": [12, 16]},
    {"resize": [7, 9], "fit": "inside", "crop": [12, 16]},
    {"resize": [12, 16], "fit": "letterbox"},
    {"resize": [20, 21], "fit": "letterbox", "crop": [12, 16]},
    {"crop": [12, 16]},
    {"resize": 8, "crop": [12, 16]},
)


def test_boxes_in_the_picture_sent():
    """Each way to fit pictures, of pictures larger and smaller, high and wide; all turns."""
    for image in FITS:
        card = seen_card(image)
        with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
            sizes = [(37, 50), (50, 37), (9, 31), (31, 9)] if image else [(12, 16)]
            for height, width in sizes:
                files = [file_of(turned_png(height, width, 1)), file_of(turned_png(12, 16, 1))]
                got = find(daemon.port, files, (FOUND, ACROSS))
                if got is None:
                    return
                for row, size in zip(got, ((height, width), SEEN)):
                    same_places(f"{image} {size}", row,
                                [undone(image, *size, FOUND), undone(image, *size, ACROSS)])


def test_boxes_of_turned_pictures():
    image = {"resize": 16, "crop": [12, 16]}
    for members in ({}, {"picture": "sent", "normalized": True}, {"picture": "shown"},
                    {"picture": "shown", "normalized": True, "relative": True},
                    {"picture": "model"}, {"picture": "model", "normalized": True}):
        card = seen_card(image, **members)
        with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
            turns = range(1, 9)
            files = [file_of(turned_png(30, 41, turn)) for turn in turns]
            got = [find(daemon.port, [file], [FOUND], SEEN if "relative" in members else (1, 1))
                   for file in files]
            if got[0] is None:
                return
            for turn, rows in zip(turns, got):
                size = (30, 41) if turn < 5 else (41, 30)
                box, sides = undone(image, *size, FOUND), size
                if members.get("picture", "sent") == "sent":
                    box, sides = stored(turn, *size, box), (30, 41)
                if members.get("picture") == "model":
                    box, sides = FOUND, SEEN
                if "normalized" in members:
                    box = [n / sides[1 - i % 2] for i, n in enumerate(box)]
                same_places(f"{members}, turn {turn}", rows[0], [box])


def test_boxes_of_a_tensor():
    """Pixels that come as a tensor are the picture that was sent."""
    with folder_of("answers", answers=seen_card({"resize": 16, "crop": [12, 16]})) as folder:
        with serve(folder) as daemon:
            pixels = {"dtype": "uint8", "shape": [1, 12, 16, 3], "fill": 7}
            got = result_of(daemon.port, "seen", pixels, [candidates(FOUND)], [[[0] * 8] * 6])
            same_places("tensor", [got[0][0][0]["box"]], [FOUND])


def spread(image, turn, height, width, pixels):
    """A map of the model's picture in the picture that is stored as |height| x |width|."""
    size = (height, width) if turn < 5 else (width, height)
    resized, corner = steps_of(image, *size)
    shown = []
    for y in range(size[0]):
        row = []
        for x in range(size[1]):
            # Where the centre of the pixel is in the map, whose pixels are 2 x 2 of the model's.
            at = [((p + 0.5) * resized[i] / size[i] + corner[i]) / 2 for i, p in enumerate((y, x))]
            is_seen = 0 <= at[0] < len(pixels) and 0 <= at[1] < len(pixels[0])
            row.append(pixels[int(at[0])][int(at[1])] if is_seen else 0)
        shown.append(row)
    result = [[None] * width for _ in range(height)]
    for y in range(size[0]):
        for x in range(size[1]):
            box = stored(turn, *size, [x, y, x + 1, y + 1])
            result[box[1]][box[0]] = shown[y][x]
    return result


def test_maps_in_the_picture_sent():
    pixels = [[1 + (x * 5 + y * 3) % 7 for x in range(8)] for y in range(6)]
    for image in FITS[1:]:
        card = seen_card(image)
        card["methods"]["seen"]["outputs"].append({"answer": {"map": {"picture": "sent"}}})
        with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
            for turn in range(1, 9) if image == FITS[3] else (1, 6):
                status, answer = call(daemon.port, "seen", [file_of(turned_png(21, 34, turn))],
                                      [candidates()], [pixels])
                if status == 400 and "package" in answer["error"]:
                    return
                got = answer["result"][1][0]
                wanted = spread(image, turn, 21, 34, pixels)
                expect(f"{image}, turn {turn}", read_png(base64.b64decode(got["png"]))[3], wanted)
                expect("size", (got["width"], got["height"]), (34, 21))
                expect("classes", sum(row["pixels"] for row in got["classes"]), 21 * 34)


def test_a_map_too_large():
    """Sent is a picture that is too large for a map of its size; the model's would do."""
    card = seen_card({"resize": [12, 16]})
    for word, wanted in (("sent", 413), ("model", 200)):
        card["methods"]["seen"]["outputs"][1:] = [{"answer": {"map": {"picture": word}}}]
        with folder_of("answers", answers=card) as folder, serve(folder) as daemon:
            status, answer = call(daemon.port, "seen", [file_of(flat_png(4100, 4100))],
                                  [candidates()], [[[0] * 8] * 6])
            if status == 400 and "package" in answer["error"]:
                return
            expect(word, status, wanted)
            if wanted == 413:
                expect("why", "at most 16777216 pixels, got 4100 x 4100" in answer["error"], True)


def test_memory_of_maps():
    """Maps are part of --ring-bytes: they wait for each other, or are refused if one never fits."""
    card = seen_card({"resize": [12, 16]})
    card["methods"]["seen"]["outputs"][1:] = [{"answer": {"map": {"picture": "sent"}}}]
    with folder_of("answers", answers=card) as folder, \
            Daemon(["--models", str(folder), "--ring-bytes", "32M"]) as daemon:
        def ask_for(side):
            return call(daemon.port, "seen", [file_of(flat_png(side, side))], [candidates()],
                        [[[0] * 8] * 6])

        status, answer = ask_for(4000)
        if status == 400 and "package" in answer["error"]:
            return
        expect("one that never fits", status, 413)
        expect("why", "the memory for requests has" in answer["error"], True)
        in_threads(3, lambda _: expect("it waits", ask_for(2000)[0], 200))
        status, stats = ask(daemon.port, "/v2/models/stats")
        expect("all is given back", stats["memory"]["used"], 0)


# ---- mistakes ----------------------------------------------------------------------------------


def test_mistakes():
    mistakes = (
        ({"scores": [{"steps": ["softmx"]}]},
         "methods.scores.outputs[0].steps[0]: expected softmax, sigmoid, normalize, pool, arg_max "
         "or threshold, got 'softmx'"),
        ({"scores": [{"steps": [{"softmax": 2}]}]},
         "methods.scores.outputs[0].steps[0]: softmax: the tensor has 2 dims, got dim 2"),
        ({"scores": [{"steps": [{"threshold": 0.5}, "sigmoid"]}]},
         "methods.scores.outputs[0].steps[1]: sigmoid: expected a tensor of floats, got bool"),
        ({"scores": [{"answer": "boxes"}]}, "methods.scores.outputs[0].answer: boxes: expected "
         "[n, candidates, 4 + classes] or the last two the other way round, got float32[4,10]"),
        ({"scores": [{"answer": "picture"}]}, "methods.scores.outputs[0].answer: expected classes, "
         "boxes, map or text, got 'picture'"),
        ({"scores": [{"answer": {"classes": 0}}]}, "methods.scores.outputs[0].answer.classes: "
         "expected a whole number from 1 to 1000, got 0"),
        ({"joined": [{"answer": {"boxes": {"count": 1001}}}]},
         "methods.joined.outputs[0].answer.boxes.count: expected a whole number from 1 to 1000, "
         "got 1001"),
        ({"apart": [{"answer": {"boxes": {"scores": "nothing"}}}]},
         "methods.apart.outputs[0].answer: 'nothing' is no output with a tensor, expected "
         "one of output_0 and output_1"),
        ({"joined": [{"labels": ["one"], "answer": "boxes"}]},
         "methods.joined.outputs[0].labels: 'output_0' has 3 numbers behind each box, got 1 "
         "labels; class_count says how many are scores"),
        ({"joined": [{"answer": "boxes"}]},
         "methods.joined.outputs[0].answer: 'output_0' has 3 numbers behind each box, got 0 "
         "labels; class_count says how many are scores"),
        ({"joined": [{"labels": ["one"], "answer": {"boxes": {"class_count": 2}}}]},
         "methods.joined.outputs[0].labels: 'output_0' has 2 classes, got 1 labels"),
        ({"joined": [{"answer": {"boxes": {"class_count": 4}}}]},
         "methods.joined.outputs[0].answer: class_count: expected at most 3, got 4"),
        ({"text": [{"answer": "text"}]}, "methods.text.outputs[0].answer: text: expected labels, "
         "and label 0 to be the blank"),
        ({"text": [{"labels": ["a", "b"], "answer": "text"}]},
         "methods.text.outputs[0].labels: 'output_0' has 5 classes, got 2 labels"),
        ({"joined": [{"answer": {"boxes": {"picture": "file"}}}]},
         "methods.joined.outputs[0].answer.boxes.picture: expected sent, shown or model, got "
         "'file'"),
        ({"joined": [{"answer": {"boxes": {"picture": "sent", "class_count": 3}}}]},
         "methods.joined.outputs[0].answer: picture needs an input that the card says to be an "
         "image"),
        ({"joined": [{"answer": {"boxes": {"normalized": True}}}]},
         "methods.joined.outputs[0].answer: normalized needs an input that the card says to be an "
         "image"),
        ({"scores": [{"answer": "map"}]}, "methods.scores.outputs[0].answer: map: expected floats "
         "[n, classes, height, width], or integers [n, height, width], got float32[4,10]"),
    )
    for methods, wanted in mistakes:
        with folder_of("answers", answers=card_of(**methods)) as folder:
            got = pte("card", "--check", str(folder / "answers.card.json"),
                      str(MODELS / "answers.pte"), status=65)
            expect("error", got.split(": ", 2)[2], wanted + "\n")


TESTS = [test_boxes_in_one_tensor, test_forms_and_limits, test_classes_that_the_model_chose,
         test_numbers_that_are_no_scores,
         test_background_is_nothing, test_hostile_boxes, test_map, test_map_in_the_protocol,
         test_json_in_the_protocol, test_metadata, test_text, test_classes_and_softmax,
         test_top_k_of_zero, test_top_k_of_boxes, test_picture_to_label,
         test_picture_to_steps,
         test_boxes_in_the_picture_sent, test_boxes_of_turned_pictures, test_boxes_of_a_tensor,
         test_maps_in_the_picture_sent, test_a_map_too_large, test_memory_of_maps,
         test_mistakes]


def main():
    report = Report()
    report.run_all(TESTS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
