/* SPDX-License-Identifier: MIT */
/* What `pte bench` reads from a server and sends to it, its options, and how results are printed.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/json.h"
#include "server/cli/bench_fields.h"
#include "server/cli/bench_options.h"
#include "server/cli/bench_plot.h"
#include "server/cli/bench_report.h"
#include "server/cli/npy.h"

#define MS UINT64_C(1000000)

/* ---- what a server says ---------------------------------------------------------------------- */

static void rows_of_configurations(void **state)
{
    (void)state;
    static struct bench_model model;
    struct error err;
    assert_ok(err, bench_model_read_config(span_str("{\"max_batch_size\":8}"), &model, &err));
    assert_true(model.has_rows);
    assert_ok(err, bench_model_read_config(span_str("{\"max_batch_size\":0}"), &model, &err));
    assert_false(model.has_rows);
    assert_fails(err, bench_model_read_config(span_str("{\"max_batch_size\":\"8\"}"), &model, &err),
                 ST_CORRUPT, "configuration of the model: max_batch_size");
    assert_fails(err, bench_model_read_config(span_str("{} x"), &model, &err), ST_CORRUPT, "");
}

static void statistics_are_subtracted(void **state)
{
    (void)state;
    static const char text[] =
        "{\"model_stats\":[{\"name\":\"m\",\"inference_count\":7,\"execution_count\":3,"
        "\"inference_stats\":{\"success\":{\"count\":5,\"ns\":100},\"fail\":{\"count\":2,\"ns\":9},"
        "\"queue\":{\"count\":5,\"ns\":40},\"compute_infer\":{\"count\":5,\"ns\":30},"
        "\"compute_input\":{\"count\":5,\"ns\":20},\"compute_output\":{\"count\":5,\"ns\":10},"
        "\"decode\":{\"count\":2,\"ns\":8},\"x\":{\"y\":[]}},\"batch_stats\":[{}]},"
        "{\"inference_count\":1,\"execution_count\":1}]}";
    struct bench_stats stats, before = {.inferences = 2, .executions = 9, .requests = 1};
    struct error err;
    assert_ok(err, bench_stats_read(span_str(text), &stats, &err));
    struct bench_stats more = bench_stats_between(&before, &stats);
    assert_int_equal(more.inferences, 6);
    assert_int_equal(more.executions, 0); /* the server was restarted */
    assert_int_equal(more.requests, 4);
    assert_int_equal(more.failed, 2);
    assert_int_equal(more.total_ns, 100);
    assert_int_equal(more.queue_ns, 40);
    assert_int_equal(more.compute_ns, 30);
    assert_int_equal(more.prepare_ns, 12);
    assert_int_equal(more.decode_ns, 8);
    assert_int_equal(more.encode_ns, 10);
    assert_fails(
        err,
        bench_stats_read(span_str("{\"model_stats\":[{\"inference_count\":-1}]}"), &stats, &err),
        ST_CORRUPT, "inference_count");
}

