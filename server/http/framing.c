/* SPDX-License-Identifier: MIT */
/*
 * scan() walks the table; take_data() counts bytes that the table does not look at. The usual bytes
 * of names, targets and values are skipped in runs, with one look at a table of 256 for each, so
 * that states cost time only where something changes.
 */
#include "config.h"

#include "server/http/framing.h"

#include <limits.h>
#include <stdio.h>

#include "base/check.h"

/* Bytes beside the data of a chunk that are free: the size and two line ends, and twice its data in
 * extensions, as Go allows it (net/http/internal/chunked.go). Some clients sign each chunk there.
 */
#define CHUNK_FREE_BYTES (4 + 16)
#define CHUNK_FREE_FACTOR 2

/* ---- the table ------------------------------------------------------------------------------- */

enum part { NOTHING, EMPTY_LINE, REQUEST_LINE, FIELD_LINE, CHUNK, TRAILER_LINE };

struct state_info {
    const char *name;
    const char *expected;
    uint8_t part; /* enum part */
};

/* Beside the class in |classes|: the byte belongs to that run. */
#define RUN_NONE 0x00
#define RUN_TOKEN 0x20
#define RUN_VISIBLE 0x40
#define RUN_TEXT 0x80
#define CLASS_MASK 0x1f
_Static_assert(FRAMING_CLASS_COUNT <= CLASS_MASK + 1, "a class leaves room for the runs");

static const struct state_info infos[FRAMING_STATE_COUNT] = {
#define STATE(name, part, run, expected) [FRAMING_##name] = {#name, expected, part},
#include "server/http/framing.def"
};

/* Of each state; RUN_NONE or the bit of one. */
static const uint8_t runs[FRAMING_STATE_COUNT] = {
#define STATE(name, part, run, expected) [FRAMING_##name] = RUN_##run,
#include "server/http/framing.def"
};

