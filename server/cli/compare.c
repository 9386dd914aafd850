/* SPDX-License-Identifier: MIT */
/* pte compare: the intermediate values of a call beside those of a reference, and the first that
 * differs. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/cli/call.h"
#include "server/cli/cli.h"
#include "server/cli/dump.h"
#include "server/cli/npz.h"
#include "server/cli/pairs.h"

#define EXIT_DIFFERS 1
#define EDGES_NAME "@edges"
#define INPUT_PREFIX "input_"
#define TEXT_BYTES_MAX ((size_t)64 << 20)
#define BEFORE_ROWS 3 /* equal values that are shown before the first difference */
#define QUANTIZED_BITS 8

struct compare_options {
    struct cli_call_options call;
    const char *reference;
    double tolerance;
    bool shows_all;
};

/* The reference, and what is compared with it. */
struct comparison {
    const struct compare_options *options;
    struct npz npz;
    struct dump dump;
    struct pairs pairs;
    struct pairs_tensor *got, *want; /* owned; storage of |pairs|, like the next two */
    struct pairs_edge *edges;
    struct pairs_row *rows;
    void **copies; /* owned, each of them: values that the archive has in another order */
    uint32_t copy_count;
};

/* ---- the command line ------------------------------------------------------------------------ */

static enum status set_tolerance(void *own, const char *value, struct error *err)
{
    struct compare_options *options = own;
    char *end;
    options->tolerance = strtod(value, &end);
    return *value && !*end && options->tolerance > 0 && options->tolerance < 1e9
               ? ST_OK
               : error_set(err, ST_INVALID, "expected a number above 0, got '%.64s'", value);
}

static const struct cli_option own_options[] = {
    {.name = "all",
     .type = OPTION_SWITCH,
     .at = offsetof(struct compare_options, shows_all),
     .doc = "each value; else those around the first difference",
     .more = "Results are shown in any case."},
    {.name = "tolerance",
     .value = "X",
     .type = OPTION_TEXT,
     .set = set_tolerance,
     .preset = "by the type: half of its bits, 0.000244 of float32",
     .doc = "floats are equal if they are at most X of the largest value apart"},
    {.name = NULL},
};

static const struct cli_option_group groups[] = {
    {.name = "call",
     .options = cli_call_option_table,
     .at = offsetof(struct compare_options, call)},
    {.name = "compare", .options = own_options},
    {.name = "device",
     .options = cli_device_option_table,
     .at = offsetof(struct compare_options, call)},
    {.name = NULL},
};

static enum status take(void *own, const char *text, struct error *err)
{
    struct compare_options *options = own;
    return cli_call_take(&options->call, text, err);
}

/* The second argument without a name is the reference. */
static enum status parse(int argc, char *const argv[], struct compare_options *options,
                         struct error *err)
{
    struct cli_inputs_options *inputs = &options->call.inputs;
    options->call.precision = PRECISION_FAST;
    TRY(cli_option_parse(&cli_compare_command, argc, argv, options, err));
    TRY(cli_call_settle(&options->call, err));
    if (inputs->file_count == 0) {
        return error_set(err, ST_INVALID, "expected FILE.pte and REFERENCE.npz");
    }
    options->reference = inputs->files[0];
    inputs->file_count--;
    memmove(inputs->files, inputs->files + 1, inputs->file_count * sizeof(inputs->files[0]));
    return ST_OK;
}

/* ---- the reference --------------------------------------------------------------------------- */

static bool is_input(const char *name)
{
    size_t len = sizeof(INPUT_PREFIX) - 1;
    return strncmp(name, INPUT_PREFIX, len) == 0 && name[len] &&
           strspn(name + len, "0123456789") == strlen(name + len);
}

/* The elements of |array| as they lie here. */
static enum status take_array(struct comparison *c, const struct npz_array *array,
                              struct pairs_tensor *out, struct error *err)
{
    const struct npy *npy = &array->array;
    *out = (struct pairs_tensor){array->name, npy->dtype, npy->shape, npy->data.ptr};
    if (!npy->is_fortran && !npy->is_big_endian) {
        return ST_OK;
    }
    void *copy = malloc(npy->data.len + 1);
    if (!copy) {
        return error_no_memory(err, "'%s'", array->name);
    }
    npy_copy(npy, copy);
    c->copies[c->copy_count++] = copy;
    out->bytes = copy;
    return ST_OK;
}

