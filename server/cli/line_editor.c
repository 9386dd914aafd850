/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/line_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include "base/check.h"
#include "base/utf8.h"
#include "server/process/library.h"

#define HISTORY_LINES 1000
#define HISTORY_LINE_BYTES_MAX 65536 /* longer lines are not kept */
#define ESCAPE 0x1b
#define QUOTE L'\x16' /* Ctrl-V: the next character is text */
#define PASTE_ON "\x1b[?2004h"
#define PASTE_OFF "\x1b[?2004l"
#define PASTE_MARK_BYTES 5 /* "[200~" */
#define PASTE_WAIT_MS 50   /* for the rest of a mark */

/* The part of histedit.h of libedit 3.1 that is used. Its numbers and types are the library's
 * interface. */
struct editline;
struct history;

struct history_event {
    int number;
    const char *text;
};

enum {
    EDIT_PROMPT = 0,
    EDIT_EDITOR = 2,
    EDIT_BIND = 4,
    EDIT_HISTORY = 10,
    EDIT_READER = 13,
    EDIT_USER = 14,
    EDIT_PREPARE = 16,
    HISTORY_SET_SIZE = 1,
    HISTORY_ENTER = 10,
    HISTORY_LOAD = 17,
    HISTORY_SAVE = 18,
    HISTORY_SET_UNIQUE = 20,
};

static struct {
    struct editline *(*el_init)(const char *program, FILE *in, FILE *out, FILE *err);
    void (*el_end)(struct editline *edit);
    const char *(*el_gets)(struct editline *edit, int *out_len);
    int (*el_set)(struct editline *edit, int what, ...);
    int (*el_get)(struct editline *edit, int what, ...);
    void (*el_resize)(struct editline *edit);
    struct history *(*history_init)(void);
    void (*history_end)(struct history *history);
    int (*history)(struct history *history, struct history_event *event, int what, ...);
} libedit;

static const struct library_symbol symbols[] = {
#define SYMBOL(member) LIBRARY_OPENED(member, __typeof__(libedit), member)
    SYMBOL(el_init),   SYMBOL(el_end),       SYMBOL(el_gets),     SYMBOL(el_set),  SYMBOL(el_get),
    SYMBOL(el_resize), SYMBOL(history_init), SYMBOL(history_end), SYMBOL(history),
#undef SYMBOL
};

/* The same library: Debian gives it a number of its own. */
static struct library in_debian = {
    LIBRARY_INIT("libedit.so.2", "libedit2", symbols, &libedit, ST_UNAVAILABLE),
};
static struct library elsewhere = {
    LIBRARY_INIT("libedit.so.0", "libedit2", symbols, &libedit, ST_UNAVAILABLE),
};

/* The reason is that of Debian's name. */
static enum status load_libedit(struct error *err)
{
    struct error of_second;
    return library_load(&elsewhere, &of_second) == ST_OK ? ST_OK : library_load(&in_debian, err);
}

struct line_editor {
    struct editline *edit;   /* owned */
    struct history *history; /* owned */
    const char *prompt;      /* borrowed */
    char path[PATH_MAX];     /* of the history; empty: there is no file */
    const sigset_t *mask;    /* borrowed, while a line is read */
    uint8_t bytes[4096];     /* that were read and are no characters yet */
    size_t at, len;
    wchar_t quoted; /* comes next, behind a QUOTE; 0: none does */
    bool is_pasting;
    bool is_interrupted, is_over;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Reads what is there. Other programs may share the terminal's descriptor, so it is changed for no
 * longer than that takes. */
static ssize_t read_now(void *to, size_t bytes)
{
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    bool is_changed = flags >= 0 && !(flags & O_NONBLOCK) &&
                      fcntl(STDIN_FILENO, F_SETFL, flags | O_NONBLOCK) == 0;
    ssize_t len = read(STDIN_FILENO, to, bytes);
    int code = errno;
    if (is_changed) {
        (void)fcntl(STDIN_FILENO, F_SETFL, flags);
    }
    errno = code;
    return len;
}

ssize_t line_read_bytes(void *to, size_t bytes, const sigset_t *mask)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t len;
    do {
        len = ppoll(&input, 1, NULL, mask);
        if (len >= 0) {
            len = read_now(to, bytes);
        }
    } while (len < 0 && errno == EAGAIN);
    return len;
}

