/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/pte_sample.h"

#define CONSTANT_BYTES 64
#define STATE_BYTES 32
#define HEADER_AT 8

void sample_set(struct sample *sample, size_t table, size_t id, uint64_t value, size_t width)
{
    writer_put(&sample->writer, writer_field(&sample->writer, table, id), value, width);
}

void sample_remove(struct sample *sample, size_t table, size_t id)
{
    size_t vtable = table - load_le32(sample->writer.bytes + table);
    writer_put(&sample->writer, vtable + 4 + 2 * id, 0, 2);
}

static size_t child(struct sample *sample, size_t table, size_t id, const char *widths)
{
    return writer_child(&sample->writer, writer_field(&sample->writer, table, id), widths);
}

static size_t vector(struct sample *sample, size_t table, size_t id, size_t count, size_t width)
{
    return writer_vector(&sample->writer, writer_field(&sample->writer, table, id), count, width);
}

static size_t numbers(struct sample *sample, size_t table, size_t id, const int64_t *values,
                      size_t count, size_t width)
{
    return writer_numbers(&sample->writer, writer_field(&sample->writer, table, id), values, count,
                          width);
}
#define NUMBERS(sample, table, id, width, ...)                                                     \
    numbers(sample, table, id, (const int64_t[]){__VA_ARGS__},                                     \
            sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), width)

static size_t string(struct sample *sample, size_t table, size_t id, const char *text)
{
    return writer_string(&sample->writer, writer_field(&sample->writer, table, id), text);
}

/* An entry of a vector of unions: its table, and the union's. */
static size_t add_value(struct sample *sample, size_t values, enum sample_value value, uint8_t tag,
                        const char *widths)
{
    sample->entries[value] = writer_child(&sample->writer, values + 4 * (size_t)value, "14");
    sample_set(sample, sample->entries[value], 0, tag, 1);
    sample->values[value] = child(sample, sample->entries[value], 1, widths);
    return sample->values[value];
}

/* A float tensor of 2x3: scalar_type, storage_offset, sizes, dim_order, data, allocation, extra. */
static void add_tensor(struct sample *sample, size_t values, enum sample_value value, bool planned,
                       uint32_t offset, uint32_t data_index)
{
    const char *widths = value == SV_STATE ? "1444144114" : planned ? "144414411" : "144414011";
    size_t table = add_value(sample, values, value, 5, widths);
    sample_set(sample, table, 0, 6, 1);
    sample->sizes[value] = NUMBERS(sample, table, 2, 4, 2, 3);
    sample->dim_orders[value] = NUMBERS(sample, table, 3, 1, 0, 1);
    sample_set(sample, table, 5, data_index, 4);
    if (planned) {
        size_t allocation = child(sample, table, 6, "444");
        sample_set(sample, allocation, 0, 1, 4);
        sample_set(sample, allocation, 1, offset, 4);
        sample->allocations[value] = allocation;
    }
}

static void add_lists(struct sample *s, size_t values)
{
    size_t table = add_value(s, values, SV_INT_LIST, 7, "4");
    s->items[SV_INT_LIST] = NUMBERS(s, table, 0, 8, SV_INT, SV_INT);
    table = add_value(s, values, SV_TENSOR_LIST, 10, "4");
    s->items[SV_TENSOR_LIST] = NUMBERS(s, table, 0, 4, SV_INPUT, SV_UNBOUND);
    table = add_value(s, values, SV_OPTIONAL_LIST, 11, "4");
    s->items[SV_OPTIONAL_LIST] = NUMBERS(s, table, 0, 4, -1, SV_INPUT, SV_NULL);
    table = add_value(s, values, SV_DOUBLE_LIST, 8, "4");
    s->items[SV_DOUBLE_LIST] = NUMBERS(s, table, 0, 8, 0x3ff8000000000000, 0);
    table = add_value(s, values, SV_BOOL_LIST, 9, "4");
    s->items[SV_BOOL_LIST] = NUMBERS(s, table, 0, 1, 0, 1, 7);
}

