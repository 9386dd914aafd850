/* SPDX-License-Identifier: MIT */
/*
 * Settings when memory runs out: the first allocation fails, then the second, and so on until they
 * are read. A failure is reported, or has no effect, and nothing leaks (LeakSanitizer finds what
 * does). The linker sends the allocating functions here, and cJSON's hooks lead here.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/check.h"
#include "server/daemon/conf/conf.h"
#include "tests/oom/failing.h"

#define ALLOCATIONS_MAX 1000

/* Are the settings complete? */
static bool is_whole(const struct conf *conf)
{
    const struct options *options = &conf->options;
    return options->params.weight == 7 && options->model_count == 3 && options->data_count == 1 &&
           options->setting_count == 1 && options->listen.count == 2 && options->document_pipelines;
}

static bool read_with(long allocations, bool *out_is_sound)
{
    static const char text[] =
        "{\"models\": {\"a\": \"a.pte\", \"b\": {\"path\": \"b\", \"data\": [\"c\"],\n"
        " \"max_batch\": 4}}, \"weight\": 7, \"pipelines\": {\"p\": {\"steps\": [\n"
        " {\"model\": \"a\", \"inputs\": [null]}]}}}";
    static char program[] = "pted", listen[] = "PTED_LISTEN=a:1,b:2", model[] = "PTED_MODEL=c=d";
    char *argv[] = {program, NULL}, *environment[] = {listen, model, NULL, NULL}, config[64];
    char path[] = "/tmp/test_conf_oom.XXXXXX";
    int fd = mkstemp(path);
    must(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1 && close(fd) == 0);
    snprintf(config, sizeof(config), "PTED_CONFIG=%s", path);
    environment[2] = config;
    const struct conf_sources sources = {.argc = 1, .argv = argv, .environment = environment};
    struct conf_report report;
    conf_report_init(&report);
    allocations_left = allocations;
    struct conf *conf = conf_read(&sources, &report);
    bool has_failed = allocations_left < 0;
    allocations_left = -1;
    *out_is_sound = conf ? is_whole(conf)
                         : has_failed && report.problem_count > 0 && report.exit_status == EX_OSERR;
    conf_free(conf);
    conf_report_fini(&report);
    unlink(path);
    return conf != NULL && !has_failed;
}

int main(void)
{
    cJSON_Hooks hooks = {malloc, free};
    long count = 0;
    bool is_sound;
    cJSON_InitHooks(&hooks);
    while (!read_with(count, &is_sound)) {
        if (!is_sound || count++ == ALLOCATIONS_MAX) {
            fprintf(stderr, "allocation %ld fails, and the settings are wrong\n", count);
            return 1;
        }
    }
    printf("%ld allocations, each failed\n", count);
    must(is_sound && count > 20);
    return 0;
}
