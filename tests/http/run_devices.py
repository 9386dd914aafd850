#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Devices as a user sees them: the list of devices, serving without one, and a lost device.

PTED_VULKAN_FAULTS injects the faults (hal/vulkan/inject.def). Batches are off in tests that count
calls, because the trials of batches make a number of calls that depends on the time.
usage: run_devices.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

from load import DEEP, in_threads, wait_until
from run_daemon import ADD, DIGITS, digits_body, infer
from run_http import (BUILD, MODELS, TIMEOUT_S, Client, Daemon, Failure, Report, build_request,
                      expect)

PTE = os.environ.get("PTE", str(BUILD / "pte"))
SKIP = 77
TALLY = str(MODELS / "tally.pte")
NO_DRIVER = {"VK_ICD_FILENAMES": "/nonexistent", "VK_DRIVER_FILES": "/nonexistent"}


def environment(extra):
    return {**os.environ, **extra}


def pte(*arguments, **extra):
    return subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=False, env=environment(extra))


def on_device(*arguments, faults="", device="vulkan", **extra):
    return Daemon(["--device", device, "--max-batch=1", *arguments],
                  env=environment({"PTED_VULKAN_FAULTS": faults, **extra}))


def get(daemon, path):
    client = Client(daemon.port)
    client.send(build_request("GET", path))
    status = client.answer()
    client.close()
    return status, json.loads(client.body)


def call(daemon, model="add", body=None):
    client = Client(daemon.port)
    status = infer(client, model, body)
    client.close()
    return status, json.loads(client.body)


def wait_until_ready(daemon):
    wait_until("ready again", lambda: get(daemon, "/v2/health/ready")[0] == 200)


# ---- which are there ----

def devices_are_listed():
    done = pte("devices")
    expect("status", done.returncode, 0)
    expect("the first", done.stdout.splitlines()[0].split("\t")[0], "cpu")
    bare = pte("devices", **NO_DRIVER)
    expect("without a driver", [line.split("\t")[0] for line in bare.stdout.splitlines()], ["cpu"])
    refused = pte("profile", "--device", "vulkan", TALLY, PTED_VULKAN_FAULTS="timestamps=1-")
    expect("a profile without timestamps", (refused.returncode, refused.stderr),
           (69, "pte: --device vulkan: the device has no timestamps, so it has no profiles\n"))
    poor = pte("devices", PTED_VULKAN_FAULTS="features=1-")
    if "cannot be used: vulkan:0: the device lacks the feature " not in poor.stdout:
        raise Failure(f"a device without a feature: {poor.stdout}")
    for wanted, words in (("-all", ""), ("-all,+gpu", "; gpu"), ("-all,-,gpu,+toaster", "")):
        listed = pte("devices", PTED_VULKAN_CAPABILITIES=wanted).stdout.splitlines()[1]
        expect(f"capabilities {wanted}", listed.partition(";")[2], words.partition(";")[2])


def serves_without():
    """If a device cannot be used, the log has one clear line and the CPU computes."""
    for device, extra, line in (
            ("vulkan", NO_DRIVER, "vulkan: no driver is installed; the CPU computes"),
            ("vulkan:0", NO_DRIVER, "vulkan: no driver is installed; the CPU computes"),
            ("vulkan:9", {}, "vulkan:9: the machine has . Vulkan devices?; the CPU computes"),
            ("vulkan", {"PTED_VULKAN_FAULTS": "features=1-"},
             "vulkan:0: the device lacks the feature .*; the CPU computes"),
            ("vulkan", {"PTED_VULKAN_FAULTS": "open=1-"},
             "vulkan: creating a device: VK_ERROR_INITIALIZATION_FAILED; the CPU computes"),
            ("vulkan", {"PTED_VULKAN_FAULTS": "memory=1-"},
             "vulkan: allocating memory: VK_ERROR_OUT_OF_DEVICE_MEMORY; the CPU computes"),
            ("auto", NO_DRIVER, "device cpu: ")):
        with Daemon(["--device", device, ADD], env=environment(extra)) as daemon:
            daemon.wait_for(line)
            expect(f"--device {device}", call(daemon)[0], 200)
            expect("lines", daemon.read_log().count("the CPU computes"),
                   0 if device == "auto" else 1)


