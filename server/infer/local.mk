# SPDX-License-Identifier: MIT
# Calls of models: from the body of a request to its answer.
server_libserver_a_SOURCES += \
	%D%/bundle.c %D%/bundle.h \
	%D%/bundle_read.c \
	%D%/infer.c %D%/infer.h \
	%D%/infer_answer.c \
	%D%/infer_call.c \
	%D%/infer_form.c \
	%D%/infer_media.c %D%/infer_media.h \
	%D%/infer_oip.c \
	%D%/infer_one.c \
	%D%/infer_predict.c \
	%D%/infer_profile.c \
	%D%/infer_sequence.c \
	%D%/infer_shared.c \
	%D%/infer_tensors.c \
	%D%/regions.c %D%/regions.h \
	%D%/stats.c %D%/stats.h
