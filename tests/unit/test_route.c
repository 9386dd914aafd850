/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <string.h>

#include "server/daemon/request/route.h"
#include "server/http/percent.h"

static int find(const char *target, enum route_method method, struct route_match *match)
{
    struct error err;
    *match = (struct route_match){.id = ROUTE_COUNT};
    return route_find(span_str(target), method, match, &err);
}

static bool is_of_grpc(int id)
{
    const char *path = route_pattern((enum route_id)id);
    return strncmp(path, "/inference.", 11) == 0 || strncmp(path, "/grpc.", 6) == 0;
}

static void every_route_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *target;
        enum route_id id;
        enum route_method method;
    } cases[] = {
        {"/v2", ROUTE_SERVER, ROUTE_GET_ONLY},
        {"/v2/", ROUTE_SERVER, ROUTE_GET_ONLY},
        {"/v2/health/live", ROUTE_LIVE, ROUTE_GET_ONLY},
        {"/v2/health/ready", ROUTE_READY, ROUTE_HEAD_ONLY},
        {"/metrics", ROUTE_METRICS, ROUTE_GET_ONLY},
        {"/v2/models", ROUTE_MODELS, ROUTE_GET_ONLY},
        {"/v2/models/stats", ROUTE_STATS, ROUTE_GET_ONLY},
        {"/v2/models/m/stats", ROUTE_MODEL_STATS, ROUTE_GET_ONLY},
        {"/v2/models/m/versions/3/stats", ROUTE_MODEL_STATS, ROUTE_GET_ONLY},
        {"/v2/models/m/config", ROUTE_CONFIG, ROUTE_GET_ONLY},
        {"/v2/models/m/versions/3/config", ROUTE_CONFIG, ROUTE_HEAD_ONLY},
        {"/v2/models/m", ROUTE_MODEL, ROUTE_GET_ONLY},
        {"/v2/models/m/versions/3", ROUTE_MODEL, ROUTE_GET_ONLY},
        {"/v2/models/m/ready", ROUTE_MODEL_READY, ROUTE_GET_ONLY},
        {"/v2/models/m/versions/3/ready", ROUTE_MODEL_READY, ROUTE_GET_ONLY},
        {"/v2/models/m/infer", ROUTE_INFER, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/infer", ROUTE_INFER, ROUTE_POST_ONLY},
        {"/v2/models/m/call?binary=1", ROUTE_CALL, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/call", ROUTE_CALL, ROUTE_POST_ONLY},
        {"/v2/models/m/signature", ROUTE_SIGNATURE, ROUTE_GET_ONLY},
        {"/v2/models/m/versions/3/signature", ROUTE_SIGNATURE, ROUTE_GET_ONLY},
        {"/v2/models/m/shape", ROUTE_SHAPE, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/shape", ROUTE_SHAPE, ROUTE_POST_ONLY},
        {"/v2/models/m/r/call", ROUTE_RESULTS, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/r/call", ROUTE_RESULTS, ROUTE_POST_ONLY},
        {"/v2/batch", ROUTE_BATCH, ROUTE_POST_ONLY},
        {"/v2/repository/index", ROUTE_INDEX, ROUTE_POST_ONLY},
        {"/v2/repository/models/m/load", ROUTE_LOAD, ROUTE_POST_ONLY},
        {"/v2/repository/models/m/unload", ROUTE_UNLOAD, ROUTE_POST_ONLY},
        {"/v2/logging", ROUTE_LOG_SETTINGS, ROUTE_GET_ONLY},
        {"/v2/logging", ROUTE_SET_LOG, ROUTE_POST_ONLY},
        {"/v2/trace/setting", ROUTE_TRACE_SETTINGS, ROUTE_GET_ONLY},
        {"/v2/trace/setting", ROUTE_SET_TRACE, ROUTE_POST_ONLY},
        {"/v2/models/m/trace/setting", ROUTE_MODEL_TRACE_SETTINGS, ROUTE_GET_ONLY},
        {"/v2/models/m/trace/setting", ROUTE_SET_MODEL_TRACE, ROUTE_POST_ONLY},
        {"/v2/systemsharedmemory/status", ROUTE_REGION_STATUS, ROUTE_GET_ONLY},
        {"/v2/systemsharedmemory/region/r/status", ROUTE_REGION_STATUS, ROUTE_GET_ONLY},
        {"/v2/systemsharedmemory/region/r/register", ROUTE_REGISTER, ROUTE_POST_ONLY},
        {"/v2/systemsharedmemory/region/r/unregister", ROUTE_UNREGISTER, ROUTE_POST_ONLY},
        {"/v2/systemsharedmemory/unregister", ROUTE_UNREGISTER, ROUTE_POST_ONLY},
        {"/v2/cudasharedmemory/status", ROUTE_CUDA_STATUS, ROUTE_GET_ONLY},
        {"/v2/cudasharedmemory/region/r/register", ROUTE_CUDA_REGISTER, ROUTE_POST_ONLY},
        {"/v2/cudasharedmemory/region/r/unregister", ROUTE_CUDA_UNREGISTER, ROUTE_POST_ONLY},
        {"/v1/chat/completions", ROUTE_CHAT, ROUTE_POST_ONLY},
        {"/v1/responses", ROUTE_RESPONSES, ROUTE_POST_ONLY},
        {"/v1/messages?beta=true", ROUTE_MESSAGES, ROUTE_POST_ONLY},
        {"/v1/messages/count_tokens", ROUTE_COUNT_TOKENS, ROUTE_POST_ONLY},
        {"/v1/completions", ROUTE_COMPLETIONS, ROUTE_POST_ONLY},
        {"/v2/models/m/generate", ROUTE_GENERATE, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/generate_stream", ROUTE_GENERATE_STREAM, ROUTE_POST_ONLY},
        {"/v1/embeddings", ROUTE_EMBEDDINGS, ROUTE_POST_ONLY},
        {"/embed", ROUTE_EMBED, ROUTE_POST_ONLY},
        {"/v2/models/m/embed", ROUTE_MODEL_EMBED, ROUTE_POST_ONLY},
        {"/embed_all", ROUTE_EMBED_ALL, ROUTE_POST_ONLY},
        {"/embed_sparse", ROUTE_EMBED_SPARSE, ROUTE_POST_ONLY},
        {"/predict", ROUTE_CLASSIFY, ROUTE_POST_ONLY},
        {"/info?model=m", ROUTE_INFO, ROUTE_GET_ONLY},
        {"/similarity", ROUTE_SIMILARITY, ROUTE_POST_ONLY},
        {"/", ROUTE_BY_BODY, ROUTE_POST_ONLY},
        {"/invocations?x=y", ROUTE_INVOCATIONS, ROUTE_POST_ONLY},
        {"/v2/embed", ROUTE_V2_EMBED, ROUTE_POST_ONLY},
        {"/v2/chat", ROUTE_COHERE_CHAT, ROUTE_POST_ONLY},
        {"/completion", ROUTE_COMPLETION, ROUTE_POST_ONLY},
        {"/infill", ROUTE_INFILL, ROUTE_POST_ONLY},
        {"/v1/embed", ROUTE_V1_EMBED, ROUTE_POST_ONLY},
        {"/score", ROUTE_SCORE, ROUTE_POST_ONLY},
        {"/v1/score", ROUTE_SCORE, ROUTE_POST_ONLY},
        {"/classify", ROUTE_VLLM_CLASSIFY, ROUTE_POST_ONLY},
        {"/pooling", ROUTE_POOLING, ROUTE_POST_ONLY},
        {"/embedding", ROUTE_LLAMA_EMBEDDING, ROUTE_POST_ONLY},
        {"/embeddings", ROUTE_LLAMA_EMBEDDING, ROUTE_POST_ONLY},
        {"/reranking", ROUTE_RERANKING, ROUTE_POST_ONLY},
        {"/v1/reranking", ROUTE_RERANKING, ROUTE_POST_ONLY},
        {"/decode", ROUTE_DECODE, ROUTE_POST_ONLY},
        {"/v1/health", ROUTE_V1_HEALTH, ROUTE_GET_ONLY},
        {"/rerank", ROUTE_RERANK, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/rerank", ROUTE_MODEL_RERANK, ROUTE_POST_ONLY},
        {"/v1/rerank", ROUTE_V1_RERANK, ROUTE_POST_ONLY},
        {"/v2/rerank", ROUTE_V2_RERANK, ROUTE_POST_ONLY},
        {"/v1/audio/transcriptions", ROUTE_TRANSCRIPTIONS, ROUTE_POST_ONLY},
        {"/v1/audio/translations", ROUTE_TRANSLATIONS, ROUTE_POST_ONLY},
        {"/v2/models/m/tokenize", ROUTE_MODEL_TOKENIZE, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/detokenize", ROUTE_MODEL_DETOKENIZE, ROUTE_POST_ONLY},
        {"/tokenize", ROUTE_TOKENIZE, ROUTE_POST_ONLY},
        {"/detokenize", ROUTE_DETOKENIZE, ROUTE_POST_ONLY},
        {"/apply-template", ROUTE_APPLY_TEMPLATE, ROUTE_POST_ONLY},
        {"/props?model=m", ROUTE_PROPS, ROUTE_GET_ONLY},
        {"/health", ROUTE_HEALTH, ROUTE_GET_ONLY},
        {"/ping", ROUTE_PING, ROUTE_GET_ONLY},
        {"/api/chat", ROUTE_OLLAMA_CHAT, ROUTE_POST_ONLY},
        {"/api/generate", ROUTE_OLLAMA_GENERATE, ROUTE_POST_ONLY},
        {"/api/embed", ROUTE_OLLAMA_EMBED, ROUTE_POST_ONLY},
        {"/api/embeddings", ROUTE_OLLAMA_EMBEDDINGS, ROUTE_POST_ONLY},
        {"/api/tags", ROUTE_OLLAMA_TAGS, ROUTE_GET_ONLY},
        {"/api/ps", ROUTE_OLLAMA_PS, ROUTE_HEAD_ONLY},
        {"/api/show", ROUTE_OLLAMA_SHOW, ROUTE_POST_ONLY},
        {"/api/version", ROUTE_OLLAMA_VERSION, ROUTE_GET_ONLY},
        {"/api/pull", ROUTE_OLLAMA_PULL, ROUTE_POST_ONLY},
        {"/api/push", ROUTE_OLLAMA_PUSH, ROUTE_POST_ONLY},
        {"/api/create", ROUTE_OLLAMA_CREATE, ROUTE_POST_ONLY},
        {"/api/copy", ROUTE_OLLAMA_COPY, ROUTE_POST_ONLY},
        {"/api/delete", ROUTE_OLLAMA_DELETE, ROUTE_OTHER},
        {"/version", ROUTE_VERSION, ROUTE_GET_ONLY},
        {"/v1/models", ROUTE_V1_MODELS, ROUTE_GET_ONLY},
        {"/v1/models/m", ROUTE_V1_MODEL, ROUTE_GET_ONLY},
        {"/v1/models/m:predict", ROUTE_PREDICT, ROUTE_POST_ONLY},
        {"/v2/models/m/versions/3/graph", ROUTE_GRAPH, ROUTE_GET_ONLY},
        {"/openapi.json", ROUTE_OPENAPI, ROUTE_GET_ONLY},
        {"/", ROUTE_CONSOLE, ROUTE_GET_ONLY},
        {"/console/r", ROUTE_CONSOLE_FILE, ROUTE_GET_ONLY},
    };
    bool is_reached[ROUTE_COUNT] = {false};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct route_match match;
        is_reached[cases[i].id] = true;
        assert_int_equal(find(cases[i].target, cases[i].method, &match), 200);
        assert_int_equal(match.id, cases[i].id);
        assert_string_equal(match.model, strstr(cases[i].target, "models/m") ? "m" : "");
        bool has_name = strstr(cases[i].target, "/r/") || strstr(cases[i].target, "console/r");
        assert_string_equal(match.region, has_name ? "r" : "");
        assert_int_equal(match.version, strstr(cases[i].target, "/3") ? 3 : 0);
        if (cases[i].method == ROUTE_OTHER) {
            continue;
        }
        assert_int_equal(find(cases[i].target, ROUTE_OTHER, &match), 405);
        assert_non_null(match.allow);
        assert_int_equal(match.id, ROUTE_COUNT);
    }
    for (int id = 0; id < ROUTE_COUNT; id++) {
        assert_true(is_reached[id] || id == ROUTE_PREFLIGHT || is_of_grpc(id));
    }
}

/* A method of gRPC is its own path. */
static void methods_of_grpc_are_found(void **state)
{
    (void)state;
    int count = 0;
    for (int id = 0; id < ROUTE_COUNT; id++) {
        struct route_match match;
        if (is_of_grpc(id)) {
            assert_int_equal(find(route_pattern(id), ROUTE_POST_ONLY, &match), 200);
            assert_int_equal(match.id, id);
            assert_int_equal(find(route_pattern(id), ROUTE_GET_ONLY, &match), 405);
            count++;
        }
    }
    struct route_match match;
    assert_int_equal(count, 24);
    assert_int_equal(find("/inference.GRPCInferenceService/ModelInfer", ROUTE_POST_ONLY, &match),
                     200);
    assert_int_equal(match.id, ROUTE_GRPC_INFER);
    assert_int_equal(find("/grpc.health.v1.Health/Check", ROUTE_POST_ONLY, &match), 200);
    assert_int_equal(match.id, ROUTE_GRPC_HEALTH);
}

static void unknown_paths_are_not_found(void **state)
{
    (void)state;
    static const char *const targets[] = {
        "/x",
        "/console",
        "/console/",
        "/v",
        "/v2x",
        "/v2//",
        "/v2/models/",
        "/v2/models//",
        "/v2/models/m/",
        "/v2/models/m/versions/",
        "/v3",
        "//v2",
        "/v2/health/live/",
        "/v2/models/m/versions/0",
        "/v2/models/m/versions/3/",
        "/v2/models/m/versions/3/versions/4",
        "/v2/models/m/versions/0/stats",
        "/v2/models/m[/versions/3]",
    };
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        struct route_match match;
        assert_int_equal(find(targets[i], ROUTE_GET_ONLY, &match), 404);
    }
}

/* What a client adds to a URL that has too much or too little is named in the error. */
static void what_was_meant_is_named(void **state)
{
    (void)state;
    const struct {
        const char *target;
        enum route_method method;
        const char *meant; /* NULL: nothing */
    } rows[] = {{"/chat/completions", ROUTE_POST_ONLY, "/v1/chat/completions"},
                {"/v1/chat/completions/", ROUTE_POST_ONLY, "/v1/chat/completions"},
                {"/v1/v1/chat/completions?a=b", ROUTE_POST_ONLY, "/v1/chat/completions"},
                {"//v1/chat/completions", ROUTE_POST_ONLY, "/v1/chat/completions"},
                {"/v3/embeddings", ROUTE_POST_ONLY, "/v1/embeddings"},
                {"/openai/deployments/m/chat/completions", ROUTE_POST_ONLY, "/v1/chat/completions"},
                {"/a/b/c/chat/completions", ROUTE_POST_ONLY, "/v1/chat/completions"},
                {"/a/b/c/d/chat/completions", ROUTE_POST_ONLY, NULL},
                {"/v1/api/chat", ROUTE_POST_ONLY, "/api/chat"},
                {"/api/v0/models", ROUTE_GET_ONLY, "/v1/models"},
                {"/v3/health", ROUTE_HEAD_ONLY, "/health"},
                {"/chat/completions", ROUTE_GET_ONLY, NULL},
                {"/v1", ROUTE_GET_ONLY, NULL},
                {"///", ROUTE_GET_ONLY, NULL},
                {"/v1/chat/completionsx", ROUTE_POST_ONLY, NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct route_match match;
        struct error err;
        char wanted[128] = "no such path, see GET /openapi.json";
        size_t len = strlen(wanted);
        if (rows[i].meant) {
            snprintf(wanted + len, sizeof(wanted) - len, "; did you mean %s?", rows[i].meant);
        }
        assert_int_equal(route_find(span_str(rows[i].target), rows[i].method, &match, &err), 404);
        assert_string_equal(err.text, wanted);
    }
}

static void target_forms(void **state)
{
    (void)state;
    struct route_match match;
    assert_int_equal(find("http://host/v2?x", ROUTE_GET_ONLY, &match), 200);
    assert_int_equal(find("HTTP://host", ROUTE_GET_ONLY, &match), 200);
    assert_int_equal(match.id, ROUTE_CONSOLE);
    assert_int_equal(find("*", ROUTE_GET_ONLY, &match), 400);
    assert_int_equal(find("", ROUTE_GET_ONLY, &match), 400);
    assert_int_equal(find("?", ROUTE_GET_ONLY, &match), 400);
    assert_int_equal(find("/v2/models/%6D%2fx", ROUTE_GET_ONLY, &match), 200);
    assert_string_equal(match.model, "m/x");
}

/* The route is known, so that the error has its form; the name is not that of an earlier use. */
static void bad_names(void **state)
{
    (void)state;
    struct route_match match = {.model = "another", .region = "another"};
    struct error err;
    assert_int_equal(route_find(span_str("/v1/models/no%zz"), ROUTE_GET_ONLY, &match, &err), 400);
    assert_int_equal(match.id, ROUTE_V1_MODEL);
    assert_string_equal(match.model, "no");
}

/* Errors about a path without a route have the form of those that serve below it. */
static void rows_of_what_is_not_found(void **state)
{
    (void)state;
    const struct {
        const char *target;
        enum route_id none;
    } rows[] = {{"/v1/messages", ROUTE_NONE_OF_MESSAGES},
                {"/v1/messages/batches?a", ROUTE_NONE_OF_MESSAGES},
                {"http://host/v1/messages/count_tokens", ROUTE_NONE_OF_MESSAGES},
                {"/v1/messagesx", ROUTE_NONE_OF_V1},
                {"/v1/x", ROUTE_NONE_OF_V1},
                {"/v2/x", ROUTE_COUNT},
                {"", ROUTE_COUNT}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(route_none_of(span_str(rows[i].target)), rows[i].none);
    }
}

static void versions(void **state)
{
    (void)state;
    struct route_match match;
    assert_int_equal(find("/v2/models/m/versions/999999999", ROUTE_GET_ONLY, &match), 200);
    assert_int_equal(match.version, 999999999);
    assert_int_equal(find("/v2/models/m/versions/1000000000", ROUTE_GET_ONLY, &match), 404);
    assert_int_equal(find("/v2/models/m/versions/1x", ROUTE_GET_ONLY, &match), 404);
    assert_int_equal(find("/v2/models/m/versions/-1", ROUTE_GET_ONLY, &match), 404);
}

static void decoding(void **state)
{
    (void)state;
    char out[5];
    assert_true(percent_decode(span_str("a%20b"), out, 4));
    assert_string_equal(out, "a b");
    assert_true(percent_decode(span_str(""), out, 4));
    assert_string_equal(out, "");
    static const char *const bad[] = {"%", "%2", "%2g", "%00", "%1f", "%7f", "a%", "abcde", "\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(percent_decode(span_str(bad[i]), out, 4));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_route_is_found),
        cmocka_unit_test(methods_of_grpc_are_found),
        cmocka_unit_test(unknown_paths_are_not_found),
        cmocka_unit_test(what_was_meant_is_named),
        cmocka_unit_test(target_forms),
        cmocka_unit_test(bad_names),
        cmocka_unit_test(rows_of_what_is_not_found),
        cmocka_unit_test(versions),
        cmocka_unit_test(decoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
