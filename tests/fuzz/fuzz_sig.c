/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a signature: raw types, a structure, or an exporter's two strings with a zero
 * between them. An accepted signature is printed and mangled; its canonical spelling is accepted
 * again and mangled to the same.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/pytree.h"
#include "protocol/rawsig.h"
#include "protocol/sip.h"

#define ARENA_BYTES (4 << 20)
#define TEXT_BYTES (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const struct buf *first, const struct buf *second)
{
    must(buf_failed(first) == buf_failed(second));
    must(buf_failed(first) ||
         (first->len == second->len &&
          (first->len == 0 || memcmp(first->ptr, second->ptr, first->len) == 0)));
}

static void read_raw(struct span text, enum rawsig_version version, struct arena *arena)
{
    struct rawsig sig, again;
    struct error err = {0};
    struct buf first, second;
    if (rawsig_parse(text, version, arena, &sig, &err) != ST_OK) {
        must(err.text[0] != '\0');
        return;
    }
    buf_init(&first, TEXT_BYTES);
    buf_init(&second, TEXT_BYTES);
    rawsig_print(&sig, version, &first);
    buf_reset(&first);
    rawsig_mangle(&sig, version, &first);
    if (!buf_failed(&first) &&
        rawsig_parse(buf_span(&first), version, arena, &again, &err) != ST_TOO_LARGE) {
        must(again.input_count == sig.input_count && again.result_count == sig.result_count);
        rawsig_mangle(&again, version, &second);
        check_same(&first, &second);
    }
    buf_fini(&first);
    buf_fini(&second);
}

static void check_sip(const struct sip *sip, struct arena *arena)
{
    struct sip again;
    struct error err = {0};
    struct buf first, second;
    const uint32_t *leaves;
    buf_init(&first, TEXT_BYTES);
    buf_init(&second, TEXT_BYTES);
    sip_print_signature(sip, &first);
    buf_reset(&first);
    sip_mangle(sip, &first);
    if (!buf_failed(&first)) {
        enum status status = sip_parse(buf_span(&first), arena, &again, &err);
        must(status == ST_OK || status == ST_TOO_LARGE);
        if (status == ST_OK) {
            sip_mangle(&again, &second);
            check_same(&first, &second);
            status = sip_bind(&again, again.inputs.leaf_count, UINT32_MAX, arena, &leaves, &err);
            must(status == ST_OK || err.text[0] != '\0');
        }
    }
    buf_fini(&first);
    buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size);
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    struct pytree_source source = {.inputs = text, .results = span_of(data, 0)};
    struct arena arena;
    struct sip sip;
    struct error err = {0};
    if (zero) {
        source.inputs.len = (size_t)(zero - data);
        source.results = span_of(zero + 1, size - source.inputs.len - 1);
    }
    arena_init(&arena, ARENA_BYTES);
    read_raw(text, RAWSIG_1, &arena);
    read_raw(text, RAWSIG_2, &arena);
    if (sip_parse(text, &arena, &sip, &err) == ST_OK) {
        check_sip(&sip, &arena);
    } else {
        must(err.text[0] != '\0');
    }
    if (pytree_parse(&source, &arena, &sip, &err) == ST_OK) {
        check_sip(&sip, &arena);
    }
    arena_fini(&arena);
    return 0;
}
