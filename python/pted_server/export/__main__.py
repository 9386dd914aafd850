# SPDX-License-Identifier: MIT
"""python -m pted_server.export"""
import sys

from .folder import main

sys.exit(main())
