#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders as exporters write them, against a real daemon: names of models; cards that are derived
from metadata.yaml, preprocessor_config.json, processor_config.json and config.json; what
Ultralytics and transformers themselves make of the same pictures (contrib/export/yolo.py and
hub_pictures.py); own cards; files that are damaged, or of something else; `pte card` and `pte run`
of folders.

usage: run_folders.py, with top_srcdir and top_builddir in the environment.
"""
import base64
import json
import shutil
import struct
import sys
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path

from load import wait_until
from run_cards import ask, pte, put
from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

YOLO = MODELS / "yolo"
ANSWERS = json.loads((YOLO / "answers.json").read_text(encoding="utf-8"))
HUB = json.loads((MODELS / "hub" / "pictures.json").read_text(encoding="utf-8"))
NAMES = ["square", "disc", "triangle"]
CLASSES = sorted(NAMES)  # a classifier's classes are folders
BESIDE = "metadata.yaml"
SIDES = {"tall.png": (151, 90), "wide.png": (61, 173), "near.png": (95, 127)}  # height, width


def read_gray(data):
    """Height, width and rows of a PNG of 8 bits and one channel."""
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    expect("kind", (data[:8], depth, kind), (b"\x89PNG\r\n\x1a\n", 8, 0))
    at, packed = 8, b""
    while at < len(data):
        size, = struct.unpack(">I", data[at:at + 4])
        packed += data[at + 8:at + 8 + size] if data[at + 4:at + 8] == b"IDAT" else b""
        at += size + 12
    plain, rows, above = zlib.decompress(packed), [], bytes(width)
    for i in range(height):
        line = bytearray(plain[i * (width + 1):(i + 1) * (width + 1)])
        for k in range(1, width + 1):
            left, up = line[k - 1] if k > 1 else 0, above[k - 1]
            corner = above[k - 2] if k > 1 else 0
            guess = min((abs(up - corner), 0, left), (abs(left - corner), 1, up),
                        (abs(left + up - 2 * corner), 2, corner))[2]
            line[k] = line[k] + (0, left, up, (left + up) // 2, guess)[line[0]] & 255
        above = bytes(line[1:])
        rows.append(above)
    return height, width, rows


@contextmanager
def models():
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def folder_with(root, name, program, **files):
    """A folder of |program| and of files, whose names have _ in place of the last dot."""
    folder = root / name
    folder.mkdir()
    shutil.copy(program, folder / "model.pte")
    for key, content in files.items():
        stem, _, ending = key.rpartition("_")
        put(folder / f"{stem}.{ending}", content)
    return folder


def send(port, model, picture, query=""):
    """The status and the answer's JSON to a picture."""
    client = Client(port)
    client.send(build_request("POST", f"/v2/models/{model}/call{query}",
                              (YOLO / picture).read_bytes(), ["Content-Type: image/png"]))
    status = client.answer()
    client.close()
    return status, json.loads(client.body)


def result_of(port, model, picture, query=""):
    status, answer = send(port, model, picture, query)
    if status != 200:
        raise Failure(f"{model}, {picture}: {status} {answer}")
    return answer["result"]


def near(what, got, wanted, bound):
    """Numbers, or lists of them."""
    if isinstance(wanted, list):
        expect(f"{what}: count", len(got), len(wanted))
        for i, (one, right) in enumerate(zip(got, wanted)):
            near(f"{what}[{i}]", one, right, bound)
    elif abs(got - wanted) > bound:
        raise Failure(f"{what}: expected {wanted} within {bound}, got {got}")


# ---- Ultralytics ---------------------------------------------------------------------------------

def check_boxes(task, picture, boxes, right):
    """Boxes within a pixel, best first."""
    what = f"{task}, {picture}"
    expect(f"{what}: labels", [box["label"] for box in boxes],
           [NAMES[index] for index in right["classes"]])
    near(f"{what}: scores", [box["score"] for box in boxes], right["scores"], 0.02)
    near(f"{what}: boxes", [box["box"] for box in boxes], right["boxes"], 1)


