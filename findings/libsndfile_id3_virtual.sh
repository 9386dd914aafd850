#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libsndfile: behind an ID3v2 tag the same file has fewer samples in memory than on disk.
#
# libsndfile skips an ID3v2 tag in front of a WAV file. Opened by its path, the file has all of its
# samples. Opened by sf_open_virtual(), as for bytes in memory, it lacks as many bytes at its end as
# the tag has. There is no error; the number of frames is the only sign.
#
# Seen: libsndfile 1.2.2 (soundfile 0.13.1): 800 frames from the path; 790 from memory with a tag of
# 20 bytes, 300 with one of 1000 bytes.
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/read.py" <<'END'
import io
import struct
import sys

import soundfile

form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
wav = (struct.pack("<4sI4s", b"RIFF", 1636, b"WAVE") + form + struct.pack("<4sI", b"data", 1600) +
       struct.pack("<800h", *range(800)))
got = []
for size in (0, 20, 1000):
    body = size - 10
    tag = struct.pack("4s6B", b"ID3\4", 0, 0, 0, 0, body >> 7, body & 127) + bytes(body) \
        if size else b""
    path = sys.argv[1] + "/tagged.wav"
    with open(path, "wb") as file:
        file.write(tag + wav)
    got.append((len(soundfile.read(path)[0]), len(soundfile.read(io.BytesIO(tag + wav))[0])))
    print(f"libsndfile {soundfile.__libsndfile_version__}, a tag of {size} bytes: "
          f"{got[-1][0]} frames from the path, {got[-1][1]} from memory")
sys.exit(got != [(800, 800), (800, 790), (800, 300)])
END

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: \
    soundfile==0.13.1 numpy==2.4.6
"$folder/venv/bin/python" "$folder/read.py" "$folder"
