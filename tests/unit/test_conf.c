/* SPDX-License-Identifier: MIT */
/* The configuration of pted: the document, the environment and the command line, which of them
 * counts, and the problems that are reported. */
#include "config.h"

#include "server/daemon/conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "server/daemon/conf/conf_print.h"
#include "server/process/setting.h"
#include "tests/unit/unit.h"

#define ITEMS_MAX 16
#define LINE_BYTES_MAX 1024

/* Texts of one reading, which lives as long as the configuration. */
struct reading {
    char path[64];
    char *argv[ITEMS_MAX + 1], *environment[ITEMS_MAX + 1];
    int argc;
    struct conf_report report;
    struct conf *conf;
};

static struct reading reading;

/* Separates |text| at the blanks. */
static int fill(char *items[], const char *text, int first)
{
    int count = first;
    static char room[2 * ITEMS_MAX][LINE_BYTES_MAX];
    for (const char *at = text; *at && count < ITEMS_MAX; count++) {
        size_t len = strcspn(at, " ");
        char *item = room[(first ? 0 : ITEMS_MAX) + count];
        snprintf(item, LINE_BYTES_MAX, "%.*s", (int)len, at);
        items[count] = item;
        at += len + (at[len] == ' ');
    }
    items[count] = NULL;
    return count;
}

static void place_path(char *items[])
{
    for (char **at = items; *at; at++) {
        char *sign = strchr(*at, '@');
        if (sign) {
            snprintf(sign, sizeof(reading.path), "%s", reading.path);
        }
    }
}

/* Ends the reading before this one. @ in arguments and environment is the path of |document|. */
static struct conf *read_all(const char *document, const char *environment, const char *arguments)
{
    static char program[] = "pted";
    conf_free(reading.conf);
    conf_report_fini(&reading.report);
    conf_report_init(&reading.report);
    FILE *file = fopen(reading.path, "w");
    assert_non_null(file);
    fputs(document, file);
    fclose(file);
    reading.argv[0] = program;
    reading.argc = fill(reading.argv, arguments, 1);
    fill(reading.environment, environment, 0);
    place_path(reading.argv);
    place_path(reading.environment);
    const struct conf_sources sources = {
        .argc = reading.argc, .argv = reading.argv, .environment = reading.environment};
    reading.conf = conf_read(&sources, &reading.report);
    assert_true((reading.conf == NULL) == (reading.report.problem_count > 0));
    return reading.conf;
}

static const char *lines(void)
{
    buf_add_char(&reading.report.lines, '\0');
    reading.report.lines.len--;
    return (const char *)reading.report.lines.ptr;
}

static const struct options *options_of(const char *document, const char *environment,
                                        const char *arguments)
{
    struct conf *conf = read_all(document, environment, arguments);
    if (!conf) {
        fail_msg("%s", lines());
    }
    return &conf->options;
}

/* ---- precedence ------------------------------------------------------------------------------ */

static void later_sources_count(void **state)
{
    static const char document[] = "{\"weight\": 2, \"max_batch\": 3, \"body_bytes_max\": \"1M\"}";
    (void)state;
    const struct options *options = options_of("{}", "", "--config @");
    assert_int_equal(options->params.weight, 1);
    options = options_of(document, "", "--config @");
    assert_int_equal(options->params.weight, 2);
    assert_int_equal(options->params.body_bytes_max, 1 << 20);
    options = options_of(document, "PTED_WEIGHT=4 PTED_CONFIG=@", "");
    assert_int_equal(options->params.weight, 4);
    assert_int_equal(options->params.max_batch, 3);
    options = options_of(document, "PTED_WEIGHT=4 PTED_MAX_BATCH=5", "--weight 6 --config=@");
    assert_int_equal(options->params.weight, 6);
    assert_int_equal(options->params.max_batch, 5);
    assert_string_equal(options->config_file, reading.path);
    options = options_of(document, "PTED_CONFIG=/nowhere PTED_WEIGHT=", "--config @");
    assert_int_equal(options->params.weight, 2); /* an empty variable is none */
}

