/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/pte/limits.h"
#include "runtime/pte/pte_priv.h"
#include "runtime/pte/schema.h"
#include "runtime/pte/text.h"

void *pte_decode_array(struct pte_decoder *decoder, size_t count, size_t size, struct error *err)
{
    struct arena *arena = decoder->arena;
    void *array = arena_array(arena, count, size);
    size_t bytes;
    if (array) {
        return array;
    }
    if (!mul_size(count, size, &bytes) || !in_range(arena->used_bytes, bytes, arena->max_bytes)) {
        error_set(err, ST_CORRUPT,
                  "the program describes more than a file of its size can: over %zu bytes decoded",
                  arena->max_bytes);
    } else {
        error_no_memory(err, "a program");
    }
    return NULL;
}

enum status pte_decode_text(struct pte_decoder *decoder, const struct flatbuf_table *table,
                            struct flatbuf_field field, uint32_t bytes_max, const char **out_text,
                            struct error *err)
{
    struct span text;
    TRY(flatbuf_string(&decoder->fb, table, field, &text, err));
    if (text.len > bytes_max) {
        return error_set(err, ST_CORRUPT, "%s: %zu bytes, at most %" PRIu32 " are allowed",
                         field.name, text.len, bytes_max);
    }
    if (!pte_text_is_plain(text)) {
        return error_set(err, ST_CORRUPT, "%s: not UTF-8, or with control characters", field.name);
    }
    char *copy = pte_decode_array(decoder, text.len + 1, 1, err);
    if (!copy) {
        return err->code;
    }
    if (text.len) {
        memcpy(copy, text.ptr, text.len);
    }
    *out_text = copy;
    return ST_OK;
}

enum status pte_decode_vector(struct pte_decoder *decoder, const struct flatbuf_table *table,
                              struct flatbuf_field field, uint32_t element_bytes, uint32_t max,
                              struct flatbuf_vector *out_vector, struct error *err)
{
    TRY(flatbuf_vector(&decoder->fb, table, field, element_bytes, out_vector, err));
    if (out_vector->count > max) {
        return error_set(err, ST_TOO_LARGE,
                         "%s: %" PRIu32 " entries, at most %" PRIu32 " are allowed", field.name,
                         out_vector->count, max);
    }
    return ST_OK;
}

enum status pte_decode_required(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                struct flatbuf_field field, uint32_t element_bytes, uint32_t max,
                                struct flatbuf_vector *out_vector, struct error *err)
{
    TRY(pte_decode_vector(decoder, table, field, element_bytes, max, out_vector, err));
    return out_vector->pos ? ST_OK : error_set(err, ST_CORRUPT, "%s: missing", field.name);
}

enum status pte_decode_index(const struct pte_decoder *decoder, int64_t index, const char *what,
                             uint32_t i, uint32_t *out_index, struct error *err)
{
    if (index < 0 || index >= decoder->plan->value_count) {
        return error_set(err, ST_CORRUPT, "%s %" PRIu32 " is value %" PRId64 " of %" PRIu32, what,
                         i, index, decoder->plan->value_count);
    }
    *out_index = (uint32_t)index;
    return ST_OK;
}

enum status pte_decode_indices(struct pte_decoder *decoder, struct flatbuf_vector vector,
                               const char *what, const uint32_t **out_indices, struct error *err)
{
    uint32_t *indices = pte_decode_array(decoder, vector.count, sizeof(*indices), err);
    if (!indices) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        int32_t index = flatbuf_i32_at(&decoder->fb, vector, i);
        TRY(pte_decode_index(decoder, index, what, i, &indices[i], err));
    }
    *out_indices = indices;
    return ST_OK;
}

enum status pte_decode_unsupported(struct pte_decoder *decoder, struct error *err, const char *fmt,
                                   ...)
{
    if (decoder->plan->failure) {
        return ST_OK;
    }
    struct error *failure = pte_decode_array(decoder, 1, sizeof(*failure), err);
    if (!failure) {
        return err->code;
    }
    va_list args;
    va_start(args, fmt);
    error_setv(failure, ST_UNSUPPORTED, fmt, args);
    va_end(args);
    decoder->plan->failure = failure;
    return ST_OK;
}

static enum status decode_segment(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                  struct span area, struct pte_segment *segment, struct error *err)
{
    uint64_t offset = 0, size = 0;
    TRY(flatbuf_u64(&decoder->fb, table, segment_offset, &offset, err));
    TRY(flatbuf_u64(&decoder->fb, table, segment_size, &size, err));
    if (size != 0 && !area.ptr) {
        return error_set(err, ST_CORRUPT,
                         "%" PRIu64 " bytes, but the file has no header that says where", size);
    }
    if (!in_range(offset, size, area.len)) {
        return error_set(err, ST_CORRUPT,
                         "%" PRIu64 " bytes at offset %" PRIu64 " of an area of %zu bytes", size,
                         offset, area.len);
    }
    segment->offset = offset;
    /* An area without bytes may have no address; an empty segment needs none. */
    segment->bytes =
        size ? span_of(area.ptr + offset, (size_t)size) : span_of(decoder->fb.bytes.ptr, 0);
    return ST_OK;
}

