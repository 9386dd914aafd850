# SPDX-License-Identifier: MIT
# One cmocka program for each module: test_FILE.c tests FILE.c and links the archives at and below it.
if HAVE_CMOCKA
UNIT_BASE_TESTS = %D%/test_arena %D%/test_array %D%/test_blake2b %D%/test_buf %D%/test_resource %D%/test_shape %D%/test_share %D%/test_spare %D%/test_status

UNIT_PROTOCOL_TESTS = %D%/test_call %D%/test_grpc %D%/test_json %D%/test_number %D%/test_oip %D%/test_oip_classes %D%/test_oip_pattern %D%/test_oip_settings %D%/test_predict \
	%D%/test_pick \
	%D%/test_prom %D%/test_protobuf %D%/test_tensor_text

check_PROGRAMS += $(UNIT_BASE_TESTS) $(UNIT_PROTOCOL_TESTS)
TESTS += $(UNIT_BASE_TESTS) $(UNIT_PROTOCOL_TESTS)

%C%_test_arena_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_arena_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_arena_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
%C%_test_array_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_array_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_blake2b_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_blake2b_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_buf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_buf_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_shape_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_shape_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_resource_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_resource_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_share_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_share_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_spare_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_spare_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_status_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_status_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_test_number_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_number_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_json_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_json_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_grpc_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_grpc_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_call_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_call_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_oip_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_oip_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_oip_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
%C%_test_pick_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pick_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)

%C%_test_oip_settings_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_oip_settings_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_predict_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_predict_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)

%C%_test_oip_pattern_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_oip_pattern_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_oip_classes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_oip_classes_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_prom_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_prom_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_protobuf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_protobuf_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)
%C%_test_tensor_text_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_tensor_text_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/test_suballoc
TESTS += %D%/test_suballoc
%C%_test_suballoc_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_suballoc_LDADD = $(HAL_LIBS) $(CMOCKA_LIBS)

# sig_support.c has the vectors and the random signatures.
UNIT_SIG_TESTS = %D%/test_sig %D%/test_rawsig %D%/test_sip %D%/test_pytree
check_PROGRAMS += $(UNIT_SIG_TESTS)
TESTS += $(UNIT_SIG_TESTS)

%C%_test_sig_SOURCES = %D%/test_sig.c %D%/sig_support.c %D%/sig_support.h
%C%_test_sig_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_sig_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_rawsig_SOURCES = %D%/test_rawsig.c %D%/sig_support.c %D%/sig_support.h
%C%_test_rawsig_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_rawsig_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_sip_SOURCES = %D%/test_sip.c %D%/sig_support.c %D%/sig_support.h
%C%_test_sip_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_sip_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_pytree_SOURCES = %D%/test_pytree.c %D%/sig_support.c %D%/sig_support.h
%C%_test_pytree_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_pytree_LDADD = $(PROTOCOL_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)

# ops_call.c replaces the plan, so that the tests run the families' own code.
UNIT_OPS_TESTS = %D%/test_ops_copy %D%/test_ops_index %D%/test_ops_order %D%/test_ops_pool \
	%D%/test_ops_llm %D%/test_ops_moe %D%/test_ops_quant %D%/test_ops_update %D%/test_ops_view \
	%D%/test_ops_shapes
check_PROGRAMS += $(UNIT_OPS_TESTS)
TESTS += $(UNIT_OPS_TESTS)

%C%_test_ops_order_SOURCES = %D%/test_ops_order.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_order_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_order_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_copy_SOURCES = %D%/test_ops_copy.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_copy_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_copy_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_index_SOURCES = %D%/test_ops_index.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_index_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_index_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_llm_SOURCES = %D%/test_ops_llm.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_llm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_llm_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_moe_SOURCES = %D%/test_ops_moe.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_moe_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_moe_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_quant_SOURCES = %D%/test_ops_quant.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_quant_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_quant_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_pool_SOURCES = %D%/test_ops_pool.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_pool_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_pool_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_update_SOURCES = %D%/test_ops_update.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_update_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_update_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_view_SOURCES = %D%/test_ops_view.c %D%/ops_call.c %D%/ops_call.h
%C%_test_ops_view_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_view_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ops_shapes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ops_shapes_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)

