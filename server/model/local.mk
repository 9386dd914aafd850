# SPDX-License-Identifier: MIT
# Models: where they come from, their state, their repository.
noinst_LIBRARIES += %D%/libmodel.a
%C%_libmodel_a_CFLAGS = $(SERVER_CFLAGS)
%C%_libmodel_a_SOURCES = \
	%D%/catalog.c %D%/catalog.h \
	%D%/keep.c %D%/keep.h \
	%D%/model.c %D%/model.h \
	%D%/model_describe.c \
	%D%/model_lacks.c \
	%D%/model_log.c %D%/model_log.h \
	%D%/model_state.def \
	%D%/model_stats.h \
	%D%/model_trial.c %D%/model_trial.h \
	%D%/origin.c %D%/origin.h \
	%D%/pipelines.c %D%/pipelines.h \
	%D%/pipelines_priv.h \
	%D%/pipelines_media.c \
	%D%/pipelines_read.c \
	%D%/placement.c %D%/placement.h \
	%D%/repository.c %D%/repository.h \
	%D%/repository_draft.c \
	%D%/repository_evict.c \
	%D%/repository_idle.c \
	%D%/repository_list.c \
	%D%/repository_load.c \
	%D%/repository_priv.h \
	%D%/repository_program.c \
	%D%/status_counts.c %D%/status_counts.h \
	%D%/update_fetch.c \
	%D%/update.c %D%/update.h