/* At least one byte more; false: an interrupt or the end. */
static bool read_more(struct line_editor *editor)
{
    memmove(editor->bytes, editor->bytes + editor->at, editor->len - editor->at);
    editor->len -= editor->at;
    editor->at = 0;
    ssize_t len = line_read_bytes(editor->bytes + editor->len, sizeof(editor->bytes) - editor->len,
                                  editor->mask);
    editor->is_interrupted = len < 0 && errno == EINTR;
    editor->is_over = len == 0 || (len < 0 && errno != EINTR);
    editor->len += len > 0 ? (size_t)len : 0;
    return len > 0;
}

static bool has_more_soon(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, PASTE_WAIT_MS) > 0;
}

/* Takes the mark of a paste behind ESC. A terminal writes it at once, so it is not waited for long:
 * the user may have typed ESC. */
static bool take_mark(struct line_editor *editor, const char *mark)
{
    while (true) {
        size_t left = editor->len - editor->at;
        size_t known = left < PASTE_MARK_BYTES ? left : PASTE_MARK_BYTES;
        if (memcmp(editor->bytes + editor->at, mark, known) != 0) {
            return false;
        }
        if (known == PASTE_MARK_BYTES) {
            editor->at += PASTE_MARK_BYTES;
            return true;
        }
        if (!has_more_soon() || !read_more(editor)) {
            return false;
        }
    }
}

/* ---- characters ------------------------------------------------------------------------------ */

static wchar_t take_character(struct line_editor *editor)
{
    const uint8_t *p = editor->bytes + editor->at;
    size_t wanted = *p < 0xc2 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 1;
    while (editor->len - editor->at < wanted && read_more(editor)) {
    }
    p = editor->bytes + editor->at;
    size_t len = *p < 0x80 ? 1 : utf8_sequence(p, editor->bytes + editor->len);
    editor->at += len ? len : 1;
    return len == 0 ? L'\xfffd' : (wchar_t)(len == 1 ? *p : utf8_code(p, len));
}

/* Text for the line; 0: the character stands for none. */
static wchar_t take_pasted(struct line_editor *editor)
{
    wchar_t code = take_character(editor);
    if (code == ESCAPE && take_mark(editor, "[201~")) {
        editor->is_pasting = false;
        return 0;
    }
    code = code == L'\r' ? L'\n' : code;
    return code == L'\n' || code == L'\t' || (code >= L' ' && code != 0x7f) ? code : 0;
}

/* The library asks for a character. 1: there is one; 0 or less: there is none. */
static int read_character(struct editline *edit, wchar_t *out)
{
    struct line_editor *editor = NULL;
    must(libedit.el_get(edit, EDIT_USER, &editor) == 0 && editor);
    if (editor->quoted) {
        *out = editor->quoted;
        editor->quoted = 0;
        return 1;
    }
    while (true) {
        if (editor->at == editor->len && !read_more(editor)) {
            return editor->is_interrupted ? -1 : 0;
        }
        if (!editor->is_pasting) {
            *out = take_character(editor);
            if (*out != ESCAPE || !take_mark(editor, "[200~")) {
                return 1;
            }
            editor->is_pasting = true;
            continue;
        }
        wchar_t code = take_pasted(editor);
        if (code == L'\n' || code == L'\t') {
            editor->quoted = code;
            code = QUOTE;
        }
        if (code) {
            *out = code;
            return 1;
        }
    }
}

/* ---- the history ----------------------------------------------------------------------------- */

/* Makes the folders of |path|, which belong to the user alone. */
static bool make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        bool is_there = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!is_there) {
            return false;
        }
    }
    return true;
}

static void find_history(struct line_editor *editor)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    bool is_given = state && *state == '/'; /* a relative path is invalid by the specification */
    int len = is_given ? snprintf(editor->path, sizeof(editor->path), "%s/pte/history", state)
              : home && *home == '/' ? snprintf(editor->path, sizeof(editor->path),
                                                "%s/.local/state/pte/history", home)
                                     : -1;
    if (len < 0 || (size_t)len >= sizeof(editor->path) || !make_folders(editor->path)) {
        editor->path[0] = '\0';
    }
}

/* A chat that runs beside this one may have written meanwhile: the last one to write wins. */
static void save_history(struct line_editor *editor)
{
    struct history_event event;
    char path[PATH_MAX + 32];
    if (!editor->path[0]) {
        return;
    }
    snprintf(path, sizeof(path), "%s.%ld.new", editor->path, (long)getpid());
    if (libedit.history(editor->history, &event, HISTORY_SAVE, path) < 0 ||
        rename(path, editor->path) != 0) {
        unlink(path);
    }
}

