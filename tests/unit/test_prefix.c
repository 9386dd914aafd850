/* SPDX-License-Identifier: MIT */
/* Kept states: which one is found, what goes when, and that sharing a state damages none. Two
 * programs with mutable buffers, and a clock of the test. */
#include "config.h"

#include "runtime/sched/prefix.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/share.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sequence.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define COUNT 32

static uint64_t now_ns;

static uint64_t fake_clock(void)
{
    return now_ns;
}

struct world {
    bool has_more; /* of the last search */
    struct hal_device *device;
    struct rt_program *program, *chat;
    struct rt_prefixes *prefixes;
    atomic_bool is_closed;
    uint64_t client;
    uint32_t tokens[COUNT];
    struct error err;
};

static int open_world(void **state)
{
    static struct world world;
    struct world *w = &world;
    const struct hal_device_options one = {.workers = 1};
    *w = (struct world){0};
    now_ns = 1000;
    assert_ok(w->err, hal_device_open("cpu", &one, &w->device, &w->err));
    const struct rt_load_options programs = {.device = w->device};
    w->program = load_model("running", &programs);
    w->chat = load_model("chat/model", &programs);
    const struct rt_prefixes_options options = {
        .bytes_max = 1 << 20, .idle_ns = 100, .clock = fake_clock};
    assert_ok(w->err, rt_prefixes_new(&options, &w->prefixes, &w->err));
    for (uint32_t i = 0; i < COUNT; i++) {
        w->tokens[i] = 100 + i;
    }
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    rt_prefixes_free(w->prefixes);
    rt_program_unref(w->program);
    rt_program_unref(w->chat);
    hal_device_unref(w->device);
    return 0;
}

static struct rt_prefix_key key_of(const struct world *w, const char *owner, uint32_t count)
{
    return (struct rt_prefix_key){.method = rt_program_method(w->program, 0),
                                  .owner = owner,
                                  .tokens = w->tokens,
                                  .count = count,
                                  .client = w->client};
}

static void keep(struct world *w, const char *owner, uint32_t count, bool is_positional)
{
    struct rt_state *state;
    const struct rt_prefix_key key = key_of(w, owner, count);
    assert_ok(w->err, rt_state_new(w->program, &state, &w->err));
    rt_prefixes_keep(w->prefixes, &key, state, is_positional, &w->is_closed);
    rt_state_unref(state);
}

static uint32_t find(struct world *w, const char *owner, uint32_t count)
{
    struct rt_state *state = NULL;
    const struct rt_prefix_key key = key_of(w, owner, count);
    uint32_t found = rt_prefixes_find(w->prefixes, &key, &state, &w->has_more);
    assert_int_equal(found > 0, state != NULL);
    rt_state_unref(state);
    return found;
}

static uint32_t kept(const struct world *w)
{
    return rt_prefixes_load(w->prefixes).count;
}

static void test_longest(void **state)
{
    struct world *w = *state;
    assert_int_equal(find(w, "", COUNT), 0);
    keep(w, "", RT_PREFIX_TOKENS_MIN - 1, true); /* too few */
    assert_int_equal(kept(w), 0);
    keep(w, "", 10, true);
    assert_int_equal(find(w, "", COUNT), 10);
    assert_false(w->has_more);
    assert_int_equal(find(w, "", 10), 9); /* the last token is left for a call */
    assert_true(w->has_more);
    assert_int_equal(find(w, "", 8), 0);
    w->tokens[9]++; /* only the first 9 are the same */
    assert_int_equal(find(w, "", COUNT), 9);
    keep(w, "", 20, true);
    assert_int_equal(kept(w), 2);
    assert_int_equal(find(w, "", COUNT), 20);
    w->tokens[9]--;
    assert_int_equal(find(w, "", COUNT), 10);
    const struct rt_prefix_key other = {
        .method = rt_program_method(w->chat, 0), .owner = "", .tokens = w->tokens, .count = COUNT};
    struct rt_state *none;
    assert_int_equal(rt_prefixes_find(w->prefixes, &other, &none, &w->has_more), 0);
}

