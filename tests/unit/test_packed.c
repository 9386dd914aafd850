/* SPDX-License-Identifier: MIT */
/* Packed weights in files: the same results with and without, whatever the files contain. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/folder.h"
#include "hal/buffer.h"
#include "runtime/pte/file_digest.h"
#include "runtime/pte/packed.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define RESULT_BYTES_MAX (1 << 20)

static char folder[] = "/tmp/pted-test-packed-XXXXXX";
static struct hal_device *device;
static struct hal_pool *pool;

/* Drops the program and waits until its weights have gone. The device's threads keep a command that
 * has run a moment longer than its caller, and with it weights that a program which is loaded
 * meanwhile would share: they are then in the memory of the process and in no file that is mapped,
 * so that the next program writes them again. */
static void drop(struct rt_program *program)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    rt_program_unref(program);
    while (hal_device_progress(device).is_busy) {
        nanosleep(&moment, NULL);
    }
}

static int open_all(void **state)
{
    (void)state;
    open_two_workers(&device, &pool);
    return mkdtemp(folder) ? 0 : -1;
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* Calls |visit| for each file of the folder; returns their number. */
static unsigned each_file(void (*visit)(const char *path))
{
    char path[sizeof(folder) + 1 + NAME_MAX];
    unsigned count = 0;
    DIR *dir = folder_open(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
            count++;
            visit(path);
        }
    }
    closedir(dir);
    return count;
}

static void ignore(const char *path)
{
    (void)path;
}

static void delete (const char *path)
{
    assert_int_equal(unlink(path), 0);
}

static int close_all(void **state)
{
    (void)state;
    close_two_workers(device, pool);
    each_file(delete);
    return rmdir(folder);
}

/* ---- a program and its result ---------------------------------------------------------------- */

static uint8_t expected[RESULT_BYTES_MAX], got[RESULT_BYTES_MAX], first_result[RESULT_BYTES_MAX];
static size_t call_bytes; /* of |got| */

/* The first result of a call whose inputs are full of one number. */
static size_t call(struct rt_program *program, uint8_t *out)
{
    struct rt_method *method = rt_program_default_method(program);
    struct rt_invocation *invocation;
    struct error err;
    assert_int_equal(rt_invocation_new(method, pool, &invocation, &err), ST_OK);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct shape shape = io->shape;
        void *ptr;
        for (uint8_t d = 0; d < shape.rank; d++) {
            shape.dims[d] = rt_io_is_dynamic(io, d) ? 1 : shape.dims[d];
        }
        size_t bytes;
        assert_int_equal(shape_bytes(&shape, io->dtype, &bytes, &err), ST_OK);
        assert_int_equal(rt_invocation_input(invocation, i, io->dtype, &shape, &ptr, &err), ST_OK);
        memset(ptr, 0x3c, bytes); /* a small number of any type, about 0.01 as f32 and 1 as f16 */
    }
    assert_int_equal(rt_invocation_prepare(invocation, RT_PREPARE_ALL, &err), ST_OK);
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    struct span result = rt_invocation_result(invocation, 0)->bytes;
    assert_true(result.len > 0 && result.len <= RESULT_BYTES_MAX);
    size_t bytes = result.len;
    memcpy(out, result.ptr, bytes);
    rt_invocation_free(invocation);
    return bytes;
}

static struct rt_program *load(const char *path, const struct rt_load_options *options)
{
    struct rt_program *program;
    struct error err;
    assert_int_equal(rt_load_program(path, options, &program, &err), ST_OK);
    return program;
}

/* Loads the file |path| with the folder, expects the same result as without it, and what became of
 * the folder's file. */
static void expect_file(const char *path, const char *packed)
{
    struct rt_load_options options = {.device = device, .packed_folder = folder};
    const struct rt_load_options plain = {.device = device};
    struct buf text;
    struct rt_program *program = load(path, &plain);
    size_t bytes = call(program, expected);
    drop(program);
    program = load(path, &options);
    assert_int_equal(call(program, got), bytes);
    assert_memory_equal(got, expected, bytes);
    call_bytes = bytes;
    buf_init(&text, 4096);
    rt_program_print_packed(program, &text);
    buf_add_char(&text, '\0');
    assert_non_null(strstr((const char *)buf_span(&text).ptr, packed));
    buf_fini(&text);
    drop(program);
}

static void find_model(const char *model, char path[PATH_MAX])
{
    const char *top = getenv("top_srcdir");
    snprintf(path, PATH_MAX, "%s/tests/models/%s.pte", top ? top : ".", model);
}

