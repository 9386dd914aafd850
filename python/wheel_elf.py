# SPDX-License-Identifier: MIT
"""Can the machines that a tag of a wheel stands for start a program? What is read is ELF, with 64
bits, little-endian: tool interface standard, and the processor supplements for the machines."""
import re
import struct

MACHINES = {"x86_64": 62, "aarch64": 183}
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED, DT_STRTAB = 1, 5
# Of PEP 600: those that every distribution with the glibc of a tag has.
LIBRARIES = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|ld-linux-(x86-64|aarch64))"
                       r"\.so\.")


class Refused(Exception):
    """The program does not fit the tag; the text is for people."""


def segments(data):
    """(type, offset, address, size) of each."""
    offset, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, at, address, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        yield kind, at, address, length


def needed(data):
    """Names of the libraries that the program cannot start without."""
    parts = list(segments(data))
    rows = []
    for kind, at, _, length in parts:
        if kind == PT_DYNAMIC:
            rows += struct.iter_unpack("<QQ", data[at:at + length])
    table = next((value for tag, value in rows if tag == DT_STRTAB), None)
    names = []
    for tag, value in rows:
        if tag == DT_NEEDED:
            where = table + value
            at = next(at + where - address for kind, at, address, length in parts
                      if kind == PT_LOAD and address <= where < address + length)
            names.append(data[at:data.index(b"\0", at)].decode())
    return names


def check(path, data, tag):
    """Raises Refused if the program |data| of |path| does not fit |tag|, such as
    manylinux_2_28_x86_64."""
    if data[:6] != b"\x7fELF\2\1":
        raise Refused(f"{path}: expected an ELF file of 64 bits")
    machine, = struct.unpack_from("<H", data, 18)
    name = next((name for name in MACHINES if tag.endswith(name)), None)
    if name and machine != MACHINES[name]:
        raise Refused(f"{path}: expected machine {MACHINES[name]} of {name}, got {machine}")
    if tag.startswith("musllinux") and any(kind == PT_INTERP for kind, *_ in segments(data)):
        raise Refused(f"{path}: expected a static program for {tag}, got one with an interpreter")
    limit = re.match(r"manylinux_2_(\d+)_", tag)
    if limit:
        others = [library for library in needed(data) if not LIBRARIES.match(library)]
        if others:
            raise Refused(f"{path}: needs {', '.join(others)}, which {tag} does not promise")
        newest = max((int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", data)), default=0)
        if newest > int(limit[1]):
            raise Refused(f"{path}: needs glibc 2.{newest}, expected 2.{limit[1]} or older")
