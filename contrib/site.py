#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the pages of docs/ as HTML with contents and a search.

The pages are plain files: they open from disk, and neither the build nor a reader needs a network.
Sphinx and myst-parser make them (Debian: python3-sphinx, python3-myst-parser; or pip install sphinx
myst-parser). index.html leads to the index of docs/.

usage: site.py OUT
"""
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
TOP = ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "ARCHITECTURE.md",
       "HACKING.md")
# Files of the source that pages lead to, beside pages.
BESIDE = ("lib/pted.h", "LICENSE", "contrib/export/README.md")
CONF = """\
import re
project = "pted"
copyright = "The pted authors"
version = release = {version!r}
extensions = ["myst_parser"]
root_doc = "docs/README"
html_theme = "alabaster"
html_theme_options = {{"page_width": "1100px", "sidebar_width": "260px",
                      "fixed_sidebar": True, "show_powered_by": False}}
html_sidebars = {{"**": ["about.html", "searchfield.html", "localtoc.html", "navigation.html"]}}
html_copy_source = False
html_show_sourcelink = False
exclude_patterns = ["lib", "docs/examples"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "myst.xref_missing", "toc.not_included",
                     "misc.highlighting_failure", "toc.not_readable"]
"""
ROOMS = ("tutorials", "tutorials/recipes", "how-to", "reference", "explanation")
REDIRECT = '<!doctype html><meta charset="utf-8"><title>pted</title>' \
    '<meta http-equiv="refresh" content="0; url=docs/README.html">' \
    '<a href="docs/README.html">Documentation of pted</a>\n'


def version():
    text = (SOURCE / "configure.ac").read_text(encoding="utf-8")
    return re.search(r"^AC_INIT\(\[pted\], \[(.*)\]\)", text, re.MULTILINE)[1]


def toctrees(folder):
    """What the sidebar shows: the pages of each room."""
    trees = []
    for room in ROOMS:
        pages = sorted(page.stem for page in (folder / "docs" / room).glob("*.md"))
        lines = "\n".join(f"{room}/{page}" for page in pages)
        trees.append(f"\n```{{toctree}}\n:hidden:\n:caption: {room.capitalize()}\n\n{lines}\n```\n")
    return "".join(trees)


def lay_out(folder):
    """The pages as Sphinx takes them, in their folders."""
    shutil.copytree(SOURCE / "docs", folder / "docs")
    for name in (*TOP, *BESIDE):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, folder / name)
    for page in folder.rglob("*.md"):
        page.chmod(0o644)
    index = folder / "docs/README.md"
    index.write_text(index.read_text(encoding="utf-8") + toctrees(folder), encoding="utf-8")
    (folder / "conf.py").write_text(CONF.format(version=version()), encoding="utf-8")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for name in ("sphinx", "myst_parser"):
        if not importlib.util.find_spec(name):
            sys.exit(f"site.py: Python has no module {name} (Debian: python3-sphinx, "
                     "python3-myst-parser)")
    out = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        lay_out(Path(name))
        done = subprocess.run([sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d",
                               str(Path(name) / "trees"), name, str(out)], check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    for extra in (".buildinfo", "objects.inv"):
        (out / extra).unlink(missing_ok=True)
    (out / "index.html").write_text(REDIRECT, encoding="utf-8")


if __name__ == "__main__":
    main()
