/* SPDX-License-Identifier: MIT */
/*
 * Data files: the content of a good file, the refusals of bad ones, and the files beside a program
 * in which a key is searched. The programs are those of tests/models, and the public ones if they
 * exist.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "runtime/pte/files.h"
#include "runtime/pte/ptd.h"
#include "tests/unit/flatbuf_writer.h"

#define SEGMENT 128

/* A file of one tensor, "w", float32 [2,3], and a blob, "blob", both in one segment of 24 bytes. */
struct ptd_sample {
    struct writer writer;
    size_t root, segments, names, named, key, layout, sizes, order;
};

static void put_header(struct writer *w, size_t tables_end, size_t base, size_t bytes)
{
    memcpy(w->bytes + 4, "FT01FH01", 8);
    writer_put(w, 12, 40, 4);
    writer_put(w, 16, 48, 8);
    writer_put(w, 24, tables_end - 48, 8);
    writer_put(w, 32, base, 8);
    writer_put(w, 40, bytes, 8);
}

static void sample_new(struct ptd_sample *s, const char *key)
{
    static const int64_t dims[] = {2, 3}, order[] = {0, 1};
    struct writer *w = &s->writer;
    memset(s, 0, sizeof(*s));
    w->len = 48;
    s->root = writer_child(w, 0, "444");
    s->segments = writer_vector(w, writer_field(w, s->root, 1), 1, 4);
    size_t segment = writer_child(w, s->segments, "88");
    writer_put(w, writer_field(w, segment, 1), 24, 8);
    s->names = writer_vector(w, writer_field(w, s->root, 2), 2, 4);
    s->named = writer_child(w, s->names, "444");
    s->key = writer_string(w, writer_field(w, s->named, 0), key);
    s->layout = writer_child(w, writer_field(w, s->named, 2), "144");
    writer_put(w, writer_field(w, s->layout, 0), 6, 1);
    s->sizes = writer_numbers(w, writer_field(w, s->layout, 1), dims, 2, 4);
    s->order = writer_numbers(w, writer_field(w, s->layout, 2), order, 2, 1);
    size_t blob = writer_child(w, s->names + 4, "44");
    writer_string(w, writer_field(w, blob, 0), "blob");
    writer_pad(w, SEGMENT);
    size_t base = w->len;
    for (uint64_t i = 0; i < 24; i++) {
        writer_add_int(w, i, 1);
    }
    put_header(w, base, base, 24);
}

static enum status parse(const struct writer *w, size_t len, struct ptd_file **out_file,
                         uint8_t **out_copy, struct error *err)
{
    *out_copy = malloc(len ? len : 1); /* of exactly its size, for AddressSanitizer */
    must(*out_copy);
    memcpy(*out_copy, w->bytes, len);
    return ptd_parse(span_of(*out_copy, len), out_file, err);
}

static struct error err;

static void a_good_file(void **state)
{
    (void)state;
    struct ptd_sample s;
    struct ptd_file *file;
    uint8_t *copy;
    sample_new(&s, "w");
    assert_ok(err, parse(&s.writer, s.writer.len, &file, &copy, &err));
    const struct pte_names *names = ptd_names(file);
    const struct pte_named_data *w = pte_names_find(names, span_str("w"));
    const struct pte_named_data *blob = pte_names_find(names, span_str("blob"));
    assert_int_equal(names->count, 2);
    assert_true(w && w->layout && blob && !blob->layout);
    assert_int_equal(w->layout->scalar_type, 6);
    assert_int_equal(w->layout->shape.rank, 2);
    assert_int_equal(w->layout->shape.dims[1], 3);
    assert_int_equal(w->bytes.len, 24);
    assert_int_equal(w->bytes.ptr[23], 23);
    assert_null(pte_names_find(names, span_str("v")));
    ptd_free(file);
    free(copy);
}

