/* SPDX-License-Identifier: MIT
 *
 * A certificate, its chain and its key, as OpenSSL has them, checked: they belong together, and the
 * certificate is valid now. For tls_context.c.
 */
#ifndef RD_TLS_TLS_PAIR_H
#define RD_TLS_TLS_PAIR_H

#include <openssl/ssl.h>

#include "tls/tls_context.h"

typedef struct rd_tls_loaded {
    X509 *certificate;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
    STACK_OF(OPENSSL_STRING) * names; /* its names of hosts, in lower case */
} rd_tls_loaded;

/* Zeroed before. False: `error` has one line with the name of the file. Either way it is to be
 * cleared. */
bool rd_tls_pair_load(rd_tls_loaded *loaded, const rd_tls_pair *pair, char error[RD_TLS_ERROR_MAX]);
void rd_tls_pair_clear(rd_tls_loaded *loaded);

/* Its first name, and its end. */
rd_tls_validity rd_tls_pair_validity(const rd_tls_loaded *loaded);

/* The reason of OpenSSL's last error, in its words. */
const char *rd_tls_reason(void);

#endif