static void names_of_servers_are_escaped(void **state)
{
    (void)state;
    char text[BENCH_SERVER_MAX];
    struct error err;
    assert_ok(err,
              bench_server_read(span_str("{\"name\":\"pted\",\"version\":\"1.2\"}"), text, &err));
    assert_string_equal(text, "pted 1.2");
    assert_ok(err, bench_server_read(span_str("{}"), text, &err));
    assert_string_equal(text, "");
    assert_ok(err, bench_server_read(span_str("{\"name\":\"\x7f\xc2\x9b\"}"), text, &err));
    assert_null(strchr(text, 0x7f));
    assert_null(strstr(text, "\xc2\x9b"));
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The inputs a, float32[-1,3], b, two strings, and c, which is optional. */
static struct bench_model *read_model(void)
{
    static struct bench_model model;
    static struct cli_io ios[] = {
        {.name = "a", .kind = PTED_KIND_TENSOR, .dtype = DT_F32, .dynamic_dims = 1},
        {.name = "b", .kind = PTED_KIND_STRING},
        {.name = "c", .kind = PTED_KIND_TENSOR, .dtype = DT_I64, .is_fixed = true},
    };
    static struct shape examples[3] = {{2, {1, 3}}, {1, {2}}, {0}};
    const struct cli_remote remote = {.ios = ios, .io_count = 3, .examples = examples};
    for (int i = 0; i < 3; i++) {
        ios[i].shape = examples[i];
    }
    model = (struct bench_model){.has_rows = true};
    bench_model_init(&model, &remote);
    assert_int_equal(model.inputs[0].shape.dims[0], -1);
    assert_int_equal(model.inputs[0].shape.dims[1], 3);
    assert_int_equal(model.inputs[0].example.dims[0], 1);
    return &model;
}

static void binary_requests(void **state)
{
    (void)state;
    static const char *const shapes[] = {"a=2x3"};
    const struct bench_body_options options = {.shapes = shapes, .shape_count = 1, .seed = 1};
    struct bench_bodies bodies;
    struct error err;
    assert_ok(err, bench_bodies_make(read_model(), &options, &bodies, &err));
    assert_int_equal(bodies.count, 1);
    const struct bench_body *body = &bodies.items[0];
    static const char head[] = "{\"parameters\":{\"binary_data_output\":true},\"inputs\":["
                               "{\"name\":\"a\",\"datatype\":\"FP32\",\"shape\":[2,3],"
                               "\"parameters\":{\"binary_data_size\":24}},"
                               "{\"name\":\"b\",\"datatype\":\"BYTES\",\"shape\":[2],"
                               "\"parameters\":{\"binary_data_size\":16}}]}";
    assert_int_equal(body->json_bytes, strlen(head));
    assert_memory_equal(body->bytes.ptr, head, strlen(head));
    assert_int_equal(body->bytes.len, strlen(head) + 24 + 16);
    assert_memory_equal(body->bytes.ptr + body->bytes.len - 16, "\4\0\0\0text\4\0\0\0text", 16);
    assert_int_equal(body->rows, 2);
    for (size_t i = 0; i < 6; i++) {
        float value;
        memcpy(&value, body->bytes.ptr + strlen(head) + 4 * i, sizeof(value));
        assert_true(value >= -1 && value <= 1);
    }
    bench_bodies_fini(&bodies);
}

static void json_requests(void **state)
{
    (void)state;
    const struct bench_body_options options = {.is_json = true, .seed = 1};
    struct bench_bodies bodies;
    struct json in;
    struct error err;
    assert_ok(err, bench_bodies_make(read_model(), &options, &bodies, &err));
    struct span body = bodies.items[0].bytes;
    assert_int_equal(bodies.items[0].json_bytes, body.len);
    json_init(&in, body);
    assert_ok(err, json_skip(&in, &err));
    assert_ok(err, json_end(&in, &err));
    char *text = strndup((const char *)body.ptr, body.len);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"shape\":[1,3],\"data\":["));
    assert_non_null(strstr(text, "\"data\":[\"text\",\"text\"]"));
    free(text);
    struct buf chosen;
    buf_init(&chosen, 1000);
    bench_bodies_print_inputs(&bodies, true, &chosen);
    assert_true(span_is(buf_span(&chosen), " a=1x3"));
    buf_fini(&chosen);
    bench_bodies_fini(&bodies);
}

/* Requests of one seed are the same bytes, and of another seed others. */
static void seeds_repeat(void **state)
{
    (void)state;
    struct bench_bodies first, second, other;
    struct bench_body_options options = {.seed = 3};
    struct error err;
    assert_ok(err, bench_bodies_make(read_model(), &options, &first, &err));
    assert_ok(err, bench_bodies_make(read_model(), &options, &second, &err));
    options.seed = 4;
    assert_ok(err, bench_bodies_make(read_model(), &options, &other, &err));
    assert_true(span_equal(first.items[0].bytes, second.items[0].bytes));
    assert_false(span_equal(first.items[0].bytes, other.items[0].bytes));
    bench_bodies_fini(&first);
    bench_bodies_fini(&second);
    bench_bodies_fini(&other);
}

static void write_npy(const char *path, float value, int64_t columns)
{
    struct buf file;
    const struct shape shape = {.rank = 2, .dims = {1, columns}};
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    buf_init(&file, 1000);
    npy_print_head(&file, DT_F32, &shape);
    for (int64_t i = 0; i < columns; i++) {
        buf_add(&file, &value, sizeof(value));
    }
    assert_int_equal(fwrite(file.ptr, 1, file.len, to), file.len);
    assert_int_equal(fclose(to), 0);
    buf_fini(&file);
}

