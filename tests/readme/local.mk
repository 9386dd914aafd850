# SPDX-License-Identifier: MIT
# Runs the commands of docs/your-model.md as a reader would.
TESTS += %D%/run_readme.py
EXTRA_DIST += %D%/run_readme.py %D%/scorer.pte
