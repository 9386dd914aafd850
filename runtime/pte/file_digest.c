/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/file_digest.h"

#include "base/check.h"
#include "base/digest.h"
#include "hal/buffer.h"
#include "hal/queue.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECE_COST_NS 100000

struct piece_digest {
    uint64_t words[2];
};

/* Bindings: the digests of all pieces, the file. Grid: pieces. */
static void digest_piece(const struct hal_args *args, struct hal_tile tile)
{
    struct piece_digest *out = (struct piece_digest *)args->bindings[0] + tile.x;
    size_t begin = tile.x * PIECE_BYTES, left = args->lengths[1] - begin;
    struct digest digest;
    digest_init(&digest);
    digest_add(&digest, span_of((const uint8_t *)args->bindings[1] + begin,
                                left < PIECE_BYTES ? left : PIECE_BYTES));
    digest_end(&digest, out->words);
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
