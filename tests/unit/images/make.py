#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the files of this folder: small pictures, and what Pillow makes of them: NAME.raw has the
pixels [19, 23, 3] of the turned picture, resized to 24 x 40 (bicubic), cropped to 19 x 23.

usage: make.py; needs Pillow 13 and numpy"""
import os

import numpy as np
from PIL import Image, ImageOps

FOLDER = os.path.dirname(os.path.abspath(__file__))


def picture(mode, channels):
    numbers = np.random.default_rng(7).integers(0, 256, (6, 8, channels), dtype=np.uint8)
    parts = [Image.fromarray(numbers[..., c]) for c in range(channels)]
    return Image.merge(mode, [part.resize((61, 47), Image.BICUBIC) for part in parts])


def exif(orientation):
    tags = Image.Exif()
    tags[0x112] = orientation
    return tags.tobytes()


def main():
    rgb, rgba, cmyk = picture("RGB", 3), picture("RGBA", 4), picture("CMYK", 4)
    files = {
        "baseline.jpg": (rgb, {"quality": 90, "subsampling": 2}),
        "progressive_6.jpg": (rgb, {"quality": 80, "progressive": True, "exif": exif(6)}),
        "cmyk_3.jpg": (cmyk, {"quality": 80, "exif": exif(3)}),
        "palette_5.png": (rgb.quantize(16), {"exif": exif(5)}),
        "alpha_8.png": (rgba, {"exif": exif(8)}),
        "lossy.webp": (rgb, {"quality": 80}),
        "lossless_7.webp": (rgba, {"lossless": True, "exif": exif(7)}),
    }
    for name, (image, options) in files.items():
        path = os.path.join(FOLDER, name)
        image.save(path, **options)
        shown = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        resized = shown.resize((40, 24), Image.BICUBIC)
        top, left = round((24 - 19) / 2), round((40 - 23) / 2)
        pixels = np.asarray(resized.crop((left, top, left + 23, top + 19)))
        pixels.tofile(path + ".raw")


main()