/* Each number in the table is an option, a variable and a member, with the same value. */
static void every_number_has_three_forms(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
        char name[SETTING_VARIABLE_MAX], document[256], variable[256], option[256];
        struct buf text;
        if (setting->set) {
            continue;
        }
        setting_variable(setting, name);
        buf_init(&text, sizeof(document));
        setting_print_option(setting, &text);
        buf_add_char(&text, '=');
        setting_print_number(setting, setting->max, &text);
        buf_add_char(&text, '\0');
        const char *value = strchr((char *)text.ptr, '=') + 1;
        const char *quote = setting->type == OPTION_COUNT ? "" : "\"";
        snprintf(document, sizeof(document), "{\"%s\": %s%s%s}", setting->member, quote, value,
                 quote);
        snprintf(variable, sizeof(variable), "%s=%s", name, value);
        snprintf(option, sizeof(option), "--%s", (char *)text.ptr);
        buf_fini(&text);
        const char *const forms[][3] = {
            {document, "", "--config @"}, {"{}", variable, ""}, {"{}", "", option}};
        for (size_t form = 0; form < 3; form++) {
            const struct options *options =
                options_of(forms[form][0], forms[form][1], forms[form][2]);
            uint64_t got;
            memcpy(&got, (const char *)&options->params + setting->offset, sizeof(got));
            assert_int_equal(got, setting->max);
        }
    }
}

static void other_values(void **state)
{
    static const char document[] =
        "{\"$schema\": \"x\", // for editors\n"
        " \"device\": \"vulkan\", \"workers\": 3, \"cpu\": \"avx2\", \"log_level\": \"debug\",\n"
        " \"shared_memory\": \"unix\",\n"
        " \"log_requests\": \"all\", \"log_file\": \"/x/log\", \"watch\": true /**/}";
    (void)state;
    const struct options *options = options_of(document, "", "--config @");
    assert_string_equal(options->device, "vulkan");
    assert_int_equal(options->workers, 3);
    assert_string_equal(options->cpu_level, "avx2");
    assert_int_equal(options->log_level, LOG_DEBUG);
    assert_int_equal(options->shared_memory, OPTIONS_SHARED_UNIX);
    assert_int_equal(options->log_requests, OPTIONS_LOG_ALL);
    assert_string_equal(options->log_file, "/x/log");
    assert_true(options->watches);
    options =
        options_of(document, "PTED_WATCH=false PTED_DEVICE=cpu", "--config @ --log-level=info");
    assert_false(options->watches);
    assert_string_equal(options->device, "cpu");
    assert_int_equal(options->log_level, LOG_INFO);
    assert_true(options_of(document, "PTED_WATCH=false", "--watch")->watches);
    assert_false(options_of(document, "", "--config @ --watch=false")->watches);
}

static void addresses_replace_each_other(void **state)
{
    static const char document[] = "{\"listeners\": [\"a:1\", \"b:2\"], \"admin_listeners\": "
                                   "[\"c:3\"]}";
    (void)state;
    const struct options *options = options_of(document, "", "--config @");
    assert_int_equal(options->listen.count, 2);
    assert_string_equal(options->listen.items[1], "b:2");
    assert_string_equal(options->admin_listen.items[0], "c:3");
    options = options_of(document, "PTED_LISTEN=d:4,e:5,f:6", "--config @");
    assert_int_equal(options->listen.count, 3);
    assert_string_equal(options->listen.items[2], "f:6");
    options = options_of(document, "PTED_LISTEN=d:4", "--config @ --listen g:7 --listen h:8");
    assert_int_equal(options->listen.count, 2);
    assert_string_equal(options->listen.items[0], "g:7");
    assert_int_equal(options->admin_listen.count, 1);
}

