#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests that have to wait: order, limits, deadlines, batches, and clients that disconnect.

No result depends on the time that something takes; see load.py.

usage: run_sched.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path

import load
from load import (ADD, DEEP, HELD_WORKER, HOLD, ONE_WORKER, TRIAL_S, answers,
                  cut_while_running, deep_request, get_json, hold_request, in_threads, occupy,
                  proved, release, send, send_hold, wait_for_load, wait_until)
from run_http import MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request, expect

LEDGER = str(MODELS / "ledger.pte")
UNET = str(MODELS / "unet.pte")


# ---- admission ----

def full_by_count():
    """Two requests run, one waits, and the next gets 429 with Retry-After. The waiting one is
    answered."""
    with Daemon([*HELD_WORKER, "--queue-count-max=1"]) as daemon:
        held, waiting = occupy(daemon), send_hold(daemon, 1)
        wait_for_load(daemon, 2, 1)
        late = send_hold(daemon, 1)
        expect("one too many", late.answer(), 429)
        expect("text", json.loads(late.body)["error"], "model 'hold': 1 requests wait already")
        expect("Retry-After", 1 <= int(late.field("retry-after")) <= 60, True)
        release(held)
        expect("the one that waited", waiting.answer(), 200)
        late.send(hold_request(1))
        expect("later", late.answer(), 200)


def full_by_bytes():
    """A single request may exceed the limit of bytes. The next one may not wait beside it."""
    with Daemon([*HELD_WORKER, "--queue-bytes-max=1K"]) as daemon:
        held, waiting = occupy(daemon), send_hold(daemon, 4096)
        wait_for_load(daemon, 2, 1)
        late = send_hold(daemon, 4096)
        expect("one too many", late.answer(), 429)
        expect("text", "bytes wait already" in json.loads(late.body)["error"], True)
        release(held)
        expect("the one that waited", waiting.answer(), 200)


def limit_of_a_model():
    """One request of the model runs at a time, and the others run after it."""
    with Daemon([*HELD_WORKER, "--running-count-max=1"]) as daemon:
        held, waiting = occupy(daemon, 1), [send_hold(daemon, 512) for _ in range(5)]
        wait_for_load(daemon, 1, 5)
        release(held)
        expect("all", answers(waiting), [200] * 5)


# ---- deadlines ----

def late_while_waiting():
    with Daemon([*HELD_WORKER]) as daemon:
        held = occupy(daemon)
        late = send_hold(daemon, 1, {"timeout": 1000})
        expect("late", late.answer(), 504)
        expect("text", json.loads(late.body)["error"], "model 'hold': still waiting after 1 ms")
        wait_for_load(daemon, 2, 0)
        release(held)


def late_while_running():
    """The call is stopped at its deadline, and the worker is free for the next call."""
    with Daemon([*HELD_WORKER]) as daemon:
        expect("the first, with its plan", send_hold(daemon, 1).answer(), 200)

        def ask(ms):
            late = send_hold(daemon, 1, fields=[f"X-Request-Timeout-Ms: {ms}"], goes_on=True)
            expect("late", late.answer(), 504)
            text = json.loads(late.body)["error"]
            late.send(hold_request(1))
            expect("the next one", late.answer(), 200)
            return text == f"model 'hold': not done after {ms} ms"
        cut_while_running(ask)


def limit_of_the_daemon():
    with Daemon([*HELD_WORKER, "--request-timeout=10ms"]) as daemon:
        late = send_hold(daemon, 1, {"timeout": 1 << 60}, goes_on=True)
        expect("late", late.answer(), 504)
        expect("text", json.loads(late.body)["error"].endswith(
            " after 10 ms (--request-timeout)"), True)


def settings_of_a_model():
    """A setting of one model does not change other models."""
    with Daemon([*HELD_WORKER, f"--model=late={HOLD}", "--set=late:request-timeout=10ms",
                 "--set=hold:queue-count-max=1"]) as daemon:
        held, waiting = occupy(daemon), send_hold(daemon, 1)
        wait_for_load(daemon, 2, 1)
        late = send_hold(daemon, 1, model="late", goes_on=True)
        expect("one too many", send_hold(daemon, 1).answer(), 429)
        expect("late", late.answer(), 504)
        text = json.loads(late.body)["error"]
        expect("text", "after 10 ms" in text, True)
        release(held)
        expect("the one that waited", waiting.answer(), 200)


