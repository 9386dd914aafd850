# SPDX-License-Identifier: MIT
# Texts of language models: tokenizers.
noinst_LIBRARIES += %D%/libtext.a
%C%_libtext_a_CFLAGS = $(SERVER_CFLAGS) $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
%C%_libtext_a_SOURCES = \
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
	%D%/pattern_translate.c %D%/pattern_translate.h \
	%D%/protobuf.c %D%/protobuf.h \
	%D%/ranks.c \
	%D%/sentencepiece.c \
	%D%/split.c \
	%D%/tokenizer.c %D%/tokenizer.h \
	%D%/tokenizer_json.c \
	%D%/tokenizer_priv.h \
	%D%/trie.c %D%/trie.h \
	%D%/unicode.c %D%/unicode.h \
	%D%/unigram.c \
	%D%/vocab.c %D%/vocab.h
