/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/infer/infer_media.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "hal/pool.h"
#include "protocol/base64.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/model/intake/medium.h"
#include "server/process/offload.h"

#define BEHIND_BYTES 32

/* A file that becomes a row. */
struct infer_media_job {
    const struct medium *medium; /* of the call's model, which the call holds */
    struct call_item item;
    struct image_place *place; /* in the arena, or NULL */
    uint32_t position;         /* among the items of its input */
    bool is_list;
    uint8_t *row;
    size_t row_bytes;
    struct error err;
    size_t wanted;
};

struct infer_media_thread {
    struct offload_task task;
    struct infer *infer;
    uint32_t index; /* of its job */
    bool is_heavy;  /* the job is, and has not been done yet */
};

void infer_media_reset(struct infer_media *media)
{
    must(media->open == 0);
    media->is_read = media->is_late = false;
    media->began_ns = media->ended_ns = 0;
    media->jobs = NULL;
    media->threads = NULL;
    media->count = media->capacity = 0;
    media->wanted = 0;
    media->work = 0;
    atomic_store(&media->next, 0);
    atomic_store(&media->is_over, false);
}

static const struct model_io *input_at(const struct infer_call *call, uint32_t index)
{
    for (uint32_t i = 0; i < call->model->input_count; i++) {
        if (call->model->inputs[i].index == index) {
            return &call->model->inputs[i];
        }
    }
    unreachable();
}

/* ---- one file -------------------------------------------------------------------------------- */

static bool take(void *user, size_t bytes)
{
    return hal_pool_try_charge(user, bytes);
}

static void give(void *user, size_t bytes)
{
    hal_pool_discharge(user, bytes);
}

static struct medium_limits limits_of(const struct infer *infer)
{
    const struct params *params = infer->env->params;
    return (struct medium_limits){
        .image = {.pixels_max = params->image_pixels_max},
        .sound = {.seconds_max = params->sound_seconds_max,
                  .channels_max = (uint32_t)params->sound_channels_max,
                  .rate_max = (uint32_t)params->sound_rate_max},
    };
}

/* "data:image/png;base64," in front of the text, as pages make it. */
static struct span strip_scheme(struct span text)
{
    static const char scheme[] = "data:";
    size_t len = sizeof(scheme) - 1;
    const uint8_t *comma = text.len > len && memcmp(text.ptr, scheme, len) == 0
                               ? memchr(text.ptr, ',', text.len)
                               : NULL;
    return comma ? span_of(comma + 1, (size_t)(text.ptr + text.len - comma - 1)) : text;
}

static bool is_url(struct span text)
{
    static const char *const schemes[] = {"http:", "https:"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t len = strlen(schemes[i]);
        if (text.len > len && memcmp(text.ptr, schemes[i], len) == 0) {
            return true;
        }
    }
    return false;
}

/* A file as bytes. If they were decoded from base64, close_file() frees them. */
struct file {
    struct span bytes;
    uint8_t *owned;
};

static enum status open_file(const struct call_item *item, struct medium_reader *reader,
                             struct file *out, struct error *err)
{
    *out = (struct file){.bytes = item->data};
    if (item->encoding != CALL_BASE64) {
        return ST_OK;
    }
    struct span text = strip_scheme(item->data);
    size_t bytes = base64_bytes(text);
    if (is_url(text)) {
        return error_set(err, ST_INVALID, ": expected a file in base64, got a URL");
    }
    if (text.len != base64_text_bytes(bytes)) {
        return error_set(err, ST_INVALID, ": expected base64, got %zu characters of something else",
                         text.len);
    }
    if (!reader->account->take(reader->account->user, bytes)) {
        reader->wanted = bytes;
        return error_set(err, ST_EXHAUSTED, ": no memory now for a file of %zu bytes", bytes);
    }
    out->bytes.len = bytes;
    out->owned = malloc(bytes + 1);
    out->bytes.ptr = out->owned;
    return out->owned ? base64_decode(text, out->owned, bytes, err)
                      : error_set(err, ST_EXHAUSTED, ": out of memory");
}

