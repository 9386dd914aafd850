# SPDX-License-Identifier: MIT

# Decoding and printing of JSON tensors; run by hand: make tests/bench/bench_json.
noinst_PROGRAMS += %D%/bench_json
%C%_bench_json_CFLAGS = $(AM_CFLAGS) $(CJSON_CFLAGS)
%C%_bench_json_LDADD = $(PROTOCOL_LIBS) $(CJSON_LIBS)

# What the micro-kernels reach of what the machine can do; run by hand.
noinst_PROGRAMS += %D%/bench_kernels
%C%_bench_kernels_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast
%C%_bench_kernels_LDADD = $(HAL_LIBS)

# What a submission costs beyond its work; run by hand.
noinst_PROGRAMS += %D%/bench_hal
%C%_bench_hal_CFLAGS = $(AM_CFLAGS)
%C%_bench_hal_LDADD = $(HAL_LIBS)

# The daemon next to a server that does nothing; bench/http.sh runs both.
noinst_PROGRAMS += %D%/bare_server
%C%_bare_server_CFLAGS = $(SERVER_CFLAGS)
%C%_bare_server_LDADD = $(LLHTTP_ARCHIVE) $(BASE_LIBS) $(UV_LIBS) $(LLHTTP_LIBS)
EXTRA_DIST += %D%/http.sh

# Allocations of a warm request; run by hand.
noinst_PROGRAMS += %D%/count_malloc
%C%_count_malloc_LDADD = $(RUNTIME_LIBS)
%C%_count_malloc_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc

# All of them, and those that are scripts, in one table.
EXTRA_DIST += %D%/figures.sh %D%/start_time.py %D%/executorch_time.py
bench: all
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		sh $(abs_top_srcdir)/%D%/figures.sh $(MODELS)
.PHONY: bench
