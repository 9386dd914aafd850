#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One copy of every weight: methods and programs that share weights, what statistics, metrics and
--model-bytes-max say of them, and that they stay while one of their users does.

usage: run_weights.py, with top_srcdir and top_builddir in the environment
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

WEIGHTS = MODELS / "weights"
ANSWERS = json.loads((WEIGHTS / "answers.json").read_text())
ONES = [[1.0] * 64]
DATA = WEIGHTS / "foundation.ptd"


def ask(port, path, body=None):
    client = Client(port)
    client.send(build_request("POST", path, json.dumps(body).encode()) if body is not None
                else build_request("GET", path))
    status = client.answer()
    client.close()
    return status, client.body


def get(port, path):
    status, body = ask(port, path)
    expect(path, status, 200)
    return body.decode()


def serve(*names, options=()):
    """A daemon of files of the folder, each of which may read the data file."""
    arguments = list(options)
    for name in names:
        arguments += [str(WEIGHTS / f"{name}.pte")]
        if name in ANSWERS:
            arguments += ["--data", f"{name}={DATA}"]
    return Daemon(["--admin-listen", "127.0.0.1:0", *arguments])


def weights_of(port, model):
    stats = json.loads(get(port, f"/v2/models/{model}/stats"))
    return stats["model_stats"][0]["weights"]


def all_weights(port):
    return json.loads(get(port, "/v2/models/stats"))["memory"]["weights"]


def expect_answer(port, model, wanted):
    status, body = ask(port, f"/v2/models/{model}/call", {"args": [ONES]})
    expect(model, status, 200)
    got = json.loads(body)["result"][0]
    scale = max(map(abs, wanted))
    if max(abs(a - b) for a, b in zip(got, wanted)) > 0.02 * scale:
        raise Failure(f"{model}: got {got[:4]}, expected {wanted[:4]}")


def expect_most(what, got, most):
    if got > most:
        raise Failure(f"{what}: got {got}, expected at most {most}")


def methods_of_a_file():
    with serve("one") as daemon:
        one = all_weights(daemon.port)
        own = weights_of(daemon.port, "one")
        expect("own", (own["own"], own["shared"]), (one, 0))
    with serve("two") as daemon:
        expect_most("two methods", all_weights(daemon.port), one * 1.05)
        expect_answer(daemon.port, "two.decode", ANSWERS["base"])
        own = weights_of(daemon.port, "two.prefill")
        expect("both", weights_of(daemon.port, "two.decode"), own)


def programs_over_a_data_file():
    with serve("base") as daemon:
        base = all_weights(daemon.port)
    with serve("base", "adapter", "copy") as daemon:
        port = daemon.port
        adapter = weights_of(port, "adapter")
        before = weights_of(port, "base")
        expect("base's own", (before["own"], before["shared"]), (0, base))
        expect("shared", adapter["shared"] > 0, True)
        expect_most("all three", all_weights(port), base + adapter["own"] * 1.1)
        page = get(port, "/metrics")
        for line in (f"pted_weight_bytes {all_weights(port)}",
                     f'pted_model_weight_bytes{{model="adapter",version="1",kind="own"}} '
                     f'{adapter["own"]}'):
            if line not in page:
                raise Failure(f"no {line} in the metrics")
        for model, root in (("base", "base"), ("adapter", "base"), ("copy", "copy")):
            expect(f"root of {model}", json.loads(get(port, f"/v1/models/{model}"))["root"], root)
        for model in ("base", "adapter", "copy"):
            expect_answer(port, model, ANSWERS.get(model, ANSWERS["base"]))
        for model in ("copy", "base"):
            expect(f"unload {model}", ask(daemon.admin_port(),
                                          f"/v2/repository/models/{model}/unload", {})[0], 200)
        expect_answer(port, "adapter", ANSWERS["adapter"])
        expect("load", ask(daemon.admin_port(), "/v2/repository/models/base/load", {})[0], 200)
        expect("as before", weights_of(port, "base"), before)
        expect_answer(port, "base", ANSWERS["base"])


def packed_files():
    """A folder of packed weights has each of them once, too."""
    def fill(folder, *names):
        for _ in range(2):
            with serve(*names, options=("--packed-dir", str(folder))) as daemon:
                for name in names:
                    if name in ANSWERS:
                        expect_answer(daemon.port, name, ANSWERS[name])
        return sum(file.stat().st_size for file in folder.glob("*.packed"))
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / part for part in ("one", "two")]
        one, two = fill(folders[0], "one"), fill(folders[1], "two")
        expect_most("two methods on disk", two, one * 1.05)


def room_for_both():
    """Weights that two files have count once for --model-bytes-max."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("base.pte", "adapter.pte"):
            shutil.copy(WEIGHTS / file, folder)
        with serve("base", "adapter") as daemon:
            room = all_weights(daemon.port) + sum(
                weights_of(daemon.port, model)["rest"] for model in ("base", "adapter"))
        data = [word for model in ("base", "adapter") for word in ("--data", f"{model}={DATA}")]
        for limit, wanted in ((room, ["READY", "READY"]), (room - 1, ["READY", "UNKNOWN"])):
            options = ["--models", str(folder), *data, "--model-bytes-max", str(limit)]
            with Daemon(options) as daemon:
                for model in ("base", "adapter", "base"):
                    expect_answer(daemon.port, model, ANSWERS[model])
                _, body = ask(daemon.port, "/v2/repository/index", {})
                expect(f"states with {limit}", sorted(
                    row["state"] for row in json.loads(body)), wanted)


def main():
    report = Report()
    report.run_all((methods_of_a_file, programs_over_a_data_file, packed_files, room_for_both))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
