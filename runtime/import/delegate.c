/* SPDX-License-Identifier: MIT */
/* Calls of delegates, and the functions through which importers of payloads see the method around
 * them. */
#include "config.h"

#include "runtime/import/delegate.h"

#include "base/check.h"
#include "runtime/import/import_priv.h"
#include "runtime/pte/files.h"

/* Each call reads its payload again. */
#define DELEGATE_CALLS_MAX 4096

const struct pte_value *rt_delegate_arg(const struct rt_delegate_call *call, uint32_t index)
{
    const struct import *im = call->importer;
    must(index < call->arg_count);
    return &im->plan->values[im->instr->args[index]];
}

enum status rt_delegate_input(struct rt_delegate_call *call, uint32_t index, uint32_t *out_value)
{
    struct import *im = call->importer;
    must(index < call->arg_count);
    return rt_import_argument(im, im->instr->args[index], out_value);
}

/* Does |value| fit the file's declaration? Compares the type, the rank and the lower bounds of
 * dims. */
static bool fits_declared(const struct import *im, const struct rt_value *value,
                          const struct pte_tensor *t)
{
    if (value->kind != RT_TENSOR || value->dtype != t->dtype || value->rank != t->shape.rank) {
        return false;
    }
    for (uint8_t d = 0; d < value->rank; d++) {
        if (t->dynamism != PTE_DYNAMIC_UNBOUND &&
            rt_dim_lo(&im->graph->dims, value->dims[d]) > t->shape.dims[d]) {
            return false;
        }
    }
    return true;
}

enum status rt_delegate_output(struct rt_delegate_call *call, uint32_t index, uint32_t value)
{
    struct import *im = call->importer;
    const struct pte_value *declared = rt_delegate_arg(call, index);
    if (declared->kind == PTE_TENSOR &&
        (declared->tensor->storage == PTE_CONSTANT ||
         !fits_declared(im, &im->graph->values[value], declared->tensor))) {
        return error_set(im->err, ST_INVALID, "output %u does not fit what the program declares",
                         index);
    }
    return rt_import_publish(im, im->instr->args[index], value);
}

enum status rt_delegate_data(struct rt_delegate_call *call, struct span key, struct span *out_bytes)
{
    struct import *im = call->importer;
    const struct pte_named_data *data;
    TRY(rt_files_find(im->files, key, &data, im->err));
    *out_bytes = data->bytes;
    return ST_OK;
}

/* A row-major tensor whose content is the first bytes of |bytes|. */
static enum status describe_dense(enum dtype dtype, const struct shape *shape, struct span bytes,
                                  struct pte_tensor *out_tensor, struct error *err)
{
    struct pte_tensor t = {.dtype = dtype, .dynamism = PTE_STATIC, .shape = *shape, .name = ""};
    TRY(shape_bytes(shape, dtype, &t.byte_count, err));
    if (t.byte_count > bytes.len) {
        return error_set(err, ST_CORRUPT, "a constant needs %zu bytes, only %zu are there",
                         t.byte_count, bytes.len);
    }
    for (uint8_t d = 0; d < shape->rank; d++) {
        t.dim_order[d] = d;
    }
    t.bytes = span_of(bytes.ptr, t.byte_count);
    *out_tensor = t;
    return ST_OK;
}

enum status rt_delegate_constant(struct rt_delegate_call *call, enum dtype dtype,
                                 const struct shape *shape, struct span bytes, uint32_t *out_value)
{
    struct import *im = call->importer;
    struct pte_tensor t;
    TRY(describe_dense(dtype, shape, bytes, &t, im->err));
    return rt_import_constant(im, &t, out_value);
}

enum status rt_delegate_state(struct rt_delegate_call *call, uint32_t number, enum dtype dtype,
                              const struct shape *shape, struct span initial, uint32_t *out_value)
{
    struct import *im = call->importer;
    const struct rt_state_use *use = rt_import_find_own_state(im, im->instr->index, number);
    if (use) {
        return rt_import_use(im, use->index, out_value);
    }
    struct pte_tensor t;
    TRY(describe_dense(dtype, shape, initial, &t, im->err));
    return rt_import_own_state(im, im->instr->index, number, &t, out_value);
}

void rt_delegate_set_state(struct rt_delegate_call *call, uint32_t number, uint32_t value)
{
    struct import *im = call->importer;
    struct rt_state_use *use = rt_import_find_own_state(im, im->instr->index, number);
    must(use);
    use->is_written = true;
    rt_import_set(im, use->index, value);
}

enum status rt_import_delegate(struct import *im, const struct pte_instr *instr)
{
    const struct pte_delegate *delegate = &im->plan->delegates[instr->index];
    rt_import_delegate_f *import = rt_delegate_find(delegate->id);
    if (!import) {
        return error_set(im->err, ST_UNSUPPORTED, "delegate '%s' is not supported", delegate->id);
    }
    if (++im->delegate_calls > DELEGATE_CALLS_MAX) {
        return error_set(im->err, ST_TOO_LARGE, "more than %d delegate calls", DELEGATE_CALLS_MAX);
    }
    struct rt_delegate_call call = {
        .graph = im->graph,
        .delegate = delegate,
        .device = im->device,
        .arg_count = instr->arg_count,
        .err = im->err,
        .importer = im,
    };
    im->instr = instr;
    enum status status = import(&call);
    return status == ST_OK ? ST_OK : error_prefix(im->err, "%s, ", delegate->id);
}
