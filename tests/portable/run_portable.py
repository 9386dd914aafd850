#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The programs of contrib/portable.sh, in roots that have nothing, or another distribution.

A root holds the programs and a model, no C library and no shell; the clients are outside. Debian's
roots are made by contrib/bare_root.sh from a mirror; what is missing is skipped. It takes root, and
a place where the programs start: contrib/emulated.sh makes one for those of another CPU.

usage: run_portable.py FOLDER [SUITE]..., with top_srcdir in the environment. FOLDER is
build/portable/TARGET; a SUITE is one of Debian, such as bookworm.
"""
import contextlib
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER, SUITES = Path(sys.argv[1]).resolve(), sys.argv[2:]
os.environ["top_builddir"] = str(FOLDER)
for name in ("http", "package"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / name))
# pylint: disable=wrong-import-position
from run_daemon import infer  # noqa: E402
from run_generate import ANSWERS  # noqa: E402
from run_generate import FOLDER as CHAT_MODEL  # noqa: E402
from run_http import (MODELS, SOURCE, Client, Daemon, Failure, Report, build_request,  # noqa: E402
                      expect)
from run_media import CARD, ask, call, flat  # noqa: E402
from run_package import check_image, install_packages  # noqa: E402
from tls_client import Authority, TlsClient, need_openssl  # noqa: E402

BYTES_MAX = 16_000_000  # of the program that is both
WHEEL_BYTES_MAX = 15_000_000
LIBRARIES = ("libssl", "libcurl", "libpcre2-8", "libutf8proc", "libyaml", "libjpeg", "libpng16",
             "libwebp", "libsndfile", "libmpg123", "libsoxr")
AUTHORITIES = ("etc/ssl/cert.pem", "etc/ssl/certs/ca-certificates.crt",
               "etc/pki/tls/certs/ca-bundle.crt", "etc/ssl/ca-bundle.pem")
PT_INTERP = 3
START_S = 1200  # a virtual environment takes minutes in an emulator
PICTURES = MODELS.parent / "fuzz" / "corpus" / "image"
IS_STATIC = FOLDER.name.endswith("-musl")
CPU = FOLDER.name.partition("-")[0]
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[CPU]  # as Debian and images call it


def program_headers(path):
    """The types of the segments of a 64-bit ELF file."""
    data = path.read_bytes()
    expect("ELF", data[:5], b"\x7fELF\x02")
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    return [struct.unpack_from("<I", data, offset + i * size)[0] for i in range(count)]


def files():
    """One program is both, needs no loader where it is static, and is small."""
    path, size = FOLDER / "pted", (FOLDER / "pted").stat().st_size
    expect("where pte leads", os.readlink(FOLDER / "pte"), "pted")
    expect("it needs a loader", PT_INTERP in program_headers(path), not IS_STATIC)
    print(f"# {size / 1e6:.1f} MB")
    if size > BYTES_MAX:
        raise Failure(f"{path} has {size} bytes, expected {BYTES_MAX} at most")


def image():
    """The archive that docker and podman load."""
    with tempfile.TemporaryDirectory() as path:
        check_image(Path(path), FOLDER, ARCH)


class Root:
    """A folder with the program, models and what a check puts there."""

    def __init__(self, path):
        self.path = Path(path)
        (self.path / "tmp").mkdir(exist_ok=True)
        shutil.copy(FOLDER / "pted", self.path / "pted")
        (self.path / "pte").symlink_to("pted")
        shutil.copytree(CHAT_MODEL, self.path / "chat")
        shutil.copy(MODELS / "add.pte", self.path / "add.pte")
        shutil.copy(MODELS / "media" / "model.pte", self.path / "media.pte")
        (self.path / "media.card.json").write_text(json.dumps(CARD))

    def daemon(self, *arguments, scheme="", program="/pted"):
        return Daemon([], command=["chroot", str(self.path), program, "--listen",
                                   f"{scheme}127.0.0.1:0", *arguments])

    def start(self, name, *arguments, text=""):
        return subprocess.run(["chroot", str(self.path), f"/{name}", *arguments], input=text,
                              capture_output=True, text=True, timeout=START_S, check=False,
                              env={"PATH": os.environ["PATH"]})

    def run(self, name, *arguments, text=""):
        done = self.start(name, *arguments, text=text)
        expect(f"{name} {arguments}: {done.stderr}", done.returncode, 0)
        return done.stdout

    def status(self, name, *arguments):
        return self.start(name, *arguments).returncode


def libraries(root):
    """--version names each library as linked in, and says what devices there are."""
    for name in ("pted", "pte"):
        text = root.run(name, "--version")
        line = re.search(r"^linked in: (.*)$", text, re.M)
        if not line:
            raise Failure(f"{name} --version: expected 'linked in', got {text!r}")
        expect("names", [part.rsplit(" ", 1)[0] for part in line[1].split(", ")], list(LIBRARIES))
        expect("not found", "not found" in text, False)


def prediction(root):
    """Numbers, from a client outside."""
    with root.daemon("/add.pte") as daemon:
        expect("infer", infer(Client(daemon.port)), 200)


def pictures(root):
    """A file of each format comes as a tensor of 4 x 6 pixels."""
    with root.daemon("/media.pte") as daemon:
        client = Client(daemon.port)
        for name in ("base.jpg", "gray.png", "lossy.webp"):
            answer = ask(client, call("pixels"), (PICTURES / name).read_bytes(),
                         "Content-Type: application/octet-stream")
            expect(name, len(flat(answer["result"])), 4 * 6 * 3)
        client.close()


def tokens(root):
    """A chat needs PCRE2 and utf8proc; pte chat reads the same model without a server."""
    row = next(row for row in ANSWERS if len(row["messages"]) == 1)
    body = json.dumps({"model": "chat", "messages": row["messages"], "temperature": 0}).encode()
    with root.daemon("--model", "chat=/chat/model.pte") as daemon:
        client = Client(daemon.port)
        client.send(build_request("POST", "/v1/chat/completions", body))
        expect("chat", client.answer(), 200)
        expect("text", json.loads(client.body)["choices"][0]["message"]["content"], row["answer"])
        client.close()
        said = root.run("pte", "chat", f"http://127.0.0.1:{daemon.port}/chat", "--temperature",
                        "0", text=row["messages"][0]["content"] + "\n")
        expect("pte chat by the server", row["answer"] in said, True)


def tls(root):
    """OpenSSL serves; pte's libcurl, which has its own, trusts the authority that it is given."""
    need_openssl()
    authority = Authority()
    for source, name in zip(authority.sign("server"), ("cert.pem", "key.pem")):
        shutil.copy(source, root.path / name)
    with root.daemon("--tls-cert", "/cert.pem", "--tls-key", "/key.pem", "/add.pte",
                     scheme="tls:") as daemon:
        client = TlsClient(daemon.port, authority.context())
        client.send(build_request("GET", "/v2/health/live"))
        expect("TLS", client.answer(), 200)
        client.close()
        shutil.copy(authority.ca, root.path / "ca.pem")
        url = f"https://127.0.0.1:{daemon.port}"
        root.run("pte", "ping", url, "--cacert", "/ca.pem")
        for path in AUTHORITIES:
            find_authorities(root, url, authority, root.path / path)


