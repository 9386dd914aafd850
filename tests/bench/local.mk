# SPDX-License-Identifier: MIT
# The benches are built with the tests, so that they keep compiling. They run by hand or by
# `make bench`.
BENCHES =
check_PROGRAMS += $(BENCHES)

# Decoding and printing of JSON tensors, beside cJSON.
BENCHES += %D%/bench_json
%C%_bench_json_CFLAGS = $(AM_CFLAGS) $(CJSON_CFLAGS)
%C%_bench_json_LDADD = $(PROTOCOL_LIBS) $(CJSON_LIBS)

# The tokens that a grammar allows.
BENCHES += %D%/bench_masks
%C%_bench_masks_CFLAGS = $(SERVER_CFLAGS)
%C%_bench_masks_LDADD = $(TEXT_LIBS) $(PROTOCOL_LIBS) -lm

# The speed of the micro-kernels beside the peak of the machine.
BENCHES += %D%/bench_kernels
%C%_bench_kernels_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast
%C%_bench_kernels_LDADD = $(HAL_LIBS)

# The cost of a submission beyond its work.
BENCHES += %D%/bench_hal
%C%_bench_hal_CFLAGS = $(AM_CFLAGS)
%C%_bench_hal_LDADD = $(HAL_LIBS)

# A pipeline beside its steps.
BENCHES += %D%/bench_pipeline
%C%_bench_pipeline_LDADD = $(RUNTIME_LIBS)

# A server that does nothing, the lower bound for pted; bench/http.sh runs both.
BENCHES += %D%/bare_server
%C%_bare_server_CFLAGS = $(SERVER_CFLAGS)
%C%_bare_server_LDADD = $(LLHTTP_ARCHIVE) $(BASE_LIBS) $(UV_LIBS) $(LLHTTP_LIBS)
EXTRA_DIST += %D%/http.sh

# The same for gRPC; http2.py runs it beside pted and others.
BENCHES += %D%/bare_grpc
%C%_bare_grpc_CFLAGS = $(SERVER_CFLAGS)
%C%_bare_grpc_LDADD = $(BASE_LIBS) $(UV_LIBS) $(NGHTTP2_LIBS)
EXTRA_DIST += %D%/http2.py

# The length of the loop's turns; loop_turns.py compiles the library that it preloads.
EXTRA_DIST += %D%/loop_turns.c %D%/loop_turns.py

# The instructions of a request, beside those that are stored.
TESTS += %D%/instructions.py
EXTRA_DIST += %D%/instructions.py %D%/instructions.tsv

# The instructions of a call on aarch64, counted in an emulator.
EXTRA_DIST += %D%/arm.py %D%/arm_networks.py %D%/count_plugin.c %D%/onnx_calls.c

# Allocations of a warm request.
BENCHES += %D%/count_malloc
%C%_count_malloc_SOURCES = %D%/count_malloc.c %D%/bench_call.c %D%/bench_call.h
%C%_count_malloc_LDADD = $(RUNTIME_LIBS)
%C%_count_malloc_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc

# A call of a sequence, and plans for new dims.
BENCHES += %D%/bench_calls
%C%_bench_calls_SOURCES = %D%/bench_calls.c %D%/bench_call.c %D%/bench_call.h
%C%_bench_calls_LDADD = $(RUNTIME_LIBS)

# Calls on more workers than this machine has processors.
BENCHES += %D%/bench_cores
%C%_bench_cores_SOURCES = %D%/bench_cores.c %D%/bench_call.c %D%/bench_call.h
%C%_bench_cores_LDADD = $(RUNTIME_LIBS)

# Runs all benches, scripts included. The figures of this source tree's own models go into
# docs/project/figures.md, and three of them into README.md.
EXTRA_DIST += %D%/daemon.py %D%/figures.sh %D%/readme_figures.py %D%/sched.py %D%/start_time.py \
	%D%/executorch_time.py
# Well-known networks, pictures and a language model, beside other engines; not part of `make bench`.
EXTRA_DIST += %D%/cache_int8.py %D%/decode.py %D%/drafts.py %D%/folders.py %D%/gpu.py \
	%D%/language.py %D%/load.py %D%/media.py %D%/orders.py \
	%D%/peaks.py %D%/peers.py %D%/peers_svg.py %D%/peers.txt %D%/speech.py %D%/streams.py
CLEANFILES += figures.txt
# Not `all`: that starts a second make, which would write the same archives at the same time.
bench: all-am $(BENCHES)
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		sh $(abs_top_srcdir)/%D%/figures.sh $(MODELS) | tee figures.txt
	test -n '$(MODELS)$(COLLECTION)' || \
		python3 $(abs_top_srcdir)/%D%/readme_figures.py figures.txt \
		$(abs_top_srcdir)/docs/project/figures.md $(abs_top_srcdir)/README.md
.PHONY: bench
