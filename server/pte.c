/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/pte.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "server/exit_status.h"

int pte_finish(const struct pte_command *command, enum status status, const struct error *err)
{
    bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    int reason = errno;
    if (status != ST_OK) {
        fprintf(stderr, "pte: %s\n", err->text);
    } else if (!is_written) {
        fprintf(stderr, "pte: standard output: %s\n", strerror(reason));
    }
    if (status == ST_INVALID) {
        fprintf(stderr, "usage: pte %s; see pte %s --help\n", command->usage, command->name);
    }
    return status == ST_OK && !is_written ? EX_IOERR : exit_status_of(status);
}

enum status pte_write(const struct buf *out, struct error *err)
{
    if (buf_failed(out)) {
        return error_set(err, ST_EXHAUSTED, "no memory for the text");
    }
    if (out->len && fwrite(out->ptr, 1, out->len, stdout) != out->len) {
        return error_set(err, ST_UNWRITTEN, "standard output: %s", strerror(errno));
    }
    return ST_OK;
}
