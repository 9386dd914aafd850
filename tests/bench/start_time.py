#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the time from the start of pted to its first correct answer, and its memory then.

The time begins just before the process is made. It ends when the correct answer to one digit image
has been read. The port is in pted's log. Prints the median of all starts, and the resident memory
of the last one: after that answer, and after all test images were sent as one batch.

usage: start_time.py [STARTS], with top_srcdir and top_builddir as in make check
"""
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
MODELS = SOURCE / "tests" / "models"
IMAGE_BYTES = 64


def load_images():
    raw = (MODELS / "digits" / "images.u8").read_bytes()
    labels = (MODELS / "digits" / "labels.u8").read_bytes()
    images = [[pixel / 16 for pixel in raw[i:i + IMAGE_BYTES]]
              for i in range(0, len(raw), IMAGE_BYTES)]
    return list(zip(images, labels))


def body(images):
    tensor = {"name": "input_0", "shape": [len(images), 1, 8, 8], "datatype": "FP32",
              "data": [pixel for image in images for pixel in image]}
    return json.dumps({"inputs": [tensor]})


def ask(connection, text):
    """Returns the digits that pted recognizes."""
    connection.request("POST", "/v2/models/digits/infer", text)
    answer = connection.getresponse()
    answer_body = json.loads(answer.read())
    if answer.status != 200:
        sys.exit(f"start_time: {answer_body}")
    data = answer_body["outputs"][0]["data"]
    rows = [data[i:i + 10] for i in range(0, len(data), 10)]
    return [row.index(max(row)) for row in rows]


def resident_kb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def start(text, label):
    """Returns the running process, a connection to it, and the milliseconds until the answer."""
    begin = time.perf_counter()
    pted = subprocess.Popen([BUILD / "pted", "--listen", "127.0.0.1:0", MODELS / "digits.pte"],
                            stderr=subprocess.PIPE, text=True)
    line = next((line for line in pted.stderr if "listening on" in line), None)
    if line is None:
        sys.exit("start_time: pted did not start")
    connection = http.client.HTTPConnection(line.split("//")[-1].strip())
    digit = ask(connection, text)
    spent = (time.perf_counter() - begin) * 1000
    if digit != [label]:
        sys.exit(f"start_time: a {label} was taken for {digit}")
    return pted, connection, spent


def main():
    samples = load_images()
    image, label = samples[0]
    text = body([image])
    times = []
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 9):
        pted, connection, spent = start(text, label)
        times.append(spent)
        first_kb = resident_kb(pted.pid)
        ask(connection, body([image for image, _ in samples]))
        all_kb = resident_kb(pted.pid)
        connection.close()
        pted.terminate()
        pted.communicate()
    print(f"first_answer_ms: {statistics.median(times):.1f} (fastest {min(times):.1f})")
    print(f"resident_kb: {first_kb} after the first answer")
    print(f"resident_kb_batch: {all_kb} after a batch of {len(samples)} images")


main()
