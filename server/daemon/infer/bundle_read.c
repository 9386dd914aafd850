/* SPDX-License-Identifier: MIT */
/*
 * The text is read twice. The first pass finds the calls and their ids, so that the second can read
 * each call with its codec and for the model that it names. Then promises are resolved and the
 * calls ordered.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "protocol/json.h"
#include "server/daemon/infer/bundle.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_sequence.h"
#include "server/daemon/infer/infer_shared.h"
#include "server/daemon/serving/serving.h"

/* A list while it is read. */
struct reader {
    struct infer *infer;
    struct arena *arena;
    struct bundle *bundle;
    const struct oip_body *parts;
    struct span binary; /* bytes that no call has taken yet */
    struct error *err;
};

static enum status no_memory(const struct reader *r)
{
    return arena_fail(r->arena, "the list", r->err);
}

enum status bundle_prefix(uint32_t index, const char *separator, struct error *err)
{
    return error_prefix(err, "[%u]%s", index, separator);
}

/* ---- the first look -------------------------------------------------------------------------- */

static enum status read_text(struct reader *r, struct json *in, struct span *out)
{
    struct json_string string;
    TRY(json_read_string(in, &string, r->err));
    if (string.bytes > codec_oip_limits(r->infer).name_bytes_max) {
        return json_fail(in, r->err, ST_TOO_LARGE, "string of %zu bytes, at most %zu are taken",
                         string.bytes, codec_oip_limits(r->infer).name_bytes_max);
    }
    return json_string_copy(&string, r->arena, "the request", out, r->err);
}

/* Skips tensors by their brackets; the second pass checks them. */
static enum status pass(struct reader *r, struct json *in)
{
    struct span text;
    return json_peek(in) == JSON_ARRAY ? json_array_text(in, &text, r->err) : json_skip(in, r->err);
}

static enum status read_member(struct reader *r, struct json *in, const struct json_string *key,
                               struct bundle_call *call)
{
    if (json_string_is(key, "id")) {
        call->has_id = json_peek(in) != JSON_NULL;
        return call->has_id ? read_text(r, in, &call->id) : json_read_null(in, r->err);
    }
    if (json_string_is(key, "model_name")) {
        call->has_model = true;
        return read_text(r, in, &call->model_name);
    }
    if (json_string_is(key, "model_version")) {
        call->has_version = true;
        return read_text(r, in, &call->model_version);
    }
    if (json_string_is(key, "answer")) {
        bool is_answered;
        TRY(json_read_bool(in, &is_answered, r->err));
        call->is_silent = !is_answered;
        return ST_OK;
    }
    call->has_inputs |= json_string_is(key, "inputs");
    call->has_arguments |= json_string_is(key, "args") || json_string_is(key, "kwargs");
    return pass(r, in);
}

static enum status read_call(struct reader *r, struct json *in, struct bundle_call *call)
{
    struct json_string key;
    json_peek(in);
    const uint8_t *begin = in->at;
    TRY(json_object(in, r->err));
    while (true) {
        TRY(json_member(in, &key, r->err));
        if (in->is_closed) {
            break;
        }
        TRY(read_member(r, in, &key, call));
    }
    call->text = span_of(begin, (size_t)(in->at - begin));
    if (!call->has_model) {
        return json_fail(in, r->err, ST_INVALID, "member \"model_name\" is missing");
    }
    return call->has_inputs && call->has_arguments
               ? json_fail(in, r->err, ST_INVALID, "has both inputs and arguments, expected one")
               : ST_OK;
}

