/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/fuzz/program_mutate.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/ops/op.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KERNELS_MAX 2048
#define NAME_BYTES 128

/* splitmix64: consecutive states give unrelated numbers. */
uint64_t fuzz_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint32_t fuzz_below(uint64_t *state, uint64_t limit)
{
    return (uint32_t)((fuzz_random(state) >> 32) % limit);
}

struct mutation {
    struct program_copy *copy;
    const struct program_file *file;
    uint32_t first, end; /* the sites of the method that is mutated */
    uint32_t site;
};

static uint32_t below(struct mutation *m, uint64_t limit)
{
    return fuzz_below(&m->copy->random, limit);
}

static const struct site *the_site(const struct mutation *m)
{
    return &m->file->sites[m->site];
}

static uint64_t get(const struct mutation *m, const struct site *site)
{
    uint64_t number = 0;
    memcpy(&number, m->copy->bytes + site->at, site->length < 8 ? site->length : 8);
    return number;
}

static void put(struct mutation *m, const struct site *site, uint64_t number)
{
    memcpy(m->copy->bytes + site->at, &number, site->length < 8 ? site->length : 8);
}

/* Another site with the same meaning, in the same method if there is one; else the site itself. */
static const struct site *find_donor(struct mutation *m)
{
    const struct site *site = the_site(m);
    uint32_t count = m->end - m->first;
    for (int tries = 0; tries < 64 && count > 0; tries++) {
        const struct site *other = &m->file->sites[m->first + below(m, count)];
        if (other->role == site->role && other->kind == site->kind &&
            other->length == site->length) {
            return other;
        }
    }
    return site;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Changes a number to that of a similar site, a bit more or less, or a small number. */
static void mutate_near(struct mutation *m, uint32_t small)
{
    const struct site *site = the_site(m), *donor = find_donor(m);
    uint64_t mine = get(m, site);
    switch (below(m, 5)) {
    case 0:
        put(m, site, get(m, donor));
        break;
    case 1: /* exchange */
        put(m, site, get(m, donor));
        put(m, donor, mine);
        break;
    case 2:
        put(m, site, mine + below(m, 5) - 2);
        break;
    default:
        put(m, site, below(m, small));
        break;
    }
}

/* ExecuTorch's numbers for all known types. */
static const uint8_t dtypes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 27, 28, 29};

static void mutate_dtype(struct mutation *m)
{
    put(m, the_site(m), below(m, 32) ? dtypes[below(m, COUNT(dtypes))] : below(m, 32));
}

static void mutate_size(struct mutation *m)
{
    static const int32_t numbers[] = {0,  1,  2,  3,  4,  5,   7,    8,       9,         15,
                                      16, 17, 31, 33, 64, 100, 1000, 1 << 20, INT32_MAX, -1};
    const struct site *site = the_site(m);
    uint64_t old = get(m, site);
    switch (below(m, 6)) {
    case 0:
        put(m, site, old * 2);
        break;
    case 1:
        put(m, site, old / 2);
        break;
    case 2:
    case 3:
        mutate_near(m, 6);
        break;
    default:
        put(m, site, (uint32_t)numbers[below(m, COUNT(numbers) - (below(m, 8) ? 4 : 0))]);
        break;
    }
}

/* Exchanges the entry with the next one, so that the result is still an order. */
static void mutate_order(struct mutation *m)
{
    const struct site *site = the_site(m);
    bool has_next = m->site + 1 < m->file->site_count && site[1].role == SITE_ORDER &&
                    site[1].at == site->at + 1;
    if (has_next && below(m, 16) != 0) {
        uint64_t mine = get(m, site);
        put(m, site, get(m, site + 1));
        put(m, site + 1, mine);
    } else {
        put(m, site, below(m, 8));
    }
}

static void mutate_int(struct mutation *m)
{
    static const int64_t numbers[] = {0,
                                      1,
                                      2,
                                      3,
                                      -1,
                                      -2,
                                      -3,
                                      5,
                                      8,
                                      16,
                                      64,
                                      1000,
                                      INT32_MAX,
                                      INT32_MIN,
                                      INT64_MAX,
                                      INT64_MIN,
                                      (int64_t)1 << 32,
                                      (int64_t)1 << 62,
                                      UINT32_MAX,
                                      65536,
                                      -((int64_t)1 << 40)};
    if (below(m, 2)) {
        mutate_near(m, 8);
    } else {
        put(m, the_site(m), (uint64_t)numbers[below(m, COUNT(numbers))]);
    }
}