static void proxies_have_addresses(void **state)
{
    static const char document[] = "{\"proxies\": [\"10.0.0.0/8\", \"unix\"], "
                                   "\"proxy_says\": \"forwarded\", \"unix_clients\": \"one\"}";
    (void)state;
    const struct options *options = options_of(document, "", "--config @");
    assert_int_equal(options->proxies.count, 2);
    assert_int_equal(options->proxy_says, OPTIONS_FORWARDED);
    assert_true(options->unix_is_one_client);
    options = options_of(document, "PTED_PROXY=::1,fd00::/8,192.0.2.1 PTED_UNIX_CLIENTS=each",
                         "--config @ --proxy-says=proxy-protocol");
    assert_int_equal(options->proxies.count, 3);
    assert_string_equal(options->proxies.items[1], "fd00::/8");
    assert_int_equal(options->proxy_says, OPTIONS_PROXY_PROTOCOL);
    assert_false(options->unix_is_one_client);
    assert_null(read_all("{\"proxies\": [\"::1\", \"10.0.0.1/8\"]}", "", "--config @"));
    assert_non_null(strstr(lines(), ":1:21: proxies[1]: expected an address whose bits behind"));
    assert_null(read_all("{}", "", "--proxy localhost"));
    assert_non_null(strstr(lines(), "--proxy: expected ADDR, ADDR/BITS or unix, got 'localhost'"));
    assert_null(read_all("{}", "", "--proxy-says via"));
    assert_non_null(
        strstr(lines(), "expected x-forwarded-for, forwarded or proxy-protocol, got 'via'"));
}

static void an_address_of_tls_has_a_certificate(void **state)
{
    static const char document[] = "{\"listeners\": [\"tls:a:1\"], \"health_listeners\": "
                                   "[\"b:2\"], \"tls_key\": \"key.pem\", "
                                   "\"tls_min_version\": \"1.3\"}";
    (void)state;
    assert_null(read_all(document, "", "--config @"));
    assert_non_null(strstr(lines(), "listeners: tls:a:1: expected --tls-cert FILE beside it"));
    const struct options *options = options_of(document, "PTED_TLS_CERT=c.pem", "--config @");
    assert_string_equal(options->tls_cert, "c.pem");
    assert_string_equal(strrchr(options->tls_key, '/'), "/key.pem"); /* beside the document */
    assert_true(options->tls_needs_1_3 && !options->tls_client_ca);
    assert_string_equal(options->health_listen.items[0], "b:2");
}

/* ---- models ---------------------------------------------------------------------------------- */

static const struct option_model *model_of(const struct options *options, const char *name)
{
    for (uint32_t i = 0; i < options->model_count; i++) {
        if (span_is(options_model_name(&options->models[i]), name)) {
            return &options->models[i];
        }
    }
    fail_msg("no model %s", name);
    return NULL;
}