def bad_timeouts():
    with Daemon([DEEP]) as daemon:
        for value in ("soon", "-1", "1.5", "0", "", "1 2", str(1 << 64)):
            client = send(daemon, 1, fields=[f"X-Request-Timeout-Ms: {value}"])
            expect(f"'{value}'", client.answer(), 400)
        twice = send(daemon, 1, fields=["X-Request-Timeout-Ms: 1000"] * 2)
        expect("twice", twice.answer(), 400)
        expect("as long as can be", send(daemon, 1, fields=[
            f"X-Request-Timeout-Ms: {(1 << 64) - 1}"]).answer(), 200)


# ---- order ----

def priorities():
    """An urgent request overtakes those that wait, but not those that run. The log has a line for
    each answer, in the order of the answers."""
    with Daemon([*HELD_WORKER, "--running-count-max=1", "--log-requests=all"]) as daemon:
        held, waiting, priorities_by_port = occupy(daemon, 1), [], {}
        for priority in (8, 0, 1):
            client = send_hold(daemon, 1, {"priority": priority})
            priorities_by_port[str(client.socket.getsockname()[1])] = priority
            waiting.append(client)
            wait_for_load(daemon, 1, len(waiting))
        release(held)
        expect("waited", answers(waiting), [200] * 3)
        daemon.wait_for(r"(?s)(hold/infer status=200.*){3}")
        ports = re.findall(r"remote=\S+:(\d+) .*hold/infer status=200", daemon.read_log())
        expect("order", [priorities_by_port[port] for port in ports], [1, 0, 8])


def fast_beside_slow():
    """Requests of a small model are answered while a slow one has the device and a queue."""
    with Daemon([*HELD_WORKER, ADD]) as daemon:
        held, waiting = occupy(daemon), [send_hold(daemon, 1) for _ in range(2)]
        wait_for_load(daemon, 2, 2)
        body = json.dumps({"inputs": [
            {"name": f"input_{i}", "shape": [2, 3], "datatype": "FP32", "data": [i] * 6}
            for i in range(2)]}).encode()
        fast = Client(daemon.port)
        for _ in range(20):
            fast.send(build_request("POST", "/v2/models/add/infer", body))
            expect("fast", fast.answer(), 200)
        wait_for_load(daemon, 2, 2)
        release(held)
        expect("slow", answers(waiting), [200] * 2)


# ---- batches ----

def rows_before():
    """Rows of a call that is before the others for some seconds, at most, on any build."""
    return min(4096, 4 * load.MANY_ROWS)


def all_at_once(daemon, requests):
    """Sends the requests while the device is busy, so that they wait together. Returns the bodies
    of their answers."""
    taken = [send(daemon, rows_before()) for _ in range(2)]
    clients = [Client(daemon.port) for _ in requests]
    for client, request in zip(clients, requests):
        client.send(request)
    expect("together", answers(clients), [200] * len(clients))
    expect("what was before them", answers(taken), [200, 200])
    return [client.body for client in clients]


def one_by_one(daemon, requests):
    client, bodies = Client(daemon.port), []
    for request in requests:
        client.send(request)
        expect("alone", client.answer(), 200)
        bodies.append(client.body)
    return bodies


def batches():
    """Requests have the same results in a batch and alone, and a batch needs fewer executions."""
    requests = [deep_request(1 + i % 3, value=0.1 * i - 1) for i in range(40)]
    with Daemon([*ONE_WORKER, "--max-batch=1"]) as daemon:
        apart = one_by_one(daemon, requests)
        all_at_once(daemon, requests)
        row, = get_json(Client(daemon.port), "/v2/models/deep/stats")["model_stats"]
        expect("never together", row["execution_count"], 2 * len(requests) + 2)
        expect("sizes", [batch["batch_size"] for batch in row["batch_stats"]], [1, 2, 3, 128])
    with Daemon([*ONE_WORKER, "--max-batch=16"]) as daemon:
        proved(daemon)
        expect("together", all_at_once(daemon, requests) == apart, True)
        row, = get_json(Client(daemon.port), "/v2/models/deep/stats")["model_stats"]
        expect("rows", row["inference_count"],
               2 * rows_before() + sum(1 + i % 3 for i in range(40)))
        expect("given, not learnt", row["batch_sizes"], [])
        expect("all that were asked for", row["batch_rows_max"], 16)
        answered = row["inference_stats"]["success"]["count"]
        expect("fewer runs", row["execution_count"] < answered, True)


