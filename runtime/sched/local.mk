# SPDX-License-Identifier: MIT
# The scheduler: it chooses the call that runs next.
noinst_LIBRARIES += %D%/libsched.a
%C%_libsched_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libsched_a_SOURCES = \
	%D%/choose.c %D%/choose.h \
	%D%/deadline.c %D%/deadline.h \
	%D%/group.c %D%/group.h \
	%D%/job.c %D%/job.h \
	%D%/prefix.c %D%/prefix.h \
	%D%/queue.c %D%/queue.h \
	%D%/sched.c %D%/sched.h \
	%D%/sequence.c %D%/sequence.h \
	%D%/sizing.c %D%/sizing.h