static void close_file(struct file *file, const struct medium_reader *reader,
                       const struct call_item *item)
{
    bool is_counted = item->encoding == CALL_BASE64 && file->bytes.ptr != item->data.ptr;
    free(file->owned);
    if (is_counted) {
        reader->account->give(reader->account->user, file->bytes.len);
    }
}

/* Any thread. |work|, |work_max|: as of struct medium_reader. */
static enum status run_job(struct infer *infer, struct infer_media_job *job, uint64_t *work,
                           uint64_t work_max)
{
    const struct medium_limits limits = limits_of(infer);
    const struct medium_account account = {take, give, infer->pool};
    struct medium_reader reader = {.limits = &limits,
                                   .account = &account,
                                   .place = job->place,
                                   .work = *work,
                                   .work_max = work_max};
    struct file file;
    enum status status = open_file(&job->item, &reader, &file, &job->err);
    if (status == ST_OK) {
        status = medium_read(job->medium, file.bytes, &reader, job->row, job->row_bytes, &job->err);
    }
    close_file(&file, &reader, &job->item);
    job->wanted = reader.wanted;
    *work = reader.work;
    return status;
}

/* Puts the client's name for the item in front of the text. */
static enum status place(const struct infer_call *call, uint32_t index, bool is_list,
                         uint32_t position, struct error *err)
{
    char behind[BEHIND_BYTES] = "";
    int len = is_list ? snprintf(behind, sizeof(behind), "[%u]", position) : 0;
    bool is_joined = err->text[0] == ':' || err->text[0] == '[';
    snprintf(behind + len, sizeof(behind) - (size_t)len, "%s", is_joined ? "" : ": ");
    return call->codec->name_input(call, index, behind, err);
}

/* ---- rows of a known size -------------------------------------------------------------------- */

static enum status add_job(struct infer *infer, const struct infer_media_job *job,
                           struct error *err)
{
    struct infer_media *media = &infer->media;
    struct arena *arena = &infer->arena;
    if (!ARENA_ROOM(arena, media->jobs, media->capacity, media->count + 1)) {
        return arena_fail(arena, "the request", err);
    }
    media->jobs[media->count++] = *job;
    return ST_OK;
}

/* Runs a job of a list's call at once. */
static enum status run_now(struct infer *infer, const struct infer_call *call,
                           struct infer_media_job *job, struct error *err)
{
    uint64_t work_max = work_piece_max(&infer->work, infer->work.place);
    if (run_job(infer, job, &infer->media.work, work_max) == ST_OK) {
        return ST_OK;
    }
    *err = job->err;
    infer->media.wanted = job->wanted;
    return place(call, job->medium->input, job->is_list, job->position, err);
}

/* Room for the places of |count| rows, if answers are about these pictures; or else NULL. */
static enum status make_places(struct infer *infer, struct infer_call *call,
                               const struct medium *medium, uint32_t count,
                               struct image_place **out, struct error *err)
{
    struct arena *arena = &infer->arena;
    *out = NULL;
    if (medium != call->model->picture) {
        return ST_OK;
    }
    if (call->place_count != count) { /* otherwise they are of a try that was short of memory */
        call->places = arena_array(arena, count, sizeof(*call->places));
        call->place_count = call->places ? count : 0;
    }
    *out = call->places;
    return *out ? ST_OK : arena_fail(arena, "the request", err);
}

typedef enum status look_f(const struct medium *medium, struct span file,
                           struct medium_reader *reader, void *out, struct error *err);

static enum status measure(const struct medium *medium, struct span file,
                           struct medium_reader *reader, void *out_sides, struct error *err)
{
    return medium_measure(medium, file, reader, out_sides, err);
}

static enum status hold(const struct medium *medium, struct span file, struct medium_reader *reader,
                        void *out_held, struct error *err)
{
    return medium_hold(medium, file, reader, out_held, err);
}

