#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that nobody needs (--idle-unload): they go, calls load them again, and what uses a model
keeps it. Calls wait while a model loads. No result depends on the time that something takes: each
test waits for the state that it expects.

usage: run_idle.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import signal
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from load import in_threads, occupy, release, wait_until
from run_access import ADMIN, INFER, Guarded
from run_embeddings import ENCODER
from run_generate import CHAT
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Report, build_request, expect
from run_lifecycle import (ADD_BODY, X, call, expect_change, index, infer_add, loaded, post, put,
                           served, state, wait_for_state)
from run_start import HoldingOrigin

# A trial of batches would keep a model until it is over, which takes long on a busy machine.
SOON = ("--idle-unload", "1ms", "--max-batch=1")
LATE = ("--idle-unload", "1h", "--max-batch=1")


def get(daemon, path):
    client = Client(daemon.port)
    client.send(build_request("GET", path))
    status = client.answer()
    client.close()
    return status, client.body.decode()


def metric(daemon, line):
    """The value of the series |line|, or None."""
    for row in get(daemon, "/metrics")[1].splitlines():
        if row.startswith(line + " "):
            return float(row.split()[-1])
    return None


def unloads(daemon, reason="idle"):
    return metric(daemon, f'pted_model_unloads_total{{reason="{reason}"}}')


# ---- going and coming back ----------------------------------------------------------------------

def go_and_come_back():
    """Files of a folder and of the command line; the counts go on, probes do not care."""
    with served({"digits": "digits"}, str(MODELS / "add.pte"), *SOON) as (daemon, _):
        for name in ("add", "digits"):
            wait_for_state(daemon, name, "UNKNOWN")
            expect("why", index(daemon)[name, "1"][1], "it was idle, its next call loads it")
        for _ in range(3):
            expect("add", infer_add(daemon.port), 200)
            wait_for_state(daemon, "add", "UNKNOWN")
        for path in ("/v2/health/ready", "/v2/models/add/ready", "/v1/models/digits"):
            expect(path, get(daemon, path)[0], 200)
        expect("names", json.loads(get(daemon, "/v2/models")[1])["models"], ["add", "digits"])
        expect("probes do not load", loaded(daemon), [])
        expect("idle", unloads(daemon), 5)
        expect("displaced", unloads(daemon, "displaced"), 0)
        expect("calls", metric(daemon, 'pted_model_requests_total{model="add",version="1",'
                               'code="200"}'), 3)
        expect("listed", metric(daemon, 'pted_models{state="listed"}'), 2)
        series = 'pted_model_last_use_time_seconds{{model="{}",version="1"}}'
        expect("last use", metric(daemon, series.format("add")) > 1e9, True)
        expect("of a model without a call", metric(daemon, series.format("digits")), 0)


def for_each_model():
    """A model with a time of its own, and a pinned one."""
    with served({"add": "add", "digits": "digits"}, *SOON, "--set", "digits:idle-unload=0",
                "--set", "add:idle-unload=2ms") as (daemon, _):
        wait_for_state(daemon, "add", "UNKNOWN")
        expect("the other", state(daemon, "digits"), "READY")
    with served({"add": "add", "digits": "digits"}, "--set", "add:idle-unload=1ms") as (daemon, _):
        wait_for_state(daemon, "add", "UNKNOWN")
        expect("the other", state(daemon, "digits"), "READY")


def methods_go_together():
    """A call of one method keeps the others."""
    with served({"methods": "methods"}, *SOON, "--set", "methods.get_width:idle-unload=0"
                ) as (daemon, _):
        expect("pinned by one", state(daemon, "methods.encode"), "READY")
        expect("idle", unloads(daemon), 0)
    with served({"methods": "methods"}, *SOON) as (daemon, _):
        wait_for_state(daemon, "methods", "UNKNOWN")
        expect("only the file is listed", list(index(daemon)), [("methods", "1")])
        expect("a method loads it", get(daemon, "/v2/models/methods.encode")[0], 200)
        wait_for_state(daemon, "methods", "UNKNOWN")


def steps_of_pipelines_stay():
    steps = [{"model": "add", "inputs": [{"input": 0}, {"input": 1}]}]
    with served({"add": "add", "digits": "digits"}, *SOON,
                pipelines={"chain": {"steps": steps}}) as (daemon, _):
        wait_for_state(daemon, "digits", "UNKNOWN")
        expect("the step", state(daemon, "add"), "READY")
        expect("chain", infer_add(daemon.port, "chain"), 200)


