#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists of requests: their results, their memory, their deadlines, and lists under load.

90_batch.t tests the form of lists. tests/unit/test_cascade tests the order of submissions, and that
nothing is copied.

usage: run_batch.py, with top_srcdir and top_builddir in the environment.
"""
import json
import random
import shutil
import struct
import sys
import tempfile
from pathlib import Path

import load
from load import (ADD, DEEP, FOUND, HELD_WORKER, SIZES, cut_while_running, deep_request, get_json,
                  in_threads, proved, ring_option, wait_until)
from run_http import MODELS, Client, Daemon, Failure, Report, build_request, expect

ROUNDS = 25
THREADS = 6


def entry(name, source, **members):
    return {"id": name, "model_name": "deep", "inputs": [{"name": "input_0", **source}], **members}


def given(rows):
    return {"shape": [rows, 4], "datatype": "FP32", "parameters": {"binary_data_size": rows * 16}}


def promised(name):
    return {"$from": {"id": name, "output": "output_0"}}


def batch_request(calls, rows=(), fields=(), value=0.5):
    """The tensors of |rows| follow the JSON as bytes."""
    head = json.dumps(calls).encode()
    body = head + struct.pack("<f", value) * (sum(rows) * 4)
    return build_request("POST", "/v2/batch", body,
                         [f"Inference-Header-Content-Length: {len(head)}", *fields])


def chain(rows, length=3, **members):
    """Each call takes the result of the one before. The answer has only the last result."""
    calls = [entry("0", given(rows), answer=False, **members)]
    calls += [entry(str(i), promised(str(i - 1)), answer=False) for i in range(1, length)]
    calls[-1].pop("answer")
    calls[-1]["parameters"] = {"binary_data_output": True}
    return calls


def send_chain(daemon, rows, fields=(), **members):
    client = Client(daemon.port)
    client.send(batch_request(chain(rows, **members), [rows], fields))
    return client


def statuses(client):
    """The status of each request of the list."""
    head = client.field("Inference-Header-Content-Length")
    text = client.body[:int(head)] if head else client.body
    return [answer["status"] for answer in json.loads(text)]


# ---- results ------------------------------------------------------------------------------------

def same_bytes():
    """A list has the same results as its requests one after the other."""
    with Daemon([DEEP]) as daemon:
        client = Client(daemon.port)
        value = struct.pack("<f", 0.5) * 28
        for _ in range(3):
            head = json.dumps({"inputs": [{"name": "input_0", **given(7)}],
                               "parameters": {"binary_data_output": True}}).encode()
            client.send(build_request("POST", "/v2/models/deep/infer", head + value,
                                      [f"Inference-Header-Content-Length: {len(head)}"]))
            expect("one", client.answer(), 200)
            value = client.body[-112:]
        for _ in range(3):
            client.send(batch_request(chain(7), [7]))
            expect("list", client.answer(), 200)
            expect("each", statuses(client), [200] * 3)
            expect("the same", client.body[-112:] == value, True)


def late_steps():
    """A size is known only after another request has run, and then it does not fit."""
    def tensor(index, shape, data):
        return {"name": f"input_{index}", "shape": shape, "datatype": "FP32", "data": data}

    with Daemon([FOUND, SIZES, ADD]) as daemon:
        client = Client(daemon.port)
        for count in (5, 12, 9):
            data = [3.0] * count + [-3.0] * (20 - count)
            calls = [{"id": "late", "model_name": "sizes", "inputs": [
                {"name": "input_0", "$from": {"id": "find", "output": "output_1"}},
                tensor(1, [4], [1, 2, 3, 4])]},
                {"id": "find", "model_name": "found", "inputs": [
                    tensor(0, [4, 5], data), tensor(1, [2, 3], [1] * 6)]},
                {"model_name": "sizes", "inputs": [
                    {"name": "input_0", "$from": {"id": "find", "output": "output_1"},
                     "shape": [5]}, tensor(1, [4], [1, 2, 3, 4])]}]
            client.send(build_request("POST", "/v2/batch", json.dumps(calls).encode()))
            expect("list", client.answer(), 200)
            late, find, five = json.loads(client.body)
            expect("find", find["status"], 200)
            expect("late", late["status"], 400 if count > 9 else 200)
            expect("five", five["status"], 200 if count == 5 else 400)
            if count > 9:
                expect("why", late["error"],
                       "model 'sizes': inputs[0].$from: dim 0 is 12, expected at most 9")
            else:
                expect("shape", late["outputs"][1]["shape"], [count])
            if count != 5:
                expect("why not", five["error"], "model 'sizes': inputs[0].$from: expected shape "
                                                 f"[5], got [{count}]")


def statistics():
    """Each request of a list counts for its model, also when the answer is compressed."""
    with Daemon([DEEP, ADD]) as daemon:
        client = Client(daemon.port)
        calls = [*chain(4), {"id": "x", "model_name": "add", "args": [1, 2]}]
        for _ in range(2):
            client.send(batch_request(calls, [4]))
            expect("with binary data none may be wrong", client.answer(), 400)
            client.send(batch_request(chain(4), [4]))
            expect("list", client.answer(), 200)
        client.send(build_request("POST", "/v2/batch", json.dumps(calls[3:]).encode(),
                                  ["Accept-Encoding: gzip"]))
        expect("wrong", client.answer(), 200)
        for model, ok, failed in (("deep", 6, 6), ("add", 0, 3)):
            row, = get_json(client, f"/v2/models/{model}/stats")["model_stats"]
            phases = row["inference_stats"]
            expect(model, (phases["success"]["count"], phases["fail"]["count"]), (ok, failed))


def joined():
    """Equal calls of one model run as one, with the bits that they have alone."""
    def answers(client, values):
        calls = [dict(entry(str(i), given(1)), parameters={"binary_data_output": True})
                 for i in range(len(values))]
        head = json.dumps(calls).encode()
        body = head + b"".join(struct.pack("<4f", *[value] * 4) for value in values)
        client.send(build_request("POST", "/v2/batch", body,
                                  [f"Inference-Header-Content-Length: {len(head)}"]))
        expect("list", client.answer(), 200)
        expect("each", statuses(client), [200] * len(values))
        tail = client.body[-16 * len(values):]
        return [tail[i:i + 16] for i in range(0, len(tail), 16)]

    with Daemon(["--max-batch=8", DEEP]) as daemon:
        client = Client(daemon.port)

        def stats():
            return get_json(client, "/v2/models/deep/stats")["model_stats"][0]

        count = proved(daemon)
        expect("all rows that were asked for", count, 8)
        values = [i / 8 for i in range(count)]
        alone = [answers(client, [value])[0] for value in values]
        expect("they differ", len(set(alone)), count)
        expect("the same bits", answers(client, values + values[:1]), alone + alone[:1])
        batches = {row["batch_size"]: row["compute_infer"]["count"] for row in
                   stats()["batch_stats"]}
        expect("batches", batches, {1: count + 1, count: 1})


TWO = {"two": {"steps": [
    {"model": "add", "inputs": [{"input": 0}, {"input": 1}]},
    {"model": "add", "inputs": [{"from": 0}, {"input": 1}]}],
    "outputs": [{"from": 0}, {"from": 1}]},
    "image": {"inputs": ["image"], "steps": [{"model": "odd_keys", "method": "pairs", "inputs": {
        name: {"input": "image"} for name in ("0.image", "1.image", "image")}}],
        "outputs": [{"name": "image", "from": 0, "output": [0, "boxes"]}]}}
ROWS = [[1, 2, 3], [4, 5, 6]]
ONES = [[1, 1, 1], [1, 1, 1]]


class Structures:
    """A list to whose first request, "a", the others refer."""

    def __init__(self, daemon):
        self.client = Client(daemon.port)

    def ask(self, *calls):
        self.client.send(build_request("POST", "/v2/batch", json.dumps(calls).encode()))
        expect("list", self.client.answer(), 200)
        return json.loads(self.client.body)

    def result(self, first, model, **members):
        """The second result, which is that of a list without "$from"."""
        def settle(value, results):
            if isinstance(value, dict) and "$from" in value:
                for key in value["$from"].get("output", []):
                    results = results[key]
                return results
            if isinstance(value, dict):
                return {key: settle(item, results) for key, item in value.items()}
            return [settle(item, results) for item in value] if isinstance(value, list) else value

        one, two = self.ask({"id": "a", **first}, {"model_name": model, **members})
        alone, = self.ask({"model_name": model, **settle(members, one.get("result"))})
        expect(f"{members}: {two}", two["status"], 200)
        expect("as alone", two["result"], alone["result"])
        return two["result"]

    def refuse(self, why, first, model, **members):
        two = self.ask({"id": "a", "answer": False, **first}, {"model_name": model, **members})[1]
        expect("refused", (two["status"], two.get("error")), (400, why))


def take(*path):
    return {"$from": {"id": "a", "output": list(path)}}


def structures():
    """A list or an object of arguments is a structure of another request's results."""
    two = {"model_name": "two", "args": [ROWS, ONES]}
    nest = {"model_name": "lists", "args": [[ROWS, ONES], [[1, 2, 3], None], [2, 3]]}
    image = {"model_name": "image", "kwargs": {"image": [1, 2, 3]}}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "two.json"
        file.write_text(json.dumps(TWO), encoding="utf-8")
        models = [MODELS / f"{name}.pte" for name in ("odd_keys", "lists", "keywords")]
        with Daemon([ADD, *models, "--pipeline", file]) as daemon:
            lists = Structures(daemon)
            expect("all arguments", lists.result(two, "add", args=take()),
                   [[5.0, 7.0, 9.0], [11.0, 13.0, 15.0]])
            lists.result(two, "add", args={"$from": {"id": "a"}})
            lists.result(two, "lists", args=[take(), [[1, 2, 3], None], [2, 3]])
            lists.result(image, "odd_keys.pairs", args=[take(), {"image": [4, 5, 6]}],
                         kwargs=take())
            lists.result(image, "odd_keys.pairs", args=[take(), {"image": take("image")}],
                         kwargs={"image": [0, 0, 0]})
            keys = get_json(lists.client, "/v2/models/odd_keys/signature")["example"]
            lists.result({"model_name": "odd_keys", **keys}, "odd_keys", args=keys["args"],
                         kwargs={"a": take("a")})
            refuse_structures(lists, two, nest, image)


