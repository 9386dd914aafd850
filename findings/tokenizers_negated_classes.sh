#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tokenizers: the negation of an empty class in a class matches ASCII only.
#
# Patterns of tokenizer.json run in Oniguruma. [^\D\d] holds nothing, so [^[^\D\d]] is expected to
# match any character. It matches those of ASCII and no others. [^[^\w\W]], which says the same,
# matches all.
#
# Seen: tokenizers 0.22.2 and 0.23.1: of "a1é中" [^[^\D\d]] leaves "é中".
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/classes.py" <<'END'
import sys

import tokenizers
from tokenizers import Regex, normalizers


def left(pattern):
    return normalizers.Replace(Regex(pattern), "").normalize_str("a1\u00e9\u4e2d")


digits, words = left(r"[^[^\D\d]]"), left(r"[^[^\w\W]]")
print(f"tokenizers {tokenizers.__version__}: [^[^\\D\\d]] leaves {digits!r}, "
      f"[^[^\\w\\W]] leaves {words!r}")
sys.exit(digits != "\u00e9\u4e2d" or words != "")
END

for version in 0.22.2 0.23.1; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q --disable-pip-version-check "tokenizers==$version"
    "$folder/$version/bin/python" "$folder/classes.py"
done
