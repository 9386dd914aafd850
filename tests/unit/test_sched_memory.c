/* SPDX-License-Identifier: MIT */
/* Jobs that wait for memory, and jobs that are refused or taken out of their batch for lack of it.
 */
#include "config.h"

#include "runtime/sched/sched.h"
#include "tests/unit/sched_support.h"
#include "tests/unit/unit.h"

/* Gives its memory back as a call does at its end, before the scheduler is notified. */
static void finish_and_free(struct job *job)
{
    memory_left += job->memory;
    finish(job);
}

static void test_a_job_waits_for_memory(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(3);
    struct rt_sched_queue *large = new_queue(sched, 10, 0, 1), *small = new_queue(sched, 10, 0, 1);
    struct job jobs[6];
    init_jobs(jobs, 6);
    memory_left = 10;
    jobs[0].memory = jobs[1].memory = jobs[2].memory = 6;
    submit_all(large, jobs, 3);
    expect_events("+a?b");
    jobs[3].memory = jobs[4].memory = 2;
    submit_all(small, &jobs[3], 2); /* no other job waits for the large one */
    expect_events("+d+e");
    assert_int_equal(rt_sched_load(large).waiting, 2);
    finish_and_free(&jobs[3]);
    expect_events("?bd=0;");
    finish_and_free(&jobs[0]);
    expect_events("+b?ca=0;");
    assert_true(jobs[1].sched.started_ns > 0 && jobs[2].sched.started_ns == 0);
    finish_and_free(&jobs[4]);
    expect_events("?ce=0;");
    finish_and_free(&jobs[1]);
    finish_and_free(&jobs[2]);
    expect_events("+cb=0;c=0;");
    assert_int_equal(memory_left, 10);
    rt_sched_queue_unref(large);
    rt_sched_queue_unref(small);
    rt_sched_free(sched);
}

/* No running job could give memory back. */
static void test_a_job_that_finds_no_memory_is_refused(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[3];
    init_jobs(jobs, 3);
    memory_left = 10;
    jobs[0].memory = 11;
    submit_all(queue, jobs, 1);
    const char exhausted[] = {'?', 'a', 'a', '=', (char)('0' + ST_EXHAUSTED), ';', '\0'};
    expect_events(exhausted);
    assert_int_equal(jobs[0].sched.started_ns, 0);
    jobs[1].memory = 10;
    submit_all(queue, &jobs[1], 2);
    finish_and_free(&jobs[1]);
    finish_and_free(&jobs[2]);
    expect_events("+b+cb=0;c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A finished job keeps its results until its owner releases them. */
static void test_a_job_waits_for_results_to_go(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[3];
    init_jobs(jobs, 3);
    memory_left = 10;
    jobs[0].memory = jobs[1].memory = jobs[2].memory = 6;
    submit_all(queue, jobs, 2);
    finish(&jobs[0]);
    expect_events("+a?b?ba=0;");
    memory_left += jobs[0].memory;
    rt_sched_released(sched);
    expect_events("+b");
    finish(&jobs[1]);
    expect_events("b=0;");
    submit_all(queue, &jobs[2], 1);
    expect_events("?c");
    rt_sched_released(sched); /* it was memory of a client */
    const char exhausted[] = {'?', 'c', 'c', '=', (char)('0' + ST_EXHAUSTED), ';', '\0'};
    expect_events(exhausted);
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_a_batch_without_memory_is_taken_apart(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[4];
    init_jobs(jobs, 4);
    memory_left = 10;
    for (unsigned i = 0; i < 4; i++) {
        jobs[i].sched.rows = 1;
        jobs[i].memory = 4;
    }
    submit_all(queue, jobs, 4);
    expect_events("+a");
    finish_and_free(&jobs[0]);
    expect_events("?[bcd]+ba=0;");
    assert_int_equal(jobs[1].sched.batch_size, 1);
    assert_int_equal(rt_sched_load(queue).waiting, 2);
    finish_and_free(&jobs[1]);
    expect_events("+[cd]b=0;"); /* in their order */
    finish_and_free(&jobs[2]);
    finish_and_free(&jobs[3]);
    expect_events("c=0;d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_leaving_while_there_is_no_memory(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[4];
    init_jobs(jobs, 4);
    memory_left = 10;
    for (unsigned i = 0; i < 4; i++) {
        jobs[i].memory = 6;
    }
    jobs[2].sched.deadline_ns = SECOND + 10;
    submit_all(queue, jobs, 4);
    expect_events("+a?b");
    rt_sched_cancel(&jobs[1].sched);
    assert_int_equal(jobs[1].status, ST_CANCELLED);
    assert_int_equal(jobs[1].sched.started_ns, 0);
    atomic_store(&now_ns, SECOND + 10);
    rt_sched_expire(sched);
    assert_int_equal(jobs[2].status, ST_TIMEOUT);
    events[0] = '\0';
    finish_and_free(&jobs[0]);
    expect_events("+da=0;");
    finish_and_free(&jobs[3]);
    expect_events("d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_waits_for_memory),
        cmocka_unit_test(test_a_job_that_finds_no_memory_is_refused),
        cmocka_unit_test(test_a_job_waits_for_results_to_go),
        cmocka_unit_test(test_a_batch_without_memory_is_taken_apart),
        cmocka_unit_test(test_leaving_while_there_is_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
