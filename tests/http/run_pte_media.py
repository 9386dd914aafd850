#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures, sounds and texts as inputs of `pte run`, of a file and of a model at a daemon, and the
answers that cards say: all as the daemon has them.

usage: run_pte_media.py, with top_srcdir and top_builddir in the environment.
"""
import ast
import ctypes.util
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import tones
from run_answers import (LABELS, boxes_of, candidates, card_of, file_of, find, read_png, seen_card,
                         turned_png)
from run_cards import PTE, folder_of, pte
from run_console_pages import SQUARES, scene_png
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, expect
from run_media import CARD, TEXT, ask, b64, call, flat, numbers, pixels_of, png


def read_npy(path):
    """The shape and the elements of a file of float32 or int64."""
    data = path.read_bytes()
    length = struct.unpack_from("<H", data, 8)[0]
    head = ast.literal_eval(data[10:10 + length].decode())
    kind = {"<f4": "f", "<i8": "q"}[head["descr"]]
    body = data[10 + length:]
    return head["shape"], list(struct.unpack(f"<{len(body) // struct.calcsize(kind)}{kind}", body))


def result_of(folder, *arguments):
    """The shape and the elements of the only result."""
    out = folder / "out"
    pte("run", *arguments, "--output", str(out))
    (file,) = out.iterdir()
    result = read_npy(file)
    shutil.rmtree(out)
    return result


def refuse(status, text, *arguments):
    done = subprocess.run([PTE, "run", *arguments], capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_S)
    if done.returncode != status or text not in done.stderr:
        raise Failure(f"expected {status} {text!r}, got {done.returncode} {done.stderr!r}")


class Folder:
    """The models of run_media.py, and files."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(MODELS / "media" / "model.pte", self.folder / "media.pte")
        (self.folder / "media.card.json").write_text(json.dumps(CARD))
        for seed in (1, 2, 3):
            (self.folder / f"{seed}.png").write_bytes(png(pixels_of(seed)))
        return self

    def path(self, name):
        return str(self.folder / name)

    def __exit__(self, *why):
        shutil.rmtree(self.folder)


def pictures():
    with Folder() as f:
        method = [f.path("media.pte"), "--method", "pixels"]
        files = [f.path(f"{seed}.png") for seed in (1, 2, 3)]
        wanted = ((3, 4, 6, 3), numbers(1, 2, 3))
        expect("files alone", result_of(f.folder, *method, *files), wanted)
        named = [f"picture={file}" for file in files]
        expect("NAME=X", result_of(f.folder, *method, *named), wanted)
        options = [word for name in named for word in ("--input", name)]
        expect("--input", result_of(f.folder, *method, *options), wanted)
        expect("the alias", result_of(f.folder, *method, f"input_0={files[0]}"),
               ((1, 4, 6, 3), numbers(1)))
        raw = f.folder / "raw.bin"
        raw.write_bytes(bytes(int(n) for n in numbers(2)))
        expect("a tensor", result_of(f.folder, *method, f"picture={raw}:1x4x6x3"),
               ((1, 4, 6, 3), numbers(2)))
        if "picture=2x4x6x3" not in pte("run", *method, *files[:2], "--repeat", "3"):
            raise Failure("the shapes of --repeat")


