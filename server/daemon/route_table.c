/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/route_table.h"

#include "protocol/oip_reply.h"
#include "server/daemon/api/api.h"
#include "server/daemon/generation/by_body.h"
#include "server/daemon/generation/embedding.h"
#include "server/daemon/generation/generation.h"
#include "server/daemon/generation/generation_grpc.h"
#include "server/daemon/generation/transcription.h"
#include "server/daemon/infer/bundle.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/codec_grpc.h"
#include "server/daemon/infer/infer_one.h"
#include "server/language/embed_reply.h"
#include "server/language/reply.h"
#include "server/language/reply_message.h"

static void print_error(struct buf *out, const char *text, int http_status)
{
    (void)http_status; /* the protocol has no member for it */
    oip_print_error(out, text);
}

static void print_error_of_v1(struct buf *out, const char *text, int http_status)
{
    (void)http_status; /* 404 is about a model there */
    reply_print_error(out, text, 400);
}

#define ANSWERS_ANYONE(fn)                                                                         \
    {                                                                                              \
        .handler = (fn), .is_for_probes = true, .ignores_queries = true,                           \
        .print_error = print_error                                                                 \
    }
#define ANSWERS_PROBES(fn)                                                                         \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_READ, .is_for_probes = true,                         \
        .ignores_queries = true, .print_error = print_error                                        \
    }
#define ANSWERS(fn)                                                                                \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_READ, .print_error = print_error                     \
    }
#define ANSWERS_QUERY(fn, known)                                                                   \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_READ, .queries = (known), .print_error = print_error \
    }
#define LISTS(fn, print)                                                                           \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_READ, .ignores_queries = true,                       \
        .print_error = (print)                                                                     \
    }
#define ANSWERS_ON_THREAD(fn)                                                                      \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_READ, .is_long = true, .print_error = print_error    \
    }
#define SHOWS(fn)                                                                                  \
    {                                                                                              \
        .handler = (fn), .is_long = true, .ignores_queries = true, .print_error = print_error      \
    }
#define INFERS_ON_THREAD(fn)                                                                       \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_INFER, .is_long = true, .print_error = print_error   \
    }
#define CHANGES(fn)                                                                                \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_ADMIN, .changes = true, .changes_models = true,      \
        .print_error = print_error                                                                 \
    }
#define ADMINISTERS(fn)                                                                            \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_ADMIN, .changes = true, .print_error = print_error   \
    }
#define SHARES(fn)                                                                                 \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_INFER, .changes = true, .print_error = print_error   \
    }
#define CALLS(rows, how)                                                                           \
    {                                                                                              \
        .ops = &(rows), .scope = TOKEN_SCOPE_INFER, .codec = &(how), .print_error = print_error    \
    }
#define QUERIES_OF_CALLS                                                                           \
    (QUERY_BIT(BINARY) | QUERY_BIT(ORDER) | QUERY_BIT(PROFILE) | QUERY_BIT(TOP_K))
#define CALLS_ONE(how, known)                                                                      \
    {                                                                                              \
        .ops = &infer_one_ops, .scope = TOKEN_SCOPE_INFER, .codec = &(how), .queries = (known),    \
        .print_error = print_error                                                                 \
    }
#define GENERATES(how, print)                                                                      \
    {                                                                                              \
        .ops = &generation_ops, .scope = TOKEN_SCOPE_INFER, .ignores_queries = true,               \
        .codec = &(how), .print_error = (print)                                                    \
    }
#define COUNTS(fn, print)                                                                          \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_INFER, .is_long = true, .ignores_queries = true,     \
        .print_error = (print)                                                                     \
    }
#define TRANSCRIBES(how)                                                                           \
    {                                                                                              \
        .ops = &transcription_ops, .scope = TOKEN_SCOPE_INFER, .ignores_queries = true,            \
        .codec = &(how), .print_error = reply_print_error                                          \
    }

#define EMBEDS(how, print)                                                                         \
    {                                                                                              \
        .ops = &embedding_ops, .scope = TOKEN_SCOPE_INFER, .ignores_queries = true,                \
        .codec = &(how), .print_error = (print)                                                    \
    }

#define READS_ANY(print)                                                                           \
    {                                                                                              \
        .ops = &by_body_ops, .scope = TOKEN_SCOPE_INFER, .ignores_queries = true,                  \
        .codec = &by_body, .print_error = (print)                                                  \
    }

/* Methods of gRPC: what more their rows say is of struct route_grpc, or of struct route. */
#define OF_NOTHING .grpc.names = GRPC_NAMES_NOTHING
#define OF_MODEL .grpc.names = GRPC_NAMES_MODEL
#define OF_REGION .grpc.names = GRPC_NAMES_OTHER
#define WRAPS_ANSWER .grpc.wraps_answer = true
#define SETS                                                                                       \
    .changes = true, .grpc.wraps_request = true, .grpc.wraps_answer = true, .grpc.may_change = true
#define CHANGES_MODELS .changes = true, .changes_models = true
#define CHANGES_REGIONS .changes = true
#define REFLECTS .grpc.is_stream = true
#define WATCHES .grpc.is_stream = true, .grpc.watches = true
#define STREAMS_CALLS .grpc.is_stream = true, .grpc.has_calls = true
#define MESSAGES(name, fn, needed, ...)                                                            \
    {                                                                                              \
        .handler = (fn), .scope = TOKEN_SCOPE_##needed, .ignores_queries = true,                   \
        .print_error = print_error, .grpc.is_on = true, .grpc.method = GRPC_METHOD_##name,         \
        __VA_ARGS__                                                                                \
    }
#define PROBES(name, fn, ...)                                                                      \
    {                                                                                              \
        .handler = (fn), .is_for_probes = true, .ignores_queries = true,                           \
        .print_error = print_error, .grpc.is_on = true, .grpc.method = GRPC_METHOD_##name,         \
        __VA_ARGS__                                                                                \
    }
#define INFERS_MESSAGES(name)                                                                      \
    {                                                                                              \
        .ops = &generation_grpc_ops, .codec = &codec_grpc, .scope = TOKEN_SCOPE_INFER,           \
        .ignores_queries = true, .print_error = print_error, .grpc.is_on = true,                   \
        .grpc.method = GRPC_METHOD_##name                                                          \
    }

const struct route route_table[ROUTE_ROW_COUNT] = {
#define ROUTE(id, method, pattern, behaviour) [ROUTE_##id] = behaviour,
#define GRPC_ROUTE(id, service, method, behaviour) [ROUTE_##id] = behaviour,
#include "server/daemon/request/route.def"
#undef ROUTE
    [ROUTE_COUNT] = {.print_error = print_error},
    [ROUTE_NONE_OF_V1] = {.print_error = print_error_of_v1},
    [ROUTE_NONE_OF_MESSAGES] = {.print_error = reply_message_print_error},
};
