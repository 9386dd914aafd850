# SPDX-License-Identifier: MIT
# Media that come as files, decoded: pictures, sound, and what models hear of it.
noinst_LIBRARIES += %D%/libmedia.a
%C%_libmedia_a_CFLAGS = $(SERVER_CFLAGS) $(SNDFILE_CFLAGS) $(SOXR_CFLAGS) $(VECTOR_CFLAGS)
%C%_libmedia_a_SOURCES = \
	%D%/format.c %D%/format.def %D%/format.h \
	%D%/image.c %D%/image.h \
	%D%/log_mel.c %D%/log_mel.h \
	%D%/ogg.c %D%/ogg.h \
	%D%/png_write.c %D%/png_write.h \
	%D%/sndfile.c %D%/sndfile.h \
	%D%/sound.c %D%/sound.h \
	%D%/soxr.c %D%/soxr.h
