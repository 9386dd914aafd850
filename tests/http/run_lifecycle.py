#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that come and go while they are served: the repository extension of the protocol, SIGHUP,
--watch, new generations of a model under load, and sequences that are open across a reload.

usage: run_lifecycle.py, with top_srcdir and top_builddir in the environment. With ROUNDS=1000 the
reloads under load are as many.
"""
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from load import bytes_of_first, wait_until
from run_daemon import expect_exit
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect

ROUNDS = int(os.environ.get("ROUNDS", "100"))
CLIENTS = 4
# What the C library and the threads keep beside the models, after a reload.
RESIDENT_SLACK = 1.05
ADD_BODY = json.dumps({"inputs": [
    {"name": f"input_{i}", "shape": [2, 3], "datatype": "FP32", "data": [i + 1] * 6}
    for i in range(2)]}).encode()
X = [[1.0, 2.0, 3.0]]


def put(folder, name, model):
    """Renames a copy into its place, as an operator does. Without |model| the file is damaged."""
    path = folder / f"{name}.pte"
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.parent / f".{path.name}.new"
    if model:
        shutil.copy(MODELS / f"{model}.pte", hidden)
    else:
        hidden.write_bytes(b"no program, although it has a few bytes")
    os.replace(hidden, path)


@contextmanager
def served(files, *arguments, pipelines=None, **named):
    """Yields the daemon and its folder, in which each name of |files| is that model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "models"
        folder.mkdir()
        for file, model in files.items():
            put(folder, file, model)
        if pipelines:
            (Path(name) / "pipelines.json").write_text(json.dumps(pipelines))
            arguments += ("--pipeline", f"{name}/pipelines.json")
        with Daemon(["--models", str(folder), "--admin-listen", "127.0.0.1:0", *arguments],
                    **named) as daemon:
            yield daemon, folder


def post(port, path, body=b""):
    client = Client(port)
    client.send(build_request("POST", path, body))
    status = client.answer()
    client.close()
    return status, client.body


def change(daemon, verb, model, body=b""):
    """Loads or unloads |model|; returns the status and the text of the error, if there is one."""
    status, answer = post(daemon.admin_port(), f"/v2/repository/models/{model}/{verb}", body)
    return status, json.loads(answer)["error"] if answer else ""


def expect_change(daemon, verb, model, body=b""):
    status, text = change(daemon, verb, model, body)
    if status != 200:
        raise Failure(f"{verb} {model}: {status} {text}")


def index(daemon):
    _, body = post(daemon.port, "/v2/repository/index")
    return {(row["name"], row["version"]): (row["state"], row.get("reason", ""))
            for row in json.loads(body)}


def state(daemon, name, version="1"):
    return index(daemon).get((name, version), ("ABSENT", ""))[0]


def infer_add(port, model="add"):
    return post(port, f"/v2/models/{model}/infer", ADD_BODY)[0]


def call(port, model, args, **parameters):
    status, body = post(port, f"/v2/models/{model}/call",
                        json.dumps({"args": args, "parameters": parameters}).encode())
    return json.loads(body)["result"] if status == 200 else status


def wait_for_state(daemon, name, wanted, version="1"):
    wait_until(f"{name} is {wanted}", lambda: state(daemon, name, version) == wanted)


# ---- requests of administrators ----

def only_for_administrators():
    with served({"add": "add"}) as (daemon, _):
        for verb in ("load", "unload"):
            status, body = post(daemon.port, f"/v2/repository/models/add/{verb}")
            expect(verb, status, 403)
            if "--admin-listen" not in json.loads(body)["error"]:
                raise Failure(f"{body!r}")
        expect("infer", infer_add(daemon.port), 200)
        expect("infer as administrator", infer_add(daemon.admin_port()), 200)


def admin_socket_of_systemd():
    """RuntimeDirectory= gives the folder of the socket for administrators."""
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "RUNTIME_DIRECTORY": f"{name}:/nowhere"}
        with Daemon([str(MODELS / "add.pte")], env=environment) as daemon:
            client = socket.socket(socket.AF_UNIX)
            client.connect(f"{name}/admin.sock")
            client.sendall(build_request("POST", "/v2/repository/models/add/load", b""))
            answer = client.recv(4096)
            if not answer.startswith(b"HTTP/1.1 200 "):
                raise Failure(f"{answer!r}")
            client.close()
            expect("infer", infer_add(daemon.port), 200)
        expect("a socket is left", os.path.exists(f"{name}/admin.sock"), False)