def models_that_nobody_names():
    """A request that names no model means the same one as while it was loaded."""
    with Daemon([*CHAT, *ENCODER, str(MODELS / "add.pte"), *SOON]) as daemon:
        for path, body in (("/v1/completions", {"prompt": "a", "max_tokens": 1}),
                           ("/rerank", {"query": "a", "texts": ["b"], "truncate": True})):
            for _ in range(2):
                wait_until("all are idle", lambda: loaded(daemon) == [])
                status, answer = post(daemon.port, path, json.dumps(body).encode())
                expect(f"{path}: {answer[:200]}", status, 200)
        wait_until("all are idle", lambda: loaded(daemon) == [])
        ids = [row["id"] for row in json.loads(get(daemon, "/v1/models")[1])["data"]]
        expect("names for OpenAI's clients", ids, ["chat", "enc"])


# ---- what is use --------------------------------------------------------------------------------

def calls_keep_it():
    """A call that runs; the model goes when it is over."""
    with Daemon(["--workers=1", *SOON, str(MODELS / "../http/hold.pte")]) as daemon:
        wait_for_state(daemon, "hold", "UNKNOWN")
        before = unloads(daemon)
        clients = occupy(daemon)
        expect("while it runs", state(daemon, "hold"), "READY")
        expect("unloads", unloads(daemon), before)
        release(clients)
        wait_for_state(daemon, "hold", "UNKNOWN")


def sequences_keep_it():
    """An open sequence is use until it ends; an idle one ends with --sequence-timeout."""
    for end in ({"sequence_end": True}, None):
        with served({"running": "running"}, *SOON, "--sequence-timeout",
                    "10m" if end else "300ms") as (daemon, _):
            def count(**parameters):
                result = call(daemon.port, "running", X, sequence_id=7, **parameters)
                return result[1][0] if isinstance(result, list) else result
            expect("first", count(sequence_start=True), 1.0)
            if end:
                for n in range(2, 5):
                    expect("is it there", state(daemon, "running"), "READY")
                    expect("goes on", count(), float(n))
                expect("last", count(**end), 5.0)
            wait_for_state(daemon, "running", "UNKNOWN")
            expect("it has ended", count(), 400)


# ---- files --------------------------------------------------------------------------------------

def changed_files():
    """The next call loads the file that is there then."""
    with served({"add": "add", "digits": "digits"}, *SOON) as (daemon, folder):
        for name in ("add", "digits"):
            wait_for_state(daemon, name, "UNKNOWN")
        put(folder, "digits", "add")
        expect("the new one", infer_add(daemon.port, "digits"), 200)
        put(folder, "add", None)
        wait_until("the damaged one", lambda: infer_add(daemon.port) == 503)
        expect("its state", state(daemon, "add"), "UNAVAILABLE")
        put(folder, "add", "add")
        os.kill(daemon.process.pid, signal.SIGHUP)
        wait_until("a good one", lambda: infer_add(daemon.port) == 200)


def files_that_are_away():
    """A file that is not there for a moment: calls fail, and the first one after it succeeds."""
    with served({"add": "add"}, *SOON) as (daemon, folder):
        wait_for_state(daemon, "add", "UNKNOWN")
        os.rename(folder / "add.pte", folder / "away")
        status, body = post(daemon.port, "/v2/models/add/infer", ADD_BODY)
        expect("away", (status, json.loads(body)["error"]),
               (503, "model 'add' cannot be loaded: its file is not there"))
        expect("it may come back", state(daemon, "add"), "UNKNOWN")
        os.rename(folder / "away", folder / "add.pte")
        expect("back", infer_add(daemon.port), 200)


def named_files_that_are_away():
    with served({}, *LATE) as (_, folder):
        put(folder, "x", "add")
        with Daemon([str(folder / "x.pte"), *SOON]) as daemon:
            wait_for_state(daemon, "x", "UNKNOWN")
            os.rename(folder / "x.pte", folder / "away")
            expect("away", infer_add(daemon.port, "x"), 503)
            expect("it may come back", state(daemon, "x"), "UNKNOWN")
            os.rename(folder / "away", folder / "x.pte")
            expect("back", infer_add(daemon.port, "x"), 200)