static void expect(const char *model, const char *packed)
{
    char path[PATH_MAX];
    find_model(model, path);
    expect_file(path, packed);
}

#define COMPUTED "packed weights computed"
#define READ "packed weights from a file"

static void test_second_load(void **state)
{
    (void)state;
    static const char *const models[] = {"mobile", "digits", "xnn_int8", "xnn_half",
                                         "pt2e",   "unet",   "linear"};
    for (unsigned i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        expect(models[i], COMPUTED);
        expect(models[i], READ);
        expect(models[i], READ);
    }
    assert_int_equal(each_file(ignore), sizeof(models) / sizeof(models[0]));
    each_file(delete);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static long damage_at;

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, damage_at, damage_at < 0 ? SEEK_END : SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, damage_at, damage_at < 0 ? SEEK_END : SEEK_SET), 0);
    fputc(byte ^ 0x40, file);
    fclose(file);
}

static void cut_short(const char *path)
{
    assert_int_equal(truncate(path, damage_at), 0);
}

/* Each byte of the head and of the table is checked; a file that is wrong is written anew. */
static void test_damaged_files(void **state)
{
    (void)state;
    expect("digits", COMPUTED);
    for (damage_at = -64; damage_at < 48; damage_at++) {
        each_file(damage);
        expect("digits", COMPUTED);
        expect("digits", READ);
    }
    for (damage_at = 0; damage_at < 4096; damage_at = damage_at * 3 + 1) {
        each_file(cut_short);
        expect("digits", COMPUTED);
    }
    assert_int_equal(each_file(ignore), 1);
    each_file(delete);
}

static void open_to_all(const char *path)
{
    assert_int_equal(chmod(path, 0666), 0);
}

/* Files and folders that others can write to are not trusted. */
static void test_permissions(void **state)
{
    (void)state;
    expect("digits", COMPUTED);
    each_file(open_to_all);
    expect("digits", COMPUTED);
    expect("digits", READ);
    assert_int_equal(chmod(folder, 0777), 0);
    expect("digits", "expected a folder that only its owner can write to");
    assert_int_equal(chmod(folder, 0700), 0);
    each_file(delete);
}

/* A file for another program under this one's name: the rounds tell. */
static char first[PATH_MAX], second[PATH_MAX];

static void note(const char *path)
{
    snprintf(first[0] ? second : first, PATH_MAX, "%s", path);
}

static void test_wrong_file(void **state)
{
    (void)state;
    expect("digits", COMPUTED);
    expect("mobile", COMPUTED);
    assert_int_equal(each_file(note), 2);
    assert_int_equal(rename(first, second), 0);
    expect("digits", COMPUTED);
    expect("mobile", COMPUTED);
    expect("digits", READ);
    expect("mobile", READ);
    each_file(delete);
}

/* A file that takes another's place, with the same structure and other weights. */
static void test_other_weights(void **state)
{
    (void)state;
    static uint8_t bytes[1 << 20];
    char path[PATH_MAX];
    expect("mobile", COMPUTED);
    size_t before = call_bytes, len;
    memcpy(first_result, got, before);
    find_model("mobile", path);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    for (size_t i = len / 2; i < len - len / 4; i++) {
        bytes[i] ^= i % 4 == 3 ? 0x80 : 0; /* signs of weights, which are the end of the file */
    }
    snprintf(path, sizeof(path), "%s/changed.pte", folder);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
    expect_file(path, COMPUTED);
    assert_int_equal(call_bytes, before);
    assert_memory_not_equal(got, first_result, before);
    expect_file(path, READ);
    expect("mobile", READ);
    each_file(delete);
}

/* ---- digests --------------------------------------------------------------------------------- */

static void digest_of(const uint8_t *bytes, size_t len, size_t step, uint64_t out[2])
{
    struct digest digest;
    digest_init(&digest);
    for (size_t i = 0; i < len; i += step) {
        digest_add(&digest, span_of(bytes + i, len - i < step ? len - i : step));
    }
    digest_end(&digest, out);
}

