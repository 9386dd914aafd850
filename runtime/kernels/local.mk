# SPDX-License-Identifier: MIT
# Kernels that several families of operators use, compiled as operators are.
noinst_LIBRARIES += %D%/libkernels.a
%C%_libkernels_a_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS) $(VECTOR_CFLAGS)
%C%_libkernels_a_CCASFLAGS = -Wa,-I$(srcdir)/%D%/shaders/generated
%C%_libkernels_a_SOURCES = \
	%D%/convert.c \
	%D%/convert.h \
	%D%/copy.c \
	%D%/copy.h \
	%D%/element.c \
	%D%/element.h \
	%D%/gemm.c \
	%D%/gemm.h \
	%D%/keep.c \
	%D%/keep.h \
	%D%/loop.c \
	%D%/loop.h \
	%D%/qgemm.c \
	%D%/qgemm.h \
	%D%/turn.h \
	%D%/shaders/generated/spirv.S %D%/shaders/generated/spirv.h

# contrib/shaders.sh writes the files of shaders/generated/; they are committed. The assembler reads
# the words, which the compiler's lists of dependencies do not know.
KERNELS_SPIRV = \
	%D%/shaders/generated/gemm.spv \
	%D%/shaders/generated/gemm_big.spv \
	%D%/shaders/generated/gemm_f16.spv \
	%D%/shaders/generated/gemm_gpu.spv \
	%D%/shaders/generated/gemm_matrices.spv \
	%D%/shaders/generated/keep.spv \
	%D%/shaders/generated/pack.spv \
	%D%/shaders/generated/qgemm.spv \
	%D%/shaders/generated/qgemm_dots.spv \
	%D%/shaders/generated/qgemm_gpu.spv \
	%D%/shaders/generated/qgemm_matrices.spv \
	%D%/shaders/generated/strided_copy.spv
EXTRA_DIST += $(KERNELS_SPIRV)
%D%/shaders/generated/libkernels_a-spirv.$(OBJEXT): $(KERNELS_SPIRV)

EXTRA_DIST += \
	%D%/shaders/element.glsl \
	%D%/shaders/f64.glsl \
	%D%/shaders/gemm.comp \
	%D%/shaders/gemm.glsl \
	%D%/shaders/gemm_f16.comp \
	%D%/shaders/gemm_matrices.comp \
	%D%/shaders/gemm_shared.glsl \
	%D%/shaders/group.glsl \
	%D%/shaders/keep.comp \
	%D%/shaders/loop.glsl \
	%D%/shaders/math.glsl \
	%D%/shaders/pack.comp \
	%D%/shaders/qgemm.comp \
	%D%/shaders/qgemm.glsl \
	%D%/shaders/qgemm_matrices.comp \
	%D%/shaders/strided_copy.comp
