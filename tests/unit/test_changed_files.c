/* SPDX-License-Identifier: MIT */
/* Mapped files that are overwritten, truncated or replaced, also while they are loaded. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/device.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "runtime/pte/file.h"
#include "tests/unit/unit.h"

#define FILE_BYTES 50000
#define LOADS 300

struct test {
    char folder[64], path[96], other[96];
    struct pte_file file;
    struct error err;
};

/* The handler that the first mapping installs. cmocka installs its own handler during each test. */
static struct sigaction handler;

static void find_handler(const char *path)
{
    struct pte_file file;
    struct error err;
    assert_ok(err, pte_file_open(path, PTE_FILE_GUARDED, &file, &err));
    assert_int_equal(sigaction(SIGBUS, NULL, &handler), 0);
    pte_file_unmap(&file);
}

static void write_file(const char *path, uint8_t byte)
{
    uint8_t bytes[FILE_BYTES];
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    memset(bytes, byte, sizeof(bytes));
    assert_int_equal(fwrite(bytes, 1, sizeof(bytes), file), sizeof(bytes));
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    struct test *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    snprintf(t->folder, sizeof(t->folder), "changed-%ld", (long)getpid());
    snprintf(t->path, sizeof(t->path), "%s/file", t->folder);
    snprintf(t->other, sizeof(t->other), "%s/other", t->folder);
    assert_int_equal(mkdir(t->folder, 0777), 0);
    write_file(t->path, 1);
    /* Sets an old time, because the clock of a file system may stand still for some
     * milliseconds. */
    struct timespec then[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, t->path, then, 0), 0);
    assert_ok(t->err, pte_file_open(t->path, PTE_FILE_GUARDED, &t->file, &t->err));
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct test *t = *state;
    pte_file_unmap(&t->file);
    unlink(t->path);
    unlink(t->other);
    rmdir(t->folder);
    free(t);
    return 0;
}

static uint64_t sum(struct span bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        sum += bytes.ptr[i];
    }
    return sum;
}

static struct test *begin(void **state)
{
    assert_int_equal(sigaction(SIGBUS, &handler, NULL), 0);
    return *state;
}

static void test_unchanged(void **state)
{
    struct test *t = begin(state);
    assert_int_equal(sum(t->file.bytes), FILE_BYTES);
    assert_ok(t->err, pte_file_verify(&t->file, &t->err));
}

static void test_written_to(void **state)
{
    struct test *t = begin(state);
    int fd = open(t->path, O_WRONLY);
    assert_int_equal(pwrite(fd, "x", 1, 20000), 1);
    close(fd);
    assert_fails(t->err, pte_file_verify(&t->file, &t->err), ST_UNAVAILABLE,
                 "the file file changed on disk since it was loaded: it was written to");
}

static void test_grown(void **state)
{
    struct test *t = begin(state);
    assert_int_equal(truncate(t->path, FILE_BYTES + 1), 0);
    assert_fails(t->err, pte_file_verify(&t->file, &t->err), ST_UNAVAILABLE,
                 "it has 50001 bytes, it had 50000");
}

/* Truncated bytes read as zeros, from any thread, at the first page or at the last. */
static void *sum_backwards(void *arg)
{
    struct test *t = arg;
    static uint64_t sum;
    sum = 0;
    for (size_t i = t->file.bytes.len; i-- > 0;) {
        sum += t->file.bytes.ptr[i];
    }
    return &sum;
}

static void test_cut_short(void **state)
{
    struct test *t = begin(state);
    pthread_t thread;
    void *other;
    assert_int_equal(truncate(t->path, 8192), 0);
    assert_int_equal(pthread_create(&thread, NULL, sum_backwards, t), 0);
    assert_int_equal(sum(t->file.bytes), 8192);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_int_equal(*(uint64_t *)other, 8192);
    assert_fails(t->err, pte_file_verify(&t->file, &t->err), ST_UNAVAILABLE, "it has 8192 bytes");
}