/* Rows of a power of two are found faster. */
static const struct framing_cell cells[FRAMING_STATE_COUNT][CLASS_MASK + 1] = {
#define ON(state, class, next, action)                                                             \
    [FRAMING_##state][CLASS_##class] = {FRAMING_##next, ACTION_##action},
#include "server/http/framing.def"
};
_Static_assert(FRAMING_REFUSED == 0 && ACTION_REFUSE == 0, "what is not in the table is refused");

#define SEEN(name) (CLASS_##name | RUN_VISIBLE | RUN_TEXT)
#define TOKEN(name) (CLASS_##name | RUN_VISIBLE | RUN_TEXT | RUN_TOKEN)
#define t TOKEN(TOKEN)
#define x TOKEN(HEX)
#define n TOKEN(DIGIT)
#define d SEEN(DELIMITER)
#define HIGH (CLASS_HIGH | RUN_TEXT)
#define HIGH_16                                                                                    \
    HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH

/* In the order of ASCII, 16 in a line from 0x20 on. */
static const uint8_t classes[UCHAR_MAX + 1] = {
    ['\t'] = CLASS_TAB,
    ['\n'] = CLASS_LF,
    ['\r'] = CLASS_CR,
    /* clang-format off */
    [0x20] = CLASS_SP | RUN_TEXT,
    t, SEEN(QUOTE), t, t, t, t, t, d, d, t, t, d, t, TOKEN(DOT), SEEN(SLASH),
    n, n, n, n, n, n, n, n, n, n, SEEN(COLON), SEEN(SEMICOLON), d, SEEN(EQUALS), d, d,
    d, x, x, x, x, x, x, t, TOKEN(H), t, t, t, t, t, t, t,
    TOKEN(P), t, t, t, TOKEN(T), t, t, t, t, t, t, d, SEEN(BACKSLASH), d, t, t,
    t, x, x, x, x, x, x, t, t, t, t, t, t, t, t, t,
    t, t, t, t, t, t, t, t, t, t, t, d, t, d, t, CLASS_CONTROL,
    HIGH_16, HIGH_16, HIGH_16, HIGH_16, HIGH_16, HIGH_16, HIGH_16, HIGH_16,
    /* clang-format on */
};

#undef t
#undef x
#undef n
#undef d

struct framing_cell framing_cell(enum framing_state state, enum framing_class class)
{
    return cells[state][class];
}

enum framing_class framing_class(uint8_t byte)
{
    return (enum framing_class)(classes[byte] & CLASS_MASK);
}

bool framing_skips(enum framing_state state, uint8_t byte)
{
    return (classes[byte] & runs[state]) != 0;
}

const char *framing_state_name(enum framing_state state)
{
    return infos[state].name;
}

/* ---- refusing -------------------------------------------------------------------------------- */

static enum framing_kind refuse(struct framing *framing, enum framing_refusal refusal, uint8_t got)
{
    framing->refusal = refusal;
    framing->got = got;
    framing->state = FRAMING_REFUSED;
    return FRAMING_PART_REFUSED;
}

#define PLACE_BYTES 32
static const char *print_place(const struct framing *framing, char out[PLACE_BYTES])
{
    static const char *const names[] = {
        [FIELD_LINE] = "field line", [CHUNK] = "chunk", [TRAILER_LINE] = "trailer line"};
    enum part part = (enum part)infos[framing->from].part;
    uint8_t state = framing->from;
    bool is_next = state == FRAMING_FIELD || state == FRAMING_HEAD_LF || state == FRAMING_TRAILER ||
                   state == FRAMING_TRAILERS_LF; /* not counted yet */
    if (part == EMPTY_LINE || part == REQUEST_LINE) {
        return "request line";
    }
    snprintf(out, PLACE_BYTES, "%s %u", names[part], framing->number + is_next);
    return out;
}

#define GOT_BYTES 16
static const char *print_got(uint8_t byte, char out[GOT_BYTES])
{
    switch (framing_class(byte)) {
    case CLASS_CR:
        return "CR";
    case CLASS_LF:
        return "LF";
    case CLASS_SP:
        return "a space";
    case CLASS_TAB:
        return "TAB";
    case CLASS_CONTROL:
    case CLASS_HIGH:
        snprintf(out, GOT_BYTES, "byte 0x%02x", byte);
        return out;
    default:
        snprintf(out, GOT_BYTES, "'%c'", byte);
        return out;
    }
}

static int explain_version(const struct framing *framing, struct error *err)
{
    char got[] = "HTTP/d.d";
    got[5] = (char)framing->major;
    got[7] = (char)framing->minor;
    const char *text = framing->refusal == REFUSAL_VERSION      ? got
                       : framing->refusal == REFUSAL_NO_VERSION ? "none"
                                                                : "another";
    error_set(err, ST_UNSUPPORTED, "HTTP version: expected HTTP/1.0 or HTTP/1.1, got %s", text);
    return 505;
}

static int explain_limit(const struct framing *framing, struct error *err)
{
    enum part part = (enum part)infos[framing->from].part;
    bool is_body = part == CHUNK || part == TRAILER_LINE;
    if (framing->refusal == REFUSAL_FIELDS) {
        error_set(err, ST_TOO_LARGE, "%s: more than %llu fields (--header-count-max)",
                  is_body ? "trailers" : "request head",
                  (unsigned long long)framing->params->header_count_max);
    } else {
        error_set(err, ST_TOO_LARGE, "%s: more than %llu bytes%s (--header-bytes-max)",
                  is_body ? "chunked body" : "request head",
                  (unsigned long long)framing->params->header_bytes_max,
                  is_body ? " of extensions and trailers" : "");
    }
    return 431;
}

int framing_explain(const struct framing *framing, struct error *err)
{
    char place[PLACE_BYTES], got[GOT_BYTES];
    must(framing->state == FRAMING_REFUSED);
    switch (framing->refusal) {
    case REFUSAL_NO_VERSION:
    case REFUSAL_OTHER_VERSION:
    case REFUSAL_VERSION:
        return explain_version(framing, err);
    case REFUSAL_BYTES:
    case REFUSAL_FIELDS:
        return explain_limit(framing, err);
    case REFUSAL_SIZE:
        error_set(err, ST_INVALID, "%s: expected a size of at most 64 bits, got more",
                  print_place(framing, place));
        return 400;
    case REFUSAL_BYTE:
        error_set(err, ST_INVALID, "%s: expected %s, got %s", print_place(framing, place),
                  infos[framing->from].expected, print_got(framing->got, got));
        return 400;
    }
    unreachable();
}

/* ---- actions --------------------------------------------------------------------------------- */

static uint64_t hex_value(uint8_t digit)
{
    return digit <= '9' ? (uint64_t)(digit - '0') : (uint64_t)((digit | 0x20) - 'a' + 10);
}

static enum framing_kind add_digit(struct framing *framing, uint8_t digit)
{
    if (framing->left >> 60) {
        return refuse(framing, REFUSAL_SIZE, digit);
    }
    framing->left = framing->left << 4 | hex_value(digit);
    return FRAMING_PART_NONE;
}

static enum framing_kind check_version(struct framing *framing, uint8_t minor)
{
    framing->minor = minor;
    bool is_known = framing->major == '1' && (minor == '0' || minor == '1');
    return is_known ? FRAMING_PART_NONE : refuse(framing, REFUSAL_VERSION, minor);
}

static enum framing_kind count_field(struct framing *framing, uint8_t byte)
{
    if (framing->number >= framing->params->header_count_max) {
        return refuse(framing, REFUSAL_FIELDS, byte);
    }
    framing->number++;
    return FRAMING_PART_NONE;
}

/* Each byte of data lets off the bytes that stand beside it. */
static void let_off(struct framing *framing, uint64_t bytes)
{
    framing->bytes -= (uint32_t)(bytes < framing->bytes ? bytes : framing->bytes);
}

/* The table goes to DATA; behind the chunk of size 0 there are trailers. */
static enum framing_kind end_size(struct framing *framing)
{
    if (framing->left) {
        return FRAMING_PART_CHUNK;
    }
    framing->number = 0;
    framing->state = FRAMING_TRAILER;
    return FRAMING_PART_NONE;
}

/* Performs the action of |byte|; the state has changed already. */
static enum framing_kind act(struct framing *framing, enum framing_action action, uint8_t byte)
{
    switch (action) {
    case ACTION_REFUSE:
        return refuse(framing, REFUSAL_BYTE, byte);
    case ACTION_NONE:
    case ACTION_BEGIN:
        return FRAMING_PART_NONE;
    case ACTION_MAJOR:
        framing->major = byte;
        return FRAMING_PART_NONE;
    case ACTION_MINOR:
        return check_version(framing, byte);
    case ACTION_NO_VERSION:
        return refuse(framing, REFUSAL_NO_VERSION, byte);
    case ACTION_OTHER_VERSION:
        return refuse(framing, REFUSAL_OTHER_VERSION, byte);
    case ACTION_FIELD:
        return count_field(framing, byte);
    case ACTION_TAB:
        return FRAMING_PART_HEAD;
    case ACTION_HEAD_END:
        return FRAMING_PART_HEAD_END;
    case ACTION_SIZE:
        return add_digit(framing, byte);
    case ACTION_SIZE_END:
        return end_size(framing);
    case ACTION_CHUNK:
        framing->number++;
        return FRAMING_PART_NONE;
    case ACTION_END:
        return FRAMING_PART_END;
    case FRAMING_ACTION_COUNT:
        break;
    }
    unreachable();
}

/* ---- parts ----------------------------------------------------------------------------------- */

static struct framing_part part_of(enum framing_kind kind, struct span bytes)
{
    return (struct framing_part){kind, bytes};
}

static struct span take(struct span *rest, size_t len)
{
    struct span taken = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len, rest->len - len);
    return taken;
}

