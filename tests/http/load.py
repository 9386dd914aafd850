# SPDX-License-Identifier: MIT
"""Functions for tests of a daemon under load.

The model `hold` keeps a worker busy until its client goes. occupy() fills the device with such
calls, and release() ends them. So the test decides how long the device is busy, and it waits until
the daemon reports the expected counts. `deep` is an ordinary model; a call with many rows takes
some tenths of a second.
"""
import json
import struct
import threading
import time
from pathlib import Path

from run_http import MODELS, TIMEOUT_S, Client, Daemon, Failure, build_request, expect

DEEP, ADD, FOUND, SIZES = (str(MODELS / f"{name}.pte")
                           for name in ("deep", "add", "found", "sizes"))
HOLD = str(Path(__file__).parent / "hold.pte")
MANY_ROWS = 16384  # fewer on a slow build, see calibrate()
# Under a sanitizer and beside load, calls of thousands of rows take minutes.
ONE_WORKER = ("--workers=1", "--log-level=debug", "--request-timeout=10m", DEEP)
HELD_WORKER = ("--workers=1", "--log-level=debug", HOLD)
TRIAL_S = 5 * TIMEOUT_S  # under a sanitizer and beside load a trial takes minutes


def tensor(name, datatype, shape, size):
    return {"name": name, "datatype": datatype, "shape": shape,
            "parameters": {"binary_data_size": size}}


def binary_request(target, inputs, data, parameters, fields):
    """Tensors are binary in both directions, so that nearly all of the time is the model's."""
    head = json.dumps({"inputs": inputs,
                       "parameters": {"binary_data_output": True, **(parameters or {})}}).encode()
    return build_request("POST", target, head + data,
                         [f"Inference-Header-Content-Length: {len(head)}", *fields])


def deep_request(rows, parameters=None, fields=(), value=0.5, model="deep"):
    return binary_request(f"/v2/models/{model}/infer",
                          [tensor("input_0", "FP32", [rows, 4], rows * 16)],
                          struct.pack("<f", value) * (rows * 4), parameters, fields)


def hold_request(rows, parameters=None, fields=(), model="hold", goes_on=False, query=""):
    """If |goes_on|, the call runs until its client goes."""
    return binary_request(f"/v2/models/{model}/infer{query}",
                          [tensor("input_0", "FP32", [rows, 4], rows * 16),
                           tensor("input_1", "BOOL", [], 1)],
                          struct.pack("<f", 0.5) * (rows * 4) + bytes([goes_on]), parameters,
                          fields)


def send(daemon, rows, parameters=None, fields=(), model="deep"):
    client = Client(daemon.port)
    client.send(deep_request(rows, parameters, fields, model=model))
    return client


def send_hold(daemon, rows, *args, **named):
    client = Client(daemon.port)
    client.send(hold_request(rows, *args, **named))
    return client


def wait_until(what, condition, limit_s=TIMEOUT_S):
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise Failure(f"{what}: not within {limit_s} s")
        time.sleep(0.005)


def cut_while_running(ask):
    """Calls ask(ms), which sends requests with a deadline of |ms| and returns whether they began to
    run before it. Where they do not, because the machine is busy, a longer deadline is tried."""
    for ms in (500, 1000, 2000, 4000, 8000, 16000, 32000):
        if ask(ms):
            return
    raise Failure(f"no request begins within {ms} ms")


def get_json(client, target):
    client.send(build_request("GET", target))
    expect(target, client.answer(), 200)
    return json.loads(client.body)


def bytes_of_first(client):
    """The bytes of the first model, as --model-bytes-max counts it."""
    return sum(get_json(client, "/v2/models/stats")["model_stats"][0]["weights"].values())


def ring_option(bytes_a_row):
    """A ring with room for MANY_ROWS, and at least the minimum of --ring-bytes."""
    return f"--ring-bytes={max(MANY_ROWS * bytes_a_row, 1 << 20)}"


def load_of(daemon, model):
    return get_json(Client(daemon.port), f"/v2/models/{model}/stats")["model_stats"][0]["load"]


def wait_for_load(daemon, running, waiting, model="hold"):
    """Waits until the server reports |running| running and |waiting| waiting requests."""
    def counts():
        load = load_of(daemon, model)
        return load["running"], load["waiting"]
    wait_until(f"{running} run and {waiting} wait", lambda: counts() == (running, waiting))


def occupy(daemon, count=2):
    """Fills the device until release(). A device holds one request for each worker and one more."""
    clients = [send_hold(daemon, 1, goes_on=True) for _ in range(count)]
    wait_for_load(daemon, count, 0)
    return clients


def release(clients):
    for client in clients:
        client.close()


def answers(clients):
    return [client.answer() for client in clients]


def proved(daemon, model="deep"):
    """Waits for the end of the trial of |model|'s batches. Returns the most rows of a batch."""
    def stats():
        return get_json(client, f"/v2/models/{model}/stats")["model_stats"][0]
    client = Client(daemon.port)
    wait_until("proved", lambda: not stats()["batch_trial_open"], TRIAL_S)
    return stats()["batch_rows_proven"]


def in_threads(count, run):
    """Calls run(number) in |count| threads. Raises the first failure of a thread."""
    failures = []

    def run_one(number):
        try:
            run(number)
        except (Failure, OSError) as failure:
            failures.append(failure)
    threads = [threading.Thread(target=run_one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def calibrate():
    """Sets MANY_ROWS so that a call keeps a worker busy for some tenths of a second."""
    global MANY_ROWS
    with Daemon([*ONE_WORKER]) as daemon:
        proved(daemon)
        for _ in range(2):  # the first call also makes the plan
            start = time.monotonic()
            expect("calibration", send(daemon, 256).answer(), 200)
            took = time.monotonic() - start
    MANY_ROWS = max(256, min(MANY_ROWS, int(256 * 0.4 / took)))