UNIT_PTE_TESTS = %D%/test_flatbuf %D%/test_pte %D%/test_pte_files
check_PROGRAMS += $(UNIT_PTE_TESTS)
TESTS += $(UNIT_PTE_TESTS)
%C%_test_flatbuf_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_flatbuf_LDADD = $(PTE_LIBS) $(CMOCKA_LIBS)
%C%_test_pte_SOURCES = %D%/test_pte.c %D%/pte_sample.c
%C%_test_pte_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pte_LDADD = $(PTE_LIBS) $(CMOCKA_LIBS)
%C%_test_pte_files_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_pte_files_LDADD = $(PTE_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)

check_PROGRAMS += %D%/test_changed_files
TESTS += %D%/test_changed_files
%C%_test_changed_files_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_changed_files_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)

UNIT_SCHED_TESTS = %D%/test_children %D%/test_prefix %D%/test_sched %D%/test_sched_batch \
	%D%/test_sched_memory %D%/test_sched_stress %D%/test_sequence %D%/test_sizing
check_PROGRAMS += $(UNIT_SCHED_TESTS)
TESTS += $(UNIT_SCHED_TESTS)
SCHED_SUPPORT = %D%/sched_support.c %D%/sched_support.h
%C%_test_children_SOURCES = %D%/test_children.c $(SCHED_SUPPORT)
%C%_test_children_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_children_LDADD = runtime/sched/libsched.a $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_sched_SOURCES = %D%/test_sched.c $(SCHED_SUPPORT)
%C%_test_sched_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sched_LDADD = runtime/sched/libsched.a $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_sched_batch_SOURCES = %D%/test_sched_batch.c $(SCHED_SUPPORT)
%C%_test_sched_batch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sched_batch_LDADD = runtime/sched/libsched.a $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_sched_memory_SOURCES = %D%/test_sched_memory.c $(SCHED_SUPPORT)
%C%_test_sched_memory_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sched_memory_LDADD = runtime/sched/libsched.a $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_sched_stress_SOURCES = %D%/test_sched_stress.c $(SCHED_SUPPORT)
%C%_test_sched_stress_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sched_stress_LDADD = runtime/sched/libsched.a $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_sizing_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sizing_LDADD = runtime/sched/libsched.a $(BASE_LIBS) $(CMOCKA_LIBS)
%C%_test_prefix_SOURCES = %D%/test_prefix.c %D%/call_support.c %D%/call_support.h
%C%_test_prefix_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_prefix_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_sequence_SOURCES = %D%/test_sequence.c %D%/call_support.c %D%/call_support.h
%C%_test_sequence_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sequence_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)

UNIT_SERVER_TESTS = %D%/test_address %D%/test_bench %D%/test_bench_report %D%/test_body \
	%D%/test_cli_option \
	%D%/test_card %D%/test_client %D%/test_transfers %D%/test_coding %D%/test_resize_rows %D%/test_pictures %D%/test_without_media %D%/test_medium %D%/test_multipart %D%/test_conf %D%/test_conn \
	%D%/test_conn_message %D%/test_conn_time %D%/test_http2 %D%/test_listener %D%/test_places \
	%D%/test_document %D%/test_drafts %D%/test_embedding %D%/test_exchange %D%/test_fetch_url %D%/test_forwarded %D%/test_proxy_header %D%/test_framing %D%/test_generation %D%/test_http %D%/test_infer %D%/test_infill %D%/test_keep %D%/test_line_writer \
	%D%/test_log %D%/test_log_limit %D%/test_model_trial %D%/test_npy %D%/test_npz %D%/test_options %D%/test_pairs %D%/test_pte_print \
	%D%/test_query %D%/test_repository %D%/test_requests %D%/test_route %D%/test_sampler %D%/test_session %D%/test_target %D%/test_tokenizer %D%/test_tokens %D%/test_top \
	%D%/test_trace %D%/test_transport_tls %D%/test_turns %D%/test_access_log %D%/test_dump %D%/test_metrics %D%/test_otlp %D%/test_spans \
	%D%/test_api %D%/test_api_calls %D%/test_api_memory %D%/test_api_models %D%/test_layers \
	%D%/test_drain %D%/test_ask %D%/test_histories %D%/test_embed %D%/test_library %D%/test_stops %D%/test_thinking %D%/test_tools %D%/test_waits %D%/test_watchdog %D%/test_yaml
