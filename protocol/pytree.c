/* SPDX-License-Identifier: MIT */
/* Turns stored structures into signatures: detects the encoding and arranges the arguments. */
#include "config.h"

#include "protocol/pytree.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/pytree_priv.h"

void pytree_number_members(struct sip_value *sequence)
{
    int64_t position = 0;
    for (struct sip_value *member = sequence->first; member; member = member->next) {
        member->key.position = position++;
    }
}

static enum status read_values(struct span text, struct sip_builder *builder,
                               struct sip_value **out_root, struct error *err)
{
    if (text.len == 0) {
        *out_root = sip_builder_add(builder, NULL, SIP_NOTHING);
        return *out_root ? ST_OK : arena_fail(builder->arena, "the structure", err);
    }
    return *text.ptr == '[' ? pytree_read_json(text, builder, out_root, err)
                            : pytree_read_compact(text, builder, out_root, err);
}

/* Only a dict can repeat a key: positions are numbered here. */
static enum status build(const struct sip_builder *builder, const struct sip_value *root,
                         struct sip_tree *out, struct error *err)
{
    const struct sip_value *twice = NULL;
    enum status status = sip_build(builder, root, out, &twice, err);
    if (twice) {
        return error_set(err, ST_INVALID, "byte %zu: a dict has the key '%.*s' twice",
                         twice->offset, SPAN_FMT(twice->key.name));
    }
    return status;
}

static bool is_args_and_kwargs(const struct sip_value *root)
{
    return root->kind == SIP_SEQUENCE && root->member_count == 2 &&
           root->first->kind == SIP_SEQUENCE && root->last->kind == SIP_DICT;
}

/* Makes the structure that callers write, from the stored tuple (positional, keyword). */
static struct sip_value *unwrap_arguments(struct sip_value *root, bool *out_has_kwargs)
{
    *out_has_kwargs = false;
    if (!is_args_and_kwargs(root)) {
        return root;
    }
    struct sip_value *args = root->first, *kwargs = root->last;
    if (kwargs->member_count == 0) {
        return args;
    }
    if (args->member_count == 0) {
        return kwargs;
    }
    kwargs->key.position = args->member_count;
    sip_value_append(args, kwargs);
    *out_has_kwargs = true;
    return args;
}

static enum status read_inputs(struct span text, struct arena *arena, struct sip *out,
                               struct error *err)
{
    struct sip_builder builder;
    struct sip_value *root;
    sip_builder_init(&builder, arena);
    TRY(read_values(text, &builder, &root, err));
    root = unwrap_arguments(root, &out->has_kwargs);
    if (root->kind != SIP_LEAF && root->member_count == 0) {
        root->kind = SIP_NOTHING;
    }
    return build(&builder, root, &out->inputs, err);
}

static enum status read_results(struct span text, struct arena *arena, struct sip *out,
                                struct error *err)
{
    struct sip_builder builder;
    struct sip_value *root;
    sip_builder_init(&builder, arena);
    TRY(read_values(text, &builder, &root, err));
    return build(&builder, root, &out->results, err);
}

enum status pytree_parse(const struct pytree_source *source, struct arena *arena, struct sip *out,
                         struct error *err)
{
    struct sip sip;
    struct error reason;
    enum status status = read_inputs(source->inputs, arena, &sip, &reason);
    if (status != ST_OK) {
        return error_set(err, status, "inputs: %s", reason.text);
    }
    status = read_results(source->results, arena, &sip, &reason);
    if (status != ST_OK) {
        return error_set(err, status, "results: %s", reason.text);
    }
    *out = sip;
    return ST_OK;
}

enum status pytree_parse_method(const struct pytree_source *source, uint32_t input_count,
                                uint32_t result_count, struct arena *arena, struct sip *out,
                                struct error *err)
{
    struct sip sip;
    TRY(pytree_parse(source, arena, &sip, err));
    if (sip.inputs.leaf_count != input_count || sip.results.leaf_count != result_count) {
        return error_set(err, ST_INVALID,
                         "the stored structure has %" PRIu32 " inputs and %" PRIu32
                         " results, the method %" PRIu32 " and %" PRIu32,
                         sip.inputs.leaf_count, sip.results.leaf_count, input_count, result_count);
    }
    *out = sip;
    return ST_OK;
}

static enum status build_positional(enum sip_kind kind, uint32_t count, struct arena *arena,
                                    struct sip_tree *out, struct error *err)
{
    struct sip_builder builder;
    sip_builder_init(&builder, arena);
    struct sip_value *root = sip_builder_add(&builder, NULL, kind);
    if (!root) {
        return arena_fail(arena, "the structure", err);
    }
    for (uint32_t i = 0; kind == SIP_SEQUENCE && i < count; i++) {
        struct sip_value *leaf = sip_builder_add(&builder, root, SIP_LEAF);
        if (!leaf) {
            return arena_fail(arena, "the structure", err);
        }
        leaf->key.position = leaf->raw_index = i;
    }
    return build(&builder, root, out, err);
}

enum status pytree_positional(uint32_t input_count, uint32_t result_count, struct arena *arena,
                              struct sip *out, struct error *err)
{
    struct sip sip = {.has_kwargs = false};
    TRY(build_positional(input_count ? SIP_SEQUENCE : SIP_NOTHING, input_count, arena, &sip.inputs,
                         err));
    enum sip_kind results = result_count == 0   ? SIP_NOTHING
                            : result_count == 1 ? SIP_LEAF
                                                : SIP_SEQUENCE;
    TRY(build_positional(results, result_count, arena, &sip.results, err));
    *out = sip;
    return ST_OK;
}