static enum status read_list(struct reader *r)
{
    struct bundle *bundle = r->bundle;
    struct json in;
    json_init(&in, r->parts->json);
    in.depth_max = (uint16_t)codec_oip_limits(r->infer).json_depth_max;
    TRY(json_array(&in, r->err));
    while (true) {
        TRY(json_element(&in, r->err));
        if (in.is_closed) {
            break;
        }
        if (bundle->count == BUNDLE_CALLS_MAX) {
            return json_fail(&in, r->err, ST_TOO_LARGE, "expected at most %d requests",
                             BUNDLE_CALLS_MAX);
        }
        if (!ARENA_ROOM(r->arena, bundle->calls, bundle->capacity, bundle->count + 1)) {
            return no_memory(r);
        }
        TRY(read_call(r, &in, &bundle->calls[bundle->count]));
        bundle->count++;
    }
    TRY(json_end(&in, r->err));
    return bundle->count > 0 ? ST_OK
                             : error_set(r->err, ST_INVALID, "expected 1 to %d requests, got 0",
                                         BUNDLE_CALLS_MAX);
}

/* Returns |index| if there is none. */
static uint32_t find_call(const struct bundle *bundle, uint32_t count, struct span id,
                          uint32_t none)
{
    must(count <= bundle->count);
    for (uint32_t i = 0; i < count; i++) {
        if (bundle->calls[i].has_id && span_equal(bundle->calls[i].id, id)) {
            return i;
        }
    }
    return none;
}

static enum status check_ids(const struct reader *r)
{
    const struct bundle *bundle = r->bundle;
    for (uint32_t i = 0; i < bundle->count; i++) {
        const struct bundle_call *call = &bundle->calls[i];
        uint32_t other = call->has_id ? find_call(bundle, i, call->id, i) : i;
        if (other != i) {
            return error_set(r->err, ST_INVALID, "[%u].id: repeats the id of [%u], '%.*s'", i,
                             other, SPAN_SHORT(call->id));
        }
    }
    return ST_OK;
}

/* ---- the second look ------------------------------------------------------------------------- */

static enum status find_model(const struct reader *r, struct bundle_call *call)
{
    const char *name = (const char *)call->model_name.ptr;
    uint32_t version = 0;
    if (strlen(name) != call->model_name.len) {
        return error_set(&call->err, ST_INVALID, "model_name: expected text without NUL");
    }
    if (call->has_version && !model_name_parse_version(call->model_version, &version)) {
        return error_set(&call->err, ST_INVALID, "model_version: expected a version, got '%.*s'",
                         SPAN_SHORT(call->model_version));
    }
    return infer_find_model(r->infer, &call->call, name, version, &call->err);
}

static enum status parse_call(struct reader *r, struct bundle_call *call)
{
    const struct oip_body parts = {
        .json = call->text,
        .binary = r->binary,
        .json_offset = (size_t)(call->text.ptr - r->parts->json.ptr),
    };
    TRY(find_model(r, call));
    call->call.codec = call->has_inputs ? &codec_oip : &codec_call;
    struct span binary = r->binary;
    TRY(call->call.codec->parse(r->infer, &call->call, &parts, &r->binary, &call->err));
    struct model *newest;
    if (infer_sequence_find_generation(r->infer, &call->call, &newest)) {
        model_unref(newest); /* lists have a pool of their own */
        r->binary = binary;
        TRY(call->call.codec->parse(r->infer, &call->call, &parts, &r->binary, &call->err));
    }
    infer_take_parameters(r->infer, call->call.parameters);
    return ST_OK;
}

/* A call of a pipeline counts once for each of its steps, too. */
static enum status count_calls(struct reader *r, const struct bundle_call *call, uint32_t index)
{
    must(index < r->bundle->count);
    struct infer *infer = r->infer;
    if (call->call.model) {
        infer->call_count += rt_method_call_count(call->call.model->method);
        infer->steps_bytes += rt_method_steps_bytes(call->call.model->method);
    }
    if (infer->call_count > INFER_CALLS_MAX) {
        error_set(r->err, ST_TOO_LARGE,
                  "a list may have %d calls, steps of pipelines included; got %u", INFER_CALLS_MAX,
                  infer->call_count);
        return bundle_prefix(index, ": ", r->err);
    }
    return ST_OK;
}

