/* SPDX-License-Identifier: MIT */
/*
 * Any frames on connections of HTTP/2, cut in any way, with clients that wait, stop reading,
 * disconnect, or come in numbers. Afterwards another client gets its usual answer.
 *
 * The input is a row of commands, each '~' and a character:
 *
 * - ~fKFS: a frame begins. Its kind, flags and stream are the bytes less '0'; its payload are the
 *   bytes up to the next command but '~~', which is the byte itself.
 * - ~bL: the last frame claims L more bytes than it has.
 * - ~G: a whole request, GET /v2. ~P: the head of a call, whose body is to follow. ~B: that body.
 * - ~S: the head of a stream of calls of gRPC. ~I: a message of it. ~E: its end.
 * - ~p waits for the server. ~q lets it make one turn.
 * - ~c: one more client, from here on. ~n continues with the next client.
 * - ~x: the client closes. ~h: it closes its sending side. ~s: it stops reading, or resumes.
 * - ~t: the timeouts of all states expire. ~d: the server drains.
 * - ~=hhX: X as often as the hexadecimal number says.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/fuzz/conn_world.h"

#define PIECE_BYTES_MAX (1 << 20)
#define HEAD_BYTES 9

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/* Fields as literals without an index, but for those of the static table (RFC
 * 7541). */
static const char get_v2[] = "\x82\x86\x04\x03/v2\x01\x01"
                             "a";
static const char post_add[] = "\x83\x86\x04\x14/v2/models/add/infer\x01\x01"
                               "a";
static const char body[] = "{\"inputs\":[{\"name\":\"input_0\",\"shape\":[2,3],"
                           "\"datatype\":\"FP32\",\"data\":"
                           "[1,2,3,4,5,6]},{\"name\":\"input_1\",\"shape\":[2,"
                           "3],\"datatype\":\"FP32\",\"data\":"
                           "[10,20,30,40,50,60]}]}";

/* content-type and te, which all calls of gRPC have. */
static const char post_stream[] = "\x83\x86\x04\x2f/inference.GRPCInferenceService/ModelStreamInfer"
                                  "\x01\x01"
                                  "a"
                                  "\x0f\x10\x10"
                                  "application/grpc"
                                  "\x10\x02te\x08trailers";

struct run {
    struct world *world;
    struct client *client; /* that sends now */
    struct buf piece;      /* frames to send at once */
    size_t frame;          /* where the last one begins in |piece| */
    bool has_frame;
    uint8_t claimed;  /* bytes that it lacks */
    uint32_t streams; /* requests that ~G and ~P have begun */
};

/* The length is known now. */
static void end_frame(struct run *run)
{
    if (run->has_frame && !buf_failed(&run->piece)) {
        size_t len = run->piece.len - run->frame - HEAD_BYTES + run->claimed;
        uint8_t *head = run->piece.ptr + run->frame;
        head[0] = (uint8_t)(len >> 16);
        head[1] = (uint8_t)(len >> 8);
        head[2] = (uint8_t)len;
    }
    run->has_frame = false;
    run->claimed = 0;
}

static void begin_frame(struct run *run, uint8_t kind, uint8_t flags, uint32_t stream)
{
    const uint8_t head[HEAD_BYTES] = {
        0, 0, 0, kind, flags, 0, 0, (uint8_t)(stream >> 8), (uint8_t)stream};
    end_frame(run);
    run->frame = run->piece.len;
    run->has_frame = true;
    buf_add(&run->piece, head, sizeof(head));
}

static void send_piece(struct run *run)
{
    end_frame(run);
    world_send(run->world, run->client, buf_span(&run->piece));
    buf_reset(&run->piece);
}

static void begin_client(struct run *run, struct client *client)
{
    run->client = client;
    run->streams = 0;
    buf_add(&run->piece, preface, sizeof(preface) - 1);
    begin_frame(run, 4, 0, 0);
}

static void add_request(struct run *run, const char *block, uint8_t flags)
{
    begin_frame(run, 1, flags, 2 * run->streams++ + 1);
    buf_add_str(&run->piece, block);
    end_frame(run);
}

static void add_body(struct run *run)
{
    begin_frame(run, 0, 1, run->streams ? 2 * run->streams - 1 : 1);
    buf_add_str(&run->piece, body);
    end_frame(run);
}

