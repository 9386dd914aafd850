# SPDX-License-Identifier: MIT
# Several calls that run as one: cascades, lists and pipelines.
noinst_LIBRARIES += %D%/libpipeline.a
%C%_libpipeline_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libpipeline_a_SOURCES = \
	%D%/cascade.c %D%/cascade.h \
	%D%/cascade_children.c \
	%D%/cascade_prepare.c \
	%D%/cascade_priv.h \
	%D%/cascade_sizes.c %D%/cascade_sizes.h \
	%D%/pipeline.c %D%/pipeline.h \
	%D%/pipeline_describe.c \
	%D%/pipeline_example.c \
	%D%/pipeline_priv.h \
	%D%/pipeline_orders.c \
	%D%/pipelined.c
