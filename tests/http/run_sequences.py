#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sequences in pipelines and in lists of requests: which call sees which state, in which order.

`running` counts its calls. `ledger` has rows: one method writes them and another one adds them up.
run_sched.py tests sequences of plain requests, and tests/unit/test_pipeline_state tests the state
after a step has failed.

usage: run_sequences.py, with top_srcdir and top_builddir in the environment.
"""
import json
import random
import sys

from load import in_threads, wait_until
from run_generate import metric
from run_http import MODELS, Client, Daemon, Report, build_request, expect
from run_pipelines import Pipelines

RUNNING, LEDGER, FAULTS, NOTEBOOK = (str(MODELS / f"{name}.pte")
                                     for name in ("running", "ledger", "faults", "notebook"))
TWICE = {"steps": [{"model": "running", "inputs": [{"input": 0}]},
                   {"model": "running", "inputs": [{"from": 0, "output": 0}]},
                   {"model": "faults.divide", "inputs": [{"input": 1}, {"input": 2}]}],
         "outputs": [{"from": 0, "output": 1}, {"from": 1, "output": 1}]}
BOOKS = {"steps": [{"model": "ledger.enter", "inputs": [{"input": 0}, {"input": 1}]},
                   {"model": "ledger.total", "inputs": [{"from": 0, "output": 0}]}],
         "outputs": [{"from": 1, "output": 0}]}
X = [[1.0, 2.0, 3.0]]
ROUNDS = 40
THREADS = 6


def call(client, target, body):
    client.send(build_request("POST", target, json.dumps(body).encode()))
    return client.answer()


def infer(client, model, args, **parameters):
    return call(client, f"/v2/models/{model}/call", {"args": args, "parameters": parameters})


def member(model, args, **parameters):
    return {"model_name": model, "args": args, "parameters": parameters}


def send_list(client, *members):
    """Returns the result of each request of the list, or its status if it has no result."""
    expect("list", call(client, "/v2/batch", list(members)), 200)
    return [answer.get("result", answer["status"]) for answer in json.loads(client.body)]


def count(**parameters):
    return member("running", X, **parameters)


def counts(client, *members):
    """Returns the count of each call of `running`, or its status."""
    return [answer[1][0] if isinstance(answer, list) else answer
            for answer in send_list(client, *members)]


def enter(row, value, **parameters):
    return member("ledger.enter", [[row, row + 1], [[value] * 3] * 2], **parameters)


def total(**parameters):
    return member("ledger.total", [1.0], **parameters)


# ---- lists --------------------------------------------------------------------------------------

def lists_of_a_sequence():
    """Requests of one sequence run in their order in the list."""
    with Daemon([RUNNING, LEDGER]) as daemon:
        client = Client(daemon.port)
        expect("begin", counts(client, *[count(sequence_id=1, sequence_start=i == 0)
                                         for i in range(9)]), list(range(1, 10)))
        expect("go on", counts(client, *[count(sequence_id=1)] * 64), list(range(10, 74)))
        expect("alone", counts(client, count(), count()), [1, 1])
        expect("two and one alone", counts(
            client, count(sequence_id="b", sequence_start=True), count(sequence_id=1), count(),
            count(sequence_id="b"), count(sequence_id=1)), [1, 74, 1, 2, 75])
        expect("outside of lists", infer(client, "running", X, sequence_id=1), 200)
        expect("the count", json.loads(client.body)["result"][1], [76])
        expect("ledger", send_list(client, enter(0, 1.0, sequence_id=5, sequence_start=True),
                                   enter(1, 10.0, sequence_id=5), total(sequence_id=5), total(),
                                   enter(9, 1.0, sequence_id=5), total(sequence_id=5))[2:],
               [[21.0] * 3, [0.0] * 3, 400, [21.0] * 3])


def beginning_and_end():
    """A list obeys sequence_start and sequence_end in the order in which its requests run."""
    with Daemon([RUNNING, "--sequence-count-max=3"]) as daemon:
        client = Client(daemon.port)
        expect("not open", counts(client, count(sequence_id=1), count()), [400, 1])
        expect("no id", counts(client, count(sequence_end=True), count()), [400, 1])
        expect("ends", counts(client, count(sequence_id=1, sequence_start=True),
                              count(sequence_id=1, sequence_end=True), count(sequence_id=1)),
               [1, 2, 400])
        expect("text", json.loads(client.body)[2]["error"],
               "parameters.sequence_id: request [1] is the last one of this sequence")
        expect("has ended", counts(client, count(sequence_id=1)), [400])
        expect("ends and begins", counts(
            client, count(sequence_id=1, sequence_start=True), count(sequence_id=1),
            count(sequence_id=1, sequence_end=True), count(sequence_id=1, sequence_start=True),
            count(sequence_id=1)), [1, 2, 3, 1, 2])
        promised = {"$from": {"id": "first", "output": "output_0"}}
        expect("by promises", counts(
            client, {**member("running", [promised], sequence_id=2), "id": "second"},
            {**count(sequence_id=2, sequence_start=True), "id": "first"}), [2, 1])
        expect("too many", counts(client, *[count(sequence_id=i, sequence_start=True)
                                            for i in (3, 4)]), [1, 429])


def crowd():
    """A client that has all sequences leaves room for generations, other models and other clients;
    the sequences that it has not used for longest end."""
    chat = f"chat={MODELS / 'chat' / 'model.pte'}"
    with Daemon([RUNNING, LEDGER, "--model", chat, "--sequence-count-max=8"]) as daemon:
        client = Client(daemon.port)
        for i in range(1, 9):
            expect("open", counts(client, count(sequence_id=i, sequence_start=True)), [1])
            expect("go on", counts(client, count(sequence_id=i)), [2])
        for _ in range(3):
            expect("a generation", call(client, "/v1/completions",
                                        {"model": "chat", "prompt": "a", "max_tokens": 4}), 200)
        expect("the oldest has ended", counts(client, count(sequence_id=1)), [400])
        expect("others go on", counts(client, *[count(sequence_id=i) for i in range(2, 9)]),
               [3] * 7)
        expect("fill", counts(client, count(sequence_id=9, sequence_start=True)), [1])
        expect("fill", counts(client, count(sequence_id=9)), [2])
        expect("another model", send_list(client, enter(0, 1.0, sequence_id=1, sequence_start=True),
                                          total(sequence_id=1))[1], [2.0] * 3)
        other = Client(daemon.port, source="127.0.0.2")
        expect("another client", counts(other, count(sequence_id=20, sequence_start=True)), [1])
        expect("it goes on", counts(other, count(sequence_id=20)), [2])
        expect("no more for the first", counts(client, count(sequence_id=10, sequence_start=True)),
               [429])


def idle_sequence():
    """A sequence that only lists have used ends after --sequence-timeout, as others do."""
    with Daemon([RUNNING, "--sequence-count-max=1", "--sequence-timeout=300ms"]) as daemon:
        client = Client(daemon.port)
        expect("start", counts(client, count(sequence_id=1, sequence_start=True)), [1])
        # Requests for sequence 2 do not keep sequence 1 open.
        wait_until("room for another sequence",
                   lambda: counts(client, count(sequence_id=2, sequence_start=True)) == [1])
        expect("the idle one has ended", counts(client, count(sequence_id=1), count()), [400, 1])


def pages_of_rows():
    """A sequence has memory for the rows that its calls have written, in pages of 4 KiB, and not
    for all rows of the buffer. A call that would take too much is refused and changes nothing."""
    def write(first, rows, **parameters):
        return infer(client, "notebook", [[[1.0] * 32] * rows, [first]], sequence_id=7,
                     **parameters)

    def held():
        return int(metric(client, "pted_sequence_bytes"))

    def pages(rows):
        return 2 * -(-rows * 128 // 4096) * 4096
    with Daemon([NOTEBOOK, "--sequence-bytes-max=80000"]) as daemon:
        client = Client(daemon.port)
        expect("first rows", write(0, 100, sequence_start=True), 200)
        expect("memory of 100 rows", held(), pages(100))
        expect("more rows", write(100, 100), 200)
        expect("memory of 200 rows", held(), pages(200))
        expect("too many rows", write(200, 512), 429)
        expect("memory as before", held(), pages(200))
        expect("one row", write(200, 1), 200)
        expect("rows as before", json.loads(client.body)["result"], [201.0 * 32, 201.0 * 64])
        expect("memory of 201 rows", held(), pages(201))
        expect("the end", write(0, 1, sequence_end=True), 200)
        wait_until("no memory", lambda: held() == 0)


# ---- pipelines ----------------------------------------------------------------------------------

def pipelines_of_a_sequence():
    """Steps with the same program share its state. The model itself has a separate state."""
    ones = [1, 1, 1, 1]
    with Pipelines({"twice": TWICE, "books": BOOKS}, RUNNING, LEDGER, FAULTS) as arguments, \
            Daemon(arguments) as daemon:
        client = Client(daemon.port)

        def run(divisor=1, **parameters):
            status = infer(client, "twice", [*X, ones, [1, 1, 1, divisor]], **parameters)
            return [n for n, in json.loads(client.body)["result"]] if status == 200 else status

        expect("alone", run(), [1, 1])
        expect("not open", run(sequence_id=1), 400)
        expect("begin", run(sequence_id=1, sequence_start=True), [1, 2])
        expect("go on", run(sequence_id=1), [3, 4])
        expect("its last step fails", run(0, sequence_id=1), 400)
        expect("as before", run(sequence_id=1), [5, 6])
        expect("the model has no such sequence", infer(client, "running", X, sequence_id=1), 400)
        expect("in a list", [[n for n, in answer] for answer in send_list(
            client, *[member("twice", [*X, ones, ones], sequence_id=1)] * 3)],
            [[7, 8], [9, 10], [11, 12]])
        expect("end", run(sequence_id=1, sequence_end=True), [13, 14])
        expect("ended", run(sequence_id=1), 400)
        rows = [[1.0] * 3] * 2
        for row, want in ((0, 12.0), (2, 24.0)):  # of two rows of 1, of four; times 6
            expect("books", infer(client, "books", [[row, row + 1], rows]), 200)
            expect("alone", json.loads(client.body)["result"], [0.0] * 3)
            expect("books", infer(client, "books", [[row, row + 1], rows], sequence_id="x",
                                  sequence_start=row == 0), 200)
            expect("in a sequence", json.loads(client.body)["result"], [want] * 3)
        client.send(build_request("GET", "/v2/models/twice/config"))
        expect("config", client.answer(), 200)
        expect("it says so", "sequence_batching" in json.loads(client.body), True)


# ---- everything at once -------------------------------------------------------------------------

class Sequence:
    """The expected state of one sequence."""

    def __init__(self, model, number):
        self.model, self.number, self.count = model, number, None

    def call(self, chance):
        """Returns a request and the counts of its answer; None if the request has to fail."""
        is_start = self.count is None or chance.random() < 0.1
        is_wrong = self.model == "twice" and chance.random() < 0.2
        parameters = {"sequence_id": self.number, "sequence_start": is_start}
        before = 0 if is_start else self.count
        steps = 2 if self.model == "twice" else 1
        self.count = before if is_wrong else before + steps
        args = [*X, [1] * 4, [0 if is_wrong else 1] * 4] if self.model == "twice" else X
        want = None if is_wrong else [before + 1 + i for i in range(steps)]
        return member(self.model, args, **parameters), want


def check(answer, model, want):
    if want is None:
        expect("a failure", answer["status"], 400)
        return
    expect("status", answer.get("error", 200), 200)
    result = answer["result"]
    expect("counts", [n for n, in result] if model == "twice" else result[1], want)


def send_one(client, sequence, chance):
    request, want = sequence.call(chance)
    status = call(client, f"/v2/models/{request.pop('model_name')}/call", request)
    check({**json.loads(client.body), "status": status}, sequence.model, want)


def send_some(client, sequences, chance):
    chosen = [chance.choice(sequences) for _ in range(chance.randrange(1, 9))]
    requests = [sequence.call(chance) for sequence in chosen]
    expect("list", call(client, "/v2/batch", [request for request, _ in requests]), 200)
    for sequence, (_, want), answer in zip(chosen, requests, json.loads(client.body)):
        check(answer, sequence.model, want)


def leave(daemon, sequences, chance):
    """Sends a list and disconnects. The state of its sequences is unknown afterwards."""
    chosen = [chance.choice(sequences) for _ in range(3)]
    client = Client(daemon.port)
    client.send(build_request("POST", "/v2/batch", json.dumps(
        [sequence.call(chance)[0] for sequence in chosen]).encode()))
    (client.reset if chance.random() < 0.5 else client.close)()
    for sequence in chosen:
        sequence.number, sequence.count = sequence.number + 10, None


def common(client, counter):
    """A list has two calls of a sequence that all clients share. No other call runs between them.
    """
    first, second = counts(client, count(sequence_id="all"), count(sequence_id="all"))
    expect("together", second, first + 1)
    counter.append(first)


def random_sequences():
    with Pipelines({"twice": TWICE}, "--workers=2", RUNNING, FAULTS) as arguments, \
            Daemon(arguments) as daemon:
        counter = []
        expect("start", counts(Client(daemon.port),
                               count(sequence_id="all", sequence_start=True)), [1])

        def run(seed):
            chance = random.Random(seed)
            client = Client(daemon.port)
            mine = [Sequence(chance.choice(("running", "twice")), 10000 * (seed + 1) + i)
                    for i in range(4)]
            for _ in range(ROUNDS):
                kind = chance.random()
                if kind < 0.4:
                    send_one(client, chance.choice(mine), chance)
                elif kind < 0.7:
                    send_some(client, mine, chance)
                elif kind < 0.8:
                    leave(daemon, mine, chance)
                else:
                    common(client, counter)
        in_threads(THREADS, run)
        expect("all of them", sorted(counter), list(range(2, 2 + 2 * len(counter), 2)))


CHECKS = (lists_of_a_sequence, beginning_and_end, crowd, idle_sequence, pages_of_rows,
          pipelines_of_a_sequence, random_sequences)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
