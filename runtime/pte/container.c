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
    {"PK\x03\x04", 0, "a zip archive (.ptn?); pted reads .pte programs"},
};

static enum status check_identifier(struct span file, struct error *err)
{
    if (file.len < PTE_FILE_BYTES_MIN) {
        return error_set(err, ST_CORRUPT, "%zu bytes are too few for a program", file.len);
    }
    const char *identifier = (const char *)file.ptr + AT_IDENTIFIER;
    if (memcmp(identifier, "ET12", 4) == 0) {
        return ST_OK;
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

static enum status check_segment_area(struct span file, uint64_t program_bytes, uint64_t base,
                                      uint64_t size, struct error *err)
{
    if (base == 0 && size != 0) {
        return error_set(err, ST_CORRUPT,
                         "extended header: %" PRIu64 " bytes of segments, but no place for them",
                         size);
    }
    if (base != 0 && (base < program_bytes || base > file.len)) {
        return error_set(err, ST_CORRUPT,
                         "extended header: segments begin at byte %" PRIu64
                         ", expected between %" PRIu64 " and the file's end at %zu",
                         base, program_bytes, file.len);
    }
    if (!in_range(base, size, file.len)) {
        return error_set(err, ST_CORRUPT,
                         "extended header: %" PRIu64 " bytes of segments at byte %" PRIu64
                         " end beyond the file's %zu bytes: it was cut short",
                         size, base, file.len);
    }
    return ST_OK;
}

static enum status parse_header(struct span file, struct pte_container *out, struct error *err)
{
    uint32_t header_bytes = load_le32(file.ptr + AT_HEADER_BYTES);
    uint64_t program_bytes = load_le64(file.ptr + AT_PROGRAM_BYTES);
    uint64_t base = load_le64(file.ptr + AT_SEGMENT_BASE);
    uint64_t size =
        header_bytes >= HEADER_BYTES_WITH_SIZE ? load_le64(file.ptr + AT_SEGMENT_BYTES) : 0;

    if (program_bytes < PROGRAM_BYTES_MIN || program_bytes > file.len) {
        return error_set(err, ST_CORRUPT,
                         "extended header: the program has %" PRIu64
                         " bytes, expected %d to the file's %zu",
                         program_bytes, PROGRAM_BYTES_MIN, file.len);
    }
    if (header_bytes < HEADER_BYTES_MIN || !in_range(AT_HEADER, header_bytes, program_bytes)) {
        return error_set(err, ST_CORRUPT,
                         "extended header: its length is %" PRIu32
                         ", expected %d to the program's end at %" PRIu64,
                         header_bytes, HEADER_BYTES_MIN, program_bytes);
    }
    TRY(check_segment_area(file, program_bytes, base, size, err));
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

enum status pte_container_parse(struct span file, struct pte_container *out_container,
                                struct error *err)
{
    TRY(check_identifier(file, err));
    if (memcmp(file.ptr + AT_HEADER, "eh00", 4) == 0) {
        return parse_header(file, out_container, err);
    }
    *out_container = (struct pte_container){.flatbuffer = file};
    return ST_OK;
}
