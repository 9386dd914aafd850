# SPDX-License-Identifier: MIT
# One archive for each level, all from the same sources; simd.h explains levels. libhal.a contains
# their objects.
UK_SIMD = \
	%D%/simd.h \
	%D%/simd_amx.h \
	%D%/simd_amx_bf16.h \
	%D%/simd_amx_int8.h \
	%D%/simd_avx2.h \
	%D%/simd_avx512.h \
	%D%/simd_avx512_bf16.h \
	%D%/simd_avx512_vnni.h \
	%D%/simd_avx_vnni.h \
	%D%/simd_bf16.h \
	%D%/simd_dotprod.h \
	%D%/simd_generic.h \
	%D%/simd_i8mm.h \
	%D%/simd_neon.h \
	%D%/simd_types.h \
	%D%/simd_u8.h
UK_SOURCES = \
	%D%/gemm_f32.c \
	$(UK_REST_SOURCES)
# The others, where it has flags of its own.
UK_REST_SOURCES = \
	%D%/attend_f32.c \
	%D%/conv_dw_f32.c \
	%D%/conv_dw_f32.h \
	%D%/convert.c \
	%D%/gemm_f32.h \
	%D%/gemm_f32_neon.h \
	%D%/math_f32.h \
	%D%/pack_f32.c \
	%D%/pack_f32.h \
	%D%/probe_f32.c \
	%D%/quant.c \
	%D%/reduce_f32.c \
	%D%/vec_f32.c \
	%D%/vec_u8.c \
	%D%/winograd_f32.c \
	$(UK_OWN_SOURCES)
# The sources for levels whose integer instructions differ from those of the level below.
UK_OWN_SOURCES = \
	%D%/gemm_u8.c \
	$(UK_OWN_REST_SOURCES)
UK_OWN_REST_SOURCES = \
	%D%/conv_dw_u8.c \
	%D%/gemm_u8.h \
	%D%/gemm_u8_i8mm.h \
	%D%/gemm_u8_neon.h \
	%D%/gemm_u8_sorted.h \
	%D%/level.h \
	%D%/load_neon.h \
	%D%/resize_table.c \
	%D%/resize_u8.c \
	%D%/resize_u8.h \
	%D%/resize_u8_dots.h \
	%D%/resize_u8_pairs.h \
	%D%/resize_u8_plain.h \
	%D%/pack_u8.c \
	%D%/pack_u8_sorted.h \
	%D%/probe_u8.c \
	$(UK_SIMD) \
	%D%/table.c \
	%D%/u8_sorted.h

# The sources for levels that multiply bfloat16 numbers by vectors.
UK_BF16_SOURCES = \
	%D%/resize_table.c \
	%D%/resize_u8.h \
	%D%/convert_bf16.c \
	%D%/gemm_bf16.c \
	%D%/gemm_bf16_neon.h \
	%D%/gemm_f32.h \
	%D%/level.h \
	%D%/load_neon.h \
	%D%/pack_bf16.c \
	%D%/pack_f32.h \
	%D%/probe_bf16.c \
	%D%/round_bf16.h \
	$(UK_SIMD) \
	%D%/table.c \
	%D%/window_bf16.c

# The order of sums in the sources is kept. A product and the sum that takes it may become one
# instruction. No code reads errno or the exception flags.
UK_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS) -ffp-contract=fast -fno-math-errno -fno-trapping-math

noinst_LIBRARIES += %D%/libuk_generic.a
%C%_libuk_generic_a_SOURCES = $(UK_SOURCES)
%C%_libuk_generic_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=generic
UK_OBJECTS += $(%C%_libuk_generic_a_OBJECTS)

if CPU_X86
UK_AVX512_CFLAGS = -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mf16c \
	-mprefer-vector-width=512

noinst_LIBRARIES += %D%/libuk_avx2.a %D%/libuk_avx_vnni.a %D%/libuk_avx512.a \
	%D%/libuk_avx512_vnni.a %D%/libuk_avx512_bf16.a %D%/libuk_amx_int8.a \
	%D%/libuk_amx_bf16.a
%C%_libuk_avx2_a_SOURCES = $(UK_SOURCES) %D%/conv_group_f32.c
%C%_libuk_avx2_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=avx2 -mavx2 -mfma -mf16c
%C%_libuk_avx_vnni_a_SOURCES = $(UK_OWN_SOURCES)
%C%_libuk_avx_vnni_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=avx_vnni -mavx2 -mfma -mf16c
%C%_libuk_avx512_a_SOURCES = $(UK_SOURCES) %D%/conv_group_f32.c
%C%_libuk_avx512_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=avx512 $(UK_AVX512_CFLAGS)
%C%_libuk_avx512_vnni_a_SOURCES = $(UK_OWN_SOURCES)
%C%_libuk_avx512_vnni_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=avx512_vnni $(UK_AVX512_CFLAGS) \
	-mavx512vnni
# The other functions of these levels are those of the levels below.
%C%_libuk_avx512_bf16_a_SOURCES = $(UK_BF16_SOURCES)
%C%_libuk_avx512_bf16_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=avx512_bf16 $(UK_AVX512_CFLAGS) \
	-mavx512vnni -mavx512bf16
