/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/profile.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/array.h"
#include "base/check.h"
#include "hal/command.h"

#define PROFILE_MAGIC 0x9f0f17e5u

struct hal_profile {
    uint32_t magic;
    size_t span_max;
    struct hal_span *spans; /* a mapping */
    atomic_size_t taken;    /* may run past |span_max| */
    pthread_mutex_t lock;   /* guards what follows */
    struct hal_command **commands;
    size_t command_count, command_capacity;
};

static size_t spans_bytes(const struct hal_profile *profile)
{
    return profile->span_max * sizeof(*profile->spans);
}

enum status hal_profile_new(size_t span_max, struct hal_profile **out_profile, struct error *err)
{
    must(span_max > 0 && span_max <= HAL_PROFILE_SPANS_MAX);
    struct hal_profile *profile = calloc(1, sizeof(*profile));
    if (!profile) {
        return error_no_memory(err, "a profile");
    }
    profile->span_max = span_max;
    profile->spans = mmap(NULL, spans_bytes(profile), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (profile->spans == MAP_FAILED) {
        free(profile);
        return error_no_memory(err, "the %zu spans of a profile", span_max);
    }
    must(pthread_mutex_init(&profile->lock, NULL) == 0);
    profile->magic = PROFILE_MAGIC;
    *out_profile = profile;
    return ST_OK;
}

void hal_profile_free(struct hal_profile *profile)
{
    if (!profile) {
        return;
    }
    hal_profile_clear(profile);
    pthread_mutex_destroy(&profile->lock);
    munmap(profile->spans, spans_bytes(profile));
    free(profile->commands);
    profile->magic = 0;
    free(profile);
}

const struct hal_span *hal_profile_spans(const struct hal_profile *profile, size_t *out_count)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    size_t taken = atomic_load(&profile->taken);
    *out_count = taken < profile->span_max ? taken : profile->span_max;
    return profile->spans;
}

size_t hal_profile_lost(const struct hal_profile *profile)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    size_t taken = atomic_load(&profile->taken);
    return taken > profile->span_max ? taken - profile->span_max : 0;
}

void hal_profile_clear(struct hal_profile *profile)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    for (size_t i = 0; i < profile->command_count; i++) {
        hal_command_unref(profile->commands[i]);
    }
    profile->command_count = 0;
    atomic_store(&profile->taken, 0);
}

/* With the lock held. */
static bool is_kept(const struct hal_profile *profile, const struct hal_command *command)
{
    for (size_t i = 0; i < profile->command_count; i++) {
        if (profile->commands[i] == command) {
            return true;
        }
    }
    return false;
}

/* With the lock held. */
static bool keep(struct hal_profile *profile, struct hal_command *command)
{
    if (!ARRAY_ROOM(profile->commands, profile->command_capacity, profile->command_count + 1)) {
        return false;
    }
    profile->commands[profile->command_count++] = hal_command_ref(command);
    return true;
}

enum status hal_profile_keep(struct hal_profile *profile, struct hal_command *command,
                             struct error *err)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    pthread_mutex_lock(&profile->lock);
    bool is_done = is_kept(profile, command) || keep(profile, command);
    pthread_mutex_unlock(&profile->lock);
    return is_done ? ST_OK : error_no_memory(err, "a profile");
}

void hal_profile_add(struct hal_profile *profile, const struct hal_span *span)
{
    OBJ_CHECK(profile, PROFILE_MAGIC);
    must(span->begin_ns <= span->end_ns);
    size_t at = atomic_fetch_add_explicit(&profile->taken, 1, memory_order_relaxed);
    if (at < profile->span_max) {
        profile->spans[at] = *span;
    }
}

uint64_t hal_profile_now(void)
{
    struct timespec now;
    must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
