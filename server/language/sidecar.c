/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/sidecar.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/language/words.h"
#include "server/process/document.h"

#define GENERATION_CONFIG "generation_config.json"
#define CONFIG_BYTES_MAX (1 << 20)
#define CONFIG_VALUES_MAX (1 << 14)

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The folder of |path|, or |path| itself if it is one. */
static bool take_folder(struct sidecars *sidecars, const char *path)
{
    const char *name = strrchr(path, '/');
    int len = is_folder(path) ? (int)strlen(path) : name ? (int)(name - path) : 0;
    const char *slash = is_folder(path) || name ? "/" : "";
    int written = snprintf(sidecars->folder, PATH_MAX, "%.*s%s", len, path, slash);
    return written >= 0 && written < PATH_MAX - NAME_MAX;
}

/* False: a path is too long. */
static bool take_paths(struct sidecars *sidecars, const char *program, const char *tokenizer)
{
    if (tokenizer || !program) {
        return !tokenizer || (strlen(tokenizer) < PATH_MAX && take_folder(sidecars, tokenizer));
    }
    if (strlen(program) >= PATH_MAX || !take_folder(sidecars, program)) {
        return false;
    }
    const char *name = strrchr(program, '/');
    name = name ? name + 1 : program;
    const char *end = strrchr(name, '.');
    int len = end && end != name ? (int)(end - name) : (int)strlen(name);
    snprintf(sidecars->stem, sizeof(sidecars->stem), "%.*s", len, name);
    return true;
}

/* |stem|, a point and |name| in the folder; false: it is too long. */
static bool join(const struct sidecars *sidecars, const char *stem, const char *name,
                 char out[PATH_MAX])
{
    const char *point = *stem ? "." : "";
    int len = snprintf(out, PATH_MAX, "%s%s%s%s", sidecars->folder, stem, point, name);
    return len >= 0 && len < PATH_MAX;
}

void sidecar_find(const struct sidecars *sidecars, const char *name, char out[PATH_MAX])
{
    bool is_own =
        *sidecars->stem && join(sidecars, sidecars->stem, name, out) && access(out, F_OK) == 0;
    if (!is_own && !join(sidecars, "", name, out)) {
        out[0] = '\0';
    }
}

/* Puts the path of the tokenizer into |sidecars|. False: it is too long. */
static bool find_tokenizer(struct sidecars *sidecars, const char *said)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
    char *out = sidecars->tokenizer;
    if (said) {
        return snprintf(out, PATH_MAX, "%s", said) < PATH_MAX;
    }
    for (int is_shared = *sidecars->stem ? 0 : 1; is_shared < 2; is_shared++) {
        for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
            const char *stem = is_shared ? "" : sidecars->stem;
            if (join(sidecars, stem, names[i], out) && access(out, F_OK) == 0) {
                return true;
            }
        }
    }
    out[0] = '\0';
    return true;
}

enum status sidecar_init(struct sidecars *sidecars, const char *program, const char *tokenizer,
                         struct error *err)
{
    *sidecars = (struct sidecars){.folder = ""};
    return take_paths(sidecars, program, tokenizer) && find_tokenizer(sidecars, tokenizer)
               ? ST_OK
               : error_set(err, ST_TOO_LARGE, "tokenizer: the path is too long");
}

const char *sidecar_tokenizer_name(const struct sidecars *sidecars)
{
    const char *slash = strrchr(sidecars->tokenizer, '/');
    return slash ? slash + 1 : sidecars->tokenizer;
}

/* Takes the tokenizer's folder off the beginning of the text in |err|. A missing file is called the
 * tokenizer. */
static enum status forget_folder(const struct sidecars *sidecars, struct error *err)
{
    const char *path = sidecars->tokenizer;
    size_t folder = (size_t)(sidecar_tokenizer_name(sidecars) - path);
    if (strncmp(err->text, path, folder) == 0) {
        memmove(err->text, err->text + folder, strlen(err->text + folder) + 1);
    }
    return err->code == ST_NOT_FOUND ? error_prefix(err, "tokenizer ") : err->code;
}

enum status sidecar_load_words(const struct sidecars *sidecars, struct words **out,
                               struct error *err)
{
    return words_load(sidecars->tokenizer, out, err) == ST_OK ? ST_OK
                                                              : forget_folder(sidecars, err);
}

enum status sidecar_read_generation_config(const struct sidecars *sidecars, sidecar_member_f *fn,
                                           void *user, struct error *err)
{
    const struct document_limits limits = {CONFIG_BYTES_MAX, CONFIG_VALUES_MAX};
    struct document document;
    char path[PATH_MAX];
    sidecar_find(sidecars, GENERATION_CONFIG, path);
    if (access(path, F_OK) != 0) {
        return ST_OK;
    }
    enum status status = document_open(path, &limits, &document, err);
    if (status == ST_OK) {
        const struct cJSON *member =
            document_type(document.root) == JSON_OBJECT ? document_first(document.root) : NULL;
        for (; status == ST_OK && member; member = document_next(member)) {
            status = fn(user, &document, member, err);
        }
        document_close(&document);
    }
    return status == ST_OK ? ST_OK : error_prefix(err, GENERATION_CONFIG ": ");
}
