#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sounds that stand for words, and a small network that learns to spot them in seconds.

The pages of docs/tutorials/recipes use it in place of recordings and a network of your own. A word
is a tone that rises, falls, stays or trembles.

    python3 words.py yes stop >words.wav            # needs no packages

Making sounds needs the standard library alone; train_spotter() needs torch.
"""
import io
import math
import random
import sys
import wave

LABELS = ["yes", "no", "stop", "go"]
RATE = 8000
WORD_S, PAUSE_S = 0.3, 0.1


def pitch(label, base, t):
    """Hertz at the time |t|, which goes from 0 to 1."""
    return {"yes": base * (1 + t), "no": base * (2 - t), "stop": base,
            "go": base * (1.4 + 0.4 * math.sin(18 * t))}[label]


def word(label, base=400, rate=RATE):
    """Samples from -1 to 1."""
    count, angle, out = int(WORD_S * rate), 0.0, []
    for i in range(count):
        angle += 2 * math.pi * pitch(label, base, i / count) / rate
        edge = min(1.0, 20 * i / count, 20 * (count - i) / count)
        out.append(0.6 * edge * math.sin(angle))
    return out


def phrase(labels, rate=RATE):
    """Words with pauses between them, and around all."""
    out = [0.0] * int(PAUSE_S * rate)
    for label in labels:
        out += word(label, rate=rate) + [0.0] * int(PAUSE_S * rate)
    return out


def wav(samples, rate=RATE):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        file.writeframes(b"".join(round(32767 * s).to_bytes(2, "little", signed=True)
                                  for s in samples))
    return out.getvalue()


def train_spotter():
    """[n, 4000], half a second at 8 kHz, to [n, 4]: logits of LABELS."""
    import torch
    from torch import nn
    torch.manual_seed(5)
    torch.set_num_threads(1)  # faster for a network as small as this
    rng = random.Random(5)
    sounds, targets = torch.zeros(400, RATE // 2), torch.randint(0, len(LABELS), (400,))
    for row, target in zip(sounds, targets):
        said = torch.tensor(word(LABELS[target], rng.uniform(300, 600)))
        at = rng.randrange(len(row) - len(said))
        row[at:at + len(said)] = said * rng.uniform(0.3, 1.2)

    class Spotter(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(1, 32, 64, stride=16), nn.BatchNorm1d(32), nn.ReLU(),
                nn.Conv1d(32, 32, 5, stride=2), nn.BatchNorm1d(32), nn.ReLU(),
                nn.Conv1d(32, 32, 9, stride=2), nn.BatchNorm1d(32), nn.ReLU(),
                nn.Conv1d(32, 32, 9, stride=2), nn.BatchNorm1d(32), nn.ReLU(),
                nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, len(LABELS)))

        def forward(self, sound):
            return self.layers(sound.unsqueeze(1))

    net = Spotter()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    for _ in range(15):
        for batch in torch.randperm(len(sounds)).split(32):
            optimizer.zero_grad()
            given = sounds[batch] + 0.02 * torch.randn(len(batch), RATE // 2)
            nn.functional.cross_entropy(net(given), targets[batch]).backward()
            optimizer.step()
    return net.eval()


def main():
    labels = sys.argv[1:]
    if not labels or not set(labels) <= set(LABELS):
        sys.exit(f"usage: words.py WORD... >FILE.wav, each of {', '.join(LABELS)}")
    sys.stdout.buffer.write(wav(phrase(labels)))


if __name__ == "__main__":
    main()
