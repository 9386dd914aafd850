# SPDX-License-Identifier: MIT
# The VM: calls that walk the statements of their code.
noinst_LIBRARIES += %D%/libvm.a
%C%_libvm_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libvm_a_SOURCES = \
	%D%/block.c \
	%D%/host.c \
	%D%/memory.c \
	%D%/results.c \
	%D%/vm.c %D%/vm.h \
	%D%/walk.c