static void test_contained(void **state)
{
    struct world *w = *state;
    keep(w, "", 10, true);
    keep(w, "", 20, true); /* does for the one before */
    assert_int_equal(kept(w), 1);
    keep(w, "", 15, true); /* nothing new */
    assert_int_equal(kept(w), 1);
    assert_int_equal(find(w, "", COUNT), 20);
}

static void test_whole(void **state)
{
    struct world *w = *state;
    keep(w, "", 20, false);
    assert_int_equal(find(w, "", 20), 0); /* all of its tokens, and one more */
    assert_int_equal(find(w, "", 21), 20);
    keep(w, "", 20, false);
    assert_int_equal(kept(w), 1);
    keep(w, "", 10, false);
    assert_int_equal(kept(w), 2);
    assert_int_equal(find(w, "", 15), 10);
}

static void test_owners(void **state)
{
    struct world *w = *state;
    char name[RT_PREFIX_OWNER_MAX + 2];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    keep(w, "a", 20, true);
    keep(w, name, 20, true); /* too long a name keeps nothing */
    assert_int_equal(kept(w), 1);
    assert_int_equal(find(w, "b", COUNT), 0);
    assert_int_equal(find(w, "", COUNT), 0);
    assert_int_equal(find(w, "a", COUNT), 20);
}

/* The state that has not been used for longest goes first. */
static void test_bounds(void **state)
{
    struct world *w = *state;
    keep(w, "a", 20, true);
    size_t one = rt_prefixes_load(w->prefixes).bytes;
    assert_true(one >= 20 * sizeof(uint32_t));
    keep(w, "b", 20, true);
    keep(w, "c", 20, true);
    assert_int_equal(rt_prefixes_load(w->prefixes).bytes, 3 * one);
    assert_int_equal(find(w, "a", COUNT), 20);
    rt_prefixes_shrink(w->prefixes, 3 * one - 1);
    assert_int_equal(kept(w), 2);
    assert_int_equal(find(w, "b", COUNT), 0);
    rt_prefixes_shrink(w->prefixes, one);
    assert_int_equal(find(w, "c", COUNT), 0);
    assert_int_equal(find(w, "a", COUNT), 20);
    rt_prefixes_shrink(w->prefixes, 0);
    assert_int_equal(kept(w), 0);
    struct rt_prefixes *small;
    const struct rt_prefixes_options options = {2 * one, 100, fake_clock};
    assert_ok(w->err, rt_prefixes_new(&options, &small, &w->err));
    struct rt_prefixes *all = w->prefixes;
    w->prefixes = small;
    keep(w, "a", 20, true);
    keep(w, "b", 20, true);
    keep(w, "c", 20, true);
    assert_int_equal(kept(w), 2);
    assert_int_equal(find(w, "a", COUNT), 0);
    assert_int_equal(find(w, "c", COUNT), 20);
    rt_prefixes_free(small);
    w->prefixes = all;
}

static void keep_for(struct world *w, uint64_t client, const char *owner)
{
    w->client = client;
    keep(w, owner, 20, true);
}

/* A client has all while it is alone. Those who come later take from those who have more, and
 * nobody's last one goes for another's second. */
