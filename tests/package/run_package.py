#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Debian package, the folder for images, and the completion of shells.

The package is built from the files of git, checked by lintian, and installed, used and removed in
a bare root. That takes Debian's tools, root, and a mirror of Debian; what is missing is skipped.

usage: run_package.py, with top_srcdir and top_builddir in the environment.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "http"))
# pylint: disable=wrong-import-position
from run_daemon import infer  # noqa: E402
from run_http import BUILD, MODELS, SOURCE, Client, Failure, Report, expect  # noqa: E402

BUILD_S = 3000
IMAGE_BYTES_MAX = 20 << 20
IS_ROOT = os.geteuid() == 0


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=BUILD_S, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{command[0]}: status {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


def ask(*command, root=None):
    """Serves `add` with the installed program, and sends it a request."""
    prefix = ["chroot", str(root)] if root else []
    process = subprocess.Popen([*prefix, *command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found:
                expect("infer", infer(Client(int(found[1]))), 200)
                return
        raise Failure("the daemon did not start")
    finally:
        process.terminate()
        expect("exit status", process.wait(30), 0)


# ---- completion ----

def complete(line, cwd=None):
    """What bash offers for |line|."""
    script = (f'. {SOURCE}/contrib/completions/bash/pted; COMP_WORDS=({line}); '
              f'[[ "{line}" == *" " ]] && COMP_WORDS+=(""); '
              'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
              '_${COMP_WORDS[0]} ${COMP_WORDS[0]}; printf "%s\\n" "${COMPREPLY[@]}"')
    environment = {**os.environ, "PATH": f"{BUILD}:{os.environ['PATH']}"}
    return run("bash", "-c", script, env=environment, cwd=cwd).split()


def completion():
    expect("option", complete("pted --body-b"), ["--body-bytes-max"])
    expect("word", complete("pted --precision b"), ["bf16"])
    expect("command", complete("pte prof"), ["profile"])
    expect("option of a command", complete("pte run --top"), ["--top-k"])
    expect("option of a client", complete("pte top --tok"), ["--token", "--token-file"])
    expect("servers", complete("pte ls htt"), ["http://", "https://"])
    expect("files", "digits.pte" in complete("pted dig", cwd=MODELS), True)
    expect("no others", "digits.json" in complete("pted dig", cwd=MODELS), False)
    for shell, path in (("zsh", "zsh/_pted"), ("fish", "fish/pted.fish")):
        if shutil.which(shell):
            run(shell, "-n", SOURCE / "contrib/completions" / path)


# ---- image ----

def image():
    """Has nothing but pted, and serves."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        run(SOURCE / "contrib/container/rootfs.sh", BUILD / "pted", root)
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
        print(f"# {size / 1e6:.1f} MB")
        expect("size", size < IMAGE_BYTES_MAX, True)
        shutil.copy(MODELS / "add.pte", root / "models")
        if IS_ROOT:
            ask("/usr/bin/pted", "--listen", "127.0.0.1:0", "--models", "/models", root=root)


# ---- Debian ----

def build(folder):
    tree = folder / "pted"
    tree.mkdir()
    files = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], check=True,
                           stdout=subprocess.PIPE).stdout
    archive = subprocess.run(["tar", "-C", SOURCE, "-c", "--null", "-T", "-"], input=files,
                             check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-C", tree, "-x"], input=archive, check=True)
    jobs = len(os.sched_getaffinity(0))
    environment = {key: value for key, value in os.environ.items()
                   if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "CFLAGS")}
    environment["DEB_BUILD_OPTIONS"] = f"parallel={jobs} noautodbgsym"
    environment["DEB_CFLAGS_APPEND"] = "-O1"    # for half of the time; its code is tested elsewhere
    run("dpkg-buildpackage", "-b", "-us", "-uc", cwd=tree, env=environment)
    package = next(folder.glob("pted_*.deb"))
    print(f"# {package.name}: {package.stat().st_size / 1e6:.2f} MB")
    return package


def check_contents(package):
    names = run("dpkg-deb", "-c", package)
    for name in ("usr/bin/pted", "usr/bin/pte", "lib/systemd/system/pted.service",
                 "lib/systemd/system/pted.socket", "man8/pted.8.gz", "man1/pte.1.gz",
                 "bash-completion/completions/pted", "bash-completion/completions/pte",
                 "zsh/vendor-completions/_pted", "fish/vendor_completions.d/pted.fish"):
        if name not in names:
            raise Failure(f"{name} is not in the package")


def lint(package):
    changes = next(package.parent.glob("*.changes"))
    run("lintian", "--allow-root", "--fail-on", "error,warning", changes)


def files_of(root):
    return {str(path.relative_to(root)) for path in root.rglob("*")
            if not re.search(r"^(var/(cache|log|lib/(apt|dpkg))|proc|sys|dev|tmp|run)",
                             str(path.relative_to(root)))}


def names_of(package, field):
    return [part.split("(")[0].strip() for part in run("dpkg-deb", "-f", package, field).split(",")]


def install_packages(root, names):
    run("chroot", root, "apt-get", "-qq", "install", "-y", "--no-install-recommends", *names)


def install(package, folder):
    """Into a root that has nothing but Debian's essential packages."""
    root = folder / "root"
    run(SOURCE / "contrib/bare_root.sh", "bookworm", root)
    shutil.copy(package, root / "pted.deb")
    shutil.copy(MODELS / "add.pte", root / "add.pte")
    install_packages(root, names_of(package, "Depends"))
    before = files_of(root)
    run("chroot", root, "dpkg", "-i", "/pted.deb")
    ask("/usr/bin/pted", "--listen", "127.0.0.1:0", "/add.pte", root=root)
    run("chroot", root, "/usr/bin/pte", "run", "/add.pte")
    run("chroot", root, "dpkg", "--purge", "pted")
    expect("files that are left", sorted(files_of(root) - before), [])
    # What dpkg-shlibdeps does not see.
    install_packages(root, names_of(package, "Recommends"))
    run("chroot", root, "dpkg", "-i", "/pted.deb")
    version = run("chroot", root, "/usr/bin/pted", "--version")
    expect("libraries", "opened when needed: libssl.so" in version, True)
    expect("libraries that are not found", re.findall(r"\S+ \(not found\)", version), [])


def check_package(report, folder):
    begin = time.monotonic()
    packages = []
    report.run("the package is built", lambda: packages.append(build(folder)))
    print(f"# built in {time.monotonic() - begin:.0f} s")
    if not packages:
        return
    report.run("its contents", check_contents, packages[0])
    report.run("lintian", lint, packages[0])
    if IS_ROOT and shutil.which("debootstrap"):
        report.run("installed and removed in a bare root", install, packages[0], folder)
    else:
        print("# skipped: the installation; it takes root and debootstrap")


def debian(report):
    missing = [tool for tool in ("dpkg-buildpackage", "dh", "lintian") if not shutil.which(tool)]
    if missing:
        print(f"# skipped: the package; there is no {', '.join(missing)}")
        return
    # The flags of the compiler name the folder, so only a folder of the same name finds what ccache
    # has kept.
    folder = BUILD.resolve() / "package"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        check_package(report, folder)
    finally:
        shutil.rmtree(folder)


def main():
    report = Report()
    report.run("completion", completion)
    report.run("image", image)
    debian(report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
