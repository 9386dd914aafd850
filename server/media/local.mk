# SPDX-License-Identifier: MIT
# Media that come as files, decoded: pictures, sound, and what models hear of it.
noinst_LIBRARIES += %D%/libmedia.a
%C%_libmedia_a_CFLAGS = $(SERVER_CFLAGS) $(JPEG_CFLAGS) $(PNG_CFLAGS) $(WEBP_CFLAGS) \
	$(SNDFILE_CFLAGS) $(MPG123_CFLAGS) $(SOXR_CFLAGS) $(VECTOR_CFLAGS)
%C%_libmedia_a_SOURCES = \
	%D%/format.c %D%/format.def %D%/format.h \
	%D%/image.h %D%/image_priv.h \
	%D%/image_form.c \
	%D%/log_mel.c %D%/log_mel.h \
	%D%/pixels.c %D%/pixels.h \
	%D%/place.c %D%/place.h \
	%D%/png_write.c %D%/png_write.h \
	%D%/resize.c %D%/resize.h \
	%D%/resize_axis.c %D%/resize_axis.h \
	%D%/sound.h \
	%D%/tags.c %D%/tags.h

if HAVE_MEDIA
%C%_libmedia_a_SOURCES += \
	%D%/exif.c %D%/exif.h \
	%D%/image.c \
	%D%/image_jpeg.c \
	%D%/image_png.c \
	%D%/image_webp.c \
	%D%/libjpeg.c %D%/libjpeg.h \
	%D%/libpng.c %D%/libpng.h \
	%D%/libwebp.c %D%/libwebp.h \
	%D%/mp3.c %D%/mp3.h \
	%D%/mpg123.c %D%/mpg123.h \
	%D%/ogg.c %D%/ogg.h \
	%D%/sndfile.c %D%/sndfile.h \
	%D%/sound.c \
	%D%/sound_file.c %D%/sound_file.h \
	%D%/sound_mpg123.c %D%/sound_reader.h %D%/sound_sndfile.c \
	%D%/soxr.c %D%/soxr.h \
	%D%/wav.c %D%/wav.h
else
%C%_libmedia_a_SOURCES += %D%/without.c
endif