def detection():
    """A folder and a photograph give boxes with names, as predict() of Ultralytics gives them."""
    count = 0
    with Daemon([str(YOLO / "detect_executorch_model") + "/"]) as daemon:
        for picture, right in ANSWERS["detect"].items():
            boxes = result_of(daemon.port, "detect", picture)[0]
            check_boxes("detect", picture, boxes, right)
            count += len(boxes)
        _, meta = ask(daemon.port, "/v2/models/detect")
        expect("input", (meta["inputs"][0]["datatype"], meta["inputs"][0]["shape"]),
               ("UINT8", [1, 96, 128, 3]))
        expect("answer", (meta["outputs"][0]["answer"], meta["outputs"][0]["label_count"]),
               ("boxes", 3))
        expect("description", meta["description"].startswith("Ultralytics"), True)
    expect("boxes in all pictures", count > 2, True)


def clip(points, picture):
    """Boxes end at the borders of the picture."""
    height, width = SIDES[picture]
    return [[min(max(x, 0), side) for x, side in zip(box, (width, height) * 2)] for box in points]


def pose():
    """Points of each box, and how sure the model is of them."""
    with Daemon([str(YOLO / "pose_executorch_model")]) as daemon:
        for picture, right in ANSWERS["pose"].items():
            boxes = result_of(daemon.port, "pose", picture)[0]
            check_boxes("pose", picture, boxes, right)
            for box, points in zip(boxes, right["points"]):
                near(f"points of {picture}", [point[:2] for point in box["points"]],
                     [point[:2] for point in points], 1)
                near(f"sure of {picture}", [point[2] for point in box["points"]],
                     [point[2] for point in points], 0.02)


def turned():
    """Corners of turned boxes, and the boxes around them."""
    with Daemon([str(YOLO / "obb_executorch_model")]) as daemon:
        for picture, right in ANSWERS["obb"].items():
            boxes = result_of(daemon.port, "obb", picture)[0]
            check_boxes("obb", picture, boxes,
                        {**right, "boxes": clip(right["boxes"], picture)})
            near(f"corners in {picture}", [box["corners"] for box in boxes], right["corners"], 1)


def masks():
    """A PNG over each box: as many pixels, row by row, as Ultralytics' own mask has."""
    with Daemon([str(YOLO / "segment_executorch_model")]) as daemon:
        _, meta = ask(daemon.port, "/v2/models/segment")
        expect("part", meta["outputs"][0]["boxes"]["masks"], "output_1")
        for picture, right in ANSWERS["segment"].items():
            status, answer = send(daemon.port, "segment", picture)
            expect("status", status, 200)
            boxes, other = answer["result"][0][0], answer["result"][1]
            expect("the maps are a part", other, None)
            check_boxes("segment", picture, boxes, right)
            for box, rows in zip(boxes, right["rows"]):
                mask = box["mask"]
                height, width, pixels = read_gray(base64.b64decode(mask["png"]))
                expect(f"size of a mask in {picture}", (height, width),
                       (mask["height"], mask["width"]))
                got = [0] * mask["top"] + [sum(pixel > 0 for pixel in row) for row in pixels]
                got += [0] * (len(rows) - len(got))
                apart = sum(abs(a - b) for a, b in zip(got, rows))
                if apart > 0.04 * sum(rows):
                    raise Failure(f"mask in {picture}: {apart} of {sum(rows)} pixels differ")


def classification():
    """The shorter side, a crop, and the best classes."""
    with Daemon([str(YOLO / "classify_executorch_model")]) as daemon:
        for picture, right in ANSWERS["classify"].items():
            classes, = result_of(daemon.port, "classify", picture, "?top_k=3")
            scores = sorted(zip(right["scores"], CLASSES), reverse=True)
            expect(f"classes of {picture}", [row["label"] for row in classes],
                   [name for _, name in scores])
            near(f"scores of {picture}", [row["score"] for row in classes],
                 [score for score, _ in scores], 0.02)


# ---- transformers --------------------------------------------------------------------------------

def pictures():
    """Each class of transformers, by each form of its file: the numbers that the class itself
    gives. A level of 255 may be another one: torchvision rounds in another order."""
    with models() as root:
        for i, case in enumerate(HUB["cases"]):
            for k, (name, content) in enumerate(case["files"]):
                folder_with(root, f"m{i}_{k}", MODELS / "media" / "sizes.pte",
                            **{name.replace(".", "_"): content})
        with Daemon(["--models", str(root)]) as daemon:
            for i, case in enumerate(HUB["cases"]):
                for k, (name, content) in enumerate(case["files"]):
                    what = f"{case['class']}, {name}: {content}"
                    picture, = result_of(daemon.port, f"m{i}_{k}", "near.png")
                    expect(f"{what}: shape", [len(picture), len(picture[0]), len(picture[0][0])],
                           case["shape"])
                    numbers = [x for plane in picture for row in plane for x in row]
                    bound = 0.006 * (max(case["numbers"]) - min(case["numbers"]))
                    near(what, numbers[::HUB["step"]], case["numbers"], bound)


