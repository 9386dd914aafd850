/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/ogg.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HEAD_BYTES 27 /* of a page, without its table of lengths */
#define CRC_AT 22
#define VORBIS_BYTES 30     /* of the first header of Vorbis */
#define OPUS_BYTES 19       /* of that of Opus, without a table of channels */
#define OPUS_TABLE_BYTES 21 /* with one, without its rows */

enum { CONTINUED = 1, BEGIN = 2 };

struct page {
    uint8_t flags;
    uint32_t serial, number;
    const uint8_t *lengths;
    uint32_t length_count;
    struct span body;
    size_t bytes; /* of all */
};

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
                         .serial = load_le32(at + 14),
                         .number = load_le32(at + 18),
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
    return checksum(at, out->bytes) == load_le32(at + CRC_AT);
}

/* Has the first header everything that libvorbis needs? */
static bool is_vorbis(struct span packet)
{
    const uint8_t *at = packet.ptr;
    if (packet.len != VORBIS_BYTES || memcmp(at + 7, "\0\0\0\0", 4) != 0) {
        return false;
    }
    uint32_t rate = load_le32(at + 12), short_bits = at[28] & 15u, long_bits = at[28] >> 4;
    return at[11] >= 1 && rate >= 1 && rate <= INT32_MAX && short_bits >= 6 &&
           short_bits <= long_bits && long_bits <= 13 && (at[29] & 1);
}

/* The table says which stream has which channel; 255 is silence. */
static bool is_opus_table(struct span packet)
{
    const uint8_t *at = packet.ptr;
    uint32_t channels = at[9];
    if (packet.len != OPUS_TABLE_BYTES + channels) {
        return false;
    }
    uint32_t streams = at[19], coupled = at[20], decoded = streams + coupled;
    bool is_table = streams >= 1 && coupled <= streams && decoded <= 255;
    for (uint32_t i = 0; i < channels; i++) {
        uint32_t from = at[OPUS_TABLE_BYTES + i];
        is_table = is_table && (from < decoded || from == 255);
    }
    return is_table;
}

/* The same of Opus: version, channels, and how they lie in the streams. */
static bool is_opus(struct span packet)
{
    const uint8_t *at = packet.ptr;
    if (packet.len < OPUS_BYTES || at[8] > 15 || at[9] < 1) {
        return false;
    }
    return at[18] == 0 ? packet.len == OPUS_BYTES && at[9] <= 2 : is_opus_table(packet);
}

static const struct codec {
    const char *first; /* what the first header begins with */
    uint32_t header_count;
    bool (*is_first)(struct span packet);
} codecs[] = {{"\x01vorbis", 3, is_vorbis}, {"OpusHead", 2, is_opus}};

static enum status fail(uint32_t page, const char *what, struct error *err)
{
    return error_set(err, ST_INVALID, "a damaged Ogg file: page %u: %s", page, what);
}

static enum status fail_end(struct error *err)
{
    return error_set(err, ST_INVALID, "a damaged Ogg file: it ends within a page");
}

/* Follows the lengths of the pages behind the headers, up to what is no page, for the library to
 * judge. */
static enum status check_pages(struct span rest, uint32_t serial, struct error *err)
{
    while (rest.len >= HEAD_BYTES && memcmp(rest.ptr, "OggS", 5) == 0) {
        size_t bytes = HEAD_BYTES + (size_t)rest.ptr[26], table = bytes;
        for (size_t i = HEAD_BYTES; i < table && i < rest.len; i++) {
            bytes += rest.ptr[i];
        }
        if (bytes > rest.len) {
            return fail_end(err);
        }
        if ((rest.ptr[5] & BEGIN) || load_le32(rest.ptr + 14) != serial) {
            return error_set(err, ST_INVALID,
                             "expected one stream in an Ogg file, got several streams");
        }
        rest = span_of(rest.ptr + bytes, rest.len - bytes);
    }
    bool is_head = rest.len > 0 && rest.len < HEAD_BYTES &&
                   memcmp(rest.ptr, "OggS", rest.len < 4 ? rest.len : 4) == 0;
    return is_head ? fail_end(err) : ST_OK;
}

/* Sets |*codec| to the row of the first header. */
static enum status check_first(const struct page *page, const struct codec **codec,
                               struct error *err)
{
    bool is_begin = page->flags == BEGIN && page->number == 0;
    bool is_one = page->length_count == 1 && page->lengths[0] < 255;
    if (!is_begin || !is_one) {
        return fail(0, "expected the first header of Vorbis or Opus alone", err);
    }
    for (*codec = codecs; *codec < codecs + 2; ++*codec) {
        if (span_begins(page->body, (*codec)->first)) {
            return (*codec)->is_first(page->body) ? ST_OK : fail(0, "its first header", err);
        }
    }
    return error_set(err, ST_INVALID, "expected Vorbis or Opus in an Ogg file, got something else");
}

enum status ogg_verify(struct span file, struct error *err)
{
    struct span rest =
        span_of(file.ptr, file.len < OGG_HEADER_BYTES_MAX ? file.len : OGG_HEADER_BYTES_MAX);
    const struct codec *codec = codecs;
    uint32_t packets = 0, serial = 0;
    bool is_open = false; /* the last packet goes on in the next page */
    for (uint32_t number = 0; packets < codec->header_count; number++) {
        struct page page;
        if (!read_page(rest, &page)) {
            return fail(number, "expected a whole page of the headers", err);
        }
        if (number == 0) {
            TRY(check_first(&page, &codec, err));
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
    const uint8_t *end = file.ptr + file.len;
    return check_pages(span_of(rest.ptr, (size_t)(end - rest.ptr)), serial, err);
}