def load_and_unload():
    with served({"add": "add", "digits": "digits"}) as (daemon, folder):
        expect_change(daemon, "unload", "add")
        expect("index", index(daemon)[("add", "1")], ("UNAVAILABLE", "unloaded"))
        expect("infer", infer_add(daemon.port), 503)
        expect_change(daemon, "unload", "add")
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for("model files: 0 loaded, 0 failed, 0 gone")
        expect("after SIGHUP", state(daemon, "add"), "UNAVAILABLE")
        expect_change(daemon, "load", "add", b'{"parameters": {}}')
        expect("infer", infer_add(daemon.port), 200)
        put(folder, "late", "add")
        expect("a file that nobody has looked for", infer_add(daemon.port, "late"), 404)
        expect_change(daemon, "load", "late")
        expect("late", infer_add(daemon.port, "late"), 200)
        expect("digits", state(daemon, "digits"), "READY")


def refused_changes():
    with served({"add": "add"}) as (daemon, folder):
        expect("unknown", change(daemon, "load", "nope")[0], 404)
        expect("unknown", change(daemon, "unload", "nope")[0], 404)
        for body in (b'{"parameters":{"config":"{}"}}',
                     b'{"parameters":{"file:1/model.pte":"AAAA"}}'):
            expect("a model in the request", change(daemon, "load", "add", body)[0], 501)
        for body in (b"[]", b"{", b'{"parameters": 1}', b'{"parameters": {}} x',
                     b'{"parameters": {"unload_dependents": 1}}'):
            expect(f"{body!r}", change(daemon, "unload", "add", body)[0], 400)
        put(folder, "bad", None)
        status, text = change(daemon, "load", "bad")
        expect("a bad file", status, 400)
        expect(f"its path in {text!r}", str(folder) in text, False)
        expect("add", infer_add(daemon.port), 200)
        expect("bad", state(daemon, "bad"), "ABSENT")


def client_that_does_not_wait():
    with served({"add": "add"}) as (daemon, _):
        for _ in range(20):
            client = Client(daemon.admin_port())
            client.send(build_request("POST", "/v2/repository/models/add/load", b""))
            client.reset()
        wait_until("all loads", lambda: len(
            daemon.read_log().split("model files: 1 loaded")) > 10)
        expect("add", infer_add(daemon.port), 200)


# ---- files ----

def no_models_yet():
    """A folder without models is served, and says how they come: at once with --watch, else by
    SIGHUP or by a request."""
    with tempfile.TemporaryDirectory() as name:
        def come(daemon, model):
            shutil.copy(MODELS / "add.pte", Path(name) / f"{model}.new")
            os.rename(Path(name) / f"{model}.new", Path(name) / f"{model}.pte")
            return lambda: state(daemon, model) == "READY"

        arguments = ["--models", name, "--admin-listen", "127.0.0.1:0"]
        with Daemon([*arguments, "--watch"]) as daemon:
            daemon.wait_for("notice: no models yet: those that come into the folders are loaded\n")
            expect("no model", state(daemon, "one"), "ABSENT")
            wait_until("a file that comes", come(daemon, "one"))
            expect("warnings", daemon.read_log().count("no models yet"), 1)
        os.unlink(Path(name) / "one.pte")
        with Daemon(arguments) as daemon:
            daemon.wait_for("warning: no models yet: SIGHUP, or a request to load one, loads ")
            is_ready = come(daemon, "two")
            expect_change(daemon, "load", "two")
            expect("after a request", is_ready(), True)
            is_ready = come(daemon, "three")
            os.kill(daemon.process.pid, signal.SIGHUP)
            wait_until("after SIGHUP", is_ready)
        with Daemon([], env={**os.environ, "PTED_MODELS": name}) as daemon:
            daemon.wait_for("serving 2 of 2 models")
            expect("advice", "no models yet" in daemon.read_log(), False)


