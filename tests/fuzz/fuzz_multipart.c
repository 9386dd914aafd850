/* SPDX-License-Identifier: MIT */
/* Any bytes as a body of multipart/form-data, whose first line is its Content-Type. Parts lie in
 * the body, one behind the other, and no delimiter is in them; each is found again in a body that
 * has this part alone. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "server/http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BYTES_MAX ((size_t)1 << 20)

static void check_inside(struct span body, struct span text)
{
    must(text.len == 0 || (text.ptr >= body.ptr && text.ptr + text.len <= body.ptr + body.len));
}

static void check_again(const struct multipart *m, const struct multipart_part *part)
{
    struct buf type, body;
    struct multipart again;
    struct multipart_part same;
    struct error err;
    bool is_found;
    buf_init(&type, BYTES_MAX);
    buf_init(&body, BYTES_MAX);
    buf_printf(&type, "multipart/form-data; boundary=\"%s\"", m->delimiter + 4);
    buf_printf(&body, "%s\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n", m->delimiter + 2);
    buf_add(&body, part->data.ptr, part->data.len);
    buf_printf(&body, "%s--\r\n", m->delimiter);
    must(!buf_failed(&body));
    must(multipart_init(&again, buf_span(&type), buf_span(&body), &err) == ST_OK);
    must(multipart_next(&again, &same, &is_found, &err) == ST_OK && is_found);
    must(span_equal(same.data, part->data) && span_is(same.name, "x"));
    must(multipart_next(&again, &same, &is_found, &err) == ST_OK && !is_found);
    buf_fini(&type);
    buf_fini(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct multipart m;
    struct multipart_part part;
    struct error err = {0};
    bool is_found = true;
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t head = line ? (size_t)(line - data) : size;
    size_t from = line ? head + 1 : size;
    struct span type = span_of(data, head), body = span_of(data + from, size - from);
    enum status status = multipart_init(&m, type, body, &err);
    const uint8_t *last = body.ptr;
    while (status == ST_OK && is_found) {
        status = multipart_next(&m, &part, &is_found, &err);
        if (status == ST_OK && is_found) {
            check_inside(body, part.name);
            check_inside(body, part.filename);
            check_inside(body, part.content_type);
            check_inside(body, part.data);
            must(part.data.ptr >= last);
            last = part.data.ptr + part.data.len;
            must(!memmem(part.data.ptr, part.data.len, m.delimiter, m.delimiter_len));
            check_again(&m, &part);
        }
    }
    must(status == ST_OK || (status == err.code && err.text[0] != '\0'));
    return 0;
}