def refuse_structures(lists, two, nest, image):
    for output in ("x", 1):
        lists.refuse("args.$from.output: expected the path of a list or an object, such as "
                     '["parts"], or [] for all results', two, "add",
                     args={"$from": {"id": "a", "output": output}})
    lists.refuse("args.$from.output: model 'two': result[0] is one value, args is a list of 2",
                 two, "add", args=take(0))
    lists.refuse("args.$from.output: model 'two': there is no [\"k\"]: result is a list of 2",
                 two, "add", args=take("k"))
    lists.refuse("args.$from.output: model 'two': result is a list of 2, args is a list of 3",
                 two, "lists", args=take())
    lists.refuse("args[0].$from.output: model 'two': result is a list of 2, args[0] is a dict of "
                 '"image"', two, "odd_keys.pairs", args=[take(), {"image": [1, 2, 3]}],
                 kwargs={"image": [1, 2, 3]})
    lists.refuse("kwargs[\"a\"].$from.output: model 'image': result is a dict of \"image\", "
                 'kwargs["a"] is a dict of "b"', image, "odd_keys", kwargs={"a": take()},
                 args=get_json(lists.client, "/v2/models/odd_keys/signature")["example"]["args"])
    lists.refuse("args[1].$from.output: model 'two': output 'output_1' is not None, args[1][1] "
                 "takes nothing else", two, "lists", args=[[ROWS, ONES], take(), [2, 3]])
    lists.refuse("args[0][1].$from: expected float32[?,3], got float32[3]", nest, "lists",
                 args=[take(0), [[1, 2, 3], None], [2, 3]])
    lists.refuse('args.dtype: unknown member, expected only "$from" for a list or an object '
                 '(byte 177)', two, "add", args={**take(), "dtype": "float32"})
    lists.refuse('args[1]["ids"]: given twice, at its place and as "ids"', two, "keywords",
                 kwargs={"ids": [1]}, args=[[[1, 2, 3, 4]], take()])


