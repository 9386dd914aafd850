/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/io.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

#define NUMBER_BYTES 16

/* ---- of a method ----------------------------------------------------------------------------- */

/* Inputs or outputs of methods. */
struct side {
    const char *word;
    size_t (*count)(const struct pted_method *method);
    const struct pted_info *(*at)(const struct pted_method *method, size_t index);
};

/* WORD BEFORE OF BEHIND, in |arena|; NULL: no memory. */
static const char *print(struct arena *arena, const char *word, const char *before, const char *of,
                         const char *behind)
{
    size_t size = strlen(word) + strlen(before) + strlen(of) + strlen(behind) + 1;
    char *text = arena_alloc(arena, size);
    if (text) {
        snprintf(text, size, "%s%s%s%s", word, before, of, behind);
    }
    return text;
}

static enum dtype find_dtype(enum pted_dtype number)
{
    enum dtype dtype = DT_U8;
    bool is_known = dtype_from_executorch((int)number, &dtype);
    must(is_known); /* the library has no others */
    return dtype;
}

static enum status describe(const struct side *side, uint32_t index, const struct pted_info *info,
                            struct arena *arena, struct cli_io *out, struct error *err)
{
    char number[NUMBER_BYTES];
    snprintf(number, sizeof(number), "%u", index);
    *out = (struct cli_io){
        .kind = pted_info_kind(info),
        .name = pted_info_name(info),
        .alias = print(arena, side->word, "_", number, ""),
        .label = print(arena, side->word, " '", pted_info_name(info), "'"),
        .dtype = find_dtype(pted_info_dtype(info)),
        .shape.rank = (uint8_t)pted_info_rank(info),
        .is_fixed = pted_info_is_fixed(info),
    };
    for (uint32_t d = 0; d < out->shape.rank; d++) {
        out->shape.dims[d] = pted_info_dim(info, d);
        out->dynamic_dims |= (uint32_t)pted_info_dim_varies(info, d) << d;
    }
    return out->alias && out->label ? ST_OK : arena_fail(arena, "the method", err);
}

static enum status read_side(const struct side *side, const struct pted_method *method,
                             struct arena *arena, struct cli_io **out_ios, struct error *err)
{
    uint32_t count = (uint32_t)side->count(method);
    *out_ios = arena_array(arena, (size_t)count + 1, sizeof(**out_ios));
    if (!*out_ios) {
        return arena_fail(arena, "the method", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(describe(side, i, side->at(method, i), arena, &(*out_ios)[i], err));
    }
    return ST_OK;
}

enum status cli_io_read_inputs(const struct pted_method *method, struct arena *arena,
                               struct cli_io **out_ios, struct error *err)
{
    static const struct side inputs = {"input", pted_method_input_count, pted_method_input};
    return read_side(&inputs, method, arena, out_ios, err);
}

enum status cli_io_read_outputs(const struct pted_method *method, struct arena *arena,
                                struct cli_io **out_ios, struct error *err)
{
    static const struct side outputs = {"output", pted_method_output_count, pted_method_output};
    return read_side(&outputs, method, arena, out_ios, err);
}

/* ---- names ----------------------------------------------------------------------------------- */

bool cli_io_is_called(const struct cli_io *io, struct span name)
{
    return span_is(name, io->name) || span_is(name, io->alias);
}

/* A None has no name. */
static const char *name_at(const void *of, uint32_t index)
{
    const struct cli_io *io = (const struct cli_io *)of + index;
    return io->kind == PTED_KIND_NONE ? NULL : io->name;
}

const char *cli_io_print_names(const struct cli_io *ios, uint32_t count, char text[NAMES_TEXT_MAX])
{
    return names_print(name_at, ios, count, text);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

struct shape cli_shape_take(const struct pted_shape *shape)
{
    struct shape out = {.rank = (uint8_t)shape->rank};
    memcpy(out.dims, shape->dims, shape->rank * sizeof(out.dims[0]));
    return out;
}

struct pted_shape cli_shape_give(const struct shape *shape)
{
    struct pted_shape out = {.rank = shape->rank};
    memcpy(out.dims, shape->dims, shape->rank * sizeof(out.dims[0]));
    return out;
}
