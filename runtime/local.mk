# SPDX-License-Identifier: MIT
include runtime/ops/local.mk

noinst_LIBRARIES += %D%/libruntime.a
%C%_libruntime_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libruntime_a_SOURCES =

# The .pte container
%C%_libruntime_a_SOURCES += \
	%D%/pte/container.c %D%/pte/container.h \
	%D%/pte/decode.c %D%/pte/decode.h \
	%D%/pte/file.c %D%/pte/file.h \
	%D%/pte/flatbuf.c %D%/pte/flatbuf.h \
	%D%/pte/instr.c \
	%D%/pte/limits.h \
	%D%/pte/plan.c \
	%D%/pte/print.c \
	%D%/pte/pte.c %D%/pte/pte.h %D%/pte/pte_priv.h \
	%D%/pte/schema.h \
	%D%/pte/tensor.c \
	%D%/pte/text.c %D%/pte/text.h \
	%D%/pte/value.c \
	%D%/pte/verify.c
