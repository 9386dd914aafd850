#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints how many lines and branches of each folder the tests have run. `make coverage` runs all
tests but those against a running server, and then this, in a tree of

    configure --enable-coverage CFLAGS=-O0

It reads what gcov says of each object of the program; objects of tests are left out. A line or a
branch counts once, however many objects contain it, and it has run if it has in one of them.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(os.environ.get("top_builddir", ".")).resolve()
SOURCE = Path(os.environ.get("top_srcdir", ".")).resolve()
PARTS = ("base", "protocol", "hal", "runtime", "server")
AT_ONCE = 100  # objects that one gcov reads


def find_objects():
    return [path for part in PARTS for path in sorted((BUILD / part).rglob("*.gcno"))]


def read(objects):
    """The documents that gcov prints, one a line: one for each object."""
    run = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout", *objects],
                         cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return [json.loads(line) for line in run.stdout.splitlines() if line]


def name_of(file, folder):
    """A file's path in the tree; None: it is not of the tree, or made while building."""
    path = (Path(folder) / file).resolve()
    if not path.is_relative_to(SOURCE) or path.is_relative_to(BUILD):
        return None
    return str(path.relative_to(SOURCE))


def note(document, lines, branches):
    for file in document["files"]:
        name = name_of(file["file"], document["current_working_directory"])
        if name is None or not name.startswith(PARTS):
            continue
        for line in file["lines"]:
            place = (name, line["line_number"])
            lines[place] = lines.get(place, False) or line["count"] > 0
            for number, branch in enumerate(line["branches"]):
                if not branch["throw"]:
                    place = (name, line["line_number"], number)
                    branches[place] = branches.get(place, False) or branch["count"] > 0


def by_folder(places):
    """By folder: how many places there are, and how many have run."""
    folders = {}
    for place, has_run in places.items():
        count = folders.setdefault(os.path.dirname(place[0]), [0, 0])
        count[0] += 1
        count[1] += has_run
    return folders


def show(count):
    total, run = count
    return f"{run:7} of {total:7} {100 * run / total:5.1f} %" if total else f"{'none':>25}"


def main():
    objects = find_objects()
    if not objects:
        sys.exit(f"{BUILD}: no object has notes for gcov: configure it with --enable-coverage")
    lines, branches = {}, {}
    for begin in range(0, len(objects), AT_ONCE):
        for document in read(objects[begin:begin + AT_ONCE]):
            note(document, lines, branches)
    lines, branches = by_folder(lines), by_folder(branches)
    print(f"{'folder':28} {'lines':>25} {'branches':>25}")
    for folder in sorted(lines):
        print(f"{folder:28} {show(lines[folder])} {show(branches.get(folder, [0, 0]))}")
    for title, counts in (("all lines", lines), ("all branches", branches)):
        print(f"{title:28} {show([sum(column) for column in zip(*counts.values())])}")


if __name__ == "__main__":
    main()
