#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Settings of a real daemon: from a document, the environment and the command line; what is wrong
with them; and the schema of documents beside the daemon's own check.

usage: run_config.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from load import wait_until
from run_http import (MODELS, PTED, SOURCE, TIMEOUT_S, Client, Daemon, Failure, Report,
                      build_request, expect)
from run_daemon import infer

try:
    import jsonschema
except ImportError:
    jsonschema = None

LISTEN = '"listeners": ["127.0.0.1:0"]'
UNWATCHED_S = 1.5  # a watched folder is looked at after 0.1 s


class Folder:
    """A folder with pted.json, and models beside it."""

    def __init__(self, text):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "pted.json"
        self.path.write_text(text)
        for name in ("add", "digits", "mlp"):
            (self.path.parent / f"{name}.pte").write_bytes((MODELS / f"{name}.pte").read_bytes())

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        self.folder.cleanup()


def environment(**variables):
    """Ours without settings, and |variables|."""
    return {**{name: value for name, value in os.environ.items()
               if not name.startswith("PTED_") and name != "CONFIGURATION_DIRECTORY"}, **variables}


def run(*arguments, **variables):
    return subprocess.run([PTED, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=False, env=environment(**variables))


def expect_run(status, lines, *arguments, **variables):
    done = run(*arguments, **variables)
    got = done.stderr.splitlines()
    if done.returncode != status or len(got) != len(lines) or \
            not all(want in line for want, line in zip(lines, got)):
        raise Failure(f"{arguments} {variables}: {done.returncode}, {done.stderr}; expected "
                      f"{status}, {lines}")


def ask(daemon, path, body=None):
    client = Client(daemon.port)
    client.send(build_request("GET" if body is None else "POST", path, body))
    status = client.answer()
    return status, json.loads(client.body)


def served(daemon):
    _, rows = ask(daemon, "/v2/repository/index", b"{}")
    return sorted(row["name"] for row in rows)


def reasons(daemon):
    _, rows = ask(daemon, "/v2/repository/index", b"{}")
    return [row.get("reason") for row in rows]


def body_limit(daemon):
    """The status of a body of 2000 bytes: 413 if that is beyond the limit."""
    client = Client(daemon.port)
    client.send(build_request("POST", "/v2/models/add/infer", b" " * 2000))
    return client.answer()


# ---- sources ----

DOCUMENT = """// all kinds of members
{
    "models": {
        "sum": "add.pte",
        "digits": {"path": "digits.pte", "precision": "exact", "max_batch": 1}, /* alone */
        "add": {"queue_count_max": 7}
    },
    "pipelines": {"twice": {"steps": [
        {"model": "sum", "inputs": [{"input": 0}, {"input": 1}]},
        {"model": "sum", "inputs": [{"from": 0, "output": 0}, {"input": 1}]}]}},
    "model_folders": ["."],
    "listeners": ["127.0.0.1:0"],
    "log_requests": "all",
    "body_bytes_max": 1024
}
"""


def document():
    """Paths are relative to the document, whatever the folder of the process."""
    with Folder(DOCUMENT.replace('"digits": {"path"', '"numbers": {"path"')) as path, \
            Daemon(["--config", str(path)], (), cwd="/", env=environment()) as daemon:
        daemon.wait_for(f"info: settings of {path}\n")
        expect("models", served(daemon), ["add", "digits", "mlp", "numbers", "sum", "twice"])
        expect("infer", infer(Client(daemon.port), "sum"), 200)
        status, answer = ask(daemon, "/v2/models/twice/call",
                             b'{"args": [[[1,2,3],[4,5,6]], [[1,1,1],[1,1,1]]]}')
        expect("a pipeline", (status, answer["result"]), (200, [[3, 4, 5], [6, 7, 8]]))
        expect("precision", ask(daemon, "/v2/models/numbers")[1]["precision"], "exact")
        expect("its default", ask(daemon, "/v2/models/digits")[1]["precision"], "fast")
        daemon.wait_for("model numbers: .*requests run alone: batches are off\n")
        daemon.wait_for("request remote=.* model=sum ")
        expect("a limit", body_limit(daemon), 413)


def precedence():
    text = f'{{"models": {{"add": "digits.pte"}}, {LISTEN}, "body_bytes_max": 1024}}'
    with Folder(text) as path:
        variables = environment(PTED_CONFIG=str(path), PTED_BODY_BYTES_MAX="4K")
        with Daemon([], (), env=environment(PTED_CONFIG=str(path))) as daemon:
            expect("the document's", body_limit(daemon), 413)
            expect("the document's model", infer(Client(daemon.port), "add"), 400)
        with Daemon(["--model", f"add={MODELS}/add.pte"], (), env=variables) as daemon:
            expect("the variable's", body_limit(daemon), 400)
            expect("the option's model", infer(Client(daemon.port), "add"), 200)
        with Daemon(["--body-bytes-max=1K"], (), env=variables) as daemon:
            expect("the option's", body_limit(daemon), 413)


def variables_alone():
    """Every kind of value; several values are separated by commas."""
    variables = environment(
        PTED_MODEL=f"a={MODELS}/add.pte,b={MODELS}/digits.pte", PTED_LISTEN="127.0.0.1:0",
        PTED_SET="a:weight=2,b:max-batch=1", PTED_LOG_LEVEL="debug", PTED_WORKERS="2",
        PTED_WATCH="false", PTED_PORT="tcp://10.0.0.1:80", PTED_DEVICE="")
    with Daemon([], (), env=variables) as daemon:
        expect("models", served(daemon), ["a", "b"])
        expect("infer", infer(Client(daemon.port), "a"), 200)
        daemon.wait_for("model b: .*requests run alone: batches are off\n")


def default_document():
    """systemd names the folder; nothing has to be in it."""
    with Folder(f'{{"models": {{"sum": "add.pte"}}, {LISTEN}}}') as path:
        variables = environment(CONFIGURATION_DIRECTORY=str(path.parent))
        with Daemon([], (), env=variables) as daemon:
            expect("models", served(daemon), ["sum"])
        path.unlink()
        with Daemon([str(MODELS / "add.pte")], env=variables) as daemon:
            expect("models", served(daemon), ["add"])


def no_models_yet():
    """A document without models is served, and so is a folder without a document: SIGHUP reads
    what has come."""
    for name in ("--config", "PTED_CONFIG", "CONFIGURATION_DIRECTORY"):
        with Folder("{}") as path:
            options, variables = [], {}
            if name == "--config":
                options = ["--config", str(path)]
            else:
                is_folder = name == "CONFIGURATION_DIRECTORY"
                variables[name] = str(path.parent if is_folder else path)
            if name == "CONFIGURATION_DIRECTORY":
                path.unlink()
            with Daemon(options, env=environment(**variables)) as daemon:
                daemon.wait_for("warning: no models yet: SIGHUP reads the settings again")
                expect("models", served(daemon), [])
                expect("ready", ask(daemon, "/v2/health/ready")[0], 200)
                path.write_text('{"models": {"sum": "add.pte"}}')
                daemon.process.send_signal(signal.SIGHUP)
                daemon.wait_for("info: model sum: ")
                wait_until("the model", lambda d=daemon: served(d) == ["sum"])


# ---- problems ----

WRONG = """{
    "models": {"add": {"path": "add.pte", "max_batches": 8}},
    "request_timeout": 10,
    "body_byte_max": "8M", // unknown
    "listeners": ["127.0.0.1"]
}
"""


def problems():
    """All of them, with their places, by the check and by the start."""
    with Folder(WRONG) as path:
        lines = [f"{path}:2:58: models.add.max_batches: expected a setting of a model, got an "
                 "unknown member; did you mean 'max_batch'?",
                 f"{path}:3:24: request_timeout: expected a time such as 500ms or 10s, got a "
                 "number",
                 f"{path}:4:22: body_byte_max: expected a setting, got an unknown member; did you "
                 "mean 'body_bytes_max'?",
                 f"{path}:5:19: listeners[0]: expected ADDR:PORT, [ADDR6]:PORT, NAME:PORT or "
                 "unix:PATH, or tls:, grpc: or grpc:tls: and one of these, got '127.0.0.1'"]
        for arguments in (["--check-config"], []):
            expect_run(78, lines, "--config", str(path), *arguments)
            expect_run(78, [*lines, "pted: PTED_WEIGHT: expected 1 to 1000, got '0'"],
                       *arguments, PTED_CONFIG=str(path), PTED_WEIGHT="0")
        path.write_text("{\n// only this\n")
        expect_run(78, [f"{path}:3:1: expected a key, got the end of the file"],
                   "--check-config", "--config", str(path))
        expect_run(66, [f"{path}.no: No such file or directory"], "--config", f"{path}.no")
    with Folder("") as path:
        path.write_text(json.dumps({"models": {"a": "none.pte", "b": str(MODELS / "add.pte"),
                                               "c": "https://x/c.pte"}}))
        line = f"pted: model 'a': {path.parent}/none.pte: No such file or directory"
        expect_run(66, [line], "--check-config", "--config", str(path))
        line = "pted: model 'gone': /none/gone.pte: No such file or directory"
        expect_run(66, [line], "--check-config", "/none/gone.pte")
    expect_run(64, ["unknown option '--nope'", "usage: "], "--check-config", "--nope")
    expect_run(78, ["pted: PTED_WATCH: expected true or false, got 'maybe'"], PTED_WATCH="maybe")


def what_is_found_at_the_start():
    """Names that no model has, with the place where they were said."""
    with Folder("") as path:
        for text, line in (
                (f'{{{LISTEN}, "models": {{"add": "add.pte",\n "ad": {{"weight": 2}}}}}}',
                 f"{path}:2:8: models.ad: no model 'ad'"),
                (f'{{{LISTEN}, "models": {{"add.forward": {{"precision": "exact"}},'
                 ' "add": "add.pte"}}',
                 f"{path}:1:58: models.add.forward: no model file is served as 'add.forward'"),
                (f'{{{LISTEN}, "models": {{"x": {{"data": ["x.ptd"]}}}}}}',
                 f"{path}:1:48: models.x: no model file is served as 'x'"),
                (f'{{{LISTEN}, "pipelines": {{"p": {{"steps": [{{"model": "no", "inputs": []}}]'
                 "}}}", f"{path}: pipeline 'p': step 0: no model 'no'")):
            path.write_text(text)
            done = run("--config", str(path))
            expect_run(0, [], "--check-config", "--config", str(path))
            if done.returncode != 64 or line not in done.stderr:
                raise Failure(f"{text}: {done.returncode}, {done.stderr}; expected 64, {line}")
    done = run("--listen=127.0.0.1:0", str(MODELS / "add.pte"), PTED_SET="ad:weight=2")
    expect("a variable", ("PTED_SET ad:weight=2: no model 'ad'" in done.stderr), True)


def check_is_quiet():
    """Without a problem the check says so, loads nothing and listens nowhere."""
    with Folder('{"models": {"none": "none.pte"}, "listeners": ["nowhere.invalid:80"]}') as path:
        (path.parent / "none.pte").write_text("no program")
        done = run("--check-config", "--config", str(path))
        expect("check", (done.returncode, done.stdout, done.stderr),
               (0, f"{path}: no problems\n", ""))
        tokens = path.parent / "tokens"
        check = ("--check-config", "--token-file", str(tokens))
        expect_run(66, [f"token file {tokens}: No such file or directory"], *check)
        tokens.write_text("# nobody\n")
        expect_run(0, [], *check)
        tokens.write_text("# nobody\nci\n")
        expect_run(64, [f"{tokens}:2: expected scopes"], *check)
    with open("/dev/full", "wb") as full:
        expect("a full device", subprocess.run([PTED, "--check-config"], stdout=full, check=False,
                                               env=environment()).returncode, 74)


def shipped_document():
    """conf/pted.json is right, and a daemon starts with it."""
    path = str(SOURCE / "conf" / "pted.json")
    expect_run(0, [], "--check-config", "--config", path)
    with Daemon(["--config", path, str(MODELS / "add.pte")], env=environment()) as daemon:
        expect("infer", infer(Client(daemon.port)), 200)


# ---- the schema ----

# Without comments, so that Python can read them.
DOCUMENTS = [
    "{}", "[]", '{"$schema": "x"}', '{"$schema": 1}', '{"zzz": 1}',
    '{"weight": 2}', '{"weight": 0}', '{"weight": 1001}', '{"weight": 1.5}', '{"weight": "2"}',
    '{"body_bytes_max": "64M"}', '{"body_bytes_max": 65536}', '{"body_bytes_max": 3}',
    '{"body_bytes_max": "64T"}', '{"body_bytes_max": true}',
    '{"idle_timeout": "10s"}', '{"idle_timeout": 10}', '{"idle_timeout": "10"}',
    '{"watch": true}', '{"watch": "true"}', '{"log_level": "debug"}', '{"log_level": "loud"}',
    '{"log_requests": "all"}', '{"precision": "bf16"}', '{"precision": "half"}', '{"workers": 0}',
    '{"device": "cpu"}', '{"device": ""}', '{"listeners": ["a:1"]}', '{"listeners": "a:1"}',
    '{"listeners": [1]}', '{"model_folders": ["a"]}', '{"pipeline_files": [""]}',
    '{"models": {"a": "a.pte", "b.c": {"path": "b", "data": ["c"], "weight": 2}}}',
    '{"models": {"a/b": "x"}}', '{"models": {".a": "x"}}', '{"models": {"a": ""}}',
    '{"models": {"a": 1}}', '{"models": {"a": {"data": "x"}}}', '{"models": {"a": {"weight": 0}}}',
    '{"models": {"a": {"card": "a.json", "labels": "x", "inputs": ["y"], "description": ""}}}',
    '{"models": {"a": {"card": ""}}}', '{"models": {"a": {"labels": [1]}}}',
    '{"models": {"a": {"outputs": [{"labels": ["y"]}], "methods": {"m": {"inputs": {}}}}}}',
    '{"models": {"a": {"idle_timeout": "1s"}}}', '{"models": []}', '{"pipelines": []}',
    '{"pipelines": {"p": {}}}', '{"pipelines": {"p": {"steps": []}}}',
    '{"pipelines": {"p": {"steps": [{"model": "a"}]}}}',
    '{"pipelines": {"p": {"description": 1, "inputs": ["x"], "steps": [{"name": "n", "version": 1,'
    ' "method": "m", "model": "a", "inputs": [null, {"input": 0}, {"from": "n", "output": 1}]}],'
    ' "outputs": [{"name": "o", "from": 0, "output": ["a", 0]}]}}}',
    '{"pipelines": {"p": {"steps": [{"model": "a", "inputs": {"x": {"input": "y"}}}]}}}',
    '{"pipelines": {"p": {"steps": [{"model": "a", "inputs": [{"input": 0, "from": 0}]}]}}}',
    '{"pipelines": {"p": {"steps": [{"model": "a", "inputs": [{"input": 0, "output": 0}]}]}}}',
    '{"pipelines": {"p": {"steps": [{"model": "a", "inputs": [{"input": -1}]}]}}}',
    '{"pipelines": {"p": {"steps": [], "outputs": []}}}',
    '{"pipelines": {"p": {"steps": [], "outputs": [{"output": 0}]}}}',
    '{"pipelines": {"p": {"stepz": []}}}',
]


def members_once(pairs):
    """An object of a document, in which two members of one name would hide one of them."""
    names = [name for name, _ in pairs]
    expect("members of the schema that are there twice",
           sorted({name for name in names if names.count(name) > 1}), [])
    return dict(pairs)


def schema():
    """The schema and the daemon accept the same documents."""
    text = json.loads((SOURCE / "conf" / "pted.schema.json").read_text(),
                      object_pairs_hook=members_once)
    if not jsonschema:
        print("schema: the package jsonschema is not here, so the schema is only parsed")
        return
    jsonschema.Draft202012Validator.check_schema(text)
    validator = jsonschema.Draft202012Validator(text)
    for member in text["properties"].values():
        for value in (*member.get("examples", ()), *(member[key] for key in ["default"]
                                                     if key in member)):
            jsonschema.validate(value, member)
    with Folder("") as path:
        for document_text in DOCUMENTS:
            path.write_text(document_text)
            done = run("--check-config", "--config", str(path))
            expect(document_text, validator.is_valid(json.loads(document_text)),
                   done.returncode in (0, 66))  # there are no files


def hang_up(daemon, text, log):
    """SIGHUP with another document; waits until the log has |log| once more."""
    daemon.document.write_text(text)
    begin = len(daemon.read_log())
    os.kill(daemon.process.pid, signal.SIGHUP)
    daemon.wait_for(log, begin)


def reload():
    """SIGHUP reads the document again. What is wrong is refused, and the old models go on."""
    made = r"model files: .*"
    base = f'{{{LISTEN}, "models": {{"add": "add.pte"}}}}'
    with Folder(base) as path, Daemon(["--config", str(path)], listen=(),
                                      env=environment()) as daemon:
        daemon.document = path
        expect("models", served(daemon), ["add"])
        hang_up(daemon, f'{{{LISTEN}, "models": {{"add": "add.pte", "net": "mlp.pte"}}}}', made)
        expect("one more", served(daemon), ["add", "net"])
        hang_up(daemon, base.replace("add.pte", "digits.pte"), made)
        expect("another file", ask(daemon, "/v2/models/add")[1]["inputs"][0]["shape"],
               [-1, 1, -1, -1])
        expect("one less", served(daemon), ["add"])
        for bad in ("{", f'{{{LISTEN}, "modells": {{}}}}', f'{{{LISTEN}, "rate_min": -1}}'):
            hang_up(daemon, bad, "the settings are refused; the old ones stay in use")
            expect("models", served(daemon), ["add"])
        away = f'{{{LISTEN}, "models": {{"add": "away.pte", "new": "none.pte"}}}}'
        hang_up(daemon, away, r"away.pte: No such file or directory; the one that was loaded bef")
        expect("both are listed", served(daemon), ["add", "new"])
        expect("the reasons", reasons(daemon), ["No such file or directory"] * 2)
        hang_up(daemon, base.replace("add.pte", "digits.pte"), made)
        expect("no reason any more", reasons(daemon), [None])
        bad = f'{{{LISTEN}, "models": {{"add": "add.pte"}}, "pipelines": {{"p": {{"steps": ' \
              '[{"model": "nobody", "inputs": []}]}}}'
        hang_up(daemon, bad, "nothing has changed")
        expect("the same file", ask(daemon, "/v2/models/add")[1]["inputs"][0]["shape"],
               [-1, 1, -1, -1])
        with_limit = f'{{{LISTEN}, "models": {{"add": {{"path": "add.pte", "max_batch": 1, ' \
                     '"request_timeout": "1s"}}}}'.replace("}}}}", "}}}")
        hang_up(daemon, with_limit, made)
        hang_up(daemon, with_limit, "model files: 0 loaded")
        hang_up(daemon, with_limit.replace('"1s"', '"3s"'), "model files: 1 loaded")
        hang_up(daemon, with_limit[:-1] + ', "body_bytes_max": 2000}',
                "body_bytes_max: what has changed takes effect at the next start")
        expect("add", infer(Client(daemon.port)), 200)


def watch_by_reload():
    """SIGHUP begins to watch folders, one of which is not there yet, and ends it."""
    made = r"model files: .*"
    with Folder("{}") as path:
        folder, later = path.parent / "models", path.parent / "later"
        folder.mkdir()
        base = f'{LISTEN}, "model_folders": ["{folder}"'
        path.write_text(f"{{{base}]}}")
        with Daemon(["--config", str(path)], listen=(), env=environment()) as daemon:
            daemon.document = path
            watched = f'{{{base}, "{later}"], "watch": true}}'
            hang_up(daemon, watched, made)
            (path.parent / "add.pte").rename(folder / "add.pte")
            wait_until("a file that comes", lambda: served(daemon) == ["add"])
            later.mkdir()
            (path.parent / "mlp.pte").rename(later / "mlp.pte")
            wait_until("a folder that comes", lambda: served(daemon) == ["add", "mlp"])
            hang_up(daemon, f"{{{base}]}}", made)
            wait_until("one folder less", lambda: served(daemon) == ["add"])
            (path.parent / "digits.pte").rename(folder / "digits.pte")
            time.sleep(UNWATCHED_S)
            expect("nobody watches", served(daemon), ["add"])
            hang_up(daemon, watched, made)
            wait_until("all of them", lambda: served(daemon) == ["add", "digits", "mlp"])
            (later / "mlp.pte").unlink()
            wait_until("a file that goes", lambda: served(daemon) == ["add", "digits"])
            expect("no setting waits", "takes effect at the next start" in daemon.read_log(), False)


CHECKS = (document, precedence, variables_alone, default_document, no_models_yet, problems,
          what_is_found_at_the_start, check_is_quiet, shipped_document, schema, reload,
          watch_by_reload)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