def delayed_batches():
    """With --max-delay-us, requests wait on an idle device until the batch is full."""
    def numbers(client):
        row, = get_json(client, "/v2/models/deep/stats")["model_stats"]
        return row["execution_count"], row["inference_stats"]["batch_wait"]["ns"]
    with Daemon([*ONE_WORKER, "--set=deep:max-batch=4", "--max-delay-us=10000000"]) as daemon:
        client = Client(daemon.port)
        expect("all that were asked for", proved(daemon), 4)
        expect("four", answers([send(daemon, 1) for _ in range(4)]), [200] * 4)
        expect("together", numbers(client)[0], 1)
        expect("waited", numbers(client)[1] > 0, True)
        expect("five rows", send(daemon, 5).answer(), 200)
        expect("its own batch", numbers(client)[0], 2)
        expect("late", send(daemon, 1, {"timeout": 1000}).answer(), 504)
        leaver = send(daemon, 1)
        leaver.reset()
        wait_until("abandoned", lambda: "abandoned in step" in daemon.read_log())
        expect("after them", answers([send(daemon, 1) for _ in range(4)]), [200] * 4)
    with Daemon([*ONE_WORKER, "--set=deep:max-delay-us=20000"]) as daemon:
        client = Client(daemon.port)
        expect("all rows", proved(daemon), 32)
        expect("alone", send(daemon, 1).answer(), 200)
        if get_json(client, "/v2/models/deep/stats")["model_stats"][0]["batch_rows_max"] > 1:
            expect("waited for others", numbers(client)[1] >= 20000000, True)


def batches_of_one_row():
    """A model exported for one row runs in batches if its operators have rules for them. Otherwise
    the statistics say why not."""
    bodies = [json.dumps({"inputs": [{
        "name": "input_0", "shape": [1, 3, 24, 20], "datatype": "FP32",
        "data": [(i * k % 17) / 16 for k in range(1440)]}]}).encode() for i in range(1, 13)]
    requests = [build_request("POST", "/v2/models/unet/infer", body) for body in bodies]
    with Daemon([*ONE_WORKER, UNET, ADD]) as daemon:
        proved(daemon, "unet")
        expect("the same", all_at_once(daemon, requests), one_by_one(daemon, requests))
        row, = get_json(Client(daemon.port), "/v2/models/unet/stats")["model_stats"]
        sizes = [size["rows"] for size in row["batch_sizes"]]
        expect("sizes", (sizes, row["batch_rows_max"] in sizes or not sizes),
               ([2 ** i for i in range(len(sizes) - 1)] + [row["batch_rows_proven"]] * bool(sizes),
                True))
        if row["batch_rows_max"] >= 2:
            answered = row["inference_stats"]["success"]["count"]
            expect("fewer runs", row["execution_count"] < answered, True)
        row, = get_json(Client(daemon.port), "/v2/models/add/stats")["model_stats"]
        expect("alone", (row["batch_rows_max"], row["batch_refusal"]),
               (1, "dim 0 of input 'input_0' is not 1"))


def served_before_the_proof():
    """Many models are tried for batches, one after the other. Requests do not wait for the trials,
    and the trials do not wait for requests."""
    count = 24 if load.MANY_ROWS > 4096 else 6  # a slow build tries each for a minute
    models = [f"--model=m{i}={DEEP}" for i in range(count)]
    with Daemon(["--workers=1", *models]) as daemon:
        clients = [send(daemon, 1 + i % 3, model=f"m{i}") for i in range(count)]
        expect("at once", answers(clients), [200] * count)
        for i in range(count):
            expect(f"m{i}", send(daemon, 1, model=f"m{i}").answer(), 200)
        rows = [proved(daemon, f"m{i}") for i in range(count)]
        expect("all rows of all of them", rows, [32] * count)
    with Daemon(["--workers=1", *models]) as daemon:
        expect("stops while it tries", send(daemon, 1, model="m0").answer(), 200)


