/* SPDX-License-Identifier: MIT */
/*
 * The sites of a `.pte` file: the places of bytes with a meaning, so that a mutation can exchange a
 * type for a type and an index for an index. They are found once for each valid file; mutating a
 * copy does not move the file's structure.
 */
#ifndef PTED_TESTS_PROGRAM_SITES_H
#define PTED_TESTS_PROGRAM_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The meaning of a site's bytes. */
enum site_role {
    SITE_DTYPE,        /* i8: ExecuTorch's number of an element type */
    SITE_SIZE,         /* i32: a dim */
    SITE_ORDER,        /* u8: an entry of a dim order */
    SITE_DYNAMISM,     /* i8 */
    SITE_VALUE,        /* i32: number of a value */
    SITE_ITEM,         /* i64 or i32: the same in a list */
    SITE_OPERATOR,     /* u32: number of an operator */
    SITE_DELEGATE,     /* u32 */
    SITE_TARGET,       /* u32: number of an instruction */
    SITE_INT,          /* i64 */
    SITE_DOUBLE,       /* f64 */
    SITE_BOOL,         /* u8 */
    SITE_COUNT,        /* u32: length of a vector */
    SITE_MEMORY,       /* u32: memory id */
    SITE_OFFSET,       /* u32: of planned memory */
    SITE_MEMORY_BYTES, /* i64 */
    SITE_DATA,         /* u32: number of a constant or a state */
    SITE_PLACE,        /* u64: offset or size of stored bytes */
    SITE_TAG,          /* u8: of a union */
    SITE_TABLE,        /* u32: offset to a table of a kind */
    SITE_NAME,         /* u32: offset to the first half of an operator's name */
    SITE_TEXT,         /* u32: offset to a string */
    SITE_ABSENT,       /* u16: entry of a vtable; 0 makes the field absent */
    SITE_FLAG,         /* u8 */
    SITE_PAYLOAD,      /* 1 to 8 bytes of a delegate's tables */
    SITE_LINK,         /* u32: offset to a table of a delegate's payload */
    SITE_BYTES,        /* content of constants, begin of a range of |length| */
    SITE_ROLE_COUNT
};

struct site {
    uint32_t at;
    uint32_t length; /* in bytes */
    uint8_t role;
    uint8_t kind; /* of a table: only tables of one kind can replace each other */
};

struct program_file {
    char *name;
    uint8_t *bytes; /* the file, with room for new strings after its tables */
    size_t len;
    uint32_t room, room_end;
    struct site *sites; /* first those outside of methods, then method by method */
    uint32_t site_count, site_capacity;
    uint32_t plans; /* offset of the vector of methods: its length, then offsets */
    uint32_t method_count;
    uint32_t *first_site; /* of no method, of method 0, ..., after the last */
};

#define PROGRAM_ROOM_BYTES 4096

/* False, with a text on stderr, if the file cannot be read or is not a program. */
bool program_file_read(struct program_file *file, const char *path);
void program_file_fini(struct program_file *file);

#endif