/* Each row is one damage. */
static void bad_files(void **state)
{
    enum { ROOT = 1, SEGMENTS, NAMED, LAYOUT };
    (void)state;
    static const struct {
        int where; /* 0: the byte |at| of the file, else an element or field of that table */
        size_t at;
        uint64_t value;
        size_t width;
        enum status status;
        const char *text;
    } cases[] = {
        {0, 4, 0x32315445, 4, ST_CORRUPT, "\"FT01\""},
        {0, 8, 0, 4, ST_CORRUPT, "\"FH01\""},
        {0, 12, 39, 4, ST_CORRUPT, "at least 40"},
        {0, 8, 0x32304846, 4, ST_UNSUPPORTED, "unsupported header version: \"FH02\""},
        {0, 24, 1u << 20, 8, ST_CORRUPT, "expected behind tables of 1048576 bytes"},
        {0, 24, UINT64_MAX - 16, 8, ST_CORRUPT, "expected behind tables"},
        {0, 24, 0, 8, ST_CORRUPT, "expected behind tables of 0 bytes"},
        {0, 32, 60, 8, ST_CORRUPT, "segments of 24 bytes at 60"},
        {0, 32, UINT64_MAX - 8, 8, ST_CORRUPT, "segments of 24 bytes"},
        {0, 32, INT64_MAX - 8, 8, ST_CORRUPT, "more than any file has"},
        {0, 40, 25, 8, ST_CORRUPT, "bytes: truncated"},
        {0, 0, 0xfffffff0, 4, ST_CORRUPT, ""},
        {ROOT, 0, 1, 4, ST_UNSUPPORTED, "version: 1"},
        {NAMED, 1, 1, 4, ST_CORRUPT, "segment 1 of 1"},
        {LAYOUT, 1, 0xffffff00, 4, ST_CORRUPT, "named_data 0: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ptd_sample s;
        struct ptd_file *file;
        uint8_t *copy;
        sample_new(&s, "w");
        size_t tables[] = {0, s.root, s.segments, s.named, s.layout};
        size_t at = cases[i].where ? writer_field(&s.writer, tables[cases[i].where], cases[i].at)
                                   : cases[i].at;
        writer_put(&s.writer, at, cases[i].value, cases[i].width);
        assert_fails(err, parse(&s.writer, s.writer.len, &file, &copy, &err), cases[i].status,
                     cases[i].text);
        free(copy);
    }
}

/* Negative sizes, an invalid dim_order, two entries with one key. */
static void bad_entries(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        static const char *const texts[] = {"expected 0 or more", "expected each of 0 to 1 once",
                                            "two entries have the key \"blob\""};
        struct ptd_sample s;
        struct ptd_file *file;
        uint8_t *copy;
        sample_new(&s, i == 2 ? "blob" : "w");
        if (i == 0) {
            writer_put(&s.writer, s.sizes, 0xffffffff, 4);
        } else if (i == 1) {
            writer_put(&s.writer, s.order, 1, 1);
        }
        assert_fails(err, parse(&s.writer, s.writer.len, &file, &copy, &err), ST_CORRUPT, texts[i]);
        free(copy);
    }
}

/* The old schema has more fields under the same identifiers. A prefix of a file is refused. */
static void old_and_cut_files(void **state)
{
    (void)state;
    struct ptd_sample s;
    struct ptd_file *file;
    uint8_t *copy;
    memset(&s, 0, sizeof(s));
    s.writer.len = 48;
    writer_child(&s.writer, 0, "44444");
    put_header(&s.writer, s.writer.len, 0, 0);
    assert_fails(err, parse(&s.writer, s.writer.len, &file, &copy, &err), ST_UNSUPPORTED,
                 "before 0.7");
    free(copy);
    sample_new(&s, "w");
    for (size_t len = 0; len < s.writer.len; len++) {
        char text[80];
        if (len < 8) {
            snprintf(text, sizeof(text), "not a .ptd file");
        } else if (len < 48) {
            snprintf(text, sizeof(text), "the file ends at %zu of at least 48 bytes", len);
        } else {
            snprintf(text, sizeof(text), "ends at %zu of %zu bytes: truncated", len, s.writer.len);
        }
        assert_fails(err, parse(&s.writer, len, &file, &copy, &err), ST_CORRUPT, text);
        free(copy);
    }
}

/* After any change of any byte the file is refused, or its entries lie inside the file. */
static void damaged_files(void **state)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
    (void)state;
    struct ptd_sample s;
    unsigned accepted = 0;
    sample_new(&s, "w");
    for (size_t at = 0; at < s.writer.len; at++) {
        uint8_t keep = s.writer.bytes[at];
        for (size_t v = 0; v < sizeof(values); v++) {
            struct ptd_file *file;
            uint8_t *copy;
            s.writer.bytes[at] = values[v];
            if (parse(&s.writer, s.writer.len, &file, &copy, &err) == ST_OK) {
                const struct pte_names *names = ptd_names(file);
                for (uint32_t i = 0; i < names->count; i++) {
                    struct span bytes = names->entries[i].bytes;
                    assert_true(bytes.ptr >= copy && bytes.ptr + bytes.len <= copy + s.writer.len);
                }
                ptd_free(file);
                accepted++;
            }
            free(copy);
        }
        s.writer.bytes[at] = keep;
    }
    assert_true(accepted > 100);
}

/* ---- beside a program ------------------------------------------------------------------------ */

struct folder {
    char path[64], file[128];
    struct hal_device *device;
    struct rt_files files;
};

static int set_up(void **state)
{
    static struct folder f;
    f = (struct folder){.path = "/tmp/test_ptd.XXXXXX"};
    if (!mkdtemp(f.path) || hal_device_open("cpu", NULL, &f.device, &err) != ST_OK) {
        return -1;
    }
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {
        "m.pte", "m.ptd",     "m.a.ptd",     "m.b.ptd",   "mm.a.ptd",
        "n.pte", "other.ptd", "m.a.ptd.old", "moved.ptd", "_default_external_constant.ptd"};
    struct folder *f = *state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(f->file, sizeof(f->file), "%s/%s", f->path, names[i]);
        unlink(f->file);
    }
    hal_device_unref(f->device);
    return rmdir(f->path);
}

static const char *in_folder(struct folder *f, const char *name)
{
    snprintf(f->file, sizeof(f->file), "%s/%s", f->path, name);
    return f->file;
}

