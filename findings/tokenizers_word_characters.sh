#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tokenizers: \w matches a superscript two, but [\w] does not.
#
# Patterns of tokenizer.json run in Oniguruma, where \w outside of a class also holds six characters
# of Latin-1 that are neither letters nor decimal digits: superscripts and fractions. In a class it
# lacks them, and so does [[:word:]]. So \w+ and [\w]+ cut "m²" differently. Other engines have one
# set for both.
#
# Seen: tokenizers 0.22.2 and 0.23.1: \w has B2 B3 B9 BC BD BE more than [\w].
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/words.py" <<'END'
import sys

import tokenizers
from tokenizers import Regex, normalizers

text = "".join(chr(code) for code in range(0x21, 0x3000))


def matched(pattern):
    return set(text) - set(normalizers.Replace(Regex(pattern), "").normalize_str(text))


more, less = matched(r"\w") - matched(r"[\w]"), matched(r"[\w]") - matched(r"\w")
codes = " ".join("%X" % ord(char) for char in sorted(more))
print(f"tokenizers {tokenizers.__version__}: \\w has {codes} more than [\\w]")
sys.exit(codes != "B2 B3 B9 BC BD BE" or bool(less))
END

for version in 0.22.2 0.23.1; do
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" install -q --disable-pip-version-check "tokenizers==$version"
    "$folder/$version/bin/python" "$folder/words.py"
done