# ---- memory and time ----------------------------------------------------------------------------

def never_enough():
    """The ring has room for one request of the list, and never for three."""
    rows = max(load.MANY_ROWS, 1024)  # a ring has 1 MiB
    with Daemon(["--workers=1", f"--ring-bytes={rows * 1536}", DEEP]) as daemon:
        for _ in range(3):
            large = send_chain(daemon, rows)
            expect("too many for three", large.answer(), 413)
            text = json.loads(large.body)["error"]
            expect(text, text.endswith(f"the memory for requests has {rows * 1536}"), True)
            client = send_chain(daemon, 64)
            expect("few", client.answer(), 200)


def filled(daemon, rows, count):
    """Sends a list of calls whose inputs take memory, and nearly none of the body."""
    call = {"model_name": "deep",
            "args": [{"dtype": "float32", "shape": [rows, 4], "fill": 0.5}]}
    client = Client(daemon.port)
    client.send(build_request("POST", "/v2/batch", json.dumps([call] * count).encode()))
    return client


def inputs_for_which_there_is_never_room():
    """The inputs of a list exceed the ring together, and each one fits. The list is refused at
    once, also while others use the memory that it would wait for."""
    rows = 16384
    with Daemon(["--workers=1", f"--ring-bytes={rows * 64}", DEEP]) as daemon:
        other = Client(daemon.port)
        other.send(build_request("POST", "/v2/models/deep/infer", bytes(128 << 10))[:-1])
        wait_until("an upload holds memory", lambda: get_json(
            Client(daemon.port), "/v2/models/stats")["memory"]["used"] > 0)
        large = filled(daemon, rows, 5)
        expect("too many inputs", large.answer(), 413)
        text = json.loads(large.body)["error"]
        expect(text, text.endswith(f"the memory for requests has {rows * 64}"), True)