static void write_file(struct folder *f, const char *name, const void *bytes, size_t len)
{
    FILE *file = fopen(in_folder(f, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void write_data(struct folder *f, const char *name, const char *key)
{
    struct ptd_sample s;
    sample_new(&s, key);
    write_file(f, name, s.writer.bytes, s.writer.len);
}

/* Any program will do, because the test looks up keys itself. */
static void write_program(struct folder *f, const char *name)
{
    static uint8_t bytes[1 << 16];
    char path[1024];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/models/add.pte", top ? top : ".");
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    write_file(f, name, bytes, len);
}

static void open_files(struct folder *f, const char *const *data, uint32_t count)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/m.pte", f->path);
    const struct rt_files_source source = {.path = path, .data_paths = data, .data_count = count};
    assert_ok(err, rt_files_open(&f->files, f->device, &source, &err));
}

/* Checks that |key| is found in |name|, or (NULL) nowhere. */
static void check_key(struct folder *f, const char *key, const char *name)
{
    const struct pte_named_data *data;
    struct hal_binding at;
    if (!name) {
        assert_fails(err, rt_files_find(&f->files, span_str(key), &data, &err), ST_NOT_FOUND, key);
        return;
    }
    assert_ok(err, rt_files_find(&f->files, span_str(key), &data, &err));
    rt_files_locate(&f->files, data->bytes.ptr, &at);
    for (uint32_t i = 0; i < f->files.data_count; i++) {
        if (f->files.data[i].buffer == at.buffer) {
            assert_string_equal(strrchr(f->files.data[i].path, '/') + 1, name);
            assert_ptr_equal((uint8_t *)hal_buffer_map(at.buffer) + at.offset, data->bytes.ptr);
            return;
        }
    }
    fail();
}

static void files_beside_a_program(void **state)
{
    struct folder *f = *state;
    write_program(f, "m.pte");
    write_data(f, "m.a.ptd", "x");
    write_data(f, "m.b.ptd", "x");
    write_data(f, "m.ptd", "y");
    write_data(f, "mm.a.ptd", "z");
    write_data(f, "_default_external_constant.ptd", "y2");
    write_data(f, "other.ptd", "x2");
    write_file(f, "m.a.ptd.old", "no", 2);
    open_files(f, NULL, 0);
    assert_int_equal(f->files.data_count, 0); /* nothing is needed yet */
    check_key(f, "x", "m.a.ptd");
    assert_null(f->files.data[1].ptd); /* and no file was opened without need */
    check_key(f, "y", "m.ptd");
    check_key(f, "y2", "_default_external_constant.ptd");
    check_key(f, "z", "mm.a.ptd"); /* the only program of its folder */
    check_key(f, "x2", "other.ptd");
    check_key(f, "nothing", NULL);
    assert_string_equal(err.text,
                        "no data file has 'nothing': looked into m.a.ptd, m.b.ptd, m.ptd, "
                        "_default_external_constant.ptd, mm.a.ptd, other.ptd");
    rt_files_fini(&f->files);
    write_program(f, "n.pte"); /* now they may be another's */
    open_files(f, NULL, 0);
    check_key(f, "x", "m.a.ptd");
    check_key(f, "y2", "_default_external_constant.ptd");
    check_key(f, "x2", NULL);
    check_key(f, "z", NULL);
    rt_files_fini(&f->files);
}

static void files_that_were_given(void **state)
{
    struct folder *f = *state;
    char given[128];
    const char *paths[] = {given};
    write_program(f, "m.pte");
    write_data(f, "m.ptd", "x");
    write_data(f, "moved.ptd", "y");
    snprintf(given, sizeof(given), "%s/moved.ptd", f->path);
    open_files(f, paths, 1);
    check_key(f, "y", "moved.ptd");
    check_key(f, "x", NULL); /* no other file is searched */
    rt_files_fini(&f->files);
    write_file(f, "moved.ptd", "FT01", 4);
    char path[128];
    snprintf(path, sizeof(path), "%s/m.pte", f->path);
    const struct rt_files_source source = {.path = path, .data_paths = paths, .data_count = 1};
    assert_fails(err, rt_files_open(&f->files, f->device, &source, &err), ST_CORRUPT,
                 "moved.ptd: not a .ptd file");
    rt_files_fini(&f->files);
}

/* A broken file in the way of a key is an error, not "not found". */
static void a_broken_file_is_an_error(void **state)
{
    struct folder *f = *state;
    const struct pte_named_data *data;
    write_program(f, "m.pte");
    write_file(f, "m.a.ptd", "broken", 6);
    write_data(f, "m.b.ptd", "x");
    open_files(f, NULL, 0);
    assert_fails(err, rt_files_find(&f->files, span_str("x"), &data, &err), ST_CORRUPT,
                 "m.a.ptd: not a .ptd file");
    rt_files_fini(&f->files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_file),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(bad_entries),
        cmocka_unit_test(old_and_cut_files),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test_setup_teardown(files_beside_a_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_were_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_broken_file_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