static void add_values(struct sample *s)
{
    size_t values = vector(s, s->plan, 2, SV_COUNT, 4);
    add_tensor(s, values, SV_INPUT, true, 0, 0);
    sample_set(s, add_value(s, values, SV_INT, 2, "8"), 0, (uint64_t)-5, 8);
    add_tensor(s, values, SV_CONSTANT, false, 0, 1);
    add_tensor(s, values, SV_OUTPUT, true, 32, 0);
    sample_set(s, add_value(s, values, SV_BOOL, 3, "1"), 0, 1, 1);
    add_lists(s, values);
    add_value(s, values, SV_NULL, 1, "");
    sample_set(s, add_value(s, values, SV_DOUBLE, 4, "8"), 0, 0x4004000000000000, 8);
    size_t text = add_value(s, values, SV_STRING, 6, "4");
    s->items[SV_STRING] = string(s, text, 0, "hello");
    add_tensor(s, values, SV_STATE, true, 64, 1);
    s->state_extra = child(s, s->values[SV_STATE], 9, "8411");
    string(s, s->state_extra, 1, "module.state");
    add_tensor(s, values, SV_UNBOUND, false, 0, 0);
}

static void add_instrs(struct sample *s)
{
    static const char *const widths[SI_COUNT] = {"44", "44", "44", "44", "4"};
    static const uint8_t tags[SI_COUNT] = {1, 2, 4, 3, 5};
    size_t chain = writer_child(&s->writer, vector(s, s->plan, 5, 1, 4), "444");
    size_t entries = vector(s, chain, 2, SI_COUNT, 4);
    for (size_t i = 0; i < SI_COUNT; i++) {
        s->instrs[i] = writer_child(&s->writer, entries + 4 * i, "14");
        sample_set(s, s->instrs[i], 0, tags[i], 1);
        s->calls[i] = child(s, s->instrs[i], 1, widths[i]);
    }
    s->args[SI_KERNEL] =
        NUMBERS(s, s->calls[SI_KERNEL], 1, 4, SV_INPUT, SV_CONSTANT, SV_INT, SV_OUTPUT, SV_OUTPUT);
    s->args[SI_DELEGATE] = NUMBERS(s, s->calls[SI_DELEGATE], 1, 4, SV_INPUT, SV_OUTPUT);
    sample_set(s, s->calls[SI_JUMP], 0, SV_BOOL, 4);
    sample_set(s, s->calls[SI_JUMP], 1, SI_COUNT, 4);
    sample_set(s, s->calls[SI_MOVE], 0, SV_INPUT, 4);
    sample_set(s, s->calls[SI_MOVE], 1, SV_OUTPUT, 4);
    sample_set(s, s->calls[SI_FREE], 0, SV_UNBOUND, 4);
}

static void add_plan(struct sample *s, bool inline_payload)
{
    s->plan = writer_child(&s->writer, s->plans, "4444444444");
    s->plan_name = string(s, s->plan, 0, "forward");
    size_t container = child(s, s->plan, 1, "44");
    string(s, container, 0, "(in)");
    string(s, container, 1, "(out)");
    add_values(s);
    s->inputs = NUMBERS(s, s->plan, 3, 4, SV_INPUT);
    s->outputs = NUMBERS(s, s->plan, 4, 4, SV_OUTPUT, SV_STRING);
    add_instrs(s);
    s->operator_table = writer_child(&s->writer, vector(s, s->plan, 6, 1, 4), "44");
    string(s, s->operator_table, 0, "aten::add");
    string(s, s->operator_table, 1, "out");
    s->delegate = writer_child(&s->writer, vector(s, s->plan, 7, 1, 4), "444");
    string(s, s->delegate, 0, "TestBackend");
    s->processed = child(s, s->delegate, 1, "14");
    sample_set(s, s->processed, 0, inline_payload ? 0 : 1, 1);
    sample_set(s, s->processed, 1, inline_payload ? 0 : 1, 4);
    size_t spec = writer_child(&s->writer, vector(s, s->delegate, 2, 1, 4), "44");
    string(s, spec, 0, "level");
    NUMBERS(s, spec, 1, 1, 9, 0, 255);
    s->buffer_sizes = NUMBERS(s, s->plan, 8, 8, 0, 88);
    s->buffer_device = writer_child(&s->writer, vector(s, s->plan, 9, 1, 4), "411");
}

