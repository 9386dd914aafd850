# SPDX-License-Identifier: MIT
# The graph and its passes.
noinst_LIBRARIES += %D%/libgraph.a
%C%_libgraph_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libgraph_a_SOURCES = \
	%D%/apply.c \
	%D%/batch.c %D%/batch.h \
	%D%/chain.c \
	%D%/dim.c %D%/dim.h \
	%D%/dim_eval.c \
	%D%/dim_priv.h \
	%D%/dim_solve.c \
	%D%/elide.c \
	%D%/fuse.c \
	%D%/graph.c %D%/graph.h \
	%D%/layout.c \
	%D%/lower.c %D%/lower.h \
	%D%/lower_conv.c \
	%D%/lower_fft.c \
	%D%/lower_llm.c \
	%D%/lower_quant.c \
	%D%/normalize.c \
	%D%/passes.h \
	%D%/permute.c \
	%D%/print.c \
	%D%/quantize.c %D%/quantize.h \
	%D%/quantize_between.c \
	%D%/quantize_moves.c \
	%D%/quantize_products.c \
	%D%/quantize_scales.c \
	%D%/resolve.c \
	%D%/rewrite.c %D%/rewrite.h