%C%_libuk_amx_int8_a_SOURCES = \
	%D%/resize_table.c \
	%D%/resize_u8.h \
	%D%/amx.h \
	%D%/amx_run.h \
	%D%/gemm_u4_amx.c \
	%D%/gemm_u4_amx.h \
	%D%/gemm_u8.h \
	%D%/gemm_u8_amx.c \
	%D%/level.h \
	%D%/probe_u8_amx.c \
	$(UK_SIMD) \
	%D%/table.c
%C%_libuk_amx_int8_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=amx_int8 $(UK_AVX512_CFLAGS) -mavx512vnni \
	-mamx-tile -mamx-int8
%C%_libuk_amx_bf16_a_SOURCES = \
	%D%/resize_table.c \
	%D%/resize_u8.h \
	%D%/amx.h \
	%D%/amx_run.h \
	%D%/gemm_bf16_amx.c \
	%D%/level.h \
	%D%/probe_bf16_amx.c \
	%D%/round_bf16.h \
	$(UK_SIMD) \
	%D%/table.c
%C%_libuk_amx_bf16_a_CFLAGS = $(UK_CFLAGS) -DUK_LEVEL=amx_bf16 $(UK_AVX512_CFLAGS) -mavx512vnni \
	-mavx512bf16 -mamx-tile -mamx-bf16
UK_OBJECTS += $(%C%_libuk_avx2_a_OBJECTS) $(%C%_libuk_avx_vnni_a_OBJECTS) \
	$(%C%_libuk_avx512_a_OBJECTS) $(%C%_libuk_avx512_vnni_a_OBJECTS) \
	$(%C%_libuk_avx512_bf16_a_OBJECTS) $(%C%_libuk_amx_int8_a_OBJECTS) \
	$(%C%_libuk_amx_bf16_a_OBJECTS)
endif

if CPU_ARM64
UK_NEON_CFLAGS = $(UK_CFLAGS) $(ORDER_CFLAGS)
UK_FULL_CFLAGS = $(UK_NEON_CFLAGS) $(FULL_CFLAGS)

noinst_LIBRARIES += %D%/libuk_neon.a %D%/libuk_neon_full.a %D%/libuk_dotprod.a \
	%D%/libuk_dotprod_full.a %D%/libuk_i8mm.a %D%/libuk_i8mm_full.a %D%/libuk_bf16.a
UK_FULL_U8_SOURCES = %D%/gemm_u8.c %D%/gemm_u8.h %D%/gemm_u8_i8mm.h %D%/gemm_u8_neon.h \
	%D%/level.h %D%/load_neon.h $(UK_SIMD)
%C%_libuk_neon_a_SOURCES = $(UK_REST_SOURCES)
%C%_libuk_neon_a_CFLAGS = $(UK_NEON_CFLAGS) -DUK_LEVEL=neon
%C%_libuk_neon_full_a_SOURCES = %D%/gemm_f32.c %D%/gemm_f32.h %D%/gemm_f32_neon.h %D%/level.h \
	$(UK_SIMD)
%C%_libuk_neon_full_a_CFLAGS = $(UK_FULL_CFLAGS) -DUK_LEVEL=neon
%C%_libuk_dotprod_a_SOURCES = $(UK_OWN_REST_SOURCES)
%C%_libuk_dotprod_a_CFLAGS = $(UK_NEON_CFLAGS) -DUK_LEVEL=dotprod -march=armv8.2-a+dotprod
%C%_libuk_dotprod_full_a_SOURCES = $(UK_FULL_U8_SOURCES)
%C%_libuk_dotprod_full_a_CFLAGS = $(UK_FULL_CFLAGS) -DUK_LEVEL=dotprod \
	-march=armv8.2-a+dotprod
%C%_libuk_i8mm_a_SOURCES = $(UK_OWN_REST_SOURCES)
%C%_libuk_i8mm_a_CFLAGS = $(UK_NEON_CFLAGS) -DUK_LEVEL=i8mm -march=armv8.2-a+dotprod+i8mm
%C%_libuk_i8mm_full_a_SOURCES = $(UK_FULL_U8_SOURCES)
%C%_libuk_i8mm_full_a_CFLAGS = $(UK_FULL_CFLAGS) -DUK_LEVEL=i8mm \
	-march=armv8.2-a+dotprod+i8mm
%C%_libuk_bf16_a_SOURCES = $(UK_BF16_SOURCES)
%C%_libuk_bf16_a_CFLAGS = $(UK_NEON_CFLAGS) -DUK_LEVEL=bf16 -march=armv8.2-a+dotprod+i8mm+bf16
UK_OBJECTS += $(%C%_libuk_neon_a_OBJECTS) $(%C%_libuk_neon_full_a_OBJECTS) \
	$(%C%_libuk_dotprod_a_OBJECTS) $(%C%_libuk_dotprod_full_a_OBJECTS) \
	$(%C%_libuk_i8mm_a_OBJECTS) $(%C%_libuk_i8mm_full_a_OBJECTS) $(%C%_libuk_bf16_a_OBJECTS)
endif
