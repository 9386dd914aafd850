# SPDX-License-Identifier: MIT
# Hostile input: fuzz_NAME runs over corpus/NAME here, and over anything under libFuzzer.
FUZZ_TESTS = %D%/fuzz_pte %D%/test_pte_mutations %D%/test_program_mutations \
	%D%/mutate_call %D%/mutate_card %D%/mutate_conf %D%/mutate_conn %D%/mutate_document \
	%D%/mutate_grpc %D%/mutate_http2 \
	%D%/mutate_image %D%/mutate_json %D%/mutate_multipart %D%/mutate_npz %D%/mutate_number \
	%D%/mutate_oip %D%/mutate_proxy %D%/mutate_ptd %D%/mutate_sig \
	%D%/mutate_template %D%/mutate_tokenizer

check_PROGRAMS += $(FUZZ_TESTS) %D%/replay_pte %D%/replay_program
TESTS += $(FUZZ_TESTS) %D%/test_malformed.sh %D%/program_corpus.sh

%C%_fuzz_pte_SOURCES = %D%/fuzz_pte.c %D%/replay.c
%C%_fuzz_pte_LDADD = $(PTE_LIBS)
%C%_replay_pte_LDADD = $(PTE_LIBS)
%C%_test_pte_mutations_SOURCES = %D%/test_pte_mutations.c tests/unit/pte_sample.c
%C%_test_pte_mutations_LDADD = $(PTE_LIBS)

# The same, up to the results of a call.
CALL_PROGRAM = %D%/call_program.c %D%/call_program.h %D%/program_mutate.c %D%/program_mutate.h \
	%D%/program_sites.c %D%/program_sites.h
%C%_test_program_mutations_SOURCES = %D%/test_program_mutations.c $(CALL_PROGRAM)
%C%_test_program_mutations_LDADD = $(RUNTIME_LIBS)
%C%_replay_program_SOURCES = %D%/replay_program.c $(CALL_PROGRAM)
%C%_replay_program_LDADD = $(RUNTIME_LIBS)

# The targets for text formats again, with a main() that also damages the files of the corpus.
%C%_mutate_document_SOURCES = %D%/fuzz_document.c %D%/mutate.c
%C%_mutate_document_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=100000 \
	-DMUTATE_WORDS='"tests/fuzz/words_document.def"'
%C%_mutate_document_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_document_LDADD = $(SERVER_LIBS)
%C%_mutate_card_SOURCES = %D%/fuzz_card.c %D%/mutate.c
%C%_mutate_card_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=10000 \
	-DMUTATE_WORDS='"tests/fuzz/words_card.def"'
%C%_mutate_card_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_card_LDADD = $(SERVER_LIBS)
%C%_mutate_conf_SOURCES = %D%/fuzz_conf.c %D%/mutate.c
%C%_mutate_conf_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=50000 \
	-DMUTATE_WORDS='"tests/fuzz/words_conf.def"'
%C%_mutate_conf_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_conf_LDADD = $(SERVER_LIBS)
%C%_mutate_multipart_SOURCES = %D%/fuzz_multipart.c %D%/mutate.c
%C%_mutate_multipart_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=100000 \
	-DMUTATE_WORDS='"tests/fuzz/words_multipart.def"'
%C%_mutate_multipart_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_multipart_LDADD = $(SERVER_LIBS)
%C%_mutate_npz_SOURCES = %D%/fuzz_npz.c %D%/mutate.c
%C%_mutate_npz_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=100000 \
	-DMUTATE_WORDS='"tests/fuzz/words_npz.def"'
%C%_mutate_npz_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_npz_LDADD = server/cli/libcli.a $(SERVER_LIBS)
%C%_mutate_proxy_SOURCES = %D%/fuzz_proxy.c %D%/mutate.c
%C%_mutate_proxy_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=100000 \
	-DMUTATE_WORDS='"tests/fuzz/words_proxy.def"'
