/* SPDX-License-Identifier: MIT */
/*
 * A card when memory runs out: the first allocation fails, then the second, and so on until it is
 * read, given to a program, and its first calls are made. Each time the error says so, and nothing
 * leaks (LeakSanitizer finds what does). The linker sends the allocating functions here, and
 * cJSON's hooks lead here.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/check.h"
#include "hal/device.h"
#include "runtime/load/load.h"
#include "server/model/card/card.h"
#include "tests/oom/failing.h"

#define ALLOCATIONS_MAX 1000
#define PATH_BYTES 4096

static const char text[] =
    "{\"description\": \"d\", \"inputs\": [{\"name\": \"image\", \"description\": \"i\"}],"
    " \"outputs\": {\"output_0\": {\"name\": \"scores\", \"labels\":"
    " [\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]}}, \"max_batch\": 4,"
    " \"warm_up\": [{\"shapes\": {\"image\": [1, 1, 8, 8]}}]}";

static enum status use(const char *path, struct rt_program *program, struct error *err)
{
    struct card *card = card_new();
    if (!card) {
        return error_set(err, ST_EXHAUSTED, "no memory for the card");
    }
    enum status status = card_read_file(card, path, err);
    if (status == ST_OK) {
        status = card_apply(card, program, err);
    }
    if (status == ST_OK) {
        card_settle(card);
    }
    card_free(card);
    return status;
}

/* Each time with a program that has its own names. */
static enum status use_with(long allocations, struct hal_device *device, const char *path,
                            struct error *err)
{
    char model[PATH_BYTES];
    const char *top = getenv("top_srcdir");
    const struct rt_load_options options = {.device = device, .precision = PRECISION_FAST};
    struct rt_program *program;
    snprintf(model, sizeof(model), "%s/tests/models/digits.pte", top ? top : ".");
    enum status status = rt_load_program(model, &options, &program, err);
    must(status == ST_OK);
    allocations_left = allocations;
    status = use(path, program, err);
    allocations_left = -1;
    rt_program_unref(program);
    return status;
}

int main(void)
{
    cJSON_Hooks hooks = {malloc, free};
    char path[] = "/tmp/test_card_oom_XXXXXX";
    struct hal_device *device;
    struct error err = {0};
    enum status status;
    long count = 0;
    int fd = mkstemp(path);
    must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    status = hal_device_open("cpu", &(struct hal_device_options){.workers = 1}, &device, &err);
    must(status == ST_OK);
    cJSON_InitHooks(&hooks);
    for (; (status = use_with(count, device, path, &err)) != ST_OK; count++) {
        if (status != ST_EXHAUSTED || !strstr(err.text, "memory") || count == ALLOCATIONS_MAX) {
            fprintf(stderr, "allocation %ld fails: status %d, \"%s\"\n", count, (int)status,
                    err.text);
            break;
        }
    }
    hal_device_unref(device);
    unlink(path);
    printf("%ld allocations, each failed\n", count);
    return status == ST_OK && count > 10 ? 0 : 1;
}