def enough_later():
    rows = max(load.MANY_ROWS, 1024)
    with Daemon(["--workers=1", f"--ring-bytes={rows * 4096}", DEEP]) as daemon:
        clients = [send_chain(daemon, rows) for _ in range(4)]
        found = {client.answer() for client in clients}
        expect(f"{found}", 200 in found and found <= {200, 429}, True)
        expect("alone", send_chain(daemon, rows).answer(), 200)


def parsed_twice():
    """A list is parsed again when a model that was only listed has been loaded. What it takes of
    the memory for a request does not count twice."""
    inputs = [{"name": f"x{i}", "shape": [1], "datatype": "FP32", "data": [1]} for i in range(250)]
    calls = [{"model_name": "a", "inputs": inputs}] * 16 + [{"model_name": "c", "inputs": []}]
    with tempfile.TemporaryDirectory() as folder:
        for name in "abc":
            shutil.copy(MODELS / "add.pte", Path(folder) / f"{name}.pte")
        room = 2 * (MODELS / "add.pte").stat().st_size + 10
        with Daemon(["--models", folder, "--model-bytes-max", str(room)]) as daemon:
            client = Client(daemon.port)
            client.send(build_request("POST", "/v2/batch", json.dumps(calls).encode()))
            expect("status", client.answer(), 200)
            expect("each", {row["status"] for row in json.loads(client.body)}, {400})


def held(name, source, goes_on):
    return {"id": name, "model_name": "hold", "inputs": [
        {"name": "input_0", **source},
        {"name": "input_1", "shape": [], "datatype": "BOOL", "data": [goes_on]}]}