/* Binary data can only be assigned to calls while all calls can be read. */
static enum status parse_calls(struct reader *r)
{
    for (uint32_t i = 0; i < r->bundle->count; i++) {
        struct bundle_call *call = &r->bundle->calls[i];
        enum status status = parse_call(r, call);
        if (status == ST_WOULD_LOAD) {
            *r->err = call->err;
            return status;
        }
        if (status != ST_OK && r->parts->binary.len > 0) {
            *r->err = call->err;
            return bundle_prefix(i, ": ", r->err);
        }
        TRY(count_calls(r, call, i));
    }
    return r->binary.len == 0
               ? ST_OK
               : error_set(r->err, ST_INVALID, "%zu bytes behind the last tensor's binary data",
                           r->binary.len);
}

/* ---- promises -------------------------------------------------------------------------------- */

static const char *keep_place(struct reader *r, const struct error *place)
{
    return arena_strdup(r->arena, place->text, strlen(place->text));
}

static enum status add_promise(struct reader *r, uint32_t index, struct bundle_promise promise)
{
    must(index < r->bundle->count && promise.said != NULL);
    struct bundle *bundle = r->bundle;
    struct bundle_call *call = &bundle->calls[index];
    struct span id = promise.said->id;
    if (!promise.place) {
        return no_memory(r);
    }
    if (bundle->promise_count == RT_CASCADE_EDGES_MAX) {
        error_set(r->err, ST_TOO_LARGE, "%s: expected at most %d results that others take",
                  promise.place, RT_CASCADE_EDGES_MAX);
        return bundle_prefix(index, ".", r->err);
    }
    promise.from = find_call(bundle, bundle->count, id, bundle->count);
    if (promise.from == bundle->count) {
        error_set(r->err, ST_INVALID, "%s.id: no request has the id '%.*s'", promise.place,
                  SPAN_SHORT(id));
        return bundle_prefix(index, ".", r->err);
    }
    bundle->promise_count++;
    call->promises[call->promise_count++] = promise;
    return ST_OK;
}

/* Room for the promises of call |index|. */
static enum status make_promises(struct reader *r, uint32_t index, size_t count)
{
    struct bundle_call *call = &r->bundle->calls[index];
    call->promises = arena_array(r->arena, count, sizeof(*call->promises));
    return call->promises ? ST_OK : no_memory(r);
}

static enum status list_oip(struct reader *r, uint32_t index, const struct oip_request *oip)
{
    must(index < r->bundle->count);
    size_t count = 0;
    for (size_t i = 0; i < oip->input_count; i++) {
        count += oip->inputs[i].is_promise;
    }
    TRY(make_promises(r, index, count));
    for (size_t i = 0; i < oip->input_count; i++) {
        const struct oip_request_input *input = &oip->inputs[i];
        const struct oip_promise *said = &input->promise;
        struct error place;
        if (!input->is_promise) {
            continue;
        }
        error_set(&place, ST_INVALID, "inputs[%zu].$from", i);
        TRY(add_promise(r, index,
                        (struct bundle_promise){.said = said,
                                                .place = keep_place(r, &place),
                                                .name = input->name,
                                                .type = said->has_type ? &input->type : NULL,
                                                .shape = said->has_shape ? &input->shape : NULL}));
    }
    return ST_OK;
}

/* The place of a promised structure. */
static const char *structure_place(struct reader *r, const struct call_method *method,
                                   uint32_t node)
{
    struct buf path;
    struct error place;
    buf_init(&path, ERROR_TEXT_MAX);
    sip_print_argument(method->structure, node, &path);
    error_set(&place, ST_INVALID, "%.*s.$from", SPAN_FMT(buf_span(&path)));
    buf_fini(&path);
    return keep_place(r, &place);
}

static enum status add_leaf(struct reader *r, uint32_t index, const struct call_method *method,
                            const struct call_leaf *leaf, uint32_t input)
{
    struct error place;
    struct bundle_promise promise = {
        .said = &leaf->promise,
        .input = input,
        .shape = leaf->promise.has_shape ? &leaf->shape : NULL,
        .node = leaf->structure,
    };
    error_set(&place, ST_INVALID, ".$from");
    call_prefix(method, leaf, input, "", &place);
    promise.place = keep_place(r, &place);
    if (leaf->begins_structure) {
        promise.whole = structure_place(r, method, leaf->structure);
        if (!promise.whole) {
            return no_memory(r);
        }
    }
    return add_promise(r, index, promise);
}