static void requests_from_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/test_bench.XXXXXX", paths[3][64], option[80];
    struct bench_bodies bodies;
    struct error err;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 3; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%d.npy", folder, 3 - i);
        write_npy(paths[i], (float)(3 - i), 3);
    }
    snprintf(option, sizeof(option), "a=%s", folder);
    const char *data[] = {option, option};
    struct bench_body_options options = {.data = data, .data_count = 1};
    assert_ok(err, bench_bodies_make(read_model(), &options, &bodies, &err));
    assert_int_equal(bodies.count, 3);
    for (uint32_t i = 0; i < 3; i++) { /* in the order of the names */
        float value;
        memcpy(&value, bodies.items[i].bytes.ptr + bodies.items[i].json_bytes, sizeof(value));
        assert_true(value == (float)(i + 1));
    }
    bench_bodies_fini(&bodies);
    options.data_count = 2;
    assert_ok(err, bench_bodies_make(read_model(), &options, &bodies, &err));
    assert_int_equal(bodies.count, 6);
    bench_bodies_fini(&bodies);
    write_npy(paths[1], 1, 4);
    options.data_count = 1;
    assert_fails(err, bench_bodies_make(read_model(), &options, &bodies, &err), ST_INVALID,
                 "2.npy: the model takes [-1,3], the file has [1,4]");
    bench_bodies_fini(&bodies);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(unlink(paths[i]), 0);
    }
    assert_fails(err, bench_bodies_make(read_model(), &options, &bodies, &err), ST_NOT_FOUND,
                 "expected files that end in .npy");
    bench_bodies_fini(&bodies);
    assert_int_equal(rmdir(folder), 0);
}

static void wrong_inputs(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *part;
    } rows[] = {
        {"a", "expected NAME=2x3x4, where NAME is one of a, b, c"},
        {"=1", "where NAME is one of a, b, c"},
        {"x=1", "where NAME is one of a, b, c"},
        {"a=1x", "dims: expected something like 2x3x4"},
        {"a=-1", "dims: expected something like 2x3x4"},
        {"a=4294967296x4294967296", "too many bytes"},
        {"a=1000000000000", ""},
        {"b=1000000000000", "are too many"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct bench_body_options options = {.shapes = &rows[i].shape, .shape_count = 1};
        struct bench_bodies bodies;
        struct error err;
        enum status status = bench_bodies_make(read_model(), &options, &bodies, &err);
        assert_true(status == ST_INVALID || status == ST_TOO_LARGE);
        if (!strstr(err.text, rows[i].part)) {
            fail_msg("%s: %s", rows[i].shape, err.text);
        }
        bench_bodies_fini(&bodies);
    }
}

/* ---- options --------------------------------------------------------------------------------- */

/* The options are words with blanks between them. */
static enum status parse(struct bench_options *options, const char *line, struct error *err)
{
    static char text[200];
    char *words[16], *rest;
    int count = 0;
    snprintf(text, sizeof(text), "%s", line);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        words[count++] = word;
    }
    return bench_options_parse(count, words, options, err);
}

static void options_of_loops(void **state)
{
    (void)state;
    static struct bench_options options;
    struct error err;
    assert_ok(err, parse(&options, "http://h/m --clients 1,2 --duration=3s", &err));
    assert_int_equal(options.clients.count, 2);
    assert_int_equal(options.duration_ms, 3000);
    assert_ok(err, parse(&options, "http://h/m", &err));
    assert_int_equal(options.clients.count, 1);
    assert_int_equal(options.duration_ms, 10000);
    assert_ok(
        err, parse(&options, "http://h/m --rate 5 --arrivals=fixed --requests=9 --method=x", &err));
    assert_int_equal(options.clients.count, 0);
    assert_int_equal(options.rates.count, 1);
    assert_int_equal(options.duration_ms, 0);
    assert_int_equal(options.arrivals, BENCH_FIXED);
    assert_string_equal(options.target.model, "m.x");
}

