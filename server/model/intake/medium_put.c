/* SPDX-License-Identifier: MIT */
/* Rows of media as inputs of a call, where the longest row says how long they are. */
#include "config.h"

#include "runtime/call/invocation.h"
#include "server/model/intake/medium.h"

enum status medium_put_sounds(const struct medium *medium, const struct medium_sound *sounds,
                              uint32_t count, struct rt_invocation *invocation,
                              struct shape *out_shape, struct error *err)
{
    uint64_t longest = 0;
    void *memory;
    size_t bytes;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t length = medium_sound_length(medium, &sounds[i]);
        longest = length > longest ? length : longest;
    }
    TRY(medium_shape(medium, count, longest, out_shape, err));
    TRY(rt_invocation_input(invocation, medium->input, DT_F32, out_shape, &memory, err));
    TRY(shape_bytes(out_shape, DT_F32, &bytes, err));
    for (uint32_t i = 0; i < count; i++) {
        float *row = (float *)memory + bytes / sizeof(float) / count * i;
        TRY(medium_write_sound(medium, &sounds[i], longest, row, err));
    }
    return ST_OK;
}

static enum status put_part(const struct medium *medium, enum medium_part part,
                            const struct texts_ids *ids, uint32_t count,
                            struct rt_invocation *invocation, const struct shape *shape,
                            struct error *err)
{
    uint64_t length = (uint64_t)shape->dims[shape->rank - 1];
    size_t row = (size_t)length * dtype_bytes(medium->dtypes[part]);
    void *memory;
    TRY(rt_invocation_input(invocation, medium->parts[part], medium->dtypes[part], shape, &memory,
                            err));
    for (uint32_t i = 0; i < count; i++) {
        medium_write_ids(medium, part, &ids[i], length, (uint8_t *)memory + row * i);
    }
    return ST_OK;
}

enum status medium_put_texts(const struct medium *medium, const struct texts_ids *ids,
                             uint32_t count, const bool are_given[MEDIUM_PARTS],
                             struct rt_invocation *invocation, struct shape *out_shape,
                             struct error *err)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        longest = ids[i].count > longest ? ids[i].count : longest;
    }
    TRY(medium_shape(medium, count, longest, out_shape, err));
    for (int part = 0; part < MEDIUM_PARTS; part++) {
        if (medium->parts[part] != MEDIUM_ABSENT && !are_given[part]) {
            TRY(put_part(medium, (enum medium_part)part, ids, count, invocation, out_shape, err));
        }
    }
    return ST_OK;
}
