/* SPDX-License-Identifier: MIT
 *
 * Session tickets: what OpenSSL asks about them. They are the whole memory of a session, so any
 * worker can resume it, and no process keeps one. Under the loop lock.
 */
#ifndef RD_TLS_TLS_TICKETS_H
#define RD_TLS_TLS_TICKETS_H

#include <openssl/ssl.h>

/* Sets the callbacks and the life of the tickets of a set. */
void rd_tls_prepare_tickets(SSL_CTX *set);

#endif
