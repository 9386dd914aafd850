# SPDX-License-Identifier: MIT
# Requests: routes, who may ask, steps, memory, and exchanges with a protocol.
noinst_LIBRARIES += %D%/librequest.a
%C%_librequest_a_CFLAGS = $(SERVER_CFLAGS)
%C%_librequest_a_SOURCES = \
	%D%/access.c %D%/access.h \
	%D%/transfers.c %D%/transfers.h \
	%D%/exchange.c %D%/exchange.h \
	%D%/request.c %D%/request.def %D%/request.h \
	%D%/request_answer.c \
	%D%/request_grpc.c %D%/request_grpc.h %D%/request_stream.c %D%/request_stream.h \
	%D%/request_stream_call.c %D%/request_stream_priv.h \
	%D%/request_watch.c %D%/request_watch.h \
	%D%/request_head.c \
	%D%/request_log.c %D%/request_log.h \
	%D%/request_priv.h \
	%D%/request_steps.c %D%/request_steps.h \
	%D%/request_take.c \
	%D%/requests.c %D%/requests.h \
	%D%/route.c %D%/route.def %D%/route.h \
	%D%/routes.h \
	%D%/tokens.c %D%/tokens.h \
	%D%/trace.c %D%/trace.h \
	%D%/request_work.c
