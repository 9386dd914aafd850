# SPDX-License-Identifier: MIT
# The installed units under a real systemd.
TESTS += %D%/run_systemd.py
EXTRA_DIST += %D%/run_systemd.py %D%/container.sh
