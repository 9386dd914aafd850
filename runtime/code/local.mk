# SPDX-License-Identifier: MIT
# Compiled code: blocks, and the statements between them.
noinst_LIBRARIES += %D%/libcode.a
%C%_libcode_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libcode_a_SOURCES = \
	%D%/block.c %D%/block.h \
	%D%/caches.c %D%/caches.h \
	%D%/code.c %D%/code.h \
	%D%/content.c %D%/content.h \
	%D%/fingerprint.c %D%/fingerprint.h \
	%D%/fold.c %D%/fold.h \
	%D%/recipe.c %D%/recipe.h \
	%D%/round.c %D%/round.h \
	%D%/scalar.c %D%/scalar.def %D%/scalar.h \
	%D%/shared.c %D%/shared.h \
	%D%/step.c %D%/step.h \
	%D%/unify.c %D%/unify.h \
	%D%/weights.c %D%/weights.h
