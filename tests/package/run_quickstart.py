#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What README.md says first, in bare roots of Debian: from a clone to a prediction and a chat.

It installs packages and builds there, without optimization, because that takes long. Skipped
without root or debootstrap.

usage: run_quickstart.py SUITE..., with top_srcdir in the environment. A SUITE is one of Debian,
such as bookworm.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
# pylint: disable=wrong-import-position
from run_haproxy import free_port  # noqa: E402
from run_http import MODELS, SOURCE, Failure, Report, expect  # noqa: E402
from run_package import IS_ROOT, bare_root, run  # noqa: E402

CHAT = MODELS.relative_to(SOURCE) / "chat"
WAIT = "until curl -sf -o /dev/null $URL/v2/health/ready; do kill -0 $! || exit; sleep 0.1; done"


def blocks():
    """The indented blocks of the section "Try it": the quickstart, two commands, their answer."""
    section = re.search(r"^## Try it\n(.*?)^## ", (SOURCE / "README.md").read_text(), re.M | re.S)
    found = re.findall(r"(?:^ {4}.*\n)+", section[1], re.M)
    expect("blocks", len(found), 3)
    return [re.sub(r"^ {4}", "", block, flags=re.M).strip() for block in found]


def copy_clone(folder):
    """The files of git, as a clone has them."""
    folder.mkdir()
    names = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], check=True,
                           stdout=subprocess.PIPE).stdout
    with subprocess.Popen(["tar", "-C", SOURCE, "-c", "--null", "-T", "-"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as tar, \
            subprocess.Popen(["tar", "-C", folder, "-x"], stdin=tar.stdout) as other:
        tar.stdin.write(names)
        tar.stdin.close()
    expect("tar", (tar.returncode, other.returncode), (0, 0))


def in_root(root, script, port):
    variables = ["HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                 "CFLAGS=-O0", f"PTED_LISTEN=127.0.0.1:{port}", f"URL=http://127.0.0.1:{port}"]
    return run("chroot", root, "env", "-i", "-C", "/clone", *variables, "sh", "-euc", script)


def serve(root, command, client):
    """Runs the client when the server is ready. The port is a free one."""
    port = free_port()
    script = f"{command}\n{WAIT}\n{client}\nkill $!\nwait $!"
    return in_root(root, script.replace("127.0.0.1:8000", f"127.0.0.1:{port}"), port)


def classes(text):
    """Of the answer in |text|, behind which the server may have said something."""
    answer, _ = json.JSONDecoder().raw_decode(text[text.index('{"result"'):])
    return [(one["label"], round(one["score"], 3)) for one in answer["result"][0]]


def readme(suite):
    quickstart, commands, answer = blocks()
    with tempfile.TemporaryDirectory() as name:
        root = bare_root(Path(name), suite=suite)
        copy_clone(root / "clone")
        said = in_root(root, quickstart, free_port())
        if not re.search(r"^prediction: 2, .*\(written as 2\)$", said, re.M):
            raise Failure(f"no prediction: {said[-2000:]}")
        server, _, client = commands.partition("\n")
        said = serve(root, server, client)
        expect("classes", classes(said), classes(answer))
        row = json.loads((MODELS / "chat/answers.json").read_text())[0]
        said = serve(root, f"build/pted --model chat={CHAT}/model.pte &",
                     f"echo '{row['messages'][0]['content']}' | "
                     "build/pte chat --temperature 0 $URL/chat")
        expect("a chat", row["answer"] in said, True)


def main():
    if not IS_ROOT or not shutil.which("debootstrap"):
        print("roots of Debian take root and debootstrap", file=sys.stderr)
        return 77
    report = Report()
    for suite in sys.argv[1:]:
        report.run(f"Debian, {suite}", readme, suite)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
