#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files of models are truncated or overwritten while they are served. The daemon stays alive, no
answer comes from changed content, and other models are not affected.

usage: run_changed_files.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import shutil
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

from load import get_json, wait_until
from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

THREADS = 3
CHANGED = "changed on disk since it was loaded"
BODY = json.dumps({"inputs": [{"name": "input_0", "shape": [3, 1, 8, 8], "datatype": "FP32",
                               "data": [n % 17 / 17 for n in range(192)]}]}).encode()
LIST = json.dumps([{"id": name, "model_name": name, **json.loads(BODY)}
                   for name in ("steady", "victim")]).encode()
PIPELINES = {"chain": {"steps": [{"model": "victim", "inputs": [{"input": 0}]}]}}


def infer(client, model):
    client.send(build_request("POST", f"/v2/models/{model}/infer", BODY))
    return client.answer()


def outputs(client):
    return json.loads(client.body)["outputs"]


def index_row(daemon, name):
    client = Client(daemon.port)
    client.send(build_request("POST", "/v2/repository/index", b""))
    expect("index", client.answer(), 200)
    return next(row for row in json.loads(client.body) if row["name"] == name)


@contextmanager
def served():
    """Yields the daemon, the victim's path and the right answers of both models."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model in ("victim", "steady"):
            shutil.copy(MODELS / "digits.pte", folder / f"{model}.pte")
        (folder / "pipelines.json").write_text(json.dumps(PIPELINES))
        arguments = ["--workers=2", "--models", name, "--pipeline", f"{name}/pipelines.json"]
        with Daemon(arguments) as daemon:
            client = Client(daemon.port)
            expect("victim", infer(client, "victim"), 200)
            yield daemon, folder / "victim.pte", outputs(client)


class Load:
    """Sends requests to both models without a pause."""

    def __init__(self, daemon, right):
        self.right, self.failures = right, []
        self.counts = {"victim": 0, "steady": 0}  # of answers
        self.has_ended = False
        self.threads = [threading.Thread(target=self.run, args=(daemon.port, model))
                        for model in ("victim", "steady") for _ in range(THREADS)]

    def run(self, port, model):
        try:
            client = Client(port)
            while not self.has_ended:
                self.check(model, client, infer(client, model))
                self.counts[model] += 1
        except (Failure, OSError, ValueError) as failure:
            self.failures.append(failure)

    def check(self, model, client, status):
        if status == 503 and model == "victim" and CHANGED in json.loads(client.body)["error"]:
            return
        expect(f"{model}: {client.body[:300]}", status, 200)
        expect(model, outputs(client), self.right)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.wait(20)
        return self

    def wait(self, answers):
        """Waits until each model has given |answers| more answers."""
        goals = {model: count + answers for model, count in self.counts.items()}
        wait_until("answers", lambda: self.failures or all(
            self.counts[model] >= goal for model, goal in goals.items()))

    def __exit__(self, *_):
        self.has_ended = True
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


def expect_refused(daemon, reason):
    """Every route refuses to run the victim, but its metadata are still answered."""
    client = Client(daemon.port)
    for model in ("victim", "chain"):
        expect(model, infer(client, model), 503)
        text = json.loads(client.body)["error"]
        if CHANGED not in text or reason not in text or "victim.pte" not in text:
            raise Failure(f"{model}: {text}")
        row = index_row(daemon, model)
        expect(f"state of {model}", row["state"], "UNAVAILABLE")
        if reason not in row["reason"]:
            raise Failure(f"index: {row}")
        client.send(build_request("GET", f"/v2/models/{model}/ready"))
        expect(f"{model} ready", client.answer(), 503)
    expect("steady", infer(client, "steady"), 200)
    expect("state of steady", index_row(daemon, "steady")["state"], "READY")
    client.send(build_request("POST", "/v2/batch", LIST))
    expect("list", client.answer(), 200)
    expect("list", [answer["status"] for answer in json.loads(client.body)], [200, 503])
    get_json(client, "/v2/health/ready")


def truncated():
    with served() as (daemon, path, right):
        with Load(daemon, right) as load:
            os.truncate(path, 4096)
            load.wait(50)
        expect_refused(daemon, "it has 4096 bytes, it had")


def truncated_to_nothing():
    with served() as (daemon, path, right):
        with Load(daemon, right) as load:
            os.truncate(path, 0)
            load.wait(50)
        expect_refused(daemon, "it has 0 bytes, it had")


def overwritten():
    """The size stays the same. After the write no request for the model succeeds."""
    with served() as (daemon, path, _), open(path, "r+b", buffering=0) as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"\x40" * 8192)
        expect_refused(daemon, "it was written to")


def overwritten_under_load():
    with served() as (daemon, path, right), open(path, "r+b", buffering=0) as file:
        with Load(daemon, right) as load:
            file.write(bytes(path.stat().st_size))
            load.wait(50)
        expect_refused(daemon, "it was written to")


def seen_without_a_request():
    with served() as (daemon, path, _):
        os.truncate(path, 4096)
        expect("state", index_row(daemon, "victim")["state"], "UNAVAILABLE")
        expect_refused(daemon, "it has 4096 bytes, it had")


def replaced():
    """Replacing the file under its name or changing only its attributes does no harm."""
    with served() as (daemon, path, right):
        with Load(daemon, right) as load:
            path.chmod(0o400)
            path.chmod(0o600)
            os.link(path, path.with_suffix(".link"))
            other = path.with_suffix(".new")
            shutil.copy(MODELS / "mlp.pte", other)
            os.replace(other, path)
            load.wait(50)
            os.unlink(path)
            os.unlink(path.with_suffix(".link"))
            load.wait(50)
        client = Client(daemon.port)
        expect("victim", infer(client, "victim"), 200)
        expect("victim", outputs(client), right)
        expect("state", index_row(daemon, "victim")["state"], "READY")


CHECKS = (truncated, truncated_to_nothing, overwritten, overwritten_under_load,
          seen_without_a_request, replaced)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