def trial_beside_load():
    """The trial of a model that is loaded while the device is busy gives way to calls and says so.
    At its end it has found the same rows as the trial on an idle device."""
    def metric(name):
        client = Client(daemon.port)  # the trial may take longer than an idle connection lasts
        client.send(build_request("GET", "/metrics"))
        expect("metrics", client.answer(), 200)
        row, = re.findall(rf'^pted_model_batch_{name}{{model="unet",.*}} (\d+)$',
                          client.body.decode(), re.MULTILINE)
        return int(row)

    def change(what):
        admin = Client(daemon.admin_port())
        admin.send(build_request("POST", f"/v2/repository/models/unet/{what}", b"{}"))
        expect(what, admin.answer(), 200)
    with Daemon([*HELD_WORKER, UNET, "--max-batch=64", "--admin-listen=127.0.0.1:0"]) as daemon:
        idle = proved(daemon, "unet")
        expect("idle", (idle, metric("rows_proven"), metric("trial_open")), (64, 64, 0))
        held = occupy(daemon)
        change("unload")
        change("load")
        daemon.wait_for(r"warning: model unet: .*: the time for the trial was over; "
                        "the trial goes on when the device is idle")
        rows = metric("rows_proven")
        expect("some rows, and more to come", (1 <= rows < 64, metric("trial_open")), (True, 1))
        expect("tries", metric("trials_late_total") >= 2, True)
        release(held)
        wait_until("the end of the trial", lambda: metric("trial_open") == 0, TRIAL_S)
        expect("the same rows", metric("rows_proven"), idle)
        late = metric("trials_late_total")
        expect("no more tries", (metric("trial_open"), metric("trials_late_total")), (0, late))


def trials_are_kept():
    """What a trial has proven is kept beside the packed weights: the next start needs no trial. A
    damaged file is ignored with a warning and made anew."""
    earlier = r"model deep: requests that wait run as batches of up to 48 rows; an earlier start"
    with tempfile.TemporaryDirectory() as folder:
        arguments = [DEEP, "--max-batch=48", f"--packed-dir={folder}"]

        def start(pattern):
            with Daemon(arguments) as daemon:
                expect("rows", proved(daemon), 48)
                daemon.wait_for(pattern)
                file, = Path(folder).glob("*.proven")
                return file, daemon.read_log()
        file, log = start("model deep: requests that wait run as batches of up to 48 rows")
        expect("proven by this start", re.search(earlier, log), None)
        before = file.stat()
        file, _ = start(earlier)
        expect("the same file", (file.stat().st_ino, file.stat().st_mtime_ns),
               (before.st_ino, before.st_mtime_ns))
        content = bytearray(file.read_bytes())
        content[40] ^= 1
        file.write_bytes(content)
        _, log = start("warning: model deep: what was proven cannot be read and is tried "
                       "again: .*it is damaged")
        expect("proven again", re.search(earlier, log), None)
        start(earlier)
    with Daemon(arguments[:2]) as daemon:  # without a folder nothing is kept
        expect("rows", proved(daemon), 48)


def batches_without_memory():
    """If there is no memory for a joined call, each request runs alone."""
    requests = [deep_request(1 + i % 3, value=0.1 * i) for i in range(12)]
    with Daemon([*ONE_WORKER, "--ring-bytes=14M"]) as daemon:
        proved(daemon)
        expect("the same", all_at_once(daemon, requests), one_by_one(daemon, requests))


# ---- sequences ----

def ledger(client, method, inputs, **parameters):
    client.send(build_request("POST", f"/v2/models/ledger.{method}/infer", json.dumps({
        "inputs": [{"name": f"input_{i}", "datatype": kind, "shape": shape, "data": data}
                   for i, (kind, shape, data) in enumerate(inputs)],
        "parameters": parameters}).encode()))
    return client.answer()


def enter(client, row, value, **parameters):
    """Writes |value| into all elements of two rows: |row| and the next one."""
    return ledger(client, "enter", [("INT64", [2], [row, row + 1]),
                                    ("FP32", [2, 3], [value] * 6)], **parameters)


def total(client, **parameters):
    expect("total", ledger(client, "total", [("FP32", [], [1.0])], **parameters), 200)
    return json.loads(client.body)["outputs"][0]["data"]