def pictures_of_several_sizes():
    """A program whose height and width vary takes pictures as they are; rows have one size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = str(folder / "sizes.pte")
        shutil.copy(MODELS / "media" / "sizes.pte", model)
        (folder / "sizes.card.json").write_text(json.dumps(
            {"inputs": [{"name": "picture", "image": {"scale": 1}}],
             "methods": {"map": {"inputs": [{"name": "picture", "image": {"resize": 10}}]}}}))

        def write(file, height, width):
            """The file of a picture, and what the program makes of it."""
            pixels = [(i % 256, i // 256, 7) for i in range(height * width)]
            (folder / file).write_bytes(png(pixels, width))
            return str(folder / file), [float(pixel[c]) for c in range(3) for pixel in pixels]

        for height, width in ((1, 1), (7, 11), (30, 40), (30, 1)):
            file, planes = write("one.png", height, width)
            expect(f"{height} x {width}", result_of(folder, model, file),
                   ((1, 3, height, width), planes))
        (first, planes), (other, _) = write("a.png", 5, 9), write("b.png", 9, 5)
        expect("rows", result_of(folder, model, first, first), ((2, 3, 5, 9), planes * 2))
        refuse(65, f"{other}: expected a picture that becomes 5 x 9 (height x width), as the first "
               "one of the call, got one that becomes 9 x 5", model, first, other)
        expect("the shorter side is 10", result_of(folder, model, "--method", "map", first)[0],
               (1, 10, 18))
        large, _ = write("large.png", 31, 40)
        refuse(65, f"{large}: expected a picture that becomes at most 30 x 40 (height x width), "
               "got one that becomes 31 x 40", model, large)


def sounds():
    with Folder() as f:
        (f.folder / "short.wav").write_bytes(tones.wav([0.25] * 1000, 1600))
        (f.folder / "a.wav").write_bytes(tones.wav([0.5] * 80, 8000))
        (f.folder / "b.wav").write_bytes(tones.wav([0.5] * 200, 8000))
        with Daemon(["--model", f"media={f.path('media.pte')}"]) as daemon:
            client = Client(daemon.port)
            for method, names in (("second", ["short.wav"]), ("sound", ["a.wav", "b.wav"]),
                                  ("mel", ["short.wav"])):
                files = [b64((f.folder / name).read_bytes()) for name in names]
                wanted = flat(ask(client, call(method), {"args": [files]})["result"])
                got = result_of(f.folder, f.path("media.pte"), "--method", method,
                                *[f"sound={f.path(name)}" for name in names])[1]
                expect(method, len(got), len(wanted))
                if any(abs(a - b) > 1e-6 for a, b in zip(got, wanted)):
                    raise Failure(f"{method}: {got[:5]}, expected {wanted[:5]}")


def texts():
    """Mask and types are filled with the text, and a text may look like much else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("model.pte", "tokenizer.json"):
            shutil.copy(MODELS / "encoder" / file, folder / file)
        model = str(folder / "model.pte")
        (folder / "model.card.json").write_text(json.dumps(
            {"inputs": {"input_ids": {"text": TEXT}}}))
        with Daemon(["--model", f"enc={model}"]) as daemon:
            client = Client(daemon.port)
            for text in ("the cat sat", "[CLS] a", "a=b", "", "über"):
                body = {"kwargs": {"input_ids": text}}
                result = ask(client, "/v2/models/enc/call", body)["result"]
                result = list(result.values()) if isinstance(result, dict) else result
                shape, got = result_of(folder, model, f"input_ids={text}")
                expect("elements", len(got), len(flat(result)))
                if any(abs(a - b) > 1e-5 for a, b in zip(got, flat(result))):
                    raise Failure(f"{text!r}: other numbers")
                url = f"http://127.0.0.1:{daemon.port}/enc"
                if ctypes.util.find_library("curl"):
                    expect("at a server", result_of(folder, url, f"input_ids={text}")[0], shape)
        for text in ("nosuchfile.txt", "a/b"):
            refuse(64, f"{text} looks like a file, expected a text; as a text it is input_ids=",
                   model, text)
        pte("run", model, "input_ids=a/b")
        pte("run", model, "and / or")
        refuse(64, "expected a text in UTF-8", model, b"input_ids=\xff")


def answers():
    """Boxes are in the picture that was sent; what they are made from is not printed."""
    boxes = [[3, 2, 10, 9], [1, 1, 4, 4]]
    card = seen_card({"resize": 16, "crop": [12, 16]})
    card["methods"]["seen"]["outputs"].append(
        {"name": "map", "answer": "map", "labels": ["no", "yes"]})
    with folder_of("answers", answers=card) as folder:
        (folder / "p.png").write_bytes(turned_png(30, 41, 6))
        given = [str(folder / "answers.pte"), "--method", "seen", f"image={folder / 'p.png'}",
                 f"input_1={json.dumps([candidates(*boxes)])}",
                 f"input_2={json.dumps([[[1] * 8] + [[0] * 8] * 5])}"]
        lines = pte("run", *given).splitlines()
        got = [one["box"] for one in json.loads(lines[0].split(": ", 1)[1])]
        with Daemon(["--models", str(folder)]) as daemon:
            wanted = find(daemon.port, [file_of(turned_png(30, 41, 6))], boxes)[0]
        expect("boxes", (lines[0].split(":")[0], got), ("found[0]", wanted))
        expect("map", lines[1], 'map[0]: {"width":8,"height":6,"classes":[{"label":"no","index":0,'
               '"pixels":40},{"label":"yes","index":1,"pixels":8}]}')
        out = folder / "out"
        pte("run", *given, "--output", str(out))
        expect("files", sorted(file.name for file in out.iterdir()),
               ["found.0.json", "found.npy", "map.0.png", "map.npy", "output_2.npy"])
        expect("boxes of a file", [one["box"] for one in
                                   json.loads((out / "found.0.json").read_text())], wanted)
        expect("PNG", read_png((out / "map.0.png").read_bytes())[3], [[1] * 8] + [[0] * 8] * 5)


