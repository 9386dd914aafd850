#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Classes with their labels in place of scores, against a real daemon.

usage: run_classes.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import signal
import struct
import sys
import tempfile
import threading
from pathlib import Path

from run_daemon import ADD, DIGITS, expect_exit
from run_http import Client, Daemon, Report, build_request, expect
from run_metrics import pick, read

NAMES = ["zero", "one", "two", "drei \u00e4\"\\", "", "five", "six", "seven"]  # two have none


def ask(client, outputs, model="digits", rows=2):
    """The status; the answer is client.body."""
    body = {"inputs": [{"name": "input_0", "datatype": "FP32", "shape": [rows, 1, 8, 8],
                        "data": [i * 0.1 for i in range(rows * 64)]}], "outputs": outputs}
    client.send(build_request("POST", f"/v2/models/{model}/infer", json.dumps(body).encode()))
    return client.answer()


def wanted(client, count, names):
    """The texts that the scores themselves lead to."""
    expect("scores", ask(client, [{"name": "output_0"}]), 200)
    output, = json.loads(client.body)["outputs"]
    texts = []
    for row in range(output["shape"][0]):
        scores = output["data"][10 * row:10 * row + 10]
        for index in sorted(range(10), key=lambda i: -scores[i])[:count]:
            label = f":{names[index]}" if index < len(names) else ""
            texts.append((scores[index], f":{index}{label}"))
    return texts


def check(texts, rows):
    """Scores are printed with six decimals."""
    expect("count", len(texts), len(rows))
    for text, (score, rest) in zip(texts, rows):
        number, rest_of_text = text.split(":", 1)
        expect("index and label", ":" + rest_of_text, rest)
        expect("score", abs(float(number) - score) < 1e-4 and len(number.split(".")[1]) == 6, True)


def classes(path):
    """With and without labels, as text and binary, a few and all."""
    for names, arguments in (([], []), (NAMES, ["--labels", f"digits={path}"])):
        with Daemon([DIGITS, *arguments]) as daemon:
            client = Client(daemon.port)
            rows = wanted(client, 3, names)
            output = {"name": "output_0", "parameters": {"classification": 3}}
            expect("infer", ask(client, [output]), 200)
            answer, = json.loads(client.body)["outputs"]
            expect("form", (answer["datatype"], answer["shape"]), ("BYTES", [2, 3]))
            check(answer["data"], rows)
            output["parameters"]["binary_data"] = True
            expect("binary", ask(client, [output]), 200)
            at = int(client.field("inference-header-content-length"))
            texts = []
            while at < len(client.body):
                size, = struct.unpack_from("<I", client.body, at)
                texts.append(client.body[at + 4:at + 4 + size].decode())
                at += 4 + size
            check(texts, rows)
            output["parameters"] = {"classification": 4294967295}
            expect("all", ask(client, [output]), 200)
            expect("shape", json.loads(client.body)["outputs"][0]["shape"], [2, 10])
            expect("both forms", ask(client, [{"name": "output_0"}]), 200)
            for bad in (-1, 1.5, "3", 2 ** 32):
                output["parameters"] = {"classification": bad}
                expect("refused", ask(client, [output]) in (400, 413), True)
            client.send(build_request("GET", "/v2"))
            expect("server", client.answer(), 200)
            expect("extension", "classification" in json.loads(client.body)["extensions"], True)


def lists(path):
    """In a list of calls, too."""
    with Daemon([DIGITS, "--labels", f"digits={path}"]) as daemon:
        client = Client(daemon.port)
        rows = wanted(client, 1, NAMES)
        call = {"model_name": "digits", "inputs": [
            {"name": "input_0", "datatype": "FP32", "shape": [2, 1, 8, 8],
             "data": [i * 0.1 for i in range(128)]}],
            "outputs": [{"name": "output_0", "parameters": {"classification": 1}}]}
        client.send(build_request("POST", "/v2/batch",
                                  json.dumps([call, call]).encode()))
        expect("list", client.answer(), 200)
        for answer in json.loads(client.body):
            check(answer["outputs"][0]["data"], rows)


def many(_):
    """The loop does not print thousands of classes itself, however small their scores are."""
    rows = 250
    with Daemon([DIGITS]) as daemon:
        caller, other = Client(daemon.port), Client(daemon.port)
        size = rows * 64 * 4

        def call(parameters):
            head = json.dumps({
                "inputs": [{"name": "input_0", "datatype": "FP32", "shape": [rows, 1, 8, 8],
                            "parameters": {"binary_data_size": size}}],
                "outputs": [{"name": "output_0", "parameters": parameters}]}).encode()
            caller.send(build_request("POST", "/v2/models/digits/infer", head + bytes(size),
                                      [f"Inference-Header-Content-Length: {len(head)}"]))
            return caller.answer()

        expect("makes the plan", call({"binary_data": True}), 200)
        most = 0
        for _ in range(1000):
            calling = threading.Thread(target=call, args=({"classification": 10},))
            calling.start()
            while calling.is_alive() and most == 0:
                other.send(build_request("GET", "/metrics"))
                expect("metrics", other.answer(), 200)
                most = pick(read(other.body.decode()), "pted_pool_tasks", 'kind="request"')
            calling.join()
            if most:
                break
        expect("tasks of the pool", most, 1)


def settings(path):
    """A document says it; SIGHUP with another file changes the labels; mistakes are named."""
    folder = Path(path).parent
    document = folder / "pted.json"
    document.write_text(json.dumps({"models": {"digits": {"path": DIGITS, "labels": "labels"}}}))
    with Daemon(["--config", str(document)]) as daemon:
        client = Client(daemon.port)
        output = [{"name": "output_0", "parameters": {"classification": 1}}]
        expect("infer", ask(client, output, rows=1), 200)
        text, = json.loads(client.body)["outputs"][0]["data"]
        (folder / "others").write_text("".join(f"class {i}\r\n" for i in range(10)))
        document.write_text(json.dumps({"models": {"digits": {"path": DIGITS,
                                                              "labels": "others"}}}))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("model files: 1 loaded")
        expect("infer", ask(client, output, rows=1), 200)
        fresh, = json.loads(client.body)["outputs"][0]["data"]
        index = text.split(":")[1]
        expect("label", fresh.split(":")[2], f"class {index}")
    expect_exit(66, "labels /none: No such file or directory", DIGITS, "--labels=digits=/none")
    expect_exit(64, "--labels digits=/dev/null: no model file is served as 'digits'", ADD,
                "--labels=digits=/dev/null")
    (folder / "long").write_bytes(b"x" * (9 << 20))
    expect_exit(69, f"labels {folder}/long: ", DIGITS, f"--labels=digits={folder}/long")


CHECKS = (classes, lists, many, settings)


def main():
    report = Report()
    for check_one in CHECKS:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "labels")
            Path(path).write_text("\n".join(NAMES), encoding="utf-8")
            report.run(check_one.__name__, check_one, path)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
