#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The process pted: how it starts, stops, listens, logs and talks to systemd.

usage: run_daemon.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from child_log import ChildLog
from run_http import (MODELS, PTED, TIMEOUT_S, Client, Daemon, Failure, Report, build_request,
                      expect, is_emulated)

ADD = str(MODELS / "add.pte")
DIGITS = str(MODELS / "digits.pte")
VIEWS = str(MODELS / "view_ops.pte")


def add_body(extra=""):
    tensors = [{"name": f"input_{i}", "shape": [2, 3], "datatype": "FP32", "data": [i] * 6}
               for i in range(2)]
    return json.dumps({"id": extra, "inputs": tensors}).encode()


def digits_body(rows):
    tensor = {"name": "input_0", "shape": [rows, 1, 8, 8], "datatype": "FP32",
              "data": [0.5] * (rows * 64)}
    return json.dumps({"inputs": [tensor]}).encode()


def infer(client, model="add", body=None):
    client.send(build_request("POST", f"/v2/models/{model}/infer", body or add_body()))
    return client.answer()


# ---- start ----

def run(*arguments):
    """Runs pted to its end, on a port that the system chooses: the default one may be taken."""
    listen = () if "--listen" in arguments else ("--listen", "127.0.0.1:0")
    return subprocess.run([PTED, *listen, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def expect_exit(status, text, *arguments):
    done = run(*arguments)
    if done.returncode != status or text not in done.stderr:
        raise Failure(f"{arguments}: status {done.returncode}, {done.stderr.strip()!r}; "
                      f"expected {status} and {text!r}")


def usage_errors():
    expect_exit(64, "unknown option '--nonsense'", "--nonsense")
    expect_exit(64, "unknown option '-x'", "-x")
    expect_exit(64, "needs a value", "--listen")
    expect_exit(64, "--header-timeout: expected a time", "--header-timeout", "soon")
    expect_exit(64, "--body-bytes-max: expected 1024 to", "--body-bytes-max=1")
    expect_exit(64, "expected NAME=FILE", "--model", "add")
    expect_exit(64, "expected ADDR:PORT", "--listen", "nowhere", ADD)
    expect_exit(66, "No such file", "--listen", "unix:/nonexistent/pted.sock", ADD)
    expect_exit(66, "device 'toaster': expected auto", "--device", "toaster", ADD)
    expect_exit(64, "model name", "--model", f"a/b={ADD}")
    for folder in (str(MODELS), f"{MODELS}/"):
        expect_exit(64, f"several programs, expected model.pte or one .pte file in it; --models "
                    f"{folder} serves", folder)
    expect_exit(64, "there are two of them", "--listen", "127.0.0.1:0", ADD, ADD)


def nothing_to_serve():
    """Without models, and without a place where they may come from, pted says what to do. Neither
    an address for administrators, nor --watch, nor a socket, nor a pipeline brings a model."""
    text = "pted: there is nothing to serve: expected FILE.pte, --model NAME=FILE, --models DIR or"
    variables = {name: value for name, value in os.environ.items()
                 if not name.startswith("PTED_") and name != "CONFIGURATION_DIRECTORY"}

    def refuse(*command, **variable):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False, env={**variables, **variable})
        expect(f"{command}: {done.stderr}", done.returncode, 64)
        lines = done.stderr.splitlines()
        expect("what to do", len(lines) == 2 and lines[0].startswith(text), True)
        expect("usage", lines[1].startswith("usage: pted "), True)
        expect("standard output", done.stdout, "")

    with tempfile.TemporaryDirectory() as folder:
        pipelines = Path(folder) / "pipelines.json"
        pipelines.write_text("{}")
        refuse(PTED)
        refuse(PTED, "--listen", "127.0.0.1:0", "--admin-listen", f"unix:{folder}/admin", "--watch")
        refuse(PTED, "--pipeline", str(pipelines))
        refuse(PTED, PTED_LISTEN=f"unix:{folder}/s", PTED_MODELS="", CONFIGURATION_DIRECTORY="")
        refuse("sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" 3</dev/null', PTED)
        expect("sockets", os.listdir(folder), ["pipelines.json"])


def help_and_version():
    for option, text in (("--help", "--header-timeout"), ("--version", "libuv"),
                         ("--version", "opened when needed: libssl")):
        done = run(option)
        if done.returncode != 0 or text not in done.stdout or done.stderr:
            raise Failure(f"{option}: {done}")
        with open("/dev/full", "wb") as full:
            expect(f"{option} to a full device",
                   subprocess.run([PTED, option], stdout=full, check=False).returncode, 74)


def bad_model_files():
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.pte"
        bad.write_bytes(Path(ADD).read_bytes()[:500])
        expect_exit(65, "bad.pte", "--listen", "127.0.0.1:0", str(bad))
        bad.write_bytes(Path(ADD).read_bytes().replace(b"aten::add", b"aten::adx"))
        expect_exit(69, "'aten::adx.out'", "--listen", "127.0.0.1:0", str(bad))
        bad.write_bytes(b"")
        expect_exit(65, "bad.pte", "--listen", "127.0.0.1:0", ADD, str(bad))
        expect_exit(66, "missing.pte", "--listen", "127.0.0.1:0", f"{folder}/missing.pte")
        expect_exit(66, "folder of models", "--listen", "127.0.0.1:0", "--models", f"{folder}/none")
        expect_exit(66, "none.ptd", "--listen", "127.0.0.1:0", "--data", f"add={folder}/none.ptd",
                    str(MODELS / "add.pte"))
        for name in ("sub", "ad", "add.forward"):    # data files are those of a program
            expect_exit(64, f"no model file is served as '{name}'", "--listen", "127.0.0.1:0",
                        "--data", f"{name}=x.ptd", str(MODELS / "add.pte"))
        for name in ("sub", "ad", "add.backward"):
            expect_exit(64, f"no model '{name}'", "--listen", "127.0.0.1:0", "--set",
                        f"{name}:weight=2", str(MODELS / "add.pte"))
        expect_exit(64, "no model file is served as 'add.forward'", "--listen", "127.0.0.1:0",
                    "--set", "add.forward:precision=exact", str(MODELS / "add.pte"))


def folder_of_models():
    """NAME.pte, NAME/model.pte and NAME/VERSION/model.pte. A bad file is listed with a reason."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in ("plain.pte", "inner/model.pte", "many/1/model.pte", "many/12/model.pte",
                     "many/no/model.pte", ".hidden.pte", "a name.pte"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ADD, folder / path)
        (folder / "broken.pte").write_bytes(b"no program")
        (folder / "circle").symlink_to("circle")
        with Daemon(["--models", name]) as daemon:
            daemon.wait_for(f"warning: skipped {name}/circle: ")
            daemon.wait_for(f"info: {name}/a name.pte: its model is called 'a_name'")
            client = Client(daemon.port)
            client.send(build_request("POST", "/v2/repository/index", b""))
            expect("index", client.answer(), 200)
            rows = [(row["name"], row["version"], row["state"]) for row in json.loads(client.body)]
            expect("rows", rows, [
                ("a_name", "1", "READY"), ("broken", "1", "UNAVAILABLE"),
                ("inner", "1", "READY"), ("many", "12", "READY"), ("many", "1", "READY"),
                ("plain", "1", "READY")])
            reason = json.loads(client.body)[1]["reason"]
            expect("a path in the reason", name in reason, False)
            expect("infer on the good one", infer(client, "plain"), 200)
            expect("infer on a version", infer(client, "many/versions/1"), 200)
            expect("its version", json.loads(client.body)["model_version"], "1")
            expect("infer on the highest", infer(client, "many"), 200)
            expect("its version", json.loads(client.body)["model_version"], "12")
            expect("infer on the broken one", infer(client, "broken"), 503)
            if reason not in json.loads(client.body)["error"]:
                raise Failure(f"{client.body!r} does not say {reason!r}")
            client.send(build_request("GET", "/v2/health/ready"))
            expect("ready", client.answer(), 200)
        with Daemon(["--models", name, ADD, "--versions", "many=2,12", "--versions", "add=7"]
                    ) as daemon:
            for model, version in (("many", 2), ("add", 7)):
                daemon.wait_for(rf"warning: --versions {model}=[0-9,]+: no model file is served "
                                rf"as version {version} of '{model}'\n")
            expect("versions that are there", daemon.read_log().count("no model file"), 2)


def folders_of_models():
    """Several folders. Two files of one name are refused; an empty folder causes a warning."""
    with tempfile.TemporaryDirectory() as name:
        first, second, empty = (Path(name) / part for part in ("first", "second", "empty"))
        for folder in (first, second, empty):
            folder.mkdir()
        shutil.copy(ADD, first / "one.pte")
        shutil.copy(ADD, second / "two.pte")
        (empty / "notes.txt").write_text("no program")
        folders = ["--models", str(first), "--models", str(second), "--models", str(empty)]
        with Daemon(folders) as daemon:
            client = Client(daemon.port)
            expect("infer on the first", infer(client, "one"), 200)
            expect("infer on the second", infer(client, "two"), 200)
            daemon.wait_for(f"warning: no .pte file in {empty}: expected NAME.pte, "
                            "NAME/model.pte or NAME/VERSION/model.pte\n")
        shutil.copy(ADD, second / "one.pte")
        expect_exit(64, f"two of them, {first}/one.pte and {second}/one.pte",
                    "--listen", "127.0.0.1:0", *folders)
        with Daemon(["--models", str(empty)]) as daemon:
            expect("nothing is served", infer(Client(daemon.port)), 404)
            daemon.wait_for("warning: no models yet: SIGHUP, or a request to load one, loads ")


def models_are_described():
    """The log has a line for each model: inputs, outputs, memory, times and device. A later line
    says whether requests run as batches."""
    with Daemon([ADD, DIGITS, str(MODELS / "tally.pte"), "--model", f"other={DIGITS}",
                 "--set", "other:max-batch=1", "--set", "other:precision=exact"]) as daemon:
        times = r"loaded in \d+\.\d ms, planned in \d+\.\d\d ms; on cpu, precision fast"
        size = r"\d+(?:\.\d)? (?:[KM]i)?B"
        daemon.wait_for(r"info: model add: input_0 FP32\[2,3\], input_1 FP32\[2,3\] -> "
                        rf"output_0 FP32\[2,3\]; weights 0 B, a call up to 72 B; {times}; "
                        r"requests run alone: dim 0 of input 'input_0' is not 1\n")
        digits = (r"input_0 FP32\[<=360,1,<=8,<=8\] -> output_0 FP32\[<=360,10\]; "
                  rf"weights {size} \({size} in the file\), a call up to {size}; {times}; ")
        daemon.wait_for(rf"info: model digits: {digits}batches are being tried\n")
        exact = digits.replace("precision fast", "precision exact")
        daemon.wait_for(rf"info: model other: {exact}requests run alone: batches are off\n")
        daemon.wait_for(r"info: model tally: .*batches are being tried\n")
        daemon.wait_for(r"info: model tally: requests run alone: it has control flow\n")
        client = Client(daemon.port)
        for model, precision in (("digits", "fast"), ("other", "exact")):
            client.send(build_request("GET", f"/v2/models/{model}"))
            expect("metadata", client.answer(), 200)
            expect("precision", json.loads(client.body)["precision"], precision)
        daemon.wait_for(r"info: model digits: requests (run alone: |that wait run as batches of)")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "methods.pte"
        program = (MODELS / "methods.pte").read_bytes()
        path.write_bytes(program.replace(b"aten::tanh", b"aten::tahn"))
        with Daemon(["--models", folder]) as daemon:
            daemon.wait_for(r"warning: model methods\.encode: cannot be called: .*aten::tahn\.out")
            (Path(folder) / "broken.pte").write_bytes(b"no program")
        with Daemon(["--models", folder]) as daemon:
            daemon.wait_for("serving")
            expect("lines of a broken file", daemon.read_log().count("broken"), 1)


def unknown_operator():
    """One method calls an unknown operator. Every answer about it says so; other methods work."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "methods.pte"
        program = (MODELS / "methods.pte").read_bytes()
        path.write_bytes(program.replace(b"aten::tanh", b"aten::tahn"))
        with Daemon([str(path)]) as daemon:
            client = Client(daemon.port)
            body = json.dumps({"args": [[[0] * 10]]}).encode()
            for request in (build_request("GET", "/v2/models/methods.encode"),
                            build_request("GET", "/v2/models/methods.encode/ready"),
                            build_request("GET", "/v2/models/methods.encode/signature"),
                            build_request("POST", "/v2/models/methods.encode/shape", b"{}"),
                            build_request("POST", "/v2/models/methods.encode/call", body)):
                client.send(request)
                expect("the method", client.answer(), 503)
                reason = r"methods\.encode.*instruction \d+: operator 'aten::tahn\.out' is not"
                if not re.search(reason, client.body.decode()):
                    raise Failure(f"{request!r}: {client.body!r}")
            client.send(build_request("POST", "/v2/repository/index", b""))
            expect("index", client.answer(), 200)
            rows = {row["name"]: row for row in json.loads(client.body)}
            expect("state", rows["methods.encode"]["state"], "UNAVAILABLE")
            expect("reason", "aten::tahn.out" in rows["methods.encode"]["reason"], True)
            expect("another", rows["methods.decode"]["state"], "READY")
            client.send(build_request("POST", "/v2/models/methods.decode/call",
                                      json.dumps({"args": [[[0] * 4], [1]]}).encode()))
            expect("a call of another", client.answer(), 200)


def port_in_use():
    with Daemon([ADD]) as daemon:
        expect_exit(71, "listen on 127.0.0.1", "--listen", f"127.0.0.1:{daemon.port}", ADD)


# ---- sockets ----

def names():
    """--listen NAME listens at each address of the name. Addresses are logged as URLs."""
    with Daemon([ADD], ("--listen", "localhost:0", "--listen", "127.0.0.1:0")) as daemon:
        daemon.wait_for("serving 1 of 1")
        urls = re.findall(r"listening on (http://\S+)\n", daemon.read_log())
        if len(urls) < 2:
            raise Failure(f"{urls}: expected an address of localhost and 127.0.0.1")
        for url in urls:
            with urllib.request.urlopen(f"{url}/v2/health/live", timeout=TIMEOUT_S) as answer:
                expect(url, answer.status, 200)
    expect_exit(71, "listen on name.invalid:80: ", "--listen", "name.invalid:80", ADD)
    expect_exit(64, "expected a path of 1 to 107 bytes, got 108", "--listen",
                "unix:/" + 107 * "x", ADD)


def unix_socket():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()
        with Daemon([ADD], ("--listen", f"unix:{path}", "--listen", "127.0.0.1:0")) as daemon:
            daemon.wait_for(rf"listening on unix:{path} "
                            rf"\(curl --unix-socket {path} http://localhost/v2\)\n")
            expect("mode", os.stat(path).st_mode & 0o777, 0o660)
            client = Client(daemon.port)
            client.close()
            client.socket = socket.socket(socket.AF_UNIX)
            client.socket.connect(path)
            expect("infer over the file", infer(client), 200)
            expect_exit(71, "socket", "--listen", f"unix:{path}", ADD)
            expect("infer after a rival's attempt", infer(client), 200)
        expect("file after the end", os.path.exists(path), False)
        with Daemon([ADD], ("--listen", f"unix:{path}", "--listen", "127.0.0.1:0")) as daemon:
            daemon.wait_for("listening on unix")
            successor = socket.socket(socket.AF_UNIX)
            successor.bind(f"{path}.new")
            os.rename(f"{path}.new", path)
        expect("a successor's file after the end", os.path.exists(path), True)
        successor.close()


def inherited_sockets():
    with tempfile.TemporaryDirectory() as folder:
        tcp = socket.create_server(("127.0.0.1", 0))
        local = socket.socket(socket.AF_UNIX)
        local.bind(f"{folder}/s")
        local.listen()
        launcher = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); "
                    "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='2'); "
                    "os.execv(sys.argv[3], sys.argv[3:])")
        fds = [os.dup2(tcp.fileno(), 100), os.dup2(local.fileno(), 101)]
        log = ChildLog()
        process = subprocess.Popen([sys.executable, "-c", launcher, "100", "101", PTED, ADD],
                                   pass_fds=fds, stderr=log, stdin=subprocess.DEVNULL)
        try:
            client = Client(tcp.getsockname()[1])
            expect("infer over the inherited port", infer(client), 200)
            client.close()
            client.socket = socket.socket(socket.AF_UNIX)
            client.socket.connect(f"{folder}/s")
            expect("infer over the inherited file", infer(client), 200)
            expect("default address unused", ":8000" in log.read(), False)
        finally:
            process.terminate()
            expect("exit status", process.wait(TIMEOUT_S), 0)
            tcp.close()
            local.close()
            for fd in fds:
                os.close(fd)