static void test_clients_share(void **state)
{
    struct world *w = *state;
    keep_for(w, 7, "a");
    size_t one = rt_prefixes_load(w->prefixes).bytes;
    struct rt_prefixes *small, *all = w->prefixes;
    const struct rt_prefixes_options options = {3 * one, 100, fake_clock};
    assert_ok(w->err, rt_prefixes_new(&options, &small, &w->err));
    w->prefixes = small;
    keep_for(w, 7, "a");
    keep_for(w, 7, "b");
    keep_for(w, 7, "c");
    assert_int_equal(kept(w), 3);
    keep_for(w, 8, "d");
    assert_int_equal(find(w, "a", COUNT), 0);
    keep_for(w, 8, "e"); /* two and two: none has more, so its own goes */
    assert_int_equal(find(w, "d", COUNT), 0);
    keep_for(w, 9, "f");
    assert_int_equal(find(w, "b", COUNT), 0);
    for (int i = 0; i < 10; i++) {
        char owner[16];
        snprintf(owner, sizeof(owner), "flood %d", i);
        keep_for(w, 7, owner);
    }
    assert_int_equal(find(w, "e", COUNT), 20);
    assert_int_equal(find(w, "f", COUNT), 20);
    keep_for(w, 10, "g"); /* one each: there is none for a fourth */
    assert_int_equal(find(w, "g", COUNT), 0);
    w->client = 8;
    keep(w, "e", COUNT, true); /* its chat goes on, and there is no room for the longer state */
    assert_int_equal(find(w, "e", COUNT), 20);
    struct share_stats stats;
    rt_prefixes_stats(small, &stats);
    assert_int_equal(stats.used, 3 * one);
    assert_int_equal(stats.most_held, one);
    assert_int_equal(stats.client_count, 3);
    assert_int_equal(stats.refused_count, 2);
    keep_for(w, SHARE_NOBODY, "flood 9"); /* none has more than nobody in particular */
    assert_int_equal(kept(w), 3);
    rt_prefixes_free(small);
    w->prefixes = all;
}

static void test_expiry(void **state)
{
    struct world *w = *state;
    assert_true(rt_prefixes_expire(w->prefixes) == RT_SCHED_NEVER);
    keep(w, "a", 20, true);
    now_ns += 60;
    keep(w, "b", 20, true);
    assert_int_equal(rt_prefixes_expire(w->prefixes), 1100);
    now_ns += 40;
    assert_int_equal(rt_prefixes_expire(w->prefixes), 1160);
    assert_int_equal(kept(w), 1);
    assert_int_equal(find(w, "b", COUNT), 20);
}

/* Small states stay few enough for a search. */
static void test_number(void **state)
{
    struct world *w = *state;
    char owner[16];
    for (int i = 0; i < RT_PREFIX_COUNT_MAX + 3; i++) {
        snprintf(owner, sizeof(owner), "%d", i);
        keep(w, owner, 20, true);
    }
    assert_int_equal(kept(w), RT_PREFIX_COUNT_MAX);
    assert_int_equal(find(w, "2", COUNT), 0);
    assert_int_equal(find(w, "3", COUNT), 20);
    assert_int_equal(find(w, owner, COUNT), 20);
}

static void test_closing(void **state)
{
    struct world *w = *state;
    keep(w, "", 20, true);
    rt_prefixes_close(w->prefixes, rt_program_method(w->chat, 0), &w->is_closed);
    assert_int_equal(kept(w), 1); /* another method */
    rt_prefixes_close(w->prefixes, rt_program_method(w->program, 0), &w->is_closed);
    assert_int_equal(kept(w), 0);
    keep(w, "", 20, true); /* a generation that ends late */
    assert_int_equal(kept(w), 0);
}

