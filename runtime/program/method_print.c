/* SPDX-License-Identifier: MIT */
/* The graphs and plans of a method as text, with the source lines and names that the file knows. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/program/method.h"
#include "runtime/pte/files.h"

/* The part of a source line that fits into a line of ours. */
#define SOURCE_TEXT_MAX 72

static struct span last_part(struct span path)
{
    const uint8_t *slash = memrchr(path.ptr, '/', path.len);
    return slash ? span_of(slash + 1, path.len - (size_t)(slash + 1 - path.ptr)) : path;
}

/* A rt_note_f: "model.py:12: x = self.stem(x)". */
static bool note_source(const void *arg, uint32_t instr, struct buf *out)
{
    const struct rt_method *method;
    OBJ_CAST(method, arg, RT_METHOD_MAGIC);
    struct pte_source source;
    size_t count;
    const struct pte_plan *plans = pte_plans(method->files->pte, &count);
    size_t plan = 0;
    while (plan < count && &plans[plan] != method->plan) {
        plan++;
    }
    if (plan == count || !pte_find_source(method->files->pte, (uint32_t)plan, instr, &source)) {
        return false;
    }
    buf_printf(out, "%.*s:%d", SPAN_FMT(last_part(source.file)), source.line);
    if (source.text.len > 0) {
        bool is_cut = source.text.len > SOURCE_TEXT_MAX;
        buf_printf(out, ": %.*s%s", (int)(is_cut ? SOURCE_TEXT_MAX : source.text.len),
                   (const char *)source.text.ptr, is_cut ? "..." : "");
    }
    return true;
}

struct rt_notes rt_method_notes(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return (struct rt_notes){note_source, method};
}

enum status rt_method_print_graph(struct rt_method *method, struct buf *out, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_notes notes = rt_method_notes(method);
    if (method->failure.code != ST_OK) {
        *err = method->failure;
        return err->code;
    }
    rt_code_print(&method->code, &notes, out);
    return ST_OK;
}

enum status rt_method_print_plan(struct rt_method *method, struct buf *out, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_code *code = &method->code;
    const struct rt_notes notes = rt_method_notes(method);
    if (method->failure.code != ST_OK) {
        *err = method->failure;
        return err->code;
    }
    buf_printf(out, "method %s\n", rt_method_name(method));
    for (uint32_t i = 0; i < code->block_count; i++) {
        struct rt_plan *plan;
        if (!rt_code_reaches(code, i)) {
            continue;
        }
        if (code->stmt_count > 0) {
            buf_printf(out, "block %u\n", i);
        }
        TRY(rt_block_plan_bounds(code->blocks[i], &plan, err));
        rt_plan_print(plan, &code->blocks[i]->graph, &notes, out);
        rt_plan_unref(plan);
    }
    return ST_OK;
}
