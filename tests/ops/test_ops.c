/* SPDX-License-Identifier: MIT */
/*
 * Operators against PyTorch: every case of every family, at each instruction set level that this
 * machine has, with one worker and with four, in workspaces that were filled with 0xff. At the end,
 * every row that a file can name must have been called by a case, and what it says of devices must
 * be true of what it dispatched.
 */
#include "config.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/cpu/isa.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/import/kernels.h"
#include "runtime/load/load.h"
#include "runtime/ops/op.h"
#include "runtime/program/program.h"
#include "tests/ops/cases.h"
#include "tests/ops/dispatches.h"

#define POOL_BYTES ((size_t)256 << 20)

static const char *const families[] = {
    "pointwise", "create",  "sizes",      "formats",  "reduce",      "norm",         "view",
    "index",     "pool",    "matmul",     "conv",     "quantized",   "quant_layers", "llm",
    "moe",       "vision",  "conv_types", "complex",  "order",       "gate",         "random",
    "integers",  "corners", "extent",     "products", "conversions", "beyond",       "differences"};
static const uint32_t worker_counts[] = {1, 4};

/*
 * Kernels that today's exporter does not write: other names of a row, for devices, in place. And
 * those whose effect no case can show: models in tests/models have them.
 */
static const char *const unwritten[] = {
    "aten::_native_batch_norm_legit.out",
    "aten::index_put_",
    "aten::lift_fresh_copy.out",
    "aten::sym_numel",
    "et_copy::_d2h_copy.out",
    "et_copy::_h2d_copy.out",
    "executorch_prim::et_copy_index.tensor",
    "executorch_prim::floordiv.int",
    "executorch_prim::mod.int",
    "executorch_prim::sym_int.Scalar",
    "llama::fallback.out",
    "llama::gated_delta_rule.out",
};

/*
 * Rows without a kernel call that no graph of a case shows either: quantize_dynamic comes from
 * delegates, unpack_int4 is folded with the weights it unpacks; tests/unit/test_ops_quant.c has
 * both. Nodes that prepare the weights of integer products are folded, too: without it no case of
 * families "integers" and "products" would be right, model "xnn_int4" has groups. fft_table depends
 * on constants alone, so every transform of family "complex" has folded it. Cases compute exactly,
 * without Winograd's algorithm: tests/unit/test_winograd.c has it. Their convolutions have no
 * groups for conv_group: tests/unit/test_conv_group.c has it. Their images are too small for
 * expand_dw: tests/unit/test_expand_dw.c has that, and tests/unit/test_activate.c has cat_affine.
 * None shuffles channels for join_parts: tests/unit/test_channels.c does. No program has pixels or
 * caches in 8 bits, which the cards of models ask for: tests/unit/test_adapt.c and
 * tests/unit/test_cache_int8.c have these.
 * moe_unpack is folded, too: all cases of family "moe" have it.
 */
static const char *const unmade[] = {
    "attention_int8", "quantize_cache", "cat_affine",       "conv_group",     "conv_winograd",
    "expand_dw",      "fft_table",      "join_parts",       "moe_unpack",     "pack_winograd",
    "pixels",         "planes",         "q_columns",        "q_group_scales", "q_pack_conv",
    "q_pack_dw",      "q_pack_linear",  "quantize_dynamic", "unpack_int4",
};

/* Rows that run on Vulkan devices, but not with the doubles that their cases have. */
static const char *const doubles[] = {
    "dequantize_tensor", "fill",          "fill_tensor",
    "quantize_channels", "quantize_rows", "quantize_tensor",
};

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))

struct session {
    struct hal_device *device;
    struct hal_pool *pool;
    const char *level;
    uint32_t workers;
    struct buf listing; /* of all programs, for the coverage at the end */
    struct buf graphs;  /* of all methods, likewise: the nodes that passes have made of them */
    bool is_first;
    char **chosen; /* families; none: all */
    unsigned calls, failures;
};

struct waiting {
    sem_t done;
    enum status status;
};

/* ---- one call ------------------------------------------------------------------------------ */

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    struct waiting *waiting = arg;

    (void)invocation;
    waiting->status = status;
    must(sem_post(&waiting->done) == 0);
}

static enum status run(struct rt_invocation *invocation, const struct op_case *c, struct error *err)
{
    struct waiting waiting;
    void *memory;