static void models_are_merged_by_name(void **state)
{
    static const char document[] =
        "{\"models\": {\"a\": \"/m/a.pte\",\n"
        " \"b\": {\"path\": \"/m/b.pte\", \"data\": [\"/m/b.ptd\", \"/m/c.ptd\"], \"weight\": 7,\n"
        "       \"precision\": \"exact\", \"request_timeout\": \"2s\", \"tokenizer\": "
        "\"/m/words\"},\n"
        " \"found\": {\"max_batch\": 4}}, \"model_folders\": [\"/m\"], "
        "\"pipeline_files\": [\"/p.json\"]}";
    (void)state;
    const struct options *options = options_of(document, "", "--config @");
    assert_int_equal(options->model_count, 2);
    assert_string_equal(model_of(options, "b")->path, "/m/b.pte");
    assert_int_equal(options->data_count, 2);
    assert_string_equal(options_find_tokenizer(options, span_str("b")), "/m/words");
    assert_null(options_find_tokenizer(options, span_str("a")));
    assert_int_equal(options->setting_count, 4);
    assert_true(options->settings[1].is_of_file);
    struct params params = options->params;
    for (uint32_t i = 0; i < options->setting_count; i++) {
        options_apply(&options->settings[i], &params);
    }
    assert_int_equal(params.weight, 7);
    assert_int_equal(params.precision, PRECISION_EXACT);
    assert_int_equal(params.request_timeout, 2000);
    assert_int_equal(params.max_batch, 4);
    options = options_of(document, "PTED_MODEL=a=/n/a.pte,c=/n/c.pte PTED_DATA=b=/n/b.ptd",
                         "--config @ /o/b.pte --set b:weight=9 --models=/n --pipeline /q.json "
                         "--tokenizer b=/o/words");
    assert_string_equal(options_find_tokenizer(options, span_str("b")), "/o/words");
    assert_int_equal(options->model_count, 3);
    assert_string_equal(model_of(options, "a")->path, "/n/a.pte");
    assert_string_equal(model_of(options, "b")->path, "/o/b.pte");
    assert_string_equal(model_of(options, "c")->path, "/n/c.pte");
    assert_int_equal(options->data_count, 1);
    assert_string_equal(options->data[0].path, "/n/b.ptd");
    assert_int_equal(options->settings[options->setting_count - 1].value, 9);
    assert_int_equal(options->folder_count, 2);
    assert_int_equal(options->pipeline_count, 2);
}

static void paths_are_relative_to_the_document(void **state)
{
    char expected[128];
    (void)state;
    const struct options *options =
        options_of("{\"models\": {\"a\": \"sub/a.pte\", \"b\": {\"path\": \"/b\"}},"
                   " \"log_file\": \"log\"}",
                   "", "--config @ --model c=c.pte");
    int folder = (int)(strrchr(reading.path, '/') + 1 - reading.path);
    snprintf(expected, sizeof(expected), "%.*ssub/a.pte", folder, reading.path);
    assert_string_equal(model_of(options, "a")->path, expected);
    assert_string_equal(model_of(options, "b")->path, "/b");
    assert_string_equal(model_of(options, "c")->path, "c.pte");
    snprintf(expected, sizeof(expected), "%.*slog", folder, reading.path);
    assert_string_equal(options->log_file, expected);
}

/* ---- problems -------------------------------------------------------------------------------- */

