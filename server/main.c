/* SPDX-License-Identifier: MIT */
/* pted and pte are one program: most of the code is in both. It is the one by whose name it is
 * called. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "commit.h"
#include "server/cli/main.h"
#include "server/daemon/main.h"
#include "server/process/standard.h"
#include "server/process/version.h"

/* Also by a name such as pte-0.1 or my-pte. */
static bool is_pte(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = strstr(slash ? slash + 1 : path, "pte");
    return name && name[strlen("pte")] != 'd';
}

int main(int argc, char *argv[])
{
    standard_open();
    version_set_commit(PTED_COMMIT);
    return argc > 0 && is_pte(argv[0]) ? cli_main(argc, argv) : daemon_main(argc, argv);
}
