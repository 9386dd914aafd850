/* SPDX-License-Identifier: MIT */
/* Profiles, of devices that have them, and the peaks that a profile is compared with. */
#include "config.h"

#include "tests/hal/cts.h"

#include <math.h>

#include "hal/profile.h"

#define TILES 1000

/* A dispatch of TILES, a barrier, a fill and a dispatch of one tile, on one buffer. */
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
    assert_ok(err, hal_command_fill(s->command, cts_slot(0, TILES * 4, 4), "\1\0\0", 4, &err));
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
    assert_string_equal(infos[1].name, "fill");
    assert_null(infos[1].label);
    assert_int_equal(infos[1].bytes, 4);
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
        assert_true(span->thread <= cts.props->workers);
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

/* A device without profiles ignores the profile, and says that it cannot measure itself. */
static void test_no_profile(void **state)
{
    (void)state;
    struct scene s;
    struct hal_profile *profile = profile_new(100);
    struct hal_peaks peaks;
    struct error err;
    size_t count;
    setup(&s);
    run(&s, profile);
    (void)hal_profile_spans(profile, &count);
    assert_int_equal(count, 0);
    assert_int_equal(hal_device_probe(cts.device, &peaks, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.text, cts.props->name));
    hal_profile_free(profile);
    teardown(&s);
}

int cts_profile(void)
{
    const struct CMUnitTest with[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_every_tile_is_in_a_span),
        cmocka_unit_test(test_a_full_profile_counts_what_it_loses),
        cmocka_unit_test(test_a_profile_keeps_its_commands),
        cmocka_unit_test(test_peaks),
    };
    const struct CMUnitTest without[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_no_profile),
    };
    return cts.props->has_profile ? cmocka_run_group_tests_name("profile", with, NULL, NULL)
                                  : cmocka_run_group_tests_name("profile", without, NULL, NULL);
}
