/* SPDX-License-Identifier: MIT */
/*
 * The compact encoding of structures, in older files:
 *
 *     node   = "$" | kind count {"#" leaves} "(" [member {"," member}] ")"
 *     kind   = "T" | "L" | "N" | "D" | "C(" type ")"
 *     member = node, in a D with its key before: ("'" name "'" | integer) ":" node
 *
 * The head of a node gives the number of its members and the number of leaves of each. Names have
 * no escapes. No function recurses; errors name the byte.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/pytree_priv.h"

struct frame {
    struct sip_value *value;
    uint32_t left;                       /* members that are still to come */
    const uint8_t *leaves_at;            /* the "#leaves" of the next member, in the head */
    uint64_t leaf_start, leaf_count_due; /* before this node, and inside it */
};

struct compact {
    const uint8_t *start, *at, *end;
    struct sip_builder *builder; /* borrowed */
    uint32_t leaf_count;
    uint32_t depth;
    struct frame frames[PYTREE_DEPTH_MAX];
};

#define LEAVES_ANY UINT64_MAX

__attribute__((format(printf, 3, 4))) static enum status
fail_here(const struct compact *in, struct error *err, const char *fmt, ...)
{
    char what[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return error_set(err, ST_INVALID, "byte %zu: %s", (size_t)(in->at - in->start), what);
}

static bool is_next(const struct compact *in, char c)
{
    return in->at < in->end && *in->at == (uint8_t)c;
}

static enum status expect(struct compact *in, char c, struct error *err)
{
    if (!is_next(in, c)) {
        return fail_here(in, err, "expected '%c'", c);
    }
    in->at++;
    return ST_OK;
}

static bool is_digit(const struct compact *in)
{
    return in->at < in->end && *in->at >= '0' && *in->at <= '9';
}

static enum status read_count(struct compact *in, uint32_t *out, struct error *err)
{
    uint64_t value = 0;
    if (!is_digit(in)) {
        return fail_here(in, err, "expected a number");
    }
    for (; is_digit(in); in->at++) {
        value = value * 10 + (uint64_t)(*in->at - '0');
        if (value > UINT32_MAX) {
            return fail_here(in, err, "the number does not fit 32 bits");
        }
    }
    *out = (uint32_t)value;
    return ST_OK;
}

/* Moves behind the next |c|. */
static enum status read_until(struct compact *in, char c, struct span *out, struct error *err)
{
    const uint8_t *end = memchr(in->at, c, (size_t)(in->end - in->at));
    if (!end) {
        return fail_here(in, err, "expected '%c' before the end", c);
    }
    *out = span_of(in->at, (size_t)(end - in->at));
    in->at = end + 1;
    return ST_OK;
}

static enum status read_key(struct compact *in, struct span *out, struct error *err)
{
    if (is_next(in, '\'')) {
        in->at++;
        TRY(read_until(in, '\'', out, err));
        return expect(in, ':', err);
    }
    const uint8_t *start = in->at;
    in->at += is_next(in, '-');
    if (!is_digit(in)) {
        return fail_here(in, err, "expected a key, an integer or text in quotes");
    }
    while (is_digit(in)) {
        in->at++;
    }
    *out = span_of(start, (size_t)(in->at - start));
    return expect(in, ':', err);
}

/* Reads the number of members and skips "#leaves" of each; members are compared with these later.
 */
static enum status read_layout(struct compact *in, struct frame *frame, struct error *err)
{
    uint32_t unused;
    TRY(read_count(in, &frame->left, err));
    frame->leaves_at = in->at;
    for (uint32_t i = 0; i < frame->left; i++) {
        TRY(expect(in, '#', err));
        TRY(read_count(in, &unused, err));
    }
    return expect(in, '(', err);
}

static enum status read_kind(struct compact *in, enum sip_kind *out, struct error *err)
{
    struct span type;
    char c = in->at < in->end ? (char)*in->at : '\0';
    switch (c) {
    case '$':
        *out = SIP_LEAF;
        break;
    case 'T':
    case 'L':
    case 'N':
        *out = SIP_SEQUENCE;
        break;
    case 'D':
        *out = SIP_DICT;
        break;
    case 'C':
        in->at++;
        TRY(expect(in, '(', err));
        *out = SIP_SEQUENCE;
        return read_until(in, ')', &type, err);
    default:
        return fail_here(in, err, "expected a node ($, T, L, N, D, C)");
    }
    in->at++;
    return ST_OK;
}

/* Reads a leaf, or the head of a node, which becomes the innermost open node. */
static enum status read_node(struct compact *in, struct sip_value *parent, uint64_t leaf_count_due,
                             struct sip_value **out, struct error *err)
{
    enum sip_kind kind;
    TRY(read_kind(in, &kind, err));
    *out = sip_builder_add(in->builder, parent, kind);
    if (!*out) {
        return arena_fail(in->builder->arena, "the structure", err);
    }
    if (kind == SIP_LEAF) {
        (*out)->raw_index = in->leaf_count++;
        return leaf_count_due == 1 || leaf_count_due == LEAVES_ANY
                   ? ST_OK
                   : fail_here(in, err, "got a leaf, expected %" PRIu64 " of them", leaf_count_due);
    }
    if (in->depth == PYTREE_DEPTH_MAX) {
        return fail_here(in, err, "nested deeper than %d", SIP_DEPTH_MAX);
    }
    struct frame *frame = &in->frames[in->depth++];
    *frame = (struct frame){
        .value = *out, .leaf_start = in->leaf_count, .leaf_count_due = leaf_count_due};
    return read_layout(in, frame, err);
}

static enum status close_node(struct compact *in, struct frame *frame, struct error *err)
{
    uint64_t leaf_count = in->leaf_count - frame->leaf_start;
    TRY(expect(in, ')', err));
    if (frame->leaf_count_due != LEAVES_ANY && frame->leaf_count_due != leaf_count) {
        return fail_here(in, err, "got a node of %" PRIu64 " leaves, expected %" PRIu64, leaf_count,
                         frame->leaf_count_due);
    }
    if (frame->value->kind == SIP_SEQUENCE) {
        pytree_number_members(frame->value);
    }
    in->depth--;
    return ST_OK;
}

static enum status read_member(struct compact *in, struct frame *frame, struct error *err)
{
    struct compact layout = {.start = in->start, .at = frame->leaves_at + 1, .end = in->end};
    struct sip_value *member;
    struct sip_key key = {0};
    uint32_t leaf_count;
    if (frame->value->first) {
        TRY(expect(in, ',', err));
    }
    size_t offset = (size_t)(in->at - in->start);
    if (frame->value->kind == SIP_DICT) {
        TRY(read_key(in, &key.name, err));
    }
    TRY(read_count(&layout, &leaf_count, err));
    frame->leaves_at = layout.at;
    frame->left--;
    TRY(read_node(in, frame->value, leaf_count, &member, err));
    member->key = key;
    member->offset = offset;
    return ST_OK;
}

enum status pytree_read_compact(struct span text, struct sip_builder *builder,
                                struct sip_value **out_root, struct error *err)
{
    struct compact in = {
        .start = text.ptr, .at = text.ptr, .end = text.ptr + text.len, .builder = builder};
    TRY(read_node(&in, NULL, LEAVES_ANY, out_root, err));
    while (in.depth > 0) {
        struct frame *frame = &in.frames[in.depth - 1];
        if (frame->left > 0) {
            TRY(read_member(&in, frame, err));
        } else {
            TRY(close_node(&in, frame, err));
        }
    }
    return in.at == in.end ? ST_OK : fail_here(&in, err, "expected the end");
}