def folder_that_comes():
    """With --watch a folder may come after the start, such as the link that KServe makes. Once
    models came from it, they stay while it is away."""
    with tempfile.TemporaryDirectory() as name:
        folder, real, other = (Path(name) / part for part in ("models", "real", "other"))
        other.mkdir()
        expect_exit(66, f"folder of models {folder}: No such file", "--models", str(folder))
        with Daemon(["--models", str(folder), "--watch", "--models", str(other)]
                    ) as daemon:
            daemon.wait_for(f"warning: folder of models {folder}: No such file or directory; its "
                            "models are loaded when it comes")
            daemon.wait_for("notice: no models yet: those that come into the folders are loaded")
            shutil.copy(MODELS / "add.pte", other / "other.pte")
            wait_until("a model beside it", lambda: state(daemon, "other") == "READY")
            real.mkdir()
            shutil.copy(MODELS / "add.pte", real / "late.pte")
            os.symlink("real", folder)
            wait_until("a model in it", lambda: state(daemon, "late") == "READY")
            os.unlink(folder)
            daemon.wait_for(f"folder of models {folder}: No such file or directory; nothing has ")
            expect("while it is away", infer_add(daemon.port, "late"), 200)
            os.symlink("real", folder)
            shutil.copy(MODELS / "add.pte", real / "later.pte")
            wait_until("when it is back", lambda: state(daemon, "later") == "READY")
            expect("the first one", infer_add(daemon.port, "late"), 200)


def sighup():
    with served({"add": "add"}) as (daemon, folder):
        put(folder, "two", "add")
        put(folder, "add", "residual")
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_for_state(daemon, "two", "READY")
        daemon.wait_for("model files: 2 loaded, 0 failed, 0 gone, 0 unchanged; serving 2 of 2")
        os.unlink(folder / "two.pte")
        put(folder, "add", None)
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_for_state(daemon, "two", "ABSENT")
        is_ready, reason = index(daemon)[("add", "1")]
        expect("the old one goes on", is_ready, "READY")
        expect(f"a reason: {reason!r}", reason != "", True)
        put(folder, "add", "add")
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_until("no reason", lambda: index(daemon)[("add", "1")] == ("READY", ""))
        expect("infer", infer_add(daemon.port), 200)


def watched():
    with served({"add": "add"}, "--watch") as (daemon, folder):
        put(folder, "two", "add")
        wait_for_state(daemon, "two", "READY")
        put(folder, "inner/3/model", "add")
        wait_for_state(daemon, "inner", "READY", "3")
        put(folder, "inner/4/model", "add")
        wait_for_state(daemon, "inner", "READY", "4")
        shutil.rmtree(folder / "inner" / "3")
        wait_for_state(daemon, "inner", "ABSENT", "3")
        os.unlink(folder / "two.pte")
        wait_for_state(daemon, "two", "ABSENT")
        data = (MODELS / "add.pte").read_bytes()
        with open(folder / "slow.pte", "wb") as file:  # not complete before it is closed
            file.write(data[:500])
            file.flush()
            put(folder, "other", "add")
            wait_for_state(daemon, "other", "READY")
            file.write(data[500:])
        wait_for_state(daemon, "slow", "READY")
        put(folder, "bad", None)  # nothing else changes
        wait_for_state(daemon, "bad", "UNAVAILABLE")
        daemon.wait_for("model files: 0 loaded, 1 failed, 0 gone, 4 unchanged; serving 4 of 5")
        expect("a bad file", infer_add(daemon.port, "bad"), 503)
        put(folder, "bad", "add")
        wait_for_state(daemon, "bad", "READY")
        expect("add", infer_add(daemon.port), 200)


def loads_of(daemon, name):
    return daemon.read_log().count(f"info: model {name}: input_0")


