# SPDX-License-Identifier: MIT
# The daemon and its companion. Both mains are small; everything that tests want is in the archive.
noinst_LIBRARIES += %D%/libserver.a
SERVER_CFLAGS = $(AM_CFLAGS) $(UV_CFLAGS) $(LLHTTP_CFLAGS) $(ZLIB_CFLAGS) $(CJSON_CFLAGS)
SERVER_LIBS = %D%/libserver.a $(LLHTTP_ARCHIVE) $(RUNTIME_LIBS) $(UV_LIBS) $(LLHTTP_LIBS) \
	$(ZLIB_LIBS) $(CJSON_LIBS)

%C%_libserver_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libserver_a_SOURCES = \
	%D%/address.c %D%/address.h \
	%D%/amount.c %D%/amount.h \
	%D%/api.h %D%/api_health.c %D%/api_model.c %D%/api_signature.c \
	%D%/args.c %D%/args.h \
	%D%/body.c %D%/body.h \
	%D%/bundle.c %D%/bundle.h \
	%D%/bundle_read.c \
	%D%/clients.c %D%/clients.h \
	%D%/coding.c %D%/coding.h \
	%D%/conn.c %D%/conn.h %D%/conn_priv.h \
	%D%/conn_answer.c \
	%D%/conn_message.c \
	%D%/document.c %D%/document.h %D%/document_priv.h %D%/document_scan.c \
	%D%/exchange.c %D%/exchange.h \
	%D%/exit_status.c %D%/exit_status.h \
	%D%/file.c %D%/file.h \
	%D%/framing.c %D%/framing.def %D%/framing.h \
	%D%/head.c %D%/head.h \
	%D%/http.c %D%/http.h \
	%D%/http1.c %D%/http1.h \
	%D%/infer.c %D%/infer.h \
	%D%/infer_call.c \
	%D%/infer_oip.c \
	%D%/infer_one.c \
	%D%/listener.c %D%/listener.h \
	%D%/log.c %D%/log.h \
	%D%/log_limit.c %D%/log_limit.h \
	%D%/model.c %D%/model.h %D%/model_state.def \
	%D%/model_describe.c \
	%D%/model_log.c %D%/model_log.h \
	%D%/notify.c %D%/notify.h \
	%D%/npy.c %D%/npy.h \
	%D%/offload.c %D%/offload.h \
	%D%/options.c %D%/options.h %D%/params.def \
	%D%/origin.c %D%/origin.h \
	%D%/pipelines.c %D%/pipelines.h %D%/pipelines_priv.h %D%/pipelines_read.c \
	%D%/placement.c %D%/placement.h \
	%D%/pte.c %D%/pte.h \
	%D%/pte_devices.c \
	%D%/pte_input.c %D%/pte_input.h \
	%D%/pte_inspect.c %D%/pte_inspect.h \
	%D%/pte_inspect_json.c \
	%D%/pte_inspect_text.c \
	%D%/pte_ops.c \
	%D%/pte_print.c %D%/pte_print.h \
	%D%/pte_run.c \
	%D%/pte_sig.c \
	%D%/proving.c %D%/proving.h \
	%D%/recovery.c %D%/recovery.h \
	%D%/repository.c %D%/repository.h %D%/repository_priv.h \
	%D%/repository_draft.c \
	%D%/repository_load.c \
	%D%/repository_program.c \
	%D%/request.c %D%/request.def %D%/request.h \
	%D%/request_answer.c \
	%D%/request_log.c %D%/request_log.h \
	%D%/route.c %D%/route.def %D%/route.h \
	%D%/routes.c %D%/routes.h \
	%D%/server.c %D%/server.h \
	%D%/serving.c %D%/serving.h \
	%D%/standard.c %D%/standard.h \
	%D%/stats.c %D%/stats.h \
	%D%/transport.c %D%/transport.h \
	%D%/transport_socket.c %D%/transport_socket.h \
	%D%/trim.c %D%/trim.h \
	%D%/turns.c %D%/turns.h \
	%D%/version.c %D%/version.h \
	%D%/watchdog.c %D%/watchdog.h

bin_PROGRAMS += pted pte
pted_SOURCES = %D%/main.c
pted_CFLAGS = $(SERVER_CFLAGS)
pted_LDADD = $(SERVER_LIBS)
pte_SOURCES = %D%/pte_main.c
pte_CFLAGS = $(SERVER_CFLAGS)
pte_LDADD = $(SERVER_LIBS)

# llhttp from C sources that the system installs: compiled here, never copied into this tree, in
# strict mode and without our warnings.
if LLHTTP_SOURCES
LLHTTP_ARCHIVE = %D%/libllhttp.a
LLHTTP_OBJECTS = %D%/llhttp-llhttp.o %D%/llhttp-api.o %D%/llhttp-http.o
CLEANFILES += $(LLHTTP_ARCHIVE) $(LLHTTP_OBJECTS)

%D%/llhttp-llhttp.o: $(LLHTTP_DIR)/llhttp.c
%D%/llhttp-api.o: $(LLHTTP_DIR)/api.c
%D%/llhttp-http.o: $(LLHTTP_DIR)/http.c
$(LLHTTP_OBJECTS):
	$(AM_V_CC)$(MKDIR_P) %D% && $(CC) -DLLHTTP_STRICT_MODE=1 $(LLHTTP_CFLAGS) $(CPPFLAGS) \
		$(SANITIZE_CFLAGS) $(CFLAGS) -c -o $@ "$(LLHTTP_DIR)"/$(@F:llhttp-%.o=%.c)

$(LLHTTP_ARCHIVE): $(LLHTTP_OBJECTS)
	$(AM_V_AR)rm -f $@ && $(AR) $(ARFLAGS) $@ $(LLHTTP_OBJECTS)
endif
