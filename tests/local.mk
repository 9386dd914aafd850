# SPDX-License-Identifier: MIT
# One fragment for each tier of tests. A fragment adds to check_PROGRAMS, TESTS and EXTRA_DIST.
include tests/unit/local.mk
include tests/lib/local.mk
include tests/hal/local.mk
include tests/ops/local.mk
include tests/sig/local.mk
include tests/http/local.mk
include tests/text/local.mk
include tests/models/local.mk
include tests/readme/local.mk
include tests/recipes/local.mk
include tests/fuzz/local.mk
include tests/oom/local.mk
include tests/package/local.mk
include tests/portable/local.mk
include tests/systemd/local.mk
include tests/bench/local.mk

# A script finds the source and the programs by top_srcdir and top_builddir.
TESTS += %D%/archives.sh %D%/completions.sh %D%/docs.sh %D%/lint.sh %D%/load.sh %D%/settings.sh \
	%D%/version.sh
EXTRA_DIST += %D%/archives.sh %D%/completions.sh %D%/docs.sh %D%/lint.sh %D%/load.sh %D%/settings.sh %D%/stale.awk \
	%D%/media/pictures.bin %D%/media/pictures.def \
	%D%/requirements.txt \
	%D%/validated.sh \
	%D%/version.sh
