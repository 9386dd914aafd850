#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs docs/tutorials/your-model.md as a reader would, and tests the tables of figures.

The test takes the blocks between code fences from the page and runs them in order, in a folder with
links to pted and pte. The first block exports scorer.pte. Each later block of shell or Python must
print exactly what the next block shows, except for white space. `./pted ... &` is started on a port
that the system chooses, and that port replaces 8000 in the later blocks.

The export needs ExecuTorch, and Triton's client needs its package. PYTHON names an interpreter that
has them. Without ExecuTorch, the export is skipped and the test takes scorer.pte beside this file,
which the same block made earlier. Without tritonclient, the block of that client is skipped.

The tables are those of `make bench`. The test runs their writer on copies of the documents.

usage: run_readme.py [SCORER.pte], with top_srcdir and top_builddir in the environment. The exported
program is saved as SCORER.pte.
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

FIGURES = SOURCE / "tests" / "bench" / "readme_figures.py"

PYTHON = os.environ.get("PYTHON", sys.executable)
PTED = Path(os.environ.get("PTED", BUILD / "pted")).resolve()
PTE = Path(os.environ.get("PTE", BUILD / "pte")).resolve()
STORED = SOURCE / "tests" / "readme" / "scorer.pte"
EXPORT_LINES_MAX = 25
EXPORT_S = 600
BLOCK_S = 60


def read_blocks():
    """Returns (language, text) of each block of the page."""
    text = (SOURCE / "docs/tutorials/your-model.md").read_text(encoding="utf-8")
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def pop(blocks, language, *words):
    """Removes and returns the next block. It must be of |language| and contain |words|."""
    if not blocks:
        raise Failure(f"your-model.md: no block of {language} is left")
    got, text = blocks.pop(0)
    expect("your-model.md: language of a block", got, language)
    for word in words:
        expect(f"your-model.md: {word!r} in the block of {language}", word in text, True)
    return text


def has_module(name):
    # In the root folder, because its files hide no package. An import also finds broken packages.
    return subprocess.run([PYTHON, "-c", f"import {name}"], cwd="/", capture_output=True,
                          check=False).returncode == 0


def run(command, folder, limit_s=BLOCK_S):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit_s,
                          check=False)
    if done.returncode != 0:
        raise Failure(f"exit status {done.returncode}: {done.stdout}{done.stderr}".strip()[-2000:])
    return done.stdout


def expect_text(got, shown):
    """|got| must equal |shown|, in which lines may be wrapped."""
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
        """Returns the output of the block, or of its lines after the one that starts the daemon."""
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
    """The exported file has the properties that the section describes."""
    page = json.loads(run([PTE, "inspect", "--json", "scorer.pte"], walk.folder))
    method, = page["methods"]
    expect("state", method["has_state"], True)
    expect("delegates", [row["name"] for row in method["callees"] if row["is_delegate"]],
           ["XnnpackBackend"])
    expect("largest sizes", method["inputs"][0]["max_shape"], [16, 3])
    expect("keywords", re.findall(r"(samples|scale|scores|seen)", method["signature"]["sip"]),
           ["samples", "scale", "scores", "seen"])


# ---- figures ----

# Roughly the output of a run without wrk, and with ExecuTorch for only one of two models.
MEASURED = """\
-- JSON tensors
1x3x224x224 FP32, all digits
  150528 numbers, 1.62 MB
  decode               2.00 ms    0.65 GB/s    16.5 ns a number    1.0 times decode
  cJSON_Parse         19.00 ms    0.08 GB/s   130.9 ns a number    7.9 times decode
1x3x224x224 FP32, four decimals
  decode               9.99 ms    0.53 GB/s    14.0 ns a number    1.0 times decode
-- models, one thread
digits_us: 2137.5 executorch 225000.0 ratio 105.26
unet_us: 54.4
-- start and size
stripped_bytes: 4341752
allocations add.pte: 0
allocations unet.pte: 3
"""
ROWS = """\
| figure | pted | beside it | ratio |
| --- | --- | --- | --- |
| 1x3x224x224 JSON tensor to floats | 2.0 ms | 19.0 ms | 9.5 |
| `digits`, a batch of 360, one thread | 2.1 ms | 225 ms | 105 |
| `unet`, one thread | 54.4 µs | | |
| stripped `pted`, its shaders included | 4.3 MB | | |
| allocations of warm calls, in runtime and HAL | 3 | | |
"""


DOCUMENTS = [SOURCE / "docs/project/figures.md", SOURCE / "README.md"]


def write_figures(folder, text):
    """Runs the writer. Returns (exit status, the documents afterwards)."""
    figures, copies = folder / "figures.txt", [folder / path.name for path in DOCUMENTS]
    for path, copy in zip(DOCUMENTS, copies):
        shutil.copy(path, copy)
        copy.chmod(0o644)
    figures.write_text(text)
    done = subprocess.run([sys.executable, FIGURES, figures, *copies], capture_output=True,
                          timeout=BLOCK_S, check=False)
    return done.returncode, [copy.read_text() for copy in copies]


def split_figures(text):
    before, rest = text.split("<!-- figures -->\n")
    table, behind = rest.split("<!-- end of figures -->\n")
    return (before, behind), re.findall(r"^\|.*\n", table, re.MULTILINE)


def figures(folder):
    now = [path.read_text() for path in DOCUMENTS]
    expect("a run that broke off", write_figures(folder, MEASURED), (1, now))
    expect("nothing measured", write_figures(folder, "done: all\n"), (1, now))
    status, (page, readme) = write_figures(folder, MEASURED + "done: all\n")
    expect("status", status, 0)
    around, rows = split_figures(page)
    expect("rows", "".join(rows), ROWS)
    expect("the rest", around, split_figures(now[0])[0])
    expect("rows of README.md that were measured", split_figures(readme)[1],
           [row for row in rows if row in rows[:2] or row.startswith("| stripped")])
    for text in (page, readme):
        expect("when and of what", bool(re.search(r"`make bench` wrote this on [\d-]+: \d+ "
                                                  r"processors,[^|]*commit\s\w+", text)), True)
    expect("the rest of README.md", split_figures(readme)[0], split_figures(now[1])[0])


def figures_are_written():
    """Every row of the tables in the documents is one that the writer makes."""
    sys.path.insert(0, str(FIGURES.parent))
    from readme_figures import README_ROWS, ROWS as known  # pylint: disable=import-outside-toplevel
    for path, labels in zip(DOCUMENTS, ([row[0] for row in known], README_ROWS)):
        _, rows = split_figures(path.read_text())
        labels = ["figure", "---", *labels]
        expect(f"rows of {path.name}",
               [row for row in rows if row.split(" | ")[0][2:] not in labels], [])
        expect("there are rows", len(rows) > 2, True)


def plot():
    """The picture of ratios is that of the table in figures.md."""
    sys.path.insert(0, str(FIGURES.parent))
    from peers_svg import PEERS, draw, read_table  # pylint: disable=import-outside-toplevel
    rows = read_table(DOCUMENTS[0].read_text(encoding="utf-8"))
    shown = (SOURCE / "docs/project/figures/peers.svg").read_text(encoding="utf-8")
    expect("networks", len(rows) > 10, True)
    expect("peers.svg is what peers_svg.py draws", draw(rows, PEERS) == shown, True)


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
        report.run("figures", figures, walk.folder)
        report.run("figures are written", figures_are_written)
        report.run("plot", plot)
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
