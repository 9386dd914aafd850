# SPDX-License-Identifier: MIT
# Tokenizers: text to tokens and back.
noinst_LIBRARIES += %D%/libtokenizer.a
%C%_libtokenizer_a_CFLAGS = $(SERVER_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
%C%_libtokenizer_a_SOURCES = \
	%D%/bpe.c \
	%D%/byte_level.c \
	%D%/charsmap.c %D%/charsmap.h \
	%D%/decode.c %D%/decode.h \
	%D%/json_normal.c \
	%D%/json_reader.c %D%/json_reader.h \
	%D%/json_template.c \
	%D%/json_vocab.c %D%/json_vocab.h \
	%D%/model.c \
	%D%/normal.c \
	%D%/pattern.c %D%/pattern.h \
	%D%/pattern_class.c \
	%D%/pattern_fold.c %D%/pattern_fold.def \
	%D%/pattern_priv.h \
	%D%/pattern_translate.c %D%/pattern_translate.h \
	%D%/ranks.c \
	%D%/sentencepiece.c \
	%D%/split.c \
	%D%/tokenizer.c %D%/tokenizer.h \
	%D%/tokenizer_added.c \
	%D%/tokenizer_json.c \
	%D%/tokenizer_load.c \
	%D%/tokenizer_priv.h \
	%D%/trie.c %D%/trie.h \
	%D%/unicode.c %D%/unicode.h \
	%D%/unigram.c \
	%D%/vocab.c %D%/vocab.h