    for (uint32_t i = 0; i < c->input_count; i++) {
        const struct case_tensor *in = &c->inputs[i];
        TRY(rt_invocation_input(invocation, i, in->dtype, &in->shape, &memory, err));
        if (in->bytes.len > 0) {
            memcpy(memory, in->bytes.ptr, in->bytes.len);
        }
    }
    TRY(rt_invocation_prepare(invocation, RT_PREPARE_ALL, err));
    must(sem_init(&waiting.done, 0, 0) == 0);
    rt_invocation_submit(invocation, HAL_CALLER_BUSY, on_done, &waiting);
    while (sem_wait(&waiting.done) != 0) {
    }
    sem_destroy(&waiting.done);
    return waiting.status == ST_OK ? ST_OK : error_set(err, waiting.status, "the run failed");
}

static bool check_output(const struct rt_invocation *invocation, const struct rt_method *method,
                         const struct op_case *c, uint32_t index, char text[160])
{
    const struct rt_result *result = rt_invocation_result(invocation, index);
    const struct case_tensor *want = &c->outputs[index];
    char got_text[SHAPE_TEXT_MAX], want_text[SHAPE_TEXT_MAX];
    enum dtype dtype = rt_method_result(method, index)->dtype;

    if (dtype != want->dtype || !shape_equal(&result->shape, &want->shape)) {
        snprintf(text, 160, "%s%.60s, expected %s%.60s", dtype_text(dtype),
                 shape_print(&result->shape, got_text), dtype_text(want->dtype),
                 shape_print(&want->shape, want_text));
        return false;
    }
    return case_compare(c, want, result->bytes.ptr, text);
}

static void fail(struct session *session, const char *family, const struct op_case *c,
                 const char *text)
{
    session->failures++;
    fprintf(stderr, "%s: %s (%s, %" PRIu32 " workers): %s\n", family, c->method, session->level,
            session->workers, text);
}

static void check_call(struct session *session, const char *family, struct rt_method *method,
                       struct rt_invocation *invocation, const struct op_case *c)
{
    struct error err;
    char text[160], line[200];

    if (run(invocation, c, &err) != ST_OK) {
        fail(session, family, c, err.text);
        return;
    }
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (!check_output(invocation, method, c, i, text)) {
            snprintf(line, sizeof(line), "output %" PRIu32 ": %s", i, text);
            fail(session, family, c, line);
        }
    }
}

static void check_case(struct session *session, const char *family, struct rt_program *program,
                       const struct op_case *c)
{
    struct rt_method *method = rt_program_find_method(program, span_str(c->method));
    struct rt_invocation *invocation;
    struct error err;

    session->calls++;
    if (!method || rt_method_failure(method)) {
        fail(session, family, c, method ? rt_method_failure(method)->text : "no such method");
        return;
    }
    if (rt_method_result_count(method) != c->output_count) {
        fail(session, family, c, "another number of outputs");
        return;
    }
    if (rt_invocation_new(method, session->pool, &invocation, &err) != ST_OK) {
        fail(session, family, c, err.text);
        return;
    }
    check_call(session, family, method, invocation, c);
    rt_invocation_free(invocation);
}

/* ---- all of them --------------------------------------------------------------------------- */

static void print_graphs(struct rt_program *program, struct buf *out)
{
    struct error err;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        if (!rt_method_failure(method)) {
            must(rt_method_print_graph(method, out, &err) == ST_OK);
        }
    }
}

static void check_family(struct session *session, const char *family)
{
    const char *top = getenv("top_srcdir");
    struct rt_load_options options = {.device = session->device, .poison_workspaces = true};
    struct rt_program *program;
    static struct op_case c; /* too large for a stack */
    struct cases cases;
    struct error err;
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/ops/%s.pte", top ? top : ".", family);
    if (rt_load_program(path, &options, &program, &err) != ST_OK) {
        fprintf(stderr, "%s: %s\n", path, err.text);
        session->failures++;
        return;
    }
    if (!cases_open(&cases, family)) {
        session->failures++;
    } else {
        while (cases_next(&cases, &c)) {
            check_case(session, family, program, &c);
        }
        cases_close(&cases);
    }
    if (session->is_first) {
        rt_program_print(program, &session->listing);
        print_graphs(program, &session->graphs);
    }
    rt_program_unref(program);
}

