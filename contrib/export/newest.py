#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Meets the newest releases: `contrib/check.sh newest` runs this after a build.

Makes an environment for each part with the newest packages that pip finds, exports programs with
them (newest_worker.py), runs these with pted and pte, and compares with PyTorch. Prints versions,
and a table by program:

    passed        pted computes what PyTorch does
    failed        something else, or pted takes no program of this kind although it is valid
    refused       pted says that it has not got what the program needs
    not exported  the exporter refuses

The exit status is 1 if a program failed. "kvcache::update_and_attend" is a program whose runtime
owns the caches. While it is "not exported", ExecuTorch cannot write one for the CPU; when that
changes, pted has something to learn.

usage: newest.py --work DIR [--constraint FILE] [--venv PART=DIR]... [--only PART[=NAME,...]]...,
    with top_srcdir and top_builddir in the environment
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import venv
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
WORKER = SOURCE / "contrib" / "export" / "newest_worker.py"
CPU_TORCH = "https://download.pytorch.org/whl/cpu"
CAN_NOT = 69  # the exit status of pte for a program that needs what it has not got
PIP_S, PART_S = 3600, 4 * 3600
EXPORT = ["executorch", "torch", "numpy", "scikit-learn", "tokenizers", "jinja2"]
PACKAGES = {"executorch": EXPORT,
            "shared": [*EXPORT, "transformers", "safetensors", "onnxruntime"],
            "transformers": ["transformers", "executorch", "torch", "torchvision", "pillow"],
            "optimum": ["optimum-executorch", "pillow"],
            "ultralytics": ["ultralytics", "executorch", "torch", "torchvision"]}
SHOWN = ("torch", "executorch", "torchao", "transformers", "optimum-executorch", "ultralytics")
STATES = ("passed", "failed", "refused", "not exported")


def has_shared():
    return any((folder / "shared/models/export").is_dir() for folder in (SOURCE, SOURCE.parent))


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--constraint", type=Path, help="versions for pip")
    parser.add_argument("--venv", action="append", default=[], metavar="PART=DIR",
                        help="an environment that is there, as it is")
    parser.add_argument("--only", action="append", default=[], metavar="PART[=NAME,...]",
                        help=f"one of {', '.join(PACKAGES)}")
    options = parser.parse_args()
    options.venv = dict(entry.split("=", 1) for entry in options.venv)
    options.only = {part: names.split(",") if names else []
                    for part, _, names in (entry.partition("=") for entry in options.only)}
    unknown = (options.venv.keys() | options.only.keys()) - PACKAGES.keys()
    if unknown:
        parser.error(f"expected one of {', '.join(PACKAGES)}, got {', '.join(sorted(unknown))}")
    return options


# ---------------------------------------------------------------- environments

def cpu_index():
    """Where PyTorch for the CPU is, smaller by gigabytes; nothing if it is out of reach."""
    try:
        with urllib.request.urlopen(f"{CPU_TORCH}/torch/", timeout=10):
            return ["--extra-index-url", CPU_TORCH]
    except (urllib.error.URLError, OSError):
        print(f"{CPU_TORCH} is out of reach: PyTorch as pip finds it", flush=True)
        return []


