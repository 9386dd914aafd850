#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the examples of pages that can be run as they stand, from the files of docs/examples.

Each text of troubleshooting.md is one of the sources. A page is text with indented blocks. A block
that begins with "// docs/examples/FILE" is that file. A block with "docs/examples/" in a line of
shell is run, and so is one that does what CALLS has, in a folder that has docs/ and tests/:
`build/pted ... &` is started on a port that the system chooses, which replaces 8000 in that block
and in later ones, and the block behind it is what is printed, except for white space and the last
digits of numbers. What SHOWS_NOTHING calls has an answer that the page does not show.

usage: run_pages.py [PAGE...], with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
sys.path.insert(0, str(SOURCE / "tests" / "http"))

from run_http import Daemon, Failure, Report, expect  # noqa: E402  beside this folder

EXAMPLES = SOURCE / "docs" / "examples"
# With how many blocks that are run, so that none is lost unnoticed.
PAGES = {"README": 1, "media": 3, "cards": 1, "pipelines": 2, "calling": 3,
         "sequences": 1, "speech": 1, "layers": 1, "other-servers": 2, "embeddings": 1,
         "language-models": 1, "folders": 1}
CALLS = re.compile(r"curl [^|]*http://127.0.0.1:8000/(v2/models/add/|v2/batch|v1/audio/|tokenize|"
                   r"predict)|^build/pte inspect --values ")
SHOWS_NOTHING = re.compile(r"^build/pted (--model \w+=)?tests/models/.*&\ncurl [^|]*http://"
                           r"127.0.0.1:8000/(v1/embeddings|v1/chat|v2/models/detect/)")
TOOLS = {"pted": Path(os.environ.get("PTED", BUILD / "pted")).resolve(),
         "pte": Path(os.environ.get("PTE", BUILD / "pte")).resolve()}
BLOCK_S = 60
# Levels of the CPU differ by rounding.
TOLERANCE = 1e-3
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"


def read_blocks(page):
    found = SOURCE.glob("README.md") if page == "README" else SOURCE.glob(f"docs/*/{page}.md")
    lines = next(found).read_text(encoding="utf-8").splitlines()
    blocks = [[]]
    for line in lines:
        if line.startswith("    "):
            blocks[-1].append(line[4:])
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(block) + "\n" for block in blocks if block]


def compare(got, shown):
    """Numbers are alike, and all else but white space is the same."""
    left, right = ("".join(text.split()) for text in (got, shown))
    expect("what is printed", re.sub(NUMBER, "N", left), re.sub(NUMBER, "N", right))
    for number, wanted in zip(re.findall(NUMBER, left), re.findall(NUMBER, right)):
        if abs(float(number) - float(wanted)) > TOLERANCE * max(1, abs(float(wanted))):
            raise Failure(f"{number}, expected {wanted}, in {got}")


class Walk:
    """The daemon of the last block that started one."""

    def __init__(self):
        self.daemon = None
        self.folder = tempfile.TemporaryDirectory()
        for name in ("docs", "tests"):
            (Path(self.folder.name) / name).symlink_to(SOURCE / name)

    def close(self):
        if self.daemon:
            self.daemon.__exit__(None, None, None)
            self.daemon = None

    def end(self):
        self.close()
        self.folder.cleanup()

    def start(self, command):
        self.close()
        words = command.replace("\\\n", " ").split()
        self.daemon = Daemon([], command=[TOOLS["pted"], "--listen", "127.0.0.1:0", *words[1:]],
                             cwd=self.folder.name).__enter__()

    def run(self, block):
        start = re.search(r"^build/pted (?:.|\\\n)*? &\n", block, re.MULTILINE)
        if start:
            self.shell(block[:start.start()])
            self.start(start[0].rstrip("&\n "))
            block = block[start.end():]
        return self.shell(block)

    def shell(self, block):
        port = self.daemon.port if self.daemon else 0
        block = block.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        block = re.sub(r"^build/(pte) ", lambda found: f"{TOOLS[found[1]]} ", block,
                       flags=re.MULTILINE)
        done = subprocess.run(["bash", "-euc", block], cwd=self.folder.name, check=False,
                              capture_output=True, text=True, timeout=BLOCK_S)
        if done.returncode != 0:
            raise Failure(f"{block}: {done.stdout}{done.stderr}".strip()[-2000:])
        return done.stdout


def is_run(block):
    return not block.startswith("//") and ("docs/examples/" in block or CALLS.search(block))


def follow(page):
    blocks = read_blocks(page)
    count = 0
    walk = Walk()
    try:
        for i, block in enumerate(blocks):
            file = re.match(r"// docs/examples/(\w+(\.\w+)+)", block)
            if file:
                expect(file[1], block, (EXAMPLES / file[1]).read_text(encoding="utf-8"))
            elif is_run(block):
                compare(walk.run(block), blocks[i + 1])
                count += 1
            elif SHOWS_NOTHING.search(block):
                printed = walk.run(block.replace("curl -s ", "curl -sf "))
                expect("an answer", printed[:1], "{")
                count += 1
    finally:
        walk.end()
    expect("blocks that were run", count, PAGES[page])


def files_are_shown():
    """Each file of docs/examples is part of a page."""
    text = "".join(page.read_text(encoding="utf-8") for page in (SOURCE / "docs").rglob("*.md"))
    for path in EXAMPLES.iterdir():
        expect(path.name, f"docs/examples/{path.name}" in text, True)


def read_sources():
    """All C in one text, in which strings that follow each other are one."""
    files = (path for folder in ("base", "protocol", "hal", "runtime", "server", "lib")
             for path in sorted((SOURCE / folder).rglob("*.[chd]*"))
             if path.suffix in (".c", ".h", ".def"))
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r'"\s*\n\s*"', "", text)


def errors_exist():
    """Each text in the tables of troubleshooting.md, whose "..." is any text, is in the sources."""
    page = (SOURCE / "docs/how-to/troubleshooting.md").read_text(encoding="utf-8")
    texts = re.findall(r"^\| (?:\d+ \| )?`([^`]+)` \|", page, re.MULTILINE)
    sources, lost = read_sources(), []
    for text in texts:
        pattern = r"[^\n]{0,80}?".join(map(re.escape, text.split("...")))
        if not re.search(pattern, sources):
            lost.append(text)
    expect("texts that no source has", lost, [])
    expect("texts", len(texts) > 30, True)


def main():
    missing = [name for name in ("png16", "sndfile", "soxr") if not ctypes.util.find_library(name)]
    if missing:
        print(f"not installed: {', '.join(missing)}")
        return 77
    report = Report()
    for page in sys.argv[1:] or PAGES:
        report.run(page, follow, page)
    report.run("files are shown", files_are_shown)
    report.run("errors exist", errors_exist)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
