/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/oip_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json_priv.h"

/* The most memory of a pattern, and the most gaps: a request with more is long to read in any way.
 */
#define BYTES_MAX 8192
#define GAPS_MAX 17

/* Behind |at| bytes of the pattern's text (of the body, until that is made): the elements of an
 * input, or the id. */
struct gap {
    size_t at, bytes;                /* |bytes|: in the body that the pattern was made of */
    struct oip_request_input *input; /* NULL: the id */
};

struct oip_pattern {
    struct oip_request request; /* its spans lie in |text|, or are set by each match */
    size_t size;                /* of all: items and text stand behind the struct */
    size_t binary_bytes, text_bytes;
    uint8_t *text;
    unsigned gap_count;
    struct gap gaps[GAPS_MAX];
};

void oip_pattern_free(struct oip_pattern *pattern)
{
    free(pattern);
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool is_plain_input(const struct oip_request_input *input)
{
    return !input->is_promise && !input->shared.is_given && !input->layout.is_given;
}

static bool is_plain(const struct oip_request *request)
{
    const struct oip_parameters *parameters = &request->parameters;
    bool is_plain = parameters->other_count == 0 && parameters->sequence_name.len == 0;
    for (size_t i = 0; is_plain && i < request->input_count; i++) {
        is_plain = is_plain_input(&request->inputs[i]);
    }
    for (size_t i = 0; is_plain && i < request->outputs.count; i++) {
        is_plain = !request->outputs.items[i].shared.is_given;
    }
    return is_plain && request->input_count < GAPS_MAX;
}

/* A block for |size| bytes, the old one if it has them; else that is freed. */
static struct oip_pattern *take_block(struct oip_pattern *old, size_t size)
{
    if (old && old->size >= size && size <= BYTES_MAX) {
        return old;
    }
    free(old);
    struct oip_pattern *pattern = size <= BYTES_MAX ? malloc(size) : NULL;
    if (pattern) {
        pattern->size = size;
    }
    return pattern;
}

/* Lays the items and the text out behind the struct. */
static struct oip_pattern *allocate(struct oip_pattern *old, const struct oip_body *body,
                                    const struct oip_request *request)
{
    size_t inputs = request->input_count * sizeof(*request->inputs);
    size_t outputs = request->outputs.count * sizeof(*request->outputs.items);
    size_t text_at = sizeof(struct oip_pattern) + inputs + outputs;
    size_t size;
    if (!add_size(text_at, body->json.len, &size)) {
        size = SIZE_MAX;
    }
    struct oip_pattern *pattern = take_block(old, size);
    if (!pattern) {
        return NULL;
    }
    pattern->request = *request;
    pattern->binary_bytes = body->binary.len;
    pattern->text_bytes = pattern->gap_count = 0;
    pattern->request.inputs = (struct oip_request_input *)(pattern + 1);
    pattern->request.outputs.items = (void *)((uint8_t *)(pattern + 1) + inputs);
    pattern->text = (uint8_t *)pattern + text_at;
    if (inputs) {
        memcpy(pattern->request.inputs, request->inputs, inputs);
    }
    if (outputs) {
        memcpy(pattern->request.outputs.items, request->outputs.items, outputs);
    }
    return pattern;
}

/* Where |part| begins in |json|; false: it does not lie there, because it had escapes. */
static bool find_offset(struct span json, struct span part, size_t *out_offset)
{
    uintptr_t offset = (uintptr_t)part.ptr - (uintptr_t)json.ptr;
    *out_offset = offset;
    return in_range(offset, part.len, json.len);
}

/* Gaps are in the order of the text. */
static bool add_gap(struct oip_pattern *pattern, struct span json, struct span part,
                    struct oip_request_input *input)
{
    struct gap gap = {.bytes = part.len, .input = input};
    if (!find_offset(json, part, &gap.at)) {
        return false;
    }
    unsigned i = pattern->gap_count++;
    for (; i > 0 && pattern->gaps[i - 1].at > gap.at; i--) {
        pattern->gaps[i] = pattern->gaps[i - 1];
    }
    pattern->gaps[i] = gap;
    return true;
}

static bool add_gaps(struct oip_pattern *pattern, struct span json)
{
    struct oip_request *request = &pattern->request;
    bool is_ok = !request->has_id || add_gap(pattern, json, request->id, NULL);
    for (size_t i = 0; is_ok && i < request->input_count; i++) {
        struct oip_request_input *input = &request->inputs[i];
        is_ok = input->is_binary || add_gap(pattern, json, input->data, input);
    }
    return is_ok;
}

/* Moves |part| from |json| to the text that cut_text() makes of it. */
static bool move_part(const struct oip_pattern *pattern, struct span json, struct span *part)
{
    size_t offset, moved;
    if (!find_offset(json, *part, &offset)) {
        return false;
    }
    moved = offset;
    for (unsigned i = 0; i < pattern->gap_count && pattern->gaps[i].at < offset; i++) {
        moved -= pattern->gaps[i].bytes;
    }
    part->ptr = pattern->text + moved;
    return true;
}

static bool move_names(struct oip_pattern *pattern, struct span json)
{
    struct oip_request *request = &pattern->request;
    bool is_ok = true;
    for (size_t i = 0; is_ok && i < request->input_count; i++) {
        is_ok = move_part(pattern, json, &request->inputs[i].name);
    }
    for (size_t i = 0; is_ok && i < request->outputs.count; i++) {
        is_ok = move_part(pattern, json, &request->outputs.items[i].name);
    }
    return is_ok;
}

static void add_text(struct oip_pattern *pattern, struct span text)
{
    memcpy(pattern->text + pattern->text_bytes, text.ptr, text.len);
    pattern->text_bytes += text.len;
}

/* The text is the body without what stood in the gaps. */
static void cut_text(struct oip_pattern *pattern, struct span json)
{
    size_t from = 0;
    for (unsigned i = 0; i < pattern->gap_count; i++) {
        struct gap *gap = &pattern->gaps[i];
        add_text(pattern, span_of(json.ptr + from, gap->at - from));
        from = gap->at + gap->bytes;
        gap->at = pattern->text_bytes;
    }
    add_text(pattern, span_of(json.ptr + from, json.len - from));
}

struct oip_pattern *oip_pattern_new(struct oip_pattern *old, const struct oip_body *body,
                                    const struct oip_request *request)
{
    must(!body->is_raw && body->json_offset == 0);
    struct oip_pattern *pattern = NULL;
    if (is_plain(request)) {
        pattern = allocate(old, body, request);
    } else {
        free(old);
    }
    if (pattern && !(add_gaps(pattern, body->json) && move_names(pattern, body->json))) {
        free(pattern);
        return NULL;
    }
    if (pattern) {
        cut_text(pattern, body->json);
    }
    return pattern;
}

/* ---- matching -------------------------------------------------------------------------------- */

/* Passes the pattern's text up to |to|. */
static bool pass_text(const struct oip_pattern *pattern, size_t *done, size_t to, struct json *in)
{
    size_t bytes = to - *done;
    const uint8_t *text = pattern->text + *done;
    if ((size_t)(in->end - in->at) < bytes || memcmp(in->at, text, bytes) != 0) {
        return false;
    }
    in->at += bytes;
    *done = to;
    return true;
}

/* An id without escapes. */
static bool fill_id(struct json *in, const struct oip_limits *limits, struct oip_request *request)
{
    struct json_string id;
    const uint8_t *at = in->at - 1; /* its quote is text of the pattern */
    if (json_string_scan(&at, in->end, &id) || id.raw.len != id.bytes ||
        id.bytes > limits->name_bytes_max) {
        return false;
    }
    request->id = id.raw;
    in->at += id.raw.len;
    return true;
}

static bool fill_input(struct json *in, struct oip_request_input *input)
{
    struct error ignored;
    return in->at < in->end && *in->at == '[' &&
           json_array_text(in, &input->data, &ignored) == ST_OK &&
           input->data.len >= tensor_text_bytes_min(shape_numel(&input->shape));
}

static void fill_binary(struct oip_request *request, struct span binary)
{
    for (size_t i = 0; i < request->input_count; i++) {
        struct oip_request_input *input = &request->inputs[i];
        if (input->is_binary) {
            input->data.ptr = binary.ptr;
            binary = span_of(binary.ptr + input->data.len, binary.len - input->data.len);
        }
    }
}

bool oip_pattern_match(struct oip_pattern *pattern, const struct oip_body *body,
                       const struct oip_limits *limits, struct oip_request *out)
{
    struct oip_request *request = &pattern->request;
    struct json in; /* no initialiser: it would clear the reader's tables too */
    size_t done = 0;
    if (body->is_raw || body->json_offset || limits->is_listed ||
        body->binary.len != pattern->binary_bytes) {
        return false;
    }
    json_init(&in, body->json);
    for (unsigned i = 0; i < pattern->gap_count; i++) {
        const struct gap *gap = &pattern->gaps[i];
        if (!pass_text(pattern, &done, gap->at, &in) ||
            !(gap->input ? fill_input(&in, gap->input) : fill_id(&in, limits, request))) {
            return false;
        }
    }
    if (!pass_text(pattern, &done, pattern->text_bytes, &in) || in.at != in.end) {
        return false;
    }
    fill_binary(request, body->binary);
    *out = *request;
    return true;
}
