/* SPDX-License-Identifier: MIT
 *
 * The certificates of a listener, as OpenSSL has them: those that are shown together, by name. They
 * do not change; a reload makes others. A connection keeps the set that it has got.
 */
#ifndef RD_TLS_TLS_SETS_H
#define RD_TLS_TLS_SETS_H

#include <openssl/ssl.h>

#include "tls/tls_context.h"
#include "tls/tls_names.h"

#define RD_TLS_DIGEST_BYTES 32

struct rd_tls_sets {
    SSL_CTX **all; /* the first one if no name asks */
    size_t count;
    rd_tls_names names;          /* which of them a name gets; none if there is only one */
    rd_tls_validity *validities; /* by pair */
    size_t pair_count;
    rd_slice protocols;                        /* as in the options */
    unsigned char digest[RD_TLS_DIGEST_BYTES]; /* of all they were made of */
};

/* The set that a name gets, which may be any bytes. */
static inline SSL_CTX *rd_tls_sets_find(const rd_tls_sets *sets, rd_slice name) {
    const int64_t found = rd_tls_names_find(&sets->names, name);
    return sets->all[found < 0 ? 0 : found];
}

void rd_tls_options_digest(const rd_tls_options *options,
                           unsigned char digest[RD_TLS_DIGEST_BYTES]);

#endif
