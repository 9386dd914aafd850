#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the picture of a terminal that README.md shows, docs/pictures/terminal.svg, from a session
that it runs: the lines are those of the programs, cut where a terminal of 100 columns cuts them.

usage: contrib/terminal.py BUILD    BUILD: a folder in which pted has been built
"""
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from xml.sax.saxutils import escape

SOURCE = Path(__file__).resolve().parents[1]
PICTURE = SOURCE / "docs" / "pictures" / "terminal.svg"
SERVE = "pted tests/models/digits.pte --card digits=docs/examples/digits.card.json &"
ASK = ("curl -s --data-binary @docs/examples/seven.png -H 'Content-Type: image/png' \\",
       "      'http://127.0.0.1:8000/v2/models/digits/call?top_k=2'")
OTHERS = ("pte inspect tests/models/digits.pte",
          "echo 'What is the capital of Japan?' | pte chat tests/models/chat/model.pte")
COLUMNS = 100
LINE, LETTER, MARGIN = 18, 7.85, 16  # of the picture, for 13 pixels of a monospace font
PATIENCE_S = 20
STYLE = ("text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; "
         "white-space: pre; fill: #d6dae0 } .typed { fill: #8fd694 }")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(url):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            with urllib.request.urlopen(url):
                return
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"{url}: no answer in {PATIENCE_S} s")
            time.sleep(0.05)


class Session:
    """(class, line) of what was typed and printed, with programs of |build| at a port of ours."""

    def __init__(self, build):
        self.lines = []
        self.port = str(free_port())
        self.environment = {**os.environ, "PATH": f"{build}:{os.environ['PATH']}",
                            "PTED_LISTEN": f"127.0.0.1:{self.port}"}

    def add(self, kind, text):
        for line in text.replace(self.port, "8000").rstrip().split("\n"):
            for begin in range(0, len(line) or 1, COLUMNS):
                self.lines.append((kind, line[begin:begin + COLUMNS]))

    def type(self, *lines):
        self.add("typed", "$ " + "\n".join(lines))
        return "\n".join(lines).replace("8000", self.port)

    def run(self, *lines):
        done = subprocess.run(["bash", "-c", self.type(*lines)], env=self.environment, cwd=SOURCE,
                              stdout=subprocess.PIPE, text=True, check=True)
        self.add("printed", done.stdout)

    def serve(self, line):
        """The log so far is what the terminal shows before the next command."""
        command = self.type(line).rstrip(" &").split()
        daemon = subprocess.Popen(command, env=self.environment, cwd=SOURCE,
                                  stderr=subprocess.PIPE, text=True)
        wait_for(f"http://127.0.0.1:{self.port}/v2/health/ready")
        log = ""
        while "serving" not in log:
            log = daemon.stderr.readline()
            self.add("printed", log)
        return daemon


def picture(lines):
    width, height = 2 * MARGIN + COLUMNS * LETTER, 2 * MARGIN + len(lines) * LINE
    rows = "\n".join(f'<text class="{kind}" x="{MARGIN}" y="{MARGIN + (i + 0.75) * LINE:g}">'
                     f"{escape(line)}</text>" for i, (kind, line) in enumerate(lines))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
            f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="A session in a terminal">\n'
            f"<style>{STYLE}</style>\n"
            f'<rect width="100%" height="100%" rx="8" fill="#16191f"/>\n{rows}\n</svg>\n')


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip().rpartition("\n\n")[2])
    session = Session(Path(sys.argv[1]).resolve())
    daemon = session.serve(SERVE)
    try:
        session.run(*ASK)
        for line in OTHERS:
            session.run(line)
    finally:
        daemon.terminate()
        daemon.wait()
    PICTURE.write_text(picture(session.lines), encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
