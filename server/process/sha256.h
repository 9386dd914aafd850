/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4), by OpenSSL (server/process/openssl.h). Any thread. */
#ifndef PTED_SERVER_PROCESS_SHA256_H
#define PTED_SERVER_PROCESS_SHA256_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

#define SHA256_BYTES 32
#define SHA256_HEX_CHARS 64

/* Fails with ST_UNAVAILABLE: there is no OpenSSL 3. */
MUST_CHECK enum status sha256_load(struct error *err);

/* Call after sha256_load(). False: OpenSSL has no memory. */
bool sha256(struct span bytes, uint8_t out[SHA256_BYTES]);

/* 64 hexadecimal digits, of either case, to a hash and back, in lower case and not terminated. */
bool sha256_parse(struct span text, uint8_t out[SHA256_BYTES]);
void sha256_print(const uint8_t hash[SHA256_BYTES], char out[SHA256_HEX_CHARS]);

/* In a time that does not depend on the bytes. */
bool sha256_equal(const uint8_t a[SHA256_BYTES], const uint8_t b[SHA256_BYTES]);

#endif