/* Rows of two numbers of values, the first of which is the lower one. */
static enum status read_edges(struct comparison *c, const struct npz_array *array,
                              struct error *err)
{
    const struct npy *npy = &array->array;
    bool fits = npy->dtype == DT_I64 && npy->shape.rank == 2 && npy->shape.dims[1] == 2 &&
                !npy->is_fortran && !npy->is_big_endian && npy->shape.dims[0] < UINT32_MAX;
    size_t count = fits ? (size_t)npy->shape.dims[0] : 0;
    c->edges = calloc(count + 1, sizeof(*c->edges));
    if (!c->edges) {
        return error_no_memory(err, "%zu edges", count);
    }
    for (size_t i = 0; fits && i < count; i++) {
        uint64_t from = load_le64(npy->data.ptr + 16 * i),
                 to = load_le64(npy->data.ptr + 16 * i + 8);
        fits = from < to && to < c->pairs.want_count;
        c->edges[i] =
            fits ? (struct pairs_edge){(uint32_t)from, (uint32_t)to} : (struct pairs_edge){0};
    }
    c->pairs.edges = c->edges;
    c->pairs.edge_count = (uint32_t)count;
    return fits ? ST_OK
                : error_set(err, ST_CORRUPT,
                            EDGES_NAME ": expected int64 [n,2], each a number of a value and a "
                                       "higher one below %u",
                            c->pairs.want_count);
}

static enum status read_reference(struct comparison *c, struct error *err)
{
    TRY(npz_read(&c->npz, c->options->reference, err));
    c->want = calloc((size_t)c->npz.count + 1, sizeof(*c->want));
    c->rows = calloc((size_t)c->npz.count + 1, sizeof(*c->rows));
    c->copies = calloc((size_t)c->npz.count + 1, sizeof(*c->copies));
    if (!c->want || !c->rows || !c->copies) {
        return error_no_memory(err, "%u values", c->npz.count);
    }
    for (uint32_t i = 0; i < c->npz.count; i++) {
        const struct npz_array *array = &c->npz.items[i];
        if (!is_input(array->name) && strcmp(array->name, EDGES_NAME) != 0) {
            TRY(take_array(c, array, &c->want[c->pairs.want_count++], err));
        }
    }
    c->pairs.want = c->want;
    const struct npz_array *edges = npz_find(&c->npz, EDGES_NAME);
    TRY(edges ? read_edges(c, edges, err) : ST_OK);
    return c->pairs.want_count > 0
               ? ST_OK
               : error_set(err, ST_CORRUPT, "the archive has no values beside inputs");
}