check_PROGRAMS += $(UNIT_SERVER_TESTS)
TESTS += $(UNIT_SERVER_TESTS)
if HAVE_MEDIA
check_PROGRAMS += %D%/test_media %D%/test_codecs %D%/test_transcription
TESTS += %D%/test_media %D%/test_codecs %D%/test_transcription
endif
%C%_test_model_trial_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_model_trial_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_infill_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_infill_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_keep_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_keep_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_drafts_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_drafts_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_sampler_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_sampler_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)

%C%_test_bench_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_bench_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_bench_report_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_bench_report_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_cli_option_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_cli_option_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_body_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_body_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_address_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_address_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_address_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getaddrinfo,--wrap=freeaddrinfo
%C%_test_proxy_header_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_proxy_header_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_forwarded_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_forwarded_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_client_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_client_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_transfers_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_transfers_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_resize_rows_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_resize_rows_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_pictures_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pictures_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_media_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_media_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
# Its second file comes before the library's.
%C%_test_without_media_SOURCES = %D%/test_without_media.c server/media/without.c
%C%_test_without_media_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_without_media_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_multipart_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_multipart_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_coding_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_coding_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_medium_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_medium_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_card_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_card_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_library_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_library_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_yaml_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_yaml_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_document_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_document_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_conf_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_conf_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
# conn_support.c has the client, and replaces the functions of calls.
UNIT_CONNS_SUPPORT = %D%/conns_support.c %D%/conns_support.h
UNIT_CONN_SUPPORT = %D%/conn_support.c %D%/conn_support.h $(UNIT_CONNS_SUPPORT)
UNIT_CONN_WRAPS = -Wl,--wrap=request_take,--wrap=request_begin \
	-Wl,--wrap=request_run,--wrap=request_written,--wrap=request_abandon,--wrap=uv_hrtime
%C%_test_conn_SOURCES = %D%/test_conn.c $(UNIT_CONN_SUPPORT)
%C%_test_conn_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_conn_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_conn_LDFLAGS = $(AM_LDFLAGS) $(UNIT_CONN_WRAPS)
%C%_test_conn_message_SOURCES = %D%/test_conn_message.c $(UNIT_CONN_SUPPORT)
%C%_test_conn_message_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_conn_message_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_conn_message_LDFLAGS = $(AM_LDFLAGS) $(UNIT_CONN_WRAPS)
%C%_test_conn_time_SOURCES = %D%/test_conn_time.c $(UNIT_CONN_SUPPORT)
%C%_test_conn_time_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_conn_time_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_conn_time_LDFLAGS = $(AM_LDFLAGS) $(UNIT_CONN_WRAPS)
%C%_test_http2_SOURCES = %D%/test_http2.c $(UNIT_CONN_SUPPORT)
%C%_test_http2_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_http2_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_http2_LDFLAGS = $(AM_LDFLAGS) $(UNIT_CONN_WRAPS)
%C%_test_places_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_places_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_listener_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_listener_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_listener_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=opening_accept,--wrap=accept4
%C%_test_session_SOURCES = %D%/test_session.c %D%/tiny_protocol.c %D%/tiny_protocol.h \
	$(UNIT_CONNS_SUPPORT)
%C%_test_session_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_session_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_session_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=request_take,--wrap=request_begin \
	-Wl,--wrap=exchange_add_body,--wrap=request_run,--wrap=request_retry \
	-Wl,--wrap=request_written,--wrap=request_abandon,--wrap=uv_hrtime
%C%_test_exchange_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_exchange_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_framing_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_framing_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_http_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_http_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
INFER_SUPPORT = %D%/infer_support.c %D%/infer_support.h
%C%_test_infer_SOURCES = %D%/test_infer.c $(INFER_SUPPORT)
%C%_test_infer_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_infer_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_embedding_SOURCES = %D%/test_embedding.c $(INFER_SUPPORT)
%C%_test_embedding_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_embedding_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_transcription_SOURCES = %D%/test_transcription.c $(INFER_SUPPORT)
%C%_test_transcription_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_transcription_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_codecs_SOURCES = %D%/test_codecs.c $(INFER_SUPPORT)
%C%_test_codecs_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_codecs_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_generation_SOURCES = %D%/test_generation.c $(INFER_SUPPORT)
%C%_test_generation_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_generation_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_line_writer_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_line_writer_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)

