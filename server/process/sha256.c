/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/sha256.h"

#include <string.h>

#include "base/check.h"
#include "server/process/openssl.h"

static _Atomic(const struct openssl *) library; /* NULL: not loaded yet */

enum status sha256_load(struct error *err)
{
    const struct openssl *loaded;
    TRY(openssl_load_crypto("SHA-256", &loaded, err));
    library = loaded;
    return ST_OK;
}

bool sha256(struct span bytes, uint8_t out[SHA256_BYTES])
{
    const struct openssl *openssl = library;
    must(openssl != NULL);
    return openssl->EVP_Digest(bytes.ptr, bytes.len, out, NULL, openssl->EVP_sha256(), NULL) == 1;
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
