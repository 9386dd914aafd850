/* SPDX-License-Identifier: MIT */
/*
 * Who gets a place for a connection, and who gives one up. The sessions are no more than what a
 * place is charged to: they have no transport.
 */
#include "config.h"

#include "server/daemon/connection/places.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/session.h"
#include "server/daemon/loop/loop.h"
#include "server/http/transport.h"

#define SESSIONS_MAX 256

static struct loop loop;
static struct conns conns;
static struct transport transport;
static struct session sessions[SESSIONS_MAX];
static unsigned session_count, left_count;
static struct session *last_left, *last_aborted;
static bool is_unquiet; /* all of them have sent something that nobody has seen */

static void enter(struct session *session, enum session_state state)
{
    session->state = state;
    places_note_state(&conns.places, session);
}

static void leave(struct session *session)
{
    left_count++;
    last_left = session;
    enter(session, SESSION_CLOSING);
}

static void do_abort(struct session *session)
{
    last_aborted = session;
    enter(session, SESSION_CLOSING);
}

static bool is_quiet(const struct session *session)
{
    (void)session;
    return !is_unquiet;
}

static const struct session_ops ops = {.abort = do_abort, .leave = leave, .is_quiet = is_quiet};

static struct session *new_session(uint64_t client, enum listener_role role)
{
    assert_true(session_count < SESSIONS_MAX);
    struct session *session = &sessions[session_count++];
    *session = (struct session){.magic = SESSION_MAGIC,
                                .ops = &ops,
                                .conns = &conns,
                                .transport = &transport,
                                .place_client = client,
                                .role = role};
    list_init(&session->quiet_link);
    return session;
}

/* A client comes; |*out| is its connection, quiet if it has a place. */
static enum share_taken come(uint64_t client, enum listener_role role, struct session **out)
{
    struct session *session = new_session(client, role);
    enum share_taken taken = places_take(&conns.places, session);
    enter(session, taken == SHARE_TAKEN ? SESSION_QUIET : SESSION_LINGER);
    *out = session;
    return taken;
}

static int set_up(void **state)
{
    (void)state;
    memset(&loop, 0, sizeof(loop));
    uv_loop_init(&loop.uv);
    log_gate_init(&loop.log);
    log_gate_open(&loop.log, &loop.uv);
    conns = (struct conns){.magic = CONNS_MAGIC, .loop = &loop};
    transport.peer.client = SHARE_NOBODY;
    places_init(&conns.places, 4);
    session_count = left_count = 0;
    last_left = last_aborted = NULL;
    is_unquiet = false;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < session_count; i++) {
        if (sessions[i].state != SESSION_CLOSING) {
            enter(&sessions[i], SESSION_CLOSING);
        }
    }
    assert_int_equal(conns.places.used + conns.places.away_count + conns.places.unnamed_count, 0);
    assert_true(list_is_empty(&conns.places.away) && list_is_empty(&conns.places.unnamed));
    log_gate_close(&loop.log);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    log_gate_fini(&loop.log);
    places_fini(&conns.places);
    return uv_loop_close(&loop.uv);
}

static void the_longest_quiet_connection_gives_its_place_up(void **state)
{
    struct session *first, *second, *other;
    (void)state;
    places_resize(&conns.places, 2);
    assert_int_equal(come(1, LISTENER_PUBLIC, &first), SHARE_TAKEN);
    enter(first, SESSION_BUSY);
    assert_int_equal(come(1, LISTENER_PUBLIC, &second), SHARE_TAKEN);
    enter(first, SESSION_QUIET); /* for a shorter time than |second| */
    assert_int_equal(come(1, LISTENER_PUBLIC, &other), SHARE_TAKEN);
    assert_ptr_equal(last_left, second);
    assert_int_equal(conns.places.used, 2);
    assert_int_equal(counter_get(&conns.places.displaced), 1);
    is_unquiet = true; /* a request may be on its way */
    assert_int_not_equal(come(1, LISTENER_PUBLIC, &other), SHARE_TAKEN);
    assert_int_equal(left_count, 1);
}

static void a_busy_connection_keeps_its_place(void **state)
{
    struct session *busy, *other;
    struct error err;
    (void)state;
    places_resize(&conns.places, 1);
    assert_int_equal(come(1, LISTENER_PUBLIC, &busy), SHARE_TAKEN);
    enter(busy, SESSION_BUSY);
    enum share_taken why = come(2, LISTENER_PUBLIC, &other);
    assert_int_not_equal(why, SHARE_TAKEN);
    assert_int_equal(left_count, 0);
    assert_fails(err, places_refuse(&conns.places, other, why, &err), ST_EXHAUSTED, "connection");
    enter(busy, SESSION_CLOSING);
    assert_int_equal(come(2, LISTENER_PUBLIC, &other), SHARE_TAKEN);
}

