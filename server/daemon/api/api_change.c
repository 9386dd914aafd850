/* SPDX-License-Identifier: MIT */
/* Requests that load and unload models: the protocol's repository extension. The body says what;
 * server/daemon/serving/changes.h does it. */
#include "config.h"

#include "base/check.h"
#include "protocol/oip.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"

static enum status order(struct request *request, enum update_kind kind, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct oip_change change;
    TRY(oip_parse_change(body_span(&request->body), &change, err));
    if (kind == UPDATE_LOAD && change.has_files) {
        return error_set(
            err, ST_UNSUPPORTED,
            "parameters: expected no \"config\" and no \"file:\"; models come from the "
            "files that the daemon was told of, and their settings from --set and pted.json");
    }
    request->order = (struct changes_order){
        .kind = kind,
        .name = request->match.model,
        .with_dependents = change.with_dependents,
    };
    return ST_OK;
}

/* POST /v2/repository/models/{m}/load */
enum status api_load(struct request *request, struct error *err)
{
    return order(request, UPDATE_LOAD, err);
}

/* POST /v2/repository/models/{m}/unload */
enum status api_unload(struct request *request, struct error *err)
{
    return order(request, UPDATE_UNLOAD, err);
}