def labels():
    """config.json: names of classes that fit an output; invented ones do not count."""
    names = {str(i): f"digit {i}" for i in range(10)}
    with models() as root:
        for name, id2label in (("named", names), ("few", {"0": "a", "1": "b"}),
                               ("invented", {str(i): f"LABEL_{i}" for i in range(10)}),
                               ("odd", {**names, "10": "x", "9": None})):
            folder_with(root, name, MODELS / "digits.pte", config_json={"id2label": id2label})
        with Daemon(["--models", str(root)]) as daemon:
            for name, count in (("named", 10), ("few", None), ("invented", None), ("odd", None)):
                _, meta = ask(daemon.port, f"/v2/models/{name}")
                expect(f"labels of {name}", meta["outputs"][0].get("label_count"), count)
            status, answer = ask(daemon.port, "/v2/models/named/call", {
                "args": [{"dtype": "float32", "shape": [1, 1, 8, 8], "fill": 0.5}],
                "parameters": {"top_k": 1}})
            expect("label", (status, answer["result"][0][0]["label"]), (200, "digit 8"))


# ---- names ---------------------------------------------------------------------------------------

def names():
    """By --models, by a folder, by NAME=FOLDER, and the only program of a folder."""
    detect = YOLO / "detect_executorch_model"
    with models() as root:
        shutil.copytree(detect, root / "found_executorch_model")
        with models() as other:
            folder_with(other, "plain", detect / "model.pte")
            only = folder_with(other, "only", detect / "model.pte")
            (only / "model.pte").rename(only / "prefill.pte")
            with Daemon(["--models", str(root), str(other / "plain"), str(only) + "//",
                         "--model", f"mine={detect}"]) as daemon:
                _, rows = ask(daemon.port, "/v2/repository/index", {})
                expect("names", sorted(row["name"] for row in rows),
                       ["found", "mine", "only", "plain"])
                check_boxes("detect", "wide.png", result_of(daemon.port, "found", "wide.png")[0],
                            ANSWERS["detect"]["wide.png"])
        (root / "empty").mkdir()
        for program in ("a.pte", "b.pte"):
            put(root / program, detect / "model.pte")
        for folder, reason in (("empty", "a folder with no program"),
                               ("", "a folder with several programs")):
            error = pte("inspect", str(root / folder), status=66)
            expect(f"{reason}: {error}", reason in error, True)


# ---- own cards, damage ---------------------------------------------------------------------------

def own_card():
    """Members of an own card come first, and a file that comes or changes loads the model again."""
    with models() as root:
        folder = root / "mine_executorch_model"
        shutil.copytree(YOLO / "detect_executorch_model", folder)
        with Daemon(["--models", str(root), "--watch"]) as daemon:
            before = result_of(daemon.port, "mine", "wide.png")[0]
            put(folder / "model.card.json", {"description": "my own"})
            wait_until("the card", lambda: ask(daemon.port, "/v2/models/mine")[1].get(
                "description") == "my own")
            expect("boxes", result_of(daemon.port, "mine", "wide.png")[0], before)
            put(folder / "model.card.json", {"outputs": [{"labels": ["a", "b", "c"],
                                                          "answer": {"boxes": {"count": 1}}}]})
            wait_until("one box",
                       lambda: len(result_of(daemon.port, "mine", "wide.png")[0]) == 1)
            expect("label", result_of(daemon.port, "mine", "wide.png")[0][0]["label"],
                   "abc"[NAMES.index(before[0]["label"])])
            (folder / "model.card.json").unlink()
            text = (folder / BESIDE).read_text(encoding="utf-8")
            put(folder / BESIDE, text.replace("square", "Quadrat").replace("disc", "Scheibe")
                .replace("triangle", "Dreieck"))
            wait_until("new names",
                       lambda: result_of(daemon.port, "mine", "wide.png")[0][0]["label"]
                       in ("Quadrat", "Scheibe", "Dreieck"))


