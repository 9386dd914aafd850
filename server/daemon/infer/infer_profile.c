/* SPDX-License-Identifier: MIT */
/* Calls with ?profile=1: the answer also says where their time went. */
#include "config.h"

#include "server/daemon/infer/infer_profile.h"

#include "base/check.h"
#include "base/table.h"
#include "hal/device.h"
#include "protocol/json.h"
#include "runtime/call/invocation.h"
#include "runtime/call/profile.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/serving/serving.h"
#include "server/profile/layers.h"

enum status infer_profile_begin(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct rt_method *method = infer->call.model->method;
    if (!infer->query.wants_profile) {
        return ST_OK;
    }
    must(!infer->profile);
    if (!hal_device_props(infer->serving->device)->has_profile) {
        return error_set(err, ST_UNSUPPORTED,
                         "profile=1: the device has no timestamps, so it has no profiles");
    }
    if (!rt_method_has_own_work(method)) {
        return error_set(err, ST_UNSUPPORTED,
                         "profile=1: a pipeline has no profile, but the models of its steps have");
    }
    if (atomic_exchange(&infer->env->is_profiling, true)) {
        return error_set(err, ST_EXHAUSTED, "profile=1: another call is being profiled");
    }
    size_t spans = infer->env->params->profile_spans_max;
    if (rt_profile_new(method, spans, &infer->profile, err) != ST_OK) {
        atomic_store(&infer->env->is_profiling, false);
        return err->code;
    }
    rt_invocation_profile(infer->call.invocation, infer->profile);
    return ST_OK;
}

static struct layers_row row_at(const void *rows, uint32_t index)
{
    static const char *const numbers[] = {
        [HAL_MACS_F32] = "float32", [HAL_MACS_U8] = "int8", [HAL_MACS_BF16] = "bfloat16"};
    TABLE_ENDS_WITH(numbers, HAL_MACS_BF16);
    const struct rt_profile_row *row = (const struct rt_profile_row *)rows + index;
    return (struct layers_row){
        .operation = row->op,
        .layer = row->layer,
        .source = row->source,
        .kernel = row->kernel,
        .numbers = numbers[row->macs_kind],
        .block = row->block,
        .node = row->node,
        .dispatches = row->commands,
        .busy_ns = row->busy_ns,
        .host_ns = row->host_ns,
        .macs = row->macs,
        .bytes = row->bytes,
    };
}

enum status infer_profile_print(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct rt_profile *profile = infer->profile;
    const struct rt_sched_job *job = &infer->job;
    const struct hal_device_props *device;
    const struct rt_profile_row *rows;
    struct buf *out = infer->out;
    uint32_t count;
    if (!profile) {
        return ST_OK;
    }
    device = hal_device_props(infer->serving->device);
    TRY(rt_profile_read(profile, &rows, &count, err));
    buf_add_str(out, ",\"profile\":{\"device\":");
    json_print_string(out, span_str(device->name));
    buf_add_str(out, ",\"description\":");
    json_print_string(out, span_str(device->description));
    buf_printf(out, ",\"workers\":%u,\"call_us\":%.3f,", device->workers,
               (double)(job->finished_ns - job->started_ns) / 1000);
    if (infer->media.ended_ns) {
        buf_printf(out, "\"decode_us\":%.3f,", (double)infer_media_ns(&infer->media) / 1000);
    }
    layers_print_json(rt_profile_lost(profile), row_at, rows, count, 1, out);
    buf_add_char(out, '}');
    return ST_OK;
}

void infer_profile_end(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    if (infer->profile) {
        rt_profile_free(infer->profile);
        infer->profile = NULL;
        atomic_store(&infer->env->is_profiling, false);
    }
}
