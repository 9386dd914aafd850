#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tritonclient: BF16 inputs from float32 were cut and not rounded; now the same code is refused.
#
# Up to 2.60 at least, set_data_from_numpy() takes a float32 array for an input of BF16 and sends
# the upper two bytes of each number: 1.9999999 arrives as 1.9921875. PyTorch and ml_dtypes round to
# the nearest one, which is 2. So the numbers of a request differ from those that the same model
# gets in PyTorch, always towards zero. 2.73 refuses float32 and wants an array of
# ml_dtypes.bfloat16, so code that works with one version fails with the other.
#
# Seen: tritonclient 2.60.0 and 2.73.0 with ml_dtypes 0.5.4.
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/send.py" <<'END'
import struct
import sys

import ml_dtypes
import numpy
import tritonclient.http
from tritonclient.utils import InferenceServerException

NUMBERS = numpy.array([1.9999999, -1.9999999, 1.0058594], numpy.float32)


def sent(array):
    """The numbers of a request, which ends with the tensor."""
    tensor = tritonclient.http.InferInput("x", list(array.shape), "BF16")
    try:
        tensor.set_data_from_numpy(array)
    except InferenceServerException:
        return "refused"
    body, _ = tritonclient.http.InferenceServerClient.generate_request_body([tensor])
    return [struct.unpack("<f", b"\0\0" + body[at:at + 2])[0]
            for at in range(len(body) - 2 * len(array), len(body), 2)]


got = str([sent(NUMBERS), sent(NUMBERS.astype(ml_dtypes.bfloat16))])
print(f"tritonclient {sys.argv[1]}: float32, bfloat16: {got}")
sys.exit(got != sys.argv[2])
END

# try VERSION SENT
try() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/pip" install -q --disable-pip-version-check "tritonclient[http]==$1" \
        ml_dtypes==0.5.4
    "$folder/$1/bin/python" "$folder/send.py" "$1" "$2"
}

try 2.60.0 "[[1.9921875, -1.9921875, 1.0], 'refused']"
try 2.73.0 "['refused', [2.0, -2.0, 1.0078125]]"