%C%_test_fetch_url_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_fetch_url_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_target_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_target_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_tokenizer_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_tokenizer_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_tokens_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_tokens_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_top_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_top_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_trace_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_trace_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_log_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_log_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_log_limit_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_log_limit_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_npy_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_npy_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_npz_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_npz_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_pairs_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pairs_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_options_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_options_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_pte_print_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pte_print_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_repository_SOURCES = %D%/test_repository.c %D%/call_support.c %D%/call_support.h
%C%_test_repository_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_repository_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_query_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_query_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_requests_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_requests_LDADD = $(REQUEST_LIBS) $(SERVER_BELOW_DAEMON) $(CMOCKA_LIBS)
%C%_test_route_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_route_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
# Its client is OpenSSL too, but linked.
%C%_test_transport_tls_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_transport_tls_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(OPENSSL_LIBS)
%C%_test_turns_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_turns_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_turns_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_hrtime

OBSERVE_SUPPORT = %D%/observe_support.c %D%/observe_support.h
%C%_test_access_log_SOURCES = %D%/test_access_log.c $(OBSERVE_SUPPORT)
%C%_test_access_log_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_access_log_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_access_log_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_hrtime,--wrap=clock_gettime
%C%_test_otlp_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_otlp_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_otlp_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=curl_load,--wrap=nanosleep
%C%_test_spans_SOURCES = %D%/test_spans.c $(OBSERVE_SUPPORT)
%C%_test_spans_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_spans_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_spans_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_hrtime,--wrap=clock_gettime
API_SUPPORT = %D%/api_support.c %D%/api_support.h
%C%_test_api_SOURCES = %D%/test_api.c $(API_SUPPORT)
%C%_test_api_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_api_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_api_calls_SOURCES = %D%/test_api_calls.c $(API_SUPPORT)
%C%_test_api_calls_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_api_calls_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_metrics_SOURCES = %D%/test_metrics.c $(API_SUPPORT) %D%/sched_support.c %D%/sched_support.h
%C%_test_metrics_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_metrics_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_dump_SOURCES = %D%/test_dump.c $(API_SUPPORT) %D%/sched_support.c %D%/sched_support.h
%C%_test_dump_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_dump_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_dump_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_hrtime
# ask_support.c has what the three share.
%C%_test_ask_SOURCES = %D%/test_ask.c %D%/ask_support.c %D%/ask_support.h
%C%_test_ask_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ask_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_histories_SOURCES = %D%/test_histories.c %D%/ask_support.c %D%/ask_support.h
%C%_test_histories_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_histories_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_embed_SOURCES = %D%/test_embed.c %D%/ask_support.c %D%/ask_support.h
%C%_test_embed_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_embed_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_tools_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_tools_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_thinking_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_thinking_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_stops_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_stops_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_api_memory_SOURCES = %D%/test_api_memory.c $(API_SUPPORT) tests/oom/failing.c tests/oom/failing.h
%C%_test_api_memory_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_api_memory_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)
%C%_test_api_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
%C%_test_layers_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_layers_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_api_models_SOURCES = %D%/test_api_models.c $(API_SUPPORT)
%C%_test_api_models_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS) $(CJSON_CFLAGS)
%C%_test_api_models_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS) $(CJSON_LIBS)

%C%_test_waits_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_waits_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_waits_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_hrtime

# Time, timers and work for threads are the test's.
SERVING_SUPPORT = %D%/serving_support.c %D%/serving_support.h
SERVING_WRAPS = -Wl,--wrap=uv_hrtime,--wrap=uv_now,--wrap=uv_timer_start,--wrap=uv_timer_stop \
	-Wl,--wrap=uv_is_active,--wrap=offload_begin,--wrap=offload_end \
	-Wl,--wrap=log_line,--wrap=notify_send
check_PROGRAMS += %D%/test_access
TESTS += %D%/test_access
%C%_test_access_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_access_LDADD = $(REQUEST_LIBS) $(SERVER_BELOW_DAEMON) $(CMOCKA_LIBS)
UNIT_SERVING_TESTS = %D%/test_changes %D%/test_proving %D%/test_recovery %D%/test_reload \
	%D%/test_serving
