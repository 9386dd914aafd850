# SPDX-License-Identifier: MIT
# Inputs of models that come as files or texts, as the card of the model says.
noinst_LIBRARIES += %D%/libintake.a
%C%_libintake_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libintake_a_SOURCES = \
	%D%/intake.c %D%/intake.h \
	%D%/medium.c %D%/medium.h %D%/medium_priv.h \
	%D%/medium_image.c \
	%D%/medium_sound.c \
	%D%/medium_text.c