/* One item without a row. */
static enum status look_at(struct infer *infer, const struct medium *medium,
                           const struct call_item *item, look_f *look, void *out, struct error *err)
{
    const struct medium_limits limits = limits_of(infer);
    const struct medium_account account = {take, give, infer->pool};
    struct medium_reader reader = {.limits = &limits,
                                   .account = &account,
                                   .work = infer->media.work,
                                   .work_max = work_piece_max(&infer->work, infer->work.place)};
    struct file file;
    enum status status = open_file(item, &reader, &file, err);
    if (status == ST_OK) {
        status = look(medium, file.bytes, &reader, out, err);
    }
    close_file(&file, &reader, item);
    infer->media.wanted = reader.wanted;
    infer->media.work = reader.work;
    return status;
}

/* The shape of |count| pictures. Where their size varies, the first one has it, and the others must
 * have it, too. */
static enum status shape_rows(struct infer *infer, struct infer_call *call,
                              const struct medium *medium, const struct call_item *items,
                              uint32_t count, bool is_list, struct shape *out, struct error *err)
{
    uint32_t first[2], sides[2];
    bool is_known = medium_is_fixed(medium);
    for (uint32_t i = 0; !is_known && i < count; i++) {
        if (look_at(infer, medium, &items[i], measure, sides, err) != ST_OK ||
            medium_compare(medium, i, sides, first, err) != ST_OK) {
            return place(call, medium->input, is_list, i, err);
        }
        memcpy(first, sides, sizeof(first));
    }
    enum status status = is_known || count == 0
                             ? medium_shape(medium, count, 0, out, err)
                             : medium_shape_sides(medium, count, first, out, err);
    return status == ST_OK ? ST_OK : call->codec->name_input(call, medium->input, ": ", err);
}

static enum status decode_rows(struct infer *infer, struct infer_call *call,
                               const struct medium *medium, const struct call_item *items,
                               uint32_t count, bool is_list, struct error *err)
{
    struct shape shape;
    struct image_place *places;
    void *memory;
    size_t bytes;
    bool is_alone = call == &infer->call;
    TRY(shape_rows(infer, call, medium, items, count, is_list, &shape, err));
    if (rt_invocation_input(call->invocation, medium->input, medium->io->dtype, &shape, &memory,
                            err) != ST_OK ||
        shape_bytes(&shape, medium->io->dtype, &bytes, err) != ST_OK) {
        return call->codec->name_input(call, medium->input, ": ", err);
    }
    TRY(make_places(infer, call, medium, count, &places, err));
    for (uint32_t i = 0; i < count; i++) {
        struct infer_media_job job = {.medium = medium,
                                      .item = items[i],
                                      .place = places ? &places[i] : NULL,
                                      .position = i,
                                      .is_list = is_list,
                                      .row = (uint8_t *)memory + bytes / count * i,
                                      .row_bytes = bytes / count};
        TRY(is_alone ? add_job(infer, &job, err) : run_now(infer, call, &job, err));
    }
    return ST_OK;
}

/* ---- rows as long as the longest one --------------------------------------------------------- */

static enum status decode_longest(struct infer *infer, struct infer_call *call,
                                  const struct medium *medium, const struct call_item *items,
                                  uint32_t count, bool is_list, struct error *err)
{
    const struct medium_account account = {take, give, infer->pool};
    const struct medium_reader reader = {.account = &account};
    struct arena *arena = &infer->arena;
    struct medium_held *held = arena_array(arena, count, sizeof(*held));
    enum status status = held ? ST_OK : arena_fail(arena, "the request", err);
    struct shape shape;
    uint32_t held_count = 0;
    for (; held_count < count && status == ST_OK; held_count++) {
        held[held_count] = (struct medium_held){.values = NULL};
        status = look_at(infer, medium, &items[held_count], hold, &held[held_count], err);
        if (status != ST_OK) {
            status = place(call, medium->input, is_list, held_count, err);
        }
    }
    if (status == ST_OK &&
        medium_put_held(medium, held, count, call->invocation, &shape, err) != ST_OK) {
        status = call->codec->name_input(call, medium->input, ": ", err);
    }
    for (uint32_t i = 0; i < held_count; i++) {
        medium_drop(&held[i], &reader);
    }
    return status;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Has the client given raw input |index| itself? */
static bool is_given(const struct infer_call *call, uint32_t index)
{
    const struct model_io *io = input_at(call, index);
    for (size_t i = 0; i < call->oip.input_count; i++) {
        if (rt_io_is_called(io->io, call->oip.inputs[i].name)) {
            return true;
        }
    }
    return call->tree.leaves && call->tree.leaves[index].encoding != CALL_ABSENT;
}

static enum status put_texts(struct infer_call *call, const struct medium *medium,
                             const struct texts_ids *ids, uint32_t count, struct error *err)
{
    bool are_given[MEDIUM_PARTS] = {false};
    struct shape shape;
    for (int part = MEDIUM_MASK; part < MEDIUM_PARTS; part++) {
        uint32_t index = medium->parts[part];
        are_given[part] = index != MEDIUM_ABSENT && is_given(call, index);
    }
    return medium_put_texts(medium, ids, count, are_given, call->invocation, &shape, err);
}

static enum status weigh_texts(struct infer *infer, const struct call_item *items, uint32_t count,
                               struct error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(work_add(&infer->work, items[i].data.len * (uint64_t)INFER_TEXT_WEIGHT, err));
    }
    return ST_OK;
}