/* A new sequence takes the memory that it needs. */
static void test_giving_way(void **state)
{
    struct world *w = *state;
    size_t bytes = rt_program_state_bytes(w->program);
    keep(w, "", 20, true);
    size_t one = rt_prefixes_load(w->prefixes).bytes;
    const struct rt_sequences_options options = {.count_max = 8,
                                                 .bytes_max = 2 * bytes + 2 * one - 1,
                                                 .prefix_bytes_max = 1 << 20,
                                                 .idle_ns = 100,
                                                 .clock = fake_clock};
    struct rt_sequences *sequences;
    struct rt_sequence *first, *second;
    struct rt_prefixes *all = w->prefixes;
    assert_ok(w->err, rt_sequences_new(&options, &sequences, &w->err));
    w->prefixes = rt_sequences_prefixes(sequences);
    const struct rt_sequence_key first_key = {.program = w->program, .number = 1};
    const struct rt_sequence_key second_key = {.program = w->program, .number = 2};
    keep(w, "a", 20, true);
    keep(w, "b", 20, true);
    assert_int_equal(kept(w), 2);
    assert_ok(w->err, rt_sequences_open(sequences, &first_key, true, &first, &w->err));
    assert_ok(w->err, rt_sequences_open(sequences, &second_key, true, &second, &w->err));
    assert_int_equal(kept(w), 1);
    assert_int_equal(find(w, "b", COUNT), 20);
    rt_sequence_close(first);
    rt_sequence_close(second);
    rt_sequences_free(sequences);
    w->prefixes = all;
}

/* ---- pages of kept states -------------------------------------------------------------------- */

enum { NOTES = 512, NOTE_BYTES = 2 * NOTES * 32 * 4 };

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Fewer pages than four have nothing in common, and of the largest ones NOTES rows have no more. */
static void skip_if_pages_are_large(void)
{
    if (page_bytes() > (size_t)16 << 10) {
        skip();
    }
}

/* A state of "notebook" with NOTES rows; or one more with the content of |from|. */
static struct rt_state *write_notes(struct world *w, struct rt_program *notebook,
                                    struct rt_state *from)
{
    static const float rows[NOTES * 32] = {1};
    struct hal_pool *pool;
    struct rt_state *state;
    int64_t at = from ? NOTES : 0, n = from ? 1 : NOTES;
    const struct input inputs[] = {{DT_F32, {.rank = 2, .dims = {n, 32}}, rows},
                                   {DT_I64, {.rank = 1, .dims = {1}}, &at}};
    assert_ok(w->err, hal_pool_new(w->device, 1 << 20, &pool, &w->err));
    assert_ok(w->err, rt_state_new(notebook, &state, &w->err));
    if (from) {
        rt_state_share(state, from, RT_STATE_ALL_ROWS);
    }
    struct rt_method *method = rt_program_find_method(notebook, span_str("forward"));
    struct rt_invocation *inv = begin_call(method, pool, state, inputs, 2);
    assert_ok(w->err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &w->err));
    assert_int_equal(submit_and_wait(inv, false), ST_OK);
    rt_invocation_free(inv);
    hal_pool_free(pool);
    return state;
}

static size_t kept_bytes(const struct world *w)
{
    return rt_prefixes_load(w->prefixes).bytes;
}

/* Rows that a state has from a kept one count as long as it lives, also when that one has gone; one
 * of which most is in use does not go for the sake of memory, for that would free none. */
static void test_lent_pages_count(void **state)
{
    struct world *w = *state;
    skip_if_pages_are_large();
    const struct rt_load_options options = {.device = w->device};
    struct rt_program *notebook = load_model("notebook", &options);
    struct rt_state *kept_state = write_notes(w, notebook, NULL), *user, *next;
    const struct rt_prefix_key key = key_of(w, "", 20);
    rt_prefixes_keep(w->prefixes, &key, kept_state, true, &w->is_closed);
    size_t all = kept_bytes(w);
    assert_in_range(all, NOTE_BYTES, NOTE_BYTES + 4096);
    user = write_notes(w, notebook, kept_state);
    rt_state_unref(kept_state);
    assert_int_equal(kept_bytes(w), all);
    assert_int_equal(rt_prefixes_shrink(w->prefixes, 0), all);
    assert_int_equal(kept(w), 1);
    now_ns += 100;
    assert_true(rt_prefixes_expire(w->prefixes) != 0);
    assert_int_equal(kept(w), 0);
    assert_int_equal(kept_bytes(w), NOTE_BYTES);
    next = write_notes(w, notebook, user); /* has them by way of |user| */
    rt_state_unref(user);
    rt_prefixes_sweep(w->prefixes);
    assert_int_equal(kept_bytes(w), NOTE_BYTES);
    rt_state_unref(next);
    rt_prefixes_sweep(w->prefixes);
    assert_int_equal(kept_bytes(w), 0);
    rt_program_unref(notebook);
}

