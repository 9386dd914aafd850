/* SPDX-License-Identifier: MIT */
/* Profiles, of devices that have them, and the peaks that a profile is compared with. */
#include "config.h"

#include "tests/hal/cts.h"

#include <math.h>

#include "hal/profile.h"

#define TILES 1000

/* A dispatch of TILES, a barrier, a copy and a dispatch of one tile, on one buffer. */
struct scene {
    struct hal_buffer *out;
    struct hal_command *command;
    struct hal_semaphore *done;
    uint64_t timepoint;
};

static void add_increment(struct scene *s, uint32_t tiles, uint64_t cost, const char *label)
{
    const struct hal_binding out = cts_slot(0, 0, tiles * 4);
    cts_dispatch(s->command, &(struct hal_dispatch){.kernel = &cts_increment,
                                                    .grid = {tiles, 1, 1},
                                                    .bindings = &out,
                                                    .binding_count = 1,
                                                    .cost = cost,
                                                    .macs = tiles * 3.0,
                                                    .label = label,
                                                    .tag = 7});
}

static void setup(struct scene *s)
{
    struct error err;
    *s = (struct scene){.out = cts_buffer_new((TILES + 1) * 4), .command = cts_command_new(1)};
    s->done = cts_semaphore_new();
    add_increment(s, TILES, 1000000, "wide");
    cts_barrier(s->command);
    assert_ok(err,
              hal_command_copy(s->command, cts_slot(0, 4, 4), cts_slot(0, TILES * 4, 4), &err));
    add_increment(s, 1, 100, NULL);
    cts_command_end(s->command);
}

static void run(struct scene *s, struct hal_profile *profile)
{
    const struct hal_binding slot = cts_all_of(s->out);
    cts_submit(&(struct hal_submission){.command = s->command,
                                        .slots = &slot,
                                        .slot_count = 1,
                                        .signal = {{s->done, ++s->timepoint}},
                                        .signal_count = 1,
                                        .profile = profile});
    assert_int_equal(hal_semaphore_wait(s->done, s->timepoint, UINT64_MAX), ST_OK);
}

static void teardown(struct scene *s)
{
    hal_command_unref(s->command);
    hal_semaphore_unref(s->done);
    hal_buffer_unref(s->out);
}

static struct hal_profile *profile_new(size_t spans)
{
    struct error err;
    struct hal_profile *profile = NULL;
    assert_ok(err, hal_profile_new(spans, &profile, &err));
    return profile;
}

static void test_description(void **state)
{
    (void)state;
    struct scene s;
    struct hal_command_info infos[3];
    setup(&s);
    assert_int_equal(hal_command_count(s.command), 3);
    hal_command_describe(s.command, infos);
    assert_string_equal(infos[0].name, cts_increment.name);
    assert_string_equal(infos[0].label, "wide");
    assert_int_equal(infos[0].tag, 7);
    assert_int_equal(infos[0].bytes, TILES * 4);
    assert_true(infos[0].macs == TILES * 3.0);
    assert_string_equal(infos[1].name, "copy");
    assert_null(infos[1].label);
    assert_int_equal(infos[1].bytes, 8);
    assert_string_equal(infos[2].label, cts_increment.name);
    teardown(&s);
}

static void test_every_tile_is_in_a_span(void **state)
{
    (void)state;
    struct scene s;
    struct hal_profile *profile = profile_new(10000);
    uint32_t tiles[3] = {0};
    uint64_t first_end = 0, last_begin = UINT64_MAX;
    size_t count;
    setup(&s);
    run(&s, profile);
    const struct hal_span *spans = hal_profile_spans(profile, &count);
    assert_true(count >= 3);
    for (size_t i = 0; i < count; i++) {
        const struct hal_span *span = &spans[i];
        assert_ptr_equal(span->command, s.command);
        assert_true(span->number < 3);
        assert_true(cts.props->is_host ? span->thread <= cts.props->workers
                                       : span->thread == HAL_THREAD_DEVICE);
        assert_true(span->begin_ns <= span->end_ns);
        tiles[span->number] += span->tiles;
        if (span->number == 0) {
            first_end = span->end_ns > first_end ? span->end_ns : first_end;
        } else {
            last_begin = span->begin_ns < last_begin ? span->begin_ns : last_begin;
        }
    }
    assert_int_equal(tiles[0], TILES);
    assert_int_equal(tiles[2], 1);
    assert_true(tiles[1] > 0);
    assert_true(first_end <= last_begin); /* a barrier lies between them */
    assert_int_equal(hal_profile_lost(profile), 0);
    hal_profile_free(profile);
    teardown(&s);
}

/* Of two spans of a device, one ends before the other begins. */
static void assert_apart(const struct hal_span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_true(
                spans[i].thread != HAL_THREAD_DEVICE || spans[j].thread != HAL_THREAD_DEVICE ||
                spans[i].end_ns <= spans[j].begin_ns || spans[j].end_ns <= spans[i].begin_ns);
        }
    }
}

/* Three dispatches behind each other, the second for the host alone, and two beside each other. */
static struct hal_command *record_stages(void)
{
    static const struct hal_kernel *const kernels[] = {&cts_increment, &cts_twice, &cts_increment,
                                                       &cts_increment};
    struct hal_command *command = cts_command_new(1);
    for (uint16_t i = 0; i < 4; i++) {
        const struct hal_binding out = cts_slot(0, i == 3 ? TILES * 4 : 0, TILES * 4);
        cts_dispatch(command, &(struct hal_dispatch){.kernel = kernels[i],
                                                     .grid = {TILES, 1, 1},
                                                     .bindings = &out,
                                                     .binding_count = 1,
                                                     .cost = 100000000});
        if (i < 2) {
            cts_barrier(command);
        }
    }
    cts_command_end(command);
    return command;
}

