# SPDX-License-Identifier: MIT
# hal/cpu/uk/local.mk adds to UK_OBJECTS what is compiled with flags of its own; libhal.a contains it.
UK_OBJECTS =
include hal/cpu/uk/local.mk

noinst_LIBRARIES += %D%/libhal.a
%C%_libhal_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libhal_a_LIBADD = $(UK_OBJECTS)
%C%_libhal_a_DEPENDENCIES = $(UK_OBJECTS)
%C%_libhal_a_SOURCES = \
	%D%/asan.h \
	%D%/buffer.c %D%/buffer.h \
	%D%/command.c %D%/command.h %D%/command_priv.h \
	%D%/device.c %D%/device.h %D%/device_priv.h \
	%D%/drivers.c \
	%D%/kernel.h \
	%D%/pool.c %D%/pool.h \
	%D%/queue.c %D%/queue.h \
	%D%/semaphore.c %D%/semaphore.h \
	%D%/cpu/buffer.c \
	%D%/cpu/cpus.c %D%/cpu/cpus.h \
	%D%/cpu/device.c %D%/cpu/device.h \
	%D%/cpu/isa.c %D%/cpu/isa.h \
	%D%/cpu/program.c %D%/cpu/program.h \
	%D%/cpu/queue.c \
	%D%/cpu/submission.h \
	%D%/cpu/transfer.c \
	%D%/cpu/uk.c %D%/cpu/uk.h \
	%D%/cpu/workers.c %D%/cpu/workers.h
