/* SPDX-License-Identifier: MIT */
/* Jobs that run as one: batches, delays, and steps that wait for each other. */
#include "config.h"

#include <string.h>

#include "runtime/sched/sched.h"
#include "tests/unit/sched_support.h"
#include "tests/unit/unit.h"

/* ---- batches --------------------------------------------------------------------------------- */

/* Jobs that wait while the device is busy run as one batch: those that fit, up to six rows, by
 * priority. */
static void test_batches(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    static const int64_t rows[] = {2, 2, 0, 3, 2, 1, 1, 1};
    struct job jobs[8];
    init_jobs(jobs, 8);
    for (unsigned i = 0; i < 8; i++) {
        jobs[i].sched.rows = rows[i];
    }
    jobs[6].name = 'G';
    jobs[7].sched.priority = 1;
    submit_all(queue, jobs, 1);
    expect_events("+a"); /* alone: it does not wait for others */
    submit_all(queue, jobs + 1, 7);
    assert_int_equal(rt_sched_load(queue).waiting, 7);
    finish(&jobs[0]);
    expect_events("+[hbd]a=0;"); /* six rows; c has none, G does not fit */
    assert_int_equal(rt_sched_load(queue).running, 1);
    finish(&jobs[7]);
    finish(&jobs[1]);
    expect_events("h=0;b=0;"); /* the device is free when the last one is over */
    finish(&jobs[3]);
    expect_events("+cd=0;");
    assert_true(jobs[7].sched.batch_size == 3 && !jobs[7].sched.is_batch_end);
    assert_true(jobs[3].sched.batch_size == 3 && jobs[3].sched.is_batch_end);
    assert_int_equal(jobs[3].sched.batch_rows, 6);
    finish(&jobs[2]);
    expect_events("+[ef]c=0;");
    finish(&jobs[5]);
    finish(&jobs[4]);
    finish(&jobs[6]);
    expect_events("f=0;+Ge=0;G=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A job that would only wait on the device waits in the queue, where others may join it, until the
 * batch is full. */
static void test_the_last_place_is_not_for_few_rows(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    static const int64_t rows[] = {1, 2, 4, 1, 0};
    struct job jobs[5];
    init_jobs(jobs, 5);
    for (unsigned i = 0; i < 5; i++) {
        jobs[i].sched.rows = rows[i];
    }
    submit_all(queue, jobs, 2);
    expect_events("+a");
    submit_all(queue, jobs + 2, 1);
    expect_events("+[bc]"); /* six rows are the most of a batch */
    submit_all(queue, jobs + 3, 1);
    finish(&jobs[0]);
    expect_events("a=0;");
    finish(&jobs[1]);
    finish(&jobs[2]);
    expect_events("b=0;+dc=0;");
    submit_all(queue, jobs + 4, 1);
    expect_events("+e"); /* nothing joins it */
    finish(&jobs[3]);
    finish(&jobs[4]);
    expect_events("d=0;e=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Jobs of a batch that are late or cancelled are answered at once, and the others run on. The place
 * on the device is free when the last one ends. */
static void test_leaving_a_batch(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    struct job jobs[6];
    init_jobs(jobs, 6);
    for (unsigned i = 0; i < 5; i++) {
        jobs[i].sched.rows = 1;
        jobs[i].leaves = i > 0;
    }
    jobs[1].sched.deadline_ns = jobs[2].sched.deadline_ns = SECOND + 10;
    submit_all(queue, jobs, 6);
    finish(&jobs[0]);
    expect_events("+a+[bcde]a=0;");
    atomic_store(&now_ns, SECOND + 10);
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    expect_events("-b-cb=6;c=6;");
    assert_int_equal(rt_sched_load(queue).running, 1);
    rt_sched_cancel(&jobs[3].sched);
    rt_sched_cancel(&jobs[3].sched); /* over */
    expect_events("-dd=7;");
    jobs[4].leaves = false; /* as the last one it cannot */
    rt_sched_cancel(&jobs[4].sched);
    expect_events("-e");
    finish(&jobs[4]);
    expect_events("+fe=7;");
    assert_true(jobs[4].sched.is_batch_end && jobs[4].sched.batch_size == 4);
    finish(&jobs[5]);
    expect_events("f=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* With a delay, a batch waits until it is full or its oldest job has waited for the delay. */
static void test_delay(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue_delayed(sched, 20, 0, 1, 100);
    struct job jobs[8];
    init_jobs(jobs, 8);
    for (unsigned i = 0; i < 8; i++) {
        jobs[i].sched.rows = i == 7 ? 0 : 2;
    }
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 30);
    submit_all(queue, jobs + 1, 1);
    assert_int_equal(rt_sched_due_ns(&jobs[0].sched), SECOND + 100);
    assert_int_equal(rt_sched_expire(sched), SECOND + 100);
    expect_events("");
    atomic_store(&now_ns, SECOND + 100);
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    expect_events("+[ab]");
    assert_int_equal(jobs[0].sched.joining_ns, 100);
    assert_int_equal(jobs[1].sched.joining_ns, 70);
    submit_all(queue, jobs + 2, 2); /* at 100; the device is busy until 150 */
    atomic_fetch_add(&now_ns, 50);
    finish(&jobs[0]);
    finish(&jobs[1]);
    expect_events("a=0;b=0;");
    assert_int_equal(rt_sched_expire(sched), SECOND + 200);
    atomic_fetch_add(&now_ns, 20);
    submit_all(queue, jobs + 4, 1); /* six rows: full */
    expect_events("+[cde]");
    assert_int_equal(jobs[2].sched.joining_ns, 20); /* and 50 for the device */
    assert_int_equal(jobs[4].sched.joining_ns, 0);
    finish(&jobs[2]);
    finish(&jobs[3]);
    finish(&jobs[4]);
    expect_events("c=0;d=0;e=0;");
    submit_all(queue, jobs + 7, 1); /* it cannot be joined */
    expect_events("+h");
    submit_all(queue, jobs + 5, 1);
    atomic_fetch_add(&now_ns, 100);
    finish(&jobs[7]);
    expect_events("+fh=0;"); /* it has waited long enough */
    assert_int_equal(jobs[5].sched.joining_ns, 0);
    finish(&jobs[5]);
    submit_all(queue, jobs + 6, 1);
    rt_sched_cancel(&jobs[6].sched);
    expect_events("f=0;g=7;");
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A job of a sequence that brings a row, and whose next one follows. */
static void make_steps(struct job *jobs, struct rt_sched_ticket *tickets,
                       struct rt_sched_lane *lanes, unsigned count)
{
    init_jobs(jobs, count);
    for (unsigned i = 0; i < count; i++) {
        rt_sched_lane_init(&lanes[i]);
        tickets[i].lane = &lanes[i];
        jobs[i].sched.tickets = &tickets[i];
        jobs[i].sched.ticket_count = 1;
        jobs[i].sched.rows = 1;
        jobs[i].sched.returns = true;
    }
}

/* Steps that ran together wait for each other, but not for one that does not come back. */
static void test_steps_wait_for_each_other(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[3];
    struct rt_sched_ticket tickets[3];
    struct job jobs[3];
    make_steps(jobs, tickets, lanes, 3);
    submit_all(queue, jobs, 3);
    expect_events("+a");
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    expect_events("a=0;"); /* b and c wait for a */
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 900000);
    assert_int_equal(rt_sched_due_ns(&jobs[1].sched), SECOND + 900000);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    expect_events("+[bca]");
    assert_int_equal(rt_sched_held_ns(queue), RT_SCHED_NEVER);
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    finish(&jobs[1]);
    finish(&jobs[2]);
    assert_int_equal(submit(queue, &jobs[2]), ST_OK);
    assert_int_equal(submit(queue, &jobs[1]), ST_OK);
    expect_events("a=0;b=0;c=0;");
    assert_int_equal(rt_sched_expire(sched), SECOND + 1700000);
    atomic_fetch_add(&now_ns, 100000); /* a has ended */
    rt_sched_expire(sched);
    expect_events("+[cb]");
    rt_sched_cancel(&jobs[1].sched); /* it stays until the step is over */
    expect_events("-b");
    finish(&jobs[2]);
    finish(&jobs[1]);
    expect_events("c=0;b=7;");
    for (unsigned i = 0; i < 3; i++) {
        assert_true(list_is_empty(&lanes[i].tickets));
    }
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* All steps come back late, because the thread that brings them was busy: the first one still waits
 * for the others, and no longer than for a late one. */
static void test_late_steps_wait_for_each_other(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[3];
    struct rt_sched_ticket tickets[3];
    struct job jobs[3];
    make_steps(jobs, tickets, lanes, 3);
    submit_all(queue, jobs, 3);
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    expect_events("+aa=0;+[bca]");
    atomic_fetch_add(&now_ns, 800000);
    for (unsigned i = 0; i < 3; i++) {
        finish(&jobs[i]);
    }
    expect_events("a=0;b=0;c=0;");
    atomic_fetch_add(&now_ns, 700000);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 2400000);
    atomic_fetch_add(&now_ns, 50000);
    assert_int_equal(submit(queue, &jobs[1]), ST_OK);
    expect_events("");
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 2400000);
    assert_int_equal(submit(queue, &jobs[2]), ST_OK);
    expect_events("+[abc]");
    for (unsigned i = 0; i < 3; i++) {
        finish(&jobs[i]);
    }
    expect_events("a=0;b=0;c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Steps of two models run as one, wait for each other, and count for their own model. */
static void test_steps_of_two_queues(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1), *other = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[3];
    struct rt_sched_ticket tickets[3];
    struct job jobs[3];
    struct error err;
    make_steps(jobs, tickets, lanes, 3);
    assert_ok(err, rt_sched_queue_mix(other, queue, 3, &err));
    submit_all(queue, jobs, 2);
    assert_int_equal(submit(other, &jobs[2]), ST_OK);
    expect_events("+a"); /* a run of one is a run of both */
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    expect_events("a=0;"); /* b and c wait for a */
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 900000);
    assert_int_equal(rt_sched_held_ns(other), SECOND + 900000);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    expect_events("+[cba]");
    assert_int_equal(rt_sched_load(queue).running, 1);
    assert_int_equal(rt_sched_load(other).running, 1);
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    assert_false(jobs[0].sched.is_batch_end);
    finish(&jobs[2]); /* it was the only one of its queue */
    assert_true(jobs[2].sched.is_batch_end);
    assert_int_equal(jobs[2].sched.batch_size, 3);
    assert_int_equal(rt_sched_load(other).running, 0);
    rt_sched_queue_unref(other);
    finish(&jobs[1]);
    assert_true(jobs[1].sched.is_batch_end);
    expect_events("a=0;c=0;b=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* As many rows as are proven of both; the rest is next. Jobs that find no memory as one wait again,
 * each in its queue. */
static void test_limits_of_two_queues(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1), *other = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[4];
    struct rt_sched_ticket tickets[4];
    struct job jobs[4];
    struct error err;
    make_steps(jobs, tickets, lanes, 4);
    assert_ok(err, rt_sched_queue_mix(queue, other, 2, &err));
    submit_all(queue, jobs, 2);
    assert_int_equal(submit(other, &jobs[2]), ST_OK);
    assert_int_equal(submit(other, &jobs[3]), ST_OK);
    finish(&jobs[0]);
    expect_events("+a+[bc]a=0;");
    finish(&jobs[1]);
    finish(&jobs[2]);
    expect_events("b=0;+dc=0;");
    assert_int_equal(submit(queue, &jobs[1]), ST_OK);
    assert_int_equal(submit(other, &jobs[2]), ST_OK);
    memory_left = 1;
    jobs[1].memory = jobs[2].memory = 1;
    finish(&jobs[3]);
    expect_events("?[bc]+bd=0;");
    finish(&jobs[1]);
    memory_left = 1;
    rt_sched_released(sched);
    expect_events("?cb=0;+c");
    finish(&jobs[2]);
    expect_events("c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_queue_unref(other);
    rt_sched_free(sched);
}

/* A queue that others have taken in takes in a further one; groups of several stay apart. */
static void test_groups_meet(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queues[5];
    struct error err;
    for (unsigned i = 0; i < 5; i++) {
        queues[i] = new_queue(sched, 10, 1, 1);
    }
    assert_ok(err, rt_sched_queue_mix(queues[2], queues[0], 2, &err));
    assert_ok(err, rt_sched_queue_mix(queues[0], queues[1], 2, &err));
    assert_ok(err, rt_sched_queue_mix(queues[1], queues[2], 3, &err));
    assert_ok(err, rt_sched_queue_mix(queues[3], queues[4], 2, &err));
    assert_fails(err, rt_sched_queue_mix(queues[0], queues[3], 2, &err), ST_UNSUPPORTED,
                 "both run with others already");
    for (unsigned i = 0; i < 5; i++) {
        rt_sched_queue_unref(queues[i]);
    }
    rt_sched_free(sched);
}

/* Jobs of the own queue come before those of others, whatever their priority. A job of another
 * queue that is no step runs with its own queue only. */
static void test_guests_of_a_run(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1), *other = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[6];
    struct rt_sched_ticket tickets[6];
    struct job jobs[6];
    struct error err;
    make_steps(jobs, tickets, lanes, 6);
    jobs[1].sched.priority = jobs[2].sched.priority = 1;
    jobs[4].sched.returns = false;
    assert_ok(err, rt_sched_queue_mix(queue, other, 2, &err));
    submit_all(queue, jobs, 3);
    assert_int_equal(submit(other, &jobs[3]), ST_OK);
    finish(&jobs[0]);
    expect_events("+a+[bc]a=0;");
    finish(&jobs[1]);
    finish(&jobs[2]);
    expect_events("b=0;+dc=0;");
    assert_int_equal(submit(other, &jobs[4]), ST_OK);
    assert_int_equal(submit(queue, &jobs[5]), ST_OK);
    finish(&jobs[3]);
    expect_events("+e+fd=0;");
    finish(&jobs[5]);
    finish(&jobs[4]);
    expect_events("f=0;e=0;");
    rt_sched_queue_unref(queue);
    rt_sched_queue_unref(other);
    rt_sched_free(sched);
}

/* A queue with many runs does not keep those of the other one waiting: the least bound holds. */
static void test_bounds_of_two_queues(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1), *other = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[3];
    struct rt_sched_ticket tickets[3];
    struct job jobs[3];
    struct error err;
    make_steps(jobs, tickets, lanes, 3);
    jobs[0].sched.rows = jobs[1].sched.rows = 8;
    assert_ok(err, rt_sched_queue_mix(queue, other, 2, &err));
    submit_all(queue, jobs, 2);
    assert_int_equal(submit(other, &jobs[2]), ST_OK);
    expect_events("+a");
    finish(&jobs[0]);
    finish(&jobs[1]);
    finish(&jobs[2]);
    rt_sched_queue_unref(queue);
    rt_sched_queue_unref(other);
    rt_sched_free(sched);
}

/* Between two jobs that run alone, the parts of long prompts, there is a turn for steps. */
static void test_steps_have_every_second_turn(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[6];
    struct rt_sched_ticket tickets[6];
    struct job jobs[6];
    make_steps(jobs, tickets, lanes, 6);
    for (unsigned i = 0; i < 4; i++) { /* a, b, c and d are parts of prompts */
        jobs[i].sched.rows = 0;
        jobs[i].sched.returns = false;
    }
    submit_all(queue, jobs, 6);
    expect_events("+a");
    finish(&jobs[0]);
    expect_events("+[ef]a=0;");
    finish(&jobs[4]);
    finish(&jobs[5]);
    expect_events("e=0;+bf=0;"); /* no step is ready: prompts go on at once */
    assert_int_equal(submit(queue, &jobs[5]), ST_OK);
    assert_int_equal(submit(queue, &jobs[4]), ST_OK);
    finish(&jobs[1]);
    expect_events("+[fe]b=0;");
    finish(&jobs[4]);
    finish(&jobs[5]);
    finish(&jobs[2]);
    finish(&jobs[3]);
    expect_events("e=0;+cf=0;+dc=0;d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A prompt whose parts are short, for the sake of steps, goes on before prompts that came later. */
static void test_a_prompt_keeps_its_turn(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[4];
    struct rt_sched_ticket tickets[4];
    struct job jobs[4];
    make_steps(jobs, tickets, lanes, 4);
    for (unsigned i = 0; i < 3; i++) { /* a, b and c are parts of prompts; d is a step */
        jobs[i].sched.rows = 0;
        jobs[i].sched.returns = false;
    }
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 10);
    submit_all(queue, jobs + 1, 3);
    jobs[0].sched.since_ns = SECOND;
    for (unsigned i = 0; i < 3; i++) {
        finish(&jobs[0]);
        assert_int_equal(submit(queue, &jobs[0]), ST_OK);
        finish(&jobs[3]);
        assert_int_equal(submit(queue, &jobs[3]), ST_OK);
    }
    expect_events("+a+da=0;+ad=0;+da=0;+ad=0;+da=0;+ad=0;");
    jobs[0].sched.since_ns = 0; /* its turn is over */
    finish(&jobs[0]);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    finish(&jobs[3]);
    for (unsigned i = 1; i < 4; i++) {
        finish(&jobs[i % 3]);
    }
    expect_events("+da=0;+bd=0;+cb=0;+ac=0;a=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_the_last_place_is_not_for_few_rows),
        cmocka_unit_test(test_leaving_a_batch),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_steps_wait_for_each_other),
        cmocka_unit_test(test_late_steps_wait_for_each_other),
        cmocka_unit_test(test_steps_of_two_queues),
        cmocka_unit_test(test_limits_of_two_queues),
        cmocka_unit_test(test_groups_meet),
        cmocka_unit_test(test_guests_of_a_run),
        cmocka_unit_test(test_bounds_of_two_queues),
        cmocka_unit_test(test_steps_have_every_second_turn),
        cmocka_unit_test(test_a_prompt_keeps_its_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
