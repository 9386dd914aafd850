/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/names.h"
#include "base/table.h"
#include "runtime/program/program.h"
#include "server/model/card/beside.h"
#include "server/process/exit_status.h"
#include "server/process/options.h"

int cli_finish(const struct cli_command *command, enum status status, const struct error *err)
{
    struct error unwritten;
    if (cli_flush(&unwritten) != ST_OK && status == ST_OK) {
        status = unwritten.code;
        err = &unwritten;
    }
    if (status != ST_OK) {
        fprintf(stderr, "pte: %s\n", err->text);
    }
    if (status == ST_INVALID) {
        fprintf(stderr, "usage: pte %s; see pte %s --help\n", command->usage, command->name);
    }
    return exit_status_of(status);
}

enum status cli_take_status(enum pted_status status, const struct pted_error *from,
                            struct error *err)
{
    static const enum status statuses[] = {
        [PTED_OK] = ST_OK,
        [PTED_INVALID] = ST_INVALID,
        [PTED_NOT_FOUND] = ST_NOT_FOUND,
        [PTED_TOO_LARGE] = ST_TOO_LARGE,
        [PTED_UNSUPPORTED] = ST_UNSUPPORTED,
        [PTED_EXHAUSTED] = ST_EXHAUSTED,
        [PTED_CANCELLED] = ST_CANCELLED,
        [PTED_CORRUPT] = ST_CORRUPT,
        [PTED_UNAVAILABLE] = ST_UNAVAILABLE,
        [PTED_SYSTEM_ERROR] = ST_SYSTEM,
        [PTED_INTERNAL] = ST_INTERNAL,
    };
    TABLE_ENDS_WITH(statuses, PTED_INTERNAL);
    return status == PTED_OK ? ST_OK : error_set(err, statuses[status], "%s", from->text);
}

const struct cli_command *const cli_commands[] = {
    &cli_inspect_command,
    &cli_run_command,
    &cli_compare_command,
    &cli_profile_command,
    &cli_devices_command,
    &cli_ops_command,
    &cli_sig_command,
    &cli_fetch_command,
    &cli_token_command,
    &cli_card_command,
    &cli_ls_command,
    &cli_load_command,
    &cli_unload_command,
    &cli_ping_command,
    &cli_top_command,
    &cli_bench_command,
    &cli_tokenize_command,
    &cli_chat_command,
    NULL,
};

enum status cli_take_only(const char **place, const char *what, const char *text, struct error *err)
{
    if (*place) {
        return error_set(err, ST_INVALID, "one %s only, got '%.64s' too", what, text);
    }
    *place = text;
    return ST_OK;
}

static const char *name_at(const void *program, uint32_t index)
{
    return rt_method_name(rt_program_method(program, index));
}

enum status cli_find_method(struct rt_program *program, const char *name,
                            struct rt_method **out_method, struct error *err)
{
    char names[NAMES_TEXT_MAX];
    *out_method =
        name ? rt_program_find_method(program, span_str(name)) : rt_program_default_method(program);
    if (*out_method) {
        return ST_OK;
    }
    return error_set(err, ST_NOT_FOUND, "no method '%.60s'%s; the methods are %s",
                     name ? name : "forward", name ? "" : ", expected --method NAME",
                     names_join(name_at, program, rt_program_method_count(program), names));
}

enum status cli_enter_folder(const char **path, char place[PATH_MAX], struct error *err)
{
    struct stat about;
    if (stat(*path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        return ST_OK;
    }
    TRY(beside_find_program(*path, place, PATH_MAX, err));
    *path = place;
    return ST_OK;
}

enum status cli_write_file(const char *option, const char *path, struct span head,
                           struct span bytes, struct error *err)
{
    FILE *file = fopen(path, "wb");
    bool is_ok = file && fwrite(head.ptr, 1, head.len, file) == head.len &&
                 (bytes.len == 0 || fwrite(bytes.ptr, 1, bytes.len, file) == bytes.len);
    struct stat st;
    int saved = errno;
    if (file && fclose(file) != 0) {
        saved = errno;
        is_ok = false;
    }
    if (file && !is_ok && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) { /* no /dev/stdout */
        unlink(path);
    }
    if (!file) {
        return error_set(err, ST_UNWRITTEN, "%s: %s: %s", option, path, strerror(saved));
    }
    return is_ok ? ST_OK
                 : error_set(err, ST_UNWRITTEN, "%s: %s, of %zu bytes: %s", option, path,
                             head.len + bytes.len, strerror(saved));
}

enum status cli_flush(struct error *err)
{
    bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    return is_written ? ST_OK
                      : error_set(err, ST_UNWRITTEN, "standard output: %s", strerror(errno));
}

enum status cli_write(const struct buf *out, struct error *err)
{
    if (buf_failed(out)) {
        return error_no_memory(err, "the text");
    }
    if (out->len && fwrite(out->ptr, 1, out->len, stdout) != out->len) {
        return error_set(err, ST_UNWRITTEN, "standard output: %s", strerror(errno));
    }
    return ST_OK;
}
