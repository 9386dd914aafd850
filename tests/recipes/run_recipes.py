#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Follows the pages of docs/tutorials/recipes as a reader would, and compares the answers.

A page has a block of Python, which is export.py, a block of shell, and the answer that the last
command prints. Numbers in it may differ a little, and a text that ends in "..." is a beginning.
`pted ... &` is started on a port that the system chooses, which replaces 8000 in the lines below.

The lines that export need ExecuTorch, and some transformers. PYTHON names an interpreter that has
them. The folders that `hf download` makes come from small_models.py, in the same form. Without the
packages, what these lines make is taken from the folders beside this file, where the same lines,
stored in export.txt, made it earlier. After a change of a page:

    PYTHON=.../python run_recipes.py --store

usage: run_recipes.py [--store] [PAGE...], with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
sys.path.insert(0, str(SOURCE / "tests" / "http"))

from run_http import Daemon, Failure, Report, expect  # noqa: E402  beside this folder

PAGES = SOURCE / "docs/tutorials/recipes"
STORED = SOURCE / "tests" / "recipes"
PYTHON = shutil.which(os.environ.get("PYTHON", "")) or sys.executable
PTED = Path(os.environ.get("PTED", BUILD / "pted")).resolve()
LIBRARIES = {"classifier": ["png16"], "detector": ["png16"], "segmentation": ["png16"],
             "keywords": ["sndfile"], "whisper": ["sndfile", "soxr"]}
LINES_MAX = 14
EXPORT_S = 900
BLOCK_S = 60
# Weights differ a little from machine to machine, stored ones do not.
STORED_TOLERANCE, FRESH_TOLERANCE = 0.011, 0.2
SIDES = 20  # pixels of a box or of a class differ so many times as much as scores