def find_authorities(root, url, authority, path):
    """Without an option it finds them where a distribution has them: at |path|."""
    if any((root.path / name).exists() for name in AUTHORITIES):
        return  # that distribution's own, which are not ours to change
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    expect("trusts nobody", root.status("pte", "ping", url), 77)
    shutil.copy(authority.ca, path)
    root.run("pte", "ping", url)
    path.unlink()
    for folder in made:
        folder.rmdir()


CHECKS = (libraries, prediction, pictures, tokens, tls)
CLIENT = """
import json, sys
import numpy
from pted_server import Client
with Client(f"http://127.0.0.1:{sys.argv[1]}") as client:
    print(client.call("add", (numpy.ones((2, 3), "f4"), numpy.ones((2, 3), "f4"))).sum())
    answer = client.chat(json.loads(sys.argv[2]), "chat", temperature=0)
    print(answer["choices"][0]["message"]["content"])
"""


def make_wheel(folder):
    """Returns the name of the file. pip of a system with glibc takes no wheel for musl, although
    that program starts there, too; so that one gets another tag."""
    done = subprocess.run([sys.executable, SOURCE / "python/wheels.py", "--out", folder,
                           FOLDER.name], capture_output=True, text=True, check=False)
    expect(f"wheels.py: {done.stderr}", done.returncode, 0)
    path = next(folder.glob("*.whl"))
    print(f"# {path.name}: {path.stat().st_size / 1e6:.1f} MB")
    expect("size", path.stat().st_size < WHEEL_BYTES_MAX, True)
    return path.rename(re.sub("-musllinux[^-]*[.]whl", "-any.whl", str(path))).name


def wheel(root):
    """In a fresh environment of the root's Python: a prediction and a chat, by its client."""
    install_packages(root.path, ["python3-venv", "python3-numpy"])
    name = make_wheel(root.path / "wheels")
    row = next(row for row in ANSWERS if len(row["messages"]) == 1)
    root.run("usr/bin/python3", "-m", "venv", "--system-site-packages", "/venv")
    root.run("venv/bin/pip", "install", "--quiet", "--no-index", f"/wheels/{name}")
    with root.daemon("/add.pte", "--model", "chat=/chat/model.pte",
                     program="/venv/bin/pted") as daemon:
        said = root.run("venv/bin/python", "-c", CLIENT, str(daemon.port),
                        json.dumps(row["messages"]))
        expect("answers", said, f"12.0\n{row['answer']}\n")
        root.run("venv/bin/pte", "ping", f"127.0.0.1:{daemon.port}/chat")


@contextlib.contextmanager
def debian_folder(suite):
    """What debootstrap has mounted in a namespace is unmounted before the folder is removed."""
    arch = [] if CPU == platform.machine() else ["--arch", ARCH]
    with tempfile.TemporaryDirectory() as path:
        try:
            done = subprocess.run([SOURCE / "contrib/bare_root.sh", *arch, suite, path], text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=3600, check=False)
            expect(f"bare_root.sh: {done.stdout[-2000:]}", done.returncode, 0)
            yield path
        finally:
            mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
            for place in reversed(mounts):
                if place.startswith(f"{path}/"):
                    subprocess.run(["umount", place], check=True)


def debian(suite):
    """The same in a root of Debian."""
    with debian_folder(suite) as path:
        root = Root(path)
        for check in (*CHECKS, wheel):
            check(root)


def main():
    if os.geteuid() != 0:
        print("chroot takes root", file=sys.stderr)
        return 77
    report = Report()
    report.run("files", files)
    if IS_STATIC:
        report.run("image", image)
        with tempfile.TemporaryDirectory() as path:
            root = Root(path)
            for check in CHECKS:
                report.run(f"nothing else in the root: {check.__name__}", check, root)
    if shutil.which("debootstrap"):
        for suite in SUITES:
            report.run(f"Debian, {suite}", debian, suite)
    elif SUITES:
        print(f"# skipped: Debian, {' and '.join(SUITES)}; it takes debootstrap")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
