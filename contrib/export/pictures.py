#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes small pictures and what Pillow makes of them, for tests/unit/test_pictures.c:

    tests/fuzz/corpus/image/NAME    the pictures
    tests/media/pictures.def        the cases: picture, form, size of the result
    tests/media/pictures.bin        the results of all cases, in their order

Needs Pillow (12 or newer) and numpy.  Run it in the top folder of the source.
"""
import io
import struct
import zlib
from pathlib import Path

import numpy
from PIL import Image, ImageOps

FILES = Path("tests/fuzz/corpus/image")
RESULTS = Path("tests/media")
FILTERS = {
    "NEAREST": Image.Resampling.NEAREST,
    "BOX": Image.Resampling.BOX,
    "BILINEAR": Image.Resampling.BILINEAR,
    "BICUBIC": Image.Resampling.BICUBIC,
    "LANCZOS": Image.Resampling.LANCZOS,
}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
         (0, 1, 1, 2)]


def pixels(height, width, channels, seed=1):
    """A slope in each channel, with noise."""
    rng = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [x * (200 / width), y * (200 / height), (x + y) * (200 / (width + height)),
              200 - x * (150 / width)]
    out = numpy.stack(planes[:channels], axis=2) + rng.integers(0, 56, (height, width, channels))
    return out.astype(numpy.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(rows, bits):
    """Rows of samples, each with the filter 0 before it."""
    out = b""
    for row in rows:
        flat = row.reshape(-1)
        if bits == 16:
            data = flat.astype(">u2").tobytes()
        elif bits == 8:
            data = flat.astype(numpy.uint8).tobytes()
        else:
            ones = (flat[:, None] >> numpy.arange(bits - 1, -1, -1)) & 1
            data = numpy.packbits(ones.astype(numpy.uint8).reshape(-1)).tobytes()
        out += b"\0" + data
    return out


def png(samples, bits, color, interlaced=False, extra=b""):
    """samples: [height, width, channels]"""
    height, width = samples.shape[:2]
    if interlaced:
        parts = [samples[y::step_y, x::step_x] for x, y, step_x, step_y in ADAM7]
        data = b"".join(packed(part, bits) for part in parts if part.size)
    else:
        data = packed(samples, bits)
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def saved(array, kind, mode=None, **options):
    out = io.BytesIO()
    Image.fromarray(array, mode).save(out, kind, **options)
    return out.getvalue()


def png_of(picture):
    out = io.BytesIO()
    picture.save(out, "PNG", bits=8)
    return out.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    return exif.tobytes()


def pictures():
    rgb = pixels(18, 23, 3)
    gray = pixels(18, 23, 1)[:, :, 0]
    rgba = pixels(18, 23, 4)
    wide = pixels(18, 23, 3).astype(numpy.uint16) * 251 + 77
    out = {
        "base.jpg": saved(rgb, "JPEG", quality=80),
        "base444.jpg": saved(rgb, "JPEG", quality=80, subsampling=0),
        "base422.jpg": saved(rgb, "JPEG", quality=80, subsampling=1),
        "progressive.jpg": saved(rgb, "JPEG", quality=80, progressive=True),
        "gray.jpg": saved(gray, "JPEG", quality=80),
        "cmyk.jpg": saved(rgba, "JPEG", "CMYK", quality=80),
        "rgb.png": saved(rgb, "PNG"),
        "gray.png": saved(gray, "PNG"),
        "rgba.png": saved(rgba, "PNG"),
        "graya.png": png(rgba[:, :, :2], 8, 4),
        "rgb16.png": png(wide, 16, 2),
        "gray16.png": png(wide[:, :, :1], 16, 0),
        "gray1.png": png((rgb[:, :, :1] > 120).astype(numpy.uint8), 1, 0),
        "gray4.png": png(rgb[:, :, :1] >> 4, 4, 0),
        "interlaced.png": png(rgb, 8, 2, True),
        "interlaced1.png": png((rgb[:, :, :1] > 120).astype(numpy.uint8), 1, 0, True),
        "lossy.webp": saved(rgb, "WEBP", quality=80),
        "lossless.webp": saved(rgb, "WEBP", lossless=True),
        "alpha.webp": saved(rgba, "WEBP", quality=80, exact=True),
        "lossless_alpha.webp": saved(rgba, "WEBP", lossless=True, exact=True),
        "palette8.png": png_of(Image.fromarray(rgb).quantize(40)),
        "turned6.png": saved(rgb, "PNG", exif=turned(6)),
        "turned6.webp": saved(rgb, "WEBP", quality=80, exif=turned(6)),
    }
    colors = bytes(range(48))
    out["palette2.png"] = png(rgb[:, :, :1] >> 6, 2, 3, extra=chunk(b"PLTE", colors[:12]))
    out["palette.png"] = png(rgb[:, :, :1] >> 4, 8, 3, extra=chunk(b"PLTE", colors) +
                             chunk(b"tRNS", bytes(range(16))))
    for orientation in range(2, 9):
        out[f"turned{orientation}.jpg"] = saved(rgb, "JPEG", quality=80, exif=turned(orientation))
    return out


def fitted(picture, fit, height, width, kind):
    """As torchvision's Resize, Image.resize() or ImageOps.pad()."""
    if fit == "SHORTER":
        w, h = picture.size
        size = (height, height * h // w) if w <= h else (height * w // h, height)
        return picture.resize(size, kind)
    if fit == "STRETCH":
        return picture.resize((width, height), kind)
    return ImageOps.pad(picture, (width, height), kind, color=0)


def cropped(picture, height, width):
    """As torchvision's CenterCrop, with zeros beside a smaller picture."""
    array = numpy.asarray(picture)
    h, w = array.shape[:2]
    top, left = max(height - h, 0), max(width - w, 0)
    pad = [(top // 2, top - top // 2), (left // 2, left - left // 2)] + [(0, 0)] * (array.ndim - 2)
    array = numpy.pad(array, pad)
    y, x = round((array.shape[0] - height) / 2), round((array.shape[1] - width) / 2)
    return array[y:y + height, x:x + width]


def result(data, form):
    height, width, fit, kind, crop_height, crop_width, colors = form
    picture = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    picture = picture.convert("L" if colors == "GRAY" else "RGB")
    if height:
        picture = fitted(picture, fit, height, width, FILTERS[kind])
    array = cropped(picture, crop_height, crop_width) if crop_height else numpy.asarray(picture)
    return array[:, :, ::-1] if colors == "BGR" else array


def forms(name):
    whole = (0, 0, "SHORTER", "NEAREST", 0, 0)
    yield *whole, "RGB"
    yield *whole, "GRAY"
    if name not in ("base.jpg", "rgb.png", "gray.png", "turned6.jpg", "interlaced.png",
                    "lossy.webp", "cmyk.jpg"):
        return
    yield *whole, "BGR"
    yield 9, 0, "SHORTER", "BILINEAR", 8, 6, "RGB"
    if name not in ("base.jpg", "rgb.png", "turned6.jpg"):
        return
    for kind in FILTERS:
        yield 7, 5, "STRETCH", kind, 0, 0, "RGB"
        yield 25, 31, "STRETCH", kind, 0, 0, "RGB"
        yield 11, 30, "STRETCH", kind, 0, 0, "GRAY"
        yield 10, 0, "SHORTER", kind, 0, 0, "RGB"
        yield 21, 0, "SHORTER", kind, 16, 16, "RGB"
        yield 14, 14, "INSIDE", kind, 0, 0, "RGB"
        yield 9, 30, "INSIDE", kind, 8, 13, "RGB"
    yield 0, 0, "SHORTER", "NEAREST", 31, 36, "RGB"
    yield 0, 0, "SHORTER", "NEAREST", 7, 29, "RGB"
    yield 12, 0, "SHORTER", "BICUBIC", 20, 10, "BGR"


def main():
    FILES.mkdir(parents=True, exist_ok=True)
    RESULTS.mkdir(exist_ok=True)
    rows, results = [], b""
    for name, data in pictures().items():
        assert len(data) < 4096
        (FILES / name).write_bytes(data)
        for form in forms(name):
            array = result(data, form)
            rows.append('X("%s", %d, %d, %s, %s, %d, %d, %s, %d, %d)' %
                        (name, *form, *array.shape[:2]))
            results += array.tobytes()
    (RESULTS / "pictures.bin").write_bytes(results)
    (RESULTS / "pictures.def").write_text(
        "/* SPDX-License-Identifier: MIT */\n"
        "/* Written by contrib/export/pictures.py: picture, resize_height, resize_width, fit, "
        "filter,\n"
        " * crop_height, crop_width, colors; height and width of the result. */\n" +
        "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