static void wrong_options(void **state)
{
    (void)state;
    static struct bench_options options;
    static const struct {
        const char *line, *part;
    } rows[] = {
        {"--clients=1", "expected URL/MODEL"},
        {"http://h/m http://h/m", "one URL/MODEL only"},
        {"http://h", ""},
        {"http://h/m --clients=1 --rate=1", "expected one of them"},
        {"http://h/m --connections=1", "--connections: only with --rate"},
        {"http://h/m --arrivals=fixed", "--arrivals: only with --rate"},
        {"http://h/m --rate=1 --arrivals=even", "expected poisson or fixed, got 'even'"},
        {"http://h/m --form=xml", "expected binary or json, got 'xml'"},
        {"http://h/m --rate=1 --connections=4097", "--connections: expected 1 to 4096"},
        {"http://h/m --clients=0", "--clients: expected whole numbers from 1 to 4096"},
        {"http://h/m --duration=0s", "--duration: expected 1 to"},
        {"http://h/m --duration=9d", "--duration: expected a time"},
        {"http://h/m --requests=0", "--requests: expected 1 to"},
        {"http://h/m --csv=- --json=-", "only one can be standard output"},
        {"http://h/m --clients", "needs a value"},
        {"http://h/m --nope", "unknown option '--nope'"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct error err;
        assert_fails(err, parse(&options, rows[i].line, &err), ST_INVALID, rows[i].part);
    }
}

/* ---- results --------------------------------------------------------------------------------- */

#define STEPS 3

static struct bench_step steps[STEPS];
static const struct bench_bodies no_bodies;

/* The last step has no answers. */
static struct bench_report make_report(uint32_t count, bool is_open)
{
    memset(steps, 0, sizeof(steps));
    for (uint32_t i = 0; i < count; i++) {
        struct bench_result *result = &steps[i].result;
        steps[i].run = (struct bench_run){.is_open = is_open,
                                          .rate = is_open ? 100.5 * (i + 1) : 0,
                                          .is_poisson = true,
                                          .connections = i + 1};
        result->ns = 2000 * MS;
        result->begun = 1000;
        if (i == 2) {
            result->failures[BENCH_LOST] = 1000;
            error_set(&result->first, ST_UNAVAILABLE, "a \"quoted\"\ntext, with a comma");
            continue;
        }
        for (uint64_t n = 1; n <= 990; n++) {
            bench_histogram_add(&result->latency, n * MS / 10 * (i + 1));
        }
        result->ok = result->rows = result->statuses[200] = 990;
        result->statuses[429] = 8;
        result->failures[BENCH_TIMEOUT] = 2;
        steps[i].has_stats = true;
        steps[i].stats = (struct bench_stats){
            .inferences = 990, .executions = 330, .requests = 990, .queue_ns = 990000};
    }
    return (struct bench_report){.target = "http://h",
                                 .model = "m",
                                 .server = "pted 1",
                                 .bodies = &no_bodies,
                                 .has_rows = true,
                                 .steps = steps,
                                 .count = count};
}

/* The value under |name| in line |line| of |csv|; lines have as many fields as the first. */
static void read_csv(const char *csv, const char *name, int line, char out[64])
{
    int column = 0, at = 0;
    const char *head = csv;
    while (strncmp(head, name, strlen(name)) != 0 || !strchr(",\n", head[strlen(name)])) {
        head += strcspn(head, ",\n");
        assert_true(*head == ',');
        head++;
        column++;
    }
    for (; line > 0; line--) {
        csv = strchr(csv, '\n') + 1;
    }
    for (; at < column; at++) {
        csv += strcspn(csv, ",\n");
        assert_true(*csv == ',');
        csv++;
    }
    snprintf(out, 64, "%.*s", (int)(*csv == '"' ? strcspn(csv, "\n") : strcspn(csv, ",\n")), csv);
}

static void csv_has_all_figures(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int line;
        const char *value;
    } rows[] = {
        {"loop", 1, "closed"},
        {"clients", 1, "1"},
        {"clients", 3, "3"},
        {"rate", 1, ""},
        {"requests", 1, "1000"},
        {"ok", 1, "990"},
        {"failed", 1, "10"},
        {"requests_per_s", 1, "495.000"},
        {"min_ms", 1, "0.100000"},
        {"max_ms", 2, "198.000000"},
        {"min_ms", 3, ""},
        {"server_batch_rows", 1, "3.000"},
        {"server_queue_us", 1, "1.000"},
        {"server_rows", 3, ""},
        {"failures", 1, "\"HTTP 429 (8), timeout (2)\""},
        {"failures", 3, "\"connection lost (1000)\""},
    };
    struct bench_report report = make_report(STEPS, false);
    struct buf out;
    buf_init(&out, 1 << 20);
    bench_report_print_csv(&report, &out);
    buf_add(&out, "", 1);
    assert_false(buf_failed(&out));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char got[64];
        read_csv((const char *)out.ptr, rows[i].name, rows[i].line, got);
        assert_string_equal(got, rows[i].value);
    }
    buf_fini(&out);
}

static void json_is_json(void **state)
{
    (void)state;
    for (int is_open = 0; is_open < 2; is_open++) {
        struct bench_report report = make_report(STEPS, is_open);
        struct json in;
        struct error err;
        struct buf out;
        buf_init(&out, 1 << 20);
        report.model = "a \"model\"\x01";
        bench_report_print_json(&report, &out);
        json_init(&in, buf_span(&out));
        assert_ok(err, json_skip(&in, &err));
        assert_ok(err, json_end(&in, &err));
        buf_add(&out, "", 1);
        const char *text = (const char *)out.ptr;
        assert_non_null(strstr(text, "\"statuses\":{\"200\":990,\"429\":8}"));
        assert_non_null(strstr(text, "\"failures\":{\"timeout\":2}"));
        assert_non_null(strstr(text, "\"model\":\"a \\\"model\\\"\\u0001\""));
        assert_non_null(strstr(text, is_open ? "\"rate\":201.000" : "\"clients\":2"));
        assert_non_null(strstr(text, is_open ? "\"arrivals\":\"poisson\"" : "\"loop\":\"closed\""));
        buf_fini(&out);
    }
}

