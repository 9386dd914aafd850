/* SPDX-License-Identifier: MIT */
/*
 * GET /v2/models/{m}/graph: the compiled graph of a model, or the steps of a pipeline, as a list of
 * nodes. Their arguments and results are numbers of values. The console draws it.
 */
#include "config.h"

#include "base/check.h"
#include "protocol/json.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/outline.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"

static void print_text(struct buf *out, const char *key, struct span text)
{
    if (text.len) {
        buf_printf(out, ",\"%s\":", key);
        json_print_string(out, text);
    }
}

/* ---- a graph --------------------------------------------------------------------------------- */

struct page {
    struct buf *out;
    uint32_t printed;
};

static void print_values(struct buf *out, const char *key, const struct rt_outline_value *values,
                         uint32_t count)
{
    buf_printf(out, ",\"%s\":[", key);
    for (uint32_t i = 0; i < count; i++) {
        buf_printf(out, "%s{\"value\":%u", i ? "," : "", values[i].number);
        print_text(out, "type", values[i].type);
        if (values[i].is_constant) {
            buf_add_str(out, ",\"constant\":true");
        }
        if (values[i].name) {
            print_text(out, "name", span_str(values[i].name));
        }
        buf_add_char(out, '}');
    }
    buf_add_char(out, ']');
}

/* A rt_outline_f. */
static void print_node(void *arg, const struct rt_outline_node *node)
{
    struct page *page = arg;
    struct buf *out = page->out;
    buf_printf(out, "%s{\"block\":%u", page->printed++ ? ",\n" : "\n", node->block);
    if (node->number != RT_OUTLINE_NO_NODE) {
        buf_printf(out, ",\"node\":%u", node->number);
    }
    print_text(out, "operator", span_str(node->op));
    print_text(out, "layer", node->layer);
    print_text(out, "source", node->source);
    print_values(out, "inputs", node->ins, node->in_count);
    print_values(out, "outputs", node->outs, node->out_count);
    buf_add_char(out, '}');
}

/* ---- a pipeline ------------------------------------------------------------------------------ */

/* Values are numbered as they first appear: inputs of the pipeline, then results step by step. */
struct numbering {
    const struct rt_method *method;
    uint32_t steps[RT_PIPELINE_STEPS_MAX]; /* the number of the first result of each */
};

static uint32_t number_of(const struct numbering *numbering, struct rt_source source)
{
    return source.kind == RT_SOURCE_STEP ? numbering->steps[source.step] + source.index
                                         : source.index;
}

static void print_ios(struct buf *out, const struct rt_method *method, enum rt_side side,
                      uint32_t first)
{
    bool is_input = side == RT_INPUT;
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        buf_printf(out, "%s{\"value\":%u", i ? "," : "", first + i);
        print_text(out, "name", span_str(io->name));
        buf_add_char(out, '}');
    }
}

static void print_step(struct buf *out, const struct numbering *numbering, uint32_t step)
{
    const struct rt_step_counts counts = rt_pipeline_step_counts(numbering->method, step);
    const struct rt_method *method = rt_pipeline_step_method(numbering->method, step);
    bool is_first = true;
    buf_printf(out, ",\n{\"block\":0,\"node\":%u", step);
    print_text(out, "operator", span_str(counts.model ? counts.model : counts.name));
    print_text(out, "layer", span_str(counts.name));
    buf_add_str(out, ",\"inputs\":[");
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        struct rt_source source = rt_pipeline_source(numbering->method, step, i);
        if (source.kind != RT_SOURCE_NONE) {
            buf_printf(out, "%s{\"value\":%u", is_first ? "" : ",", number_of(numbering, source));
            print_text(out, "name", span_str(rt_method_input(method, i)->name));
            buf_add_char(out, '}');
            is_first = false;
        }
    }
    buf_add_str(out, "],\"outputs\":[");
    print_ios(out, method, RT_RESULT, numbering->steps[step]);
    buf_add_str(out, "]}");
}

static void print_pipeline(struct buf *out, const struct rt_method *method)
{
    struct numbering numbering = {.method = method};
    uint32_t next = rt_method_input_count(method), count = rt_pipeline_step_count(method);
    must(count <= RT_PIPELINE_STEPS_MAX);
    buf_add_str(out, "\n{\"block\":0,\"operator\":\"input\",\"inputs\":[],\"outputs\":[");
    print_ios(out, method, RT_INPUT, 0);
    buf_add_str(out, "]}");
    for (uint32_t i = 0; i < count; i++) {
        numbering.steps[i] = next;
        next += rt_method_result_count(rt_pipeline_step_method(method, i));
        print_step(out, &numbering, i);
    }
    buf_add_str(out, ",\n{\"block\":0,\"operator\":\"output\",\"inputs\":[");
    for (uint32_t i = 0; i < rt_method_result_count(method); i++) {
        buf_printf(out, "%s{\"value\":%u", i ? "," : "",
                   number_of(&numbering, rt_pipeline_result_source(method, i)));
        print_text(out, "name", span_str(rt_method_result(method, i)->name));
        buf_add_char(out, '}');
    }
    buf_add_str(out, "],\"outputs\":[]}");
}

enum status api_graph(struct request *request, struct error *err)
{
    const struct model *model = api_find_ready(request, err);
    struct buf *out = &request->out;
    if (!model) {
        return err->code;
    }
    bool is_pipeline = rt_pipeline_step_count(model->method) > 0;
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(model->name));
    print_text(out, "version", span_str(model->version_text));
    buf_printf(out, ",\"kind\":\"%s\",\"nodes\":[", is_pipeline ? "pipeline" : "graph");
    if (is_pipeline) {
        print_pipeline(out, model->method);
    } else {
        struct page page = {.out = out};
        TRY(rt_method_outline(model->method, print_node, &page, err));
    }
    buf_add_str(out, "]}");
    TRY(api_check_printed(request, err));
    return infer_compress_text(&request->infer, err);
}
