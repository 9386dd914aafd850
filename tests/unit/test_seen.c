/* SPDX-License-Identifier: MIT */
/* Digests of files that an earlier load has read: when they are believed, and what happens if they
 * are wrong. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/folder.h"
#include "runtime/program/method.h"
#include "runtime/pte/file.h"
#include "runtime/pte/file_digest.h"
#include "runtime/pte/packed.h"
#include "runtime/pte/recheck.h"
#include "runtime/pte/seen.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define FILE_BYTES (5u << 20)
#define RESULT_BYTES_MAX (1 << 20)

static char root[] = "/tmp/pted-test-seen-XXXXXX";
static char folder[64], path[64], other_path[64];
static char base_path[64], data_path[64]; /* a program whose weights are in the data file */
static struct hal_device *device;
static struct hal_pool *pool;
static uint8_t bytes[FILE_BYTES];

static void write_file(const char *to, const uint8_t *from)
{
    FILE *file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(from, 1, FILE_BYTES, file), FILE_BYTES);
    assert_int_equal(fclose(file), 0);
}

/* Times of a file that are so old that a change would show. */
static void wait_until_settled(void)
{
    const struct timespec pause = {.tv_sec = 4};
    nanosleep(&pause, NULL);
}

/* Reads |model|, with zeros behind it. Returns its length. */
static size_t read_model(const char *model)
{
    const char *top = getenv("top_srcdir");
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s/tests/models/%s", top ? top : ".", model);
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    memset(bytes, 0, sizeof(bytes));
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    assert_true(len > 0 && len < FILE_BYTES);
    return len;
}

/* Changes the signs of some weights. */
static void turn_signs(size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        bytes[i] ^= i % 4 == 3 ? 0x80 : 0;
    }
}

/* Two programs with the same structure and other weights, and one with a data file. */
static int open_all(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(root));
    snprintf(folder, sizeof(folder), "%s/packed", root);
    snprintf(path, sizeof(path), "%s/one.pte", root);
    snprintf(other_path, sizeof(other_path), "%s/other.pte", root);
    snprintf(base_path, sizeof(base_path), "%s/base.pte", root);
    snprintf(data_path, sizeof(data_path), "%s/data.ptd", root);
    size_t len = read_model("mobile.pte");
    write_file(path, bytes);
    turn_signs(len / 2, len - len / 4); /* weights are the end of the file */
    write_file(other_path, bytes);
    read_model("weights/foundation.ptd");
    write_file(data_path, bytes);
    read_model("weights/base.pte");
    write_file(base_path, bytes);
    open_two_workers(&device, &pool);
    wait_until_settled();
    return 0;
}