/* Adds the tiles of |spans| by command, and finds when each began and ended. */
static void sum_up(const struct scene *s, const struct hal_span *spans, size_t count,
                   uint32_t tiles[4], uint64_t begin[4], uint64_t end[4])
{
    for (size_t i = 0; i < count; i++) {
        const struct hal_span *span = &spans[i];
        uint32_t at = span->number;
        assert_ptr_equal(span->command, s->command);
        assert_true(at < 4);
        assert_int_equal(span->thread == HAL_THREAD_DEVICE, !cts.props->is_host && at != 1);
        begin[at] = !tiles[at] || span->begin_ns < begin[at] ? span->begin_ns : begin[at];
        end[at] = span->end_ns > end[at] ? span->end_ns : end[at];
        tiles[at] += span->tiles;
    }
}

/* Dispatches that the host runs for a device are in the profile, too, in their place. */
static void test_stages(void **state)
{
    (void)state;
    struct scene s = {.out = cts_buffer_new(TILES * 8), .command = record_stages()};
    struct hal_profile *profile = profile_new(100000);
    const uint32_t *out = hal_buffer_map(s.out);
    size_t count;
    s.done = cts_semaphore_new();
    for (uint32_t turn = 1; turn <= 4; turn++) {
        uint32_t tiles[4] = {0}, expected = 2 * out[0] + 3;
        uint64_t begin[4] = {0}, end[4] = {0}, before = hal_profile_now();
        hal_profile_clear(profile);
        run(&s, turn % 2 ? profile : NULL); /* with and without one */
        assert_int_equal(out[0], expected);
        assert_int_equal(out[TILES], turn);
        const struct hal_span *spans = hal_profile_spans(profile, &count);
        if (turn % 2 == 0) {
            assert_int_equal(count, 0);
            continue;
        }
        sum_up(&s, spans, count, tiles, begin, end);
        assert_apart(spans, count);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(tiles[i], TILES);
            assert_true(begin[i] <= end[i] && end[i] <= hal_profile_now());
        }
        assert_true(before <= end[0] && end[0] <= begin[1]);
        assert_true(end[1] <= end[2]);
    }
    hal_profile_free(profile);
    teardown(&s);
}

static void test_a_full_profile_counts_what_it_loses(void **state)
{
    (void)state;
    struct scene s;
    struct hal_profile *profile = profile_new(2);
    size_t count;
    setup(&s);
    run(&s, profile);
    (void)hal_profile_spans(profile, &count);
    assert_int_equal(count, 2);
    assert_true(hal_profile_lost(profile) > 0);
    hal_profile_clear(profile);
    (void)hal_profile_spans(profile, &count);
    assert_int_equal(count, 0);
    assert_int_equal(hal_profile_lost(profile), 0);
    run(&s, profile);
    (void)hal_profile_spans(profile, &count);
    assert_int_equal(count, 2);
    hal_profile_free(profile);
    teardown(&s);
}

/* The profile alone keeps the command buffer that its spans speak of. */
static void test_a_profile_keeps_its_commands(void **state)
{
    (void)state;
    struct scene s;
    struct hal_profile *profile = profile_new(10000);
    struct hal_command_info infos[3];
    size_t count;
    setup(&s);
    run(&s, profile);
    teardown(&s);
    const struct hal_span *spans = hal_profile_spans(profile, &count);
    hal_command_describe(spans[0].command, infos);
    assert_string_equal(infos[0].label, "wide");
    hal_profile_free(profile);
}

static void test_peaks(void **state)
{
    (void)state;
    struct hal_peaks peaks = {0};
    struct error err;
    assert_ok(err, hal_device_probe(cts.device, &peaks, &err));
    assert_true(isfinite(peaks.f32_macs) && peaks.f32_macs > 1e6);
    assert_true(isfinite(peaks.u8_macs) && peaks.u8_macs > 1e6);
    assert_true(hal_device_props(cts.device)->bf16_speed ? peaks.bf16_macs > 1e6
                                                         : peaks.bf16_macs == 0);
    assert_true(isfinite(peaks.read_bytes) && peaks.read_bytes > 1e6);
}

/* A device that cannot measure itself says so. */
static void test_no_peaks(void **state)
{
    (void)state;
    struct hal_peaks peaks;
    struct error err;
    assert_int_equal(hal_device_probe(cts.device, &peaks, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.text, cts.props->name));
}

/* A device without profiles ignores the profile. */
static void test_no_profile(void **state)
{
    (void)state;
    struct scene s;
    struct hal_profile *profile = profile_new(100);
    size_t count;
    setup(&s);
    run(&s, profile);
    (void)hal_profile_spans(profile, &count);
    assert_int_equal(count, 0);
    hal_profile_free(profile);
    teardown(&s);
}

int cts_profile(void)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_every_tile_is_in_a_span),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_a_full_profile_counts_what_it_loses),
        cmocka_unit_test(test_a_profile_keeps_its_commands),
    };
    const struct CMUnitTest without[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_no_profile),
    };
    const struct CMUnitTest peaks[] = {
        cmocka_unit_test(cts.props->is_host ? test_peaks : test_no_peaks),
    };
    int failed = cts.props->has_profile
                     ? cmocka_run_group_tests_name("profile", with, NULL, NULL)
                     : cmocka_run_group_tests_name("profile", without, NULL, NULL);
    return failed + cmocka_run_group_tests_name("peaks", peaks, NULL, NULL);
}
