# SPDX-License-Identifier: MIT
# Runs the commands of docs/tutorials/your-model.md and of other pages as a reader would, and of
# pted_server.export.
TESTS += %D%/run_readme.py %D%/run_export.py %D%/run_folder.py %D%/run_pages.py %D%/run_pted_card.py
EXTRA_DIST += %D%/run_readme.py %D%/run_export.py %D%/run_folder.py %D%/run_pages.py %D%/run_pted_card.py %D%/scorer.pte