def read_blocks(page):
    """(language, text) of each block between fences."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def has_modules(*names):
    return subprocess.run([PYTHON, "-c", "import " + ", ".join(names)], cwd="/",
                          capture_output=True, check=False).returncode == 0


def run(command, folder, limit_s=BLOCK_S):
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s,
                          check=False, env={**os.environ, "PATH": path,
                                            "PYTHONPATH": str(SOURCE / "python")})
    if done.returncode != 0:
        raise Failure(f"{command[-1]}: {done.stdout}{done.stderr}".strip()[-3000:])
    return done.stdout


def compare(got, shown, tolerance, where="answer"):
    if isinstance(shown, dict):
        expect(where, isinstance(got, dict) and sorted(got), sorted(shown))
        for key, value in shown.items():
            compare(got[key], value, tolerance, f"{where}.{key}")
    elif isinstance(shown, list):
        expect(f"{where}: length", isinstance(got, list) and len(got), len(shown))
        for i, value in enumerate(shown):
            compare(got[i], value, tolerance, f"{where}[{i}]")
    elif isinstance(shown, str) and shown.endswith("..."):
        expect(where, got[:len(shown) - 3], shown[:-3])
    elif isinstance(shown, float) or where.endswith("pixels"):
        limit = tolerance * (max(SIDES, shown) if where.endswith("pixels") else
                             SIDES if ".box[" in where else 1)
        if not isinstance(got, (int, float)) or abs(got - shown) > limit:
            raise Failure(f"{where}: {got}, expected {shown} within {limit}")
    else:
        expect(where, got, shown)


class Recipe:
    """One page in a folder of its own."""

    def __init__(self, page, folder):
        self.page, self.folder = page, folder
        (got, self.script), (then, shell), (last, shown) = read_blocks(page)[:3]
        expect("languages of the blocks", (got, then, last), ("python", "sh", "json"))
        self.shown = json.loads(shown)
        before, start, self.behind = re.split(r"^(pted .*) &\n", shell, flags=re.MULTILINE)
        self.before, self.start = before.splitlines(), start.split()[1:]
        lines = [line for line in (self.script + shell).splitlines() if line]
        expect("few lines", len(lines) <= LINES_MAX, True)
        for path in (SOURCE / "contrib" / "recipes").glob("*.py"):
            shutil.copy(path, folder)
        (folder / "export.py").write_text(self.script, encoding="utf-8")
        (folder / "bin").mkdir()
        python = folder / "bin" / "python3"
        python.write_text(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)

    def is_export(self, line):
        return re.match(r"python3 export\.py|hf download |cp ", line) is not None

    def can_export(self):
        names = ["torch", "executorch.exir"]
        return has_modules(*names, *(["transformers"] if "transformers" in self.script else []))

    def export(self):
        for line in filter(self.is_export, self.before):
            if line.startswith("hf download"):
                maker = shutil.copy(STORED / "small_models.py", self.folder)
                run([PYTHON, maker, line.split()[-1], line.split()[-1]], self.folder, EXPORT_S)
            else:
                run(["bash", "-euc", line], self.folder, EXPORT_S)

    def store(self):
        """What the lines of export made, for machines that have no ExecuTorch."""
        stored = STORED / self.page
        shutil.rmtree(stored, ignore_errors=True)
        stored.mkdir()
        for path in self.folder.iterdir():
            if path.suffix in (".pte", ".json"):
                shutil.copy(path, stored)
        (stored / "export.txt").write_text(self.script, encoding="utf-8")

    def take_stored(self):
        stored = STORED / self.page
        expect("the stored program is of the lines of the page",
               (stored / "export.txt").read_text(encoding="utf-8"), self.script)
        for path in stored.iterdir():
            shutil.copy(path, self.folder)

    def serve(self, tolerance):
        for line in self.before:
            if not self.is_export(line):
                run(["bash", "-euc", line], self.folder)
        with Daemon([], command=[PTED, "--listen", "127.0.0.1:0", *self.start],
                    cwd=self.folder) as daemon:
            lines = self.behind.replace("127.0.0.1:8000", f"127.0.0.1:{daemon.port}")
            got = json.loads(run(["bash", "-euc", lines], self.folder))
        print(f"# {self.page}: {json.dumps(got)[:400]}")
        compare(without_luck(got), without_luck(self.shown), tolerance)


def without_luck(answer):
    """Without an id and a time."""
    return {key: value for key, value in answer.items() if key not in ("id", "created")} if \
        isinstance(answer, dict) else answer


def follow(page, is_exported, is_stored_anew):
    with tempfile.TemporaryDirectory() as name:
        recipe = Recipe(page, Path(name))
        if is_exported and not recipe.can_export():
            print(f"# skip export of {page}: {PYTHON} lacks executorch or transformers")
            return
        if is_exported:
            recipe.export()
        else:
            recipe.take_stored()
        if is_exported and is_stored_anew:
            recipe.store()
        recipe.serve(FRESH_TOLERANCE if is_exported else STORED_TOLERANCE)


def pages_are_known():
    """Each page is in the table of README.md, and has a stored export."""
    pages = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "README")
    table = re.findall(r"^\| \[.*\]\((\w+)\.md\)", (PAGES / "README.md").read_text(), re.MULTILINE)
    expect("pages of the table", sorted(table), pages)
    stored = sorted(path.parent.name for path in STORED.glob("*/export.txt"))
    expect("stored exports", stored, pages)


def main():
    arguments = [word for word in sys.argv[1:] if not word.startswith("-")]
    is_stored_anew = "--store" in sys.argv[1:]
    report = Report()
    for page in arguments or sorted(path.stem for path in PAGES.glob("*.md")
                                    if path.stem != "README"):
        missing = [name for name in LIBRARIES.get(page, ()) if not ctypes.util.find_library(name)]
        if missing:
            print(f"# skip {page}: lib{missing[0]} is not installed")
            continue
        if not is_stored_anew:
            report.run(page, follow, page, False, False)
        report.run(f"{page}: export", follow, page, True, is_stored_anew)
    report.run("pages are known", pages_are_known)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
