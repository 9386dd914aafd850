#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The wheel of the Python package: built from the programs of the build tree, installed in fresh
virtual environments, served from there and called by its client. No network is used.

PYTHON names an interpreter that has numpy; environments are made with it. Programs in
build/portable of the source are tried, too, if this machine can start them.

usage: run_wheel.py, with top_srcdir and top_builddir in the environment.
"""
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from unittest import mock

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2])).resolve()
BUILD = Path(os.environ.get("top_builddir", SOURCE)).resolve()
PACKAGE = SOURCE / "python"
sys.path[:0] = [str(SOURCE / "tests" / "http"), str(PACKAGE)]

import interpreter  # noqa: E402  beside this folder
import wheel_elf  # noqa: E402  of python/
import wheels  # noqa: E402  as above
from run_http import MODELS, Daemon, Failure, Report, expect  # noqa: E402
from run_package import is_of_this_tree  # noqa: E402

RUN_S = 300
CALL = """
import sys
import numpy
from pted_server import Client
with Client(f"http://127.0.0.1:{sys.argv[1]}") as client:
    print(client.call("add", (numpy.ones((2, 3), "f4"), numpy.ones((2, 3), "f4"))).sum())
"""


def run(*command, status=0, **popen):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=RUN_S, check=False, **popen)
    if done.returncode != status:
        raise Failure(f"{' '.join(map(str, command))}: {done.returncode}: "
                      f"{done.stdout}{done.stderr}"[-2000:])
    return done.stdout + done.stderr


class Environment:
    """A virtual environment that sees numpy, and nothing else of the one that made it."""

    def __init__(self, folder):
        import numpy
        self.folder = folder
        run(sys.executable, "-m", "venv", folder)
        site = Path(run(self.bin("python"), "-c",
                        "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        numpy_only = folder / "numpy-only"
        numpy_only.mkdir()
        for path in Path(numpy.__file__).parents[1].glob("numpy*"):
            (numpy_only / path.name).symlink_to(path)
        (site / "numpy.pth").write_text(f"{numpy_only}\n")

    def bin(self, name):
        return self.folder / "bin" / name

    def pip(self, *arguments, **popen):
        return run(self.bin("python"), "-m", "pip", "--no-cache-dir",
                   "--disable-pip-version-check", *arguments, **popen)

    def install(self, what, *options, **popen):
        self.pip("install", "--quiet", "--no-index", "--force-reinstall", "--no-deps", what,
                 *options, **popen)
        self.pip("check")


def check_serving(environment):
    """The programs are the first in PATH of the environment, as they are."""
    version = wheels.version()
    for name in wheels.PROGRAMS:
        path = environment.bin(name)
        expect(f"{name} is no script", path.read_bytes()[:4], b"\x7fELF")
        expect(f"{name} --version", version in run(path, "--version"), True)
    expect("python -m pted_server", run(environment.bin("python"), "-m", "pted_server",
                                        "--version"), run(environment.bin("pted"), "--version"))
    command = [environment.bin("python"), "-m", "pted_server", "--listen", "127.0.0.1:0",
               MODELS / "add.pte"]
    with Daemon([], command=command) as daemon:
        program = os.readlink(f"/proc/{daemon.process.pid}/exe")
        expect("Python became pted", program, str(environment.bin("pted").resolve()))
        expect("call", run(environment.bin("python"), "-c", CALL, daemon.port).strip(), "12.0")


def check_contents(wheel):
    """Each file of the package is in the wheel, and in the archive of `make dist`."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    files = {str(path.relative_to(PACKAGE)) for path in (PACKAGE / "pted_server").rglob("*")
             if path.is_file() and "__pycache__" not in path.parts}
    expect("files", {name for name in names if name.startswith("pted_server/")}, files)
    stem = f"pted_server-{wheels.version()}"
    expect("the rest", {name for name in names if not name.startswith("pted_server/")},
           {f"{stem}.data/scripts/pted", f"{stem}.data/scripts/pte", f"{stem}.dist-info/METADATA",
            f"{stem}.dist-info/WHEEL", f"{stem}.dist-info/RECORD",
            f"{stem}.dist-info/licenses/LICENSE"})
    expect("may be started", modes[f"{stem}.data/scripts/pted"], 0o755)
    listed = (PACKAGE / "local.mk").read_text(encoding="utf-8")
    for name in files:
        expect(f"local.mk has {name}", f"%D%/{name}" in listed, True)


def metadata_of(wheel):
    with zipfile.ZipFile(wheel) as archive:
        stem = f"pted_server-{wheels.version()}.dist-info"
        text = archive.read(f"{stem}/METADATA").decode()
        names = [name for name in archive.namelist() if name.startswith(f"{stem}/licenses/")]
    return text, [Path(name).name for name in names]


def described(folder):
    """Licences are named as they are packed; other settings of pip name no programs; the same
    files give the same archive at any time."""
    for name in wheels.PROGRAMS:
        (folder / name).symlink_to(BUILD / name)
    (folder / "THIRD_PARTY").write_text("libuv: ...\n")
    for settings, expected in (({"programs": str(folder)}, ["LICENSE", "THIRD_PARTY"]),
                               ({"other": "1"}, ["LICENSE"]), (None, ["LICENSE"])):
        text, packed = metadata_of(folder / wheels.build_wheel(folder, settings))
        made = Path(tempfile.mkdtemp(dir=folder))
        info = wheels.prepare_metadata_for_build_wheel(made, settings)
        expect("prepared", (made / info / "METADATA").read_text(encoding="utf-8"), text)
        expect("packed", packed, expected)
        expect("named", re.findall(r"^License-File: (.*)$", text, re.M), expected)
        expect("version that has License-File", text.startswith("Metadata-Version: 2.4\n"), True)
    archives = []
    for now in (1e9, 2e9):
        with mock.patch("time.time", lambda: now):
            archives.append((folder / wheels.build_sdist(folder)).read_bytes())
    expect("the same archive", archives[0] == archives[1], True)


