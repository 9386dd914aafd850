# SPDX-License-Identifier: MIT
"""Finds an interpreter that has the packages of a test: this one, or the one that PYTHON names."""
import importlib
import os
import shutil
import sys

TRIED = "PTED_TEST_PYTHON_TRIED"


def has(*modules):
    """Can |modules| be imported? If not here, the test begins again with the other interpreter."""
    try:
        for module in modules:
            importlib.import_module(module)
        return True
    except ImportError:
        other = shutil.which(os.environ.get("PYTHON", ""))
        if other and not os.environ.get(TRIED):
            os.environ[TRIED] = "1"
            os.execv(other, [other, *sys.argv])
        return False
