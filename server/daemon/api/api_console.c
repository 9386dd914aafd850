/* SPDX-License-Identifier: MIT */
/* GET / and /console/FILE: the page for people, and a sign of life for programs. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "server/daemon/api/api.h"
#include "server/daemon/console/console.h"
#include "server/daemon/request/request.h"
#include "server/process/options.h"

/* Browsers ask for HTML by name. Programs ask whether the server lives, as KServe's first protocol
 * has it: its clients accept JSON, or anything. */
static bool is_for_people(const struct request *request)
{
    static const char html[] = "text/html";
    struct span accepted = head_value(&request->head, HTTP_ACCEPT);
    return accepted.len == 0 || memmem(accepted.ptr, accepted.len, html, sizeof(html) - 1) != NULL;
}

enum status api_console(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct console_file file;
    if (request->match.id == ROUTE_CONSOLE && !is_for_people(request)) {
        buf_add_str(&request->out, "{\"status\":\"alive\"}");
        return api_check_printed(request, err);
    }
    if (request->api->options->has_no_console) {
        return error_set(err, ST_NOT_FOUND, "there is no page here: --console is off");
    }
    if (!console_find(request->match.region, &file)) {
        return error_set(err, ST_NOT_FOUND, "the console has no file of this name");
    }
    buf_add(&request->out, file.bytes.ptr, file.bytes.len);
    request->content_type = file.type;
    request->is_page = true;
    TRY(api_check_printed(request, err));
    return infer_compress_text(&request->infer, err);
}
