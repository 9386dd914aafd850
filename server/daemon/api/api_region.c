/* SPDX-License-Identifier: MIT */
/* The protocol's extensions for shared memory: regions of the system
 * (server/daemon/infer/regions.h), and regions of CUDA, which pted never has. */
#include "config.h"

#include "base/check.h"
#include "protocol/oip.h"
#include "server/daemon/api/api.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_shared.h"
#include "server/daemon/infer/regions.h"
#include "server/daemon/request/request.h"

/* GET /v2/systemsharedmemory[/region/{r}]/status */
enum status api_region_status(struct request *request, struct error *err)
{
    TRY(infer_shared_check(&request->infer, err));
    TRY(regions_print(request->api->regions, request->match.region, &request->out, err));
    return api_check_printed(request, err);
}

/* POST /v2/systemsharedmemory/region/{r}/register */
enum status api_register(struct request *request, struct error *err)
{
    struct oip_limits limits = codec_oip_limits(&request->infer);
    struct oip_region order;
    TRY(infer_shared_check(&request->infer, err));
    TRY(oip_parse_region(body_span(&request->body), &limits, &request->infer.arena, &order, err));
    TRY(regions_register(request->api->regions, request->match.region, &order, err));
    buf_add_str(&request->out, "{}");
    return api_check_printed(request, err);
}

/* POST /v2/systemsharedmemory[/region/{r}]/unregister */
enum status api_unregister(struct request *request, struct error *err)
{
    TRY(infer_shared_check(&request->infer, err));
    regions_unregister(request->api->regions, request->match.region);
    buf_add_str(&request->out, "{}");
    return api_check_printed(request, err);
}

/* GET /v2/cudasharedmemory[/region/{r}]/status: that there is nothing is the truth. */
enum status api_cuda_status(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->match.region[0]) {
        return error_set(err, ST_NOT_FOUND, "no region '%s' of CUDA shared memory is registered",
                         request->match.region);
    }
    buf_add_str(&request->out, "[]");
    return api_check_printed(request, err);
}

/* POST /v2/cudasharedmemory/region/{r}/register */
enum status api_cuda_register(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return error_set(err, ST_UNSUPPORTED, "CUDA shared memory is not supported");
}

/* POST /v2/cudasharedmemory[/region/{r}]/unregister: nothing is registered afterwards. */
enum status api_cuda_unregister(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    buf_add_str(&request->out, "{}");
    return api_check_printed(request, err);
}
