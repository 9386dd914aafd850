/* SPDX-License-Identifier: MIT */
/* From messages to JSON. A message is read once for each field that its row has: these are few. */
#include "config.h"

#include "protocol/grpc_json.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "protocol/base64.h"
#include "protocol/json.h"

/* Messages in messages that the table has, at most. */
#define DEPTH_MAX 8

/* Fields behind an entry of a map in which its key is looked for again. */
#define REPEATED_MAX 64

struct printer {
    struct buf *out;
    unsigned depth;
    struct error *err;
};

static enum status print_message(struct printer *p, struct span message, enum grpc_message id);

enum status grpc_refuse_message(enum grpc_message id, struct error *err)
{
    return error_set(err, ST_INVALID, "the message is no %s: it is damaged",
                     grpc_message_info(id).name);
}

static enum protobuf_type wire_type(enum grpc_type type)
{
    switch (type) {
    case GRPC_DOUBLE:
        return PROTOBUF_I64;
    case GRPC_FLOAT:
        return PROTOBUF_I32;
    case GRPC_STRING:
    case GRPC_BYTES:
    case GRPC_MESSAGE:
        return PROTOBUF_BYTES;
    default:
        return PROTOBUF_VARINT;
    }
}

static enum status print_float(struct printer *p, const struct grpc_field_info *field,
                               const struct protobuf_field *item)
{
    double value =
        field->type == GRPC_DOUBLE ? protobuf_double(item) : (double)protobuf_float(item);
    if (!isfinite(value)) {
        return error_set(p->err, ST_INVALID, "%s: expected a finite number", field->name);
    }
    buf_printf(p->out, "%.17g", value);
    return ST_OK;
}

static enum status print_text(struct printer *p, const struct grpc_field_info *field,
                              struct span text)
{
    if (!json_is_utf8(text)) {
        return error_set(p->err, ST_INVALID, "%s: expected text in UTF-8", field->name);
    }
    json_print_string(p->out, text);
    return ST_OK;
}

static enum status print_item(struct printer *p, const struct grpc_field_info *field,
                              const struct protobuf_field *item)
{
    switch (field->type) {
    case GRPC_BOOL:
        buf_add_str(p->out, item->value ? "true" : "false");
        return ST_OK;
    case GRPC_INT32:
        buf_printf(p->out, "%" PRId32, (int32_t)item->value);
        return ST_OK;
    case GRPC_INT64:
        buf_printf(p->out, "%" PRId64, (int64_t)item->value);
        return ST_OK;
    case GRPC_UINT32:
    case GRPC_ENUM:
        buf_printf(p->out, "%" PRIu32, (uint32_t)item->value);
        return ST_OK;
    case GRPC_UINT64:
        buf_printf(p->out, "%" PRIu64, item->value);
        return ST_OK;
    case GRPC_DOUBLE:
    case GRPC_FLOAT:
        return print_float(p, field, item);
    case GRPC_STRING:
        return print_text(p, field, item->bytes);
    case GRPC_BYTES:
        buf_add_char(p->out, '"');
        base64_print(p->out, item->bytes);
        buf_add_char(p->out, '"');
        return ST_OK;
    case GRPC_MESSAGE:
        return print_message(p, item->bytes, (enum grpc_message)field->ref);
    }
    unreachable();
}

/* Finds the next item of |field| in |in|; false: there is none, or |in| is damaged. A field of
 * another type than the row's is damage. */
static bool next_item(struct protobuf *in, const struct grpc_field_info *field,
                      struct protobuf_field *out)
{
    while (protobuf_next(in, out)) {
        if (out->number == field->number) {
            in->is_wrong = out->type != wire_type(field->type);
            return !in->is_wrong;
        }
    }
    return false;
}

/* ---- messages that are written as what they hold --------------------------------------------- */

/* The one field of a list of texts, or NULL. */
static const struct grpc_field_info *list_of_texts(const struct grpc_message_info *info)
{
    const struct grpc_field_info *field = info->fields;
    return info->field_count == 1 && field->label == GRPC_MANY && field->type == GRPC_STRING ? field
                                                                                             : NULL;
}

static bool is_choice_of_values(const struct grpc_message_info *info)
{
    for (uint32_t i = 0; i < info->field_count; i++) {
        if (info->fields[i].label != GRPC_CHOICE || info->fields[i].type == GRPC_MESSAGE) {
            return false;
        }
    }
    return info->field_count > 0;
}