/* Of a head, or beside data: these bytes count. */
static void take_counted(struct framing *framing, struct span *rest, size_t len)
{
    framing->bytes += (uint32_t)len;
    take(rest, len);
}

static bool is_in_head(enum framing_state state)
{
    return infos[state].part == REQUEST_LINE || infos[state].part == FIELD_LINE;
}

/* White space from a TAB on, as spaces. */
static struct framing_part take_blanks(struct framing *framing, struct span *rest, size_t max)
{
    static const char blanks[] = "                                ";
    size_t len = 0;
    max = max < sizeof(blanks) - 1 ? max : sizeof(blanks) - 1;
    while (len < max && (rest->ptr[len] == '\t' || rest->ptr[len] == ' ')) {
        len++;
    }
    take_counted(framing, rest, len);
    return part_of(FRAMING_PART_HEAD, span_of(blanks, len));
}

/* The bytes that one call looks at. */
struct scan {
    const uint8_t *first; /* of the head's bytes in it; NULL: none */
    const uint8_t *at, *end;
};

/* Marks which of 8 bytes end a text, below 0x20 or DEL, by their highest bits. The lowest bit that
 * is set is right; above it, a borrow may have set others. */
static uint64_t text_ends(const uint8_t *at)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t word = load_le64(at), del = word ^ ones * 0x7f;
    return (((word - ones * 0x20) & ~word) | ((del - ones) & ~del)) & ones * 0x80;
}

/* Values are most of a head. */
static const uint8_t *skip_text(const uint8_t *at, const uint8_t *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t ends = text_ends(at);
        if (ends) {
            return at + __builtin_ctzll(ends) / 8;
        }
    }
    return at;
}

static const uint8_t *skip(const uint8_t *at, const uint8_t *end, uint8_t run)
{
    if (run == RUN_TEXT) {
        at = skip_text(at, end);
    }
    while (end - at >= 4 &&
           (classes[at[0]] & classes[at[1]] & classes[at[2]] & classes[at[3]] & run)) {
        at += 4;
    }
    while (at < end && (classes[*at] & run)) {
        at++;
    }
    return at;
}

static struct framing_cell cell_of(uint8_t state, uint8_t byte)
{
    return cells[state][classes[byte] & CLASS_MASK];
}