def sequences():
    """Two sequences that take turns never see each other's state. Both methods of the program see
    the same state."""
    with Daemon([LEDGER, "--sequence-count-max=2"]) as daemon:
        client, other = Client(daemon.port), Client(daemon.port)
        expect("alone", enter(client, 0, 9), 200)
        expect("forgotten", total(client), [0, 0, 0])
        expect("not open", enter(client, 0, 1, sequence_id=5), 400)
        expect("text", json.loads(client.body)["error"],
               "parameters.sequence_id: this sequence is not open, or not any more: its first "
               "request has to say sequence_start")
        expect("no id", enter(client, 0, 1, sequence_start=True), 400)
        for number, who in ((5, client), ("five", other)):
            expect("start", enter(who, 0, 1, sequence_id=number, sequence_start=True), 200)
        expect("more", enter(client, 2, 10, sequence_id=5), 200)
        expect("5", total(other, sequence_id=5), [22, 22, 22])
        expect("five", total(client, sequence_id="five"), [2, 2, 2])
        expect("too many", enter(client, 0, 1, sequence_id=6, sequence_start=True), 429)
        # Row 4 does not exist, so nothing changes.
        expect("wrong", enter(client, 3, 1, sequence_id=5), 400)
        expect("5 as before", total(client, sequence_id=5), [22, 22, 22])
        expect("start again", total(client, sequence_id=5, sequence_start=True), [0, 0, 0])
        expect("end", total(client, sequence_id=5, sequence_end=True), [0, 0, 0])
        expect("ended", enter(client, 0, 1, sequence_id=5), 400)
        expect("0 is no sequence", enter(client, 0, 1, sequence_id=0), 200)


def idle_sequence():
    """A sequence without requests ends after --sequence-timeout and makes room for another one."""
    with Daemon([LEDGER, "--sequence-timeout=300ms", "--sequence-count-max=1"]) as daemon:
        client = Client(daemon.port)
        expect("start", enter(client, 0, 1, sequence_id=1, sequence_start=True), 200)
        # Requests for sequence 2 do not keep sequence 1 open.
        wait_until("room for another sequence",
                   lambda: enter(client, 0, 1, sequence_id=2, sequence_start=True) == 200)
        expect("the idle one has ended", enter(client, 0, 1, sequence_id=1), 400)


def sequence_in_order():
    """Many connections use one sequence. Its requests run one at a time, and none is lost."""
    with Daemon([LEDGER, "--workers=2"]) as daemon:
        first = Client(daemon.port)
        expect("start", enter(first, 0, 0, sequence_id=1, sequence_start=True), 200)

        def run(number):
            client = Client(daemon.port)
            for i in range(50):
                expect("status", enter(client, number % 3, i, sequence_id=1), 200)
        in_threads(8, run)
        expect("the last ones", total(first, sequence_id=1), [4 * 49] * 3)


# ---- numbers ----

def statistics():
    """Each request is counted once. The members that load generators read exist and agree."""
    with Daemon([*ONE_WORKER, ADD]) as daemon:
        client = Client(daemon.port)
        before = get_json(client, "/v2/models/deep/stats")["model_stats"][0]
        expect("nothing yet", before["last_inference"], 0)
        start_ms = int(time.time() * 1000)
        for rows, status in ((1, 200), (1, 200), (1, 400), (3, 200)):
            client.send(deep_request(rows, {"sequence_id": True} if status == 400 else None))
            expect("infer", client.answer(), status)
        late = send(daemon, load.MANY_ROWS, {"timeout": 1000})
        expect("late", late.answer(), 504)
        row, = get_json(client, "/v2/models/deep/stats")["model_stats"]
        expect("row", (row["name"], row["version"]), ("deep", "1"))
        expect("inferences", (row["inference_count"], row["execution_count"]), (5, 3))
        expect("the time of the last one",
               start_ms <= row["last_inference"] <= time.time() * 1000, True)
        phases = row["inference_stats"]
        counts = {name: phase["count"] for name, phase in phases.items()}
        expect("counts", counts, {"success": 3, "fail": 2, "cancel": 0, "queue": 3,
                                  "compute_input": 3, "compute_infer": 3, "compute_output": 3,
                                  "cache_hit": 0, "cache_miss": 0, "write": 3,
                                  "batch_wait": 3, "decode": 0})
        parts = sum(phases[name]["ns"] for name in ("queue", "compute_input", "compute_infer",
                                                    "compute_output", "write"))
        expect("the phases make up the whole", parts, phases["success"]["ns"])
        expect("batches", [(batch["batch_size"], batch["compute_infer"]["count"])
                           for batch in row["batch_stats"]], [(1, 2), (3, 1)])
        expect("load", row["load"], {"waiting": 0, "waiting_bytes": 0, "running": 0})
        names = [row["name"] for row in get_json(client, "/v2/models/stats")["model_stats"]]
        expect("all", names, ["add", "deep"])
        client.send(build_request("GET", "/v2/models/none/stats"))
        expect("unknown", client.answer(), 404)


