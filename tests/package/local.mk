# SPDX-License-Identifier: MIT
# Names of packages, the pages as HTML; and what is packaged and released, and the README's words:
# steps of their own in contrib/check.sh, which build once more.
TESTS += %D%/names.py %D%/run_site.py
EXTRA_DIST += %D%/boot.sh %D%/names.py %D%/run_package.py %D%/run_quickstart.py \
	%D%/run_release.py %D%/run_site.py %D%/run_wheel.py
