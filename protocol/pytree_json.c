/* SPDX-License-Identifier: MIT */
/*
 * The JSON encoding of structures: [1, SPEC], where
 *
 *     SPEC = {"type": TYPE, "context": CONTEXT, "children_spec": [SPEC...]}
 *
 * with its members in any order. TYPE is null for a leaf. CONTEXT is a string that contains JSON:
 * for a dict the list of its keys; for a registered type often [[field...], [field...]], the fields
 * that are children and the fields that are not. The meaning of a type is known only at the end of
 * its object, so each value is a sequence until then. No function recurses.
 */
#include "config.h"

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/pytree_priv.h"

#define PROTOCOL_VERSION 1

struct frame {
    struct sip_value *value;
    struct json_string type;
    struct span context;
    bool has_type, is_leaf, has_context, has_children, is_in_children;
};

struct reader {
    struct json in;
    struct sip_builder *builder; /* borrowed */
    uint32_t leaf_count;
    uint32_t depth;
    struct frame frames[PYTREE_DEPTH_MAX + 1]; /* and a leaf */
};

_Static_assert(2 * (PYTREE_DEPTH_MAX + 1) + 2 <= JSON_LEVELS_MAX, "a level of JSON is missing");

/* A key as a name: text, or the digits of an integer. */
static enum status read_key(struct json *in, struct arena *arena, struct span *out,
                            struct error *err)
{
    struct json_string text;
    int64_t number;
    if (json_peek(in) == JSON_NUMBER) {
        TRY(json_read_i64(in, &number, err));
        uint8_t *digits = arena_alloc(arena, NUMBER_TEXT_MAX);
        if (!digits) {
            return arena_fail(arena, "the structure", err);
        }
        *out = span_of(digits, number_print_i64(digits, number));
        return ST_OK;
    }
    TRY(json_read_string(in, &text, err));
    return json_string_take(&text, arena, "the structure", out, err);
}

/* Goes to an element that must be there. */
static enum status expect_element(struct json *in, struct error *err)
{
    TRY(json_element(in, err));
    return in->is_closed ? json_fail(in, err, ST_INVALID, "expected another element") : ST_OK;
}

/* Checks that the array ends here, and leaves it. */
static enum status expect_end(struct json *in, struct error *err)
{
    TRY(json_element(in, err));
    return in->is_closed ? json_end(in, err)
                         : json_fail(in, err, ST_INVALID, "expected the end of the array");
}

/* A list of keys, one for each member of |value|. */
static enum status read_keys(struct json *in, struct arena *arena, struct sip_value *value,
                             struct error *err)
{
    struct sip_value *member = value->first;
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            break;
        }
        if (!member) {
            return json_fail(in, err, ST_INVALID, "more keys than the %u children",
                             value->member_count);
        }
        TRY(read_key(in, arena, &member->key.name, err));
        member = member->next;
    }
    return member ? json_fail(in, err, ST_INVALID, "fewer keys than the %u children",
                              value->member_count)
                  : ST_OK;
}

/* The context of a dict. */
static enum status read_dict(struct span context, struct arena *arena, struct sip_value *value,
                             struct error *err)
{
    struct json in;
    json_init(&in, context);
    TRY(read_keys(&in, arena, value, err));
    return json_end(&in, err);
}

/* Reads the context of a defaultdict: an object with the keys and the default factory. */
static enum status read_default_dict(struct span context, struct arena *arena,
                                     struct sip_value *value, struct error *err)
{
    struct json in;
    struct json_string name;
    bool has_keys = false;
    json_init(&in, context);
    TRY(json_object(&in, err));
    while (true) {
        TRY(json_member(&in, &name, err));
        if (in.is_closed) {
            break;
        }
        if (json_string_is(&name, "dict_context")) {
            TRY(read_keys(&in, arena, value, err));
            has_keys = true;
        } else {
            TRY(json_skip(&in, err));
        }
    }
    TRY(json_end(&in, err));
    return has_keys ? ST_OK : json_fail(&in, err, ST_INVALID, "expected a member dict_context");
}

/* Reads the context of a registered type, if it names the fields of its children. */
static enum status read_fields(struct span context, struct arena *arena, struct sip_value *value,
                               struct error *err)
{
    struct json in;
    json_init(&in, context);
    TRY(json_array(&in, err));
    TRY(expect_element(&in, err));
    TRY(read_keys(&in, arena, value, err));
    TRY(expect_element(&in, err));
    TRY(json_skip(&in, err));
    return expect_end(&in, err);
}

static bool is_sequence(const struct json_string *type)
{
    static const char *const names[] = {
        "builtins.tuple",    "builtins.list", "collections.namedtuple",
        "collections.deque", "torch.Size",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (json_string_is(type, names[i])) {
            return true;
        }
    }
    return false;
}

