/* SPDX-License-Identifier: MIT */
/*
 * Operators against PyTorch: every case of every family, at each instruction set level that this
 * machine has, with one worker and with four, in arenas that were filled with 0xff. At the end,
 * every row that a file can name must have been called by a case.
 */
#include "config.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/invocation.h"
#include "runtime/ops/op.h"
#include "runtime/program.h"
#include "tests/ops/cases.h"

#define POOL_BYTES ((size_t)256 << 20)

static const char *const families[] = {"pointwise", "create", "sizes", "formats", "reduce", "norm",
                                       "view",      "index",  "pool",  "matmul",  "conv"};
static const char *const levels[] = {"generic", "avx2", "avx512"};
static const uint32_t worker_counts[] = {1, 4};

/* Kernels that today's exporter does not write: other names of a row, for devices, in place. */
static const char *const unwritten[] = {
    "aten::index_put_",         "aten::lift_fresh_copy.out", "aten::sym_numel",
    "et_copy::_d2h_copy.out",   "et_copy::_h2d_copy.out",    "executorch_prim::floordiv.int",
    "executorch_prim::mod.int",
};

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))

struct session {
    struct hal_device *device;
    struct hal_pool *pool;
    const char *level;
    uint32_t workers;
    struct buf listing; /* of all programs, for the coverage at the end */
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
    TRY(rt_invocation_prepare(invocation, err));
    must(sem_init(&waiting.done, 0, 0) == 0);
    rt_invocation_submit(invocation, false, on_done, &waiting);
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

static void check_family(struct session *session, const char *family)
{
    const char *top = getenv("top_srcdir");
    struct rt_program_options options = {.device = session->device, .poison_arenas = true};
    struct rt_program *program;
    static struct op_case c; /* too large for a stack */
    struct cases cases;
    struct error err;
    char path[1024];

    snprintf(path, sizeof(path), "%s/tests/ops/%s.pte", top ? top : ".", family);
    if (rt_program_load(path, &options, &program, &err) != ST_OK) {
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
    }
    rt_program_unref(program);
}

static bool is_chosen(const struct session *session, const char *family)
{
    for (char **name = session->chosen; *name; name++) {
        if (strcmp(*name, family) == 0) {
            return true;
        }
    }
    return *session->chosen == NULL;
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
    for (size_t f = 0; f < LENGTH(families); f++) {
        if (is_chosen(session, families[f])) {
            check_family(session, families[f]);
        }
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

static bool is_unwritten(const char *name, size_t len)
{
    for (size_t i = 0; i < LENGTH(unwritten); i++) {
        if (strlen(unwritten[i]) == len && memcmp(unwritten[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

static void check_covered(const struct rt_op *op, void *arg)
{
    struct session *session = arg;

    for (const char *name = op->kernels; name && *name;) {
        size_t len = strcspn(name, " ");
        if (!is_unwritten(name, len) && !is_called(buf_span(&session->listing), name, len)) {
            fprintf(stderr, "%.*s: no case calls it\n", (int)len, name);
            session->failures++;
        }
        name += len + strspn(name + len, " ");
    }
}

/* With arguments, only those families. */
int main(int argc, char **argv)
{
    struct session session = {.is_first = true, .chosen = argv + 1};

    buf_init(&session.listing, (size_t)16 << 20);
    for (size_t l = 0; l < LENGTH(levels); l++) {
        for (size_t w = 0; w < LENGTH(worker_counts); w++) {
            session.level = levels[l];
            session.workers = worker_counts[w];
            check_level(&session);
            session.is_first = false;
        }
    }
    if (argc == 1) {
        rt_op_each(check_covered, &session);
    }
    buf_fini(&session.listing);
    printf("%u calls, %u failures\n", session.calls, session.failures);
    return session.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
