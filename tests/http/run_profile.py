#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls with ?profile=1: their answers say where the time went, and other calls are not affected.

usage: run_profile.py, with top_srcdir and top_builddir in the environment.
"""
import json
import subprocess
import sys
import threading

from load import HOLD, hold_request, wait_until
from run_http import BUILD, MODELS, Client, Daemon, Failure, Report, build_request, expect

DIGITS, ADD, RUNNING = (str(MODELS / f"{name}.pte") for name in ("digits", "add", "running"))
ON = ("--workers=2", "--profile-spans-max=100000")
BODY = json.dumps({"inputs": [{"name": "input_0", "shape": [3, 1, 8, 8], "datatype": "FP32",
                               "data": [n % 17 / 17 for n in range(192)]}]}).encode()
X = [[1.0, 2.0, 3.0]]
ARGS = json.dumps({"args": [[[[[0.5] * 8] * 8]]]}).encode()


def ask(client, target, body=BODY, fields=()):
    client.send(build_request("POST", target, body, list(fields)))
    status = client.answer()
    return status, client.body


def profile_of(status, body):
    expect(f"status: {body[:300]!r}", status, 200)
    return json.loads(body)["profile"]


def same_rows_as_pte():
    """The layers are those of `pte profile --json`; their times are within the call's."""
    command = [BUILD / "pte", "profile", "--json", "--repeat", "3", "--workers", "2", DIGITS]
    expected = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    with Daemon([*ON, DIGITS]) as daemon:
        client = Client(daemon.port)
        for target, body in (("/v2/models/digits/infer", BODY), ("/v2/models/digits/call", ARGS)):
            profile = profile_of(*ask(client, f"{target}?profile=1", body))
            expect("workers", profile["workers"], 2)
            expect("lost", profile["lost_spans"], 0)
            names = [(row["operator"], row["layer"], row["kernel"]) for row in profile["layers"]]
            expect("rows", names, [(row["operator"], row["layer"], row["kernel"])
                                   for row in expected["layers"]])
            expect("members", profile["layers"][0].keys(), expected["layers"][0].keys())
            busy = sum(row["busy_us"] for row in profile["layers"])
            if not 0 < busy <= 2 * profile["call_us"]:
                raise Failure(f"{busy} us in a call of {profile['call_us']} us")
        status, body = ask(client, "/v2/models/digits/infer")
        expect("without it", (status, "profile" in json.loads(body)), (200, False))


def same_results():
    with Daemon([*ON, DIGITS, RUNNING]) as daemon:
        client = Client(daemon.port)
        plain = json.loads(ask(client, "/v2/models/digits/infer")[1])["outputs"]
        with_profile = json.loads(ask(client, "/v2/models/digits/infer?profile=1")[1])["outputs"]
        expect("outputs", with_profile, plain)
        binary = json.dumps({**json.loads(BODY),
                             "parameters": {"binary_data_output": True}}).encode()
        status, body = ask(client, "/v2/models/digits/infer?profile=1", binary)
        expect("binary", status, 200)
        size = int(client.field("inference-header-content-length"))
        head = json.loads(body[:size])
        expect("tensor", len(body) - size, 3 * 10 * 4)
        expect("layers", len(head["profile"]["layers"]) > 0, True)
        for count in range(1, 4):
            call = {"args": X,
                    "parameters": {"sequence_id": 5, "sequence_start": count == 1}}
            status, body = ask(client, "/v2/models/running/call?profile=1",
                               json.dumps(call).encode())
            expect(f"sequence: {body[:200]!r}", status, 200)
            expect("state", json.loads(body)["result"][1][0], float(count))


def refusals():
    with Daemon([DIGITS]) as daemon:
        client = Client(daemon.port)
        status, body = ask(client, "/v2/models/digits/infer?profile=1")
        expect("off", status, 403)
        if b"--profile-spans-max" not in body:
            raise Failure(f"{body!r}")
        expect("not asked for", ask(client, "/v2/models/digits/infer?profile=0")[0], 200)
    with Daemon([*ON, DIGITS]) as daemon:
        client = Client(daemon.port)
        expect("list", ask(client, "/v2/batch?profile=1", b"[]")[0], 400)
        expect("unknown model", ask(client, "/v2/models/nobody/infer?profile=1")[0], 404)
        expect("bad body", ask(client, "/v2/models/digits/infer?profile=1", b"{}")[0], 400)
        profile_of(*ask(client, "/v2/models/digits/infer?profile=1"))  # nothing is left behind


def few_spans():
    with Daemon(["--workers=2", "--profile-spans-max=1", DIGITS]) as daemon:
        client = Client(daemon.port)
        profile = profile_of(*ask(client, "/v2/models/digits/infer?profile=1"))
        expect("lost", profile["lost_spans"] > 0, True)


def one_at_a_time():
    with Daemon([*ON, HOLD, DIGITS]) as daemon:
        busy = Client(daemon.port)
        busy.send(hold_request(1, goes_on=True, query="?profile=1"))
        client = Client(daemon.port)
        wait_until("a second one is refused",
                   lambda: ask(client, "/v2/models/digits/infer?profile=1")[0] == 429)
        expect("others", ask(client, "/v2/models/digits/infer")[0], 200)
        busy.reset()
        wait_until("the next one",
                   lambda: ask(client, "/v2/models/digits/infer?profile=1")[0] == 200)


def beside_others():
    failures = []
    with Daemon([*ON, DIGITS]) as daemon:
        right = json.loads(ask(Client(daemon.port), "/v2/models/digits/infer")[1])["outputs"]
        has_ended = threading.Event()

        def run():
            try:
                client = Client(daemon.port)
                while not has_ended.is_set():
                    status, body = ask(client, "/v2/models/digits/infer")
                    expect("status", status, 200)
                    expect("outputs", json.loads(body)["outputs"], right)
            except (Failure, OSError, ValueError) as failure:
                failures.append(failure)
        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        client = Client(daemon.port)
        for _ in range(50):
            status, body = ask(client, "/v2/models/digits/infer?profile=1")
            profile_of(status, body)
            expect("outputs", json.loads(body)["outputs"], right)
        has_ended.set()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]


CHECKS = (same_rows_as_pte, same_results, refusals, few_spans, one_at_a_time, beside_others)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
