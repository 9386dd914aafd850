#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The intermediate values of programs: pte run --dump and pte compare.

tests/models/layers has a network with and without a delegate and quantized, programs of which one
layer is different, and what PyTorch computes (contrib/export/layers.py).

usage: run_pte_compare.py, with top_srcdir and top_builddir in the environment.
"""
import io
import re
import struct
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path

from run_http import MODELS, Failure, Report
from run_pte import ADD, TRACED, expect, npy, run

LAYERS = MODELS / "layers"
NET = str(LAYERS / "net.npz")
QUANTIZED = ("xnn_int8", "pt2e", "layers/int8")


def layer(name):
    return str(LAYERS / f"{name}.pte")


def read_npz(path):
    """{name: (type, shape, bytes)}, in the order of the archive."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            raw = archive.read(name)
            length = struct.unpack("<H", raw[8:10])[0]
            head = eval(raw[10:10 + length])  # written by pte or numpy  # pylint: disable=eval-used
            arrays[name.removesuffix(".npy")] = (head["descr"], head["shape"], raw[10 + length:])
    return arrays


def write_npz(path, arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (descr, shape, raw) in arrays.items():
            archive.writestr(name + ".npy", npy(descr, shape, raw))


def floats(array):
    return struct.unpack(f"<{len(array[2]) // 4}f", array[2])


def near(got, want, bound):
    return len(got) == len(want) and all(abs(a - b) <= bound * (1 + abs(b))
                                         for a, b in zip(got, want))


def values_have_names():
    """The operator and its number, a line of the source or a handle; modules where weights have
    names."""
    expect(0, r"values of forward\n  addmm\.10  +f32\[2,8\]  # net\.py:8: return torch\.relu"
           r"[^\n]*\n  relu\.11 (.|\n)*  softmax\.23 ", "inspect", "--values", TRACED)
    expect(0, r"convolution\.\d+ +f32\[1,8,8,8\]  # handle 1\n", "inspect", "--values",
           layer("xnnpack"))
    text = expect(0, "values of step", "inspect", "--values", "--method", "step",
                  str(MODELS / "shapes.pte"))
    if "recall" in text:
        raise Failure("--values of one method has another one")
    expect(0, r"block1\.", "inspect", "--values", str(MODELS / "branches.pte"))
    expect(64, "expected one of --all, --json, --graph, --plan and --values", "inspect", "--values",
           "--graph", TRACED)


def dump_as_text_and_files():
    expect(0, r"output_0: float32\[2,3\] (.|\n)*softmax\.23: float32\[2,3\] ", "run", TRACED,
           "--dump", "softmax.*")
    expect(66, "no value is called 'conv.*'; `pte inspect --values` shows their names", "run",
           TRACED, "--dump", "conv.*")
    expect(64, "--dump: only with a file", "run", "http://127.0.0.1:1/x", "--dump", "all")
    with tempfile.TemporaryDirectory() as folder:
        expect(0, "", "run", TRACED, "--dump", "relu.11", "--output", folder)
        files = sorted(path.name for path in Path(folder).iterdir())
        if files != ["output_0.npy", "relu.11.npy"]:
            raise Failure(f"files of --dump: {files}")
        path = Path(folder) / "all.npz"
        expect(0, "", "run", TRACED, "--dump", "all", "--output", str(path))
        arrays = read_npz(path)
        if list(arrays) != ["output_0", "addmm.10", "relu.11", "addmm.20", "softmax.23"]:
            raise Failure(f"values of --dump: {list(arrays)}")
        if arrays["output_0"] != arrays["softmax.23"]:
            raise Failure("the last value is not the result")
        if floats(arrays["relu.11"]) != tuple(max(x, 0) for x in floats(arrays["addmm.10"])):
            raise Failure("relu.11 is not that of addmm.10")
        expect(74, "--output: /no/such/x.npz: No such file", "run", TRACED, "--dump", "all",
               "--output", "/no/such/x.npz")


def dump_of_one_method():
    """Without --method the values are those of the default one, wherever it is in the file."""
    for name in ("faults", "notebook"):
        program = str(MODELS / f"{name}.pte")
        with tempfile.TemporaryDirectory() as folder:
            found = []
            for number, choice in enumerate(((), ("--method", "forward"))):
                path = Path(folder) / f"{number}.npz"
                expect(0, "", "run", program, *choice, "--dump", "all", "--output", str(path))
                found.append(read_npz(path))
            if len(found[0]) < 2 or found[0] != found[1]:
                raise Failure(f"{name}: {list(found[0])}, expected {list(found[1])}")


def results_stay():
    """A program whose values are kept computes what it computes without: with a delegate,
    quantized, with state, with branches and loops, of more values than a call keeps."""
    for name in ("digits", "mobile", "unet", "xnn_int8", "xnn_images", "pt2e", "branches", "loops",
                 "window", "found", "tally", "vk_images", "layers/int8"):
        with tempfile.TemporaryDirectory() as folder:
            program = str(MODELS / f"{name}.pte")
            expect(0, "", "run", program, "--output", folder)
            path = Path(folder) / "all.npz"
            expect(0, "", "run", program, "--dump", "all", "--output", str(path))
            arrays = read_npz(path)
            for file in Path(folder).glob("*.npy"):
                raw = file.read_bytes()
                want = raw[10 + struct.unpack("<H", raw[8:10])[0]:]
                got = arrays[file.stem]
                bound = 0.02 if name in QUANTIZED else 1e-4  # a step of 8 bits
                same = near(floats(got), floats((0, 0, want)), bound) if got[0] == "<f4" else \
                    got[2] == want
                if not same:
                    raise Failure(f"{name}: {file.stem} differs when values are kept")
            if name == "unet" and len(arrays) < 20:
                raise Failure(f"{name}: only {len(arrays)} values")


def programs_that_are_equal():
    expect(0, "13 values of .*: 12 equal, 1 folded into others, 0 not", "compare", layer("xnnpack"),
           NET)
    expect(0, "13 equal, 0 folded", "compare", layer("portable"), NET)
    expect(0, r"folded   stem\.0\n  equal    stem\.1 +convolution\.\d+ (.|\n)*"
           r"equal    block +convolution(.|\n)*equal    norm +layer_norm(.|\n)*"
           r"equal    head +linear(.|\n)*equal    output_1 +best", "compare", "--all",
           layer("xnnpack"), NET)
    text = expect(0, "12 equal, 1 folded", "compare", layer("int8"), NET)
    if "half of the 8 bits of its values" not in text:
        raise Failure(f"the tolerance of 8-bit values: {text}")


def differs(pattern, *arguments):
    done = run("compare", *arguments)
    if done.returncode != 1 or not re.search(pattern, done.stdout):
        raise Failure(f"pte compare {arguments}: status {done.returncode}, {done.stdout!r}, "
                      f"{done.stderr!r}; expected 1 and {pattern!r}")


def layers_that_differ():
    differs(r"equal    flatten (.|\n)*first difference: head\n  linear\.\d+ \(handle 9\) beside "
            r"head: max abs 0\.5, relative 0\.\d+\n  at \[0,2\]: ", layer("head"), NET)
    differs(r"first difference: norm\n  layer_norm\.\d+ beside norm: .* relative 0\.1\n",
            layer("middle"), NET)
    differs(r"first difference: stem\.0\n  no value of the program is like it\n  probably  "
            r"convolution\.17 ", layer("stem"), NET)
    differs("--tolerance", layer("int8"), NET, "--tolerance", "1e-4")
    expect(0, "", "compare", layer("head"), NET, "--tolerance", "1")


def dumps_of_programs():
    """A dump is a reference, too: the same names are the same values."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "net.npz")
        expect(0, "", "run", layer("xnnpack"), "--dump", "all", "--output", path)
        expect(0, ", 0 not\n", "compare", layer("xnnpack"), path, "--cpu", "generic")
        differs("first difference: (scores|convolution.17)", layer("stem"), path)
        loops = str(MODELS / "loops.pte")
        expect(0, "", "run", loops, "--dump", "all", "--output", path)
        expect(0, ", 0 not\n", "compare", loops, path)


def strange_values():
    """NaN, other dims, other types, values that nothing is like."""
    arrays = read_npz(NET)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "net.npz")

        def change(name, descr, shape, raw):
            write_npz(path, {**arrays, name: (descr, shape, raw)})

        descr, shape, raw = arrays["output_0"]
        change("output_0", descr, shape, raw[:8] + struct.pack("<f", float("nan")) + raw[12:])
        differs(r"1 NaN or infinite in one alone\n  at \[0,2\]: 0\.\d+, expected nan",
                layer("portable"), path)
        change("output_0", descr, (4, 1), raw)
        differs(r"dims     output_0 +scores +float32\[1,4\], expected float32\[4,1\]",
                layer("portable"), path)
        change("output_0", "<i4", shape, raw)
        differs(r"dims     output_0 +scores +float32\[1,4\], expected int32\[1,4\]",
                layer("portable"), path)
        descr, shape, raw = arrays["input_0"]
        change("input_0", descr, (1, 3, 64), raw)
        expect(64, "input_0: .*expected.*float32", "compare", layer("portable"), path)
        change("input_1", descr, shape, raw)
        expect(64, "input_1: the method has 1 inputs", "compare", layer("portable"), path)


def tolerances():
    """The bound that is shown is that of the types that are compared, of each one."""
    def bound(program, *options, status=0):
        done = run("compare", program, path, *options)
        line = done.stdout.splitlines()[1]
        if done.returncode != status or not line.startswith("equal: "):
            raise Failure(f"{program}: {done.returncode}, {done.stdout!r}, {done.stderr!r}")
        return line.removeprefix("equal: ").removesuffix(" of the largest value apart")

    def expect_bound(name, wanted, *options):
        if (got := bound(str(MODELS / f"{name}.pte"), *options)) != wanted:
            raise Failure(f"{name}: the bound is {got!r}, expected {wanted!r}")

    f32, f16 = (f"{number} (half of the bits of {kind})"
                for number, kind in ((0.000244, "float32"), (0.0221, "float16")))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "values.npz")
        for name, wanted in (("digits", f"at most {f32}"), ("xnn_half", f"at most {f32}, {f16}"),
                             ("int64_exact", "the same numbers"),
                             ("promotion", f"at most {f32}, {f16}")):
            expect(0, "", "run", str(MODELS / f"{name}.pte"), "--dump", "all", "--output", path)
            expect_bound(name, wanted)
            expect_bound(name, "at most 0.5 (--tolerance)", "--tolerance", "0.5")


def bad_references():
    arrays = read_npz(NET)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.npz"
        program = layer("portable")
        expect(66, "net.npz: No such file", "compare", program, str(path))
        path.write_bytes(b"")
        expect(65, "net.npz: no .npz archive: it has no directory", "compare", program, str(path))
        whole = Path(NET).read_bytes()
        path.write_bytes(whole[:-30])
        expect(65, "no .npz archive", "compare", program, str(path))
        write_npz(path, {"input_0": arrays["input_0"]})
        expect(65, "the archive has no values beside inputs", "compare", program, str(path))
        for pairs in ((1, 1), (0, 13), (-1, 2), (2, 1)):
            write_npz(path, {**arrays, "@edges": ("<i8", (1, 2), struct.pack("<2q", *pairs))})
            expect(65, "@edges: expected int64", "compare", program, str(path))
        expect(64, "expected FILE.pte and REFERENCE.npz", "compare", program)
        expect(64, "--tolerance: expected a number above 0, got '-1'", "compare", program, NET,
               "--tolerance=-1")


def archive_of(*members, comment=b"", method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that comes twice
        for name, data in members:
            archive.writestr(name, data)
        archive.comment = comment
    return out.getvalue()


def patched(raw, at, replacement):
    """The same archive with other bytes in the first entry of its directory."""
    at += raw.index(b"PK\1\2")
    return raw[:at] + replacement + raw[at + len(replacement):]


def hostile_archives():
    """Sizes that cannot be, ZIP64, names that come twice, members and heads of other kinds."""
    array = npy("<f4", (1 << 20,), bytes(4 << 20))
    small = ("x.npy", npy("<f4", (2,), bytes(8)))
    one = archive_of(("x.npy", array))
    unpacked = archive_of(small, method=zipfile.ZIP_STORED)
    end = one.rindex(b"PK\5\6")
    zip64 = "ZIP64: expected less than 4 GiB"
    cases = (
        (patched(one, 24, struct.pack("<I", 1 << 31)), "another size than the directory says"),
        (patched(one, 24, struct.pack("<I", len(array) + 1)), "a deflated array is damaged"),
        (patched(one, 24, struct.pack("<I", len(array) - 1)), "a deflated array is damaged"),
        (patched(unpacked, 24, b"\0\0\0\0"), "another size than the directory says"),
        (patched(one, 16, b"abcd"), r"damaged \(CRC\)"),
        (patched(one, 42, b"\xf0\xff\xff\0"), "an array lies outside of the file"),
        (patched(one, 20, b"\xff" * 4), zip64), (patched(one, 24, b"\xff" * 4), zip64),
        (patched(one, 42, b"\xff" * 4), zip64),
        (one[:end + 12] + b"\xff" * 8 + one[end + 20:], zip64),
        (patched(one, 8, b"\1\0"), "an array is encrypted"),
        (patched(one, 28, b"\xff\xff"), "an entry of the directory is cut"),
        (archive_of(small, method=zipfile.ZIP_BZIP2), "packed by method 12, expected stored or"),
        (archive_of(small, small), "two arrays are called 'x'"),
        (archive_of(("x.txt", b"")), "expected names of 1 to 256 characters of ASCII, and .npy"),
        (archive_of((".npy", small[1])), "expected names of 1 to 256"),
        (archive_of(("x" * 257 + ".npy", small[1])), "expected names of 1 to 256"),
        (archive_of(("a b.npy", small[1])), "expected names of 1 to 256"),
        (archive_of(("x.npy", small[1][:20])), "x: .npy header: longer than the file"),
        (archive_of(("x.npy", small[1][:-1])), "x: .npy: expected 8 bytes of elements, got 7"),
        (archive_of(("x.npy", small[1].replace(b"<f4", b"<c8"))), "x: .npy: elements are '<c8'"),
        (small[1], "no .npz archive: it is one array, an .npy file"),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.npz"
        for raw, text in cases:
            path.write_bytes(raw)
            is_other = any(word in text for word in ("ZIP64", "encrypted", "method"))
            expect(69 if is_other else 65, f"net.npz: .*{text}", "compare", ADD, str(path))
        expect(0, "", "run", ADD, "--dump", "all", "--output", str(path))
        members = [(f"{name}.npy", npy(*array)) for name, array in read_npz(path).items()]
        for raw in (archive_of(*members), archive_of(*members, comment=b"PK\5\6 and what follows"),
                    archive_of(*members, comment=bytes(65535))):
            path.write_bytes(raw)
            expect(0, ", 0 not\n", "compare", ADD, str(path))


CHECKS = (values_have_names, dump_as_text_and_files, dump_of_one_method, results_stay,
          programs_that_are_equal, layers_that_differ, dumps_of_programs, strange_values,
          tolerances, bad_references, hostile_archives)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
