# SPDX-License-Identifier: MIT
# Calls of models: from the body of a request to its answer.
noinst_LIBRARIES += %D%/libinfer.a
%C%_libinfer_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libinfer_a_SOURCES = \
	%D%/bundle.c %D%/bundle.h \
	%D%/bundle_edges.c \
	%D%/bundle_read.c \
	%D%/codec.c %D%/codec.h \
	%D%/codec_call.c \
	%D%/codec_form.c \
	%D%/codec_grpc.c %D%/codec_grpc.h \
	%D%/codec_oip.c \
	%D%/codec_predict.c \
	%D%/habit.c %D%/habit.h \
	%D%/infer.c %D%/infer.h \
	%D%/infer_answer.c %D%/infer_answer.h \
	%D%/infer_due.c \
	%D%/infer_encode.c \
	%D%/infer_media.c %D%/infer_media.h \
	%D%/infer_one.c %D%/infer_one.h \
	%D%/infer_ops.h \
	%D%/infer_order.c %D%/infer_order.h \
	%D%/infer_priv.h \
	%D%/infer_profile.c %D%/infer_profile.h \
	%D%/infer_sequence.c %D%/infer_sequence.h \
	%D%/infer_shared.c %D%/infer_shared.h \
	%D%/outcome.h \
	%D%/query.c %D%/query.def %D%/query.h \
	%D%/regions.c %D%/regions.h \
	%D%/seats.c %D%/seats.h \
	%D%/stats.c %D%/stats.h \
	%D%/work.c %D%/work.h