/* The inputs of the call are those of the reference, if it has any and the user says no other. */
static enum status set_inputs(void *own, struct cli_call *call, struct error *err)
{
    struct comparison *c = own;
    for (uint32_t i = 0; i < c->npz.count; i++) {
        const struct npz_array *array = &c->npz.items[i];
        uint32_t at = 0;
        while (is_input(array->name) && at < call->inputs.count &&
               !cli_io_is_called(&call->inputs.ios[at], span_str(array->name))) {
            at++;
        }
        if (is_input(array->name) && at == call->inputs.count) {
            return error_set(err, ST_INVALID, "%s: %s: the method has %u inputs",
                             c->options->reference, array->name, call->inputs.count);
        }
        if (is_input(array->name) && !call->inputs.items[at].text &&
            !call->inputs.items[at].media) {
            call->inputs.items[at].array = &array->array;
        }
    }
    return ST_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static enum status take_values(struct comparison *c, struct error *err)
{
    bool is_quantized = false;
    c->got = calloc((size_t)c->dump.count + 1, sizeof(*c->got));
    if (!c->got) {
        return error_no_memory(err, "%u values", c->dump.count);
    }
    for (uint32_t i = 0; i < c->dump.count; i++) {
        const struct dump_value *value = &c->dump.items[i];
        c->got[i] = (struct pairs_tensor){value->name, value->dtype, value->shape, value->bytes};
        is_quantized |= value->dtype == DT_I8 || value->dtype == DT_U8;
    }
    c->pairs.got = c->got;
    c->pairs.got_count = c->dump.count;
    c->pairs.result_count = c->dump.result_count;
    c->pairs.tolerance = c->options->tolerance;
    c->pairs.bits =
        is_quantized || c->options->call.precision == PRECISION_BF16 ? QUANTIZED_BITS : 0;
    return pairs_find(&c->pairs, c->rows) ? ST_OK : error_no_memory(err, "pairs");
}

/* ---- the report ------------------------------------------------------------------------------ */

static const char *const kind_words[] = {
    [PAIRS_EQUAL] = "equal",   [PAIRS_DIFFERS] = "differs", [PAIRS_SHAPE] = "dims",
    [PAIRS_FOLDED] = "folded", [PAIRS_ABSENT] = "absent",
};

static void print_difference(const struct pairs_difference *d, struct buf *out)
{
    buf_printf(out, "max abs %.3g, relative %.3g", d->max_abs, d->relative);
    if (d->strange) {
        buf_printf(out, ", %llu NaN or infinite in one alone", (unsigned long long)d->strange);
    }
}

static void print_type(const struct pairs_tensor *tensor, struct buf *out)
{
    char shape[SHAPE_TEXT_MAX];
    buf_printf(out, "%s%s", dtype_name(tensor->dtype), shape_print(&tensor->shape, shape));
}

static void print_row(const struct comparison *c, uint32_t i, struct buf *out)
{
    const struct pairs_row *row = &c->rows[i];
    bool has_pair = row->got != PAIRS_NONE && row->kind != PAIRS_FOLDED;
    buf_printf(out, has_pair ? "  %-8s %-20s" : "  %-8s %s", kind_words[row->kind],
               c->want[i].name);
    if (has_pair) {
        buf_printf(out, " %-20s ", c->got[row->got].name);
    }
    if (row->kind == PAIRS_SHAPE) {
        print_type(&c->got[row->got], out);
        buf_add_str(out, ", expected ");
        print_type(&c->want[i], out);
    } else if (has_pair) {
        print_difference(&row->difference, out);
    }
    buf_add_char(out, '\n');
}

/* "[0,3]: 0.5, expected 0.25" */
static void print_place(const struct pairs_tensor *want, const struct pairs_difference *d,
                        struct buf *out)
{
    size_t index[SHAPE_RANK_MAX], at = d->at;
    for (int i = want->shape.rank - 1; i >= 0; i--) {
        index[i] = at % (size_t)want->shape.dims[i];
        at /= (size_t)want->shape.dims[i];
    }
    buf_add_char(out, '[');
    for (int i = 0; i < want->shape.rank; i++) {
        buf_printf(out, "%s%zu", i ? "," : "", index[i]);
    }
    buf_printf(out, "]: %.7g, expected %.7g", d->got, d->want);
}

/* Which value of the program it is, how far it is off, and where. */
static void print_details(const struct comparison *c, uint32_t want, const struct pairs_row *row,
                          struct buf *out)
{
    const char *origin = c->dump.items[row->got].origin;
    buf_printf(out, "  %s", c->got[row->got].name);
    if (*origin) {
        buf_printf(out, " (%s)", origin);
    }
    buf_printf(out, " beside %s: ", c->want[want].name);
    print_difference(&row->difference, out);
    buf_add_str(out, "\n  at ");
    print_place(&c->want[want], &row->difference, out);
    buf_add_char(out, '\n');
}

static void print_first(const struct comparison *c, uint32_t first, struct buf *out)
{
    const struct pairs_row *row = &c->rows[first];
    struct pairs_row guess;
    uint32_t want;
    buf_printf(out, "first difference: %s\n", c->want[first].name);
    if (row->kind == PAIRS_DIFFERS) {
        print_details(c, first, row, out);
    } else if (row->kind == PAIRS_ABSENT) {
        buf_add_str(out, "  no value of the program is like it\n");
        if (pairs_guess(&c->pairs, c->rows, first, &want, &guess)) {
            buf_add_str(out, "  probably");
            print_details(c, want, &guess, out);
        }
    }
}

/* Is row |i| shown? Those before and at the first difference are, and results. */
static bool is_shown(const struct comparison *c, uint32_t first, uint32_t i)
{
    uint32_t last = first == PAIRS_NONE ? c->pairs.want_count : first;
    bool is_result = strncmp(c->want[i].name, "output_", 7) == 0;
    return c->options->shows_all || is_result || (i <= last && i + BEFORE_ROWS >= last);
}

static void print_rows(const struct comparison *c, uint32_t first, struct buf *out)
{
    uint32_t hidden = 0;
    for (uint32_t i = 0; i < c->pairs.want_count; i++) {
        if (!is_shown(c, first, i)) {
            hidden++;
            continue;
        }
        if (hidden > 0) {
            buf_printf(out, "  ... %u more\n", hidden);
        }
        hidden = 0;
        print_row(c, i, out);
    }
    if (hidden > 0) {
        buf_printf(out, "  ... %u more\n", hidden);
    }
}

/* Is |bound| that of a value and its pair? */
static bool has_bound(const struct comparison *c, double bound)
{
    for (uint32_t i = 0; i < c->pairs.want_count; i++) {
        enum dtype want = c->want[i].dtype;
        enum dtype got = c->rows[i].got != PAIRS_NONE ? c->got[c->rows[i].got].dtype : want;
        if (pairs_tolerance(got, want, 0) == bound) {
            return true;
        }
    }
    return false;
}

/* "0.000244 (half of the bits of float32), 0.0221 (half of the bits of float16)" */
static void print_bounds(const struct comparison *c, struct buf *out)
{
    const char *before = "at most ";
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        double bound = pairs_tolerance((enum dtype)dtype, (enum dtype)dtype, 0);
        if (bound > 0 && has_bound(c, bound)) {
            buf_printf(out, "%s%.3g (half of the bits of %s)", before, bound,
                       dtype_name((enum dtype)dtype));
            before = ", ";
        }
    }
}

