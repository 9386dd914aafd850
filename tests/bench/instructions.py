#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts the instructions that one request costs the daemon in user space, by step, for five kinds:
an inference with JSON, one with binary tensors, a call, the embedding of a short text, and a token
of a stream.

Valgrind counts (callgrind), so the machine and its load hardly matter; the compiler and the C
library do. Only the loop's thread counts: what workers and the threads of the pool compute does
not, so a text is parsed at no cost here. instructions.tsv has the counts. The daemon has one worker
and no vector code; requests come one after the other on one connection. A request for
/v2/health/live begins and ends each kind: callgrind writes what it has counted when the function
behind that route is entered. Steps are counted with all that they call; "received" has all of them
that follow from the bytes of a request, "all" also what the loop does as time passes.

Fails if "received" is above 1.05 times that of the table. With a compiler that has no row, or a
build that is not optimized as usual, it only prints.

usage: instructions.py [--all] [--write]; without --all JSON and binary alone. --write replaces the
    rows of this compiler.
"""
import argparse
import collections
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

TOP = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
PTED = Path(os.environ.get("PTED", BUILD / "pted"))
MODELS = TOP / "tests" / "models"
TABLE = TOP / "tests" / "bench" / "instructions.tsv"
TOKENS = 24
LIMIT = 1.05
FEW = 100  # a token of a stream follows from no bytes: its count is 0, give or take a few
BETWEEN = "api_live"  # of /v2/health/live
# Columns of the table, and the functions of the daemon whose cost they have; without those of "-".
STEPS = {"received": ("on_received",), "head": ("conn_message_feed", "-exchange_run"),
         "parse": ("infer_parse",), "decode": ("infer_decode",), "prepare": ("infer_prepare",),
         "run": ("request_step_run",), "encode": ("infer_encode",),
         "write": ("request_step_write",), "done": ("request_step_done",)}


# ---------------------------------------------------------------- requests

def post(path, body, *fields):
    lines = [f"POST {path} HTTP/1.1", "Host: pted", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*lines, "", ""]).encode() + body


def post_json(path, value):
    return post(path, json.dumps(value, separators=(",", ":")).encode(),
                "Content-Type: application/json")


ROWS = [[[1, 2, 3], [4, 5, 6]], [[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]]]


def inputs(data):
    return [{"name": f"input_{i}", "shape": [2, 3], "datatype": "FP32", **data(sum(rows, []))}
            for i, rows in enumerate(ROWS)]


def binary():
    head = json.dumps({"inputs": inputs(lambda _: {"parameters": {"binary_data_size": 24}}),
                       "parameters": {"binary_data_output": True}}, separators=(",", ":")).encode()
    tail = b"".join(struct.pack("<6f", *sum(rows, [])) for rows in ROWS)
    return post("/v2/models/add/infer", head + tail, "Content-Type: application/octet-stream",
                f"Inference-Header-Content-Length: {len(head)}")


def stream(tokens):
    return post_json("/v1/completions", {"model": "chat", "prompt": "the", "max_tokens": tokens,
                                         "stream": True, "temperature": 0, "ignore_eos": True})


# Of each kind: the request, and how often it is sent before the count begins and while it runs.
QUICK = {"json": (post_json("/v2/models/add/infer",
                            {"inputs": inputs(lambda data: {"data": data})}), 200, 500),
         "binary": (binary(), 200, 500)}
OTHERS = {"call": (post_json("/v2/models/add/call", {"args": ROWS}), 200, 500),
          "embedding": (post_json("/v1/embeddings", {"model": "encoder", "input": "a short text"}),
                        10, 20),
          "one token": (stream(1), 10, 10), "tokens": (stream(1 + TOKENS), 4, 10)}


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def ask(self, request):
        self.socket.sendall(request)
        status = self.file.readline()
        head = {}
        for line in iter(self.file.readline, b"\r\n"):
            name, value = line.decode().split(":", 1)
            head[name.lower()] = value.strip()
        body = b""
        if "content-length" in head:
            body = self.file.read(int(head["content-length"]))
        else:
            for size in iter(lambda: int(self.file.readline(), 16), 0):
                body += self.file.read(size)
                self.file.readline()
            self.file.readline()
        if b" 200 " not in status:
            raise SystemExit(f"{status} {body[:300]}")
        return body


# ---------------------------------------------------------------- the daemon under callgrind

def without_lines(folder):
    """The daemon with names of functions alone: valgrind 3.19 cannot read what clang 14 says of
    lines, and ends."""
    if not shutil.which("objcopy"):
        return PTED
    subprocess.run(["objcopy", "--strip-debug", PTED, f"{folder}/pted"], check=True)
    return f"{folder}/pted"


def start(folder, kinds):
    """The process and its port."""
    models = [f"--model=add={MODELS / 'add.pte'}"]
    if "embedding" in kinds:
        models += [f"--model=encoder={MODELS / 'encoder' / 'model.pte'}",
                   f"--model=chat={MODELS / 'chat' / 'model.pte'}"]
    process = subprocess.Popen(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out",
         f"--dump-before={BETWEEN}", "--separate-threads=yes", "--", without_lines(folder),
         "--listen=127.0.0.1:0", "--workers=1", "--cpu=generic", *models],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(found[1])
    sys.exit(f"pted did not start: {process.wait()}")


def count(kinds):
    """Of each kind: the instructions of one request, by step and in all."""
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(folder, kinds)
        try:
            client = Client(port)
            between = b"GET /v2/health/live HTTP/1.1\r\nHost: pted\r\n\r\n"
            for request, warm, times in kinds.values():
                for _ in range(warm):
                    client.ask(request)
                client.ask(between)
                for _ in range(times):
                    client.ask(request)
                client.ask(between)
        finally:
            process.terminate()
            process.wait()
        # A file from each request between others to the next: each second one has a count.
        return {kind: read_counts(f"{folder}/out.{2 * i + 2}-01", kinds[kind][2])
                for i, kind in enumerate(kinds)}


def read_counts(path, times):
    """Of one request of |times|. Source: the format of callgrind's files,
    valgrind.org/docs/manual/cl-format.html."""
    names, within, total = {}, collections.Counter(), 0

    def name_of(text):
        number, _, name = text.partition(" ")
        if name:
            names[number] = re.sub(r"'\d+$", "", name)
        return names[number]

    callee = None
    with open(path, encoding="utf-8") as file:
        for line in map(str.rstrip, file):
            if line.startswith("fn="):
                caller = name_of(line[3:])
            elif line.startswith("cfn="):
                callee = name_of(line[4:])
            elif re.match(r"[+*\d-]", line):
                cost = int(line.split()[1])
                if callee is None:
                    total += cost
                elif callee != caller:
                    within[callee] += cost
                callee = callee if line.startswith("calls=") else None
    costs = {step: sum(-within[name[1:]] if name[0] == "-" else within[name]
                       for name in functions) // times
             for step, functions in STEPS.items()}
    return {**costs, "all": total // times}


# ---------------------------------------------------------------- the table

def compiler():
    """As "gcc 12 glibc 2.36"; None: of an unusual build."""
    made = (BUILD / "Makefile").read_text(encoding="utf-8")
    command = re.search(r"^CC = (.*)$", made, re.M)[1]
    flags = re.search(r"^CFLAGS = (.*)$", made, re.M)[1]
    sanitizers = re.search(r"^SANITIZE_CFLAGS = *(.*)$", made, re.M)[1]
    if sanitizers.strip() or "-O2" not in flags.split():
        return None
    said = subprocess.run(f"{command} --version", shell=True, capture_output=True, text=True).stdout
    name = "clang" if "clang" in said else "gcc"
    version = re.search(r"(\d+)\.\d+\.\d+", said)[1]
    return f"{name} {version} {' '.join(os.confstr('CS_GNU_LIBC_VERSION').split())}"


def read_table():
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {(row[0], row[1]): dict(zip(rows[0][2:], map(int, row[2:]))) for row in rows[1:]}


def write_table(table):
    columns = [*STEPS, "all"]
    lines = ["# SPDX-License-Identifier: MIT",
             "# Instructions of one request, by instructions.py --all --write.",
             "\t".join(["compiler", "kind", *columns])]
    lines += ["\t".join([*key, *(str(row[name]) for name in columns)])
              for key, row in sorted(table.items())]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_row(kind, counts, stored):
    parts = [f"{step} {counts[step]}" + (f" ({counts[step] - stored[step]:+})" if stored else "")
             for step in (*STEPS, "all")]
    print(f"{kind}: {', '.join(parts)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    name = compiler()
    if not shutil.which("valgrind") or (not name and not args.all):
        print("SKIP: no valgrind, or a build with a sanitizer or without -O2")
        return 77
    counted = count(QUICK)
    if args.all:
        counted |= count(OTHERS)
        one, more = counted.pop("one token"), counted.pop("tokens")
        counted["token"] = {step: (more[step] - one[step]) // TOKENS for step in one}
    table = read_table()
    for kind, counts in counted.items():
        print_row(kind, counts, table.get((name, kind)))
    if args.write:
        write_table({**table, **{(name, kind): counts for kind, counts in counted.items()}})
        return 0
    above = [kind for kind, counts in counted.items() if (name, kind) in table
             and counts["received"] > max(LIMIT * table[name, kind]["received"], FEW)]
    for kind in above:
        print(f"FAIL: {kind} costs more than {LIMIT} times {table[name, kind]['received']} "
              "instructions; if that is meant, run instructions.py --all --write")
    if (name, "json") not in table:
        print(f"SKIP: the table has no rows of {name}")
        return 77
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
