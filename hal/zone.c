/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/zone_priv.h"

#include <stdlib.h>

#include "base/asan.h"
#include "base/bytes.h"
#include "base/check.h"
#include "hal/device_priv.h"

#define ADDRESS_FACTOR 4
/* AddressSanitizer takes seconds to mark the many GiB of a large pool. So memory behind these bytes
 * is marked only when it is given back for the first time, see also |marked_bytes|. */
#define MARKED_BYTES_MAX ((size_t)32 << 20)
#define GRANULE_BYTES_MIN ((size_t)1 << 20)
#define GRANULES_MAX 4096
/* A reservation may begin and end inside a granule. */
#define GRANULES_SPARE 4

static size_t granule_count(const struct hal_zone *zone)
{
    return (zone->memory->size + zone->granule_bytes - 1) / zone->granule_bytes;
}

static size_t address_bytes(const struct hal_device *device, size_t size)
{
    bool can_discard = device->ops->buffer_discard != NULL;
    return can_discard && size <= device->props.memory_bytes_max / ADDRESS_FACTOR
               ? size * ADDRESS_FACTOR
               : size;
}

enum status hal_zone_init(struct hal_zone *zone, struct hal_device *device, size_t size,
                          enum hal_memory memory, struct error *err)
{
    size_t addresses = address_bytes(device, size);
    enum status status = hal_buffer_new_in(device, addresses, memory, &zone->memory, err);
    if (status == ST_EXHAUSTED && addresses > size) { /* ulimit -v, or no overcommit */
        addresses = size;
        status = hal_buffer_new_in(device, addresses, memory, &zone->memory, err);
    }
    TRY(status);
    zone->size_bytes = size;
    zone->granule_bytes = GRANULE_BYTES_MIN;
    while (granule_count(zone) > GRANULES_MAX) {
        zone->granule_bytes *= 2;
    }
    zone->touched_ms = malloc(granule_count(zone) * sizeof(zone->touched_ms[0]));
    if (!zone->touched_ms || (size && !hal_suballoc_init(&zone->suballoc, addresses))) {
        return error_no_memory(err, "a pool");
    }
    for (size_t i = 0; i < granule_count(zone); i++) {
        zone->touched_ms[i] = HAL_ZONE_CLEAN;
    }
    zone->marked_bytes = addresses < MARKED_BYTES_MAX ? addresses : MARKED_BYTES_MAX;
    asan_poison(zone->memory->host, zone->memory->host ? zone->marked_bytes : 0);
    return ST_OK;
}

void hal_zone_fini(struct hal_zone *zone)
{
    must(zone->used_bytes == 0 && zone->charged_bytes == 0);
    hal_suballoc_fini(&zone->suballoc);
    free(zone->touched_ms);
    if (zone->memory) {
        asan_unpoison(zone->memory->host, zone->memory->host ? zone->marked_bytes : 0);
        hal_buffer_unref(zone->memory);
    }
}

/* ---- granules -------------------------------------------------------------------------------- */

void hal_zone_touch(struct hal_zone *zone, size_t begin, size_t size, uint64_t now_ms)
{
    must(size > 0 && in_range(begin, size, zone->memory->size));
    size_t first = begin / zone->granule_bytes, last = (begin + size - 1) / zone->granule_bytes;
    for (size_t i = first; i <= last; i++) {
        zone->resident_count += zone->touched_ms[i] == HAL_ZONE_CLEAN;
        zone->touched_ms[i] = now_ms;
    }
}

static void discard_granule(struct hal_zone *zone, size_t i)
{
    struct hal_buffer *memory = zone->memory;
    size_t begin = i * zone->granule_bytes, left = memory->size - begin;
    must(begin < memory->size && zone->resident_count > 0);
    memory->device->ops->buffer_discard(memory, begin,
                                        left < zone->granule_bytes ? left : zone->granule_bytes);
    zone->touched_ms[i] = HAL_ZONE_CLEAN;
    zone->resident_count--;
}

/* Discards the whole granules of the free |range| that were last used at |until_ms| or before. */
static size_t discard_range(struct hal_zone *zone, const struct hal_range *range, uint64_t until_ms,
                            size_t count_max)
{
    size_t end = range->begin + range->size, granule = zone->granule_bytes, count = 0;
    size_t first = (range->begin + granule - 1) / granule;
    /* The last granule of all may be short. */
    size_t behind = end == zone->memory->size ? granule_count(zone) : end / granule;
    for (size_t i = first; i < behind && count < count_max; i++) {
        if (zone->touched_ms[i] != HAL_ZONE_CLEAN && zone->touched_ms[i] <= until_ms) {
            discard_granule(zone, i);
            count++;
        }
    }
    return count;
}

size_t hal_zone_discard(struct hal_zone *zone, uint64_t until_ms, size_t count_max)
{
    const struct hal_range *range = zone->suballoc.first;
    size_t count = 0;
    for (; range && count < count_max; range = range->behind) {
        if (range->state == HAL_RANGE_FREE) {
            count += discard_range(zone, range, until_ms, count_max - count);
        }
    }
    return count;
}

void hal_zone_take(struct hal_zone *zone, const struct hal_range *range, uint64_t now_ms)
{
    size_t most = zone->size_bytes / zone->granule_bytes + GRANULES_SPARE;
    size_t end = range->begin + range->size;
    zone->marked_bytes = end > zone->marked_bytes ? end : zone->marked_bytes;
    hal_zone_touch(zone, range->begin, range->size, now_ms);
    if (zone->resident_count > most && zone->memory->device->ops->buffer_discard) {
        hal_zone_discard(zone, UINT64_MAX - 1, zone->resident_count - most);
    }
}