static enum status decode_texts(struct infer *infer, struct infer_call *call,
                                const struct medium *medium, const struct call_item *items,
                                uint32_t count, bool is_list, struct error *err)
{
    struct arena *arena = &infer->arena;
    TRY(weigh_texts(infer, items, count, err));
    struct texts_ids *ids = arena_array(arena, count, sizeof(*ids));
    if (!ids) {
        return arena_fail(arena, "the request", err);
    }
    for (uint32_t i = 0; i < count; i++) {
        enum status status = json_is_utf8(items[i].data)
                                 ? medium_encode(medium, items[i].data, arena, &ids[i], err)
                                 : error_set(err, ST_INVALID, "expected a text in UTF-8");
        if (status != ST_OK) {
            return place(call, medium->input, is_list, i, err);
        }
        infer->cut_texts += ids[i].is_cut;
    }
    return put_texts(call, medium, ids, count, err) == ST_OK
               ? ST_OK
               : call->codec->name_input(call, medium->input, ": ", err);
}

/* ---- the steps of a request ------------------------------------------------------------------ */

void infer_media_start(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    media->began_ns = media->began_ns ? media->began_ns : uv_hrtime();
}

/* Later decoding steps of a request, such as for its next token, have no media. */
void infer_media_stop(struct infer *infer, bool is_done)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    if (media->began_ns == 0 || media->ended_ns > 0) {
        return;
    }
    media->ended_ns = is_done ? uv_hrtime() : 0;
    media->began_ns = is_done ? media->began_ns : 0;
}

uint64_t infer_media_ns(const struct infer_media *media)
{
    return media->ended_ns ? media->ended_ns - media->began_ns : 0;
}

typedef enum status decode_f(struct infer *infer, struct infer_call *call,
                             const struct medium *medium, const struct call_item *items,
                             uint32_t count, bool is_list, struct error *err);

enum status infer_media_decode(struct infer *infer, struct infer_call *call, uint32_t index,
                               const struct call_item *items, uint32_t count, bool is_list,
                               struct error *err)
{
    static decode_f *const ways[] = {[MEDIUM_ROWS] = decode_rows,
                                     [MEDIUM_LONGEST] = decode_longest,
                                     [MEDIUM_TEXTS] = decode_texts};
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct medium *medium = input_at(call, index)->medium;
    must(medium && call->invocation);
    TRY(work_leave_loop(&infer->work, err));
    infer_media_start(infer);
    return ways[medium_way(medium)](infer, call, medium, items, count, is_list, err);
}

bool infer_media_needs_threads(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return infer->media.count > 1;
}

enum status infer_media_read(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    if (media->count == 0) {
        return ST_OK;
    }
    must(media->count == 1);
    struct infer_media_job job = media->jobs[0];
    return run_now(infer, &infer->call, &job, err);
}