/* A ModelInferRequest for add, with its prefix. */
static void add_message(struct run *run)
{
    static const char shape[] = "\x1a\x02\x02\x03";
    static const uint8_t prefix[] = {0, 0, 0, 0, 99}, tensor[24] = {0};
    begin_frame(run, 0, 0, run->streams ? 2 * run->streams - 1 : 1);
    buf_add(&run->piece, prefix, sizeof(prefix));
    buf_add_str(&run->piece, "\x0a\x03"
                             "add");
    for (char i = '0'; i <= '1'; i++) {
        buf_add_str(&run->piece, "\x2a\x13\x0a\x07input_");
        buf_add_char(&run->piece, i);
        buf_add_str(&run->piece, "\x12\x04"
                                 "FP32");
        buf_add_str(&run->piece, shape);
    }
    for (int i = 0; i < 2; i++) {
        buf_add_str(&run->piece, "\x3a\x18");
        buf_add(&run->piece, tensor, sizeof(tensor));
    }
    end_frame(run);
}

static void next_client(struct run *run)
{
    size_t at = (size_t)(run->client - run->world->clients) + 1;
    run->client = &run->world->clients[at < run->world->client_count ? at : 1];
}

static void disturb(struct run *run, uint8_t command)
{
    struct client *other;
    send_piece(run);
    switch (command) {
    case 'p':
        world_settle(run->world);
        break;
    case 'q':
        world_turn(run->world);
        break;
    case 'c':
        other = world_connect(run->world);
        if (other) {
            begin_client(run, other);
        }
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

static void repeat(struct run *run, const uint8_t *at)
{
    char digits[3] = {(char)at[0], (char)at[1], '\0'};
    buf_add_fill(&run->piece, (char)at[2], strtoul(digits, NULL, 16));
}

/* Performs the command after '~'; returns how many bytes it used. */
static size_t perform(struct run *run, struct span rest)
{
    const uint8_t *at = rest.ptr;
    if (at[0] == 'f' && rest.len >= 4) {
        begin_frame(run, (uint8_t)(at[1] - '0'), (uint8_t)(at[2] - '0'), (uint8_t)(at[3] - '0'));
        return 4;
    }
    if (at[0] == '=' && rest.len >= 4) {
        repeat(run, at + 1);
        return 4;
    }
    if (at[0] == 'b' && rest.len >= 2) {
        run->claimed = at[1];
        return 2;
    }
    if (at[0] == 'G' || at[0] == 'P') {
        add_request(run, at[0] == 'G' ? get_v2 : post_add, at[0] == 'G' ? 5 : 4);
    } else if (at[0] == 'B') {
        add_body(run);
    } else if (at[0] == 'S') {
        add_request(run, post_stream, 4);
    } else if (at[0] == 'I') {
        add_message(run);
    } else if (at[0] == 'E') {
        begin_frame(run, 0, 1, run->streams ? 2 * run->streams - 1 : 1);
    } else if (memchr("pqcnxhstd", at[0], 9)) {
        disturb(run, at[0]);
    } else {
        buf_add_char(&run->piece, (char)at[0]);
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

/* The client that must not suffer sends all of its request but the last byte
 * before the others come: a quiet one would give its place up. */
static struct client *begin_witness(struct world *world)
{
    struct client *witness = world_connect(world);
    char head[128];
    int len = snprintf(head, sizeof(head),
                       "POST /v2/models/add/infer HTTP/1.1\r\nHost: "
                       "a\r\nContent-Length: %zu\r\n\r\n",
                       sizeof(body) - 1);
    world_send(world, witness, span_of(head, (size_t)len));
    world_send(world, witness, span_of(body, sizeof(body) - 2));
    world_settle(world);
    return witness;
}

static void expect_answer(struct world *world, struct client *witness)
{
    world_send(world, witness, span_of(body + sizeof(body) - 2, 1));
    world_settle(world);
    must(witness->received.len > 13 && memcmp(witness->received.ptr, "HTTP/1.1 200 ", 13) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run run = {.world = world_get()};
    struct client *witness = begin_witness(run.world);
    buf_init(&run.piece, PIECE_BYTES_MAX);
    begin_client(&run, world_connect(run.world));
    perform_all(&run, span_of(data, size));
    buf_fini(&run.piece);
    expect_answer(run.world, witness);
    world_end(run.world);
    return 0;
}
