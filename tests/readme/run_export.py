#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pted_server.export: models with their cards, which `pte card --check` accepts and a
daemon serves.

PYTHON names an interpreter that has ExecuTorch; without it the test is skipped.

usage: run_export.py, with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
sys.path.insert(0, str(SOURCE / "tests" / "http"))

from run_http import Client, Daemon, Report, build_request, expect  # noqa: E402  beside this folder
from run_media import b64, png  # noqa: E402  as above

PYTHON = os.environ.get("PYTHON", sys.executable)
PTE = Path(os.environ.get("PTE", BUILD / "pte")).resolve()
EXPORT_S = 600

SCRIPT = '''
import torch
from pted_server.export import export

class Pair(torch.nn.Module):
    def forward(self, image, scale, *, bias):
        return (image * scale + bias).sum(-1), image.mean()

class Nested(torch.nn.Module):
    def forward(self, pairs, options):
        return {"total": pairs[0] - pairs[1] + options["shift"]}

class Rest(torch.nn.Module):
    def forward(self, *parts):
        return parts[0] - parts[1]

batch = torch.export.Dim("batch", max=8)
export(Pair(), (torch.rand(2, 3, 4), torch.ones(3, 4)), "pair.pte", {"bias": torch.ones(())},
       dynamic_shapes={"image": {0: batch}, "scale": None, "bias": None},
       outputs=["scores", "mean"], labels={"scores": ["low", "mid", "h\\u00f6h"]},
       description="an example", shapes=[{"image": (4, 3, 4)}], max_batch=2)
export(Nested(), ([torch.ones(2), torch.zeros(2)], {"shift": torch.ones(2)}), "nested.pte",
       backend="portable", labels=["left", "right"])
export(Rest(), (torch.ones(2), torch.zeros(2)), "rest.pte", backend="portable")

class Filled(torch.nn.Module):  # its state is computed from its weights
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([1.0, 2.0, 4.0]))
        self.register_buffer("twice", self.scale * 2)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen.add_(self.scale * x)
        return {"logits": (self.seen * self.twice).reshape(1, 3), "sum": self.seen.sum()}

export(Filled(), (torch.ones(3),), "filled.pte", inputs={"x": {"description": "three numbers"}},
       outputs={"logits": {"labels": ["low", "mid", "high"], "steps": [{"softmax": 1}],
                           "answer": {"classes": 2}}, "sum": "total"})

class ImageClassification:  # as torchvision's, which need not be installed
    resize_size, crop_size, interpolation = [20], [16], "bilinear"
    mean, std = (0.5, 0.25, 0.125), (0.5, 0.5, 0.25)

class Detection:
    pass

class Weights:
    transforms = ImageClassification
    meta = {"categories": ["dark", "bright"]}

class OtherWeights(Weights):
    transforms = Detection

class Light(torch.nn.Module):
    def forward(self, x):
        light = x.mean((1, 2, 3))
        return torch.stack([-light, light], 1)

pixels = torch.rand(1, 3, 16, 16)
export(Light(), (pixels,), "light.pte", backend="portable", weights=Weights)
for net, weights, text in ((Light(), OtherWeights, "classifier"),
                           (torch.nn.BatchNorm2d(3), None, "eval()")):
    try:
        export(net, (pixels,), "x.pte", weights=weights)
        raise SystemExit(f"{net} is taken")
    except ValueError as why:
        assert text in str(why), why
for bad, text in ((dict(path="x.bin"), "NAME.pte"), (dict(path="x.pte", backend="z"), "backend"),
                  (dict(path="x.pte", outputs=["a"], labels={"b": []}), "labels"),
                  (dict(path="x.pte", outputs={"a": {"lables": []}}), "did you mean 'labels'"),
                  (dict(path="x.pte", inputs=["a", "b", "c"]), "expected at most 2"),
                  (dict(path="x.pte", outptus=["a"]), "did you mean 'outputs'")):
    try:
        export(Rest(), (torch.ones(2), torch.zeros(2)), **bad)
        raise SystemExit(f"{bad} is taken")
    except ValueError as why:
        assert text in str(why), why
'''


def has_executorch():
    done = subprocess.run([PYTHON, "-c", "import executorch.exir, torch"], cwd="/",
                          capture_output=True, check=False)
    return done.returncode == 0


def run(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=EXPORT_S,
                          check=False, env={**os.environ, **environment})
    expect(f"{command[0]}: {done.stdout}{done.stderr}"[-2000:], done.returncode, 0)
    return done.stdout


def ask(port, path, body=None):
    client = Client(port)
    content = b"" if body is None else json.dumps(body).encode()
    client.send(build_request("GET" if body is None else "POST", path, content))
    status = client.answer()
    client.close()
    return status, json.loads(client.body)


def names(port, model):
    _, meta = ask(port, f"/v2/models/{model}")
    return ([io["name"] for io in meta["inputs"]], [io["name"] for io in meta["outputs"]])


def exports(folder):
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    run([PYTHON, "script.py"], folder, PYTHONPATH=str(SOURCE / "python"))
    for name in ("pair", "nested", "rest", "light", "filled"):
        run([PTE, "card", "--check", f"{name}.card.json", f"{name}.pte"], folder)
    with Daemon(["--models", str(folder)]) as daemon:
        port = daemon.port
        expect("pair", names(port, "pair"), (["image", "scale", "bias"], ["scores", "mean"]))
        expect("nested", names(port, "nested"), (["pairs.0", "pairs.1", "shift"], ["total"]))
        expect("filled", names(port, "filled"), (["x"], ["logits", "total"]))
        status, answer = ask(port, "/v2/models/filled/call", {"args": [[0.25, 0.25, 0.25]]})
        best = answer["result"]["logits"][0]
        expect("labels, steps and answer", (status, [entry["label"] for entry in best],
                                            round(best[0]["score"], 4), answer["result"]["total"]),
               (200, ["high", "mid"], 0.997, 1.75))
        expect("rest", names(port, "rest"), (["parts.0", "parts.1"], ["output_0"]))
        image = {"dtype": "float32", "shape": [1, 3, 4], "fill": 2}
        scale = [[1] * 4, [3] * 4, [2] * 4]
        status, answer = ask(port, "/v2/models/pair/call", {
            "kwargs": {"scale": scale, "image": image, "bias": 0}, "parameters": {"top_k": 2}})
        expect("call", (status, answer["result"][0]), (200, [[
            {"label": "mid", "index": 1, "score": 24.0},
            {"label": "h\u00f6h", "index": 2, "score": 16.0}]]))
        daemon.wait_for("model pair: requests|model pair: .*requests run alone")
        status, answer = ask(port, "/v2/models/nested/call", {
            "args": [[[1, 2], [0, 1]], {"shift": [0, 5]}], "parameters": {"top_k": 1}})
        expect("nested", answer["result"]["total"], [{"label": "right", "index": 1, "score": 6.0}])
        white = {"base64": b64(png([(255, 255, 255)] * 600, 30))}
        status, answer = ask(port, "/v2/models/light/call", {
            "args": [white], "parameters": {"top_k": 1}})
        best = answer["result"][0][0]
        expect("light", (status, best["label"], best["index"]), (200, "bright", 1))
        expect("softmax of -2 and 2", round(best["score"], 4), 0.982)


def main():
    if not has_executorch():
        print(f"{PYTHON} has no ExecuTorch: skipped")
        return 77
    if not ctypes.util.find_library("png16"):
        print("libpng16 is not installed: skipped")
        return 77
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        report.run("exports", exports, Path(folder))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
