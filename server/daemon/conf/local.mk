# SPDX-License-Identifier: MIT
# The settings of pted from all sources.
noinst_LIBRARIES += %D%/libconf.a
%C%_libconf_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libconf_a_SOURCES = \
	%D%/conf.c %D%/conf.h \
	%D%/conf_print.c %D%/conf_print.h \
	%D%/conf_priv.h \
	%D%/conf_read.c
