/* SPDX-License-Identifier: MIT */
/*
 * The certificate of the daemon, its key, and the authorities of its clients. All connections of
 * TLS share them. It is read from files, is checked, and never changes. A connection that began
 * with a context keeps OpenSSL's part of it alive. Reading blocks.
 *
 * TLS 1.2 and 1.3 (RFC 5246, RFC 8446), only ciphers with forward secrecy and authentication, the
 * curves X25519 and P-256. No renegotiation, no compression, no early data. Sessions are resumed by
 * tickets, and nothing of them is kept here.
 */
#ifndef PTED_SERVER_HTTP_TLS_CONTEXT_H
#define PTED_SERVER_HTTP_TLS_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/process/openssl.h"

#define TLS_SUBJECT_MAX 256 /* bytes of the name in a certificate that are kept, with the end */

/* Paths, of files in PEM; and what else there is to choose. */
struct tls_files {
    const char *certificate; /* with the certificates between it and its authority */
    const char *key;         /* NULL: in the file of the certificate */
    const char *client_ca;   /* clients need a certificate of one of these; NULL: they need none */
    bool needs_1_3;          /* no TLS 1.2 */
    /* The names of what may be spoken above TLS (RFC 7301), each behind its length, the preferred
     * one first; a length of 0 ends them. Constant: connections outlive the context. NULL: no
     * protocol is chosen. */
    const uint8_t *protocols;
};

#define TLS_CONTEXT_MAGIC 0x746c7363u

struct tls_context {
    uint32_t magic;
    const struct openssl *openssl;
    SSL_CTX *ctx; /* owned */
    char subject[TLS_SUBJECT_MAX];
    int64_t begin_s, expiry_s; /* of the certificate, since 1970 */
    int rsa_bits;              /* of the key; 0: it is no RSA key */
    bool is_key_public;        /* every user of the machine may read the file of the key */
};

/* Fails with ST_UNAVAILABLE: there is no OpenSSL 3, or a file may not be read; ST_NOT_FOUND;
 * ST_CORRUPT: the error names the file and the reason. */
MUST_CHECK enum status tls_context_new(const struct tls_files *files, struct tls_context **out,
                                       struct error *err);
void tls_context_free(struct tls_context *context); /* NULL is fine */

/* Prints the subject of |certificate| as RFC 2253 says, "CN=client,O=Example", cut if it is long.
 */
void tls_context_print_subject(const struct openssl *openssl, const X509 *certificate,
                               char out[TLS_SUBJECT_MAX]);

#endif