def named_folders_that_are_away():
    """A folder that is a model, with no program for a moment, or with several: other models stay,
    and so does that one, if it is loaded."""
    with served({"add": "add", "kept/kept": "add", "x/y": "add"}, *LATE) as (_, root), \
            tempfile.TemporaryDirectory() as folder:
        put(Path(folder), "add", "add")
        with Daemon([f"{root}/x/", f"{root}/kept/", "--models", folder, "--admin-listen",
                     "127.0.0.1:0", *SOON, "--set", "kept:idle-unload=0"]) as daemon:
            for change, undo in (
                    (lambda: os.rename(root / "x/y.pte", root / "x/away"),
                     lambda: os.rename(root / "x/away", root / "x/y.pte")),
                    (lambda: [put(root, f"{name}/z", "add") for name in ("x", "kept")],
                     lambda: [os.remove(root / f"{name}/z.pte") for name in ("x", "kept")])):
                for name in ("x", "add"):
                    wait_for_state(daemon, name, "UNKNOWN")
                change()
                expect("another one", infer_add(daemon.port), 200)
                status, body = post(daemon.port, "/v2/models/x/infer", ADD_BODY)
                expect("away", (status, json.loads(body)["error"]),
                       (503, "model 'x' cannot be loaded: No such file or directory"))
                expect("it may come back", state(daemon, "x"), "UNKNOWN")
                expect_change(daemon, "load", "add")
                expect("a loaded one", infer_add(daemon.port, "kept"), 200)
                undo()
                expect("back", infer_add(daemon.port, "x"), 200)


def versions_that_are_away():
    """One version is not there: the others load without it, and it does when it is back."""
    def infer(version):
        status, body = post(daemon.port, f"/v2/models/m/versions/{version}/infer", ADD_BODY)
        return (status, json.loads(body).get("error"))

    with served({"m/1/model": "add", "m/2/model": "add", "m/3/model": "add"}, *SOON) as (daemon,
                                                                                         folder):
        for away, others in ((2, (1, 3)), (3, (2, 1)), (1, (3, 2))):
            for version in "123":
                wait_for_state(daemon, "m", "UNKNOWN", version)
            path = folder / f"m/{away}/model.pte"
            os.rename(path, folder / "away")
            for version in others:
                expect(f"{version} without {away}", infer(version), (200, None))
            expect(f"{away} is away", infer(away),
                   (503, "model 'm' cannot be loaded: its file is not there"))
            os.rename(folder / "away", path)
            expect(f"{away} is back", infer(away), (200, None))
    with served({"m/2/model": "add", "named": "add"}, *LATE) as (_, root), \
            Daemon(["--models", str(root), "--model", f"m={root}/named.pte", *SOON]) as daemon:
        for version in "12":
            wait_for_state(daemon, "m", "UNKNOWN", version)
        os.rename(root / "named.pte", root / "away")
        expect("2 without 1", infer(2), (200, None))
        expect("1 is away", infer(1),
               (503, "model 'm' cannot be loaded: No such file or directory"))
        os.rename(root / "away", root / "named.pte")
        expect("1 is back", infer(1), (200, None))


def administrators():
    """Loading and unloading by name go on as they are."""
    with served({"add": "add"}, *SOON, "--watch") as (daemon, folder):
        wait_for_state(daemon, "add", "UNKNOWN")
        expect_change(daemon, "load", "add")
        wait_for_state(daemon, "add", "UNKNOWN")
        expect_change(daemon, "unload", "add")
        expect("unloaded", infer_add(daemon.port), 503)
        expect("why", index(daemon)["add", "1"], ("UNAVAILABLE", "unloaded"))
        expect_change(daemon, "load", "add")
        expect("ordered", unloads(daemon, "ordered") <= 1, True)
        wait_for_state(daemon, "add", "UNKNOWN")
        os.remove(folder / "add.pte")
        wait_until("gone", lambda: infer_add(daemon.port) == 404)


# ---- keep_alive ---------------------------------------------------------------------------------

