/* SPDX-License-Identifier: MIT
 *
 * What a transport knows of its peer and of itself, for the env of requests: the certificate of the
 * peer, how the bytes are protected. It is read from the transport when the application first asks,
 * and belongs to the caller. Under the loop lock.
 */
#ifndef RD_TRANSPORT_IDENTITY_H
#define RD_TRANSPORT_IDENTITY_H

#include "transport/conn.h"

#define RD_IDENTITY_NAME_MAX 255

struct rd_identity {
    bool is_asked;         /* the listener asks peers for a certificate */
    rd_buffer certificate; /* of the peer, in DER; empty: it has none */
    const char *invalid;   /* why the certificate is not valid, NULL: it is */
    const char *protocol;  /* "TLSv1.3"; NULL without the setting tls_env */
    const char *cipher;
    size_t server_name_len;
    char server_name[RD_IDENTITY_NAME_MAX]; /* what the peer asked for: visible characters */
};

/* The connection whose transport has the identity: the carrier of a carried one. NULL: its requests
 * tell the application of none. */
rd_conn *rd_identity_owner(rd_conn *conn);

/* A number that no other connection of the set ever has. */
static inline uint64_t rd_identity_number(rd_conn *owner) {
    return rd_conn_layer(owner)->identity;
}

/* Fills in a zeroed one, which is to be cleared. */
void rd_identity_read(rd_identity *identity, rd_conn *owner);
void rd_identity_clear(rd_identity *identity);

#endif
