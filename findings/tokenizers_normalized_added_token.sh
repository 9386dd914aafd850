#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tokenizers: decoding gives other text for added tokens since 0.23.1.
#
# An added token with normalized=True, the default of add_tokens(), is searched in the normalised
# text. Up to 0.22 id_to_token() and decode() return it as it was added; since 0.23.1 they return
# its normalised form. With a normalizer that lowercases, "SPDX" comes back as "spdx", so the text
# and the list of token names depend on the version of the library. A token with normalized=False
# stays as it is in both.
#
# Seen: tokenizers 0.22.2: "hello SPDX MIT"; 0.23.3: "hello spdx MIT".
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/decode.py" <<'END'
import sys

import tokenizers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

tokenizer = Tokenizer(models.WordLevel({"hello": 0, "[UNK]": 1}, unk_token="[UNK]"))
tokenizer.normalizer = normalizers.Lowercase()
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.add_tokens([AddedToken("SPDX", normalized=True), AddedToken("MIT", normalized=False)])
ids = tokenizer.encode("hello SPDX MIT").ids
text, name = tokenizer.decode(ids), tokenizer.id_to_token(2)
print(f"tokenizers {tokenizers.__version__}: ids {ids}, text {text!r}, token 2 {name!r}")
sys.exit(ids != [0, 2, 3] or text != f"hello {sys.argv[1]} MIT" or name != sys.argv[1])
END

# try VERSION TOKEN
try() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/pip" install -q --disable-pip-version-check "tokenizers==$1"
    "$folder/$1/bin/python" "$folder/decode.py" "$2"
}

try 0.22.2 SPDX
try 0.23.1 spdx
try 0.23.3 spdx
