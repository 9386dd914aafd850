/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as pted.json. Either there are settings, all within their limits, or there are
 * problems, each in a line that begins with the name of the file; never both.
 */
#include "config.h"

#include <string.h>
#include <sysexits.h>

#include "base/check.h"
#include "server/daemon/conf/conf.h"
#include "server/process/model_name.h"
#include "server/process/setting.h"

#define PATH "folder/pted.json"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_options(const struct options *options)
{
    must(options->model_count <= OPTIONS_MODELS_MAX && options->data_count <= OPTIONS_DATA_MAX);
    must(options->setting_count <= OPTIONS_SETTINGS_MAX && options->workers <= 1024);
    for (uint32_t i = 0; i < setting_count; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&options->params + settings[i].offset, sizeof(value));
        must(settings[i].set || (value >= settings[i].min && value <= settings[i].max));
    }
    for (uint32_t i = 0; i < options->model_count; i++) {
        must(model_name_is_valid(options_model_name(&options->models[i])));
        must(options->models[i].path[0] != '\0');
    }
    for (uint32_t i = 0; i < options->setting_count; i++) {
        must(strncmp(options->settings[i].label, PATH ":", strlen(PATH) + 1) == 0);
    }
}

/* Keys in a message show control characters as escapes, so a problem is one line. */
static void check_report(const struct conf_report *report)
{
    const uint8_t *at = report->lines.ptr, *end = at + report->lines.len;
    uint32_t count = 0;
    for (; at < end; count++) {
        const uint8_t *line_end = memchr(at, '\n', (size_t)(end - at));
        must(line_end && (size_t)(line_end - at) > strlen(PATH));
        must(memcmp(at, PATH ":", strlen(PATH) + 1) == 0);
        at = line_end + 1;
    }
    must(count == report->problem_count + (report->problem_count >= CONF_PROBLEMS_MAX));
    must(count == 0 || report->exit_status == EX_CONFIG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct conf_report report;
    conf_report_init(&report);
    struct conf *conf = conf_parse(PATH, span_of(data, size), &report);
    must((conf == NULL) == (report.problem_count > 0));
    check_report(&report);
    if (conf) {
        check_options(&conf->options);
    }
    conf_free(conf);
    conf_report_fini(&report);
    return 0;
}
