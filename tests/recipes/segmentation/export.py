import torch
from pted_export import export
from shapes import LABELS, train_segmenter

net = train_segmenter()
export(net, (torch.rand(1, 3, 64, 64),), "segmenter.pte",
       inputs=[{"name": "image", "image": {"resize": [64, 64]}}],
       outputs=[{"name": "map", "labels": ["paper", *LABELS], "answer": "map"}])
