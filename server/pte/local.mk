# SPDX-License-Identifier: MIT
# pte, the companion on the command line. The archive has everything but main(), so tests can use it.
noinst_LIBRARIES += %D%/libcommands.a
%C%_libcommands_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libcommands_a_SOURCES = \
	%D%/call.c %D%/call.h \
	%D%/devices.c \
	%D%/fetch.c \
	%D%/input.c %D%/input.h \
	%D%/inspect.c %D%/inspect.h \
	%D%/inspect_json.c \
	%D%/inspect_text.c \
	%D%/npy.c %D%/npy.h \
	%D%/ops.c \
	%D%/print.c %D%/print.h \
	%D%/profile.c %D%/profile.h \
	%D%/profile_json.c \
	%D%/profile_text.c \
	%D%/pte.c %D%/pte.h \
	%D%/run.c \
	%D%/sig.c \
	%D%/token.c \
	%D%/tokenize.c
