#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes which boxes torchvision's non-maximum suppression keeps, and Ultralytics' one of turned
boxes, for tests/unit/test_boxes.c, which makes the same candidates:

    tests/unit/boxes.def

Needs torch, torchvision and ultralytics (8.4 or newer). Run it in the top folder of the source.
"""
from pathlib import Path

import torch
from torchvision.ops import nms
from ultralytics.utils.metrics import batch_probiou
from ultralytics.utils.nms import TorchNMS

# seed, candidates, classes, form, least score, most overlap, most boxes, ignores classes,
# background, has objectness, is turned
CASES = [
    (1, 60, 3, "CORNERS", 0.25, 0.45, 300, 0, -1, 0, 0),
    (2, 80, 2, "CENTER", 0.5, 0.3, 300, 0, -1, 0, 0),
    (3, 80, 4, "SIZE", 0.25, 0.45, 300, 1, -1, 0, 0),
    (4, 80, 3, "CENTER", 0.125, 0.6, 7, 0, -1, 0, 0),
    (5, 70, 3, "CORNERS", 0.25, 0.45, 300, 0, 0, 0, 0),
    (6, 70, 3, "CENTER", 0.125, 0.45, 300, 0, -1, 1, 0),
    (7, 60, 2, "CENTER", 0.25, 0.3, 300, 0, -1, 0, 1),
    (8, 60, 2, "CENTER", 0.25, 0.5, 300, 1, -1, 0, 1),
    (9, 60, 2, "CENTER", 0.999, 0.5, 300, 0, -1, 0, 0),
]


class Numbers:
    """The generator of Numerical Recipes; its high bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % bound


def make(case):
    """All numbers are exact as floats: sides are quarters, scores parts of 1024."""
    seed, count, classes = case[:3]
    numbers = Numbers(seed)
    rows = []
    for _ in range(count):
        left, top = numbers.below(64) / 4, numbers.below(64) / 4
        width, height = (8 + numbers.below(80)) / 4, (8 + numbers.below(80)) / 4
        scores = [numbers.below(1024) / 1024 for _ in range(classes)]
        objectness = numbers.below(1024) / 1024
        angle = (numbers.below(256) - 128) / 64
        rows.append((left, top, width, height, scores, objectness, angle))
    return rows


def find(case):
    """The candidates that are kept, the best first, with their classes."""
    _, _, _, _, least, overlap, most, ignores, background, has_objectness, is_turned = case
    found = []
    for index, (left, top, width, height, scores, objectness, angle) in enumerate(make(case)):
        known = [(score, -k) for k, score in enumerate(scores) if k != background]
        score, kind = max(known)
        score *= objectness if has_objectness else 1
        if score >= least:
            box = [left, top, left + width, top + height]
            turned = [left + width / 2, top + height / 2, width, height, angle]
            found.append((index, -kind, score, turned if is_turned else box))
    found.sort(key=lambda row: (-row[2], row[0]))
    kept = []
    for kind in {0} if ignores else {row[1] for row in found}:
        rows = [row for row in found if ignores or row[1] == kind]
        boxes = torch.tensor([row[3] for row in rows])
        scores = torch.arange(len(rows), 0, -1).float()  # their order, without equal ones
        keep = (TorchNMS.fast_nms(boxes, scores, overlap, iou_func=batch_probiou)
                if is_turned else nms(boxes, scores, overlap))
        kept += [rows[i] for i in keep]
    kept.sort(key=lambda row: (-row[2], row[0]))
    return [(row[0], row[1]) for row in kept[:most]]


def main():
    lines = ["/* SPDX-License-Identifier: MIT */",
             "/* Written by contrib/export/boxes.py: the cases, and the candidates that are kept "
             "with their", " * classes. */"]
    for case in CASES:
        seed, count, classes, form, least, overlap, most, *flags = case
        kept = find(case)
        lines.append(f"CASE({seed}, {count}, {classes}, {form}, {least}, {overlap}, {most}, "
                     f"{', '.join(map(str, flags))}, {len(kept)})")
        items = [f"KEPT({index}, {kind})" for index, kind in kept]
        lines += ["    " + " ".join(items[i:i + 6]) for i in range(0, len(items), 6)]
    Path("tests/unit/boxes.def").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
