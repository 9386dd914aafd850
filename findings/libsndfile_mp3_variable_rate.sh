#!/bin/sh
# SPDX-License-Identifier: MIT
#
# libsndfile: an MP3 of variable rate that does not say its length ends early, without an error.
#
# An MP3 may begin with a frame that says how many frames follow ("Xing"); streams and cut files have
# none. libsndfile then takes the number of samples that libmpg123 estimates from the size of the
# file and of its first frames, and reads no further. A file that begins loud and goes on quietly
# loses most of its samples; the number of frames that libsndfile reports is the number it returns,
# so nothing tells. Expected: all samples, as libmpg123 itself reads the file to its end.
#
# Seen: libsndfile 1.2.2 (soundfile 0.14.0), and a file of lameenc 1.9.0: noise of 0.5 s and silence
# of 2.5 s at 44100 Hz.
# Needs: python3 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/read.py" <<'END'
import io
import random
import sys

import lameenc
import soundfile

RATE = 44100
random.seed(1)
samples = [random.randint(-9000, 9000) for _ in range(RATE // 2)] + [0] * (RATE * 5 // 2)
encoder = lameenc.Encoder()
encoder.silence()
encoder.set_in_sample_rate(RATE)
encoder.set_channels(1)
encoder.set_vbr(4)
encoder.set_vbr_quality(4)
data = encoder.encode(b"".join(s.to_bytes(2, "little", signed=True) for s in samples))
data += encoder.flush()
with soundfile.SoundFile(io.BytesIO(data)) as file:
    said, rate, got = file.frames, file.samplerate, len(file.read())
print(f"libsndfile {soundfile.__libsndfile_version__}: of {len(samples) / RATE:.2f} s it says "
      f"{said / rate:.2f} and returns {got / rate:.2f}")
sys.exit(not got / rate < 0.5 * len(samples) / RATE)
END
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install soundfile==0.14.0 lameenc==1.9.0
"$folder/venv/bin/python" "$folder/read.py"