ROW = {"shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}


def late():
    """Requests that finish in time have results. The others, and those that depend on them, have
    errors."""
    calls = [held("0", ROW, False), held("1", promised("0"), True), held("2", promised("1"), False)]
    with Daemon([*HELD_WORKER]) as daemon:
        client = Client(daemon.port)

        def ask(ms, fields, parameters):
            calls[0]["parameters"] = parameters
            client.send(batch_request(calls, fields=fields))
            expect("late", client.answer(), 200)
            answers = json.loads(client.body)
            text = f"model 'hold': not done after {ms} ms"
            if answers[0]["status"] == 504 or answers[1].get("error") != text:
                return False
            expect("each", [answer["status"] for answer in answers], [200, 504, 504])
            expect("the last one", answers[2]["error"],
                   f"takes a result that depends on request '1', which failed: {text}")
            return True
        cut_while_running(lambda ms: ask(ms, [f"X-Request-Timeout-Ms: {ms}"], {}))
        cut_while_running(lambda ms: ask(ms, [], {"timeout": ms * 1000}))
        calls[0]["parameters"] = {}
        client.send(batch_request(calls[:1]))
        expect("the next one", client.answer(), 200)


def late_while_waiting():
    """One list runs at a time: while a list runs until its client goes, the next list waits."""
    def held_by_lists():
        return get_json(Client(daemon.port), "/v2/models/stats")["memory"]["lists"]["held"]

    with Daemon([*HELD_WORKER, "--running-count-max=1"]) as daemon:
        first, late = Client(daemon.port), Client(daemon.port)
        first.send(batch_request([held("0", ROW, False)]))
        expect("the plan is made", first.answer(), 200)
        first.send(batch_request([held("0", ROW, True)]))
        wait_until("the first runs", lambda: held_by_lists() > 0)
        late.send(batch_request([held("0", ROW, False)], fields=["X-Request-Timeout-Ms: 20"]))
        expect("late", late.answer(), 504)
        expect("text", json.loads(late.body)["error"], "still waiting after 20 ms")
        first.close()
        late.send(batch_request([held("0", ROW, False)]))
        expect("the next one", late.answer(), 200)


# ---- everything at once -------------------------------------------------------------------------

def random_calls(chance):
    """Returns calls of any acyclic shape, in any order, some of which fail; and their rows."""
    count = chance.randrange(1, 9)
    rows = chance.choice((1, 3, 64, load.MANY_ROWS // 8))
    calls, given_rows = [], []
    for i in range(count):
        known = i > 0 and chance.random() < 0.7
        source = promised(str(chance.randrange(i))) if known else given(rows)
        call = entry(str(i), source, parameters={"binary_data_output": chance.random() < 0.5})
        if chance.random() < 0.3:
            call["answer"] = False
        if known and chance.random() < 0.1:
            call["inputs"][0]["$from"]["output"] = "none"
        if known and chance.random() < 0.1:
            call["inputs"][0]["shape"] = [rows + 1, 4]
        calls.append(call)
    chance.shuffle(calls)
    given_rows = [rows for call in calls if "parameters" in call["inputs"][0]]
    return calls, given_rows


def check_answers(calls, client, may_be_late):
    found = statuses(client)
    expect("answers", len(found), len(calls))
    status_of = {call["id"]: status for call, status in zip(calls, found)}
    allowed = {200, 400, 504} if may_be_late else {200, 400}
    expect(f"{found}", set(found) <= allowed, True)
    for call in calls:
        source = call["inputs"][0].get("$from")
        if source and status_of[source["id"]] != 200:
            expect("what depends on it", status_of[call["id"]] != 200, True)


def one_of_many(daemon, chance, counts):
    calls, rows = random_calls(chance)
    is_timed = chance.random() < 0.3
    fields = [f"X-Request-Timeout-Ms: {chance.randrange(1, 30)}"] if is_timed else []
    request = batch_request(calls, rows, fields)
    client = Client(daemon.port)
    if chance.random() < 0.3:
        client.send(request[:chance.randrange(len(request))] if chance.random() < 0.2 else request)
        (client.reset if chance.random() < 0.5 else client.close)()
        counts["gone"] = counts.get("gone", 0) + 1
        return
    client.send(request)
    status = client.answer()
    counts[status] = counts.get(status, 0) + 1
    if status == 200:
        check_answers(calls, client, is_timed)
    elif not (status == 429 or (status == 504 and is_timed)):
        raise Failure(f"status {status}: {client.body!r}")
    client.close()


def random_lists():
    """Each list is answered or its client goes. At the end the ring has room for a request that
    needs most of it."""
    with Daemon(["--workers=2", "--queue-count-max=12", ring_option(2880), DEEP]) as daemon:
        counts = {}

        def run(seed):
            chance = random.Random(seed)
            client = Client(daemon.port)
            for _ in range(ROUNDS):
                one_of_many(daemon, chance, counts)
                client.send(deep_request(3))
                expect("one beside it", client.answer() in (200, 429), True)
        in_threads(THREADS, run)
        wait_until("the ring is empty",
                   lambda: send_chain(daemon, load.MANY_ROWS).answer() == 200)
        print("    ", counts)


CHECKS = (same_bytes, structures, late_steps, statistics, joined, never_enough,
          inputs_for_which_there_is_never_room, enough_later, parsed_twice, late,
          late_while_waiting, random_lists)


def main():
    report = Report()
    load.calibrate()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
