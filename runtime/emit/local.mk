# SPDX-License-Identifier: MIT
# The part of a plan that operators see while they record dispatches.
noinst_LIBRARIES += %D%/libemit.a
%C%_libemit_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libemit_a_SOURCES = \
	%D%/block.h \
	%D%/cut.c %D%/cut.h \
	%D%/emit.c %D%/emit.h \
	%D%/log.h \
	%D%/minmax.h \
	%D%/planner.h \
	%D%/tiles.c \
	%D%/update.h
