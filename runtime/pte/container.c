/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/container.h"

#include <inttypes.h>

#include "runtime/pte/limits.h"

/* Byte positions, from ExecuTorch's schema/extended_header.h. */
enum {
    AT_IDENTIFIER = 4,
    AT_HEADER = 8,
    AT_HEADER_BYTES = 12,
    AT_PROGRAM_BYTES = 16,
    AT_SEGMENT_BASE = 24,
    AT_SEGMENT_BYTES = 32,
};
#define HEADER_BYTES_MIN 24       /* ExecuTorch up to 0.7 */
#define HEADER_BYTES_WITH_SIZE 32 /* since 1.0: with the size of all segments */
#define PROGRAM_BYTES_MIN 8

static const struct {
    const char *identifier;
    size_t at;
    const char *what;
} relatives[] = {
    {"FT01", AT_IDENTIFIER, "a .ptd file: external weights of a program, not a program"},
    {"BP08", AT_IDENTIFIER, "a .bpte file: a program bundled with test data; extract the program"},
    {"PK\x03\x04", 0, "a zip archive, such as a .pt or .pt2 file; pted reads .pte programs"},
};

enum status pte_check_end(struct span file, uint64_t end, bool is_exact, struct error *err)
{
    if (end > INT64_MAX) {
        return error_set(err, ST_CORRUPT,
                         "extended header: its sizes come to more than any file has");
    }
    return end <= file.len ? ST_OK
                           : error_set(err, ST_CORRUPT,
                                       "the file ends at %zu of %s%" PRIu64 " bytes: truncated",
                                       file.len, is_exact ? "" : "at least ", end);
}

static enum status check_identifier(struct span file, struct error *err)
{
    if (file.len < AT_HEADER) {
        return error_set(err, ST_CORRUPT,
                         "%zu bytes are too few for a program, expected at least %d", file.len,
                         PTE_FILE_BYTES_MIN);
    }
    const char *identifier = (const char *)file.ptr + AT_IDENTIFIER;
    if (memcmp(identifier, "ET12", 4) == 0) {
        return pte_check_end(file, PTE_FILE_BYTES_MIN, false, err);
    }
    for (size_t i = 0; i < sizeof(relatives) / sizeof(relatives[0]); i++) {
        if (memcmp(file.ptr + relatives[i].at, relatives[i].identifier, 4) == 0) {
            return error_set(err, ST_UNSUPPORTED, "this is %s", relatives[i].what);
        }
    }
    char shown[5] = "";
    for (size_t i = 0; i < 4; i++) {
        shown[i] = identifier[i] > ' ' && identifier[i] < 0x7f ? identifier[i] : '?';
    }
    /* Another number is another version of the format. */
    return error_set(err, memcmp(identifier, "ET", 2) == 0 ? ST_UNSUPPORTED : ST_CORRUPT,
                     "not a program that pted reads: the identifier at byte 4 is \"%s\", expected "
                     "\"ET12\"",
                     shown);
}

/* The header's numbers about the program and the segments, which begin at |base| unless it is 0. */
static enum status check_header(uint32_t header_bytes, uint64_t program_bytes, uint64_t base,
                                uint64_t size, struct error *err)
{
    if (program_bytes < PROGRAM_BYTES_MIN) {
        return error_set(err, ST_CORRUPT,
                         "extended header: the program has %" PRIu64 " bytes, expected at least %d",
                         program_bytes, PROGRAM_BYTES_MIN);
    }
    if (header_bytes < HEADER_BYTES_MIN || !in_range(AT_HEADER, header_bytes, program_bytes)) {
        return error_set(err, ST_CORRUPT,
                         "extended header: its length is %" PRIu32
                         ", expected %d to the program's end at %" PRIu64,
                         header_bytes, HEADER_BYTES_MIN, program_bytes);
    }
    if (base == 0 && size != 0) {
        return error_set(err, ST_CORRUPT,
                         "extended header: %" PRIu64 " bytes of segments, but no place for them",
                         size);
    }
    return base == 0 || base >= program_bytes
               ? ST_OK
               : error_set(err, ST_CORRUPT,
                           "extended header: segments begin at byte %" PRIu64
                           ", expected the program's end at %" PRIu64 " or behind it",
                           base, program_bytes);
}

static enum status parse_header(struct span file, struct pte_container *out, struct error *err)
{
    uint32_t header_bytes = load_le32(file.ptr + AT_HEADER_BYTES);
    uint64_t program_bytes = load_le64(file.ptr + AT_PROGRAM_BYTES);
    uint64_t base = load_le64(file.ptr + AT_SEGMENT_BASE), end;
    bool has_size = header_bytes >= HEADER_BYTES_WITH_SIZE;
    uint64_t size = has_size ? load_le64(file.ptr + AT_SEGMENT_BYTES) : 0;
    TRY(check_header(header_bytes, program_bytes, base, size, err));
    if (__builtin_add_overflow(base, size, &end)) {
        end = UINT64_MAX;
    }
    TRY(pte_check_end(file, base ? end : program_bytes, base == 0 || size != 0, err));
    *out = (struct pte_container){
        .flatbuffer = span_of(file.ptr, (size_t)program_bytes),
        .segment_base = base,
        .header_bytes = header_bytes,
    };
    if (base != 0) {
        /* Without the total, the segments have whatever follows. */
        size_t len = size ? (size_t)size : file.len - (size_t)base;
        out->segment_area = span_of(file.ptr + base, len);
    }
    return ST_OK;
}

bool pte_is_other_version(const uint8_t *header, const char *letters)
{
    return memcmp(header, letters, 2) == 0 && header[2] >= '0' && header[2] <= '9' &&
           header[3] >= '0' && header[3] <= '9';
}

enum status pte_container_parse(struct span file, struct pte_container *out_container,
                                struct error *err)
{
    TRY(check_identifier(file, err));
    if (memcmp(file.ptr + AT_HEADER, "eh00", 4) == 0) {
        return parse_header(file, out_container, err);
    }
    if (pte_is_other_version(file.ptr + AT_HEADER, "eh")) {
        return error_set(err, ST_UNSUPPORTED,
                         "unsupported header version: \"%.4s\" at byte 8, expected \"eh00\"",
                         (const char *)file.ptr + AT_HEADER);
    }
    *out_container = (struct pte_container){.flatbuffer = file};
    return ST_OK;
}
