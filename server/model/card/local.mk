# SPDX-License-Identifier: MIT
# Cards of models: reading, applying to a program, first calls, writing a first one.
noinst_LIBRARIES += %D%/libcard.a
%C%_libcard_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libcard_a_SOURCES = \
	%D%/beside.c %D%/beside.h \
	%D%/call_method.c %D%/call_method.h \
	%D%/card.c %D%/card.def %D%/card.h %D%/card_priv.h \
	%D%/card_adapt.c \
	%D%/card_answer.c \
	%D%/card_apply.c \
	%D%/card_derive.c \
	%D%/card_media.c \
	%D%/card_pixels.c \
	%D%/card_generation.c \
	%D%/card_image.c \
	%D%/card_print.c \
	%D%/card_read.c \
	%D%/card_sound.c \
	%D%/card_text.c \
	%D%/card_schema.c %D%/card_schema.h \
	%D%/card_steps.c %D%/card_steps.h \
	%D%/derive.c %D%/derive.h %D%/derive_priv.h \
	%D%/derive_hub.c \
	%D%/derive_yolo.c \
	%D%/warm_up.c %D%/warm_up.h
