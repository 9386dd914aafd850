#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""README.md's section "Your own model", as a reader would try it.

The blocks between code fences are taken from README.md and run in their order, in a folder with
links to pted and pte. The first block exports scorer.pte. Later, a block of shell or Python prints
exactly what the block behind it shows, white space apart. `./pted ... &` is started on a port that
the system chose, which stands for 8000 in the blocks behind it.

The export needs ExecuTorch, the client of Triton its package. PYTHON names an interpreter that has
them. Without ExecuTorch, scorer.pte beside this file is taken, which the same block made earlier,
and the export is skipped; without tritonclient, its block is.

usage: run_readme.py [SCORER.pte], with top_srcdir and top_builddir in the environment. SCORER.pte:
save what was exported there.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
sys.path.insert(0, str(SOURCE / "tests" / "http"))

from run_http import Daemon, Failure, Report, expect  # noqa: E402  beside this folder

PYTHON = os.environ.get("PYTHON", sys.executable)
PTED = Path(os.environ.get("PTED", BUILD / "pted")).resolve()
PTE = Path(os.environ.get("PTE", BUILD / "pte")).resolve()
STORED = SOURCE / "tests" / "readme" / "scorer.pte"
EXPORT_LINES_MAX = 25
EXPORT_S = 600
BLOCK_S = 60


def read_blocks():
    """(language, text) of each block of the section."""
    section = re.search(r"^## Your own model\n(.*?)^## ", (SOURCE / "README.md").read_text(),
                        re.DOTALL | re.MULTILINE)
    return re.findall(r"^```(\w+)\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE)


def pop(blocks, language, *words):
    """The next block, which has to be of |language| and have |words|."""
    if not blocks:
        raise Failure(f"README.md: no block of {language} is left")
    got, text = blocks.pop(0)
    expect("README.md: language of a block", got, language)
    for word in words:
        expect(f"README.md: {word!r} in the block of {language}", word in text, True)
    return text


def has_module(name):
    # From the root folder, whose files hide no package. An import tells more than a look-up.
    return subprocess.run([PYTHON, "-c", f"import {name}"], cwd="/", capture_output=True,
                          check=False).returncode == 0


def run(command, folder, limit_s=BLOCK_S):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s,
                          check=False)
    if done.returncode != 0:
        raise Failure(f"exit status {done.returncode}: {done.stdout}{done.stderr}".strip()[-2000:])
    return done.stdout


def expect_text(got, shown):
    """As it is shown; lines may be wrapped there."""
    expect("what is printed", "".join(got.split()), "".join(shown.split()))


class Walk:
    """The folder, and the daemon once it has been started."""

    def __init__(self, folder):
        self.folder = folder
        self.daemon = None

    def start(self, line):
        files = line.removesuffix("&").split()[1:]
        self.daemon = Daemon([], command=[PTED, "--listen", "127.0.0.1:0", *files],
                             cwd=self.folder).__enter__()

    def translate(self, text):
        return text.replace("127.0.0.1:8000", f"127.0.0.1:{self.daemon.port}")

    def shell(self, text):
        """What the block prints from the line that starts the daemon on, or in all."""
        before, start, behind = text.rpartition("./pted ")
        if start:
            run(["bash", "-euc", before], self.folder)
            line, _, behind = behind.partition("\n")
            self.start(start + line)
        return run(["bash", "-euc", self.translate(behind)], self.folder)

    def python(self, text):
        return run([PYTHON, "-c", self.translate(text)], self.folder)


def export(walk, script):
    lines = [line for line in script.splitlines() if line]
    expect("short enough to be read", len(lines) <= EXPORT_LINES_MAX, True)
    (walk.folder / "export.py").write_text(script)
    (walk.folder / "scorer.pte").unlink()
    run([PYTHON, "export.py"], walk.folder, EXPORT_S)
    if len(sys.argv) > 1:
        shutil.copy(walk.folder / "scorer.pte", sys.argv[1])


def inspect(walk):
    """The file has what the section says of it."""
    page = json.loads(run([PTE, "inspect", "--json", "scorer.pte"], walk.folder))
    method, = page["methods"]
    expect("state", method["has_state"], True)
    expect("delegates", [row["name"] for row in method["callees"] if row["is_delegate"]],
           ["XnnpackBackend"])
    expect("largest sizes", method["inputs"][0]["max_shape"], [16, 3])
    expect("keywords", re.findall(r"(samples|scale|scores|seen)", method["signature"]["sip"]),
           ["samples", "scale", "scores", "seen"])


def main():
    report = Report()
    blocks = read_blocks()
    with tempfile.TemporaryDirectory() as name:
        walk = Walk(Path(name))
        (walk.folder / "pted").symlink_to(PTED)
        (walk.folder / "pte").symlink_to(PTE)
        shutil.copy(STORED, walk.folder / "scorer.pte")
        script = pop(blocks, "python", "to_edge_transform_and_lower", "scorer.pte")
        if has_module("executorch.exir"):
            report.run("export", export, walk, script)
        else:
            print(f"# skip export: {PYTHON} has no executorch; PYTHON=... names one that has")
        report.run("inspect", inspect, walk)
        try:
            for title in ("call", "sequence"):
                report.run(title, lambda: expect_text(walk.shell(pop(blocks, "sh", "curl")),
                                                      pop(blocks, "json")))
            client, shown = pop(blocks, "python", "tritonclient"), pop(blocks, "text")
            if has_module("tritonclient.http"):
                report.run("tritonclient", lambda: expect_text(walk.python(client), shown))
            else:
                print(f"# skip tritonclient: {PYTHON} does not have it")
            report.run("blocks that are left", expect, "blocks", blocks, [])
        finally:
            if walk.daemon:
                report.run("stop", walk.daemon.stop)
    return report.finish()


sys.exit(main())
