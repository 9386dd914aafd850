# SPDX-License-Identifier: MIT
# The installed units under a real systemd, and the page that leads to them.
TESTS += %D%/run_systemd.py %D%/run_production.py
EXTRA_DIST += %D%/run_systemd.py %D%/run_production.py %D%/container.sh
