# SPDX-License-Identifier: MIT
# Programs and PyTorch's results, made by contrib/export/ops.py: one of each a family.

check_PROGRAMS += %D%/test_ops
TESTS += %D%/test_ops
%C%_test_ops_SOURCES = %D%/test_ops.c %D%/cases.c %D%/cases.h
%C%_test_ops_CFLAGS = $(AM_CFLAGS)
%C%_test_ops_LDADD = $(RUNTIME_LIBS)

EXTRA_DIST += \
	%D%/conv.bin %D%/conv.cases %D%/conv.pte \
	%D%/create.bin %D%/create.cases %D%/create.pte \
	%D%/formats.bin %D%/formats.cases %D%/formats.pte \
	%D%/index.bin %D%/index.cases %D%/index.pte \
	%D%/matmul.bin %D%/matmul.cases %D%/matmul.pte \
	%D%/norm.bin %D%/norm.cases %D%/norm.pte \
	%D%/pointwise.bin %D%/pointwise.cases %D%/pointwise.pte \
	%D%/pool.bin %D%/pool.cases %D%/pool.pte \
	%D%/reduce.bin %D%/reduce.cases %D%/reduce.pte \
	%D%/sizes.bin %D%/sizes.cases %D%/sizes.pte \
	%D%/view.bin %D%/view.cases %D%/view.pte
