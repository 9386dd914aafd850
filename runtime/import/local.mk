# SPDX-License-Identifier: MIT
# From the instructions of a file, and of its delegates, to graphs.
noinst_LIBRARIES += %D%/libimport.a
%C%_libimport_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libimport_a_SOURCES = \
	%D%/blocks.c \
	%D%/control.c \
	%D%/delegate.c %D%/delegate.h \
	%D%/delegate_list.c \
	%D%/host_calls.c \
	%D%/import_priv.h \
	%D%/kernels.c %D%/kernels.h \
	%D%/liveness.c %D%/liveness.h \
	%D%/masks.c \
	%D%/operators.c %D%/operators.h \
	%D%/payload.c %D%/payload.h \
	%D%/registers.c \
	%D%/values.c \
	%D%/vulkan.c %D%/vulkan.h \
	%D%/vulkan_conv.c \
	%D%/vulkan_llm.c \
	%D%/vulkan_ops.c \
	%D%/vulkan_quant.c \
	%D%/vulkan_read.c \
	%D%/xnnpack.c %D%/xnnpack.h \
	%D%/xnnpack_conv.c \
	%D%/xnnpack_nodes.c \
	%D%/xnnpack_quant.c \
	%D%/xnnpack_read.c %D%/xnnpack_read.h \
	%D%/xnnpack_values.c
