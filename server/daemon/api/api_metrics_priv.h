/* SPDX-License-Identifier: MIT */
/*
 * The page of GET /metrics while it is printed, on a thread. Each row of metrics.def has a function
 * api_metrics_put_ID(), which adds the series of the row: in api_metrics_process.c,
 * api_metrics_daemon.c, api_metrics_shares.c or api_metrics_model.c.
 */
#ifndef PTED_SERVER_DAEMON_API_API_METRICS_PRIV_H
#define PTED_SERVER_DAEMON_API_API_METRICS_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/resource.h"
#include "base/share.h"
#include "hal/pool.h"
#include "protocol/prom.h"
#include "server/daemon/api/api.h"
#include "server/daemon/observe/metrics.h"
#include "server/daemon/request/request.h"

struct model;

/* Decimals of times that are counted in milli-, micro- and nanoseconds. */
#define API_METRICS_MS 3
#define API_METRICS_US 6
#define API_METRICS_NS 9

struct api_metrics_page {
    struct prom prom;
    const struct api *api;
    const struct serving *serving;        /* held by the request */
    const struct metrics_look *look;      /* what only the loop may read */
    const struct repository_index *index; /* held by the request */
    /* Looked at once for the whole page: */
    uint64_t open_files;                       /* file descriptors of the process */
    struct share_stats shares[RESOURCE_COUNT]; /* of what clients share, if |has_share| */
    bool has_share[RESOURCE_COUNT];
};

typedef void api_metrics_put_f(struct api_metrics_page *page);
typedef void api_metrics_put_model_f(struct api_metrics_page *page, const struct model *model);

#define SERVER_METRIC(id, ...) api_metrics_put_f api_metrics_put_##id;
#define MODEL_METRIC(id, ...) api_metrics_put_model_f api_metrics_put_##id;
#include "server/daemon/observe/metrics.def"
#undef SERVER_METRIC
#undef MODEL_METRIC

/* Adds a series with the labels that the page has now. */
void api_metrics_add(struct api_metrics_page *page, uint64_t value);

/* Adds a series with one more label, which is removed again. */
void api_metrics_add_labelled(struct api_metrics_page *page, const char *name, const char *label,
                              uint64_t value);

/* Adds a series for each status that has occurred. With |has_ok| there is one for 200 in any
 * case. */
void api_metrics_add_statuses(struct api_metrics_page *page, const struct status_counts *counts,
                              bool has_ok);

/* Zeros for NULL: after the device was lost there is no memory. */
struct hal_pool_stats api_metrics_pool(struct hal_pool *pool);

/* File descriptors that the process has open. */
uint64_t api_metrics_open_files(void);

/* Fills |shares|; the rest of |page| is complete. */
void api_metrics_look_at_shares(struct api_metrics_page *page);

#endif