def own(folder):
    """Built twice from this tree; installed, served and removed; then other ways to install."""
    outs = [folder / "first", folder / "second"]
    for out in outs:
        run(sys.executable, PACKAGE / "wheels.py", "--programs", BUILD, "--out", out)
    first, second = (next(out.glob("*.whl")) for out in outs)
    expect("name", first.name, f"pted_server-{wheels.version()}-py3-none-linux_"
                               f"{platform.machine()}.whl")
    expect("the same bytes", first.read_bytes() == second.read_bytes(), True)
    check_contents(first)
    environment = Environment(folder / "venv")
    empty = set(environment.folder.rglob("*"))
    environment.install(first)
    check_serving(environment)
    said = run(environment.bin("python"), "-m", "pted_server.export", MODELS / "none", status=1)
    expect("the exporter", said.startswith("pted_server.export: torch: expected "), True)
    environment.pip("uninstall", "--quiet", "-y", "pted-server")
    left = {path for path in set(environment.folder.rglob("*")) - empty
            if "__pycache__" not in path.parts}
    expect("nothing is left", left, set())
    of_source(folder, environment)


def shared(folder):
    """A folder for temporary files, which has another project's file and somebody's programs."""
    (folder / "build").mkdir(parents=True)
    (folder / "configure.ac").write_text("AC_INIT([pted], [99.0.0])\n")
    for name in wheels.PROGRAMS:
        shutil.copy2(BUILD / name, folder / "build")
    return folder


def of_source(folder, environment):
    """pip install of the folder, with programs and editable; an archive of it has none."""
    said = environment.pip("install", "--no-index", PACKAGE, "--config-settings", "programs=build",
                           status=1)
    expect("relative", "programs=build: expected an absolute path" in said, True)
    environment.install(PACKAGE, "--config-settings", f"programs={BUILD}")
    expect("pted", "pted" in run(environment.bin("pted"), "--version"), True)
    environment.install(folder / wheels.build_sdist(folder),
                        env={**os.environ, "TMPDIR": str(shared(folder / "shared"))})
    expect("version", wheels.version() in environment.pip("show", "pted-server"), True)
    expect("no programs", [name for name in wheels.PROGRAMS if environment.bin(name).exists()], [])
    said = run(environment.bin("python"), "-m", "pted_server", status=1,
               env={"PATH": str(environment.folder / "bin")})
    expect("what to do", said.startswith("pted_server: there is no pted: "), True)
    name = wheels.build_editable(folder)
    environment.install(folder / name)
    where = run(environment.bin("python"), "-c", "import pted_server; print(pted_server.__file__)",
                cwd=folder)
    expect("editable", where.strip(), str(PACKAGE / "pted_server" / "__init__.py"))


def refused(folder):
    """Programs that do not fit a tag."""
    program = BUILD / "pted"
    data = program.read_bytes()
    others = {"x86_64": "aarch64", "aarch64": "x86_64"}
    for tag, why in ((f"manylinux_2_28_{platform.machine()}", "libuv.so.1"),
                     (f"musllinux_1_2_{platform.machine()}", "expected a static program"),
                     (f"linux_{others.get(platform.machine(), 'x86_64')}", "expected machine")):
        try:
            wheel_elf.check(program, data, tag)
        except wheel_elf.Refused as text:
            expect(f"{text}", why in str(text), True)
        else:
            raise Failure(f"a program of this machine is taken for {tag}")
    (folder / "pted").write_text("a script")
    for why in ("expected an ELF file", "a wheel needs pted and pte"):
        said = run(sys.executable, PACKAGE / "wheels.py", "--programs", folder, "--out",
                   folder / "out", status=1)
        expect(said, (why in said, "Traceback" in said), (True, False))
        (folder / "pted").unlink(missing_ok=True)


def portable(folder):
    """Those of contrib/portable.sh."""
    found = [target for target in wheels.TAGS if (wheels.PORTABLE / target / "pted").exists()]
    for target in found:
        is_own = target.startswith(platform.machine())
        if is_own and not is_of_this_tree(wheels.PORTABLE / target / "pted"):
            print(f"# skipped: the programs for {target}: they are not of this commit")
            continue
        name, = wheels.portable_wheels(folder, [target])
        print(f"# {name}: {(folder / name).stat().st_size / 1e6:.1f} MB")
        if not is_own:
            continue
        environment = Environment(folder / target)
        if "-gnu" in target:
            environment.install(folder / name)
        else:  # pip of a system with glibc takes it for a wheel of another one
            plain = folder / name.replace(wheels.TAGS[target], "any")
            (folder / name).rename(plain)
            environment.install(plain)
        check_serving(environment)
    if not found:
        print(f"# skipped: there is no program in {wheels.PORTABLE}")


def main():
    if not interpreter.has("numpy", "venv", "ensurepip"):
        print("SKIP: numpy, venv or ensurepip is missing")
        return 77
    report = Report()
    for check in (refused, described, own, portable):
        with tempfile.TemporaryDirectory() as name:
            report.run(check.__name__, check, Path(name))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