static void remember(struct line_editor *editor, const char *line)
{
    struct history_event event;
    if (line[0] && strlen(line) <= HISTORY_LINE_BYTES_MAX) {
        libedit.history(editor->history, &event, HISTORY_ENTER, line);
        save_history(editor);
    }
}

static bool open_history(struct line_editor *editor)
{
    struct history_event event;
    editor->history = libedit.history_init();
    if (!editor->history) {
        return false;
    }
    libedit.history(editor->history, &event, HISTORY_SET_SIZE, HISTORY_LINES);
    libedit.history(editor->history, &event, HISTORY_SET_UNIQUE, 1);
    find_history(editor);
    if (editor->path[0]) {
        libedit.history(editor->history, &event, HISTORY_LOAD, editor->path);
    }
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static char *print_prompt(struct editline *edit)
{
    static char text[64];
    struct line_editor *editor = NULL;
    must(libedit.el_get(edit, EDIT_USER, &editor) == 0 && editor);
    snprintf(text, sizeof(text), "%s", editor->prompt);
    return text;
}

/* libedit wants the locale's characters, and a chat has UTF-8. */
static void use_utf8(void)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX < 4) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

/* Keys that libedit does not have, or has otherwise than shells. */
static void bind_keys(struct editline *edit)
{
    static const char *const keys[][2] = {
        {"^W", "ed-delete-prev-word"},     {"^R", "em-inc-search-prev"},
        {"\\e[1~", "ed-move-to-beg"},      {"\\e[H", "ed-move-to-beg"},
        {"\\e[4~", "ed-move-to-end"},      {"\\e[F", "ed-move-to-end"},
        {"\\e[3~", "ed-delete-next-char"}, {"\\e[1;5D", "ed-prev-word"},
        {"\\e[1;5C", "em-next-word"},
    };
    libedit.el_set(edit, EDIT_EDITOR, "emacs");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        libedit.el_set(edit, EDIT_BIND, keys[i][0], keys[i][1], NULL);
    }
}

static bool open_edit(struct line_editor *editor)
{
    editor->edit = libedit.el_init("pte", stdin, stderr, stderr);
    if (!editor->edit) {
        return false;
    }
    libedit.el_set(editor->edit, EDIT_USER, editor);
    libedit.el_set(editor->edit, EDIT_PROMPT, print_prompt);
    libedit.el_set(editor->edit, EDIT_READER, read_character);
    libedit.el_set(editor->edit, EDIT_HISTORY, libedit.history, editor->history);
    bind_keys(editor->edit);
    return true;
}

enum status line_editor_new(const char *prompt, struct line_editor **out, struct error *err)
{
    const char *terminal = getenv("TERM");
    *out = NULL;
    if (!terminal || !*terminal || strcmp(terminal, "dumb") == 0) {
        return error_set(err, ST_UNAVAILABLE, "the terminal cannot move its cursor");
    }
    TRY(load_libedit(err));
    struct line_editor *editor = calloc(1, sizeof(*editor));
    if (!editor) {
        return error_no_memory(err, "a line");
    }
    editor->prompt = prompt;
    use_utf8();
    if (!open_history(editor) || !open_edit(editor)) {
        line_editor_free(editor);
        return error_no_memory(err, "a line");
    }
    *out = editor;
    return ST_OK;
}

void line_editor_free(struct line_editor *editor)
{
    if (editor) {
        if (editor->edit) {
            libedit.el_end(editor->edit);
        }
        if (editor->history) {
            libedit.history_end(editor->history);
        }
        free(editor);
    }
}

enum line_end line_editor_read(struct line_editor *editor, const sigset_t *mask, struct buf *out)
{
    int len = 0;
    buf_reset(out);
    editor->mask = mask;
    editor->is_interrupted = editor->is_over = editor->is_pasting = false;
    editor->quoted = 0;
    fputs(PASTE_ON, stderr);
    libedit.el_resize(editor->edit);
    /* By itself libedit does that behind the prompt. A Ctrl-D in between would be lost. */
    libedit.el_set(editor->edit, EDIT_PREPARE, 1);
    const char *line = libedit.el_gets(editor->edit, &len);
    fputs(PASTE_OFF, stderr);
    fflush(stderr);
    editor->mask = NULL;
    if (!line || len <= 0 || editor->is_interrupted) {
        return editor->is_interrupted ? LINE_INTERRUPTED : LINE_OVER;
    }
    buf_add(out, line, (size_t)len - (line[len - 1] == '\n'));
    buf_add_char(out, '\0');
    if (buf_failed(out)) {
        return LINE_FAILED;
    }
    remember(editor, (const char *)out->ptr);
    out->len--;
    return LINE_WHOLE;
}
