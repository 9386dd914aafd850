# SPDX-License-Identifier: MIT
# Operators: compiled without the conversion warnings, which typed inner loops would drown in.
noinst_LIBRARIES += %D%/libops.a
%C%_libops_a_CFLAGS = $(AM_CFLAGS)
%C%_libops_a_SOURCES = \
	%D%/along.c \
	%D%/convert.c %D%/convert.h \
	%D%/copy.c %D%/copy.h \
	%D%/create.c \
	%D%/element.c %D%/element.h \
	%D%/index.c \
	%D%/iter.c %D%/iter.h \
	%D%/minmax.h \
	%D%/norm.c %D%/norm.h %D%/norm_kernels.c \
	%D%/conv.c \
	%D%/gemm.c %D%/gemm.h \
	%D%/matmul.c \
	%D%/ops.c \
	%D%/scalar.c \
	%D%/op.h \
	%D%/pad.c \
	%D%/pointwise.c %D%/pointwise.h %D%/pointwise_loops.c \
	%D%/pool.c %D%/pool.h \
	%D%/reduce.c %D%/reduce.h %D%/reduce_kernels.c \
	%D%/slice.c \
	%D%/softmax.c \
	%D%/stride.c \
	%D%/upsample.c \
	%D%/view.c \
	%D%/view_priv.c %D%/view_priv.h