/* A kept state whose rows only other kept ones have goes after them. */
static void test_chains_give_way(void **state)
{
    struct world *w = *state;
    skip_if_pages_are_large();
    const struct rt_load_options options = {.device = w->device};
    struct rt_program *notebook = load_model("notebook", &options);
    struct rt_state *first = write_notes(w, notebook, NULL), *second;
    struct rt_prefix_key key = key_of(w, "a", 20);
    rt_prefixes_keep(w->prefixes, &key, first, true, &w->is_closed);
    second = write_notes(w, notebook, first);
    key.owner = "b";
    rt_prefixes_keep(w->prefixes, &key, second, true, &w->is_closed);
    rt_state_unref(first);
    rt_state_unref(second);
    assert_int_equal(kept(w), 2);
    assert_in_range(kept_bytes(w), NOTE_BYTES, NOTE_BYTES + 4 * page_bytes());
    size_t less = kept_bytes(w) - 1;
    assert_in_range(rt_prefixes_shrink(w->prefixes, less), NOTE_BYTES, less);
    assert_int_equal(kept(w), 1);
    assert_int_equal(rt_prefixes_shrink(w->prefixes, 0), 0);
    assert_int_equal(kept(w), 0);
    rt_program_unref(notebook);
}

/* Keeps two states of "notebook". The second one has pages of the first, and tokens that begin with
 * its, so only the second one is found. The caller has a reference to its state. */
static struct rt_state *keep_two_turns(struct world *w, struct rt_program *notebook)
{
    struct rt_state *first = write_notes(w, notebook, NULL), *second;
    struct rt_prefix_key key = key_of(w, "", 20);
    rt_prefixes_keep(w->prefixes, &key, first, true, &w->is_closed);
    second = write_notes(w, notebook, first);
    rt_state_unref(first);
    key.count = 30;
    rt_prefixes_keep(w->prefixes, &key, second, true, &w->is_closed);
    assert_int_equal(kept(w), 1);
    assert_in_range(kept_bytes(w), NOTE_BYTES, NOTE_BYTES + 4 * page_bytes());
    return second;
}

/* A dropped state goes with the last kept one that has pages of it, whyever that one goes. */
static void test_chains_go_at_once(void **state)
{
    struct world *w = *state;
    const struct rt_load_options options = {.device = w->device};
    for (int is_closing = 0; is_closing <= 1; is_closing++) {
        struct rt_program *notebook = load_model("notebook", &options);
        rt_state_unref(keep_two_turns(w, notebook));
        if (is_closing) {
            rt_prefixes_close(w->prefixes, rt_program_method(w->program, 0), &w->is_closed);
        } else {
            now_ns += 100;
            assert_true(rt_prefixes_expire(w->prefixes) == RT_SCHED_NEVER);
        }
        assert_int_equal(kept(w), 0);
        assert_int_equal(kept_bytes(w), 0);
        rt_program_unref(notebook);
    }
}

static size_t bytes_of_client(const struct world *w)
{
    struct share_stats stats;
    rt_prefixes_stats(w->prefixes, &stats);
    return stats.most_held;
}

/* All of a state counts that somebody has found, for he may get it when it has been dropped. Then
 * what he has got counts, for the client that the state was kept for, until he has gone, too. */
