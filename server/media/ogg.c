/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/ogg.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HEAD_BYTES 27 /* of a page, without its table of lengths */
#define CRC_AT 22
#define HEADER_COUNT 3 /* of Vorbis */
#define FIRST_BYTES 30 /* of the first header */

enum { CONTINUED = 1, BEGIN = 2, END = 4 };

struct page {
    uint8_t flags;
    uint32_t serial, number;
    const uint8_t *lengths;
    uint32_t length_count;
    struct span body;
    size_t bytes; /* of all */
};

static uint32_t read_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t checksum(const uint8_t *page, size_t bytes)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < bytes; i++) {
        bool is_own = i >= CRC_AT && i < CRC_AT + 4; /* counts as 0 */
        crc ^= (uint32_t)(is_own ? 0 : page[i]) << 24;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc << 1 ^ (crc & 0x80000000u ? 0x04c11db7u : 0);
        }
    }
    return crc;
}

/* False: no whole page is there. */
static bool read_page(struct span rest, struct page *out)
{
    const uint8_t *at = rest.ptr;
    if (rest.len < HEAD_BYTES || memcmp(at, "OggS", 5) != 0) {
        return false;
    }
    *out = (struct page){.flags = at[5],
                         .serial = read_u32(at + 14),
                         .number = read_u32(at + 18),
                         .lengths = at + HEAD_BYTES,
                         .length_count = at[26]};
    size_t head = HEAD_BYTES + out->length_count, body = 0;
    if (rest.len < head) {
        return false;
    }
    for (uint32_t i = 0; i < out->length_count; i++) {
        body += out->lengths[i];
    }
    out->bytes = head + body;
    if (rest.len < out->bytes) {
        return false;
    }
    out->body = span_of(at + head, body);
    return checksum(at, out->bytes) == read_u32(at + CRC_AT);
}

/* Has the first header everything that libvorbis needs? */
static bool is_first_header(struct span packet)
{
    const uint8_t *at = packet.ptr;
    if (packet.len != FIRST_BYTES || memcmp(at, "\x01vorbis\0\0\0\0", 11) != 0) {
        return false;
    }
    uint32_t rate = read_u32(at + 12), short_bits = at[28] & 15u, long_bits = at[28] >> 4;
    return at[11] >= 1 && rate >= 1 && rate <= INT32_MAX && short_bits >= 6 &&
           short_bits <= long_bits && long_bits <= 13 && (at[29] & 1);
}

static enum status fail(uint32_t page, const char *what, struct error *err)
{
    return error_set(err, ST_INVALID, "a damaged Ogg file: page %u: %s", page, what);
}

static enum status check_first(const struct page *page, struct error *err)
{
    bool is_begin = page->flags == BEGIN && page->number == 0;
    bool is_one = page->length_count == 1 && page->lengths[0] < 255;
    if (is_begin && is_one && page->body.len > 7 && memcmp(page->body.ptr, "\x01vorbis", 7) != 0) {
        return error_set(err, ST_INVALID, "expected Vorbis in an Ogg file, got something else");
    }
    return is_begin && is_one && is_first_header(page->body)
               ? ST_OK
               : fail(0, "expected the first header of Vorbis alone", err);
}

enum status ogg_verify_vorbis(struct span file, struct error *err)
{
    struct span rest =
        span_of(file.ptr, file.len < OGG_HEADER_BYTES_MAX ? file.len : OGG_HEADER_BYTES_MAX);
    uint32_t packets = 0, serial = 0;
    bool is_open = false; /* the last packet goes on in the next page */
    for (uint32_t number = 0; packets < HEADER_COUNT; number++) {
        struct page page;
        if (!read_page(rest, &page)) {
            return fail(number, "expected a whole page of the headers", err);
        }
        if (number == 0) {
            TRY(check_first(&page, err));
            serial = page.serial;
        } else if (page.serial != serial || page.number != number ||
                   page.flags != (is_open ? CONTINUED : 0)) {
            return fail(number, "expected the next page of the headers", err);
        }
        for (uint32_t i = 0; i < page.length_count; i++) {
            is_open = page.lengths[i] == 255;
            packets += !is_open;
        }
        rest = span_of(rest.ptr + page.bytes, rest.len - page.bytes);
    }
    return ST_OK;
}
