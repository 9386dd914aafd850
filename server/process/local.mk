# SPDX-License-Identifier: MIT
# The parts that both programs share: arguments and options, documents, the log, the exit status.
noinst_LIBRARIES += %D%/libprocess.a
%C%_libprocess_a_CFLAGS = $(SERVER_CFLAGS) $(YAML_CFLAGS)
%C%_libprocess_a_SOURCES = \
	%D%/alarm.c %D%/alarm.h \
	%D%/amount.c %D%/amount.h \
	%D%/args.c %D%/args.h \
	%D%/curl.c %D%/curl.h \
	%D%/document.c %D%/document.h \
	%D%/document_priv.h \
	%D%/document_scan.c \
	%D%/exit_status.c %D%/exit_status.h \
	%D%/fetch.c %D%/fetch.h \
	%D%/fetch_url.c %D%/fetch_url.h \
	%D%/file.c %D%/file.h \
	%D%/library.c %D%/library.h \
	%D%/libyaml.c %D%/libyaml.h \
	%D%/line.c %D%/line.h \
	%D%/line_sink.c %D%/line_sink.h \
	%D%/line_writer.c %D%/line_writer.h \
	%D%/log.c %D%/log.h \
	%D%/log_limit.c %D%/log_limit.h \
	%D%/manual.c %D%/manual.h \
	%D%/model_name.c %D%/model_name.h \
	%D%/nearest.c %D%/nearest.h \
	%D%/notify.c %D%/notify.h \
	%D%/offload.c %D%/offload.h \
	%D%/openssl.c %D%/openssl.def %D%/openssl.h \
	%D%/options.c %D%/options.h \
	%D%/options_model.c %D%/options_priv.h \
	%D%/params.def \
	%D%/setting.c %D%/setting.h \
	%D%/setting_schema.c \
	%D%/setting_value.c \
	%D%/sha256.c %D%/sha256.h \
	%D%/standard.c %D%/standard.h \
	%D%/token.c %D%/token.h \
	%D%/version.c %D%/version.h \
	%D%/yaml.c %D%/yaml.h
