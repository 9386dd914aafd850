/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/body.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"

void body_init(struct body *body, struct hal_pool *pool, size_t max_bytes)
{
    *body = (struct body){.pool = pool, .max_bytes = max_bytes};
}

void body_fini(struct body *body)
{
    body_reset(body);
    free(body->small);
    body->small = NULL;
}

void body_reset(struct body *body)
{
    hal_buffer_unref(body->buffer);
    body->buffer = NULL;
    body->ptr = NULL;
    body->len = body->capacity = body->announced = 0;
}

static enum status use_small(struct body *body, struct error *err)
{
    if (!body->small) {
        body->small = malloc(BODY_SMALL_BYTES);
        if (!body->small) {
            return error_set(err, ST_EXHAUSTED, "request body: out of memory");
        }
    }
    body->ptr = body->small;
    body->capacity = BODY_SMALL_BYTES;
    return ST_OK;
}

/* Moves what is there into a reservation of |capacity| bytes that begin |pad| bytes into it. */
static enum status use_ring(struct body *body, size_t capacity, size_t pad, struct error *err)
{
    struct hal_buffer *buffer;
    if (!body->pool) {
        return error_set(err, ST_UNAVAILABLE, "request body: the device was lost");
    }
    if (hal_pool_reserve(body->pool, capacity + pad, &buffer, err) != ST_OK) {
        return error_prefix(err, "request body: ");
    }
    uint8_t *ptr = (uint8_t *)hal_buffer_map(buffer) + pad;
    if (body->len) {
        memcpy(ptr, body->ptr, body->len);
    }
    hal_buffer_unref(body->buffer);
    body->buffer = buffer;
    body->ptr = ptr;
    body->capacity = capacity;
    return ST_OK;
}

static enum status check_max(const struct body *body, size_t len, struct error *err)
{
    if (len > body->max_bytes) {
        return error_set(err, ST_TOO_LARGE, "request body: %zu bytes, expected at most %zu", len,
                         body->max_bytes);
    }
    return ST_OK;
}

enum status body_reserve(struct body *body, size_t len, size_t json_bytes, struct error *err)
{
    must(body->len == 0 && !body->buffer);
    TRY(check_max(body, len, err));
    body->announced = len;
    if (len <= BODY_SMALL_BYTES) {
        return use_small(body, err);
    }
    return use_ring(body, len, (BODY_ALIGN - json_bytes % BODY_ALIGN) % BODY_ALIGN, err);
}

enum status body_expect(const struct body *body, uint64_t bytes, struct error *err)
{
    size_t len;
    return check_max(body, add_size(body->len, bytes, &len) ? len : SIZE_MAX, err);
}

enum status body_add(struct body *body, struct span bytes, struct error *err)
{
    size_t len;
    if (!add_size(body->len, bytes.len, &len)) {
        len = SIZE_MAX;
    }
    TRY(check_max(body, len, err));
    if (len > body->capacity) {
        if (len <= BODY_SMALL_BYTES) {
            TRY(use_small(body, err));
        } else {
            size_t twice = len > body->max_bytes / 2 ? body->max_bytes : len * 2;
            TRY(use_ring(body, twice, 0, err));
        }
    }
    if (bytes.len && bytes.ptr != body->ptr + body->len) {
        memcpy(body->ptr + body->len, bytes.ptr, bytes.len);
    }
    body->len = len;
    return ST_OK;
}
