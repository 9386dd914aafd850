# SPDX-License-Identifier: MIT
# Programs with PyTorch's outputs, made by contrib/export; a NAME.cases is a folder of raw tensors.
TESTS += %D%/run_models.py %D%/run_pipelines.py %D%/bf16.sh

# Within a level, workers, batches and the old content of memory change no bit of an answer.
check_PROGRAMS += %D%/test_same_bytes
TESTS += %D%/test_same_bytes
%C%_test_same_bytes_SOURCES = %D%/test_same_bytes.c tests/unit/call_support.c tests/unit/call_support.h
%C%_test_same_bytes_LDADD = $(RUNTIME_LIBS)

if HAVE_VULKAN
TESTS += %D%/vulkan.sh %D%/vulkan_split.sh %D%/vulkan_gpu.sh
endif
EXTRA_DIST += %D%/bf16.sh %D%/run_models.py %D%/run_pipelines.py %D%/vulkan.sh %D%/vulkan_split.sh \
	%D%/vulkan_gpu.sh \
	%D%/pipelines/pipelines.json \
	%D%/chat/answers.json %D%/chat/model.pte %D%/chat/tokenizer.json \
	%D%/chat/tokenizer_config.json \
	%D%/adapters/answers.json %D%/adapters/base.pte %D%/adapters/blue.pte \
	%D%/adapters/foundation.ptd %D%/adapters/red.pte \
	%D%/llm/model.pte \
	%D%/exported/answers.json %D%/exported/growing %D%/exported/static %D%/exported/window \
	%D%/exported/wide %D%/exported/wide_answers.json %D%/exported/window_answers.json \
	%D%/optimum/answers.json %D%/optimum/masked %D%/optimum/picture %D%/optimum/speech \
	%D%/optimum/text \
	%D%/prefill/answers.json %D%/prefill/apart.pte %D%/prefill/mixed.pte %D%/prefill/parts.pte \
	%D%/prefill/shared.pte \
	%D%/static_cache/model.pte %D%/long_cache/model.pte \
	%D%/whisper/answers.json %D%/whisper/features.f32 %D%/whisper/generation_config.json \
	%D%/whisper/model.pte %D%/whisper/sound.flac %D%/whisper/sound.mp3 \
	%D%/whisper/sound.ogg %D%/whisper/sound.opus \
	%D%/whisper/tokenizer.json \
	%D%/encoder/answers.json %D%/encoder/classes.pte %D%/encoder/model.card.json %D%/encoder/model.pte \
	%D%/encoder/tokenizer.json \
	%D%/media/model.pte %D%/media/sizes.pte \
	%D%/hub/pictures.json \
	%D%/yolo/answers.json %D%/yolo/near.png %D%/yolo/tall.png %D%/yolo/wide.png \
	%D%/yolo/classify_executorch_model/metadata.yaml %D%/yolo/classify_executorch_model/model.pte \
	%D%/yolo/detect_executorch_model/metadata.yaml %D%/yolo/detect_executorch_model/model.pte \
	%D%/yolo/obb_executorch_model/metadata.yaml %D%/yolo/obb_executorch_model/model.pte \
	%D%/yolo/pose_executorch_model/metadata.yaml %D%/yolo/pose_executorch_model/model.pte \
	%D%/yolo/segment_executorch_model/metadata.yaml %D%/yolo/segment_executorch_model/model.pte \
	%D%/layers/head.pte %D%/layers/int8.pte %D%/layers/middle.pte %D%/layers/net.npz \
	%D%/layers/portable.pte %D%/layers/stem.pte %D%/layers/xnnpack.pte \
	%D%/weights/adapter.pte %D%/weights/answers.json %D%/weights/base.pte \
	%D%/weights/copy.pte %D%/weights/foundation.ptd %D%/weights/one.pte %D%/weights/two.pte \
	%D%/digits/ATTRIBUTION %D%/digits/images.u8 %D%/digits/labels.u8 \
	%D%/add.pte %D%/add.json %D%/add.cases \
	%D%/answers.pte \
	%D%/squares.pte \
	%D%/branches.pte %D%/branches.json %D%/branches.cases \
	%D%/by_size.pte %D%/by_size.json %D%/by_size.cases \
	%D%/conv_ops.pte %D%/conv_ops.json %D%/conv_ops.cases \
	%D%/deep.pte %D%/deep.json %D%/deep.cases \
	%D%/digits.pte %D%/digits.json %D%/digits.cases \
	%D%/edits.pte %D%/edits.json %D%/edits.cases \
	%D%/faults.pte %D%/faults.json %D%/faults.cases \
	%D%/found.pte %D%/found.json %D%/found.cases \
	%D%/int64_exact.pte %D%/int64_exact.json %D%/int64_exact.cases \
	%D%/joined.pte %D%/joined.json %D%/joined.cases \
	%D%/keywords.pte %D%/keywords.json %D%/keywords.cases \
	%D%/ledger.pte %D%/ledger.json %D%/ledger.cases \
	%D%/linear.pte %D%/linear.json %D%/linear.cases \
	%D%/lists.pte %D%/lists.json %D%/lists.cases \
	%D%/loops.pte %D%/loops.json %D%/loops.cases \
	%D%/methods.pte %D%/methods.json %D%/methods.cases \
	%D%/mlp.pte %D%/mlp.json %D%/mlp.cases \
	%D%/moe.pte %D%/moe.json %D%/moe.cases \
	%D%/mobile.pte %D%/mobile.json %D%/mobile.cases \
	%D%/odd_keys.pte %D%/odd_keys.json %D%/odd_keys.cases \
	%D%/pointwise.pte %D%/pointwise.json %D%/pointwise.cases \
	%D%/pointwise_types.pte %D%/pointwise_types.json %D%/pointwise_types.cases \
	%D%/pt2e.pte %D%/pt2e.json %D%/pt2e.cases \
	%D%/pt2e_rows.pte %D%/pt2e_rows.json %D%/pt2e_rows.cases \
	%D%/promotion.pte %D%/promotion.json %D%/promotion.cases \
	%D%/queries.pte %D%/queries.json %D%/queries.cases \
	%D%/reduce_ops.pte %D%/reduce_ops.json %D%/reduce_ops.cases \
	%D%/residual.pte %D%/residual.json %D%/residual.cases \
	%D%/ring.pte %D%/ring.json %D%/ring.cases \
	%D%/running.pte %D%/running.json %D%/running.cases \
	%D%/scalars.pte %D%/scalars.json %D%/scalars.cases \
	%D%/notebook.pte %D%/notebook.json %D%/notebook.cases \
	%D%/scroll.pte %D%/scroll.json %D%/scroll.cases \
	%D%/select_ops.pte %D%/select_ops.json %D%/select_ops.cases \
	%D%/shapes.pte %D%/shapes.json %D%/shapes.cases \
	%D%/sizes.pte %D%/sizes.json %D%/sizes.cases \
	%D%/tally.pte %D%/tally.json %D%/tally.cases \
	%D%/traced.pte %D%/traced.json %D%/traced.cases \
	%D%/unet.pte %D%/unet.json %D%/unet.cases \
	%D%/window.pte %D%/window.json %D%/window.cases \
	%D%/wide.pte %D%/wide.json %D%/wide.cases \
	%D%/view_ops.pte %D%/view_ops.json %D%/view_ops.cases \
	%D%/view_types.pte %D%/view_types.json %D%/view_types.cases \
	%D%/vk_buffers.pte %D%/vk_buffers.json %D%/vk_buffers.cases \
	%D%/vk_caches.pte %D%/vk_caches.json %D%/vk_caches.cases \
	%D%/vk_images.pte %D%/vk_images.json %D%/vk_images.cases \
	%D%/vk_int4.pte %D%/vk_int4.json %D%/vk_int4.cases \
	%D%/vk_numbers.pte %D%/vk_numbers.json %D%/vk_numbers.cases \
	%D%/vk_ranges.pte %D%/vk_ranges.json %D%/vk_ranges.cases \
	%D%/vk_rotations.pte %D%/vk_rotations.json %D%/vk_rotations.cases \
	%D%/vk_tokens.pte %D%/vk_tokens.json %D%/vk_tokens.cases \
	%D%/xnn_attention.pte %D%/xnn_attention.json %D%/xnn_attention.cases \
	%D%/xnn_forms.pte %D%/xnn_forms.json %D%/xnn_forms.cases \
	%D%/xnn_half.pte %D%/xnn_half.json %D%/xnn_half.cases \
	%D%/xnn_images.pte %D%/xnn_images.json %D%/xnn_images.cases \
	%D%/xnn_int4.pte %D%/xnn_int4.json %D%/xnn_int4.cases \
	%D%/xnn_int8.pte %D%/xnn_int8.json %D%/xnn_int8.cases \
	%D%/xnn_numbers.pte %D%/xnn_numbers.json %D%/xnn_numbers.cases \
	%D%/xnn_one_channel.pte %D%/xnn_one_channel.json %D%/xnn_one_channel.cases \
	%D%/xnn_row_images.pte %D%/xnn_row_images.json %D%/xnn_row_images.cases \
	%D%/xnn_rows.pte %D%/xnn_rows.json %D%/xnn_rows.cases \
	%D%/zero_batch.pte %D%/zero_batch.json %D%/zero_batch.cases \
	%D%/zero_size.pte %D%/zero_size.json %D%/zero_size.cases
