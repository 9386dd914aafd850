# SPDX-License-Identifier: MIT
# Names of packages; and what is packaged, a step of its own in contrib/check.sh: it builds once more.
TESTS += %D%/names.py
EXTRA_DIST += %D%/names.py %D%/run_package.py %D%/run_wheel.py