def files_beside_programs():
    """A tokenizer that comes after its program, or changes, is seen as a change of its models."""
    chat = MODELS / "chat"
    body = json.dumps({"model": "talker", "prompt": "What", "max_tokens": 1}).encode()
    with served({"add": "add", "talker/model": "chat/model"}, "--watch") as (daemon, folder):
        def status_of():
            return post(daemon.port, "/v1/completions", body)[0]
        expect("without a tokenizer", status_of(), 400)
        shutil.copy(chat / "tokenizer.json", folder / "talker")
        wait_until("the tokenizer", lambda: status_of() == 200)
        (folder / "talker" / "tokenizer.json").write_text("{}")
        daemon.wait_for("tokenizer.json: .*the one that was loaded before goes on")
        expect("with the old tokenizer", status_of(), 200)
        (folder / "talker" / "tokenizer.json").unlink()
        wait_until("the end of the tokenizer", lambda: status_of() == 400)
        expect("loads of a model that reads no texts", loads_of(daemon, "add"), 1)


def tokenizers_that_count():
    """The tokenizer of a model is the one that was said for it, or the one that is beside it by
    the name of its file. Changes of others load nothing again; nor do they if pictures alone are
    its media."""
    vocabulary = MODELS / "chat" / "tokenizer.json"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in ("talker.bin", "said.pte"):
            shutil.copy(MODELS / "chat" / "model.pte", folder / file)
        shutil.copy(MODELS / "digits.pte", folder)
        (folder / "digits.card.json").write_text(json.dumps(
            {"inputs": {"input_0": {"image": {"colors": "gray"}}}}))
        (folder / "words").mkdir()
        words = folder / "words" / "a.json"
        shutil.copy(vocabulary, words)
        with Daemon([f"--model=talker={folder}/talker.bin", f"--model=said={folder}/said.pte",
                     f"--tokenizer=said={words}", str(folder / "digits.pte")]) as daemon:
            def status_of(model):
                body = json.dumps({"model": model, "prompt": "What", "max_tokens": 1}).encode()
                return post(daemon.port, "/v1/completions", body)[0]
            expect("at first", (status_of("said"), status_of("talker")), (200, 400))
            shutil.copy(vocabulary, folder / "talker.tokenizer.json")
            daemon.process.send_signal(signal.SIGHUP)
            wait_until("the tokenizer", lambda: status_of("talker") == 200)
            shutil.copy(vocabulary, folder / "tokenizer.json")
            daemon.process.send_signal(signal.SIGHUP)
            words.write_text("{}")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for("said.pte: a.json: .*the one that was loaded before goes on")
            expect("with the old tokenizer", status_of("said"), 200)
            expect("loads", (loads_of(daemon, "digits"), loads_of(daemon, "said")), (1, 1))


def weights_that_count():
    """The weights of a model are in the files of its --data; others in its folder change nothing.
    A model that failed may have failed because of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put(folder, "broken", None)
        weights = folder / "weights"
        weights.write_bytes(b"x")
        with Daemon(["--models", name, "--watch", f"--data=broken={weights}"]) as daemon:
            def tries():
                return daemon.read_log().count("broken.pte: ")
            wait_until("the first try", lambda: tries() == 1)
            (folder / "other.ptd").write_bytes(b"x")
            put(folder, "add", "add")
            wait_for_state(daemon, "add", "READY")
            expect("tries", tries(), 1)
            weights.write_bytes(b"longer")
            wait_until("the second try", lambda: tries() == 2)


def reasons_without_folders():
    """Clients see why a tokenizer does not fit, but not where it is."""
    with tempfile.TemporaryDirectory() as name:
        for model, words in (("chat", "encoder"), ("whisper", "chat")):
            folder = Path(name) / model
            folder.mkdir()
            shutil.copy(MODELS / model / "model.pte", folder)
            shutil.copy(MODELS / words / "tokenizer.json", folder)
        with Daemon(["--models", name]) as daemon:
            rows = index(daemon)
            expect("models", len(rows), 2)
            for (model, _), (is_now, reason) in rows.items():
                expect(model, (is_now, reason.partition(" the tokenizer has ")[0]),
                       ("UNAVAILABLE", "tokenizer.json:"))


def replaced_folders():
    """The folder of --models is a link to another one, or is made again."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for folder, model in (("one", "add"), ("two", "residual")):
            put(place / folder, model, model)
        (place / "models").symlink_to("one")
        with Daemon(["--models", str(place / "models"), "--watch"]) as daemon:
            expect("add", state(daemon, "add"), "READY")
            (place / "next").symlink_to("two")
            os.replace(place / "next", place / "models")
            wait_for_state(daemon, "residual", "READY")
            expect("add", state(daemon, "add"), "ABSENT")
            put(place / "two", "late", "add")
            wait_for_state(daemon, "late", "READY")
            os.unlink(place / "models")
            daemon.wait_for("looking for changed models: folder of models .*: No such file")
            expect("models go on", state(daemon, "late"), "READY")
            put(place / "models", "again", "add")
            wait_for_state(daemon, "again", "READY")
            expect("late", state(daemon, "late"), "ABSENT")


