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

# Programs and methods, the graph and its passes, plans, calls
%C%_libruntime_a_SOURCES += \
	%D%/invocation.h \
	%D%/method.c %D%/method.h \
	%D%/oracle.c %D%/oracle.h \
	%D%/program.c %D%/program.h \
	%D%/results.c %D%/results.h \
	%D%/signature.c %D%/signature.h \
	%D%/import/kernels.c %D%/import/kernels.h \
	%D%/graph/dim.c %D%/graph/dim.h \
	%D%/graph/fold.c \
	%D%/graph/fuse.c \
	%D%/graph/graph.c %D%/graph/graph.h \
	%D%/graph/layout.c \
	%D%/graph/lower.c \
	%D%/graph/normalize.c \
	%D%/graph/passes.h \
	%D%/graph/resolve.c \
	%D%/graph/rewrite.c %D%/graph/rewrite.h \
	%D%/plan/alloc.c %D%/plan/alloc.h \
	%D%/plan/exec.c \
	%D%/plan/flow.c %D%/plan/flow.h \
	%D%/plan/plan.h \
	%D%/vm/inputs.c \
	%D%/vm/invocation.c %D%/vm/invocation_priv.h
