/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/process/line_writer.h"

#define BYTES (64 << 10)

static char folder[] = "/tmp/line_writer_XXXXXX";
static char path[64], old_path[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "%s/log", folder);
    snprintf(old_path, sizeof(old_path), "%s/old", folder);
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    unlink(path);
    unlink(old_path);
    return 0;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static enum status open_file(const char *name, struct line_writer **out_writer, struct error *err)
{
    struct line_sink *sink;
    TRY(line_sink_file(name, &sink, err));
    return line_writer_new(sink, BYTES, out_writer, err);
}

/* Entries arrive as the journal wants them; without its socket there is no sink. */
static void entries_go_to_the_journal(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct line_sink *sink;
    struct line_writer *writer;
    struct error err;
    char got[64];
    (void)state;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    assert_fails(err, line_sink_journal(path, &sink, &err), ST_NOT_FOUND, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_ok(err, line_sink_journal(path, &sink, &err));
    assert_ok(err, line_writer_new(sink, BYTES, &writer, &err));
    line_writer_add(writer, "A=1\036B=2\n", 8);
    line_writer_add(writer, "C=3\n", 4);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 8);
    assert_memory_equal(got, "A=1\nB=2\n", 8);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 4);
    assert_memory_equal(got, "C=3\n", 4);
    close(fd); /* the journal is gone: its entries are lost, and nothing else */
    line_writer_add(writer, "D=4\n", 4);
    while (line_writer_counts(writer).lost == 0) {
        usleep(1000);
    }
    line_writer_free(writer);
}

static struct line_writer *open_writer(void)
{
    struct line_writer *writer;
    struct error err;
    assert_ok(err, open_file(path, &writer, &err));
    return writer;
}

/* A line of |len| bytes that begins with |number|. */
static void add_line(struct line_writer *writer, unsigned number, size_t len)
{
    char line[LINE_BYTES_MAX];
    memset(line, 'x', len);
    memcpy(line, (const char[]){(char)('0' + number % 10)}, 1);
    line[len - 1] = '\n';
    line_writer_add(writer, line, len);
}

/* Lines in the file |name|, each of which is whole. */
static uint64_t count_lines(const char *name)
{
    static char text[LINE_BYTES_MAX + 1];
    uint64_t count = 0;
    FILE *file = fopen(name, "re");
    assert_non_null(file);
    while (fgets(text, sizeof(text), file)) {
        size_t len = strlen(text);
        assert_true(text[0] >= '0' && text[0] <= '9' && text[len - 1] == '\n');
        assert_int_equal(strspn(text + 1, "x"), len - 2);
        count++;
    }
    fclose(file);
    return count;
}

/* Lines that are added faster than they are written are lost and counted; the rest is written in
 * order. */
static void every_line_is_written_or_counted(void **state)
{
    (void)state;
    struct line_writer *writer = open_writer();
    const unsigned total = 5000;
    for (unsigned i = 0; i < total; i++) {
        add_line(writer, i, 2 + i * 37 % (LINE_BYTES_MAX - 2));
    }
    struct line_writer_counts counts = line_writer_counts(writer);
    assert_int_equal(counts.added, total);
    assert_between(counts.lost, 1, total - 1); /* 20 MB against a ring of 64 KiB */
    line_writer_free(writer);
    assert_int_equal(count_lines(path), total - counts.lost);
}

static void a_renamed_file_is_opened_again(void **state)
{
    (void)state;
    struct line_writer *writer = open_writer();
    struct error err;
    struct stat st = {0};
    add_line(writer, 1, 100);
    while (st.st_size == 0) { /* until it is written */
        assert_int_equal(stat(path, &st), 0);
        usleep(1000);
    }
    assert_int_equal(rename(path, old_path), 0);
    assert_ok(err, line_writer_reopen(writer, &err));
    add_line(writer, 2, 100);
    add_line(writer, 3, 100);
    line_writer_free(writer);
    assert_int_equal(count_lines(old_path), 1);
    assert_int_equal(count_lines(path), 2);
}

static void a_bad_path_is_refused_and_keeps_the_old_file(void **state)
{
    (void)state;
    struct line_writer *writer;
    struct error err;
    assert_fails(err, open_file("/nonexistent/log", &writer, &err), ST_NOT_FOUND,
                 "/nonexistent/log");
    line_writer_free(NULL);
    writer = open_writer();
    assert_int_equal(rename(path, old_path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_true(line_writer_reopen(writer, &err) != ST_OK);
    assert_int_equal(rmdir(path), 0);
    add_line(writer, 1, 10);
    line_writer_free(writer);
    assert_int_equal(count_lines(old_path), 1);
}

/* A pipe that nobody reads: adding does not wait, and the end comes in spite of it. */
static void a_reader_that_hangs_delays_nobody(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    struct line_writer *writer = open_writer();
    for (unsigned i = 0; i < 5000; i++) {
        add_line(writer, i, 200);
    }
    assert_between(line_writer_counts(writer).lost, 1, 5000);
    line_writer_free(writer);
    close(reader);
}

/* A disk that is full costs lines, and they are counted. */
static void a_full_disk_costs_lines(void **state)
{
    (void)state;
    struct line_writer *writer;
    struct error err;
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_ok(err, open_file("/dev/full", &writer, &err));
    for (unsigned i = 0; i < 10; i++) {
        add_line(writer, i, 200);
    }
    while (line_writer_counts(writer).lost < 10) {
        usleep(1000);
    }
    assert_int_equal(line_writer_counts(writer).added, 10);
    line_writer_free(writer);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, clean_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_line_is_written_or_counted),
        TEST(a_renamed_file_is_opened_again),
        TEST(a_bad_path_is_refused_and_keeps_the_old_file),
        TEST(a_reader_that_hangs_delays_nobody),
        TEST(a_full_disk_costs_lines),
        TEST(entries_go_to_the_journal),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