/* So many clients cannot push out one that has few. */
static void only_a_client_with_more_loses_a_place_to_another(void **state)
{
    struct session *of_many[4], *of_few, *other;
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(come(1, LISTENER_PUBLIC, &of_many[i]), SHARE_TAKEN);
    }
    assert_int_equal(come(2, LISTENER_PUBLIC, &of_few), SHARE_TAKEN);
    enter(of_few, SESSION_BUSY);
    enter(of_few, SESSION_QUIET);
    assert_int_equal(come(3, LISTENER_PUBLIC, &other), SHARE_TAKEN);
    assert_ptr_equal(last_left, of_many[0]);
    enter(of_many[1], SESSION_BUSY);
    enter(of_many[2], SESSION_BUSY);
    enter(of_few, SESSION_BUSY);
    assert_int_not_equal(come(2, LISTENER_PUBLIC, &other), SHARE_TAKEN); /* 3 has no more than 2 */
    assert_int_equal(left_count, 1);
}

static void each_role_has_places_of_its_own(void **state)
{
    struct session *session, *public;
    unsigned taken = 0;
    (void)state;
    places_resize(&conns.places, 64);
    places_add_role(&conns.places, LISTENER_ADMIN);
    places_add_role(&conns.places, LISTENER_HEALTH);
    for (uint64_t client = 1; come(client, LISTENER_PUBLIC, &public) == SHARE_TAKEN; client++) {
        enter(public, SESSION_BUSY);
        taken++;
    }
    assert_int_equal(taken, 64 - 2 * 4); /* a sixteenth is kept for each of the others */
    assert_int_equal(come(1, LISTENER_HEALTH, &session), SHARE_TAKEN);
    assert_int_equal(come(1, LISTENER_ADMIN, &session), SHARE_TAKEN);
    assert_int_equal(left_count, 0);
}

static void few_of_those_that_are_turned_away_linger(void **state)
{
    struct session *busy, *away[17];
    (void)state;
    places_resize(&conns.places, 1);
    assert_int_equal(come(1, LISTENER_PUBLIC, &busy), SHARE_TAKEN);
    enter(busy, SESSION_BUSY);
    for (unsigned i = 0; i < 17; i++) {
        assert_null(last_aborted);
        assert_int_not_equal(come(2, LISTENER_PUBLIC, &away[i]), SHARE_TAKEN);
    }
    assert_ptr_equal(last_aborted, away[0]);
    assert_int_equal(conns.places.away_count, 16);
    enter(away[1], SESSION_CLOSING);
    assert_int_equal(conns.places.away_count, 15);
}

/* Nobody knows yet who is charged. */
static void those_without_a_name_have_no_place_yet(void **state)
{
    (void)state;
    uint32_t max = places_unnamed_max(4);
    for (uint32_t i = 0; i <= max; i++) {
        assert_null(last_aborted);
        struct session *session = new_session(i + 1, LISTENER_PUBLIC);
        places_await_name(&conns.places, session);
        enter(session, SESSION_QUIET);
    }
    assert_ptr_equal(last_aborted, &sessions[0]); /* the oldest gives way */
    assert_int_equal(conns.places.unnamed_count, max);
    assert_int_equal(conns.places.used, 0);
    assert_int_equal(places_take(&conns.places, &sessions[1]), SHARE_TAKEN);
    enter(&sessions[1], SESSION_QUIET);
    assert_int_equal(conns.places.unnamed_count, max - 1);
    assert_int_equal(conns.places.used, 1);
}

static void a_place_can_be_handed_over(void **state)
{
    struct session *first, *other;
    (void)state;
    places_resize(&conns.places, 1);
    assert_int_equal(come(1, LISTENER_PUBLIC, &first), SHARE_TAKEN);
    struct session *next = new_session(1, LISTENER_PUBLIC);
    places_hand_over(&conns.places, first, next);
    enter(next, SESSION_BUSY);
    enter(first, SESSION_CLOSING);
    assert_int_equal(conns.places.used, 1);
    assert_int_not_equal(come(2, LISTENER_PUBLIC, &other), SHARE_TAKEN);
    enter(next, SESSION_CLOSING);
    assert_int_equal(conns.places.used, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_longest_quiet_connection_gives_its_place_up),
        TEST(a_busy_connection_keeps_its_place),
        TEST(only_a_client_with_more_loses_a_place_to_another),
        TEST(each_role_has_places_of_its_own),
        TEST(few_of_those_that_are_turned_away_linger),
        TEST(those_without_a_name_have_no_place_yet),
        TEST(a_place_can_be_handed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
