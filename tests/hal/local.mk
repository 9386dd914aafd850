# SPDX-License-Identifier: MIT
# cts is one suite for every device, with a script for each device that it runs against; test_uk_*
# compare the levels of the CPU's micro-kernels.
if HAVE_CMOCKA
UK_TESTS = %D%/test_uk_bf16 %D%/test_uk_dw %D%/test_uk_gemm %D%/test_uk_math %D%/test_uk_u8 \
	%D%/test_uk_vec %D%/test_uk_winograd
check_PROGRAMS += $(UK_TESTS)
TESTS += $(UK_TESTS)

if CPU_X86
# The kernels of AMX with the instructions of amx_soft.c: see amx_soft.h.
check_LIBRARIES = %D%/libamx_soft.a
%C%_libamx_soft_a_SOURCES = \
	%D%/amx_soft.c %D%/amx_soft.h \
	hal/cpu/uk/gemm_bf16_amx.c \
	hal/cpu/uk/gemm_u4_amx.c \
	hal/cpu/uk/gemm_u8_amx.c \
	hal/cpu/uk/probe_bf16_amx.c \
	hal/cpu/uk/probe_u8_amx.c \
	hal/cpu/uk/table.c
%C%_libamx_soft_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=amx_bf16 $(UK_AVX512_CFLAGS) -mavx512vnni \
	-mavx512bf16 -include $(srcdir)/%D%/amx_soft.h
# Those of AVX-VNNI likewise: see vnni_soft.h.
check_LIBRARIES += %D%/libvnni_soft.a
%C%_libvnni_soft_a_SOURCES = \
	%D%/vnni_soft.h \
	hal/cpu/uk/conv_dw_u8.c \
	hal/cpu/uk/gemm_u8.c \
	hal/cpu/uk/pack_u8.c \
	hal/cpu/uk/probe_u8.c \
	hal/cpu/uk/table.c
%C%_libvnni_soft_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=avx_vnni -mavx2 -mfma -mf16c \
	-include $(srcdir)/%D%/vnni_soft.h
SOFT_LIBS = %D%/libamx_soft.a %D%/libvnni_soft.a
endif

%C%_test_uk_bf16_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_bf16_LDADD = $(SOFT_LIBS) $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_dw_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_dw_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_gemm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_gemm_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_math_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_math_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_u8_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_u8_LDADD = $(SOFT_LIBS) $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_vec_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_vec_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_uk_winograd_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_uk_winograd_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/cts %D%/test_cpu %D%/test_handles
TESTS += %D%/test_cpu %D%/test_handles %D%/cpu_1_worker.sh %D%/cpu_4_workers.sh

%C%_cts_SOURCES = \
	%D%/buffer.c \
	%D%/command.c \
	%D%/cts.c %D%/cts.h \
	%D%/device.c \
	%D%/fault.c \
	%D%/kernels.c \
	%D%/memory.c \
	%D%/pool.c \
	%D%/profile.c \
	%D%/queue.c \
	%D%/semaphore.c \
	%D%/shaders/generated/spirv.S %D%/shaders/generated/spirv.h
%C%_cts_CCASFLAGS = -Wa,-I$(srcdir)/%D%/shaders/generated
%C%_cts_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_cts_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=aligned_alloc,--wrap=posix_memalign
%C%_cts_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)

%C%_test_cpu_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_cpu_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=fallocate,--wrap=mmap,--wrap=mprotect \
	-Wl,--wrap=fallocate64,--wrap=mmap64
%C%_test_cpu_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_handles_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_handles_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
endif
if HAVE_CMOCKA
if HAVE_VULKAN
check_PROGRAMS += %D%/test_vulkan %D%/test_vulkan_faults
TESTS += %D%/test_vulkan %D%/test_vulkan_faults %D%/vulkan.sh %D%/vulkan_split.sh
%C%_test_vulkan_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_vulkan_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
%C%_test_vulkan_faults_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_vulkan_faults_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)
endif
endif
EXTRA_DIST += \
	%D%/cpu_1_worker.sh %D%/cpu_4_workers.sh %D%/vulkan.sh %D%/vulkan_split.sh \
	%D%/shaders/increment.comp %D%/shaders/mix.comp %D%/shaders/number.comp \
	%D%/levels.h %D%/uk_levels.h %D%/uk_gemm_support.h

CTS_SPIRV = %D%/shaders/generated/increment.spv %D%/shaders/generated/mix.spv \
	%D%/shaders/generated/number.spv
EXTRA_DIST += $(CTS_SPIRV)
%D%/shaders/generated/cts-spirv.$(OBJEXT): $(CTS_SPIRV)
