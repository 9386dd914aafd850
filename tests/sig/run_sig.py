#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `pte sig` over the vectors of the signature ABIs and over stored structures of models.

A vector (vectors.json) is a text with what a strict reader must say of it; every one goes through
standard input, with and without a line end behind it, and as an argument too where that can hold
it. A model's description NAME.json has the structures as its exporter stored them, and as its
author wrote them.

usage: run_sig.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", SOURCE))
PTE = os.environ.get("PTE", str(BUILD / "pte"))
# A larger collection that may lie in or beside the source tree.
MODELS = [SOURCE / "tests" / "models"] + [
    folder / "shared/models/public" for folder in (SOURCE, SOURCE.parent)]
COMMANDS = {"lex": "lex", "raw": "f", "sip": "sip", "pytree": "pytree"}
TIMEOUT_S = 60
# What tools put behind a text; it is not part of it.
LINE_ENDS = {"line": b"\n", "crlf": b"\r\n"}

failures = []


def check(claim, name, detail=""):
    if not claim:
        failures.append(name)
        print(f"FAIL {name}: {detail}")


def span(tag, content):
    return tag + str(len(content) + 1).encode() + b"!" + content


def pte_sig(kind, text, is_argument=False):
    arguments = [PTE, "sig", COMMANDS[kind], text if is_argument else "-"]
    return subprocess.run(arguments, input=None if is_argument else text, capture_output=True,
                          timeout=TIMEOUT_S, check=False)


def canonical(done):
    """The bytes behind `canonical: `, which may hold line ends themselves."""
    return done.stdout.partition(b"\ncanonical: ")[2][:-1]


def encoded(vector):
    if vector["kind"] == "pytree":
        return json.dumps({key: vector[key] for key in ("encoded_inp_str", "encoded_out_str")})
    if "encoded_builder" in vector:
        inner = b"_0"
        for _ in range(2000):
            inner = span(b"S", b"k0" + inner)
        return span(b"I", inner) + b"R1!"
    if "encoded_hex" in vector:
        return bytes.fromhex(vector["encoded_hex"])
    return vector["encoded"].encode()


def wanted(vector, text):
    """The canonical spelling, or None where a vector does not say."""
    if vector["kind"] == "pytree":
        return vector["sip"].encode()
    if vector.get("canonical") or vector["kind"] == "lex":
        return text
    return vector.get("canonical_form", "").encode() or None


def run_vector(vector):
    text = encoded(vector)
    text = text.encode() if isinstance(text, str) else text
    ways = ["stdin", "line", "crlf"]
    ways += ["argument"] if b"\0" not in text and text != b"-" else []
    for way in ways:
        name = f"{vector['id']} {way}"
        done = pte_sig(vector["kind"], text + LINE_ENDS.get(way, b""), way == "argument")
        said = (done.returncode, done.stdout, done.stderr)
        if not vector["valid"]:
            check(done.returncode == 1 and not done.stdout and b"byte " in done.stderr, name, said)
            continue
        check(done.returncode == 0 and done.stdout.startswith(b"readable: "), name, said)
        want = wanted(vector, text)
        check(want is None or canonical(done) == want, name, f"{said}, expected {want}")


def mangle(tree):
    """The structure that a model's author wrote, as one value of a signature."""
    if tree["type"] == "leaf":
        return b"_%d" % tree["index"]
    if tree["type"] == "dict":
        members = sorted((name.encode(), value) for name, value in tree["items"].items())
        return span(b"D", b"".join(span(b"K", name) + mangle(value) for name, value in members))
    return span(b"S", b"".join(b"k%d" % i + mangle(value)
                               for i, value in enumerate(tree["items"])))


def mangle_inputs(tree):
    if not tree:
        return span(b"I", b"")
    args, kwargs = tree["args"]["items"], tree["kwargs"]["items"]
    if args and kwargs:
        return span(b"I", mangle({"type": "list", "items": args + [tree["kwargs"]]}))
    if not args and not kwargs:
        return span(b"I", b"")
    return span(b"I", mangle(tree["args"] if args else tree["kwargs"]))


def run_model(path):
    """Compares what is stored with what was written; returns the number of methods."""
    facts = json.loads(path.read_text())
    stored = facts.get("program", {}).get("methods", {})
    written = {case["method"]: case["outputs_tree"] for case in facts.get("cases", [])
               if "outputs_tree" in case}
    names = [name for name in stored if "encoded_inputs" in stored[name] and name in written]
    for name in names:
        text = json.dumps({"encoded_inp_str": stored[name]["encoded_inputs"],
                           "encoded_out_str": stored[name]["encoded_outputs"]})
        done = pte_sig("pytree", text.encode())
        inputs = facts["methods"][name].get("inputs_tree")
        want = mangle_inputs(inputs) + span(b"R", mangle(written[name]))
        check(canonical(done) == want, f"{path.name} {name}",
              f"{done.stdout}, {done.stderr}, expected {want}")
    return len(names)


def own_line_ends():
    """A text that ends in a line end keeps it; there is none behind an argument."""
    text = span(b"K", b"a\n")
    for behind in (b"", b"\n", b"\r\n"):
        done = pte_sig("lex", text + behind)
        check(canonical(done) == text, f"{text + behind}", done)
    for given, is_argument in ((text + b"\n\n", False), (b"I1!R1!\n", True)):
        done = pte_sig("lex", given, is_argument)
        check(done.returncode == 1 and b"byte " in done.stderr, f"{given}", done)


def main():
    vectors = json.loads((SOURCE / "tests/sig/vectors.json").read_text())["vectors"]
    for vector in vectors:
        run_vector(vector)
    methods = sum(run_model(path) for folder in MODELS for path in sorted(folder.glob("*.json")))
    own_line_ends()
    usage = subprocess.run([PTE, "sig", "sap", "I1!R1!"], capture_output=True, check=False)
    check(usage.returncode == 64 and b"usage" in usage.stderr, "an unknown kind", usage)
    print(f"{len(vectors)} vectors, {methods} stored structures, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