def refuses_no_device():
    for device in ("toaster", "vulkan:", "vulkan:x", "vulkan:0x", "cpu:1"):
        done = subprocess.run([str(BUILD / "pted"), "--listen", "127.0.0.1:0", "--device", device,
                               ADD], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        expect(f"status of {device!r}", done.returncode, 66)
        if f"device '{device}'" not in done.stderr:
            raise Failure(f"{device!r}: {done.stderr}")


def models_tell_where_they_run():
    """Metadata list the operators that the device leaves to the host, and why. A CPU has no list.
    """
    types = str(MODELS / "pointwise_types.pte")
    with on_device(ADD, types, PTED_VULKAN_CAPABILITIES="-all,+gpu") as daemon:
        placement = get(daemon, "/v2/models/add")[1]["placement"]
        expect("add", (placement["dispatches"], placement["transfers"], placement["on_host"]),
               (1, 0, []))
        placement = get(daemon, "/v2/models/pointwise_types")[1]["placement"]
        expect("device", placement["device"], "vulkan:0")
        expect("capabilities", placement["capabilities"], ["gpu"])
        hosted = sum(row["dispatches"] for row in placement["on_host"])
        expect("some on the host", 0 < hosted <= placement["dispatches"], True)
        expect("a reason", "no form for this device" in
               {row["reason"] for row in placement["on_host"]}, True)
    with Daemon([ADD]) as daemon:
        expect("on a CPU", "placement" in get(daemon, "/v2/models/add")[1], False)


def has_timestamps():
    done = pte("profile", "--device", "vulkan", "--repeat", "1", ADD)
    return "no timestamps" not in done.stderr


def check_layers(profile, is_mixed):
    expect("device", (profile["device"], profile["workers"]), ("vulkan:0", 1))
    expect("lost", profile["lost_spans"], 0)
    for row in profile["layers"]:
        if not 0 <= row["host_us"] <= row["busy_us"]:
            raise Failure(f"times of the host: {row}")
    on_device_us = sum(row["busy_us"] - row["host_us"] for row in profile["layers"])
    on_host_us = sum(row["host_us"] for row in profile["layers"])
    expect("times of the device and the host", (on_device_us > 0, on_host_us > 0),
           (True, is_mixed))
    return on_device_us


def profiles_by_pte():
    """Tables, JSON and a trace; kernels without a shader have the times of the host."""
    if not has_timestamps():
        return
    types = str(MODELS / "pointwise_types.pte")
    for model, is_mixed, extra in ((DIGITS, False, {}),
                                   (types, True, {"PTED_VULKAN_CAPABILITIES": "-all,+gpu",
                                                  "PTED_VULKAN_MEMORY": "split"})):
        with tempfile.TemporaryDirectory() as folder:
            trace = f"{folder}/trace.json"
            options = ("profile", "--device", "vulkan", "--repeat", "3", "--trace", trace)
            done = pte(*options, "--json", model, **extra)
            expect(f"status: {done.stderr}", done.returncode, 0)
            profile = json.loads(done.stdout)
            check_layers(profile, is_mixed)
            expect("no peak", "peak" in profile, False)
            text = pte(*options, "--all", model, **extra).stdout
            expect("marks of the host", "host)" in text, is_mixed)
            expect("a row for each layer", sum(re.match(r" *[0-9.]+% .* [0-9]+ [a-z]", line)
                                               is not None for line in
                                               text.split("\n\n")[1].splitlines()),
                   len(profile["layers"]))
            with open(trace, encoding="utf-8") as file:
                events = json.load(file)["traceEvents"]
            names = {event["tid"]: event["args"]["name"] for event in events
                     if event["ph"] == "M"}
            tracks = {names[event["tid"]] for event in events if event.get("cat") == "operator"}
            expect("a track of the device", "vulkan:0" in tracks, True)
            expect("tracks of the host", any(name.startswith("worker") for name in tracks),
                   is_mixed)


def profiles_by_daemon():
    """A profile changes no result, and is that of `pte profile`."""
    if not has_timestamps():
        return
    with on_device(DIGITS, "--profile-spans-max=100000") as daemon:
        client = Client(daemon.port)
        answers = []
        for query in ("", "?profile=1", "", "?profile=1"):
            client.send(build_request("POST", f"/v2/models/digits/infer{query}", digits_body(3)))
            expect("status", client.answer(), 200)
            answers.append(json.loads(client.body))
        expect("outputs", [answer["outputs"] for answer in answers], [answers[0]["outputs"]] * 4)
        expect("a profile", ["profile" in answer for answer in answers], [False, True] * 2)
        profile = answers[3]["profile"]
        if check_layers(profile, False) > profile["call_us"]:
            raise Failure(f"more time than the call took: {profile}")
        listed = json.loads(pte("profile", "--device", "vulkan", "--repeat", "1", "--json",
                                DIGITS).stdout)["layers"]
        expect("kernels", [row["kernel"] for row in profile["layers"]],
               [row["kernel"] for row in listed])
    with on_device(DIGITS, "--profile-spans-max=100000", faults="timestamps=1-") as daemon:
        client = Client(daemon.port)
        client.send(build_request("POST", "/v2/models/digits/infer?profile=1", digits_body(3)))
        status = client.answer()
        expect("without timestamps", (status, "no timestamps" in json.loads(client.body)["error"]),
               (501, True))


def tells_hardware_truly():
    """A software driver is called a CPU, also with the option to compute like a GPU."""
    listed = next(line for line in pte("devices").stdout.splitlines()
                  if line.startswith("vulkan:0"))
    kind = re.search(r", ((?:discrete|integrated|virtual) GPU|cpu \(software Vulkan\))(;|$)",
                     listed)
    if not kind:
        raise Failure(f"no kind: {listed}")
    with on_device(ADD, device="vulkan:0", PTED_VULKAN_CAPABILITIES="+gpu") as daemon:
        expect("kind", get(daemon, "/v2/models/add")[1]["placement"]["kind"], kind[1])
        group = get(daemon, "/v2/models/add/config")[1]["instance_group"][0]
        expect("group", group["kind"], "KIND_GPU" if "GPU" in kind[1] else "KIND_CPU")


def serves_without_loader():
    """A Vulkan loader that cannot be opened. Without a loader the log has the same words."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/libvulkan.so.1", "wb"):
            pass
        path = {"LD_LIBRARY_PATH": f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        expect("devices", [line.split("\t")[0] for line in
                           pte("devices", **path).stdout.splitlines()], ["cpu"])
        done = pte("run", "--device", "vulkan", ADD, **path)
        expect("status", done.returncode, 69)
        if "no loader found: " not in done.stderr:
            raise Failure(f"pte run: {done.stderr}")
        expect("status by auto", pte("run", "--device", "auto", ADD, **path).returncode, 0)
        with Daemon(["--device", "vulkan", ADD], env=environment(path)) as daemon:
            daemon.wait_for("warning: vulkan: no loader found: .*libvulkan.so.1.*; "
                            "the CPU computes")
            expect("a call", call(daemon)[0], 200)


# ---- its memory is full ----

def step(daemon, model, sequence=None, is_first=True):
    """Returns whether a call got its memory. If it did not, the same call works the next time."""
    body = sequence and json.dumps({
        "parameters": {"sequence_id": sequence, "sequence_start": is_first},
        "inputs": [
            {"name": "input_0", "shape": [3, 4], "datatype": "FP32", "data": [0.5] * 12},
            {"name": "input_1", "shape": [], "datatype": "BOOL", "data": [True]},
            {"name": "input_2", "shape": [1], "datatype": "INT64", "data": [1]}]}).encode()
    status, answer = call(daemon, model, body)
    if status == 200:
        return True
    if status != 429 or "memory" not in answer["error"]:
        raise Failure(f"{model}: {status}, {answer}")
    expect("again", call(daemon, model, body)[0], 200)
    return False


def no_memory_once():
    """The Nth allocation of a buffer fails, for every N of a few calls. The call that needs the
    buffer gets 429, and all others are answered. If a model cannot be loaded, pted ends."""
    refusals = 0
    for number in range(1, 100):
        daemon = on_device(ADD, TALLY, faults=f"range={number}")
        try:
            daemon.wait_for("listening on|warning")
        except Failure:
            expect("exit status", daemon.process.wait(TIMEOUT_S), 71)
            continue
        with daemon:
            went = [step(daemon, "add"), step(daemon, "tally", 1),
                    step(daemon, "tally", 1, False), step(daemon, "tally", 2)]
            expect("ready", get(daemon, "/v2/health/ready")[0], 200)
            if all(went) and "the CPU computes" not in daemon.read_log():
                break
        refusals += went.count(False)
    expect("some were refused", refusals > 2, True)


# ---- the device is lost ----

def lost_and_back(place):
    """A call fails when its device is lost. The models come back and keep their statistics."""
    with on_device(ADD, faults=f"{place}=3") as daemon:
        expect("the first two", [call(daemon)[0] for _ in range(2)], [200, 200])
        status, answer = call(daemon)
        expect("the third", (status, answer["error"]), (503, "model 'add': the device was lost"))
        wait_until_ready(daemon)
        daemon.wait_for("serving 1 of 1 models again, on vulkan:0")
        expect("afterwards", [call(daemon)[0] for _ in range(3)], [200] * 3)
        stats = get(daemon, "/v2/models/add/stats")[1]["model_stats"][0]["inference_stats"]
        expect("successes", stats["success"]["count"], 5)


def not_ready_meanwhile():
    """The device cannot be opened again at once. Until then every request gets an error."""
    why = "the device was lost; the models are being loaded again"
    with on_device(ADD, faults="submit=1,open=2") as daemon:
        expect("a call", call(daemon)[0], 503)
        expect("ready", get(daemon, "/v2/health/ready"), (503, {"error": "the device was lost"}))
        expect("live", get(daemon, "/v2/health/live")[0], 200)
        text = f"model 'add' cannot be called: {why}"
        expect("the model", get(daemon, "/v2/models/add"), (503, {"error": text}))
        expect("a call", call(daemon), (503, {"error": text}))
        client = Client(daemon.port)
        client.send(build_request("POST", "/v2/repository/index", b""))
        expect("index", client.answer(), 200)
        expect("row", json.loads(client.body),
               [{"name": "add", "version": "1", "state": "UNAVAILABLE", "reason": why}])
        client.send(build_request("POST", "/v2/models/add/infer", b" " * 100000))
        expect("a large body", client.answer(), 503)
        client = Client(daemon.port)
        client.send(build_request("POST", "/v2/batch", b'[{"model_name": "add", "inputs": []}]'))
        expect("a list", client.answer(), 503)
        expect("its text", json.loads(client.body)["error"], "the device was lost")
        wait_until_ready(daemon)
        expect("afterwards", call(daemon)[0], 200)


def lost_with_many_in_flight():
    """Every call in flight is answered once, and later calls work."""
    with on_device(DIGITS, ADD, faults="wait=40") as daemon:
        def calls(_):
            for _ in range(20):
                status, answer = call(daemon, "digits", digits_body(5))
                if status != 200 and "the device was lost" not in answer["error"]:
                    raise Failure(f"{status}: {answer}")
        in_threads(6, calls)
        daemon.wait_for("vulkan:0: the device was lost")
        wait_until_ready(daemon)
        expect("afterwards", (call(daemon, "digits", digits_body(2))[0], call(daemon)[0]),
               (200, 200))


class Counted:
    """A client of "deep" on one connection. It counts its successes, and checks that each id is
    answered once."""

    def __init__(self, port, name):
        self.client, self.name, self.turn, self.successes = Client(port), name, 0, 0

    def tensor(self):
        return {"name": "input_0", "shape": [1, 4], "datatype": "FP32", "data": [0.5] * 4}

    def send(self, path, body):
        self.client.send(build_request("POST", path, json.dumps(body).encode()))
        return self.client.answer(), json.loads(self.client.body)

    def check(self, status, answer, wanted):
        """Returns whether the call worked. Otherwise its error must name the device."""
        if status != 200 and (status != 503 or "the device was lost" not in answer["error"]):
            raise Failure(f"{wanted}: {status}, {answer}")
        self.successes += status == 200
        return status == 200

    def one(self):
        wanted = f"{self.name}-{self.turn}"
        status, answer = self.send("/v2/models/deep/infer",
                                   {"id": wanted, "inputs": [self.tensor()]})
        return self.check(status, answer, wanted) and expect("id", answer["id"], wanted) is None

    def several(self):
        """A list of a call, a call that takes its result, and an independent call."""
        ids = [f"{self.name}-{self.turn}-{i}" for i in range(3)]
        inputs = [self.tensor(), {"name": "input_0", "$from": {"id": ids[0]}}, self.tensor()]
        status, answer = self.send("/v2/batch", [
            {"id": name, "model_name": "deep", "inputs": [tensor]}
            for name, tensor in zip(ids, inputs)])
        if status != 200:
            return self.check(status, answer, ids)
        expect("ids", [part["id"] for part in answer], ids)
        return all([self.check(part["status"], part, ids) for part in answer])


def lost_with_lists_and_batches():
    """Batches and lists of calls: each call is answered once, and a lost one has an error."""
    lost, failures, clients = threading.Event(), [], []
    with Daemon(["--device=vulkan", "--max-delay-us=2000", DEEP],
                env=environment({"PTED_VULKAN_FAULTS": "wait=200"})) as daemon:
        def calls(client, go):
            try:
                while not lost.is_set() and client.turn < 1000:
                    client.turn += 1
                    if not go():
                        lost.set()
            except Failure as error:
                failures.append(str(error))
                lost.set()
        threads = []
        for i in range(6):
            clients.append(Counted(daemon.port, str(i)))
            go = clients[-1].several if i % 3 == 0 else clients[-1].one
            threads.append(threading.Thread(target=calls, args=(clients[-1], go)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect("failures", failures, [])
        daemon.wait_for("vulkan:0: the device was lost")
        wait_until_ready(daemon)
        last = clients[0]
        expect("afterwards", (last.one(), last.several()), (True, True))
        stats = get(daemon, "/v2/models/deep/stats")[1]["model_stats"][0]["inference_stats"]
        expect("successes", stats["success"]["count"], sum(c.successes for c in clients))


def lost_for_good():
    """Every call loses the device. After a few tries the CPU computes."""
    with on_device(ADD, faults="submit=1-") as daemon:
        for _ in range(4):
            expect("a call", call(daemon)[0], 503)
            wait_until_ready(daemon)
        daemon.wait_for("device vulkan: given up after 3 tries; the CPU computes")
        daemon.wait_for("serving 1 of 1 models again, on cpu")
        expect("afterwards", call(daemon)[0], 200)


def cannot_be_opened_again():
    with on_device(ADD, faults="submit=1,open=2-") as daemon:
        expect("a call", call(daemon)[0], 503)
        wait_until_ready(daemon)
        daemon.wait_for("serving 1 of 1 models again, on cpu")
        expect("afterwards", call(daemon)[0], 200)


def stopped_meanwhile():
    with on_device(ADD, faults="submit=1,open=2-") as daemon:
        expect("a call", call(daemon)[0], 503)


CHECKS = (devices_are_listed, serves_without, serves_without_loader, refuses_no_device,
          models_tell_where_they_run, tells_hardware_truly, profiles_by_pte, profiles_by_daemon,
          no_memory_once)
LOST_CHECKS = (not_ready_meanwhile, lost_with_many_in_flight, lost_with_lists_and_batches,
               lost_for_good, cannot_be_opened_again, stopped_meanwhile)


def main():
    usable = [line for line in pte("devices").stdout.splitlines()
              if line.startswith("vulkan:") and "cannot be used" not in line]
    if not usable:
        print("there is no Vulkan device")
        return SKIP
    report = Report()
    report.run_all(CHECKS + LOST_CHECKS)
    for place in ("submit", "wait"):
        report.run(f"lost_and_back by {place}", lost_and_back, place)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
