/* SPDX-License-Identifier: MIT */
/*
 * The system shared memory extension of the Open Inference Protocol: requests about regions. Its
 * members are described in Triton's docs/protocol/extension_shared_memory.md.
 */
#include "config.h"

#include "protocol/oip_priv.h"

enum status oip_read_shared(const struct oip_reader *r, const struct json_string *key,
                            struct oip_shared *out, bool *out_is_read)
{
    *out_is_read = true;
    if (json_string_is(key, "shared_memory_region")) {
        out->is_given = true;
        TRY(oip_read_string(r, &out->region));
        return out->region.len ? ST_OK
                               : json_fail(r->in, r->err, ST_INVALID, "expected a region's name");
    }
    if (json_string_is(key, "shared_memory_offset")) {
        out->is_given = true;
        return json_read_u64(r->in, &out->offset, r->err);
    }
    if (json_string_is(key, "shared_memory_byte_size")) {
        out->is_given = out->has_bytes = true;
        return json_read_u64(r->in, &out->bytes, r->err);
    }
    *out_is_read = false;
    return ST_OK;
}

enum status oip_check_shared(const struct oip_reader *r, const struct oip_shared *shared)
{
    if (!shared->is_given || (shared->region.len && shared->has_bytes)) {
        return ST_OK;
    }
    return json_fail(r->in, r->err, ST_INVALID, "parameter \"shared_memory_%s\" is missing",
                     shared->region.len ? "byte_size" : "region");
}

static enum status read_region(const struct oip_reader *r, struct oip_region *out)
{
    bool has_bytes = false;
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        if (json_string_is(&key, "key")) {
            TRY(oip_read_string(r, &out->key));
        } else if (json_string_is(&key, "offset")) {
            TRY(json_read_u64(r->in, &out->offset, r->err));
        } else if (json_string_is(&key, "byte_size")) {
            has_bytes = true;
            TRY(json_read_u64(r->in, &out->bytes, r->err));
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
    if (!out->key.len || !has_bytes) {
        return json_fail(r->in, r->err, ST_INVALID, "member \"%s\" is missing",
                         out->key.len ? "byte_size" : "key");
    }
    return json_end(r->in, r->err);
}

enum status oip_parse_region(struct span body, const struct oip_limits *limits, struct arena *arena,
                             struct oip_region *out, struct error *err)
{
    struct json in;
    const struct oip_reader reader = {&in, limits, arena, err, false, false};
    json_init(&in, body);
    *out = (struct oip_region){.offset = 0};
    return read_region(&reader, out);
}
