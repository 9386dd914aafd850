#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/release.sh: what it refuses, what it makes, and an upgrade by apt while clients call.

Two versions are released from a repository of its own, signed with a throw-away key, into one apt
folder. A root of Debian with a real systemd then installs the first one from it, and is upgraded to
the second one while clients call; pted.socket holds the port. That takes root, debootstrap and a
mirror of Debian; without them only the releases are tested.

usage: run_release.py, with top_srcdir and top_builddir in the environment.
"""
import collections
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "systemd"))
# pylint: disable=wrong-import-position
from run_daemon import add_body  # noqa: E402
from run_http import BUILD, MODELS, SOURCE, TIMEOUT_S, Failure, Report, expect  # noqa: E402
from run_package import (IS_ROOT, bare_root, copy_tree, files_of, install_packages,  # noqa: E402
                         names_of, run)
from run_systemd import Container, is_closed, make_cgroup, wait_until  # noqa: E402

OLD, NEW = "90.0.0", "90.0.1"
CLIENTS = 2
STATE = "/var/lib/pted/models"
ARCH = run("dpkg", "--print-architecture").strip()


class Repository:
    """The files of git in a repository with one commit, and a key of gpg."""

    def __init__(self, folder, home):
        self.tree = folder / "tree"
        self.apt = folder / "apt"
        copy_tree(self.tree)
        # How fast the programs run does not matter here.
        self.environment = {
            **os.environ, "DEB_CFLAGS_APPEND": "-O0", "GNUPGHOME": home, "GIT_AUTHOR_NAME": "test",
            "GIT_AUTHOR_EMAIL": "test", "GIT_COMMITTER_NAME": "test",
            "GIT_COMMITTER_EMAIL": "test"}
        self.key = "release test"
        self.run("gpg", "--batch", "--passphrase", "", "--quick-gen-key", self.key, "ed25519",
                 "sign")
        self.git("init", "-q")
        self.commit("the files")

    def run(self, *command):
        return run(*command, cwd=self.tree, env=self.environment)

    def git(self, *arguments):
        return self.run("git", *arguments).strip()

    def commit(self, what):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", what)

    def change(self, name, pattern, text):
        path = self.tree / name
        old = path.read_text()
        new = re.sub(pattern, text, old, count=1, flags=re.MULTILINE)
        expect(f"does {name} change", new != old, True)
        path.write_text(new)

    def begin(self, version):
        """What docs/project/releases.md says has to be done before."""
        self.change("configure.ac", r"^(AC_INIT\(\[pted\]), \[.*\]\)", rf"\1, [{version}])")
        self.change("CHANGELOG.md", r"^## \[Unreleased\]\n",
                    f"## [Unreleased]\n\n## [{version}] - 2026-12-01\n")
        path = self.tree / "debian/changelog"
        path.write_text(f"pted ({version}) unstable; urgency=medium\n\n  * A test.\n\n"
                        " -- The pted authors <packages@example.org>  "
                        "Tue, 01 Dec 2026 12:00:00 +0000\n\n" + path.read_text())
        self.commit(version)

    def refused(self, why, *arguments):
        done = subprocess.run(["contrib/release.sh", *arguments], cwd=self.tree,
                              env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode == 0 or why not in done.stderr:
            raise Failure(f"expected {why!r}, got status {done.returncode}: {done.stderr}")

    def release(self, version):
        self.run("contrib/release.sh", version, "--no-checks", "--placeholders", "--targets", "",
                 "--key", self.key, "--apt", self.apt)
        return self.tree / "build/release" / version


# ---- releases ----

def refusals(repository):
    """Before anything is made; the tree is as before."""
    arguments = (OLD, "--no-checks", "--placeholders", "--targets", "")
    repository.refused("contrib/release.sh VERSION", "--nonsense")
    repository.refused("expected MAJOR.MINOR.PATCH", "90")
    repository.refused("configure.ac: version '", *arguments)
    repository.begin(OLD)
    repository.refused("SECURITY.md: who gets reports?", OLD, "--no-checks")
    repository.refused("gpg has no secret key 'nobody'", *arguments, "--key", "nobody")
    for name, text in (("debian/changelog", f"pted ({NEW})"),
                       ("CHANGELOG.md", f"## [{NEW}]")):
        before = (repository.tree / name).read_text()
        repository.change(name, r"^(pted \(|## \[)90\.0\.0[)\]]", text)
        repository.refused("the tree is not clean", *arguments)
        repository.commit("wrong")
        repository.refused(f"{name}: version '{NEW}', expected '{OLD}'", *arguments)
        (repository.tree / name).write_text(before)
        repository.commit("right")
    repository.change("CHANGELOG.md", rf"^## \[{OLD}\] - .*", f"## [{OLD}]")
    repository.commit("no date")
    repository.refused("has no date", *arguments)
    repository.git("revert", "--no-edit", "HEAD")
    expect("tags", repository.git("tag"), "")
    repository.git("tag", f"v{OLD}")
    repository.refused(f"there is a tag v{OLD} already", *arguments)
    repository.git("tag", "-d", f"v{OLD}")
    environment = repository.environment
    repository.environment = {**environment, "GIT_COMMITTER_NAME": ""}
    repository.refused("git cannot make a tag", *arguments)
    repository.environment = environment
    signed = repository.tree.parent / "signed"
    signed.mkdir()
    (signed / "InRelease").touch()
    repository.refused("signed is signed: expected --key", *arguments, "--apt", "../signed")


def check_sums(repository, folder, version):
    files = {path.name for path in folder.iterdir() if path.suffix != ".asc"}
    packages = {f"{name}_{version}_{ARCH}.deb" for name in ("pted", "libpted1", "libpted-dev")}
    expect("files", files, packages | {f"pted-{version}.tar.gz", f"pted-{version}.cdx.json",
                                       "SHA256SUMS", "pted-archive-keyring.gpg"})
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    expect("names in SHA256SUMS", set(sums), files - {"SHA256SUMS", "pted-archive-keyring.gpg"})
    for name, text in sums.items():
        expect(name, text, hashlib.sha256((folder / name).read_bytes()).hexdigest())
    for name in (*sums, "SHA256SUMS"):
        repository.run("gpg", "--batch", "--verify", folder / f"{name}.asc", folder / name)
    bill = json.loads((folder / f"pted-{version}.cdx.json").read_text())
    expect("version", bill["metadata"]["component"]["version"], version)
    listed = {part["name"]: part["hashes"][0]["content"] for part in bill["components"]
              if part["type"] == "file"}
    expect("files in the bill", listed,
           {name: text for name, text in sums.items() if not name.endswith(".json")})
    libraries = {part["name"] for part in bill["components"] if part["type"] == "library"}
    expect("libraries in the bill", {"libuv1", "libssl3", "libutf8proc2"} <= libraries, True)


def releases(repository, version):
    commit = repository.git("rev-parse", "--short=12", "HEAD")
    folder = repository.release(version)
    check_sums(repository, folder, version)
    expect("tag", repository.git("rev-parse", "--short=12", f"v{version}^{{commit}}"), commit)
    repository.git("tag", "-v", f"v{version}")
    with tarfile.open(folder / f"pted-{version}.tar.gz") as archive:
        text = archive.extractfile(f"pted-{version}/COMMIT").read().decode()
        expect("COMMIT", text, f"{commit}\n")
    unpacked = repository.tree.parent / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    run("dpkg-deb", "-x", folder / f"pted_{version}_{ARCH}.deb", unpacked)
    for program in ("pted", "pte"):
        expect("--version", run(unpacked / "usr/bin" / program, "--version").splitlines()[:2],
               [f"{program} {version}", f"commit: {commit}"])


def same_bytes(repository):
    """The archive and the package of one commit are the same each time."""
    folder = repository.tree / "build/release" / NEW
    before = (folder / "SHA256SUMS").read_text()
    repository.git("tag", "-d", f"v{NEW}")
    repository.release(NEW)
    expect("SHA256SUMS", (folder / "SHA256SUMS").read_text(), before)


# ---- apt ----

class Root(Container):
    """A root of Debian with a systemd of its own."""
    script = SOURCE / "tests/package/boot.sh"
    target = "basic.target"

    def __init__(self, root):  # pylint: disable=super-init-not-called
        self.folder = root
        self.cgroup = make_cgroup()
        self.process = self.pid = None
        self.sanitizers = "none"

    def command(self, *arguments):
        done = self.run(*arguments)
        if done.returncode != 0:
            raise Failure(f"{' '.join(arguments)}: {done.stdout}{done.stderr}\n{self.log()}")
        return done.stdout

    def apt(self, *arguments):
        return self.command("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y",
                            "--no-install-recommends", *arguments)

    def version(self):
        return self.command("pted", "--version").splitlines()[0]


class Caller(threading.Thread):
    """Calls a model, on a new connection each time, until it is told to stop."""

    def __init__(self, body):
        super().__init__()
        self.body = body
        self.is_over = threading.Event()
        self.answers, self.failures = 0, []  # answers: those with 200

    def call(self):
        connection = http.client.HTTPConnection("127.0.0.1", 8000, timeout=TIMEOUT_S)
        try:
            connection.request("POST", "/v2/models/add/infer", self.body)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                self.answers += 1
            else:
                self.failures.append(f"{answer.status}: {text[:200]}")
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(repr(error))
        finally:
            connection.close()

    def run(self):
        while not self.is_over.is_set():
            self.call()


def make_root(folder, apt):
    root = bare_root(folder, "systemd")
    install_packages(root, names_of(next(apt.glob(f"pted_{OLD}_*.deb")), "Depends"))
    # From here on there is no network.
    for path in (root / "etc/apt").glob("sources.list*"):
        run("rm", "-r", path)
    (root / "etc/apt/sources.list.d").mkdir()
    shutil.copytree(apt, root / "srv/apt")
    shutil.copy(apt / "pted-archive-keyring.gpg", root / "usr/share/keyrings")
    (root / "etc/apt/sources.list.d/pted.list").write_text(
        "deb [signed-by=/usr/share/keyrings/pted-archive-keyring.gpg] file:/srv/apt ./\n")
    return root


def upgrade(root):
    root.systemctl("disable", "--now", "pted.service")
    root.systemctl("enable", "--now", "pted.socket")
    shutil.copy(MODELS / "add.pte", root.path(STATE))
    root.path("/etc/pted/pted.json").write_text("{}")
    callers = [Caller(add_body()) for _ in range(CLIENTS)]
    for caller in callers:
        caller.start()
    try:
        wait_until("answers", lambda: all(caller.answers > 10 for caller in callers), root.log)
        pid = root.show("MainPID")
        root.apt("install", f"pted={NEW}")
        after = [caller.answers for caller in callers]
        wait_until("answers after the upgrade", lambda: all(
            caller.answers > count + 10 for caller, count in zip(callers, after)), root.log)
    finally:
        for caller in callers:
            caller.is_over.set()
        for caller in callers:
            caller.join()
    print(f"# {sum(caller.answers for caller in callers)} requests")
    expect("requests that failed", collections.Counter(
        text for caller in callers for text in caller.failures), {})
    expect("is it another process", root.show("MainPID") != pid, True)
    expect("version", root.version(), f"pted {NEW}")


def install_upgrade_remove(folder, apt):
    base = make_root(folder, apt)
    root = Root(base)
    try:
        reason = root.start()
        if reason:
            raise Failure(reason)
        before = files_of(base)  # also those that systemd makes when it starts
        root.apt("update")
        root.apt("install", f"pted={OLD}")
        expect("version", root.version(), f"pted {OLD}")
        expect("ActiveState", root.show("ActiveState"), "active")
        upgrade(root)
        root.apt("remove", "pted")
        expect("ActiveState", root.show("ActiveState"), "inactive")
        expect("does anybody listen", is_closed(), True)
        root.apt("purge", "pted")
    finally:
        root.stop()
    left = {name for name in files_of(base) - before if not name.startswith("var/lib/systemd/")}
    expect("files that are left, but for models",
           sorted(name for name in left if not re.match("var/lib/(private(/|$)|pted$)", name)), [])
    expect("is the cache left", [str(path) for path in base.glob("var/cache/**/pted")], [])
    expect("is the model left", (base / "var/lib/private/pted/models/add.pte").exists(), True)


def check(report, repository):
    report.run("what is refused", refusals, repository)
    report.run("a release", releases, repository, OLD)
    repository.begin(NEW)
    report.run("the next release", releases, repository, NEW)
    if IS_ROOT and shutil.which("debootstrap"):
        report.run("installed, upgraded and removed by apt", install_upgrade_remove,
                   repository.tree.parent, repository.apt)
    else:
        print("# skipped: apt; it takes root and debootstrap")
    report.run("the same bytes", same_bytes, repository)


def main():
    report = Report()
    # Flags of the compiler name the folder: with a folder of its own ccache would find nothing.
    folder = BUILD.resolve() / "release"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # gpg's agent has a socket there, so its path has to be short.
    with tempfile.TemporaryDirectory() as home:
        try:
            check(report, Repository(folder, home))
        finally:
            run("gpgconf", "--homedir", home, "--kill", "all")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