def logs_keep_every_line():
    """Tests ChildLog: a process that writes while its log is read overwrites nothing."""
    log = ChildLog()
    for line in ("first", "second"):
        subprocess.run(["sh", "-c", f"echo {line} >&2"], check=True, stderr=log)
        log.reader.seek(0)  # what read() begins with
    expect("lines", log.read(), "first\nsecond\n")


def sockets_for_another():
    """LISTEN_PID names another process, so pted does not take the descriptors."""
    with Daemon([ADD], env={**os.environ, "LISTEN_PID": "1", "LISTEN_FDS": "1"}) as daemon:
        expect("infer", infer(Client(daemon.port)), 200)


def notifications(address):
    """pted sends READY and STATUS after its start, then WATCHDOG, and STOPPING at its end."""
    with tempfile.TemporaryDirectory() as folder:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = address or f"{folder}/notify"
        listener.bind(path.replace("@", "\0", 1))
        listener.settimeout(TIMEOUT_S)
        environment = {**os.environ, "NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"}
        with Daemon([ADD], env=environment) as daemon:
            ready = listener.recv(4096).decode().split("\n")
            expect("first", ready, ["READY=1", "STATUS=serving 1 of 1 models"])
            expect("then", listener.recv(4096), b"WATCHDOG=1")
            expect("and again", listener.recv(4096), b"WATCHDOG=1")
            daemon.process.terminate()
            lines = listener.recv(4096).decode()
            while lines == "WATCHDOG=1":
                lines = listener.recv(4096).decode()
            expect("at the end", lines.split("\n")[0], "STOPPING=1")
            expect("exit status", daemon.process.wait(TIMEOUT_S), 0)
        listener.close()


