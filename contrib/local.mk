# SPDX-License-Identifier: MIT
EXTRA_DIST += \
	%D%/export/README.md %D%/export/digits.py %D%/export/export.py %D%/export/models.py \
	%D%/export/requirements.txt
