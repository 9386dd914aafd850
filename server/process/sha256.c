/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/sha256.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/check.h"

#define LIBRARY_NAME "libcrypto.so.3"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*digest)(const void *data, size_t count, unsigned char *md, unsigned int *size,
                     const EVP_MD *type, ENGINE *impl);
static const EVP_MD *type; /* NULL: the library is not there */

static void load(void)
{
    void *library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    void *evp_digest = library ? dlsym(library, "EVP_Digest") : NULL;
    void *evp_sha256 = library ? dlsym(library, "EVP_sha256") : NULL;
    const EVP_MD *(*find)(void);
    if (evp_digest && evp_sha256) {
        memcpy(&digest, &evp_digest, sizeof(digest));
        memcpy(&find, &evp_sha256, sizeof(find));
        type = find();
    }
}

enum status sha256_load(struct error *err)
{
    pthread_once(&once, load);
    return type ? ST_OK
                : error_set(err, ST_UNAVAILABLE,
                            "no " LIBRARY_NAME " of OpenSSL (Debian: libssl3) for SHA-256");
}

bool sha256(struct span bytes, uint8_t out[SHA256_BYTES])
{
    must(type != NULL);
    return digest(bytes.ptr, bytes.len, out, NULL, type, NULL) == 1;
}

static int value_of(uint8_t c)
{
    c = c >= 'A' && c <= 'F' ? (uint8_t)(c | 0x20) : c;
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sha256_parse(struct span text, uint8_t out[SHA256_BYTES])
{
    for (size_t i = 0; text.len == SHA256_HEX_CHARS && i < SHA256_BYTES; i++) {
        int high = value_of(text.ptr[2 * i]), low = value_of(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    return text.len == SHA256_HEX_CHARS;
}

void sha256_print(const uint8_t hash[SHA256_BYTES], char out[SHA256_HEX_CHARS])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
}

bool sha256_equal(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES])
{
    volatile uint8_t difference = 0; /* so that no compiler ends the loop early */
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        difference = (uint8_t)(difference | (a[i] ^ b[i]));
    }
    return difference == 0;
}
