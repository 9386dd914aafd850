# SPDX-License-Identifier: MIT
# Values of requests, as templates and grammars see them.
noinst_LIBRARIES += %D%/libvalue.a
%C%_libvalue_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libvalue_a_SOURCES = \
	%D%/value.c %D%/value.h \
	%D%/value_print.c \
	%D%/value_read.c