check_PROGRAMS += $(UNIT_SERVING_TESTS)
TESTS += $(UNIT_SERVING_TESTS)
%C%_test_changes_SOURCES = %D%/test_changes.c $(SERVING_SUPPORT)
%C%_test_changes_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_changes_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_changes_LDFLAGS = $(AM_LDFLAGS) $(SERVING_WRAPS)
%C%_test_proving_SOURCES = %D%/test_proving.c $(SERVING_SUPPORT)
%C%_test_proving_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_proving_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_proving_LDFLAGS = $(AM_LDFLAGS) $(SERVING_WRAPS) -Wl,--wrap=rt_batch_prove \
	-Wl,--wrap=rt_batch_measure,--wrap=rt_speculation_prove,--wrap=rt_speculation_measure \
	-Wl,--wrap=rt_siblings_meet,--wrap=rt_siblings_prove,--wrap=rt_siblings_measure \
	-Wl,--wrap=rt_proven_find,--wrap=rt_proven_read,--wrap=rt_proven_write
%C%_test_serving_SOURCES = %D%/test_serving.c $(SERVING_SUPPORT)
%C%_test_serving_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_serving_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_serving_LDFLAGS = $(AM_LDFLAGS) $(SERVING_WRAPS)
%C%_test_recovery_SOURCES = %D%/test_recovery.c $(SERVING_SUPPORT)
%C%_test_recovery_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_recovery_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_recovery_LDFLAGS = $(AM_LDFLAGS) $(SERVING_WRAPS)
%C%_test_reload_SOURCES = %D%/test_reload.c $(SERVING_SUPPORT)
%C%_test_reload_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_reload_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_reload_LDFLAGS = $(AM_LDFLAGS) $(SERVING_WRAPS) -Wl,--wrap=inotify_add_watch \
	-Wl,--wrap=inotify_init1

# Models: answers, intake, cards.
UNIT_MODEL_TESTS = %D%/test_answer %D%/test_boxes %D%/test_card_rules %D%/test_derive %D%/test_intake
check_PROGRAMS += $(UNIT_MODEL_TESTS)
TESTS += $(UNIT_MODEL_TESTS)
%C%_test_answer_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_answer_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_answer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=png_write
%C%_test_boxes_SOURCES = %D%/test_boxes.c %D%/boxes.def
%C%_test_boxes_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_boxes_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_card_rules_SOURCES = %D%/test_card_rules.c %D%/call_support.c %D%/call_support.h
%C%_test_card_rules_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_card_rules_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_derive_SOURCES = %D%/test_derive.c %D%/call_support.c %D%/call_support.h
%C%_test_derive_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_derive_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_intake_SOURCES = %D%/test_intake.c %D%/call_support.c %D%/call_support.h
%C%_test_intake_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_intake_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_intake_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rt_invocation_input

%C%_test_watchdog_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_watchdog_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_watchdog_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_timer_start,--wrap=listeners_is_stuck \
	-Wl,--wrap=hal_device_progress,--wrap=notify_send