def versions():
    files = {f"net/{version}/model": "add" for version in (1, 2, 3, 10)}
    with served(files, "--set", "net:version-count-max=2") as (daemon, folder):
        expect("versions", sorted(index(daemon)), [("net", "10"), ("net", "3")])
        put(folder, "net/11/model", "add")
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_for_state(daemon, "net", "READY", "11")
        expect("versions", sorted(index(daemon)), [("net", "10"), ("net", "11")])
        expect_change(daemon, "unload", "net")
        expect("all versions", {row[0] for row in index(daemon).values()}, {"UNAVAILABLE"})
    with served(files, "--versions", "net=1,4,10") as (daemon, folder):
        expect("listed versions", sorted(index(daemon)), [("net", "1"), ("net", "10")])
        put(folder, "net/4/model", "add")
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_for_state(daemon, "net", "READY", "4")
        expect("listed versions", sorted(index(daemon)),
               [("net", "1"), ("net", "10"), ("net", "4")])
    for wrong in ("1,,7", "1,", "0", "x", "4294967296"):
        expect_exit(64, f"--versions: expected versions from 1 to 4294967295 with commas between "
                    f"them, got '{wrong}'", "--versions", f"net={wrong}")


# ---- generations ----

class Load:
    """Clients that send requests without a pause; each answer must be one of |right|."""

    def __init__(self, port, model, right):
        self.port, self.model, self.right = port, model, right
        self.failures, self.count, self.has_ended = [], 0, False
        self.threads = [threading.Thread(target=self.run) for _ in range(CLIENTS)]

    def run(self):
        request = build_request("POST", f"/v2/models/{self.model}/infer", ADD_BODY)
        try:
            client = Client(self.port)
            while not self.has_ended:
                client.send(request)
                status = client.answer()
                data = json.loads(client.body)["outputs"][0]["data"] if status == 200 else []
                if data not in self.right:
                    raise Failure(f"{status} {client.body[:300]!r}")
                self.count += 1
        except (Failure, OSError, ValueError) as failure:
            self.failures.append(failure)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        wait_until("answers", lambda: self.failures or self.count > 100)
        return self

    def __exit__(self, *_):
        self.has_ended = True
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


def wait_for_memory(daemon, before):
    """A sanitizer keeps memory that was freed."""
    maps = Path(f"/proc/{daemon.process.pid}/maps").read_text()
    if "libasan" in maps or "libtsan" in maps:
        print("# skipped: a sanitizer keeps freed memory")
        return
    wait_until("memory", lambda: resident_bytes(daemon.process.pid) <
               before * RESIDENT_SLACK + (1 << 20))