static void check_level(struct session *session)
{
    struct hal_device_options options = {.workers = session->workers, .cpu_level = session->level};
    struct error err;
    enum status status = hal_device_open("cpu", &options, &session->device, &err);

    if (status == ST_UNSUPPORTED) {
        printf("%s: not on this machine\n", session->level);
        return;
    }
    if (status != ST_OK || hal_pool_new(session->device, POOL_BYTES, &session->pool, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(EXIT_FAILURE);
    }
    for (char **name = session->chosen; *name; name++) {
        check_family(session, *name);
    }
    for (size_t f = 0; f < LENGTH(families) && !*session->chosen; f++) {
        check_family(session, families[f]);
    }
    hal_pool_free(session->pool);
    hal_device_unref(session->device);
}

/* ---- coverage ------------------------------------------------------------------------------ */

/* In the listings a line of each method: "operator NAME: N calls". */
static bool is_called(struct span listing, const char *name, size_t len)
{
    char line[256];
    int n = snprintf(line, sizeof(line), "operator %.*s: ", (int)len, name);

    return memmem(listing.ptr, listing.len, line, (size_t)n) != NULL;
}

static bool is_in(const char *name, size_t len, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

/* A row that no kernel call means is made by passes: " = NAME(" in a graph. */
static void check_made(struct session *session, const struct rt_op *op)
{
    char text[256];
    int n = snprintf(text, sizeof(text), " = %s(", op->name);
    struct span graphs = buf_span(&session->graphs);
    if (!is_in(op->name, strlen(op->name), unmade, LENGTH(unmade)) &&
        !memmem(graphs.ptr, graphs.len, text, (size_t)n)) {
        fprintf(stderr, "%s: in no graph\n", op->name);
        session->failures++;
    }
}

/* ---- devices ------------------------------------------------------------------------------- */

#define ROWS_MAX 1024

/* By row: was anything dispatched, and anything with a form for Vulkan devices? */
static struct {
    const struct rt_op *op;
    bool has_vulkan;
} dispatched[ROWS_MAX];

void note_dispatch(const struct rt_op *op, const struct hal_kernel *kernel)
{
    size_t i = 0;
    while (i < ROWS_MAX && dispatched[i].op && dispatched[i].op != op) {
        i++;
    }
    must(i < ROWS_MAX);
    dispatched[i].op = op;
    dispatched[i].has_vulkan |= hal_kernel_has_spirv(kernel);
}

/* A row without emit says what it becomes; one that dispatches, by what and on which devices. */
static void check_devices(struct session *session, const struct rt_op *op)
{
    bool runs_nothing = op->flags & (RT_OP_VIEW | RT_OP_SCALAR);
    if (op->emit ? !op->runs : !runs_nothing && !(op->becomes && rt_op_find(op->becomes))) {
        fprintf(stderr, "%s: neither a kernel nor a row that it becomes\n", op->name);
        session->failures++;
    }
    for (size_t i = 0; i < ROWS_MAX && dispatched[i].op; i++) {
        if (dispatched[i].op == op &&
            (!op->runs || dispatched[i].has_vulkan != (hal_kernel_has_spirv(op->runs))) &&
            !is_in(op->name, strlen(op->name), doubles, LENGTH(doubles))) {
            fprintf(stderr, "%s: %s on Vulkan devices, its row says otherwise\n", op->name,
                    dispatched[i].has_vulkan ? "runs" : "does not run");
            session->failures++;
        }
    }
}

/* A case, or a model in tests/models, has the call. */
static void check_called(struct session *session, const char *name, size_t len)
{
    if (!is_in(name, len, unwritten, LENGTH(unwritten)) &&
        !is_called(buf_span(&session->listing), name, len)) {
        fprintf(stderr, "%.*s: no case calls it\n", (int)len, name);
        session->failures++;
    }
}

static void check_host_call(const char *kernel, void *arg)
{
    check_called(arg, kernel, strlen(kernel));
}

static void check_covered(const struct rt_op *op, void *arg)
{
    struct session *session = arg;

    check_devices(session, op);
    if (!op->kernels) {
        check_made(session, op);
    }

    for (const char *name = op->kernels; name && *name;) {
        size_t len = strcspn(name, " ");
        check_called(session, name, len);
        name += len + strspn(name + len, " ");
    }
}

/*
 * With arguments, only those families, which need not be ours (see contrib/export/sweep.py); after
 * "--brief" at the plainest level and with one worker only.
 */
int main(int argc, char **argv)
{
    bool is_brief = argc > 1 && strcmp(argv[1], "--brief") == 0;
    struct session session = {.is_first = true, .chosen = argv + 1 + is_brief};

    buf_init(&session.listing, (size_t)16 << 20);
    buf_init(&session.graphs, (size_t)64 << 20);
    for (unsigned l = 0; l < (is_brief ? 1 : HAL_CPU_ISA_COUNT); l++) {
        for (size_t w = 0; w < (is_brief ? 1 : LENGTH(worker_counts)); w++) {
            session.level = hal_cpu_isa_name((enum hal_cpu_isa)l);
            session.workers = worker_counts[w];
            check_level(&session);
            session.is_first = false;
        }
    }
    if (argc == 1) {
        rt_op_each(check_covered, &session);
        rt_import_host_call_each(check_host_call, &session);
    }
    buf_fini(&session.listing);
    buf_fini(&session.graphs);
    printf("%u calls, %u failures\n", session.calls, session.failures);
    return session.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
