# SPDX-License-Identifier: MIT
EXTRA_DIST += %D%/check.sh %D%/commit.sh %D%/coverage.py %D%/newer_mesa.sh %D%/packages.sh \
	%D%/bare_root.sh %D%/cross.sh %D%/emulated.sh %D%/packages.tsv %D%/pictures.py \
	%D%/portable.sh %D%/portable/libraries.sh %D%/portable/requirements.txt %D%/portable/sources.tsv \
	%D%/quickstart.sh %D%/terminal.py %D%/release.sh %D%/release/apt.sh %D%/release/requirements.txt \
	%D%/release/sbom.py %D%/settings.sh %D%/shaders.sh \
	%D%/load/body.awk %D%/load/load.sh \
	%D%/monitoring/alerts.yml %D%/monitoring/grafana.json \
	%D%/export/README.md %D%/export/adapters.py %D%/export/answers.py %D%/export/boxes.py \
	%D%/export/chat.py \
	%D%/export/chat_templates.py %D%/export/digits.py %D%/export/encoder.py \
	%D%/export/export.py %D%/export/exported.py %D%/export/forms_xnnpack.py \
	%D%/export/grammars.py %D%/export/hub_pictures.py %D%/export/layers.py %D%/export/llm.py \
	%D%/export/media.py %D%/export/models.py %D%/export/models_vulkan.py \
	%D%/export/models_xnnpack.py %D%/export/newest.py %D%/export/newest_worker.py \
	%D%/export/optimum_tasks.py \
	%D%/export/ops.py %D%/export/ops_beyond.py %D%/export/ops_case.py \
	%D%/export/ops_complex.py %D%/export/ops_convert.py %D%/export/ops_differences.py \
	%D%/export/ops_extent.py %D%/export/ops_llm.py %D%/export/ops_moe.py \
	%D%/export/ops_numbers.py \
	%D%/export/ops_order.py %D%/export/ops_quant.py %D%/export/ops_tensors.py \
	%D%/export/ops_vision.py %D%/export/pictures.py %D%/export/prefill.py \
	%D%/export/requirements.txt \
	%D%/export/schemas.mjs %D%/export/schemas.py \
	%D%/export/squares.py %D%/export/static_cache.py %D%/export/sweep.py \
	%D%/export/sweep_corners.py %D%/export/sweep_kernels.py %D%/export/text.py \
	%D%/export/text_patterns.py %D%/export/text_rules.py %D%/export/unicode_text.py \
	%D%/export/weights.py %D%/export/whisper.py %D%/export/yolo.py \
	%D%/recipes/shapes.py %D%/recipes/words.py \
	%D%/site.py

# Prints what settings.sh writes into files.
noinst_PROGRAMS += %D%/settings
%C%_settings_SOURCES = %D%/settings.c
%C%_settings_CFLAGS = $(SERVER_CFLAGS)
%C%_settings_LDADD = $(SERVER_LIBS)

dist_man_MANS = %D%/man/pte.1 %D%/man/pted.8

# Completion for shells, where each looks for it.
bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = %D%/completions/bash/pted %D%/completions/bash/pte
zshcompletiondir = $(datadir)/zsh/site-functions
dist_zshcompletion_DATA = %D%/completions/zsh/_pted
fishcompletiondir = $(datadir)/fish/vendor_completions.d
dist_fishcompletion_DATA = %D%/completions/fish/pted.fish %D%/completions/fish/pte.fish

# Other programs that work with pted, and packages.
EXTRA_DIST += %D%/container/Containerfile %D%/container/Containerfile.vulkan \
	%D%/container/image.py %D%/haproxy/haproxy.cfg \
	%D%/kserve/modelcar.Containerfile %D%/kserve/modelcar.yaml %D%/kserve/runtime.yaml \
	%D%/kserve/service.yaml
EXTRA_DIST += debian/changelog debian/control debian/copyright debian/libpted-dev.examples \
	debian/libpted-dev.install debian/libpted1.install debian/libpted1.symbols debian/pted.docs \
	debian/pted.install debian/pted.postrm debian/pted.prerm debian/rules debian/source/format

# Lines and branches by folder that the tests reach without a running server. A test that fails has
# run lines, too.
coverage:
	$(MAKE) check TESTS=
	-tests=$$(printf '%s\n' $(TESTS) | grep -v '^tests/http/' | tr '\n' ' ') && \
		$(MAKE) check TESTS="$$tests"
	$(AM_TESTS_ENVIRONMENT) $(srcdir)/contrib/coverage.py
.PHONY: coverage
