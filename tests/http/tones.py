# SPDX-License-Identifier: MIT
"""Sounds that tests/models/whisper understands: each word is a tone.

A voice is English (sines) or German (with an overtone). contrib/export/whisper.py trains the model
with these sounds, and the tests send them.
"""
import math
import struct

RATE = 16000
WORDS = {"en": ["red", "green", "blue", "white"], "de": ["rot", "grün", "blau", "weiß"]}
PITCHES = [310.0, 560.0, 980.0, 1730.0]
TONE_S, PAUSE_S = 0.24, 0.06


def tone(language, word, rate=RATE):
    """Samples from -1 to 1."""
    pitch, count = PITCHES[word], int(TONE_S * rate)
    out = []
    for i in range(count):
        t = 2 * math.pi * pitch * i / rate
        wave = math.sin(t)
        if language == "de":
            wave = 0.5 * wave + 0.5 * math.sin(3 * t + 0.4)
        out.append(0.6 * wave * min(1.0, i / 160, (count - i) / 160))
    return out


def phrase(language, words, rate=RATE):
    """One after the other, with short pauses."""
    out = []
    for i, word in enumerate(words):
        out += ([0.0] * int(PAUSE_S * rate) if i else []) + tone(language, word, rate)
    return out


def silence(seconds, rate=RATE):
    return [0.0] * int(seconds * rate)


def text_of(language, words):
    return " ".join(WORDS[language][word] for word in words)


def wav(samples, rate=RATE, channels=1):
    """A WAV file of 16 bits; |samples| are those of all channels in turn."""
    data = struct.pack(f"<{len(samples)}h", *(round(32767 * s) for s in samples))
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1,
                       channels, rate, 2 * channels * rate, 2 * channels, 16, b"data", len(data))
    return head + data
