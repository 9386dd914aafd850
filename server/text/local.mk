# SPDX-License-Identifier: MIT
# Text of language models: tokenizers, values, chat templates, grammars.
noinst_LIBRARIES += %D%/libtext.a
%C%_libtext_a_CFLAGS = $(SERVER_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
%C%_libtext_a_SOURCES = \
	%D%/bpe.c \
	%D%/byte_level.c \
	%D%/charsmap.c %D%/charsmap.h \
	%D%/decode.c %D%/decode.h \
	%D%/grammar.h \
	%D%/grammar_build.c \
	%D%/grammar_gbnf.c \
	%D%/grammar_json.c %D%/grammar_json_priv.h \
	%D%/grammar_mask.c \
	%D%/grammar_number.c \
	%D%/grammar_priv.h \
	%D%/grammar_regex.c \
	%D%/grammar_schema.c \
	%D%/grammar_walk.c %D%/grammar_walk_priv.h \
	%D%/json_normal.c \
	%D%/json_reader.c %D%/json_reader.h \
	%D%/json_template.c \
	%D%/json_vocab.c %D%/json_vocab.h \
	%D%/model.c \
	%D%/normal.c \
	%D%/pattern.c %D%/pattern.h %D%/pattern_priv.h \
	%D%/pattern_class.c \
	%D%/pattern_fold.c %D%/pattern_fold.def \
	%D%/pattern_translate.c %D%/pattern_translate.h \
	%D%/protobuf.c %D%/protobuf.h \
	%D%/pytext.c %D%/pytext.def %D%/pytext.h \
	%D%/ranks.c \
	%D%/sentencepiece.c \
	%D%/schema.c %D%/schema_priv.h \
	%D%/split.c \
	%D%/template.h \
	%D%/template_arithmetic.c \
	%D%/template_call.c \
	%D%/template_eval.c \
	%D%/template_expression.c \
	%D%/template_filters.c \
	%D%/template_filters_list.c \
	%D%/template_filters_priv.h \
	%D%/template_lex.c \
	%D%/template_literal.c \
	%D%/template_methods.c \
	%D%/template_parse.c %D%/template_parse_priv.h \
	%D%/template_parser.c \
	%D%/template_priv.h \
	%D%/template_render.c \
	%D%/template_tests.c \
	%D%/template_value.c \
	%D%/tokenizer.c %D%/tokenizer.h \
	%D%/tokenizer_added.c \
	%D%/tokenizer_json.c \
	%D%/tokenizer_load.c \
	%D%/tokenizer_priv.h \
	%D%/trie.c %D%/trie.h \
	%D%/unicode.c %D%/unicode.h \
	%D%/unigram.c \
	%D%/value.c %D%/value.h \
	%D%/value_print.c \
	%D%/vocab.c %D%/vocab.h