static void empty(const char *of)
{
    char name[PATH_MAX];
    DIR *dir = folder_open(of);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        snprintf(name, sizeof(name), "%s/%s", of, entry->d_name);
        if (entry->d_name[0] != '.') {
            unlink(name);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

static void empty_folder(void)
{
    empty(folder);
}

static int close_all(void **state)
{
    (void)state;
    close_two_workers(device, pool);
    empty_folder();
    rmdir(folder);
    unlink(path);
    unlink(other_path);
    unlink(base_path);
    unlink(data_path);
    return rmdir(root);
}

/* ---- records --------------------------------------------------------------------------------- */

static struct pte_file open_file(const char *of)
{
    struct pte_file file;
    struct error err;
    assert_int_equal(pte_file_open(of, PTE_FILE_GUARDED, &file, &err), ST_OK);
    return file;
}

static bool is_found(const struct pte_file *file, const uint64_t digest[2])
{
    char record[PATH_MAX];
    uint64_t found[2] = {0};
    bool is = rt_seen_find(file, folder, found, record);
    assert_true(!is || memcmp(found, digest, sizeof(found)) == 0);
    return is;
}

static const uint64_t some_digest[2] = {3, 5};

static void a_file_in_the_same_state_is_found(void **state)
{
    (void)state;
    mkdir(folder, 0700);
    struct pte_file file = open_file(path), other = open_file(other_path);
    assert_false(is_found(&file, some_digest));
    rt_seen_keep(&file, folder, some_digest);
    assert_true(is_found(&file, some_digest));
    assert_false(is_found(&other, some_digest));
    pte_file_unmap(&file);
    pte_file_unmap(&other);
    empty_folder();
}

/* Any number that differs, and any sample, is another state. */
static void another_state_is_not_found(void **state)
{
    (void)state;
    struct pte_file file = open_file(path);
    rt_seen_keep(&file, folder, some_digest);
    for (int i = 0; i < 7; i++) {
        struct pte_file changed = file;
        changed.device += i == 0;
        changed.inode += i == 1;
        changed.modified.tv_sec -= i == 2;
        changed.modified.tv_nsec += i == 3;
        changed.changed.tv_sec += i == 4;
        changed.changed.tv_nsec += i == 5;
        changed.bytes.len -= i == 6;
        assert_false(is_found(&changed, some_digest));
    }
    memcpy(bytes, file.bytes.ptr, FILE_BYTES);
    struct pte_file copy = file;
    copy.bytes.ptr = bytes;
    assert_true(is_found(&copy, some_digest));
    for (size_t at = 0; at < FILE_BYTES; at += FILE_BYTES - 1) {
        bytes[at] ^= 1;
        assert_false(is_found(&copy, some_digest));
        bytes[at] ^= 1;
    }
    pte_file_unmap(&file);
    empty_folder();
}

/* Times may be coarse, so a file that has just changed may change again with the same ones. */
static void what_has_just_changed_is_not_kept(void **state)
{
    (void)state;
    char fresh[96];
    snprintf(fresh, sizeof(fresh), "%s/fresh.pte", root);
    write_file(fresh, bytes);
    struct pte_file file = open_file(fresh);
    rt_seen_keep(&file, folder, some_digest);
    assert_false(is_found(&file, some_digest));
    wait_until_settled();
    rt_seen_keep(&file, folder, some_digest);
    assert_true(is_found(&file, some_digest));
    assert_int_equal(unlink(fresh), 0);
    pte_file_unmap(&file);
    empty_folder();
}

static void find_record(char out[PATH_MAX])
{
    struct pte_file file = open_file(path);
    uint64_t found[2];
    rt_seen_keep(&file, folder, some_digest);
    assert_true(rt_seen_find(&file, folder, found, out));
    pte_file_unmap(&file);
}

static void damaged_records_are_not_believed(void **state)
{
    (void)state;
    char record[PATH_MAX], moved[PATH_MAX];
    uint8_t content[512];
    find_record(record);
    struct pte_file file = open_file(path);
    int fd = open(record, O_RDWR);
    ssize_t len = pread(fd, content, sizeof(content), 0);
    assert_true(len > 64);
    for (ssize_t i = 0; i < len; i++) {
        uint8_t wrong = content[i] ^ 0x10;
        assert_int_equal(pwrite(fd, &wrong, 1, i), 1);
        assert_false(is_found(&file, some_digest));
        assert_int_equal(pwrite(fd, &content[i], 1, i), 1);
    }
    assert_true(is_found(&file, some_digest));
    assert_int_equal(fchmod(fd, 0666), 0);
    assert_false(is_found(&file, some_digest));
    assert_int_equal(fchmod(fd, 0600), 0);
    snprintf(moved, sizeof(moved), "%.4000s.moved", record);
    assert_int_equal(rename(record, moved), 0);
    assert_int_equal(symlink(moved, record), 0);
    assert_false(is_found(&file, some_digest));
    assert_int_equal(rename(moved, record), 0);
    assert_int_equal(ftruncate(fd, len - 1), 0);
    assert_false(is_found(&file, some_digest));
    assert_int_equal(ftruncate(fd, len + 1), 0);
    assert_false(is_found(&file, some_digest));
    close(fd);
    pte_file_unmap(&file);
    empty_folder();
}

/* ---- programs -------------------------------------------------------------------------------- */

static struct rt_program *load(const char *from, const char *to)
{
    const char *const data[] = {data_path};
    const struct rt_load_options options = {.device = device,
                                            .packed_folder = to,
                                            .data_paths = data,
                                            .data_count = from == base_path ? 1 : 0};
    struct rt_program *program;
    struct error err;
    assert_int_equal(rt_load_program(from, &options, &program, &err), ST_OK);
    return program;
}

static void drop(struct rt_program *program)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    rt_program_unref(program);
    while (hal_device_progress(device).is_busy) {
        nanosleep(&moment, NULL);
    }
}

/* The first result of a call whose inputs are full of one number. */
static size_t call(struct rt_program *program, uint8_t *out)
{
    struct rt_method *method = rt_program_default_method(program);
    struct rt_invocation *invocation;
    struct error err;
    void *ptr;
    size_t len;
    assert_int_equal(rt_invocation_new(method, pool, &invocation, &err), ST_OK);
    const struct rt_io *io = rt_method_input(method, 0);
    assert_int_equal(shape_bytes(&io->shape, io->dtype, &len, &err), ST_OK);
    assert_int_equal(rt_invocation_input(invocation, 0, io->dtype, &io->shape, &ptr, &err), ST_OK);
    memset(ptr, 0x3c, len);
    assert_int_equal(rt_invocation_prepare(invocation, RT_PREPARE_ALL, &err), ST_OK);
    assert_int_equal(submit_and_wait(invocation, false), ST_OK);
    struct span result = rt_invocation_result(invocation, 0)->bytes;
    assert_true(result.len > 0 && result.len <= RESULT_BYTES_MAX);
    len = result.len;
    memcpy(out, result.ptr, len);
    rt_invocation_free(invocation);
    return len;
}

static uint8_t expected[RESULT_BYTES_MAX], got[RESULT_BYTES_MAX];

static bool is_right(const struct rt_file_digest *digest)
{
    return digest->recheck && rt_recheck_wait(digest->recheck);
}

/* Loads |from| with the folder; were digests believed, of its own file and of the data file? */
enum { OF_PROGRAM = 1, OF_DATA = 2 };
static int believed(const char *from)
{
    struct rt_program *program = load(from, NULL);
    size_t len = call(program, expected);
    struct error err;
    drop(program);
    program = load(from, folder);
    assert_int_equal(call(program, got), len);
    assert_memory_equal(got, expected, len);
    int is = (is_right(&program->files.digest) ? OF_PROGRAM : 0) |
             (is_right(&program->files.data[0].digest) ? OF_DATA : 0);
    assert_int_equal(rt_program_verify_files(program, &err), ST_OK);
    drop(program);
    return is;
}

static bool is_believed(const char *from)
{
    return believed(from) == OF_PROGRAM;
}

static void a_second_load_does_not_read_the_file(void **state)
{
    (void)state;
    assert_false(is_believed(path));
    assert_true(is_believed(path));
    assert_true(is_believed(path));
    assert_false(is_believed(other_path));
    assert_true(is_believed(other_path));
    empty_folder();
    assert_false(is_believed(path));
    empty_folder();
}

/* A data file is a file like the program's own. */
static void a_second_load_does_not_read_the_data_file(void **state)
{
    (void)state;
    assert_int_equal(believed(base_path), 0);
    assert_int_equal(believed(base_path), OF_PROGRAM | OF_DATA);
    assert_int_equal(chmod(data_path, 0640), 0);
    assert_int_equal(believed(base_path), OF_PROGRAM);
    wait_until_settled();
    assert_int_equal(believed(base_path), OF_PROGRAM);
    assert_int_equal(believed(base_path), OF_PROGRAM | OF_DATA);
    empty_folder();
}

/* The file is read once for all, and as long as one of them uses it. */
static void programs_share_the_digest_of_a_data_file(void **state)
{
    (void)state;
    assert_int_equal(believed(base_path), 0);
    struct rt_program *one = load(base_path, folder), *other = load(base_path, folder);
    const struct rt_file_digest *digest = &other->files.data[0].digest;
    assert_non_null(digest->recheck);
    assert_ptr_equal(one->files.data[0].digest.recheck, digest->recheck);
    drop(one);
    assert_true(is_right(digest));
    assert_true(is_right(digest));
    drop(other);
    empty_folder();
}

/* Who writes packed weights has the file read at once. */
static void what_is_written_follows_from_checked_digests(void **state)
{
    (void)state;
    assert_int_equal(believed(base_path), 0);
    struct rt_program *one = load(base_path, folder);
    char other_folder[96];
    snprintf(other_folder, sizeof(other_folder), "%s/other", root);
    struct rt_program *other = load(base_path, other_folder);
    assert_non_null(one->files.data[0].digest.recheck);
    assert_null(other->files.data[0].digest.recheck);
    drop(other);
    drop(one);
    empty_folder();
    empty(other_folder);
    rmdir(other_folder);
}

/* A file that is written to while it is read says nothing of its digest. */
static void a_file_that_changes_is_not_called_wrong(void **state)
{
    (void)state;
    struct error err;
    struct pte_file file = open_file(path);
    for (int i = 0; i < 2; i++) {
        file.modified.tv_nsec ^= i == 0;
        struct rt_recheck *recheck = rt_recheck_start(&file, some_digest, "no record");
        assert_non_null(recheck);
        assert_false(rt_recheck_wait(recheck));
        assert_int_equal(rt_recheck_verify(recheck, &err), i == 0 ? ST_OK : ST_UNAVAILABLE);
        rt_recheck_free(recheck);
        file.modified.tv_nsec ^= i == 0;
    }
    pte_file_unmap(&file);
}

/* Other weights in the data file: what was packed from the old ones is not used. */
static void another_data_file_is_packed_again(void **state)
{
    (void)state;
    size_t len = read_model("weights/foundation.ptd");
    assert_int_equal(believed(base_path), 0);
    turn_signs(len / 2, len);
    write_file(data_path, bytes);
    assert_int_equal(believed(base_path), OF_PROGRAM);
    assert_int_equal(believed(base_path), OF_PROGRAM);
    wait_until_settled();
    assert_int_equal(believed(base_path), OF_PROGRAM);
    assert_int_equal(believed(base_path), OF_PROGRAM | OF_DATA);
    empty_folder();
}

/* Without packed weights, the name of the new file must not come from a record. */
static void a_record_alone_is_not_believed(void **state)
{
    (void)state;
    struct pte_file file = open_file(path);
    mkdir(folder, 0700);
    rt_seen_keep(&file, folder, some_digest);
    pte_file_unmap(&file);
    assert_false(is_believed(path));
    assert_true(is_believed(path));
    empty_folder();
}

/* A record that is wrong costs wrong results until the file has been read, and no longer. */
static void a_wrong_record_is_found_out(void **state)
{
    (void)state;
    struct error err = {0};
    uint64_t digest[2];
    char record[PATH_MAX];
    assert_false(is_believed(other_path));
    struct pte_file other = open_file(other_path), file = open_file(path);
    assert_true(rt_seen_find(&other, folder, digest, record));
    rt_seen_keep(&file, folder, digest);
    pte_file_unmap(&other);
    pte_file_unmap(&file);
    struct rt_program *program = load(path, folder);
    assert_non_null(program->files.digest.recheck);
    assert_int_equal(chmod(path, 0640), 0); /* another time of change, the same bytes */
    assert_false(rt_recheck_wait(program->files.digest.recheck));
    assert_int_equal(rt_program_verify_files(program, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "one.pte has other bytes"));
    drop(program);
    wait_until_settled();
    assert_false(is_believed(path));
    assert_true(is_believed(path));
    empty_folder();
}

/* What is packed by a wrong digest of the data file is not kept, and the record is gone. */
static void a_wrong_record_of_the_data_file_is_found_out(void **state)
{
    (void)state;
    const char *const data_paths[] = {data_path};
    const struct rt_load_options options = {
        .device = device, .packed_folder = folder, .data_paths = data_paths, .data_count = 1};
    struct rt_program *program;
    struct error err = {0};
    assert_int_equal(believed(base_path), 0);
    struct pte_file data = open_file(data_path);
    rt_seen_keep(&data, folder, some_digest);
    pte_file_unmap(&data);
    assert_int_equal(rt_load_program(base_path, &options, &program, &err), ST_UNAVAILABLE);
    assert_non_null(strstr(err.text, "data.ptd has other bytes"));
    assert_int_equal(believed(base_path), OF_PROGRAM);
    assert_int_equal(believed(base_path), OF_PROGRAM | OF_DATA);
    empty_folder();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_in_the_same_state_is_found),
        cmocka_unit_test(another_state_is_not_found),
        cmocka_unit_test(what_has_just_changed_is_not_kept),
        cmocka_unit_test(damaged_records_are_not_believed),
        cmocka_unit_test(a_second_load_does_not_read_the_file),
        cmocka_unit_test(a_second_load_does_not_read_the_data_file),
        cmocka_unit_test(programs_share_the_digest_of_a_data_file),
        cmocka_unit_test(what_is_written_follows_from_checked_digests),
        cmocka_unit_test(a_file_that_changes_is_not_called_wrong),
        cmocka_unit_test(another_data_file_is_packed_again),
        cmocka_unit_test(a_record_alone_is_not_believed),
        cmocka_unit_test(a_wrong_record_is_found_out),
        cmocka_unit_test(a_wrong_record_of_the_data_file_is_found_out),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
