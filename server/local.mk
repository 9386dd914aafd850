# SPDX-License-Identifier: MIT
# The daemon and its companion. Both main() are small. The rest is in archives, from the top down.
SERVER_CFLAGS = $(AM_CFLAGS) $(UV_CFLAGS) $(LLHTTP_CFLAGS) $(ZLIB_CFLAGS) $(CJSON_CFLAGS) \
	$(OPENSSL_CFLAGS) $(CURL_CFLAGS)
SERVER_LIBS = %D%/libserver.a %D%/pte/libcommands.a %D%/profile/libprofile.a \
	%D%/model/libmodel.a %D%/intake/libintake.a %D%/generate/libgenerate.a \
	%D%/card/libcard.a %D%/answer/libanswer.a \
	%D%/console/libconsole.a %D%/text/libtext.a %D%/media/libmedia.a %D%/http/libhttp.a \
	%D%/process/libprocess.a \
	$(LLHTTP_ARCHIVE) \
	$(RUNTIME_LIBS) $(UV_LIBS) $(LLHTTP_LIBS) $(ZLIB_LIBS) $(CJSON_LIBS)

include server/pte/local.mk
include server/profile/local.mk
include server/model/local.mk
include server/intake/local.mk
include server/generate/local.mk
include server/card/local.mk
include server/answer/local.mk
include server/console/local.mk
include server/text/local.mk
include server/media/local.mk
include server/http/local.mk
include server/process/local.mk

noinst_LIBRARIES += %D%/libserver.a
%C%_libserver_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libserver_a_SOURCES = \
	%D%/access.c %D%/access.h \
	%D%/access_log.c %D%/access_log.h \
	%D%/api.h \
	%D%/api_change.c \
	%D%/api_console.c \
	%D%/api_graph.c \
	%D%/api_health.c \
	%D%/api_metrics.c \
	%D%/api_model.c \
	%D%/api_openapi.c \
	%D%/api_region.c \
	%D%/api_settings.c \
	%D%/api_signature.c \
	%D%/api_words.c \
	%D%/bundle.c %D%/bundle.h \
	%D%/bundle_read.c \
	%D%/changes.c %D%/changes.h \
	%D%/clients.c %D%/clients.h \
	%D%/conf.c %D%/conf.h \
	%D%/conf_priv.h \
	%D%/conf_read.c \
	%D%/conn.c %D%/conn.h \
	%D%/conn_answer.c \
	%D%/conn_message.c \
	%D%/conn_priv.h \
	%D%/dump.c %D%/dump.h \
	%D%/embedding.c %D%/embedding.h \
	%D%/exchange.c %D%/exchange.h \
	%D%/generation.c %D%/generation.h %D%/generation_priv.h \
	%D%/generation_choice.c \
	%D%/generation_parse.c \
	%D%/generation_prefix.c \
	%D%/infer.c %D%/infer.h \
	%D%/infer_answer.c \
	%D%/infer_call.c \
	%D%/infer_form.c \
	%D%/infer_media.c %D%/infer_media.h \
	%D%/infer_oip.c \
	%D%/infer_one.c \
	%D%/infer_predict.c \
	%D%/infer_profile.c \
	%D%/infer_shared.c \
	%D%/listener.c %D%/listener.h \
	%D%/metrics.c %D%/metrics.def %D%/metrics.h \
	%D%/offload.c %D%/offload.h \
	%D%/otlp.c %D%/otlp.h \
	%D%/proving.c %D%/proving.h \
	%D%/query.c %D%/query.def %D%/query.h \
	%D%/recovery.c %D%/recovery.h \
	%D%/regions.c %D%/regions.h \
	%D%/reload.c %D%/reload.h \
	%D%/request.c %D%/request.def %D%/request.h \
	%D%/request_answer.c \
	%D%/request_log.c %D%/request_log.h \
	%D%/route.c %D%/route.def %D%/route.h \
	%D%/routes.c %D%/routes.h \
	%D%/server.c %D%/server.h \
	%D%/serving.c %D%/serving.h \
	%D%/speech_ask.c %D%/speech_ask.def %D%/speech_ask.h \
	%D%/speech_reply.c %D%/speech_reply.h \
	%D%/stats.c %D%/stats.h \
	%D%/spans.c %D%/spans.h \
	%D%/tls.c %D%/tls.h \
	%D%/tokens.c %D%/tokens.h \
	%D%/trace.c %D%/trace.h \
	%D%/transcription.c %D%/transcription.h \
	%D%/trim.c %D%/trim.h \
	%D%/turns.c %D%/turns.h \
	%D%/watch.c %D%/watch.h \
	%D%/watchdog.c %D%/watchdog.h

bin_PROGRAMS += pted pte
pted_SOURCES = %D%/main.c
pted_CFLAGS = $(SERVER_CFLAGS)
pted_LDADD = $(SERVER_LIBS)
pte_SOURCES = %D%/pte/main.c
pte_CFLAGS = $(SERVER_CFLAGS)
pte_LDADD = $(SERVER_LIBS)

# llhttp from C sources that the system installs. They are compiled here, but never copied, in
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