static void test_found_states_count(void **state)
{
    struct world *w = *state;
    skip_if_pages_are_large();
    const struct rt_load_options options = {.device = w->device};
    struct rt_program *notebook = load_model("notebook", &options);
    struct rt_state *kept_state = write_notes(w, notebook, NULL), *found, *user;
    w->client = 7;
    const struct rt_prefix_key key = key_of(w, "", 20), longer = key_of(w, "", 30);
    rt_prefixes_keep(w->prefixes, &key, kept_state, true, &w->is_closed);
    rt_state_unref(kept_state);
    size_t all = kept_bytes(w);
    assert_int_equal(rt_prefixes_find(w->prefixes, &longer, &found, &w->has_more), 20);
    assert_int_equal(rt_prefixes_shrink(w->prefixes, 0), all);
    assert_int_equal(kept(w), 1);
    now_ns += 100;
    assert_true(rt_prefixes_expire(w->prefixes) == RT_SCHED_NEVER);
    assert_int_equal(kept(w), 0);
    assert_int_equal(kept_bytes(w), all);
    assert_int_equal(bytes_of_client(w), all);
    user = write_notes(w, notebook, found);
    rt_prefixes_sweep(w->prefixes);
    assert_int_equal(kept_bytes(w), all);
    rt_state_unref(found);
    rt_prefixes_sweep(w->prefixes);
    assert_int_equal(kept_bytes(w), NOTE_BYTES);
    assert_int_equal(bytes_of_client(w), NOTE_BYTES);
    rt_state_unref(user);
    rt_prefixes_sweep(w->prefixes);
    assert_int_equal(kept_bytes(w), 0);
    assert_int_equal(bytes_of_client(w), 0);
    rt_program_unref(notebook);
}

/* A sequence does not get memory that others have in common with a kept state. */
static void test_lent_pages_bound_sequences(void **state)
{
    struct world *w = *state;
    skip_if_pages_are_large();
    const struct rt_load_options programs = {.device = w->device};
    struct rt_program *notebook = load_model("notebook", &programs);
    size_t bytes = rt_program_state_bytes_least(w->program);
    struct rt_state *from = write_notes(w, notebook, NULL), *user;
    const struct rt_prefix_key key = key_of(w, "", 20);
    rt_prefixes_keep(w->prefixes, &key, from, true, &w->is_closed);
    const struct rt_sequences_options options = {.count_max = 8,
                                                 .bytes_max = kept_bytes(w) + bytes - 1,
                                                 .prefix_bytes_max = 1 << 20,
                                                 .idle_ns = 100,
                                                 .clock = fake_clock};
    struct rt_sequences *sequences;
    struct rt_sequence *sequence;
    assert_ok(w->err, rt_sequences_new(&options, &sequences, &w->err));
    struct rt_prefixes *kept_ones = rt_sequences_prefixes(sequences);
    rt_state_unref(from);
    assert_int_equal(rt_prefixes_shrink(w->prefixes, 0), 0);
    from = write_notes(w, notebook, NULL);
    const struct rt_sequence_key id = {.program = w->program, .number = 1};
    rt_prefixes_keep(kept_ones, &key, from, true, &w->is_closed);
    user = write_notes(w, notebook, from);
    rt_state_unref(from);
    enum status status = rt_sequences_open(sequences, &id, true, &sequence, &w->err);
    assert_int_equal(status, ST_EXHAUSTED);
    rt_state_unref(user);
    assert_ok(w->err, rt_sequences_open(sequences, &id, true, &sequence, &w->err));
    assert_int_equal(rt_prefixes_load(kept_ones).count, 0);
    rt_sequence_close(sequence);
    rt_sequences_free(sequences);
    rt_program_unref(notebook);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(test_lent_pages_count),
        TEST(test_chains_give_way),
        TEST(test_chains_go_at_once),
        TEST(test_found_states_count),
        TEST(test_lent_pages_bound_sequences),
        TEST(test_longest),
        TEST(test_contained),
        TEST(test_whole),
        TEST(test_owners),
        TEST(test_bounds),
        TEST(test_clients_share),
        TEST(test_expiry),
        TEST(test_closing),
        TEST(test_giving_way),
        TEST(test_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
