/* SPDX-License-Identifier: MIT */
/*
 * GET /metrics. The handler is called twice: on the loop, where it notes what only the loop may
 * read, and then on a thread, where it prints. The request holds its serving and the index of its
 * models meanwhile, so nothing that the page shows is freed.
 */
#include "config.h"

#include "server/daemon/api/api_metrics_priv.h"

#include <stdio.h>

#include "base/check.h"
#include "server/daemon/api/api.h"
#include "server/daemon/serving/serving.h"

/* A row of metrics.def; one of the functions is set. */
struct metric {
    struct prom_family family;
    api_metrics_put_f *put;
    api_metrics_put_model_f *put_model;
};

static const struct metric metrics[] = {
#define SERVER_METRIC(id, type, name, unit, labels, help)                                          \
    {{name, PROM_##type, unit, help}, api_metrics_put_##id, NULL},
#define MODEL_METRIC(id, type, name, unit, labels, help)                                           \
    {{name, PROM_##type, unit, help}, NULL, api_metrics_put_##id},
#include "server/daemon/observe/metrics.def"
#undef SERVER_METRIC
#undef MODEL_METRIC
};

/* ---- series ---------------------------------------------------------------------------------- */

void api_metrics_add(struct api_metrics_page *page, uint64_t value)
{
    prom_number(&page->prom, value, 0);
}

void api_metrics_add_labelled(struct api_metrics_page *page, const char *name, const char *label,
                              uint64_t value)
{
    size_t mark = prom_label_mark(&page->prom);
    prom_label(&page->prom, name, span_str(label));
    api_metrics_add(page, value);
    prom_unlabel_to(&page->prom, mark);
}

void api_metrics_add_statuses(struct api_metrics_page *page, const struct status_counts *counts,
                              bool has_ok)
{
    uint32_t used = status_counts_used(counts);
    for (uint32_t i = 0; i < used; i++) {
        char code[12];
        has_ok = has_ok && counts->rows[i].status != 200;
        snprintf(code, sizeof(code), "%d", counts->rows[i].status);
        api_metrics_add_labelled(page, "code", i + 1 < STATUS_COUNTS_MAX ? code : "other",
                                 counter_get(&counts->rows[i].count));
    }
    if (has_ok) {
        api_metrics_add_labelled(page, "code", "200", 0);
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void put_family(struct api_metrics_page *page, const struct metric *metric)
{
    prom_family(&page->prom, &metric->family);
    if (metric->put) {
        metric->put(page);
        return;
    }
    for (uint32_t i = 0; i < page->index->count; i++) {
        const struct model *model = page->index->models[i];
        prom_unlabel(&page->prom);
        prom_label(&page->prom, "model", span_str(model->name));
        prom_label(&page->prom, "version", span_str(model->version_text));
        metric->put_model(page, model);
    }
}

static enum status print_page(struct request *request, struct error *err)
{
    struct api_metrics_page page = {
        .api = request->api,
        .serving = request->serving,
        .look = request->page.look,
        .index = request->page.listing,
    };
    OBJ_CHECK(page.index, REPOSITORY_INDEX_MAGIC);
    page.open_files = api_metrics_open_files();
    api_metrics_look_at_shares(&page);
    enum prom_format format = prom_accept(head_value(&request->head, HTTP_ACCEPT));
    prom_init(&page.prom, format, &request->out);
    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        put_family(&page, &metrics[i]);
    }
    prom_end(&page.prom);
    request->content_type = prom_media_type(format);
    TRY(api_check_printed(request, err));
    return infer_compress_text(&request->infer, err);
}

enum status api_metrics(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->page.look) {
        return print_page(request, err);
    }
    struct metrics_look *look = arena_alloc(&request->infer.arena, sizeof(*look));
    if (!look) {
        return api_no_memory(err);
    }
    *look = metrics_take_look(request->api->observed);
    request->page.look = look;
    request->page.listing = repository_ref_index(&request->serving->repository);
    return work_leave_loop(&request->infer.work, err);
}