/* The bounds of equal floats, and why they are that. */
static void print_tolerance(const struct comparison *c, struct buf *out)
{
    bool is_bf16 = c->options->call.precision == PRECISION_BF16;
    buf_add_str(out, "equal: ");
    size_t before = out->len;
    if (c->pairs.tolerance > 0) {
        buf_printf(out, "at most %.3g (--tolerance)", c->pairs.tolerance);
    } else if (c->pairs.bits) {
        buf_printf(out, "at most %.3g (half of the %u bits of %s)",
                   pairs_tolerance(DT_F32, DT_F32, c->pairs.bits), c->pairs.bits,
                   is_bf16 ? "bfloat16" : "its values");
    } else {
        print_bounds(c, out);
    }
    buf_add_str(out, out->len > before ? " of the largest value apart\n" : "the same numbers\n");
}

static enum status report(const struct comparison *c, uint32_t first, struct error *err)
{
    struct buf out;
    uint32_t counts[PAIRS_ABSENT + 1] = {0};
    buf_init(&out, TEXT_BYTES_MAX);
    for (uint32_t i = 0; i < c->pairs.want_count; i++) {
        counts[c->rows[i].kind]++;
    }
    uint32_t wrong = counts[PAIRS_DIFFERS] + counts[PAIRS_SHAPE] + counts[PAIRS_ABSENT];
    buf_printf(&out, "%s: %u values of %s: %u equal, %u folded into others, %u not\n",
               c->options->call.path, c->pairs.want_count, c->options->reference,
               counts[PAIRS_EQUAL], counts[PAIRS_FOLDED], wrong);
    print_tolerance(c, &out);
    print_rows(c, first, &out);
    if (first != PAIRS_NONE) {
        print_first(c, first, &out);
    }
    enum status status = cli_write(&out, err);
    buf_fini(&out);
    return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void close_all(struct comparison *c)
{
    for (uint32_t i = 0; i < c->copy_count; i++) {
        free(c->copies[i]);
    }
    free(c->copies);
    free(c->rows);
    free(c->edges);
    free(c->want);
    free(c->got);
    dump_fini(&c->dump);
    npz_fini(&c->npz);
}

static enum status compare(struct comparison *c, bool *out_differs, struct error *err)
{
    if (read_reference(c, err) != ST_OK) {
        return error_prefix(err, "%s: ", c->options->reference);
    }
    TRY(dump_run(&c->dump, &c->options->call, "all", set_inputs, c, err));
    TRY(take_values(c, err));
    uint32_t first = pairs_first(&c->pairs, c->rows);
    *out_differs = first != PAIRS_NONE;
    return report(c, first, err);
}

static int run(int argc, char *const argv[])
{
    static struct compare_options options;
    struct comparison c = {.options = &options};
    struct error err;
    bool differs = false;
    enum status status = parse(argc, argv, &options, &err);
    if (status == ST_OK) {
        status = compare(&c, &differs, &err);
        close_all(&c);
    }
    int code = cli_finish(&cli_compare_command, status, &err);
    return code == 0 && differs ? EXIT_DIFFERS : code;
}

const struct cli_command cli_compare_command = {
    .name = "compare",
    .usage = "compare [OPTION]... FILE.pte REFERENCE.npz",
    .summary = "which layer of a program computes something else",
    .about =
        "Calls a method with the inputs of REFERENCE.npz and compares its intermediate values and\n"
        "results with those of the archive: which layer is the first that differs, by how much "
        "and\n"
        "where. Exit status 0: none differs; 1: one does. record() of pted_server.export writes\n"
        "such an archive of what PyTorch computes, `pte run --dump all --output FILE.npz` of what\n"
        "a program computes.\n",
    .after = "Examples:\n"
             "  pte compare net.pte net.npz\n"
             "  pte run net.pte --precision exact --dump all --output exact.npz\n"
             "  pte compare net.pte exact.npz --precision bf16 --all\n",
    .groups = groups,
    .take = take,
    .run = run,
};
