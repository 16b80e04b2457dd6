/* SPDX-License-Identifier: MIT
 *
 * TLS as a transport, by OpenSSL. All ciphertext that comes is decrypted at once, so no byte waits
 * where no readiness tells of it. tls_context.c makes a transport for a listener out of this one.
 * Under the loop lock.
 */
#ifndef RD_TLS_TLS_H
#define RD_TLS_TLS_H

#include "transport/transport.h"

extern const rd_transport rd_tls_transport;

#endif
