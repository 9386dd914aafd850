# SPDX-License-Identifier: MIT
"""pted for Python: the programs pted and pte, and an exporter of PyTorch's models.

pip puts both programs on PATH; `python -m pted_server FILE.pte` serves, too. pted_server.export
makes a program that pted serves of a model.
"""
from .programs import find_program

__all__ = ["find_program"]