%C%_mutate_proxy_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_proxy_LDADD = $(SERVER_LIBS)
%C%_mutate_image_SOURCES = %D%/fuzz_image.c %D%/mutate.c
%C%_mutate_image_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=10000 \
	-DMUTATE_WORDS='"tests/fuzz/words_image.def"'
%C%_mutate_image_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_image_LDADD = $(SERVER_LIBS)
%C%_mutate_grpc_SOURCES = %D%/fuzz_grpc.c %D%/mutate.c
%C%_mutate_grpc_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=50000 \
	-DMUTATE_WORDS='"tests/fuzz/words_grpc.def"'
%C%_mutate_grpc_LDADD = $(PROTOCOL_LIBS)
%C%_mutate_json_SOURCES = %D%/fuzz_json.c %D%/mutate.c
%C%_mutate_json_LDADD = $(PROTOCOL_LIBS)
%C%_mutate_number_SOURCES = %D%/fuzz_number.c %D%/mutate.c
%C%_mutate_number_LDADD = $(PROTOCOL_LIBS)
%C%_mutate_oip_SOURCES = %D%/fuzz_oip.c %D%/mutate.c
%C%_mutate_oip_LDADD = $(PROTOCOL_LIBS)
%C%_mutate_call_SOURCES = %D%/fuzz_call.c %D%/mutate.c
%C%_mutate_call_LDADD = $(PROTOCOL_LIBS)
%C%_mutate_sig_SOURCES = %D%/fuzz_sig.c %D%/mutate.c
%C%_mutate_sig_LDADD = $(PROTOCOL_LIBS)

%C%_mutate_tokenizer_SOURCES = %D%/fuzz_tokenizer.c %D%/mutate.c
%C%_mutate_tokenizer_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=20000 \
	-DMUTATE_WORDS='"tests/fuzz/words_tokenizer.def"'
%C%_mutate_tokenizer_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_tokenizer_LDADD = $(SERVER_LIBS)

%C%_mutate_template_SOURCES = %D%/fuzz_template.c %D%/mutate.c
%C%_mutate_template_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=20000 \
	-DMUTATE_WORDS='"tests/fuzz/words_template.def"'
%C%_mutate_template_LDADD = $(TEXT_LIBS) $(PROTOCOL_LIBS) -lm

# Connections of a server: %D%/conn_world.c is the server and its clients.
%C%_mutate_conn_SOURCES = %D%/fuzz_conn.c %D%/conn_world.c %D%/conn_world.h %D%/mutate.c
%C%_mutate_conn_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=20000 \
	-DMUTATE_WORDS='"tests/fuzz/words_http.def"'
%C%_mutate_conn_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_conn_LDADD = $(SERVER_LIBS)

%C%_mutate_http2_SOURCES = %D%/fuzz_http2.c %D%/conn_world.c %D%/conn_world.h %D%/mutate.c
%C%_mutate_http2_CPPFLAGS = $(AM_CPPFLAGS) -DMUTATE_ROUNDS=10000 \
	-DMUTATE_WORDS='"tests/fuzz/words_http2.def"'
%C%_mutate_http2_CFLAGS = $(SERVER_CFLAGS)
%C%_mutate_http2_LDADD = $(SERVER_LIBS)

# Data files are small enough for the same test.
%C%_mutate_ptd_SOURCES = %D%/fuzz_ptd.c %D%/mutate.c
%C%_mutate_ptd_LDADD = $(PTE_LIBS)
EXTRA_DIST += %D%/test_malformed.sh %D%/program_corpus.sh %D%/corpus \
	%D%/words_card.def %D%/words_conf.def %D%/words_document.def %D%/words_grpc.def %D%/words_http.def %D%/words_http2.def \
	%D%/words_image.def \
	%D%/words_json.def %D%/words_multipart.def %D%/words_proxy.def %D%/words_npz.def \
	%D%/words_template.def %D%/words_tokenizer.def
