#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""contrib/packages.tsv is the one table of the names of packages and sonames.

It is compared with what configure found here, the messages of configure.ac, debian/control, the
names in the sources and docs/how-to/building.md.

usage: names.py, with top_srcdir and top_builddir in the environment.
"""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("top_srcdir", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("top_builddir", SOURCE))
SCRIPT = SOURCE / "contrib/packages.sh"
BUILD_USES = ("build", "media", "vulkan")
UNNAMED = {"build-essential"}  # every build of a package has it

complaints = []


def compare(what, got, expected):
    for name in sorted(set(got) - set(expected)):
        complaints.append(f"{what}: {name} is not in contrib/packages.tsv")
    for name in sorted(set(expected) - set(got)):
        complaints.append(f"{what}: {name} is missing, contrib/packages.tsv has it")


def read(path):
    return (SOURCE / path).read_text(encoding="utf-8")


def read_table():
    lines = [line.split("\t") for line in read("contrib/packages.tsv").splitlines()
             if not line.startswith("#")]
    for line in lines:
        if len(line) != len(lines[0]) or not all(line):
            complaints.append(f"contrib/packages.tsv: {line[1]}: expected {len(lines[0])} cells")
    return [dict(zip(lines[0], line)) for line in lines[1:]], lines[0][2:]


TABLE, DISTRIBUTIONS = read_table()
OPENED = {row["library"]: row for row in TABLE if row["use"] == "opened"}


def shell(script):
    variables = {**os.environ, "PACKAGES": str(SCRIPT.with_suffix(".tsv"))}
    command = ["sh", "-c", f'. "$1"; {script}', "names", SCRIPT]
    return subprocess.run(command, env=variables, check=True, stdout=subprocess.PIPE,
                          text=True).stdout.rstrip("\n")


def check_configured():
    """The libraries that configure found on this system."""
    distribution = shell("distribution")
    config = (BUILD / "config.h").read_text(encoding="utf-8")
    found = {kind: dict(re.findall(rf'^#define PTED_{kind}_(\w+) "(.*)"', config, re.M))
             for kind in ("PACKAGE", "SONAME")}
    compare("config.h", found["SONAME"], set(found["SONAME"]) & set(OPENED))
    if distribution:
        compare(f"configure on {distribution}",
                [f"{name} {package}:{found['SONAME'][name]}"
                 for name, package in found["PACKAGE"].items()],
                [f"{name} {OPENED[name][distribution]}" for name in found["PACKAGE"]
                 if name in OPENED])


def check_sources():
    """Libraries whose names stand in the sources, as they are opened without their headers."""
    names = set()
    for folder in ("hal", "runtime", "server"):
        for path in (SOURCE / folder).rglob("*.c"):
            names |= set(re.findall(r'"(lib[\w+-]+\.so\.\d+)"', path.read_text(encoding="utf-8")))
    compare("hal, runtime, server", names,
            {OPENED[library][name].split(":")[1] for library in ("EDIT", "VULKAN")
             for name in DISTRIBUTIONS})


def check_configure():
    """What configure.ac says when a library is missing."""
    rows = re.findall(r"^ *PTED_OPENED\((.*?)\)\]?\)?$", read("configure.ac"), re.M)
    debian, fedora = set(), set()
    for row in rows:
        cells = re.findall(r"\[(.*?)\]", row)
        debian.add(cells[4])
        fedora.add(cells[5])
        compare(f"configure.ac, {cells[0]}", [cells[7]],
                [OPENED[cells[0]]["debian12"].split(":")[0]])
    build = [row for row in TABLE if row["use"] in BUILD_USES]
    compare("configure.ac for Debian", debian,
            debian & {name for row in build for name in row["debian13"].split()})
    compare("configure.ac for Fedora", fedora,
            fedora & {name for row in build for name in row["fedora"].split()})
    compare("configure.ac", {re.match(r"\[(\w+)", row)[1] for row in rows} | {"CRYPTO"},
            set(OPENED) - {"EDIT", "VULKAN"})


def check_control():
    """Debian's package: what a build takes, and what is recommended by its name."""
    fields = dict(re.findall(r"^([\w-]+):((?:.*\n)(?: .*\n)*)", read("debian/control"), re.M))
    needed = {part.split("(")[0].strip() for line in fields["Build-Depends"].split(",")
              for part in line.split("|")} - {"debhelper-compat"}
    compare("Build-Depends", needed,
            {name for row in TABLE if row["use"] in BUILD_USES
             for distribution in ("debian12", "debian13")
             for name in row[distribution].split()} - UNNAMED)
    named = {part.strip() for field in ("Recommends", "Suggests")
             for part in fields[field].split(",")}
    compare("Recommends and Suggests", named - {"${pted:Opened}"},
            {OPENED[library]["debian13"].split(":")[0] for library in ("EDIT", "VULKAN")})
    compare("Recommends", named & {"${pted:Opened}"}, ["${pted:Opened}"])


def library_table():
    yield "| library | Debian's package |"
    yield "| --- | --- |"
    for row in TABLE:
        if row["use"] in BUILD_USES and row["library"] not in ("make", "autotools", "pkg-config"):
            unless = "" if row["use"] == "build" else \
                f", unless `../configure --without-{row['use']}`"
            old = "" if row["debian12"] == row["debian13"] else f"; Debian 12: `{row['debian12']}`"
            yield f"| {row['library']}{unless} | `{row['debian13']}`{old} |"


def check_document():
    """building.md has the table of libraries, and a command for each other distribution."""
    text = read("docs/how-to/building.md")
    commands = "\n".join(shell(f"install_command {name}") for name in DISTRIBUTIONS
                         if not name.startswith("debian"))
    for what, block in (("contrib/packages.tsv", "\n".join(library_table())),
                        ("contrib/packages.sh", re.sub("^", "    ", commands, flags=re.M))):
        if f"<!-- of {what} -->\n{block}\n<!-- end -->" not in text:
            complaints.append(f"building.md: expected behind <!-- of {what} -->:\n{block}")


check_configured()
check_sources()
check_configure()
check_control()
check_document()
print("\n".join(complaints))
sys.exit(len(complaints) > 0)
