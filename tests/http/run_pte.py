#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command pte: what it takes, what it prints, what it refuses and with which exit status.

usage: run_pte.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from run_http import BUILD, MODELS, TIMEOUT_S, Failure, Report

PTE = os.environ.get("PTE", str(BUILD / "pte"))
ADD = str(MODELS / "add.pte")
DIGITS = str(MODELS / "digits.pte")
METHODS = str(MODELS / "methods.pte")
SCALARS = str(MODELS / "scalars.pte")
ONES = "[1,1,1,1,1,1]"


def run(*arguments):
    return subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=False)


def expect(status, pattern, *arguments):
    """The exit status, and a pattern in what is printed: on stdout when it is 0, else on stderr."""
    done = run(*arguments)
    text = done.stderr if status else done.stdout
    if done.returncode != status or not re.search(pattern, text):
        raise Failure(f"pte {' '.join(arguments)}: status {done.returncode}, {done.stdout!r}, "
                      f"{done.stderr!r}; expected {status} and {pattern!r}")
    return text


def npy(descr, shape, raw):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (63 - (10 + len(head)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + raw


def usage_errors():
    expect(64, "expected a command")
    expect(64, "expected a command, got 'dance'", "dance")
    expect(64, "expected FILE", "run")
    expect(64, "expected FILE", "inspect")
    expect(64, "unknown option '--nope'", "run", ADD, "--nope", "1")
    expect(64, "unknown option '--nope'", "run", ADD, "--nope=1")
    expect(64, "option '--repeat' needs a value", "run", ADD, "--repeat")
    expect(64, "option '--data' needs a value", "inspect", ADD, "--data")
    expect(64, "--method: only with --graph or --plan", "inspect", ADD, "--method", "forward")
    expect(0, "^output_0", "run", "--workers=1", "--", ADD)
    expect(64, "unknown option '--nope'", "inspect", ADD, "--nope")
    expect(64, "one FILE only", "run", ADD, ADD)
    expect(64, "--repeat: expected 1 to", "run", ADD, "--repeat", "0")
    expect(64, "expected NAME=X, where NAME is one of input_0 and input_1", "run", ADD, "--input",
           "x=1")
    expect(64, "devices takes no arguments", "devices", "x")


def help_version_devices():
    expect(0, "usage: pte inspect", "--help")
    expect(0, r"^pte \d+\.\d+\.\d+\n", "--version")
    expect(0, "cpu", "devices")


def data_files():
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.ptd"
        bad.write_bytes(b"no data file" * 9)
        for command in ("run", "inspect"):
            expect(65, "bad.ptd: not a .ptd file", command, "--data", str(bad), ADD)
            expect(66, "missing.ptd", command, "--data", f"{folder}/missing.ptd", ADD)
    expect(64, "given more than 64 times", "run", *["--data", "x"] * 65, ADD)
    expect(64, "given more than 64 times", "inspect", *["--data", "x"] * 65, ADD)


def operators():
    lines = expect(0, "aten::add.out", "ops").splitlines()
    rows = json.loads(expect(0, "aten::add.out", "ops", "--json"))
    if [line.split()[0] for line in lines] != [row["name"] or "-" for row in rows]:
        raise Failure("the two lists of operators differ")
    row = next(row for row in rows if row["name"] == "view")
    if row["devices"] != ["cpu", "vulkan"] or row["kind"] != "view" or "c64" not in row["dtypes"]:
        raise Failure(f"view is {row}")
    kernels = [kernel for row in rows for kernel in row["kernels"]]
    if len(set(kernels)) != len(kernels):
        raise Failure("a kernel call means two operators")
    expect(64, "ops takes --json or nothing, got 'x'", "ops", "x")


def bad_files():
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.pte"
        bad.write_bytes(Path(ADD).read_bytes()[:600])
        for command in ("run", "inspect"):
            expect(65, "bad.pte", command, str(bad))
            expect(66, "missing.pte", command, f"{folder}/missing.pte")
    expect(66, "no method 'nope'", "run", ADD, "--method", "nope")
    expect(66, "no method 'forward'", "run", METHODS)


def inspect():
    expect(0, 'method "forward"', "inspect", ADD)
    for option in ("--graph", "--plan"):
        first = expect(0, "^method forward", "inspect", option, ADD)
        if first != expect(0, "^method forward", "inspect", option, ADD):
            raise Failure(f"{option} prints another text the second time")
        expect(0, r"^method encode\b", "inspect", option, "--method", "encode", METHODS)
        expect(66, "no method 'nope'", "inspect", option, "--method", "nope", METHODS)
    expect(0, r"\nfusion makes 6 dispatches of 17, 5 barriers of 16\n$",
           "inspect", "--plan", DIGITS)


def json_inputs():
    expect(0, r"^output_0: FP32 \[2,3\] \[2.0,3.0,4.0,5.0,6.0,7.0\]\n$", "run", ADD,
           "--input", "input_0=[[1,2,3],[4,5,6]]", "--input", f"input_1={ONES}")
    expect(0, r"^output_0: FP32 \[3,4\] ", "run", METHODS, "--method", "encode",
           "--input", f"input_0={[[0.5] * 10] * 3}")
    expect(0, r'^output_0: BYTES \[1\] "[^"]+"\n$', "run", METHODS, "--method", "get_name")
    expect(0, r"output_1: INT64 \[\] \[", "run", SCALARS, "--input", "input_1=4",
           "--input", "input_2=0.5", "--input", "input_3=true")
    expect(64, "input_1: .*4", "run", SCALARS, "--input", "input_1=5")
    expect(64, r"input_0: data\[1\]\[0\]: ", "run", ADD, "--input", 'input_0=[[1,2,3],["x",5,6]]')
    expect(64, r"input_0: data: expected 6 elements \(shape \[2,3\]\), got 3", "run", ADD,
           "--input", "input_0=[1,2,3]")
    expect(64, "input_0: data: expected an array, got 'z'", "run", ADD, "--input", "input_0=zz")
    expect(64, "input_0: ", "run", ADD, "--input", "input_0=")
    expect(64, "input_0: ", "run", METHODS, "--method", "encode", "--input", "input_0=[[[[")
    expect(64, "input_0: ", "run", METHODS, "--method", "encode",
           "--input", f"input_0={[[0.5] * 10] * 9}")


def file_inputs_and_outputs():
    """An .npy and a .bin in, an .npy out that is the input of the next run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw = struct.pack("<6f", *range(6))
        (folder / "a.npy").write_bytes(npy("<f4", "(2, 3)", raw))
        (folder / "b.bin").write_bytes(raw)
        for raw_input in (f"{name}/b.bin:2x3", f"{name}/b.bin"):
            expect(0, "^$", "run", ADD, "--input", f"input_0={name}/a.npy",
                   "--input", f"input_1={raw_input}", "--output", f"{name}/out")
            want = npy("<f4", "(2,3,)", struct.pack("<6f", *(2 * i for i in range(6))))
            if (folder / "out/output_0.npy").read_bytes() != want:
                raise Failure(f"{(folder / 'out/output_0.npy').read_bytes()!r}, expected {want!r}")
        expect(0, r"\[1.0,3.0,5.0,7.0,9.0,11.0\]", "run", ADD,
               "--input", f"input_0={name}/out/output_0.npy", "--input", f"input_1={ONES}")
        expect(64, "expected 20 bytes", "run", ADD, "--input", f"input_0={name}/b.bin:5")
        expect(64, "dims: expected something like", "run", ADD,
               "--input", f"input_0={name}/b.bin:2y3")
        expect(66, "none.npy", "run", ADD, "--input", f"input_0={name}/none.npy")
        (folder / "c.npy").write_bytes(npy("<f8", "(2, 3)", raw + raw))
        expect(64, "input_0: ", "run", ADD, "--input", f"input_0={name}/c.npy")
        (folder / "c.npy").write_bytes(raw)
        expect(64, "not an .npy file", "run", ADD, "--input", f"input_0={name}/c.npy")


def pattern_is_fixed():
    first = expect(0, "^output_0", "run", ADD)
    if first != expect(0, "^output_0", "run", ADD, "--workers", "1", "--cpu", "generic"):
        raise Failure(f"{first!r} is not what a second run gives")
    expect(64, "nonsense", "run", ADD, "--cpu", "nonsense")


def repeat():
    text = expect(0, r"^median_us: \d+\.\d\n", "run", ADD, "--repeat", "20", "--workers", "1")
    figures = dict(re.findall(r"(\w+)_us: (\d+\.\d)\n", text))
    names = ["min", "p10", "median", "p90", "max"]
    if sorted(figures) != sorted(names):
        raise Failure(f"printed {text!r}")
    values = [float(figures[name]) for name in names]
    if values != sorted(values):
        raise Failure(f"{text!r} is out of order")


CHECKS = (usage_errors, help_version_devices, bad_files, data_files, operators, inspect,
          json_inputs, file_inputs_and_outputs, pattern_is_fixed, repeat)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
