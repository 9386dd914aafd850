#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pictures of circles, squares and triangles, and small networks that learn them in seconds.

The pages of docs/tutorials/recipes use it in place of pictures and networks of your own.

    python3 shapes.py circle square >scene.png      # needs no packages

Drawing needs the standard library alone; the functions that train need torch.
"""
import random
import struct
import sys
import zlib

LABELS = ["circle", "square", "triangle"]
SIDE = 64
CELL = 8


def covers(label, x, y):
    """Is the point inside? The shape reaches from -1 to 1."""
    if label == "circle":
        return x * x + y * y <= 1
    return label == "square" or abs(x) <= (y + 1) / 2


class Scene:
    """Shapes that do not overlap, each in a colour of its own.

    pixels: bytes of RGB, row by row. classes: a byte for each pixel, 0 where there is no shape,
    or the index of its label + 1. boxes: (index of the label, left, top, right, bottom).
    """

    def __init__(self, rng, labels, side=SIDE):
        self.side = side
        dark = rng.random() < 0.5
        paper = [rng.randrange(70) + (0 if dark else 186) for _ in range(3)]
        self.pixels, self.classes = bytearray(paper * side * side), bytearray(side * side)
        self.boxes = []
        for label in labels:
            self.add(rng, label, [rng.randrange(90) + (166 if dark else 0) for _ in range(3)])

    def place(self, rng):
        for _ in range(200):
            size = rng.randrange(self.side // 4, self.side * 2 // 5)
            left, top = rng.randrange(self.side - size), rng.randrange(self.side - size)
            if all(left >= b[3] or top >= b[4] or left + size <= b[1] or top + size <= b[2]
                   for b in self.boxes):
                return left, top, size
        raise ValueError("there is no room for so many shapes")

    def add(self, rng, label, ink):
        left, top, size = self.place(rng)
        for y in range(size):
            for x in range(size):
                if covers(label, (2 * x + 1) / size - 1, (2 * y + 1) / size - 1):
                    at = (top + y) * self.side + left + x
                    self.pixels[3 * at:3 * at + 3] = bytes(ink)
                    self.classes[at] = LABELS.index(label) + 1
        self.boxes.append((LABELS.index(label), left, top, left + size, top + size))

    def png(self):
        def chunk(kind, data):
            return (struct.pack(">I", len(data)) + kind + data +
                    struct.pack(">I", zlib.crc32(kind + data)))

        row = 3 * self.side
        rows = b"".join(b"\0" + self.pixels[i:i + row] for i in range(0, len(self.pixels), row))
        return (b"\x89PNG\r\n\x1a\n" +
                chunk(b"IHDR", struct.pack(">IIBBBBB", self.side, self.side, 8, 2, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


# ---------------------------------------------------------------- networks

def bytes_of(parts):
    import torch
    return torch.frombuffer(bytearray(b"".join(parts)), dtype=torch.uint8)


def scenes(count, most):
    """|count| scenes with 1 to |most| shapes, and their pictures as a tensor of 0 to 1."""
    import torch
    torch.manual_seed(3)
    torch.set_num_threads(1)  # faster for networks as small as these
    rng = random.Random(3)
    out = [Scene(rng, [rng.choice(LABELS) for _ in range(rng.randint(1, most))])
           for _ in range(count)]
    pixels = bytes_of(scene.pixels for scene in out).float() / 255
    return out, pixels.view(count, SIDE, SIDE, 3).permute(0, 3, 1, 2).contiguous()


def train(net, pictures, targets, loss_of, epochs, rate=0.01):
    import torch
    steps = epochs * -(-len(pictures) // 32)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(pictures)).split(32):
            given = pictures[batch] + 0.03 * torch.randn_like(pictures[batch])
            optimizer.zero_grad()
            loss = loss_of(net(given), targets[batch])
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def block(inputs, outputs, stride):
    from torch import nn
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
                         nn.BatchNorm2d(outputs), nn.ReLU())


def train_classifier():
    """[n, 3, 32, 32] to [n, 3]: logits of LABELS."""
    import torch
    from torch import nn
    drawn, pictures = scenes(600, 1)
    pictures = nn.functional.interpolate(pictures, (32, 32), mode="bilinear", antialias=True)
    labels = torch.tensor([scene.boxes[0][0] for scene in drawn])
    net = nn.Sequential(block(3, 12, 2), block(12, 24, 2), block(24, 32, 1),
                        nn.MaxPool2d(8), nn.Flatten(), nn.Linear(32, 3))
    return train(net, pictures, labels, nn.functional.cross_entropy, 10)


def train_detector():
    """[n, 3, 64, 64] to [n, 64, 7]: for each cell of 8x8 pixels a box (centre and size, in pixels)
    and the scores of LABELS, from 0 to 1."""
    import torch
    from torch import nn

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(block(3, 12, 2), block(12, 24, 2), block(24, 32, 2),
                                        block(32, 32, 1), nn.Conv2d(32, 4 + len(LABELS), 1))
            at = torch.arange(SIDE // CELL) * float(CELL) + CELL / 2
            self.register_buffer("centres", torch.stack(
                (at.repeat(SIDE // CELL), at.repeat_interleave(SIDE // CELL)), 1))

        def forward(self, image):
            cells = self.layers(image).flatten(2).transpose(1, 2)
            centres = self.centres + CELL * cells[..., :2]
            return torch.cat((centres, SIDE * cells[..., 2:4].sigmoid(),
                              cells[..., 4:].sigmoid()), -1)

    def target_of(scene):
        out = torch.zeros((SIDE // CELL) ** 2, 4 + len(LABELS))
        for label, left, top, right, bottom in scene.boxes:
            x, y = (left + right) / 2, (top + bottom) / 2
            row = out[int(y // CELL) * (SIDE // CELL) + int(x // CELL)]
            row[:4] = torch.tensor([x, y, right - left, bottom - top])
            row[4 + label] = 1
        return out

    def loss_of(got, wanted):
        has_shape = wanted[..., 4:].sum(-1) > 0
        sides = (got[..., :4] - wanted[..., :4])[has_shape].abs().mean()
        scores = nn.functional.binary_cross_entropy(got[..., 4:], wanted[..., 4:])
        return sides / 8 + 20 * scores

    drawn, pictures = scenes(1000, 3)
    return train(Detector(), pictures, torch.stack([target_of(scene) for scene in drawn]),
                 loss_of, 14)


def train_segmenter():
    """[n, 3, 64, 64] to [n, 4, 64, 64]: logits of no shape and of LABELS, for each pixel."""
    import torch
    from torch import nn

    class Segmenter(nn.Module):
        def __init__(self):
            super().__init__()
            self.fine = nn.Sequential(block(3, 12, 2), block(12, 12, 1))
            self.coarse = nn.Sequential(block(12, 24, 2), block(24, 32, 2), block(32, 32, 1))
            self.middle = block(44, 24, 1)
            self.last = nn.Conv2d(24, 1 + len(LABELS), 1)

        def forward(self, image):
            fine = self.fine(image)
            deep = nn.functional.interpolate(self.coarse(fine), scale_factor=4.0)
            classes = self.last(self.middle(torch.cat((fine, deep), 1)))
            return nn.functional.interpolate(classes, scale_factor=2.0)

    drawn, pictures = scenes(600, 3)
    classes = bytes_of(scene.classes for scene in drawn).long().view(-1, SIDE, SIDE)
    return train(Segmenter(), pictures, classes, nn.functional.cross_entropy, 12)


def main():
    labels = sys.argv[1:]
    if not labels or not set(labels) <= set(LABELS):
        sys.exit(f"usage: shapes.py SHAPE... >FILE.png, each of {', '.join(LABELS)}")
    sys.stdout.buffer.write(Scene(random.Random(" ".join(labels)), labels).png())


if __name__ == "__main__":
    main()
