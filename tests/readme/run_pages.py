#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the commands of all pages, and compares what they print with what the page shows.

Each text of troubleshooting.md is one of the sources. A page is text with blocks, indented or
fenced. A block that begins with "// docs/examples/FILE" is that file. A block with a line that
begins with one of COMMANDS is a block of commands: it is run, unless ELSEWHERE says what runs it,
or why nothing does. The block directly behind it is what is printed, except for white space and the
last digits of numbers. In a block with "$ " before commands the other lines are what is printed.

Commands run in a folder that has build/, docs/ and tests/, after those of BEFORE. `pted ... &` is
started on a port that the system chooses, which replaces that of the page in this block and in
later ones. `pted` without `&` checks its settings. `pte bench` takes a moment for each step, and
sends more requests a second where the page has less than ten.

usage: run_pages.py [PAGE...], with top_srcdir and top_builddir in the environment.
"""
import ctypes.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
sys.path.insert(0, str(SOURCE / "tests" / "http"))

from run_http import Daemon, Failure, Report, expect  # noqa: E402  beside this folder

EXAMPLES = SOURCE / "docs" / "examples"
PYTHON = shutil.which(os.environ.get("PYTHON", "")) or sys.executable
TOOLS = {"pted": Path(os.environ.get("PTED", BUILD / "pted")).resolve(),
         "pte": Path(os.environ.get("PTE", BUILD / "pte")).resolve()}
BLOCK_S = 60
# Levels of the CPU differ by rounding.
TOLERANCE = 1e-3
NUMBER = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
COMMANDS = ("apt-get", "autoreconf", "call", "cc", "cd", "contrib/.*", "cp", "curl", "docker",
            "dpkg-buildpackage", "echo", "haproxy", "hf", "journalctl", "kill", "lm_eval", "make",
            "mkdir", "openssl", "optimum-cli", "perf_analyzer", "pip", "podman", "pte", "pted",
            "python3?", "sudo", "systemctl", "xdg-open")
COMMAND = re.compile(rf"^(\$ )?(\./|build/|venv/bin/)?({'|'.join(COMMANDS)})( |$)", re.MULTILINE)
PTED = r"(?:build/)?pted(?= )"
START = re.compile(rf"^{PTED}.*&(?: *#.*)?$", re.MULTILINE)

# By page and the beginning of a block: the file that runs it, or the reason why none does.
RECIPES = "tests/recipes/run_recipes.py"
ELSEWHERE = {
    "../README": {"contrib/quickstart.sh": "tests/package/run_quickstart.py",
                  "python3 -m venv": "tests/recipes/run_recipes.py"},
    "how-to/building": {"autoreconf": "contrib/check.sh", "apt-get": "tests/package/names.py",
                        "contrib/portable.sh ": "contrib/check.sh",
                        "contrib/cross.sh": "contrib/check.sh"},
    "how-to/coming-from": {"pip install": "tests/http/run_clients.py"},
    "how-to/console": {"curl -s http://127.0.0.1:8000/openapi": "tests/http/run_openapi.py"},
    "how-to/fetching": {"pte": "tests/http/run_fetch.py"},
    "how-to/packages": {"dpkg-buildpackage": "tests/package/run_package.py",
                        "sudo dpkg --add-architecture": "contrib/check.sh",
                        "contrib/portable.sh": "contrib/check.sh",
                        "podman build": "contrib/check.sh",
                        "docker buildx": "it takes a registry of images",
                        "mkdir -p": "it takes a registry of images"},
    "how-to/python": {"pip install": "tests/package/run_wheel.py",
                      "python3 python/wheels.py": "tests/package/run_wheel.py"},
    "how-to/real-models": {"p": "checkpoints of gigabytes, which come from a hub"},
    "how-to/systemd": {"sudo": "tests/systemd/run_systemd.py"},
    "project/figures": {"": "measurements, which take hours of a quiet machine"},
    "project/releases": {"": "tests/package/run_release.py"},
    "reference/calling": {"perf_analyzer": "PyPI has no perf_analyzer for every machine"},
    "reference/command-line": {"pted [OPTION]": "tests/docs.sh",
                               "journalctl": "tests/systemd/run_systemd.py",
                               "pte run http": "tests/http/run_pte_client.py",
                               "pte ping": "tests/http/run_pte_client.py"},
    "reference/devices": {"pte profile --device vulkan": "tests/http/run_devices.py"},
    "reference/language-models": {"pted base.pte": "tests/http/run_adapters.py",
                                  "build/pted chat/": "tests/http/run_exporters.py",
                                  "optimum-cli": "tests/http/run_exporters.py",
                                  "lm_eval": "tests/http/run_lm_eval.py",
                                  "$ build/pte chat": "tests/http/run_chat.py"},
    "reference/library": {"cc ": "tests/lib/run_library.sh"},
    "tutorials/production": {"": "tests/systemd/run_production.py"},
    "tutorials/your-model": {"pip install": "tests/readme/run_folder.py",
                             "pte compare": "tests/http/run_pte_compare.py",
                             "": "tests/readme/run_readme.py"},
    "tutorials/recipes/README": {"": RECIPES},
    **{f"tutorials/recipes/{name}": {"": RECIPES} for name in (
        "chat", "classifier", "detector", "keywords", "segmentation", "sentences", "whisper")},
}
# What a page takes as given.
CERTIFICATE = ("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 "
               "-subj /CN=localhost -keyout key.pem -out cert.pem 2>openssl.log\n")
BEFORE = {
    "explanation/differences": "cp tests/models/layers/head.pte model.pte\n"
                               "cp tests/models/layers/net.npz reference.npz\n",
    "how-to/access": CERTIFICATE + "cp tests/models/add.pte model.pte\n"
                     "echo '{\"args\": [[[1,2,3],[4,5,6]], [[1,1,1],[1,1,1]]]}' >request.json\n",
    "how-to/folders": "cp -rL tests/models/yolo/detect_executorch_model yolo11n_executorch_model\n",
    "how-to/layers": "cp tests/models/layers/head.pte net.pte\n",
    "how-to/load": "echo '{\"prompt\": \"hello\", \"output_tokens\": 5}' >mine.jsonl\n"
                   "build/pted --listen 127.0.0.1:8000 --listen unix:/run/pted/pted.sock "
                   "tests/models/unet.pte --model chat=tests/models/chat/model.pte &\n",
    "how-to/proxies": "cp tests/models/add.pte model.pte\n",
    "how-to/tls": "cp tests/models/add.pte model.pte\n",
    "how-to/troubleshooting": "build/pted tests/models/digits.pte &\n",
    "reference/command-line": "cp tests/models/digits.pte docs/examples/digits.card.json .\n"
                              "cp docs/examples/seven.png .\ncp seven.png nine.png\n"
                              "cp tests/models/encoder/model.pte encoder.pte\n"
                              "cp tests/models/encoder/tokenizer.json .\n"
                              "echo '{\"inputs\": {\"input_ids\": {\"name\": \"text\", \"text\": "
                              "{\"mask\": \"attention_mask\", \"types\": \"token_type_ids\"}}}}' "
                              ">encoder.card.json\n",
    "reference/configuration": "mkdir models\ncp tests/models/digits.pte .\n"
                               "cp tests/readme/scorer.pte models/\n",
    "reference/devices": "cp tests/models/digits.pte .\n",
    "reference/limits": "cp tests/models/digits.pte .\n",
    "reference/programs": "cp tests/readme/scorer.pte .\n",
    "reference/serving": "cp tests/models/add.pte large.pte\n",
}
# Blocks of which other runs print other numbers, and any text for "..."; or (ANY) anything.
NUMBERS, ANY = range(2)
VARIES = {
    "explanation/differences": {"pte compare": ANY},
    "how-to/load": {"pte bench": ANY, "$ pte bench": ANY},
    "reference/command-line": {"build/pte profile": ANY},
    "reference/metrics": {"build/pted": NUMBERS},
    "reference/other-servers": {"build/pted --model chat=tests/models/chat/model.pte &\n"
                                "curl -s http://127.0.0.1:8000/api/chat": NUMBERS,
                                "build/pted --model chat=tests/models/chat/model.pte &\n"
                                "curl -s http://127.0.0.1:8000/v2/chat": NUMBERS},
}
# Blocks whose last command ends with another status than 0.
STATUS = {
    "explanation/differences": {"pte compare": [1]},
    "how-to/layers": {"cd tests": [1], "build/pte run net.pte": [0, 1]},
    "how-to/load": {"pte bench": [0, 1], "$ pte bench": [0, 1]},
    "reference/configuration": {"$ pted": [78]},
}
# Modules of Python that commands of a page import.
NEEDS = {"reference/clients": "tritonclient.http", "reference/grpc": "tritonclient.grpc"}


class Block:
    """A block of a page with the number of its first line; |answer|: what it shows as printed."""

    def __init__(self, line):
        self.line = line
        self.lines = []
        self.answer = None

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def split_session(self):
        """Of "$ COMMAND" and what it prints."""
        commands = [line[2:] for line in self.lines if line.startswith("$ ")]
        if commands:
            self.answer = "\n".join(line for line in self.lines if not line.startswith("$ "))
            self.lines = ["exec 2>&1", *commands]


def all_pages():
    """The names of all pages: paths in docs/ without ".md", and ../README."""
    docs = SOURCE / "docs"
    return ["../README", *sorted(str(path.relative_to(docs).with_suffix(""))
                                 for path in docs.rglob("*.md"))]


def read_blocks(page):
    path = SOURCE / "docs" / f"{page}.md"
    blocks, block, is_fenced = [], None, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            is_fenced = not is_fenced
            block = None
        elif is_fenced or line.startswith("    "):
            if not block:
                block = Block(number)
                blocks.append(block)
            block.lines.append(line if is_fenced else line[4:])
        else:
            block = None
    for block, behind in zip(blocks, blocks[1:]):
        if behind.line == block.line + len(block.lines) + 1 and not COMMAND.search(behind.text):
            block.answer = behind.text
    return blocks


def find_row(rows, page, block):
    """The row of a table by page and beginning, or None."""
    return next((row for begin, row in rows.get(page, {}).items()
                 if block.text.startswith(begin)), None)


def compare(got, shown, varies):
    """Numbers are alike, and all else but white space is the same."""
    left, right = ("".join(text.split()) for text in (got, shown))
    if varies:
        words = re.sub(NUMBER, "N", right).split("...")
        if not re.fullmatch(".*".join(map(re.escape, words)), re.sub(NUMBER, "N", left)):
            raise Failure(f"{got}, expected {shown}")
        return
    expect("what is printed", re.sub(NUMBER, "N", left), re.sub(NUMBER, "N", right))
    for number, wanted in zip(re.findall(NUMBER, left), re.findall(NUMBER, right)):
        if abs(float(number) - float(wanted)) > TOLERANCE * max(1, abs(float(wanted))):
            raise Failure(f"{number}, expected {wanted}, in {got}")


class Walk:
    """A folder, and the daemon of the last block that started one."""

    def __init__(self):
        self.daemon = None
        self.ports = {}
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        for name in ("docs", "tests"):
            (self.folder / name).symlink_to(SOURCE / name)
        for name in ("build", "tmp", "run/pted", "srv/models", "var/cache/pted"):
            (self.folder / name).mkdir(parents=True)
        for name, path in TOOLS.items():
            (self.folder / "build" / name).symlink_to(path)
        for name, line in (("python3", f'exec "{PYTHON}" "$@"'), ("pip", ":"),
                           ("xdg-open", 'curl -sf -o /dev/null "$1"')):
            (self.folder / "build" / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
            (self.folder / "build" / name).chmod(0o755)

    def close(self):
        if self.daemon:
            self.daemon.__exit__(None, None, None)
            self.daemon = None

    def end(self):
        self.close()
        self.temporary.cleanup()

    def start(self, command):
        """Starts the daemon on a port of the system's choice, in place of the port of the page."""
        self.close()
        words = shlex.split(command.rpartition("&")[0])[1:]
        address = "127.0.0.1:8000"
        if "--listen" in words:
            at = words.index("--listen")
            address = words[at + 1]
            del words[at:at + 2]
        scheme = "tls:" if address.startswith("tls:") else ""
        self.daemon = Daemon([], command=[TOOLS["pted"], "--listen", f"{scheme}127.0.0.1:0",
                                          *words], cwd=self.folder).__enter__()
        self.ports = {address.rpartition(":")[2]: self.daemon.port}

    def run(self, text, statuses=(0,)):
        """What the commands print. What stands before the one that starts a daemon is run first."""
        text = re.sub(r"(?<=[ :])/(tmp|run|srv|var)/", rf"{self.folder}/\1/",
                      text.replace("\\\n", " "))
        start = START.search(text)
        if start:
            before = self.shell(text[:start.start()])
            self.start(start[0])
            return before + self.shell(text[start.end():], statuses)
        return self.shell(text, statuses)

    def shell(self, text, statuses=(0,)):
        for shown, port in self.ports.items():
            text = re.sub(rf"(127\.0\.0\.1|localhost):{shown}\b", rf"\1:{port}", text)
        text = re.sub(rf"^({PTED})(?! --version)", r"\1 --check-config", text, flags=re.M)
        text = re.sub(r"(?<=--rate) (0\.5\.\.8x6|2)(?= |$)", " 20", text, flags=re.M)
        text = re.sub(r"^pte bench(.*?)( --duration \S+)?$",
                      r"pte bench\1 --duration 200ms --warm-up 50ms", text, flags=re.M)
        text = re.sub(r"^curl -s ", "curl -sS ", text, flags=re.M)
        done = subprocess.run(
            ["bash", "-euc", text], cwd=self.folder, check=False, capture_output=True, text=True,
            timeout=BLOCK_S,
            env={**os.environ, "PATH": f"{self.folder}/build{os.pathsep}{os.environ['PATH']}"})
        if done.returncode not in statuses:
            raise Failure(f"{text}: {done.stdout}{done.stderr}".strip()[-2000:])
        return done.stdout


