# SPDX-License-Identifier: MIT
# What calls run on, and what changes it: models that come and go, a device that is lost.
noinst_LIBRARIES += %D%/libserving.a
%C%_libserving_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libserving_a_SOURCES = \
	%D%/changes.c %D%/changes.h \
	%D%/proving.c %D%/proving.h \
	%D%/recovery.c %D%/recovery.h \
	%D%/reload.c %D%/reload.h \
	%D%/serving.c %D%/serving.h \
	%D%/servings.c %D%/servings.h \
	%D%/trim.c %D%/trim.h \
	%D%/waits.c %D%/waits.h \
	%D%/watch.c %D%/watch.h
