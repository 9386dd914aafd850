# SPDX-License-Identifier: MIT
# Handlers of the routes that call no model.
noinst_LIBRARIES += %D%/libapi.a
%C%_libapi_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libapi_a_SOURCES = \
	%D%/api.h \
	%D%/api_change.c \
	%D%/api_chat.c \
	%D%/api_console.c \
	%D%/api_graph.c \
	%D%/api_grpc.c \
	%D%/api_health.c \
	%D%/api_metrics.c \
	%D%/api_metrics_daemon.c \
	%D%/api_metrics_model.c \
	%D%/api_metrics_priv.h \
	%D%/api_metrics_process.c \
	%D%/api_metrics_shares.c \
	%D%/api_model.c \
	%D%/api_openapi.c \
	%D%/api_info.c \
	%D%/api_ollama.c \
	%D%/api_props.c \
	%D%/api_region.c \
	%D%/api_results.c \
	%D%/api_settings.c \
	%D%/api_signature.c \
	%D%/api_tokenize.c \
	%D%/api_v1.c
