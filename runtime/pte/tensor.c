/* SPDX-License-Identifier: MIT */
/*
 * Tensors: element type, shape, order of dims, and the place of the bytes. An element type or form
 * that this build lacks makes the method unsupported; only a contradiction makes the file corrupt.
 */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>

#include "runtime/pte/limits.h"
#include "runtime/pte/pte_priv.h"
#include "runtime/pte/schema.h"

#define SCALAR_TYPE_MAX 29

/* The fields of the tensor's side tables. */
struct placement {
    bool is_planned;
    uint32_t memory_id;
    uint32_t offset_low, offset_high;
    uint32_t data_index;
    uint64_t mutable_list;
    int8_t location;
};

static enum status decode_sizes(struct pte_decoder *decoder, struct flatbuf_vector sizes,
                                struct shape *shape, struct error *err)
{
    if (sizes.count > SHAPE_RANK_MAX) {
        return error_set(err, ST_CORRUPT, "sizes: %" PRIu32 " dims, at most %d are possible",
                         sizes.count, SHAPE_RANK_MAX);
    }
    shape->rank = (uint8_t)sizes.count;
    for (uint32_t i = 0; i < sizes.count; i++) {
        int32_t size = flatbuf_i32_at(&decoder->fb, sizes, i);
        if (size < 0) {
            return error_set(err, ST_CORRUPT,
                             "sizes: dim %" PRIu32 " is %" PRId32 ", expected 0 or more", i, size);
        }
        shape->dims[i] = size;
    }
    return ST_OK;
}

static enum status decode_dim_order(struct pte_decoder *decoder, struct flatbuf_vector order,
                                    uint8_t rank, uint8_t out_order[SHAPE_RANK_MAX],
                                    struct error *err)
{
    uint32_t seen = 0;
    if (order.count != rank) {
        return error_set(err, ST_CORRUPT, "dim_order: %" PRIu32 " entries for %u dims", order.count,
                         rank);
    }
    for (uint32_t i = 0; i < order.count; i++) {
        uint8_t dim = flatbuf_u8_at(&decoder->fb, order, i);
        if (dim >= rank || (seen & 1u << dim)) {
            return error_set(err, ST_CORRUPT,
                             "dim_order: entry %" PRIu32 " is %u, expected each of 0 to %d once", i,
                             dim, rank - 1);
        }
        seen |= 1u << dim;
        out_order[i] = dim;
    }
    return ST_OK;
}

enum status pte_decode_dims(struct pte_decoder *decoder, const struct flatbuf_table *table,
                            struct flatbuf_field sizes, struct flatbuf_field dim_order,
                            struct shape *out_shape, uint8_t out_order[SHAPE_RANK_MAX],
                            struct error *err)
{
    struct flatbuf_vector vector;
    TRY(pte_decode_required(decoder, table, sizes, 4, UINT32_MAX, &vector, err));
    TRY(decode_sizes(decoder, vector, out_shape, err));
    TRY(flatbuf_vector(&decoder->fb, table, dim_order, 1, &vector, err));
    return decode_dim_order(decoder, vector, out_shape->rank, out_order, err);
}

static const char *foreign_type_name(int number)
{
    switch (number) {
    case 12:
    case 13:
    case 14:
    case 16:
    case 17:
        return "quantized";
    case 23:
    case 24:
    case 25:
    case 26:
        return "8-bit float";
    default:
        return "bits";
    }
}

static enum status decode_type(struct pte_decoder *decoder, const struct flatbuf_table *table,
                               struct pte_tensor *tensor, bool *out_known, struct error *err)
{
    TRY(flatbuf_i8(&decoder->fb, table, tensor_scalar_type, &tensor->scalar_type, err));
    if (tensor->scalar_type < 0 || tensor->scalar_type > SCALAR_TYPE_MAX) {
        return error_set(err, ST_CORRUPT, "scalar_type: %d, expected 0 to %d", tensor->scalar_type,
                         SCALAR_TYPE_MAX);
    }
    *out_known = dtype_from_executorch(tensor->scalar_type, &tensor->dtype);
    return *out_known
               ? ST_OK
               : pte_decode_unsupported(decoder, err, "it has tensors of element type %d (%s)",
                                        tensor->scalar_type,
                                        foreign_type_name(tensor->scalar_type));
}