# ---- stop ----

def stops_at_once_when_idle():
    """On SIGTERM an idle connection closes at once, not only after --idle-timeout."""
    with Daemon([ADD, "--drain-timeout=3600s", "--idle-timeout=3600s"]) as daemon:
        idle = Client(daemon.port)
        expect("infer", infer(idle), 200)
        daemon.stop()
        expect("idle connection closed", idle.is_closed(), True)


def wait_until_refused(daemon):
    """Waits until new connections are refused. The daemon first accepts those that already wait.

    A connect() at the moment of closing fails with ECONNRESET or ECONNABORTED.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            Client(daemon.port).close()
        except ConnectionError:
            return
    raise Failure("the daemon still accepts new connections")


def drain_finishes_requests():
    """A request is answered if its first bytes came before the signal. Meanwhile /ready is 503."""
    with Daemon([ADD, "--linger-timeout=200ms"]) as daemon:
        slow, probe = Client(daemon.port), Client(daemon.port)
        body = add_body()
        request = build_request("POST", "/v2/models/add/infer", body)
        slow.send(request[:-10])
        probe.send(b"GET /v2/health/ready HTTP/1.1\r\n")
        expect("both connections are taken", infer(Client(daemon.port)), 200)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for("stopping")
        wait_until_refused(daemon)
        probe.send(b"Host: a\r\n\r\n")
        expect("ready", probe.answer(), 503)
        expect("Connection", probe.field("connection"), "close")
        slow.send(request[-10:])
        expect("the slow request", slow.answer(), 200)
        expect("Connection", slow.field("connection"), "close")
        expect("exit status", daemon.process.wait(TIMEOUT_S), 0)


def drain_under_load():
    """Every request is answered that a client sends on a new or a kept connection."""
    lost, served = [], []

    def load(port):
        try:
            client = Client(port)
        except OSError:
            return
        while True:
            try:
                served.append(infer(client))
            except Failure as failure:
                if "closed after b''" not in str(failure):
                    lost.append(str(failure))
                return
            except OSError as error:
                lost.append(str(error))
                return
            if client.field("connection") == "close":
                return

    with Daemon([ADD]) as daemon:
        threads = [threading.Thread(target=load, args=(daemon.port,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        while len(served) < 100:
            time.sleep(0.01)
        daemon.stop()
        for thread in threads:
            thread.join(TIMEOUT_S)
    expect("lost answers", lost, [])
    if len(served) < 8 or set(served) != {200}:
        raise Failure(f"{len(served)} answers with {set(served)}")


def few_files():
    """If the process may open only a few files, a client beyond that limit gets the place of the
    one that has been idle for the longest time."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    with Daemon([ADD], preexec_fn=limit) as daemon:
        daemon.wait_for("at most 32 connections: the process may have 64 files open")
        clients = [Client(daemon.port) for _ in range(33)]
        expect("one too many", infer(clients[-1]), 200)
        expect("the longest idle", clients[0].socket.recv(1), b"")
        expect("infer", infer(clients[-2]), 200)


