# SPDX-License-Identifier: MIT
"""Exports a model of PyTorch for pted, together with its card, in one call.

`python -m pted_server.export FOLDER_OR_ID` takes a whole model of transformers, timm, torchvision
or Ultralytics.

    from pted_server.export import export

    export(net, (torch.rand(1, 3, 224, 224),), "mobilenet.pte",
           dynamic_shapes=({0: torch.export.Dim("batch", max=16)},),
           outputs=["scores"], labels=open("labels.txt").read().splitlines(),
           description="1000 classes of ImageNet", shapes=[{"x": (8, 3, 224, 224)}])

writes mobilenet.pte and mobilenet.card.json. Positional arguments of forward() get their names in
the card; those of keyword arguments and of dictionaries are in the program already. Clients then
say "x" in place of "input_0", and get "tabby" in place of 281.

Entries of inputs= and outputs= are names, or what else the card can say (cards.md of pted's docs/):
inputs={"x": {"image": {...}}} says that clients may send pictures, outputs={"logits": {"steps":
["softmax"], "answer": {"classes": 3}}} what they get. Other members of the card are given like
max_batch=8. weights=MobileNet_V3_Small_Weights.DEFAULT does so for a classifier
of torchvision, with its labels and a softmax. export_encoder(), export_chat() and export_speech()
take models of transformers.

The packages that it needs come with pip's extra: pted-server[export]. Other versions are refused at
once, when the first of these functions is imported; the package itself needs none of them.
`pte card --check CARD FILE` compares a card with its program.
"""
from typing import Any

__all__ = ["export", "export_chat", "export_encoder", "export_speech", "record"]


def __getattr__(name: str) -> Any:
    """The functions come with PyTorch, so they come when they are wanted."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import exporter
    return getattr(exporter, name)
