/* SPDX-License-Identifier: MIT */
/* Settings of the log and of traces, which an administrator sees and changes while the daemon
 * serves: the protocol's logging and trace extensions. */
#include "config.h"

#include "base/check.h"
#include "protocol/oip_settings.h"
#include "server/daemon/api/api.h"
#include "server/daemon/observe/spans.h"
#include "server/daemon/request/request.h"
#include "server/process/log.h"

/* ---- log ------------------------------------------------------------------------------------- */

/* The protocol has no notices: they come with its warnings. */
static enum oip_log_kind kind_of(enum log_level level)
{
    return level >= LOG_DEBUG     ? OIP_LOG_VERBOSE
           : level >= LOG_INFO    ? OIP_LOG_INFOS
           : level >= LOG_WARNING ? OIP_LOG_WARNINGS
                                  : OIP_LOG_ERRORS;
}

static struct oip_log_settings log_settings(void)
{
    return (struct oip_log_settings){.kind = kind_of(log_level()),
                                     .file = log_path() ? log_path() : ""};
}

/* GET /v2/logging */
enum status api_log_settings(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct oip_log_settings settings = log_settings();
    oip_print_log(&request->out, &settings);
    return api_check_printed(request, err);
}

/* POST /v2/logging */
enum status api_set_log(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    static const enum log_level levels[] = {
        [OIP_LOG_ERRORS] = LOG_ERROR,
        [OIP_LOG_WARNINGS] = LOG_NOTICE,
        [OIP_LOG_INFOS] = LOG_INFO,
        [OIP_LOG_VERBOSE] = LOG_DEBUG,
    };
    const struct oip_log_settings now = log_settings();
    enum oip_log_kind kind;
    TRY(oip_parse_log(body_span(&request->body), &now, &kind, err));
    if (kind != now.kind) {
        enum log_level before = log_level();
        log_set_level(levels[kind]);
        log_line(LOG_NOTICE, "a request sets the level of the log: %s, before %s",
                 log_level_name(levels[kind]), log_level_name(before));
    }
    return api_log_settings(request, err);
}

/* ---- traces ---------------------------------------------------------------------------------- */

/* GET /v2/trace/setting */
enum status api_trace_settings(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    spans_print_settings(request->api->spans, &request->out);
    return api_check_printed(request, err);
}

/* POST /v2/trace/setting */
enum status api_set_trace(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct oip_trace_change change;
    TRY(oip_parse_trace(body_span(&request->body), &change, err));
    TRY(spans_change(request->api->spans, request->api->params, &change, err));
    return api_trace_settings(request, err);
}

/* GET /v2/models/{m}/trace/setting: a model has the settings of the daemon. */
enum status api_model_trace_settings(struct request *request, struct error *err)
{
    return api_find_ready(request, err) ? api_trace_settings(request, err) : err->code;
}

/* POST /v2/models/{m}/trace/setting: a request that changes nothing gets the settings. */
enum status api_set_model_trace(struct request *request, struct error *err)
{
    struct oip_trace_change change;
    if (!api_find_ready(request, err)) {
        return err->code;
    }
    TRY(oip_parse_trace(body_span(&request->body), &change, err));
    if (change.rate.is_set || change.count.is_set || change.level == OIP_TRACE_ON ||
        change.level == OIP_TRACE_OFF) {
        return error_set(err, ST_UNSUPPORTED,
                         "trace settings: a model has none of its own; those of all models change "
                         "by POST /v2/trace/setting");
    }
    return api_trace_settings(request, err);
}