/* A digest does not depend on how the bytes come, and each bit of them changes it. */
static void test_digests(void **state)
{
    (void)state;
    uint8_t bytes[200] = {0};
    uint64_t whole[2], other[2];
    digest_of(bytes, sizeof(bytes), sizeof(bytes), whole);
    for (size_t step = 1; step < sizeof(bytes); step++) {
        digest_of(bytes, sizeof(bytes), step, other);
        assert_memory_equal(whole, other, sizeof(whole));
        digest_of(bytes, step, step, other);
        assert_memory_not_equal(whole, other, sizeof(whole));
    }
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        digest_of(bytes, sizeof(bytes), 64, other);
        assert_true(whole[0] != other[0] && whole[1] != other[1]);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t i = 0; i + 64 < sizeof(bytes); i++) { /* two signs that change together */
        bytes[i] ^= 0x80;
        bytes[i + 64] ^= 0x80;
        digest_of(bytes, sizeof(bytes), 64, other);
        assert_true(whole[0] != other[0] && whole[1] != other[1]);
        bytes[i] ^= 0x80;
        bytes[i + 64] ^= 0x80;
    }
}

/* By another number of workers than that of |device|. */
static void digest_with(uint32_t workers, void *bytes, size_t len, uint64_t out[2])
{
    const struct hal_device_options options = {.workers = workers};
    struct hal_device *other;
    struct hal_buffer *file;
    struct error err;
    assert_int_equal(hal_device_open("cpu", &options, &other, &err), ST_OK);
    assert_int_equal(hal_buffer_import_final(other, bytes, len, &file, &err), ST_OK);
    assert_int_equal(rt_file_digest(other, file, out, &err), ST_OK);
    hal_buffer_unref(file);
    hal_device_unref(other);
}

/* The digest of a file does not depend on the workers. It tells which bytes the file has, their
 * order and their number, also where one piece ends and the next one begins. */
static void test_file_digests(void **state)
{
    (void)state;
    const size_t piece = (size_t)1 << 20, len = 3 * piece;
    const size_t changes[] = {0, 1, piece - 1, piece, piece + 1, 2 * piece, len - 2, len - 1};
    uint8_t *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t whole[2], other[2];
    assert_ptr_not_equal(bytes, MAP_FAILED);
    bytes[0] = 1;
    digest_with(1, bytes, len, whole);
    for (uint32_t workers = 2; workers < 5; workers++) {
        digest_with(workers, bytes, len, other);
        assert_memory_equal(whole, other, sizeof(whole));
    }
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        bytes[changes[i]] ^= 0x80;
        digest_with(2, bytes, len, other);
        assert_memory_not_equal(whole, other, sizeof(whole));
        bytes[changes[i]] ^= 0x80;
        if (changes[i] > 0) {
            digest_with(2, bytes, changes[i], other);
            assert_memory_not_equal(whole, other, sizeof(whole));
        }
    }
    bytes[0] = 0; /* the first two pieces change places */
    bytes[piece] = 1;
    digest_with(2, bytes, len, other);
    assert_memory_not_equal(whole, other, sizeof(whole));
    munmap(bytes, len);
}

/* ---- what killed processes leave ------------------------------------------------------------- */

static unsigned new_count;

static void count_new(const char *path)
{
    new_count += strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".new") == 0;
}

static unsigned count_new_files(void)
{
    new_count = 0;
    each_file(count_new);
    return new_count;
}

