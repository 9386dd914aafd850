/* SPDX-License-Identifier: MIT */
/* Tensors whose bytes are in another file. A layout that differs from the program's is refused:
 * then the file is the wrong one, and only the key agrees by chance. */
#include "config.h"

#include "base/check.h"
#include "runtime/pte/pte.h"

#include "runtime/pte/pte_priv.h"

static enum status check_bytes(const struct pte_tensor *tensor, const struct pte_named_data *data,
                               struct error *err)
{
    const struct pte_layout *layout = data->layout;
    char stored[SHAPE_TEXT_MAX], wanted[SHAPE_TEXT_MAX];
    if (!layout) {
        return error_set(err, ST_CORRUPT, "'%.128s' is stored without a layout, so as no tensor",
                         data->key);
    }
    if (layout->scalar_type != tensor->scalar_type ||
        !shape_equal(&layout->shape, &tensor->shape)) {
        return error_set(err, ST_CORRUPT,
                         "'%.128s' is stored as type %d %s, the program wants type %d %s",
                         data->key, layout->scalar_type, shape_print(&layout->shape, stored),
                         tensor->scalar_type, shape_print(&tensor->shape, wanted));
    }
    if (memcmp(layout->dim_order, tensor->dim_order, tensor->shape.rank) != 0) {
        return error_set(err, ST_CORRUPT, "'%.128s' is stored in another order of dims", data->key);
    }
    if (data->bytes.len < tensor->byte_count) {
        return error_set(err, ST_CORRUPT, "'%.128s' is stored with %zu bytes, expected %zu",
                         data->key, data->bytes.len, tensor->byte_count);
    }
    return ST_OK;
}

static enum status link_tensor(struct pte_tensor *tensor, pte_lookup_f *lookup, void *user,
                               struct error *err)
{
    const struct pte_named_data *data;
    TRY(lookup(user, tensor->name, &data, err));
    TRY(check_bytes(tensor, data, err));
    tensor->bytes = span_of(data->bytes.ptr, tensor->byte_count);
    return ST_OK;
}

enum status pte_link(struct pte_program *program, pte_lookup_f *lookup, void *user,
                     struct error *err)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    for (struct pte_external *e = program->externals; e; e = e->next) {
        if (e->plan->failure || link_tensor(e->tensor, lookup, user, err) == ST_OK) {
            continue;
        }
        if (err->code == ST_EXHAUSTED) {
            return err->code;
        }
        struct error *failure = arena_alloc(&program->arena, sizeof(*failure));
        if (!failure) {
            return error_no_memory(err, "a program");
        }
        *failure = *err;
        e->plan->failure = failure;
    }
    return ST_OK;
}