def keeps(daemon, port, value, path="/v1/completions", fields=()):
    """The status of a short answer that says keep_alive."""
    body = {"prompt": "a", "max_tokens": 1, "keep_alive": value}
    if path == "/rerank":
        body = {"query": "a", "texts": ["b"], "truncate": True, "keep_alive": value}
    client = Client(port)
    client.send(build_request("POST", path, json.dumps(body).encode(), fields))
    status = client.answer()
    client.close()
    return status


def requests_say_how_long():
    """The first word after the load counts, then the latest time that anybody has said."""
    with Daemon([*CHAT, *ENCODER, *LATE, "--admin-listen", "127.0.0.1:0"]) as daemon:
        for value in (0, "0s", "1ms", 0.001):
            expect(f"{value}", keeps(daemon, daemon.port, value), 200)
            wait_for_state(daemon, "chat", "UNKNOWN")
        expect("why", unloads(daemon, "keep_alive") > 0, True)
        expect("not because of --idle-unload", unloads(daemon), 0)
        expect("an encoder", keeps(daemon, daemon.port, "1ms", "/rerank"), 200)
        wait_for_state(daemon, "enc", "UNKNOWN")
        expect("without a word", post(daemon.port, "/v1/completions",
                                      b'{"prompt":"a","max_tokens":1}')[0], 200)
        for _ in range(20):
            expect("it is not taken from others", keeps(daemon, daemon.port, 0), 200)
        expect("it stays", state(daemon, "chat"), "READY")
        for bad in ("soon", "5 m", True, [], {}):
            expect(f"{bad}", keeps(daemon, daemon.port, bad), 400)
        expect("null is the default", keeps(daemon, daemon.port, None), 200)
        expect("an order", keeps(daemon, daemon.admin_port(), 0), 200)
        wait_for_state(daemon, "chat", "UNKNOWN")


def clients_pin_nothing():
    """A client keeps a model no longer than the operator lets it; only an operator pins one."""
    for limit in ((), ("--keep-alive-max", "2ms")):
        with Daemon([*CHAT, *SOON, *limit, "--admin-listen", "127.0.0.1:0"]) as daemon:
            for value in (-1, "-1m", 1e300, "24h", 3600):
                expect(f"{value}", keeps(daemon, daemon.port, value), 200)
                wait_for_state(daemon, "chat", "UNKNOWN")
            expect("an order", keeps(daemon, daemon.admin_port(), -1), 200)
            for _ in range(20):
                expect("after that", keeps(daemon, daemon.port, 0), 200)
            expect("it stays", state(daemon, "chat"), "READY")
    with Daemon([*CHAT, *SOON, "--keep-alive-max", "1h"]) as daemon:
        expect("longer", keeps(daemon, daemon.port, "1h"), 200)
        expect("others", keeps(daemon, daemon.port, 0), 200)
        expect("it stays", state(daemon, "chat"), "READY")


def clients_unload_no_pinned_model():
    """Nor one of a daemon that unloads nothing. A token of scope admin is an operator's."""
    with Guarded(*CHAT, "--admin-listen", "127.0.0.1:0") as guarded:
        daemon = guarded.daemon

        def state_of_chat():
            _, body = post(daemon.admin_port(), "/v2/repository/index")
            return {row["name"]: row["state"] for row in json.loads(body)}["chat"]
        for _ in range(20):
            expect("a client", keeps(daemon, daemon.port, 0,
                                     fields=[f"Authorization: Bearer {INFER}"]), 200)
        expect("it stays", state_of_chat(), "READY")
        expect("an operator", keeps(daemon, daemon.port, 0,
                                    fields=[f"Authorization: Bearer {ADMIN}"]), 200)
        wait_until("it goes", lambda: state_of_chat() == "UNKNOWN")


# ---- calls that wait ----------------------------------------------------------------------------

