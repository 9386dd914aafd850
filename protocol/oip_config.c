/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/oip_config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/oip_priv.h"
#include "protocol/tensor_text.h"

/* "data_type":"TYPE_FP32": the protocol's name behind a prefix; only BYTES differs. */
static void print_type(struct buf *out, struct oip_type type)
{
    buf_printf(out, "\"data_type\":\"TYPE_%s\"", type.is_bytes ? "STRING" : oip_type_name(type));
}

/* Without the dim that counts samples, where there is one. */
static void print_dims(struct buf *out, const struct shape *shape, bool has_batch)
{
    int skipped = has_batch ? 1 : 0;
    must(shape->rank >= skipped);
    buf_add_str(out, "\"dims\":");
    tensor_text_print(out, DT_I64, shape->dims + skipped, (size_t)(shape->rank - skipped),
                      NUMBER_NAN_STRING);
}

static void print_tensor(struct buf *out, const struct oip_tensor_meta *meta, bool has_batch)
{
    buf_add_char(out, '{');
    oip_print_member(out, "name", meta->name);
    buf_add_char(out, ',');
    print_type(out, meta->type);
    buf_add_char(out, ',');
    print_dims(out, &meta->shape, has_batch);
}

static void print_inputs(struct buf *out, const struct oip_model_config *config)
{
    buf_add_str(out, ",\"input\":[");
    for (size_t i = 0; i < config->input_count; i++) {
        buf_add_str(out, i ? "," : "");
        print_tensor(out, &config->inputs[i], config->batch_size_max > 0);
        buf_printf(out,
                   ",\"format\":\"FORMAT_NONE\",\"is_shape_tensor\":false,"
                   "\"allow_ragged_batch\":false,\"optional\":%s}",
                   config->inputs[i].is_optional ? "true" : "false");
    }
    buf_add_char(out, ']');
}

static void print_outputs(struct buf *out, const struct oip_model_config *config)
{
    buf_add_str(out, ",\"output\":[");
    for (size_t i = 0; i < config->output_count; i++) {
        buf_add_str(out, i ? "," : "");
        print_tensor(out, &config->outputs[i], config->batch_size_max > 0);
        buf_add_str(out, ",\"label_filename\":\"\",\"is_shape_tensor\":false}");
    }
    buf_add_char(out, ']');
}

/* All batch sizes up to the largest are equally good. */
static void print_batching(struct buf *out, const struct oip_model_config *config)
{
    buf_printf(out,
               ",\"dynamic_batching\":{\"preferred_batch_size\":[],"
               "\"max_queue_delay_microseconds\":%" PRIu64 ",\"preserve_ordering\":false,"
               "\"priority_levels\":%" PRIu32 ",\"default_priority_level\":%" PRIu32
               ",\"default_queue_policy\":{\"timeout_action\":\"REJECT\","
               "\"default_timeout_microseconds\":%" PRIu64
               ",\"allow_timeout_override\":true,\"max_queue_size\":%" PRIu64
               "},\"priority_queue_policy\":{}}",
               config->delay_us, config->priorities, config->priority_default, config->timeout_us,
               config->waiting_max);
}

static void print_sequences(struct buf *out, const struct oip_model_config *config)
{
    buf_printf(out,
               ",\"sequence_batching\":{\"oldest\":{\"max_candidate_sequences\":%" PRIu64
               ",\"preferred_batch_size\":[],\"max_queue_delay_microseconds\":0},"
               "\"max_sequence_idle_microseconds\":%" PRIu64 ",\"control_input\":[],\"state\":[]}",
               config->sequence_count_max, config->sequence_timeout_us);
}

void oip_print_config(struct buf *out, const struct oip_model_config *config)
{
    buf_add_char(out, '{');
    oip_print_member(out, "name", config->name);
    buf_add_char(out, ',');
    oip_print_member(out, "platform", config->platform);
    buf_add_char(out, ',');
    oip_print_member(out, "backend", config->backend);
    buf_printf(out, ",\"version_policy\":{\"all\":{}},\"max_batch_size\":%" PRIi64,
               config->batch_size_max);
    print_inputs(out, config);
    print_outputs(out, config);
    buf_add_str(out, ",\"instance_group\":[{");
    oip_print_member(out, "name", config->instance_name);
    buf_printf(out, ",\"kind\":\"%s\",\"count\":%" PRIu32 ",\"gpus\":[]}]",
               config->is_on_gpu ? "KIND_GPU" : "KIND_CPU", config->running_max);
    if (config->sequence_count_max) {
        print_sequences(out, config);
    } else if (config->is_batched) {
        print_batching(out, config);
    }
    buf_add_str(out, ",\"parameters\":{},\"model_warmup\":[],"
                     "\"model_transaction_policy\":{\"decoupled\":false}}");
}
