/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/file_digest.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/digest.h"
#include "hal/buffer.h"
#include "hal/queue.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECE_COST_NS 100000

struct piece_digest {
    uint64_t words[2];
};

static void digest_bytes(struct span bytes, struct piece_digest *out)
{
    struct digest digest;
    digest_init(&digest);
    digest_add(&digest, bytes);
    digest_end(&digest, out->words);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Bindings: the digests of all pieces, the file. Grid: pieces. */
static void digest_piece(const struct hal_args *args, struct hal_tile tile)
{
    size_t begin = tile.x * PIECE_BYTES;
    digest_bytes(span_of((const uint8_t *)args->bindings[1] + begin,
                         min_size(args->lengths[1] - begin, PIECE_BYTES)),
                 (struct piece_digest *)args->bindings[0] + tile.x);
}

static const struct hal_kernel digest_pieces = {.name = "digest_pieces", .cpu = digest_piece};

static enum status run(struct hal_device *device, const struct hal_binding bindings[2],
                       uint32_t pieces, struct error *err)
{
    const struct hal_dispatch dispatch = {
        .kernel = &digest_pieces,
        .grid = {pieces, 1, 1},
        .bindings = bindings,
        .binding_count = 2,
        .writes = 1,
        .cost = (uint64_t)pieces * PIECE_COST_NS,
    };
    struct hal_submission submission = {.slot_count = 0};
    TRY(hal_command_new(device, 0, &submission.command, err));
    enum status status = hal_command_dispatch(submission.command, &dispatch, err);
    if (status == ST_OK) {
        status = hal_command_end(submission.command, err);
    }
    if (status == ST_OK) {
        status = hal_queue_run(device, &submission, err);
    }
    hal_command_unref(submission.command);
    return status;
}

enum status rt_file_digest(struct hal_device *device, struct hal_buffer *file, uint64_t out[2],
                           struct error *err)
{
    size_t bytes = hal_buffer_size(file), pieces = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    struct hal_binding bindings[2] = {{.buffer = NULL}, hal_binding_whole(file)};
    struct digest digest;
    if (pieces > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "the file is too large for a digest");
    }
    TRY(hal_buffer_new(device, pieces * sizeof(struct piece_digest), &bindings[0].buffer, err));
    bindings[0] = hal_binding_whole(bindings[0].buffer);
    enum status status = run(device, bindings, (uint32_t)pieces, err);
    if (status == ST_OK) {
        digest_init(&digest);
        digest_add(&digest, span_of(hal_buffer_map(bindings[0].buffer), bindings[0].length));
        digest_end(&digest, out);
    }
    hal_buffer_unref(bindings[0].buffer);
    return status;
}

static bool read_piece(int fd, uint8_t *to, size_t bytes, size_t at)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, to + done, bytes - done, (off_t)(at + done));
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

bool rt_file_digest_read(int fd, size_t bytes, const atomic_bool *stops, uint64_t out[2])
{
    struct digest all;
    struct piece_digest piece;
    uint8_t *memory = malloc(PIECE_BYTES);
    bool is_read = memory != NULL;
    digest_init(&all);
    for (size_t at = 0; is_read && at < bytes; at += PIECE_BYTES) {
        size_t len = min_size(bytes - at, PIECE_BYTES);
        is_read =
            !atomic_load_explicit(stops, memory_order_relaxed) && read_piece(fd, memory, len, at);
        if (is_read) {
            digest_bytes(span_of(memory, len), &piece);
            digest_add(&all, span_of(&piece, sizeof(piece)));
        }
    }
    free(memory);
    digest_end(&all, out);
    return is_read;
}