enum status pte_decode_segments(struct pte_decoder *decoder, const struct flatbuf_table *root,
                                struct flatbuf_field field, struct span area, struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, root, field, 4, PTE_SEGMENTS_MAX, &vector, err));
    struct pte_segment *segments = pte_decode_array(decoder, vector.count, sizeof(*segments), err);
    if (!segments) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        struct flatbuf_table table;
        if (flatbuf_table_at(&decoder->fb, vector, i, &table, err) != ST_OK ||
            decode_segment(decoder, &table, area, &segments[i], err) != ST_OK) {
            return error_prefix(err, "segment %" PRIu32 ": ", i);
        }
    }
    decoder->segments = segments;
    decoder->segment_count = vector.count;
    return ST_OK;
}

/* A SubsegmentOffsets: tensors by offset in one segment. */
static enum status decode_subsegment(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                     struct pte_constants *out, struct error *err)
{
    uint32_t index = 0;
    TRY(flatbuf_u32(&decoder->fb, table, subsegment_segment_index, &index, err));
    TRY(flatbuf_vector(&decoder->fb, table, subsegment_offsets, 8, &out->offsets, err));
    if (out->offsets.count <= 1) {
        /* Nothing but the placeholder: as good as absent. */
        out->offsets.count = 0;
        return ST_OK;
    }
    if (index >= decoder->segment_count) {
        return error_set(err, ST_CORRUPT, "segment_index: segment %" PRIu32 " of %" PRIu32, index,
                         decoder->segment_count);
    }
    out->segment = decoder->segments[index].bytes;
    return ST_OK;
}

static enum status decode_constants(struct pte_decoder *decoder, const struct flatbuf_table *root,
                                    struct pte_program *program, struct error *err)
{
    struct pte_constants *constants = &decoder->constants;
    struct flatbuf_table table;
    bool found;
    TRY(flatbuf_table(&decoder->fb, root, program_constant_segment, &table, &found, err));
    if (found && decode_subsegment(decoder, &table, constants, err) != ST_OK) {
        return error_prefix(err, "constant_segment: ");
    }
    TRY(flatbuf_vector(&decoder->fb, root, program_constant_buffer, 4, &constants->buffers, err));
    program->segment_constant_count = constants->offsets.count;
    program->inline_constant_count = constants->buffers.count;
    if (constants->offsets.count > 0 && constants->buffers.count > 1) {
        return error_set(err, ST_CORRUPT,
                         "constants both in a segment (%" PRIu32 ") and inline (%" PRIu32 ")",
                         constants->offsets.count, constants->buffers.count);
    }
    return ST_OK;
}

/* Only the first list is ever used; tensors that ask for another are refused. */
static enum status decode_mutables(struct pte_decoder *decoder, const struct flatbuf_table *root,
                                   struct pte_program *program, struct error *err)
{
    struct flatbuf_vector vector;
    struct flatbuf_table table;
    TRY(flatbuf_vector(&decoder->fb, root, program_mutable_data_segments, 4, &vector, err));
    if (vector.count > 0) {
        if (flatbuf_table_at(&decoder->fb, vector, 0, &table, err) != ST_OK ||
            decode_subsegment(decoder, &table, &decoder->mutables, err) != ST_OK) {
            return error_prefix(err, "mutable_data_segments 0: ");
        }
    }
    program->mutable_constant_count = decoder->mutables.offsets.count;
    return ST_OK;
}

static enum status decode_layout(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                 const struct pte_layout **out_layout, struct error *err)
{
    struct pte_layout *layout = pte_decode_array(decoder, 1, sizeof(*layout), err);
    if (!layout) {
        return err->code;
    }
    TRY(flatbuf_i8(&decoder->fb, table, layout_scalar_type, &layout->scalar_type, err));
    TRY(pte_decode_dims(decoder, table, layout_sizes, layout_dim_order, &layout->shape,
                        layout->dim_order, err));
    *out_layout = layout;
    return ST_OK;
}

static enum status decode_named(struct pte_decoder *decoder, struct flatbuf_vector vector,
                                uint32_t i, struct pte_named_data *named, struct error *err)
{
    struct flatbuf_table table, layout;
    uint32_t segment = 0;
    bool has_layout;
    TRY(flatbuf_table_at(&decoder->fb, vector, i, &table, err));
    TRY(pte_decode_text(decoder, &table, named_key, PTE_NAME_MAX, &named->key, err));
    TRY(flatbuf_u32(&decoder->fb, &table, named_segment_index, &segment, err));
    if (!*named->key) {
        return error_set(err, ST_CORRUPT, "key: missing");
    }
    if (segment >= decoder->segment_count) {
        return error_set(err, ST_CORRUPT, "segment_index: segment %" PRIu32 " of %" PRIu32, segment,
                         decoder->segment_count);
    }
    named->bytes = decoder->segments[segment].bytes;
    TRY(flatbuf_table(&decoder->fb, &table, named_tensor_layout, &layout, &has_layout, err));
    return has_layout ? decode_layout(decoder, &layout, &named->layout, err) : ST_OK;
}

