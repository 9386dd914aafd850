#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the pages as HTML (contrib/site.py), and reads and searches them from disk in Chromium.

Skipped without Sphinx, myst-parser or Chromium. PYTHON names an interpreter that has the first two.

usage: run_site.py, with top_srcdir in the environment.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
sys.path.insert(0, str(SOURCE / "tests" / "http"))

from run_http import Failure, Report, expect  # noqa: E402  beside this folder

PYTHON = shutil.which(os.environ.get("PYTHON", "")) or sys.executable
CHROMIUM = shutil.which("chromium")
BUILD_S, BROWSER_S, SCRIPT_MS = 900, 120, 15000
LOADED = re.compile(r'<(?:script[^>]* src|link[^>]* href|img[^>]* src)="([^"]*)"')


def has_modules():
    return subprocess.run([PYTHON, "-c", "import sphinx, myst_parser"], cwd="/",
                          capture_output=True, check=False).returncode == 0


def build(out):
    done = subprocess.run([PYTHON, SOURCE / "contrib/site.py", out], capture_output=True, text=True,
                          timeout=BUILD_S, check=False)
    expect("status and messages", (done.returncode, done.stdout + done.stderr), (0, ""))
    pages = [path.relative_to(SOURCE) for path in (SOURCE / "docs").rglob("*.md")]
    expect("pages", [str(page) for page in pages
                     if not (out / page.with_suffix(".html")).exists()], [])
    expect("there are pages", len(pages) > 40, True)


def loads_nothing(out):
    """All that a page loads lies in the folder."""
    for page in out.rglob("*.html"):
        for link in set(LOADED.findall(page.read_text(encoding="utf-8"))) - {"#"}:
            path = (page.parent / link.split("?")[0]).resolve()
            if not path.is_relative_to(out.resolve()) or not path.exists():
                raise Failure(f"{page}: loads {link}")


def leads_on(out):
    """Links to other pages lead to a page and a place in it."""
    for page in (out / "docs").rglob("*.html"):
        for link in re.findall(r'<a class="reference internal" href="([^"]+)"',
                               page.read_text(encoding="utf-8")):
            path, _, name = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            expect(f"{page.name}: {link}", target.exists() and
                   (not name or f'id="{name}"' in target.read_text(encoding="utf-8")), True)


def read(url, profile):
    done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
                           f"--user-data-dir={profile}", f"--virtual-time-budget={SCRIPT_MS}",
                           "--dump-dom", url], capture_output=True, text=True, timeout=BROWSER_S,
                          check=False)
    return done.stdout


def search(out):
    """Words are found without a server."""
    with tempfile.TemporaryDirectory() as profile:
        for words, page in (("sentencepiece", "docs/reference/tokenizers.html"),
                            ("haproxy", "docs/how-to/proxies.html")):
            found = read(f"file://{out}/search.html?q={words}", profile)
            expect(words, f'href="{page}' in found, True)
        found = read(f"file://{out}/search.html?q=xyzzyqqq", profile)
        expect("nothing", 'href="docs/reference/tokenizers.html?' in found, False)


def main():
    missing = [] if has_modules() else ["sphinx or myst_parser"]
    missing += [] if CHROMIUM else ["chromium"]
    if missing:
        print(f"not installed: {', '.join(missing)}")
        return 77
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "site"
        for check in (build, loads_nothing, leads_on, search):
            report.run(check.__name__, check, out)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