def resident_bytes(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def reloads_under_load():
    """Not one request fails, the counts go on, and the memory stays as it is."""
    with served({"add": "add"}, "--workers=2") as (daemon, _):
        with Load(daemon.port, "add", ([3] * 6,)) as load:
            for _ in range(20):
                expect_change(daemon, "load", "add")
            before = resident_bytes(daemon.process.pid)
            for _ in range(ROUNDS):
                expect_change(daemon, "load", "add")
        wait_for_memory(daemon, before)
        client = Client(daemon.port)
        client.send(build_request("GET", "/v2/models/add/stats"))
        expect("stats", client.answer(), 200)
        stats = json.loads(client.body)["model_stats"][0]["inference_stats"]
        expect("requests that were counted", stats["success"]["count"], load.count)
        expect("requests that failed", stats["fail"]["count"], 0)


def loads_and_unloads():
    with served({"add": "add", "digits": "digits"}) as (daemon, _):
        for verb in ("unload", "load") * 10:
            expect_change(daemon, verb, "digits")
        before = resident_bytes(daemon.process.pid)
        for _ in range(ROUNDS):
            expect_change(daemon, "unload", "digits")
            expect_change(daemon, "load", "digits")
        wait_for_memory(daemon, before)
        expect("add", infer_add(daemon.port), 200)


def changes_without_a_pause():
    """Models that were replaced go while the next changes are made."""
    with served({"digits": "digits"}) as (daemon, _):
        files = Path(f"/proc/{daemon.process.pid}/fd")
        most = 0
        for _ in range(10 * ROUNDS):
            expect_change(daemon, "unload", "digits")
            expect_change(daemon, "load", "digits")
            most = max(most, len(list(files.iterdir())))
        if most > 5 * ROUNDS:
            raise Failure(f"{most} open files after {10 * ROUNDS} loads")


def files_replaced_under_load():
    """`twice` gives other numbers than `add`: each answer is one of the two."""
    with served({"net": "add"}, "--watch", "--workers=2") as (daemon, folder):
        with Load(daemon.port, "net", ([3] * 6,)):
            for _ in range(10):
                log = len(daemon.read_log())
                put(folder, "net", "add")
                wait_until("change", lambda: "model files: 1 loaded" in
                           daemon.read_log()[log:])


def sequences_go_on():
    """A sequence stays with its generation; a new one is of the new generation."""
    with served({"running": "running", "add": "add"}) as (daemon, _):
        def count(number, **parameters):
            result = call(daemon.port, "running", X, sequence_id=number, **parameters)
            return result[1][0] if isinstance(result, list) else result

        expect("first", count(1, sequence_start=True), 1.0)
        expect("named", count("long", sequence_start=True), 1.0)
        for n in range(2, 6):
            expect_change(daemon, "load", "running")
            expect("goes on", count(1), float(n))
            expect("begins in the new one", count(n, sequence_start=True), 1.0)
        expect("named goes on", count("long"), 2.0)
        member = {"model_name": "running", "args": X, "parameters": {"sequence_id": 1}}
        status, body = post(daemon.port, "/v2/batch", json.dumps([member, member]).encode())
        expect("list", status, 200)
        expect("list", [answer["result"][1][0] for answer in json.loads(body)], [6.0, 7.0])
        expect("last", count(1, sequence_end=True), 8.0)
        expect("after the last", count(1), 400)
        expect("named goes on", count("long", sequence_end=True), 3.0)
        for n in range(2, 6):
            expect("others go on", count(n, sequence_end=True), 2.0)
        expect("start", count(1, sequence_start=True), 1.0)
        expect_change(daemon, "unload", "running")
        expect("unloaded", count(1), 503)
        expect_change(daemon, "load", "running")
        expect("its sequences have ended", count(1), 400)


def pipelines_follow():
    steps = [{"model": "add", "inputs": [{"input": 0}, {"input": 1}]}]
    chain = {"chain": {"steps": steps},
             "outer": {"steps": [{"model": "chain", "inputs": [{"input": 0}, {"input": 1}]}]}}
    with served({"add": "add", "digits": "digits"}, pipelines=chain) as (daemon, folder):
        with Load(daemon.port, "outer", ([3] * 6,)):
            for _ in range(10):
                expect_change(daemon, "load", "add")
        status, text = change(daemon, "unload", "add")
        expect("unload of a step", status, 400)
        if "chain" not in text:
            raise Failure(text)
        expect("nothing has changed", infer_add(daemon.port, "outer"), 200)
        expect_change(daemon, "unload", "add",
                      b'{"parameters": {"unload_dependents": true}}')
        for name in ("add", "chain", "outer"):
            expect(name, infer_add(daemon.port, name), 503)
        expect("digits", state(daemon, "digits"), "READY")
        expect_change(daemon, "load", "add")
        expect("outer", infer_add(daemon.port, "outer"), 200)
        expect_change(daemon, "unload", "outer")
        expect("outer", infer_add(daemon.port, "outer"), 503)
        expect("chain", infer_add(daemon.port, "chain"), 200)
        expect_change(daemon, "load", "add")
        expect("outer stays unloaded", infer_add(daemon.port, "outer"), 503)
        expect_change(daemon, "load", "outer")
        expect("outer", infer_add(daemon.port, "outer"), 200)
        os.unlink(folder / "add.pte")
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for("looking for changed models: .*chain.*nothing has changed")
        expect("outer", infer_add(daemon.port, "outer"), 200)


def stop_while_loading():
    """SIGTERM ends a daemon whose changes wait; the client is told."""
    with served({"add": "add", "digits": "digits"}) as (daemon, _):
        clients = []
        for _ in range(30):
            clients.append(Client(daemon.admin_port()))
            clients[-1].send(build_request("POST", "/v2/repository/models/digits/load", b""))
        time.sleep(0.01)
        daemon.process.terminate()
        statuses = {client.answer() for client in clients}
        if not statuses <= {200, 503}:
            raise Failure(f"statuses {statuses}")
        expect("exit", daemon.process.wait(TIMEOUT_S), 0)


def too_many_changes():
    with served({"add": "add"}) as (daemon, _):
        clients = []
        for _ in range(200):
            clients.append(Client(daemon.admin_port()))
            clients[-1].send(build_request("POST", "/v2/repository/models/add/load", b""))
        statuses = {client.answer() for client in clients}
        if not statuses <= {200, 429}:
            raise Failure(f"statuses {statuses}")
        expect("add", infer_add(daemon.port), 200)


# ---- loading when called ----

NAMES = [f"m{n:02}" for n in range(24)]
ADD_BYTES = (MODELS / "add.pte").stat().st_size


def loaded(daemon):
    return sorted(name for (name, _), row in index(daemon).items() if row[0] == "READY")


def loaded_when_called():
    """All files answer, but only as many as the limit allows are loaded at a time."""
    limit = ("--model-bytes-max", str(6 * ADD_BYTES + 100))
    with served({name: "add" for name in NAMES}, *limit) as (daemon, folder):
        expect("loaded at the start", loaded(daemon), NAMES[:6])
        expect("the others", state(daemon, "m20"), "UNKNOWN")
        for name in NAMES + NAMES[::-1]:
            expect(name, infer_add(daemon.port, name), 200)
            expect("loaded", len(loaded(daemon)), 6)
        expect("used last", loaded(daemon), NAMES[:6])
        client = Client(daemon.port)
        client.send(build_request("GET", "/v2/models/m23"))
        expect("metadata", client.answer(), 200)
        client.send(build_request("GET", "/v2/models/m22/ready"))
        expect("ready", client.answer(), 200)
        expect("is it loaded for that", state(daemon, "m22"), "UNKNOWN")
        client.send(build_request("GET", "/v2/models"))
        expect("list", client.answer(), 200)
        expect("names", json.loads(client.body)["models"], NAMES)
        client.send(build_request("GET", "/v2/models/m23/stats"))
        expect("stats", client.answer(), 200)
        counts = json.loads(client.body)["model_stats"][0]
        expect("calls before and after", counts["inference_count"], 2)
        client.send(build_request("GET", "/metrics"))
        expect("metrics", client.answer(), 200)
        for line in ('pted_models{state="ready"} 6', 'pted_models{state="listed"} 18'):
            if line not in client.body.decode():
                raise Failure(f"no {line} in the metrics")
        put(folder, "m22", None)
        os.kill(daemon.process.pid, signal.SIGHUP)
        daemon.wait_for("model files: ")
        expect("a damaged file", infer_add(daemon.port, "m22"), 503)
        expect("its state", state(daemon, "m22"), "UNAVAILABLE")
        expect("unknown", infer_add(daemon.port, "nobody"), 404)
        expect_change(daemon, "unload", "m21")
        expect("unloaded", infer_add(daemon.port, "m21"), 503)
        expect_change(daemon, "load", "m21")
        expect("loaded", infer_add(daemon.port, "m21"), 200)


def loaded_by_many_clients():
    limit = ("--model-bytes-max", str(6 * ADD_BYTES))
    with served({name: "add" for name in NAMES}, *limit) as (daemon, _):
        failures = []

        def run(seed):
            try:
                client = Client(daemon.port)
                for n in range(60):
                    name = NAMES[(seed * 7 + n * 5) % len(NAMES)]
                    client.send(build_request("POST", f"/v2/models/{name}/infer", ADD_BODY))
                    expect(name, client.answer(), 200)
                    expect(name, json.loads(client.body)["outputs"][0]["data"], [3.0] * 6)
            except (Failure, OSError, ValueError) as failure:
                failures.append(failure)
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        expect("loaded", len(loaded(daemon)) <= 6, True)


def loaded_for_lists_and_pipelines():
    """Models of a list are loaded together; those of a pipeline stay loaded."""
    steps = [{"model": "m05", "inputs": [{"input": 0}, {"input": 1}]}]
    limit = ("--model-bytes-max", str(4 * ADD_BYTES))
    chain = {"chain": {"steps": steps}}
    with served({name: "add" for name in NAMES}, *limit, pipelines=chain) as (daemon, _):
        for name in NAMES:
            expect(name, infer_add(daemon.port, name), 200)
        expect("m05 stays", "m05" in loaded(daemon), True)
        expect("chain", infer_add(daemon.port, "chain"), 200)

        def send_list(*names):
            body = json.dumps([{"model_name": name, **json.loads(ADD_BODY)} for name in names])
            status, answer = post(daemon.port, "/v2/batch", body.encode())
            return status if status != 200 else [row["status"] for row in json.loads(answer)]
        expect("list", send_list("m20", "m21", "m22"), [200] * 3)
        expect("too many", send_list("m10", "m11", "m12", "m13", "m14"), 429)
        expect("after that", infer_add(daemon.port, "m15"), 200)


def methods_of_a_file_that_is_not_loaded():
    with served({"methods": "methods"}) as (daemon, _):
        largest = bytes_of_first(Client(daemon.port))
    with served({"add": "add", "methods": "methods"}, "--model-bytes-max",
                str(largest + 10)) as (daemon, _):
        client = Client(daemon.port)
        for name in ("add", "methods.get_width", "add", "methods.get_width"):
            client.send(build_request("GET", f"/v2/models/{name}"))
            expect(name, client.answer(), 200)
        client.send(build_request("GET", "/v2/models/add"))
        expect("add", client.answer(), 200)
        client.send(build_request("GET", "/v2/models/methods.nothing"))
        expect("no such method", client.answer(), 404)


def pipelines_of_methods_that_are_not_loaded():
    steps = [{"model": "digits", "inputs": [{"input": 0}]},
             {"model": "methods", "method": "encode", "inputs": [{"from": 0}]},
             {"model": "methods.decode", "inputs": [{"from": 1}, {"input": 1}]}]
    with served({"add": "add", "digits": "digits", "methods": "methods"}, "--model-bytes-max",
                "100K", pipelines={"chain": {"steps": steps}}) as (daemon, _):
        body = json.dumps({"args": [{"dtype": "float32", "shape": [1, 1, 8, 8], "fill": 0.5},
                                    [1]]})
        status, answer = post(daemon.port, "/v2/models/chain/call", body.encode())
        expect("chain", status, 200)
        expect("its result", len(json.loads(answer)["result"][0]), 10)


def too_large_to_be_loaded():
    with served({"add": "add", "digits": "digits"}, "--model-bytes-max",
                str(ADD_BYTES + 1)) as (daemon, _):
        expect("add", infer_add(daemon.port), 200)
        status, body = post(daemon.port, "/v2/models/digits/infer", b"{}")
        expect("digits", status, 413)
        text = json.loads(body)["error"]
        if str(ADD_BYTES + 1) not in text or "--model-bytes-max" not in text:
            raise Failure(text)
        expect("add", infer_add(daemon.port), 200)


CHECKS = (only_for_administrators, admin_socket_of_systemd, load_and_unload, refused_changes,
          client_that_does_not_wait, no_models_yet, folder_that_comes, sighup, watched,
          files_beside_programs,
          tokenizers_that_count, weights_that_count, reasons_without_folders, replaced_folders,
          versions,
          reloads_under_load, loads_and_unloads, changes_without_a_pause,
          files_replaced_under_load, sequences_go_on, pipelines_follow, stop_while_loading,
          too_many_changes, loaded_when_called, loaded_by_many_clients,
          loaded_for_lists_and_pipelines, methods_of_a_file_that_is_not_loaded,
          pipelines_of_methods_that_are_not_loaded, too_large_to_be_loaded)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
