/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/pte/limits.h"
#include "runtime/pte/pte_priv.h"
#include "runtime/pte/schema.h"

static enum status decode_structure(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    struct error *err)
{
    struct pte_plan *plan = decoder->plan;
    struct flatbuf_table container;
    bool found;
    plan->encoded_inputs = plan->encoded_outputs = "";
    TRY(flatbuf_table(&decoder->fb, table, plan_container_meta_type, &container, &found, err));
    if (!found) {
        return ST_OK;
    }
    TRY(pte_decode_text(decoder, &container, container_encoded_inp_str, PTE_STRUCTURE_MAX,
                        &plan->encoded_inputs, err));
    return pte_decode_text(decoder, &container, container_encoded_out_str, PTE_STRUCTURE_MAX,
                           &plan->encoded_outputs, err);
}

/* Entry 0 of the file is reserved: memory ids begin at 1. */
static enum status decode_memories(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                   struct error *err)
{
    struct pte_plan *plan = decoder->plan;
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, table, plan_non_const_buffer_sizes, 8, PTE_MEMORIES_MAX + 1,
                          &vector, err));
    plan->memory_count = vector.count ? vector.count - 1 : 0;
    uint64_t *bytes = pte_decode_array(decoder, plan->memory_count, sizeof(*bytes), err);
    if (!bytes) {
        return err->code;
    }
    uint64_t total = 0;
    for (uint32_t i = 0; i < plan->memory_count; i++) {
        int64_t size = flatbuf_i64_at(&decoder->fb, vector, i + 1);
        if (size < 0 || (uint64_t)size > PTE_MEMORY_BYTES_MAX - total) {
            return error_set(err, ST_CORRUPT,
                             "non_const_buffer_sizes: memory %" PRIu32 " has %" PRId64
                             " bytes, expected 0 to %" PRIu64 " in all",
                             i + 1, size, PTE_MEMORY_BYTES_MAX);
        }
        total += (uint64_t)size;
        bytes[i] = (uint64_t)size;
    }
    plan->memory_bytes = bytes;
    return ST_OK;
}

static enum status decode_memory_devices(struct pte_decoder *decoder,
                                         const struct flatbuf_table *table, struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, table, plan_non_const_buffer_device, 4, PTE_MEMORIES_MAX,
                          &vector, err));
    for (uint32_t i = 0; i < vector.count; i++) {
        struct flatbuf_table entry;
        int8_t type = 0;
        TRY(flatbuf_table_at(&decoder->fb, vector, i, &entry, err));
        TRY(flatbuf_i8(&decoder->fb, &entry, buffer_device_device_type, &type, err));
        if (type != 0) {
            TRY(pte_decode_unsupported(
                decoder, err, "its memory is planned for device type %d, expected 0 (CPU)", type));
        }
    }
    return ST_OK;
}

static enum status decode_operator(struct pte_decoder *decoder, struct flatbuf_vector vector,
                                   uint32_t i, const char **out_name, struct error *err)
{
    struct flatbuf_table table;
    const char *name, *overload;
    TRY(flatbuf_table_at(&decoder->fb, vector, i, &table, err));
    TRY(pte_decode_text(decoder, &table, operator_name, PTE_NAME_MAX, &name, err));
    TRY(pte_decode_text(decoder, &table, operator_overload, PTE_NAME_MAX, &overload, err));
    if (!*name) {
        return error_set(err, ST_CORRUPT, "name: missing");
    }
    *out_name = name;
    if (*overload) {
        size_t size = strlen(name) + 1 + strlen(overload) + 1;
        char *joined = pte_decode_array(decoder, size, 1, err);
        if (!joined) {
            return err->code;
        }
        snprintf(joined, size, "%s.%s", name, overload);
        *out_name = joined;
    }
    return ST_OK;
}

static enum status decode_operators(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, table, plan_operators, 4, PTE_OPERATORS_MAX, &vector, err));
    const char **names = pte_decode_array(decoder, vector.count, sizeof(*names), err);
    if (!names) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (decode_operator(decoder, vector, i, &names[i], err) != ST_OK) {
            return error_prefix(err, "operator %" PRIu32 ": ", i);
        }
    }
    decoder->plan->operators = names;
    decoder->plan->operator_count = vector.count;
    return ST_OK;
}

static enum status decode_specs(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                struct pte_delegate *delegate, struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, table, delegate_compile_specs, 4, PTE_COMPILE_SPECS_MAX, &vector,
                          err));
    struct pte_compile_spec *specs = pte_decode_array(decoder, vector.count, sizeof(*specs), err);
    if (!specs) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        struct flatbuf_table spec;
        if (flatbuf_table_at(&decoder->fb, vector, i, &spec, err) != ST_OK ||
            pte_decode_text(decoder, &spec, spec_key, PTE_NAME_MAX, &specs[i].key, err) != ST_OK ||
            flatbuf_bytes(&decoder->fb, &spec, spec_value, &specs[i].value, err) != ST_OK) {
            return error_prefix(err, "compile_spec %" PRIu32 ": ", i);
        }
    }
    delegate->specs = specs;
    delegate->spec_count = vector.count;
    return ST_OK;
}