static int compare_named(const void *a, const void *b)
{
    const struct pte_named_data *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static enum status sort_named(struct pte_decoder *decoder, struct pte_names *names,
                              struct error *err)
{
    const struct pte_named_data **sorted =
        pte_decode_array(decoder, names->count, sizeof(*sorted), err);
    if (!sorted) {
        return err->code;
    }
    for (uint32_t i = 0; i < names->count; i++) {
        sorted[i] = &names->entries[i];
    }
    qsort(sorted, names->count, sizeof(*sorted), compare_named);
    for (uint32_t i = 1; i < names->count; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0) {
            return error_set(err, ST_CORRUPT, "named_data: two entries have the key \"%.128s\"",
                             sorted[i]->key);
        }
    }
    names->sorted = sorted;
    return ST_OK;
}

enum status pte_decode_names(struct pte_decoder *decoder, const struct flatbuf_table *root,
                             struct flatbuf_field field, struct pte_names *out_names,
                             struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, root, field, 4, PTE_NAMED_DATA_MAX, &vector, err));
    struct pte_named_data *named = pte_decode_array(decoder, vector.count, sizeof(*named), err);
    if (!named) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (decode_named(decoder, vector, i, &named[i], err) != ST_OK) {
            return error_prefix(err, "named_data %" PRIu32 ": ", i);
        }
    }
    *out_names = (struct pte_names){.entries = named, .count = vector.count};
    return sort_named(decoder, out_names, err);
}

/* The name comes first: it is in the text of everything that is wrong with the rest. */
static enum status decode_plan_name(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    const struct pte_plan *earlier, size_t earlier_count,
                                    struct error *err)
{
    const char *name;
    TRY(pte_decode_text(decoder, table, plan_name, PTE_METHOD_NAME_MAX, &name, err));
    if (!*name || strchr(name, '/')) {
        return error_set(err, ST_CORRUPT, "name: \"%s\" cannot be part of a URL", name);
    }
    for (size_t i = 0; i < earlier_count; i++) {
        if (strcmp(earlier[i].name, name) == 0) {
            return error_set(err, ST_CORRUPT, "name: plan %zu is called \"%s\" as well", i, name);
        }
    }
    decoder->plan->name = name;
    return ST_OK;
}

static enum status decode_plans(struct pte_decoder *decoder, const struct flatbuf_table *root,
                                struct pte_program *program, struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_required(decoder, root, program_execution_plan, 4, PTE_PLANS_MAX, &vector, err));
    if (vector.count == 0) {
        return error_set(err, ST_CORRUPT, "execution_plan: the program has no methods");
    }
    struct pte_plan *plans = pte_decode_array(decoder, vector.count, sizeof(*plans), err);
    if (!plans) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        struct flatbuf_table table;
        decoder->plan = &plans[i];
        if (flatbuf_table_at(&decoder->fb, vector, i, &table, err) != ST_OK ||
            decode_plan_name(decoder, &table, plans, i, err) != ST_OK) {
            return error_prefix(err, "plan %" PRIu32 ": ", i);
        }
        if (pte_decode_plan(decoder, &table, err) != ST_OK) {
            return error_prefix(err, "plan \"%s\", ", plans[i].name);
        }
    }
    program->plans = plans;
    program->plan_count = vector.count;
    return ST_OK;
}

static enum status decode_root(struct pte_decoder *decoder, struct pte_program *program,
                               struct error *err)
{
    struct flatbuf_table root;
    uint32_t version = 0;
    TRY(flatbuf_root(&decoder->fb, &root, err));
    TRY(flatbuf_u32(&decoder->fb, &root, program_version, &version, err));
    if (version != 0) {
        return error_set(err, ST_UNSUPPORTED, "version: %" PRIu32 ", expected 0", version);
    }
    TRY(pte_decode_segments(decoder, &root, program_segments, program->container.segment_area,
                            err));
    program->segments = decoder->segments;
    program->segment_count = decoder->segment_count;
    TRY(decode_constants(decoder, &root, program, err));
    TRY(decode_mutables(decoder, &root, program, err));
    TRY(flatbuf_vector(&decoder->fb, &root, program_backend_delegate_data, 4,
                       &decoder->inline_delegates, err));
    TRY(pte_decode_names(decoder, &root, program_named_data, &program->named, err));
    TRY(decode_plans(decoder, &root, program, err));
    program->externals = decoder->externals;
    return ST_OK;
}

enum status pte_decode_program(struct pte_program *program, struct error *err)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    struct pte_decoder decoder = {.arena = &program->arena};
    TRY(flatbuf_init(&decoder.fb, program->container.flatbuffer, err));
    uint64_t max = program->container.flatbuffer.len * PTE_DECODED_PER_BYTE + PTE_DECODED_MIN;
    arena_init(&program->arena, max < PTE_DECODED_MAX ? (size_t)max : (size_t)PTE_DECODED_MAX);
    return decode_root(&decoder, program, err);
}
