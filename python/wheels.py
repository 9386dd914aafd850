#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds wheels of pted-server, by the standard library alone.

    python3 python/wheels.py                     # one for each target in build/portable
    python3 python/wheels.py --programs build    # one for this machine, with pted and pte of build
    pip install ./python                         # that one; if build has no programs, without them

A wheel has the Python files of pted_server, and the programs as scripts, so that pip puts them on
PATH as they are. The same files give the same bytes; SOURCE_DATE_EPOCH sets the time of entries.
pip calls the functions below that PEP 517 and PEP 660 name.
"""
import argparse
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

import wheel_elf
from pted_server.export.card import PACKAGES

HERE = Path(__file__).resolve().parent
# An archive of this folder alone has PKG-INFO; what lies beside it there is somebody else's.
SOURCE = HERE if (HERE / "PKG-INFO").exists() else HERE.parent
PORTABLE = SOURCE / "build" / "portable"
PROGRAMS = ("pted", "pte")
# Of the targets of contrib/portable.sh.
TAGS = {"x86_64-linux-gnu": "manylinux_2_28_x86_64", "aarch64-linux-gnu": "manylinux_2_28_aarch64",
        "x86_64-linux-musl": "musllinux_1_2_x86_64", "aarch64-linux-musl": "musllinux_1_2_aarch64"}
EPOCH = 315532800  # 1980, the first year of zip
METADATA = """\
Metadata-Version: 2.4
Name: pted-server
Version: {version}
Summary: Serves models of PyTorch as .pte files over HTTP; with a client and an exporter
License: MIT
{licences}
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy>=1.21
Provides-Extra: export
{extra}
Description-Content-Type: text/markdown