%C%_test_drain_CFLAGS = $(SERVER_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_drain_LDADD = $(SERVER_LIBS) $(CMOCKA_LIBS)
%C%_test_drain_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=uv_hrtime,--wrap=uv_timer_start \
	-Wl,--wrap=uv_signal_start,--wrap=listeners_has_waiting,--wrap=listeners_close_all \
	-Wl,--wrap=conns_refuse_later,--wrap=conns_drain,--wrap=conns_abort,--wrap=proving_stop \
	-Wl,--wrap=fetch_cancel,--wrap=changes_refuse_start,--wrap=turns_end \
	-Wl,--wrap=access_log_close,--wrap=notify_send,--wrap=_exit

# Tests of sizes, the graph, its passes, plans and calls.
UNIT_RUNTIME_TESTS = %D%/test_activate %D%/test_adapt %D%/test_speculation %D%/test_batch %D%/test_cache_int8 \
	%D%/test_bind %D%/test_caches %D%/test_caches_pass %D%/test_cascade %D%/test_chain %D%/test_channels %D%/test_compose %D%/test_ends \
	%D%/test_conv_group %D%/test_cut %D%/test_growing \
	%D%/test_dim %D%/test_example %D%/test_expand_dw %D%/test_flow %D%/test_forms \
	%D%/test_halves %D%/test_invocation %D%/test_lines %D%/test_merge %D%/test_moves %D%/test_names \
	%D%/test_narrow %D%/test_oracle %D%/test_orders %D%/test_packed %D%/test_seen %D%/test_parallel %D%/test_passes %D%/test_permute \
	%D%/test_pipeline %D%/test_pipeline_state %D%/test_profile %D%/test_proven %D%/test_ptd \
	%D%/test_quantize %D%/test_random %D%/test_reduce_rows %D%/test_release \
	%D%/test_edits %D%/test_shared \
	%D%/test_siblings %D%/test_signature %D%/test_state %D%/test_steps %D%/test_unify %D%/test_vm %D%/test_volume \
	%D%/test_vulkan_import %D%/test_winograd %D%/test_xnnpack
check_PROGRAMS += $(UNIT_RUNTIME_TESTS)
TESTS += $(UNIT_RUNTIME_TESTS)
%C%_test_vulkan_import_SOURCES = %D%/test_vulkan_import.c %D%/call_support.c %D%/call_support.h
%C%_test_vulkan_import_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_vulkan_import_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_xnnpack_SOURCES = %D%/test_xnnpack.c %D%/xnn_sample.c %D%/xnn_sample.h
%C%_test_xnnpack_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_xnnpack_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_shared_SOURCES = %D%/test_shared.c %D%/call_support.c %D%/call_support.h \
	%D%/graph_support.c %D%/graph_support.h
%C%_test_shared_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_shared_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_profile_SOURCES = %D%/test_profile.c %D%/call_support.c %D%/call_support.h
%C%_test_profile_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_profile_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_compose_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_compose_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_adapt_SOURCES = %D%/test_adapt.c %D%/call_support.c %D%/call_support.h
%C%_test_adapt_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_adapt_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_batch_SOURCES = %D%/test_batch.c %D%/call_support.c %D%/call_support.h
%C%_test_batch_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_batch_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_speculation_SOURCES = %D%/test_speculation.c %D%/call_support.c %D%/call_support.h
%C%_test_speculation_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_speculation_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_siblings_SOURCES = %D%/test_siblings.c %D%/call_support.c %D%/call_support.h
%C%_test_siblings_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_siblings_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_steps_SOURCES = %D%/test_steps.c %D%/call_support.c %D%/call_support.h
%C%_test_steps_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_steps_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_cascade_SOURCES = %D%/test_cascade.c %D%/call_support.c %D%/call_support.h
%C%_test_cascade_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_cascade_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ends_SOURCES = %D%/test_ends.c %D%/graph_support.c %D%/graph_support.h
%C%_test_ends_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ends_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_chain_SOURCES = %D%/test_chain.c %D%/graph_support.c %D%/graph_support.h
%C%_test_chain_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_chain_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_cut_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_cut_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_dim_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_dim_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_quantize_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_quantize_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_halves_SOURCES = %D%/test_halves.c %D%/graph_support.c %D%/graph_support.h
%C%_test_halves_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_halves_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
PASS_SUPPORT = %D%/pass_support.c %D%/pass_support.h %D%/graph_support.c %D%/graph_support.h
%C%_test_flow_SOURCES = %D%/test_flow.c $(PASS_SUPPORT)
%C%_test_flow_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_flow_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_narrow_SOURCES = %D%/test_narrow.c $(PASS_SUPPORT)
%C%_test_narrow_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_narrow_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_parallel_SOURCES = %D%/test_parallel.c $(PASS_SUPPORT)
%C%_test_parallel_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_parallel_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_passes_SOURCES = %D%/test_passes.c $(PASS_SUPPORT)
%C%_test_passes_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_passes_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_activate_SOURCES = %D%/test_activate.c %D%/graph_support.c %D%/graph_support.h
%C%_test_activate_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_activate_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_channels_SOURCES = %D%/test_channels.c %D%/graph_support.c %D%/graph_support.h
%C%_test_channels_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_channels_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_lines_SOURCES = %D%/test_lines.c %D%/graph_support.c %D%/graph_support.h
%C%_test_lines_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_lines_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_moves_SOURCES = %D%/test_moves.c %D%/graph_support.c %D%/graph_support.h
%C%_test_moves_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_moves_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_reduce_rows_SOURCES = %D%/test_reduce_rows.c %D%/graph_support.c %D%/graph_support.h
%C%_test_reduce_rows_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_reduce_rows_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_conv_group_SOURCES = %D%/test_conv_group.c %D%/graph_support.c %D%/graph_support.h
%C%_test_conv_group_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_conv_group_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_volume_SOURCES = %D%/test_volume.c %D%/graph_support.c %D%/graph_support.h
%C%_test_volume_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_volume_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_caches_pass_SOURCES = %D%/test_caches_pass.c $(PASS_SUPPORT)
%C%_test_caches_pass_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_caches_pass_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_growing_SOURCES = %D%/test_growing.c %D%/call_support.c %D%/call_support.h
%C%_test_growing_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_growing_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_caches_SOURCES = %D%/test_caches.c %D%/call_support.c %D%/call_support.h
%C%_test_caches_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_caches_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_merge_SOURCES = %D%/test_merge.c $(PASS_SUPPORT)
%C%_test_merge_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_merge_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_unify_SOURCES = %D%/test_unify.c
%C%_test_unify_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_unify_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_expand_dw_SOURCES = %D%/test_expand_dw.c %D%/graph_support.c %D%/graph_support.h
%C%_test_expand_dw_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_expand_dw_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_cache_int8_SOURCES = %D%/test_cache_int8.c %D%/call_support.c %D%/call_support.h \
	%D%/graph_support.c %D%/graph_support.h
%C%_test_cache_int8_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_cache_int8_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_winograd_SOURCES = %D%/test_winograd.c %D%/graph_support.c %D%/graph_support.h
%C%_test_winograd_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_winograd_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_proven_SOURCES = %D%/test_proven.c %D%/call_support.c %D%/call_support.h
%C%_test_proven_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_proven_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_seen_SOURCES = %D%/test_seen.c %D%/call_support.c %D%/call_support.h
%C%_test_seen_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_seen_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_packed_SOURCES = %D%/test_packed.c %D%/call_support.c %D%/call_support.h
%C%_test_packed_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_packed_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_permute_SOURCES = %D%/test_permute.c %D%/graph_support.c %D%/graph_support.h
%C%_test_permute_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
# Operators refer back to planning, which the passes alone do not need.
%C%_test_permute_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_invocation_SOURCES = %D%/test_invocation.c %D%/call_support.c %D%/call_support.h
%C%_test_invocation_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_invocation_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_invocation_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc \
	-Wl,--wrap=aligned_alloc
%C%_test_example_SOURCES = %D%/test_example.c %D%/call_support.c %D%/call_support.h
%C%_test_example_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_example_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_pipeline_SOURCES = %D%/test_pipeline.c %D%/call_support.c %D%/call_support.h
%C%_test_pipeline_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pipeline_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_pipeline_state_SOURCES = %D%/test_pipeline_state.c %D%/call_support.c %D%/call_support.h
%C%_test_pipeline_state_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_pipeline_state_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_oracle_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_oracle_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_orders_SOURCES = %D%/test_orders.c %D%/call_support.c %D%/call_support.h
%C%_test_orders_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_orders_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_bind_SOURCES = %D%/test_bind.c %D%/call_support.c %D%/call_support.h
%C%_test_bind_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_bind_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_bind_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc
%C%_test_vm_SOURCES = %D%/test_vm.c %D%/call_support.c %D%/call_support.h
%C%_test_vm_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_vm_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_edits_SOURCES = %D%/test_edits.c %D%/call_support.c %D%/call_support.h
%C%_test_edits_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_edits_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_state_SOURCES = %D%/test_state.c %D%/call_support.c %D%/call_support.h
%C%_test_state_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_state_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=sysconf,--wrap=hal_buffer_compact
%C%_test_state_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_forms_SOURCES = %D%/test_forms.c %D%/call_support.c %D%/call_support.h
%C%_test_forms_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_forms_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_ptd_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_ptd_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_release_SOURCES = %D%/test_release.c %D%/call_support.c %D%/call_support.h
%C%_test_release_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_release_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_random_SOURCES = %D%/test_random.c %D%/call_support.c %D%/call_support.h
%C%_test_random_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_random_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS) -lm
%C%_test_names_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_names_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
%C%_test_signature_SOURCES = %D%/test_signature.c %D%/pte_sample.c
%C%_test_signature_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
%C%_test_signature_LDADD = $(RUNTIME_LIBS) $(CMOCKA_LIBS)
endif
EXTRA_DIST += %D%/metrics.txt %D%/log_lines.h %D%/unit.h %D%/flatbuf_writer.h %D%/pte_sample.h
