#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pted_server.export.card: cards from what export() is told, which `pte card --check` accepts;
what cards cannot say; versions of packages. None of this needs PyTorch.

Packages are folders with the metadata that pip writes, so other versions need no installation.

usage: run_pted_card.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
PYTHON_PATH = SOURCE / "python"
sys.path[:0] = [str(SOURCE / "tests" / "http"), str(PYTHON_PATH)]

import wheels  # noqa: E402  of python/
from pted_server.export.card import (MEMBERS, PACKAGES, card_of,  # noqa: E402  of python/
                                     release)
from run_http import MODELS, Failure, Report, expect  # noqa: E402

CHECK = "from pted_server.export.card import check_packages; "
PTE = Path(os.environ.get("PTE", BUILD / "pte")).resolve()
RUN_S = 60
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
# Of digits.pte: one positional argument, one result.
NAMES = {"input_0": "image"}


class ImageClassification:  # as torchvision's presets
    resize_size, crop_size, interpolation = [10], [8], "bilinear"
    mean, std = (0.5,), (0.25,)


class Weights:
    transforms = ImageClassification
    meta = {"categories": DIGITS}


def check(card):
    """`pte card --check` of the card for digits.pte."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "digits.card.json"
        file.write_text(json.dumps(card), encoding="utf-8")
        done = subprocess.run([PTE, "card", "--check", file, MODELS / "digits.pte"],
                              capture_output=True, text=True, timeout=RUN_S, check=False)
    expect(f"{card}: {done.stdout}{done.stderr}", done.returncode, 0)


def members():
    """They are those of the schema, which `contrib/settings.sh` makes."""
    schema = json.loads((SOURCE / "conf" / "pted-card.schema.json").read_text(encoding="utf-8"))
    known = {kind: value["properties"] for kind, value in schema["$defs"].items()
             if "properties" in value}
    for kind in ("input", "output", "step", "answer"):
        forms = schema["$defs"][kind if kind == "answer" else f"card_{kind}"]["oneOf"]
        known[kind] = {word for form in forms
                       for word in (*form.get("properties", ()), *form.get("enum", ()))}
    known["card"] = schema["properties"]
    for kind, names in MEMBERS.items():
        expect(kind, sorted(names), sorted(known[kind]))


def cards():
    image = {"resize": [8, 8], "colors": "gray"}
    scores = {"name": "scores", "labels": DIGITS, "steps": ["softmax"], "answer": {"classes": 3}}
    bare = {name: value for name, value in scores.items() if name != "name"}
    for told, wanted in (
            ({}, {"inputs": NAMES}),
            ({"outputs": {"output_0": scores}}, {"outputs": {"output_0": scores}}),
            ({"outputs": {"output_0": bare}}, {"outputs": {"output_0": bare}}),
            ({"outputs": {"output_0": "scores"}}, {"outputs": {"output_0": "scores"}}),
            ({"outputs": [scores]}, {"outputs": [scores]}),
            ({"outputs": ["scores"], "labels": {"scores": DIGITS}},
             {"outputs": [{"name": "scores", "labels": DIGITS}]}),
            ({"outputs": {"output_0": {**bare, "labels": iter(DIGITS)}}},
             {"outputs": {"output_0": bare}}),
            ({"outputs": {"output_0": {"name": "scores", "steps": [{"softmax": 1}]}},
              "labels": {"scores": DIGITS}},
             {"outputs": {"output_0": {"name": "scores", "steps": [{"softmax": 1}],
                                       "labels": DIGITS}}}),
            ({"labels": {"output_0": DIGITS}}, {"outputs": {"output_0": {"labels": DIGITS}}}),
            ({"labels": DIGITS, "max_batch": 2, "shapes": [{"image": (2, 1, 8, 8)}]},
             {"labels": DIGITS, "max_batch": 2, "warm_up": [{"shapes": {"image": [2, 1, 8, 8]}}]}),
            ({"inputs": {"image": {"image": image}}},
             {"inputs": {"input_0": {"name": "image", "image": image}}}),
            ({"inputs": {"input_0": {"name": "x", "description": "grey"}}},
             {"inputs": {"input_0": {"name": "x", "description": "grey"}}}),
            ({"inputs": ["x"]}, {"inputs": {"input_0": "x"}}),
            ({"inputs": [None]}, {"inputs": NAMES}),
            ({"inputs": [{"image": image}]},
             {"inputs": {"input_0": {"name": "image", "image": image}}}),
            ({"weights": Weights}, {
                "inputs": {"input_0": {"name": "image", "image": {
                    "resize": 10, "crop": 8, "interpolation": "bilinear", "mean": [0.5],
                    "std": [0.25]}}},
                "outputs": [{"name": "scores", "steps": ["softmax"], "answer": {"classes": 5}}],
                "labels": DIGITS})):
        card = card_of(NAMES, 1, **told)
        expect(f"{told}", card, {"inputs": NAMES, **wanted})
        check(card)


def refused():
    for told, why in (
            ({"outputs": {"logits": {"lables": []}}},
             "outputs['logits']: expected one of name, description, labels, steps, answer, got "
             "'lables'; did you mean 'labels'?"),
            ({"outputs": [None, {"image": {}}]}, "outputs[1]: expected one of name, description"),
            ({"outputs": [{"steps": ["softmx"]}]}, "outputs[0]['steps'][0]: expected one of "
             "softmax, sigmoid, normalize, arg_max, pool, threshold, got 'softmx'; did you mean "
             "'softmax'?"),
            ({"outputs": [{"steps": "softmax"}]}, "expected a list of steps, got 'softmax'"),
            ({"outputs": [{"steps": [{"pool": "mean", "softmax": 0}]}]},
             "expected one member, got 2"),
            ({"outputs": [{"answer": "class"}]}, "outputs[0]['answer']: expected one of classes"),
            ({"outputs": [{"answer": {"boxes": {"scores": "s", "iuo": 1}}}]},
             "outputs[0]['answer']['boxes']: expected one of form"),
            ({"outputs": "scores"}, "outputs: expected a list or a dict, got 'scores'"),
            ({"outputs": [["a"]]}, "outputs[0]: expected a name of 1 to 128"),
            ({"outputs": ["-a"]}, "got '-a'"),
            ({"outputs": ["input_3"]}, "got 'input_3'"),
            ({"outputs": [{"name": 3}]}, "outputs[0]['name']: expected a name"),
            ({"outputs": ["a"], "labels": {"b": []}}, "labels: expected one of a, got 'b'"),
            ({"outputs": [{"name": "a", "labels": ["x"]}], "labels": {"a": ["y"]}},
             "labels['a']: the output has labels of its own"),
            ({"inputs": {"image": {"imgae": {}}}}, "inputs['image']: expected one of name"),
            ({"inputs": {"image": {"image": {"size": 3}}}},
             "inputs['image']['image']: expected one of resize"),
            ({"inputs": {"image": {"sound": 8000}}}, "expected a dict, got 8000"),
            ({"inputs": ["a", "b"]}, "inputs: expected at most 1, got 2"),
            ({"outputz": ["a"]}, "export(): expected one of $schema"),
            ({"embedding": {"poling": "mean"}}, "did you mean 'pooling'?"),
            ({"generation": {"temprature": 0}}, "did you mean 'temperature'?")):
        try:
            card = card_of(NAMES, 1, **told)
        except ValueError as error:
            expect(f"{error}", why in str(error), True)
        else:
            raise Failure(f"{told} is taken: {card}")


def install(folder, **versions):
    """Installs nothing but the metadata of packages."""
    for name, version in versions.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                                       encoding="utf-8")


def ask(folder, script):
    """Runs |script| where no package is installed but those of |folder|."""
    path = os.pathsep.join([str(folder), str(PYTHON_PATH)])
    return subprocess.run([sys.executable, "-SW", "always", "-c", script], cwd=folder,
                          env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
                          timeout=RUN_S, check=False)


def versions():
    known = {"torch": "2.13.0+cpu", "executorch": "1.4.1", "transformers": "5.23.0"}
    names = ", ".join(repr(name) for name in known)
    for changed, why in (
            ({}, None), ({"torch": "2.12.1"}, "torch: expected 2.13 or newer, got 2.12.1: pip "
                         "install 'torch>=2.13,<3'"),
            ({"executorch": "1.3.0"}, "executorch: expected 1.4 or newer, got 1.3.0"),
            ({"transformers": "4.57.6"}, "transformers: expected 5.4 or newer, got 4.57.6"),
            ({"transformers": "5.4.0rc1"}, None),
            ({"transformers": None}, "transformers: expected 5.4 or newer, got none")):
        with tempfile.TemporaryDirectory() as name:
            install(Path(name), **{key: value for key, value in {**known, **changed}.items()
                                   if value})
            done = ask(name, f"{CHECK}check_packages({names})")
            expect(f"{changed}: {done.stderr}", done.returncode, 1 if why else 0)
            expect(done.stderr, (why or "") in done.stderr, True)
            expect("no word if all is well", why or done.stderr == "", why or True)
    with tempfile.TemporaryDirectory() as name:
        install(Path(name), executorch="1.6.0")
        done = ask(name, f"{CHECK}check_packages('executorch')")
        expect("newer", (done.returncode, "executorch: 1.6.0 was not tried, expected 1.4 or newer, "
                         "and older than 1.6" in done.stderr), (0, True))
    with tempfile.TemporaryDirectory() as name:
        install(Path(name), torch="2.4.0")
        done = ask(name, "from pted_server.export import export")
        expect("before anything else", done.stderr.splitlines()[-1],
               "ImportError: torch: expected 2.13 or newer, got 2.4.0: pip install "
               "'torch>=2.13,<3'")


def one_place():
    """The wheel's extra has the versions, the scripts of contrib/export were made with some of
    them, and pages name the extra."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(wheels.prepare_metadata_for_build_wheel(name))
        text = (Path(name) / folder / "METADATA").read_text(encoding="utf-8")
    asked = re.findall(r"^Requires-Dist: (.*); extra == 'export'$", text, re.MULTILINE)
    expect("[export]", sorted(asked),
           sorted(f"{name}>={first},<{untried}" for name, (first, untried) in PACKAGES.items()))
    for path in (SOURCE / "contrib" / "export" / "requirements.txt",
                 SOURCE / "tests" / "bench" / "peers.txt"):
        text = path.read_text(encoding="utf-8")
        pins = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
        for name in PACKAGES.keys() & pins.keys():
            first, untried = (release(version) for version in PACKAGES[name])
            expect(f"{path.name}: {name}", first <= release(pins[name]) < untried, True)
    count = 0
    for page in (SOURCE / "docs").rglob("*.md"):
        for line in page.read_text(encoding="utf-8").splitlines():
            if "pip install" in line and re.search(r"torch|transformers|\[export", line):
                expect(f"{page.name}: {line}", "~/pted/'python[export]'" in line
                       and not re.search("torch|transformers", line), True)
                count += 1
    expect("there are such pages", count > 2, True)


def main():
    report = Report()
    report.run_all((members, cards, refused, versions, one_place))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
