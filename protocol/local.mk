# SPDX-License-Identifier: MIT
noinst_LIBRARIES += %D%/libprotocol.a
%C%_libprotocol_a_CFLAGS = $(STRICT_CFLAGS)
%C%_libprotocol_a_SOURCES = \
	%D%/base64.c %D%/base64.h \
	%D%/call.c %D%/call.h \
	%D%/call_describe.c \
	%D%/call_describe_result.c \
	%D%/call_leaf.c \
	%D%/call_media.c \
	%D%/call_priv.h \
	%D%/call_promise.c \
	%D%/call_reply.c \
	%D%/call_rows.c \
	%D%/grpc.c %D%/grpc.def %D%/grpc.h \
	%D%/grpc_contents.c %D%/grpc_contents.h \
	%D%/grpc_describe.c %D%/grpc_describe.h \
	%D%/grpc_from_json.c \
	%D%/grpc_infer.c %D%/grpc_infer.h \
	%D%/grpc_json.c %D%/grpc_json.h \
	%D%/grpc_reply.c \
	%D%/grpc_stream.c %D%/grpc_stream.h \
	%D%/grpc_schema.c %D%/grpc_schema.def %D%/grpc_schema.h \
	%D%/json.c %D%/json.h \
	%D%/json_priv.h \
	%D%/json_string.c \
	%D%/number.c %D%/number.h \
	%D%/number_exact.c \
	%D%/number_half.c \
	%D%/number_pow10.def \
	%D%/number_print.c \
	%D%/number_priv.h \
	%D%/oip.c %D%/oip.h \
	%D%/oip_classes.c %D%/oip_classes.h \
	%D%/oip_config.c %D%/oip_config.h \
	%D%/oip_input.c \
	%D%/oip_layout.c %D%/oip_layout.h \
	%D%/oip_parameters.c \
	%D%/oip_pattern.c %D%/oip_pattern.h \
	%D%/oip_priv.h \
	%D%/oip_tensors.c \
	%D%/oip_reply.c %D%/oip_reply.h \
	%D%/oip_settings.c %D%/oip_settings.h \
	%D%/oip_shared.c \
	%D%/pick.c %D%/pick.h \
	%D%/predict.c %D%/predict.h \
	%D%/prom.c %D%/prom.h \
	%D%/protobuf.c %D%/protobuf.h \
	%D%/protobuf_write.c \
	%D%/pytree.c %D%/pytree.h \
	%D%/pytree_compact.c \
	%D%/pytree_json.c \
	%D%/pytree_priv.h \
	%D%/rawsig.c %D%/rawsig.h \
	%D%/sig.c %D%/sig.h \
	%D%/sip.c %D%/sip.h \
	%D%/sip_build.c %D%/sip_build.h \
	%D%/sip_tree.c %D%/sip_tree.h \
	%D%/tensor_measure.c \
	%D%/tensor_print.c \
	%D%/tensor_priv.h \
	%D%/tensor_read.c \
	%D%/tensor_text.c %D%/tensor_text.h