static void problems_have_places(void **state)
{
    /* Each alone is reported as "PATH:" and this. */
    static const char *const rows[][2] = {
        {"{\"body_bytes_max\": 3}",
         "1:20: body_bytes_max: expected a whole number from 1024 to 2147483647, got 3"},
        {"{\n \"body_bytes_max\": \"3K3\"}",
         "2:20: body_bytes_max: expected a size such as 65536 or 64M, got '3K3'"},
        {"{\"body_bytes_max\": true}",
         "1:20: body_bytes_max: expected a size such as 65536 or 64M, got a boolean"},
        {"{\"idle_timeout\": 10}",
         "1:18: idle_timeout: expected a time such as 500ms or 10s, got a number"},
        {"{\"idle_timeout\": \"2d\"}",
         "1:18: idle_timeout: expected a time such as 500ms or 10s, got '2d'"},
        {"{\"idle_timeout\": \"1ms\"}", "1:18: idle_timeout: expected 10 to 3600000 ms, got '1ms'"},
        {"{\"weight\": 1001}", "1:12: weight: expected a whole number from 1 to 1000, got 1001"},
        {"{\"weight\": 0}", "1:12: weight: expected a whole number from 1 to 1000, got 0"},
        {"{\"weight\": 1.5}", "1:12: weight: expected a whole number from 1 to 1000, got 1.5"},
        {"{\"weight\": \"2\"}", "1:12: weight: expected a whole number, got a string"},
        {"{\"workers\": 0}", "1:13: workers: expected a whole number from 1 to 1024, got 0"},
        {"{\"precision\": \"half\"}", "1:15: precision: expected exact, fast or bf16, got 'half'"},
        {"{\"shared_memory\": \"all\"}",
         "1:19: shared_memory: expected off, unix or loopback, got 'all'"},
        {"{\"log_level\": \"loud\"}",
         "1:15: log_level: expected error, warning, notice, info or debug, got 'loud'"},
        {"{\"log_level\": \"a\\nb\"}", "got 'a\\x0ab'\n"},
        {"{\"log_requests\": \"error\"}",
         "1:18: log_requests: expected errors or all, got 'error'"},
        {"{\"watch\": 1}", "1:11: watch: expected a boolean, got a number"},
        {"{\"device\": \"\"}", "1:12: device: expected a text, got an empty one"},
        {"{\"listeners\": \"a:1\"}", "1:15: listeners: expected an array, got a string"},
        {"{\"listeners\": [\"a:1\",\n\"b\"]}",
         "2:1: listeners[1]: expected ADDR:PORT, [ADDR6]:PORT, NAME:PORT or unix:PATH, or tls:, "
         "grpc: or grpc:tls: and one of these, got 'b'"},
        {"{\"models\": []}", "1:12: models: expected an object, got an array"},
        {"{\"models\": {\"a/b\": \"x\"}}",
         "1:20: models[\"a/b\"]: model name 'a/b': expected 1 to"},
        {"{\"models\": {\"a\": 1}}", "1:18: models.a: expected a path or an object, got a number"},
        {"{\"models\": {\"a\": {\"data\": [3]}}}",
         "1:28: models.a.data[0]: expected a string, got a number"},
        {"{\"models\": {\"a\": {\"weight\": -1}}}",
         "1:29: models.a.weight: expected a whole number from 1 to 1000, got -1"},
        {"{\"models\": {\"a\": {\"idle_timeout\": \"1s\"}}}",
         "1:35: models.a.idle_timeout: expected a setting of a model, got an unknown member"},
        {"{\"models\": {\"a\": {\"maxbatch\": 1}}}",
         "got an unknown member; did you mean 'max_batch'?"},
        {"{\"pipelines\": {\"p\": {}}}", "1:21: pipelines.p: expected steps, got none"},
        {"{\"model\": {}}", "expected a setting, got an unknown member; did you mean 'models'?"},
        {"{\"body-bytes-max\": 1}", "did you mean 'body_bytes_max'?"},
        {"{\"zzz\": 1}", "1:9: zzz: expected a setting, got an unknown member\n"},
        {"{\"weight\": 1, \"weight\": 1}", "1:25: weight: the key repeats in its object"},
        {"[]", "1:1: expected an object, got an array"},
        {"{\"weight\": 1,\n}", "2:1: trailing comma: JSON has none before '}'"},
        {"", "1:1: expected a value, got the end of the file"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(read_all(rows[i][0], "", "--config @"));
        const char *got = lines();
        size_t path = strlen(reading.path);
        if (strncmp(got, reading.path, path) != 0 || !strstr(got + path + 1, rows[i][1]) ||
            reading.report.problem_count != 1 || reading.report.exit_status != EX_CONFIG) {
            fail_msg("%s: %s (%u problems), expected %s", rows[i][0], got,
                     reading.report.problem_count, rows[i][1]);
        }
    }
}

/* |format| has a place for a member, which is misspelt there: a letter behind it is too much. */
static void expect_suggestion(const char *format, const char *member)
{
    char document[LINE_BYTES_MAX], wrong[64], want[96];
    snprintf(wrong, sizeof(wrong), "%sq", member);
    snprintf(want, sizeof(want), "did you mean '%s'?", member);
    size_t before = strcspn(format, "@");
    snprintf(document, sizeof(document), "%.*s%s%s", (int)before, format, wrong,
             format + before + 1);
    assert_null(read_all(document, "", "--config @"));
    if (!strstr(lines(), want)) {
        fail_msg("%s: %s, expected %s", document, lines(), want);
    }
}

/* All words are looked at, the last ones of the lists, too. */
static void every_member_is_suggested(void **state)
{
    static const char document[] = "{\"@\": 1}", model[] = "{\"models\": {\"a\": {\"@\": 1}}}";
    static const char *const card_members[] = {
#define MEMBER(name, ...) #name,
#include "server/model/card/card.def"
    };
    (void)state;
    for (uint32_t i = 0; i < setting_count; i++) {
        if (settings[i].member) {
            expect_suggestion(document, settings[i].member);
        }
        if (settings[i].is_of_model) {
            expect_suggestion(model, settings[i].member);
        }
    }
    for (uint32_t i = 0; i < setting_of_model_count; i++) {
        expect_suggestion(model, settings_of_model[i].name);
    }
    for (size_t i = 0; i < sizeof(card_members) / sizeof(card_members[0]); i++) {
        expect_suggestion(model, card_members[i]);
    }
}

static void all_problems_are_reported(void **state)
{
    static char many[8192];
    size_t len = 0;
    (void)state;
    assert_null(
        read_all("{\"weight\": 0, \"models\": {\"a\": {\"x\": 1, \"weight\": 0}, \"b\": 2},\n"
                 " \"zzz\": 1, \"listeners\": [1, 2], \"watch\": true}",
                 "PTED_WEIGHT=0", "--config @"));
    assert_int_equal(reading.report.problem_count, 8);
    len += (size_t)snprintf(many, sizeof(many), "{");
    for (int i = 0; i < 300; i++) {
        len += (size_t)snprintf(many + len, sizeof(many) - len, "%s\"x%d\": 1", i ? "," : "", i);
    }
    snprintf(many + len, sizeof(many) - len, "}");
    assert_null(read_all(many, "", "--config @"));
    assert_int_equal(reading.report.problem_count, CONF_PROBLEMS_MAX);
    assert_non_null(strstr(lines(), ": there may be more problems\n"));
}

static void other_sources_have_problems(void **state)
{
    static const struct {
        const char *environment, *arguments, *text;
        int exit_status;
    } rows[] = {
        {"PTED_WEIGHT=0", "", "pted: PTED_WEIGHT: expected 1 to 1000, got '0'\n", EX_CONFIG},
        {"PTED_WATCH=yes", "", "PTED_WATCH: expected true or false, got 'yes'", EX_CONFIG},
        {"PTED_LISTEN=a:1,b", "", "PTED_LISTEN: expected ADDR:PORT", EX_CONFIG},
        {"PTED_MODEL=a", "", "PTED_MODEL: expected NAME=FILE, got 'a'", EX_CONFIG},
        {"PTED_MODEL=a/b=c", "", "model name 'a/b'", EX_CONFIG},
        {"PTED_SET=a:b=c", "", "PTED_SET: a model has no setting 'b'", EX_CONFIG},
        {"PTED_CONFIG=/nowhere/x.json", "", "/nowhere/x.json: No such file", EX_NOINPUT},
        {"", "--config /nowhere/x.json", "/nowhere/x.json: No such file", EX_NOINPUT},
        {"", "--config", "option '--config' needs a value", EX_USAGE},
        {"", "--admin-listen b", "pted: --admin-listen: expected ADDR:PORT", EX_USAGE},
        {"", "--health-listen tls:", "pted: --health-listen: expected ADDR:PORT", EX_USAGE},
        {"", "--listen tls:a:1", "pted: --listen: tls:a:1: expected --tls-cert FILE beside it",
         EX_USAGE},
        {"PTED_LISTEN=tls:a:1", "", "pted: PTED_LISTEN: tls:a:1: expected --tls-cert FILE",
         EX_CONFIG},
        {"", "--tls-min-version 1.1", "pted: --tls-min-version: expected 1.2 or 1.3, got '1.1'",
         EX_USAGE},
        {"", "--model a/b=c", "model name 'a/b'", EX_USAGE},
        {"", "--nope", "unknown option '--nope'\n", EX_USAGE},
        {"", "--modl=x", "unknown option '--modl'; did you mean '--model'?", EX_USAGE},
        {"", "--modles=x", "unknown option '--modles'; did you mean '--models'?", EX_USAGE},
        {"", "--watch=maybe", "--watch: expected true or false, got 'maybe'", EX_USAGE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_null(read_all("{}", rows[i].environment, rows[i].arguments));
        if (!strstr(lines(), rows[i].text) || reading.report.problem_count != 1) {
            fail_msg("%s, expected %s", lines(), rows[i].text);
        }
        assert_int_equal(reading.report.exit_status, rows[i].exit_status);
    }
    assert_null(read_all("{\"weight\": 0}", "", "--config @ --weight 0"));
    assert_int_equal(reading.report.exit_status, EX_USAGE); /* the arguments are read first */
}

/* The variables of Kubernetes and of other programs may begin like ours. */
static void unknown_variables_are_ignored(void **state)
{
    (void)state;
    const struct options *options = options_of(
        "{}", "PTED_PORT=tcp://10.0.0.1 PTED_SERVICE_HOST=10.0.0.1 WEIGHT=0 PTED_WEIGHTS=0", "");
    assert_int_equal(options->params.weight, 1);
}

static void actions(void **state)
{
    (void)state;
    assert_int_equal(options_of("{}", "", "--check-config --weight 2")->action, OPTIONS_CHECK);
    assert_int_equal(options_of("[", "PTED_WEIGHT=0", "--config @ --help")->action, OPTIONS_HELP);
    assert_int_equal(options_of("[", "", "--check-config --version")->action, OPTIONS_VERSION);
}

/* systemd's folder: pted.json is read if it is there. */
static void default_document(void **state)
{
    char folder[] = "/tmp/test_conf.XXXXXX", variable[64], path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(variable, sizeof(variable), "CONFIGURATION_DIRECTORY=%s:/other", folder);
    snprintf(path, sizeof(path), "%s/pted.json", folder);
    assert_null(options_of("{}", variable, "")->config_file);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"weight\": 8}", file);
    fclose(file);
    const struct options *options = options_of("{\"weight\": 9}", variable, "");
    assert_int_equal(options->params.weight, 8);
    assert_string_equal(options->config_file, path);
    snprintf(variable, sizeof(variable), "CONFIGURATION_DIRECTORY=%s", folder);
    options = options_of("{\"weight\": 9}", variable, "--config @");
    assert_int_equal(options->params.weight, 9);
    unlink(path);
    rmdir(folder);
}

/* ---- texts in memory ------------------------------------------------------------------------- */

static struct conf *parse(const char *text)
{
    conf_free(reading.conf);
    conf_report_fini(&reading.report);
    conf_report_init(&reading.report);
    reading.conf = conf_parse("conf/pted.json", span_str(text), &reading.report);
    return reading.conf;
}

/* The document with all defaults changes nothing, and each of its examples can be used. */
static void printed_document_has_the_defaults(void **state)
{
    static struct options presets;
    char *at, *begin;
    struct buf text;
    (void)state;
    options_init(&presets);
    buf_init(&text, 1 << 20);
    conf_print_document(&text);
    buf_add_char(&text, '\0');
    struct conf *conf = parse((char *)text.ptr);
    if (!conf) {
        fail_msg("%s", lines());
    }
    assert_memory_equal(&conf->options.params, &presets.params, sizeof(presets.params));
    assert_int_equal(conf->options.log_level, presets.log_level);
    assert_int_equal(conf->options.log_requests, presets.log_requests);
    assert_int_equal(conf->options.watches, presets.watches);
    assert_null(conf->options.device);
    for (begin = (char *)text.ptr; (at = strstr(begin, "    // \"")); begin = at) {
        memcpy(at, "       ", 7);
    }
    for (begin = (char *)text.ptr; (at = strstr(begin, "    //            \""));) {
        memcpy(at, "      ", 6);
    }
    for (begin = (char *)text.ptr; (at = strstr(begin, "    //     \""));) {
        memcpy(at, "      ", 6);
    }
    conf = parse((char *)text.ptr);
    if (!conf) {
        fail_msg("%s", lines());
    }
    assert_int_equal(conf->options.model_count, 2);
    assert_int_equal(conf->options.folder_count, 1);
    assert_string_equal(model_of(&conf->options, "digits")->path, "conf/digits.pte");
    assert_non_null(conf->options.document_pipelines);
    buf_fini(&text);
}

static void bounds(void **state)
{
    static char large[(4 << 20) + 2];
    (void)state;
    memset(large, ' ', sizeof(large) - 1);
    assert_null(parse(large));
    assert_non_null(strstr(lines(), "more than 4194304 bytes"));
    assert_int_equal(reading.report.exit_status, EX_CONFIG);
    memset(large, '[', 100);
    large[100] = '\0';
    assert_null(parse(large));
    assert_non_null(strstr(lines(), "nested deeper than 64"));
    size_t len = (size_t)snprintf(large, sizeof(large), "{\"models\": {");
    for (int i = 0; i <= OPTIONS_MODELS_MAX; i++) {
        len += (size_t)snprintf(large + len, 64, "%s\"m%d\": \"x\"", i ? "," : "", i);
    }
    snprintf(large + len, 64, "}}");
    assert_null(parse(large));
    assert_non_null(strstr(lines(), "models.m256: more than 256 models; use --models DIR"));
}

static void texts_are_whole(void **state)
{
    static void (*const print[])(struct buf *) = {conf_print_help, conf_print_manual,
                                                  conf_print_schema, conf_print_document};
    (void)state;
    for (size_t i = 0; i < sizeof(print) / sizeof(print[0]); i++) {
        struct buf text;
        buf_init(&text, 1 << 20);
        print[i](&text);
        assert_false(buf_failed(&text));
        for (uint32_t s = 0; s < setting_count; s++) {
            struct buf name;
            buf_init(&name, 64);
            setting_print_option(&settings[s], &name);
            buf_add_char(&name, '\0');
            const char *found = i < 2 ? (char *)name.ptr : settings[s].member;
            bool is_there = found && memmem(text.ptr, text.len, found, strlen(found));
            assert_true(is_there || (i == 1 ? settings[s].set != NULL : !settings[s].member));
            buf_fini(&name);
        }
        buf_fini(&text);
    }
}

static int open_reading(void **state)
{
    (void)state;
    snprintf(reading.path, sizeof(reading.path), "/tmp/test_conf.XXXXXX");
    int fd = mkstemp(reading.path);
    conf_report_init(&reading.report);
    return fd < 0 ? -1 : close(fd);
}

static int close_reading(void **state)
{
    (void)state;
    conf_free(reading.conf);
    conf_report_fini(&reading.report);
    return unlink(reading.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_sources_count),
        cmocka_unit_test(every_number_has_three_forms),
        cmocka_unit_test(other_values),
        cmocka_unit_test(addresses_replace_each_other),
        cmocka_unit_test(proxies_have_addresses),
        cmocka_unit_test(an_address_of_tls_has_a_certificate),
        cmocka_unit_test(models_are_merged_by_name),
        cmocka_unit_test(paths_are_relative_to_the_document),
        cmocka_unit_test(problems_have_places),
        cmocka_unit_test(every_member_is_suggested),
        cmocka_unit_test(all_problems_are_reported),
        cmocka_unit_test(other_sources_have_problems),
        cmocka_unit_test(unknown_variables_are_ignored),
        cmocka_unit_test(actions),
        cmocka_unit_test(default_document),
        cmocka_unit_test(printed_document_has_the_defaults),
        cmocka_unit_test(bounds),
        cmocka_unit_test(texts_are_whole),
    };
    return cmocka_run_group_tests(tests, open_reading, close_reading);
}
