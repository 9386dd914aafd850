/* SPDX-License-Identifier: MIT */
/*
 * The settings of pted: from its command line here, from a document and from the environment in
 * server/daemon/conf/conf.h. params.def has all settings. Strings are borrowed from their source,
 * which lives longer than their use.
 *
 * Sources come one after the other, the weakest first. A value of a later source takes the place of
 * an earlier one; so do its addresses, and its models and data files by the model's name. Folders,
 * files of pipelines and settings of models add up, and of settings the last one counts.
 */
#ifndef PTED_SERVER_PROCESS_OPTIONS_H
#define PTED_SERVER_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/precision.h"
#include "base/status.h"
#include "server/process/log.h"
#include "server/process/model_name.h"

struct cJSON;

#define OPTIONS_LISTEN "127.0.0.1:8000" /* where pted listens unless it is told where */
#define OPTIONS_TEXTS_MAX 64
#define OPTIONS_MODELS_MAX 256
#define OPTIONS_FOLDERS_MAX 16
#define OPTIONS_DATA_MAX 256
#define OPTIONS_LABELS_MAX 256
#define OPTIONS_CARDS_MAX 256
#define OPTIONS_VERSIONS_MAX 256
#define OPTIONS_PIPELINES_MAX 64
#define OPTIONS_SETTINGS_MAX 2048

struct params {
#define PARAM(name, ...) uint64_t name;
#include "server/process/params.def"
#undef PARAM
};

enum options_source {
    OPTIONS_FROM_TABLE, /* the defaults */
    OPTIONS_FROM_DOCUMENT,
    OPTIONS_FROM_VARIABLES,
    OPTIONS_FROM_ARGUMENTS,
    OPTIONS_SOURCE_COUNT,
};

/* A file to serve, with the name of its model. */
struct option_model {
    const char *name; /* borrowed; |name_len| bytes, not terminated */
    uint32_t name_len;
    const char *path;  /* borrowed */
    const char *label; /* borrowed: with |name| behind it, says in messages where it was said */
    enum options_source source;
};

/* Texts of a list, such as addresses. The list of a source takes the place of the lists of weaker
 * sources. */
struct option_texts {
    const char *items[OPTIONS_TEXTS_MAX];
    uint32_t count;
    enum options_source source; /* of all of them */
};

/* Members of a model in a document that a card can have, too (server/model/card/card.h). */
struct option_members {
    const char *name; /* borrowed; |name_len| bytes, not terminated */
    uint32_t name_len;
    const char *label;         /* as above */
    const struct cJSON *value; /* the object that they are in; borrowed */
};

/* A parameter for one model. */
struct option_setting {
    const char *name; /* NAME, as above */
    uint32_t name_len;
    const char *label; /* as above */
    bool is_of_file;   /* all methods of a file have the same: NAME is the file's */
    size_t offset;     /* in struct params */
    uint64_t value;
};

/* Requests that get a line in the log. */
enum options_log_requests { OPTIONS_LOG_ERRORS, OPTIONS_LOG_ALL };

/* Requests that get a line in the access log. SAMPLED: errors, and some of the others. */
enum options_shared_memory { OPTIONS_SHARED_OFF, OPTIONS_SHARED_UNIX, OPTIONS_SHARED_LOOPBACK };

enum options_access_log {
    OPTIONS_ACCESS_OFF,
    OPTIONS_ACCESS_ERRORS,
    OPTIONS_ACCESS_SAMPLED,
    OPTIONS_ACCESS_ALL,
};

/* How a proxy says whose request it passes on. */
enum options_proxy_says { OPTIONS_X_FORWARDED_FOR, OPTIONS_FORWARDED, OPTIONS_PROXY_PROTOCOL };

enum options_action { OPTIONS_SERVE, OPTIONS_CHECK, OPTIONS_HELP, OPTIONS_VERSION };

struct document;
struct setting;