def few_addresses():
    """Memory for requests needs no more addresses than bytes; without these the start says which
    option wants less."""
    def limit(mebibytes):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))

    if is_emulated() or "sanitizers: none\n" not in run("--version").stdout:
        return  # both need much more address space
    card = Path(os.environ["top_srcdir"]) / "docs/examples/names.card.json"  # it has first calls
    with Daemon([ADD, DIGITS, "--card", f"digits={card}", "--workers=2"],
                preexec_fn=limit(600)) as daemon:
        expect("infer", infer(Client(daemon.port)), 200)
    done = subprocess.run([PTED, ADD, "--listen=127.0.0.1:0", "--workers=2", "--ring-bytes=1G"],
                          capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                          preexec_fn=limit(600))
    expect("exit status", done.returncode, 71)
    if "memory for requests (--ring-bytes): no memory" not in done.stderr:
        raise Failure(f"the message names no option: {done.stderr}")


def drain_has_an_end():
    with Daemon([ADD, "--drain-timeout=300ms", "--drain-incomplete-timeout=3600s",
                 "--body-timeout=600s"]) as daemon:
        stuck = Client(daemon.port)
        stuck.send(b"POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n")
        expect("the head has come", infer(Client(daemon.port)), 200)
        daemon.stop()
        daemon.wait_for("1 connections did not finish in time")


