# SPDX-License-Identifier: MIT
# Programs with PyTorch's outputs, made by contrib/export; a NAME.cases is a folder of raw tensors.
TESTS += %D%/run_models.py
EXTRA_DIST += %D%/run_models.py \
	%D%/digits/ATTRIBUTION %D%/digits/images.u8 %D%/digits/labels.u8 \
	%D%/add.pte %D%/add.json %D%/add.cases \
	%D%/conv_ops.pte %D%/conv_ops.json %D%/conv_ops.cases \
	%D%/digits.pte %D%/digits.json %D%/digits.cases \
	%D%/int64_exact.pte %D%/int64_exact.json %D%/int64_exact.cases \
	%D%/linear.pte %D%/linear.json %D%/linear.cases \
	%D%/methods.pte %D%/methods.json %D%/methods.cases \
	%D%/mlp.pte %D%/mlp.json %D%/mlp.cases \
	%D%/mobile.pte %D%/mobile.json %D%/mobile.cases \
	%D%/pointwise.pte %D%/pointwise.json %D%/pointwise.cases \
	%D%/pointwise_types.pte %D%/pointwise_types.json %D%/pointwise_types.cases \
	%D%/promotion.pte %D%/promotion.json %D%/promotion.cases \
	%D%/reduce_ops.pte %D%/reduce_ops.json %D%/reduce_ops.cases \
	%D%/residual.pte %D%/residual.json %D%/residual.cases \
	%D%/scalars.pte %D%/scalars.json %D%/scalars.cases \
	%D%/select_ops.pte %D%/select_ops.json %D%/select_ops.cases \
	%D%/unet.pte %D%/unet.json %D%/unet.cases \
	%D%/view_ops.pte %D%/view_ops.json %D%/view_ops.cases \
	%D%/view_types.pte %D%/view_types.json %D%/view_types.cases \
	%D%/zero_batch.pte %D%/zero_batch.json %D%/zero_batch.cases \
	%D%/zero_size.pte %D%/zero_size.json %D%/zero_size.cases