class Busy:
    """A daemon whose changes of models wait for release(): it loads a file that does not come.
    |files| are idle before that, if --idle-unload says so."""

    def __init__(self, files, *arguments):
        self.files, self.arguments = files, arguments

    def __enter__(self):
        self.stack = ExitStack()
        self.origin = self.stack.enter_context(HoldingOrigin())
        self.origin.may_send.set()
        cache = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.daemon, self.folder = self.stack.enter_context(served(
            self.files, "--cache-dir", cache, "--model", f"slow={self.origin.url}/add.pte",
            "--set", "slow:idle-unload=0", "--listen", f"unix:{cache}/socket",
            *self.arguments))
        self.path = f"{cache}/socket"
        for name in self.files:
            wait_for_state(self.daemon, name, "UNKNOWN")
        self.origin.may_send.clear()
        self.origin.files["/add.pte"] = (MODELS / "digits.pte").read_bytes()
        count = len(self.origin.requests)
        self.admin = Client(self.daemon.admin_port())
        self.admin.send(build_request("POST", "/v2/repository/models/slow/load", b""))
        wait_until("the file is asked for", lambda: len(self.origin.requests) > count)
        return self

    def __exit__(self, *why):
        self.origin.may_send.set()
        self.stack.close()

    def release(self):
        """Lets the changes go on."""
        self.origin.may_send.set()
        expect("the slow file", self.admin.answer(), 200)

    def ask(self, model="add", fields=(), client=None):
        """A client that has sent a call."""
        client = client or Client(self.daemon.port)
        client.send(build_request("POST", f"/v2/models/{model}/infer", ADD_BODY, fields))
        return client

    def others(self):
        """A client of its own: a connection to the socket."""
        client = Client.__new__(Client)
        client.socket = socket.socket(socket.AF_UNIX)
        client.socket.settimeout(TIMEOUT_S)
        client.socket.connect(self.path)
        client.unread, client.fields, client.body = b"", [], b""
        return client

    def held(self, resource="loading"):
        """How much of |resource| is in use."""
        return metric(self.daemon, f'pted_share_used{{resource="{resource}"}}')

    def wait_for_held(self, count, resource="loading"):
        """Waits until that is so."""
        wait_until(f"{count} are in use", lambda: self.held(resource) == count)


def error(client):
    return json.loads(client.body)["error"]


def callers_are_bounded():
    """One client leaves places to others. When the model is loaded, those that wait get answers."""
    with Busy({"add": "add"}, *SOON, "--loading-count-max", "8") as busy:
        waiting = [busy.ask() for _ in range(6)]
        busy.wait_for_held(6)
        late = busy.ask()
        expect("too many of one client", late.answer(), 429)
        expect("why", error(late), "this client has 6 of 8 calls that wait for a model to load, "
                                   "the others are for other clients")
        expect("metadata wait, too, and are calls here", get(busy.daemon, "/v2/models/add")[0], 429)
        waiting += [busy.ask(client=busy.others()) for _ in range(2)]
        busy.wait_for_held(8)
        last = busy.ask(client=busy.others())
        expect("too many", last.answer(), 429)
        expect("why", error(last), "all 8 calls that wait for a model to load are in use")
        expect("one load", busy.held("loads"), 1)
        busy.release()
        expect("answers", [client.answer() for client in waiting], [200] * 8)
        busy.wait_for_held(0)
        busy.wait_for_held(0, "loads")
        expect("refused", metric(busy.daemon, 'pted_share_refused_total{resource="loading"}'), 3)


def callers_do_not_wait_for_ever():
    """The load goes on without them; the time of a client counts, that of --request-timeout does
    not."""
    with Busy({"add": "add"}, "--idle-unload", "50ms", "--loading-timeout", "300ms",
              "--request-timeout", "100ms") as busy:
        client = busy.ask(fields=["X-Request-Timeout-Ms: 20"])
        expect("its own time", client.answer(), 504)
        expect("why", error(client).startswith("model 'add' is still loading after "), True)
        client = busy.ask()
        expect("ours", client.answer(), 503)
        expect("why", re.sub("after [0-9.]+ ms", "after N ms", error(client)),
               "model 'add' is still loading after N ms (--loading-timeout)")
        expect("when to ask again", "retry-after: 1" in
               [f"{name}: {value}".lower() for name, value in client.fields], True)
        busy.wait_for_held(0)
        busy.release()
        expect("later", infer_add(busy.daemon.port), 200)
    with Busy({"add": "add"}, *SOON, "--request-timeout", "50ms") as busy:
        client = busy.ask()
        busy.wait_for_held(1)
        time.sleep(0.2)
        busy.release()
        expect("a call after a long load", client.answer(), 200)


