# SPDX-License-Identifier: MIT
# The event loop, and what each part on it needs: words for the log, turns, phases.
noinst_LIBRARIES += %D%/libloop.a
%C%_libloop_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libloop_a_SOURCES = \
	%D%/handback.c %D%/handback.h \
	%D%/log_gate.c %D%/log_gate.h \
	%D%/loop.c %D%/loop.h \
	%D%/turn_part.def \
	%D%/turn_watch.c %D%/turn_watch.h \
	%D%/turns.c %D%/turns.h \
	%D%/watched.c %D%/watched.h
