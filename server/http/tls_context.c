/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/tls_context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"

#define FILE_BYTES_MAX (1 << 20)
/* Of a client: its own certificate, and the certificates between it and its authority. */
#define CHAIN_BYTES_MAX (32 << 10)
#define CHAIN_DEPTH_MAX 6
/* Both are computed in 0.1 ms at most. Others that OpenSSL offers take milliseconds of the loop. */
#define GROUPS "X25519:P-256"
#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

static const unsigned char session_context[] = "pted";

/* ---- errors ---------------------------------------------------------------------------------- */

/* Why OpenSSL's last call failed: the first error is the closest to the reason. */
static const char *reason_of(const struct openssl *openssl)
{
    unsigned long code = openssl->ERR_get_error();
    const char *text = code ? openssl->ERR_reason_error_string(code) : NULL;
    return text ? text : "unknown reason";
}

static enum status fail(const struct openssl *openssl, const char *what, const char *path,
                        const char *expected, struct error *err)
{
    return error_set(err, ST_CORRUPT, "%s %s: expected %s: %s", what, path, expected,
                     reason_of(openssl));
}

/* A file that can be read, and is no device and no pipe. */
static enum status check_file(const char *what, const char *path, struct stat *out,
                              struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int number = fd < 0 || fstat(fd, out) < 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (number) {
        return error_set(err, status_of_errno(number), "%s %s: %s", what, path, strerror(number));
    }
    if (!S_ISREG(out->st_mode) || out->st_size > FILE_BYTES_MAX) {
        return error_set(err, ST_CORRUPT, "%s %s: expected a file of at most %d bytes", what, path,
                         FILE_BYTES_MAX);
    }
    return ST_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A key with a passphrase is refused: nobody is there to type it. */
static int no_passphrase(char *buf, int size, int rwflag, void *user)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    (void)user;
    return -1;
}

static enum status read_certificate(struct tls_context *context, const char *path,
                                    struct error *err)
{
    static const char what[] = "TLS certificate";
    const struct openssl *openssl = context->openssl;
    struct stat st;
    struct tm tm;
    TRY(check_file(what, path, &st, err));
    if (openssl->SSL_CTX_use_certificate_chain_file(context->ctx, path) != 1) {
        return fail(openssl, what, path, "certificates in PEM", err);
    }
    const X509 *certificate = openssl->SSL_CTX_get0_certificate(context->ctx);
    if (openssl->ASN1_TIME_to_tm(openssl->X509_get0_notBefore(certificate), &tm) != 1) {
        return fail(openssl, what, path, "a time from which it is valid", err);
    }
    context->begin_s = timegm(&tm);
    if (openssl->ASN1_TIME_to_tm(openssl->X509_get0_notAfter(certificate), &tm) != 1) {
        return fail(openssl, what, path, "a time until which it is valid", err);
    }
    context->expiry_s = timegm(&tm);
    tls_context_print_subject(openssl, certificate, context->subject);
    return ST_OK;
}

static enum status read_key(struct tls_context *context, const char *path, struct error *err)
{
    static const char what[] = "TLS key";
    const struct openssl *openssl = context->openssl;
    struct stat st;
    TRY(check_file(what, path, &st, err));
    context->is_key_public = (st.st_mode & (S_IROTH | S_IWOTH)) != 0;
    /* A key of another type is not compared with the certificate until the second call. */
    if (openssl->SSL_CTX_use_PrivateKey_file(context->ctx, path, SSL_FILETYPE_PEM) != 1 ||
        openssl->SSL_CTX_check_private_key(context->ctx) != 1) {
        return fail(openssl, what, path,
                    "the key of the certificate, in PEM and without a passphrase", err);
    }
    const EVP_PKEY *key = openssl->SSL_CTX_get0_privatekey(context->ctx);
    bool is_rsa = openssl->EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
    context->rsa_bits = is_rsa ? openssl->EVP_PKEY_get_bits(key) : 0;
    return ST_OK;
}

