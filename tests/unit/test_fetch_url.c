/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "server/process/fetch.h"
#include "server/process/fetch_url.h"

static void assert_target(const char *url, const char *expected)
{
    const struct fetch fetch = {0};
    struct fetch_target target;
    struct error err;
    assert_ok(err, fetch_url_parse(&fetch, url, &target, &err));
    assert_string_equal(target.url, expected);
    assert_int_equal(target.len, strlen(expected));
}

static void amazon_has_a_host_for_each_bucket(void **state)
{
    (void)state;
    setenv("AWS_REGION", "eu-west-3", 1);
    assert_target("s3://models/lr=0.1/a+b v1@2.pte",
                  "https://models.s3.eu-west-3.amazonaws.com/lr%3D0.1/a%2Bb%20v1%402.pte");
    assert_target("s3://models/m.pte?versionId=3sL4.k_t",
                  "https://models.s3.eu-west-3.amazonaws.com/m.pte?versionId=3sL4.k_t");
    setenv("AWS_REGION", "cn-north-1", 1);
    assert_target("s3://models/m.pte", "https://models.s3.cn-north-1.amazonaws.com.cn/m.pte");
}

/* As botocore does: the certificate for *.s3.REGION.amazonaws.com holds for one label. */
static void a_bucket_that_is_no_label_is_a_part_of_the_path(void **state)
{
    (void)state;
    setenv("AWS_REGION", "eu-west-3", 1);
    assert_target("s3://my.models/m.pte", "https://s3.eu-west-3.amazonaws.com/my.models/m.pte");
    assert_target("s3://Old_Models/m.pte", "https://s3.eu-west-3.amazonaws.com/Old_Models/m.pte");
}

static void names_of_a_hub_are_encoded_too(void **state)
{
    (void)state;
    assert_target("hf://me/net/8 bit/100%.pte",
                  "https://huggingface.co/me/net/resolve/main/8%20bit/100%25.pte");
    assert_target("hf://me/net@refs%2Fpr%2F1/a.pte?download=true",
                  "https://huggingface.co/me/net/resolve/refs%2Fpr%2F1/a.pte?download=true");
}

static void a_url_that_grows_too_long_is_refused(void **state)
{
    (void)state;
    const struct fetch fetch = {0};
    struct fetch_target target;
    struct error err;
    char url[FETCH_URL_MAX / 2] = "s3://models/";
    size_t len = strlen(url);
    memset(url + len, '+', sizeof(url) - len - 1);
    url[sizeof(url) - 1] = '\0';
    assert_int_equal(fetch_url_parse(&fetch, url, &target, &err), ST_INVALID);
    url[len + 1024] = '\0';
    assert_ok(err, fetch_url_parse(&fetch, url, &target, &err));
}

/* A text that is cut ends with a whole character. */
static void a_shown_url_is_cut_between_characters(void **state)
{
    (void)state;
    char url[2 * FETCH_SHOWN_MAX] = "https://me:secret@host/";
    char shown[FETCH_SHOWN_MAX];
    for (size_t len = strlen(url); len + 2 < sizeof(url); len += 2) {
        memcpy(url + len, "\xc3\xa9", 3);
    }
    fetch_show(url, shown);
    assert_int_equal(strlen(shown), FETCH_SHOWN_MAX - 1);
    assert_int_equal((uint8_t)shown[FETCH_SHOWN_MAX - 2], 0xa9);
    fetch_show("https://host/m.pte?access_token=secret#sha256=0", shown);
    assert_string_equal(shown, "https://host/m.pte");
    url[strlen("https://me:secret@host/") - 1] = 'x';
    fetch_show(url + 1, shown);
    assert_null(strstr(shown, "secret"));
    assert_int_equal((uint8_t)shown[strlen(shown) - 1], 0xa9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amazon_has_a_host_for_each_bucket),
        cmocka_unit_test(a_bucket_that_is_no_label_is_a_part_of_the_path),
        cmocka_unit_test(names_of_a_hub_are_encoded_too),
        cmocka_unit_test(a_url_that_grows_too_long_is_refused),
        cmocka_unit_test(a_shown_url_is_cut_between_characters),
    };
    unsetenv("AWS_ACCESS_KEY_ID");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