/* A process begins to write results, and is killed. */
static void write_and_die(const uint64_t program[2])
{
    struct rt_packed *packed;
    struct error err;
    const uint64_t fingerprint[2] = {1, 2};
    const struct rt_packed_result result = {.bytes = span_str("a result")};
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (rt_packed_open(folder, program, "machine", &packed, &err) == ST_OK) {
            rt_packed_put(packed, fingerprint, &result, 1);
        }
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Its new file goes when another process writes one, and those that are being written stay. */
static void test_killed_processes(void **state)
{
    (void)state;
    const uint64_t programs[3][2] = {{1, 1}, {2, 2}, {3, 3}};
    const uint64_t fingerprint[2] = {1, 2};
    const struct rt_packed_result result = {.bytes = span_str("a result")};
    struct rt_packed *packed[2];
    struct error err;
    each_file(delete);
    write_and_die(programs[0]);
    assert_int_equal(count_new_files(), 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(rt_packed_open(folder, programs[i + 1], "machine", &packed[i], &err),
                         ST_OK);
        rt_packed_put(packed[i], fingerprint, &result, 1);
        assert_int_equal(rt_packed_state(packed[i]), RT_PACKED_WRITING);
        assert_int_equal(count_new_files(), i + 1);
    }
    for (uint32_t i = 0; i < 2; i++) {
        rt_packed_settle(packed[i]);
        assert_int_equal(rt_packed_state(packed[i]), RT_PACKED_DONE);
        rt_packed_free(packed[i]);
    }
    assert_int_equal(count_new_files(), 0);
    assert_int_equal(each_file(ignore), 2);
    each_file(delete);
}

/* ---- results that several rounds or programs have -------------------------------------------- */

static off_t bytes_on_disk;

static void add_bytes(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    bytes_on_disk += st.st_size;
}

static off_t count_bytes(void)
{
    bytes_on_disk = 0;
    each_file(add_bytes);
    return bytes_on_disk;
}

/* The only method of "one" is a method of "two" as well, with the same weights. */
static void test_methods_share_results(void **state)
{
    (void)state;
    each_file(delete);
    expect("weights/one", COMPUTED);
    off_t bytes = count_bytes();
    assert_true(bytes > 2 * 64 * 64 * (off_t)sizeof(float));
    each_file(delete);
    const struct rt_load_options options = {.device = device, .packed_folder = folder};
    for (uint32_t i = 0; i < 2; i++) { /* computed, then read */
        drop(load_model("weights/two", &options));
        assert_true(count_bytes() <= bytes + bytes / 20);
    }
    each_file(delete);
}

static off_t largest_bytes;
static char largest_path[PATH_MAX];

static void find_largest(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    if (st.st_size > largest_bytes) {
        largest_bytes = st.st_size;
        snprintf(largest_path, sizeof(largest_path), "%s", path);
    }
}

/* Two programs with the same weights are loaded at a time. */
static void load_both(bool are_read)
{
    const struct rt_load_options options = {.device = device, .packed_folder = folder};
    struct rt_program *one = load_model("weights/one", &options);
    struct rt_program *copy = load_model("weights/copy", &options);
    size_t bytes = call(copy, got);
    assert_memory_equal(got, expected, bytes);
    struct rt_program *programs[] = {one, copy};
    for (size_t i = 0; i < 2; i++) {
        struct buf text;
        buf_init(&text, 4096);
        rt_program_print_packed(programs[i], &text);
        buf_add_char(&text, '\0');
        assert_string_equal((const char *)buf_span(&text).ptr, are_read ? READ : COMPUTED);
        buf_fini(&text);
        drop(programs[i]);
    }
}

/* The file of the second one refers to that of the first one, also if a load has mapped that. */
static void test_programs_share_files(void **state)
{
    (void)state;
    each_file(delete);
    expect("weights/one", COMPUTED);
    off_t bytes = count_bytes();
    const struct rt_load_options options = {.device = device, .packed_folder = folder};
    struct rt_program *one = load_model("weights/one", &options);
    drop(load_model("weights/copy", &options)); /* one's file is mapped */
    drop(one);
    assert_true(count_bytes() <= bytes + bytes / 20);
    load_both(true);
    each_file(delete);
    load_both(false); /* one's file is being written */
    assert_true(count_bytes() <= bytes + bytes / 20);
    load_both(true);
    largest_bytes = 0;
    each_file(find_largest);
    delete (largest_path); /* without it, the other one is of no use */
    expect("weights/copy", COMPUTED);
    expect("weights/copy", READ);
    each_file(delete);
}

static void touch(const char *path)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* A program uses what lies in the mapping of another one's file: the mapping stays while it does,
 * and it is verified. */
static void test_mapping_of_another_program(void **state)
{
    (void)state;
    const struct rt_load_options options = {.device = device, .packed_folder = folder};
    struct error err;
    each_file(delete);
    expect("weights/one", COMPUTED);
    struct rt_program *one = load_model("weights/one", &options);
    struct rt_program *copy = load_model("weights/copy", &options);
    drop(one);
    size_t bytes = call(copy, got);
    assert_memory_equal(got, expected, bytes);
    assert_ok(err, rt_program_verify_files(copy, &err));
    each_file(touch);
    assert_fails(err, rt_program_verify_files(copy, &err), ST_UNAVAILABLE, ".packed");
    drop(copy);
    each_file(delete);
}

/* ---- a file that is written anew ------------------------------------------------------------- */

enum { PIECE = 8192 };
static const uint64_t in_a[2] = {1, 1}, in_b[2] = {2, 2},
                      fingerprints[3][2] = {{7, 1}, {7, 2}, {7, 3}};

static struct rt_packed *open_packed(const uint64_t program[2], enum rt_packed_state expected_state)
{
    struct rt_packed *packed;
    struct error err;
    assert_ok(err, rt_packed_open(folder, program, "machine", &packed, &err));
    assert_int_equal(rt_packed_state(packed), expected_state);
    return packed;
}

static void put_bytes(struct rt_packed *packed, uint32_t round, const uint8_t *bytes, size_t len)
{
    const struct rt_packed_result result = {.bytes = span_of(bytes, len)};
    rt_packed_put(packed, fingerprints[round], &result, 1);
}

static void settle(struct rt_packed *packed)
{
    rt_packed_settle(packed);
    assert_int_equal(rt_packed_state(packed), RT_PACKED_DONE);
}

/* A file of two pieces is mapped while another one takes its place, whose second piece has other
 * bytes. A program that uses the mapped second piece does not get the other one later. */
static void test_a_mapped_file_is_replaced(void **state)
{
    (void)state;
    static uint8_t pieces[3][PIECE];
    const size_t bytes = PIECE;
    struct span found;
    each_file(delete);
    for (int i = 0; i < 3; i++) {
        memset(pieces[i], i + 1, PIECE);
    }
    struct rt_packed *a = open_packed(in_a, RT_PACKED_WRITING);
    put_bytes(a, 0, pieces[0], PIECE);
    put_bytes(a, 1, pieces[1], PIECE);
    settle(a);
    rt_packed_free(a);
    a = open_packed(in_a, RT_PACKED_READING);
    assert_true(rt_packed_take(a, fingerprints[0], &bytes, 1, &found));
    const uint8_t *second_piece = found.ptr + PIECE;
    assert_memory_equal(second_piece, pieces[1], PIECE);
    assert_false(rt_packed_take(a, fingerprints[2], &bytes, 1, &found));
    put_bytes(a, 2, pieces[2], PIECE);
    settle(a);
    struct rt_packed *b = open_packed(in_b, RT_PACKED_WRITING);
    assert_true(rt_packed_rely_on(b, a));
    put_bytes(b, 0, second_piece, PIECE);
    settle(b);
    rt_packed_free(b);
    rt_packed_free(a);
    b = open_packed(in_b, RT_PACKED_WRITING); /* the file that it refers to has gone */
    rt_packed_free(b);
    each_file(delete);
}

/* What is written and then given up leaves no file. */
static void test_a_file_is_abandoned(void **state)
{
    (void)state;
    static uint8_t piece[PIECE];
    each_file(delete);
    struct rt_packed *a = open_packed(in_a, RT_PACKED_WRITING);
    put_bytes(a, 0, piece, PIECE);
    rt_packed_abandon(a, "for a reason");
    rt_packed_settle(a);
    assert_int_equal(rt_packed_state(a), RT_PACKED_BROKEN);
    assert_string_equal(rt_packed_error(a)->text, "packed weights: for a reason");
    assert_int_equal(each_file(ignore), 0);
    rt_packed_free(a);
}

/* Of two results at one place, the first one is empty. A file that begins with them has both. */
static void test_an_empty_result(void **state)
{
    (void)state;
    static uint8_t piece[PIECE];
    const struct rt_packed_result results[2] = {{.bytes = span_of(piece, 0)},
                                                {.bytes = span_of(piece, PIECE)}};
    const size_t bytes[2] = {0, PIECE};
    struct span found[2];
    memset(piece, 5, sizeof(piece));
    each_file(delete);
    struct rt_packed *a = open_packed(in_a, RT_PACKED_WRITING);
    rt_packed_put(a, fingerprints[0], results, 2);
    settle(a);
    rt_packed_free(a);
    a = open_packed(in_a, RT_PACKED_READING);
    assert_true(rt_packed_take(a, fingerprints[0], bytes, 2, found));
    assert_false(rt_packed_take(a, fingerprints[1], bytes, 2, found));
    put_bytes(a, 1, piece, 1);
    settle(a);
    rt_packed_free(a);
    a = open_packed(in_a, RT_PACKED_READING);
    assert_true(rt_packed_take(a, fingerprints[0], bytes, 2, found));
    assert_memory_equal(found[1].ptr, piece, PIECE);
    rt_packed_free(a);
    each_file(delete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_file_digests),
        cmocka_unit_test(test_second_load),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_permissions),
        cmocka_unit_test(test_wrong_file),
        cmocka_unit_test(test_other_weights),
        cmocka_unit_test(test_killed_processes),
        cmocka_unit_test(test_methods_share_results),
        cmocka_unit_test(test_programs_share_files),
        cmocka_unit_test(test_mapping_of_another_program),
        cmocka_unit_test(test_a_mapped_file_is_replaced),
        cmocka_unit_test(test_a_file_is_abandoned),
        cmocka_unit_test(test_an_empty_result),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