/* Decides the kind of |frame|'s value and names its members. */
static enum status name_members(struct reader *reader, struct frame *frame, struct error *err)
{
    struct arena *arena = reader->builder->arena;
    struct sip_value *value = frame->value;
    struct error reason;
    enum status status = ST_OK;
    pytree_number_members(value);
    if (is_sequence(&frame->type)) {
        return ST_OK;
    }
    if (json_string_is(&frame->type, "builtins.dict") ||
        json_string_is(&frame->type, "collections.OrderedDict")) {
        value->kind = SIP_DICT;
        status = read_dict(frame->context, arena, value, &reason);
    } else if (json_string_is(&frame->type, "collections.defaultdict")) {
        value->kind = SIP_DICT;
        status = read_default_dict(frame->context, arena, value, &reason);
    } else if (read_fields(frame->context, arena, value, NULL) == ST_OK) {
        value->kind = SIP_DICT;
    }
    return status == ST_OK ? ST_OK
                           : json_fail(&reader->in, err, status, "the context: %s", reason.text);
}

static enum status close_spec(struct reader *reader, struct error *err)
{
    struct frame *frame = &reader->frames[--reader->depth];
    struct sip_value *value = frame->value;
    if (!frame->has_type || !frame->has_context || !frame->has_children) {
        return json_fail(&reader->in, err, ST_INVALID,
                         "expected the members type, context and children_spec");
    }
    if (!frame->is_leaf) {
        return name_members(reader, frame, err);
    }
    if (value->member_count > 0) {
        return json_fail(&reader->in, err, ST_INVALID, "a leaf has no children, got %u",
                         value->member_count);
    }
    value->kind = SIP_LEAF;
    value->raw_index = reader->leaf_count++;
    return ST_OK;
}

static enum status open_spec(struct reader *reader, struct sip_value *parent, struct error *err)
{
    if (reader->depth == PYTREE_DEPTH_MAX + 1) {
        return json_fail(&reader->in, err, ST_INVALID, "nested deeper than %d", SIP_DEPTH_MAX);
    }
    struct frame *frame = &reader->frames[reader->depth];
    *frame = (struct frame){.value = sip_builder_add(reader->builder, parent, SIP_SEQUENCE)};
    if (!frame->value) {
        return arena_fail(reader->builder->arena, "the structure", err);
    }
    reader->depth++;
    TRY(json_object(&reader->in, err));
    frame->value->offset = (size_t)(reader->in.value - reader->in.start);
    return ST_OK;
}

static enum status read_type(struct json *in, struct frame *frame, struct error *err)
{
    frame->has_type = true;
    frame->is_leaf = json_peek(in) == JSON_NULL;
    return frame->is_leaf ? json_read_null(in, err) : json_read_string(in, &frame->type, err);
}

/* The JSON inside a string; or the value itself, as defaultdict stores it. */
static enum status read_context(struct reader *reader, struct frame *frame, struct error *err)
{
    struct json *in = &reader->in;
    struct json_string text;
    frame->has_context = true;
    if (json_peek(in) == JSON_STRING) {
        TRY(json_read_string(in, &text, err));
        return json_string_take(&text, reader->builder->arena, "the structure", &frame->context,
                                err);
    }
    const uint8_t *start = in->at;
    TRY(json_skip(in, err));
    frame->context = span_of(start, (size_t)(in->at - start));
    return ST_OK;
}

static enum status read_member(struct reader *reader, struct frame *frame, struct error *err)
{
    struct json_string name;
    TRY(json_member(&reader->in, &name, err));
    if (reader->in.is_closed) {
        return close_spec(reader, err);
    }
    if (json_string_is(&name, "type")) {
        return read_type(&reader->in, frame, err);
    }
    if (json_string_is(&name, "context")) {
        return read_context(reader, frame, err);
    }
    if (json_string_is(&name, "children_spec")) {
        frame->has_children = frame->is_in_children = true;
        return json_array(&reader->in, err);
    }
    return json_skip(&reader->in, err);
}

static enum status read_child(struct reader *reader, struct frame *frame, struct error *err)
{
    TRY(json_element(&reader->in, err));
    if (reader->in.is_closed) {
        frame->is_in_children = false;
        return ST_OK;
    }
    return open_spec(reader, frame->value, err);
}

static enum status read_version(struct json *in, struct error *err)
{
    int64_t version;
    TRY(json_array(in, err));
    TRY(expect_element(in, err));
    TRY(json_read_i64(in, &version, err));
    return version == PROTOCOL_VERSION
               ? ST_OK
               : json_fail(in, err, ST_INVALID, "expected version %d", PROTOCOL_VERSION);
}

enum status pytree_read_json(struct span text, struct sip_builder *builder,
                             struct sip_value **out_root, struct error *err)
{
    struct reader reader = {.builder = builder};
    json_init(&reader.in, text);
    reader.in.depth_max = JSON_LEVELS_MAX;
    TRY(read_version(&reader.in, err));
    TRY(expect_element(&reader.in, err));
    TRY(open_spec(&reader, NULL, err));
    *out_root = reader.frames[0].value;
    while (reader.depth > 0) {
        struct frame *frame = &reader.frames[reader.depth - 1];
        TRY(frame->is_in_children ? read_child(&reader, frame, err)
                                  : read_member(&reader, frame, err));
    }
    return expect_end(&reader.in, err);
}
