#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models that nobody needs (--idle-unload): they go, calls load them again, and what uses a model
keeps it. Calls wait while a model loads. No result depends on the time that something takes: each
test waits for the state that it expects.
"""
import json
import os
import signal
import sys

from load import occupy, release, wait_until
from run_embeddings import ENCODER
from run_generate import CHAT
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Report, build_request, expect
from run_lifecycle import (ADD_BODY, X, call, expect_change, index, infer_add, loaded, post, put,
                           served, state, wait_for_state)

SOON = ("--idle-unload", "1ms")
LATE = ("--idle-unload", "1h")


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


CHECKS = (go_and_come_back, for_each_model, methods_go_together, steps_of_pipelines_stay,
          models_that_nobody_names,
          calls_keep_it, sequences_keep_it, changed_files, files_that_are_away,
          named_files_that_are_away, administrators)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
