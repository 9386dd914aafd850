/* SPDX-License-Identifier: MIT */
/* The command line of pted. Limits and times come from params.def. Borrowed strings point into
 * argv, which lives longer than their use. */
#ifndef PTED_SERVER_PROCESS_OPTIONS_H
#define PTED_SERVER_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/precision.h"
#include "base/status.h"
#include "server/process/log.h"

#define OPTIONS_LISTEN_MAX 16
#define OPTIONS_MODELS_MAX 256
#define OPTIONS_FOLDERS_MAX 16
#define OPTIONS_DATA_MAX 256
#define OPTIONS_PIPELINES_MAX 64
#define OPTIONS_SETTINGS_MAX 256

struct params {
#define PARAM(name, ...) uint64_t name;
#include "server/process/params.def"
#undef PARAM
};

/* A file to serve, with the name given to it; NULL: the file's own name. */
struct option_model {
    const char *name; /* borrowed; |name_len| bytes, not terminated */
    uint32_t name_len;
    const char *path; /* borrowed from argv */
};

/* A parameter for one model. */
struct option_setting {
    const char *name; /* NAME, as above */
    uint32_t name_len;
    bool is_of_file; /* all methods of a file have the same: NAME is the file's */
    size_t offset;   /* in struct params */
    uint64_t value;
};

/* Requests that get a line in the log. */
enum options_log_requests { OPTIONS_LOG_ERRORS, OPTIONS_LOG_ALL };

/* Requests that get a line in the access log. SAMPLED: errors, and some of the others. */
enum options_access_log {
    OPTIONS_ACCESS_OFF,
    OPTIONS_ACCESS_ERRORS,
    OPTIONS_ACCESS_SAMPLED,
    OPTIONS_ACCESS_ALL,
};

enum options_action { OPTIONS_SERVE, OPTIONS_HELP, OPTIONS_VERSION };

struct options {
    enum options_action action;
    struct params params;
    const char *listen[OPTIONS_LISTEN_MAX];
    uint32_t listen_count;
    const char *admin_listen[OPTIONS_LISTEN_MAX]; /* where models can be changed */
    uint32_t admin_listen_count;
    struct option_model models[OPTIONS_MODELS_MAX];
    uint32_t model_count;
    struct option_model data[OPTIONS_DATA_MAX]; /* data files, by the names of models */
    uint32_t data_count;
    const char *pipelines[OPTIONS_PIPELINES_MAX]; /* files */
    uint32_t pipeline_count;
    struct option_setting settings[OPTIONS_SETTINGS_MAX]; /* the last one given counts */
    uint32_t setting_count;
    const char *folders[OPTIONS_FOLDERS_MAX]; /* folders whose models are served */
    uint32_t folder_count;
    bool watches;          /* the folders: what changes there is loaded and unloaded */
    const char *device;    /* NULL: the CPU */
    const char *cpu_level; /* NULL: the best there is */
    uint64_t workers;      /* 0: what the process may use */
    const char *log_file;  /* NULL: stderr */
    enum log_level log_level;
    enum options_log_requests log_requests;
    enum options_access_log access_log;
    const char *access_log_file; /* NULL: stderr */
};

/* ST_INVALID says which argument is wrong and why. */
MUST_CHECK enum status options_parse(int argc, char *const argv[], struct options *out_options,
                                     struct error *err);

/* Changes |params| according to |setting|. */
void options_apply(const struct option_setting *setting, struct params *params);

/* The text of --help. */
void options_print_help(struct buf *out);

/* "64M" and "65536" to bytes, "10s" and "500ms" to ms; shared with pte. */
enum option_unit { OPTION_BYTES, OPTION_MS, OPTION_COUNT, OPTION_PRECISION };
MUST_CHECK enum status options_parse_number(const char *text, enum option_unit unit, uint64_t min,
                                            uint64_t max, uint64_t *out_value, struct error *err);

/* A word of base/precision.h; shared with pte. */
MUST_CHECK enum status options_parse_precision(const char *text, enum precision *out_precision,
                                               struct error *err);

#endif
