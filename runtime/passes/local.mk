# SPDX-License-Identifier: MIT
# Passes: from the imported graph to the one that is planned.
noinst_LIBRARIES += %D%/libpasses.a
%C%_libpasses_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libpasses_a_SOURCES = \
	%D%/activate.c \
	%D%/batch.c %D%/batch.h \
	%D%/caches.c %D%/caches.h \
	%D%/caches_int8.c %D%/caches_int8.h \
	%D%/cat_affine.c \
	%D%/chain.c \
	%D%/channels.c \
	%D%/copy.c %D%/copy.h \
	%D%/elide.c \
	%D%/ends.c %D%/ends.h \
	%D%/expand_dw.c \
	%D%/fuse.c \
	%D%/layout.c \
	%D%/lines.c \
	%D%/lower.c %D%/lower.h \
	%D%/lower_complex.c \
	%D%/lower_conv.c \
	%D%/lower_fft.c \
	%D%/lower_llm.c %D%/lower_moe.c \
	%D%/lower_quant.c \
	%D%/lower_volume.c \
	%D%/merge.c \
	%D%/moves.c \
	%D%/narrow.c \
	%D%/normalize.c \
	%D%/parallel.c \
	%D%/passes.def %D%/passes.h \
	%D%/permute.c \
	%D%/quantize.c %D%/quantize.h \
	%D%/quantize_between.c \
	%D%/quantize_moves.c \
	%D%/quantize_products.c \
	%D%/quantize_scales.c \
	%D%/resolve.c \
	%D%/rewrite.c %D%/rewrite.h \
	%D%/rows.c %D%/rows.h %D%/rows_priv.h \
	%D%/rows_mark.c \
	%D%/rows_values.c \
	%D%/softmax.c \
	%D%/winograd.c