def second_signal():
    with Daemon([ADD]) as daemon:
        stuck = Client(daemon.port)
        stuck.send(b"GET /v2")
        expect("the first bytes have come", infer(Client(daemon.port)), 200)
        daemon.process.send_signal(signal.SIGINT)
        daemon.wait_for("stopping")
        time.sleep(0.3)
        daemon.process.send_signal(signal.SIGINT)
        expect("exit status", daemon.process.wait(TIMEOUT_S), 128 + signal.SIGINT)
        daemon.process.returncode = 0


def doubled_signal():
    """timeout(1) signals the process and its group, a shell may send SIGINT as well: one stop."""
    with Daemon([ADD]) as daemon:
        slow = Client(daemon.port)
        request = build_request("POST", "/v2/models/add/infer", add_body())
        slow.send(request[:-10])
        expect("the first bytes have come", infer(Client(daemon.port)), 200)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGINT)  # two SIGTERM this soon would be one
        daemon.wait_for("stopping")
        slow.send(request[-10:])
        expect("the slow request", slow.answer(), 200)
        expect("exit status", daemon.process.wait(TIMEOUT_S), 0)


# ---- disconnects, overload ----

def disconnect_in_every_step():
    """Clients disconnect while they send, while the model runs, while the answer is written."""
    with Daemon([DIGITS, "--inline-bytes-max=1K"]) as daemon:
        body = digits_body(360)
        request = build_request("POST", "/v2/models/digits/infer", body)
        for cut in (10, 100, 1000, len(request) // 2, len(request) - 1, len(request)):
            for pause in (0, 0.001, 0.01):
                client = Client(daemon.port)
                client.send(request[:cut])
                time.sleep(pause)
                client.reset()
        client = Client(daemon.port)
        expect("infer after all", infer(client, "digits", digits_body(2)), 200)


def client_that_does_not_read():
    """A client that does not read fills the socket's buffers. Others are served, and
    --write-timeout disconnects it."""
    with Daemon([DIGITS, VIEWS, "--write-timeout=500ms"]) as daemon:
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", daemon.port))
        sender = threading.Thread(target=send_until_reset, args=(deaf,), daemon=True)
        sender.start()
        expect("another client", infer(Client(daemon.port), "digits", digits_body(1)), 200)
        sender.join(TIMEOUT_S)
        if sender.is_alive():
            raise Failure("expected the connection to be closed, it is still open")
        deaf.close()


def send_until_reset(connection):
    """Sends requests with large and cheap answers, and never reads, until the daemon closes."""
    body = {"inputs": [{"name": "input_0", "shape": [4, 7, 6], "datatype": "FP32",
                        "data": [i / 7 for i in range(4 * 7 * 6)]}]}
    request = build_request("POST", "/v2/models/view_ops/infer",
                            json.dumps(body).encode())
    try:
        while True:
            connection.sendall(request)
    except OSError:
        pass


def stopped_process():
    """What clients send while the process stands still is read before their time is over."""
    limits = [f"--{name}-timeout=400ms" for name in ("header", "idle", "body")]
    request = build_request("POST", "/v2/models/add/infer", add_body())
    with Daemon([ADD, *limits]) as daemon:
        clients = [Client(daemon.port) for _ in range(3)]
        parts = (0, 20, len(request) - 20)
        for client, part in zip(clients, parts):
            client.send(request[:part])
        time.sleep(0.1)
        daemon.process.send_signal(signal.SIGSTOP)
        for client, part in zip(clients, parts):
            client.send(request[part:])
        time.sleep(1)
        daemon.process.send_signal(signal.SIGCONT)
        for client, part in zip(clients, parts):
            expect(f"from byte {part} on", client.answer(), 200)
        expect("an idle client is closed", clients[0].socket.recv(1), b"")


def ring_exhausted():
    """Received bodies fill the memory. One more body waits, then a request gets 429 and may be
    repeated later."""
    with Daemon([DIGITS, "--ring-bytes=1M", "--rate-min=0"]) as daemon:
        waiting = []
        for _ in range(2):
            client = Client(daemon.port)
            client.send(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\n"
                        b"Content-Length: 450000\r\n\r\n" + b" " * 400000)
            waiting.append(client)
        third = Client(daemon.port)
        third.send(b"POST /v2/models/digits/infer HTTP/1.1\r\nHost: a\r\n"
                   b"Content-Length: 450000\r\n\r\n" + b" " * 449999)
        refused = waiting + [third]
        ready, _, _ = select.select([client.socket for client in refused], [], [], TIMEOUT_S)
        client = next(client for client in refused if client.socket in ready)
        expect("one of them", client.answer(), 429)
        expect("Retry-After", client.field("retry-after"), "1")
        for client in refused:
            client.reset()
        expect("later", infer(Client(daemon.port), "digits", digits_body(10)), 200)


def log_lines():
    """Each failed request is one line of the log, without control characters from the client."""
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        client.send(b"GET /evil%0a%1b[31m HTTP/1.1\r\nHost: a\r\n\r\n")
        expect("status", client.answer(), 404)
        line = daemon.wait_for(r"info: 404 (.*): no such path, see GET /openapi.json\n")
        expect("target", line[1], "/evil%0a%1b[31m")
        expect("lines", daemon.read_log().count("no such path"), 1)


def log_escapes():
    """Nothing that a client sends ends a line of the log or changes its writing direction."""
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        for value, shown in ((b"\xe2\x80\xae", "\\u{202e}"), (b"\xc2\x85", "\\u{85}"),
                             (b"\xff", "\\xff"), ("größe".encode(), "größe")):
            client.send(b"POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\n"
                        b"Content-Encoding: <" + value + b">\r\nContent-Length: 0\r\n\r\n")
            expect("status", client.answer(), 415)
            daemon.wait_for(re.escape(f"got '<{shown}>'\n"))


def log_limit():
    """Mistakes of clients do not fill a disk: repeated log lines are only counted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        with Daemon([ADD, "--log-file", str(path)], log=path) as daemon:
            client = Client(daemon.port)
            for _ in range(500):
                client.send(build_request("GET", "/nowhere"))
                expect("status", client.answer(), 404)
        text = path.read_text()
        counted = sum(map(int, re.findall(r"info: (\d+) similar lines suppressed in 10 s: "
                                          r"requests answered 4xx\n", text)))
        expect("logged and counted", text.count(" 404 /nowhere: ") + counted, 500)
        expect("are most of them only counted?", counted > 250, True)


def log_requests():
    """--log-requests all: each request is one line of the log when it ends, also if it failed."""
    with Daemon([ADD, DIGITS, "--log-requests", "all", "--inline-bytes-max=1K"],
                ("--listen", "127.0.0.1:0")) as daemon:
        client = Client(daemon.port)
        port = client.socket.getsockname()[1]
        body = add_body()
        request = build_request("POST", "/v2/models/add/infer", body)
        client.send(request)
        expect("infer", client.answer(), 200)
        line = daemon.wait_for(rf"info: request remote=127\.0\.0\.1:{port} method=POST "
                               r"path=/v2/models/add/infer status=200 in=(\d+) out=(\d+) "
                               r"model=add queue_us=(\d+) compute_us=(\d+) total_us=(\d+)\n")
        expect("bytes out", int(line[2]) > len(client.body), True)
        expect("bytes in", len(body) < int(line[1]) <= len(request), True)
        expect("times", int(line[3]) + int(line[4]) <= int(line[5]), True)
        client.send(build_request("GET", "/v2/models/add?a=%0a&b=\x22c"))
        expect("another's parameters", client.answer(), 200)
        daemon.wait_for(r"method=GET path=/v2/models/add status=200 in=\d+ out=\d+ ")
        client.send(build_request("POST", "/v2/models/add/infer", b"{}"))
        expect("a wrong one", client.answer(), 400)
        daemon.wait_for(r"info: request .* status=400 .* model=add .* "
                        r'error=member "inputs" is missing\n')
        expect("has one line", daemon.read_log().count("/infer status=400"), 1)
        client.send(build_request("DELETE", "/v2/models/add"))
        expect("another method", client.answer(), 405)
        daemon.wait_for(r"method=DELETE path=/v2/models/add status=405 ")
        client.send(build_request("GET", "/" + "x" * 1000))
        expect("a long path", client.answer(), 404)
        daemon.wait_for(r"path=/x{399} status=404 .* total_us=\d+ error=no such path, .*\n")
        gone = Client(daemon.port)
        gone.send(request[:-5])
        gone.reset()
        daemon.wait_for(r"method=POST path=/v2/models/add/infer status=gone in=\d+ out=0 model=add "
                        r"queue_us=0 compute_us=0 total_us=0\n")
        client.send(b"BAD\r\n\r\n")
        expect("no request", client.answer(), 400)
        daemon.wait_for(r"method=- path=\S* status=400 ")
    expect_exit(64, "--log-requests: expected errors or all, got 'none'", "--log-requests", "none")


def log_file():
    """--log-file appends, and SIGHUP opens it again. An error that ends the start is also on
    stderr."""
    with tempfile.TemporaryDirectory() as folder:
        path, old = Path(folder) / "log", Path(folder) / "old"
        path.write_text("before\n")
        with Daemon([ADD, "--log-file", str(path), "--listen", "127.0.0.1:0"], listen=(),
                    log=path) as daemon:
            expect("the file was kept", path.read_text().startswith("before\n"), True)
            path.rename(old)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(rf"SIGHUP: log file {path} is open again")
            expect("infer", infer(Client(daemon.port)), 200)
        expect("the old one", "stopped" in old.read_text(), False)
        expect("the new one", "stopped" in path.read_text(), True)
        expect_exit(66, "pted: log file", ADD, "--log-file", f"{folder}/none/log")
        expect_exit(66, "missing.pte", f"{folder}/missing.pte", "--log-file", str(path))
        expect("the reason in the file", "missing.pte" in path.read_text(), True)


def answers_at(path):
    """Does a daemon answer at this socket, now or soon?"""
    for _ in range(100 * TIMEOUT_S):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(TIMEOUT_S)
            try:
                client.connect(str(path))
                client.sendall(build_request("GET", "/v2/health/live"))
                return client.recv(12) == b"HTTP/1.1 200"
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.01)
    return False


def expect_served(process, at):
    """The daemon answers at the socket |at|, and stops when it is told to."""
    try:
        expect("it answers", answers_at(at), True)
        process.terminate()
        expect("exit status", process.wait(TIMEOUT_S), 0)
    finally:
        process.kill()


def limited_log():
    """A log that has reached the limit for files (ulimit -f) takes no lines, not even the first
    ones of a start, and the daemon serves all the same."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with tempfile.TemporaryDirectory() as folder:
        path, settings, at = (Path(folder) / name for name in ("log", "pted.json", "socket"))
        path.write_text("x" * 4096)
        settings.write_text(json.dumps({"models": {"add": {"path": ADD}}}))
        with subprocess.Popen([PTED, "--config", str(settings), "--log-file", str(path),
                               f"--listen=unix:{at}"], preexec_fn=limit) as process:
            expect_served(process, at)


def unread_stderr():
    """If nobody reads the lines of a start, the daemon serves all the same."""
    reader, writer = os.pipe()
    os.close(reader)
    with tempfile.TemporaryDirectory() as folder:
        settings, at = (Path(folder) / name for name in ("pted.json", "socket"))
        settings.write_text(json.dumps({"models": {"add": {"path": ADD}}}))
        with subprocess.Popen([PTED, "--config", str(settings), f"--listen=unix:{at}"],
                              stderr=writer) as process:
            os.close(writer)
            expect_served(process, at)


def hangup():
    """Without a log file, SIGHUP causes a line of the log and the daemon goes on."""
    with Daemon([ADD]) as daemon:
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("SIGHUP: looking for changed models")
        expect("infer", infer(Client(daemon.port)), 200)


def closed_standard_files():
    """If pted starts with descriptors 0 to 2 closed, it gives none of them to a socket."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        launcher = "import os, sys; os.closerange(0, 3); os.execv(sys.argv[1], sys.argv[1:])"
        command = [sys.executable, "-c", launcher, PTED, ADD, "--listen", "127.0.0.1:0",
                   "--log-file", str(path)]
        with Daemon([], log=path, command=command) as daemon:
            client = Client(daemon.port)
            expect("infer", infer(client), 200)
            for fd in range(3):
                expect(f"descriptor {fd}", os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}"),
                       "/dev/null")
        pte = os.environ.get("PTE", str(Path(PTED).parent / "pte"))
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", pte, "inspect", ADD],
                              check=False, timeout=TIMEOUT_S)
        expect("pte without a place to write to", done.returncode, 74)


CHECKS = (
    usage_errors, nothing_to_serve, help_and_version, bad_model_files, folder_of_models,
    folders_of_models,
    models_are_described, unknown_operator, log_escapes, log_limit, log_requests, log_file,
    limited_log, unread_stderr, hangup, closed_standard_files, port_in_use, names,
    unix_socket, inherited_sockets, logs_keep_every_line, sockets_for_another,
    stops_at_once_when_idle, few_files, few_addresses,
    drain_finishes_requests, drain_under_load, drain_has_an_end, second_signal, doubled_signal,
    disconnect_in_every_step, client_that_does_not_read, stopped_process,
    ring_exhausted, log_lines)


def main():
    report = Report()
    report.run_all(CHECKS)
    report.run("notifications", notifications, None)
    report.run("notifications to an abstract socket", notifications, f"@pted-test-{os.getpid()}")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
