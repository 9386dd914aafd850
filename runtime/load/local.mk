# SPDX-License-Identifier: MIT
# Loading: from files to programs.
noinst_LIBRARIES += %D%/libload.a
%C%_libload_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libload_a_SOURCES = \
	%D%/carry.c %D%/carry.h \
	%D%/cells_int8.c %D%/cells_int8.h \
	%D%/compose.c %D%/compose.h \
	%D%/load.c %D%/load.h \
	%D%/method.c %D%/method.h
