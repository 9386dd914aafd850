/* SPDX-License-Identifier: MIT */
/*
 * Describes the result of a method as a JSON Schema (draft 2020-12) along its structure. Answers
 * for people, in place of numbers, have schemas of their own in server/daemon/console/openapi.json.
 */
#include "config.h"

#include "protocol/call_priv.h"
#include "protocol/json.h"

struct describer {
    const struct call_method *method;
    const char *base;
    struct buf *out;
};

static void print_key(struct describer *d, const struct sip_node *node)
{
    call_print_key(&d->method->structure->results, node, "{\"type\":\"null\"}", d->out);
}

/* NaN is a text, or null if the request wants that. */
static void print_number(struct buf *out, enum dtype dtype)
{
    enum dtype_kind kind = dtype_infos[dtype].kind;
    buf_add_str(out, kind == DTYPE_BOOL  ? "{\"type\":\"boolean\"}"
                     : kind == DTYPE_INT ? "{\"type\":\"integer\"}"
                                         : "{\"type\":[\"number\",\"string\",\"null\"]}");
}

static void print_numbers(struct buf *out, const struct call_io *io)
{
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        buf_add_str(out, "{\"type\":\"array\",\"items\":");
    }
    print_number(out, io->dtype);
    buf_add_fill(out, '}', io->shape.rank);
}

/* One answer for each row; a tensor of one dim has no rows. */
static void print_answer(struct describer *d, const struct call_io *io)
{
    static const struct {
        const char *open, *name, *close;
    } forms[] = {
        [CALL_CLASSES] = {"{\"type\":\"array\",\"items\":", "Class", "}"},
        [CALL_BOXES] = {"{\"type\":\"array\",\"items\":", "Box", "}"},
        [CALL_MAP] = {"", "Map", ""},
        [CALL_SAYING] = {"", NULL, ""},
    };
    bool has_rows = io->shape.rank > 1;
    buf_add_str(d->out, has_rows ? "{\"type\":\"array\",\"items\":" : "");
    buf_add_str(d->out, forms[io->answer].open);
    if (forms[io->answer].name) {
        buf_printf(d->out, "{\"$ref\":\"%s#/components/schemas/%s\"}", d->base,
                   forms[io->answer].name);
    } else {
        buf_add_str(d->out, "{\"type\":\"string\"}");
    }
    buf_add_str(d->out, forms[io->answer].close);
    buf_add_str(d->out, has_rows ? "}" : "");
}

static void print_tensor(struct describer *d, const struct call_io *io)
{
    buf_add_str(d->out, ",\"anyOf\":[");
    if (io->answer != CALL_NUMBERS) {
        print_answer(d, io);
        buf_add_char(d->out, ',');
    } else if (io->is_part) {
        buf_add_str(d->out, "{\"type\":\"null\"},");
    }
    print_numbers(d->out, io);
    buf_add_char(d->out, ']');
}

static enum status leaf(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    const struct call_io *io = &d->method->results[node->raw_index];
    char text[CALL_IO_TEXT_MAX];
    print_key(d, node);
    if (io->kind == CALL_NONE) {
        buf_add_str(d->out, "{\"type\":\"null\"}");
        return ST_OK;
    }
    buf_printf(d->out, "{\"title\":\"%s\",\"description\":\"%s\"", io->name ? io->name : "",
               call_print_io(io, text)); /* they need no escapes */
    if (io->kind == CALL_TENSOR) {
        print_tensor(d, io);
    } else if (io->kind == CALL_SCALAR) {
        buf_add_str(d->out, ",\"anyOf\":[");
        print_number(d->out, io->dtype);
        buf_add_char(d->out, ']');
    } else {
        buf_add_str(d->out, ",\"type\":\"string\"");
    }
    buf_add_char(d->out, '}');
    return ST_OK;
}

static enum status open_container(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    print_key(d, node);
    buf_add_str(d->out, node->kind == SIP_DICT ? "{\"type\":\"object\",\"properties\":{"
                        : node->count > 0      ? "{\"type\":\"array\",\"prefixItems\":["
                                               : "{\"type\":\"array\",\"maxItems\":0");
    return ST_OK;
}

static enum status close_container(void *user, const struct sip_node *node, struct error *err)
{
    (void)err;
    struct describer *d = user;
    const struct sip_node *items = &d->method->structure->results.nodes[node->first];
    if (node->kind != SIP_DICT) {
        buf_add_str(d->out, node->count > 0 ? "]}" : "}");
        return ST_OK;
    }
    buf_add_str(d->out, "},\"required\":[");
    for (uint32_t i = 0; i < node->count; i++) {
        buf_add_str(d->out, i ? "," : "");
        json_print_string(d->out, items[i].key.name);
    }
    buf_add_str(d->out, "]}");
    return ST_OK;
}

void call_print_result_schema(const struct call_method *method, const char *base, struct buf *out)
{
    static const struct sip_visitor visitor = {leaf, open_container, close_container};
    const struct sip_tree *tree = &method->structure->results;
    struct describer d = {method, base, out};
    struct error err;
    if (tree->nodes[0].kind == SIP_NOTHING) {
        buf_add_str(out, "{\"type\":\"null\"}");
    } else if (sip_visit(tree, &visitor, &d, &err) != ST_OK) {
        out->failed = true; /* no callback fails, so the walk ran out of memory */
    }
}
