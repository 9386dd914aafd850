#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command pte: its arguments, its output, its errors and its exit status.

usage: run_pte.py, with top_srcdir and top_builddir in the environment.
"""
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from run_http import BUILD, MODELS, SOURCE, TIMEOUT_S, Failure, Report

PTE = os.environ.get("PTE", str(BUILD / "pte"))
ADD = str(MODELS / "add.pte")
DIGITS = str(MODELS / "digits.pte")
FOUND = str(MODELS / "found.pte")
METHODS = str(MODELS / "methods.pte")
SCALARS = str(MODELS / "scalars.pte")
SHAPES = str(MODELS / "shapes.pte")
TRACED = str(MODELS / "traced.pte")
ONES = "[1,1,1,1,1,1]"


def run(*arguments):
    return subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=False)


def expect(status, pattern, *arguments):
    """Runs pte and checks its status, and that stdout (status 0) or stderr matches |pattern|."""
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


def names():
    """The program is pte or pted, as it is called; the name of its folder does not matter."""
    called = {"pte": ("pte", "pte-0.1", "my-pte"), "pted": ("pted", "pted-0.1", "server")}
    with tempfile.TemporaryDirectory(suffix="pte") as folder:
        for program, links in called.items():
            for link in (Path(folder) / name for name in links):
                link.symlink_to(Path(PTE).resolve())
                done = subprocess.run([link, "--version"], capture_output=True, text=True,
                                      timeout=TIMEOUT_S, check=True)
                if done.stdout.split()[0] != program:
                    raise Failure(f"{link.name} is {done.stdout!r}, expected {program}")


def usage_errors():
    expect(64, "expected a command")
    expect(64, "expected a command, got 'dance'\n", "dance")
    expect(64, "expected a command, got 'inspekt'; did you mean 'inspect'", "inspekt")
    for word, said in (("list", "pte ls URL"), ("serve", "pted FILE.pte"),
                       ("pull", "pte fetch URL"), ("info", "pte inspect FILE.pte")):
        expect(64, f"expected a command, got '{word}'; that is: {said}", word)
    expect(64, "unknown option '--repaet'; did you mean '--repeat'", "run", ADD, "--repaet", "1")
    expect(64, "unknown option '--jsn'; did you mean '--json'", "ls", "--jsn", "http://x")
    expect(64, "expected FILE", "run")
    expect(64, "expected FILE", "inspect")
    expect(64, "unknown option '--nope'", "run", ADD, "--nope", "1")
    expect(64, "unknown option '--nope'", "run", ADD, "--nope=1")
    expect(64, "option '--repeat' needs a value", "run", ADD, "--repeat")
    expect(64, "option '--data' needs a value", "inspect", ADD, "--data")
    expect(64, "--method: only with --graph, --plan or --values", "inspect", ADD, "--method",
           "forward")
    expect(0, "^output_0", "run", "--workers=1", "--", ADD)
    expect(64, "unknown option '--nope'", "inspect", ADD, "--nope")
    expect(64, "no card says that an input is made from a picture, a sound or a text", "run", ADD,
           ADD)
    expect(64, "there are several inputs; expected NAME=X", "run", ADD, "[[1,2,3],[4,5,6]]")
    expect(64, "'input_0' is given twice", "run", DIGITS, "[[[[1]]]]", "[[[[1]]]]")
    expect(0, r"^output_0: float32\[1,10\]", "run", DIGITS, "[[[[0.5,1],[1,0]]]]")
    expect(64, "--repeat: expected 1 to", "run", ADD, "--repeat", "0")
    for option, form in (("--input", "X"), ("--shape", "2x3x4")):
        for given in ("x=1", "input_0"):
            expect(64, f"{option} {given}: expected NAME={form}, "
                   "where NAME is one of input_0 and input_1\n", "run", ADD, option, given)
    for option, given in (("--input", "input_0=[1,2,3,4,5,6]"), ("--shape", "input_0=2x3")):
        expect(64, f"{option} {re.escape(given)}: .*input_0.* is given twice", "run", ADD, option,
               given, option, given)
    expect(64, r"usage: pte run .*; see pte run --help\n$", "run", ADD, "--nope")
    expect(64, "devices takes no arguments", "devices", "x")


COMMANDS = {"inspect": "--json", "run": "--top-k", "profile": "--trace", "devices": "--device",
            "ops": "--json", "sig": "pytree"}


def help_version_devices():
    text = expect(0, "usage: pte inspect", "--help")
    for name, word in COMMANDS.items():
        if not re.search(rf"^  {name} +\w", text, re.M):
            raise Failure(f"{name} is not in the list of {text!r}")
        for option in ("--help", "-h"):
            own = expect(0, rf"^usage: pte {name}\b[^\0]*Examples?:\n  pte {name}", name, option)
            if word not in own:
                raise Failure(f"pte {name} --help does not speak of {word}: {own!r}")
            if any(len(line) > 100 for line in own.splitlines()):
                raise Failure(f"pte {name} --help has lines of more than 100 columns")
    expect(66, "--help: No such file", "run", "--", "--help")
    for place in ("localhost:1/add", "http://localhost/add"):
        for name in ("inspect", "profile"):
            expect(66, f"{place}: this command takes a file", name, place)
    expect(0, r"^pte \d+\.\d+\.\d+\n", "--version")
    expect(0, "cpu", "devices")


def count_workers(enter):
    """How many there are by default in a process that has called |enter|."""
    done = subprocess.run([PTE, "devices"], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=TIMEOUT_S, check=True, preexec_fn=enter)
    return int(re.search(r"^cpu\t.*, (\d+) workers?$", done.stdout, re.M)[1])


def workers_fit_affinity():
    allowed = sorted(os.sched_getaffinity(0))
    for count in {1, len(allowed)}:
        found = count_workers(lambda: os.sched_setaffinity(0, allowed[:count]))
        if found > count or found < 1:
            raise Failure(f"{found} workers for {count} processors")


def make_control_group():
    """(folder of a new group below ours, {file: content} for one processor), or None."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for kind, name, limits in (
            ("cgroup2", "", {"cpu.max": "100000 100000"}),
            ("cgroup", "cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"})):
        for mount in mounts:
            if mount[2] != kind or (name and name not in mount[3].split(",")):
                continue
            own = next((line[2] for line in lines if name in line[1].split(",")), "/")
            group = Path(f"{mount[1]}{own}") / f"pted-test-{os.getpid()}"
            try:
                group.mkdir()
            except OSError:
                continue
            if all((group / file).exists() for file in limits):
                return group, limits
            group.rmdir()
    return None


