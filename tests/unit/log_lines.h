/* SPDX-License-Identifier: MIT */
/* What a test finds in a log that it wrote to a file. */
#ifndef PTED_TESTS_LOG_LINES_H
#define PTED_TESTS_LOG_LINES_H

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

/* How many lines of the file at |path| have |text|; of a line, the first 2 KiB. */
static inline unsigned log_lines(const char *path, const char *text)
{
    char line[2048];
    unsigned count = 0;
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        count += strstr(line, text) != NULL;
    }
    fclose(file);
    return count;
}

#endif
