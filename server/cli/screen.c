/* SPDX-License-Identifier: MIT */
/* The control sequences of ECMA-48 and xterm that every terminal has had for decades. There are six
 * of them, so no library is needed. */
#include "config.h"

#include "server/cli/screen.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define ENTER "\x1b[?1049h\x1b[?25l"
#define LEAVE "\x1b[?25h\x1b[?1049l"
#define HOME "\x1b[H"
#define CLEAR_LINE_END "\x1b[K"
#define CLEAR_BELOW "\x1b[J"
#define CTRL_C 3

static volatile sig_atomic_t is_over, is_stopped, has_changed;
static struct termios before; /* the terminal's settings */
static bool has_keys;         /* standard input is a terminal, and |before| is set */
static bool is_entered;

static void on_signal(int number)
{
    if (number == SIGWINCH) {
        has_changed = 1;
    } else if (number == SIGTSTP) {
        is_stopped = 1;
    } else {
        is_over = 1;
    }
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

/* Less than all of it: the terminal has gone, and SIGHUP says so. */
static void put(const char *text, size_t len)
{
    fwrite(text, 1, len, stdout);
    fflush(stdout);
}

bool screen_is_there(void)
{
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

void screen_enter(void)
{
    struct termios raw;
    catch_signals();
    has_keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;
    if (has_keys) {
        raw = before;
        raw.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        raw.c_cc[VMIN] = 0;
        raw.c_cc[VTIME] = 0;
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    }
    put(ENTER, strlen(ENTER));
    is_entered = true;
    has_changed = 1;
}

void screen_leave(void)
{
    if (!is_entered) {
        return;
    }
    is_entered = false;
    put(LEAVE, strlen(LEAVE));
    if (has_keys) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    }
}

static void read_keys(void)
{
    struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
    char bytes[64];
    if (!has_keys || poll(&keys, 1, 0) <= 0) {
        return;
    }
    ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
    for (ssize_t i = 0; i < count; i++) {
        if (bytes[i] == 'q' || bytes[i] == 'Q' || bytes[i] == CTRL_C) {
            is_over = 1;
        }
    }
    has_keys = count > 0; /* nothing behind POLLIN: the terminal has gone */
}

bool screen_is_over(void)
{
    if (is_stopped) {
        is_stopped = 0;
        screen_leave();
        raise(SIGSTOP);
        screen_enter();
    }
    read_keys();
    return is_over;
}

bool screen_has_changed(void)
{
    bool result = has_changed;
    has_changed = 0;
    return result;
}

void screen_size(uint32_t *out_columns, uint32_t *out_rows)
{
    struct winsize size;
    bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    *out_columns = is_known ? size.ws_col : 80;
    *out_rows = is_known ? size.ws_row : 24;
}

/* Overwrites in place, so that nothing flickers. A line is cleared before it is written: behind a
 * full line the cursor still stands on its last character. */
void screen_draw(const struct buf *text)
{
    struct buf out;
    uint32_t columns, rows;
    screen_size(&columns, &rows);
    buf_init(&out, text->max_bytes * 2 + 1024);
    buf_add_str(&out, HOME);
    for (size_t at = 0; at < text->len && rows > 0; rows--) {
        const uint8_t *end = memchr(text->ptr + at, '\n', text->len - at);
        size_t len = end ? (size_t)(end - text->ptr) - at : text->len - at;
        buf_add_str(&out, CLEAR_LINE_END);
        buf_add(&out, text->ptr + at, len);
        at += len + 1;
        buf_add_str(&out, at < text->len && rows > 1 ? "\r\n" : "");
    }
    buf_add_str(&out, rows > 0 ? "\r\n" CLEAR_BELOW : "");
    put((const char *)out.ptr, out.len);
    buf_fini(&out);
}