/* The last of the choices that came counts. */
static enum status print_choice(struct printer *p, struct span message,
                                const struct grpc_message_info *info)
{
    const struct grpc_field_info *chosen = NULL;
    struct protobuf_field item, last = {.number = 0};
    struct protobuf in;
    for (protobuf_init(&in, message); protobuf_next(&in, &item);) {
        const struct grpc_field_info *field = grpc_find_number(info, item.number);
        if (field) {
            chosen = field;
            last = item;
        }
    }
    if (in.is_wrong || (chosen && last.type != wire_type(chosen->type))) {
        return error_set(p->err, ST_INVALID, "the message is no %s: it is damaged", info->name);
    }
    if (!chosen) {
        buf_add_str(p->out, "null");
        return ST_OK;
    }
    return print_item(p, chosen, &last);
}

/* No text is null, and one is no list. */
static enum status print_texts(struct printer *p, struct span message,
                               const struct grpc_field_info *field)
{
    struct protobuf_field item;
    struct protobuf in;
    size_t count = 0, printed = 0;
    for (protobuf_init(&in, message); next_item(&in, field, &item);) {
        count++;
    }
    if (in.is_wrong) {
        return error_set(p->err, ST_INVALID, "%s: expected texts", field->name);
    }
    buf_add_str(p->out, count == 0 ? "null" : count > 1 ? "[" : "");
    for (protobuf_init(&in, message); next_item(&in, field, &item);) {
        buf_add_str(p->out, printed++ ? "," : "");
        TRY(print_text(p, field, item.bytes));
    }
    buf_add_str(p->out, count > 1 ? "]" : "");
    return ST_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* Of an entry of a map: a key 1 and a value 2. */
struct entry {
    struct span key, value;
    bool is_wrong;
};

static struct entry read_entry(struct span message)
{
    struct entry entry = {.key = span_str(""), .value = span_str("")};
    struct protobuf_field item;
    struct protobuf in;
    for (protobuf_init(&in, message); protobuf_next(&in, &item);) {
        if (item.type == PROTOBUF_BYTES && item.number <= 2) {
            *(item.number == 1 ? &entry.key : &entry.value) = item.bytes;
        }
    }
    entry.is_wrong = in.is_wrong;
    return entry;
}

static enum status print_entry(struct printer *p, const struct grpc_field_info *field,
                               const struct entry *entry)
{
    static const struct grpc_field_info key = {"key", 1, GRPC_STRING, GRPC_ONE, GRPC_NONE};
    if (entry->is_wrong) {
        return error_set(p->err, ST_INVALID, "%s: an entry is damaged", field->name);
    }
    TRY(print_text(p, &key, entry->key));
    buf_add_char(p->out, ':');
    return print_message(p, entry->value, (enum grpc_message)field->ref);
}

/* Has one of the entries behind |in| the key, too? Then that one counts. */
static bool is_repeated(struct protobuf in, const struct grpc_field_info *field, struct span key)
{
    struct protobuf_field item;
    for (int left = REPEATED_MAX; left > 0 && protobuf_next(&in, &item); left--) {
        if (item.number == field->number && item.type == PROTOBUF_BYTES &&
            span_equal(read_entry(item.bytes).key, key)) {
            return true;
        }
    }
    return false;
}

static enum status print_map(struct printer *p, const struct grpc_field_info *field,
                             struct span message)
{
    struct protobuf_field item;
    struct protobuf in;
    size_t count = 0;
    for (protobuf_init(&in, message); next_item(&in, field, &item);) {
        struct entry entry = read_entry(item.bytes);
        if (!is_repeated(in, field, entry.key)) {
            buf_add_str(p->out, count++ ? "," : "");
            TRY(print_entry(p, field, &entry));
        }
    }
    return in.is_wrong ? error_set(p->err, ST_INVALID, "%s: damaged", field->name) : ST_OK;
}

/* Numbers may come packed. */
static enum status print_numbers(struct printer *p, const struct grpc_field_info *field,
                                 struct span message)
{
    struct protobuf_field item;
    struct protobuf in, numbers;
    uint8_t alone[10];
    size_t count = 0;
    for (protobuf_init(&in, message); protobuf_next(&in, &item);) {
        if (item.number != field->number) {
            continue;
        }
        struct protobuf_field number = {.number = item.number, .type = wire_type(field->type)};
        bool is_list = protobuf_numbers(&item, number.type, alone, &numbers);
        while (is_list && protobuf_next_packed(&numbers, number.type, &number.value)) {
            buf_add_str(p->out, count++ ? "," : "");
            TRY(print_item(p, field, &number));
        }
        in.is_wrong |= !is_list || numbers.is_wrong;
    }
    return in.is_wrong ? error_set(p->err, ST_INVALID, "%s: expected numbers", field->name) : ST_OK;
}

static enum status print_many(struct printer *p, const struct grpc_field_info *field,
                              struct span message)
{
    struct protobuf_field item;
    struct protobuf in;
    size_t count = 0;
    if (field->label == GRPC_MAP) {
        return print_map(p, field, message);
    }
    if (wire_type(field->type) != PROTOBUF_BYTES) {
        return print_numbers(p, field, message);
    }
    for (protobuf_init(&in, message); next_item(&in, field, &item);) {
        buf_add_str(p->out, count++ ? "," : "");
        TRY(print_item(p, field, &item));
    }
    return in.is_wrong ? error_set(p->err, ST_INVALID, "%s: damaged", field->name) : ST_OK;
}

/* Of several the last one counts; none is null. */
static enum status print_one(struct printer *p, const struct grpc_field_info *field,
                             struct span message)
{
    struct protobuf_field item, last = {.number = 0};
    struct protobuf in;
    for (protobuf_init(&in, message); next_item(&in, field, &item);) {
        last = item;
    }
    if (in.is_wrong) {
        return error_set(p->err, ST_INVALID, "%s: damaged", field->name);
    }
    if (last.number == 0) {
        buf_add_str(p->out, "null");
        return ST_OK;
    }
    return print_item(p, field, &last);
}

static enum status print_field(struct printer *p, const struct grpc_field_info *field,
                               struct span message)
{
    if (field->label == GRPC_MANY || field->label == GRPC_MAP) {
        buf_add_char(p->out, field->label == GRPC_MAP ? '{' : '[');
        TRY(print_many(p, field, message));
        buf_add_char(p->out, field->label == GRPC_MAP ? '}' : ']');
        return ST_OK;
    }
    return print_one(p, field, message);
}

static bool has_field(struct span message, uint32_t number)
{
    struct protobuf_field item;
    struct protobuf in;
    for (protobuf_init(&in, message); protobuf_next(&in, &item);) {
        if (item.number == number) {
            return true;
        }
    }
    return false;
}

static enum status print_members(struct printer *p, struct span message,
                                 const struct grpc_message_info *info)
{
    bool is_first = true;
    buf_add_char(p->out, '{');
    for (uint32_t i = 0; i < info->field_count; i++) {
        const struct grpc_field_info *field = &info->fields[i];
        if (!has_field(message, field->number)) {
            continue;
        }
        buf_printf(p->out, "%s\"%s\":", is_first ? "" : ",", field->name);
        is_first = false;
        TRY(print_field(p, field, message));
    }
    buf_add_char(p->out, '}');
    return ST_OK;
}

static bool is_whole(struct span message)
{
    struct protobuf_field item;
    struct protobuf in;
    protobuf_init(&in, message);
    while (protobuf_next(&in, &item)) {
    }
    return !in.is_wrong;
}

static enum status print_message(struct printer *p, struct span message, enum grpc_message id)
{
    const struct grpc_message_info info = grpc_message_info(id);
    const struct grpc_field_info *texts = list_of_texts(&info);
    must(p->depth < DEPTH_MAX); /* the table has no circle */
    if (!is_whole(message)) {
        return grpc_refuse_message(id, p->err);
    }
    p->depth++;
    enum status status = texts                        ? print_texts(p, message, texts)
                         : is_choice_of_values(&info) ? print_choice(p, message, &info)
                                                      : print_members(p, message, &info);
    p->depth--;
    return status;
}

enum status grpc_to_json(struct span message, enum grpc_message id, bool is_wrapped,
                         struct buf *out, struct error *err)
{
    struct printer p = {.out = out, .err = err};
    if (!is_wrapped) {
        return print_message(&p, message, id);
    }
    return is_whole(message) ? print_field(&p, grpc_message_info(id).fields, message)
                             : grpc_refuse_message(id, err);
}

enum status grpc_field_to_json(struct span message, const struct grpc_field_info *field,
                               struct buf *out, struct error *err)
{
    struct printer p = {.out = out, .err = err};
    return print_field(&p, field, message);
}
