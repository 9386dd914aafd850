# SPDX-License-Identifier: MIT
EXTRA_DIST += %D%/check.sh %D%/packages.sh %D%/quickstart.sh %D%/load/body.awk %D%/load/load.sh \
	%D%/export/README.md %D%/export/digits.py %D%/export/export.py %D%/export/models.py \
	%D%/export/ops.py %D%/export/ops_case.py %D%/export/ops_numbers.py %D%/export/ops_tensors.py \
	%D%/export/requirements.txt
dist_man_MANS = %D%/man/pte.1 %D%/man/pted.8