struct options {
    enum options_action action;
    enum options_source source; /* of the values that are set now */
    const char *config_file;    /* the document to read, or NULL */
    struct params params;
    struct params said; /* by parameter: 1 if a source other than the table gave it */
    struct option_texts listen;
    struct option_texts admin_listen;  /* where models can be changed */
    struct option_texts health_listen; /* where only probes and metrics are answered */
    struct option_texts proxies;       /* whose word is believed, see server/http/proxies.h */
    enum options_proxy_says proxy_says;
    bool unix_is_one_client; /* else each connection of a socket in the file system is a client */
    struct option_texts cors_origins;
    const char *tls_cert, *tls_key, *tls_client_ca; /* PEM; NULL: see struct tls_files */
    bool tls_needs_1_3;
    const char *token_file; /* NULL: no request needs a token */
    struct option_model models[OPTIONS_MODELS_MAX];
    uint32_t model_count;
    char file_names[OPTIONS_MODELS_MAX][MODEL_NAME_MAX + 1]; /* of models without another name */
    uint32_t file_name_count;
    struct option_model data[OPTIONS_DATA_MAX]; /* data files, by the names of models */
    uint32_t data_count;
    struct option_model labels[OPTIONS_LABELS_MAX]; /* files, by the names of models */
    uint32_t labels_count;
    struct option_model cards[OPTIONS_CARDS_MAX]; /* likewise */
    uint32_t card_count;
    struct option_members members[OPTIONS_MODELS_MAX]; /* of |document| */
    uint32_t member_count;
    struct option_model tokenizers[OPTIONS_LABELS_MAX]; /* files or folders, likewise */
    uint32_t tokenizer_count;
    struct option_model versions[OPTIONS_VERSIONS_MAX]; /* "1,3" in place of a path */
    uint32_t versions_count;
    const char *pipelines[OPTIONS_PIPELINES_MAX]; /* files */
    uint32_t pipeline_count;
    const struct document *document;        /* borrowed; NULL: there is none */
    const struct cJSON *document_pipelines; /* the value in it; NULL: there are none */
    struct option_setting settings[OPTIONS_SETTINGS_MAX]; /* the last one given counts */
    uint32_t setting_count;
    const char *folders[OPTIONS_FOLDERS_MAX]; /* folders whose models are served */
    uint32_t folder_count;
    bool watches; /* the folders: files that change there are loaded and unloaded */
    const char *cache_dir, *hf_endpoint, *s3_endpoint; /* see server/process/fetch.h */
    const char *packed_dir;                            /* of packed weights; NULL: none */
    const char *device;                                /* NULL: the CPU */
    const char *cpu_level;                             /* NULL: the best there is */
    /* 0: all processors that the process may use */
    uint64_t workers;
    const char *log_file; /* NULL: stderr */
    enum log_level log_level;
    enum options_log_requests log_requests;
    enum options_access_log access_log;
    enum options_shared_memory shared_memory;
    bool has_no_console;
    const char *access_log_file; /* NULL: stderr */
    const char *otlp_endpoint;   /* NULL: spans go nowhere */
    const char *otlp_service;    /* NULL: "pted" */
};

/* Sets the defaults. */
void options_init(struct options *options);

/* Adds what the arguments say. ST_INVALID says which one is wrong and why. */
MUST_CHECK enum status options_add_arguments(struct options *options, int argc, char *const argv[],
                                             struct error *err);

/* Adds a model. ST_INVALID: there are too many. */
MUST_CHECK enum status options_add_model(struct options *options, struct option_model model,
                                         struct error *err);

/* Adds the model in a file, in a folder or at a URL, with the name that model_name_of_file() makes.
 * ST_INVALID: as above. */
MUST_CHECK enum status options_add_file(struct options *options, const char *path,
                                        struct error *err);

/* Adds |setting| of the model that |named| names. ST_INVALID as setting_set(), or there are too
 * many. */
MUST_CHECK enum status options_add_setting(struct options *options, struct option_setting named,
                                           const struct setting *setting, const char *value,
                                           struct error *err);

/* Returns the name that |model| is served by. */
struct span options_model_name(const struct option_model *model);

/* Returns the file with the labels of the model |name|; NULL: there is none. */
const struct option_model *options_find_labels(const struct options *options, struct span name);

/* Returns the file that is the card of the model |name|; NULL: the one beside the program, if there
 * is one. */
const char *options_find_card(const struct options *options, struct span name);

/* Members of a card that the document has for the model |name|: they are in this object. NULL:
 * none. ST_INVALID: there are too many. */
const struct cJSON *options_find_members(const struct options *options, struct span name);
MUST_CHECK enum status options_add_members(struct options *options, struct option_members members,
                                           struct error *err);

/* Returns the tokenizer said for the model |name|; NULL: none was. */
const char *options_find_tokenizer(const struct options *options, struct span name);

/* Returns the list of versions of the model |name|, for options_lists_version(); NULL: all of
 * them. */
const char *options_find_versions(const struct options *options, struct span name);

/* Is |version| in |list|? */
bool options_lists_version(const char *list, uint32_t version);

/* Takes the next version from |list|, which ends behind the last one; false: it has ended. */
bool options_next_version(const char **list, uint32_t *out_version);

/* Changes |params| according to |setting|. */
void options_apply(const struct option_setting *setting, struct params *params);

/* The kind of a value. The last three may be given several times. */
enum option_type {
    OPTION_BYTES,
    OPTION_MS,
    OPTION_COUNT,
    OPTION_PRECISION,
    OPTION_WORD,
    OPTION_SWITCH,
    OPTION_TEXT,
    OPTION_FILE, /* a path; in a document, relative to its folder */
    OPTION_TEXTS,
    OPTION_FILES,
    OPTION_MODELS, /* about one model, whose name is in the value */
};

/* "64M" and "65536" to bytes, "10s" and "500ms" to ms; shared with pte. */
MUST_CHECK enum status options_parse_number(const char *text, enum option_type type, uint64_t min,
                                            uint64_t max, uint64_t *out_value, struct error *err);

/* Parses the number of the word |text| among |words|, which have blanks between them; shared with
 * pte. */
MUST_CHECK enum status options_parse_word(const char *text, const char *words, unsigned *out_number,
                                          struct error *err);

/* Parses a word of base/precision.h; shared with pte. */
MUST_CHECK enum status options_parse_precision(const char *text, enum precision *out_precision,
                                               struct error *err);

#endif
