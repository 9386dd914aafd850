# SPDX-License-Identifier: MIT
"""Compares what an exported program computes with PyTorch, for `python -m pted_server.export`.

`pte run` computes it, if there is one. Else ExecuTorch's own runtime does, which knows
nothing of cards.
"""
from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..programs import find_program

RUN_S = 600


@dataclass
class Check:
    """A call of a program. |inputs|: arrays, in the order of the program; or |draw|: writes a
    picture, of which the card makes the input. |results|: arrays by the names of the program's
    results, in their order. |limit|: by how much of the largest number they may differ."""

    method: str
    results: dict
    inputs: list = ()
    draw: Callable[[Path], object] | None = None
    limit: float = 1e-3


class Differs(Exception):
    """The program computes something else than PyTorch."""


def find_pte():
    try:
        return find_program("pte")
    except FileNotFoundError:
        return None


def ask_pte(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=RUN_S, check=False)
    if done.returncode != 0:
        raise Differs(f"{' '.join(map(str, command[:2]))}: {done.stderr.strip()}")
    return done.stdout


def run_pte(pte, program, check):
    """The results by name. A call with arrays goes past the card, whose steps would change them."""
    import numpy
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = []
        if check.draw:
            given.append(folder / "picture.png")
            check.draw(given[0])
        else:
            os.symlink(program.resolve(), folder / "plain.pte")
            program = folder / "plain.pte"
        for i, array in enumerate(check.inputs):
            numpy.save(folder / f"{i}.npy", array)
            given.append(f"input_{i}={folder / f'{i}.npy'}")
        ask_pte([pte, "run", "--method", check.method, "--output", folder / "out", program, *given])
        return {path.stem: numpy.load(path) for path in (folder / "out").glob("*.npy")}


def run_executorch(program, check):
    import executorch.extension.llm.custom_ops.custom_ops  # noqa: F401  registers llama::
    import executorch.kernels.quantized  # noqa: F401
    import torch
    from executorch.runtime import Runtime
    method = Runtime.get().load_program(str(program)).load_method(check.method)
    results = method.execute([torch.from_numpy(array.copy()) for array in check.inputs])
    return dict(zip(check.results, (result.numpy() for result in results)))


def distance(got, want):
    """The greatest difference, as a part of the largest number that is wanted."""
    import numpy
    if got.shape != want.shape:
        raise Differs(f"expected {list(want.shape)}, got {list(got.shape)}")
    largest = float(numpy.abs(want).max(initial=0)) or 1.0
    away = float(numpy.abs(got.astype("f8") - want.astype("f8")).max(initial=0)) / largest
    return away if away == away else float("inf")


def compare(pte, program, check):
    """A line for people; raises Differs."""
    results = run_pte(pte, program, check) if pte else run_executorch(program, check)
    worst, where = -1.0, ""
    for name, want in check.results.items():
        if name not in results:
            raise Differs(f"{check.method}: no result {name}, but {', '.join(results)}")
        away = distance(results[name], want)
        if away > worst:
            worst, where = away, name
    what = f"{check.method}{' of a picture' if check.draw else ''}"
    if worst > check.limit:
        raise Differs(f"{what}: {where} differs from PyTorch by {worst:.2g} of its largest "
                      f"number, expected at most {check.limit:g}")
    return (f"{what}: as PyTorch, within {worst:.1g} of the largest number "
            f"({'pte run' if pte else 'the runtime of ExecuTorch'})")


def compare_all(program, checks, card):
    """Prints a line for each comparison; raises Differs. |card|: is there one beside it?"""
    pte = find_pte()
    if pte and card.exists():
        ask_pte([pte, "card", "--check", card, program])
        print(f"{card.name}: fits the program (pte card --check)")
    for check in checks:
        if pte or not check.draw:
            print(compare(pte, program, check))
    if not pte and any(check.draw for check in checks):
        print("there is no pte: what the card does to a picture was not compared")
