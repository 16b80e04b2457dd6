/* SPDX-License-Identifier: MIT
 *
 * What all sets of certificates of a listener have in common: versions, ciphers, clients with
 * certificates, tickets. For tls_sets.c, which adds the certificates.
 */
#ifndef RD_TLS_TLS_SET_H
#define RD_TLS_TLS_SET_H

#include <openssl/ssl.h>

#include "tls/tls_context.h"

/* A set without certificates. NULL: `error` has one line. */
SSL_CTX *rd_tls_set_new(const rd_tls_options *options, char error[RD_TLS_ERROR_MAX]);

#endif
