# SPDX-License-Identifier: MIT
# The companion on the command line. Its main is apart; everything that tests want is in the archive.
noinst_LIBRARIES += %D%/libcommands.a
%C%_libcommands_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libcommands_a_SOURCES = \
	%D%/devices.c \
	%D%/input.c %D%/input.h \
	%D%/inspect.c %D%/inspect.h \
	%D%/inspect_json.c \
	%D%/inspect_text.c \
	%D%/npy.c %D%/npy.h \
	%D%/ops.c \
	%D%/print.c %D%/print.h \
	%D%/pte.c %D%/pte.h \
	%D%/run.c \
	%D%/sig.c