def callers_that_leave():
    with Busy({"add": "add"}, "--idle-unload", "100ms") as busy:
        clients = [busy.ask() for _ in range(20)]
        busy.wait_for_held(20)
        for client in clients[::2]:
            client.reset()
        busy.wait_for_held(10)
        for client in clients[1::2]:
            client.reset()
        busy.wait_for_held(0)
        expect("the load", busy.held("loads"), 1)
        stays = busy.ask()
        busy.release()
        expect("one that stays", stays.answer(), 200)


def callers_of_a_bad_file():
    """All are told, and the file is read once."""
    with Busy({"add": "add"}, *SOON) as busy:
        put(busy.folder, "add", None)
        clients = [busy.ask() for _ in range(100)]
        busy.wait_for_held(100)
        busy.release()
        expect("answers", {client.answer() for client in clients}, {503})
        expect("reason", error(clients[0])[:35], "model 'add' cannot be called: not a")
        expect("tries", busy.daemon.read_log().count("error: model file"), 1)
        busy.wait_for_held(0)
        expect("later ones", infer_add(busy.daemon.port), 503)
        expect("tries", busy.daemon.read_log().count("error: model file"), 1)


def loads_are_bounded():
    """A client that calls many files leaves room for the files of others and for orders."""
    names = [f"m{n:02}" for n in range(60)]
    with Busy({name: "add" for name in names + ["add"]}, *SOON) as busy:
        clients = [busy.ask(name) for name in names]
        busy.wait_for_held(36, "loads")
        wait_until("refusals", lambda: metric(
            busy.daemon, 'pted_share_refused_total{resource="loads"}') == 24)
        busy.wait_for_held(36)
        other = busy.ask(client=busy.others())
        busy.wait_for_held(37, "loads")
        admin = Client(busy.daemon.admin_port())
        admin.send(build_request("POST", "/v2/repository/models/add/load", b""))
        busy.release()
        expect("statuses", sorted(client.answer() for client in clients), [200] * 36 + [429] * 24)
        expect("the other client", other.answer(), 200)
        expect("the order", admin.answer(), 200)
        busy.wait_for_held(0, "loads")


def stop_while_callers_wait():
    with Busy({"add": "add"}, *SOON) as busy:
        clients = [busy.ask() for _ in range(20)]
        busy.wait_for_held(20)
        busy.daemon.process.terminate()
        busy.daemon.wait_for("stopping: ")
        busy.origin.may_send.set()
        expect("answers", {client.answer() for client in clients}, {503})
        expect("why", error(clients[0]), "the daemon is stopping")
        expect("exit", busy.daemon.process.wait(TIMEOUT_S), 0)


def calls_while_models_go():
    """Models go whenever they can, while clients call them by all kinds of requests."""
    name = ADD_BODY.decode()
    calls = [("/v2/models/add/infer", ADD_BODY),
             ("/v2/batch", f'[{{"model_name":"digits2",{name[1:-1]}}},'
                           f'{{"model_name":"add",{name[1:-1]}}}]'.encode()),
             ("/v1/completions", b'{"prompt":"a","max_tokens":2}'),
             ("/v1/chat/completions",
              b'{"model":"chat","messages":[{"role":"user","content":"a"}],"max_tokens":2}')]
    with served({"add": "add", "digits2": "add"}, *CHAT, *SOON) as (daemon, _):
        def run(number):
            for n in range(40):
                path, body = calls[(number + n) % len(calls)]
                status, answer = post(daemon.port, path, body)
                expect(f"{path}: {answer[:300]}", status, 200)
                if n % 4 == number:
                    time.sleep(0.003)
        in_threads(4, run)
        expect("did they go", unloads(daemon) > 0, True)
        wait_until("all go", lambda: loaded(daemon) == [])
        wait_until("nothing is kept", lambda: metric(daemon, "pted_prefixes") == 0)


CHECKS = (go_and_come_back, for_each_model, methods_go_together, steps_of_pipelines_stay,
          models_that_nobody_names,
          calls_keep_it, sequences_keep_it, changed_files, files_that_are_away,
          named_files_that_are_away, named_folders_that_are_away, versions_that_are_away,
          administrators, requests_say_how_long, clients_pin_nothing,
          clients_unload_no_pinned_model, callers_are_bounded,
          callers_do_not_wait_for_ever, callers_that_leave, callers_of_a_bad_file,
          loads_are_bounded, stop_while_callers_wait, calls_while_models_go)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
