/* SPDX-License-Identifier: MIT */
/*
 * For tests of calls without a daemon: no socket, no request. A world lends a call what a request
 * lends it, and drives its steps, each at the place that it needs. Files are read by libuv's
 * threads; the test runs their loop.
 */
#ifndef PTED_TESTS_UNIT_INFER_SUPPORT_H
#define PTED_TESTS_UNIT_INFER_SUPPORT_H

#include <semaphore.h>

#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/regions.h"
#include "server/daemon/serving/serving.h"
#include "server/process/alarm.h"
#include "server/process/offload.h"

struct cJSON;

#define WORLD_ARGS_MAX 40
#define WORLD_FAILURES_MAX 4

struct world {
    char *args[WORLD_ARGS_MAX]; /* owned; the options borrow them */
    int arg_count;
    struct options options;
    struct serving *serving;
    uv_loop_t loop;
    struct alarm alarm; /* zeroed: nothing is due */
    struct offload offload;
    struct regions regions;
    struct seats seats;
    struct infer_env env;
    /* ---- what a request lends ---- */
    struct head head;
    struct body body;
    struct hal_pool *upload;
    struct buf out;
    struct http_client client;
    char name[MODEL_NAME_MAX + 1];
    /* ---- the call ---- */
    struct infer infer;
    sem_t run;  /* posted when the run is over */
    sem_t left; /* posted when what infer_leave() waits for is over */
    enum status run_status;
    bool is_parsed, is_unreleased;
    struct error err;
    /* ---- what the test looks at, since the last world_begin() ---- */
    struct buf events;                                      /* of a stream */
    uint32_t failures[WORLD_FAILURES_MAX], failure_count;   /* calls of a list that were reported */
    unsigned idle_notes, run_count, move_count, turn_count; /* moves: to another place */
    unsigned event_count;                                   /* times that events were sent */
    bool is_short; /* set by the test: when a run is submitted, others have all memory for runs */
    void (*meanwhile)(struct world *w); /* set by the test: called once a run is submitted */
    unsigned stop_after;    /* set by the test: runs after which the client goes; 0: it stays */
    struct hal_pool *other; /* of world_hold_memory() */
    size_t held_bytes;
};

/* Serves |models|, paths under tests/models/ that end with NULL, with a name and '=' in front if it
 * is not the file's. |options| are those of pted, likewise. */
void world_open(struct world *w, const char *const *models, const char *const *options);

/* The scheduler asserts that no queue is left, and the device that no memory is left. So the calls
 * have given all back. */
void world_close(struct world *w);

/* A field of the head of the next call. */
void world_add_field(struct world *w, const char *name, const char *value);

/* The head of a call of |name|; |query| with its "?", or "". Returns infer_begin(). */
int world_begin(struct world *w, const char *name, const char *query, const struct infer_ops *ops,
                const struct codec *codec);

/* The body, which is complete; no part of it has been received. */
void world_receive(struct world *w, struct span body);

/* The steps from PARSE to ENCODE, or until one fails, waits for memory or for a file, or the client
 * goes. A step that has waited begins again. With world_decode(), PARSE and DECODE alone. */
enum outcome world_go(struct world *w);
enum outcome world_decode(struct world *w);

/* What follows world_decode(). */
enum outcome world_run(struct world *w);

/* Begins and goes: the test expects the head to be fine. */
enum outcome world_ask(struct world *w, const char *name, const char *query,
                       const struct infer_ops *ops, const struct codec *codec, const char *body);

/* The whole answer of the call, text and tensors, in the arena of the call. */
struct span world_answer(struct world *w);

/* Is |text| in the answer, or in the events if there are some? */
bool world_says(struct world *w, const char *text);

/* The call is over. |http_status| for statistics; 0: none are counted. */
void world_end(struct world *w, int http_status);

/* Another call takes all memory that inputs are from, or gives it back. */
void world_hold_memory(struct world *w);
void world_give_memory(struct world *w);

/* A model that is there; the caller has a reference. */
struct model *world_model(struct world *w, const char *name);

/* The JSON file |path| under tests/models/. */
struct cJSON *world_read_json(const char *path);

#endif
