# SPDX-License-Identifier: MIT
# README.md's commands, as a reader would try them.
TESTS += %D%/run_readme.py
EXTRA_DIST += %D%/run_readme.py %D%/scorer.pte
