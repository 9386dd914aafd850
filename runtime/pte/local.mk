# SPDX-License-Identifier: MIT
# The files: `.pte`, `.ptd`.
noinst_LIBRARIES += %D%/libpte.a
%C%_libpte_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libpte_a_SOURCES = \
	%D%/container.c %D%/container.h \
	%D%/decode.c %D%/decode.h \
	%D%/file.c %D%/file.h %D%/file_use.h \
	%D%/file_digest.c %D%/file_digest.h \
	%D%/files.c %D%/files.h \
	%D%/flatbuf.c %D%/flatbuf.h \
	%D%/instr.c \
	%D%/interface.c \
	%D%/kept.c %D%/kept.h \
	%D%/limits.h \
	%D%/link.c \
	%D%/packed.c %D%/packed.h \
	%D%/plan.c \
	%D%/print.c \
	%D%/ptd.c %D%/ptd.h \
	%D%/pte.c %D%/pte.h \
	%D%/pte_priv.h \
	%D%/recheck.c %D%/recheck.h \
	%D%/schema.h \
	%D%/seen.c %D%/seen.h \
	%D%/source.c \
	%D%/tensor.c \
	%D%/text.c %D%/text.h \
	%D%/value.c \
	%D%/verify.c
