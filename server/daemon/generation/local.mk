# SPDX-License-Identifier: MIT
# Requests that take many calls of a model: generations, transcriptions, embeddings.
noinst_LIBRARIES += %D%/libgeneration.a
%C%_libgeneration_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libgeneration_a_SOURCES = \
	%D%/by_body.c %D%/by_body.h \
	%D%/embedding.c %D%/embedding.h \
	%D%/generation.c %D%/generation.h \
	%D%/generation_choice.c \
	%D%/generation_drafts.c \
	%D%/generation_grpc.c %D%/generation_grpc.h \
	%D%/generation_parse.c \
	%D%/generation_prefix.c \
	%D%/generation_score.c \
	%D%/generation_priv.h \
	%D%/runs.c %D%/runs.h \
	%D%/speech_ask.c %D%/speech_ask.def %D%/speech_ask.h \
	%D%/speech_reply.c %D%/speech_reply.h \
	%D%/transcription.c %D%/transcription.h \
	%D%/transcription_encode.c \
	%D%/transcription_parse.c \
	%D%/transcription_priv.h
