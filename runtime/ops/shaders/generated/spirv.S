/* SPDX-License-Identifier: MIT */
/* Words of the shaders in runtime/ops/shaders/, by contrib/shaders.sh. */
	.section .rodata
	.balign 4
	.global affine_spirv
affine_spirv:
	.incbin "affine.spv"
	.balign 4
	.global antialias_spirv
antialias_spirv:
	.incbin "antialias.spv"
	.balign 4
	.global attention_subgroups_spirv
attention_subgroups_spirv:
	.incbin "attention_subgroups.spv"
	.balign 4
	.global attention_spirv
attention_spirv:
	.incbin "attention.spv"
	.balign 4
	.global chain_spirv
chain_spirv:
	.incbin "chain.spv"
	.balign 4
	.global conv_direct_spirv
conv_direct_spirv:
	.incbin "conv_direct.spv"
	.balign 4
	.global cumsum_spirv
cumsum_spirv:
	.incbin "cumsum.spv"
	.balign 4
	.global depthwise_spirv
depthwise_spirv:
	.incbin "depthwise.spv"
	.balign 4
	.global distance_spirv
distance_spirv:
	.incbin "distance.spv"
	.balign 4
	.global embed_spirv
embed_spirv:
	.incbin "embed.spv"
	.balign 4
	.global extent_spirv
extent_spirv:
	.incbin "extent.spv"
	.balign 4
	.global fill_pattern_spirv
fill_pattern_spirv:
	.incbin "fill_pattern.spv"
	.balign 4
	.global gather_spirv
gather_spirv:
	.incbin "gather.spv"
	.balign 4
	.global hadamard_spirv
hadamard_spirv:
	.incbin "hadamard.spv"
	.balign 4
	.global index_put_spirv
index_put_spirv:
	.incbin "index_put.spv"
	.balign 4
	.global index_take_spirv
index_take_spirv:
	.incbin "index_take.spv"
	.balign 4
	.global interleave_spirv
interleave_spirv:
	.incbin "interleave.spv"
	.balign 4
	.global masked_scatter_spirv
masked_scatter_spirv:
	.incbin "masked_scatter.spv"
	.balign 4
	.global matmul_spirv
matmul_spirv:
	.incbin "matmul.spv"
	.balign 4
	.global norm_subgroups_spirv
norm_subgroups_spirv:
	.incbin "norm_subgroups.spv"
	.balign 4
	.global norm_spirv
norm_spirv:
	.incbin "norm.spv"
	.balign 4
	.global pad_spirv
pad_spirv:
	.incbin "pad.spv"
	.balign 4
	.global pixels_spirv
pixels_spirv:
	.incbin "pixels.spv"
	.balign 4
	.global pointwise_spirv
pointwise_spirv:
	.incbin "pointwise.spv"
	.balign 4
	.global pointwise_f64_spirv
pointwise_f64_spirv:
	.incbin "pointwise_f64.spv"
	.balign 4
	.global pool_spirv
pool_spirv:
	.incbin "pool.spv"
	.balign 4
	.global qbytes_spirv
qbytes_spirv:
	.incbin "qbytes.spv"
	.balign 4
	.global qdepthwise_spirv
qdepthwise_spirv:
	.incbin "qdepthwise.spv"
	.balign 4
	.global qmean_spirv
qmean_spirv:
	.incbin "qmean.spv"
	.balign 4
	.global quantize_spirv
quantize_spirv:
	.incbin "quantize.spv"
	.balign 4
	.global quantize_rows_subgroups_spirv
quantize_rows_subgroups_spirv:
	.incbin "quantize_rows_subgroups.spv"
	.balign 4
	.global quantize_rows_spirv
quantize_rows_spirv:
	.incbin "quantize_rows.spv"
	.balign 4
	.global range_spirv
range_spirv:
	.incbin "range.spv"
	.balign 4
	.global reduce_subgroups_spirv
reduce_subgroups_spirv:
	.incbin "reduce_subgroups.spv"
	.balign 4
	.global reduce_spirv
reduce_spirv:
	.incbin "reduce.spv"
	.balign 4
	.global resample_spirv
resample_spirv:
	.incbin "resample.spv"
	.balign 4
	.global sample_spirv
sample_spirv:
	.incbin "sample.spv"
	.balign 4
	.global scatter_spirv
scatter_spirv:
	.incbin "scatter.spv"
	.balign 4
	.global scatter_reduce_spirv
scatter_reduce_spirv:
	.incbin "scatter_reduce.spv"
	.balign 4
	.global softmax_subgroups_spirv
softmax_subgroups_spirv:
	.incbin "softmax_subgroups.spv"
	.balign 4
	.global softmax_spirv
softmax_spirv:
	.incbin "softmax.spv"
	.balign 4
	.global topk_spirv
topk_spirv:
	.incbin "topk.spv"
	.balign 4
	.global tril_spirv
tril_spirv:
	.incbin "tril.spv"
	.balign 4
	.global upsample_spirv
upsample_spirv:
	.incbin "upsample.spv"
	.balign 4
	.global write_rows_spirv
write_rows_spirv:
	.incbin "write_rows.spv"
	.section .note.GNU-stack, "", %progbits