def workers_fit_control_group():
    made = make_control_group()
    if made is None:
        print("# skipped: no control group for processors can be made here")
        return
    group, limits = made
    try:
        for file, text in limits.items():
            (group / file).write_text(text)
        found = count_workers(lambda: (group / "cgroup.procs").write_text("0"))
        if found != 1:
            raise Failure(f"{found} workers in {group} with the time of one processor")
    finally:
        group.rmdir()


def host_and_port():
    """Every command that asks a server takes HOST:PORT for http://HOST:PORT, and its help and the
    manual page say so."""
    for name, target in (("ls", ""), ("ls", "/add"), ("load", "/add"), ("unload", "/add"),
                         ("top", ""), ("run", "/add"), ("bench", "/add"), ("chat", "/add")):
        done = subprocess.run([PTE, name, "localhost:1" + target], input="Hello", text=True,
                              capture_output=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 77 or "http://localhost:1: cannot connect" not in done.stderr:
            raise Failure(f"pte {name} localhost:1{target}: {done.returncode} {done.stderr!r}")
        if "HOST:PORT" not in expect(0, "", name, "--help").replace("://HOST:PORT", ""):
            raise Failure(f"pte {name} --help does not say HOST:PORT")
    page = (SOURCE / "contrib" / "man" / "pte.1").read_text()
    if "\n.Li HOST:PORT\n" not in page:
        raise Failure("the manual page does not say HOST:PORT")


def data_files():
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.ptd"
        bad.write_bytes(b"no data file" * 9)
        for command in ("run", "inspect"):
            expect(65, "bad.ptd: not a .ptd file", command, "--data", str(bad), ADD)
            expect(66, "missing.ptd", command, "--data", f"{folder}/missing.ptd", ADD)
    expect(64, "given more than 64 times", "run", *["--data", "x"] * 65, ADD)
    expect(64, "given more than 64 times", "inspect", *["--data", "x"] * 65, ADD)


def signatures():
    expect(0, r"^readable: \(float32\[2,3\]", "sig", "f", "I15!B5!d2d3B5!d2d3R8!B5!d2d3")
    expect(1, "^pte: byte 0: expected 'I', got 'x'\n$", "sig", "f", "xyz")
    expect(64, "usage: pte sig", "sig")
    expect(64, "usage: pte sig", "sig", "nope", "x")


def operators():
    lines = expect(0, "aten::add.out", "ops").splitlines()
    rows = json.loads(expect(0, "aten::add.out", "ops", "--json"))
    if [line.split()[0] for line in lines] != [row["name"] or "-" for row in rows]:
        raise Failure("the two lists of operators differ")
    row = next(row for row in rows if row["name"] == "view")
    if (row["devices"] not in (["cpu"], ["cpu", "vulkan"]) or row["kind"] != "view"
            or "c64" not in row["dtypes"]):
        raise Failure(f"view is {row}")
    kernels = [kernel for row in rows for kernel in row["kernels"]]
    if len(set(kernels)) != len(kernels):
        raise Failure("a kernel call means two operators")
    expect(64, "ops takes no arguments, got 'x'", "ops", "x")


def bad_files():
    with tempfile.TemporaryDirectory() as folder:
        bad = Path(folder) / "bad.pte"
        bad.write_bytes(Path(ADD).read_bytes()[:600])
        for command in ("run", "inspect"):
            expect(65, "bad.pte", command, str(bad))
            expect(66, "missing.pte", command, f"{folder}/missing.pte")
        # Valid, and nothing that pted can run.
        other = Path(folder) / "other.pte"
        other.write_bytes(Path(ADD).read_bytes().replace(b"aten::add", b"aten::adx"))
        for command in ("run", "profile"):
            expect(69, "method 'forward': instruction 0: .*'aten::adx.out'", command, str(other))
        expect(0, "aten::adx.out", "inspect", str(other))
        other.write_bytes(Path(ADD).read_bytes().replace(b"ET12", b"ET99", 1))
        for command in ("run", "inspect"):
            expect(69, "ET99", command, str(other))
    expect(66, "no method 'nope'; the methods are forward", "run", ADD, "--method", "nope")
    expect(66, "no method 'forward', expected --method NAME; the methods are decode, encode, ",
           "run", METHODS)


ADD_PAGE = """\
add: ExecuTorch program of 1.0 KiB, 1 method, 0 parameters

forward
  inputs      input_0  float32  [2, 3]
              input_1  float32  [2, 3]
  results     output_0  float32  [2, 3]
  served      as add
  delegate    none: 1 call of 1 operator
  parameters  none
  state       none
  memory      weights 0 B
              a call 72 B
  lacks       batches: dim 0 of input 'input_0' is not 1
"""
SHAPES_PAGE = """\
shapes: ExecuTorch program of 6.5 KiB, 2 methods, 85 parameters

recall
  inputs      input_0  float32  [batch<=6, s2<=5, s3<=6]
              input_1  float32  [s4<=2, s5<=6, s6<=8]
  results     output_0  float32  [s5, 5, 8]
              output_1  float32  [s5, s6]
  served      as shapes.recall
  delegate    none: 15 calls of 11 operators
  parameters  57 in 232 B
  types       float32 98 %, int64 1.8 %
  state       none
  memory      weights \\S+ B, 32 B of them where they are in the file
              a call 440 B for 1x5x6 and 2x1x8, at most 2.4 KiB for 6x5x6 and 2x6x8
  lacks       batches: dim 0 of input 'input_1' is not the number of rows

step
  inputs      input_0  int64    [1, s1<=5]
  results     output_0  float32  [1, s1, 4]
  served      as shapes.step
  delegate    none: 5 calls of 4 operators
  parameters  28 in 112 B
  types       float32
  state       kept from call to call of a sequence
  memory      weights 112 B, 112 B of them where they are in the file
              a call 104 B for 1x1, at most 200 B for 1x5
              a sequence 32 B
  lacks       steps: it has state, and no weights that rows would share
"""


def page_pattern(page):
    """A regex for the text of |page|. Its \\S+ stays: those words depend on the processor."""
    return "^" + r"\S+".join(re.escape(part) for part in page.split("\\S+")) + "$"


def inspect_page():
    expect(0, page_pattern(ADD_PAGE), "inspect", ADD)
    expect(0, page_pattern(SHAPES_PAGE), "inspect", SHAPES)
    expect(0, r'\nconstant methods\n  values      get_name ".*", get_width 10, get_scale 0.1, '
           r"is_trained false,\n              get_shape 10,4, get_table int64\[5\]\n$",
           "inspect", METHODS)
    expect(0, r'\n  values      class_names "zero","the \\"one\\"","two","three",\.\.\. \(10\)',
           "inspect", str(MODELS / "answers.pte"))
    for name, kind in (("chat", "language model"), ("whisper", "speech model"),
                       ("encoder", "encoder of texts")):
        expect(0, rf"\n  served      as model.*, an? {kind}; its tokenizer is beside it\n",
               "inspect", str(MODELS / name / "model.pte"))
    for name, lacks in (("chat/model", ""), ("llm/model", ""), ("digits", ""),
                        ("loops", "  lacks       batches: it has control flow\n"),
                        ("ring", r"  lacks       guesses: its mutable buffers .*\n"
                                 r"              prefixes: its mutable buffers .*\n")):
        expect(0, rf"^(?:(?!  lacks).*\n)*{lacks}(?:(?!  lacks).*\n)*$", "inspect",
               str(MODELS / f"{name}.pte"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(MODELS / "chat" / "model.pte", folder)
        expect(0, r"\n  served      as model, a language model; there is no tokenizer beside it\n",
               "inspect", f"{folder}/model.pte")
    expect(0, r"\n  inputs .*\n +input_1  int, only 4\n +input_2  float, only 0.5\n"
           r" +input_3  bool, only true\n +input_4  nothing\n", "inspect", SCALARS)
    expect(0, r"\n  delegate    XnnpackBackend\n[^\0]*\n  types       int8 94 %, float32 5.5 %; "
           "activations of 8 bits, by scales of each row as it comes\n",
           "inspect", str(MODELS / "xnn_rows.pte"))
    expect(0, r"\n  types       int4 53 %, ", "inspect", str(MODELS / "xnn_int4.pte"))
    for path in MODELS.glob("*.pte"):
        for line in expect(0, "^", "inspect", str(path)).splitlines():
            if len(line) > 100:
                raise Failure(f"{path}: a line of more than 100 columns: {line!r}")


def unknown_operator():
    """For a method that cannot be served, `served` says no, and why."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "odd.pte"
        path.write_bytes(Path(ADD).read_bytes().replace(b"aten::add", b"odd:::add"))
        page = expect(0, r"\n  served      no: .*operator 'odd:::add.out' is not supported\n",
                      "inspect", str(path))
        if "input_1  float32  [2, 3]" not in page or "memory" in page:
            raise Failure(f"of a method that cannot be called: {page}")
        method = json.loads(expect(0, "^", "inspect", "--json", str(path)))["methods"][0]
        if method["served_as"] or "not supported" not in method["failure"]:
            raise Failure(f"{method}")
        expect(69, "method 'forward': .*operator 'odd:::add.out' is not supported", "run",
               str(path))


def inspect_json():
    """inspect --json prints the members that pte(1) names, with the types that it names."""
    for path in MODELS.glob("*.pte"):
        json.loads(expect(0, "^", "inspect", "--json", str(path)))
    program = json.loads(expect(0, "^", "inspect", "--json", SHAPES))
    recall = program["methods"][0]
    for got, wanted in (
            (program["format"], 1), (program["name"], "shapes"), (program["bytes"], 6624),
            (program["state_bytes"], 32), (program["parameters"]["count"], 85),
            (recall["served_as"], ["shapes.recall"]), (recall["failure"], None),
            (recall["inputs"][1], {
                "name": "input_1", "kind": "tensor", "dtype": "float32", "shape": [-1, -1, -1],
                "max_shape": [2, 6, 8], "dim_names": ["s4", "s5", "s6"],
                "example_shape": [2, 1, 8]}),
            (recall["results"][1]["dim_names"], ["s5", "s6"]),
            (recall["signature"]["sip"], "I12!S9!k0_0k1_1R12!S9!k0_0k1_1"),
            (recall["memory"]["call_example"], 440), (recall["memory"]["call_largest"], 2448),
            (recall["lacks"], {"batches": "dim 0 of input 'input_1' is not the number of rows"}),
            (program["methods"][1]["has_state"], True)):
        if got != wanted:
            raise Failure(f"got {got!r}, expected {wanted!r}")
    found = json.loads(expect(0, "^", "inspect", "--json", FOUND))["methods"][0]
    if found["results"][0].get("file_order") != [1, 0] or "order" in found["results"][0]:
        raise Failure(f"results are {found['results']}")
    expect(0, r"output_0 +int64 +\[<=20, 2\]  exported in the order 1 0\n", "inspect", FOUND)
    methods = json.loads(expect(0, "^", "inspect", "--json", METHODS))["methods"]
    values = {method["name"]: [result.get("value") for result in method["results"]]
              for method in methods if method["is_constant"]}
    if values["get_shape"] != [10, 4] or values["is_trained"] != [False] or \
            values["get_table"] != [[0, 3, 6, 9, 12]]:
        raise Failure(f"constants are {values}")
    page = (Path(os.environ.get("top_srcdir", ".")) / "contrib/man/pte.1").read_text()
    for name in sorted(members(program)):
        if f"Sq {name}\n" not in page and f"Sq {name} " not in page:
            raise Failure(f"pte(1) does not describe the member {name}")


def members(value):
    if isinstance(value, dict):
        return set(value) | set().union(*map(members, value.values()))
    return set().union(*map(members, value)) if isinstance(value, list) else set()


def inspect():
    expect(0, '\\nmethod "forward"\\n', "inspect", "--all", ADD)
    expect(64, "expected one of --all, --json, --graph, --plan and --values", "inspect", "--all",
           "--json", ADD)
    for option in ("--graph", "--plan"):
        first = expect(0, "^method forward", "inspect", option, ADD)
        if first != expect(0, "^method forward", "inspect", option, ADD):
            raise Failure(f"{option} prints another text the second time")
        expect(0, r"^method encode\b", "inspect", option, "--method", "encode", METHODS)
        expect(66, "no method 'nope'; the methods are decode, ", "inspect", option, "--method",
               "nope", METHODS)
    expect(0, r"\nfusion makes 6 dispatches of 17, 5 barriers of 16\n# the file names neither "
           r"layers nor weights\n$", "inspect", "--plan", DIGITS)
    expect(0, r"\n# conv\ndispatch ", "inspect", "--plan", DIGITS)
    expect(0, r"= conv\(.*\)  # handle [1-9]", "inspect", "--graph",
           str(MODELS / "xnn_images.pte"))
    expect(0, r"\n  # net.py:8: return torch.relu\(self.lin\(x\)\)\n  %\d+:\S+ = gemm\([^\n]*\n"
           r"  # net.py:17: return torch.softmax\(self.head\(x\), -1\)\n  [^\n]*gemm[^\n]*\n"
           r"  [^\n#]*softmax\([^#]*$", "inspect", "--graph", TRACED)
    expect(0, r"\n# softmax, net.py:17: return torch.softmax\(self.head\(x\), -1\)\ndispatch ",
           "inspect", "--plan", TRACED)
    expect(0, r'%\d+:f32\[4\] "total"\)\n[^#]*$', "inspect", "--graph", "--method", "step", SHAPES)


def allocator():
    """The result allocator of a signature is a method, which prints sizes and runs nothing."""
    joined = str(MODELS / "joined.pte")
    ask = ("--method", "forward$results")
    expect(0, r"^output_0: float32\[6,3\], 72 bytes\noutput_1: float32\[3\], 12 bytes\n"
           r"output_2: depends on data, at most int64\[48,2\], 768 bytes\n"
           r"output_3: float32\[3,3\], 36 bytes\n$", "run", joined, *ask, "--shape", "input_0=3x3")
    expect(64, r"dim 1 is 9, expected at most 4", "run", joined, *ask, "--shape", "input_0=3x9")
    expect(66, r"no method 'forward\$results': the sizes of results do not vary", "run", ADD, *ask)
    expect(66, r"no method 'x'; the methods are forward", "run", joined, "--method", "x$results")
    expect(64, "expected no option about results", "run", joined, *ask, "--repeat", "3")


def json_inputs():
    expect(0, r"^output_0: float32\[2,3\] \[\[2.0, 3.0, 4.0\], \[5.0, 6.0, 7.0\]\]\n$", "run", ADD,
           "--input", "input_0=[[1,2,3],[4,5,6]]", "--input", f"input_1={ONES}")
    expect(0, r"^output_0: float32\[3,4\]", "run", METHODS, "--method", "encode",
           "--input", f"input_0={[[0.5] * 10] * 3}")
    expect(0, r'^output_0: string "[^"]+"\n$', "run", METHODS, "--method", "get_name")
    expect(0, r"\noutput_1: int 4\n", "run", SCALARS, "--input", "input_1=4",
           "--input", "input_2=0.5", "--input", "input_3=true")
    expect(64, "input_1: .*4", "run", SCALARS, "--input", "input_1=5")
    expect(64, r"input_0: data\[1\]\[0\]: ", "run", ADD, "--input", 'input_0=[[1,2,3],["x",5,6]]')
    expect(64, r"input_0: data: expected 6 elements \(shape \[2,3\]\), got 3", "run", ADD,
           "--input", "input_0=[1,2,3]")
    expect(64, "input_0: data: expected an array, got 'zz'", "run", ADD, "--input", "input_0=zz")
    expect(64, "input_0: ", "run", ADD, "--input", "input_0=")
    expect(64, r"input_0: data\[1\]: ", "run", METHODS, "--method", "encode", "--input",
           "input_0=[[1],[1,2]]")
    expect(64, "input_0: ", "run", METHODS, "--method", "encode", "--input", "input_0=[[[[")
    expect(64, "input_0: ", "run", METHODS, "--method", "encode",
           "--input", f"input_0={[[0.5] * 10] * 9}")


def file_inputs_and_outputs():
    """Inputs from .npy and .bin; the next run reads an .npy that the first run wrote."""
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
        expect(0, r"\[\[1.0, 3.0, 5.0\], \[7.0, 9.0, 11.0\]\]", "run", ADD,
               "--input", f"input_0={name}/out/output_0.npy", "--input", f"input_1={ONES}")
        expect(64, "expected 20 bytes", "run", ADD, "--input", f"input_0={name}/b.bin:5")
        expect(64, "dims: expected something like", "run", ADD,
               "--input", f"input_0={name}/b.bin:2y3")
        expect(66, "none.npy", "run", ADD, "--input", f"input_0={name}/none.npy")
        expect(66, "input_0: .*/none.bin: No such file", "run", ADD, "--input",
               f"input_0={name}/none.bin")
        (folder / "d.txt").write_text("1 2 3")
        expect(64, "d.txt: expected a file that ends in .npy or .bin", "run", ADD, "--input",
               f"input_0={name}/d.txt")


def numpy_files():
    """Files of NumPy: pte accepts other element orders, and explains why it refuses other types."""
    elements = list(range(6))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "c.npy"
        given = ("run", ADD, "--input", f"input_0={path}", "--input", "input_1=[0,0,0,0,0,0]")
        by_columns = [elements[row * 3 + column] for column in range(3) for row in range(2)]
        for descr, order, values in (("<f4", "False", elements), (">f4", "False", elements),
                                     ("<f4", "True ", by_columns), (">f4", "True ", by_columns)):
            raw = struct.pack(f"{descr[0]}6f", *values)
            path.write_bytes(npy(descr, "(2, 3)", raw).replace(b"False", order.encode()))
            expect(0, r"\[\[0.0, 1.0, 2.0\], \[3.0, 4.0, 5.0\]\]", *given)
        for content, text in (
                (npy("<f8", "(2, 3)", bytes(48)),
                 r"expected float32, got float64: convert it by .astype\('float32'\)"),
                (npy("<f4", "(3, 2)", bytes(24)), r"expected float32\[2,3\], got float32\[3,2\]"),
                (npy("<U1", "(2, 3)", bytes(24)), "elements are '<U1', expected floats, integers"),
                (npy("<c8", "(2, 3)", bytes(48)), "elements are '<c8', expected floats, integers"),
                (npy("<f4", "(2, 3)", bytes(24)).replace(b"'<f4'", b"[('a', '<f4')]"),
                 "a structured array, of elements .*: save one of its fields"),
                (npy("<f4", "(2, 3)", bytes(20)), "expected 24 bytes of elements, got 20"),
                (b"PK\3\4" + bytes(60), r"an .npz archive .* numpy.save\(\)"),
                (bytes(24), "not an .npy file")):
            path.write_bytes(content)
            expect(64, f"^pte: input_0: .*c.npy: .*{text}", *given)
        expect(64, r"x.npz: an .npz archive holds several arrays: write the one that is meant as "
               r".npy, by numpy.save\(\)", "run", ADD, "--input", f"input_0={name}/x.npz")


def shapes():
    """A shape is chosen by pte, given by --shape, or that of the file. The chosen shapes fit the
    given ones."""
    done = run("run", SHAPES, "--method", "recall")
    if (done.returncode, done.stderr) != (0, "pte: shapes chosen: input_0=1x5x6 input_1=2x1x8 "
                                          "(--shape sets others)\n"):
        raise Failure(f"{done}")
    recall = ("run", SHAPES, "--method", "recall")
    expect(0, r"^output_0: float32\[3,5,8\]", *recall, "--shape", "input_0=3x5x6")
    expect(0, r"^output_0: float32\[4,5,8\]", *recall, "--shape=input_1=2x4x8")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "x.bin").write_bytes(bytes(2 * 30 * 4))
        content = f"input_0={name}/x.bin"
        expect(0, r"^output_0: float32\[2,5,8\]", *recall, "--input", f"{content}:2x5x6")
        expect(0, r"^output_0: float32\[2,5,8\]", *recall, "--input", content, "--shape",
               "input_0=2x5x6")
        expect(64, r"input_0: .*x.bin: --shape says \[1,5,6\], the file has \[2,5,6\]", *recall,
               "--input", f"{content}:2x5x6", "--shape", "input_0=1x5x6")
    rows = ("run", METHODS, "--method", "encode", "--input", f"input_0={[0.5] * 20}")
    expect(0, r"^output_0: float32\[2,4\]", *rows, "--shape", "input_0=2x10")
    expect(64, "input_0: data: expected 30 elements", *rows, "--shape", "input_0=3x10")
    expect(64, r"expected float32\[\?,10\], got float32\[2,9\]", "run", METHODS, "--method",
           "encode", "--shape", "input_0=2x9")
    expect(64, "dim 0 is 9, expected at most 8", "run", METHODS, "--method", "encode", "--shape",
           "input_0=9x10")
    expect(64, "--shape input_0=2x: dims: expected something like 2x3x4, got '2x'", "run", ADD,
           "--shape", "input_0=2x")
    expect(64, "--shape input_1=1: the input is no tensor", "run", SCALARS, "--shape", "input_1=1")
    if run("run", ADD).stderr:
        raise Failure("a model of fixed shapes: expected no text on stderr, got a choice of shapes")


def results():
    expect(0, r"^output_0: float32\[1,10\]\n[^\0]*\n  top 5: \d: \S+, ", "run", DIGITS)
    expect(0, r"\n  top 2: \d: \S+, \d: \S+\n$", "run", DIGITS, "--top-k", "2")
    large = expect(0, r"^output_0: float32\[60,10\], min \S+, max \S+, mean \S+\n", "run",
                   DIGITS, "--shape", "input_0=60x1x8x8")
    if len(large.splitlines()) > 20 or "..." not in large:
        raise Failure(f"not shortened: {large}")
    if "top" in expect(0, "^output_0", "run", DIGITS, "--top-k=0"):
        raise Failure("--top-k 0 prints the largest values")
    expect(0, r"\n  top 1 of row 1: \d: ", "run", ADD, "--top-k", "1")
    expect(64, "--top-k: expected 0 to 1000", "run", ADD, "--top-k", "1001")


def unwritten():
    """If the output cannot be written, the status is 74, whatever the reason is."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "file"
        file.write_text("")
        expect(74, "--output .*/file: is a file, expected a folder", "run", ADD, "--output",
               str(file))
        expect(74, "--output .*/file/x: Not a directory", "run", ADD, "--output", f"{file}/x")
        expect(74, "--output .*/no/such: No such file", "run", ADD, "--output", f"{name}/no/such")
        (Path(name) / "out" / "output_0.npy").mkdir(parents=True)
        expect(74, "--output: .*/output_0.npy: Is a directory", "run", ADD, "--output",
               f"{name}/out")
    for arguments in (("run", ADD), ("inspect", ADD), ("inspect", "--graph", ADD), ("devices",),
                      ("ops",), ("ops", "--json"), ("sig", "lex", "t1"), ("--help",),
                      ("run", "--help"), ("--version",)):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S,
                                  check=False)
        if done.returncode != 74 or "No space left" not in done.stderr:
            raise Failure(f"pte {' '.join(arguments)} to a full device: {done}")


def files_at_their_limit():
    """`ulimit -f` is as a full disk: the status is 74, the text has the file, and no half of it
    stays."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "out"
        for file, arguments in (
                ("out", ("profile", TRACED, "--repeat", "100", "--trace", str(out))),
                ("out/output_0.npy", ("run", DIGITS, "--shape", "input_0=360x1x8x8",
                                      "--output", str(out)))):
            done = subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=TIMEOUT_S,
                                  check=False, preexec_fn=limit)
            if done.returncode != 74 or not re.search(rf"{name}/{file}, of \d+ bytes: File too",
                                                      done.stderr):
                raise Failure(f"pte {arguments} with a limit: {done}")
            if (Path(name) / file).exists():
                raise Failure(f"pte {arguments} with a limit leaves half a file")
        for arguments in (("inspect", "--all", DIGITS), ("--help",), ("token", "me")):
            (Path(name) / "text").write_text("x" * 4096)
            with open(Path(name) / "text", "ab") as file:
                done = subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, stdout=file,
                                      stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S,
                                      check=False, preexec_fn=limit)
            if (done.returncode, done.stderr) != (74, "pte: standard output: File too large\n"):
                raise Failure(f"pte {arguments} to a file that is full: {done}")


def readers_that_leave():
    """`pte ... | head -1` ends by SIGPIPE, without a word, as programs do."""
    for arguments in (("inspect", "--all", DIGITS), ("ops", "--json"), ("--help",)):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([PTE, *arguments], stdin=subprocess.DEVNULL, stdout=writer,
                              stderr=subprocess.PIPE, text=True, timeout=TIMEOUT_S, check=False)
        os.close(writer)
        if (done.returncode, done.stderr) != (-signal.SIGPIPE, ""):
            raise Failure(f"pte {arguments} to a pipe without a reader: {done}")


def pattern_is_fixed():
    first = expect(0, "^output_0", "run", ADD)
    if first != expect(0, "^output_0", "run", ADD, "--workers", "1", "--cpu", "generic"):
        raise Failure(f"{first!r} is not what a second run gives")
    expect(64, "nonsense", "run", ADD, "--cpu", "nonsense")


def repeat():
    text = expect(0, r"^shapes: input_0=2x3 input_1=2x3\nmedian_us: \d+\.\d\n", "run", ADD,
                  "--repeat", "20", "--workers", "1")
    figures = dict(re.findall(r"(\w+)_us: (\d+\.\d)\n", text))
    names = ["min", "p10", "median", "p90", "max"]
    if sorted(figures) != sorted([*names, "mean"]):
        raise Failure(f"printed {text!r}")
    values = [float(figures[name]) for name in names]
    if values != sorted(values):
        raise Failure(f"{text!r} is out of order")
    if not values[0] <= float(figures["mean"]) <= values[-1]:
        raise Failure(f"the mean of {text!r} is not between its ends")


def profile():
    """The tables, and that each option does what it says."""
    text = expect(0, r"^traced, method forward, on cpu \(.*, 1 worker\)\n5 calls of \d", "profile",
                  TRACED, "--repeat", "5", "--workers", "1", "--all")
    rows = re.findall(r"^ +(\d+\.\d)% +\d+\.\d .* (\d) (gemm|softmax) +net\.py:\d+: ", text,
                      re.M)
    if [row[1:] for row in rows] != [("0", "gemm"), ("1", "gemm"), ("2", "softmax")]:
        raise Failure(f"expected the three operators in order, got {text!r}")
    if abs(sum(float(row[0]) for row in rows) - 100) > 0.2:
        raise Failure(f"the shares of {text!r} are not 100 %")
    if not re.search(r"^ .* gemm +2\n", text, re.M):
        raise Failure(f"expected the sum of two gemms, got {text!r}")
    row = re.compile(r"^ +\d+\.\d% .* \d+ \w+", re.M)
    conv_ops = ("profile", str(MODELS / "conv_ops.pte"), "--repeat", "1")
    count = len(row.findall(expect(0, "", *conv_ops, "--all").split("\n\n")[1]))
    many = expect(0, rf"\n1 call of .*\n[^\0]*% +\d+\.\d  {count - 20} further layers "
                  r"\(--all prints them\)\n", *conv_ops)
    if len(row.findall(many.split("\n\n")[1])) != 21:
        raise Failure(f"expected 20 rows and one for the others: {many!r}")
    expect(0, r"\nno operator runs in this method: ", "profile", METHODS, "--method", "get_width")
    expect(64, "--repeat: expected 1 to", "profile", TRACED, "--repeat", "0")
    expect(64, "unknown option '--top-k'", "profile", TRACED, "--top-k", "1")
    expect(66, "no method 'nope'", "profile", TRACED, "--method", "nope")


def profile_as_json_and_trace():
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        text = expect(0, "^{", "profile", DIGITS, "--repeat", "4", "--workers", "2", "--json",
                      "--trace", str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
        expect(74, "--trace: /no/such/t.json: No such file", "profile", ADD, "--repeat", "1",
               "--trace", "/no/such/t.json")
    it = json.loads(text)
    layers = it["layers"]
    convs = [layer for layer in layers if layer["operator"] == "conv"]
    if it["calls"] != 4 or it["workers"] != 2 or it["lost_spans"] != 0 or len(convs) != 3:
        raise Failure(f"unexpected profile {it}")
    if any(layer["dispatches"] != 1 or layer["bytes"] <= 0 for layer in layers):
        raise Failure(f"expected one dispatch a call and layer: {layers}")
    if any(layer["flops"] <= 0 for layer in convs) or \
                min(peak for key, peak in it["peak"].items() if key != "bfloat16_flops") <= 0:
        raise Failure(f"expected operations and peaks above 0: {it}")
    spans = [event for event in events if event.get("cat") == "operator"]
    calls = [event for event in events if event.get("cat") == "call"]
    if len(calls) != 4 or len(spans) < 4 * len(layers):
        raise Failure(f"{len(calls)} calls and {len(spans)} spans for {len(layers)} layers")
    if any(span["dur"] < 0 or not 0 <= span["tid"] <= 2 for span in spans):
        raise Failure(f"a span outside of its track: {spans}")
    busy = sum(span["dur"] for span in spans) / 4
    if abs(busy - sum(layer["busy_us"] for layer in layers)) > 0.01 * len(spans):
        raise Failure(f"the spans take {busy} us a call, the layers differ: {layers}")


def truncated_files():
    """For a file truncated anywhere, every command says which file is damaged, and why."""
    whole = Path(DIGITS).read_bytes()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "cut.pte"
        for size in (0, 7, 40, 64, 3000, 20000, len(whole) - 1):
            path.write_bytes(whole[:size])
            for command in (("run",), ("inspect",), ("inspect", "--json"), ("inspect", "--graph")):
                expect(65, r"^pte: .*/cut.pte: \w.+\n$", *command, str(path))


def damaged_sources():
    """Damage in the source lines that a program stores is no reason to refuse the program."""
    whole = Path(TRACED).read_bytes()
    start = whole.index(b"/src/net.py")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "odd.pte"
        for at in range(start - 8, start + 12):
            for byte in (0, 1, 0x1b, 0x80, 0xff):
                path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1:])
                text = expect(0, "^method forward", "inspect", "--graph", str(path))
                if "\x1b" in text:
                    raise Failure(f"byte {at} := {byte} reaches the terminal: {text!r}")


def no_permission():
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        path = Path(name) / "secret.pte"
        path.write_bytes(Path(ADD).read_bytes())
        path.chmod(0)
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        try:
            subprocess.run([PTE, "--version"], capture_output=True, check=True, **user)
        except (OSError, subprocess.SubprocessError):
            return  # the other user may not run pte in its folder
        for command in ("run", "inspect"):
            done = subprocess.run([PTE, command, str(path)], capture_output=True, text=True,
                                  timeout=TIMEOUT_S, check=False, **user)
            if done.returncode != 77 or "secret.pte: Permission denied" not in done.stderr:
                raise Failure(f"pte {command} without permission: {done}")


def no_memory():
    """If the system refuses memory, the status is 71. Left out with sanitizers, which need much
    more address space."""
    if "sanitizers: none\n" not in run("--version").stdout:
        return

    def run_within(mebibytes, *arguments):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
        return subprocess.run([PTE, "run", *arguments], capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False, preexec_fn=limit)

    done = run_within(40, ADD, "--workers", "64")
    if done.returncode != 71:
        raise Failure(f"pte run with 40 MiB of address space: {done}")
    # The memory for calls is as large as the addresses allow.
    done = run_within(512, ADD, "--workers", "2")
    if done.returncode != 0:
        raise Failure(f"pte run with 512 MiB of address space: {done}")


CHECKS = (names, usage_errors, help_version_devices, workers_fit_affinity,
          workers_fit_control_group, host_and_port, bad_files, data_files,
          signatures, operators, inspect, inspect_page, inspect_json, unknown_operator,
          truncated_files, damaged_sources, no_permission, no_memory, json_inputs,
          file_inputs_and_outputs, numpy_files, shapes, results, unwritten, files_at_their_limit,
          readers_that_leave, pattern_is_fixed, repeat, profile, profile_as_json_and_trace,
          allocator)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