static void mutate_double(struct mutation *m)
{
    static const double numbers[] = {
        0,   -0.0, 1, -1, 0.5, 2, -3.5, 1e10, 1e300, 1e-300, __builtin_inf(), -__builtin_inf(),
        255, 1e-5};
    uint64_t bits;
    double number = below(m, 8) ? numbers[below(m, COUNT(numbers))] : __builtin_nan("");
    memcpy(&bits, &number, sizeof(bits));
    put(m, the_site(m), bits);
}

/* Changes an offset or a length: to another site's, or by steps that keep the alignment. */
static void mutate_bytes_number(struct mutation *m)
{
    static const int64_t steps[] = {-64, -16, -8, -4, 4, 8, 16, 64, 4096, 1 << 20};
    const struct site *site = the_site(m);
    switch (below(m, 4)) {
    case 0:
        put(m, site, get(m, find_donor(m)));
        break;
    case 1:
        put(m, site, below(m, 64) * 16);
        break;
    case 2:
        put(m, site, get(m, site) + (uint64_t)steps[below(m, COUNT(steps))]);
        break;
    default:
        mutate_int(m);
        break;
    }
}

static void mutate_count(struct mutation *m)
{
    const struct site *site = the_site(m);
    uint64_t old = get(m, site);
    switch (below(m, 4)) {
    case 0:
        put(m, site, old ? old - 1 : 1);
        break;
    case 1:
        put(m, site, old + 1);
        break;
    case 2:
        put(m, site, below(m, 6));
        break;
    default:
        put(m, site, get(m, find_donor(m)));
        break;
    }
}

static void mutate_payload(struct mutation *m)
{
    const struct site *site = the_site(m);
    static const float floats[] = {0,
                                   1,
                                   -1,
                                   0.5f,
                                   1e30f,
                                   1e-30f,
                                   127,
                                   -128,
                                   1e-40f,
                                   0.01f,
                                   __builtin_inff(),
                                   -__builtin_inff()};
    uint32_t bits;
    float number = floats[below(m, COUNT(floats))];
    memcpy(&bits, &number, sizeof(bits));
    switch (below(m, 6)) {
    case 0:
        put(m, site, bits);
        break;
    case 1:
        mutate_int(m);
        break;
    default:
        mutate_near(m, 24);
        break;
    }
}

/* Damages weights, scales, indices, or constants in payloads. */
static void mutate_content(struct mutation *m)
{
    static const uint32_t words[] = {0,          1,          0x7f800000, 0xff800000, 0x7fc00000,
                                     0x3f800000, 0xbf800000, 0x7fffffff, 0x80000000, UINT32_MAX};
    const struct site *site = the_site(m);
    for (uint32_t n = 1 + below(m, 16); n > 0; n--) {
        uint32_t at = site->at + (below(m, site->length) & ~3u);
        uint32_t word = words[below(m, COUNT(words))];
        bool is_word = below(m, 2) && at + 4 <= site->at + site->length;
        uint8_t byte = (uint8_t)below(m, 256);
        memcpy(m->copy->bytes + at, is_word ? (void *)&word : (void *)&byte, is_word ? 4 : 1);
    }
}

/* ---- references ------------------------------------------------------------------------------ */

/* Offsets only point forward. */
static void lead_to(struct mutation *m, const struct site *site, uint64_t target)
{
    if (target > site->at && target <= UINT32_MAX) {
        put(m, site, target - site->at);
    }
}

static void mutate_reference(struct mutation *m)
{
    const struct site *site = the_site(m), *donor = find_donor(m);
    uint64_t mine = site->at + get(m, site), theirs = donor->at + get(m, donor);
    lead_to(m, site, theirs);
    if (below(m, 2)) {
        lead_to(m, donor, mine);
    }
}

static void new_string(struct mutation *m, const struct site *site, const char *text, size_t len)
{
    struct program_copy *copy = m->copy;
    uint32_t at = copy->room;
    if (at + 8 + len > copy->room_end || len > NAME_BYTES) {
        return;
    }
    uint32_t count = (uint32_t)len;
    memcpy(copy->bytes + at, &count, sizeof(count));
    memcpy(copy->bytes + at + 4, text, len);
    copy->bytes[at + 4 + len] = 0;
    copy->room = (uint32_t)(at + 8 + len) & ~3u;
    lead_to(m, site, at);
}

/* ---- operators ------------------------------------------------------------------------------- */

struct kernel {
    const struct rt_op *op;
    struct span name;
};

static struct kernel kernels[KERNELS_MAX];
static uint32_t kernel_count;

static void note_kernels(const struct rt_op *op, void *arg)
{
    (void)arg;
    for (const char *at = op->kernels; at && *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");
        must(kernel_count < KERNELS_MAX);
        kernels[kernel_count++] = (struct kernel){op, span_of(at, len)};
        at += len;
    }
}

