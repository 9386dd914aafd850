#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the bill of materials of a release, pted-VERSION.cdx.json in CycloneDX, and checks it.

It has the files of the release with their SHA-256, and the libraries of the Debian package: those
that its programs are linked with, and those that they open when something first needs them. Their
versions are those of the machine that built the package. What is linked into portable programs
comes from contrib/portable/sources.tsv. The same files give the same bytes.

usage: sbom.py VERSION COMMIT FOLDER, with SOURCE_DATE_EPOCH in the environment.
"""
import hashlib
import os
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

SOURCES = Path(__file__).resolve().parents[1] / "portable/sources.tsv"
COMPILER = SOURCES.with_name("requirements.txt")
SPACE = uuid.UUID("0b1f7d57-6f0e-4d52-9c56-3f1a2d8f6a11")  # of this project's documents


def run(*command):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


def digest(path):
    return HashType(alg=HashAlgorithm.SHA_256,
                    content=hashlib.sha256(path.read_bytes()).hexdigest())


def file_component(path):
    return Component(type=ComponentType.FILE, name=path.name, bom_ref=f"file:{path.name}",
                     hashes=[digest(path)])


def system():
    """What qualifies a package: ("debian", "debian-12")."""
    fields = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', Path("/etc/os-release").read_text(),
                             re.MULTILINE))
    return fields["ID"], f"{fields['ID']}-{fields.get('VERSION_ID', 'rolling')}"


def package_names(package, field):
    """Of a field like Depends, without versions; of alternatives, the first one."""
    text = run("dpkg-deb", "-f", package, field)
    return re.findall(r"(?:^|,)\s*([a-z0-9.+-]+)", text)


def library_component(name, how):
    """None: the machine that builds does not have it, so nobody knows its version."""
    form = "${db:Status-Status}\t${Version}\t${Architecture}"
    done = subprocess.run(["dpkg-query", "-W", "-f", form + "\n", name], check=False,
                          capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    found = [line for line in lines if line[0] == "installed"]
    if not found:
        return None
    _, version, architecture = found[0]
    vendor, distribution = system()
    url = PackageURL("deb", vendor, name, version,
                     {"arch": architecture, "distro": distribution})
    return Component(type=ComponentType.LIBRARY, name=name, version=version, purl=url,
                     bom_ref=str(url), properties=[Property(name="pted:use", value=how)])


def libraries(package):
    wanted = [(name, "linked") for name in package_names(package, "Depends")]
    wanted += [(name, "opened when needed") for name in package_names(package, "Recommends")]
    wanted += [(name, "opened if it is there") for name in package_names(package, "Suggests")]
    components = {}
    for name, how in wanted:
        component = components.get(name) or library_component(name, how)
        if component:
            components[name] = component
        else:
            print(f"sbom.py: no version of {name}, which this machine does not have",
                  file=sys.stderr)
    return list(components.values())


def portable_libraries(is_static):
    """Of portable programs: library, version, licence; a row of patches has "-" for its version. A
    static program has no Vulkan."""
    rows = [line.split("\t") for line in SOURCES.read_text().splitlines()
            if line and not line.startswith("#")]
    return [Component(type=ComponentType.LIBRARY, name=name, version=version,
                      purl=PackageURL("generic", None, name, version),
                      bom_ref=f"portable:{name}",
                      licenses=[LicenseFactory().make_from_string(licence)],
                      properties=[Property(name="pted:use", value="linked in"),
                                  Property(name="pted:source", value=path)])
            for name, version, licence, _, path, _ in rows
            if version != "-" and not (is_static and name == "vulkan-headers")]


def of_compiler(name, version):
    """What the compiler links in: functions of its own, and in static programs musl."""
    found = re.search(r"^ziglang==[^\s\\]+", COMPILER.read_text(), re.MULTILINE)
    return Component(type=ComponentType.LIBRARY, name=name, version=version,
                     bom_ref=f"portable:{name}", purl=PackageURL("generic", None, name, version),
                     licenses=[DisjunctiveLicense(id="MIT")],
                     properties=[Property(name="pted:use", value="linked in"),
                                 Property(name="pted:source", value=found[0])])


def compiler_libraries(is_static):
    """Zig does not say which version of musl it has."""
    version = re.search(r"^ziglang==([^\s\\]+)", COMPILER.read_text(), re.MULTILINE)[1]
    return [of_compiler("zig", version)] + ([of_compiler("musl", None)] if is_static else [])


def parts(path):
    """The libraries of a file of the release."""
    if path.suffix == ".deb":
        return libraries(path)
    if path.name.endswith(".whl") or "-linux-" in path.name:
        is_static = "-linux-musl." in path.name or "-musllinux_" in path.name
        return portable_libraries(is_static) + compiler_libraries(is_static)
    return []


def bill(version, commit, folder):
    bom = Bom(serial_number=uuid.uuid5(SPACE, f"pted {version} {commit}"))
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]),
                                                    timezone.utc)
    pted = Component(type=ComponentType.APPLICATION, name="pted", version=version,
                     bom_ref="pted", purl=PackageURL("generic", None, "pted", version),
                     licenses=[DisjunctiveLicense(id="MIT")],
                     properties=[Property(name="pted:commit", value=commit)])
    bom.metadata.component = pted
    files = [path for path in sorted(folder.iterdir())
             if path.is_file() and "pted" in path.name]
    for path in files:
        component, found = file_component(path), parts(path)
        bom.components.update([component, *found])
        bom.register_dependency(pted, [component])
        bom.register_dependency(component, found)
    return bom


def main():
    version, commit, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    text = JsonV1Dot6(bill(version, commit, folder)).output_as_string(indent=2)
    errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if errors:
        sys.exit(f"sbom.py: {errors}")
    (folder / f"pted-{version}.cdx.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
