# SPDX-License-Identifier: MIT
# What operators see: metrics, traces, the access log.
noinst_LIBRARIES += %D%/libobserve.a
%C%_libobserve_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libobserve_a_SOURCES = \
	%D%/access_log.c %D%/access_log.h \
	%D%/dump.c %D%/dump.h \
	%D%/metrics.c %D%/metrics.def %D%/metrics.h \
	%D%/observed.h \
	%D%/otlp.c %D%/otlp.h \
	%D%/spans.c %D%/spans.h