/* The string at the end of |site|'s offset; empty if it is damaged. */
static struct span string_at(const struct mutation *m, const struct site *site)
{
    uint64_t at = site->at + get(m, site);
    if (!in_range(at, 4, m->copy->len)) {
        return span_of("", 0);
    }
    uint32_t len = load_le32(m->copy->bytes + at);
    return in_range(at + 4, len, m->copy->len) ? span_of(m->copy->bytes + at + 4, len)
                                               : span_of("", 0);
}

/* The row of the operator whose name is at the site and whose overload is at the next one. */
static const struct rt_op *find_op(const struct mutation *m, const struct site *site)
{
    char text[2 * NAME_BYTES + 2];
    struct span name = string_at(m, site), overload = string_at(m, site + 1);
    if (name.len > NAME_BYTES || overload.len > NAME_BYTES) {
        return NULL;
    }
    memcpy(text, name.ptr, name.len);
    text[name.len] = '.';
    memcpy(text + name.len + 1, overload.ptr, overload.len);
    size_t len = overload.len ? name.len + 1 + overload.len : name.len;
    return rt_op_find_kernel(span_of(text, len));
}

/* Another operator, usually one with the same kinds of arguments. */
static void mutate_operator(struct mutation *m)
{
    const struct site *site = the_site(m);
    bool has_overload = m->site + 1 < m->file->site_count && site[1].role == SITE_TEXT;
    const struct rt_op *op = has_overload ? find_op(m, site) : NULL;
    const struct kernel *kernel = &kernels[below(m, kernel_count)];
    for (int tries = 0; op && below(m, 8) && tries < 2000; tries++) {
        if (kernel->op != op && strcmp(kernel->op->args, op->args) == 0) {
            break;
        }
        kernel = &kernels[below(m, kernel_count)];
    }
    const uint8_t *dot = memchr(kernel->name.ptr, '.', kernel->name.len);
    size_t len = dot ? (size_t)(dot - kernel->name.ptr) : kernel->name.len;
    new_string(m, site, (const char *)kernel->name.ptr, len);
    if (has_overload) {
        const char *rest = dot ? (const char *)dot + 1 : "";
        new_string(m, site + 1, rest, dot ? kernel->name.len - len - 1 : 0);
    }
}

/* ---- a mutation ------------------------------------------------------------------------------ */

/* How often a site with the role is changed when chosen, in 16ths. */
static const uint8_t weights[SITE_ROLE_COUNT] = {
    [SITE_DTYPE] = 16,  [SITE_SIZE] = 12,  [SITE_ORDER] = 3,    [SITE_DYNAMISM] = 8,
    [SITE_VALUE] = 8,   [SITE_ITEM] = 8,   [SITE_OPERATOR] = 8, [SITE_DELEGATE] = 16,
    [SITE_TARGET] = 16, [SITE_INT] = 16,   [SITE_DOUBLE] = 12,  [SITE_BOOL] = 12,
    [SITE_COUNT] = 3,   [SITE_MEMORY] = 3, [SITE_OFFSET] = 3,   [SITE_MEMORY_BYTES] = 6,
    [SITE_DATA] = 4,    [SITE_PLACE] = 3,  [SITE_TAG] = 2,      [SITE_TABLE] = 4,
    [SITE_NAME] = 16,   [SITE_TEXT] = 1,   [SITE_ABSENT] = 1,   [SITE_FLAG] = 2,
    [SITE_PAYLOAD] = 8, [SITE_LINK] = 4,   [SITE_BYTES] = 16,
};

static void mutate_site(struct mutation *m)
{
    const struct site *site = the_site(m);
    switch ((enum site_role)site->role) {
    case SITE_DTYPE:
        mutate_dtype(m);
        break;
    case SITE_SIZE:
        mutate_size(m);
        break;
    case SITE_ORDER:
        mutate_order(m);
        break;
    case SITE_DYNAMISM:
        put(m, site, below(m, 3));
        break;
    case SITE_INT:
        mutate_int(m);
        break;
    case SITE_DOUBLE:
        mutate_double(m);
        break;
    case SITE_BOOL:
    case SITE_FLAG:
        put(m, site, get(m, site) ^ 1u);
        break;
    case SITE_COUNT:
        mutate_count(m);
        break;
    case SITE_OFFSET:
    case SITE_MEMORY_BYTES:
    case SITE_PLACE:
        mutate_bytes_number(m);
        break;
    case SITE_TAG:
        put(m, site, 1 + below(m, 12));
        break;
    case SITE_TABLE:
    case SITE_TEXT:
    case SITE_LINK:
        mutate_reference(m);
        break;
    case SITE_NAME:
        mutate_operator(m);
        break;
    case SITE_ABSENT:
        put(m, site, 0);
        break;
    case SITE_PAYLOAD:
        mutate_payload(m);
        break;
    case SITE_BYTES:
        mutate_content(m);
        break;
    default:
        mutate_near(m, 32);
        break;
    }
}

