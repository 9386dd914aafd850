#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A daemon for a bench: it listens on a free port, and its log is thrown away.

usage: no program; for other benches to import.
"""
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

PTED = Path(os.environ.get("top_builddir", ".")).resolve() / "pted"


class Daemon:
    """A pted with these arguments; |port| is its own. Ends with the block that it is used in."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [PTED, "--listen=127.0.0.1:0", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.port = None
        while not self.port:
            line = self.process.stderr.readline()
            if not line:
                sys.exit(f"pted did not start: {self.process.wait()}")
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            self.port = found and int(found[1])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
