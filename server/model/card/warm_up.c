/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/card/warm_up.h"

#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "protocol/call.h"
#include "runtime/call/invocation.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "server/model/card/call_method.h"

#define ARENA_BYTES_MAX ((size_t)256 << 20)
#define POOL_BYTES_MAX ((size_t)4 << 30)
#define TEXT_BYTES_MAX ((size_t)16 << 20)

/* One call. */
struct warm_up {
    struct rt_method *method;
    struct arena arena;
    struct call_method call;
    struct call_request request;
    struct buf text; /* of a call whose card gives shapes only */
    struct rt_invocation *invocation;
    uv_sem_t done;
    enum status done_status;
};

/* ---- from shapes to a call ------------------------------------------------------------------- */

static enum status find_input(const struct rt_method *method, struct span name, uint32_t *out,
                              struct error *err)
{
    char names[NAMES_TEXT_MAX];
    uint32_t count = rt_method_input_count(method);
    for (*out = 0; *out < count; (*out)++) {
        const struct rt_io *io = rt_method_input(method, *out);
        if (rt_io_is_called(io, name) && io->kind == RT_IO_TENSOR) {
            return ST_OK;
        }
    }
    return error_set(err, ST_INVALID, "shapes: there is no tensor '%.*s', expected %s",
                     SPAN_SHORT(name), rt_names_print(method, RT_INPUT, names));
}

static enum status read_shape(struct json *in, struct shape *out, struct error *err)
{
    *out = (struct shape){.rank = 0};
    TRY(json_array(in, err));
    while (true) {
        uint64_t dim;
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(json_read_u64(in, &dim, err));
        if (out->rank == SHAPE_RANK_MAX || dim > INT32_MAX) {
            return json_fail(in, err, ST_INVALID, "expected at most %d dims of at most %d",
                             SHAPE_RANK_MAX, INT32_MAX);
        }
        out->dims[out->rank++] = (int64_t)dim;
    }
}

static enum status read_shapes(struct warm_up *w, struct span text, struct shape *given,
                               const struct shape **is_given, struct error *err)
{
    struct json in;
    json_init(&in, text);
    TRY(json_object(&in, err));
    while (true) {
        struct json_string key;
        uint32_t index;
        TRY(json_member(&in, &key, err));
        if (in.is_closed) {
            return ST_OK;
        }
        TRY(find_input(w->method, key.raw, &index, err)); /* no name needs an escape */
        TRY(read_shape(&in, &given[index], err));
        is_given[index] = &given[index];
    }
}

/* Writes the call with these shapes; the rest follows from them. */
static enum status write_call(struct warm_up *w, struct span text, struct error *err)
{
    uint32_t count = rt_method_input_count(w->method);
    struct shape *given = arena_array(&w->arena, (size_t)count + 1, sizeof(*given));
    struct shape *shapes = arena_array(&w->arena, (size_t)count + 1, sizeof(*shapes));
    const struct shape **is_given = arena_array(&w->arena, (size_t)count + 1, sizeof(*is_given));
    if (!given || !shapes || !is_given) {
        return arena_fail(&w->arena, "the call", err);
    }
    TRY(read_shapes(w, text, given, is_given, err));
    TRY(rt_example_shapes(w->method, is_given, shapes, err));
    call_print_example(&w->call, shapes, &w->text);
    return buf_failed(&w->text) ? error_no_memory(err, "the call") : ST_OK;
}

/* ---- the call -------------------------------------------------------------------------------- */

static enum status parse(struct warm_up *w, const struct card_warm_up *said, struct error *err)
{
    const struct call_limits limits = {
        .oip = {.json_depth_max = JSON_DEPTH_MAX,
                .name_bytes_max = CARD_BYTES_MAX,
                .tensor_bytes_max = POOL_BYTES_MAX},
        .element_count_max = INT32_MAX,
    };
    TRY(card_describe_call(&w->arena, w->method, &w->call, err));
    if (said->is_shapes) {
        TRY(write_call(w, said->text, err));
    }
    const struct oip_body body = {.json = said->is_shapes ? buf_span(&w->text) : said->text};
    return call_parse(&body, &w->call, &limits, &w->arena, &w->request, NULL, err);
}

static enum status set_tensor(struct warm_up *w, uint32_t index, const struct call_leaf *leaf,
                              struct tensor_nan *nan, struct error *err)
{
    enum dtype dtype = w->call.inputs[index].dtype;
    void *memory;
    if (leaf->stored != leaf->bytes) {
        return error_set(err, ST_UNSUPPORTED, ": expected a tensor without strides");
    }
    TRY(rt_invocation_input(w->invocation, index, dtype, &leaf->shape, &memory, err));
    return call_decode_leaf(leaf, dtype, nan, memory, err);
}