/* The file has its old length and time again, but a read met the missing part in between. */
static void test_cut_short_for_a_while(void **state)
{
    struct test *t = begin(state);
    struct timespec then[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(truncate(t->path, 0), 0);
    assert_int_equal(sum(t->file.bytes), 0);
    write_file(t->path, 1);
    assert_int_equal(utimensat(AT_FDCWD, t->path, then, 0), 0);
    assert_fails(t->err, pte_file_verify(&t->file, &t->err), ST_UNAVAILABLE, "it was cut short");
}

static void test_replaced(void **state)
{
    struct test *t = begin(state);
    write_file(t->other, 2);
    assert_int_equal(chmod(t->path, 0400), 0);
    assert_int_equal(rename(t->other, t->path), 0);
    assert_int_equal(sum(t->file.bytes), FILE_BYTES);
    assert_ok(t->err, pte_file_verify(&t->file, &t->err));
    assert_int_equal(unlink(t->path), 0);
    assert_ok(t->err, pte_file_verify(&t->file, &t->err));
}

static void test_forgotten(void **state)
{
    struct test *t = begin(state);
    pte_file_forget(&t->file);
    assert_int_equal(truncate(t->path, 0), 0);
    assert_ok(t->err, pte_file_verify(&t->file, &t->err));
}

/* A fault in a foreign mapping and a signal sent by a process: both end the process. */
static int end_of(const char *path, bool is_sent)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = open(path, O_RDWR);
        volatile uint8_t *bytes = mmap(NULL, FILE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes == MAP_FAILED || ftruncate(fd, 0) != 0) {
            _exit(0);
        }
        is_sent ? (void)raise(SIGBUS) : (void)bytes[0];
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_other_signals(void **state)
{
    struct test *t = begin(state);
    for (int i = 0; i < 2; i++) {
        int status = end_of(t->path, i);
        /* A sanitizer reports the signal and exits. */
        assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGBUS : WEXITSTATUS(status) != 0);
    }
}

/* ---- loading --------------------------------------------------------------------------------- */

struct writer {
    const char *path;
    uint8_t *bytes;
    size_t len;
    atomic_bool has_ended;
};

static void *write_again_and_again(void *arg)
{
    struct writer *w = arg;
    int fd = open(w->path, O_WRONLY);
    for (size_t i = 0; !atomic_load(&w->has_ended); i += 4099) {
        bool is_good = ftruncate(fd, (off_t)(i % w->len)) == 0 &&
                       pwrite(fd, w->bytes, w->len, 0) == (ssize_t)w->len;
        if (!is_good) {
            break;
        }
    }
    close(fd);
    return NULL;
}

static void read_model(struct writer *w)
{
    const char *top = getenv("top_srcdir");
    char path[1024];
    struct stat st;
    snprintf(path, sizeof(path), "%s/tests/models/digits.pte", top ? top : ".");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &st), 0);
    w->len = (size_t)st.st_size;
    w->bytes = malloc(w->len);
    assert_non_null(w->bytes);
    assert_int_equal(fread(w->bytes, 1, w->len, file), w->len);
    fclose(file);
}

/* The load gives the content of one moment, or fails. */
static void test_changed_while_loaded(void **state)
{
    struct test *t = begin(state);
    struct writer w = {.path = t->path};
    struct rt_load_options options = {.data_count = 0};
    pthread_t thread;
    uint32_t refused = 0;
    read_model(&w);
    assert_ok(t->err, hal_device_open("cpu", &(struct hal_device_options){.workers = 1},
                                      &options.device, &t->err));
    assert_int_equal(pthread_create(&thread, NULL, write_again_and_again, &w), 0);
    for (uint32_t i = 0; i < LOADS; i++) {
        struct rt_program *program = NULL;
        if (rt_load_program(t->path, &options, &program, &t->err) != ST_OK) {
            assert_true(t->err.text[0] != '\0');
            refused++;
        }
        rt_program_unref(program);
    }
    atomic_store(&w.has_ended, true);
    pthread_join(thread, NULL);
    hal_device_unref(options.device);
    free(w.bytes);
    assert_true(refused > 0);
}

int main(int argc, char **argv)
{
    (void)argc;
    find_handler(argv[0]);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_unchanged),
        TEST(test_written_to),
        TEST(test_grown),
        TEST(test_cut_short),
        TEST(test_cut_short_for_a_while),
        TEST(test_replaced),
        TEST(test_forgotten),
        TEST(test_other_signals),
        TEST(test_changed_while_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
