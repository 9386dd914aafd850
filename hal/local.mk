# SPDX-License-Identifier: MIT
# hal/cpu/uk/local.mk adds objects with compiler flags of their own to UK_OBJECTS, for libhal.a.
UK_OBJECTS =
include hal/cpu/uk/local.mk

noinst_LIBRARIES += %D%/libhal.a
%C%_libhal_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libhal_a_CCASFLAGS = -Wa,-I$(srcdir)/%D%/vulkan/shaders/generated
%C%_libhal_a_LIBADD = $(UK_OBJECTS)
%C%_libhal_a_DEPENDENCIES = $(UK_OBJECTS)
%C%_libhal_a_SOURCES = \
	%D%/buffer.c %D%/buffer.h \
	%D%/capability.def \
	%D%/command.c %D%/command.h %D%/command_priv.h \
	%D%/device.c %D%/device.h %D%/device_priv.h \
	%D%/drivers.c \
	%D%/fault.c %D%/fault.def %D%/fault.h \
	%D%/kernel.h \
	%D%/pages.c %D%/pages.h \
	%D%/pool.c %D%/pool.h \
	%D%/profile.c %D%/profile.h \
	%D%/queue.c %D%/queue.h \
	%D%/resize.h \
	%D%/semaphore.c %D%/semaphore.h \
	%D%/suballoc.c %D%/suballoc.h \
	%D%/thread.c %D%/thread.h \
	%D%/timepoints.c %D%/timepoints.h \
	%D%/zone.c %D%/zone_priv.h \
	%D%/cpu/buffer.c \
	%D%/cpu/callers.c %D%/cpu/callers.h \
	%D%/cpu/cpus.c %D%/cpu/cpus.h \
	%D%/cpu/device.c %D%/cpu/device.h \
	%D%/cpu/isa.c %D%/cpu/isa.def %D%/cpu/isa.h \
	%D%/cpu/map.c %D%/cpu/map.h \
	%D%/cpu/pages.c %D%/cpu/pages.h \
	%D%/cpu/probe.c \
	%D%/cpu/resize.c %D%/cpu/resize.h \
	%D%/cpu/routine.c %D%/cpu/routine.h \
	%D%/cpu/queue.c \
	%D%/cpu/submission.h \
	%D%/cpu/thread_memory.c %D%/cpu/thread_memory.h \
	%D%/cpu/copy.c \
	%D%/cpu/uk.c %D%/cpu/uk.h %D%/cpu/uk_subnormals.h %D%/cpu/uk_u8.h \
	%D%/cpu/uk_winograd.h \
	%D%/cpu/workers.c %D%/cpu/workers.h

VULKAN_SOURCES = \
	%D%/vulkan/device.c %D%/vulkan/device.h \
	%D%/vulkan/features.c %D%/vulkan/features.h \
	%D%/vulkan/functions.def \
	%D%/vulkan/inject.c %D%/vulkan/inject.def %D%/vulkan/inject.h \
	%D%/vulkan/loader.c %D%/vulkan/loader.h \
	%D%/vulkan/matrix.h \
	%D%/vulkan/memory.c %D%/vulkan/memory.h \
	%D%/vulkan/pipeline.c \
	%D%/vulkan/placement.c \
	%D%/vulkan/profile.c \
	%D%/vulkan/routine.c %D%/vulkan/routine.h %D%/vulkan/routine_priv.h \
	%D%/vulkan/queue.c \
	%D%/vulkan/replay.c \
	%D%/vulkan/upload.c \
	%D%/vulkan/shaders/generated/spirv.S %D%/vulkan/shaders/generated/spirv.h
if HAVE_VULKAN
%C%_libhal_a_SOURCES += $(VULKAN_SOURCES)
else
EXTRA_DIST += $(VULKAN_SOURCES)
endif
# contrib/shaders.sh writes the files of vulkan/shaders/generated/; they are committed. The assembler
# reads the words, which the compiler's lists of dependencies do not know.
VULKAN_SPIRV = %D%/vulkan/shaders/generated/copy.spv
EXTRA_DIST += $(VULKAN_SPIRV)
%D%/vulkan/shaders/generated/libhal_a-spirv.$(OBJEXT): $(VULKAN_SPIRV)

EXTRA_DIST += \
	%D%/vulkan/shaders/copy.comp \
	%D%/vulkan/shaders/kernel.glsl \
	%D%/vulkan/shaders/matrix.glsl