static enum status set_scalar(struct warm_up *w, uint32_t index, const struct call_leaf *leaf,
                              struct tensor_nan *nan, struct error *err)
{
    union {
        int64_t i;
        double f;
        uint8_t b;
    } value = {0};
    must(leaf->bytes <= sizeof(value));
    TRY(call_decode_leaf(leaf, w->call.inputs[index].dtype, nan, &value, err));
    switch (rt_method_input(w->method, index)->kind) {
    case RT_IO_INT:
        return rt_invocation_int(w->invocation, index, value.i, err);
    case RT_IO_FLOAT:
        return rt_invocation_float(w->invocation, index, value.f, err);
    case RT_IO_BOOL:
        return rt_invocation_bool(w->invocation, index, value.b != 0, err);
    default:
        unreachable(); /* these are the scalars */
    }
}

static enum status set_input(struct warm_up *w, uint32_t index, struct error *err)
{
    const struct call_leaf *leaf = &w->request.leaves[index];
    struct tensor_nan nan = {.takes_null = false};
    if (leaf->encoding == CALL_ABSENT) {
        return ST_OK;
    }
    switch (w->call.inputs[index].kind) {
    case CALL_TENSOR:
        return set_tensor(w, index, leaf, &nan, err);
    case CALL_SCALAR:
        return set_scalar(w, index, leaf, &nan, err);
    case CALL_STRING:
        return rt_invocation_string(w->invocation, index, leaf->data, err);
    case CALL_NONE:
        break;
    }
    return ST_OK;
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    struct warm_up *w = arg;
    w->done_status = status;
    uv_sem_post(&w->done);
}

static enum status call(struct warm_up *w, struct hal_pool *pool, struct error *err)
{
    TRY(rt_invocation_new(w->method, pool, &w->invocation, err));
    for (uint32_t i = 0; i < rt_method_input_count(w->method); i++) {
        if (set_input(w, i, err) != ST_OK) {
            return call_prefix(&w->call, &w->request.leaves[i], i, "", err);
        }
    }
    TRY(rt_invocation_prepare(w->invocation, RT_PREPARE_ALL, err));
    rt_invocation_submit(w->invocation, HAL_CALLER_WAITS, on_done, w);
    uv_sem_wait(&w->done);
    return w->done_status == ST_OK
               ? ST_OK
               : error_set(err, w->done_status, "%s", rt_invocation_error(w->invocation)->text);
}

static enum status run(struct rt_method *method, const struct card_warm_up *said,
                       struct hal_pool *pool, struct error *err)
{
    struct warm_up w = {.method = method};
    must(uv_sem_init(&w.done, 0) == 0);
    arena_init(&w.arena, ARENA_BYTES_MAX);
    buf_init(&w.text, TEXT_BYTES_MAX);
    enum status status = parse(&w, said, err);
    if (status == ST_OK) {
        status = call(&w, pool, err);
    }
    rt_invocation_free(w.invocation);
    buf_fini(&w.text);
    arena_fini(&w.arena);
    uv_sem_destroy(&w.done);
    return status == ST_OK ? ST_OK : card_blame(&said->place, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static enum status run_all(const struct card *card, struct rt_program *program,
                           struct hal_pool *pool, struct error *err)
{
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        const struct card_method *said = card_find_method(card, method);
        bool has_any = said && !rt_method_failure(method);
        for (uint32_t k = 0; has_any && k < said->warm_ups.count; k++) {
            TRY(run(method, &said->warm_ups.items[k], pool, err));
        }
    }
    return ST_OK;
}

static bool has_warm_ups(const struct card *card)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < card->method_count; i++) {
        count += card->methods[i].warm_ups.count;
    }
    return count > 0;
}

enum status card_warm_up(const struct card *card, struct rt_program *program,
                         struct hal_device *device, struct error *err)
{
    OBJ_CHECK(card, CARD_MAGIC);
    must(!card->is_settled);
    if (!has_warm_ups(card)) {
        return ST_OK;
    }
    struct hal_pool *pool;
    TRY(hal_pool_new_up_to(device, POOL_BYTES_MAX, &pool, err));
    enum status status = run_all(card, program, pool, err);
    hal_pool_free(pool);
    return status;
}