static enum status find_inline_payload(struct pte_decoder *decoder, uint32_t index,
                                       struct span *out_payload, struct error *err)
{
    if (index >= decoder->inline_delegates.count) {
        return error_set(err, ST_CORRUPT, "processed: inline payload %" PRIu32 " of %" PRIu32,
                         index, decoder->inline_delegates.count);
    }
    struct flatbuf_table data;
    TRY(flatbuf_table_at(&decoder->fb, decoder->inline_delegates, index, &data, err));
    TRY(flatbuf_bytes(&decoder->fb, &data, inline_data_data, out_payload, err));
    if (!out_payload->ptr) {
        return error_set(err, ST_CORRUPT, "processed: inline payload %" PRIu32 " has no data",
                         index);
    }
    return ST_OK;
}

static enum status decode_payload(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                  struct span *out_payload, struct error *err)
{
    struct flatbuf_table processed;
    int8_t location = 0;
    uint32_t index = 0;
    bool found;
    TRY(flatbuf_table(&decoder->fb, table, delegate_processed, &processed, &found, err));
    if (!found) {
        return error_set(err, ST_CORRUPT, "processed: missing");
    }
    TRY(flatbuf_i8(&decoder->fb, &processed, processed_location, &location, err));
    TRY(flatbuf_u32(&decoder->fb, &processed, processed_index, &index, err));
    if (location == 0) {
        return find_inline_payload(decoder, index, out_payload, err);
    }
    if (location != 1) {
        return error_set(err, ST_CORRUPT,
                         "processed: location %d, expected 0 (inline) or 1 (segment)", location);
    }
    if (index >= decoder->segment_count) {
        return error_set(err, ST_CORRUPT, "processed: segment %" PRIu32 " of %" PRIu32, index,
                         decoder->segment_count);
    }
    *out_payload = decoder->segments[index].bytes;
    return ST_OK;
}

static enum status decode_delegate(struct pte_decoder *decoder, struct flatbuf_vector vector,
                                   uint32_t i, struct pte_delegate *delegate, struct error *err)
{
    struct flatbuf_table table;
    TRY(flatbuf_table_at(&decoder->fb, vector, i, &table, err));
    TRY(pte_decode_text(decoder, &table, delegate_id, PTE_NAME_MAX, &delegate->id, err));
    if (!*delegate->id) {
        return error_set(err, ST_CORRUPT, "id: missing");
    }
    TRY(decode_payload(decoder, &table, &delegate->payload, err));
    return decode_specs(decoder, &table, delegate, err);
}

static enum status decode_delegates(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_vector(decoder, table, plan_delegates, 4, PTE_DELEGATES_MAX, &vector, err));
    struct pte_delegate *delegates =
        pte_decode_array(decoder, vector.count, sizeof(*delegates), err);
    if (!delegates) {
        return err->code;
    }
    for (uint32_t i = 0; i < vector.count; i++) {
        if (decode_delegate(decoder, vector, i, &delegates[i], err) != ST_OK) {
            return error_prefix(err, "delegate %" PRIu32 ": ", i);
        }
    }
    decoder->plan->delegates = delegates;
    decoder->plan->delegate_count = vector.count;
    return ST_OK;
}

static enum status decode_interface(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    struct error *err)
{
    struct pte_plan *plan = decoder->plan;
    struct flatbuf_vector vector;
    TRY(pte_decode_required(decoder, table, plan_inputs, 4, PTE_ARGS_MAX, &vector, err));
    TRY(pte_decode_indices(decoder, vector, "input", &plan->inputs, err));
    plan->input_count = vector.count;
    TRY(pte_decode_required(decoder, table, plan_outputs, 4, PTE_ARGS_MAX, &vector, err));
    TRY(pte_decode_indices(decoder, vector, "output", &plan->outputs, err));
    plan->output_count = vector.count;
    return ST_OK;
}

enum status pte_decode_plan(struct pte_decoder *decoder, const struct flatbuf_table *table,
                            struct error *err)
{
    TRY(decode_structure(decoder, table, err));
    TRY(decode_memories(decoder, table, err));
    TRY(decode_memory_devices(decoder, table, err));
    TRY(pte_decode_values(decoder, table, err));
    TRY(decode_interface(decoder, table, err));
    TRY(decode_operators(decoder, table, err));
    TRY(decode_delegates(decoder, table, err));
    TRY(pte_decode_instrs(decoder, table, err));
    TRY(pte_expand_lists(decoder, err));
    return pte_verify_plan(decoder, err);
}