/* Fields that have one value in every program that this build can run. */
static enum status decode_rarities(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                   struct pte_tensor *tensor, struct error *err)
{
    int32_t storage_offset = 0;
    int8_t layout = 0, dynamism = 0;
    TRY(flatbuf_i32(&decoder->fb, table, tensor_storage_offset, &storage_offset, err));
    TRY(flatbuf_i8(&decoder->fb, table, tensor_layout, &layout, err));
    TRY(flatbuf_i8(&decoder->fb, table, tensor_shape_dynamism, &dynamism, err));
    if (storage_offset != 0) {
        return error_set(err, ST_CORRUPT, "storage_offset: %" PRId32 ", expected 0",
                         storage_offset);
    }
    if (dynamism < PTE_STATIC || dynamism > PTE_DYNAMIC_UNBOUND) {
        return error_set(err, ST_CORRUPT, "shape_dynamism: %d, expected 0 to 2", dynamism);
    }
    tensor->dynamism = (enum pte_dynamism)dynamism;
    if (layout != 0) {
        TRY(pte_decode_unsupported(decoder, err,
                                   "it has tensors of layout %d, expected 0 (strided)", layout));
    }
    return ST_OK;
}

static enum status decode_extra(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                struct pte_tensor *tensor, struct placement *placement,
                                struct error *err)
{
    struct flatbuf_table extra;
    int8_t device = 0;
    bool found;
    tensor->name = "";
    TRY(flatbuf_table(&decoder->fb, table, tensor_extra_tensor_info, &extra, &found, err));
    if (!found) {
        return ST_OK;
    }
    TRY(flatbuf_u64(&decoder->fb, &extra, extra_mutable_data_segments_idx, &placement->mutable_list,
                    err));
    TRY(pte_decode_text(decoder, &extra, extra_fully_qualified_name, PTE_NAME_MAX, &tensor->name,
                        err));
    TRY(flatbuf_i8(&decoder->fb, &extra, extra_location, &placement->location, err));
    TRY(flatbuf_i8(&decoder->fb, &extra, extra_device_type, &device, err));
    if (placement->location != 0 && placement->location != 1) {
        return error_set(err, ST_CORRUPT, "location: %d, expected 0 (segment) or 1 (external)",
                         placement->location);
    }
    if (device != 0) {
        return pte_decode_unsupported(decoder, err,
                                      "it has tensors on device type %d, expected 0 (CPU)", device);
    }
    return ST_OK;
}

static enum status decode_placement(struct pte_decoder *decoder, const struct flatbuf_table *table,
                                    struct pte_tensor *tensor, struct placement *placement,
                                    struct error *err)
{
    struct flatbuf_table allocation;
    TRY(decode_extra(decoder, table, tensor, placement, err));
    TRY(flatbuf_u32(&decoder->fb, table, tensor_data_buffer_idx, &placement->data_index, err));
    TRY(flatbuf_table(&decoder->fb, table, tensor_allocation_info, &allocation,
                      &placement->is_planned, err));
    if (!placement->is_planned) {
        return ST_OK;
    }
    TRY(flatbuf_u32(&decoder->fb, &allocation, allocation_memory_id, &placement->memory_id, err));
    TRY(flatbuf_u32(&decoder->fb, &allocation, allocation_memory_offset_low, &placement->offset_low,
                    err));
    return flatbuf_u32(&decoder->fb, &allocation, allocation_memory_offset_high,
                       &placement->offset_high, err);
}

static enum status place_in_memory(const struct pte_decoder *decoder,
                                   const struct placement *placement, struct pte_tensor *tensor,
                                   struct error *err)
{
    const struct pte_plan *plan = decoder->plan;
    if (placement->memory_id == 0 || placement->memory_id > plan->memory_count) {
        return error_set(err, ST_CORRUPT,
                         "memory_id: %" PRIu32 ", expected 1 to %" PRIu32 " as planned",
                         placement->memory_id, plan->memory_count);
    }
    tensor->memory = placement->memory_id - 1;
    tensor->offset = (uint64_t)placement->offset_high << 32 | placement->offset_low;
    uint64_t size = plan->memory_bytes[tensor->memory];
    if (!in_range(tensor->offset, tensor->byte_count, size)) {
        return error_set(err, ST_CORRUPT,
                         "memory_offset: %zu bytes at %" PRIu64 " of memory %" PRIu32
                         ", which has %" PRIu64,
                         tensor->byte_count, tensor->offset, placement->memory_id, size);
    }
    if (tensor->offset % dtype_bytes(tensor->dtype) != 0) {
        return error_set(err, ST_CORRUPT, "memory_offset: %" PRIu64 " is not aligned for %s",
                         tensor->offset, dtype_text(tensor->dtype));
    }
    return ST_OK;
}

