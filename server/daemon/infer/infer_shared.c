/* SPDX-License-Identifier: MIT */
/* Tensors of a request that lie in shared memory (server/daemon/infer/regions.h). */
#include "config.h"

#include "server/daemon/infer/infer_shared.h"

#include "base/check.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/regions.h"

struct infer_region {
    struct region *region; /* shared: ref held */
    struct infer_region *next;
};

enum status infer_shared_check(const struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    enum options_shared_memory mode = infer->env->options->shared_memory;
    if (mode != OPTIONS_SHARED_OFF && infer->client->is_local) {
        return ST_OK;
    }
    return error_set(err, ST_UNSUPPORTED, "shared memory: %s, see --shared-memory",
                     mode == OPTIONS_SHARED_OFF    ? "it is not in use here"
                     : mode == OPTIONS_SHARED_UNIX ? "it is for clients at a unix socket"
                                                   : "it is for clients at a unix socket or the "
                                                     "loopback address");
}

static struct region *find_held(const struct infer *infer, struct span name)
{
    for (const struct infer_region *held = infer->regions; held; held = held->next) {
        if (span_is(name, held->region->name)) {
            return held->region;
        }
    }
    return NULL;
}

/* The request holds the region from now on. */
static enum status find_region(struct infer *infer, struct span name, struct region **out_region,
                               struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    *out_region = find_held(infer, name);
    if (*out_region) {
        return ST_OK;
    }
    struct infer_region *held = arena_alloc(&infer->arena, sizeof(*held));
    if (!held) {
        return arena_fail(&infer->arena, "the request", err);
    }
    TRY(regions_find(infer->env->regions, name, &held->region, err));
    held->next = infer->regions;
    infer->regions = held;
    *out_region = held->region;
    return ST_OK;
}

void infer_shared_drop(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    for (; infer->regions; infer->regions = infer->regions->next) {
        region_unref(infer->regions->region);
    }
}

enum status infer_shared_read(struct infer *infer, const struct oip_shared *shared, void *dst,
                              size_t bytes, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(shared->is_given);
    struct region *region;
    TRY(find_region(infer, shared->region, &region, err));
    return region_read(region, shared->offset, dst, bytes, err);
}

/* ---- outputs --------------------------------------------------------------------------------- */

enum status infer_shared_note(struct infer *infer, struct infer_output *output,
                              const struct oip_shared *shared, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    must(shared->is_given && !output->region);
    TRY(find_region(infer, shared->region, &output->region, err));
    TRY(region_verify(output->region, shared->offset, shared->bytes, err));
    infer->has_shared_outputs = true;
    output->region_offset = shared->offset;
    output->region_bytes = (size_t)shared->bytes; /* as the region's, which an object has */
    return ST_OK;
}

/* The bytes that |result| has in binary form. */
static size_t measure(const struct oip_result *result)
{
    size_t bytes = result->type.is_bytes ? 0 : result->data.len;
    for (int64_t i = 0; result->type.is_bytes && i < shape_numel(&result->shape); i++) {
        bytes += oip_string_bytes(result->strings[i]);
    }
    return bytes;
}

static enum status write_strings(const struct infer_output *output, const struct oip_result *result,
                                 struct error *err)
{
    uint64_t at = output->region_offset;
    for (int64_t i = 0; i < shape_numel(&result->shape); i++) {
        struct span text = result->strings[i];
        const uint8_t prefix[4] = {(uint8_t)text.len, (uint8_t)(text.len >> 8),
                                   (uint8_t)(text.len >> 16), (uint8_t)(text.len >> 24)};
        must(text.len <= UINT32_MAX);
        TRY(region_write(output->region, at, prefix, sizeof(prefix), err));
        TRY(region_write(output->region, at + sizeof(prefix), text.ptr, text.len, err));
        at += sizeof(prefix) + text.len;
    }
    return ST_OK;
}

enum status infer_shared_write(struct infer_output *output, const struct oip_result *result,
                               struct error *err)
{
    must(output->region != NULL);
    size_t bytes = measure(result);
    enum status status;
    if (bytes > output->region_bytes) {
        status = error_set(err, ST_INVALID, "shared_memory_byte_size is %zu, expected at least %zu",
                           output->region_bytes, bytes);
    } else if (result->type.is_bytes) {
        status = write_strings(output, result, err);
    } else {
        status = region_write(output->region, output->region_offset, result->data.ptr, bytes, err);
    }
    output->region_bytes = bytes;
    return status == ST_OK ? ST_OK : error_prefix(err, "output '%.64s': ", output->name);
}
