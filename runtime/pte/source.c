/* SPDX-License-Identifier: MIT */
/*
 * Lines of the exported model's source, if the exporter kept them: a stack of frames for each
 * instruction, outermost first. They are only for people. So each request reads them from the
 * flatbuffer again, and if they are malformed there simply are none.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/pte/flatbuf.h"
#include "runtime/pte/limits.h"
#include "runtime/pte/pte_priv.h"
#include "runtime/pte/schema.h"
#include "runtime/pte/text.h"

/* A model's own modules call each other; real models do not nest them deeper. */
#define FRAMES_MAX 256

struct reader {
    struct flatbuf fb;
    struct error ignored;
};

static bool open_plan(struct reader *r, uint32_t plan, struct flatbuf_table *out)
{
    struct flatbuf_table root;
    struct flatbuf_vector plans;
    return flatbuf_root(&r->fb, &root, &r->ignored) == ST_OK &&
           flatbuf_vector(&r->fb, &root, program_execution_plan, 4, &plans, &r->ignored) == ST_OK &&
           plan < plans.count && flatbuf_table_at(&r->fb, plans, plan, out, &r->ignored) == ST_OK;
}

/* The frames of instruction |instr|, which is counted over all chains. */
static bool find_frames(struct reader *r, const struct flatbuf_table *plan, uint32_t instr,
                        struct flatbuf_vector *out)
{
    struct flatbuf_vector chains, instrs, stacks;
    struct flatbuf_table chain, stack;
    if (flatbuf_vector(&r->fb, plan, plan_chains, 4, &chains, &r->ignored) != ST_OK) {
        return false;
    }
    for (uint32_t i = 0; i < chains.count && i < PTE_CHAINS_MAX; i++) {
        if (flatbuf_table_at(&r->fb, chains, i, &chain, &r->ignored) != ST_OK ||
            flatbuf_vector(&r->fb, &chain, chain_instructions, 4, &instrs, &r->ignored) != ST_OK) {
            return false;
        }
        if (instr >= instrs.count) {
            instr -= instrs.count;
            continue;
        }
        return flatbuf_vector(&r->fb, &chain, chain_stacktrace, 4, &stacks, &r->ignored) == ST_OK &&
               instr < stacks.count &&
               flatbuf_table_at(&r->fb, stacks, instr, &stack, &r->ignored) == ST_OK &&
               flatbuf_vector(&r->fb, &stack, frames_items, 4, out, &r->ignored) == ST_OK;
    }
    return false;
}

static bool read_frame(struct reader *r, struct flatbuf_vector frames, uint32_t i,
                       struct pte_source *out)
{
    struct flatbuf_table frame;
    *out = (struct pte_source){0};
    return flatbuf_table_at(&r->fb, frames, i, &frame, &r->ignored) == ST_OK &&
           flatbuf_string(&r->fb, &frame, frame_filename, &out->file, &r->ignored) == ST_OK &&
           flatbuf_i32(&r->fb, &frame, frame_lineno, &out->line, &r->ignored) == ST_OK &&
           flatbuf_string(&r->fb, &frame, frame_context, &out->text, &r->ignored) == ST_OK &&
           pte_text_is_plain(out->file) && pte_text_is_plain(out->text);
}

/* Is it a file of PyTorch? Every model's frames end in one. */
static bool is_library(struct span file)
{
    static const char part[] = "/torch/";
    return memmem(file.ptr, file.len, part, sizeof(part) - 1) != NULL;
}

bool pte_find_source(const struct pte_program *program, uint32_t plan, uint32_t instr,
                     struct pte_source *out_source)
{
    OBJ_CHECK(program, PTE_PROGRAM_MAGIC);
    struct reader r;
    struct flatbuf_table table;
    struct flatbuf_vector frames;
    struct pte_source source;
    bool is_found = false;
    if (flatbuf_init(&r.fb, program->container.flatbuffer, &r.ignored) != ST_OK ||
        !open_plan(&r, plan, &table) || !find_frames(&r, &table, instr, &frames)) {
        return false;
    }
    for (uint32_t i = 0; i < frames.count && i < FRAMES_MAX; i++) {
        if (read_frame(&r, frames, i, &source) && (!is_found || !is_library(source.file))) {
            *out_source = source;
            is_found = true;
        }
    }
    return is_found;
}
