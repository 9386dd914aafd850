/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/resource.h"

#include "base/check.h"

static const struct {
    const char *name;
    enum resource_party party;
    uint32_t kept;
    const char *units;
} rows[RESOURCE_COUNT] = {
#define RESOURCE(ID, name, party, kept, units, metric, test)                                       \
    [RESOURCE_##ID] = {#name, RESOURCE_PARTY_##party, kept, units},
#include "base/resource.def"
#undef RESOURCE
};

const char *resource_name(enum resource resource)
{
    must(resource < RESOURCE_COUNT);
    return rows[resource].name;
}

enum resource_party resource_party(enum resource resource)
{
    must(resource < RESOURCE_COUNT);
    return rows[resource].party;
}

uint64_t resource_kept(enum resource resource, uint64_t size)
{
    must(resource < RESOURCE_COUNT);
    return rows[resource].kept ? size / rows[resource].kept : 0;
}

enum status resource_refuse(enum resource resource, const struct share *share,
                            enum share_taken taken, uint64_t client, struct error *err)
{
    must(resource < RESOURCE_COUNT);
    return share_refuse(share, taken, client, rows[resource].units, err);
}