/* No line of a plot or of a table is longer than the window is wide. */
static void expect_width(const struct buf *out, size_t width)
{
    size_t at = 0;
    while (at < out->len) {
        const uint8_t *end = memchr(out->ptr + at, '\n', out->len - at);
        assert_non_null(end);
        size_t len = (size_t)(end - out->ptr) - at;
        if (len > width) {
            fail_msg("%zu columns in a window of %zu: %.*s", len, width, (int)len, out->ptr + at);
        }
        at += len + 1;
    }
}

static void plots_fit_the_window(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= STEPS; count++) {
        struct bench_report report = make_report(count, count % 2);
        for (uint32_t width = 0; width < 300; width++) {
            struct buf out;
            buf_init(&out, 1 << 20);
            bench_plot_print(&report, width, &out);
            assert_true(out.len > 0);
            assert_false(buf_failed(&out));
            uint32_t least = width < BENCH_PLOT_WIDTH_MIN ? BENCH_PLOT_WIDTH_MIN : width;
            expect_width(&out, least > BENCH_PLOT_WIDTH_MAX ? BENCH_PLOT_WIDTH_MAX : least);
            buf_fini(&out);
        }
    }
}

/* Shares of a plot are shares of all: its bars lose no value. */
static void bars_have_all_values(void **state)
{
    (void)state;
    struct bench_report report = make_report(1, false);
    struct buf out;
    double sum = 0;
    buf_init(&out, 1 << 20);
    bench_plot_print(&report, 80, &out);
    buf_add(&out, "", 1);
    for (const char *line = (const char *)out.ptr; line; line = strchr(line, '\n')) {
        double low, high, share;
        line += *line == '\n';
        sum += sscanf(line, "%lf - %lf ms %lf", &low, &high, &share) == 3 ? share : 0;
    }
    assert_between((uint64_t)(sum * 100 + 0.5), 9990, 10010);
    buf_fini(&out);
}

static void tables_leave_columns_out(void **state)
{
    (void)state;
    static const struct {
        uint32_t width;
        bool has_late, has_compute;
    } rows[] = {{UINT32_MAX, true, true}, {80, true, false}, {40, false, false}};
    struct bench_report report = make_report(STEPS, true);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buf out;
        buf_init(&out, 1 << 20);
        bench_report_print(&report, rows[i].width, &out);
        buf_add(&out, "", 1);
        const char *table = strstr((const char *)out.ptr, "\n\n");
        char head[256];
        assert_non_null(table);
        snprintf(head, sizeof(head), "%.*s", (int)strcspn(table + 2, "\n"), table + 2);
        assert_non_null(strstr(head, "rate"));
        assert_int_equal(strstr(head, "late %") != NULL, rows[i].has_late);
        assert_int_equal(strstr(head, "compute") != NULL, rows[i].has_compute);
        assert_true(strlen(head) <= rows[i].width);
        buf_fini(&out);
    }
}

static void nothing_was_measured(void **state)
{
    (void)state;
    struct bench_report report = make_report(1, false);
    struct buf out;
    buf_init(&out, 1 << 20);
    steps[0] = (struct bench_step){.run = {.connections = 1}};
    bench_report_print(&report, 80, &out);
    bench_plot_print(&report, 80, &out);
    bench_report_print_csv(&report, &out);
    bench_report_print_json(&report, &out);
    buf_add(&out, "", 1);
    assert_null(strstr((const char *)out.ptr, "nan"));
    assert_null(strstr((const char *)out.ptr, "inf,"));
    report.count = 0;
    bench_report_print(&report, 80, &out);
    bench_plot_print(&report, 80, &out);
    buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_configurations),
        cmocka_unit_test(statistics_are_subtracted),
        cmocka_unit_test(names_of_servers_are_escaped),
        cmocka_unit_test(binary_requests),
        cmocka_unit_test(json_requests),
        cmocka_unit_test(seeds_repeat),
        cmocka_unit_test(requests_from_files),
        cmocka_unit_test(wrong_inputs),
        cmocka_unit_test(options_of_loops),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(csv_has_all_figures),
        cmocka_unit_test(json_is_json),
        cmocka_unit_test(plots_fit_the_window),
        cmocka_unit_test(bars_have_all_values),
        cmocka_unit_test(tables_leave_columns_out),
        cmocka_unit_test(nothing_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
