# SPDX-License-Identifier: MIT
# Sockets, TLS and HTTP/1, a protocol that owns exchanges.
server_daemon_libdaemon_a_SOURCES += \
	%D%/conn.c %D%/conn.h \
	%D%/conn_answer.c \
	%D%/conn_message.c \
	%D%/conn_priv.h \
	%D%/conns.c %D%/conns.h \
	%D%/listener.c %D%/listener.h \
	%D%/places.c %D%/places.h \
	%D%/tls.c %D%/tls.h
