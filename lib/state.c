/* SPDX-License-Identifier: MIT */
/* States, and the order of their calls: one runs, the others wait in a list. Whoever ends a call
 * begins the next one. */
#include "config.h"

#include <stdlib.h>

#include "lib/inside.h"
#include "runtime/program/state.h"

enum pted_status pted_state_new(struct pted_program *program, struct pted_state **out_state,
                                struct pted_error *err)
{
    OBJ_CHECK(program, LIB_PROGRAM_MAGIC);
    struct pted_state *state = calloc(1, sizeof(*state));
    struct error own;
    *out_state = NULL;
    if (!state) {
        return lib_give(error_no_memory(&own, "a state"), &own, err);
    }
    enum status status = rt_state_new(program->rt, &state->rt, &own);
    if (status != ST_OK) {
        free(state);
        return lib_give(status, &own, err);
    }
    state->magic = LIB_STATE_MAGIC;
    refs_init(&state->refs);
    state->program = lib_program_ref(program);
    list_init(&state->waiting);
    must(pthread_mutex_init(&state->mutex, NULL) == 0);
    *out_state = state;
    return PTED_OK;
}

struct pted_state *lib_state_ref(struct pted_state *state)
{
    OBJ_CHECK(state, LIB_STATE_MAGIC);
    refs_take(&state->refs);
    return state;
}

void pted_state_free(struct pted_state *state)
{
    if (!state) {
        return;
    }
    OBJ_CHECK(state, LIB_STATE_MAGIC);
    if (!refs_drop(&state->refs)) {
        return;
    }
    must(!state->is_busy && list_is_empty(&state->waiting));
    rt_state_unref(state->rt);
    pted_program_free(state->program);
    pthread_mutex_destroy(&state->mutex);
    state->magic = 0;
    free(state);
}

enum pted_status pted_state_reset(struct pted_state *state, struct pted_error *err)
{
    OBJ_CHECK(state, LIB_STATE_MAGIC);
    struct rt_state *fresh;
    struct error own;
    pthread_mutex_lock(&state->mutex);
    bool is_busy = state->is_busy;
    pthread_mutex_unlock(&state->mutex);
    if (is_busy) {
        return lib_refuse(err, ST_INVALID, "calls of the state are in flight: wait for them");
    }
    enum status status = rt_state_new(state->program->rt, &fresh, &own);
    if (status == ST_OK) {
        rt_state_unref(state->rt);
        state->rt = fresh;
    }
    return lib_give(status, &own, err);
}

size_t pted_state_bytes(const struct pted_state *state)
{
    OBJ_CHECK(state, LIB_STATE_MAGIC);
    return rt_state_bytes(state->rt);
}

/* ---- turns ----------------------------------------------------------------------------------- */

bool lib_state_take_turn(struct pted_state *state, struct pted_call *call)
{
    OBJ_CHECK(state, LIB_STATE_MAGIC);
    pthread_mutex_lock(&state->mutex);
    bool runs = !state->is_busy;
    if (!runs) {
        call->phase = LIB_PHASE_RUNNING;
        list_push_back(&state->waiting, &call->link);
    }
    state->is_busy = true;
    pthread_mutex_unlock(&state->mutex);
    return runs;
}

/* The call whose turn it is; NULL: none waits, or the turn of the last one is not over. */
static struct pted_call *next_call(struct pted_state *state)
{
    struct pted_call *next = NULL;
    pthread_mutex_lock(&state->mutex);
    if (state->is_turn_over && !list_is_empty(&state->waiting)) {
        next = LIST_ENTRY(state->waiting.next, struct pted_call, link);
        list_remove(&next->link);
    } else {
        state->is_busy = !state->is_turn_over;
        state->goes_on = false;
    }
    state->is_turn_over = false;
    pthread_mutex_unlock(&state->mutex);
    return next;
}

/* A loop and no recursion: a call may end while it begins, and so may the next one. Then this is
 * called within itself or on another thread, and leaves the next turn to the first caller. */
void lib_state_go_on(struct pted_state *state)
{
    OBJ_CHECK(state, LIB_STATE_MAGIC);
    pthread_mutex_lock(&state->mutex);
    bool is_first = !state->goes_on;
    state->goes_on = state->is_turn_over = true;
    pthread_mutex_unlock(&state->mutex);
    for (struct pted_call *call; is_first && (call = next_call(state)) != NULL;) {
        lib_call_begin_late(call);
    }
}