static enum status read_client_ca(struct tls_context *context, const char *path, struct error *err)
{
    static const char what[] = "TLS client CA";
    const struct openssl *openssl = context->openssl;
    struct stat st;
    TRY(check_file(what, path, &st, err));
    STACK_OF(X509_NAME) *names = openssl->SSL_CTX_load_verify_file(context->ctx, path) == 1
                                     ? openssl->SSL_load_client_CA_file(path)
                                     : NULL;
    if (!names) {
        return fail(openssl, what, path, "certificates in PEM", err);
    }
    openssl->SSL_CTX_set_client_CA_list(context->ctx, names); /* takes them over */
    openssl->SSL_CTX_set_verify(context->ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                                NULL);
    openssl->SSL_CTX_set_verify_depth(context->ctx, CHAIN_DEPTH_MAX);
    return ST_OK;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* |name| has its length in front of it. */
static bool has_name(struct span names, const uint8_t *name)
{
    for (size_t at = 0; at < names.len; at += 1u + names.ptr[at]) {
        if (names.ptr[at] == *name && *name < names.len - at &&
            memcmp(names.ptr + at, name, 1u + *name) == 0) {
            return true;
        }
    }
    return false;
}

/* The first of ours that the client names, too. A client that names others only is refused, as RFC
 * 7301 says. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *user)
{
    (void)ssl;
    for (const uint8_t *name = user; *name; name += 1u + *name) {
        if (has_name(span_of(in, in_len), name)) {
            *out = name + 1;
            *out_len = *name;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* In the words of the macros of openssl/ssl.h, which call the linked library. */
static bool set(const struct openssl *openssl, SSL_CTX *ctx, int command, long number, void *text)
{
    return openssl->SSL_CTX_ctrl(ctx, command, number, text) > 0;
}

static enum status set_up(struct tls_context *context, const struct tls_files *files,
                          struct error *err)
{
    const struct openssl *openssl = context->openssl;
    SSL_CTX *ctx = context->ctx;
    static char groups[] = GROUPS;
    long version = files->needs_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
    openssl->SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                          SSL_OP_CIPHER_SERVER_PREFERENCE |
                                          SSL_OP_PRIORITIZE_CHACHA);
    openssl->SSL_CTX_ctrl(ctx, SSL_CTRL_MODE,
                          SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                          NULL);
    openssl->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    openssl->SSL_CTX_ctrl(ctx, SSL_CTRL_SET_MAX_CERT_LIST, CHAIN_BYTES_MAX, NULL);
    openssl->SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
    if (files->protocols) {
        openssl->SSL_CTX_set_alpn_select_cb(ctx, choose_protocol,
                                            (void *)(uintptr_t)files->protocols);
    }
    bool is_good = set(openssl, ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, version, NULL) &&
                   set(openssl, ctx, SSL_CTRL_SET_GROUPS_LIST, 0, groups) &&
                   openssl->SSL_CTX_set_cipher_list(ctx, CIPHERS_1_2) == 1 &&
                   openssl->SSL_CTX_set_session_id_context(ctx, session_context,
                                                           sizeof(session_context) - 1) == 1;
    return is_good ? ST_OK
                   : error_set(err, ST_UNSUPPORTED, "TLS: OpenSSL refuses its settings: %s",
                               reason_of(openssl));
}

void tls_context_free(struct tls_context *context)
{
    if (!context) {
        return;
    }
    OBJ_CHECK(context, TLS_CONTEXT_MAGIC);
    context->magic = 0;
    context->openssl->SSL_CTX_free(context->ctx);
    free(context);
}

static enum status fill(struct tls_context *context, const struct tls_files *files,
                        struct error *err)
{
    TRY(set_up(context, files, err));
    TRY(read_certificate(context, files->certificate, err));
    TRY(read_key(context, files->key ? files->key : files->certificate, err));
    return files->client_ca ? read_client_ca(context, files->client_ca, err) : ST_OK;
}

enum status tls_context_new(const struct tls_files *files, struct tls_context **out,
                            struct error *err)
{
    const struct openssl *openssl;
    TRY(openssl_load_tls("TLS", &openssl, err));
    openssl->ERR_clear_error();
    struct tls_context *context = calloc(1, sizeof(*context));
    SSL_CTX *ctx = context ? openssl->SSL_CTX_new(openssl->TLS_server_method()) : NULL;
    if (!ctx) {
        free(context);
        return error_no_memory(err, "TLS");
    }
    *context = (struct tls_context){.magic = TLS_CONTEXT_MAGIC, .openssl = openssl, .ctx = ctx};
    enum status status = fill(context, files, err);
    openssl->ERR_clear_error();
    if (status != ST_OK) {
        tls_context_free(context);
        return status;
    }
    *out = context;
    return ST_OK;
}

void tls_context_print_subject(const struct openssl *openssl, const X509 *certificate,
                               char out[TLS_SUBJECT_MAX])
{
    BIO *bio = openssl->BIO_new(openssl->BIO_s_mem());
    int len = 0;
    if (bio && openssl->X509_NAME_print_ex(bio, openssl->X509_get_subject_name(certificate), 0,
                                           XN_FLAG_RFC2253) >= 0) {
        len = openssl->BIO_read(bio, out, TLS_SUBJECT_MAX - 1);
    }
    out[len > 0 ? len : 0] = '\0';
    openssl->BIO_free(bio);
}
