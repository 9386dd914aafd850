/* SPDX-License-Identifier: MIT */
/*
 * Any bytes on the connections of a server, cut in any way, with clients that wait, stop reading,
 * disconnect, or come in numbers. Meanwhile one client has sent all of a large request except the
 * last byte: in the end it must get its usual answer. Answers must be HTTP, and if only the cuts
 * differ, they must be the same.
 *
 * Bytes of the input are sent as they are, except '~' and the command after it:
 *
 *     ~p    waits for the server          ~q    lets it make one turn
 *     ~c    one more client, from here on ~n    continues with the next client
 *     ~x    the client closes             ~h    it closes its sending side
 *     ~s    it stops reading, or resumes  ~t    the timeouts of all states expire
 *     ~d    idle connections are closed
 *     ~=hhhhX   X as often as the hexadecimal number says
 *     ~~    the byte itself, as before any other byte
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/fuzz/conn_world.h"

#define PIECE_BYTES_MAX (4 << 20)
#define LOG_BYTES_MAX (8 << 20)
/* More than a request keeps to itself. */
#define WITNESS_PADDING (100 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the client whose request must not suffer ------------------------------------------------ */

#define WITNESS_JSON                                                                               \
    "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":"           \
    "[1,2,3,4,5,6]},{\"name\":\"input_1\",\"shape\":[2,3],\"datatype\":\"FP32\",\"data\":"         \
    "[10,20,30,40,50,60]}]"

static void print_witness(struct buf *out)
{
    buf_init(out, 2 * WITNESS_PADDING);
    buf_printf(out,
               "POST /v2/models/add/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n%s",
               sizeof(WITNESS_JSON) + WITNESS_PADDING, WITNESS_JSON);
    buf_add_fill(out, ' ', WITNESS_PADDING);
    buf_add_char(out, '}');
}

static void expect_witness(const struct client *witness)
{
    static const char sums[] = "\"data\":[11.0,22.0,33.0,44.0,55.0,66.0]}]}";
    struct span got = buf_span(&witness->received);
    must(got.len > sizeof(sums));
    must(memcmp(got.ptr, "HTTP/1.1 200 ", 13) == 0);
    must(memcmp(got.ptr + got.len - (sizeof(sums) - 1), sums, sizeof(sums) - 1) == 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

static size_t content_length(struct span head)
{
    static const char name[] = "\r\nContent-Length: ";
    const uint8_t *at = memmem(head.ptr, head.len, name, sizeof(name) - 1);
    return at ? strtoull((const char *)at + sizeof(name) - 1, NULL, 10) : 0;
}

/* A target that is too long and also malformed later is refused for either reason: llhttp hands it
 * over where it ends or where the bytes end. */
static bool is_of_request_line(int status, struct span body)
{
    static const char words[] = "{\"error\":\"request line: ";
    return status == 414 || (status == 400 && body.len >= sizeof(words) &&
                             memcmp(body.ptr, words, sizeof(words) - 1) == 0);
}

/* Reads the next answer: its status, and its body if it is an error. False: it is not complete. */
static bool note_answer(struct span *rest, struct buf *log)
{
    const uint8_t *end = memmem(rest->ptr, rest->len, "\r\n\r\n", 4);
    if (!end) {
        return false;
    }
    struct span head = span_of(rest->ptr, (size_t)(end + 4 - rest->ptr));
    must(head.len > 13 && memcmp(head.ptr, "HTTP/1.1 ", 9) == 0);
    int status = (int)strtol((const char *)head.ptr + 9, NULL, 10);
    must(status >= 100 && status < 600);
    *rest = span_of(end + 4, rest->len - head.len);
    size_t len = content_length(head);
    bool has_body = len && rest->len && *rest->ptr != 'H'; /* an answer to HEAD has no body */
    if (has_body && rest->len < len) {
        return false;
    }
    if (is_of_request_line(status, *rest)) {
        buf_add_str(log, "request line ");
    } else if (status != 100) {
        buf_printf(log, "%d ", status);
        buf_add(log, rest->ptr, has_body && status >= 400 ? len : 0);
    }
    *rest = span_of(rest->ptr + (has_body ? len : 0), rest->len - (has_body ? len : 0));
    return true;
}

/* This refusal is correct but must never happen: llhttp and the table have to agree where a head
 * ends. */
static void expect_one_end(const struct client *client)
{
    static const char words[] = ": the end of the head is ambiguous\"}";
    struct span got = buf_span(&client->received);
    must(got.len == 0 || !memmem(got.ptr, got.len, words, sizeof(words) - 1));
}

/* Notes statuses and errors; answers that a client did not wait for may be cut off. */
static void note_answers(const struct client *client, struct buf *log)
{
    struct span rest = buf_span(&client->received);
    expect_one_end(client);
    while (rest.len && note_answer(&rest, log)) {
    }
    buf_printf(log, "%s\n", client->has_end ? "closed" : "open");
}

/* ---- one run of an input --------------------------------------------------------------------- */

struct run {
    struct world *world;
    struct client *client; /* the one that sends now */
    struct buf piece;      /* bytes to send at once */
    bool is_whole;         /* sends as few pieces as possible */
    bool is_comparable;    /* the answers do not depend on timing */
};

static void send_piece(struct run *run)
{
    world_send(run->world, run->client, buf_span(&run->piece));
    run->is_comparable &= !run->client->is_short && !buf_failed(&run->piece);
    buf_reset(&run->piece);
}

static void next_client(struct run *run)
{
    size_t at = (size_t)(run->client - run->world->clients) + 1;
    run->client = &run->world->clients[at < run->world->client_count ? at : 1];
}

/* Commands whose effect depends on timing. */
static void disturb(struct run *run, uint8_t command)
{
    struct client *other;
    send_piece(run);
    run->is_comparable = false;
    switch (command) {
    case 'c':
        other = world_connect(run->world);
        run->client = other ? other : run->client;
        break;
    case 'n':
        next_client(run);
        break;
    case 'x':
        world_close(run->client);
        break;
    case 'h':
        world_shut_down(run->client);
        break;
    case 's':
        run->client->is_reading = !run->client->is_reading;
        break;
    case 't':
        world_time_out(run->world);
        break;
    case 'd':
        world_drain(run->world);
        break;
    default:
        break;
    }
}

static void wait_a_while(struct run *run, uint8_t command)
{
    if (run->is_whole) {
        return;
    }
    send_piece(run);
    if (command == 'p') {
        world_settle(run->world);
    } else {
        world_turn(run->world);
    }
}

/* Reads "hhhhX"; returns how many bytes of |rest| it used. */
static size_t repeat(struct run *run, struct span rest)
{
    char digits[5] = "", *end;
    if (rest.len < 5) {
        return 0;
    }
    memcpy(digits, rest.ptr, 4);
    unsigned long count = strtoul(digits, &end, 16);
    if (end == digits + 4 && isxdigit((unsigned char)digits[0])) { /* no sign, no space */
        buf_add_fill(&run->piece, (char)rest.ptr[4], count);
    }
    return 5;
}

/* Performs the command after '~'; returns how many bytes it used. */
static size_t perform(struct run *run, struct span rest)
{
    uint8_t command = rest.ptr[0];
    if (command == '=') {
        return 1 + repeat(run, span_of(rest.ptr + 1, rest.len - 1));
    }
    if (command == 'p' || command == 'q') {
        wait_a_while(run, command);
    } else if (memchr("cnxhstd", command, 7)) {
        disturb(run, command);
    } else {
        buf_add_char(&run->piece, (char)command);
    }
    return 1;
}

static void perform_all(struct run *run, struct span input)
{
    while (input.len) {
        uint8_t byte = *input.ptr;
        input = span_of(input.ptr + 1, input.len - 1);
        if (byte != '~' || input.len == 0) {
            buf_add_char(&run->piece, (char)byte);
            continue;
        }
        size_t used = perform(run, input);
        input = span_of(input.ptr + used, input.len - used);
    }
    send_piece(run);
    world_settle(run->world);
}

/* Returns true if the answers, in |log|, may be compared. */
static bool play(struct span input, bool is_whole, struct buf *log)
{
    struct run run = {.world = world_get(), .is_whole = is_whole, .is_comparable = true};
    struct buf text;
    print_witness(&text);
    struct client *witness = world_connect(run.world);
    run.client = world_connect(run.world);
    world_send(run.world, witness, span_of(text.ptr, text.len - 1));
    world_settle(run.world);

    buf_init(&run.piece, PIECE_BYTES_MAX);
    perform_all(&run, input);
    note_answers(run.client, log);
    buf_fini(&run.piece);

    world_send(run.world, witness, span_of(text.ptr + text.len - 1, 1));
    world_settle(run.world);
    expect_witness(witness);
    world_end(run.world);
    buf_fini(&text);
    return run.is_comparable;
}

static void compare(const struct buf *whole, const struct buf *cut)
{
    if (!span_equal(buf_span(whole), buf_span(cut))) {
        fprintf(stderr, "at once: %.*s\nin pieces: %.*s\n", SPAN_FMT(buf_span(whole)),
                SPAN_FMT(buf_span(cut)));
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole, cut;
    buf_init(&whole, LOG_BYTES_MAX);
    buf_init(&cut, LOG_BYTES_MAX);
    if (play(span_of(data, size), false, &cut) && play(span_of(data, size), true, &whole)) {
        compare(&whole, &cut);
    }
    buf_fini(&whole);
    buf_fini(&cut);
    return 0;
}