def own_inputs():
    """An own card whose inputs are no pictures: what a mask would be part of is not there."""
    with models() as root:
        folder = root / "mine_executorch_model"
        shutil.copytree(YOLO / "segment_executorch_model", folder)
        put(folder / "model.card.json", {"inputs": ["pixels"]})
        with Daemon(["--models", str(root)]) as daemon:
            status, answer = ask(daemon.port, "/v2/models/mine")
            expect("served", (status, answer["inputs"][0]["name"]), (200, "pixels"))


def damage():
    """What cannot be read or does not fit is left out, and the log says so; the model is served."""
    program = YOLO / "detect_executorch_model" / "model.pte"
    good = (YOLO / "detect_executorch_model" / BESIDE).read_text(encoding="utf-8")
    bomb = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 8)}]\n"
        for i in range(20))
    rows = (
        ("broken", "names: [1", "metadata.yaml is left out: no YAML"),
        ("bomb", bomb, "metadata.yaml is left out: the values take more than"),
        ("deep", "[" * 10000, "metadata.yaml is left out: nested too deep"),
        ("twice", "task: detect\ntask: detect\n", "metadata.yaml is left out: "),
        ("large", "# " + "x" * (5 << 20), "metadata.yaml is left out: "),
        ("sizes", good.replace("- 96\n- 128", "- 128\n- 96"),
         "metadata.yaml: imgsz: pictures of 128 x 96 (height x width), but the program takes"),
        ("names", good.replace("  2: triangle\n", ""), "expected [1, 6, candidates]"),
        ("task", good.replace("task: detect", "task: dream"), "task 'dream' is not known"),
        ("other", "apiVersion: v1\nmetadata: {name: x}\n", None),
        ("list", "- a\n- b\n", None),
        ("empty", "", None),
    )
    with models() as root:
        for name, text, _ in rows:
            folder_with(root, name, program, metadata_yaml=text)
        folder_with(root, "json", program, config_json="{", preprocessor_config_json="[]")
        folder_with(root, "unknown", program, preprocessor_config_json={
            "image_processor_type": "MyImageProcessor", "size": 4})
        with Daemon(["--models", str(root)]) as daemon:
            for name, _, _ in rows:
                status, _ = ask(daemon.port, f"/v2/models/{name}/ready")
                expect(f"{name} is ready", status, 200)
            port = daemon.port
            expect("tensors", ask(port, "/v2/models/broken")[1]["inputs"][0]["datatype"], "FP32")
            expect("sent", send(port, "broken", "near.png")[0], 415)
        log = daemon.read_log()
        for name, _, reason in (*rows, ("json", None, "config.json is left out: "),
                                ("unknown", None, "the class MyImageProcessor is not known")):
            lines = [line for line in log.splitlines() if f"model '{name}': " in line]
            if reason is None:
                expect(f"lines of {name}", lines, [])
            elif not any(reason in line for line in lines):
                raise Failure(f"{name}: expected '{reason}' in {lines}")


# ---- pte -----------------------------------------------------------------------------------------

def command_line():
    """`pte card` says where members come from; what it prints is a card; `pte run` of a folder."""
    folder = YOLO / "detect_executorch_model"
    card = pte("card", str(folder))
    for line in ("// metadata.yaml: names", "// metadata.yaml: task, imgsz",
                 "// metadata.yaml: description",
                 ', "labels": ["square", "disc", "triangle"]'):
        expect(f"{line} in {card}", line in card, True)
    with models() as root:
        put(root / "my.card.json", card)
        pte("card", "--check", str(root / "my.card.json"), str(folder))
        hub = folder_with(root, "hub", MODELS / "media" / "sizes.pte", processor_config_json={
            "image_processor": {"image_processor_type": "ViTImageProcessor",
                                "size": {"height": 20, "width": 24}}})
        card = pte("card", str(hub))
        expect(f"place in {card}", "// processor_config.json: ViTImageProcessor" in card, True)
    out = pte("run", str(folder), str(YOLO / "wide.png"))
    for index in ANSWERS["detect"]["wide.png"]["classes"]:
        expect(f"label in {out}", NAMES[index] in out, True)


CASES = (detection, classification, pose, turned, masks, pictures, labels, names,
         own_card, own_inputs, damage, command_line)


def main():
    report = Report()
    report.run_all(CASES)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