/* Passes bytes that do nothing but change the state. */
static uint8_t pass(uint8_t state, struct scan *scan)
{
    const uint8_t *at = scan->at, *end = scan->end;
    for (; at < end; at++) {
        uint8_t run = runs[state];
        if (run != RUN_NONE && (at = skip(at, end, run)) == end) {
            break;
        }
        struct framing_cell cell = cell_of(state, *at);
        if (cell.action != ACTION_NONE) {
            break;
        }
        state = cell.next;
    }
    scan->at = at;
    return state;
}

/* Walks to the end, or to a byte for which the caller has something to do. It does not pass a
 * refused byte, nor a TAB in a value. */
static enum framing_kind walk(struct framing *framing, struct scan *scan)
{
    for (;;) {
        framing->state = pass(framing->state, scan);
        if (scan->at == scan->end) {
            return FRAMING_PART_NONE;
        }
        struct framing_cell cell = cell_of(framing->state, *scan->at);
        if (cell.action == ACTION_BEGIN) {
            scan->first = scan->at;
        }
        framing->from = framing->state;
        framing->state = cell.next;
        enum framing_kind kind = act(framing, (enum framing_action)cell.action, *scan->at);
        if (kind == FRAMING_PART_REFUSED || kind == FRAMING_PART_HEAD) {
            return kind;
        }
        scan->at++;
        if (kind != FRAMING_PART_NONE) {
            return kind;
        }
    }
}

/* The head, and the bytes beside the data of chunks: read by the table, within their limit. */
static struct framing_part scan(struct framing *framing, struct span *rest)
{
    size_t max = framing->params->header_bytes_max - framing->bytes;
    size_t len = rest->len < max ? rest->len : max;
    if (len && framing->state == FRAMING_VALUE && *rest->ptr == '\t') {
        return take_blanks(framing, rest, len);
    }
    struct scan scan = {.at = rest->ptr, .end = rest->ptr + len};
    scan.first = is_in_head(framing->state) ? scan.at : NULL;
    enum framing_kind kind = walk(framing, &scan);
    take_counted(framing, rest, (size_t)(scan.at - rest->ptr));
    if (kind == FRAMING_PART_CHUNK) {
        let_off(framing, CHUNK_FREE_BYTES);
    } else if (kind == FRAMING_PART_NONE && rest->len) {
        framing->from = framing->state;
        kind = refuse(framing, REFUSAL_BYTES, *rest->ptr);
    }
    if (scan.first && scan.first < scan.at) { /* a refusal comes after the parts before it */
        kind = kind == FRAMING_PART_HEAD_END ? kind : FRAMING_PART_HEAD;
        return part_of(kind, span_of(scan.first, (size_t)(scan.at - scan.first)));
    }
    return part_of(kind, span_of(NULL, 0));
}

/* Data is counted, not looked at. */
static struct framing_part take_data(struct framing *framing, struct span *rest)
{
    size_t len = rest->len < framing->left ? rest->len : (size_t)framing->left;
    if (len == 0) {
        return part_of(FRAMING_PART_NONE, span_of(NULL, 0));
    }
    framing->left -= len;
    if (framing->state == FRAMING_DATA) {
        let_off(framing, CHUNK_FREE_FACTOR * (uint64_t)len);
    }
    if (framing->left == 0) {
        framing->state = framing->state == FRAMING_DATA ? FRAMING_DATA_CR : FRAMING_END;
    }
    return part_of(FRAMING_PART_DATA, take(rest, len));
}

void framing_begin(struct framing *framing, const struct params *params)
{
    *framing = (struct framing){.params = params, .state = FRAMING_START};
}

void framing_pass_head(struct framing *framing)
{
    must(framing_is_at_start(framing));
    framing->state = FRAMING_HEAD_END;
}

void framing_begin_body(struct framing *framing, bool is_chunked, uint64_t length)
{
    must(framing->state == FRAMING_HEAD_END);
    framing->bytes = 0;
    framing->number = 1;
    framing->left = is_chunked ? 0 : length;
    framing->state = is_chunked ? FRAMING_SIZE_FIRST : length ? FRAMING_LENGTH : FRAMING_END;
}

struct framing_part framing_next(struct framing *framing, struct span *rest)
{
    switch (framing->state) {
    case FRAMING_LENGTH:
    case FRAMING_DATA:
        return take_data(framing, rest);
    case FRAMING_END:
        return part_of(FRAMING_PART_END, span_of(NULL, 0));
    case FRAMING_REFUSED:
        return part_of(FRAMING_PART_REFUSED, span_of(NULL, 0));
    default:
        must(framing->state != FRAMING_HEAD_END); /* the caller forgot framing_begin_body() */
        return scan(framing, rest);
    }
}
