# SPDX-License-Identifier: MIT
# What is packaged. contrib/check.sh runs it as a step of its own: it builds once more.
EXTRA_DIST += %D%/run_package.py
