# SPDX-License-Identifier: MIT
# Plays against a real daemon (run_http.py describes their form), and tests of the whole process:
# start, stop, signals, systemd.
HTTP_TESTS = \
	%D%/run_access.py \
	%D%/run_access_log.py \
	%D%/run_bad_media.py \
	%D%/run_batch.py \
	%D%/run_bench.py \
	%D%/run_adapters.py \
	%D%/run_answers.py \
	%D%/run_cards.py \
	%D%/run_changed_files.py \
	%D%/run_chat.py \
	%D%/run_classes.py \
	%D%/run_clients.py \
	%D%/run_config.py \
	%D%/run_console.py \
	%D%/run_continuous.py \
	%D%/run_daemon.py \
	%D%/run_devices.py \
	%D%/run_drafts.py \
	%D%/run_embeddings.py \
	%D%/run_exporters.py \
	%D%/run_fairness.py \
	%D%/run_fetch.py \
	%D%/run_folders.py \
	%D%/run_formats.py \
	%D%/run_generate.py \
	%D%/run_haproxy.py \
	%D%/run_http.py \
	%D%/run_idle.py \
	%D%/run_layouts.py \
	%D%/run_lifecycle.py \
	%D%/run_media.py \
	%D%/run_pte_media.py \
	%D%/run_memory.py \
	%D%/run_metrics.py \
	%D%/run_openai.py \
	%D%/run_openapi.py \
	%D%/run_otlp.py \
	%D%/run_parts.py \
	%D%/run_pipelines.py \
	%D%/run_predict.py \
	%D%/run_prefix.py \
	%D%/run_profile.py \
	%D%/run_proxy.py \
	%D%/run_python.py \
	%D%/run_pte.py \
	%D%/run_pte_client.py \
	%D%/run_pte_compare.py \
	%D%/run_responses.py \
	%D%/run_s3.py \
	%D%/run_sched.py \
	%D%/run_sequences.py \
	%D%/run_shared_memory.py \
	%D%/run_shares.py \
	%D%/run_speech.py \
	%D%/run_start.py \
	%D%/run_thinking.py \
	%D%/run_tls.py \
	%D%/run_turns.py \
	%D%/run_tls_plays.py \
	%D%/run_weights.py \
	%D%/run_watchdog.py
TESTS += $(HTTP_TESTS)
EXTRA_DIST += $(HTTP_TESTS) %D%/answers.json \
	%D%/00_basic.t \
	%D%/10_connection.t \
	%D%/20_routes.t \
	%D%/25_addresses.t \
	%D%/30_framing.t \
	%D%/35_strict.t \
	%D%/40_limits.t \
	%D%/45_timeouts.t \
	%D%/50_infer.t \
	%D%/55_names.t \
	%D%/60_binary.t \
	%D%/70_coding.t \
	%D%/80_call.t \
	%D%/90_batch.t \
	%D%/child_log.py \
	%D%/hold.pte \
	%D%/interpreter.py \
	%D%/load.py \
	%D%/tls_client.py \
	%D%/tones.py \
	%D%/webdriver.py
