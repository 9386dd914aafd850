# SPDX-License-Identifier: MIT
"""Where pted and pte are."""
import os
import shutil
import sysconfig
from pathlib import Path


def find_program(name: str) -> str:
    """The path of |name|, which is pted or pte: of this package, else the first one on PATH.

    Raises FileNotFoundError if there is none.
    """
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", "posix_user"),
               str(Path(__file__).resolve().parents[1] / "bin")]  # of pip install --target
    found = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(
            f"there is no {name}: this copy of pted-server came without programs, and PATH has no "
            f"{name}; wheels made with --programs have them")
    return found