static void find_sites(struct mutation *m, uint32_t method)
{
    const struct program_file *file = m->file;
    m->first = file->first_site[method];
    m->end = file->first_site[method + 1];
}

/* ---- all over a method ----------------------------------------------------------------------- */

/* Changes all sites of |role| with value |from| to |to|; SITES_ANY: with any value. */
#define SITES_ANY UINT64_MAX
static void sweep(struct mutation *m, enum site_role role, uint64_t from, uint64_t to)
{
    for (uint32_t i = m->first; i < m->end; i++) {
        const struct site *site = &m->file->sites[i];
        if (site->role == role && (from == SITES_ANY || get(m, site) == from)) {
            put(m, site, to);
        }
    }
}

/* Larger tensors need room; the planned memory that the file declares is never allocated. */
static void widen_memories(struct mutation *m)
{
    for (uint32_t i = m->first; i < m->end; i++) {
        const struct site *site = &m->file->sites[i];
        if (site->role == SITE_MEMORY_BYTES) {
            put(m, site, get(m, site) * 32);
        }
    }
}

/* A number that some site of the role has; SITES_ANY - 1: there is none. */
static uint64_t find_number(struct mutation *m, enum site_role role)
{
    for (int tries = 0; tries < 256; tries++) {
        const struct site *site = &m->file->sites[m->first + below(m, m->end - m->first)];
        if (site->role == role) {
            return get(m, site);
        }
    }
    return SITES_ANY - 1;
}

/* Gives all tensors of one type another type, or all dims of one size another size: they still fit
 * each other. */
static void mutate_everywhere(struct mutation *m)
{
    static const uint8_t sizes[] = {0, 1, 2, 3, 5, 7, 8, 9, 16, 17, 33, 65};
    uint64_t size, other = sizes[below(m, COUNT(sizes))];
    switch (below(m, 4)) {
    case 0:
        sweep(m, SITE_DTYPE, find_number(m, SITE_DTYPE), dtypes[below(m, COUNT(dtypes))]);
        break;
    case 1:
        sweep(m, SITE_DYNAMISM, SITES_ANY, below(m, 3));
        break;
    default:
        size = find_number(m, SITE_SIZE);
        sweep(m, SITE_SIZE, size, other);
        if (below(m, 2)) {
            sweep(m, SITE_INT, size, other);
        }
        break;
    }
    widen_memories(m);
}

static void mutate_once(struct mutation *m, uint32_t method)
{
    if (below(m, 4) == 0) {
        find_sites(m, method + 1);
        if (m->end > m->first) {
            mutate_everywhere(m);
        }
        return;
    }
    find_sites(m, below(m, 12) ? method + 1 : 0);
    for (int tries = 0; tries < 64 && m->end > m->first; tries++) {
        m->site = m->first + below(m, m->end - m->first);
        if (below(m, 16) < weights[the_site(m)->role]) {
            mutate_site(m);
            return;
        }
    }
}

/* Keeps only one method: loading the others would take most of the time. */
static void keep_method(struct mutation *m, uint32_t method)
{
    const struct site first = {.at = m->file->plans + 4, .length = 4};
    const struct site kept = {.at = m->file->plans + 4 + 4 * method, .length = 4};
    lead_to(m, &first, kept.at + get(m, &kept));
    put(m, &(struct site){.at = m->file->plans, .length = 4}, 1);
}

void program_mutate(struct program_copy *copy, const struct program_file *file, uint64_t seed)
{
    struct mutation m = {.copy = copy, .file = file};
    if (kernel_count == 0) {
        rt_op_each(note_kernels, NULL);
    }
    if (copy->capacity < file->len) {
        copy->bytes = realloc(copy->bytes, file->len);
        must(copy->bytes);
        copy->capacity = file->len;
    }
    memcpy(copy->bytes, file->bytes, file->len);
    copy->len = file->len;
    copy->room = file->room;
    copy->room_end = file->room_end;
    copy->random = seed;
    uint32_t method = below(&m, file->method_count);
    for (uint32_t n = 1 + below(&m, 3) * below(&m, 3); n > 0; n--) {
        mutate_once(&m, method);
    }
    /* Sometimes keeps several, because methods share state. */
    if (file->method_count > 8 || below(&m, 4)) {
        keep_method(&m, method);
    }
}

void program_copy_fini(struct program_copy *copy)
{
    free(copy->bytes);
}