/* Compares the leaf's declaration of the result with the method, sizes excepted. */
static enum status list_tree(struct reader *r, uint32_t index, const struct call_request *tree)
{
    must(index < r->bundle->count);
    const struct call_method *method = &r->bundle->calls[index].call.model->call;
    size_t count = 0;
    for (uint32_t i = 0; i < method->input_count; i++) {
        count += tree->leaves[i].encoding == CALL_PROMISE;
    }
    TRY(make_promises(r, index, count));
    for (uint32_t i = 0; i < method->input_count; i++) {
        if (tree->leaves[i].encoding == CALL_PROMISE) {
            TRY(add_leaf(r, index, method, &tree->leaves[i], i));
        }
    }
    return ST_OK;
}

static enum status list_promises(struct reader *r)
{
    for (uint32_t i = 0; i < r->bundle->count; i++) {
        const struct infer_call *call = &r->bundle->calls[i].call;
        if (r->bundle->calls[i].err.code != ST_OK) {
            continue;
        }
        TRY(call->codec == &codec_oip ? list_oip(r, i, &call->oip) : list_tree(r, i, &call->tree));
    }
    return ST_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool is_ready(const struct bundle_call *call, const bool *is_placed)
{
    for (uint32_t i = 0; i < call->promise_count; i++) {
        if (!is_placed[call->promises[i].from]) {
            return false;
        }
    }
    return true;
}

/*
 * Finds a call that is part of the circle, by going back among the calls that wait for each other.
 */
static enum status refuse_circle(const struct reader *r, const bool *is_placed)
{
    const struct bundle *bundle = r->bundle;
    uint32_t at = 0;
    const struct bundle_promise *back = NULL;
    while (is_placed[at]) {
        at++;
    }
    for (uint32_t steps = 0; steps <= bundle->count; steps++) {
        const struct bundle_call *call = &bundle->calls[at];
        uint32_t i = 0;
        while (is_placed[call->promises[i].from]) {
            i++;
        }
        back = &call->promises[i];
        at = steps < bundle->count ? back->from : at;
    }
    error_set(r->err, ST_INVALID, "%s: '%.*s' takes a result that depends on its own: a circle",
              back->place, SPAN_SHORT(bundle->calls[at].id));
    return bundle_prefix(at, ".", r->err);
}

/* Orders each call behind those whose results it takes; otherwise the list's order stays. */
static enum status put_in_order(struct reader *r)
{
    struct bundle *bundle = r->bundle;
    bool is_placed[BUNDLE_CALLS_MAX] = {false};
    uint32_t placed = 0, i = 0;
    bundle->order = arena_array(r->arena, bundle->count, sizeof(*bundle->order));
    if (!bundle->order) {
        return no_memory(r);
    }
    while (i < bundle->count) {
        struct bundle_call *call = &bundle->calls[i];
        if (is_placed[i] || !is_ready(call, is_placed)) {
            i++;
            continue;
        }
        is_placed[i] = true;
        call->step = placed;
        bundle->order[placed++] = i;
        i = 0;
    }
    return placed == bundle->count ? ST_OK : refuse_circle(r, is_placed);
}

enum status bundle_read(struct infer *infer, const struct oip_body *parts, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct arena *arena = &infer->arena;
    if (parts->is_raw) {
        return error_set(err, ST_INVALID, "a list of requests needs JSON");
    }
    struct bundle *bundle = arena_alloc(arena, sizeof(*bundle));
    struct reader r = {infer, arena, bundle, parts, parts->binary, err};
    if (!bundle) {
        return no_memory(&r);
    }
    bundle->magic = BUNDLE_MAGIC;
    infer->own = bundle;
    TRY(read_list(&r));
    TRY(check_ids(&r));
    TRY(parse_calls(&r));
    TRY(list_promises(&r));
    return put_in_order(&r);
}
