# SPDX-License-Identifier: MIT
"""The handwritten digits of scikit-learn: a fixed split, a small network and its training.

1,797 images of 8x8 pixels with values 0 to 16, collected by E. Alpaydin and C. Kaynak at Bogazici
University (UCI Machine Learning Repository, CC BY 4.0). The network takes pixels divided by 16.
"""
import torch
from sklearn.datasets import load_digits
from torch import nn

TEST_IMAGES = 360
EPOCHS = 30
BATCH = 64


def split():
    """(train images, train labels, test images, test labels); images are N x 1 x 8 x 8."""
    data = load_digits()
    pixels = torch.tensor(data.images, dtype=torch.uint8).reshape(-1, 1, 8, 8)
    labels = torch.tensor(data.target, dtype=torch.uint8)
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(1797))
    test, train = order[:TEST_IMAGES], order[TEST_IMAGES:]
    return pixels[train], labels[train], pixels[test], labels[test]


def network():
    def block(inputs, outputs):
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs),
                nn.ReLU()]
    return nn.Sequential(*block(1, 12), *block(12, 24), nn.MaxPool2d(2), *block(24, 32),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def train(net, images, labels):
    """Adam with a decaying step; deterministic under the caller's seed on one thread."""
    images, labels = images.float() / 16, labels.long()
    steps = EPOCHS * -(-len(images) // BATCH)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
            schedule.step()
    return net.eval()


@torch.no_grad()
def accuracy(net, images, labels):
    return (net(images.float() / 16).argmax(1) == labels).double().mean().item()


def write_images(folder):
    """The test images and their labels, one byte a value, as the accuracy test reads them."""
    _, _, images, labels = split()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "images.u8").write_bytes(images.numpy().tobytes())
    (folder / "labels.u8").write_bytes(labels.numpy().tobytes())
