/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/body.h"

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
    body_drop_precharge(body);
    hal_buffer_unref(body->buffer);
    body->buffer = NULL;
    body->ptr = NULL;
    body->len = body->capacity = body->announced = body->pad = 0;
}

static enum status use_small(struct body *body, struct error *err)
{
    if (!body->small) {
        body->small = malloc(BODY_SMALL_BYTES);
        if (!body->small) {
            return error_no_memory(err, "a request's body");
        }
    }
    body->ptr = body->small;
    body->capacity = BODY_SMALL_BYTES;
    return ST_OK;
}

static enum status check_max(const struct body *body, size_t len, struct error *err)
{
    if (len > body->max_bytes) {
        return error_set(err, ST_TOO_LARGE, "request body: %zu bytes, expected at most %zu", len,
                         body->max_bytes);
    }
    if (len > BODY_SMALL_BYTES && body->pool &&
        hal_pool_verify(body->pool, len, err) != ST_OK) { /* no client waits for it */
        return error_prefix(err, "request body: ");
    }
    return ST_OK;
}

enum status body_announce(struct body *body, size_t len, size_t json_bytes, struct error *err)
{
    must(body->len == 0 && !body->buffer);
    TRY(check_max(body, len, err));
    body->announced = len;
    body->pad = (BODY_ALIGN - json_bytes % BODY_ALIGN) % BODY_ALIGN;
    return ST_OK;
}

/* The greatest size that the body may reach. */
static size_t final_bytes(const struct body *body)
{
    return body->announced ? body->announced : body->max_bytes;
}

/* ---- growing in the pool --------------------------------------------------------------------- */

/* Moves the body to another place, where it has |capacity| bytes and may grow further. */
static enum status move_bytes(struct body *body, size_t capacity, size_t precharged,
                              struct error *err)
{
    struct hal_buffer *buffer;
    size_t replaced = body->buffer ? hal_buffer_size(body->buffer) : 0;
    TRY(hal_pool_reserve_growing(body->pool, body->pad + capacity, final_bytes(body) - capacity,
                                 replaced + precharged, &buffer, err));
    uint8_t *ptr = (uint8_t *)hal_buffer_map(buffer) + body->pad;
    if (body->len) {
        memcpy(ptr, body->ptr, body->len);
    }
    hal_buffer_unref(body->buffer);
    body->buffer = buffer;
    body->ptr = ptr;
    return ST_OK;
}

static enum status resize(struct body *body, size_t capacity, struct error *err)
{
    size_t more = capacity - (body->buffer ? body->capacity : 0);
    size_t precharged = more < body->precharged ? more : body->precharged;
    enum status status = body->buffer
                             ? hal_pool_resize(body->buffer, body->pad + capacity, precharged, err)
                             : ST_EXHAUSTED;
    if (status == ST_EXHAUSTED) {
        status = move_bytes(body, capacity, precharged + (body->buffer ? 0 : body->pad), err);
    }
    if (status == ST_OK) {
        body->capacity = capacity;
        body->precharged -= precharged;
        hal_pool_discharge(body->pool, precharged);
    }
    return status;
}

/* Makes room for at least |len| bytes in all, and for one step more if the pool has that. */
static enum status grow(struct body *body, size_t len, struct error *err)
{
    size_t wanted = len + BODY_STEP_BYTES;
    if (wanted > final_bytes(body)) {
        wanted = final_bytes(body);
    }
    if (!body->pool) {
        return error_set(err, ST_UNAVAILABLE, "request body: the device was lost");
    }
    enum status status = resize(body, wanted, err);
    if (status == ST_EXHAUSTED && wanted > len) {
        status = resize(body, len, err);
    }
    return status == ST_OK ? ST_OK : error_prefix(err, "request body: ");
}

bool body_precharge(struct body *body, bool is_forced)
{
    size_t reserved = body->buffer ? body->capacity : 0;
    must(body->announced > reserved && body->precharged == 0);
    size_t bytes = body->announced - reserved;
    if (!body->pool || (!is_forced && !hal_pool_try_charge(body->pool, bytes))) {
        return false;
    }
    if (is_forced) {
        hal_pool_charge(body->pool, bytes);
    }
    body->precharged = bytes;
    return true;
}

void body_drop_precharge(struct body *body)
{
    if (body->precharged) {
        hal_pool_discharge(body->pool, body->precharged);
        body->precharged = 0;
    }
}

/* Makes room for |len| bytes in all, announced ones included. */
static enum status make_room(struct body *body, size_t len, struct error *err)
{
    if (len <= body->capacity) {
        return ST_OK;
    }
    bool is_small = len <= BODY_SMALL_BYTES && !body->buffer && !body->precharged;
    return is_small ? use_small(body, err) : grow(body, len, err);
}

/* ---- arriving -------------------------------------------------------------------------------- */

enum status body_expect(const struct body *body, uint64_t bytes, struct error *err)
{
    size_t len;
    return check_max(body, add_size(body->len, bytes, &len) ? len : SIZE_MAX, err);
}

enum status body_add(struct body *body, struct span bytes, struct error *err)
{
    size_t len;
    TRY(body_expect(body, bytes.len, err));
    len = body->len + bytes.len;
    must(!body->announced || len <= body->announced);
    TRY(make_room(body, len, err));
    if (bytes.len && bytes.ptr != body->ptr + body->len) {
        memcpy(body->ptr + body->len, bytes.ptr, bytes.len);
    }
    body->len = len;
    return ST_OK;
}

uint8_t *body_room(struct body *body, size_t *out_len)
{
    struct error err;
    must(body->len < body->announced);
    *out_len = 0;
    if (make_room(body, body->len + 1, &err) != ST_OK) {
        return NULL;
    }
    size_t end = body->capacity < body->announced ? body->capacity : body->announced;
    *out_len = end - body->len;
    return body->ptr + body->len;
}

enum status body_settle(struct body *body, struct hal_pool *pool, struct error *err)
{
    if (!body->buffer) {
        return ST_OK;
    }
    body_drop_precharge(body);
    TRY(hal_pool_resize(body->buffer, body->pad + body->len, 0, err));
    body->capacity = body->len;
    return hal_pool_move(body->buffer, pool, err) == ST_OK ? ST_OK
                                                           : error_prefix(err, "request body: ");
}

size_t body_pool_bytes(const struct body *body)
{
    return body->buffer ? body->pad + body->capacity : 0;
}
