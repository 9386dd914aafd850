# SPDX-License-Identifier: MIT
# The daemon: what serves over HTTP, in archives, one for each part, from the top down.
REQUEST_LIBS = %D%/request/librequest.a %D%/generation/libgeneration.a %D%/infer/libinfer.a \
	%D%/serving/libserving.a %D%/loop/libloop.a %D%/conf/libconf.a
DAEMON_LIBS = %D%/libdaemon.a %D%/api/libapi.a %D%/observe/libobserve.a \
	%D%/connection/libconnection.a $(REQUEST_LIBS)
noinst_LIBRARIES += %D%/libdaemon.a
%C%_libdaemon_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libdaemon_a_SOURCES = \
	%D%/drain.c %D%/drain.h \
	%D%/main.c %D%/main.h \
	%D%/route_table.c %D%/route_table.h \
	%D%/server.c %D%/server.h \
	%D%/watchdog.c %D%/watchdog.h

include server/daemon/api/local.mk
include server/daemon/connection/local.mk
include server/daemon/observe/local.mk
include server/daemon/generation/local.mk
include server/daemon/request/local.mk
include server/daemon/infer/local.mk
include server/daemon/serving/local.mk
include server/daemon/loop/local.mk
include server/daemon/conf/local.mk
include server/daemon/console/local.mk
