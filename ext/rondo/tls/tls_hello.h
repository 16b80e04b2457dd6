/* SPDX-License-Identifier: MIT
 *
 * Whether the first message of a client, the ClientHello, is whole. Until then OpenSSL is not
 * asked: a client that sends half of it holds these bytes and nothing else. This judges nothing:
 * what is no ClientHello is OpenSSL's to refuse. Pure.
 */
#ifndef RD_TLS_TLS_HELLO_H
#define RD_TLS_TLS_HELLO_H

#include <stdint.h>

#include "base/slice.h"

#define RD_TLS_HANDSHAKE_MAX 65536 /* bytes of a client for its handshake */

/* How far the records were read. Zeroed: nothing was. */
typedef struct rd_tls_hello {
    uint32_t at;  /* the next record */
    uint32_t got; /* bytes of the message in the records before it */
    unsigned char head[4];
} rd_tls_hello;

/* `came` is all that has come, and each call has as much or more. Returns 1: OpenSSL can go on; 0:
 * more has to come; RD_ERR_TLS_TOO_LONG. */
int rd_tls_hello_scan(rd_tls_hello *hello, rd_slice came);

#endif
