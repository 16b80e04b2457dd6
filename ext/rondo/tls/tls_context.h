/* SPDX-License-Identifier: MIT
 *
 * Makes the transport of listeners that speak TLS, out of certificates and keys that were already
 * read: this reads no files. Every failure is a message of one line for people.
 *
 * The certificates can be replaced: connections that are open keep theirs, and each new handshake
 * gets the new ones.
 *
 * A build without TLS has neither tls.c nor this: it says so.
 */
#ifndef RD_TLS_TLS_CONTEXT_H
#define RD_TLS_TLS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "transport/transport.h"

#define RD_TLS_ERROR_MAX 256

typedef struct rd_ticket_keys rd_ticket_keys;

/* A certificate with its chain, and its key, both in PEM. */
typedef struct rd_tls_pair {
    rd_slice certificates; /* the server's own comes first */
    rd_slice key;
    const char *certificates_name, *key_name; /* of the files, for messages */
    const char *password;                     /* of the key, or NULL */
    bool
        is_checked; /* its dates were, when it was read: it is shown even if it has expired since */
} rd_tls_pair;

typedef enum rd_tls_verify {
    RD_TLS_VERIFY_NONE,
    RD_TLS_VERIFY_PEER,  /* a client may have a certificate; then it has to be valid */
    RD_TLS_VERIFY_FORCE, /* it must have one */
} rd_tls_verify;

typedef struct rd_tls_options {
    const rd_tls_pair *pairs;
    size_t pair_count; /* 0: they are still to come, and handshakes are refused until then */
    rd_slice ca;       /* PEM: who signs certificates of clients, and their lists of revoked ones */
    const char *ca_name;
    rd_tls_verify verify;
    const char *verification_flags; /* names with commas between them, or NULL */
    const char *ciphers;            /* of TLS 1.2, as OpenSSL writes them; NULL: our own */
    const char *ciphersuites;       /* of TLS 1.3 */
    rd_slice protocols;   /* ALPN of raw connections: names behind their lengths; empty: none */
    rd_ticket_keys *keys; /* NULL: the transport makes its own */
} rd_tls_options;

/* A certificate, in short. */
typedef struct rd_tls_validity {
    char name[256]; /* the first one */
    int64_t ends_s; /* since the epoch */
} rd_tls_validity;

/* Certificates, ready to be shown. */
typedef struct rd_tls_sets rd_tls_sets;

#ifndef RD_WITHOUT_TLS

/* Returns a transport with one owner, for connections of one loop. NULL: it cannot be made, and
 * `error` says why. */
const rd_transport *rd_tls_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]);

/* Whether the transport shows what would be made of these options. Not while rd_tls_show() is
 * called. */
bool rd_tls_shows(const rd_transport *transport, const rd_tls_options *options);

/* NULL: `error` has one line. Without a lock, because keys take their time. */
rd_tls_sets *rd_tls_sets_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]);
void rd_tls_sets_free(rd_tls_sets *sets);

/* That of the pair with this index. False: there are no more. */
bool rd_tls_sets_validity(const rd_tls_sets *sets, size_t index, rd_tls_validity *validity);

/* From now on each handshake gets these. Returns those before, for rd_tls_sets_free(): what open
 * connections have of them is freed with the last of these. Under the loop lock. */
rd_tls_sets *rd_tls_show(const rd_transport *transport, rd_tls_sets *sets);

/* "3.0.19" */
const char *rd_tls_library(void);

#else

static inline const rd_transport *rd_tls_new(const rd_tls_options *options,
                                             char error[RD_TLS_ERROR_MAX]) {
    (void)options;
    snprintf(error, RD_TLS_ERROR_MAX, "this build has no TLS");
    return NULL;
}

static inline bool rd_tls_shows(const rd_transport *transport, const rd_tls_options *options) {
    (void)transport, (void)options;
    return false;
}

static inline rd_tls_sets *rd_tls_sets_new(const rd_tls_options *options,
                                           char error[RD_TLS_ERROR_MAX]) {
    rd_tls_new(options, error);
    return NULL;
}

static inline void rd_tls_sets_free(rd_tls_sets *sets) {
    (void)sets;
}

static inline bool rd_tls_sets_validity(const rd_tls_sets *sets, size_t index,
                                        rd_tls_validity *validity) {
    (void)sets, (void)index, (void)validity;
    return false;
}

static inline rd_tls_sets *rd_tls_show(const rd_transport *transport, rd_tls_sets *sets) {
    (void)transport;
    return sets;
}

static inline const char *rd_tls_library(void) {
    return NULL;
}

#endif

#endif
