import torch
from pted_export import export
from words import LABELS, train_spotter

net = train_spotter()
export(net, (torch.rand(1, 4000),), "spotter.pte", labels=LABELS,
       inputs=[{"name": "sound", "sound": {"rate": 8000}}],
       outputs=[{"name": "scores", "steps": ["softmax"], "answer": {"classes": 2}}])
