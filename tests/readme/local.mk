# SPDX-License-Identifier: MIT
# Runs the commands of docs/your-model.md as a reader would, and contrib/export/pted_export.py.
TESTS += %D%/run_readme.py %D%/run_export.py
EXTRA_DIST += %D%/run_readme.py %D%/run_export.py %D%/scorer.pte
