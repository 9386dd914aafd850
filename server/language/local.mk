# SPDX-License-Identifier: MIT
# Language models: what they are, what is asked of them, the next token, the answer.
noinst_LIBRARIES += %D%/liblanguage.a
# Comparisons of the sampler need not trap, so that the compiler can use vectors.
%C%_liblanguage_a_CFLAGS = $(SERVER_CFLAGS) -fno-trapping-math
%C%_liblanguage_a_SOURCES = \
	%D%/ask_defaults.c \
	%D%/ask.c %D%/ask.def %D%/ask.h \
	%D%/ask_cohere.c \
	%D%/ask_llama.c \
	%D%/ask_message.c %D%/ask_message.h \
	%D%/ask_ollama.c \
	%D%/ask_prediction.c %D%/ask_prediction.h \
	%D%/ask_priv.h \
	%D%/ask_reasoning.c %D%/ask_reasoning.h \
	%D%/ask_response.c %D%/ask_response.h \
	%D%/ask_shape.c \
	%D%/ask_text.c %D%/ask_text.h \
	%D%/ask_tools.c %D%/ask_tools.h \
	%D%/ask_values.c %D%/ask_values.h \
	%D%/sidecar.c %D%/sidecar.h \
	%D%/chat.c %D%/chat.h \
	%D%/constraint.c %D%/constraint.h \
	%D%/drafts.c %D%/drafts.h \
	%D%/embed_ask.c %D%/embed_ask.h \
	%D%/embed_reply.c %D%/embed_reply.h \
	%D%/embedder.c %D%/embedder.h \
	%D%/exported.c %D%/exported.h \
	%D%/form.c %D%/form.h \
	%D%/generator.c %D%/generator.h \
	%D%/infill.c %D%/infill.def %D%/infill.h \
	%D%/infill_fit.c %D%/infill_fit.h \
	%D%/reply.c %D%/reply.h \
	%D%/reply_cohere.c %D%/reply_cohere.h \
	%D%/reply_grpc.c %D%/reply_grpc.h \
	%D%/reply_llama.c %D%/reply_llama.h \
	%D%/reply_marks.c %D%/reply_marks.h \
	%D%/reply_message.c %D%/reply_message.h \
	%D%/reply_ollama.c %D%/reply_ollama.h \
	%D%/reply_response.c %D%/reply_response.h \
	%D%/sampler.c %D%/sampler.h \
	%D%/sampler_order.c %D%/sampler_order.h \
	%D%/stops.c %D%/stops.h \
	%D%/thinking.c %D%/thinking.def %D%/thinking.h \
	%D%/thoughts.c %D%/thoughts.h \
	%D%/texts.c %D%/texts.h \
	%D%/tools.c %D%/tools.def %D%/tools.h %D%/tools_priv.h \
	%D%/tools_literal.c %D%/tools_literal.h \
	%D%/tools_calls.c %D%/tools_named.c %D%/tools_object.c %D%/tools_pieces.c %D%/tools_tags.c \
	%D%/tools_json.c %D%/tools_json.h \
	%D%/tools_print.c %D%/tools_reader.c \
	%D%/transcriber.c %D%/transcriber.h %D%/language.def \
	%D%/transcript.c %D%/transcript.h \
	%D%/words.c %D%/words.h
