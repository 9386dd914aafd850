#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A WAV file whose data chunk has the size 0 is all sound for one reader and empty for the next.
#
# A program that writes a WAV to a pipe cannot go back to fill in the size. Some leave 0, others
# 0xffffffff. FFmpeg takes both for "up to the end of the file". libsndfile, SciPy and Python's wave
# take 0 as it stands and return no sample, with no error and no warning, so a recording is lost
# without a word. With 0xffffffff libsndfile and SciPy read all, and wave says that the file has
# 2147483647 frames.
#
# Seen: FFmpeg 8.1.2 (av 18.1.0), libsndfile 1.2.2 (soundfile 0.13.1), SciPy 1.17.1 and the wave
# module of Python 3.11, with 800 samples of 16 bits.
# Needs: python3.11 with venv, pip with PyPI. Exit status 0: still so; 1: it has changed.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/read.py" <<'END'
import io
import struct
import sys
import warnings
import wave

import av
import scipy.io.wavfile
import soundfile

SAMPLES = 800


def wav(size):
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 16000, 2, 16)
    return (struct.pack("<4sI4s", b"RIFF", size if size else 36, b"WAVE") + form +
            struct.pack("<4sI", b"data", size) + struct.pack(f"<{SAMPLES}h", *range(SAMPLES)))


def ffmpeg(data):
    with av.open(io.BytesIO(data)) as container:
        return sum(frame.samples for frame in container.decode(audio=0))


READERS = {"FFmpeg": ffmpeg, "libsndfile": lambda data: len(soundfile.read(io.BytesIO(data))[0]),
           "SciPy": lambda data: len(scipy.io.wavfile.read(io.BytesIO(data))[1]),
           "wave": lambda data: wave.open(io.BytesIO(data)).getnframes()}
EXPECTED = {0: (SAMPLES, 0, 0, 0), 0xffffffff: (SAMPLES, SAMPLES, SAMPLES, 2147483647)}
warnings.simplefilter("ignore", scipy.io.wavfile.WavFileWarning)
differs = False
for size, expected in EXPECTED.items():
    got = tuple(read(wav(size)) for read in READERS.values())
    print(f"size {size:#x}: {dict(zip(READERS, got))}")
    differs |= got != expected
sys.exit(differs)
END

python3.11 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --only-binary :all: av==18.1.0 \
    soundfile==0.13.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" "$folder/read.py"
