#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/models/answers.pte and tests/http/answers.json: what models for people give.

Each method of the program gives its inputs back, plus 0, so that a test decides what the model
"finds". answers.json has inputs, and what PyTorch makes of them: boxes by the rule of
torchvision.ops.batched_nms, written here with torch so that torchvision is not needed, the best
class of each pixel, texts by CTC, and softmax.

usage: answers.py; needs requirements.txt
"""
import json
from pathlib import Path

import torch
from executorch.exir import to_edge
from torch import nn
from torch.export import Dim, export

TOP = Path(__file__).resolve().parents[2]
MODEL = TOP / "tests" / "models" / "answers.pte"
CASES = TOP / "tests" / "http" / "answers.json"
CANDIDATES, CLASSES = 40, 3
NAMES = ["zero", 'the "one"', "two", "three", "four", "five", "six", "seven", "eight", "nine"]
ALPHABET = ["", "a", "b", "c", " "]


class One(nn.Module):
    def forward(self, given):
        return given + 0


class Three(nn.Module):
    def forward(self, boxes, scores, classes):
        return boxes + 0, scores + 0, classes + 0


class Two(nn.Module):
    def forward(self, boxes, scores):
        return boxes + 0, scores + 0


class Seen(nn.Module):
    """A picture, and what a test says to be found in it."""

    def forward(self, image, found, classes):
        return found + 0, classes + 0, image + 0


def program():
    rows = Dim("rows", max=4)
    boxes, scores = torch.rand(2, CANDIDATES, 4), torch.rand(2, CANDIDATES, CLASSES)
    first = {0: rows}
    methods = {
        "joined": (One(), (torch.rand(2, 4 + CLASSES, CANDIDATES),), 1),
        "factors": (One(), (torch.rand(2, CANDIDATES, 5 + CLASSES),), 1),
        "apart": (Two(), (boxes, scores), 2),
        "chosen": (Three(), (boxes, scores[:, :, 0], torch.zeros(2, CANDIDATES, dtype=torch.int64)),
                   3),
        "map": (One(), (torch.rand(2, CLASSES, 6, 5),), 1),
        "text": (One(), (torch.rand(2, 12, len(ALPHABET)),), 1),
        "scores": (One(), (torch.rand(2, 10),), 1),
        "seen": (Seen(), (torch.rand(2, 3, 12, 16), torch.rand(2, CANDIDATES, 4 + CLASSES),
                          torch.zeros(2, 6, 8, dtype=torch.int64)), 3),
    }
    return to_edge({name: export(module, example, dynamic_shapes=tuple([first] * count))
                    for name, (module, example, count) in methods.items()},
                   constant_methods={"class_names": NAMES}).to_executorch()


def overlap(a, b):
    """Areas of both divided by those of either, for all pairs."""
    corner = torch.maximum(a[:, None, :2], b[None, :, :2])
    end = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    both = (end - corner).clamp(min=0).prod(2)
    area = [(box[:, 2:] - box[:, :2]).prod(1) for box in (a, b)]
    return both / (area[0][:, None] + area[1][None] - both)


def nms(boxes, scores, limit):
    order = scores.argsort(descending=True, stable=True)
    kept = []
    while len(order):
        best, order = order[0], order[1:]
        kept.append(best.item())
        order = order[overlap(boxes[best][None], boxes[order])[0] <= limit]
    return kept


def batched_nms(boxes, scores, classes, limit):
    kept = []
    for value in classes.unique().tolist():
        index = torch.nonzero(classes == value)[:, 0]
        kept += [index[i].item() for i in nms(boxes[index], scores[index], limit)]
    return sorted(kept, key=lambda i: (-scores[i].item(), i))


def corners(boxes, form):
    first, second = boxes[:, :2], boxes[:, 2:]
    if form == "cxcywh":
        return torch.cat([first - second / 2, first - second / 2 + second], 1)
    return torch.cat([first, first + second], 1) if form == "xywh" else boxes


def detect(boxes, scores, classes, form, least=0.25, limit=0.45, count=100, across=False):
    boxes = corners(boxes, form)
    strong = torch.nonzero(scores >= least)[:, 0]
    boxes, scores, classes = boxes[strong], scores[strong], classes[strong]
    kept = nms(boxes, scores, limit) if across else batched_nms(boxes, scores, classes, limit)
    return [{"index": classes[i].item(), "score": scores[i].item(), "box": boxes[i].tolist()}
            for i in kept[:count]]


def draw_boxes(generator, form):
    centers = torch.rand(CANDIDATES, 2, generator=generator) * 60 + 10
    sizes = torch.rand(CANDIDATES, 2, generator=generator) * 30 + 2
    by_form = {"cxcywh": [centers, sizes], "xywh": [centers - sizes / 2, sizes],
               "xyxy": [centers - sizes / 2, centers + sizes / 2]}
    return torch.cat(by_form[form], 1)


def cases(generator):
    result = {}
    for form in ("cxcywh", "xyxy", "xywh"):
        boxes = draw_boxes(generator, form)
        scores = torch.rand(CANDIDATES, CLASSES, generator=generator)
        best, classes = scores.max(1)
        factor = torch.rand(CANDIDATES, generator=generator)
        result[form] = {
            "boxes": boxes.tolist(), "scores": scores.tolist(), "factor": factor.tolist(),
            "usual": detect(boxes, best, classes, form),
            "strict": detect(boxes, best, classes, form, 0.5, 0.2, 7),
            "across": detect(boxes, best, classes, form, across=True),
            "factors": detect(boxes, best * factor, classes, form)}
    pixels = torch.rand(CLASSES, 6, 5, generator=generator)
    steps = torch.randn(12, len(ALPHABET), generator=generator)
    best = steps.argmax(1)
    text = "".join(ALPHABET[i] for i in torch.unique_consecutive(best).tolist())
    logits = torch.randn(10, generator=generator) * 3
    return {**result,
            "map": {"given": pixels.tolist(), "wanted": pixels.argmax(0).tolist()},
            "text": {"given": steps.tolist(), "wanted": text, "alphabet": ALPHABET},
            "scores": {"given": logits.tolist(), "softmax": logits.softmax(0).tolist()}}


def main():
    MODEL.write_bytes(program().buffer)
    CASES.write_text(json.dumps(cases(torch.Generator().manual_seed(3))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