static enum status find_inline_bytes(struct pte_decoder *decoder, uint32_t index,
                                     struct pte_tensor *tensor, struct error *err)
{
    const struct flatbuf_vector *buffers = &decoder->constants.buffers;
    struct flatbuf_table buffer;
    struct span bytes;
    if (index >= buffers->count) {
        return error_set(err, ST_CORRUPT, "data_buffer_idx: constant %" PRIu32 " of %" PRIu32,
                         index, buffers->count);
    }
    TRY(flatbuf_table_at(&decoder->fb, *buffers, index, &buffer, err));
    TRY(flatbuf_bytes(&decoder->fb, &buffer, buffer_storage, &bytes, err));
    if (bytes.len < tensor->byte_count) {
        return error_set(err, ST_CORRUPT,
                         "data_buffer_idx: constant %" PRIu32 " has %zu bytes, expected %zu", index,
                         bytes.len, tensor->byte_count);
    }
    tensor->bytes = tensor->byte_count ? span_of(bytes.ptr, tensor->byte_count)
                                       : span_of(decoder->fb.bytes.ptr, 0);
    return ST_OK;
}

static enum status find_segment_bytes(const struct pte_decoder *decoder,
                                      const struct pte_constants *constants, uint32_t index,
                                      struct pte_tensor *tensor, struct error *err)
{
    if (index >= constants->offsets.count) {
        return error_set(err, ST_CORRUPT, "data_buffer_idx: constant %" PRIu32 " of %" PRIu32,
                         index, constants->offsets.count);
    }
    uint64_t offset = flatbuf_u64_at(&decoder->fb, constants->offsets, index);
    if (!in_range(offset, tensor->byte_count, constants->segment.len)) {
        return error_set(err, ST_CORRUPT,
                         "data_buffer_idx: constant %" PRIu32 " is %zu bytes at %" PRIu64
                         " of a segment of %zu",
                         index, tensor->byte_count, offset, constants->segment.len);
    }
    tensor->bytes = span_of(constants->segment.ptr + offset, tensor->byte_count);
    return ST_OK;
}

/* Initial bytes of planned memory, or a constant; index 0 means none. */
static enum status find_bytes(struct pte_decoder *decoder, const struct placement *placement,
                              struct pte_tensor *tensor, struct error *err)
{
    if (tensor->storage == PTE_PLANNED) {
        if (placement->mutable_list != 0) {
            return error_set(err, ST_CORRUPT, "mutable_data_segments_idx: %" PRIu64 ", expected 0",
                             placement->mutable_list);
        }
        return find_segment_bytes(decoder, &decoder->mutables, placement->data_index, tensor, err);
    }
    if (decoder->constants.offsets.count > 0) {
        return find_segment_bytes(decoder, &decoder->constants, placement->data_index, tensor, err);
    }
    return find_inline_bytes(decoder, placement->data_index, tensor, err);
}

/* pte_link() finds the bytes later. */
static enum status note_external(struct pte_decoder *decoder, struct pte_tensor *tensor,
                                 struct error *err)
{
    struct pte_external *external = pte_decode_array(decoder, 1, sizeof(*external), err);
    if (!external) {
        return err->code;
    }
    if (!*tensor->name) {
        return error_set(err, ST_CORRUPT, "fully_qualified_name: missing for an external tensor");
    }
    *external = (struct pte_external){decoder->externals, tensor, decoder->plan};
    decoder->externals = external;
    return ST_OK;
}

static enum status decode_storage(struct pte_decoder *decoder, const struct placement *placement,
                                  struct pte_tensor *tensor, struct error *err)
{
    tensor->is_external = placement->location == 1;
    tensor->storage = placement->is_planned                               ? PTE_PLANNED
                      : tensor->is_external || placement->data_index != 0 ? PTE_CONSTANT
                                                                          : PTE_UNBOUND;
    if (placement->is_planned) {
        TRY(place_in_memory(decoder, placement, tensor, err));
    }
    if (tensor->is_external) {
        return note_external(decoder, tensor, err);
    }
    return placement->data_index ? find_bytes(decoder, placement, tensor, err) : ST_OK;
}

enum status pte_decode_tensor(struct pte_decoder *decoder, const struct flatbuf_table *table,
                              const struct pte_tensor **out_tensor, struct error *err)
{
    struct pte_tensor *tensor = pte_decode_array(decoder, 1, sizeof(*tensor), err);
    if (!tensor) {
        return err->code;
    }
    struct placement placement = {0};
    bool is_known;
    *out_tensor = tensor;
    TRY(decode_type(decoder, table, tensor, &is_known, err));
    TRY(pte_decode_dims(decoder, table, tensor_sizes, tensor_dim_order, &tensor->shape,
                        tensor->dim_order, err));
    TRY(decode_rarities(decoder, table, tensor, err));
    TRY(decode_placement(decoder, table, tensor, &placement, err));
    if (!is_known) {
        return ST_OK; /* the number of bytes is unknown as well */
    }
    if (shape_bytes(&tensor->shape, tensor->dtype, &tensor->byte_count, err) != ST_OK) {
        err->code = ST_CORRUPT;
        return error_prefix(err, "sizes: ");
    }
    return decode_storage(decoder, &placement, tensor, err);
}
