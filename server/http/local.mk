# SPDX-License-Identifier: MIT
# Messages of HTTP: heads, framing, bodies, codings, and the transport that carries them.
noinst_LIBRARIES += %D%/libhttp.a
%C%_libhttp_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libhttp_a_SOURCES = \
	%D%/address.c %D%/address.h \
	%D%/body.c %D%/body.h \
	%D%/client.c %D%/client.h \
	%D%/coding.c %D%/coding.h \
	%D%/forwarded.c %D%/forwarded.h \
	%D%/framing.c %D%/framing.def %D%/framing.h \
	%D%/head.c %D%/head.h \
	%D%/head_pattern.c %D%/head_pattern.h \
	%D%/http.c %D%/http.h \
	%D%/http1.c %D%/http1.h \
	%D%/multipart.c %D%/multipart.h \
	%D%/percent.c %D%/percent.h \
	%D%/proxies.c %D%/proxies.h \
	%D%/proxy_header.c %D%/proxy_header.h \
	%D%/tls_context.c %D%/tls_context.h \
	%D%/transport.c %D%/transport.h \
	%D%/transport_proxy.c %D%/transport_proxy.h \
	%D%/transport_socket.c %D%/transport_socket.h \
	%D%/transport_tls.c %D%/transport_tls.h \
	%D%/transport_tls_open.c %D%/transport_tls_priv.h \
	%D%/transport_tls_write.c
