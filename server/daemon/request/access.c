/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/access.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "server/daemon/request/request_priv.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/request/routes.h"
#include "server/http/client.h"

enum status access_read(struct access *access, const struct options *options, struct error *err)
{
    if (!options->token_file) {
        access->tokens.are_needed = false;
        access->tokens.count = 0;
        return ST_OK;
    }
    return tokens_read(&access->tokens, options->token_file, err);
}

enum status access_verify(const struct options *options, struct error *err)
{
    struct access access = {.tokens = {.items = NULL}};
    enum status status = access_read(&access, options, err);
    access_fini(&access);
    return status;
}

void access_fini(struct access *access)
{
    tokens_fini(&access->tokens);
}

const char *access_denial_name(enum access_denial denial)
{
    static const char *const names[ACCESS_DENIAL_COUNT] = {"no token", "unknown token", "scope"};
    return names[denial];
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int deny(struct request *request, enum access_denial denial)
{
    static const struct {
        int status;
        const char *challenge; /* RFC 6750, section 3 */
    } rows[ACCESS_DENIAL_COUNT] = {
        [ACCESS_NO_TOKEN] = {401, "Bearer"},
        [ACCESS_UNKNOWN_TOKEN] = {401, "Bearer error=\"invalid_token\""},
        [ACCESS_NO_SCOPE] = {403, "Bearer error=\"insufficient_scope\""},
    };
    counter_add(&request->requests->access.denied[denial], 1);
    request->sender.challenge = rows[denial].challenge;
    return rows[denial].status;
}

/* The token of clients of Anthropic's API, who send no Authorization. */
static bool find_key(const struct head *head, struct span *out_token)
{
    *out_token = head_value(head, HTTP_X_API_KEY);
    return head->counts[HTTP_X_API_KEY] == 1 && out_token->len > 0;
}

/* The text behind "Bearer ", or else a key; false: there is none, or several. */
static bool find_bearer(const struct head *head, struct span *out_token)
{
    static const char scheme[] = "Bearer ";
    size_t len = sizeof(scheme) - 1;
    struct span value = head_value(head, HTTP_AUTHORIZATION);
    if (head->counts[HTTP_AUTHORIZATION] == 0) {
        return find_key(head, out_token);
    }
    if (head->counts[HTTP_AUTHORIZATION] != 1 || value.len <= len ||
        strncasecmp((const char *)value.ptr, scheme, len) != 0) {
        return false;
    }
    while (len < value.len && value.ptr[len] == ' ') {
        len++;
    }
    *out_token = span_of(value.ptr + len, value.len - len);
    return true;
}

static int check_token(struct request *request, enum token_scope scope)
{
    struct span text;
    if (!find_bearer(&request->head, &text)) {
        error_set(&request->err, ST_INVALID,
                  "Authorization: expected 'Bearer TOKEN', with a token of scope %s",
                  token_scope_name(scope));
        return deny(request, ACCESS_NO_TOKEN);
    }
    const struct token *token = tokens_find_again(&request->requests->access.tokens,
                                                  &request->exchange->token_memory, text);
    if (!token) {
        error_set(&request->err, ST_INVALID, "Authorization: this token is not known");
        return deny(request, ACCESS_UNKNOWN_TOKEN);
    }
    request->client.token_name = token->use->name;
    if (!(token->scopes & scope)) {
        error_set(&request->err, ST_INVALID, "the token of %s lacks the scope %s", token->use->name,
                  token_scope_name(scope));
        return deny(request, ACCESS_NO_SCOPE);
    }
    if (!token_admit(token, uv_hrtime(), &request->retry_after_s, &request->err)) {
        return 429;
    }
    request->sender.token_use = token->use;
    request->client.is_operator = (token->scopes & TOKEN_SCOPE_ADMIN) != 0;
    request->client.scopes = token->scopes;
    request->client.id = client_of_token(token->use->number);
    return 200;
}

/* ---- origins of pages ------------------------------------------------------------------------ */

/* The origin that the answer allows: "*", or the page's origin; empty: the page may not read it. */
static struct span allowed_origin(const struct request *request)
{
    const struct option_texts *origins = &request->requests->uses.options->cors_origins;
    struct span origin = head_value(&request->head, HTTP_ORIGIN);
    for (uint32_t i = 0; origin.len && i < origins->count; i++) {
        if (strcmp(origins->items[i], "*") == 0) {
            return span_str("*");
        }
        if (span_is(origin, origins->items[i])) {
            return span_str(origins->items[i]);
        }
    }
    return span_str("");
}

/* Does |host|, with or without a port, say localhost or a number? No DNS server has a say then. */
static bool is_literal(struct span host)
{
    char text[INET_ADDRSTRLEN];
    struct in_addr ignored;
    const uint8_t *colon = memchr(host.ptr, ':', host.len);
    size_t len = colon ? (size_t)(colon - host.ptr) : host.len;
    if (host.len > 0 && host.ptr[0] == '[') { /* IPv6 */
        return true;
    }
    if (len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host.ptr, len);
    text[len] = '\0';
    return strcasecmp(text, "localhost") == 0 || inet_pton(AF_INET, text, &ignored) == 1;
}

/*
 * Is |origin| that of a page which came from this daemon? It has the request's Host then. But the
 * owner of a name can have it mean this address once a page of that name has come from another one
 * (DNS rebinding). So a name counts only with TLS: the daemon's certificate is for no such name.
 */
static bool is_own_origin(const struct request *request, struct span origin)
{
    static const char scheme_end[] = "://";
    struct span host = head_value(&request->head, HTTP_HOST);
    const uint8_t *at = memmem(origin.ptr, origin.len, scheme_end, sizeof(scheme_end) - 1);
    size_t from = at ? (size_t)(at - origin.ptr) + sizeof(scheme_end) - 1 : 0;
    return at && origin.len - from == host.len &&
           strncasecmp((const char *)origin.ptr + from, (const char *)host.ptr, host.len) == 0 &&
           (request->exchange->tls_version || is_literal(host));
}

/*
 * A browser sends short requests of any page to any address that it reaches; it only keeps the
 * answers from the page. So a page that an operator looks at could change the models of a daemon on
 * the same machine. Browsers say the page's origin with each POST; programs say none.
 */
static int check_page(struct request *request)
{
    struct span origin = head_value(&request->head, HTTP_ORIGIN);
    if (!head_has(&request->head, HTTP_ORIGIN) || allowed_origin(request).len ||
        is_own_origin(request, origin)) {
        return 200;
    }
    error_set(&request->err, ST_INVALID,
              "Origin: expected a page of a --cors-origin, or of this address by its number or as "
              "localhost (with TLS, by any name), got one of '%.*s'",
              SPAN_SHORT(origin));
    return 403;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int refuse_public(struct error *err)
{
    error_set(err, ST_INVALID,
              "this is for administrators: use an address of --admin-listen, or, with "
              "--token-file, a token of scope admin");
    return 403;
}

int access_begin(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const struct route *route = request_route(request);
    enum listener_role role = request->exchange->role;
    if (role == LISTENER_HEALTH && !route->is_for_probes) {
        error_set(&request->err, ST_INVALID,
                  "this address is for probes: it answers /v2/health/live, /v2/health/ready, "
                  "/health, /ping and /metrics alone");
        return 403;
    }
    if (request->exchange->is_for_grpc && !request->grpc.is_on) {
        error_set(&request->err, ST_INVALID,
                  "this address is for gRPC: HTTP is answered at those of --listen without grpc:");
        return 403;
    }
    if (route->scope == TOKEN_SCOPE_NONE) {
        return 200;
    }
    if (role == LISTENER_PUBLIC && request->requests->access.tokens.are_needed) {
        return check_token(request, route->scope);
    }
    if (role == LISTENER_PUBLIC && route->scope == TOKEN_SCOPE_ADMIN) {
        return refuse_public(&request->err);
    }
    return route->changes ? check_page(request) : 200;
}

int access_raise(struct request *request, enum token_scope scope, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->client.scopes & scope) {
        return 0;
    }
    if (request->sender.token_use) {
        error_set(err, ST_INVALID, "the token of %s lacks the scope %s", request->client.token_name,
                  token_scope_name(scope));
        return deny(request, ACCESS_NO_SCOPE);
    }
    return refuse_public(err);
}

void access_end(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (request->sender.token_use) {
        token_release(request->sender.token_use);
    }
    request->sender.token_use = NULL;
}

/* ---- pages of browsers ----------------------------------------------------------------------- */

bool access_is_preflight(const struct request *request, const struct exchange_head *head)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return strcmp(head->method_name, "OPTIONS") == 0 &&
           head_has(&request->head, HTTP_ACCESS_CONTROL_REQUEST_METHOD) &&
           allowed_origin(request).len > 0;
}

void access_describe(const struct request *request, struct http_answer *answer)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    answer->challenge = request->sender.challenge;
    if (request->requests->uses.options->cors_origins.count) {
        answer->varies_by_origin = true;
        answer->allow_origin = allowed_origin(request);
        answer->is_preflight = request->match.id == ROUTE_PREFLIGHT;
    }
}
