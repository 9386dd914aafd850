# SPDX-License-Identifier: MIT
# Operators: compiled without the conversion warnings, which typed inner loops would drown in.
noinst_LIBRARIES += %D%/libops.a
%C%_libops_a_CFLAGS = $(AM_CFLAGS) $(VECTOR_CFLAGS)
%C%_libops_a_SOURCES = \
	%D%/along.c \
	%D%/attention.c %D%/attention.h \
	%D%/chain.c %D%/chain.h \
	%D%/llm.c %D%/llm.h \
	%D%/antialias.c %D%/antialias.h \
	%D%/batch.c \
	%D%/complex.c \
	%D%/convert.c %D%/convert.h \
	%D%/copy.c %D%/copy.h \
	%D%/cut.c %D%/cut.h \
	%D%/create.c %D%/create.h %D%/fill.h \
	%D%/distance.c %D%/distance.h \
	%D%/element.c %D%/element.h \
	%D%/gate.c \
	%D%/fft.c %D%/fft.h %D%/fft_core.c %D%/fft_core.h \
	%D%/index.c %D%/index.h \
	%D%/interleave.c %D%/interleave.h \
	%D%/iter.c %D%/iter.h \
	%D%/keep.c %D%/keep.h \
	%D%/masked.c %D%/masked.h \
	%D%/minmax.h \
	%D%/norm.c %D%/norm.h %D%/norm_kernels.c \
	%D%/conv.c %D%/conv.h %D%/conv_direct.c %D%/conv_direct.h %D%/depthwise.h \
	%D%/extent.c %D%/extent.h \
	%D%/gemm.c %D%/gemm.h \
	%D%/matmul.c %D%/matmul.h \
	%D%/ops.c \
	%D%/scalar.c \
	%D%/op.h \
	%D%/order.c %D%/order.h \
	%D%/pad.c %D%/pad.h \
	%D%/pointwise.c %D%/pointwise.h %D%/pointwise_complex.c %D%/pointwise_loops.c %D%/pointwise_typed.c \
	%D%/pool.c %D%/pool.h %D%/pool_back.c %D%/pool_volume.c \
	%D%/qgemm.c %D%/qgemm.h \
	%D%/qpointwise.c %D%/qpointwise.h \
	%D%/qproduct.c \
	%D%/quant.c %D%/quant.h %D%/quant_kernels.c %D%/quant_layers.c \
	%D%/qweights.c \
	%D%/random.c \
	%D%/resample.c %D%/resample.h \
	%D%/reduce.c %D%/reduce.h %D%/reduce_kernels.c \
	%D%/sample.c %D%/sample.h \
	%D%/slice.c \
	%D%/softmax.c \
	%D%/stride.c \
	%D%/upsample.c %D%/upsample.h \
	%D%/view.c \
	%D%/view_priv.c %D%/view_priv.h \
	%D%/shaders/affine.h \
	%D%/shaders/antialias.h \
	%D%/shaders/attention.h \
	%D%/shaders/chain.h \
	%D%/shaders/conv_direct.h \
	%D%/shaders/cumsum.h \
	%D%/shaders/depthwise.h \
	%D%/shaders/distance.h \
	%D%/shaders/embed.h \
	%D%/shaders/extent.h \
	%D%/shaders/fill_pattern.h \
	%D%/shaders/gather.h \
	%D%/shaders/gemm.h \
	%D%/shaders/gemm_f16.h \
	%D%/shaders/gemm_matrices.h \
	%D%/shaders/index_put.h \
	%D%/shaders/index_take.h \
	%D%/shaders/hadamard.h \
	%D%/shaders/interleave.h \
	%D%/shaders/keep.h \
	%D%/shaders/masked_scatter.h \
	%D%/shaders/matmul.h \
	%D%/shaders/norm.h \
	%D%/shaders/pack.h \
	%D%/shaders/pad.h \
	%D%/shaders/pointwise.h \
	%D%/shaders/pointwise_f64.h \
	%D%/shaders/pool.h \
	%D%/shaders/qbytes.h \
	%D%/shaders/qdepthwise.h \
	%D%/shaders/qgemm.h \
	%D%/shaders/qgemm_matrices.h \
	%D%/shaders/qmean.h \
	%D%/shaders/quantize.h \
	%D%/shaders/quantize_rows.h \
	%D%/shaders/range.h \
	%D%/shaders/reduce.h \
	%D%/shaders/resample.h \
	%D%/shaders/sample.h \
	%D%/shaders/scatter.h \
	%D%/shaders/scatter_reduce.h \
	%D%/shaders/softmax.h \
	%D%/shaders/strided_copy.h \
	%D%/shaders/topk.h \
	%D%/shaders/tril.h \
	%D%/shaders/upsample.h \
	%D%/shaders/write_rows.h

# The headers beside the shaders are made by contrib/shaders.sh and committed.
EXTRA_DIST += \
	%D%/shaders/element.glsl %D%/shaders/f64.glsl %D%/shaders/group.glsl %D%/shaders/index.glsl \
	%D%/shaders/loop.glsl %D%/shaders/qgemm.glsl \
	%D%/shaders/loops.glsl %D%/shaders/math.glsl \
	%D%/shaders/affine.comp \
	%D%/shaders/antialias.comp \
	%D%/shaders/attention.comp \
	%D%/shaders/chain.comp \
	%D%/shaders/conv_direct.comp \
	%D%/shaders/cumsum.comp \
	%D%/shaders/depthwise.comp \
	%D%/shaders/distance.comp \
	%D%/shaders/embed.comp \
	%D%/shaders/extent.comp \
	%D%/shaders/fill_pattern.comp \
	%D%/shaders/gather.comp \
	%D%/shaders/gemm.comp \
	%D%/shaders/gemm.glsl %D%/shaders/gemm_shared.glsl \
	%D%/shaders/gemm_f16.comp \
	%D%/shaders/gemm_matrices.comp \
	%D%/shaders/index_put.comp \
	%D%/shaders/index_take.comp \
	%D%/shaders/hadamard.comp \
	%D%/shaders/interleave.comp \
	%D%/shaders/keep.comp \
	%D%/shaders/masked_scatter.comp \
	%D%/shaders/matmul.comp \
	%D%/shaders/norm.comp \
	%D%/shaders/pack.comp \
	%D%/shaders/pad.comp \
	%D%/shaders/pointwise.comp \
	%D%/shaders/pointwise_f64.comp \
	%D%/shaders/pool.comp \
	%D%/shaders/qbytes.comp \
	%D%/shaders/qdepthwise.comp \
	%D%/shaders/qgemm.comp \
	%D%/shaders/qgemm_matrices.comp \
	%D%/shaders/qmean.comp \
	%D%/shaders/quantize.comp \
	%D%/shaders/quantize_rows.comp \
	%D%/shaders/range.comp \
	%D%/shaders/reduce.comp \
	%D%/shaders/resample.comp \
	%D%/shaders/sample.comp \
	%D%/shaders/scatter.comp \
	%D%/shaders/scatter_reduce.comp \
	%D%/shaders/softmax.comp \
	%D%/shaders/strided_copy.comp \
	%D%/shaders/topk.comp \
	%D%/shaders/tril.comp \
	%D%/shaders/upsample.comp \
	%D%/shaders/write_rows.comp
