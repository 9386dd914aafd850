# SPDX-License-Identifier: MIT
# Objects that outlive calls: programs, their methods and their states.
noinst_LIBRARIES += %D%/libprogram.a
%C%_libprogram_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libprogram_a_SOURCES = \
	%D%/adapt.c %D%/adapt.h \
	%D%/carries.h \
	%D%/composition.h \
	%D%/callable.h \
	%D%/example.c %D%/example.h \
	%D%/foresee.c %D%/foresee.h \
	%D%/held.c %D%/held.h \
	%D%/keep.c %D%/keep.h \
	%D%/method.c %D%/method.h \
	%D%/method_print.c \
	%D%/names.c %D%/names.h \
	%D%/oracle.c %D%/oracle.h \
	%D%/orders.c %D%/orders.h \
	%D%/outline.c %D%/outline.h \
	%D%/positional.c \
	%D%/program.c %D%/program.h \
	%D%/proven.c %D%/proven.h \
	%D%/resident.c %D%/resident.h \
	%D%/results.c %D%/results.h \
	%D%/signature.c %D%/signature.h \
	%D%/state.c %D%/state.h \
	%D%/state_bytes.c \
	%D%/state_cells.h \
	%D%/state_pages.c \
	%D%/state_undo.c \
	%D%/summary.c %D%/summary.h
