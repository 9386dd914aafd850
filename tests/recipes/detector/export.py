import torch
from pted_export import export
from shapes import LABELS, train_detector

net = train_detector()
export(net, (torch.rand(1, 3, 64, 64),), "detector.pte",
       inputs=[{"name": "image", "image": {"resize": [64, 64], "fit": "inside"}}],
       outputs=[{"name": "found", "labels": LABELS, "answer": {"boxes": {"score": 0.4}}}])
