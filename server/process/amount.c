/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/amount.h"

#include <inttypes.h>
#include <stdio.h>

const char *amount_bytes(uint64_t bytes, char text[AMOUNT_TEXT_MAX])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(text, AMOUNT_TEXT_MAX, unit == 0 || value >= 99.95 ? "%.0f %s" : "%.1f %s", value,
             units[unit]);
    return text;
}

const char *amount_count(uint64_t count, char text[AMOUNT_TEXT_MAX])
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof(digits), "%" PRIu64, count), at = 0;
    for (size_t i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            text[at++] = ',';
        }
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}