def follow_block(walk, page, block):
    file = re.match(r"// docs/examples/(\w+(\.\w+)+)", block.text)
    if file:
        expect(file[1], block.text, (EXAMPLES / file[1]).read_text(encoding="utf-8"))
    file = re.match(r"// (\w+\.json)\n", block.text)
    if file:
        (walk.folder / file[1]).write_text(block.text, encoding="utf-8")
    if not COMMAND.search(block.text) or find_row(ELSEWHERE, page, block) is not None:
        return
    statuses, varies = find_row(STATUS, page, block) or [0], find_row(VARIES, page, block)
    block.split_session()
    printed = walk.run(block.text, statuses)
    if block.answer is not None and varies != ANY:
        compare(printed, block.answer, varies == NUMBERS)
    elif "curl" in block.text:
        expect(f"an error in {printed}", '"error"' in printed, False)


def follow(page):
    module = NEEDS.get(page)
    if module and subprocess.run([PYTHON, "-c", f"import {module}"], cwd="/", check=False,
                                 capture_output=True).returncode != 0:
        print(f"# {PYTHON} has no {module}: {page}.md is not followed")
        return
    walk = Walk()
    try:
        if page in BEFORE:
            walk.run(BEFORE[page])
        for block in read_blocks(page):
            try:
                follow_block(walk, page, block)
            except Failure as why:
                raise Failure(f"{page}.md:{block.line}: {why}") from why
    finally:
        walk.end()


def has_commands(page):
    """Does the page have a block that is run here?"""
    return any(COMMAND.search(block.text) and find_row(ELSEWHERE, page, block) is None
               for block in read_blocks(page))


def rows_are_true():
    """Each row of the tables is about a block; ELSEWHERE names files that exist, or reasons."""
    for table in (ELSEWHERE, VARIES, STATUS):
        for page, rows in table.items():
            blocks = [block.text for block in read_blocks(page) if COMMAND.search(block.text)]
            for begin, what in rows.items():
                expect(f"{page}: a block that begins with {begin!r}",
                       any(text.startswith(begin) for text in blocks), True)
                if table is ELSEWHERE:
                    expect(f"{page}: {what}", " " in what or (SOURCE / what).is_file(), True)


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
    missing += [tool for tool in ("curl", "openssl") if not shutil.which(tool)]
    if missing:
        print(f"not installed: {', '.join(missing)}")
        return 77
    report = Report()
    for page in sys.argv[1:] or filter(has_commands, all_pages()):
        report.run(page, follow, page)
    report.run("rows are true", rows_are_true)
    report.run("files are shown", files_are_shown)
    report.run("errors exist", errors_exist)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
