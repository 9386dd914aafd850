# SPDX-License-Identifier: MIT
# The programs of contrib/portable.sh: a step of its own in contrib/check.sh, which builds them.
EXTRA_DIST += %D%/run_portable.py