def at_a_server():
    if not ctypes.util.find_library("curl"):
        return
    with Folder() as f, Daemon(["--model", f"media={f.path('media.pte')}"]) as daemon:
        url = [f"http://127.0.0.1:{daemon.port}/media", "--method", "pixels"]
        expect("rows", result_of(f.folder, *url, f.path("1.png"), f.path("3.png")),
               ((2, 4, 6, 3), numbers(1, 3)))
        refuse(65, "expected JPEG, PNG or WebP", *url, f.path("media.card.json"))
        refuse(66, "No such file", *url, "picture=nope.png")


def same(folder, daemon, model, method, *given):
    """What a server answers is printed, and written to files, as what the file answers."""
    file = [str(folder / f"{model}.pte"), *(("--method", method) if method else ())]
    url = [f"http://127.0.0.1:{daemon.port}/{model}", *file[1:]]
    text = pte("run", *file, *given)
    expect(f"{model} {method} {given}", pte("run", *url, *given), text)
    left, right = folder / "left", folder / "right"
    pte("run", *file, *given, "--output", str(left))
    pte("run", *url, *given, "--output", str(right))
    files = {path.name: path.read_bytes() for path in left.iterdir()}
    expect(f"files of {model} {method}", {path.name: path.read_bytes() for path in right.iterdir()},
           files)
    pte("run", *url, *given, "--repeat", "2")
    shutil.rmtree(left)
    shutil.rmtree(right)
    return text, sorted(files)


def answers_at_a_server():
    if not ctypes.util.find_library("curl"):
        return
    cards = {"answers": card_of(
        joined=[boxes_of(score=0.01)],
        apart=[boxes_of(scores="output_1", score=0.01), {"name": "numbers", "labels": LABELS}],
        chosen=[boxes_of(scores="output_1", classes="kinds"), None, "kinds"],
        text=[{"name": "said", "labels": list(" abcd"), "answer": "text"}],
        map=[{"name": "ground", "labels": ["sky", 'a"\u00fc', "tree"], "answer": "map"}]),
        "squares": SQUARES,
        "digits": {"outputs": [{"name": "scores", "labels": list("0123456789"),
                                "steps": ["softmax"], "answer": {"classes": 2}}]}}
    with folder_of("answers", "squares", "digits", **cards) as folder, \
            Daemon(["--models", str(folder)]) as daemon:
        scene = folder / "scene.png"
        scene.write_bytes(scene_png())
        text, files = same(folder, daemon, "squares", "boxes", str(scene))
        expect("boxes", text.startswith('found[0]: [{"label":"'), True)
        expect("files of boxes", files, ["found.0.json", "found.npy"])
        text, files = same(folder, daemon, "squares", "map", str(scene), str(scene))
        expect("maps", text.count('"width":64'), 2)
        expect("files of maps", files, ["ground.0.png", "ground.1.png", "ground.npy"])
        expect("parts", "numbers" in same(folder, daemon, "answers", "apart")[0], False)
        for method in ("joined", "chosen", "text", "map"):
            same(folder, daemon, "answers", method)
        expect("two classes", "top 2" in same(folder, daemon, "digits", None)[0], True)
        same(folder, daemon, "digits", None, "--top-k", "3")


def mistakes():
    with Folder() as f:
        method = [f.path("media.pte"), "--method", "pixels"]
        (f.folder / "cut.png").write_bytes(png(pixels_of(1))[:80])
        refuse(66, "picture: nope.png: No such file", *method, "picture=nope.png")
        refuse(65, "cut.png: a damaged PNG file", *method, f.path("cut.png"))
        refuse(65, "expected JPEG, PNG or WebP", *method, f.path("media.card.json"))
        refuse(64, "'picture' is given twice", *method, f.path("1.png"), "picture=[[1]]")
        refuse(64, "files and texts have shapes of their own", *method, f.path("1.png"),
               "--shape", "picture=1x4x6x3")
        refuse(64, "several inputs are", f.path("media.pte"), "--method", "sums", f.path("1.png"))
        shutil.copy(MODELS / "digits.pte", f.folder / "plain.pte")
        for given in (f.path("1.png"), f"image={f.path('1.png')}", f"input_0={f.path('1.png')}"):
            refuse(64, f"there is no {f.path('plain.card.json')}: `pte card", f.path("plain.pte"),
                   given)
        (f.folder / "plain.card.json").write_text(
            pte("card", f.path("plain.pte")).replace('// , "name"', ', "name"'))
        pte("run", f.path("plain.pte"), f"image={f.path('1.png')}")
        refuse(64, "got 64", *method, *[f.path("1.png")] * 64)


def main():
    for name in ("png16", "sndfile", "soxr"):
        if not ctypes.util.find_library(name):
            print(f"SKIP: lib{name} is not installed")
            return 77
    report = Report()
    report.run_all([pictures, pictures_of_several_sizes, sounds, texts, answers, at_a_server,
                    answers_at_a_server, mistakes])
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
