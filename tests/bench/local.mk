# SPDX-License-Identifier: MIT

# Decoding and printing of JSON tensors; run by hand: make tests/bench/bench_json.
noinst_PROGRAMS += %D%/bench_json
%C%_bench_json_CFLAGS = $(AM_CFLAGS) $(CJSON_CFLAGS)
%C%_bench_json_LDADD = $(PROTOCOL_LIBS) $(CJSON_LIBS)
