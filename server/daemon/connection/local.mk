# SPDX-License-Identifier: MIT
# Sockets, TLS, sessions of clients; HTTP/1 and HTTP/2, protocols that own exchanges.
noinst_LIBRARIES += %D%/libconnection.a
%C%_libconnection_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libconnection_a_SOURCES = \
	%D%/conn.c %D%/conn.h \
	%D%/conn_answer.c \
	%D%/conn_message.c \
	%D%/conn_priv.h \
	%D%/conns.c %D%/conns.h \
	%D%/http2.c %D%/http2.h \
	%D%/http2_flood.c %D%/http2_flood.def %D%/http2_flood.h \
	%D%/http2_priv.h \
	%D%/http2_read.c \
	%D%/http2_stream.c \
	%D%/http2_write.c \
	%D%/listener.c %D%/listener.h \
	%D%/opening.c %D%/opening.h \
	%D%/places.c %D%/places.h \
	%D%/protocol.c %D%/protocol.h \
	%D%/session.c %D%/session.h \
	%D%/tls.c %D%/tls.h
