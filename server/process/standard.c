/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/standard.h"

#include <fcntl.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

void standard_open(void)
{
    static const int flags[] = {
        [STDIN_FILENO] = O_WRONLY,
        [STDOUT_FILENO] = O_RDONLY,
        [STDERR_FILENO] = O_RDONLY,
    };
    signal(SIGXFSZ, SIG_IGN);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd) {
            _exit(EX_OSERR); /* there is nobody to tell */
        }
    }
}
