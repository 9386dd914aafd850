/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/sidecar.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

bool sidecar_init(struct sidecars *sidecars, const char *program, const char *tokenizer)
{
    *sidecars = (struct sidecars){.folder = ""};
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

bool sidecar_find_tokenizer(const struct sidecars *sidecars, const char *said, char out[PATH_MAX])
{
    static const char *const names[] = {"tokenizer.json", "tokenizer.model"};
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
    return false;
}

enum status sidecar_forget_folder(const char *path, struct error *err)
{
    const char *name = strrchr(path, '/');
    size_t folder = name ? (size_t)(name + 1 - path) : 0;
    if (strncmp(err->text, path, folder) == 0) {
        memmove(err->text, err->text + folder, strlen(err->text + folder) + 1);
    }
    return err->code == ST_NOT_FOUND ? error_prefix(err, "tokenizer ") : err->code;
}
