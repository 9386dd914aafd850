# SPDX-License-Identifier: MIT
# Calls: inputs, preparing, submission, results; batches, profiles.
noinst_LIBRARIES += %D%/libcall.a
%C%_libcall_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libcall_a_SOURCES = \
	%D%/speculation.c %D%/speculation.h %D%/speculation_priv.h \
	%D%/speculation_proof.c \
	%D%/batch.c %D%/batch.h \
	%D%/batch_proof.c \
	%D%/gain.def %D%/gains.c %D%/gains.h \
	%D%/inputs.c \
	%D%/inside.h \
	%D%/invocation.c %D%/invocation.h \
	%D%/pace.h \
	%D%/prepare.c \
	%D%/profile.c %D%/profile.h \
	%D%/single.c \
	%D%/small.c \
	%D%/overwrite.c %D%/overwrite.h \
	%D%/states.c \
	%D%/siblings.c %D%/siblings.h \
	%D%/steps.c %D%/steps.h \
	%D%/steps_proof.c \
	%D%/steps_trial.c %D%/steps_trial.h \
	%D%/messages.c %D%/messages.h
