# SPDX-License-Identifier: MIT
"""pted for Python: the programs pted and pte, a client, and an exporter of PyTorch's models.

    from pted_server import Client

    with Client("http://127.0.0.1:8000") as client:
        total = client.call("add", (numpy.ones((2, 3), "f4"), numpy.ones((2, 3), "f4")))

pip puts both programs on PATH; `python -m pted_server FILE.pte` serves, too. pted_server.export
makes a program that pted serves of a model.
"""
from typing import TYPE_CHECKING, Any

from .programs import find_program

if TYPE_CHECKING:
    from .client import CallSequence, Client
    from .transport import ServerError

__all__ = ["CallSequence", "Client", "ServerError", "find_program"]


def __getattr__(name: str) -> Any:
    """numpy comes with the client, when that is wanted."""
    if name in ("CallSequence", "Client"):
        from . import client
        return getattr(client, name)
    if name == "ServerError":
        from .transport import ServerError
        return ServerError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
