#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small models of Ultralytics, exported by Ultralytics itself, and what its predictor answers.

Each model is trained for a minute on drawn squares, discs and triangles. The folders are as the
exporter writes them. answers.json has, for each model and picture, the results of predict() with
the exported model; pictures have sides that leave odd rests beside the letterbox.

usage: yolo.py [--out DIR] [--epochs N] [--work DIR] [TASK...]; needs ultralytics 8.4 and
    executorch 1.5
"""
import argparse
import json
import math
import os
import random
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("YOLO_OFFLINE", "1")
os.environ.setdefault("YOLO_AUTOINSTALL", "false")

import cv2  # noqa: E402 # after the environment
import numpy as np  # noqa: E402
import yaml  # noqa: E402
from ultralytics import YOLO  # noqa: E402
from ultralytics.engine import exporter  # noqa: E402

exporter.file_size = lambda path: 1.0  # the exporter takes files below 0.1 MB for damaged ones

TASKS = ("detect", "classify", "pose", "segment", "obb")
NAMES = ["square", "disc", "triangle"]
HEADS = {"detect": ["Detect", ["nc"]], "pose": ["Pose", ["nc", [3, 3]]],
         "segment": ["Segment", ["nc", 8, 16]], "obb": ["OBB", ["nc", 1]],
         "classify": ["Classify", ["nc"]]}
SIZE = (96, 128)  # height, width
SENT = {"tall.png": (151, 90), "wide.png": (61, 173), "near.png": (95, 127)}
CROP = 64  # of the classifier


def net_of(task):
    """A backbone of three strides with the head of YOLO26, which has no distributions."""
    wide = [8, 16, 24]
    net = {"nc": len(NAMES), "scales": {"n": [1.0, 1.0, 1024]}, "reg_max": 1,
           "backbone": [[-1, 1, "Conv", [width, 3, 2]] for width in wide],
           "head": [[[2] if task != "classify" else -1, 1, *HEADS[task]]]}
    if task == "pose":
        net["kpt_shape"] = [3, 3]
    return net


# ---- pictures ------------------------------------------------------------------------------------

def corners(kind, x, y, size, angle):
    """The corners of a figure around its centre."""
    count = {"square": 4, "disc": 24, "triangle": 3}[kind]
    step = 2 * math.pi / count
    return np.array([[x + size * math.cos(angle + step * i), y + size * math.sin(angle + step * i)]
                     for i in range(count)])


def draw(random_of, height, width, count, grow=1.0):
    """A picture, and its figures: the class, and corners in pixels."""
    grey = random_of.randint(20, 90)
    picture = np.full((height, width, 3), grey, np.uint8)
    figures = []
    for _ in range(count):
        kind = random_of.randrange(len(NAMES))
        size = grow * (random_of.uniform(0.1, 0.2) * min(height, width) + 6)
        x, y = random_of.uniform(size, width - size), random_of.uniform(size, height - size)
        points = corners(NAMES[kind], x, y, size, random_of.uniform(0, math.pi))
        if any(np.abs(points[:, None] - other[None]).max(-1).min() < size for _, other in figures):
            continue
        color = [random_of.randint(30, 90)] * 3
        color[kind] = 250
        cv2.fillPoly(picture, [np.rint(points * 16).astype(np.int32)], color, cv2.LINE_AA, 4)
        figures.append((kind, points))
    noise = np.random.default_rng(random_of.randrange(1 << 30)).normal(0, 4, picture.shape)
    return np.clip(picture + noise, 0, 255).astype(np.uint8), figures


def label_of(task, kind, points, height, width):
    """A line of a file of labels."""
    scaled = points / [width, height]
    low, high = scaled.min(0), scaled.max(0)
    numbers = [*((low + high) / 2), *(high - low)]
    if task == "segment":
        numbers = scaled.ravel()
    elif task == "obb":
        (x, y), (w, h), angle = cv2.minAreaRect(points.astype(np.float32))
        numbers = (cv2.boxPoints(((x, y), (w, h), angle)) / [width, height]).ravel()
    elif task == "pose":
        for i in range(3):
            numbers += [*scaled[i * len(points) // 3], 2]
    return " ".join([str(kind)] + [f"{float(number):.6f}" for number in numbers])


def write_data(task, folder, count):
    random_of = random.Random(7)
    for part in ("train", "val"):
        for i in range(count if part == "train" else 8):
            if task == "classify":
                picture, figures = draw(random_of, CROP, CROP, 1)
                place = folder / part / NAMES[figures[0][0]]
                place.mkdir(parents=True, exist_ok=True)
                cv2.imwrite(str(place / f"{i}.png"), picture)
                continue
            picture, figures = draw(random_of, 128, 128, random_of.randint(1, 4))
            for kind in ("images", "labels"):
                (folder / kind / part).mkdir(parents=True, exist_ok=True)
            cv2.imwrite(str(folder / "images" / part / f"{i}.png"), picture)
            (folder / "labels" / part / f"{i}.txt").write_text("\n".join(
                label_of(task, kind, points, 128, 128) for kind, points in figures))
    data = {"path": str(folder), "train": "images/train", "val": "images/val",
            "names": dict(enumerate(NAMES))}
    if task == "pose":
        data["kpt_shape"] = [3, 3]
    (folder / "data.yaml").write_text(yaml.safe_dump(data))
    return folder if task == "classify" else folder / "data.yaml"


# ---- models --------------------------------------------------------------------------------------

def train(task, epochs, work):
    net = work / f"{task}.yaml"
    net.write_text(yaml.safe_dump(net_of(task)))
    data = write_data(task, work / f"data_{task}", 240)
    model = YOLO(str(net), task=task)
    model.train(data=str(data), epochs=epochs, imgsz=CROP if task == "classify" else 128,
                batch=16, amp=False, plots=False, workers=0, device="cpu", project=str(work),
                name=f"run_{task}", val=False, verbose=False, seed=1, lr0=0.01, optimizer="AdamW",
                mosaic=0.0, erasing=0.0, hsv_h=0.0, warmup_epochs=1, cache="ram")


def result_of(task, result):
    """What a result says, as lists of numbers."""
    if task == "classify":
        return {"scores": result.probs.data.tolist()}
    boxes = result.obb if task == "obb" else result.boxes
    answer = {"classes": [int(i) for i in boxes.cls], "scores": boxes.conf.tolist(),
              "boxes": boxes.xyxy.tolist()}
    if task == "obb":
        answer["corners"] = boxes.xyxyxyxy.tolist()
    if task == "pose":
        answer["points"] = result.keypoints.data.tolist()
    if task == "segment":
        answer["pixels"] = [int(mask.sum()) for mask in result.masks.data] if result.masks else []
        answer["rows"] = [[int(n) for n in mask.sum(1)] for mask in result.masks.data] \
            if result.masks else []
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("tests/models/yolo"))
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--work", type=Path, help="keeps what is trained here")
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "answers.json"
    answers = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    random_of = random.Random(11)
    for name, (height, width) in SENT.items():
        cv2.imwrite(str(options.out / name), draw(random_of, height, width, 8, 1.25)[0])
    with tempfile.TemporaryDirectory() as name:
        work = (options.work or Path(name)).absolute()
        for task in options.tasks:
            weights = work / f"run_{task}" / "weights" / "last.pt"
            if not weights.exists():
                train(task, options.epochs, work)
            model = YOLO(str(weights))
            size = CROP if task == "classify" else SIZE
            folder = Path(model.export(format="executorch", imgsz=size))
            target = options.out / f"{task}_executorch_model"
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
            exported = YOLO(str(target), task=task)
            answers[task] = {
                sent: result_of(task, exported.predict(str(options.out / sent), imgsz=size,
                                                       retina_masks=True, verbose=False)[0])
                for sent in SENT}
    path.write_text(json.dumps(answers) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
