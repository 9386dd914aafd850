#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the classes of transformers 5 make of a picture, by the files that they write and by older
ones: tests/models/hub/pictures.json. Each case has a file, its content, and some of the numbers
that the class gives for a picture of tests/models/yolo.

usage: hub_pictures.py [--out FILE]; needs transformers 5.24, torchvision and Pillow
"""
import argparse
import json
import tempfile
from pathlib import Path

import transformers
from PIL import Image

MODELS = Path(__file__).resolve().parents[2] / "tests" / "models"
STEP = 11  # every eleventh number is kept
SHARED = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.5, 0.25, 0.2]}

# The class, and what its file says. Sides are at most 30 x 40, which the test's program takes.
WRITTEN = [
    ("ViTImageProcessor", {"size": {"height": 20, "width": 24}, **SHARED}),
    ("ViTImageProcessor", {"size": 20, "do_normalize": False}),
    ("SiglipImageProcessor", {"size": 20}),
    ("SiglipImageProcessor", {"size": {"height": 20, "width": 24}}),
    ("CLIPImageProcessor", {"size": 24, "crop_size": 20}),
    ("CLIPImageProcessor", {"size": {"shortest_edge": 20}, "do_center_crop": False,
                            "resample": 2, "rescale_factor": 0.01}),
    ("ChineseCLIPImageProcessor", {"size": 22, "crop_size": {"height": 20, "width": 22}}),
    ("BitImageProcessor", {"size": {"shortest_edge": 26}, "crop_size": 22}),
    ("BeitImageProcessor", {"size": {"height": 24, "width": 24}}),
    ("BlipImageProcessor", {"size": {"height": 20, "width": 20}, "resample": 0}),
    ("ConvNextImageProcessor", {"size": {"shortest_edge": 20}}),
    ("ConvNextImageProcessor", {"size": 21, "crop_pct": 0.95}),
    ("DeiTImageProcessor", {"size": {"height": 26, "width": 26}, "crop_size": 20}),
    ("EfficientNetImageProcessor", {"size": {"height": 20, "width": 20}}),
    ("EfficientNetImageProcessor", {"size": {"height": 20, "width": 20}, "include_top": False}),
    ("LevitImageProcessor", {"size": {"shortest_edge": 21}, "crop_size": 20}),
    ("MobileNetV1ImageProcessor", {"size": {"shortest_edge": 24}, "crop_size": 20}),
    ("MobileNetV2ImageProcessor", {"size": {"shortest_edge": 24}, "crop_size": 20}),
    ("MobileViTImageProcessor", {"size": {"shortest_edge": 20}, "crop_size": 24}),
    ("PoolFormerImageProcessor", {"size": {"shortest_edge": 20}, "crop_size": 20}),
    ("PvtImageProcessor", {"size": {"height": 20, "width": 20}}),
    ("RTDetrImageProcessor", {"size": {"height": 24, "width": 32}}),
    ("SegformerImageProcessor", {"size": {"height": 24, "width": 32}, "do_rescale": False}),
]


def numbers_of(processor, picture):
    pixels = processor(picture, return_tensors="pt")["pixel_values"][0].float()
    return list(pixels.shape), [round(x, 4) for x in pixels.flatten().tolist()[::STEP]]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=MODELS / "hub" / "pictures.json")
    options = parser.parse_args()
    picture = Image.open(MODELS / "yolo" / "near.png").convert("RGB")
    cases = []
    for name, said in WRITTEN:
        processor = getattr(transformers, name)(**said)
        shape, numbers = numbers_of(processor, picture)
        with tempfile.TemporaryDirectory() as folder:
            processor.save_pretrained(folder)
            files = {path.name: json.loads(path.read_text(encoding="utf-8"))
                     for path in Path(folder).iterdir()}
        # As it is written; nested, as by processors of several parts; and alone, as by hand.
        (file, written), = files.items()
        cases.append({"class": name, "shape": shape, "numbers": numbers, "files": [
            [file, written], ["processor_config.json", {"image_processor": written}],
            ["preprocessor_config.json", {"image_processor_type": name, **said}]]})
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"step": STEP, "cases": cases}) + "\n", encoding="utf-8")
    print(f"{len(cases)} cases of transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
