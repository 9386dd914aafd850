/* SPDX-License-Identifier: MIT */
/*
 * The resources of resource.def: everything that clients take from. A row gives a resource its name
 * in metrics and in errors, and the part of it that is kept for clients with little.
 */
#ifndef PTED_BASE_RESOURCE_H
#define PTED_BASE_RESOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/share.h"
#include "base/status.h"

enum resource {
#define RESOURCE(ID, ...) RESOURCE_##ID,
#include "base/resource.def"
#undef RESOURCE
    RESOURCE_COUNT
};

/* Who is charged. */
enum resource_party { RESOURCE_PARTY_CLIENT, RESOURCE_PARTY_MODEL, RESOURCE_PARTY_ALL };

/* Returns the label of metrics, such as "connections". */
const char *resource_name(enum resource resource);

enum resource_party resource_party(enum resource resource);

/* Returns the units of |size| that are kept for clients with little: share_init(). */
uint64_t resource_kept(enum resource resource, uint64_t size);

/* Calls share_refuse() with the units of |resource|. */
enum status resource_refuse(enum resource resource, const struct share *share,
                            enum share_taken taken, uint64_t client, struct error *err);

#endif
