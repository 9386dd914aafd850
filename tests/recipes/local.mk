# SPDX-License-Identifier: MIT
# Follows the pages of docs/tutorials/recipes; each folder has what the export of its page made.
TESTS += %D%/run_recipes.py
EXTRA_DIST += %D%/run_recipes.py %D%/small_models.py \
	%D%/chat/export.txt %D%/chat/smollm.pte %D%/chat/tokenizer.json \
	%D%/chat/tokenizer_config.json \
	%D%/classifier/export.txt %D%/classifier/shapes.card.json %D%/classifier/shapes.pte \
	%D%/detector/detector.card.json %D%/detector/detector.pte %D%/detector/export.txt \
	%D%/keywords/export.txt %D%/keywords/spotter.card.json %D%/keywords/spotter.pte \
	%D%/segmentation/export.txt %D%/segmentation/segmenter.card.json \
	%D%/segmentation/segmenter.pte \
	%D%/sentences/export.txt %D%/sentences/sentences.card.json %D%/sentences/sentences.pte \
	%D%/sentences/tokenizer.json \
	%D%/whisper/export.txt %D%/whisper/generation_config.json %D%/whisper/tokenizer.json \
	%D%/whisper/whisper.pte