def make_venv(part, folder, options, index):
    """The interpreter; None if pip fails."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    constraint = ["--constraint", options.constraint] if options.constraint else []
    log = folder.with_suffix(".log")
    with log.open("w") as file:
        done = subprocess.run([python, "-m", "pip", "install", "--upgrade", "--upgrade-strategy",
                               "eager", *index, *constraint, *PACKAGES[part]], stdout=file,
                              stderr=subprocess.STDOUT, timeout=PIP_S, check=False)
    if done.returncode != 0:
        print(f"{part}: pip: {(log.read_text().strip().splitlines() or [''])[-1]} ({log})")
        return None
    return python


def versions(python):
    script = ("import importlib.metadata as m, json, sys; print(json.dumps({d.metadata['Name']: "
              "d.version for d in m.distributions()}))")
    found = json.loads(subprocess.run([python, "-c", script], capture_output=True, text=True,
                                      check=True).stdout)
    return ", ".join(f"{name} {found[name]}" for name in SHOWN if name in found)


# ---------------------------------------------------------------- one part

def export(part, python, out, names):
    """A dict for each program, as the worker prints them."""
    path = os.pathsep.join([str(BUILD), os.environ["PATH"]])
    where = {**os.environ, "PATH": path, "PYTHONWARNINGS": "ignore"}
    rows = []
    with (out.parent / f"{part}.log").open("w") as log, subprocess.Popen(
            [python, WORKER, part, out, *names], stdout=subprocess.PIPE, stderr=log, text=True,
            env=where) as process:
        for line in process.stdout:
            if line.startswith('{"part"'):
                rows.append(json.loads(line))
                print(f"{part}: {rows[-1]['program']}: {rows[-1]['state']}", flush=True)
    if process.returncode != 0:
        rows.append({"part": part, "program": "(the exporter)", "state": "not exported",
                     "why": f"exit status {process.returncode}, see {out.parent / part}.log"})
    return rows


def run_collection(folder):
    """{name: why it failed, "" if not}, by tests/models/run_models.py."""
    done = subprocess.run(
        [sys.executable, SOURCE / "tests" / "models" / "run_models.py"], capture_output=True,
        text=True, timeout=PART_S, check=False,
        env={**os.environ, "top_srcdir": str(SOURCE), "top_builddir": str(BUILD),
             "PTED_TEST_COLLECTION": str(folder)})
    found = {}
    for line in done.stdout.splitlines():
        match = re.match(r"(not ok|ok) \d+ - (\w+)[^:]*:? ?(.*)", line)
        if match:
            why = (match[3] or line) if match[1] == "not ok" else ""
            found[match[2]] = found.get(match[2]) or why
    return found


def is_beyond(program):
    """Does pted say that it has not got what the program needs?"""
    return subprocess.run([BUILD / "pte", "run", program], capture_output=True,
                          check=False).returncode == CAN_NOT


def judge(rows, out):
    """Programs that were only exported: what pted computes."""
    results = run_collection(out) if any(out.glob("*.json")) else {}
    for row in rows:
        if row["state"] != "exported":
            continue
        program = out / f"{row['program']}.pte"
        if row["program"] not in results:  # an operator that pted cannot have yet
            row.update(state="refused", why="it can be exported now, and pted has no such operator")
        elif not results[row["program"]]:
            row.update(state="passed")
        else:
            state = "refused" if is_beyond(program) else "failed"
            row.update(state=state, why=results[row["program"]])


def run_part(part, options, index):
    python = Path(options.venv[part]) / "bin" / "python" if part in options.venv else \
        make_venv(part, options.work / f"venv-{part}", options, index)
    if python is None:
        return [{"part": part, "program": "(packages)", "state": "not exported", "why": "pip"}], ""
    out = options.work / part
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    shown = versions(python)
    print(f"{part}: {shown}", flush=True)
    rows = export(part, python, out, options.only.get(part, []))
    judge(rows, out)
    return rows, shown


def main():
    options = parse()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    parts = list(options.only) or [part for part in PACKAGES if part != "shared" or has_shared()]
    index = cpu_index() if set(parts) - options.venv.keys() else []
    table, shown = [], {}
    for part in parts:
        rows, shown[part] = run_part(part, options, index)
        table += rows
    print()
    for row in table:
        print(f"{row['part']:13} {row['program']:34} {row['state']:13} {row.get('why', '')}"[:240]
              .rstrip())
    print()
    for part in parts:
        counts = [sum(row["part"] == part and row["state"] == state for row in table)
                  for state in STATES]
        print(f"{part:13} " + ", ".join(f"{count} {state}" for count, state in zip(counts, STATES))
              + f"; {shown[part]}")
    return any(row["state"] == "failed" for row in table)


if __name__ == "__main__":
    sys.exit(main())
