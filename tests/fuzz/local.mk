# SPDX-License-Identifier: MIT
# Hostile input: fuzz_NAME runs over corpus/NAME here, and over anything under libFuzzer.
FUZZ_TESTS = %D%/fuzz_pte %D%/test_pte_mutations

check_PROGRAMS += $(FUZZ_TESTS) %D%/replay_pte
TESTS += $(FUZZ_TESTS) %D%/test_malformed.sh

%C%_fuzz_pte_SOURCES = %D%/fuzz_pte.c %D%/replay.c
%C%_fuzz_pte_LDADD = runtime/libruntime.a $(BASE_LIBS)
%C%_replay_pte_LDADD = runtime/libruntime.a $(BASE_LIBS)
%C%_test_pte_mutations_SOURCES = %D%/test_pte_mutations.c tests/unit/pte_sample.c
%C%_test_pte_mutations_LDADD = runtime/libruntime.a $(BASE_LIBS)
EXTRA_DIST += %D%/test_malformed.sh %D%/corpus
