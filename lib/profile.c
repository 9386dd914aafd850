/* SPDX-License-Identifier: MIT */
/* Profiles of calls. A call that has one and the profile know each other, so that either may be
 * freed first. */
#include "config.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/table.h"
#include "hal/device.h"
#include "hal/profile.h"
#include "lib/inside.h"
#include "runtime/call/profile.h"
#include "runtime/program/program.h"

_Static_assert(PTED_PROFILE_SPANS_MAX == HAL_PROFILE_SPANS_MAX, "one bound, in two headers");

/* ---- life ------------------------------------------------------------------------------------ */

static enum status verify(const struct pted_method *method, size_t span_max, struct error *err)
{
    const struct hal_device_props *device = hal_device_props(method->program->device->hal);
    if (!device->has_profile) {
        return error_set(err, ST_UNSUPPORTED,
                         "device '%s' has no timestamps, so it has no profiles", device->name);
    }
    return span_max > 0 && span_max <= PTED_PROFILE_SPANS_MAX
               ? ST_OK
               : error_set(err, ST_INVALID, "%zu spans, expected 1 to %u", span_max,
                           PTED_PROFILE_SPANS_MAX);
}

enum pted_status pted_profile_new(const struct pted_method *method, size_t span_max,
                                  struct pted_profile **out_profile, struct pted_error *err)
{
    struct error own;
    *out_profile = NULL;
    enum pted_status usable = pted_method_verify(method, err);
    if (usable != PTED_OK) {
        return usable;
    }
    struct pted_profile *profile = calloc(1, sizeof(*profile));
    enum status status =
        profile ? verify(method, span_max, &own) : error_no_memory(&own, "a profile");
    if (status == ST_OK) {
        status = rt_profile_new(method->rt, span_max, &profile->rt, &own);
    }
    if (status != ST_OK) {
        free(profile);
        return lib_give(status, &own, err);
    }
    profile->magic = LIB_PROFILE_MAGIC;
    refs_init(&profile->refs);
    profile->method = method;
    lib_program_ref(method->program);
    *out_profile = profile;
    return PTED_OK;
}

void pted_profile_free(struct pted_profile *profile)
{
    if (!profile) {
        return;
    }
    OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
    if (!refs_drop(&profile->refs)) {
        return;
    }
    rt_profile_free(profile->rt);
    pted_program_free(profile->method->program);
    profile->magic = 0;
    free(profile->rows);
    free(profile);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void lib_profile_leave(struct pted_call *call)
{
    struct pted_profile *profile = call->profile;
    if (profile) {
        OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
        profile->call = NULL;
        call->profile = NULL;
        pted_profile_free(profile);
    }
}

enum pted_status pted_call_set_profile(struct pted_call *call, struct pted_profile *profile,
                                       struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (call->phase != LIB_PHASE_FILLING) {
        return lib_refuse(err, ST_INVALID, "the call has been run: reset it");
    }
    if (profile && profile->method != call->method) {
        return lib_refuse(err, ST_INVALID, "the profile is of method '%.60s'",
                          rt_method_name(profile->method->rt));
    }
    if (profile && profile->call && lib_call_is_in_flight(profile->call)) {
        return lib_refuse(err, ST_INVALID, "a call that has the profile is in flight");
    }
    if (profile) {
        OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
        refs_take(&profile->refs);
        if (profile->call) {
            lib_profile_leave(profile->call);
        }
        profile->call = call;
    }
    if (call->profile != profile) {
        lib_profile_leave(call);
    }
    call->profile = profile;
    return PTED_OK;
}

/* ---- what was measured ----------------------------------------------------------------------- */

static struct pted_profile_row describe(const struct rt_profile_row *row)
{
    static const enum pted_numbers numbers[] = {
        [HAL_MACS_F32] = PTED_NUMBERS_FLOAT32,
        [HAL_MACS_U8] = PTED_NUMBERS_INT8,
        [HAL_MACS_BF16] = PTED_NUMBERS_BFLOAT16,
    };
    TABLE_ENDS_WITH(numbers, HAL_MACS_BF16);
    return (struct pted_profile_row){
        .operation = row->op,
        .layer = row->layer,
        .source = row->source,
        .kernel = row->kernel,
        .block = row->block,
        .node = row->node,
        .dispatches = row->commands,
        .busy_ns = row->busy_ns,
        .host_ns = row->host_ns,
        .macs = row->macs,
        .numbers = numbers[row->macs_kind],
        .bytes = row->bytes,
    };
}

static enum status read_all(struct pted_profile *profile, struct error *err)
{
    const struct rt_profile_row *rows;
    uint32_t count;
    TRY(rt_profile_read(profile->rt, &rows, &count, err));
    if (!ARRAY_ROOM(profile->rows, profile->row_capacity, count)) {
        return error_no_memory(err, "a profile");
    }
    for (uint32_t i = 0; i < count; i++) {
        profile->rows[i] = describe(&rows[i]);
    }
    profile->row_count = count;
    (void)rt_profile_spans(profile->rt, &profile->span_count);
    return ST_OK;
}

enum pted_status pted_profile_read(struct pted_profile *profile, struct pted_error *err)
{
    OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
    struct error own;
    if (profile->call && lib_call_is_in_flight(profile->call)) {
        return lib_refuse(err, ST_INVALID, "the call is in flight: wait for its end");
    }
    return lib_give(read_all(profile, &own), &own, err);
}

size_t pted_profile_row_count(const struct pted_profile *profile)
{
    OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
    return profile->row_count;
}

const struct pted_profile_row *pted_profile_row(const struct pted_profile *profile, size_t index)
{
    return index < pted_profile_row_count(profile) ? &profile->rows[index] : NULL;
}

size_t pted_profile_span_count(const struct pted_profile *profile)
{
    OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
    return profile->span_count;
}

bool pted_profile_span(const struct pted_profile *profile, size_t index,
                       struct pted_profile_span *out_span)
{
    size_t count;
    if (index >= pted_profile_span_count(profile)) {
        return false;
    }
    const struct hal_span *span = &rt_profile_spans(profile->rt, &count)[index];
    *out_span = (struct pted_profile_span){
        .row = rt_profile_row_of(profile->rt, span),
        .thread = span->thread == HAL_THREAD_DEVICE ? PTED_THREAD_DEVICE : span->thread,
        .tiles = span->tiles,
        .begin_ns = span->begin_ns,
        .end_ns = span->end_ns,
    };
    return true;
}

size_t pted_profile_lost(const struct pted_profile *profile)
{
    OBJ_CHECK(profile, LIB_PROFILE_MAGIC);
    return rt_profile_lost(profile->rt);
}
