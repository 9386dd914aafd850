/* SPDX-License-Identifier: MIT */
/*
 * A document when memory runs out: the first allocation fails, then the second, and so on until it
 * is read; those of cJSON, too. Each time the error says so, and nothing leaks (LeakSanitizer finds
 * what does). The linker sends the allocating functions here, and cJSON's hooks lead here.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/check.h"
#include "server/process/document.h"
#include "tests/oom/failing.h"

#define ALLOCATIONS_MAX 1000

static enum status read_with(long allocations, const char *text, struct error *err)
{
    static const struct document_limits limits = {.bytes_max = 4096, .values_max = 64};
    struct document document;
    allocations_left = allocations;
    enum status status = document_parse(span_str(text), &limits, &document, err);
    allocations_left = -1;
    if (status == ST_OK) {
        document_close(&document);
    }
    return status;
}

int main(void)
{
    static const char text[] = "{\"a\": [1, \"two\", {\"b\": null}], // three\n"
                               " \"c\": {\"d\": \"\\u00e9\", \"e\": 1.5}, \"f\": true}";
    cJSON_Hooks hooks = {malloc, free};
    struct error err = {0};
    enum status status;
    long count = 0;
    cJSON_InitHooks(&hooks);
    for (; (status = read_with(count, text, &err)) != ST_OK; count++) {
        if (status != ST_EXHAUSTED || !strstr(err.text, "memory") || count == ALLOCATIONS_MAX) {
            fprintf(stderr, "allocation %ld fails: status %d, \"%s\"\n", count, (int)status,
                    err.text);
            return 1;
        }
    }
    printf("%ld allocations, each failed\n", count);
    must(count > 10);
    return 0;
}
