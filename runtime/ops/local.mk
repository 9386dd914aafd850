# SPDX-License-Identifier: MIT
# Operators. The conversion warnings are off: typed inner loops would cause too many of them.
noinst_LIBRARIES += %D%/libops.a
%C%_libops_a_CFLAGS = $(AM_CFLAGS) $(PIC_CFLAGS) $(VECTOR_CFLAGS)
%C%_libops_a_CCASFLAGS = -Wa,-I$(srcdir)/%D%/shaders/generated
%C%_libops_a_SOURCES = \
	%D%/apply.c %D%/apply.h \
	%D%/activation.c %D%/activation.h \
	%D%/along.c %D%/along.h \
	%D%/cumsum.c \
	%D%/gather.c \
	%D%/attention.c %D%/attention.h %D%/attention_parts.c %D%/attention_parts.h \
	%D%/cat_affine.c %D%/cat_affine.h \
	%D%/chain.c %D%/chain.h \
	%D%/known.c %D%/known.def %D%/known.h \
	%D%/llm.c %D%/llm.h \
	%D%/antialias.c %D%/antialias.h \
	%D%/bag.c \
	%D%/cache_int8.c \
	%D%/cache_int8.h \
	%D%/batch.c %D%/batch_call.h %D%/batch_spread.c \
	%D%/complex.c \
	%D%/create.c %D%/create.h %D%/fill.h \
	%D%/distance.c %D%/distance.h \
	%D%/gate.c \
	%D%/fft.c %D%/fft.h \
	%D%/index.c %D%/index.h %D%/index_kernels.c %D%/index_priv.h \
	%D%/interleave.c %D%/interleave.h \
	%D%/join.c %D%/join.h \
	%D%/masked.c %D%/masked.h \
	%D%/norm.c %D%/norm.h %D%/norm_kernels.c \
	%D%/conv.c %D%/conv.h %D%/conv_direct.c %D%/conv_direct.h %D%/depthwise.h \
	%D%/expand_dw.c %D%/expand_dw.h \
	%D%/extent.c %D%/extent.h \
	%D%/matmul.c %D%/matmul.h \
	%D%/moe.c %D%/moe.h %D%/moe_linear.c \
	%D%/op.c \
	%D%/scalar.c \
	%D%/search.c \
	%D%/op.h \
	%D%/order.c %D%/order.h \
	%D%/pad.c %D%/pad.h \
	%D%/pointwise.c %D%/pointwise.h %D%/pointwise_complex.c %D%/pointwise_loops.c %D%/pointwise_typed.c \
	%D%/pixels.c %D%/pixels.h \
	%D%/planes.c %D%/planes.h \
	%D%/pool.c %D%/pool.h %D%/pool_back.c %D%/pool_volume.c \
	%D%/qpointwise.c %D%/qpointwise.h \
	%D%/qproduct.c \
	%D%/quant.c %D%/quant.h %D%/quant_kernels.c %D%/quant_layers.c \
	%D%/qweights.c \
	%D%/random.c \
	%D%/resample.c %D%/resample.h \
	%D%/reduce.c %D%/reduce.h %D%/reduce_kernels.c \
	%D%/sample.c %D%/sample.h \
	%D%/shape.c %D%/shape.h \
	%D%/slice.c \
	%D%/softmax.c \
	%D%/stride.c \
	%D%/torchao.c %D%/torchao.h \
	%D%/upsample.c %D%/upsample.h \
	%D%/view.c \
	%D%/view_priv.c %D%/view_priv.h \
	%D%/winograd.c %D%/winograd.h \
	%D%/shaders/generated/spirv.S %D%/shaders/generated/spirv.h

# contrib/shaders.sh writes the files of shaders/generated/; they are committed. The assembler reads
# the words, which the compiler's lists of dependencies do not know.
OPS_SPIRV = \
	%D%/shaders/generated/affine.spv \
	%D%/shaders/generated/antialias.spv \
	%D%/shaders/generated/attention.spv \
	%D%/shaders/generated/attention_subgroups.spv \
	%D%/shaders/generated/chain.spv \
	%D%/shaders/generated/conv_direct.spv \
	%D%/shaders/generated/cumsum.spv \
	%D%/shaders/generated/depthwise.spv \
	%D%/shaders/generated/distance.spv \
	%D%/shaders/generated/embed.spv \
	%D%/shaders/generated/extent.spv \
	%D%/shaders/generated/fill_pattern.spv \
	%D%/shaders/generated/gather.spv \
	%D%/shaders/generated/hadamard.spv \
	%D%/shaders/generated/index_put.spv \
	%D%/shaders/generated/index_take.spv \
	%D%/shaders/generated/interleave.spv \
	%D%/shaders/generated/masked_scatter.spv \
	%D%/shaders/generated/matmul.spv \
	%D%/shaders/generated/norm.spv \
	%D%/shaders/generated/norm_subgroups.spv \
	%D%/shaders/generated/pad.spv \
	%D%/shaders/generated/pixels.spv \
	%D%/shaders/generated/pointwise.spv \
	%D%/shaders/generated/pointwise_f64.spv \
	%D%/shaders/generated/pool.spv \
	%D%/shaders/generated/qbytes.spv \
	%D%/shaders/generated/qdepthwise.spv \
	%D%/shaders/generated/qmean.spv \
	%D%/shaders/generated/quantize.spv \
	%D%/shaders/generated/quantize_rows.spv \
	%D%/shaders/generated/quantize_rows_subgroups.spv \
	%D%/shaders/generated/range.spv \
	%D%/shaders/generated/reduce.spv \
	%D%/shaders/generated/reduce_subgroups.spv \
	%D%/shaders/generated/resample.spv \
	%D%/shaders/generated/sample.spv \
	%D%/shaders/generated/scatter.spv \
	%D%/shaders/generated/scatter_reduce.spv \
	%D%/shaders/generated/softmax.spv \
	%D%/shaders/generated/softmax_subgroups.spv \
	%D%/shaders/generated/topk.spv \
	%D%/shaders/generated/tril.spv \
	%D%/shaders/generated/upsample.spv \
	%D%/shaders/generated/write_rows.spv
EXTRA_DIST += $(OPS_SPIRV)
%D%/shaders/generated/libops_a-spirv.$(OBJEXT): $(OPS_SPIRV)

EXTRA_DIST += \
	%D%/shaders/index.glsl \
	%D%/shaders/loops.glsl \
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
	%D%/shaders/index_put.comp \
	%D%/shaders/index_take.comp \
	%D%/shaders/hadamard.comp \
	%D%/shaders/interleave.comp \
	%D%/shaders/masked_scatter.comp \
	%D%/shaders/matmul.comp \
	%D%/shaders/norm.comp \
	%D%/shaders/pad.comp \
	%D%/shaders/pointwise.comp \
	%D%/shaders/pointwise_f64.comp \
	%D%/shaders/pixels.comp \
	%D%/shaders/pool.comp \
	%D%/shaders/qbytes.comp \
	%D%/shaders/qdepthwise.comp \
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
	%D%/shaders/topk.comp \
	%D%/shaders/tril.comp \
	%D%/shaders/upsample.comp \
	%D%/shaders/write_rows.comp
