#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Steps of pipelines and requests of lists as jobs of their own: while the device is busy they wait
beside other requests for the same models, and run as one with them.

usage: run_parts.py, with top_srcdir and top_builddir in the environment.
"""
import json
import random
import struct
import sys

import load
from load import (DEEP, HOLD, answers, deep_request, get_json, in_threads, occupy, proved, release,
                  ring_option, send, send_hold, wait_for_load, wait_until)
from run_batch import batch_request, entry, given, promised
from run_http import MODELS, Client, Daemon, Failure, Report, expect
from run_pipelines import Pipelines, step

FROM0, FROM1 = {"from": 0, "output": 0}, {"from": 1, "output": 0}
IN0, IN1 = {"input": 0}, {"input": 1}
PIPELINES = {
    "three": {"steps": [step("deep", IN0), step("deep", FROM0), step("deep", FROM1)]},
    "nested": {"steps": [step("three", IN0), step("deep", FROM0), step("three", FROM1)]},
    "both": {"steps": [step("deep", IN0), step("deep", IN0), step("deep", FROM0)],
             "outputs": [FROM0, FROM1, {"from": 2, "output": 0}]},
}
HELD = {"held": {"steps": [step("deep", IN0), step("hold", FROM0, IN1), step("deep", FROM1)]}}
BATCHES = ("--set=deep:max-batch=16", "--set=deep:running-count-max=1")


def stats(daemon, model):
    return get_json(Client(daemon.port), f"/v2/models/{model}/stats")["model_stats"][0]


def joined_steps(daemon, model):
    return sum(row["joined"] for row in stats(daemon, model)["steps"])


def tail(client, rows, count=1):
    """The last |count| binary tensors of the answer."""
    return client.body[-16 * rows * count:]


def list_of_three(values, rows=1):
    """Two calls that follow none, and one that follows the first."""
    calls = [entry("a", given(rows)), entry("b", given(rows)), entry("c", promised("a"))]
    for call in calls:
        call["parameters"] = {"binary_data_output": True}
    head = json.dumps(calls).encode()
    body = head + b"".join(struct.pack("<f", value) * (rows * 4) for value in values)
    return load.build_request("POST", "/v2/batch", body,
                              [f"Inference-Header-Content-Length: {len(head)}"])


def mixture(count):
    """Requests of all kinds, with the number of tensors in each answer."""
    requests = []
    for i in range(count):
        value = i / 16 - 1
        requests += [(deep_request(1, value=value), 1),
                     (deep_request(1, value=value, model="three"), 1),
                     (deep_request(1, value=value, model="both"), 3),
                     (deep_request(1, value=value, model="nested"), 1),
                     (list_of_three((value, value + 0.5)), 3)]
    return requests


def ask(daemon, requests):
    """Sends all |requests| while the device is busy; returns the tensors of their answers."""
    taken = [send(daemon, load.MANY_ROWS)]
    clients = [Client(daemon.port) for _ in requests]
    for client, (request, _) in zip(clients, requests):
        client.send(request)
    expect("all", answers(clients), [200] * len(clients))
    expect("what was before them", answers(taken), [200])
    return [tail(client, 1, count) for client, (_, count) in zip(clients, requests)]


# ---- together -----------------------------------------------------------------------------------

def the_same_bits():
    """Whatever runs as one, the results are those of requests alone; and much does run as one."""
    requests = mixture(4)
    with Pipelines(PIPELINES, "--workers=1", *BATCHES, DEEP) as arguments, \
            Daemon(arguments) as daemon:
        expect("rows that may run as one", proved(daemon) > 1, True)
        alone = []
        for request, count in requests:
            client = Client(daemon.port)
            client.send(request)
            expect("alone", client.answer(), 200)
            alone.append(tail(client, 1, count))
        expect("steps alone", [joined_steps(daemon, name) for name in PIPELINES], [0] * 3)

        def is_joined():
            expect("the same", ask(daemon, requests) == alone, True)
            return all(joined_steps(daemon, name) > 0 for name in PIPELINES)
        wait_until("steps of all pipelines run as one with others", is_joined)


def one_request_among_steps():
    """Batches with a single request in them count for its model, and so do those of lists."""
    def largest():
        return max(batch["batch_size"] for batch in stats(daemon, "deep")["batch_stats"]
                   if batch["batch_size"] <= 16)

    with Pipelines(PIPELINES, "--workers=1", *BATCHES, DEEP) as arguments, \
            Daemon(arguments) as daemon:
        expect("rows that may run as one", proved(daemon) >= 2, True)
        steps = [(deep_request(1, value=i / 8, model="three"), 1) for i in range(6)]
        wait_until("one request and steps", lambda: ask(daemon, [
            *steps[:3], (deep_request(1), 1), *steps[3:]]) and largest() > 1)
    with Daemon(["--workers=1", *BATCHES, DEEP]) as daemon:
        expect("rows that may run as one", proved(daemon) >= 3, True)
        lists = [(list_of_three((i, i + 0.5)), 3) for i in range(4)]
        wait_until("different lists", lambda: ask(daemon, lists) and largest() > 2)
        row = stats(daemon, "deep")
        answered = row["inference_stats"]["success"]["count"]
        expect("each request is in one execution", row["execution_count"] < answered, True)


# ---- ends ---------------------------------------------------------------------------------------

def with_held_steps(check):
    """The second step of a pipeline waits for a place on the device as long as the test wants."""
    with Pipelines(HELD, "--workers=1", "--log-level=debug", *BATCHES, DEEP, HOLD) as arguments, \
            Daemon(arguments) as daemon:
        expect("rows that may run as one", proved(daemon) >= 2, True)
        expect("the plan is made", send_hold(daemon, 1, model="held").answer(), 200)
        held = occupy(daemon)
        check(daemon)
        expect("the device is still held", load.load_of(daemon, "hold")["running"], 2)
        release(held)
        expect("the next one", send_hold(daemon, 1, model="held").answer(), 200)
        for model in ("held", "hold", "deep"):
            wait_for_load(daemon, 0, 0, model)


def late_while_a_step_waits():
    """The deadline of a pipeline is that of its steps: none of them needs a turn to end."""
    def check(daemon):
        late = [send_hold(daemon, 1, fields=["X-Request-Timeout-Ms: 500"], model="held")
                for _ in range(3)]
        expect("late", answers(late), [504] * 3)
        expect("why", json.loads(late[0].body)["error"], "model 'held': not done after 500 ms")
        wait_for_load(daemon, 2, 0)
    with_held_steps(check)


def gone_while_a_step_waits():
    def check(daemon):
        clients = [send_hold(daemon, 1, model="held") for _ in range(4)]
        wait_for_load(daemon, 2, 4)
        wait_for_load(daemon, 4, 0, "held")
        for client in clients[:3]:
            client.reset()
        wait_for_load(daemon, 2, 1)
        clients[3].close()
        wait_for_load(daemon, 2, 0)
        wait_for_load(daemon, 0, 0, "held")
    with_held_steps(check)


def steps_are_not_refused():
    """Steps take no places of requests in the queue of a model, nor are they refused when it is
    full."""
    def check(daemon):
        steps = [send_hold(daemon, 1, model="held") for _ in range(5)]
        wait_for_load(daemon, 2, 5)
        requests = [send_hold(daemon, 1) for _ in range(3)]
        wait_for_load(daemon, 2, 8)
        expect("full", send_hold(daemon, 1).answer(), 429)
        steps.append(send_hold(daemon, 1, model="held"))
        wait_for_load(daemon, 2, 9)
        daemon.more = steps + requests
    with Pipelines(HELD, "--workers=1", "--log-level=debug", *BATCHES,
                   "--set=hold:queue-count-max=3", DEEP, HOLD) as arguments, \
            Daemon(arguments) as daemon:
        expect("rows that may run as one", proved(daemon) >= 2, True)
        held = occupy(daemon)
        check(daemon)
        release(held)
        expect("all", answers(daemon.more), [200] * 9)


def inputs_without_dims():
    """A step whose input has no dims has no rows, and joins no other."""
    call = {"model_name": "by_size", "inputs": [
        {"name": "input_0", "datatype": "FP32", "shape": [2, 3], "data": [1, 2, 3, 4, 5, 6]},
        {"name": "input_1", "datatype": "FP32", "shape": [], "data": [0.5]}]}
    deep = {"model_name": "deep", "inputs": [
        {"name": "input_0", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    body = json.dumps([dict(deep, id="a"), dict(call, id="b"), dict(call, id="c")]).encode()
    with Daemon(["--workers=1", "--log-level=debug", *BATCHES, DEEP, HOLD,
                 str(MODELS / "by_size.pte")]) as daemon:
        held = occupy(daemon)
        clients = [Client(daemon.port) for _ in range(3)]
        for client in clients:
            client.send(load.build_request("POST", "/v2/batch", body, []))
        release(held)
        expect("all", answers(clients), [200] * 3)
        for client in clients:
            expect("each", [row["status"] for row in json.loads(client.body)], [200] * 3)


# ---- everything at once -------------------------------------------------------------------------

def one_of_many(daemon, chance):
    rows = chance.choice((1, 1, 2, 5, load.MANY_ROWS // 8))
    model = chance.choice(("deep", "three", "both", "nested"))
    is_timed = chance.random() < 0.2
    fields = [f"X-Request-Timeout-Ms: {chance.randrange(1, 40)}"] if is_timed else []
    priority = {"priority": chance.randrange(9)}
    request = deep_request(rows, priority, fields, model=model)
    if chance.random() < 0.3:
        request = (list_of_three((0.25, 0.5), rows) if chance.random() < 0.5 else
                   batch_request([entry("0", given(rows), parameters=priority),
                                  {**entry("1", promised("0")), "model_name": "three"}],
                                 [rows], fields))
    client = Client(daemon.port)
    client.send(request)
    if chance.random() < 0.2:
        (client.reset if chance.random() < 0.5 else client.close)()
        return
    status = client.answer()
    if status not in (200, 429) and not (is_timed and status == 504):
        raise Failure(f"status {status}: {client.body!r}")
    client.close()


def random_requests():
    """Requests of all kinds in little memory. Each one is answered or its client goes. At the end
    there is room for a request that needs most of it."""
    with Pipelines(PIPELINES, "--workers=2", ring_option(2880), *BATCHES[:1], DEEP) as arguments, \
            Daemon(arguments) as daemon:
        proved(daemon)

        def run(seed):
            chance = random.Random(seed)
            for _ in range(40):
                one_of_many(daemon, chance)
        in_threads(8, run)
        wait_until("the ring is empty",
                   lambda: send(daemon, load.MANY_ROWS, model="three").answer() == 200)
        for model in ("deep", *PIPELINES):
            wait_for_load(daemon, 0, 0, model)
        print("    ", {name: joined_steps(daemon, name) for name in PIPELINES})


def stopped():
    """SIGTERM while steps wait: they still run."""
    with Pipelines(HELD, "--workers=1", "--log-level=debug", *BATCHES, DEEP, HOLD) as arguments, \
            Daemon(arguments) as daemon:
        expect("rows that may run as one", proved(daemon) >= 2, True)
        held = occupy(daemon)
        clients = [send_hold(daemon, 1, model="held") for _ in range(3)]
        wait_for_load(daemon, 2, 3)
        daemon.process.terminate()
        daemon.wait_for("stopping|draining")
        release(held)
        expect("all", answers(clients), [200] * 3)
        expect("exit status", daemon.process.wait(load.TIMEOUT_S), 0)


CHECKS = (the_same_bits, one_request_among_steps, late_while_a_step_waits, gone_while_a_step_waits,
          steps_are_not_refused, inputs_without_dims, random_requests, stopped)


def main():
    report = Report()
    load.calibrate()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
