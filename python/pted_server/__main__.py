# SPDX-License-Identifier: MIT
"""python -m pted_server ARGUMENT...: becomes pted."""
import os
import sys

from .programs import find_program

try:
    program = find_program("pted")
except FileNotFoundError as why:
    sys.exit(f"pted_server: {why}")
os.execv(program, [program, *sys.argv[1:]])
