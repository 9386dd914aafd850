# SPDX-License-Identifier: MIT
# Tests in which the Nth allocation fails, for every N; also threads, and accept().
OOM_TESTS = %D%/test_accept %D%/test_answer_oom %D%/test_card_oom %D%/test_conf_oom %D%/test_document_oom \
	%D%/test_pte_oom %D%/test_runtime_oom %D%/test_start %D%/test_template_oom \
	%D%/test_tokenizer_oom
check_PROGRAMS += $(OOM_TESTS)
TESTS += $(OOM_TESTS)

%C%_test_accept_CFLAGS = $(SERVER_CFLAGS)
%C%_test_accept_LDADD = $(SERVER_LIBS)
%C%_test_accept_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=accept4,--wrap=uv_tcp_open \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_answer_oom_SOURCES = %D%/test_answer_oom.c %D%/failing.c %D%/failing.h
%C%_test_answer_oom_CFLAGS = $(SERVER_CFLAGS)
%C%_test_answer_oom_LDADD = $(SERVER_LIBS)
%C%_test_answer_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_card_oom_SOURCES = %D%/test_card_oom.c %D%/failing.c %D%/failing.h
%C%_test_card_oom_CFLAGS = $(SERVER_CFLAGS)
%C%_test_card_oom_LDADD = $(SERVER_LIBS)
%C%_test_card_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_conf_oom_SOURCES = %D%/test_conf_oom.c %D%/failing.c %D%/failing.h
%C%_test_conf_oom_CFLAGS = $(SERVER_CFLAGS)
%C%_test_conf_oom_LDADD = $(SERVER_LIBS)
%C%_test_conf_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_document_oom_SOURCES = %D%/test_document_oom.c %D%/failing.c %D%/failing.h
%C%_test_document_oom_CFLAGS = $(SERVER_CFLAGS)
%C%_test_document_oom_LDADD = $(SERVER_LIBS)
%C%_test_document_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_tokenizer_oom_SOURCES = %D%/test_tokenizer_oom.c %D%/failing.c %D%/failing.h
%C%_test_tokenizer_oom_CFLAGS = $(SERVER_CFLAGS)
%C%_test_tokenizer_oom_LDADD = $(SERVER_LIBS)
%C%_test_tokenizer_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_pte_oom_SOURCES = %D%/test_pte_oom.c %D%/failing.c %D%/failing.h tests/unit/pte_sample.c
%C%_test_pte_oom_LDADD = $(PTE_LIBS)
%C%_test_pte_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_runtime_oom_SOURCES = %D%/test_runtime_oom.c tests/unit/call_support.c \
	tests/unit/call_support.h
%C%_test_runtime_oom_LDADD = $(RUNTIME_LIBS)
%C%_test_runtime_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=aligned_alloc,--wrap=posix_memalign
%C%_test_start_CFLAGS = $(SERVER_CFLAGS)
%C%_test_start_LDADD = $(SERVER_LIBS)
%C%_test_start_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create
%C%_test_template_oom_SOURCES = %D%/test_template_oom.c %D%/failing.c %D%/failing.h
%C%_test_template_oom_LDADD = $(TEXT_LIBS) $(PROTOCOL_LIBS) -lm
%C%_test_template_oom_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
