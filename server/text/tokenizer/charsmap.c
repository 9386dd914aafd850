/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/charsmap.h"

#include <stdlib.h>

#define BYTES_MAX ((size_t)16 << 20)

struct charsmap {
    size_t unit_count;
    struct span replacements; /* ends with NUL */
    uint32_t units[];
};

enum status charsmap_new(struct span bytes, struct charsmap **out, struct error *err)
{
    uint32_t array_bytes = bytes.len >= 4 ? load_le32(bytes.ptr) : 0;
    if (bytes.len > BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "a map of characters of more than %zu bytes",
                         BYTES_MAX);
    }
    if (bytes.len < 4 || array_bytes % 4 || array_bytes < 1024 || array_bytes > bytes.len - 4 ||
        (array_bytes < bytes.len - 4 && bytes.ptr[bytes.len - 1] != 0)) {
        return error_set(err, ST_CORRUPT,
                         "the map of characters has %zu bytes and an array of %u, which is damaged",
                         bytes.len, array_bytes);
    }
    struct charsmap *map = malloc(sizeof(*map) + bytes.len - 4);
    if (!map) {
        return error_no_memory(err, "a map of characters");
    }
    map->unit_count = array_bytes / 4;
    for (size_t i = 0; i < map->unit_count; i++) {
        map->units[i] = load_le32(bytes.ptr + 4 + i * 4);
    }
    uint8_t *texts = (uint8_t *)(map->units + map->unit_count);
    map->replacements = span_of(texts, bytes.len - 4 - array_bytes);
    if (map->replacements.len) {
        memcpy(texts, bytes.ptr + 4 + array_bytes, map->replacements.len);
    }
    *out = map;
    return ST_OK;
}

void charsmap_free(struct charsmap *map)
{
    free(map);
}

static size_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* The length of a match, and its value. */
static size_t find(const struct charsmap *map, struct span text, bool is_longest, uint32_t *value)
{
    size_t found = 0, node = offset_of(map->units[0]);
    for (size_t i = 0; i < text.len; i++) {
        node ^= text.ptr[i];
        if (node >= map->unit_count) {
            break;
        }
        uint32_t unit = map->units[node];
        if ((unit & ((1u << 31) | 0xff)) != text.ptr[i]) {
            break;
        }
        node ^= offset_of(unit);
        if (unit >> 8 & 1) {
            if (node >= map->unit_count) {
                break;
            }
            *value = map->units[node] & 0x7fffffffu;
            found = i + 1;
            if (!is_longest) {
                break;
            }
        }
    }
    return found;
}

static size_t replace(const struct charsmap *map, struct span text, bool is_longest,
                      struct span *out)
{
    uint32_t value = 0;
    size_t len = find(map, text, is_longest, &value);
    if (len == 0 || value >= map->replacements.len) {
        return 0;
    }
    const uint8_t *start = map->replacements.ptr + value;
    const uint8_t *end = memchr(start, 0, map->replacements.len - value);
    *out = span_of(start, end ? (size_t)(end - start) : 0);
    return len;
}

size_t charsmap_longest(const struct charsmap *map, struct span text, struct span *out)
{
    return replace(map, text, true, out);
}

size_t charsmap_shortest(const struct charsmap *map, struct span text, struct span *out)
{
    return replace(map, text, false, out);
}
