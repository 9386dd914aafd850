# SPDX-License-Identifier: MIT
# pte, the companion on the command line.
noinst_LIBRARIES += %D%/libcli.a
%C%_libcli_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libcli_a_SOURCES = \
	%D%/bench.c \
	%D%/bench_arrivals.c %D%/bench_arrivals.h \
	%D%/bench_body.c %D%/bench_body.h \
	%D%/bench_compare.c %D%/bench_compare.h \
	%D%/bench_fields.c %D%/bench_fields.h \
	%D%/bench_files.c \
	%D%/bench_histogram.c %D%/bench_histogram.h \
	%D%/bench_load.c %D%/bench_load.h \
	%D%/bench_model.c %D%/bench_model.h \
	%D%/bench_options.c %D%/bench_options.h \
	%D%/bench_plot.c %D%/bench_plot.h \
	%D%/bench_prompts.c %D%/bench_prompts.h \
	%D%/bench_random.h \
	%D%/bench_report.c %D%/bench_report.h \
	%D%/bench_stream.c %D%/bench_stream.h \
	%D%/bench_sweep.c %D%/bench_sweep.h \
	%D%/call.c %D%/call.h \
	%D%/card.c \
	%D%/chat.c \
	%D%/chat_daemon.c %D%/chat_daemon.h \
	%D%/chat_stream.c %D%/chat_stream.h \
	%D%/client.c %D%/client.h \
	%D%/compare.c \
	%D%/devices.c \
	%D%/dump.c %D%/dump.h \
	%D%/fetch.c \
	%D%/input.c %D%/input.h \
	%D%/inputs.c %D%/inputs.h \
	%D%/inspect.c %D%/inspect.h \
	%D%/inspect_json.c \
	%D%/inspect_text.c \
	%D%/io.c %D%/io.h \
	%D%/main.c %D%/main.h \
	%D%/media.c %D%/media.h \
	%D%/npy.c %D%/npy.h \
	%D%/npz.c %D%/npz.h \
	%D%/line_editor.c %D%/line_editor.h \
	%D%/ops.c \
	%D%/option.c %D%/option.h \
	%D%/pairs.c %D%/pairs.h \
	%D%/ping.c \
	%D%/print.c %D%/print.h \
	%D%/profile.c %D%/profile.h \
	%D%/profile_json.c \
	%D%/profile_text.c \
	%D%/cli.c %D%/cli.h \
	%D%/remote.c %D%/remote.h \
	%D%/remote_answer.c \
	%D%/remote_meta.c \
	%D%/remote_people.c \
	%D%/repository.c \
	%D%/result.c %D%/result.h \
	%D%/run.c \
	%D%/sig.c \
	%D%/target.c %D%/target.h \
	%D%/token.c \
	%D%/tokenize.c \
	%D%/screen.c %D%/screen.h \
	%D%/top.c %D%/top.h \
	%D%/top_print.c \
	%D%/top_sample.c \
	%D%/transfer.c %D%/transfer.h
