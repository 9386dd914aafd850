#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sentencepiece: the same Unigram model and text give other ids since 0.2.2.
#
# A user-defined piece has no score of its own: the library computes one. Up to 0.2.1 it is the
# largest score of the model for each byte, less 0.1, but at least -0.1 where all scores are
# negative. Since 0.2.2 it is 0.1 for each byte but the first. So a piece of two blanks (6 bytes)
# has -0.1 before and 0.5 now, and "foo  bar" is cut in another place, while the file is the same
# and neither version says so. Who keeps ids (a cache of prompts, an index, a test of a model) gets
# others by updating the library within one minor version.
#
# Seen: sentencepiece 0.2.1: foo, __bar; 0.2.3: foo, __, bar (_ is U+2581).
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/encode.py" <<'END'
import struct
import sys

import sentencepiece

NORMAL, UNKNOWN, USER_DEFINED = 1, 2, 4  # ModelProto.SentencePiece.Type


def field(number, kind, payload):
    return bytes([number << 3 | kind]) + payload


def message(number, payload):
    return field(number, 2, bytes([len(payload)]) + payload)


def piece(text, score, kind):
    return message(1, message(1, text.encode()) + field(2, 5, struct.pack("<f", score)) +
                   field(3, 0, bytes([kind])))


BLANK = "\u2581"
model = b"".join((piece("<unk>", 0, UNKNOWN), piece("foo", -1, NORMAL), piece("bar", -2, NORMAL),
                  piece(BLANK * 2 + "bar", -1.8, NORMAL), piece(BLANK, -3, NORMAL),
                  piece(BLANK * 2, -9, USER_DEFINED)))
model += message(2, field(3, 0, b"\1"))  # trainer_spec.model_type: UNIGRAM
model += message(3, message(1, b"identity") + field(3, 0, b"\0") + field(4, 0, b"\0") +
                 field(5, 0, b"\1"))  # blanks stay, as U+2581
processor = sentencepiece.SentencePieceProcessor(model_proto=model)
pieces = processor.encode("foo  bar", out_type=str)
print(f"sentencepiece {sentencepiece.__version__}: {pieces}")
sys.exit(pieces != sys.argv[1].replace("_", BLANK).split(","))
END

# try VERSION PIECES
try() {
    python3 -m venv "$folder/$1"
    "$folder/$1/bin/pip" install -q --disable-pip-version-check "sentencepiece==$1"
    "$folder/$1/bin/python" "$folder/encode.py" "$2"
}

try 0.2.1 foo,__bar
try 0.2.2 foo,__,bar
try 0.2.3 foo,__,bar