{readme}"""
WHEEL = """\
Wheel-Version: 1.0
Generator: pted
Root-Is-Purelib: {is_pure}
Tag: py3-none-{tag}
"""


# ---------------------------------------------------------------- what is in a wheel

def version():
    """Of pted, as pip spells it: 1.2.0-rc.1 is 1.2.0rc1."""
    configure = SOURCE / "configure.ac"
    if configure.exists():
        text, pattern = configure.read_text(), r"AC_INIT\(\[pted\],\s*\[([^]]+)\]"
    else:
        text, pattern = (HERE / "PKG-INFO").read_text(), r"\nVersion: (.*)"
    found = re.search(pattern, text)[1]
    return re.sub(r"-(a|b|rc)\w*?\.?(\d+)$", r"\1\2", found)


def metadata(folder=None):
    """Of a wheel with the programs of |folder|, or of an archive."""
    files = "\n".join(f"License-File: {name}" for name, _ in licences(folder))
    extra = "\n".join(f"Requires-Dist: {name}>={first},<{untried}; extra == 'export'"
                      for name, (first, untried) in PACKAGES.items())
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    return METADATA.format(version=version(), licences=files, extra=extra, readme=readme)


def licences(folder):
    """(name, path): of pted, and of what is linked into the programs of |folder|."""
    found = [("LICENSE", SOURCE / "LICENSE")]
    if folder and (folder / "THIRD_PARTY").exists():
        found.append(("THIRD_PARTY", folder / "THIRD_PARTY"))
    return found


def modules():
    """The files of pted_server, relative to this folder."""
    return sorted(path.relative_to(HERE) for path in (HERE / "pted_server").rglob("*")
                  if path.suffix == ".py" or path.name == "py.typed")


def stamp():
    """The time of all entries, in seconds."""
    return max(EPOCH, int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH)))


class Archive:
    """A zip file with a RECORD."""

    def __init__(self, path, info):
        self.time = time.gmtime(stamp())[:6]
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record = f"{info}/RECORD"
        self.rows = []

    def add(self, name, data, mode=0o644):
        entry = zipfile.ZipInfo(name, self.time)
        entry.create_system, entry.external_attr = 3, (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(data)}\n")

    def close(self):
        self.add(self.record, ("".join(self.rows) + f"{self.record},,\n").encode())
        self.zip.close()


def stripped(path):
    """The bytes of a program, without what only a debugger needs."""
    strip = shutil.which("strip")
    if strip is None:
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([strip, "-o", Path(folder) / "out", path], check=True)
        return (Path(folder) / "out").read_bytes()


def read_programs(folder, tag):
    """name: bytes; refuses programs that the machines of |tag| could not start."""
    programs = {}
    for name in PROGRAMS:
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: a wheel needs {' and '.join(PROGRAMS)}")
        wheel_elf.check(path, path.read_bytes(), tag)
        programs[name] = path.read_bytes() if tag in TAGS.values() else stripped(path)
    return programs


def write_wheel(out, tag, programs, folder=None, is_editable=False):
    """Returns the name of the wheel. |programs|: by name, {} for none; they come from |folder|."""
    stem = f"pted_server-{version()}"
    info = f"{stem}.dist-info"
    name = f"{stem}-py3-none-{tag}.whl"
    archive = Archive(Path(out) / name, info)
    if is_editable:
        archive.add("pted_server.pth", f"{HERE}\n".encode())
    else:
        for path in modules():
            archive.add(str(path), (HERE / path).read_bytes())
    for program, data in programs.items():
        archive.add(f"{stem}.data/scripts/{program}", data, 0o755)
    for licence, path in licences(folder):
        archive.add(f"{info}/licenses/{licence}", path.read_bytes())
    archive.add(f"{info}/METADATA", metadata(folder).encode())
    is_pure = "false" if programs else "true"
    archive.add(f"{info}/WHEEL", WHEEL.format(is_pure=is_pure, tag=tag).encode())
    archive.close()
    return name


# ---------------------------------------------------------------- pip

def local_folder(settings):
    """Where programs for this machine are; None if nobody names them and nothing is built."""
    if settings and "programs" in settings:
        folder = Path(settings["programs"])
        if not folder.is_absolute():
            raise ValueError(f"programs={folder}: expected an absolute path: pip builds in another "
                             "folder than yours")
        return folder
    folder = SOURCE / "build"
    return folder if all((folder / name).is_file() for name in PROGRAMS) else None


def local_wheel(out, settings, is_editable):
    folder, programs, tag = local_folder(settings), {}, "any"
    if folder:
        tag = re.sub(r"\W", "_", sysconfig.get_platform())
        programs = read_programs(folder, tag)
    return write_wheel(out, tag, programs, folder, is_editable)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return local_wheel(wheel_directory, config_settings, is_editable=False)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return local_wheel(wheel_directory, config_settings, is_editable=True)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = f"pted_server-{version()}.dist-info"
    folder = Path(metadata_directory) / info
    folder.mkdir()
    text = metadata(local_folder(config_settings))
    (folder / "METADATA").write_text(text, encoding="utf-8")
    return info


def build_sdist(sdist_directory, config_settings=None):
    """The Python files. The programs are not among them: pted's own archive has their source."""
    stem = f"pted_server-{version()}"
    files = {path: (HERE / path).read_bytes() for path in
             (*modules(), *map(Path, ("README.md", "pyproject.toml", "wheel_elf.py", "wheels.py")))}
    files[Path("PKG-INFO")] = metadata().encode()
    files[Path("LICENSE")] = licences(None)[0][1].read_bytes()
    name = f"{stem}.tar.gz"
    with gzip.GzipFile(Path(sdist_directory) / name, "wb", mtime=stamp()) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{stem}/{path}")
            entry.size, entry.mtime = len(data), stamp()
            archive.addfile(entry, io.BytesIO(data))
    return name


# ---------------------------------------------------------------- the command

def portable_wheels(out, targets):
    for target in targets:
        if target not in TAGS:
            raise ValueError(f"{target}: expected one of {', '.join(TAGS)}")
    found = targets or [target for target in TAGS if (PORTABLE / target).is_dir()]
    if not found:
        raise FileNotFoundError(f"{PORTABLE}: no programs; contrib/portable.sh makes them")
    return [write_wheel(out, TAGS[target], read_programs(PORTABLE / target, TAGS[target]),
                        PORTABLE / target) for target in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=SOURCE / "build" / "wheels", metavar="DIR")
    parser.add_argument("--programs", type=Path, metavar="DIR",
                        help="pted and pte for this machine")
    parser.add_argument("target", nargs="*", help=", ".join(TAGS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        names = ([build_wheel(options.out, {"programs": options.programs.resolve()})]
                 if options.programs else portable_wheels(options.out, options.target))
    except (FileNotFoundError, ValueError, wheel_elf.Refused) as why:
        sys.exit(f"wheels.py: {why}")
    for name in names:
        path = options.out / name
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
