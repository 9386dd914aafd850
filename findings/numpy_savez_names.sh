#!/bin/sh
# SPDX-License-Identifier: MIT
#
# NumPy: savez() loses an array that is called allow_pickle, and cannot write one called file.
#
# savez(path, **arrays) is the usual way to write tensors under the names of a model's modules. Two
# names are parameters of the function: the array "allow_pickle" is taken for the switch and is not
# in the archive, without an error, and "file" is a TypeError. The format has no such restriction:
# an archive that zipfile writes has both, and load() reads them.
#
# Seen: numpy 2.4.6.
# Needs: python3.11 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/save.py" <<'END'
import io
import sys
import zipfile

import numpy


def saved(name):
    out = io.BytesIO()
    try:
        numpy.savez(out, **{name: numpy.arange(1)})
    except TypeError:
        return "TypeError"
    out.seek(0)
    return numpy.load(out).files


def zipped(names):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            with archive.open(name + ".npy", "w") as member:
                numpy.lib.format.write_array(member, numpy.arange(3))
    out.seek(0)
    return numpy.load(out).files


names = ["weight", "allow_pickle", "file"]
got = {name: saved(name) for name in names}
print(f"numpy {numpy.__version__}: savez() writes {got}; zipfile writes {zipped(names)}")
sys.exit(got != {"weight": ["weight"], "allow_pickle": [], "file": "TypeError"} or
         zipped(names) != names)
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check numpy==2.4.6
"$folder/venv/bin/python" "$folder/save.py"
