# SPDX-License-Identifier: MIT
# Grammars of constrained output.
noinst_LIBRARIES += %D%/libgrammar.a
%C%_libgrammar_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libgrammar_a_SOURCES = \
	%D%/grammar.h \
	%D%/grammar_build.c %D%/grammar_call.c \
	%D%/grammar_gbnf.c \
	%D%/grammar_json.c \
	%D%/grammar_json_priv.h \
	%D%/grammar_mask.c \
	%D%/grammar_meet.c \
	%D%/grammar_number.c \
	%D%/grammar_priv.h \
	%D%/grammar_regex.c \
	%D%/grammar_schema.c \
	%D%/grammar_schema_nest.c \
	%D%/grammar_schema_priv.h \
	%D%/grammar_schema_scalar.c \
	%D%/grammar_walk.c \
	%D%/grammar_walk_priv.h \
	%D%/schema.c \
	%D%/schema_merge.c \
	%D%/schema_priv.h
