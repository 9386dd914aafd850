# SPDX-License-Identifier: MIT
# hal/cpu/uk/local.mk adds to UK_OBJECTS what is compiled with flags of its own; libhal.a contains it.
UK_OBJECTS =
include hal/cpu/uk/local.mk

noinst_LIBRARIES += %D%/libhal.a
%C%_libhal_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libhal_a_LIBADD = $(UK_OBJECTS)
%C%_libhal_a_DEPENDENCIES = $(UK_OBJECTS)
%C%_libhal_a_SOURCES = \
	%D%/buffer.h \
	%D%/command.h \
	%D%/device.h \
	%D%/device_priv.h \
	%D%/kernel.h \
	%D%/pool.h \
	%D%/queue.h \
	%D%/semaphore.h \
	%D%/cpu/isa.c %D%/cpu/isa.h \
	%D%/cpu/uk.c %D%/cpu/uk.h
