/* SPDX-License-Identifier: MIT */
/* Any bytes as JSON. Accepted text is still accepted with white space around it, refused without
 * its last byte if that is a bracket, and its strings survive decoding and printing. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "protocol/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status parse(struct span text, struct error *err)
{
    struct json in;
    json_init(&in, text);
    TRY(json_skip(&in, err));
    return json_end(&in, err);
}

static bool accepts(const uint8_t *data, size_t size)
{
    struct error err = {0};
    enum status status = parse(span_of(data, size), &err);
    must(status == ST_OK || (status == err.code && err.text[0] != '\0'));
    return status == ST_OK;
}

/* A string that is decoded and printed again decodes to the same bytes. */
static void check_string(const struct json_string *string)
{
    struct error err;
    struct json in;
    struct json_string again;
    struct buf out;
    uint8_t *bytes = malloc(string->bytes ? string->bytes : 1);
    uint8_t *more = malloc(string->bytes ? string->bytes : 1);
    must(bytes && more);
    json_string_decode(string, bytes);
    buf_init(&out, 6 * string->bytes + 2);
    json_print_string(&out, span_of(bytes, string->bytes));
    must(!buf_failed(&out));
    json_init(&in, buf_span(&out));
    must(json_read_string(&in, &again, &err) == ST_OK && again.bytes == string->bytes);
    json_string_decode(&again, more);
    must(span_equal(span_of(bytes, string->bytes), span_of(more, again.bytes)));
    buf_fini(&out);
    free(bytes);
    free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json in;
    struct json_string string;
    struct span array;
    struct error err;
    bool is_accepted = accepts(data, size);
    bool is_closed = size > 0 && (data[size - 1] == '}' || data[size - 1] == ']');
    must(!is_accepted || !is_closed || !accepts(data, size - 1));
    json_init(&in, span_of(data, size));
    if (json_peek(&in) == JSON_STRING && json_read_string(&in, &string, &err) == ST_OK) {
        check_string(&string);
    }
    json_init(&in, span_of(data, size));
    bool is_array = json_peek(&in) == JSON_ARRAY;
    bool is_delimited = json_array_text(&in, &array, &err) == ST_OK;
    must(!is_accepted || is_array == is_delimited);
    return 0;
}
