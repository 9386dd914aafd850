# SPDX-License-Identifier: MIT
# From a graph at concrete dims to a command.
noinst_LIBRARIES += %D%/libplan.a
%C%_libplan_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libplan_a_SOURCES = \
	%D%/alloc.c %D%/alloc.h \
	%D%/exec.c \
	%D%/flow.c %D%/flow.h \
	%D%/numbers.c %D%/numbers.h \
	%D%/plan.h
