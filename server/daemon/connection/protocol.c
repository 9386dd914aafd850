/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/protocol.h"

#include <string.h>

#include "base/check.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/connection/http2.h"

#define NAMES_BYTES_MAX 64

const struct protocol *const protocols_all[] = {&http2_protocol, &conn_protocol, NULL};

const struct protocol *protocol_find(const struct protocol *const *protocols, struct span name)
{
    const struct protocol *last = NULL;
    for (const struct protocol *const *row = protocols; *row; row++) {
        last = *row;
        if (span_is(name, last->name)) {
            break;
        }
    }
    must(last);
    return last;
}

const struct protocol *protocol_with_preface(const struct protocol *const *protocols)
{
    const struct protocol *const *row = protocols;
    while (*row && !(*row)->preface) {
        row++;
    }
    return *row;
}

const uint8_t *protocol_names(void)
{
    static uint8_t names[NAMES_BYTES_MAX];
    size_t len = 0;
    for (const struct protocol *const *row = protocols_all; *row; row++) {
        size_t name_len = strlen((*row)->name);
        must(name_len > 0 && name_len <= UINT8_MAX && len + 1 + name_len < sizeof(names));
        names[len++] = (uint8_t)name_len;
        memcpy(names + len, (*row)->name, name_len);
        len += name_len;
    }
    names[len] = 0;
    return names;
}