# ---- clients that go ----

def disconnect(daemon, leave):
    """The clients of two running and three waiting requests disconnect. All of the requests end,
    and no memory stays taken."""
    running, waiting = occupy(daemon), [send_hold(daemon, 512) for _ in range(3)]
    wait_for_load(daemon, 2, 3)
    for client in waiting + running:
        leave(client)
    wait_until("abandoned", lambda: daemon.read_log().count("abandoned in step") == 5)
    wait_for_load(daemon, 0, 0)
    expect("after them", send_hold(daemon, 1).answer(), 200)


def client_resets():
    with Daemon([*HELD_WORKER]) as daemon:
        disconnect(daemon, Client.reset)


def client_closes():
    with Daemon([*HELD_WORKER]) as daemon:
        disconnect(daemon, Client.close)


def drain():
    """Requests that wait when SIGTERM comes are still answered."""
    with Daemon([*HELD_WORKER]) as daemon:
        held, waiting = occupy(daemon), [send_hold(daemon, 512) for _ in range(3)]
        wait_for_load(daemon, 2, 3)
        daemon.process.terminate()
        daemon.wait_for("stopping|draining")
        release(held)
        expect("all", answers(waiting), [200] * 3)
        expect("exit status", daemon.process.wait(TIMEOUT_S), 0)


# ---- everything at once ----

def one_of_many(daemon, chance, counts):
    """Sends a random request. If its client waits, it must get one whole answer."""
    client = Client(daemon.port)
    kind = chance.randrange(6)
    fields, rows = [], chance.choice((1, 1, 3, 50, 400))
    if kind == 0:
        fields = [f"X-Request-Timeout-Ms: {chance.randrange(1, 20)}"]
    request = deep_request(rows, {"priority": chance.randrange(9)}, fields)
    if kind == 1:
        client.send(request[:chance.randrange(len(request))])
        client.reset()
        counts["cut"] += 1
    elif kind == 2:
        client.send(request)
        time.sleep(chance.random() * 0.01)
        (client.reset if chance.random() < 0.5 else client.close)()
        counts["gone"] += 1
    else:
        client.send(request)
        status = client.answer()
        if status not in (200, 429) and not (status == 504 and kind == 0):
            raise Failure(f"status {status}: {client.body!r}")
        if client.unread:
            raise Failure(f"bytes behind the answer: {client.unread!r}")
        expect("size", status != 200 or len(client.body) > rows * 16, True)
        counts[status] = counts.get(status, 0) + 1
        client.close()


def random_requests():
    """Ten thousand requests; some are late and some clients disconnect. Each one is answered or its
    client is gone. At the end a request is accepted that needs nearly all of the ring."""
    total = int(os.environ.get("SCHED_REQUESTS", "1000"))
    with Daemon(["--workers=2", "--queue-count-max=12", "--ring-bytes=32M", DEEP]) as daemon:
        counts = {"cut": 0, "gone": 0}

        def run(seed):
            chance = random.Random(seed)
            for _ in range(total // 16):
                one_of_many(daemon, chance, counts)
        in_threads(16, run)
        wait_until("the ring is empty", lambda: send(daemon, load.MANY_ROWS).answer() == 200)
        print("    ", counts)


CHECKS = (
    full_by_count, full_by_bytes, limit_of_a_model, late_while_waiting, late_while_running,
    limit_of_the_daemon, settings_of_a_model, bad_timeouts, priorities, fast_beside_slow,
    client_resets, client_closes, batches, delayed_batches, batches_of_one_row,
    served_before_the_proof, trial_beside_load, trials_are_kept, batches_without_memory,
    sequences, idle_sequence, sequence_in_order, statistics, drain, random_requests,
)


def main():
    report = Report()
    load.calibrate()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