/* A method without instructions whose output is stored: "width" is 64. */
static void add_other_plan(struct sample *s)
{
    s->other_plan = writer_child(&s->writer, s->plans + 4, "404444444");
    s->other_name = string(s, s->other_plan, 0, "width");
    size_t value = writer_child(&s->writer, vector(s, s->other_plan, 2, 1, 4), "14");
    sample_set(s, value, 0, 2, 1);
    sample_set(s, child(s, value, 1, "8"), 0, 64, 8);
    vector(s, s->other_plan, 3, 0, 4);
    vector(s, s->other_plan, 4, 1, 4);
    size_t chain = writer_child(&s->writer, vector(s, s->other_plan, 5, 1, 4), "444");
    vector(s, chain, 2, 0, 4);
    vector(s, s->other_plan, 6, 0, 4);
    vector(s, s->other_plan, 7, 0, 4);
    vector(s, s->other_plan, 8, 1, 8);
}

static void add_segment_tables(struct sample *s)
{
    size_t segments = vector(s, s->program, 4, 2, 4);
    for (size_t i = 0; i < 2; i++) {
        s->segments[i] = writer_child(&s->writer, segments + 4 * i, "88");
        sample_set(s, s->segments[i], 0, i ? CONSTANT_BYTES : 0, 8);
        sample_set(s, s->segments[i], 1, i ? STATE_BYTES : CONSTANT_BYTES, 8);
    }
    s->constant_segment = child(s, s->program, 5, "44");
    s->constant_offsets = NUMBERS(s, s->constant_segment, 1, 8, 0, 16);
    s->mutable_segment = writer_child(&s->writer, vector(s, s->program, 6, 1, 4), "44");
    sample_set(s, s->mutable_segment, 0, 1, 4);
    s->mutable_offsets = NUMBERS(s, s->mutable_segment, 1, 8, 0, 8);
    size_t named = vector(s, s->program, 7, 2, 4);
    for (size_t i = 0; i < 2; i++) {
        s->named[i] = writer_child(&s->writer, named + 4 * i, "44");
        s->named_keys[i] = string(s, s->named[i], 0, i ? "alpha" : "weights");
        sample_set(s, s->named[i], 1, i, 4);
    }
}

/* Constant 1 and payload 0, as stored by files without segments. */
static void add_inline_tables(struct sample *s)
{
    size_t buffers = vector(s, s->program, 2, 2, 4);
    size_t empty = writer_child(&s->writer, buffers, "4");
    vector(s, empty, 0, 0, 1);
    size_t buffer = writer_child(&s->writer, buffers + 4, "4");
    vector(s, buffer, 0, 24, 1);
    size_t payload = writer_child(&s->writer, vector(s, s->program, 3, 1, 4), "4");
    NUMBERS(s, payload, 0, 1, 1, 2, 3);
    sample_set(s, s->values[SV_STATE], 5, 0, 4); /* such files had no initial state */
}

static void add_segments(struct sample *s, size_t header_bytes)
{
    size_t program_bytes = s->writer.len;
    writer_pad(&s->writer, 16);
    s->segment_base = s->writer.len;
    for (uint8_t i = 0; i < CONSTANT_BYTES + STATE_BYTES; i++) {
        writer_add(&s->writer, &i, 1);
    }
    writer_put(&s->writer, HEADER_AT + 4, header_bytes, 4);
    writer_put(&s->writer, HEADER_AT + 8, program_bytes, 8);
    writer_put(&s->writer, HEADER_AT + 16, s->segment_base, 8);
    if (header_bytes >= 32) {
        writer_put(&s->writer, HEADER_AT + 24, CONSTANT_BYTES + STATE_BYTES, 8);
    }
}

void sample_make(struct sample *s, enum sample_kind kind)
{
    static const uint8_t zeros[32];
    memset(s, 0, sizeof(*s));
    writer_add(&s->writer, "\0\0\0\0ET12", 8);
    if (kind != SAMPLE_INLINE) {
        writer_add(&s->writer, zeros, sizeof(zeros));
        memcpy(s->writer.bytes + HEADER_AT, "eh00", 4);
    }
    s->program = writer_child(&s->writer, 0, kind == SAMPLE_INLINE ? "4444" : "44004444");
    s->plans = vector(s, s->program, 1, 2, 4);
    add_plan(s, kind == SAMPLE_INLINE);
    add_other_plan(s);
    if (kind == SAMPLE_INLINE) {
        add_inline_tables(s);
        writer_pad(&s->writer, 4);
    } else {
        add_segment_tables(s);
        writer_pad(&s->writer, 4);
        add_segments(s, kind == SAMPLE_OLD ? 24 : 32);
    }
}
