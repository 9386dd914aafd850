# SPDX-License-Identifier: MIT
# Answers in a form for people: boxes, maps and texts, as the card of the model says.
noinst_LIBRARIES += %D%/libanswer.a
%C%_libanswer_a_CFLAGS = $(SERVER_CFLAGS) $(VECTOR_CFLAGS)
%C%_libanswer_a_SOURCES = \
	%D%/answer.c %D%/answer.h \
	%D%/answer_map.c \
	%D%/answer_masks.c \
	%D%/answer_points.c \
	%D%/answer_priv.h \
	%D%/answer_text.c \
	%D%/boxes.c %D%/boxes.h