/* A job that turns out to be heavy is not done now: the loop gives it to a heavy task. */
static void on_work(uv_work_t *work)
{
    struct infer_media_thread *thread = work->data;
    struct infer_media *media = &thread->infer->media;
    enum work_place place = thread->is_heavy ? WORK_HEAVY : WORK_ON_THREAD;
    uint64_t max = work_piece_max(&thread->infer->work, place), bytes = 0;
    if (!thread->is_heavy) {
        thread->index = atomic_fetch_add(&media->next, 1);
    }
    thread->is_heavy = false;
    if (atomic_load(&media->is_over) || thread->index >= media->count) {
        return;
    }
    struct infer_media_job *job = &media->jobs[thread->index];
    enum status status = run_job(thread->infer, job, &bytes, max);
    if (status == ST_WOULD_BE_HEAVY) {
        job->err.code = ST_OK;
        thread->is_heavy = true;
    } else if (status != ST_OK) {
        atomic_store(&media->is_over, true);
    }
}

static void on_work_done(uv_work_t *work, int uv_status);

static void begin_job(struct infer_media_thread *thread)
{
    struct infer *infer = thread->infer;
    thread->task.client = infer->client->id;
    offload_begin_task(infer->env->offload, thread->is_heavy ? OFFLOAD_HEAVY : OFFLOAD_REQUEST,
                       &thread->task, on_work, on_work_done, infer_wait_due_ns(infer));
}

static void forget_waiting(struct infer *infer)
{
    struct infer_media *media = &infer->media;
    for (uint32_t i = 0; i < media->thread_count; i++) {
        media->open -= offload_forget_task(infer->env->offload, &media->threads[i].task);
    }
}

/* Other requests wait for the same threads, so each file waits for its turn. */
static void on_work_done(uv_work_t *work, int uv_status)
{
    struct infer_media_thread *thread = work->data;
    struct infer *infer = thread->infer;
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    must((uv_status == 0 || uv_status == UV_ETIMEDOUT) && media->open > 0);
    offload_end_task(infer->env->offload, &thread->task);
    if (uv_status == UV_ETIMEDOUT) {
        media->is_late = true;
        atomic_store(&media->is_over, true);
    }
    if (!atomic_load(&media->is_over) &&
        (thread->is_heavy || atomic_load(&media->next) < media->count)) {
        begin_job(thread);
        return;
    }
    media->open--;
    if (atomic_load(&media->is_over)) {
        forget_waiting(infer);
    }
    if (media->open == 0) {
        media->is_read = true;
        infer->env->go_on(infer);
    }
}

enum status infer_media_begin(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    struct arena *arena = &infer->arena;
    uint32_t most = infer->env->offload->threads;
    uint32_t count = media->count < most ? media->count : most;
    must(count > 0 && media->open == 0);
    media->threads = arena_array(arena, count, sizeof(*media->threads));
    if (!media->threads) {
        return arena_fail(arena, "the request", err);
    }
    media->thread_count = count;
    media->is_late = false;
    for (uint32_t i = 0; i < media->count; i++) {
        media->jobs[i].err.code = ST_OK;
    }
    atomic_store(&media->next, 0);
    atomic_store(&media->is_over, false);
    for (uint32_t i = 0; i < count; i++) {
        struct infer_media_thread *thread = &media->threads[i];
        *thread = (struct infer_media_thread){.infer = infer};
        offload_init_task(&thread->task, thread);
        media->open++;
        begin_job(thread);
    }
    return ST_OK;
}

bool infer_media_leave(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    must(media->open > 0);
    atomic_store(&media->is_over, true);
    forget_waiting(infer);
    return media->open == 0;
}

enum status infer_media_end(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct infer_media *media = &infer->media;
    must(media->open == 0 && media->is_read);
    media->is_read = false;
    if (media->is_late) {
        infer->job.started_ns = 0; /* of an earlier use */
        return infer_fail_late(infer, err);
    }
    for (uint32_t i = 0; i < media->count; i++) {
        struct infer_media_job *job = &media->jobs[i];
        if (job->err.code != ST_OK) {
            *err = job->err;
            media->wanted = job->wanted;
            return place(&infer->call, job->medium->input, job->is_list, job->position, err);
        }
    }
    return ST_OK;
}
