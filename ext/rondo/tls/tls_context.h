/* SPDX-License-Identifier: MIT
 *
 * Makes the transport of a listener that speaks TLS, out of certificates and keys that were already
 * read: this reads no files. Every failure is a message of one line for people.
 *
 * A build without TLS has neither tls.c nor this: it says so.
 */
#ifndef RD_TLS_TLS_CONTEXT_H
#define RD_TLS_TLS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "transport/transport.h"

#define RD_TLS_ERROR_MAX 256

/* A certificate with its chain, and its key, both in PEM. */
typedef struct rd_tls_pair {
    rd_slice certificates; /* the server's own comes first */
    rd_slice key;
    const char *certificates_name, *key_name; /* of the files, for messages */
    const char *password;                     /* of the key, or NULL */
} rd_tls_pair;

typedef enum rd_tls_verify {
    RD_TLS_VERIFY_NONE,
    RD_TLS_VERIFY_PEER,  /* a client may have a certificate; then it has to be valid */
    RD_TLS_VERIFY_FORCE, /* it must have one */
} rd_tls_verify;

typedef struct rd_tls_options {
    const rd_tls_pair *pairs;
    size_t pair_count;
    rd_slice ca; /* PEM: who signs certificates of clients, and their lists of revoked ones */
    const char *ca_name;
    rd_tls_verify verify;
    const char *verification_flags; /* names with commas between them, or NULL */
    const char *ciphers;            /* of TLS 1.2, as OpenSSL writes them; NULL: our own */
    const char *ciphersuites;       /* of TLS 1.3 */
} rd_tls_options;

#ifndef RD_WITHOUT_TLS

/* Returns a transport with one owner, for connections of one loop. NULL: it cannot be made, and
 * `error` says why. */
const rd_transport *rd_tls_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]);

/* "OpenSSL 3.0.19" */
const char *rd_tls_library(void);

#else

static inline const rd_transport *rd_tls_new(const rd_tls_options *options,
                                             char error[RD_TLS_ERROR_MAX]) {
    (void)options;
    snprintf(error, RD_TLS_ERROR_MAX, "this build has no TLS");
    return NULL;
}

static inline const char *rd_tls_library(void) {
    return NULL;
}

#endif

#endif
