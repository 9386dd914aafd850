#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs docs/tutorials/production.md as a reader does, from its first line to its last.

All lines of its blocks go to one shell, in the container of run_systemd.py, in a folder that has
what the page takes from the source. A block that begins with a path in a comment is the content of
that file. A block right behind another one is what that one prints. Nobody builds a package here
(tests/package does): `apt` stands for what its installation does, to what `make install` installed.

usage: run_production.py, with top_srcdir and top_builddir in the environment.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
# pylint: disable=wrong-import-position
from run_systemd import (SKIP, SOURCE, TIMEOUT_S, Container, Failure, Installed,  # noqa: E402
                         Report, expect, wait_until)

PAGE = SOURCE / "docs/tutorials/production.md"
HOME = "/src"
USED = ("tests/models/digits.pte", "docs/examples/digits.card.json", "docs/examples/seven.png")
SHIMS = {
    "sudo": 'exec "$@"\n',
    "apt": 'test "$1" = install && systemctl enable --now pted.service\n',
}
STEPS = 7
SERVICE_STEP = 3
NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
READY = "until curl -sf -o /dev/null 127.0.0.1:8000/v2/health/ready; do sleep 0.1; done"
END = "--- end of the block"  # on a line of its own, whatever is before it


def read_blocks(text):
    """(step, block, whether it is what the block before it prints): indented, or within fences."""
    found, step, block, is_fenced = [], 0, [], False
    is_behind = is_joined = False  # nothing but blank lines is behind the last block
    for line in [*text.splitlines(), ""]:
        is_fence = line.startswith("```")
        is_fenced ^= is_fence
        if not is_fence and (is_fenced or line.startswith("    ")):
            is_joined = is_behind if not block else is_joined
            block.append(line if is_fenced else line[4:])
            continue
        if block:
            found.append((step, "\n".join(block) + "\n", is_joined))
            block, is_behind = [], True
        if line.strip() and not is_fence:
            is_behind = False
        heading = re.match(r"## (\d+)\. ", line)
        step = int(heading[1]) if heading else step
    return found


class Reader:
    """A shell in the container, which goes on from block to block."""

    def __init__(self, container):
        self.container = container
        self.home = container.path(HOME)
        self.prepare()
        self.shell = subprocess.Popen(
            ["nsenter", "--target", str(container.pid), *NAMESPACES, "env", "-i", "-C", HOME,
             f"PATH={HOME}/shims:/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME=/root",
             "ASAN_OPTIONS=detect_leaks=0", "timeout", str(TIMEOUT_S * 10), "bash"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def prepare(self):
        for name in USED:
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, self.home / name)
        shutil.copy(SOURCE / USED[0], self.home / "digits-2.pte")
        for folder, programs in (("shims", SHIMS), ("build", {})):
            (self.home / folder).mkdir()
            for name, text in programs.items():
                path = self.home / folder / name
                path.write_text(f"#!/bin/sh\n{text}")
                path.chmod(0o755)
        for name in ("pted", "pte"):
            (self.home / "build" / name).symlink_to(Path(self.container.program).parent / name)
        ssl = self.container.path("/etc/ssl")
        ssl.mkdir()
        shutil.copy("/etc/ssl/openssl.cnf", ssl)

    def write(self, path, block):
        file = self.container.path(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block)

    def run(self, block):
        """What it prints; a program that goes to the background is awaited until it serves."""
        script = re.sub(r"^(build/pted .*)&$", rf"\1 2>pted.log &\n{READY}", block,
                        flags=re.MULTILINE)
        if script.startswith("pte bench"):  # 1: this machine is too busy to send so many requests
            script = f"{{ {script}}} || test $? = 1\n"
        if self.shell.poll() is not None:
            raise Failure("the shell has ended at an earlier block")
        self.shell.stdin.write(f"set -e\n{script}echo; echo '{END}'\n")
        self.shell.stdin.flush()
        printed = ""
        for line in self.shell.stdout:
            if line.startswith(END):
                return printed[:-1]
            printed += line
        raise Failure(f"status {self.shell.wait()} of {block}: {printed}{self.container.log()}")

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        self.shell.stdout.close()


def numbers_alike(got, shown):
    """Scores differ from one level of the CPU to another in their last digits."""
    digits = r"(\d\.\d{3})\d+"
    expect("what is printed", re.sub(digits, r"\1", "".join(got.split())),
           re.sub(digits, r"\1", "".join(shown.split())))


def follow(reader, step, blocks):
    printed = ""
    for at, block, is_answer in blocks:
        file = re.match(r"(?://|#) (/\S+)\n", block)
        if at != step:
            continue
        if file:
            reader.write(file[1], block)
        elif is_answer:
            numbers_alike(printed, block)
        else:
            printed = reader.run(block)
            print(re.sub("^", "# ", printed, flags=re.MULTILINE))


def ask_without_token(reader):
    printed = reader.run("curl -s -o /dev/null -w '%{http_code}' --cacert /etc/pted/cert.pem "
                         "https://localhost:8443/v2/models/digits\n")
    expect("status without a token", printed, "401")


def is_loaded(container, times):
    """A reader looks at the service before the next step, and this script is faster than that."""
    loads = "model digits: image "
    wait_until(f"load {times}", lambda: container.log().count(loads) == times, container.log)


def is_replaced(container):
    """Loaded in step 3, by the restart of step 4, and in step 7; no other file is left."""
    is_loaded(container, 3)
    names = {path.name for path in container.path("/var/lib/pted/models").iterdir()}
    expect("files", names, {"digits.pte", "digits.card.json"})


def walk(report, container):
    blocks = read_blocks(PAGE.read_text(encoding="utf-8"))
    expect("steps", {step for step, _, _ in blocks}, set(range(STEPS + 1)))
    reader = Reader(container)
    try:
        for step in range(STEPS + 1):
            report.run(f"step {step}", follow, reader, step, blocks)
            if step == SERVICE_STEP:
                report.run("the model is loaded", is_loaded, container, 1)
        report.run("a token is needed", ask_without_token, reader)
        report.run("the model is replaced", is_replaced, container)
    finally:
        reader.close()


def main():
    missing = [name for name in ("unshare", "systemctl", "curl", "openssl")
               if not shutil.which(name)]
    if missing:
        print(f"1..0 # skip not installed: {', '.join(missing)}")
        return SKIP
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        installed = Installed(Path(name))
        container = Container(Path(name), installed)
        container.program = installed.program
        reason = container.start()
        if reason:
            print(f"1..0 # skip nothing was started: {reason}")
            return SKIP
        try:
            walk(report, container)
        finally:
            container.stop()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
